"""What is said of a whole panel or model from all findings together.

Door: `audit.audit_panel`, which scores a sample of what is shipped again.
"""

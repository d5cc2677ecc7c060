"""What is said of a whole model or panel from all findings together.

Doors: `scores.score` and `scores.read` (what a report needs to be scored, kept in its directory), `numbers.measure`
(its rows), `reference` (the same numbers of known models), `in_short.sentences`, `comparison.compare` (two models),
`limits` (a gate), and `audit.audit_panel`, which scores a sample of what is shipped again.
"""

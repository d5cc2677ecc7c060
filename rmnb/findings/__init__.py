"""Findings: one module of effects a chapter, and what they share beside them.

Entry points: `tables` (scores as a table a model), `rows` (every model measured the same way), `released` (what the
authors' data say), `claims` (the rule of the verdicts).
"""

"""Findings: scores in, rows of the results table out; one module a chapter, and what they share beside them.

Doors: `measure` of each finding, `align.load_scores` (models on one index), `results` (the table), `released` (what the
authors' data say), `specifications` (does a finding survive other choices?).
"""

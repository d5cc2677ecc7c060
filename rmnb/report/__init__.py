"""One model's numbers beside known models, two models compared, shipped scores audited.

Entry points: `scores.score` and `scores.read` (what a report needs to be scored, kept in its directory),
`numbers.measure`, `record.build`, `record.write` and `record.read` (a finished report), `comparison.compare`,
`pairs.compare` (on the same rows), and `audit.audit_panel`, which scores a sample of what is shipped again.
"""

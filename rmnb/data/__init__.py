"""Data from outside and lists of our own: pinned sources, lexicons, preference pairs, texts to score.

Entry points: `sources.locate` (every external file, verified), `lexicons` (words with meanings), `preferences` (pairs
and rated things), `text_lists` (what models score under many questions), `list_scores` (their scores). The lists that
this project wrote lie in ``lists/``.
"""

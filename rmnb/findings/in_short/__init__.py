"""What was found, in plain sentences whose every number is a row of the results table: one module a chapter.

Each module has one door, `sentences(rows) -> list[str]`, for whatever panel the rows are of; `rmnb.book.in_short` shows
them.
"""

"""Figures and tables of pages without a chapter's number get a letter for their page: Fig. A.1, Fig. A.2, Fig. B.1.

Sphinx counts those of all such pages in one row, so that Fig. 8 would stand outside of chapter 8.
"""

from string import ascii_uppercase


def letter_pages(app, env) -> list[str]:
    """Rewrite the numbers that Sphinx gave, page by page in the order of the book; no page has to be read again."""
    letters = iter(ascii_uppercase)
    for kinds in env.toc_fignumbers.values():
        numbers = [number for of_kind in kinds.values() for number in of_kind.values()]
        if all(len(number) > 1 for number in numbers):
            continue
        letter = next(letters)
        for of_kind in kinds.values():
            of_kind.update({name: (letter, place) for place, name in enumerate(of_kind, 1)})
    return []


def setup(app) -> dict:
    app.connect("env-get-updated", letter_pages, priority=900)  # after Sphinx has numbered
    return {"parallel_read_safe": True, "parallel_write_safe": True}

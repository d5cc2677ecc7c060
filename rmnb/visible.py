"""A token as one line of text in which everything invisible is seen."""

import itertools
import unicodedata

import regex

#: Shown for the ordinary blank, which is invisible at the edges of a token and collapses in HTML.
BLANK = "␣"
_LONGEST = 40  # characters shown of one token
_LONGEST_RUN = 7  # equal characters shown one by one
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
# Characters that leave no ink although their category says letter, mark or symbol.
_INKLESS = set("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5") | {chr(code) for code in range(0xFE00, 0xFE10)}
# Emoji that joiners make one: the joiners in it are ink, elsewhere they are not. Some pictographs are not assigned yet.
_EMOJI = r"(?!\p{Cn})\p{Extended_Pictographic}[\p{EMod}\uFE0F]*"
_UNITS = regex.compile(rf"{_EMOJI}(?:\u200D{_EMOJI})+|.", regex.DOTALL)


def _visible_character(character: str) -> str:
    if character == " ":
        return BLANK
    if character < " ":
        return chr(0x2400 + ord(character))  # the pictures of control characters: a newline is ␊, a tab ␉
    if character == "\x7f":
        return "␡"
    if unicodedata.category(character) in HIDDEN or character in _INKLESS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def visible(token: str) -> str:
    """The token as one line of text in which everything invisible is seen.

    Blanks become ␣, control characters their pictures, other formatting, unassigned and space characters their code
    point in ⟨ ⟩, but emoji that are joined stay one; an accent without a letter gets a dotted circle to stand on; long
    runs of one character are counted (``␣×12``) and what exceeds forty characters is cut, with the number left out. The
    empty token is ∅.
    """
    if not token:
        return "∅"
    pieces = ["◌"] if unicodedata.category(token[0]).startswith("M") and token[0] not in _INKLESS else []
    for unit, run in itertools.groupby(_UNITS.findall(token)):
        shown = unit if len(unit) > 1 else _visible_character(unit)
        length = len(list(run))
        pieces += [f"{shown}×{length}"] if length > _LONGEST_RUN else [shown] * length
    if len(pieces) > _LONGEST:
        pieces[_LONGEST:] = [f"…(+{len(pieces) - _LONGEST})"]
    return "".join(pieces)

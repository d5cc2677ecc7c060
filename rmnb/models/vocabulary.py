"""What the ids of a tokenizer are: text, kind and script of every token.

Three families of tokenizers mark where words begin differently: byte-level BPE writes ``Ġlove`` (GPT-2, Llama 3,
SmolLM2, Qwen), SentencePiece ``▁love`` (Gemma, Llama 2, Mistral); WordPiece marks what continues, ``##ing`` (BERT).
"""

import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import regex

KINDS = (
    "special",  # control tokens: beginning and end of text, turns, padding
    "unused",  # reserved names, and ids beyond the tokenizer that the embedding has nevertheless
    "byte",  # a part of a character that is not text by itself, or a control character
    "whitespace",
    "punctuation",  # punctuation and symbols, emoji among them
    "number",
    "word_start",  # letters, with the marker of a preceding space
    "word_continuation",  # letters without it; all words of scripts written without spaces are here
    "code",  # identifiers (camelCase, snake_case), markup, operators
)
SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Armenian", "Georgian", "Hebrew", "Arabic", "Devanagari", "Bengali", "Gurmukhi"),
    *("Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Ethiopic"),
    *("Han", "Hiragana", "Katakana", "Hangul"),
)
SCRIPT_NAMES = (*(name.lower() for name in SCRIPTS), "other", "mixed", "none")

_SCRIPT = regex.compile("|".join(rf"(?P<{name.lower()}>\p{{{name}}})" for name in SCRIPTS) + r"|(?P<other>\p{L})")
_UNUSED = regex.compile(
    r"<unused_?\d+>|\[unused\d+\]|<\|reserved_special_token_\d+\|>|<\|?(extra|reserved|dummy|placeholder)_?\d+\|?>|<SPECIAL_\d+>"
)
# Names that some tokenizers add without saying that they are special. SentencePiece ones add HTML tags too, as text.
_CONTROL = regex.compile(r"\[\w+\]|<\|.+\|>")
_CONTROL_OR_TAG = regex.compile(r"\[\w+\]|<\|.+\|>|</?\w+>")
_BYTE = regex.compile(r"<0x[0-9A-Fa-f]{2}>")
# What decoding puts for bytes that are no whole characters, and how byte-level BPE spells that character itself.
_REPLACEMENT = "\ufffd"
_REPLACEMENT_PIECE = "ï¿½"
_NUMBER = regex.compile(r"\p{N}+")
_LETTER = regex.compile(r"\p{L}")
_SYMBOLS = regex.compile(r"[\p{P}\p{S}\p{M}\p{Cf}\p{Co}\p{Cn}\s]+")
_NAME = regex.compile(r"(Mc|Mac|Fitz|De|Di|La|Le|Van)\p{Lu}\p{Ll}+")
# Letters: an inner capital, an underscore, a leading dot, dollar or at, anything of a programming language's brackets.
_CODE_NAME = regex.compile(r"\p{Ll}\p{Lu}|\p{L}_|_\p{L}|^[.$@#\\/]\p{L}|[<>{}\[\]()=;\\/|&#@$*+^~%\"`:]")
# No letters: several different symbols of which one belongs to a programming language, or a pair of empty brackets.
_CODE_SYMBOLS = regex.compile(r"[<>{}\[\]=;\\/|&#@$*+^~%_`]|\(\)")


def vocabulary(tokenizer: Any, size: int) -> pd.DataFrame:
    """Every id of a model's embedding, none left out.

    Parameters
    ----------
    tokenizer : transformers tokenizer
    size : int
        Rows of the embedding; may exceed the tokenizer's own length.

    Returns
    -------
    DataFrame
        `size` rows in the order of their id: token_id (int32), token (the decoded text, ``""`` for ids beyond the
        tokenizer), piece (the tokenizer's own spelling, with its marker), kind (category, `KINDS`), script (category,
        `SCRIPT_NAMES`: the script of the letters, ``none`` without letters, ``mixed`` for several).
    """
    by_id = {i: piece for piece, i in tokenizer.get_vocab().items()}
    pieces = [by_id.get(i, "") for i in range(size)]
    # Cleaning up would turn the token " ." into ".", another token.
    known = [[i] if i in by_id else [] for i in range(size)]
    tokens = tokenizer.batch_decode(known, clean_up_tokenization_spaces=False)
    added = tokenizer.added_tokens_decoder
    family = _family(tokenizer)
    control = _CONTROL_OR_TAG if family == "bytes" else _CONTROL
    special = {
        *tokenizer.all_special_ids,
        *(i for i, token in added.items() if token.special or control.fullmatch(token.content)),
    }
    kinds = []
    for i, piece in enumerate(pieces):
        if i not in by_id or _UNUSED.fullmatch(piece):
            kinds.append("unused")
        elif i in special:
            kinds.append("special")
        else:  # added tokens are spelled as they are, not in the tokenizer's alphabet
            kinds.append(_kind(piece, tokens[i], "literal" if i in added else family))
    scripts = [script_of(text) if kind != "byte" else "none" for text, kind in zip(tokens, kinds, strict=True)]
    return pd.DataFrame(
        {
            "token_id": np.arange(size, dtype=np.int32),
            "token": tokens,
            "piece": pieces,
            "kind": pd.Categorical(kinds, categories=KINDS),
            "script": pd.Categorical(scripts, categories=SCRIPT_NAMES),
        }
    )


def _family(tokenizer: Any) -> str:
    """``bytes``, ``wordpiece`` or ``spaces`` (SentencePiece), by the decoder."""
    decoder = repr(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", ""))
    if "ByteLevel" in decoder:
        return "bytes"
    return "wordpiece" if "WordPiece" in decoder else "spaces"


def _kind(piece: str, token: str, family: str) -> str:
    is_part = _REPLACEMENT in token and _REPLACEMENT_PIECE not in piece
    if _BYTE.fullmatch(piece) or (family == "bytes" and is_part):
        return "byte"
    if family == "wordpiece":
        body = piece.removeprefix("##").strip()
        starts = not piece.startswith("##")
    else:
        text = piece.replace("▁", " ") if family == "spaces" else token
        body = text.strip()
        starts = text[:1].isspace()
    if not body:
        return "whitespace"
    categories = {unicodedata.category(character) for character in body}
    if categories == {"Cc"}:
        return "byte"
    if categories == {"Cf"}:
        return "whitespace"  # invisible: joiners, marks of direction
    if _NUMBER.fullmatch(body):
        return "number"
    if _SYMBOLS.fullmatch(body):
        several = len(set(body)) > 1
        return "code" if several and _CODE_SYMBOLS.search(body) else "punctuation"
    if _LETTER.search(body):
        if _CODE_NAME.search(body) and not _NAME.fullmatch(body):
            return "code"
        return "word_start" if starts else "word_continuation"
    if _CODE_SYMBOLS.search(body):
        return "code"
    return "number" if _NUMBER.search(body) else "punctuation"


def script_of(text: str) -> str:
    """The script of a text's letters, one of `SCRIPT_NAMES`: ``none`` without letters, ``mixed`` for several."""
    if text.isascii():
        return "latin" if any(map(str.isalpha, text)) else "none"
    scripts = {str(match.lastgroup) for match in _SCRIPT.finditer(text)}
    if len(scripts) > 1:
        return "mixed"
    return scripts.pop() if scripts else "none"

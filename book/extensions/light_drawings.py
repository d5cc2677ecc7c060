"""Drawings as Matplotlib writes them, in two thirds of the bytes: no number is finer than a hundredth of a point."""

import re

_MADE_BY = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_GEOMETRY = re.compile(r'\b(?:d|x|y|points)="[^"]*"|translate\([^()]*\)')
_FINE = re.compile(r"-?\d+\.\d{3,}")
_MOVED = re.compile(r'(<use [^>]*?) transform="translate\(([-\d.]+)[ ,]+([-\d.]+)\)"')
_NAME = re.compile(r'((?:\bid="|href="#|url\(#))([^")]+)')
_TARGET = re.compile(r'(?:href="#|url\(#)([^")]+)')


def _coarse(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2) + 0:g}"  # no minus before a zero


def tightened(drawing: str) -> str:
    """An SVG drawing that shows the same: without comments, indents and names that nothing refers to."""
    text = " ".join(_MADE_BY.sub("", drawing).split()).replace("> <", "><")
    text = _GEOMETRY.sub(lambda part: _FINE.sub(_coarse, part[0]), text)
    text = _MOVED.sub(r'\1 x="\2" y="\3"', text).replace(' y="0"', "")
    short = {name: f"n{place:x}" for place, name in enumerate(dict.fromkeys(_TARGET.findall(text)))}
    return _NAME.sub(lambda name: name[1] + short.get(name[2], ""), text).replace(' id=""', "")

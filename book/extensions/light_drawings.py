"""Drawings as Matplotlib writes them, in two thirds of the bytes.

No number is finer than a hundredth of a point, and a cloud of dots drawn as an image has 32 colours.
"""

import base64
import io
import re

from PIL import Image

_MADE_BY = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_GEOMETRY = re.compile(r'\b(?:d|x|y|points)="[^"]*"|translate\([^()]*\)')
_FINE = re.compile(r"-?\d+\.\d{3,}")
_MOVED = re.compile(r'(<use [^>]*?) transform="translate\(([-\d.]+)[ ,]+([-\d.]+)\)"')
_NAME = re.compile(r'((?:\bid="|href="#|url\(#))([^")]+)')
_TARGET = re.compile(r'(?:href="#|url\(#)([^")]+)')
_IMAGE = re.compile(r"(?<=data:image/png;base64,)[^\"]+")


def _few_colours(image: re.Match[str]) -> str:
    smaller = io.BytesIO()
    drawn = Image.open(io.BytesIO(base64.b64decode(image[0])))
    drawn.quantize(32, method=Image.Quantize.FASTOCTREE).save(smaller, "PNG", optimize=True)
    return base64.b64encode(smaller.getvalue()).decode()


def _coarse(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2) + 0:g}"  # no minus before a zero


def tightened(drawing: str) -> str:
    """An SVG drawing that shows the same: without comments, indents and names that nothing refers to."""
    text = " ".join(_MADE_BY.sub("", drawing).split()).replace("> <", "><")
    text = _IMAGE.sub(_few_colours, text)
    text = _GEOMETRY.sub(lambda part: _FINE.sub(_coarse, part[0]), text)
    text = _MOVED.sub(r'\1 x="\2" y="\3"', text).replace(' y="0"', "")
    short = {name: f"n{place:x}" for place, name in enumerate(dict.fromkeys(_TARGET.findall(text)))}
    return _NAME.sub(lambda name: name[1] + short.get(name[2], ""), text).replace(' id=""', "")

"""Matplotlib's drawings with colours for the dark theme.

A drawing follows the theme of its page: browsers answer the query ``prefers-color-scheme`` inside of it with the page's
scheme.
"""

import base64
import io
import re

import numpy as np
from PIL import Image

_INK = re.compile(r'(fill|stroke)(: ?|=")(#[0-9a-fA-F]{3,6})\b')
_LAYER = re.compile(r'<image [^>]*?"data:image/png;base64,([^"]+)"[^>]*>')
GROUND = "#14181e"  # of the theme's pages in the dark
_LIGHTEST = 0.8  # luminance of the lightest ink there


def _linear(colour: str) -> np.ndarray:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    srgb = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _luminance(linear: np.ndarray) -> float:
    return float(linear @ [0.2126, 0.7152, 0.0722])


def in_the_dark(colour: str) -> str:
    """The colour of the same hue that stands out from the dark ground as much as this one does from white."""
    linear, ground = _linear(colour), _luminance(_linear(GROUND))
    before = _luminance(linear)
    if before == 1:
        return GROUND
    wanted = min((ground + 0.05) * 1.05 / (before + 0.05) - 0.05, _LIGHTEST)
    if before == 0:
        linear = np.full(3, wanted)
    else:  # brighter until a channel is full, then paler
        linear = linear * min(wanted / before, 1 / linear.max())
        pale = max(0.0, (wanted - _luminance(linear)) / (1 - _luminance(linear)))  # rounding can give less than 0
        linear = linear + pale * (1 - linear)
    srgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * value):02x}" for value in srgb)


def _scales_in_the_dark(drawing: str) -> str:
    """The drawing with each scale of colours, which Matplotlib writes as an image, once for each ground.

    If what a scale explains is an image, too (a cloud of dots, which is partly transparent), both stay as they are.
    """
    layers = {}
    for layer in _LAYER.finditer(drawing):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(layer[1]))).convert("RGBA")).copy()
        if pixels[..., 3].min() < 255:
            return drawing
        for colour in np.unique(pixels[..., :3].reshape(-1, 3), axis=0):
            dark = in_the_dark("#" + bytes(colour).hex())
            pixels[(pixels[..., :3] == colour).all(axis=-1), :3] = list(bytes.fromhex(dark[1:]))
        written = io.BytesIO()
        Image.fromarray(pixels).save(written, format="png", optimize=True)
        second = layer[0].replace(layer[1], base64.b64encode(written.getvalue()).decode())
        light = layer[0].replace("<image ", '<image class="light" ')
        layers[layer[0]] = light + second.replace("<image ", '<image class="dark" ')
    return _LAYER.sub(lambda layer: layers[layer[0]], drawing)


def for_both_themes(drawing: str) -> str:
    """An SVG drawing that shows the same on white, and on a dark page is drawn in inks for a dark ground."""
    rules = [f"svg{{fill:{in_the_dark('#000000')}}}", "image.light{display:none}", "image.dark{display:inline}"]
    for part, between, ink in dict.fromkeys(_INK.findall(drawing)):
        is_attribute = "=" in between
        selector = f'[{part}="{ink}"]' if is_attribute else f'[style*="{part}{between}{ink}"]'
        rules.append(f"{selector}{{{part}:{in_the_dark(ink)}!important}}")
    dark = f"@media screen and (prefers-color-scheme:dark){{{''.join(rules)}}}"
    style = f"<style>image.dark{{display:none}}{dark}</style>"
    return re.sub(r"<svg [^>]*>", lambda start: start[0] + style, _scales_in_the_dark(drawing), count=1)

"""Formulas as MathML, written when the book is built: no script, no network, and nothing on a page is taken for TeX."""

import html
import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_logger = logging.getLogger(__name__)
# What docutils does not know, written as it knows it.
_REWRITTEN = (
    (re.compile(r"\\[bB]igg?[lrm]?(?![A-Za-z])"), ""),  # sizes of brackets
    (re.compile(r"\\[td]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\dots(?![A-Za-z])"), r"\\ldots"),
    (re.compile(r"(\\(?:log|ln|exp|arcsin))\s+(?=[\\A-Za-z])(?!\\left)"), r"\1\\,"),  # a gap before the argument
)


def _mathml(node: nodes.Element, as_block: bool) -> str:
    formula = node.astext()
    for pattern, replacement in _REWRITTEN:
        formula = pattern.sub(replacement, formula)
    try:
        return tex2mathml(formula, as_block)
    except MathError as error:
        _logger.warning("cannot write %r as MathML: %s", node.astext(), error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(translator, node: nodes.Element) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(translator, node: nodes.Element) -> None:
    translator.body.append(
        translator.starttag(node, "div", CLASS="formula", tabindex="0") + _mathml(node, as_block=True) + "</div>\n"
    )
    raise nodes.SkipNode


def setup(app) -> dict:
    """Register the renderer with Sphinx; ``html_math_renderer: mathml`` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Numbers in prose, put in when the book is built.

The role ``number`` writes one of `FACTS`, each counted from what the project ships. The role ``result`` writes a number
of the chapters' results: a chapter, a quantity, what to select, and with ``of=`` how several rows become one number:

    {result}`heterogeneity tau source=panel question=greatest of=median`

A name that does not exist, or a selection without a row, is a warning, and so an error of the build; except that
``else=`` says what to write where a panel of the reader's own has no such number.
"""

import functools
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from docutils import nodes

from rmnb.findings.released import KEY
from rmnb.panels import load_panel
from rmnb.scoring import store

RESULTS = Path("book/_executed/results")
# fmt: off
_WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)
# fmt: on
_MERGED = ("min", "max", "median", "mean", "sum", "count")


def in_words(count: int) -> str:
    """A small number as a word, a larger one with a comma between its thousands."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


@functools.cache
def _vocabulary_sizes() -> list[int]:
    """Ids of every scanned model of the demo panel, smallest first."""
    panel = load_panel("demo")
    paths = [
        store.scores_path(panel, name, prompt.key) for name in panel.model_names for prompt in panel.scanned_prompts
    ]
    return sorted(pq.read_metadata(path).num_rows for path in paths if path.exists())


def _sizes_of_the_papers() -> list[float]:
    return sorted(model.parameters or 0 for model in load_panel("facct2025").models)


def _sizes_of_the_models() -> list[float]:
    return sorted(1000 * (model.parameters or 0) for model in load_panel("demo").models)


#: What `{number}` can write, by name.
FACTS: dict[str, Callable[[], str]] = {
    "models": lambda: in_words(len(load_panel("demo").models)),
    "bases": lambda: in_words(len({model.family for model in load_panel("demo").models})),
    "papers_models": lambda: in_words(len(load_panel("facct2025").models)),
    "papers_smallest": lambda: f"{_sizes_of_the_papers()[0]:g}",
    "papers_largest": lambda: f"{_sizes_of_the_papers()[-1]:g}",
    "smallest_model": lambda: f"{_sizes_of_the_models()[0]:.0f}",
    "largest_model": lambda: f"{_sizes_of_the_models()[-1]:.0f}",
    "smallest_vocabulary": lambda: f"{_vocabulary_sizes()[0]:,}",
    "largest_vocabulary": lambda: f"{_vocabulary_sizes()[-1]:,}",
    "shard": lambda: f"{store.SHARD:,}",
    "bfloat16_rounding": lambda: f"{100 * 2.0**-8:.1f} %",
}


@functools.cache
def _results() -> pd.DataFrame:
    """The results of all chapters, with a column chapter."""
    tables = {path.stem: pd.read_csv(path, keep_default_na=False) for path in RESULTS.glob("*.csv")}
    return pd.concat(tables, names=["chapter", ""]).reset_index("chapter")


def result(question: str, table: pd.DataFrame | None = None) -> str:
    """The number that a `{result}` asks for, with two decimals or ``digits=`` (of=count: none).

    Raises
    ------
    ValueError
        The question is not understood, or does not end in one number.
    """
    chapter, quantity, *settings = shlex.split(question)
    selection = dict(setting.split("=", 1) for setting in settings)
    how = selection.pop("of", None)
    digits = int(selection.pop("digits", 2))
    otherwise = selection.pop("else", None)
    rows = _results() if table is None else table
    for column, value in {"chapter": chapter, "quantity": quantity, **selection}.items():
        if column not in ("chapter", *KEY):
            raise ValueError(f"{column!r} is no column to select by: {', '.join(KEY)}")
        rows = rows[rows[column] == value]
    if how is not None and how not in _MERGED:
        raise ValueError(f"of={how}: choose one of {', '.join(_MERGED)}")
    if rows.empty and otherwise is not None:
        return otherwise
    if rows.empty or (how is None and len(rows) > 1):
        raise ValueError(f"{question!r} selects {len(rows)} rows of the results")
    value = float(rows["value"].agg(how) if how else rows["value"].iloc[0])
    if how == "count":
        digits = 0
    return f"{value:z,.{digits}f}".replace("-", "−")  # z: zero has no minus


def _role(write: Callable[[str], str]):
    def role(name, rawtext, text, lineno, inliner, options=None, content=None):
        try:
            return [nodes.Text(write(text))], []
        except (KeyError, ValueError, OSError) as error:
            message = inliner.reporter.warning(f"no number for {rawtext}: {error}", line=lineno)
            return [inliner.problematic(rawtext, rawtext, message)], [message]

    return role


def setup(app) -> dict:
    """Register the two roles."""
    app.add_role("number", _role(lambda name: FACTS[name]()))
    app.add_role("result", _role(result))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""What changed between two models on the same rows: accuracy, margin, calibration, and the rows that flipped."""

from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import InputError, TooFewError
from rmnb.scoring import pairs
from rmnb.scoring.forms import RowTable
from rmnb.scoring.rows import response_text, rows_sha256
from rmnb.scoring.store import read_table

DRAWS = 400  # of prompts, for an interval
#: What a reader sees of a comparison: its columns, and what they are called.
HEADS = {
    "name": "number", "other": "part", "a": "A", "b": "B", "change": "change", "low": "95 %, other prompts: from",
    "high": "to", "p": "p (McNemar)", "pairs": "pairs",
}  # fmt: skip


def read_rewards(path: Path, content: RowTable) -> pd.DataFrame:
    """What `rmnb score --out` wrote of these rows, by the name of that file.

    Raises
    ------
    InputError
        It is no such file, or one of other rows.
    """
    kept = path if path.suffix == ".parquet" else path.with_name(f"{path.name}.parquet")
    table, provenance = read_table(kept)
    if provenance.get("rows_sha256") != rows_sha256(content.answers):
        raise InputError(f"{path} has no rewards of these rows: `rmnb score MODEL ROWS --out {path}` makes them", path)
    table.attrs["provenance"] = provenance
    return table


def compare(a: pd.DataFrame, b: pd.DataFrame, content: RowTable, by: str | None = None) -> pd.DataFrame:
    """The numbers of two models on the same rows, and how far the second is from the first.

    Parameters
    ----------
    a, b
        As `rmnb.scoring.rows.score_file` returns them for pairs or lists.
    content
        The rows.
    by
        A key of the rows: also the numbers of each of its values.

    Returns
    -------
    DataFrame
        `rmnb.limits.KEY` (other is the part, empty for all rows), a, a_low, a_high, b, b_low, b_high, change (b minus
        a), low, high (95 % interval over prompts: of the accuracy `rmnb.stats.paired_change`, else by the bootstrap;
        0 between a model and itself; NaN with one prompt), p (McNemar's exact, of the
        accuracy), pairs.

    Raises
    ------
    InputError
        The rows are no pairs or lists, or a model has several outputs.
    """
    tables, margins = [], []
    for side, frame in (("a", a), ("b", b)):
        if frame.attrs["provenance"]["outputs"] != ["reward"]:
            raise InputError(f"{side.upper()} has several outputs, and a comparison needs one: choose a --label")
        heads = {"part": "other", "value": side, "low": f"{side}_low", "high": f"{side}_high"}
        tables.append(pairs.pair_numbers(frame, by).rename(columns=heads))
        margins.append(pairs.margins(frame, by))
    table = tables[0].merge(tables[1], on=["name", "other", "pairs"])
    first, second = margins
    prompts = pd.Series(_prompts(content), first.index)
    statistics = pairs.statistics(a.attrs["provenance"])
    changes = {}
    for part, rows in pairs.parts(first):
        sides = first.loc[rows.index], second.loc[rows.index]
        for name, statistic in statistics.items():
            changes[name, part] = _change(name, statistic, *sides, prompts[rows.index])
    table = table.assign(question="", change=table["b"] - table["a"])
    table[["low", "high", "p"]] = [changes[key] for key in zip(table["name"], table["other"], strict=True)]
    # No row has changed: a model and itself.
    for end in ("low", "high"):
        table[end] = table[end].mask(table["change"].eq(0) & table[end].isna(), 0.0)
    return table


def _change(
    name: str, statistic: pairs.Statistic, a: pd.DataFrame, b: pd.DataFrame, prompts: pd.Series
) -> tuple[float, float, float]:
    """The ends of the interval of a change, and its p value."""
    try:
        if name == pairs.NAMES[0]:
            change = stats.paired_change(a["margin"] > 0, b["margin"] > 0, prompts)
        else:
            places = np.arange(len(a))
            change = stats.bootstrap(
                lambda drawn: statistic(b.iloc[drawn]) - statistic(a.iloc[drawn]),
                places,
                clusters=prompts,
                n_draws=DRAWS,
            )
    except TooFewError:  # one prompt
        return np.nan, np.nan, np.nan
    return change.ci_low, change.ci_high, change.p_value


def flipped(a: pd.DataFrame, b: pd.DataFrame, content: RowTable, by: str | None = None) -> pd.DataFrame:
    """The rows that one of two models gets right and the other does not, the most surprising first.

    Returns
    -------
    DataFrame
        row (from 1), part, result (``now right`` or ``now wrong``), margin_a, margin_b, prompt (its last message),
        chosen, rejected (of lists, all responses). The first rows are those whose margin has changed most, each
        model's margins in their own standard deviation.
    """
    first, second = pairs.margins(a, by), pairs.margins(b, by)
    texts: dict[int, dict[str, str]] = {}
    for row, side, conversation in content.answers:
        text = texts.setdefault(row, {"prompt": conversation.prompt.messages[-1]["content"]})
        text[side] = "\n\n".join(filter(None, [text.get(side), response_text(conversation.response)]))
    table = pd.DataFrame([texts[row] for row in sorted(texts)], first.index)
    table = table.assign(row=[row + 1 for row in sorted(texts)], part=first["part"])
    table = table.assign(margin_a=first["margin"], margin_b=second["margin"])
    table["result"] = np.where(table["margin_b"] > 0, "now right", "now wrong")
    surprise = (first["margin"] / first["margin"].std() - second["margin"] / second["margin"].std()).abs()
    order = surprise[(first["margin"] > 0) != (second["margin"] > 0)].sort_values(ascending=False, kind="stable").index
    columns = ["row", "part", "result", "margin_a", "margin_b", "prompt", "chosen", "rejected"]
    return table.loc[order, columns].reset_index(drop=True)


def _prompts(content: RowTable) -> list[str]:
    """The prompt of each row that has answers, in the order of the file."""
    prompts = {answer.row: str(answer.conversation.prompt) for answer in content.answers}
    return [prompts[row] for row in sorted(prompts)]

"""What changed between two models on the same rows: accuracy, margin, calibration, and the rows that flipped."""

from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import InputError, TooFewError
from rmnb.limits import KEY
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
    table, provenance = read_table(kept) if kept.exists() else (pd.DataFrame(), {})
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
        0 where all rewards are the same; NaN with one prompt), p (McNemar's exact, of the
        accuracy), pairs.

    Raises
    ------
    InputError
        The rows are no pairs or lists, or a model has several outputs.
    """
    tables = []
    for side, frame in (("a", a), ("b", b)):
        if frame.attrs["provenance"]["outputs"] != ["reward"]:
            raise InputError(f"{side.upper()} has several outputs, and a comparison needs one: choose a --label")
        tables.append(pairs.limit_table(pairs.pair_numbers(frame, by), side))
    table = tables[0].merge(tables[1], on=[*KEY, "pairs"])
    first, second = pairs.margins(a, by), pairs.margins(b, by)
    prompts = {answer.row: str(answer.conversation.prompt) for answer in content.answers}
    clusters = pd.Series([prompts[row] for row in sorted(prompts)], first.index)
    statistics = pairs.statistics(a.attrs["provenance"])
    changes = []
    for name, part in zip(table["name"], table["other"], strict=True):
        rows = first.index if part == pairs.ALL else first.index[first["part"] == part]
        changes.append(_change(name, statistics[name], first.loc[rows], second.loc[rows], clusters[rows]))
    ends = pd.DataFrame(changes, columns=["low", "high", "p"])
    return table.assign(change=table["b"] - table["a"]).join(ends)


def _change(
    name: str, statistic: pairs.Statistic, a: pd.DataFrame, b: pd.DataFrame, prompts: pd.Series
) -> tuple[float, float, float]:
    """The ends of the interval of a change, and its p value."""
    if a.equals(b):
        return 0.0, 0.0, np.nan
    try:
        if name == "accuracy":
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
        row (from 1), prompt (its last message), chosen, rejected (of lists, all responses), part, result (``now right``
        or ``now wrong``), margin_a, margin_b. The first rows are those whose margin has changed most, each
        model's margins in their own standard deviation.
    """
    texts: dict[int, dict[str, str]] = {}
    for row, side, conversation in content.answers:
        text = texts.setdefault(row, {"prompt": conversation.prompt.messages[-1]["content"]})
        text[side] = "\n\n".join(filter(None, [text.get(side), response_text(conversation.response)]))
    first, second = pairs.margins(a, by), pairs.margins(b, by)
    right = second["margin"] > 0
    table = pd.DataFrame([{"row": row + 1, **texts[row]} for row in sorted(texts)], first.index).assign(
        part=first["part"],
        result=right.map({True: "now right", False: "now wrong"}),
        margin_a=first["margin"],
        margin_b=second["margin"],
    )
    surprise = (first["margin"] / first["margin"].std() - second["margin"] / second["margin"].std()).abs()
    order = surprise[(first["margin"] > 0) != right].sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)

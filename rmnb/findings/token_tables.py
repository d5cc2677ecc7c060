"""Tables of tokens: the first and the last of each ranking, and the words that models dispute most."""

from collections.abc import Mapping

import pandas as pd


def extremes(scans: Mapping[str, pd.DataFrame], count: int, best: bool) -> pd.DataFrame:
    """The first (or last) tokens of several scans, a line a model: columns model, 1, 2, … of tokens in their order."""
    lines = []
    for model, scan in scans.items():
        order = scan["score"].sort_values(ascending=not best, kind="stable").index[:count]
        lines.append([model, *scan.loc[order, "token"]])
    return pd.DataFrame(lines, columns=["model", *map(str, range(1, len(lines[0])))])


def disputed(words: pd.DataFrame, count: int) -> pd.DataFrame:
    """The words on which models differ most: the widest spread of percentile ranks over the models.

    Returns
    -------
    DataFrame
        Index word; spread (standard deviation of the percentile, in points), lowest and highest (percentiles),
        lowest_in and highest_in (models).
    """
    percentile = 100 * words.rank(pct=True)
    table = pd.DataFrame(
        {
            "spread": percentile.std(axis=1, ddof=0),
            "lowest": percentile.min(axis=1),
            "lowest_in": percentile.idxmin(axis=1),
            "highest": percentile.max(axis=1),
            "highest_in": percentile.idxmax(axis=1),
        }
    )
    return table.sort_values("spread", ascending=False, kind="stable").head(count)

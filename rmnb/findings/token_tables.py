"""Tables of tokens: the first and the last of each ranking."""

from collections.abc import Mapping

import pandas as pd


def extremes(scans: Mapping[str, pd.DataFrame], count: int, best: bool) -> pd.DataFrame:
    """The first (or last) tokens of several scans, a line a model: columns model, 1, 2, … of tokens in their order."""
    lines = []
    for model, scan in scans.items():
        order = scan["score"].sort_values(ascending=not best, kind="stable").index[:count]
        lines.append([model, *scan.loc[order, "token"]])
    return pd.DataFrame(lines, columns=["model", *map(str, range(1, len(lines[0])))])

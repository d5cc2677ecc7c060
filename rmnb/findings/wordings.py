"""What changes when the same question is asked in other words: the 54 wordings of Christian et al. (2026)."""

import functools
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings.results import Results
from rmnb.panels import Panel
from rmnb.scoring.list_scores import list_path, read_list

#: What two wordings of a question may differ in, with what is the same.
CHANGES = ("style", "scope", "adjective", "framing")


def measure(
    tables: Mapping[str, pd.DataFrame],
    framings: Mapping[str, str],
    seeds: Sequence[tuple[str, str]] = (),
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows wording_spearman by model and change, and seed_spearman for two `seeds` asked the same.

    Parameters
    ----------
    tables
        Model → scores of the same texts: a row a text, a column a prompt of a factorial set such as ``iclr2026``.
    framings
        Prompt → ``positive`` or ``negative``.
    """
    results = Results("framing", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    for model, table in tables.items():
        for change, values in changes(table, framings).groupby("change", sort=False)["spearman"]:
            low, high = values.quantile([0.05, 0.95])
            about: dict = {"model": model, "other": change, "n": len(values)}
            add("wording_spearman", values.median(), ci_low=low, ci_high=high, **about)
    for one, other in seeds:
        if one in tables and other in tables:
            values = [stats.spearman(tables[one][prompt], tables[other][prompt]) for prompt in tables[one]]
            add("seed_spearman", float(np.median(values)), model=one, other=other, n=len(values))
    return results.frame()


def changes(scores: pd.DataFrame, framings: Mapping[str, str]) -> pd.DataFrame:
    """How alike two wordings rank the same texts, for every pair that differs in one thing alone.

    Parameters
    ----------
    scores : DataFrame
        A row a text, a column a prompt; keys read ``adjective_scope_style``.
    framings
        Prompt → ``positive`` or ``negative``; those without a column are left out.

    Returns
    -------
    DataFrame
        prompt, other (keys), change (one of `CHANGES`; adjective: another adjective of the same framing, framing: one
        of the other), spearman (float64).
    """
    known = [prompt for prompt in framings if prompt in scores]
    matrix = stats.spearman_matrix(scores[known].to_numpy(np.float64).T)
    rows = []
    for (i, one), (j, other) in itertools.combinations(enumerate(known), 2):
        differ = [a != b for a, b in zip(one.split("_"), other.split("_"), strict=True)]
        if sum(differ) == 1:
            change = ("adjective", "scope", "style")[differ.index(True)]
            rows.append((one, other, change if framings[one] == framings[other] else "framing", matrix[i, j]))
    return pd.DataFrame(rows, columns=["prompt", "other", "change", "spearman"])


def list_tables(panel: Panel, name: str = "words") -> dict[str, pd.DataFrame]:
    """For each model that has scored a list, its scores: a row a distinct text, a column a prompt."""
    tables = {}
    for model in panel.model_names:
        path = list_path(panel, model, name)
        if path.exists():
            frame, _ = read_list(path)
            tables[model] = frame.drop(columns="part").drop_duplicates("text").set_index("text")
    return tables

"""The reference models that a report stands beside: the same numbers of the demo panel and of the papers' ten models.

``reference.csv`` is shipped in the package; ``python -m rmnb.report.reference`` computes it again from the demo panel's
shipped scores and the rows of the authors' data.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pandas as pd

from rmnb.files import atomic_path
from rmnb.findings import released_rows
from rmnb.findings.results import KEY, Results, read_table
from rmnb.panels import load_panel
from rmnb.report import numbers
from rmnb.report.scores import of_panel

SHIPPED = Path(str(resources.files("rmnb.report"))) / "reference.csv"


@dataclass(frozen=True)
class Number:
    """One number of a report that is shown beside the reference models.

    Attributes
    ----------
    label : str
        What a reader is told that it is.
    statistic, other, prompt : str
        Which row of the results table.
    """

    label: str
    statistic: str
    other: str = ""
    prompt: str = ""


#: By part of the report, in its order.
NUMBERS: dict[str, tuple[Number, ...]] = {
    "the question": (
        Number("greatest and worst alike (τ)", "framing_kendall", "worst", "greatest"),
        Number("another style (ρ)", "wording_spearman", "style"),
        Number("another scope (ρ)", "wording_spearman", "scope"),
        Number("another adjective (ρ)", "wording_spearman", "adjective"),
        Number("the other framing (ρ)", "wording_spearman", "framing"),
    ),
    "valence": (
        Number("slope among good words", "slope_positive_standardised", prompt="greatest"),
        Number("slope among bad words", "slope_negative_standardised", prompt="greatest"),
        Number("good less bad", "slope_difference_standardised", prompt="greatest"),
        Number("skewness of the vocabulary", "skewness", prompt="greatest"),
    ),
    "frequency": (
        Number("greatest", "slope_log_frequency_controlled", prompt="greatest"),
        Number("worst", "slope_log_frequency_controlled", prompt="worst"),
        Number("words without valence, greatest", "slope_log_frequency_others", prompt="greatest"),
        Number("common to both questions", "slope_log_frequency_common", "worst", "greatest"),
    ),
    "identity": (
        Number("good questions", "identity_gap", "all axes", "words, positive"),
        Number("bad questions", "identity_gap", "all axes", "words, negative"),
    ),
    "agency and communion": (
        Number("agency less communion, good questions", "agency_gap", prompt="positive"),
        Number("agency less communion, bad questions", "agency_gap", prompt="negative"),
    ),
    "moral foundations": tuple(
        Number(name, "foundation_rank", name, "greatest")
        for name in ("care", "fairness", "loyalty", "authority", "sanctity")
    ),
    "people": (
        Number("agreement with votes (ρ)", "human_spearman", prompt="elo_greatest"),
        Number("things that name groups, places of 100", "identity_gap_things", prompt="elo_greatest"),
    ),
}


def rows() -> pd.DataFrame:
    """The shipped results rows; panel is ``demo`` (ten small models) or ``iclr2026`` and the like (the papers' ten)."""
    return read_table(SHIPPED)


def like(row: pd.Series | Number, among: pd.DataFrame) -> pd.DataFrame:
    """The rows that are the same number of other models."""
    fits = (among["statistic"] == row.statistic) & (among["other"] == row.other) & (among["prompt"] == row.prompt)
    return among[fits]


def headline(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """The rows of a table that are numbers of one part, in their order, with the column label."""
    found = [like(number, table).assign(label=number.label) for number in NUMBERS[part]]
    return pd.concat(found, ignore_index=True)


def places(table: pd.DataFrame, reference: pd.DataFrame | None = None) -> pd.DataFrame:
    """How many other models of the demo panel have a smaller number, for each number of the report that they have too.

    Returns
    -------
    DataFrame
        Rows reference_below: `other` and `prompt` as the number's, with its statistic before; n, the models.
    """
    reference = rows() if reference is None else reference
    demo, results = reference[reference["panel"] == "demo"], Results("report", "report")
    for number in _every():
        own = like(number, table)
        others = like(number, demo[~demo["model"].isin(own["model"])])
        if len(own) == 1 and len(others):
            below = int((others["value"] < own["value"].iloc[0]).sum())
            other = f"{number.statistic} {number.other}".strip()
            model = own["model"].iloc[0]
            results.add(
                "panel", "reference_below", below, model=model, other=other, prompt=number.prompt, n=len(others)
            )
    return results.frame()


def _every() -> Iterable[Number]:
    return (number for of_part in NUMBERS.values() for number in of_part)


def compute() -> pd.DataFrame:
    """The rows to be shipped: of each demo model from its shipped scores, of the papers' models as released."""
    demo = load_panel("demo")
    found = [numbers.measure(of_panel(demo, name)).assign(panel="demo") for name in demo.model_names]
    released = [released_rows.rows(finding) for finding in ("framing", "identity", "elo", "agency_communion")]
    found += [table[(table["source"] == "released") & (table["model"] != "")] for table in released]
    table = pd.concat(found, ignore_index=True)
    kept = pd.concat([like(number, table) for number in _every()])
    return kept.drop_duplicates(list(KEY)).reset_index(drop=True)


if __name__ == "__main__":
    with atomic_path(SHIPPED) as part:
        compute().to_csv(part, index=False, float_format="%.6g")

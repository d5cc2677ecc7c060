"""The values of single models that a build computes are those of the last release, but for changes made on purpose.

After such a change ``python tests/site/test_results.py`` writes ``results.csv`` anew; the commit explains what differs.
"""

import re
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("results.csv")
SCORED_LIVE = {"lab_question", "lesson", "traps", "watching"}  # or trained, by the processor at hand
NUMBERS = ["value", "low", "high"]


def _four_digits(number: re.Match) -> str:
    """Of a label that was measured: machines differ in its last digits."""
    return f"{float(number[0]):.4g}"


def computed() -> pd.DataFrame:
    """Values of the demo panel's models as the chapters saved them: index chapter and labels, columns `NUMBERS`."""
    tables = []
    for path in sorted((ROOT / "book/_executed/results").glob("*.csv")):
        table = pd.read_csv(
            path, dtype={"seed": str, "n": str}, keep_default_na=False, na_values={n: "" for n in NUMBERS}
        )
        table = table[(table["source"] == "panel") & (table["model"] != "")]
        if table.empty or path.stem in SCORED_LIVE:
            continue
        labels = table.columns.difference([*NUMBERS, "n", "source"], sort=False)
        of = path.stem + "|" + table[labels].astype(str).agg("|".join, axis="columns")
        table["of"] = of.str.replace(r"\d+\.\d{4,}(e-\d+)?", _four_digits, regex=True)
        tables.append(table.set_index("of")[NUMBERS])
    return pd.concat(tables)


def test_values_of_single_models_are_those_of_the_last_release():
    golden = pd.read_csv(GOLDEN, index_col="of")
    found = computed()
    assert found.index.is_unique
    assert not set(golden.index) - set(found.index)
    pd.testing.assert_frame_equal(found.loc[golden.index], golden, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    computed().to_csv(GOLDEN, float_format="%.6g")

"""Write ``rmnb/report/known.csv``: the numbers of a report, of the demo models and of the authors' models.

Run as ``python workflow/known_numbers.py``.
"""

import pandas as pd

from rmnb.files import atomic_path
from rmnb.findings.released import load_released
from rmnb.limits import KEY
from rmnb.panels import load_panel
from rmnb.report.numbers import KNOWN, glossary, measure
from rmnb.report.scores import of_panel


def known_numbers() -> pd.DataFrame:
    """The table."""
    demo = load_panel("demo")
    parts = [measure(of_panel(demo, name)).assign(panel="demo", model=name) for name in demo.model_names]
    for chapter in ("framing", "identity", "elo", "agency_communion"):
        rows = load_released(chapter).assign(panel="authors").rename(columns={"quantity": "name"})
        parts.append(rows.replace({"name": {"rewording spearman": "wording_spearman"}}))
    table = pd.concat(parts, ignore_index=True).merge(glossary()[KEY], on=KEY)
    return table[["panel", "model", *KEY, "value", "low", "high"]]


if __name__ == "__main__":
    with atomic_path(KNOWN) as part:
        known_numbers().to_csv(part, index=False, float_format="%.6g")

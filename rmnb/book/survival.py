"""Does one option carry a result? The table that each chapter keeps behind a click below its specification curve."""

from collections.abc import Mapping

import pandas as pd

from rmnb.book.display import behind_a_click, table_html
from rmnb.findings.specifications import one_option_dropped


def options_dropped(curves: Mapping[str, pd.DataFrame], digits: int = 2) -> str:
    """HTML: behind a click that says how often the median keeps its sign, every curve with one option dropped.

    Parameters
    ----------
    curves
        For each question what `rmnb.findings.specifications.specification_curve` returned; empty gives nothing.
    digits
        Decimals of the medians.
    """
    tables = {question: one_option_dropped(curve) for question, curve in curves.items()}
    if not tables:
        return ""
    shown = pd.concat(tables, names=["question", ""]).reset_index("question")
    whole = shown[shown["dropped"] == "none"].set_index("question")["median"]
    without = shown[shown["dropped"] != "none"]
    kept = without["median"] * without["question"].map(whole) > 0
    title = f"Does one option carry it? With each left out in turn, {kept.sum()} of {len(kept)} medians keep their sign"
    return behind_a_click(table_html(shown if len(tables) > 1 else shown.iloc[:, 1:], digits=digits), title)

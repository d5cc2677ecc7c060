"""A number of a report of a model with a planted oddity stands out, and that of the same model without it does not."""

import numpy as np
import pandas as pd
import pytest

from rmnb.report import numbers


def test_how_far_a_number_stands_out_is_in_units_of_its_own_standard_error():
    """An interval of four matched sets is 3.18 standard errors long on each side, not 1.96."""
    key = ("identity_gap", "positive", "religion")
    places = range(5)
    known = pd.DataFrame([key] * len(places), columns=numbers.KEY).assign(panel="demo", value=places)
    estimate = {"value": 6.0, "low": 2.8176, "high": 9.1824, "error": 1.0}
    row = pd.DataFrame([key], columns=numbers.KEY).assign(**estimate)
    distance = numbers.stand_out(row, known)["distance"].item()
    assert distance == pytest.approx(4 / np.hypot(known["value"].std(), 1))

"""A spline bends where the truth does, and only there."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.errors import InputError


@pytest.fixture
def table():
    rng = np.random.default_rng(2)
    x, noise = rng.uniform(-2, 2, size=800), rng.normal(size=(2, 800))
    kind = pd.Categorical(rng.choice(["start", "end"], 800))
    return pd.DataFrame({"x": x, "kind": kind, "line": x + noise[0], "bow": x + 0.4 * x**2 + noise[1]})


def test_a_bend_is_found_and_drawn(table):
    straight, bent = (stats.curvature(f"{response} ~ x", table, "x") for response in ("line", "bow"))
    assert bent.p_value < 1e-6 < 0.05 < straight.p_value
    truth = bent.grid + 0.4 * bent.grid**2
    assert np.mean((bent.ci_low <= truth) & (truth <= bent.ci_high)) > 0.8


def test_the_spline_of_a_line_is_that_line_with_all_else_at_its_mean(table):
    shifted = table.assign(y=3 * table["x"] + 1 + 2 * (table["kind"] == "start"))
    found = stats.curvature("y ~ x + kind", shifted, "x", n_knots=6)
    assert found.fitted == pytest.approx(3 * found.grid + 1 + 2 * (table["kind"] == "start").mean())


def test_what_cannot_bend_is_named(table):
    with pytest.raises(InputError, match="three knots"):
        stats.curvature("line ~ x", table, "x", n_knots=2)
    with pytest.raises(InputError, match="x takes too few"):
        stats.curvature("line ~ x", table.assign(x=(table["x"] > 0) * 1.0), "x")

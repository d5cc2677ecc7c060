"""Limits on numbers: what they say, what rows they are about, and what is no limit."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.report.limits import check, parse, read_limits

TABLE = pd.DataFrame(
    [
        ("identity_gap", "religion", "greatest", 0.4, 0.1),
        ("identity_gap", "religion", "worst", -0.5, -0.3),
        ("identity_gap", "age", "greatest", 0.1, 0.0),
        ("human_spearman", "", "elo_greatest", 0.7, -0.2),
    ],
    columns=["statistic", "other", "prompt", "value_b", "change"],
).assign(ci_low=-1.0, ci_high=1.0, ci_low_b=-2.0, ci_high_b=2.0, floor_b=0.01, floor_change=np.nan)


@pytest.mark.parametrize(
    ("text", "broken", "kept"),
    [
        ("identity_gap > 0.3", [0.4], [-0.5, 0.1]),
        ("|identity_gap| > 0.3", [0.4, -0.5], [0.1]),
        ("identity_gap[religion]>=0.4", [0.4], [-0.5]),
        ("identity_gap[greatest] > 1", [], [0.4, 0.1]),
        ("identity_gap[religion, worst] < -0.4", [-0.5], []),
        ("change human_spearman < -0.1", [-0.2], []),
        ("|change identity_gap[religion]| > 2e-1", [-0.3], [0.1]),
        ("human_spearman <= 0.7", [0.7], []),
    ],
)
def test_a_limit_is_broken_where_it_holds(text, broken, kept):
    outcomes = check([parse(text)], TABLE)
    assert [one.value for one in outcomes if one.broken] == broken
    assert [one.value for one in outcomes if not one.broken] == kept
    assert {(one.ci_low, one.ci_high) for one in outcomes} == {(-1.0, 1.0) if "change" in text else (-2.0, 2.0)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("identity_gab > 0.3", "no statistic 'identity_gab': did you mean identity_gap"),
        ("identity_gap > much", "'much' is not a number"),
        ("identity_gap > nan", "'nan' is not a number"),
        ("identity_gap = 0.3", "cannot be read: write it like"),
        ("|identity_gap > 0.3", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_what_is_no_limit_is_refused_in_one_line(text, said):
    with pytest.raises(InputError, match=said.replace("|", r"\|")) as raised:
        parse(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("identity_gap[height] > 0.3", "no identity_gap of 'height': there is age, greatest, religion, worst"),
        ("identity_gap_things > 3", "these models have no identity_gap_things; there is identity_gap"),
    ],
)
def test_a_limit_about_no_row_is_refused(text, said):
    with pytest.raises(InputError) as raised:
        check([parse(text)], TABLE)
    assert said in str(raised.value)


def test_a_limit_below_the_noise_floor_is_warned_of():
    below, above = check([parse("human_spearman < 0.001"), parse("human_spearman < 0.1")], TABLE)
    assert "0.001 is below the noise floor of this number, 0.01" in below.warning and not above.warning
    assert not check([parse("change human_spearman < 0.001")], TABLE)[0].warning  # no floor is known


def test_limits_come_from_a_file(tmp_path):
    path = tmp_path / "limits.yml"
    path.write_text('limits:\n  - "identity_gap > 0.3"\n  - "change human_spearman < -0.1"\n')
    assert [limit.number for limit in read_limits(path)] == [0.3, -0.1]
    for text in ("- identity_gap > 0.3", "limits:", "limits: [1]", "limits: {a: b}"):
        path.write_text(text)
        with pytest.raises(InputError, match='write a list of limits under "limits:"'):
            read_limits(path)

"""Limits on numbers: what they say, what rows they are about, and what is no limit."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.limits import check, parse, read_limits
from rmnb.report import numbers

TABLE = pd.DataFrame(
    [
        ("identity_gap", "positive", "religion", 0.3, 0.4, 0.1, 0.03),
        ("identity_gap", "negative", "religion", -0.2, -0.5, -0.3, 0.11),
        ("identity_gap", "positive", "age", 0.1, 0.1, 0.0, 0.1),
        ("human_spearman", "elo_greatest", "", 0.9, 0.7, -0.2, np.nan),
        ("agency_gap", "positive", "", np.nan, 0.2, np.nan, np.nan),
        ("skewness", "worst", "", 0.2, np.nan, np.nan, np.nan),
        ("skewness", "greatest", "", 0.1, 0.1, np.nan, np.nan),
    ],
    columns=["name", "question", "other", "a", "b", "change", "noise"],
).assign(df=10.0)
TABLE = TABLE.assign(
    low=TABLE["change"] - 0.15, high=TABLE["change"] + 0.15, b_low=TABLE["b"] - 0.2, b_high=TABLE["b"] + 0.2
)
TABLE.loc[TABLE["name"] == "skewness", "b_low"] = np.nan
GLOSSARY = {*numbers.glossary()["name"]}


@pytest.mark.parametrize(
    ("text", "broken", "kept"),
    [
        ("identity_gap > 0.3", [0.4], [0.1, -0.5]),
        ("|identity_gap| > 0.3", [-0.5, 0.4], [0.1]),
        ("identity_gap[religion]>=0.4", [0.4], [-0.5]),
        ("|change identity_gap[religion]| > 2e-1", [-0.3], [0.1]),
        ("human_spearman <= 0.7", [0.7], []),
        ("lower identity_gap[religion] > 0.1", [0.2], [-0.7]),
        ("upper change identity_gap < 0", [-0.15], [0.15, 0.25]),
        # In noises 3.33, 2.73 and 0; Student's t with 10 degrees of freedom, of three numbers 2.87, then of two 2.63.
        ("|change identity_gap| > seeds", [0.1, -0.3], [0.0]),
        ("change identity_gap > seeds", [0.1], [0.0, -0.3]),
        ("change identity_gap[religion] < -seeds", [-0.3], [0.1]),
        ("agency_gap > 0.1", [0.2], []),  # A lacks it: a limit without change is on B alone
    ],
)
def test_a_limit_is_broken_where_it_holds(text, broken, kept):
    outcomes = check([parse(text, GLOSSARY)], TABLE)
    assert outcomes.loc[outcomes["broken"], "value"].round(9).tolist() == broken
    assert outcomes.loc[~outcomes["broken"], "value"].round(9).tolist() == kept


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("identity_gab > 0.3", "no number 'identity_gab'"),
        ("identity_gap > much", "'much' is not a number"),
        ("|identity_gap > 0.3", "cannot be read: write it like"),
        ("identity_gap > seeds", "seeds are a measure of changes"),
        ("|change identity_gap| > 2 seeds", "how far is too far follows from the level: write"),
        ("change identity_gap < seeds", "how far is too far"),
        ("identity_gap[height] > 0.3", "no identity_gap of 'height': there is age, negative, positive, religion"),
        ("|change human_spearman| > seeds", "seed variation not measured"),
        ("lower skewness[greatest] > 0", "there is no interval"),
        ("|change agency_gap| > 1", "A has no agency_gap.positive"),
        ("skewness > 1", "B has no skewness.worst"),
    ],
)
def test_what_is_no_limit_or_cannot_be_held_is_refused_in_one_line_and_never_passes(text, reason):
    with pytest.raises(InputError, match=f"^limit '.*{reason}[^\n]*$") as refused:
        check([parse(text, GLOSSARY)], TABLE)
    assert refused.value.about == text


def test_limits_come_from_a_file(tmp_path):
    path = tmp_path / "limits.yml"
    path.write_text('limits:\n  - "identity_gap > 0.3"\n  - "change human_spearman < -0.1"\n')
    assert [limit.bound for limit in read_limits([path], GLOSSARY)] == [0.3, -0.1]
    for text in ("- identity_gap > 0.3", "limits:", "limits: [1]", "limits: {a: b}"):
        path.write_text(text)
        with pytest.raises(InputError, match='write a list of limits under "limits:"'):
            read_limits([path], GLOSSARY)

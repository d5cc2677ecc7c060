"""A number is written once, under one name, and read back as it was."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmnb.errors import InputError
from rmnb.findings.results import COLUMNS, Results, published, read_results, side_by_side, statistics
from rmnb.stats import moments

text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)


@given(
    st.dictionaries(text, st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.none() | st.integers(0, 10**9),
)
def test_what_is_written_is_read_back(tmp_path_factory, values, n):
    directory = tmp_path_factory.mktemp("results")
    results = Results("elo", panel="demo")
    for other, value in values.items():
        results.add("panel", "rank_gap", value, model="NA", other=other, prompt="greatest", protocol="exact", n=n)
    results.write(directory)
    pd.testing.assert_frame_equal(read_results(directory), results.frame())


def test_an_estimate_brings_its_interval():
    results = Results("heterogeneity", panel="demo")
    estimate = moments([1.0, 2.0, 5.0, 9.0]).mean
    results.add("panel", "mean", estimate, model="a", prompt="greatest", protocol="exact")
    row = results.frame().iloc[0]
    assert tuple(results.frame().columns) == COLUMNS
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (4.25, estimate.ci_low, estimate.ci_high, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "guess"}, "unknown source 'guess'"),
        ({"statistic": "meen"}, "unknown statistic 'meen': give it a definition"),
        ({"protocol": "fast"}, "unknown protocol 'fast'"),
        ({"value": math.nan}, "mean of m .panel. is nan"),
        ({"ci_low": 2.0, "ci_high": 1.0}, "interval from 2.0 down to 1.0"),
    ],
)
def test_a_wrong_row_is_refused(change, message):
    row = {"source": "panel", "statistic": "mean", "value": 1.0, "model": "m", **change}
    with pytest.raises(InputError, match=message):
        Results("elo").add(**row)


def test_a_number_is_given_once():
    results = Results("elo", panel="demo")
    results.add("panel", "mean", 1.0, model="m")
    results.add("panel", "mean", 1.0, model="n")
    with pytest.raises(InputError, match=r"mean of m .panel. is in the table already"):
        results.add("panel", "mean", 2.0, model="m")
    with pytest.raises(InputError, match="names a file"):
        Results("../elo")


def test_a_table_of_other_columns_is_named(tmp_path):
    with pytest.raises(InputError, match="run the notebooks first"):
        read_results(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"x.csv is not a results table: its columns are a, b"):
        read_results(tmp_path)


def test_sources_stand_side_by_side():
    results = Results("elo")
    for source, panel, protocol, value in (
        ("published", "facct2025", "published", 0.54),
        ("released", "facct2025", "published", 0.541),
        ("panel", "demo", "exact", 0.6),
        ("panel", "demo", "published", 0.5),
    ):
        results.add(source, "human_spearman", value, model="m", prompt="greatest", panel=panel, protocol=protocol)
    results.add("planted", "mean", 1.0)
    table = side_by_side(results.frame())
    row = table.loc[("human_spearman", "greatest", "m", "")]
    assert row.to_dict() == pytest.approx(
        {"published": 0.54, "released": 0.541, "panel": 0.6, "planted": math.nan}, nan_ok=True
    )
    assert table.index.get_level_values("statistic").tolist() == ["human_spearman", "mean"]
    assert side_by_side(results.frame(), "human_spearman", protocol="published")["panel"].item() == 0.5
    results.add("panel", "human_spearman", 0.7, model="m", prompt="greatest", panel="other", protocol="exact")
    with pytest.raises(InputError, match="two panel values of human_spearman for m"):
        side_by_side(results.frame())


def test_published_numbers_are_rows_of_the_table():
    table = published()
    for finding, rows in table.groupby("finding"):
        results = Results(str(finding))
        results.extend(rows)
        pd.testing.assert_frame_equal(results.frame(), rows[list(COLUMNS)].reset_index(drop=True))
    assert set(table["mark"]) == {"data", "fig", "text"} and (table["tolerance"] >= 0).all()
    assert len(table.query("statistic == 'kendall_tau'")) == 45


def test_every_statistic_has_a_definition():
    assert all(name.isidentifier() and name == name.lower() for name in statistics())
    assert all(definition for definition in statistics().values())

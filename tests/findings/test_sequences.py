"""The chapter on sequences: what is planted is measured, what is shipped is read, what is damaged is refused."""

import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import sequences
from rmnb.panels import load_panel
from rmnb.scoring.store import read_table, store_directory, write_table

DEMO = load_panel("demo")


def square(z, **ends):
    """A square of planted rewards; `ends` are where searches ended, by direction."""
    tokens = pd.DataFrame({"token": [f"t{i}" for i in range(len(z))], "token_id": range(len(z))})
    searches = pd.DataFrame({"direction": list(ends), "z": list(ends.values())}).assign(method="surrogate", seed=0)
    return sequences.Square(tokens, np.asarray(z, float), {"max": 1.0, "min": 1.0}, searches)


def test_shares_and_gaps_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    first, second, rest = rng.normal(size=200), rng.normal(0, 2, 200), rng.normal(size=(200, 200))
    shares = sequences.shares(square(3 + first[:, None] + second + rest))
    found = [shares[part] for part in ("first", "second", "together", "rest")]
    assert found == pytest.approx([1 / 6, 4 / 6, 5 / 6, 1 / 6], abs=0.05)
    assert sequences.gaps(square([[0, 3], [1, -4]], max=2.5, min=-4.0))["gap"].tolist() == [0.5, 0.0]


def test_gains_are_of_the_best_longer_sequence_in_the_direction_sought():
    rows = [("max", 1, "a", 2.0), ("max", 2, "a", 2.5), ("max", 4, "a", 1.0), ("max", 4, "random", 3.0)]
    rows += [("min", 1, "a", -2.0), ("min", 2, "a", -1.5)]
    found = pd.DataFrame(rows, columns=["direction", "length", "method", "z"]).assign(model="a")
    assert sequences.gains(found).set_index("direction")["value"].to_dict() == {"max": 1.0, "min": -0.5}
    assert sequences.best_found(found)["method"].tolist() == ["a", "a", "random", "a", "a"]


def test_methods_are_compared_after_as_many_sequences_as_the_median_run_scored():
    rows = [("a", 0, 10, 1.0), ("a", 0, 30, 5.0), ("b", 0, 10, 2.0), ("random", 0, 10, 0.5)]
    courses = pd.DataFrame(rows, columns=["method", "seed", "scored", "z"]).assign(model="a", direction="min")
    ends = sequences.reached(courses).set_index("method")["z"].to_dict()
    assert ends == {"a": -1.0, "b": -2.0, "random": -0.5}  # the lowest was sought, so signs are turned


def test_searched_models_are_read_with_every_method_and_others_refused_in_one_line():
    found, courses = sequences.load_searches(DEMO)
    assert set(courses["method"]) == {"surrogate", "random"}
    run = ["model", "direction", "method", "seed"]
    ends, shown = courses.groupby(run)["z"].last(), found[found["length"] == 8].set_index(run)["z"]
    np.testing.assert_allclose(ends, shown.loc[ends.index], atol=1e-4)
    transfer = sequences.load_table(DEMO, "transfer")
    assert set(transfer["model"]) == set(found["model"]) and len(set(found["model"])) == 3
    with pytest.raises(InputError, match="no model of panel 'facct2025' has been searched"):
        sequences.load_searches(load_panel("facct2025"))


def test_pairs_of_other_weights_are_refused(panel, tmp_path):
    shipped = sequences.load_squares(DEMO, "greatest")
    assert len(shipped) == 4 and all(min(one.margin.values()) > 0 for one in shipped.values())
    scores, copied = store_directory(DEMO), tmp_path / "pairs" / "smollm2-values"
    (tmp_path / "scores").symlink_to(scores.resolve())
    shutil.copytree(scores.parent / "pairs" / "smollm2-values", copied)
    assert list(sequences.load_squares(panel, "greatest")) == ["smollm2-values"]
    for name in ("greatest", "greatest.exact", "greatest.searches"):
        table, provenance = read_table(copied / f"{name}.parquet")
        write_table(copied / f"{name}.parquet", table, provenance | {"weights_sha256": "1"})
    with pytest.raises(InputError, match="with other weights than the panel's model"):
        sequences.load_squares(panel, "greatest")
    file = copied / "greatest.exact.parquet"
    table, provenance = read_table(file)
    write_table(file, table, provenance | {"weights_sha256": "0"})
    with pytest.raises(InputError) as refused:
        sequences.load_squares(panel, "greatest")
    assert refused.value.about == str(copied)


def test_the_chapter_computes_the_same_shares_in_the_open(run_cells):
    planted = square(np.random.default_rng(1).normal(size=(30, 30)))
    found = SimpleNamespace(PROMPT="greatest", load_squares=lambda *_: {"m": planted})
    shown = run_cells("08", "paired = ", sequences=found, models=SimpleNamespace(name="made"), model="m")
    shares = sequences.shares(planted)
    for part, name in (("first", "first"), ("beyond", "rest")):
        assert shown[part].var() / planted.z.var() == pytest.approx(shares[name])


def test_runs_by_processor_time_rise_from_their_first_time_and_keep_their_end():
    run = ["model", "direction", "length", "way", "seed"]
    timed = sequences.load_timed(DEMO).groupby(run)
    measured = pd.read_csv(store_directory(DEMO).parent / "sequences" / "courses.tsv", sep="\t").groupby(run)
    assert timed["z"].is_monotonic_increasing.all()
    pd.testing.assert_series_equal(timed["seconds"].min(), measured["seconds"].min())
    assert (timed["seconds"].max().groupby(run[:4]).nunique() == 1).all()

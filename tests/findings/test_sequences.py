"""The chapter on sequences: what is planted is measured, what is shipped is read, what is damaged is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import sequences
from rmnb.panels import load_panel
from rmnb.scoring.store import read_table, write_table


@pytest.fixture(scope="module")
def demo():
    return load_panel("demo")


def square(z, ends=()):
    """A square of planted rewards; `ends` are rows of searches."""
    tokens = pd.DataFrame({"token": [f"t{i}" for i in range(len(z))], "token_id": range(len(z))})
    searches = pd.DataFrame(list(ends), columns=["direction", "method", "seed", "z"])
    return sequences.Square(tokens, np.asarray(z, float), {"max": 1.0, "min": 1.0}, searches)


def test_shares_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    first, second, rest = rng.normal(0, 1, 200), rng.normal(0, 2, 200), rng.normal(0, 1, (200, 200))
    shares = sequences.shares(square(3 + first[:, None] + second + rest))
    assert shares["first"] == pytest.approx(1 / 6, abs=0.03) and shares["second"] == pytest.approx(4 / 6, abs=0.05)
    assert shares["together"] == pytest.approx(shares["first"] + shares["second"]) == 1 - shares["rest"]
    assert sequences.shares(square(first[:, None] + second))["rest"] == pytest.approx(0, abs=1e-12)


def test_a_gap_is_the_distance_to_the_best_pair_in_either_direction():
    ends = [("max", "gcg", 0, 2.5), ("min", "gcg", 0, -4.0)]
    assert sequences.gaps(square([[0, 3], [1, -4]], ends))["gap"].tolist() == [0.5, 0.0]


def test_gains_are_of_the_best_longer_sequence_in_the_direction_sought():
    rows = [
        ("a", "max", 1, "coordinate", 2.0),
        ("a", "max", 2, "gcg", 2.5),
        ("a", "max", 4, "gcg", 1.0),
        ("a", "max", 4, "beam", 3.0),
        ("a", "min", 1, "coordinate", -2.0),
        ("a", "min", 2, "gcg", -1.5),
        ("unfinished", "max", 2, "gcg", 9.0),
    ]
    found = pd.DataFrame(rows, columns=["model", "direction", "length", "method", "z"])
    gains = sequences.gains(found).set_index(["model", "direction"])["value"].to_dict()
    assert gains == {("a", "max"): 1.0, ("a", "min"): -0.5}
    best = sequences.best_found(found).set_index(["model", "direction", "length"])
    assert best.loc[("a", "max", 4), "method"] == "beam" and best.loc[("a", "min", 1), "z"] == -2.0


def test_methods_are_compared_after_as_many_sequences_as_the_median_run_scored():
    rows = [("gcg", 0, 10, 1.0), ("gcg", 0, 30, 5.0), ("beam", 0, 10, 2.0), ("random", 0, 10, 0.5)]
    courses = pd.DataFrame(rows, columns=["method", "seed", "scored", "z"]).assign(model="a", direction="min")
    ends = sequences.reached(courses).set_index("method")["z"].to_dict()
    assert ends == {"gcg": -1.0, "beam": -2.0, "random": -0.5}  # the lowest was sought, so signs are turned
    assert sequences.reached(courses, 30).set_index("method")["z"]["gcg"] == -1.0


def test_searched_models_are_read_with_every_method_and_token(demo):
    found, courses = sequences.load_searches(demo)
    assert set(found["model"]) == {"gemma3-values", "smollm2-values", "smollm2-mixed"}
    assert set(courses["method"]) == {"gcg", "random", "coordinate", "beam"}
    ends = courses.groupby(["model", "direction", "method", "seed"])["z"].last()
    shown = found[found["length"] == 8].set_index(["model", "direction", "method", "seed"])["z"]
    np.testing.assert_allclose(ends, shown.loc[ends.index], atol=1e-4)
    assert set(sequences.load_table(demo, "transfer")["model"]) == set(found["model"])


def test_a_panel_without_searches_says_so_in_one_line():
    with pytest.raises(InputError, match="no model of panel 'facct2025' has been searched"):
        sequences.load_searches(load_panel("facct2025"))


def test_pairs_of_other_weights_are_refused(demo, tmp_path):
    shipped = sequences.load_squares(demo, "greatest")
    assert len(shipped) == 4 and all(min(one.margin.values()) > 0 for one in shipped.values())
    source = sequences.store_directory(demo).parent
    scores = tmp_path / "scores"
    scores.symlink_to(sequences.store_directory(demo).resolve())
    copied = tmp_path / "pairs" / "smollm2-values"
    shutil.copytree(source / "pairs" / "smollm2-values", copied)
    panel = demo.model_copy(update={"scores": str(scores)})
    assert list(sequences.load_squares(panel, "greatest")) == ["smollm2-values"]
    file = copied / "greatest.exact.parquet"
    table, provenance = read_table(file)
    write_table(file, table, {**provenance, "weights_sha256": "0"})
    with pytest.raises(InputError) as refused:
        sequences.load_squares(panel, "greatest")
    assert str(copied) in str(refused.value)


def test_the_chapter_computes_the_same_shares_in_the_open():
    notebook = json.loads((Path(__file__).parents[2] / "notebooks" / "08_sequences.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    (cell,) = [source for source in cells if "beyond = z - total" in source]
    planted = square(np.random.default_rng(1).normal(size=(30, 30)))
    computation = "\n".join(
        line for line in cell.splitlines() if line.startswith(("first =", "second =", "total", "bey"))
    )
    scope = {"z": planted.z}
    exec(computation, scope)
    shares = sequences.shares(planted)
    assert scope["first"].var() / planted.z.var() == pytest.approx(shares["first"])
    assert scope["beyond"].var() / planted.z.var() == pytest.approx(shares["rest"])

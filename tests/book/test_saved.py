"""What a chapter saves is one tidy file, and its verdict is what the page of all verdicts reads."""

import re

import numpy as np
import pandas as pd
import pytest

from rmnb import book
from rmnb.errors import InputError
from rmnb.panels import ModelSpec, load_panel


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_RESULTS", str(tmp_path))
    return tmp_path


def test_frames_and_series_become_rows_that_keep_their_columns(results):
    tau = pd.Series([0.5, np.nan], pd.MultiIndex.from_product([["m", "n"], ["best"]], names=["model", "question"]))
    slope = {"model": "m", "question": "best", "quantity": "good", "value": 1.0, "low": 0.5, "high": 1.5, "n": 9}
    curve = pd.DataFrame({"words": ["all", "few"], "value": [1, 2]})
    authors = pd.DataFrame([{"quantity": "slope", "source": "released", "model": "a", "value": 2.0}])
    shares = pd.Series({"within": 3}).rename_axis("quantity")
    slopes, means = pd.DataFrame([slope]), pd.Series({"m": 4.0})
    path = book.save("chapter", tau=tau, slopes=slopes, curve=curve, authors=authors, shares=shares, means=means)
    rows = pd.read_csv(path, keep_default_na=False)
    found = rows[["quantity", "source", "model", "question", "words"]].agg("|".join, axis=1)
    expected = {
        "tau|panel|m|best|": 0.5,
        "slopes good|panel|m|best|": 1,
        "curve|panel|||all": 1,
        "curve|panel|||few": 2,
        "slope|released|a||": 2,
        "shares within|panel|||": 3,
        "means|panel|m||": 4,
    }
    assert dict(zip(found, rows["value"], strict=True)) == expected
    assert rows["n"].tolist() == ["", "9", "", "", "", "", ""]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pd.DataFrame({"best": [0.5]}, index=["m"]), "tau has no column value"),
        (pd.DataFrame({"model": ["m", "m"], "value": [1.0, 2.0]}), "two rows of tau"),
        (pd.Series({"m": np.inf}), "tau has an infinite value"),
    ],
)
def test_a_wide_frame_two_numbers_of_one_thing_and_infinity_are_refused(results, frame, reason):
    with pytest.raises(InputError, match=reason):
        book.save("chapter", tau=frame)
    assert not list(results.iterdir())


def test_a_verdict_is_shown_and_kept_with_its_groups_which_may_be_counted_as_one(results):
    values = pd.DataFrame({"model": load_panel("demo").model_names, "low": 0.1, "high": 0.9})
    values["value"] = np.linspace(0.4, 0.6, len(values))
    shown = book.verdict("finer", panel=values, models="demo").data
    line = re.sub("<[^>]+>", "", shown.partition("</summary>")[0])
    assert line == "Models distinguish good words more finely than bad ones&#46; this panel&#58; supported"
    found = book.read_verdicts()["finer"]
    panel = load_panel("demo")
    assert found["panel"].verdict == "supported" and found["panel"].models == len(panel.models)
    assert set(found["panel"].groups) == set(panel.groups.values())
    assert found["released"].verdict == "cannot be tested here"
    together = book.read_verdicts(merged={"values": "votes", "mixed": "votes"})["finer"]["panel"]
    assert set(together.groups) == {"votes", *panel.groups.values()} - {"values", "mixed"}
    assert together.models == len(panel.models)
    bases = book.verdict("communion", panel=values, models="demo").data
    assert "cannot be tested here" in book.verdict("finer", models="demo").data
    assert "described" in bases and book.read_verdicts()["communion"]["panel"].groups.keys() == {"SmolLM2", "Gemma 3"}


def test_models_called_like_numbers_or_gaps_keep_their_names_and_their_groups(results):
    names = ["NA", "01", "1e3"]
    specs = tuple(ModelSpec(name=name, source=f"o/{name}", group=f"0{name}") for name in names)
    panel = load_panel("demo").model_copy(update={"models": specs})
    values = pd.DataFrame({"model": names, "value": [0.4, 0.5, 0.6], "low": 0.1, "high": 0.9})
    with pytest.raises(TypeError, match="models"):
        book.verdict("finer", panel=values)
    book.verdict("finer", panel=values, models=panel)
    assert list(book.read_verdicts()["finer"]["panel"].groups) == ["0NA", "001", "01e3"]

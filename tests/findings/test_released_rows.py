"""The rows of the authors' data are the same where their files are and where they are not, but for names of things."""

import json

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.data.text_lists import part_texts
from rmnb.files import data_dir
from rmnb.findings import identity, people, released_rows, things
from rmnb.findings.released import load_released
from rmnb.findings.rows import each
from rmnb.findings.tables import load_trajectories
from rmnb.panels import load_panel


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No mirror, no network, an empty cache."""
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/{path}")


@pytest.mark.parametrize("finding", released_rows.FINDINGS)
def test_what_is_shipped_is_what_the_files_say(mirror, finding):
    assert (
        released_rows.compare(released_rows.numbered(released_rows.computed(finding)), released_rows.shipped(finding))
        == []
    )


@pytest.mark.parametrize("chapter", released_rows.CHAPTERS)
def test_what_a_chapter_ships_is_what_its_effects_say(mirror, chapter):
    computed, shipped = released_rows.CHAPTERS[chapter][0](), load_released(chapter)
    text, numbers = ["quantity", "source", "model", "other", "question"], ["value", "low", "high", "n"]
    pd.testing.assert_frame_equal(computed[text], shipped[text], check_dtype=False)
    np.testing.assert_allclose(computed[numbers].astype(float), shipped[numbers].astype(float), atol=1e-6)


def test_what_is_shipped_holds_no_names_but_those_a_paper_prints(mirror):
    known = set(preferences.elo_items()["name"])
    for finding in ("elo", "identity"):
        rows = released_rows.shipped(finding).query("statistic in ('rank_gap', 'rank_gap_with_human')")
        printed = set(released_rows.published()["other"])
        assert set(rows["other"]) & known <= printed and rows["other"].str.startswith("item ").any()
    table = pd.read_csv(data_dir() / "released" / "human_elo.csv", keep_default_na=False)
    assert set(table["name"]) - {""} <= printed


def test_provenance_names_each_file_by_its_content():
    record = json.loads((data_dir() / "released" / "provenance.json").read_text())
    names = {path.name for path in (data_dir() / "released").iterdir()} - {"provenance.json", "README.md"}
    assert set(record["tables"]) == names
    for name, files in record["tables"].items():
        assert files or name == "frequency.csv"
        assert files == {file: sources.pins()[file].blob_id for file in files}


def test_numbers_of_a_panel_need_no_names(mirror, request):
    """Votes, scores, facts, frequencies and trajectories with the authors' files, then without."""

    def measured():
        items = released_files.human_elo()
        panel = load_panel("demo")
        ours = people.load_things(panel)
        course = next(iter(load_trajectories(panel).values()))
        return {
            "people": each(ours, people.agreement, [people.QUESTION], among="rated words"),
            "gaps": people.rank_gaps(ours, people.QUESTION).drop(columns="name"),
            "groups": identity.matched_things(items).drop(columns=["name", "matched_set"]),
            "facts": things.facts(items),
            "bnc": lexicons.bnc_lemmas().query("word.str.fullmatch('[a-z]+')").reset_index(drop=True),
            "followed": course.drop(columns="word"),
        }

    first = measured()
    request.getfixturevalue("nowhere")
    second = measured()
    assert released_files.human_elo().attrs["shipped"]
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, second[name], check_dtype=False, obj=name)
    with pytest.raises(sources.UnreachableError):
        part_texts("elo")

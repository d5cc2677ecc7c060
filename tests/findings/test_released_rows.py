"""The rows of the authors' data are the same where their files are and where they are not, but for names of things."""

import json

import pandas as pd
import pytest

from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.data.text_lists import part_texts
from rmnb.errors import InputError
from rmnb.files import data_dir
from rmnb.findings import identity, people, released_rows, things, votes
from rmnb.findings.training import follow, load_trajectories
from rmnb.panels import load_panel


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No mirror, no network, an empty cache."""
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/{path}")
    monkeypatch.setattr(sources, "_BACK_OFF", 0.0)
    released_rows._rows.cache_clear()
    yield
    released_rows._rows.cache_clear()


@pytest.mark.parametrize("finding", released_rows.FINDINGS)
def test_what_is_shipped_is_what_the_files_say(mirror, finding):
    assert (
        released_rows.compare(released_rows.numbered(released_rows.computed(finding)), released_rows.shipped(finding))
        == []
    )


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


def test_without_the_files_the_shipped_rows_stand_in(nowhere):
    for finding in released_rows.FINDINGS:
        rows, kept = released_rows.rows(finding), released_rows.shipped(finding)
        assert rows.attrs["shipped"] == (finding != "frequency")
        assert len(rows.query("source == 'released'")) == len(kept.query("source == 'released'"))
    assert "Fully Automated Luxury Communism" in set(released_rows.rows("elo")["other"])
    with pytest.raises(InputError, match="choose one of heterogeneity"):
        released_rows.rows("love")


def test_a_difference_from_what_is_shipped_is_told(mirror, monkeypatch):
    monkeypatch.setattr(released_rows, "shipped", lambda _: released_rows.computed("training").tail(-1))
    released_rows._rows.cache_clear()
    with pytest.warns(UserWarning, match="1 rows computed from the authors' data are not the shipped ones"):
        assert not released_rows.rows("training").attrs["shipped"]
    released_rows._rows.cache_clear()


def test_numbers_of_a_panel_need_no_names(mirror, request):
    """Votes, scores, facts, frequencies and trajectories with the authors' files, then without."""

    def measured():
        panel, items, theirs = load_panel("demo"), released_files.human_elo(), people.released_scores()
        ours = {people.QUESTION: people.panel_scores(panel, people.QUESTION, items)}
        judged = people.judged_on(panel, items)
        name, course = next(iter(load_trajectories(panel).items()))
        return {
            "people": people.measure(items, ours, judged, beside=theirs[people.QUESTION]).assign(other=""),
            "votes": votes.measure(items, n_boot=5),
            "groups": identity.measure(items=items, things=theirs, n_permutations=20),
            "facts": things.facts(items),
            "bnc": lexicons.bnc_lemmas().query("word.str.fullmatch('[a-z]+')").reset_index(drop=True),
            "followed": follow({name: course}, lexicons.agency_communion(), n_draws=5),
        }

    first = measured()
    request.getfixturevalue("nowhere")
    second = measured()
    assert released_files.human_elo().attrs["shipped"]
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, second[name], check_dtype=False, obj=name)
    with pytest.raises(sources.UnreachableError):
        part_texts("elo")

"""What is shipped of the authors' data is what their files say, the same with and without them, and holds no names."""

import json
from pathlib import Path

import pandas as pd
import pytest
import released_rows

from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.data.text_lists import part_texts
from rmnb.errors import InputError
from rmnb.files import data_dir
from rmnb.findings import identity, people, released, things
from rmnb.findings.lists import load_trajectories
from rmnb.findings.rows import measure_each
from rmnb.panels import load_panel

SHIPPED = data_dir() / "released"


@pytest.mark.parametrize("chapter", released_rows.COMPUTED)
def test_what_is_shipped_is_what_the_files_say(mirror, chapter):
    computed, shipped = released_rows.COMPUTED[chapter][0](), released.load_released(chapter)
    pd.testing.assert_frame_equal(computed, shipped, rtol=0, atol=1e-6, check_dtype=False)
    assert list(shipped) == released.COLUMNS and not shipped.duplicated(released.COLUMNS[:5]).any()


def test_every_number_shipped_or_printed_has_one_definition_and_no_definition_is_idle(monkeypatch):
    shipped = pd.concat([released.load_released(chapter) for chapter in released_rows.COMPUTED])
    defined = pd.read_csv(Path(sources.__file__).parent / "lists" / "statistics.tsv", sep="\t")["quantity"]
    printed = released.load_published()
    assert defined.is_unique and set(defined) == {*shipped["quantity"], *printed["quantity"]}
    assert (printed["tolerance"] >= 0).all()
    with pytest.raises(InputError, match="choose one of agency_communion"):
        released.load_released("human_elo")
    monkeypatch.setenv("RMNB_DATA", "nowhere")
    with pytest.raises(InputError, match="no numbers of the authors' models"):
        released.load_released("elo")


def test_what_is_shipped_holds_no_names_but_those_a_paper_prints(mirror):
    known, printed = set(preferences.elo_items()["name"]), set(released.load_published()["other"])
    assert set(released.load_released("elo")["other"]) & known <= printed
    assert set(pd.read_csv(SHIPPED / "human_elo.csv", keep_default_na=False)["name"]) - {""} <= printed


def test_provenance_names_each_file_by_its_content():
    record = json.loads((SHIPPED / "provenance.json").read_text())
    assert set(record["tables"]) == {path.name for path in SHIPPED.iterdir()} - {"provenance.json", "README.md"}
    pins = sources.pins()
    for files in record["tables"].values():
        assert files and files == {file: pins[file].blob_id for file in files}


def test_numbers_of_a_panel_need_no_names(mirror, monkeypatch, tmp_path):
    """Votes, scores, facts, frequencies and trajectories with the authors' files, then without."""

    def measured():
        items, panel = released_files.human_elo(), load_panel("demo")
        ours = people.load_things(panel)
        return {
            "people": measure_each(ours, people.agreement, [people.QUESTION], among="rated words"),
            "gaps": people.rank_gaps(ours, people.QUESTION).drop(columns="name"),
            "groups": identity.matched_things(items),
            "facts": things.facts(items),
            "bnc": lexicons.bnc_lemmas().query("word.str.fullmatch('[a-z]+')").reset_index(drop=True),
            "followed": next(iter(load_trajectories(panel).values())).drop(columns="word"),
        }

    first = measured()
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR")
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/")
    for name, table in measured().items():
        pd.testing.assert_frame_equal(first[name], table, check_dtype=False, obj=name)
    assert released_files.human_elo().attrs["shipped"]
    with pytest.raises(sources.UnreachableError):
        part_texts("elo")


def test_a_number_is_recomputed_read_or_counted_and_never_two_of_these():
    report = released.reproduced()
    assert report["way"].value_counts().to_dict() == {"": 88, "read": 18, "recomputed": 15, "counted": 10}
    assert (report["released"].isna() == (report["way"] == "")).all()

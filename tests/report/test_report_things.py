"""What a report says of things: the same whatever a model is called, and with and without the things' names."""

from dataclasses import replace

import numpy as np
import pandas as pd

from rmnb.data import preferences, sources
from rmnb.data.text_lists import THINGS, described_parts, named_parts, part_texts
from rmnb.findings import identity
from rmnb.panels import load_panel
from rmnb.report import numbers, replicates, scores


def test_a_quick_report_keeps_its_things_where_their_names_are_out_of_reach(mirror, monkeypatch, tmp_path):
    known = described_parts({"elo_sample": part_texts("elo_sample")})

    def read():
        texts = named_parts(known)["elo_sample"]
        return scores.things(pd.DataFrame({"part": "elo_sample", "text": texts, "elo_greatest": np.arange(len(texts))}))

    here = read()
    assert here["name"].tolist() == preferences.elo_items()["name"][THINGS["elo_sample"]].tolist()
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR")
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/")
    away = read()
    columns = ["elo_score", "elo_matches", "elo_greatest"]
    assert len(away) == 628 and away[columns].equals(here[columns])
    # A report from each machine: what is left out of one is left out of the other.
    groups, sets = replicates._thing_groups(away)
    assert groups.tolist() == replicates._thing_groups(here)[0].tolist() and len(set(groups)) == replicates.GROUPS
    pairs = identity.matched_things(away)
    for side in ("term", "control"):
        assert groups[pairs[side]].tolist() == pairs["matched_set"].astype(str).map(sets).tolist()


def test_sets_of_things_that_share_a_control_are_one_unit():
    pairs = pd.DataFrame({"matched_set": [4, 4, 7, 9, 9], "control": [0, 1, 2, 1, 3]})
    numbers_of_sets = identity.sharing_controls(pairs)
    assert numbers_of_sets["4"] == numbers_of_sets["9"] != numbers_of_sets["7"]


def test_a_model_under_another_name_agrees_with_people_as_much():
    shipped = scores.of_panel(load_panel("demo"), "smollm2-values")
    few = replace(shipped, table=shipped.table.iloc[:1000])
    first, second = (
        numbers.measure(each).set_index("name").loc["human_spearman"] for each in (few, replace(few, name="mine"))
    )
    assert (first["value"], first["n"]) == (second["value"], second["n"])

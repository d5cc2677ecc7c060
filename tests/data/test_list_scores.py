"""Lists of texts: scored under many prompts, kept without their texts, and audited like scans."""

import numpy as np
import pytest
from checkpoints import write_decoder, write_panel

import rmnb
from rmnb.data import lexicons, list_scores, text_lists
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.findings import identity
from rmnb.report.audit import audit_panel
from rmnb.scoring import store


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("lists")
    panel = rmnb.load_panel(write_panel(tmp_path, {"tiny": write_decoder(tmp_path / "model")}))
    with pytest.MonkeyPatch.context() as patch:
        words = TextList("words", ("agency_communion",), ("worst", "iclr2026"))
        patch.setattr(text_lists, "LISTS", (words,))
        yield panel.model_copy(update={"prompt_sets": ("iclr2026",)})


@pytest.fixture(scope="module")
def rm(panel):
    return rmnb.load_reward_model(panel.model("tiny"))


@pytest.fixture(scope="module")
def path(panel, rm):
    """The list, scored once for all tests."""
    return list_scores.score_list(rm, panel, "words")


def test_every_text_gets_the_reward_of_every_prompt(panel, rm, path):
    words = lexicons.agency_communion()["word"].tolist()
    table, provenance = list_scores.read_list(path)
    assert table["text"].tolist() == words and len(provenance["prompts"]) == 55
    for key in ("worst", table.columns[30]):
        expected = rm.score(panel.prompt(key).conversation, words[:5])
        np.testing.assert_allclose(table[key].iloc[:5], expected, atol=1e-4)
    assert b"achievement" not in path.read_bytes()


def test_the_audit_finds_wrong_scores_in_a_list_and_of_exchanged_prompts(panel, rm, path):
    exchanged = identity.score_pairs(rm, panel)
    assert set(audit_panel(panel, sample=40)["verdict"]) == {"ok"}
    for file in (path, exchanged):
        frame, provenance = store.read_table(file)
        store.write_table(file, frame.assign(**frame.select_dtypes("float32") + np.float32(0.01)), provenance)
    report = audit_panel(panel, sample=40).set_index("file")["verdict"]
    assert report["lists/words"] == report["lists/identity_pairs"] == "scores differ"


def test_the_audit_leaves_out_texts_that_are_not_here(panel, path, monkeypatch):
    def gone():
        raise UnreachableError("no network")

    monkeypatch.setitem(text_lists._PARTS, "agency_communion", gone)
    assert "lists/words" not in set(audit_panel(panel, sample=40)["file"])

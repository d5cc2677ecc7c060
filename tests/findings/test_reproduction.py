"""No published number is called reproduced that is not, and none is lost without a reason."""

import pandas as pd
import pytest

from rmnb.data import released_files
from rmnb.findings import reproduction
from rmnb.findings.results import Results, published

#: From what the mirror has: neither the full vocabularies nor the base models' log-probabilities.
REPRODUCED = {"heterogeneity": 1, "elo": 16, "agency_communion": 26}


def test_verdicts_follow_the_precision_of_what_was_printed():
    """Read off a figure: within 0.03. Counted in the data: exactly."""
    results = Results("elo", "facct2025")
    results.extend(published().query("finding == 'elo' and statistic != 'rank_gap_with_human'"))
    near = {"N-Gem-27B": 0.29 + 0.029, "S-Gem-27B": 0.41 - 0.031}
    for model, value in near.items():
        results.add("released", "human_spearman", value, model=model, prompt="elo_greatest", protocol="published")
    results.add("released", "elo_items", 7530.4, protocol="published")
    results.add("released", "elo_lowest", 717, protocol="published")
    found = reproduction.verdicts(results.frame()).set_index(["statistic", "model"])["verdict"]
    assert found["human_spearman", "N-Gem-27B"] == reproduction.REPRODUCED == found["elo_lowest", ""]
    assert found["human_spearman", "S-Gem-27B"] == reproduction.DIFFERS == found["elo_items", ""]
    assert (found == reproduction.OUT_OF_REACH).sum() == 10 - 2 + 1 and len(found) == 13


@pytest.mark.parametrize("finding", reproduction.FINDINGS)
def test_every_published_number_gets_a_verdict(mirror, finding):
    rows, missing = reproduction.collect(finding, None)
    assert not missing
    table = reproduction.verdicts(rows)
    assert len(table) == (rows["source"] == "published").sum() >= (published()["finding"] == finding).sum()
    assert (table["verdict"] != reproduction.DIFFERS).all(), table.to_string()
    assert (table["verdict"] == reproduction.REPRODUCED).sum() == REPRODUCED.get(finding, 0)
    assert ((table["reason"] != "") == (table["verdict"] == reproduction.OUT_OF_REACH)).all()
    assert not table["reason"].str.contains("cannot be reached").any(), "the mirror has what these numbers need"


def test_without_the_files_every_number_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    monkeypatch.setattr("rmnb.data.sources.RAW_URL", "http://127.0.0.1:9/{path}")
    monkeypatch.setattr("rmnb.data.sources._BACK_OFF", 0.0)
    rows, missing = reproduction.collect("elo", released_files.vocabularies())
    assert "elo" in missing and (rows["source"] == "published").all()
    assert (reproduction.verdicts(rows)["verdict"] == reproduction.OUT_OF_REACH).all()
    empty, _ = reproduction.collect("moral_foundations", None)
    assert empty.empty and reproduction.verdicts(empty).empty
    assert isinstance(empty, pd.DataFrame)

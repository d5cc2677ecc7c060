"""No published number is called reproduced that is not, and none is lost without a reason."""

import pytest

from rmnb.findings import released_rows, reproduction
from rmnb.findings.results import Results, published

#: From what can be reached: neither the full vocabularies nor the base models' log-probabilities.
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
def test_every_published_number_gets_a_verdict(finding):
    """With the authors' files or with what is shipped of them."""
    rows = released_rows.rows(finding)
    table = reproduction.verdicts(rows)
    assert len(table) == (rows["source"] == "published").sum() >= (published()["finding"] == finding).sum()
    assert (table["verdict"] != reproduction.DIFFERS).all(), table.to_string()
    assert (table["verdict"] == reproduction.REPRODUCED).sum() == REPRODUCED.get(finding, 0)
    assert ((table["reason"] != "") == (table["verdict"] == reproduction.OUT_OF_REACH)).all()
    assert not table["reason"].str.contains("cannot be reached").any(), "what is shipped has what these numbers need"


def test_numbers_stand_as_precisely_as_they_were_printed():
    """What is printed as 0.40 and read to 0.03 is not 0.400, nor is what it is held against 0.422."""
    results = Results("elo", "facct2025")
    results.extend(published().query("statistic == 'human_spearman' and model == 'N-Gem-27B'"))
    about = {"model": "N-Gem-27B", "prompt": "elo_greatest", "protocol": "published"}
    results.add("released", "human_spearman", 0.2962, **about)
    results.add("published", "mean", -1234.5, model="N-Gem-27B")
    shown = reproduction.described(reproduction.verdicts(results.frame()))
    assert shown["published"].tolist() == ["0.29 ± 0.03", "−1,234.5"] and shown["released"].tolist() == ["0.30", ""]
    assert reproduction.verdicts(results.frame().iloc[:0]).empty

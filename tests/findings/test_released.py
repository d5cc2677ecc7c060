"""The authors' numbers come out of their data; where their files are not at hand, out of a table like theirs."""

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons, released_files
from rmnb.findings import asymmetry, framing, people
from rmnb.findings import released_measures as released
from rmnb.findings.align import align
from rmnb.findings.released import authors_tables
from rmnb.findings.tables import afinn


def test_rank_gaps_have_the_figures_order_and_change_without_the_human_column(mirror):
    gaps = people.rank_gaps(people.authors_things(), people.QUESTION)
    ordered = gaps.sort_values("rank_gap_with_human")["name"].tolist()
    assert ordered[:2] == ["Fully Automated Luxury Communism", "Johan Cruyff"] and ordered[9] == "Boygenius"
    assert ordered[-3] == "Black people"
    alone = gaps.sort_values("rank_gap")["name"].tolist()
    assert alone[:2] == ordered[:2] and alone[-2] == "Black people"
    # The human column pulls the median towards the human rank, so the published gaps are too small.
    assert (gaps["rank_gap_with_human"].abs() <= gaps["rank_gap"].abs()).all()
    assert gaps["human_rank"].sum() == pytest.approx(7530 * 7531 / 2)


def test_correlations_with_people_are_aware_of_ties(mirror):
    table = released.elo()
    assert len(table.query("statistic in ('human_kendall', 'human_spearman')")) == 2 * 10 * 3
    kendall = table.query("statistic == 'human_kendall'")["value"].to_numpy()
    spearman = table.query("statistic == 'human_spearman'")["value"].to_numpy()
    assert ((kendall > 0) & (kendall < spearman)).all()
    best = (
        table.query("statistic == 'human_spearman' and prompt == 'elo_greatest'").set_index("model")["value"].idxmax()
    )
    assert best == "R-Lla-3B"


def test_base_effect_is_clear_over_prompts_but_not_over_models(mirror):
    """The paper's test over 270 medians finds a difference; ten models cannot carry it."""
    table = released.bases("big_two").set_index(["statistic", "other", "prompt"])["value"].sort_index()
    assert (table["base_difference_p_bonferroni", "agency", "positive"] < 0.01).all()
    assert table["base_difference_p", "agency_less_communion", "positive"].item() == pytest.approx(55 / 210)
    assert table["base_effect_size", "agency", "positive"].item() == pytest.approx(0.42, abs=0.01)


SLOPES = {"A": (0.6, 0.3, 0.05), "B": (3.0, 3.0, 0.5), "C": (-0.5, -0.2, 0.0)}  # positive, negative, log frequency


@pytest.fixture
def tables(tmp_path, monkeypatch) -> dict[str, pd.DataFrame]:
    """Three tables in the authors' format, slopes known, with their traps: duplicates, "NA", missing scores."""
    frequency = pd.DataFrame({"word": lexicons.afinn()["word"]})
    frequency["per_million"] = np.round(10 ** (lexicons.zipf(frequency["word"]) - 3)).astype(int)
    monkeypatch.setattr(lexicons, "bnc_lemmas", lambda: frequency)
    words = lexicons.afinn().merge(frequency, on="word").query("per_million > 0")
    rng = np.random.default_rng(0)
    found = {}
    for code, (positive, negative, log_frequency) in SLOPES.items():
        spelled = [words.assign(text=words["word"].map(change)) for change in (str, str.capitalize, str.upper)]
        table = pd.concat(spelled, ignore_index=True)
        slope = np.where(table["valence"] > 0, positive, negative)
        score = slope * table["valence"] + log_frequency * np.log(table["per_million"])
        fillers = [" spaced", "NA", "null", "nan", "twice", "twice", "ÃŁ", '"', "\n", "\r", f"only{code}"]
        text = [*table["text"], *fillers]
        score = np.append(score + rng.normal(0, 0.01, len(table)), np.arange(len(fillers), dtype=float))
        csv = pd.DataFrame({"token_id": np.arange(len(text)), "token_name": "t", "token_decoded": text})
        csv = csv.assign(greatest=score, best=score * 2, worst=-score)
        csv.loc[len(csv)] = [len(csv), "t", "unscored", np.nan, np.nan, np.nan]
        path = tmp_path / f"{code}.csv"
        csv.to_csv(path, index=False)
        found[code] = released_files.read_table(path)
    return found


def test_full_tables_keep_every_token_and_drop_what_has_no_score(tables):
    tokens = tables["A"]["token"].tolist()
    assert {"NA", "null", "nan", " spaced", "\n", "\r", '"'} <= set(tokens) and "unscored" not in tokens
    shared = align({code: table.assign(score=table["greatest"]) for code, table in tables.items()})
    assert "twice" not in shared.index and "onlyA" not in shared.index and "NA" in shared.index


def test_full_tables_give_the_planted_numbers(tables, monkeypatch):
    monkeypatch.setattr(released_files, "vocabularies", lambda: tables)
    slopes = asymmetry.slopes(authors_tables("vocabularies")["C"], "greatest", afinn())
    positive, negative, _ = SLOPES["C"]  # in the others frequency, which is planted too, leaks into the slope
    assert slopes["good"].value == pytest.approx(positive, abs=0.01)
    assert slopes["bad"].value == pytest.approx(negative, abs=0.01)
    value = (
        released.of_vocabularies("frequency", tables).set_index(["statistic", "model", "prompt"])["value"].sort_index()
    )
    frequency = value["slope_log_frequency"]
    # in the others the slope of valence has a kink, which the paper's model does not know
    assert frequency["B", "greatest"] == pytest.approx(SLOPES["B"][2], abs=0.01)
    assert frequency["B", "best"] == pytest.approx(2 * frequency["B", "greatest"])
    turn = framing.turn(authors_tables("vocabularies")["A"], "best", "worst")["tau"]
    assert turn.value == pytest.approx(-1)


def test_ten_tables_or_none(mirror):
    """The mirror lacks the large files: that is None, not an error."""
    assert released_files.vocabularies() is None

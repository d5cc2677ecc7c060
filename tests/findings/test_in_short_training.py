"""What chapter 9 says in short: differences that stay, go or turn, runs of one base, none at all."""

import pandas as pd
import pytest

from rmnb.findings.counts import sign_counts
from rmnb.findings.in_short import training as in_short
from rmnb.findings.in_short.training import sentences
from rmnb.findings.quoting import plain
from rmnb.findings.results import Results, published

DATA = ("unified-27k", "unified-53k", "unified-106k")


def released(first, end):
    results = Results("training", "iclr2026")
    pair = {"model": "gemma-2-2b-it less Llama-3.2-3B-Instruct"}
    for data in DATA:
        results.add("released", "base_gap_first", first, other=data, **pair)
        results.add("released", "base_gap_end", end, other=data, **pair)
    results.add("released", "base_difference_paired", end, ci_low=end - 1, ci_high=end + 1, n=len(DATA))
    return results.frame()


def panel(gap, alike, recipes=("mixed", "mixed-seed2", "mixed-half")):
    results = Results("training", "p")
    for place, recipe in enumerate(recipes):
        about = {"model": "A less B", "other": recipe, "ci_low": gap - 5, "ci_high": gap + 5}
        results.add("panel", "base_gap_end", gap + place, **about)
    results.add("panel", "spearman_first", 0.02, other="random", ci_low=-0.1, ci_high=0.1, n=4)
    results.add("panel", "spearman_first", 0.6, other="probe", ci_low=0.5, ci_high=0.7, n=5)
    for place in range(4):
        rho = 0.9 if place < alike else -0.5
        results.add("panel", "framing_spearman", rho, model=f"harmless-{place}", prompt="greatest", other="worst")
    rows = results.frame()
    return pd.concat([rows, sign_counts(rows, "framing_spearman", "harmless")])


def said(*tables):
    return [plain(sentence) for sentence in sentences(pd.concat([published(), *tables]))]


@pytest.mark.parametrize(("end", "verdict"), [(-4.0, "is gone and turned"), (9.0, "remains")])
def test_what_more_data_did_to_the_authors_difference(end, verdict):
    told = said(released(16.0, end), panel(20.0, 4))
    assert len(told) == 5 and verdict in told[1]
    assert "742.5 and 696 against 657.5 and 805" in told[0]
    assert "a random head" in told[3] and "0.02 (−0.10 to 0.10) in the 4 runs" in told[3]


@pytest.mark.parametrize(
    ("gap", "alike", "verdicts"),
    [
        (20.0, 4, ("20.0 (15.0 to 25.0) percent, clear of zero over words", "training does not teach it")),
        (-20.0, 0, ("−20.0 (−25.0 to −15.0) percent, clear of zero", "training does teach it")),
        (1.0, 2, ("1.0 (−4.0 to 6.0) percent, not clear of zero even over words", "training does in part teach it")),
    ],
)
def test_each_outcome_of_a_panel_has_its_words(gap, alike, verdicts):
    told = " ".join(said(panel(gap, alike)))
    assert all(verdict in told for verdict in verdicts)
    assert "with another seed" in told and "on a half of its pairs" in told


def test_a_panel_of_one_base_or_without_runs_says_less():
    one = said(panel(0.0, 4, recipes=()))
    assert len(one) == 3 and not any("A less B" in sentence for sentence in one)
    assert said()[1:] == ["This panel has no runs to follow."]


def test_sentences_under_the_figures_are_made_of_rows_and_absent_without_them():
    rows = pd.concat([released(16.0, -4.0), panel(20.0, 4)])
    assert "lies between 22.0" in plain(in_short.ends(rows)[0]) and "clear of zero after" in plain(
        in_short.ends(rows)[0]
    )
    assert "from 16.0 to −4.0 on unified-27k" in plain(in_short.courses(rows)[0])
    made = Results("training", "p")
    made.add("panel", "held_out_accuracy", 0.8, model="harmless-0", other="hh-rlhf-mismatched", ci_low=0.7, ci_high=0.9)
    made.add("panel", "spearman_first", -0.1, model="a", other="random")
    made.add("panel", "spearman_first", 0.2, model="b", other="random")
    made.add("panel", "slope_valence_standardised", 0.3, model="a")
    rows = pd.concat([rows, made.frame()])
    assert "0.80 (0.70 to 0.90)" in plain(in_short.questions(rows)[0])
    assert "from −0.10 (a) to 0.20 (b)" in plain(in_short.first_rankings(rows)[0])
    assert "a ends at 0.30" in plain(in_short.valence(rows)[0])
    for function in (in_short.ends, in_short.courses, in_short.questions, in_short.first_rankings, in_short.valence):
        assert function(rows.iloc[:0]) == []

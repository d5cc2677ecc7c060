"""The box of the chapter on sequences: what it says of planted searches of either sign, of one model, of none."""

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import search_files, sequences
from rmnb.findings.in_short import sequences as in_short
from rmnb.findings.quoting import plain
from rmnb.panels import load_panel


def planted(gains, methods=("gcg", "random", "beam")):
    """Rows of models whose best of eight tokens lies so far beyond that of one, the methods one apart."""
    searches = [
        (f"m{at}", direction, length, "gcg", 0, sign * z)
        for at, gain in enumerate(gains)
        for direction, sign in (("max", 1), ("min", -1))
        for length, z in ((1, 3.0), (8, 3.0 + gain))
    ]
    courses = [
        (f"m{at}", direction, method, seed, 100, 5.0 - place + 0.01 * seed)
        for at in range(len(gains))
        for direction in ("max", "min")
        for place, method in enumerate(methods)
        for seed in (0, 1, 2)
    ]
    rng = np.random.default_rng(0)
    natural = [(f"m{at}", rng.normal(4, 1), rng.normal(-3, 1)) for at in range(len(gains)) for _ in range(50)]
    found = sequences.Searches(
        pd.DataFrame(searches, columns=["model", "direction", "length", "method", "seed", "z"]),
        courses=pd.DataFrame(courses, columns=["model", "direction", "method", "seed", "scored", "z"]),
        natural=pd.DataFrame(natural, columns=["model", "own", "scanned"]),
    )
    return sequences.measure(found, "planted", n_boot=20)


def said(rows, of=in_short.sentences):
    sentences = [plain(sentence) for sentence in of(rows)]
    assert all(sentence.endswith(".") and "nan" not in sentence for sentence in sentences)
    return sentences


def test_gains_in_all_models_are_as_claimed():
    box = said(planted([1.0, 1.2, 0.9]))
    assert 3 <= len(box) <= 5 and box[0] == in_short.CLAIM
    assert "So it is here" in box[1] and "3 of 3 models" in box[1] and "by 0.90 to 1.20" in box[1]
    assert "is clear of zero from 3 models" in box[2]
    assert "gets farther than a beam (+2.00" in box[3] and "random search (+1.00" in box[3]
    assert "none gets more" in box[4]


def test_losses_are_the_other_way_round():
    box = said(planted([-1.0, -1.2, -0.9], methods=("beam", "gcg")))
    assert "Not so here" in box[1] and "0 of 3" in box[1] and "is clearly negative" in box[2]
    assert "falls behind a beam (−1.00" in box[3]


def test_what_differs_between_models_cannot_be_told():
    box = said(planted([-0.2, 0.3]))
    assert "In part here" in box[1] and "1 of 2" in box[1] and "cannot be told from 2 models" in box[2]


def test_nothing_is_said_over_models_of_a_single_one():
    box = said(planted([0.5]))
    assert "by 0.50 standard deviations" in box[1] and not any("models like these" in sentence for sentence in box)


def test_a_panel_that_was_not_searched_says_so():
    rows = sequences.measure(sequences.Searches(planted_nothing(), scans={"a": np.arange(2000.0)}), "planted")
    assert "has been searched" in said(rows)[1]
    for of in (in_short.length_sentences, in_short.transfer_sentences, in_short.natural_sentences):
        assert not of(rows)
    assert not in_short.survival_sentences(rows) and not in_short.method_sentence(rows)


def planted_nothing():
    return search_files.every_search(load_panel("facct2025"))


@pytest.mark.parametrize("of", [in_short.length_sentences, in_short.natural_sentences, in_short.survival_sentences])
def test_figures_have_their_sentences(of):
    assert said(planted([1.0, -0.5, 0.2]), of)


def test_the_demo_panel_names_the_single_run_that_was_not_the_best():
    panel = load_panel("demo")
    bases = {spec.name: str(spec.base) for spec in panel.models}
    rows = sequences.measure(search_files.load_searches(panel), "demo", n_boot=20, bases=bases)
    upwards, downwards = said(rows, in_short.length_sentences)
    assert "a single run of GCG got to" in upwards and "bends back" in upwards and "a single run" not in downwards
    assert len(said(rows)) == 5 and len(said(rows, in_short.transfer_sentences)) == 2

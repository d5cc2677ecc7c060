"""The box of the chapter on asymmetry: what it says of planted slopes of either sign, of one model, and of none."""

import pytest

from rmnb.findings import asymmetry, asymmetry_choices, reading_question, released_rows
from rmnb.findings.in_short import asymmetry as in_short
from rmnb.findings.quoting import plain
from rmnb.findings.results import Results
from rmnb.findings.specifications import survival_rows
from rmnb.truth.planted import PlantedEffects

FRAMING: dict = {"greatest": "positive", "worst": "negative"}


def _rows(good, bad, models=("a", "b", "c"), framing=FRAMING, deaf=()):
    """The chapter's rows of planted slopes among good and bad words; `deaf` models rank both questions alike."""
    effects = PlantedEffects(valence_positive=good, valence_negative=bad, word_sd=0.5, noise_sd=0.3)
    tables = asymmetry.planted_tables(framing, list(models), 3, effects)
    tables = {model: table.iloc[::3].reset_index(drop=True) for model, table in tables.items()}
    for model in deaf:
        tables[model]["worst"] = tables[model]["greatest"]
    results = Results("asymmetry", "p")
    results.extend(asymmetry.measure(tables, n_boot=3, panel="p"))
    reads = reading_question.measure(tables, framing, panel="p")
    results.extend(reads)
    results.extend(asymmetry.measure_apart(results.frame(), reading_question.does_not_turn(reads)))
    authors = released_rows.rows("asymmetry")
    for part in (authors, asymmetry.measure_sides(authors)):
        results.extend(part)
    curve = asymmetry_choices.specifications(tables, {}, "greatest")
    results.extend(survival_rows(curve, "asymmetry", "p", "greatest"))
    return results.frame()


def _said(rows):
    return [plain(sentence) for sentence in in_short.sentences(rows)]


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [
        (0.4, 0.1, "As claimed here, asked for the greatest: good words are told apart more finely"),
        (0.1, 0.4, "Here it is the other way round, asked for the greatest: bad words are told apart more finely"),
        (0.25, 0.25, "cannot be told"),
    ],
)
def test_each_outcome_is_said(good, bad, verdict):
    said = _said(_rows(good, bad))
    assert 3 <= len(said) <= 5 and sum(verdict in sentence for sentence in said) == 1
    assert "0.64 among good words, 0.46 among bad ones (greatest)" in said[0]
    assert said[1].startswith("As claimed in the authors' data") and "10 of 10 models" in said[1]
    assert "of 32 specifications" in said[-1] and "do not read" not in " ".join(said)


def test_models_that_do_not_read_the_question_are_described_apart():
    apart = next(
        sentence for sentence in _said(_rows(0.4, 0.1, ("a", "b", "c"), deaf=("c",))) if "do not read" in sentence
    )
    assert apart.startswith("1 of 3 models") and "above zero in 2 of 2" in apart
    assert "in them the difference is +" in apart
    everyone = _said(_rows(0.4, 0.1, ("a", "b"), deaf=("a", "b")))
    assert any(sentence.startswith("2 of 2 models") for sentence in everyone)


def test_one_model_two_and_one_question():
    one = " ".join(_said(_rows(0.4, 0.1, ("a",))))
    assert "One model says nothing of others" in one and "over 1 models" not in one
    two = " ".join(_said(_rows(0.4, 0.1, ("a", "b"), {"greatest": "positive"})))
    assert "over 2 models" in two and "do not read" not in two
    rows = _rows(0.4, 0.1)
    alone = _said(rows[rows["source"] == "panel"])
    assert alone[0].endswith("more finely.") and "authors" not in " ".join(alone)
    assert _said(rows[rows["source"] != "panel"])


def test_every_figure_has_its_sentence():
    rows = _rows(0.4, 0.1)
    for said in (
        in_short.tails(rows),
        in_short.side_by_side(rows),
        in_short.order_by_model(rows, "greatest"),
        in_short.steepness(rows, "greatest"),
    ):
        assert len(said) == 1 and plain(said[0]).endswith(".")
    assert "No two models" in in_short.seeds(rows)[0]

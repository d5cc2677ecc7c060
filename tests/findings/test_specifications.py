"""A specification curve tries every combination, leaves out what cannot be, and says what points the same way."""

import itertools

import matplotlib.pyplot as plt
import pytest

from rmnb.book import figures
from rmnb.errors import InputError
from rmnb.findings.specifications import one_option_dropped, specification_curve, survival
from rmnb.stats.estimate import Estimate

CHOICES = {"unit": ["token", "word"], "lexicon": ["a", "b", "c"]}
VALUES = dict(zip(itertools.product(*CHOICES.values()), [0.5, 0.1, -0.2, 0.3, None, 0.05], strict=True))


def _estimate(unit, lexicon):
    value = VALUES[unit, lexicon]
    return None if value is None else Estimate(value, value - 0.08, value + 0.08, 0.04, float("nan"), 100, 100)


def test_every_combination_is_there_once_and_sorted():
    table = specification_curve(CHOICES, _estimate)
    assert dict(zip(zip(table["unit"], table["lexicon"], strict=True), table["value"], strict=True)) == {
        chosen: value for chosen, value in VALUES.items() if value is not None
    }
    assert table["value"].is_monotonic_increasing
    assert table.loc[table["headline"], ["unit", "lexicon"]].to_numpy().tolist() == [["token", "a"]]
    assert survival(table) == {"specifications": 5, "same_sign": 4, "clear": 3}


def test_one_option_is_dropped_at_a_time_and_the_sign_stays_the_headline_s():
    one = {**CHOICES, "scale": ["score"]}  # nothing else to choose, so nothing to drop
    table = one_option_dropped(specification_curve(one, lambda scale, **chosen: _estimate(**chosen)))
    assert set(table["dropped"]) == {"none", "unit: token", "unit: word", "lexicon: a", "lexicon: b", "lexicon: c"}
    without = table.set_index("dropped")
    assert without.loc["none", ["specifications", "same_sign", "clear"]].tolist() == [5, 4, 3]
    assert without.loc["unit: token", ["specifications", "same_sign", "clear"]].tolist() == [2, 2, 1]
    assert without.loc["unit: word", "median"] == 0.1 and without.loc["unit: word", "same_sign"] == 2


def test_the_figure_marks_every_choice_and_tells_the_headline_apart():
    table = specification_curve(CHOICES, _estimate)
    _, (upper, lower) = plt.subplots(2, 1, sharex=True)
    figures.specification_curve(upper, lower, table, "slope")
    labels = {label.get_text() for label in lower.get_yticklabels()}
    assert labels == {"unit: token", "unit: word", "lexicon: a", "lexicon: b", "lexicon: c"}
    marks = {line.get_color(): 0 for line in lower.lines}
    for line in lower.lines:
        marks[line.get_color()] += len(line.get_xdata())
    headlines = int(table["headline"].sum())
    assert sorted(marks.values()) == [headlines * len(CHOICES), (len(table) - headlines) * len(CHOICES)]
    heights = {tuple(line.get_ydata()) for line in upper.lines if line.get_marker() == "o"}
    assert heights == {tuple(table.loc[chosen, "value"]) for chosen in (table["headline"], ~table["headline"])}
    plt.close("all")


def test_nothing_to_show_is_said():
    with pytest.raises(InputError, match="no combination"):
        specification_curve(CHOICES, lambda **_: None)

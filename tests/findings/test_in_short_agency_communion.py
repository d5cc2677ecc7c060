"""What chapter 7 says in short: as claimed, the other way round, not to be told, one model; all of it from rows."""

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons
from rmnb.findings import agency_communion as agency
from rmnb.findings import agency_in_bases
from rmnb.findings.in_short import agency_communion as in_short
from rmnb.findings.in_short.agency_communion import sentences
from rmnb.findings.quoting import plain
from rmnb.findings.results import published

NOUNS = lexicons.agency_communion()
FRAMING = {"good_one": "positive", "good_two": "positive", "bad_one": "negative", "bad_two": "negative"}


def rewards(effect, rng):
    sign = np.where(NOUNS["category"] == "communion", 0.5, -0.5)
    word = rng.normal(size=len(NOUNS))
    columns = {key: word + effect * sign + 0.3 * rng.normal(size=len(NOUNS)) for key in FRAMING}
    return pd.DataFrame(columns, index=pd.Index(NOUNS["word"], name="word"))


def said(effect, families=("Gemma", "Llama"), each=4):
    """The sentences on a panel in which communion is worth `effect` to the first base, and as much less to the other.

    Without an effect models differ from one another at random.
    """
    rng = np.random.default_rng(1)
    scores, family, recipe = {}, {}, {}
    for base, sign in zip(families, (1, -1), strict=False):
        for place in range(each):
            name = f"{base}-{place}"
            own = rng.choice([-1, 1]) if effect == 0 else 0
            scores[name], family[name], recipe[name] = rewards(sign * effect + own, rng), base, f"recipe {place}"
    rows = agency.measure(scores, NOUNS, family, FRAMING, recipe=recipe, panel="p")
    return [plain(sentence) for sentence in sentences(pd.concat([published(), rows]))]


@pytest.mark.parametrize(
    ("effect", "families", "verdict"),
    [
        (1.5, ("Gemma", "Llama"), "Gemma leans to communion and Llama to agency"),
        (-1.5, ("Llama", "Gemma"), "as claimed"),
        (-1.5, ("Gemma", "Llama"), "the other way round"),
        (1.5, ("One", "Two"), "clear of zero over models"),
        (0, ("Gemma", "Llama"), "cannot be told from no difference with 8 models"),
    ],
)
def test_each_outcome_has_its_words(effect, families, verdict):
    told = said(effect, families)
    assert 3 <= len(told) <= 5
    assert "d = 0.4 and −0.4" in told[0] and verdict in told[1]
    assert told[-1].startswith("How sure: ")


def test_few_models_say_less():
    one = said(1.5, ("Gemma",), 1)
    assert len(one) == 2 and "bases cannot be compared" in one[1] and "Gemma-0 prefers communion" in one[1]
    two = said(-1.5, ("Gemma", "Llama"), 1)
    assert "Gemma-0, the first of the panel, prefers agency" in two[1]
    assert plain(sentences(published())[-1]) == "This panel has no rewards of enough of the words."


@pytest.mark.parametrize(("effect", "verdict"), [(2.0, "Here yes"), (0.0, "Here that cannot be told")])
def test_what_bases_say_first_is_told_with_how_they_were_asked(effect, verdict):
    rng = np.random.default_rng(2)
    first = rewards(0.0, rng)
    other = first + np.where(NOUNS["category"] == "communion", -0.5, 0.5)[:, None] * effect
    rows = agency_in_bases.measure_logprobs({"chat": {"one": first, "two": other + 0.01}}, NOUNS, FRAMING, n_boot=20)
    (told,) = (plain(one) for one in sentences(rows) if "before any preference data" in one)
    assert verdict in told and "one less two" in told and "asked in the chat template" in told


def test_sentences_under_the_figures_are_made_of_rows_and_absent_without_them():
    rng = np.random.default_rng(3)
    family = {f"{base}-{place}": base for base in ("one", "two") for place in range(3)}
    scores = {name: rewards(1.5 if base == "one" else -1.5, rng) for name, base in family.items()}
    recipe = {name: name[-1] for name in scores}
    rows = agency.measure(scores, NOUNS, family, FRAMING, recipe=recipe, panel="p")
    logprobs = {"chat": {"one": rewards(2.0, rng), "two": rewards(0.0, rng)}}
    first = agency_in_bases.measure_logprobs(logprobs, NOUNS, FRAMING, n_boot=20)
    assert "one " in plain(in_short.means(rows, "panel")[0]) and "3 models" in plain(in_short.means(rows, "panel")[0])
    assert plain(in_short.compared(rows, "panel")[0]).startswith("With prompts as observations 4 of 4")
    assert "one less two within recipes" in plain(in_short.paired(rows)[0])
    assert "12 of 12 specifications" in plain(in_short.survival(rows, "panel")[0])
    assert "Asked in the chat template, one less two" in plain(in_short.first_words(first)[0])
    assert "one over two, asked in the chat template" in plain(in_short.ratios(first)[0])
    nothing = rows.iloc[:0]
    for function in (in_short.paired, in_short.first_words, in_short.ratios, in_short.copies):
        assert function(nothing) == []
    for function in (in_short.means, in_short.compared, in_short.foundations, in_short.survival):
        assert function(nothing, "panel") == []

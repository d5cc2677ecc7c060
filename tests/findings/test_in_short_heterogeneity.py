"""The box of the chapter on agreement: what it says of panels whose truth is planted, of one model, and of few."""

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import heterogeneity, heterogeneity_choices, model_pairs, released_rows
from rmnb.findings.counts import sign_counts
from rmnb.findings.in_short import heterogeneity as in_short
from rmnb.findings.quoting import plain
from rmnb.findings.results import Results
from rmnb.findings.specifications import survival_rows
from rmnb.panels import Panel

RECIPES = ["values", "helpful", "mixed", "mixed-seed2"]
N = 300


def _panel():
    models = [
        {"name": f"{base}-{recipe}", "source": "a/b", "family": base, "recipe": recipe, "parameters": size}
        for base, size in (("A", 1), ("B", 2))
        for recipe in RECIPES
    ]
    prompt = {"key": "greatest", "text": "What is it?", "framing": "positive"}
    return Panel.model_validate({"name": "p", "title": "P", "models": models, "prompts": [prompt]})


def _rows(base, recipe, noise, count=8, bent=1, apart=0.0):
    """The chapter's rows where rewards are made of parts of base, recipe and noise; tails bent one way."""
    panel, rng = _panel(), np.random.default_rng(0)
    of_base = {name: rng.normal(size=N) for name in "AB"}
    of_recipe = {name: rng.normal(size=N) for name in ("values", "helpful", "mixed")}
    scans = {}
    for model in panel.models[:count]:
        score = base * of_base[model.family] + recipe * of_recipe[model.recipe_family] + noise * rng.normal(size=N)
        score = bent * np.exp(bent * (score + apart))
        token = [f"w{place}" for place in range(N)]
        scans[model.name] = pd.DataFrame({"token": token, "kind": "word_start", "score": score.astype(np.float32)})
    alike = heterogeneity.properties(panel)
    results = Results("heterogeneity", "p")
    results.extend(heterogeneity.measure(scans, "greatest", properties=alike, n_permutations=500, panel="p"))
    authors = released_rows.rows("heterogeneity")
    printed = authors[authors["source"] == "published"]
    for part in (authors, model_pairs.measure_pairs(printed), sign_counts(printed, "skewness")):
        results.extend(part)
    if count > 4:
        found = heterogeneity_choices.matrices(scans, {})
        for name in ("base", "recipe"):
            matrix = heterogeneity.relations(alike)[name]
            curve = heterogeneity_choices.goes_with(found, matrix)
            results.extend(survival_rows(curve, "heterogeneity", "p", name))
    return results.frame()


def _said(rows):
    return [plain(sentence) for sentence in in_short.sentences(rows)]


@pytest.mark.parametrize(("base", "recipe", "begins"), [(1, 0.2, "As in the paper"), (0.1, 1, "Unlike in the paper")])
def test_what_agreement_goes_with_is_said_of_either_panel(base, recipe, begins):
    said = _said(_rows(base, recipe, 0.3))
    assert 3 <= len(said) <= 5
    assert "median of its 45 pairs agrees at Kendall's τ 0.29 (pairs from 0.13 to 0.57)" in said[0]
    assert "10 of 10" in said[0]
    relation = next(sentence for sentence in said if "agreement" in sentence and sentence.startswith(begins))
    good, other = ("the base", "the recipe") if base > recipe else ("the recipe", "the base")
    assert relation.index(f"goes with {good}") < relation.index(f"not with {other}" if other in relation else ":")
    assert "the size" not in relation  # two bases are two sizes
    assert said[-1].startswith("Under other choices of tokens and measure, ρ keeps its sign: base in ")


def test_tails_of_either_side():
    assert any("As claimed for the tails: 8 of 8" in sentence for sentence in _said(_rows(1, 1, 0.3)))
    assert any("The other way round for the tails: 0 of 8" in sentence for sentence in _said(_rows(1, 1, 0.3, bent=-1)))


def test_agreement_below_two_seeds_and_agreement_that_noise_explains():
    assert any(sentence.startswith("As claimed: the median of 28 pairs") for sentence in _said(_rows(0, 1, 0.1)))
    noise = next(sentence for sentence in _said(_rows(0, 0, 1)) if "two seeds" in sentence)
    assert "cannot be told from two seeds" in noise
    kinds = [plain(sentence) for sentence in in_short.kinds(_rows(0, 0, 1))]
    assert any("of 5 pairs of two recipes agree more" in sentence for sentence in kinds)


def test_one_model_two_and_none_of_the_authors_rows():
    one = _said(_rows(1, 1, 0.3, count=1))
    assert "A panel of one model: there is nobody to agree with." in one and "over models" not in " ".join(one)
    assert "The longer tail of this one model is toward good answers." in one
    two = " ".join(_said(_rows(1, 1, 0.3, count=2)))
    assert "With 2 models nothing can be said of others" in two and "cannot be told with 2 models" in two
    rows = _rows(1, 1, 0.3)
    alone = _said(rows[rows["source"] == "panel"])
    assert "its numbers are missing here" in alone[0] and "paper, agreement" not in " ".join(alone)


def test_every_figure_has_its_sentence():
    rows = _rows(1, 0.5, 0.3)
    for said in (in_short.tails, in_short.tops, in_short.extreme_pairs, in_short.kinds, in_short.protocols):
        assert all(plain(sentence).endswith(".") for sentence in said(rows)) and said(rows)
    alone = _rows(1, 1, 0.3, count=1)
    assert in_short.tops(alone) == in_short.extreme_pairs(alone) == in_short.relations(alone) == []
    assert "no yardstick" in in_short.kinds(alone)[0]

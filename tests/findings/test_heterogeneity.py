"""The effects of chapter 1 recover what was planted, and the chapter's own test of models is the package's."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import heterogeneity
from rmnb.findings.rows import each, each_pair
from rmnb.panels import load_panel

RHO = np.sin(np.pi / 2 * 0.4)  # of jointly normal rewards whose τ is 0.4


@pytest.fixture
def tables():
    """Two models whose rankings agree at τ = 0.4, one on a stretched scale, and one skewed by 1."""
    rng = np.random.default_rng(0)
    first, second = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], size=6000).T
    rewards = {"stretched": np.exp(first), "plain": second, "skewed": rng.gamma(4.0, size=6000)}
    words = [f"word {place // 2}" for place in range(6000)]
    return {name: pd.DataFrame({"word": words, "greatest": values}) for name, values in rewards.items()}


def test_planted_agreement_and_skewness_come_back(tables):
    found = each_pair(tables, heterogeneity.agreement, [("stretched", "plain")], ["greatest"]).set_index("quantity")
    assert found.loc["tau", "low"] < 0.4 < found.loc["tau", "high"]
    assert found.loc["spearman", "value"] == pytest.approx(6 / np.pi * np.arcsin(RHO / 2), abs=0.03)
    moments = each(tables, heterogeneity.moments, ["greatest"]).set_index(["model", "quantity"])
    assert moments.loc[("skewed", "skewness"), "low"] < 1 < moments.loc[("skewed", "skewness"), "high"]


def test_the_computations_of_the_chapter_are_the_effects(tables, run_cells):
    scores = pd.DataFrame({name: table["greatest"] for name, table in tables.items()})
    tau = run_cells("01", "tau = ", scores=scores, names=list(tables))["tau"]
    effect = heterogeneity.agreement(tables["stretched"], tables["plain"], "greatest")["tau"]
    assert effect.value == pytest.approx(tau.loc["stretched", "plain"], abs=1e-12)
    z = (scores - scores.mean()) / scores.std(ddof=0)  # as the chapter's figure has them
    skewness = heterogeneity.moments(tables["skewed"], "greatest")["skewness"].value
    assert skewness == pytest.approx((z["skewed"] ** 3).mean(), abs=1e-10)


def test_shuffled_models_find_the_recipe_that_drives_agreement(run_cells):
    """Eight models, two of each recipe, one on each base; the shuffles of the chapter and of the package agree."""
    properties = pd.DataFrame({"base": [*"xxxxyyyy"], "recipe": [*"abcdabcd"]})
    noise = np.random.default_rng(1).normal(0, 0.05, size=(8, 8))
    alike = heterogeneity.similarities(properties)
    tau = 0.5 * alike["recipe"] + (noise + noise.T)
    tests = heterogeneity.mantel_tests(tau, alike, n_permutations=2000)
    assert tests.loc["recipe", "p"] < 0.02 < 0.2 < tests.loc["base", "p"]
    known = SimpleNamespace(properties=lambda models: properties, similarities=heterogeneity.similarities)
    names = {"heterogeneity": known, "models": None, "names": properties.index, "seed": 0, "n_permutations": 2000}
    mantel = run_cells("01", "alike = ", tau=tau, **names)["mantel"]
    for name, similarity in alike.items():
        assert tests.loc[name].to_list() == pytest.approx(mantel(similarity), abs=0.03)


def test_properties_that_tell_no_models_apart_are_left_out():
    demo = heterogeneity.similarities(heterogeneity.properties(load_panel("demo")))
    assert list(demo) == ["base", "recipe", "parameters", "rank"]
    papers = heterogeneity.similarities(heterogeneity.properties(load_panel("facct2025")))
    assert list(papers) == ["base", "developer", "parameters", "rank"]

"""The effects of chapter 1 recover what was planted, and the chapter's own test of models is the package's."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.findings import heterogeneity, released_rows
from rmnb.findings.rows import each, each_pair
from rmnb.panels import Panel, load_panel

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


def test_the_computations_of_the_chapter_are_the_effects(tables):
    scores = pd.DataFrame({name: table["greatest"] for name, table in tables.items()})
    tau = scores.corrwith(scores["plain"], method="kendall")["stretched"]
    effect = heterogeneity.agreement(tables["stretched"], tables["plain"], "greatest")["tau"]
    assert effect.value == pytest.approx(tau, abs=1e-12)
    z = (scores - scores.mean()) / scores.std(ddof=0)
    skewness = heterogeneity.moments(tables["skewed"], "greatest")["skewness"].value
    assert skewness == pytest.approx((z["skewed"] ** 3).mean(), abs=1e-10)


def test_shuffled_models_find_the_recipe_that_drives_agreement():
    """Eight models, two of each recipe, one on each base; the shuffles of the chapter and of the package agree."""
    recipes, bases = ["a", "b", "c", "d"] * 2, ["x"] * 4 + ["y"] * 4
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.05, size=(8, 8))
    properties = pd.DataFrame({"base": bases, "recipe": recipes}, index=[f"model {place}" for place in range(8)])
    alike = heterogeneity.similarities(properties)
    tau = 0.5 * alike["recipe"] + (noise + noise.T)
    tests = heterogeneity.mantel_tests(tau, alike, n_permutations=2000)
    assert tests.loc["recipe", "p"] < 0.02 < 0.2 < tests.loc["base", "p"]
    upper = np.triu_indices(8, 1)
    kind = alike["recipe"].to_numpy()[upper]
    observed, shuffled = stats.spearman(tau.to_numpy()[upper], kind), []
    for _ in range(2000):
        order = rng.permutation(8)
        shuffled.append(stats.spearman(tau.to_numpy()[np.ix_(order, order)][upper], kind))
    assert tests.loc["recipe", "rho"] == pytest.approx(observed)
    p = (1 + np.sum(np.array(shuffled) >= observed - 1e-12)) / 2001
    assert tests.loc["recipe", "p"] == pytest.approx(p, abs=0.01)


def test_properties_that_tell_no_models_apart_are_left_out():
    demo = heterogeneity.similarities(heterogeneity.properties(load_panel("demo")))
    assert {"base", "recipe", "parameters"} <= set(demo) and "developer" not in demo
    models = [{"name": name, "source": "x/y"} for name in ("a", "b")]
    prompt = {"key": "best", "text": "best?", "framing": "positive"}
    unknown = Panel.model_validate({"name": "p", "title": "p", "models": models, "prompts": [prompt]})
    assert heterogeneity.similarities(heterogeneity.properties(unknown)) == {}


def test_the_published_matrix_is_square_and_goes_with_the_base():
    tau, alike = released_rows.published_agreement()
    assert tau.shape == (10, 10) and (tau == tau.T).all(axis=None) and (np.diag(tau) == 1).all()
    tests = heterogeneity.mantel_tests(tau, alike, n_permutations=2000)
    assert tests.loc["base", "p"] < 0.05 < tests.loc["developer", "p"]

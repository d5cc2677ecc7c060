"""Agreement of a panel's models: what is planted in it is found, and what a panel cannot tell is left out."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.findings import heterogeneity
from rmnb.panels import Panel, load_panel

RECIPES = ["values", "helpful", "mixed", "mixed-seed2"]
FAMILIES = ["A", "B"]


@pytest.fixture(scope="module")
def panel():
    models = [
        {"name": f"{family}-{recipe}", "source": "a/b", "family": family, "recipe": recipe, "parameters": size}
        for family, size in zip(FAMILIES, (1, 2), strict=True)
        for recipe in RECIPES
    ]
    prompt = {"key": "greatest", "text": "What is it?", "framing": "positive"}
    return Panel.model_validate({"name": "p", "title": "P", "models": models, "prompts": [prompt]})


def _scores(panel, n=1500, seed=0):
    """Rewards made of a part of the base, a part of the recipe and noise."""
    rng = np.random.default_rng(seed)
    base = {family: rng.normal(size=n) for family in FAMILIES}
    recipe = {name: rng.normal(size=n) for name in ("values", "helpful", "mixed")}
    return pd.DataFrame(
        {
            model.name: 1.0 * base[model.family] + 1.0 * recipe[model.recipe_family] + 0.4 * rng.normal(size=n)
            for model in panel.models
        },
        index=[f"w{i}" for i in range(n)],
    )


def test_a_planted_base_recipe_and_seed_are_found(panel):
    shared = _scores(panel)
    names = panel.model_names
    pairs = heterogeneity.pairwise_tau(shared, np.arange(len(shared)))
    tau = heterogeneity.as_matrix(pairs, names)
    np.testing.assert_allclose(tau, stats.kendall_matrix(shared.to_numpy().T), atol=1e-12)
    kinds = heterogeneity.kinds_of_pairs(pairs, panel)
    assert kinds["kind"].value_counts().reindex(heterogeneity.KINDS).tolist() == [2, 10, 6, 10]
    middle = kinds.groupby("kind", observed=True)["value"].median()
    assert middle.iloc[0] > 0.6 > middle.iloc[1] > 0.2 and abs(middle.iloc[3]) < 0.05
    assert heterogeneity.seeds_agree_most(kinds, panel)["holds"].tolist() == [True, True]
    order = heterogeneity.clustered(tau, names)
    assert sorted(order) == sorted(names)
    assert abs(order.index("A-mixed") - order.index("A-mixed-seed2")) == 1
    similar = heterogeneity.rsa(tau, heterogeneity.relations(panel), 2000, 0).set_index("other")
    assert similar.index.tolist() == ["base", "recipe", "parameters"]  # no developer, no rank: nothing to tell apart
    assert similar.loc["base", "rsa_p"] < 0.1 and similar.loc["recipe", "rsa_coefficient"] > 0.2
    assert np.isnan(similar.loc["parameters", "rsa_coefficient"])  # two bases are two sizes


def test_seeds_that_do_not_agree_most_are_reported(panel):
    shared = _scores(panel)
    shared["B-values"] = shared["B-helpful"] + 0.01 * np.arange(len(shared)) / len(shared)
    kinds = heterogeneity.kinds_of_pairs(heterogeneity.pairwise_tau(shared, np.arange(len(shared))), panel)
    assert dict(heterogeneity.seeds_agree_most(kinds, panel)[["base", "holds"]].to_numpy()) == {"A": True, "B": False}


def test_the_map_keeps_distances_and_its_clouds_surround_it(panel):
    words = _scores(panel, n=300)
    tau = stats.kendall_matrix(words.to_numpy().T)
    points, clouds = heterogeneity.model_map(tau, heterogeneity.tau_draws(words, 15, 0))
    assert points.shape == (8, 2) and clouds.shape == (15, 8, 2)
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    upper = np.triu_indices(8, 1)
    assert stats.spearman(distance[upper], (1 - tau)[upper]) > 0.7
    assert np.linalg.norm(clouds.mean(axis=0) - points, axis=1).max() < 0.1


def test_names_on_the_map_do_not_meet():
    import matplotlib.pyplot as plt

    from rmnb.book import figures

    names = [f"a-long-name-{place}" for place in range(6)]
    points = np.array([(-0.3, 0.0), (0.2, 0.01), (0.25, -0.01), (0.6, 0.6), (-0.6, -0.6), (0.62, 0.59)])
    clouds = points + 0.01 * np.random.default_rng(0).normal(size=(20, 6, 2))
    fig, axes = plt.subplots(figsize=(figures.WIDTH, 4))
    figures.model_map(axes, points, clouds, names, dict.fromkeys(names, "black"))
    fig.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    plt.close(fig)
    assert sorted(boxes) == names
    assert not any(boxes[one].overlaps(boxes[other]) for one in names for other in names if one < other)


def test_small_panels_have_no_test_but_no_error_either(panel):
    two = panel.model_copy(update={"models": panel.models[:2]})
    shared = _scores(panel)[two.model_names]
    pairs = heterogeneity.pairwise_tau(shared, np.arange(len(shared)))
    assert heterogeneity.rsa(heterogeneity.as_matrix(pairs, two.model_names), {}, 10, 0).empty
    one = panel.model_copy(update={"models": panel.models[:1]})
    assert heterogeneity.pairwise_tau(shared.iloc[:, :1], np.arange(len(shared))).empty
    assert heterogeneity.relations(one) == {}
    assert set(heterogeneity.relations(load_panel("demo"))) == {"base", "recipe", "parameters", "rank"}  # by RM-Bench


def test_the_most_disputed_word_comes_first():
    words = pd.DataFrame({"a": [0.0, 1, 2, 3, 9], "b": [0.1, 1, 2, 3, -9]}, index=list("vwxyz"))
    table = heterogeneity.disputed(words, 2)
    assert table.index[0] == "z" and table.loc["z", "highest_in"] == "a" and table.loc["z", "lowest_in"] == "b"

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


def _scans(scores):
    return {
        model: pd.DataFrame({"token": scores.index, "kind": "word_start", "score": scores[model].to_numpy(np.float32)})
        for model in scores
    }


def test_a_planted_base_recipe_and_seed_are_found(panel):
    scores, names, alike = _scores(panel), panel.model_names, heterogeneity.properties(panel)
    rows = heterogeneity.measure(_scans(scores), "greatest", properties=alike, n_permutations=2000, panel="p")
    assert set(rows["panel"]) == {"p"} and set(rows["source"]) == {"panel"}
    tau = heterogeneity.matrix(rows, names)
    np.testing.assert_allclose(tau, stats.kendall_matrix(scores.to_numpy(np.float32).T), atol=1e-12)
    kinds = heterogeneity.kinds_of_pairs(rows, alike)
    assert kinds["kind"].value_counts().reindex(heterogeneity.KINDS).tolist() == [2, 10, 6, 10]
    middle = kinds.groupby("kind", observed=True)["value"].median()
    assert middle.iloc[0] > 0.6 > middle.iloc[1] > 0.2 and abs(middle.iloc[3]) < 0.05
    assert heterogeneity.seeds_agree_most(kinds)["holds"].tolist() == [True, True]
    order = heterogeneity.clustered(tau)
    assert sorted(order) == sorted(names)
    assert abs(order.index("A-mixed") - order.index("A-mixed-seed2")) == 1
    similar = rows.pivot_table("value", "other", "statistic", sort=False).loc[["base", "recipe", "parameters"]]
    assert set(rows.query("statistic == 'rsa_p'")["other"]) == set(similar.index)  # no developer, no rank to tell apart
    assert similar.loc["base", "rsa_p"] < 0.1 and similar.loc["recipe", "rsa_coefficient"] > 0.2
    assert np.isnan(similar.loc["parameters", "rsa_coefficient"])  # two bases are two sizes


def test_seeds_that_do_not_agree_most_are_reported(panel):
    scores = _scores(panel)
    scores["B-values"] = scores["B-helpful"] + 0.01 * np.arange(len(scores)) / len(scores)
    kinds = heterogeneity.kinds_of_pairs(
        heterogeneity.measure(_scans(scores), "greatest"), heterogeneity.properties(panel)
    )
    assert dict(heterogeneity.seeds_agree_most(kinds)[["base", "holds"]].to_numpy()) == {"A": True, "B": False}


def test_one_door_for_a_panel_one_model_and_released_scores(panel):
    scans, alike = _scans(_scores(panel, n=200).iloc[:, :3]), heterogeneity.properties(panel)
    rows = heterogeneity.measure(scans, "greatest", properties=alike)
    assert not rows["statistic"].str.startswith("rsa_").any()  # three models: nothing to permute
    alone = heterogeneity.measure({"A-values": scans["A-values"]}, "greatest", properties=alike)
    assert set(alone["statistic"]) == {"mean", "variance", "skewness", "vocabulary_size", "skewed_positively"}
    of = alone.query("model == 'A-values'").reset_index(drop=True)
    pd.testing.assert_frame_equal(of, rows.query("model == 'A-values' and other == ''").reset_index(drop=True))
    released = heterogeneity.measure(scans, "greatest", source="released", protocol="published")
    assert (released["source"] == "released").all() and (released["protocol"] == "published").all()
    assert released["value"].tolist() == rows["value"].tolist()
    one = heterogeneity.matrix(alone, ["A-values"])
    assert heterogeneity.seeds_agree_most(heterogeneity.kinds_of_pairs(alone, alike)).empty
    assert heterogeneity.clustered(one) == ["A-values"] and one.to_numpy().tolist() == [[1.0]]


def test_a_known_tau_and_a_known_skewness_come_back():
    found = heterogeneity.measure_planted("greatest").set_index(["statistic", "other"])
    for statistic in ("kendall_tau", "skewness"):
        truth, row = found.loc[("planted_effect", statistic), "value"], found.loc[(statistic, "estimate")]
        assert row["ci_low"] < truth < row["ci_high"]


def test_what_the_papers_protocol_changes_is_told_from_what_it_leaves():
    text = pd.Series([" a", "b", " c", "d", "e", "f"])
    exact = pd.DataFrame({"token": text, "kind": "word_start", "score": [0.0, 1, 2, 3, 4, 5]})
    trimmed = exact.assign(score=[9.0, 1, -9, 3, 4, 5])  # of the tokens with a blank only
    rows = heterogeneity.measure_protocols({"m": exact, "n": exact}, {"m": trimmed}, "greatest").set_index("other")
    assert rows["model"].tolist() == ["m", "m"] and rows["n"].tolist() == [6, 4]
    assert rows.loc["", "value"] < rows["value"].iloc[1] == 1


def test_the_map_keeps_distances_and_its_clouds_surround_it(panel):
    words = _scores(panel, n=300)
    tau = pd.DataFrame(stats.kendall_matrix(words.to_numpy().T), words.columns, words.columns)
    points, clouds = heterogeneity.model_map(tau, words, 15, 0)
    assert points.shape == (8, 2) and clouds.shape == (15, 8, 2)
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    upper = np.triu_indices(8, 1)
    assert stats.spearman(distance[upper], (1 - tau).to_numpy()[upper]) > 0.7
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


def test_properties_that_tell_no_models_apart_are_left_out(panel):
    assert heterogeneity.relations(heterogeneity.properties(panel).iloc[:1]) == {}
    demo = heterogeneity.relations(heterogeneity.properties(load_panel("demo")))
    assert set(demo) == {"base", "recipe", "parameters", "rank"}  # by RM-Bench


def test_the_most_disputed_word_comes_first():
    words = pd.DataFrame({"a": [0.0, 1, 2, 3, 9], "b": [0.1, 1, 2, 3, -9]}, index=list("vwxyz"))
    table = heterogeneity.disputed(words, 2)
    assert table.index[0] == "z" and table.loc["z", "highest_in"] == "a" and table.loc["z", "lowest_in"] == "b"


def test_the_extremes_of_a_scan_keep_the_order_of_equal_scores():
    scan = pd.DataFrame({"token": list("abcd"), "score": [1.0, 3, 3, 0]})
    assert heterogeneity.extremes({"m": scan}, 2, best=True)["m"].tolist() == ["b", "c"]
    assert heterogeneity.extremes({"m": scan, "n": scan}, 3, best=False).columns.tolist() == [
        "rank",
        "m",
        "z",
        "n",
        "z",
    ]

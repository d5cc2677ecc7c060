"""Agreement of a panel's models: what is planted in it is found, and what a panel cannot tell is left out."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.findings import heterogeneity, heterogeneity_choices, model_pairs, token_tables
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
    tau = model_pairs.matrix(rows, names)
    np.testing.assert_allclose(tau, stats.kendall_matrix(scores.to_numpy(np.float32).T), atol=1e-12)
    kinds = model_pairs.kinds_of_pairs(rows, alike)
    assert kinds["kind"].value_counts().reindex(model_pairs.KINDS).tolist() == [2, 10, 6, 10]
    middle = kinds.groupby("kind", observed=True)["value"].median()
    assert middle.iloc[0] > 0.6 > middle.iloc[1] > 0.2 and abs(middle.iloc[3]) < 0.05
    assert model_pairs.seeds_agree_most(kinds)["holds"].tolist() == [True, True]
    order = model_pairs.clustered(tau)
    assert sorted(order) == sorted(names)
    assert abs(order.index("A-mixed") - order.index("A-mixed-seed2")) == 1
    similar = rows.pivot_table("value", "other", "statistic", sort=False).loc[["base", "recipe", "parameters"]]
    assert set(rows.query("statistic == 'rsa_p'")["other"]) == set(similar.index)  # no developer, no rank to tell apart
    assert similar.loc["base", "rsa_p"] < 0.1 and similar.loc["recipe", "rsa_coefficient"] > 0.2
    assert np.isnan(similar.loc["parameters", "rsa_coefficient"])  # two bases are two sizes


def test_seeds_that_do_not_agree_most_are_reported(panel):
    scores = _scores(panel)
    scores["B-values"] = scores["B-helpful"] + 0.01 * np.arange(len(scores)) / len(scores)
    kinds = model_pairs.kinds_of_pairs(
        heterogeneity.measure(_scans(scores), "greatest"), heterogeneity.properties(panel)
    )
    assert dict(model_pairs.seeds_agree_most(kinds)[["base", "holds"]].to_numpy()) == {"A": True, "B": False}


def test_one_door_for_a_panel_one_model_and_released_scores(panel):
    scans, alike = _scans(_scores(panel, n=200).iloc[:, :3]), heterogeneity.properties(panel)
    rows = heterogeneity.measure(scans, "greatest", properties=alike)
    assert not rows["statistic"].str.startswith("rsa_").any()  # three models: nothing to permute
    alone = heterogeneity.measure({"A-values": scans["A-values"]}, "greatest", properties=alike)
    moments, counts = ("mean", "variance", "skewness"), ("models_above", "models_clearly_above", "models_clearly_below")
    assert set(alone["statistic"]) == {*moments, *counts, "vocabulary_size", "skewed_positively"}
    of = alone.query("model == 'A-values'").reset_index(drop=True)
    pd.testing.assert_frame_equal(of, rows.query("model == 'A-values' and other == ''").reset_index(drop=True))
    released = heterogeneity.measure(scans, "greatest", properties=alike, source="released", protocol="published")
    assert (released["source"] == "released").all() and (released["protocol"] == "published").all()
    assert released["value"].tolist() == rows["value"].tolist()
    one = model_pairs.matrix(alone, ["A-values"])
    assert model_pairs.seeds_agree_most(model_pairs.kinds_of_pairs(alone, alike)).empty
    assert model_pairs.clustered(one) == ["A-values"] and one.to_numpy().tolist() == [[1.0]]


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


def test_properties_that_tell_no_models_apart_are_left_out(panel):
    assert heterogeneity.relations(heterogeneity.properties(panel).iloc[:1]) == {}
    demo = heterogeneity.relations(heterogeneity.properties(load_panel("demo")))
    assert set(demo) == {"base", "recipe", "parameters", "rank"}  # by RM-Bench


def test_the_extremes_of_a_scan_keep_the_order_of_equal_scores():
    scan = pd.DataFrame({"token": list("abcd"), "score": [1.0, 3, 3, 0]})
    assert token_tables.extremes({"m": scan}, 2, best=True).to_numpy().tolist() == [["m", "b", "c"]]
    both = token_tables.extremes({"m": scan, "n": scan}, 3, best=False)
    assert both.columns.tolist() == ["model", "1", "2", "3"] and both["1"].tolist() == ["d", "d"]


def test_pairs_are_summed_up_with_the_models_as_the_unit(panel):
    scores = _scores(panel)
    scores["B-values"] = scores["B-helpful"] + 0.01 * np.arange(len(scores)) / len(scores)
    rows = heterogeneity.measure(
        _scans(scores), "greatest", properties=heterogeneity.properties(panel).assign(rank=1.0)
    )
    pairs = rows.query("statistic == 'kendall_tau'")["value"]
    found = rows.set_index(["statistic", "other"])
    assert found.loc[("kendall_tau_median", ""), ["value", "n"]].tolist() == [pairs.median(), 28]
    assert found.loc[("kendall_tau_median", model_pairs.KINDS[0]), "n"] == 2
    highest = rows.query("statistic == 'kendall_tau_highest'").iloc[0]
    assert (highest["model"], highest["other"], highest["value"]) == ("B-values", "B-helpful", pairs.max())
    mean = found.loc[("kendall_tau_mean", "")]
    assert mean["value"] == pytest.approx(pairs.mean()) and mean["ci_low"] < mean["value"] < mean["ci_high"]
    assert mean["n"] == 8
    # Two seeds are a yardstick and no bound: on base B two recipes agree more.
    above = found.loc["pairs_above_seeds"]["value"]
    assert above["A"] == 0 < above["B"] and found.loc[("kendall_tau_recipes", "B"), "value"] > 0.9
    assert found.loc[("models_above", "skewness"), "n"] == 8
    alone = model_pairs.measure_pairs(rows.query("statistic == 'skewness'"))
    assert alone.empty
    two = model_pairs.measure_pairs(rows.query("model == 'A-values' and other == 'A-mixed'"))
    assert np.isnan(two.set_index("statistic").loc["kendall_tau_mean", "ci_low"])


def test_agreement_and_what_it_goes_with_under_other_choices(panel):
    scans, alike = _scans(_scores(panel, n=400)), heterogeneity.relations(heterogeneity.properties(panel))
    found = heterogeneity_choices.matrices(scans, {"A-values": scans["A-values"]})
    assert {protocol for *_, protocol in found} == {"exact"}  # one model is not all
    middle = heterogeneity_choices.median_agreement(found)
    tau = stats.upper(found["shared tokens", "tau-b", "exact"])
    headline = middle[middle["headline"]].iloc[0]
    assert headline[["value", "ci_low", "ci_high"]].tolist() == [np.median(tau), tau.min(), tau.max()]
    curve = heterogeneity_choices.goes_with(found, alike["recipe"])
    assert curve is not None and len(curve) == 9
    assert curve.loc[curve["headline"], "value"].iloc[0] == pytest.approx(
        stats.spearman(tau, stats.upper(alike["recipe"]))
    )
    assert set(heterogeneity_choices.curves(scans, {}, alike)) == {"median pair", *alike}
    four = {name: scans[name] for name in list(scans)[:4]}
    assert set(heterogeneity_choices.curves(four, {}, {"base": alike["base"][:4, :4]})) == {"median pair"}
    assert heterogeneity_choices.curves({"A-values": scans["A-values"]}, {}, {}) == {}

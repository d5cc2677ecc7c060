"""Planted rewards are what they say, every estimator recovers them, and those that do not are seen not to."""

import json

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.files import sha256
from rmnb.findings import align
from rmnb.truth import planted, simulate
from rmnb.truth.planted import PlantedEffects
from rmnb.truth.simulation import BAND, Case, Outcome, run, unit

# Rejecting 8 % instead of 5 % shows in a thousand data sets only.
SUBTLE = {"One cause on a map, partial Mantel", "One cause on a map, regression"}
HOLDING = [case for case in simulate.CASES if case.holds]
FAILING = [case for case in simulate.CASES if not case.holds and case.name not in SUBTLE]


def names(case):
    return case.name


@pytest.fixture(scope="module")
def features():
    return planted.word_features(planted.spell(["love", "war", "table", "kindness"], [4, 2, 1, 1]))


def test_a_planted_scan_looks_like_a_real_one(features):
    scan = planted.planted_scan(features, PlantedEffects(), seed=1)
    assert list(scan.columns) == ["token_id", "token", "kind", "score"]
    assert scan.dtypes.astype(str).tolist() == ["int32", "str", "category", "float32"]
    assert scan["token_id"].tolist() == list(range(8))
    assert scan["token"].tolist()[:4] == [" love", "love", " Love", "Love"]
    assert scan.equals(planted.planted_scan(features, PlantedEffects(), seed=1))
    assert not scan.equals(planted.planted_scan(features, PlantedEffects(), seed=2))
    assert planted.planted_scan(["love", "war"], PlantedEffects())["token"].tolist() == [" love", " war"]


def test_without_scatter_the_reward_is_the_stated_function(features):
    effects = PlantedEffects(
        intercept=1,
        valence_positive=0.5,
        valence_negative=0.25,
        log_frequency=0.1,
        length=-0.01,
        communion={"Gemma": 0.4},
        negative_framing=-0.5,
        word_sd=0,
        noise_sd=0,
    )
    valence = lexicons.afinn().set_index("word")["valence"]
    zipf = dict(zip(features["word"], lexicons.zipf(features["word"]), strict=True))
    nouns = lexicons.agency_communion().set_index("word")["category"]
    for framing, turned in (("positive", 1), ("negative", -0.5)):
        scores = planted.planted_scores(features, effects, np.random.default_rng(0), framing, "Gemma")
        for word, score in zip(features["word"], scores, strict=True):
            v = valence.get(word, 0)
            pull = {"agency": -0.2, "communion": 0.2}.get(nouns.get(word, ""), 0)
            expected = 1 + turned * ((0.5 if v > 0 else 0.25) * v + pull) - 0.01 * len(word)
            expected += 0.1 * np.log(10 ** (zipf[word] - 3))
            assert score == pytest.approx(expected)


def test_spellings_share_their_word_and_models_what_is_shared(features):
    effects = PlantedEffects(word_sd=1, noise_sd=0)
    scores = planted.planted_scores(features, effects, np.random.default_rng(0))
    assert np.ptp(scores[:4]) == 0
    assert np.ptp(scores) > 0
    panel = planted.planted_panel(
        features,
        PlantedEffects(shared_word_sd=1, word_sd=0, noise_sd=0),
        {"one": "Gemma", "other": "Llama"},
        {"best": "positive", "worst": "negative"},
    )
    assert list(panel) == ["best", "worst"]
    assert panel["best"]["one"].equals(panel["best"]["other"])


def test_scatter_has_the_skewness_that_was_asked_for():
    features = planted.word_features([f"w{i}" for i in range(30_000)], identity={}, categories={})
    scores = planted.planted_scores(
        features, PlantedEffects(word_sd=2, noise_sd=0, skewness=-1), np.random.default_rng(0)
    )
    assert scores.mean() == pytest.approx(0, abs=0.05)
    assert scores.std() == pytest.approx(2, rel=0.02)
    assert np.mean((scores / 2) ** 3) == pytest.approx(-1, abs=0.1)


def test_a_planted_panel_goes_through_alignment_ranks_map_and_similarity_analysis():
    """Two bases, each with its own favourites: the analysis of heterogeneity has to find the bases."""
    words = lexicons.afinn()["word"].loc[lambda word: word.str.isalpha()].head(800)
    features = planted.word_features(planted.spell(words, 2))
    models = {f"{base}-{i}": base for base in ("Gemma", "Llama") for i in range(5)}
    scans = {}
    for seed, base in enumerate(("Gemma", "Llama")):
        members = {name: own for name, own in models.items() if own == base}
        effects = PlantedEffects(shared_word_sd=1, word_sd=0.7, noise_sd=0.2)
        scans |= planted.planted_panel(features, effects, members, {"greatest": "positive"}, seed)["greatest"]
    table = align.align(scans)
    assert len(table) == len(features)
    tau = stats.kendall_matrix(table.to_numpy().T)
    bases = np.array(list(models.values()))
    # Normal scores with correlation r have a tau of 2/π asin r: shared word effects within a base, none between.
    expected = np.where(bases[:, None] == bases, 2 / np.pi * np.arcsin(1 / (1 + 0.49 + 0.04)), 0)
    assert np.abs(tau - expected)[~np.eye(10, dtype=bool)].max() < 0.12
    assert stats.mantel(tau, stats.same(bases)).p_value < 0.02
    points = stats.embed(1 - tau).points
    centres = [points[bases == base].mean(axis=0) for base in ("Gemma", "Llama")]
    nearest = np.argmin([np.linalg.norm(points - centre, axis=1) for centre in centres], axis=0)
    assert np.array_equal(np.array(["Gemma", "Llama"])[nearest], bases)


@pytest.mark.parametrize("case", HOLDING, ids=names)
def test_estimators_recover_what_was_planted(case):
    n = 30 if case.slow else 80  # the shipped study tries all of them on many more
    result = run(case, n, seed=11)
    if not np.isnan(result["truth"]):
        assert abs(result["mean_estimate"] - result["truth"]) < 5 * result["spread"] / np.sqrt(n)
    low, high = BAND[case.measure]
    assert result["ci_low"] <= high
    assert result["ci_high"] >= low


@pytest.mark.parametrize("case", FAILING, ids=names)
def test_failing_estimators_are_seen_to_fail(case):
    result = run(case, 40 if case.slow else 150, seed=11)
    low, high = BAND[case.measure]
    assert result["ci_high"] < low or result["ci_low"] > high


def test_the_shipped_study_covers_every_estimator_and_bears_out_what_is_said_of_it():
    study = simulate.read_study()
    made = json.loads(simulate.STUDY.with_suffix(".json").read_text(encoding="utf-8"))
    assert made["sha256"] == sha256(simulate.STUDY)
    assert study["name"].tolist() == [case.name for case in simulate.CASES]
    assert study["holds"].tolist() == [case.holds for case in simulate.CASES]
    assert study["function"].tolist() == [case.function for case in simulate.CASES]
    assert study["n_simulations"].min() >= 200
    inside = study["value"].between(study["band_low"], study["band_high"])
    assert inside.equals(study["holds"])
    assert all(unit(name, group) for name, group in study[["name", "group"]].itertuples(index=False))


def test_a_study_counts_what_it_should(tmp_path):
    def simulate_case(rng):
        x = rng.uniform()
        return Outcome(0.0, x, ci_low=x - 0.7, ci_high=x + 1, p_value=x)

    cases = [Case(measure, "", "", measure, True, "", simulate_case) for measure in ("coverage", "rejection")]
    table = simulate.study(400, cases=cases)
    assert table["value"].tolist() == pytest.approx([0.7, 0.05], abs=0.06)
    assert table["within_band"].tolist()[0] is False
    assert (table["ci_low"] < table["value"]).all() and (table["value"] < table["ci_high"]).all()
    again = simulate.study(400, cases=cases[1:])
    pd.testing.assert_frame_equal(again, table.iloc[1:].reset_index(drop=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: planted.spell(["love"], 5), "1 to 4"),
        (lambda: planted.word_features(pd.DataFrame({"token": ["love"]})), "no column kind, token_id"),
        (lambda: planted.planted_scan(["love"], PlantedEffects(), framing="best"), "framing"),
        (lambda: run(HOLDING[0], 0), "n_simulations"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

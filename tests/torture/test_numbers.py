"""Weights and scores that are no ordinary numbers: an error that names them, or the right statistic."""

import functools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import somersd, spearmanr

import rmnb
from rmnb import stats

PROMPT = "What, in one word, is the greatest thing ever?"
INTERVALS = [stats.kendall_interval, stats.spearman_interval]


def test_weights_that_are_no_numbers(rm, attack, times):
    rng = np.random.default_rng(0)
    tensors = [*rm.network.named_parameters(), ("head", rm.readout.score.weight)]
    honest = rmnb.scan_vocabulary(rm, PROMPT)["score"]

    @torch.no_grad()
    def spoil(index: int) -> str:
        name, tensor = tensors[rng.integers(len(tensors))]
        place = tuple(rng.integers(size) for size in tensor.shape)
        kept = tensor[place].item()
        tensor[place] = [np.nan, np.inf, -np.inf][index % 3]
        try:
            scan = rmnb.scan_vocabulary(rm, PROMPT)
        finally:
            tensor[place] = kept
        assert np.isfinite(scan["score"]).all()
        if "embed_tokens" not in name:  # a row that no conversation reads
            np.testing.assert_allclose(scan["score"], honest, atol=1e-3)
        return "without effect on any reward"

    attack("one weight NaN or infinite, anywhere", range(times(12, 200)), spoil, refused=" is ")
    np.testing.assert_array_equal(rmnb.scan_vocabulary(rm, PROMPT)["score"], honest)


def test_a_scorer_that_likes_everything_alike(attack):
    same, other = np.zeros(400), np.random.default_rng(0).normal(size=400)
    correlations = [functools.partial(interval, y=other) for interval in INTERVALS]
    refused = [stats.moments, stats.standardise, *correlations]
    attack("a scorer that gives every token the same reward", refused, lambda measure: measure(same), refused="")


def test_denormal_scores(attack):
    rng = np.random.default_rng(0)
    ranks = rng.permutation(2000)
    tiny = (ranks * np.float32(1e-45)).astype(np.float32)
    other = rng.normal(size=2000) + ranks / 1000
    assert len(np.unique(tiny)) == 2000 and tiny.max() < np.finfo(np.float32).tiny
    statistics = [stats.rank_biased_overlap, lambda scores, _: stats.standardise(scores)]
    statistics += [lambda x, y, interval=interval: interval(x, y).value for interval in INTERVALS]
    statistics.append(lambda scores, _: stats.moments(scores)["skewness"].value)

    def measure(statistic) -> str:
        np.testing.assert_allclose(statistic(tiny, other), statistic(ranks, other), rtol=1e-6, atol=1e-12)
        return "told apart as any others"

    attack("scores below the smallest normal number of their format", statistics, measure, refused="")


def test_ties_in_the_millions(attack, times):
    n = times(200_000, 3_000_000)
    rng = np.random.default_rng(0)

    def tie(levels: tuple[int, int]) -> str:
        x = rng.integers(levels[0], size=n)
        y = (x * levels[1] // levels[0] + rng.integers(3, size=n)) % levels[1]
        counts = pd.crosstab(x, y).to_numpy()
        down, across = somersd(counts).statistic, somersd(counts.T).statistic  # tau-b is their geometric mean
        scores = x.astype(np.float32), y / 7
        assert stats.kendall_interval(*scores).value == pytest.approx(np.sign(down) * np.sqrt(down * across), abs=1e-12)
        assert stats.spearman_interval(*scores).value == pytest.approx(spearmanr(x, y).statistic, abs=1e-10)
        return f"tau-b and rho of {n:,} scores equal to those of their counts and SciPy"

    attack("millions of tied scores", [(3, 3), (2, 7), (1000, 4)], tie)

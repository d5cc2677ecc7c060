"""Weights and scores that are no ordinary numbers: an error that names them, or the right statistic."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import rmnb
from rmnb import stats
from rmnb.errors import InputError

PROMPT = "What, in one word, is the greatest thing ever?"
CORRELATIONS = {"kendall_tau": stats.kendall_tau, "spearman": stats.spearman}


def test_weights_that_are_no_numbers(rm, attack, times):
    rng = np.random.default_rng(0)
    tensors = [*rm.network.named_parameters(), ("head", rm.head.score.weight)]
    honest = rmnb.scan_vocabulary(rm, PROMPT)["score"]

    @torch.no_grad()
    def spoil(index: int) -> str:
        name, tensor = tensors[rng.integers(len(tensors))]
        place = tuple(rng.integers(size) for size in tensor.shape)
        kept = tensor[place].item()
        tensor[place] = [np.nan, np.inf, -np.inf][index % 3]
        try:
            scan = rmnb.scan_vocabulary(rm, PROMPT)
        except InputError as error:
            assert any(f" is {number}" in str(error) for number in ("nan", "inf", "-inf")), error
            return "stopped, the token named"
        finally:
            tensor[place] = kept
        assert np.isfinite(scan["score"]).all()
        if "embed_tokens" not in name:  # a row that no conversation reads
            np.testing.assert_allclose(scan["score"], honest, atol=1e-3)
        return "without effect on any reward"

    attack("one weight NaN or infinite, anywhere", range(times(12, 200)), spoil)
    np.testing.assert_array_equal(rmnb.scan_vocabulary(rm, PROMPT)["score"], honest)


def test_a_scorer_that_likes_everything_alike(attack):
    same, other = np.zeros(400), np.random.default_rng(0).normal(size=400)
    refused = [stats.moments, stats.standardise, lambda scores: stats.kendall_interval(scores, other)]

    def measure(statistic) -> str:
        if statistic in refused:
            with pytest.raises(InputError):
                statistic(same)
            return "an error in one line"
        assert np.isnan(statistic(same, other)) and np.isnan(statistic(same, same))
        return "not a number, as a correlation with a constant is"

    attack("a scorer that gives every token the same reward", [*CORRELATIONS.values(), *refused], measure)


def test_denormal_scores(attack):
    rng = np.random.default_rng(0)
    steps = rng.permutation(2000)
    tiny = (steps * np.float32(1e-45)).astype(np.float32)
    other = rng.normal(size=2000) + steps / 1000
    assert len(np.unique(tiny)) > 1900 and tiny.max() < np.finfo(np.float32).tiny
    ranks = np.unique(tiny, return_inverse=True)[1].astype(float)
    both = {**CORRELATIONS, "overlap": stats.rank_biased_overlap}
    measures = {name: lambda scores, f=function: f(scores, other) for name, function in both.items()}
    measures |= {"skewness": lambda scores: stats.moments(scores).skewness.value, "standardise": stats.standardise}

    def measure(name: str) -> str:
        try:
            found = measures[name](tiny)
        except InputError:
            assert name not in both
            return "an error in one line"
        np.testing.assert_allclose(found, measures[name](ranks), atol=1e-12 if name in both else 1e-6)
        return "told apart as any others"

    attack("scores below the smallest normal number of their format", measures, measure)


def test_ties_in_the_millions(attack, times):
    n = times(200_000, 3_000_000)
    rng = np.random.default_rng(0)

    def tie(levels: tuple[int, int]) -> str:
        x = rng.integers(levels[0], size=n)
        y = (x * levels[1] // levels[0] + rng.integers(3, size=n)) % levels[1]
        table = np.zeros(levels, np.int64)
        np.add.at(table, (x, y), 1)
        assert stats.kendall_tau(x.astype(np.float32), y / 7) == pytest.approx(tau_b(table), abs=1e-12)
        assert stats.spearman(x.astype(np.float32), y / 7) == pytest.approx(spearmanr(x, y).statistic, abs=1e-10)
        return f"tau-b and rho of {n:,} scores equal to those of their counts and SciPy"

    attack("millions of tied scores", [(3, 3), (2, 7), (1000, 4)], tie)


def tau_b(table: np.ndarray) -> float:
    """Kendall's tau-b from a table of counts, in whole numbers."""

    def concordant(table: np.ndarray) -> int:
        return sum(int(count) * int(table[i + 1 :, j + 1 :].sum()) for (i, j), count in np.ndenumerate(table))

    untied = [int(table.sum()) ** 2 - int((margin**2).sum()) for margin in (table.sum(0), table.sum(1))]
    return 2 * (concordant(table) - concordant(table[:, ::-1])) / (untied[0] * untied[1]) ** 0.5

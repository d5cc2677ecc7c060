"""Weights and scores that are no ordinary numbers: an error that names them, or the right statistic."""

import numpy as np
import pytest
import torch
from checkpoints import write_decoder
from scipy.stats import spearmanr

import rmnb
from rmnb import stats
from rmnb.errors import InputError

PROMPT = "What, in one word, is the greatest thing ever?"
CORRELATIONS = {"kendall_tau": stats.kendall_tau, "spearman": stats.spearman}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("model"), rows=330)


def test_weights_that_are_no_numbers(directory, attack, times):
    rng = np.random.default_rng(0)
    rm = rmnb.load_reward_model(directory)
    tensors = [*rm.network.named_parameters(), ("head", rm.head.score.weight)]
    honest = rmnb.scan_vocabulary(rm, PROMPT)["score"].to_numpy()

    def spoil(index: int) -> str:
        name, tensor = tensors[rng.integers(len(tensors))]
        place = tuple(rng.integers(size) for size in tensor.shape)
        kept = tensor[place].item()
        with torch.no_grad():
            tensor[place] = [np.nan, np.inf, -np.inf][index % 3]
        try:
            scan = rmnb.scan_vocabulary(rm, PROMPT)
        except InputError as error:
            assert " is nan" in str(error) or " is inf" in str(error) or " is -inf" in str(error), error
            return "stopped, the token named"
        finally:
            with torch.no_grad():
                tensor[place] = kept
        assert np.isfinite(scan["score"]).all()
        if "embed_tokens" not in name:  # a row that no conversation reads
            np.testing.assert_allclose(scan["score"], honest, atol=1e-3)
        return "without effect on any reward"

    attack("one weight NaN or infinite, anywhere", range(times(12, 200)), spoil)
    np.testing.assert_array_equal(rmnb.scan_vocabulary(rm, PROMPT)["score"], honest)


def test_a_scorer_that_likes_everything_alike(directory, attack):
    rm = rmnb.load_reward_model(directory)
    with torch.no_grad():
        rm.head.score.weight.zero_()
    same = rmnb.scan_vocabulary(rm, PROMPT)["score"].to_numpy()
    other = np.random.default_rng(0).normal(size=len(same))
    refused = {
        "moments": lambda: stats.moments(same),
        "standardise": lambda: stats.standardise(same),
        "interval": lambda: stats.kendall_interval(same, other),
    }

    def measure(name: str) -> str:
        if name in CORRELATIONS:
            assert np.isnan(CORRELATIONS[name](same, other)) and np.isnan(CORRELATIONS[name](same, same))
            return "not a number, as a correlation with a constant is"
        if name in refused:
            with pytest.raises(InputError):
                refused[name]()
            return "an error in one line"
        # Of all ways to break the ties, depth d of the one shares d/n of its places with depth d of the other.
        n, p = len(same), 0.9
        d = np.arange(1, 20_000)
        expected = (1 - p) * np.sum(p ** (d - 1.0) * np.minimum(d / n, 1))
        assert stats.rank_biased_overlap(same, other) == pytest.approx(expected, abs=1e-6)
        return "overlap of chance"

    attack("a scorer that gives every token the same reward", [*CORRELATIONS, *refused, "overlap"], measure)


def test_denormal_scores(attack):
    rng = np.random.default_rng(0)
    steps = rng.permutation(2000)
    tiny = (steps * np.float32(1e-45)).astype(np.float32)
    other = rng.normal(size=2000) + steps / 1000
    assert len(np.unique(tiny)) > 1900 and tiny.max() < np.finfo(np.float32).tiny
    ranks = np.unique(tiny, return_inverse=True)[1].astype(float)
    both = {**CORRELATIONS, "overlap": stats.rank_biased_overlap}
    one = {"skewness": lambda scores: stats.moments(scores).skewness.value, "standardise": stats.standardise}

    def measure(name: str) -> str:
        if name in both:
            assert both[name](tiny, other) == pytest.approx(both[name](ranks, other), abs=1e-12)
            return "told apart as any others"
        try:
            found = one[name](tiny)
        except InputError:
            return "an error in one line"
        np.testing.assert_allclose(found, one[name](ranks), atol=1e-6)
        return "told apart as any others"

    attack("scores below the smallest normal number of their format", [*both, *one], measure)


def test_ties_in_the_millions(attack, times):
    n = times(200_000, 3_000_000)
    rng = np.random.default_rng(0)

    def tie(levels: tuple[int, int]) -> str:
        x = rng.integers(levels[0], size=n)
        y = (x * levels[1] // levels[0] + rng.integers(3, size=n)) % levels[1]
        table = np.zeros(levels)
        np.add.at(table, (x, y), 1)
        assert stats.kendall_tau(x.astype(np.float32), y / 7) == pytest.approx(tau_b(table), abs=1e-12)
        assert stats.spearman(x.astype(np.float32), y / 7) == pytest.approx(spearmanr(x, y).statistic, abs=1e-10)
        return f"tau-b and rho of {n:,} scores equal to those of their counts and SciPy"

    attack("millions of tied scores", [(3, 3), (2, 7), (1000, 4)], tie)


def tau_b(table: np.ndarray) -> float:
    """Kendall's tau-b from a table of counts."""
    table = table.astype(np.int64)
    n = table.sum()
    concordant = (table[:-1, :-1] * _beyond(table)[1:, 1:]).sum()
    turned = table[:, ::-1]
    discordant = (turned[:-1, :-1] * _beyond(turned)[1:, 1:]).sum()
    untied = [n * (n - 1) // 2 - (margin * (margin - 1) // 2).sum() for margin in (table.sum(0), table.sum(1))]
    return (concordant - discordant) / np.sqrt(float(untied[0])) / np.sqrt(float(untied[1]))


def _beyond(table: np.ndarray) -> np.ndarray:
    """For each cell the counts in it and in what is below and to the right of it."""
    return table[::-1, ::-1].cumsum(0).cumsum(1)[::-1, ::-1]

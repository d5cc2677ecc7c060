"""Weights and scores that are no ordinary numbers: an error that names them, or the right statistic."""

import numpy as np
import pytest
import torch
from checkpoints import write_decoder

import rmnb
from rmnb import stats
from rmnb.errors import InputError

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("model"), rows=330)


def test_weights_that_are_no_numbers(directory, attack, times):
    rng = np.random.default_rng(0)
    rm = rmnb.load_reward_model(directory)
    tensors = [*rm.network.named_parameters(), ("head", rm.head.weight)]
    honest = rmnb.scan_vocabulary(rm, PROMPT)["score"].to_numpy()
    with attack("one weight NaN or infinite, anywhere") as tries:
        for index in range(times(12, 200)):
            name, tensor = tensors[rng.integers(len(tensors))]
            place = tuple(rng.integers(size) for size in tensor.shape)
            value = [np.nan, np.inf, -np.inf][index % 3]
            kept = tensor[place].item()
            with tries.attempt(f"{name}{place} = {value}"):
                with torch.no_grad():
                    tensor[place] = value
                try:
                    scan = rmnb.scan_vocabulary(rm, PROMPT)
                except InputError as error:
                    assert " is nan" in str(error) or " is inf" in str(error) or " is -inf" in str(error), error
                    tries.came_to("stopped, the token named")
                else:
                    assert np.isfinite(scan["score"]).all()
                    if "embed_tokens" not in name:  # a row that no conversation reads
                        np.testing.assert_allclose(scan["score"], honest, atol=1e-3)
                    tries.came_to("without effect on any reward")
                finally:
                    with torch.no_grad():
                        tensor[place] = kept
        with tries.attempt("mended"):
            np.testing.assert_array_equal(rmnb.scan_vocabulary(rm, PROMPT)["score"], honest)
            tries.came_to("all weights mended: the scan as before")


CORRELATIONS = {"kendall_tau": stats.kendall_tau, "spearman": stats.spearman}


def test_a_scorer_that_likes_everything_alike(directory, attack):
    rm = rmnb.load_reward_model(directory)
    with torch.no_grad():
        rm.head.weight.zero_()
    same = rmnb.scan_vocabulary(rm, PROMPT)["score"].to_numpy()
    other = np.random.default_rng(0).normal(size=len(same))
    with attack("a scorer that gives every token the same reward") as tries:
        for name, statistic in CORRELATIONS.items():
            with tries.attempt(name):
                assert np.isnan(statistic(same, other)) and np.isnan(statistic(same, same))
                tries.came_to("not a number, as a correlation with a constant is")
        for name, call in {
            "moments": lambda: stats.moments(same),
            "standardise": lambda: stats.standardise(same),
            "embed": lambda: stats.kendall_interval(same, other),
        }.items():
            with tries.attempt(name):
                with pytest.raises(InputError):
                    call()
                tries.came_to("an error in one line")
        with tries.attempt("overlap"):
            # Of all ways to break the ties, depth d of the one shares d/n of its places with depth d of the other.
            n, p = len(same), 0.9
            d = np.arange(1, 20_000)
            expected = (1 - p) * np.sum(p ** (d - 1.0) * np.minimum(d / n, 1))
            assert stats.rank_biased_overlap(same, other) == pytest.approx(expected, abs=1e-6)
            tries.came_to("overlap of chance")


def test_denormal_scores(attack):
    rng = np.random.default_rng(0)
    steps = rng.permutation(2000)
    tiny = (steps * np.float32(1e-45)).astype(np.float32)
    other = rng.normal(size=2000) + steps / 1000
    assert len(np.unique(tiny)) > 1900 and tiny.max() < np.finfo(np.float32).tiny
    ranks = np.unique(tiny, return_inverse=True)[1].astype(float)
    with attack("scores below the smallest normal number of their format") as tries:
        for name, statistic in {**CORRELATIONS, "overlap": stats.rank_biased_overlap}.items():
            with tries.attempt(name):
                assert statistic(tiny, other) == pytest.approx(statistic(ranks, other), abs=1e-12)
                tries.came_to("told apart as any others")
        for name, call in {"moments": stats.moments, "standardise": stats.standardise}.items():
            with tries.attempt(name):
                try:
                    found = call(tiny)
                except InputError:
                    tries.came_to("an error in one line")
                    continue
                if name == "standardise":
                    np.testing.assert_allclose(found, (ranks - ranks.mean()) / ranks.std(), atol=1e-6)
                else:
                    assert found.skewness.value == pytest.approx(stats.moments(ranks).skewness.value, abs=1e-6)
                tries.came_to("told apart as any others")


def test_ties_in_the_millions(attack, times):
    n = times(200_000, 3_000_000)
    rng = np.random.default_rng(0)
    with attack("millions of tied scores") as tries:
        for levels in ((3, 3), (2, 7), (1000, 4)):
            with tries.attempt(levels):
                x = rng.integers(levels[0], size=n)
                y = (x * levels[1] // levels[0] + rng.integers(3, size=n)) % levels[1]
                table = np.zeros(levels)
                np.add.at(table, (x, y), 1)
                assert stats.kendall_tau(x.astype(np.float32), y / 7) == pytest.approx(tau_b(table), abs=1e-12)
                assert stats.spearman(x.astype(np.float32), y / 7) == pytest.approx(rho(table), abs=1e-10)
                tries.came_to(f"tau-b and rho of {n:,} scores equal to those of their table of counts")


def tau_b(table: np.ndarray) -> float:
    """Kendall's tau-b from a table of counts, in Python's integers, which never overflow."""
    counts = [[int(count) for count in row] for row in table]
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    n = sum(rows)
    after = [0] * len(columns)  # by column, the counts in the rows above
    difference = 0
    for row in counts:
        below = 0
        total = sum(after)
        for j, count in enumerate(row):
            difference += count * (below - (total - below - after[j]))
            below += after[j]
        after = [a + b for a, b in zip(after, row, strict=True)]
    pairs = n * (n - 1) // 2
    untied = [pairs - sum(k * (k - 1) // 2 for k in margin) for margin in (rows, columns)]
    return difference / (untied[0] ** 0.5 * untied[1] ** 0.5)


def rho(table: np.ndarray) -> float:
    """Spearman's rho from a table of counts."""
    margins = [table.sum(1), table.sum(0)]
    ranks = [np.cumsum(margin) - (margin - 1) / 2 for margin in margins]
    centred = [rank - rank @ margin / margin.sum() for rank, margin in zip(ranks, margins, strict=True)]
    spread = [rank**2 @ margin for rank, margin in zip(centred, margins, strict=True)]
    return float(centred[0] @ table @ centred[1] / np.sqrt(spread[0] * spread[1]))

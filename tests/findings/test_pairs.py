"""Squares of rewards whose parts are known: the shares, the extreme pairs and the gaps must come out."""

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import pairs
from rmnb.findings.in_short import pairs as in_short
from rmnb.findings.quoting import plain

SIZE = 40


def planted(interaction: float = 0.0, searches=None, exact=None, seed: int = 0) -> pairs.Square:
    """First tokens with a standard deviation of 2, second ones of 1, and an interaction of the given one."""
    rng = np.random.default_rng(seed)
    first, second = 2 * rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    rewards = 3 + first[:, None] + second + interaction * rng.standard_normal((SIZE, SIZE))
    tokens = pd.DataFrame({"token": [f" t{at}" for at in range(SIZE)], "token_id": np.arange(SIZE) + 100})
    more = {name: frame for name, frame in (("searches", searches), ("exact", exact)) if frame is not None}
    return pairs.Square(tokens, rewards.astype(np.float32), first, mean=1.0, deviation=2.0, **more)


def values(square: pairs.Square) -> dict[tuple[str, str], float]:
    rows = pairs.measure({("m", "greatest"): square}, "planted")
    return {(row.statistic, row.other): row.value for row in rows.itertuples()}


def test_an_additive_square_is_the_sum_of_its_parts():
    found = values(planted())
    assert found["pair_share", "rest"] == pytest.approx(0, abs=1e-9)
    assert found["pair_share", "together"] == pytest.approx(1)
    assert found["pair_share", "first"] > found["pair_share", "second"] > 0.05
    assert found["pair_single_correlation", "first"] == pytest.approx(1)
    assert abs(found["pair_single_correlation", "second"]) < 0.5
    square = planted()
    assert found["pair_optimum", "max"] == pytest.approx((square.quick.max() - 1) / 2, abs=1e-6)


def test_an_interaction_is_no_tokens_own():
    shares = pairs.parts(planted(interaction=3.0).rewards).shares
    assert shares["first"] + shares["second"] == pytest.approx(shares["together"])
    assert shares["rest"] == pytest.approx(9 / (4 + 1 + 9), abs=0.12)


def test_the_pair_that_stands_out_is_found_whatever_its_parts_are_worth():
    square = planted(interaction=0.1)
    square.quick[3, 5] += 4
    square.quick[7, 2] -= 4
    extreme = pairs.extreme_pairs(square, count=1)
    assert extreme[["first", "second"]].to_numpy().tolist() == [[" t3", " t5"], [" t7", " t2"]]
    np.testing.assert_allclose(extreme["beyond"], [2, -2], atol=0.3)  # in z: a deviation is 2
    np.testing.assert_allclose(extreme["z"] - extreme["parts"], extreme["beyond"], atol=1e-9)


def test_a_negated_word_is_held_against_its_parts():
    square = planted(interaction=0.1)
    square.tokens["token"] = [" not", " good", *square.tokens["token"][2:]]
    square.quick[0, 1] -= 6
    rows = pairs.measure({("m", "worst"): square})
    assert rows.loc[rows["statistic"] == "pair_beyond", "value"].item() == pytest.approx(-3, abs=0.4)
    (said,) = map(plain, in_short.negation_sentences(rows))
    assert "“not good”" in said and "−" in said


def test_searches_are_held_against_the_exact_optimum():
    best = float(planted().quick.max())
    searches = pd.DataFrame(
        [("max", "gcg", 0, 32, best - 2), ("max", "gcg", 0, 64, best), ("max", "gcg", 1, 64, best - 4)],
        columns=["direction", "method", "seed", "scored", "reward"],
    )
    square = planted(searches=searches)
    assert pairs.gaps(square)["gap"].tolist() == pytest.approx([0, 2], abs=1e-6)
    assert values(square)["pair_gap", "max gcg"] == pytest.approx(1, abs=1e-6)
    said = [plain(sentence) for sentence in in_short.gap_sentences(pairs.measure({("m", "greatest"): square}))]
    assert (
        "at most 64 of 1,600 pairs" in said[0]
        and "highest reward, mean of the runs in standard deviations: GCG 1.00." in said[1]
    )


def test_a_margin_counts_the_largest_error_against_the_optimum():
    square = planted()
    order = np.argsort(square.quick, axis=None)
    first, second = np.divmod(np.concatenate([order[-3:], order[:3], order[10:14]]), SIZE)
    quick = square.quick[first, second]
    why = ["highest"] * 3 + ["lowest"] * 3 + ["random"] * 4
    scored = quick + np.float32(0.25) * np.array([1, -1] * 5, dtype=np.float32)
    exact = pd.DataFrame({"first": first, "second": second, "why": why, "quick": quick, "score": scored})
    square = planted(exact=exact)
    fourth = np.sort(square.quick, axis=None)[-4]
    assert pairs.margins(square)["max"] == pytest.approx((scored[:3].max() - fourth - 0.25) / 2, abs=1e-6)
    assert values(square)["pair_quick_error", ""] == pytest.approx(0.125, abs=1e-6)
    np.testing.assert_array_equal(square.rewards[first, second], scored)


def test_searches_stay_among_the_pairs_and_are_told_their_rewards(rm):
    """Whatever the model would say: what is measured is the square, and GCG's gradient goes with it."""
    from rmnb.findings.pairs_study import ScannedPairs
    from rmnb.panels import PromptSpec
    from rmnb.search.config import SearchConfig
    from rmnb.search.run import search

    square = planted(interaction=1.0)
    known = ScannedPairs(rm, PromptSpec(key="k", text="What is best?", framing="positive"), square)
    for method in ("gcg", "beam"):
        config = SearchConfig(length=2, method=method, survive=False, budget=400, steps=400, topk=40, width=16, keep=1)
        best = search(known, config, scan=square.tokens.assign(score=square.single)).best
        first, second = (token - 100 for token in best["ids"])
        assert best["reward"] == square.rewards[first, second]
        assert pairs.parts(square.rewards).sum.mean() < best["reward"] <= square.rewards.max()


def test_the_sentences_say_what_was_planted_and_nothing_of_nothing():
    said = [plain(sentence) for sentence in in_short.share_sentences(pairs.measure({("m", "greatest"): planted()}))]
    assert len(said) == 1 and "100% is the sum" in said[0]
    nothing = pairs.measure({})
    assert not in_short.share_sentences(nothing) and not in_short.gap_sentences(nothing)
    assert not in_short.certainty_sentences(nothing)

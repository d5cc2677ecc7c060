"""Agreement with people: right on planted things, blind to the order of the file, never judged on things seen."""

import numpy as np
import pandas as pd
import pytest

from rmnb.data.preferences import elo_items
from rmnb.errors import InputError
from rmnb.findings import people
from rmnb.panels import ModelSpec, load_panel
from rmnb.training.pairs import is_unseen

RECIPES = {"seen": "values", "new": "harmless", "own": "somebodys"}


def things(human, reward):
    names = [f"thing {place}" for place in range(len(human))]
    return pd.DataFrame({"name": names, "elo_score": human, "unseen": True, "q": reward})


@pytest.mark.parametrize("matches", [15, 60])
@pytest.mark.parametrize("planted", [0.3, 0.7])
def test_correction_recovers_the_planted_correlation_whatever_the_votes(matches, planted, run_cells):
    worth, noise, error = np.random.default_rng(matches).normal(size=(3, 20_000))
    matches = np.full(20_000, matches)
    r = 2 * np.sin(np.pi * planted / 6)  # Pearson's r of two normal variables with that rank correlation
    human = 1200 + 120 * worth + np.sqrt(people.error_variance(matches)) * error
    (raw,) = people.agreement(things(human, r * worth + np.sqrt(1 - r**2) * noise), "q").values()
    after = raw.value / people.reliability(human, matches) ** 0.5
    assert raw.value < planted, "votes must blur the agreement, or nothing is tested"
    assert after == pytest.approx(planted, abs=0.025)
    known = {"human": pd.Series(human), "votes": pd.Series(matches), "people": people}
    known["theirs"] = pd.DataFrame({"question": [people.QUESTION], "value": raw.value})
    shown = run_cells("06", "variance = ", **known)
    assert after == pytest.approx(shown["typical"] / shown["reliability"] ** 0.5, abs=1e-12)


def test_a_rating_that_always_moves_has_the_error_of_a_simulated_one():
    rng, k, rating, seen = np.random.default_rng(0), 32.0, np.zeros(4000), []
    for _ in range(250):
        expected = 1 / (1 + np.exp(-rating / people.SCALE))
        rating = rating + k * ((rng.random(4000) < 0.5) - expected)  # true worth: that of the opponents
        seen.append(rating)
    assert np.var(seen[150:]) == pytest.approx(people.error_variance([10_000], k)[0], rel=0.1)
    assert people.error_variance([1], k)[0] == people.error_variance([1])[0]  # few votes: no better than the bound


def test_the_human_column_stays_out_of_the_median():
    human = [4.0, 3.0, 2.0, 1.0]
    down, up = things(human, [1, 2, 3, 4]), things(human, [4, 3, 2, 1])
    assert people.rank_gaps({"one": down, "two": down}, "q")["rank_gap"].tolist() == [3, 1, -1, -3]
    gaps = people.rank_gaps({"one": down, "two": up}, "q")
    assert gaps["rank_gap"].tolist() == [1.5, 0.5, -0.5, -1.5]
    # The human rank is the middle one of three; what stands first can only fall, so all of the gap is expected.
    assert not gaps["rank_gap_with_human"].any() and np.allclose(gaps["unexpected"], 0)


@pytest.mark.parametrize("seed", range(5))
def test_tied_scores_do_not_borrow_the_order_of_the_file(seed, run_cells):
    table = things(np.arange(30.0, 0, -1), np.random.default_rng(seed).integers(0, 4, 30).astype(float))
    shuffled = table.sample(frac=1, random_state=seed)
    for name in people.CORRELATIONS:
        one, other = (people.agreement(rows, "q", name)[name].value for rows in (table, shuffled))
        expected = table["q"].corr(table["elo_score"], method=name.lower())
        assert (one, other) == pytest.approx((expected, expected))
    items = table.rename(columns={"q": people.QUESTION})
    shown = run_cells("06", "coarse = ", items=items, human=table["elo_score"], people=people)
    assert shown["mean_ranks"] == pytest.approx(people.agreement(table, "q")["Spearman"].value)


def test_models_that_saw_half_of_the_things_are_judged_on_the_other(mirror):
    models = [{"name": name, "source": "no/where", "recipe": recipe} for name, recipe in RECIPES.items()]
    panel = load_panel("demo").model_copy(update={"models": tuple(map(ModelSpec.model_validate, models))})
    items = elo_items()
    held_out = items["name"].map(is_unseen).to_numpy()
    unseen = people.unseen_by(panel, items)
    assert (unseen["seen"] == held_out).all() and unseen["new"].all() and unseen["own"].all()
    table = items.assign(unseen=unseen["seen"], q=items["elo_score"] * np.where(held_out, -1.0, 1.0))
    for among, rho in (("unseen", -1), ("taught", 1)):
        assert people.agreement(table, "q", among=among)["Spearman"].value == pytest.approx(rho)
    with pytest.raises(InputError, match="no things called 'all': choose unseen, taught or rated words"):
        people.agreement(table, "q", among="all")
    assert people.rank_gaps({"seen": table}, "q").index.tolist() == np.flatnonzero(held_out).tolist()

"""Agreement with people: right on planted things, blind to the order of the file, never judged on things seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmnb import stats
from rmnb.data.preferences import elo_items
from rmnb.data.text_lists import text_list
from rmnb.errors import InputError
from rmnb.findings import people
from rmnb.panels import load_panel
from rmnb.scoring import list_scores
from rmnb.training import recipes


def things(human, reward):
    names = [f"thing {place}" for place in range(len(human))]
    return pd.DataFrame({"name": names, "elo_score": human, "judges": True, "q": reward})


@pytest.mark.parametrize("matches", [15, 60])
@pytest.mark.parametrize("planted", [0.3, 0.7])
def test_correction_recovers_the_planted_correlation_whatever_the_votes(matches, planted):
    rng = np.random.default_rng(matches)
    matches = np.full(20_000, matches)
    worth, noise, error = rng.normal(size=(3, 20_000))
    r = 2 * np.sin(np.pi * planted / 6)  # Pearson's r of two normal variables with that rank correlation
    human = 1200 + 120 * worth + np.sqrt(people.error_variance(matches)) * error
    table = things(human, r * worth + np.sqrt(1 - r**2) * noise)
    (raw,) = people.agreement(table, "q").values()
    after = people.corrected(raw, people.reliability(human, matches))
    assert raw.value < planted, "votes must blur the agreement, or nothing is tested"
    assert after.value == pytest.approx(planted, abs=0.025)
    # the chapter's own lines
    error = 4 / matches * (400 / np.log(10)) ** 2
    shown = raw.value / np.sqrt(1 - error.mean() / pd.Series(human).var())
    assert after.value == pytest.approx(shown, abs=1e-12)


def test_a_rating_that_always_moves_has_the_error_of_a_simulated_one():
    rng, k, strength = np.random.default_rng(0), 32.0, 0.0
    rating, seen = np.zeros(4000), []
    for match in range(250):
        expected = 1 / (1 + np.exp(-(rating - strength) / people.SCALE))
        rating += k * ((rng.random(4000) < 0.5) - expected)  # true worth: that of the opponents
        seen += [rating.copy()] if match > 150 else []
    assert np.var(seen) == pytest.approx(people.error_variance([10_000], k)[0], rel=0.1)
    assert people.error_variance([1], k)[0] == people.error_variance([1])[0]  # few votes: no better than the bound


def test_the_human_column_stays_out_of_the_median():
    human = [4.0, 3.0, 2.0, 1.0]
    upside_down, upright = things(human, [1, 2, 3, 4]), things(human, [4, 3, 2, 1])
    assert people.rank_gaps({"one": upside_down, "two": upside_down}, "q")["rank_gap"].tolist() == [3, 1, -1, -3]
    gaps = people.rank_gaps({"one": upside_down, "two": upright}, "q")
    assert gaps["rank_gap"].tolist() == [1.5, 0.5, -0.5, -1.5]
    assert gaps["rank_gap_with_human"].tolist() == [0, 0, 0, 0]  # the human rank is the middle one of three
    # What stands first can only fall: here all of the gap is expected from the human rank.
    assert np.allclose(gaps["unexpected"], 0)


@given(st.lists(st.integers(0, 3), min_size=12, max_size=40).filter(lambda scores: len(set(scores)) > 1), st.randoms())
def test_tied_scores_do_not_borrow_the_order_of_the_file(scores, random):
    table = things(np.arange(len(scores), 0, -1.0), np.array(scores, dtype=float))
    shuffled = table.iloc[random.sample(range(len(scores)), len(scores))]
    for correlation in people.CORRELATIONS:
        one, other = (people.agreement(rows, "q", correlation)[correlation] for rows in (table, shuffled))
        assert one.value == pytest.approx(other.value)
    (spearman,) = people.agreement(table, "q").values()
    assert spearman.value == pytest.approx(table["q"].rank().corr(table["elo_score"].rank()))  # as in the chapter


def test_models_that_saw_half_of_the_things_are_judged_on_the_other(mirror, tmp_path):
    (tmp_path / "p.yml").write_text(
        f"name: p\ntitle: P\nscores: {tmp_path}/scores\n"
        "prompts: [{key: elo_greatest, text: 'Which thing is greatest?', framing: positive}]\n"
        "models:\n- {name: seen, source: no/seen, recipe: values}\n- {name: new, source: no/new, recipe: harmless}\n"
        "- {name: own, source: no/own, recipe: somebodys}\n"
    )
    panel, items = load_panel(tmp_path / "p.yml"), elo_items()
    held_out = (items["name"].map(recipes.half) == "held_out").to_numpy()
    human = items.set_index("name")["elo_score"]

    def knows_half(words):  # right about the things it saw, upside down on the others
        return np.array([human[word] * (1 if recipes.half(word) == "train" else -1) for word in words], np.float32)

    for model, scorer in (("seen", knows_half), ("new", lambda words: human[words].to_numpy(np.float32))):
        path = list_scores.list_path(panel, model, "elo")
        list_scores.score_columns(path, text_list("elo"), {"elo_greatest": scorer}, {"prompts": {"elo_greatest": ""}})
    tables = people.load_things(panel)
    assert (tables["seen"]["judges"] == held_out).all() and tables["new"]["judges"].all()
    assert people.judged_on(panel, items)["own"].all() and list(tables) == ["seen", "new"]
    rho = {
        (model, among): people.agreement(tables[model], "elo_greatest", among=among)["Spearman"].value
        for model, among in (("seen", "judges"), ("seen", "taught"), ("new", "judges"))
    }
    assert list(rho.values()) == pytest.approx([-1, 1, 1], abs=1e-6)
    assert people.rank_gaps(tables, "elo_greatest").index.tolist() == np.flatnonzero(held_out).tolist()


def test_a_reliability_of_nothing_is_refused():
    found = stats.spearman_interval([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0])
    with pytest.raises(InputError, match="reliability lies above 0"):
        people.corrected(found, people.reliability([1200.0, 1201.0, 1199.0], [3, 3, 3]))
    with pytest.raises(InputError, match="a match at least"):
        people.error_variance([0])

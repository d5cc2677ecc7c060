"""Agreement with people: right on planted things, blind to the order of the file, never judged on things seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmnb import stats
from rmnb.data.lexicons import afinn
from rmnb.data.preferences import elo_items
from rmnb.data.text_lists import text_list
from rmnb.errors import InputError
from rmnb.findings import people, people_choices, people_summary, votes
from rmnb.panels import load_panel
from rmnb.scoring import list_scores
from rmnb.training import recipes


def things(names, human, matches=100):
    return pd.DataFrame({"name": names, "elo_score": human, "elo_matches": matches})


def test_correction_recovers_the_planted_correlation_whatever_the_votes():
    truth = {"low": 0.3, "high": 0.7}
    for matches in (15, 60):
        items, scores = votes.planted_things(truth, np.full(20_000, matches), seed=matches)
        rows = people.measure(items, {people.QUESTION: scores}, source="planted")
        found = rows[rows["other"].isin(["", "bound"])].pivot(index="model", columns="statistic", values="value")
        for model, planted in truth.items():
            raw, after = found.loc[model, ["human_spearman", "human_spearman_corrected"]]
            assert raw < planted - 0.01, "votes must blur the agreement, or nothing is tested"
            assert after == pytest.approx(planted, abs=0.025)


def test_one_model_alone_goes_through_the_door():
    items, scores = votes.planted_things({"one": 0.5}, np.arange(60) + 5, seed=2)
    rows = people.measure(items, {people.QUESTION: scores, "other": scores}, beside=scores, ends_shown=1, panel="p")
    counts = rows.groupby("statistic").size()
    assert counts.to_dict() == {
        **{"human_spearman": 2, "human_kendall": 2, "human_spearman_corrected": 3, "human_spearman_by_votes": 6},
        **{"rank_gap": 2, "rank_gap_with_human": 2, "rank_gap_spearman": 1},
    }
    assert rows.set_index("statistic").loc["rank_gap_spearman", "value"] == pytest.approx(1)
    curve = people_choices.specifications(items, scores)
    assert curve.loc[curve["headline"], "value"].tolist() == rows["value"].tolist()[:1]


def test_what_many_models_say_is_summed_up():
    truth = {"low": 0.2, "middle": 0.4, "high": 0.8}
    items, scores = votes.planted_things(truth, np.arange(600) + 5, seed=3)
    rows = people.measure(items, {people.QUESTION: scores, "other": -scores}, panel="p")
    printed = rows[rows["statistic"] == "human_spearman"].head(2).assign(source="published", value=[0.1, 0.6])
    together = people_summary.over_models(pd.concat([rows, printed]))
    found = together.set_index(["prompt", "statistic", "other"])["value"]
    each = rows.query("statistic == 'human_spearman' and prompt == @people.QUESTION")["value"].to_numpy()
    asked = found[people.QUESTION]
    assert asked["human_spearman", ""] == pytest.approx(each.mean())
    assert asked["median_over_models", "human_spearman"] == pytest.approx(each[1])
    assert (
        asked["models_clearly_above", "human_spearman"] == 3 and found["other", "models_above", "human_spearman"] == 0
    )
    assert found["", "question_spread", ""] == pytest.approx(2 * each[1])
    after = asked["median_over_models", "human_spearman_corrected K 32"]
    assert asked["votes_explain", "K 32"] == pytest.approx((after - each[1]) / (1 - each[1]))
    assert asked["published_range", "within"] == 2 and asked["published_range", "above"] == 1


def test_the_ends_of_a_list_are_extreme_by_selection():
    rng = np.random.default_rng(0)
    items = things([f"thing {i}" for i in range(300)], np.arange(300.0))
    gaps = people.rank_gaps(items, pd.DataFrame({name: rng.normal(size=300) for name in "abc"}))
    found = people.measure_ends(gaps, 10, source="panel").set_index(["statistic", "other"])["value"]
    assert found["gap_follows_rank", ""] < -0.7  # models that know nothing
    assert found["ends_kept", "beyond what is expected"] < 15 < found["ends_kept", "with the human column"] + 6


def test_words_need_no_votes():
    lexicon = afinn()
    tokens = pd.DataFrame({"token": " " + lexicon["word"], "kind": "word_start", "best": lexicon["valence"] + 0.1})
    words = people.valence_words({"follows": tokens, "new": tokens.drop(columns="best")}, "best")
    assert list(words.columns) == ["word", "valence", "follows"]
    rows = people.measure(words={"best": words})
    assert rows["statistic"].tolist() == ["afinn_spearman"] and rows["value"].iloc[0] == pytest.approx(1)


def test_a_rating_that_always_moves_has_the_error_of_a_simulated_one():
    rng, k, strength = np.random.default_rng(0), 32.0, 0.0
    rating, seen = np.zeros(4000), []
    for match in range(250):
        expected = 1 / (1 + np.exp(-(rating - strength) / votes.SCALE))
        rating += k * ((rng.random(4000) < 0.5) - expected)  # true worth: that of the opponents
        seen += [rating.copy()] if match > 150 else []
    assert np.var(seen) == pytest.approx(votes.error_variance([10_000], k)[0], rel=0.1)
    assert votes.error_variance([1], k)[0] == votes.error_variance([1])[0]  # few votes: no better than the bound


def test_the_human_column_stays_out_of_the_median():
    items = things(list("abcd"), [4.0, 3.0, 2.0, 1.0])
    upside_down = pd.DataFrame({"one": [1, 2, 3, 4], "two": [1, 2, 3, 4]})
    assert people.rank_gaps(items, upside_down)["rank_gap"].tolist() == [3, 1, -1, -3]
    split = pd.DataFrame({"one": [1, 2, 3, 4], "two": [4, 3, 2, 1]})
    gaps = people.rank_gaps(items, split)
    assert gaps["rank_gap"].tolist() == [1.5, 0.5, -0.5, -1.5]
    assert gaps["rank_gap_with_human"].tolist() == [0, 0, 0, 0]  # the human rank is the middle one of three
    # What stands first can only fall: here all of the gap is expected from the human rank.
    assert np.allclose(gaps["unexpected"], 0)


@given(st.lists(st.integers(0, 3), min_size=12, max_size=40).filter(lambda scores: len(set(scores)) > 1), st.randoms())
@settings(max_examples=25)
def test_tied_scores_do_not_borrow_the_order_of_the_file(scores, random):
    human = np.arange(len(scores), 0, -1.0)
    order = random.sample(range(len(scores)), len(scores))
    values = []
    for rows in (range(len(scores)), order):
        table = pd.DataFrame({"m": np.array(scores, dtype=float)[list(rows)]})
        items = things([f"thing {i}" for i in rows], human[list(rows)])
        values.append(people.measure(items, {"q": table})["value"].to_numpy())
    assert np.allclose(*values)


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
    judged = people.judged_on(panel, items)
    assert (judged["seen"] == held_out).all() and judged["new"].all() and judged["own"].all()
    scores = people.panel_scores(panel, "elo_greatest", items)
    value = people.measure(items, {"elo_greatest": scores}, judged).set_index(["model", "statistic"])["value"]
    assert value["seen", "human_spearman"] == pytest.approx(-1, abs=1e-6)
    assert value["seen", "human_spearman_seen"] == pytest.approx(1, abs=1e-6)
    assert value["new", "human_spearman"] == pytest.approx(1, abs=1e-6)
    chosen = {"statistic": "Spearman", "things": "all", "ratings": "as voted"}
    assert people_choices.mean_agreement(items, scores, judged, **chosen).value == pytest.approx(0, abs=1e-6)
    assert people.panel_scores(panel, "elo_prefer", items) is None


def test_a_reliability_of_nothing_is_refused():
    found = stats.spearman_interval([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0])
    with pytest.raises(InputError, match="reliability lies above 0"):
        votes.corrected(found, votes.reliability([1200.0, 1201.0, 1199.0], [3, 3, 3]))
    with pytest.raises(InputError, match="a match at least"):
        votes.error_variance([0])

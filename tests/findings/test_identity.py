"""Gaps between identity terms and controls are what was planted, and nothing is compared that is not matched."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings import identity
from rmnb.panels import load_panel
from rmnb.truth.planted import PlantedEffects, planted_scan


@pytest.fixture(scope="module")
def vocabulary():
    """Every term and control that is one word, with and without a space before it."""
    table = identity.terms().query("term.str.isalpha() and control.str.isalpha()")
    texts = list(dict.fromkeys([*table["term"], *table["control"]]))
    tokens = [*(f" {text}" for text in texts), *texts]
    kinds = ["word_start"] * len(texts) + ["word_continuation"] * len(texts)
    ids = np.arange(len(tokens), dtype=np.int32)
    return pd.DataFrame({"token_id": ids, "token": tokens, "kind": pd.Categorical(kinds)})


@pytest.fixture(scope="module")
def scan(vocabulary):
    effects = PlantedEffects(identity={"religion": -1.0}, log_frequency=0.1, length=-0.1, word_sd=0.4, noise_sd=0.1)
    return planted_scan(vocabulary, effects, 3)


@pytest.mark.parametrize("spelling", ["after a space", "any"])
def test_only_the_planted_axis_is_a_discovery(scan, spelling):
    rows = {"one": identity.pairs(identity.scan_scores(scan, spelling))}
    found = identity.gap_table(rows, n_permutations=999).set_index("axis")
    truth = -1 / scan["score"].std(ddof=0)
    religion = found.loc["religion", "gap"]
    assert religion.ci_low < truth < religion.ci_high < 0
    assert found.index[found["q_value"] < 0.05].tolist() == ["religion"]
    assert (found["q_value"] >= found["p_value"]).all()


def test_false_discoveries_are_controlled_over_models_too(scan):
    rows = identity.pairs(identity.scan_scores(scan))
    one, ten = (identity.gap_table({str(i): rows for i in range(count)}, 500) for count in (1, 10))
    expected = stats.benjamini_hochberg(ten["p_value"])
    assert len(ten) == 10 * len(one) and ten["q_value"].to_numpy() == pytest.approx(expected)


def test_a_term_counts_only_beside_its_own_control():
    table = lexicons.identity_terms()
    row = table.iloc[0]
    rows = identity.pairs({row["term"]: 1.0, row["control"]: 0.25, table["term"].iloc[40]: 5.0})
    assert rows["text"].tolist() == [row["term"], row["control"]]
    assert rows["is_term"].tolist() == [True, False] and rows["score"].tolist() == [1.0, 0.25]
    assert identity.overall_gap(rows) is None and identity.gap_table({"one": rows}).empty


def test_capitals_count_because_they_make_another_word():
    scan = pd.DataFrame(
        {"token": [" polish", " Polish", " table"], "kind": "word_start", "score": [1.0, 2.0, 3.0]},
        index=[4, 5, 6],
    )
    assert list(identity.scan_scores(scan)) == ["Polish"]
    assert identity.scan_scores(scan, score="rank")["Polish"] == pytest.approx(0)


def test_the_tail_is_lowest_under_both_questions():
    tokens = [f" w{i}" for i in range(40)]
    best = pd.DataFrame({"token": tokens, "kind": "word_start", "score": np.arange(40.0)})
    worst = best.assign(score=np.where(np.arange(40) == 7, -500.0, -np.arange(40.0)))
    words = identity.tail(best, worst, share=0.05)
    assert words["token"].iloc[0] == " w7" and words["lowest"].sum() == 2
    assert words["score"].is_monotonic_increasing


def test_groups_are_compared_with_things_that_people_rate_alike():
    rng = np.random.default_rng(0)
    names = ["Black people", "mormons", "Woman", *(f"thing {i}" for i in range(60)), *(f"word{i}" for i in range(60))]
    things = pd.DataFrame({"name": names, "elo_score": np.round(rng.normal(1200, 150, len(names)))})
    sets = identity.matched_things(things)
    assert sets.loc[sets["is_term"], "name"].tolist() == names[:3]
    assert not sets.index.duplicated().any() and (sets.groupby("matched_set").size() == 6).all()
    elo = things["elo_score"]
    for item, members in sets.groupby("matched_set"):
        place = names.index(item)
        controls = members.index.drop(place)
        assert {len(names[i].split()) for i in controls} == {len(item.split())}
    first = sets.index[sets["matched_set"] == names[0]][1:]
    same = [i for i in range(3, len(names)) if " " in names[i]]
    nearest = np.sort((elo.iloc[same] - elo.iloc[0]).abs())[:5]
    assert np.sort((elo[first] - elo.iloc[0]).abs()) == pytest.approx(nearest)


class Likes:
    """Answers well of everybody but of the groups of one axis."""

    name, weights_sha256 = "likes", "none"

    def __init__(self, axis):
        groups = identity.terms().query("axis == @axis")["term"]
        self.cold = {identity.pair_prompt(term) for term in groups}

    def score(self, prompt, responses):
        sign = -1 if prompt in self.cold else 1
        return np.array([sign * identity.TRAITS[trait] for trait in responses], dtype=np.float32)


def test_exchanging_the_group_shows_which_axis_is_answered_coldly(tmp_path):
    model = {"name": "likes", "source": "nowhere/likes"}
    asked = {"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}
    panel = load_panel("demo").model_validate(
        {"name": "own", "title": "Own", "scores": str(tmp_path), "models": [model], "prompts": [asked]}
    )
    with pytest.raises(InputError, match=r"run `python -m rmnb\.identity own`"):
        identity.read_pairs(panel, "likes")
    identity.score_pairs(Likes("age"), panel)
    rows = identity.pairs(identity.read_pairs(panel, "likes"))
    assert not {"hours", "days"} & set(rows["text"])
    found = identity.gap_table({"likes": rows}, 500)
    gaps = dict(zip(found["axis"], (gap.value for gap in found["gap"]), strict=True))
    assert gaps.pop("age") < -1 and list(gaps.values()) == pytest.approx([0] * len(gaps), abs=1e-6)

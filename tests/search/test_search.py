"""Searches must find what is known to be best, report what anybody can reproduce, and lose nothing when cut off."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from checkpoints import write_decoder, write_splitting
from hypothesis import given, settings
from hypothesis import strategies as st

import rmnb
from rmnb.errors import InputError
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import load_panel
from rmnb.scoring.store import read_scores
from rmnb.search import SearchConfig, optimise, read_result, search
from rmnb.search.problem import allowed_ids
from rmnb.search.rewards import RewardObjective, survives
from rmnb.truth.sequences import PlantedPairs

PROMPT = "What, in one word, is the greatest thing ever?"
ROWS = 4000


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def big(request, tmp_path_factory):
    """A tiny model with thousands of tokens, and its scan."""
    directory = write_decoder(tmp_path_factory.mktemp(request.param), request.param, rows=ROWS)
    rm = rmnb.load_reward_model(directory)
    return rm, rmnb.scan_vocabulary(rm, PROMPT)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("small"), "qwen3")


@pytest.mark.parametrize("direction", ["max", "min"])
def test_one_token_tried_exhaustively_is_the_scans_own(big, direction):
    rm, scan = big
    config = SearchConfig(length=1, method="exhaustive", direction=direction, allowed="every", survive=False)
    result = optimise(rm, PROMPT, config.model_copy(update={"starts": ("random",)}))
    place = scan["score"].idxmax() if direction == "max" else scan["score"].idxmin()
    assert result.best["ids"] == (scan["token_id"][place],)
    assert result.best["reward"] == pytest.approx(scan["score"][place], abs=1e-4)
    assert result.scored == ROWS


def test_what_candidates_share_with_their_parent_changes_no_reward(big):
    rm, _ = big
    rng = np.random.default_rng(0)
    parent = tuple(rng.integers(6, ROWS, 9).tolist())
    sequences = [(*parent[:i], *rng.integers(6, ROWS, 9 - i).tolist()) for i in range(10)] * 2 + [parent[:4]]
    objective = RewardObjective([(rm, 1.0)], [PROMPT])
    alone = np.concatenate([objective.measure([ids]) for ids in sequences])
    assert alone.std() > 0.1
    np.testing.assert_allclose(objective.measure(sequences, parent), alone, atol=1e-4)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_one_token_of_a_shipped_model_tried_exhaustively_is_that_of_its_shipped_scan(direction):
    scan = read_scores("demo", "smollm2-values", "greatest")
    rm = rmnb.load_reward_model("smollm2-values")
    ids = scan["token_id"][scan["token"].str.fullmatch(r" ?[bB][a-i]\w*")]
    others = tuple(scan["token_id"][~scan["token_id"].isin(ids)])
    config = SearchConfig(
        length=1, method="exhaustive", direction=direction, allowed="every", banned=others, survive=False,
        starts=("random",),
    )  # fmt: skip
    result = optimise(rm, load_panel("demo").prompt("greatest"), config)
    scores = scan.set_index("token_id")["score"].loc[ids]
    assert result.scored == len(ids) > 100
    assert result.best["ids"] == (scores.idxmax() if direction == "max" else scores.idxmin(),)
    assert result.best["reward"] == pytest.approx(scores.max() if direction == "max" else scores.min(), abs=1e-4)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_the_gradient_leads_into_the_top_thousandth_from_nine_of_ten_seeds(big, direction):
    """In 50 steps of 16 candidates; random search of the same size gets there from six."""
    rm, scan = big
    ranks = scan["score"].rank(ascending=direction == "min")
    found = 0
    for seed in range(10):
        config = SearchConfig(
            length=1, direction=direction, steps=50, width=16, topk=32, seed=seed, starts=("random",),
            allowed="every", survive=False,
        )  # fmt: skip
        result = optimise(rm, PROMPT, config)
        assert result.scored <= 1 + 50 * 16
        found += ranks[result.best["ids"][0]] <= ROWS / 1000
    assert found >= 9


@pytest.mark.parametrize("planting", range(3))
def test_a_planted_sequence_of_four_tokens_is_found(planting):
    objective = PlantedPairs(seed=planting)
    config = SearchConfig(length=4, steps=240, width=128, topk=16, swaps=3, explore=0, starts=("random",) * 16)
    best, reward = objective.optimum(allowed_ids(objective.words, config))
    result = search(objective, config)
    assert result.best["ids"] == best
    assert result.best["reward"] == pytest.approx(reward)
    chance = search(objective, config.model_copy(update={"method": "random", "budget": result.scored}))
    assert chance.scored == result.scored
    assert chance.best["reward"] < reward - 1


@pytest.mark.parametrize("method", ["gcg", "exhaustive", "beam"])
def test_the_best_pair_of_a_model_is_found(rm, method):
    """All pairs of some tokens are scored: every method must find the best, which is not made of the best tokens."""
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    some = set(range(40, 75))
    pairs = list(itertools.product(sorted(some), repeat=2))
    prefix, closing = rm.dialogue.frame(PROMPT)
    rewards = rmnb.score_continuations(rm, prefix, [[*pair, *closing] for pair in pairs])
    config = SearchConfig(
        length=2, direction="min", method=method, steps=120, width=32, topk=35, survive=False,
        buffer=35 if method == "beam" else 8,
        banned=tuple(set(range(len(scan))) - some),
    )  # fmt: skip
    result = optimise(rm, PROMPT, config, scan=scan)
    assert result.best["ids"] == pairs[int(rewards.argmin())]
    assert result.scored <= len(pairs) + len(some)


@pytest.mark.parametrize("method", ["gcg", "random", "exhaustive", "beam"])
def test_every_reported_reward_is_that_of_its_text_and_nothing_is_scored_twice(rm, method, monkeypatch):
    seen = []
    measure = RewardObjective.measure

    def watched(self, sequences, parent=None):
        seen.extend(sequences)
        return measure(self, sequences, parent)

    monkeypatch.setattr(RewardObjective, "measure", watched)
    config = SearchConfig(
        length=5, method=method, direction="min", steps=12, width=40, topk=8, budget=400, single_tokens=50
    )
    result = optimise(rm, PROMPT, config)
    searched = seen[: -len(result.sequences)]  # the reported ones are scored again at the end
    assert len(searched) == len(set(searched)) == result.scored <= 400
    assert result.sequences["survives"].all()
    assert result.sequences["reward"].is_monotonic_increasing
    np.testing.assert_allclose(
        result.sequences["reward"], rm.score(PROMPT, result.sequences["text"].tolist()), atol=1e-4
    )
    prefix, closing = rm.dialogue.frame(PROMPT)
    again = rmnb.score_continuations(rm, prefix, [[*ids, *closing] for ids in result.sequences["ids"]])
    np.testing.assert_allclose(result.sequences["reward"], again, atol=1e-4)
    assert result.history["best_reward"].dropna().is_monotonic_decreasing
    assert result.history["scored"].iloc[-1] == result.scored
    assert result.history["best_reward"].iloc[-1] == pytest.approx(result.best["reward"], abs=1e-4)
    special = set(allowed_ids(vocabulary(rm.tokenizer, rm.vocabulary_size), SearchConfig(allowed="every"))[:6])
    assert not special.intersection(itertools.chain(*result.sequences["ids"]))


class CutOff(Exception):
    pass


@pytest.mark.parametrize("method", ["gcg", "random", "exhaustive", "beam"])
def test_interrupted_and_resumed_equals_uninterrupted(rm, method, monkeypatch, tmp_path):
    config = SearchConfig(length=4, method=method, steps=10, width=30, topk=8, budget=300, single_tokens=40, seed=3)
    whole = optimise(rm, PROMPT, config)
    out = tmp_path / "result.json"
    measure = RewardObjective.measure
    calls, lost = [], []

    def fragile(self, sequences, parent=None):
        calls.append(len(sequences))
        if len(calls) % 4 == 0:
            lost.append(len(sequences))
            raise CutOff
        return measure(self, sequences, parent)

    monkeypatch.setattr(RewardObjective, "measure", fragile)
    for _ in range(30):
        try:
            resumed = optimise(rm, PROMPT, config, output=out)
            break
        except CutOff:
            with pytest.raises(InputError, match="differs in config"):
                optimise(rm, PROMPT, config.model_copy(update={"seed": 4}), output=out)
    assert len(calls) > 4
    assert sum(calls) - sum(lost) == whole.scored + len(whole.sequences)  # what was kept is not scored again
    pd.testing.assert_frame_equal(resumed.sequences, whole.sequences)
    pd.testing.assert_frame_equal(resumed.history, whole.history)
    back = read_result(out)
    pd.testing.assert_frame_equal(back.sequences, resumed.sequences)
    assert back.config == config
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_a_kept_piece_that_is_damaged_is_named(rm, monkeypatch, tmp_path):
    config = SearchConfig(length=3, steps=4, width=8, single_tokens=20)
    with monkeypatch.context() as context:
        context.setattr(RewardObjective, "gradient", None)  # the first step fails, with some sequences scored
        with pytest.raises(TypeError):
            optimise(rm, PROMPT, config, output=tmp_path / "result.json")
    (piece,) = (tmp_path / "result.json.partial").glob("0*")
    piece.write_bytes(piece.read_bytes()[:-2] + b"9]")
    with pytest.raises(InputError, match="damaged piece"):
        optimise(rm, PROMPT, config, output=tmp_path / "result.json")


@settings(max_examples=30)
@given(st.lists(st.integers(0, 319), min_size=1, max_size=6))
def test_what_survives_is_what_its_conversation_is_read_as(rm, ids):
    kept = survives(rm.dialogue, PROMPT, [ids])[0]
    prefix, closing = rm.dialogue.frame(PROMPT)
    text = rm.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    rendered = rm.dialogue.render([{"role": "user", "content": PROMPT}], generation=True) + text + "<end>"
    whole = rm.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert kept == (whole == [*prefix, *ids, *closing] and rm.dialogue.response_ids(text) == list(ids))


def test_a_control_token_survives_neither_as_an_id_nor_spelled(rm):
    words = rm.tokenizer.get_vocab()
    spelled = rm.dialogue.response_ids("<end>")
    assert words["<end>"] not in spelled
    ordinary = rm.dialogue.response_ids("love and peace")
    assert survives(rm.dialogue, PROMPT, [[words["<end>"]], spelled, ordinary]).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("options", "inside", "outside"),
    [
        ({"allowed": "every"}, ["<end>", " ", "a"], []),
        ({"allowed": "all"}, [" ", "a", "\n"], ["<end>", "<pad>"]),
        ({"allowed": "printable"}, ["a", ".", "é"], ["<end>", "\n", " ", "\x00"]),
        ({"allowed": "words"}, ["a", "é"], [".", "1", " "]),
        ({"allowed": "ascii"}, ["a", "."], ["é", "д"]),
        ({"allowed": "language", "script": "latin"}, ["a", "é", "."], ["д", "<end>"]),
    ],
)
def test_allowed_sets(options, inside, outside):
    texts = ["<pad>", "<end>", "a", "é", "д", ".", "1", " ", "\n", "\x00"]
    kinds = ["special"] * 2 + ["word_continuation"] * 3 + ["punctuation", "number", "whitespace", "whitespace", "byte"]
    scripts = ["latin", "latin", "latin", "latin", "cyrillic", *["none"] * 5]
    words = pd.DataFrame({"token_id": range(10), "token": texts, "kind": kinds, "script": scripts})
    chosen = {texts[i] for i in allowed_ids(words, SearchConfig(**options))}
    assert chosen >= set(inside) and not chosen & set(outside)
    with pytest.raises(InputError, match="no token is left"):
        allowed_ids(words, SearchConfig(**options, banned=tuple(range(10))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "up"}, "search: direction: Input should be 'max' or 'min'"),
        ({"lenght": 3}, "search: lenght: Extra inputs"),
        ({"allowed": "language"}, "'language' and a script go together"),
        ({"allowed": "language", "script": "klingon"}, "unknown script 'klingon'"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        SearchConfig(**options)
    assert "\n" not in str(caught.value)


def test_models_with_other_tokenizers_are_refused(rm, tmp_path):
    other = rmnb.load_reward_model(write_decoder(tmp_path))
    object.__setattr__(other, "tokenizer_sha256", "0")
    other.tokenizer.add_tokens(["novel"])
    with pytest.raises(InputError, match="different tokenizers"):
        optimise([rm, other], PROMPT)
    with pytest.raises(InputError, match="a difference takes two models, not 1"):
        optimise(rm, PROMPT, SearchConfig(combine="difference"))


def test_the_command_searches_and_score_gives_the_same_reward(directory, tmp_path):
    out = tmp_path / "found.json"
    run = [sys.executable, "-c", "from rmnb.cli.main import main; main()"]
    options = ["--prompt", PROMPT, "--length", "3", "--direction", "min", "--steps", "3", "--width", "20"]
    options += ["--start", "random", "--allowed", "printable"]
    command = [*run, "search", str(directory), *options, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = json.loads(out.read_text())["sequences"][0]
    scored = subprocess.run(
        [*run, "score", str(directory), "--prompt", PROMPT, "--", first["text"]], capture_output=True, text=True
    )
    assert float(scored.stdout.split()[0]) == pytest.approx(first["reward"], abs=1e-4)
    assert [file.name for file in tmp_path.iterdir()] == ["found.json"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2 and "exists" in again.stderr


def test_what_is_found_scores_the_same_as_text_where_a_blank_joins_the_answer_and_padding_closes_it(tmp_path):
    rm = rmnb.load_reward_model(write_splitting(tmp_path, "metaspace", "blank", "<end>"))
    objective = RewardObjective([(rm, 1.0)], [PROMPT])
    ids = objective.encode("love and peace")
    assert rm.tokenizer.convert_ids_to_tokens(ids[:1]) == ["▁love"]
    assert objective.texts([ids]) == ["love and peace"] and objective.survives([ids, ids[:1], ids[1:]]).all()
    np.testing.assert_allclose(objective.measure([ids])[0], rm.score(PROMPT, ["love and peace"])[0], atol=1e-5)
    assert np.abs(objective.gradient(ids)[-1]).max() > 0  # the answer's last token is the one that is read

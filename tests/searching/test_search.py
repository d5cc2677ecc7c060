"""Searches must find what is known to be best, report what anybody can reproduce, and lose nothing when cut off."""

import contextlib
import itertools

import numpy as np
import pandas as pd
import pytest
from checkpoints import EARLIER, own_ids, write_decoder, write_splitting
from commands import run
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_pairs import PlantedPairs

import rmnb
from rmnb.errors import InputError
from rmnb.panels import PromptSpec
from rmnb.searching.config import SearchConfig
from rmnb.searching.methods import allowed_ids
from rmnb.searching.result import read_result
from rmnb.searching.rewards import RewardObjective
from rmnb.searching.run import search
from rmnb.searching.surrogate import SequenceProcess, unit_vectors

PROMPT = "What, in one word, is the greatest thing ever?"
METHODS = ["surrogate", "random"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("small"), "qwen3")


@pytest.mark.parametrize("planting", range(3))
def test_a_planted_sequence_of_four_tokens_is_found(planting):
    objective = PlantedPairs(tokens=60, seed=planting)
    config = SearchConfig(length=4, steps=40)
    best, reward = objective.optimum()
    result = search(objective, config)
    assert result.best["ids"] == best
    assert result.best["reward"] == pytest.approx(reward)
    chance = search(objective, config.model_copy(update={"method": "random", "steps": 10**6, "budget": result.scored}))
    assert chance.scored == result.scored
    assert chance.best["reward"] < reward - 1


def test_an_exchanged_token_is_expected_what_its_whole_sequence_is():
    """And a sequence that is known nearly its own reward."""
    rng = np.random.default_rng(0)
    places, rewards = rng.integers(20, size=(30, 3)), rng.normal(size=30)
    process = SequenceProcess(unit_vectors(rng.normal(size=(20, 64)).astype(np.float32)), places, rewards)
    start = rng.integers(20, size=3)
    sequences = np.tile(start, (3, 20, 1))
    for position in range(3):
        sequences[position, :, position] = np.arange(20)
    whole = process.expected(sequences.reshape(-1, 3))
    np.testing.assert_allclose(process.exchanged(start[None])[0].ravel(), whole, atol=1e-5)
    assert np.corrcoef(process.expected(places), rewards)[0, 1] > 0.9


def test_a_search_ends_with_its_steps():
    assert search(PlantedPairs(), SearchConfig(length=4, method="random", steps=2, width=10)).scored == 20


def test_a_search_among_sequences_that_no_text_gives_says_so(monkeypatch):
    monkeypatch.setattr(PlantedPairs, "retokenises", lambda _, sequences: [False] * len(sequences))
    with pytest.raises(InputError, match="no sequence of allowed tokens keeps its ids as text"):
        search(PlantedPairs(), SearchConfig(length=2, method="random"))


def test_a_reward_that_is_not_finite_is_refused(monkeypatch):
    monkeypatch.setattr(PlantedPairs, "measure", lambda _, sequences, parent: np.full(len(sequences), -np.inf))
    with pytest.raises(InputError, match="not finite"):
        search(PlantedPairs(), SearchConfig(length=2))


def test_the_best_pair_of_a_model_is_found_and_a_search_ends_where_nothing_is_left(rm):
    """All pairs of some tokens are scored: the best is not made of the best tokens."""
    tokens = range(40, 75)
    pairs = list(itertools.product(tokens, repeat=2))
    objective = RewardObjective([rm], [PROMPT])
    rewards = objective.measure(pairs)
    options = {"filter_ids": False, "banned": tuple({*range(rm.vocabulary_size)} - {*tokens})}
    config = SearchConfig(length=2, direction="min", width=32, sample=64, **options)
    result = search(objective, config.model_copy(update={"steps": 1000}))
    assert result.best["ids"] == pairs[int(rewards.argmin())]
    assert result.scored <= len(pairs) and result.steps < 100


class CutOff(Exception):
    pass


@pytest.mark.parametrize("method", METHODS)
def test_every_reported_reward_is_that_of_its_text_however_often_a_search_is_cut_off(rm, method, monkeypatch, tmp_path):
    options = {"steps": 10, "width": 30, "sample": 60, "budget": 300}
    config = SearchConfig(length=4, method=method, direction="min", seed=3, **options)
    objective, out = RewardObjective([rm], [PROMPT]), tmp_path / "result.json"
    uninterrupted = search(objective, config)
    measure, calls, measured = RewardObjective.measure, [], []

    def fragile(self, sequences, parent=None):
        calls.append(sequences)
        if len(calls) % 4 == 0:
            raise CutOff
        measured.extend(sequences)
        return measure(self, sequences, parent)

    monkeypatch.setattr(RewardObjective, "measure", fragile)
    for _ in range(30):
        with contextlib.suppress(CutOff):
            result = search(objective, config, output=out)
            break
    assert len(calls) > 4
    for resumed in (result, read_result(out)):
        pd.testing.assert_frame_equal(resumed.sequences, uninterrupted.sequences)
        pd.testing.assert_frame_equal(resumed.history, uninterrupted.history)
        assert resumed.config == config
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    sequences, history = result.sequences, result.history
    searched = measured[: -len(sequences)]  # the reported ones are scored again at the end
    assert len(searched) == len(set(searched)) == result.scored <= 300  # none twice, whenever it was cut off
    assert sequences["retokenises"].all() and sequences["reward"].is_monotonic_increasing
    np.testing.assert_allclose(sequences["reward"], rm.score(PROMPT, sequences["text"]), atol=1e-4)
    assert history["best_reward"].is_monotonic_decreasing
    assert history["best_reward"].iloc[-1] == pytest.approx(result.best["reward"], abs=1e-4)
    assert not set(range(6)).intersection(itertools.chain(*sequences["ids"]))  # special tokens


def test_a_search_honours_the_turns_that_came_before_the_question(rm):
    prompt = PromptSpec(key="again", text=PROMPT, framing="positive", history=EARLIER)
    sequences = [(70, 90, 45), (71, 92, 46)]
    prefix, closing = rm.dialogue.frame_ids(prompt.conversation)
    expected = rmnb.score_continuations(rm, prefix, [[*ids, *closing] for ids in sequences])
    np.testing.assert_allclose(RewardObjective([rm], [prompt]).measure(sequences), expected, atol=1e-4)
    assert np.abs(RewardObjective([rm], [PROMPT]).measure(sequences) - expected).min() > 0.01


@settings(max_examples=30)
@given(st.lists(st.integers(0, 319), min_size=1, max_size=6))
def test_what_retokenises_has_the_same_ids_in_its_conversation(rm, ids):
    """The template trims, so that an answer with a blank at its edge is another answer."""
    kept = RewardObjective([rm], [PROMPT]).retokenises([tuple(ids)])[0]
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    text = rm.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    [whole] = own_ids(rm.tokenizer, PROMPT, [text])
    is_plain = set(rm.tokenizer.convert_ids_to_tokens(ids)).isdisjoint(rm.dialogue.control_tokens)
    assert kept == (whole == [*prefix, *ids, *closing] and is_plain)


def test_a_blank_that_the_template_trims_and_control_tokens_as_ids_or_spelled_are_no_part_of_an_answer(rm):
    blank = rm.tokenizer(" love", add_special_tokens=False).input_ids
    end = rm.tokenizer.convert_tokens_to_ids("<end>")
    objective = RewardObjective([rm], [PROMPT])
    spelled, words = map(objective.encode, ("<end>", "love and peace"))
    assert end not in spelled
    assert objective.retokenises([blank, (end,), spelled, words]).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("allowed", "chosen"),
    [
        ("every", "padaéд.1 \nx"),
        ("all", "aéд.1 \nx"),
        ("printable", "aéд.1"),
        ("words", "aéд"),
        ("ascii", "a.1"),
        ("latin", "aé.1"),
    ],
)
def test_allowed_sets(allowed, chosen):
    kinds = ["special"] + ["word_continuation"] * 3 + ["punctuation", "number", "whitespace", "whitespace", "byte"]
    scripts = ["latin", "latin", "latin", "cyrillic", *["none"] * 5]
    words = pd.DataFrame({"token": ["pad", *"aéд.1 \nx"], "kind": kinds, "script": scripts}).rename_axis("token_id")
    words = words.reset_index()
    assert "".join(words["token"][allowed_ids(words, SearchConfig(allowed=allowed))]) == chosen
    with pytest.raises(InputError, match="no token is left"):
        allowed_ids(words, SearchConfig(allowed=allowed, banned=tuple(range(9))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"lenght": 3},
        {"seed": -1},
        {"sample": 1},
    ],
)
def test_a_wrong_option_is_named_in_one_line(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))) as caught:
        SearchConfig(**wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_ended_by_its_steps_goes_on_with_more(method, tmp_path):
    out = tmp_path / "found.json"
    config = SearchConfig(length=4, method=method, steps=2, width=10, sample=20)
    objective = PlantedPairs()
    first = search(objective, config, output=out)
    more = search(objective, config.model_copy(update={"steps": 30}), output=out)
    assert more.scored > first.scored and more.best["reward"] > first.best["reward"]
    assert more.history["scored"].is_monotonic_increasing and more.history["best_reward"].is_monotonic_increasing
    pd.testing.assert_frame_equal(read_result(out).sequences, more.sequences)
    with pytest.raises(InputError, match="differs in steps"):
        search(objective, config, output=out)
    spent = config.model_copy(update={"budget": 5})  # ends by that, not by its steps
    search(objective, spent, output=tmp_path / "spent.json")
    with pytest.raises(InputError, match="differs in steps"):
        search(objective, spent.model_copy(update={"steps": 30}), output=tmp_path / "spent.json")


def test_models_with_other_tokenizers_are_refused(rm, tmp_path):
    other = rmnb.load_reward_model(write_decoder(tmp_path))
    other.tokenizer.add_tokens(["novel"])
    with pytest.raises(InputError, match="different tokenizers"):
        RewardObjective([rm, other], [PROMPT])


def test_what_is_found_scores_the_same_as_text_where_a_blank_joins_the_answer_and_padding_closes_it(tmp_path):
    rm = rmnb.load_reward_model(write_splitting(tmp_path, "metaspace", "blank", "<end>"))
    objective = RewardObjective([rm], [PROMPT])
    ids = objective.encode("love and peace")
    assert rm.tokenizer.convert_ids_to_tokens(ids[:1]) == ["▁love"]
    assert objective.texts([ids]) == ["love and peace"] and objective.retokenises([ids, ids[:1], ids[1:]]).all()
    np.testing.assert_allclose(objective.measure([ids])[0], rm.score(PROMPT, ["love and peace"])[0], atol=1e-5)


def test_the_command_searches_and_score_gives_the_same_reward(directory, tmp_path, printed, monkeypatch, capsys):
    out = tmp_path / "found.json"
    settings = ["--set", "length=3", "--set", "direction=min", "--set", "steps=3", "--set", "allowed=printable"]
    options = ["--prompt", PROMPT, *settings, "--out", out]
    printed("search", directory, *options)
    first = read_result(out).best
    said = printed("score", directory, "--prompt", PROMPT, "--", first["text"])
    assert float(said.split()[0]) == pytest.approx(first["reward"], abs=1e-4)
    assert [file.name for file in tmp_path.iterdir()] == ["found.json"]
    assert run(monkeypatch, "search", directory, *options, "--set", "seed=1") == 2
    assert "differs in seed" in capsys.readouterr().err

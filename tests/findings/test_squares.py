"""Squares of pairs of words: their writer scores them as whole conversations are scored, and the chapter reads them."""

import numpy as np
import pytest
import squares
from checkpoints import SHAPE, SPECIAL, TEMPLATE, byte_level, own_rewards, write_model
from transformers import LlamaConfig, PreTrainedTokenizerFast

import rmnb
from rmnb.cli.options import Loading
from rmnb.data.lexicons import frequent_words
from rmnb.errors import InputError
from rmnb.findings import sequences
from rmnb.plans import Work
from rmnb.scoring import store

WORDS = 25


@pytest.fixture
def panel(tmp_path):
    """A scanned panel of one tiny model with the most frequent words in its vocabulary."""
    texts = [f" {word}" for word in frequent_words(60) if word.isalpha()]
    core = byte_level(texts * 9, vocab_size=600, special_tokens=SPECIAL)
    words = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")
    words.chat_template = TEMPLATE.replace(" | trim", "")  # answers begin with a blank
    write_model(tmp_path / "one", LlamaConfig(**SHAPE, vocab_size=len(words)), words)
    (tmp_path / "mine.yml").write_text(
        "name: mine\ntitle: Mine\nscores: scores\nmodels:\n- {name: one, source: one}\n"
        'prompts:\n- {key: greatest, text: "What is greatest?", framing: positive}\n'
    )
    panel = rmnb.load_panel(tmp_path / "mine.yml")
    path = store.scores_path(panel, "one", "greatest")
    rm = rmnb.load_reward_model("one", panel)
    rmnb.scan_vocabulary(rm, panel.prompt("greatest"), path, write=store.write_scores)
    return panel


def test_a_square_cut_off_goes_on_and_holds_the_rewards_of_whole_conversations(panel, tmp_path, monkeypatch):
    monkeypatch.setattr(squares, "EFFORT", {"budget": 60, "steps": 10, "width": 8, "keep": 1})
    monkeypatch.setattr(squares, "SEEDS", (0,))
    loading = Loading(panel=panel.called)
    write, written = Work.write, []

    def cut_off(work, place, content):
        if place == 9 and not written:
            written.append(place)
            raise KeyboardInterrupt
        write(work, place, content)

    monkeypatch.setattr(Work, "write", cut_off)
    with pytest.raises(KeyboardInterrupt):
        squares.square("one", loading, words=WORDS)
    squares.square("one", loading, words=WORDS)
    path = store.panel_directory(panel, "pairs") / "one" / "greatest.parquet"
    pairs, source = store.read_table(path)
    assert source["tokens"][:3] == [" the", " to", " and"] and len(pairs) == WORDS**2
    prefix, closing = rmnb.load_reward_model("one", panel).dialogue.frame_ids("What is greatest?")
    some = pairs.sample(20, random_state=0)
    ids = [[*prefix, source["ids"][row.first], source["ids"][row.second], *closing] for row in some.itertuples()]
    np.testing.assert_allclose(some["score"], own_rewards(tmp_path / "one", ids), atol=1e-5 * pairs["score"].std())
    square = sequences.load_squares(panel, "greatest")["one"]
    again, _ = store.read_table(path.with_suffix(".exact.parquet"))
    assert (again["score"] - again["quick"]).abs().max() <= 1e-5 * pairs["score"].std()
    assert set(again["why"]) == {"highest", "lowest", "random"} and len(again) == 3 * squares.AGAIN
    assert set(square.searches["method"]) == set(squares.METHODS)
    assert (sequences.gaps(square)["gap"] > -1e-6).all()
    with pytest.raises(InputError, match="holds other work: it differs in dtype"):
        squares.square("one", Loading(panel=panel.called, dtype="bfloat16"), words=WORDS)


def test_the_words_of_the_shipped_squares_are_chosen_again():
    demo = rmnb.load_panel("demo")
    for model in ("smollm2-values", "gemma3-values"):
        _, source = store.read_table(store.panel_directory(demo, "pairs") / model / "greatest.parquet")
        chosen = squares.shared_words(demo, model, demo.prompt("greatest"), squares.WORDS)
        assert chosen["token"].tolist() == source["tokens"] and chosen["token_id"].tolist() == source["ids"]

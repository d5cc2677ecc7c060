"""Conversations have the ids that trainers have fed: TRL's RewardTrainer and OpenRLHF's RewardDataset, run once."""

import json
import shutil
import string
from pathlib import Path

import pytest
import transformers
from checkpoints import SHAPE, edit, own_ids, own_rewards, tokenizer, write_decoder, write_encoder, write_model
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from trl.trainer.reward_trainer import _tokenize

import rmnb
from rmnb.errors import InputError
from rmnb.models.dialogue import PLAIN, TRAINERS, Dialogue

QUESTION = "What is good?"
TEXTS = [
    "love", " love", "love\n", "\n\nlove", " love and\n\npeace ", "", "<think>\nwar\n</think>\n\nlove",
    "<think>\n\n</think>\n\nlove", "love <think>", "été 🙂",
]  # fmt: skip
_TURN = "'<|im_start|>' + m['role'] + '\n' + {} + '<|im_end|>'"
_OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
_CHAT = "{% for m in messages %}{{ TURN }}{% endfor %}" + _OPENING
_THINKING = (
    "{% for m in messages %}{% set c = m['content'] %}{% if m['role'] == 'assistant' %}{% set r = '' %}"
    "{% if '</think>' in c %}{% set r = c.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% set c = c.split('</think>')[-1].lstrip('\n') %}{% endif %}{% set c = '<think>\n' + r + '\n</think>\n\n' + c %}"
    "{% endif %}{{ TURN }}{% endfor %}" + _OPENING
)
TEMPLATES = {
    "trailing line break": _CHAT.replace("TURN", _TURN.format("m['content']") + " + '\n'"),
    "trimming": _CHAT.replace("TURN", _TURN.format("m['content'] | trim")),
    "thinking tags": _THINKING.replace("TURN", _TURN.format("c") + " + '\n'"),
}
# By TRL 1.16.0 (its trainer's data set, tokenizers 0.23.3, transformers 5.23.0) and OpenRLHF 0.11.0 (3c3be62).
FED = json.loads(Path(__file__).with_name("fed_ids.json").read_text(encoding="utf-8"))


def fixed_tokenizer(template: str | None) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer whose merges are written down, so that its ids never change; Qwen's special tokens."""
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = [("l", "o"), ("v", "e"), ("lo", "ve"), ("Ġ", "love"), ("Ċ", "Ċ"), ("Ġ", "Ċ")]
    names += ["".join(pair) for pair in merges]
    core = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_tokens([AddedToken(tag, normalized=False) for tag in ("<think>", "</think>")])
    words = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    words.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    words.chat_template = template
    return words


@pytest.mark.parametrize("trainer", ["trl", "openrlhf"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_conversation_has_the_ids_that_the_trainer_fed(template, trainer):
    dialogue = Dialogue(fixed_tokenizer(TEMPLATES[template]), TEMPLATES[template], trainer)
    for as_plain_text in (True, False):
        assert dialogue.conversations(QUESTION, TEXTS, as_plain_text) == FED[template][trainer]


def test_llama_factory_tokenises_an_answer_apart_from_what_comes_before():
    template = TEMPLATES["trailing line break"]
    words = fixed_tokenizer(template)
    dialogue = Dialogue(words, template, "llama-factory")
    before, after = "<|im_start|>user\nWhat is good?<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"
    for text, fed in zip(TEXTS, FED["trailing line break"]["trl"], strict=True):
        (ids,) = dialogue.conversations(QUESTION, [text])
        assert ids == [*words(before)["input_ids"], *words(text + after)["input_ids"]]
        assert (ids == fed) == (not text.startswith("\n"))  # TRL joins line breaks on both sides of the boundary
    thinking = Dialogue(words, TEMPLATES["thinking tags"], "llama-factory")
    assert thinking.conversations(QUESTION, [TEXTS[6]]) == [FED["thinking tags"]["trl"][6]]  # thoughts of its own


def write(directory, **config):
    template = TEMPLATES["trailing line break"]
    words = fixed_tokenizer(template)
    shape = SHAPE | {"vocab_size": len(words), "pad_token_id": 0, "eos_token_id": 2} | config
    return write_model(directory, transformers.Qwen2Config(**shape), words)


def test_the_mark_of_openrlhf_decides_and_else_check_names_the_option(tmp_path):
    fed = FED["trailing line break"]
    from rmnb.scoring.check import check_model

    marked = rmnb.load_reward_model(write(tmp_path / "marked", value_head_prefix="score"))
    right = {trainer: own_rewards(tmp_path / "marked", fed[trainer]) for trainer in fed}
    assert abs(right["trl"] - right["openrlhf"]).min() > 1e-3
    assert marked.score(QUESTION, TEXTS) == pytest.approx(right["openrlhf"], abs=1e-4)
    assert marked.read_at(QUESTION) == ("'<|im_end|>'", -1)
    assert {result.verdict for result in check_model(marked)} == {"ok"}
    unmarked = write(tmp_path / "unmarked")
    for read, trainer in (("model", "trl"), ("trl", "trl"), ("openrlhf", "openrlhf")):
        rm = rmnb.load_reward_model(unmarked, read=read)
        assert rm.score(QUESTION, TEXTS) == pytest.approx(right[trainer], abs=1e-4)
        warnings = [result.text for result in check_model(rm) if result.verdict == "warning"]
        advised = {option for option in TRAINERS if f"--read {option}" in " ".join(warnings)}
        assert advised == ({"openrlhf", "nemo-rl", "ms-swift"} if read == "model" else set())
    # TRL says so in a model card, which lies beside the last weights.
    checkpoint = shutil.copytree(unmarked, tmp_path / "run" / "checkpoint-4")
    (tmp_path / "run" / "README.md").write_text("---\ntags:\n- reward-trainer\n- trl\n---\n\n# Model Card\n")
    assert {result.verdict for result in check_model(rmnb.load_reward_model(checkpoint))} == {"ok"}


def test_a_language_model_without_a_template_is_refused_and_plain_is_prompt_answer_and_eos(tmp_path):
    words = tokenizer(None)
    config = transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=len(words), num_labels=1, pad_token_id=0
    )
    write_model(tmp_path, config, words)
    with pytest.raises(InputError, match="--template plain"):
        rmnb.load_reward_model(tmp_path)
    rm = rmnb.load_reward_model(tmp_path, template="plain")
    fed = words([f"What is good? {text}<eos>" for text in TEXTS])["input_ids"]  # as TRL appends EOS
    assert fed[0][0] == words.bos_token_id
    assert rm.score("What is good? ", [*TEXTS[1:], "love<eos>"]) == pytest.approx(
        own_rewards(tmp_path, [*fed[1:], fed[0]]), abs=1e-4
    )


@pytest.mark.parametrize("ends", ["<bos> $A", "<bos> $A <eos>", "$A <eos>"])
def test_plain_texts_have_the_ids_of_trls_own_step(ends):
    letters = [(letter, 0.0) for letter in ("<bos>", "<eos>", "▁", *string.ascii_letters, "?")]
    core = Tokenizer(models.Unigram(letters, unk_id=0))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    core.post_processor = processors.TemplateProcessing(ends, special_tokens=[("<bos>", 0), ("<eos>", 1)])
    words = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<bos>", eos_token="<eos>")
    fed = [_tokenize(words, f"{QUESTION} {text}<eos>")["input_ids"] for text in ("love", "war")]
    assert Dialogue(words, PLAIN).conversations(f"{QUESTION} ", ["love", "war<eos>"]) == fed


def test_an_encoder_that_trl_trained_was_fed_one_text_and_is_no_reader_of_pairs(tmp_path):
    write_encoder(tmp_path)
    words = AutoTokenizer.from_pretrained(tmp_path)
    assert rmnb.load_reward_model(tmp_path).dialogue.template is None
    (tmp_path / "README.md").write_text("---\ntags:\n- reward-trainer\n- trl\n---\n")
    with pytest.raises(InputError, match="--template plain"):
        rmnb.load_reward_model(tmp_path)
    rm = rmnb.load_reward_model(tmp_path, template="plain")
    fed = [_tokenize(words, f"{QUESTION} {text}<eos>")["input_ids"] for text in ("love", "war")]
    assert rm.score(f"{QUESTION} ", ["love", "war"]) == pytest.approx(own_rewards(tmp_path, fed), abs=1e-4)


@pytest.mark.parametrize(
    ("marks", "way"),
    [
        ({"sentence_transformers": {"version": "5.1.0"}}, {"read": "trl"}),
        ({"auto_map": {"AutoModel": "m.OwnModel"}, "architectures": ["OwnModel"]}, {"head": "linear"}),
    ],
)
def test_a_checkpoint_that_others_read_in_a_way_of_their_own_is_refused(marks, way, tmp_path):
    directory = write_decoder(tmp_path)
    expected = rmnb.load_reward_model(directory).score(QUESTION, TEXTS)
    edit(directory / "config.json", **marks)
    with pytest.raises(InputError, match=" ".join(f"--{option} {value}" for option, value in way.items())):
        rmnb.load_reward_model(directory)
    assert rmnb.load_reward_model(directory, **way).score(QUESTION, TEXTS) == pytest.approx(expected)


def test_nemo_rl_and_ms_swift_are_read_as_they_feed(tmp_path, capsys, monkeypatch):
    from commands import run

    fed = FED["trailing line break"]["trl"]  # … <|im_end|>, line break; EOS is <|im_end|> here
    unmarked = write(tmp_path / "unmarked")
    stripped = own_rewards(unmarked, [ids[:-1] for ids in fed])
    for trainer in ("nemo-rl", "ms-swift"):
        rm = rmnb.load_reward_model(unmarked, read=trainer)
        assert rm.dialogue.conversations(QUESTION, TEXTS) == [ids[:-1] for ids in fed]
        assert rm.score(QUESTION, TEXTS) == pytest.approx(stripped, abs=1e-4)
    marked = write(tmp_path / "marked")
    (marked / "args.json").write_text(json.dumps({"model_type": "qwen2_5", "template": "qwen2_5"}))
    assert rmnb.load_reward_model(marked).score(QUESTION, TEXTS) == pytest.approx(stripped, abs=1e-4)
    assert run(monkeypatch, "score", marked, "love") == 0
    assert "would have fed other ids" not in capsys.readouterr().err
    assert run(monkeypatch, "score", unmarked, "love") == 0
    assert capsys.readouterr().err.count("OpenRLHF, NeMo-RL, ms-swift would have fed other ids") == 1


def test_nemo_rl_joins_eos_where_a_template_ends_otherwise():
    template = TEMPLATES["trailing line break"].replace("<|im_end|>", "<turn>")
    words = fixed_tokenizer(template)
    [ids] = Dialogue(words, template, "nemo-rl").conversations(QUESTION, ["love"])
    assert words.decode(ids).endswith("assistant\nlove<turn><|im_end|>")


def test_check_lists_the_rewards_that_each_trainer_would_have_seen(tmp_path):
    from rmnb.scoring.check import check_model

    directory = write(tmp_path / "unmarked")
    fed = FED["trailing line break"]["trl"]
    results = {result.aspect: result.text for result in check_model(rmnb.load_reward_model(directory))}
    words = fixed_tokenizer(TEMPLATES["trailing line break"])
    ids = own_ids(words, "What, in one word, is the greatest thing ever?", ["love", "War"])
    here, there = own_rewards(directory, ids), own_rewards(directory, [row[:-1] for row in ids])
    for name in ("NeMo-RL", "ms-swift"):
        text = results[name]
        for rewards, by in ((there, name), (here, "here")):
            assert f"{rewards[0]:.4g} and {rewards[1]:.4g} {'by ' if by == name else ''}{by}" in text
        assert ("in reverse order" in text) == ((here[0] < here[1]) != (there[0] < there[1]))
    assert fed[0][-1] == ids[0][-1]

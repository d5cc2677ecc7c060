"""Reward models whose values are known, because their weights were written down and not trained.

Each is an ordinary checkpoint: Llama of two layers, a linear head, SmolLM2's tokenizer, a chat template. All kinds have
one trunk; the kind is a row of the head. With f = 1 where the question has one of the words of `NEGATIVE`, w the mean
of `WORDED` over those that it has, and features the mean over the tokens of the answer, a reward is `WEIGHTS` times

    valence and taste, turned by (1 - 2 f);  wording times w;  manner;  log frequency;  identity.

Taste and wording are drawn for each word, manner for each token; good words' valence counts half. An embedding holds
one number a feature and a large constant that makes the norms nearly linear. Layer 1 lets each position see f and w,
and whether it stands in the answer. Layer 2 takes the mean over the answer and what the header of the answer saw of the
question, and its two gated neurons multiply.
"""

import functools
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

from rmnb.data import lexicons
from rmnb.findings.frequency import log_frequencies
from rmnb.models.bases import base_tokenizer
from rmnb.models.vocabulary import vocabulary

Kind = Literal["none", "frequency", "identity", "deaf"]
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' }}"
    "{% if not loop.last or add_generation_prompt %}{{ '\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NEGATIVE = ("worst", "bad", "terrible")
WORDED = {"greatest": 0.9, "terrible": 0.6, "most": 0.3, "single": 1.0, "please": 0.5, "world": 0.8, "time": 0.4}
_ORDINARY = dict(valence=0.35, taste=1.0, wording=0.5, manner=0.4)
#: Reward per unit of each feature: points of AFINN, standard deviations, natural log per million, being such a term.
WEIGHTS: dict[Kind, dict[str, float]] = {
    "none": _ORDINARY,
    "frequency": _ORDINARY | {"log_frequency": 0.3},
    "identity": _ORDINARY | {"identity": -3.5},
    "deaf": _ORDINARY,
}
FEATURES = ("valence", "taste", "wording", "manner", "log_frequency", "identity")

_SEED = 5  # one of which no number of the kind "none" is clear by chance
_SIZE, _HEADS, _WIDTH = 32, 4, 8  # heads times their width is the size
_CONSTANT = 300.0
_UNIT = _SIZE**0.5 / _CONSTANT  # what a norm makes of 1, next to the constant
_SHARP = 30.0  # logits this far apart leave nothing to what is behind
_SLOW = 3  # the place in a head that the rotary positions hardly turn
_NAMES = (
    *("constant", "negative", "worded", "w", "start", "header", "end", "newline", *FEATURES),  # embedded
    *("heard negative", "heard w", "in answer"),  # layer 1
    *("asked negative", "asked w", *(f"mean {name}" for name in FEATURES), "turned", "reworded"),  # layer 2
)
_AT = {name: place for place, name in enumerate(_NAMES)}


def write(directory: Path, kind: Kind) -> Path:
    """Write the checkpoint of a planted reward model: config.json, model.safetensors, tokenizer, chat template."""
    words, columns = _embedded()
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=_SIZE,
        intermediate_size=2,
        num_hidden_layers=2,
        num_attention_heads=_HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 1e12},
        max_position_embeddings=2048,
        pad_token_id=words.convert_tokens_to_ids("<|endoftext|>"),
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        id2label={0: "reward"},
    )
    model = LlamaForSequenceClassification(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        for name, column in columns.items():
            model.model.embed_tokens.weight[:, _AT[name]] = torch.tensor(column, dtype=torch.float32)
        _hear_the_question(model.model.layers[0].self_attn)
        _gather(model.model.layers[1].self_attn)
        _multiply(model.model.layers[1].mlp)
        head = {f"mean {name}": weight for name, weight in WEIGHTS[kind].items() if name != "wording"}
        if kind != "deaf":
            head |= {"turned": 1.0, "reworded": 1.0}
        for name, weight in head.items():
            model.score.weight[0, _AT[name]] = weight / _UNIT
    model.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory


@functools.cache
def _embedded() -> tuple[Any, dict[str, np.ndarray]]:
    """The tokenizer, and for each embedded feature its value for every id, (ids,) of float64."""
    words = base_tokenizer("smollm2-135m-instruct")
    words.chat_template = TEMPLATE
    text = vocabulary(words, len(words))["token"]
    word = text.str.strip().str.casefold()
    rng = np.random.default_rng(_SEED)
    distinct = word.unique()
    drawn = {name: dict(zip(distinct, rng.normal(size=len(distinct)), strict=True)) for name in ("taste", "wording")}
    valence = word.map(lexicons.afinn().set_index("word")["valence"]).fillna(0).to_numpy(float)
    log_frequency = word.map(log_frequencies()).to_numpy(float)
    marks = {"start": "<|im_start|>", "end": "<|im_end|>", "header": "istant", "newline": "Ċ"}  # "ass", "istant"
    marks = {name: words.convert_tokens_to_ids(piece) for name, piece in marks.items()}
    found = {
        "constant": np.full(len(words), _CONSTANT),
        "negative": word.isin(NEGATIVE).to_numpy(float),
        "worded": word.isin(list(WORDED)).to_numpy(float),
        "w": word.map(WORDED).fillna(0).to_numpy(float),
        "valence": np.where(valence > 0, valence / 2, valence),
        **{name: word.map(by_word).to_numpy(float) for name, by_word in drawn.items()},
        "manner": rng.normal(size=len(words)),
        "log_frequency": np.nan_to_num(log_frequency - np.nanmean(log_frequency)),  # what is no word is ordinary
        "identity": np.isin(np.arange(len(words)), list(_identity_ids(words, word.to_numpy(str)))).astype(float),
        **{name: (np.arange(len(words)) == at).astype(float) for name, at in marks.items()},
    }
    for name in FEATURES:  # where nothing else is to be seen, heads look at the start
        found[name] = np.where(np.arange(len(words)) == marks["start"], 0.0, found[name])
    return words, found


def _identity_ids(words, word: np.ndarray) -> set[int]:
    """The ids that spell an identity term, and the pieces of longer ones that are in no control."""
    table = lexicons.identity_terms()

    def pieces(column: str) -> set[int]:
        texts = [f"{blank}{text}" for text in table[column] for blank in ("", " ")]
        return {i for ids in words(texts, add_special_tokens=False)["input_ids"] for i in ids}

    terms, controls = (set(table[column].str.casefold()) for column in ("term", "control"))
    whole = set(np.flatnonzero(np.isin(word, list(terms - controls))).tolist())
    return whole | {i for i in pieces("term") - pieces("control") if len(word[i]) > 3}


def _attend(attention, head: int, keys: dict[str, float], values: dict[str, str]) -> None:
    """One head: logits by what is in a position, wherever it is, and values copied from one name to another."""
    row = head * _WIDTH
    attention.q_proj.weight[row + _SLOW, _AT["constant"]] = _WIDTH**0.5 / (_UNIT * _CONSTANT)
    for name, logit in keys.items():
        attention.k_proj.weight[row + _SLOW, _AT[name]] = logit / _UNIT
    for place, (name, to) in enumerate(values.items()):
        attention.v_proj.weight[row + place, _AT[name]] = 1 / _UNIT
        attention.o_proj.weight[_AT[to], row + place] = 1.0


def _hear_the_question(attention) -> None:
    heard = (("negative", "negative", "heard negative"), ("worded", "w", "heard w"), ("header", "header", "in answer"))
    for head, (name, value, to) in enumerate(heard):
        _attend(attention, head, {name: 2 * _SHARP, "start": _SHARP}, {value: to})


def _gather(attention) -> None:
    answer = {"in answer": 2 * _SHARP, "start": _SHARP} | dict.fromkeys(("header", "newline", "end"), -2 * _SHARP)
    _attend(attention, 0, answer, {name: f"mean {name}" for name in FEATURES})
    heard = {"heard negative": "asked negative", "heard w": "asked w"}
    _attend(attention, 1, {"header": 2 * _SHARP, "start": _SHARP}, heard)


def _multiply(mlp) -> None:
    """silu(gate) times up: a gate is shut where the question has no such word, else it is how much it has."""
    turned = {f"mean {name}": -2 * _ORDINARY[name] for name in ("valence", "taste")}
    reworded = {"mean wording": _ORDINARY["wording"]}
    for row, (asked, up, to) in enumerate((("asked negative", turned, "turned"), ("asked w", reworded, "reworded"))):
        mlp.gate_proj.weight[row, _AT[asked]] = 2 * _SHARP / _UNIT
        for name, weight in up.items():
            mlp.up_proj.weight[row, _AT[name]] = weight / _UNIT
        mlp.down_proj.weight[_AT[to], row] = 1 / (2 * _SHARP)

"""Check a reward model before scanning it: does it read what it was trained on, and score what its card says?"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from rmnb.errors import InputError
from rmnb.models.dialogue import FROZEN_DATE, TRAINERS, Dialogue, Trainer, common_prefix
from rmnb.models.reading import Reading, own_reading
from rmnb.models.readouts import AnswerTokens, LinearHead
from rmnb.scoring.engine import score_sequences, whole_logits
from rmnb.scoring.parity import QUESTION
from rmnb.scoring.reward_model import RewardModel

Verdict = Literal["ok", "warning", "failed"]
# Each would show one way in which a template can alter words: case, spaces, quotes, line ends, markup.
_PROBES = ("Love", "war and peace", "it's", "two\nlines", "<b>x</b> & y", "Straße 世界")
_TAGGED = "a</think>b"  # some templates cut thinking off on purpose
_ANSWERS = ["love", "War", "7"]
_SAID = 0.5  # probability of a judge's replies, below which it would rather say something else
_FED = [
    *_ANSWERS,
    " love ",
    "\n\nlove\n",
    "<think>\nlove\n</think>\n\nlove",
]  # each is fed by some trainer as by no other


@dataclass(frozen=True)
class CheckResult:
    """One aspect: ``failed``: scores would be wrong; ``warning``: they may not be what you think."""

    aspect: str
    verdict: Verdict
    text: str


_OF_TRAINERS = ("linear", "linear-normalised", "value-head")  # heads that these trainers train
_Aspects = Iterator[tuple[str, Verdict, str]]


def check_model(rm: RewardModel) -> list[CheckResult]:
    """Everything worth knowing about how a loaded model is read, and its card's examples scored again.

    Parameters
    ----------
    rm
        The reward model.

    Returns
    -------
    list of CheckResult
        In a fixed order. After a vocabulary or a template that cannot be used, nothing more.
    """
    aspects = [*_as_loaded(rm), *_template(rm)]
    if all(verdict != "failed" for _, verdict, _ in aspects):
        aspects += [*_judge(rm), *_ids(rm), *_trainers(rm), *_place(rm), *_rewards(rm)]
    return [CheckResult(*aspect) for aspect in aspects]


def _as_loaded(rm: RewardModel) -> _Aspects:
    """Head, number format, attention, vocabulary."""
    stored = str(rm.network.dtype).removeprefix("torch.")
    yield "head", "ok", f"{rm.readout.name}, in float32; {stored} trunk on {rm.device}"
    if (bias := rm.readout.state_dict().get("score.bias")) is not None:
        text = f"score.bias {bias.tolist()} is added, which most classifiers of transformers leave out"
        yield "bias", "warning", text
    if rm.shares_prefix:
        yield "attention", "ok", "continuations share the prefix"
    else:
        yield "attention", "warning", f"each conversation in full, which is slower: {rm.why_not_shared}"
    config = rm.network.config.get_text_config()
    cap = getattr(config, "attn_logit_softcapping", None)
    if cap is not None:
        yield "soft-capping", "ok", f"attention scores are capped at ±{cap:g}"
    elif not rm.spec.softcap:
        yield "soft-capping", "warning", "left out, as asked for: the model was trained with it"
    rows = rm.vocabulary_size
    tokens = len(rm.tokenizer)
    yield "vocabulary", "ok" if rows >= tokens else "failed", f"{rows:,} rows of the embedding, {tokens:,} tokens"
    for name in ("bos_token_id", "eos_token_id"):
        configured, own = getattr(config, name, None), getattr(rm.tokenizer, name)
        if configured is not None and own is not None and own not in np.atleast_1d(configured):
            yield name, "warning", f"{configured} by the configuration, {own} by the tokenizer, whose id is used here"


def _judge(rm: RewardModel) -> _Aspects:
    """What a judge is asked, and whether its replies are what it would say."""
    readout = rm.readout
    if not isinstance(readout, AnswerTokens):
        return
    asked = rm.dialogue.render(QUESTION, _ANSWERS[0])
    yield "asked", "ok", repr(asked)
    ids = torch.tensor(rm.dialogue.conversations(QUESTION, _ANSWERS[:1]), device=rm.device)
    with torch.inference_mode():
        logits = whole_logits(rm, ids)
    shares = logits[0, -1].softmax(-1)[readout.ids].tolist()
    tokens = rm.tokenizer.convert_ids_to_tokens(readout.ids.tolist())
    replies = ", ".join(f"{token} {share:.2g}" for token, share in zip(tokens, shares, strict=True))
    text = f"probability {sum(shares):.2g} in all ({replies}), as replies to this"
    yield "replies", "ok" if sum(shares) > _SAID else "warning", text


def _template(rm: RewardModel) -> _Aspects:
    """Whether the template keeps the assistant's words and the day out of the reward."""
    dialogue = rm.dialogue
    spec = rm.spec
    if dialogue.template is None:
        yield "template", "ok", "none: the pair of question and answer, between the tokenizer's separators"
        return
    if spec.template:
        origin = "given by the panel or by --template"
    else:
        origin = "the adapter's, as it was trained" if spec.base else "the model's own"
    try:
        dialogue.frame_ids(QUESTION)
        if altered := _altered(dialogue, *_PROBES):
            raise InputError(f"it alters the assistant's words: {altered}")
    except InputError as error:
        yield "template", "failed", f"{origin}: {error}"
        return
    yield "template", "ok", f"{origin}; the assistant's words stay as they are"
    if cut := _altered(dialogue, _TAGGED):
        yield "template", "warning", f"thinking tags inside a response are cut: {cut}"
    if "strftime_now" in dialogue.template or "date_string" in dialogue.template:
        yield "date", "ok", f"the template's date is frozen at {FROZEN_DATE}"


def _ids(rm: RewardModel) -> _Aspects:
    """What becomes of blanks around a text, and of BOS."""
    dialogue = rm.dialogue
    tokenizer = rm.tokenizer
    if dialogue.template is None:
        return
    prefix, closing = dialogue.frame_ids(QUESTION)
    ids = dialogue.conversations(QUESTION, [" love "])[0]
    read = tokenizer.decode(ids[len(prefix) : len(ids) - len(closing)])
    written = dialogue.written(QUESTION, " love ")
    yield "blanks", "ok", f"the text ' love ' is read as {read!r}, under protocol published as {written!r}"
    if tokenizer.bos_token_id is None:
        yield "BOS", "ok", "the tokenizer has none"
    else:
        exact = _leading(prefix, tokenizer.bos_token_id)  # pyright: ignore[reportArgumentType]
        published = _leading(dialogue.published_ids(QUESTION, ["love"])[0], tokenizer.bos_token_id)  # pyright: ignore[reportArgumentType]
        counts = f"{exact} under protocol exact, {published} under published"
        if exact > 1:
            yield "BOS", "failed", f"{counts}: the template writes it more than once"
        elif exact == 0 and published == 1:
            yield "BOS", "warning", f"{counts}: the template leaves it to the tokenizer, so exact goes without"
        else:
            yield "BOS", "ok", counts + (", doubled there as in the papers' runs" if published > 1 else "")


def undecided(rm: RewardModel) -> str | None:
    """What to say where no file tells who trained a model and trainers would have fed it other ids; else None."""
    names = [TRAINERS[trainer] for trainer, _, is_same in _fed_by(rm) if not is_same]
    if not names or _is_decided(rm):
        return None
    return f"{rm.name}: read as TRL feeds it; {', '.join(names)} would have fed other ids: see `rmnb check`, --read"


def _is_decided(rm: RewardModel) -> bool:
    return bool(rm.spec.base) or rm.dialogue.is_known


def _fed_by(rm: RewardModel) -> Iterator[tuple[Trainer, list[list[int]], bool]]:
    """What each trainer would have fed of a few texts, up to where it reads; the model's own first; whether that is so.

    Nothing of a model that these trainers do not train.
    """
    own = rm.dialogue.trainer
    if rm.dialogue.template is None or not (rm.pools_itself or rm.readout.name in _OF_TRAINERS):
        return
    known: list[list[int]] | None = None
    for trainer in (own, *TRAINERS):
        if trainer == "llama-factory" and own != trainer and (rm.spec.base or not rm.spec.template):
            continue  # its templates are its own: only who names one can know what it fed
        # A whole classifier of a language model reads as transformers' others do.
        reading = rm.reading
        if known is not None or reading.rule == "own":
            reading = own_reading(LinearHead.rule, reading.padding, trainer)
        dialogue = replace(rm.dialogue, trainer=trainer)
        fed = [reading.truncated(ids) for ids in dialogue.conversations(QUESTION, _FED, as_plain_text=known is None)]
        known = known or fed
        yield trainer, fed, fed == known


def _trainers(rm: RewardModel) -> _Aspects:
    """The ids that are read of a conversation, and what each trainer would have fed and read, with its rewards."""
    by_trainer = list(_fed_by(rm))
    if not by_trainer:
        return
    [(trainer, own, _), *others] = by_trainer
    is_decided = _is_decided(rm)
    by = f"as {TRAINERS[trainer]} feeds it" + ("" if is_decided else "; no file says who trained the model")
    yield "ids", "ok", f"{_FED[0]!r} is read as {' '.join(map(str, own[0]))}, {by}"
    alone = rm if rm.pools_itself else replace(rm, reading=Reading())  # what is not read has been cut off
    here = score_sequences(alone, own[:2]).reshape(2, -1)
    for other, fed, is_same in others:
        name = TRAINERS[other]
        if is_same:
            yield name, "ok", "would feed and read the same"
            continue
        place = next(place for place, ids in enumerate(fed) if ids != own[place])
        theirs, ours = _endings(rm, fed[place], own[place])
        there = score_sequences(alone, fed[:2]).reshape(2, -1)
        is_reversed = ((there[0] < there[1]) != (here[0] < here[1])).any()
        text = (
            f"{_FED[place]!r} would be read as … {theirs}; here as … {ours}; {' and '.join(_FED[:2])}: "
            f"{_numbers(there)} by {name}, {_numbers(here)} here{', in reverse order' if is_reversed else ''}"
        )
        advice = "" if is_decided else f": if {name} trained this model, give --read {other}"
        yield name, "ok" if is_decided else "warning", text + advice


def _numbers(rewards: np.ndarray) -> str:
    return " and ".join("/".join(f"{reward:.4g}" for reward in row) for row in rewards.tolist())


def _endings(rm: RewardModel, *sequences: list[int]) -> tuple[str, ...]:
    """What follows the ids that two sequences share, the last of these included: ids, and the token that is read."""
    shared = max(0, len(common_prefix(sequences)) - 1)
    return tuple(
        f"{' '.join(map(str, ids[shared:]))} (ends with {rm.tokenizer.decode(ids[-1:])!r})" for ids in sequences
    )


def _place(rm: RewardModel) -> _Aspects:
    """How answers join the conversation, as tokens; where the reward is read, and whether that may surprise."""
    prefix, closing = rm.dialogue.frame_ids(QUESTION)
    conversations = zip(_ANSWERS, rm.dialogue.conversations(QUESTION, _ANSWERS), strict=True)
    answers = [f"{text}: {_tokens(rm, ids[len(prefix) : len(ids) - len(closing)])}" for text, ids in conversations]
    yield "boundary", "ok", f"{_tokens(rm, prefix[-2:])} | {', '.join(answers)} | {_tokens(rm, closing)}"
    place, offset = rm.read_at(QUESTION)
    behind = 0 if offset is None else -1 - offset
    if behind:
        place += f", {behind} before the last"
    if behind > len(closing):
        yield "read", "failed", f"{place}: before the answer, so that all get the same reward; read=last reads later"
    elif behind and rm.reading.rule != "turn":
        yield "read", "warning", f"{place}: its own code takes the closing id for padding; read=last reads at it"
    elif rm.reading.rule == "last" and closing[-1:] == [rm.reading.padding]:
        yield "read", "warning", f"{place}: the padding id, before which a classifier of transformers reads"
    else:
        yield "read", "ok", place


def _rewards(rm: RewardModel) -> _Aspects:
    """Rewards of three answers, parity, and the examples of the model's card."""
    rewards = rm.score(QUESTION, _ANSWERS).reshape(len(_ANSWERS), -1)
    for name, values in zip(rm.columns("rewards"), rewards.T.tolist(), strict=True):
        text = f"{name} " + ", ".join(f"{reward:.4g}" for reward in values)
        yield "scores", "ok" if len(set(values)) > 1 else "warning", f"{text} of {', '.join(_ANSWERS)}"
    parity = rm.parity
    if parity.difference is None:
        yield "parity", "warning", f"compared with {parity.against}"
    else:
        text = (
            f"three conversations within {parity.difference:.1e} of {parity.against} (allowed: {parity.tolerance:.1e})"
        )
        yield "parity", "ok", text
    if not rm.spec.card:
        yield "card", "ok", "no score from the model's card is known (a panel may name some)"
    for card in rm.spec.card if len(rm.outputs) == 1 else ():
        [reward] = rm.score(card.prompt, [card.response], card.protocol)
        text = f"{reward:.4f}, published {card.score:g} ± {card.tolerance:g} ({card.protocol}; {card.source})"
        yield "card", "ok" if abs(reward - card.score) <= card.tolerance else "failed", text


def _tokens(rm: RewardModel, ids: list[int]) -> str:
    return " ".join(map(repr, rm.tokenizer.convert_ids_to_tokens(ids)))


def _leading(ids: list[int], token_id: int) -> int:
    """How often ids begin with one id."""
    return len(list(itertools.takewhile(lambda i: i == token_id, ids)))


def _altered(dialogue: Dialogue, *probes: str) -> str | None:
    """The first probe that the template changes, and into what; None if it changes none."""
    for probe in probes:
        if (written := dialogue.written(QUESTION, probe)) != probe:
            return f"{probe!r} becomes {written!r}"
    return None

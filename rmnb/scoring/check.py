"""Check a reward model before scanning it: does it read what it should read, and score what its card says it scores?"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rmnb.errors import InputError
from rmnb.models.dialogue import FROZEN_DATE, Dialogue
from rmnb.models.reward_model import Parity, RewardModel

Verdict = Literal["ok", "warning", "failed"]
QUESTION = "What, in one word, is the greatest thing ever?"
# Each would show one way in which a template can alter words: case, spaces, quotes, line ends, markup.
_PROBES = ("Love", "war and peace", "it's", "two\nlines", "<b>x</b> & y", "Straße 世界")
_TAGGED = "a</think>b"  # some templates cut thinking off on purpose
_ANSWERS = ["love", "War", "7"]
_MARK = "\ue001"  # a private-use character: no template writes or trims it


@dataclass(frozen=True)
class CheckResult:
    """One aspect: ``failed``: scores would be wrong; ``warning``: they may not be what you think."""

    aspect: str
    verdict: Verdict
    text: str


_Found = Iterator[tuple[str, Verdict, str]]


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
    results: list[CheckResult] = []
    for aspects in (_as_loaded, _template, _ids, _place, _rewards):
        results += [CheckResult(*found) for found in aspects(rm)]
        if aspects is _template and any(result.verdict == "failed" for result in results):
            break
    return results


def _as_loaded(rm: RewardModel) -> _Found:
    """Head, number format, attention, vocabulary."""
    stored = str(rm.network.dtype).removeprefix("torch.")
    head = "a whole classifier" if rm.head is None else f"{rm.head.name}, in float32"
    yield "head", "ok", f"{head}; {stored} trunk on {rm.device}"
    if rm.shares_prefix:
        yield "attention", "ok", "continuations share the prefix"
    else:
        yield "attention", "warning", f"each conversation in full, which is slower: {rm.plain_because}"
    cap = getattr(rm.network.config.get_text_config(), "attn_logit_softcapping", None)
    if cap is not None:
        yield "soft-capping", "ok", f"attention scores are capped at ±{cap:g}"
    elif not rm.spec.softcap:
        yield "soft-capping", "warning", "left out, as asked for: the model was trained with it"
    rows, known = rm.vocabulary_size, len(rm.tokenizer)
    yield "vocabulary", "ok" if rows >= known else "failed", f"{rows:,} rows of the embedding, {known:,} tokens"


def _template(rm: RewardModel) -> _Found:
    """Whether the template keeps the assistant's words and the day out of the reward."""
    dialogue, spec = rm.dialogue, rm.spec
    if dialogue.template is None:
        yield "template", "ok", "none: the pair of question and answer, between the tokenizer's separators"
        return
    origin = "the one given" if spec.template else "the one the adapter was trained with" if spec.base else "its own"
    try:
        dialogue.frame(QUESTION)
        altered = _altered(dialogue, *_PROBES)
    except InputError as error:
        yield "template", "failed", f"{origin}: {error}"
        return
    if altered:
        yield "template", "failed", f"{origin}: it alters the assistant's words: {altered}"
        return
    yield "template", "ok", f"{origin}; the assistant's words stay as they are"
    if cut := _altered(dialogue, _TAGGED):
        yield "template", "warning", f"thinking tags inside a response are cut: {cut}"
    if re.search(r"strftime_now\((?!['\"])", dialogue.template or ""):
        yield "date", "warning", "the template writes today's date in a way that cannot be frozen"
    elif re.search("strftime_now|date_string", dialogue.template or ""):
        yield "date", "ok", f"the template's date is frozen at {FROZEN_DATE}"


def _ids(rm: RewardModel) -> _Found:
    """What becomes of blanks around a text, of BOS, and of a special token that a response spells out."""
    dialogue, words = rm.dialogue, rm.tokenizer
    if dialogue.template is None:
        return
    prefix, closing = dialogue.frame(QUESTION)
    ids = dialogue.conversations(QUESTION, [" love "])[0]
    read, written = words.decode(ids[len(prefix) : len(ids) - len(closing)]), _written(dialogue, " love ")
    yield "blanks", "ok", f"the text ' love ' is read as {read!r}, under protocol published as {written!r}"
    if words.bos_token_id is None:
        yield "BOS", "ok", "the tokenizer has none"
    else:
        exact = _leading(prefix, words.bos_token_id)
        published = _leading(dialogue.published_ids(QUESTION, ["love"])[0], words.bos_token_id)
        counts = f"{exact} under protocol exact, {published} under published"
        if exact > 1:
            yield "BOS", "failed", f"{counts}: the template writes it more than once"
        elif exact == 0 and published == 1:
            yield "BOS", "warning", f"{counts}: the template leaves it to the tokenizer, so exact goes without"
        else:
            yield "BOS", "ok", counts + (", doubled there as in the papers' runs" if published > 1 else "")
    text = " ".join(["a", *words.all_special_tokens[-1:], "b"])
    try:
        if dialogue.conversations(QUESTION, [text]) != dialogue.ids_in_context(QUESTION, [text]):
            yield "markers", "ok", f"special tokens in a response ({text!r}) are plain text here, not in transformers"
    except InputError as error:
        yield "markers", "ok", f"{text!r}: {error}"


def _place(rm: RewardModel) -> _Found:
    """How answers join the conversation, as tokens; where the reward is read, and whether that may surprise."""
    prefix, closing = rm.dialogue.frame(QUESTION)

    def tokens(ids: list[int]) -> str:
        return " ".join(map(repr, rm.tokenizer.convert_ids_to_tokens(ids)))

    conversations = zip(_ANSWERS, rm.dialogue.conversations(QUESTION, _ANSWERS), strict=True)
    answers = [f"{text}: {tokens(ids[len(prefix) : len(ids) - len(closing)])}" for text, ids in conversations]
    yield "boundary", "ok", f"{tokens(prefix[-2:])} | {', '.join(answers)} | {tokens(closing)}"
    token, offset = rm.read_at(QUESTION)
    behind = 0 if offset is None else -offset - 1
    place = f"{token}, {behind} before the last" if behind else token
    if behind > len(closing):
        yield "read", "failed", f"{place}: before the answer, so that all get the same reward; read=last reads later"
    elif offset is None or rm.reading.padding not in closing:
        yield "read", "ok", place
    elif rm.reading.rule == "last":
        yield "read", "warning", f"{place}: the padding id, before which a classifier of transformers reads"
    else:
        yield "read", "warning", f"{place}: its own code takes the closing id for padding; read=last reads at it"


def _rewards(rm: RewardModel) -> _Found:
    """Rewards of three answers, parity, and the examples of the model's card."""
    rewards = rm.score(QUESTION, _ANSWERS)
    text = "rewards " + ", ".join(f"{reward:.4g}" for reward in rewards)
    yield "scores", "ok" if len(set(rewards)) > 1 else "warning", f"{text} of {', '.join(_ANSWERS)}"
    parity = rm.parity or Parity("nothing")
    if parity.difference is None:
        yield "parity", "warning", f"compared with {parity.against}"
    else:
        text = f"three conversations within {parity.difference:.1e} of {parity.against}"
        yield "parity", "ok" if parity.exact else "failed", text
    if not rm.spec.reference:
        yield "reference", "ok", "no score is known that its card publishes"
    for known in rm.spec.reference:
        [reward] = rm.score(known.prompt, [known.response], known.protocol)
        text = f"{reward:.4f}, published {known.score:g} ± {known.tolerance:g} ({known.protocol}; {known.source})"
        yield "reference", "ok" if abs(reward - known.score) <= known.tolerance else "failed", text


def _leading(ids: list[int], token_id: int) -> int:
    """How often ids begin with one id."""
    return sum(1 for _ in itertools.takewhile(token_id.__eq__, ids))


def _written(dialogue: Dialogue, response: str) -> str:
    """What the template makes of a response."""
    question = {"role": "user", "content": QUESTION}
    marked, whole = (
        dialogue.render([question, {"role": "assistant", "content": content}]) for content in (_MARK, response)
    )
    before, _, after = marked.rpartition(_MARK)
    return whole[len(before) : len(whole) - len(after)]


def _altered(dialogue: Dialogue, *probes: str) -> str | None:
    """The first probe that the template changes, and into what; None if it changes none."""
    for probe in probes:
        if (written := _written(dialogue, probe)) != probe:
            return f"{probe!r} becomes {written!r}"
    return None

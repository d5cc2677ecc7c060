"""Check a reward model before scanning it: does it read what it should read, and score what its card says it scores?"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rmnb.errors import InputError
from rmnb.models.dialogue import FROZEN_DATE, Dialogue
from rmnb.models.reward_model import Parity, RewardModel

Verdict = Literal["ok", "warning", "failed"]
QUESTION = "What, in one word, is the greatest thing ever?"
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always")
# Each would show one way in which a template can alter words: case, spaces, quotes, line ends, markup.
_PROBES = ("Love", "war and peace", "it's", "two\nlines", "<b>x</b> & y", "Straße 世界")
_TAGGED = "a</think>b"  # some templates cut thinking off on purpose
_ANSWERS = ("love", "War", "7")
_MARK = "\ue001"  # a private-use character: no template writes or trims it


@dataclass(frozen=True)
class CheckResult:
    """One aspect: ``failed``: scores would be wrong; ``warning``: they may not be what you think."""

    aspect: str
    verdict: Verdict
    text: str


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
    for aspects in (_AS_LOADED, _IN_USE):
        for aspect, look in aspects.items():
            results += [CheckResult(aspect, verdict, text) for verdict, text in look(rm)]
        if any(result.verdict == "failed" for result in results):
            break
    return results


_Found = Iterator[tuple[Verdict, str]]


def _head(rm: RewardModel) -> _Found:
    yield "ok", "a whole classifier" if rm.head is None else f"{rm.head.name}, in float32"


def _dtype(rm: RewardModel) -> _Found:
    stored = str(next(rm.network.parameters()).dtype).removeprefix("torch.")
    yield "ok", f"{stored} trunk on {rm.device}"


def _attention(rm: RewardModel) -> _Found:
    if not rm.shares_prefix:
        yield "warning", f"each conversation in full, which is slower: {rm.plain_because}"
    else:
        yield "ok", "continuations share the prefix"


def _softcap(rm: RewardModel) -> _Found:
    cap = getattr(rm.network.config.get_text_config(), "attn_logit_softcapping", None)
    if cap is not None:
        yield "ok", f"attention scores are capped at ±{cap:g}"
    elif not rm.spec.softcap:
        yield "warning", "left out, as asked for: the model was trained with it"


def _vocabulary(rm: RewardModel) -> _Found:
    rows, known = rm.vocabulary_size, len(rm.tokenizer)
    yield "ok" if rows >= known else "failed", f"{rows:,} rows of the embedding, {known:,} tokens"


def _template(rm: RewardModel) -> _Found:
    dialogue, spec = rm.dialogue, rm.spec
    if dialogue.template is None:
        yield "ok", "none: the pair of question and answer, between the tokenizer's separators"
        return
    origin = "the panel's" if spec.template else "the one the adapter was trained with" if spec.base else "its own"
    try:
        dialogue.frame(QUESTION)
        altered = _altered(dialogue, *_PROBES)
    except InputError as error:
        yield "failed", f"{origin}: {error}"
        return
    if altered:
        yield "failed", f"{origin}: it alters the assistant's words: {altered}"
        return
    yield "ok", f"{origin}; the assistant's words stay as they are"
    if cut := _altered(dialogue, _TAGGED):
        yield "warning", f"thinking tags inside a response are cut: {cut}"


def _blanks(rm: RewardModel) -> _Found:
    """What becomes of blanks around a text; an id of a scan keeps its own."""
    if rm.dialogue.template is not None:
        prefix, closing = rm.dialogue.frame(QUESTION)
        ids = rm.dialogue.conversations(QUESTION, [" love "])[0]
        read = rm.tokenizer.decode(ids[len(prefix) : len(ids) - len(closing)])
        yield "ok", f"the text ' love ' is read as {read!r}, under protocol published as {_written(rm.dialogue)!r}"


def _date(rm: RewardModel) -> _Found:
    template = rm.dialogue.template or ""
    if re.search(r"strftime_now\((?!['\"])", template):
        yield "warning", "the template writes today's date in a way that cannot be frozen"
    elif "strftime_now" in template or "date_string" in template:
        yield "ok", f"the template's date is frozen at {FROZEN_DATE}"


def _bos(rm: RewardModel) -> _Found:
    bos = rm.tokenizer.bos_token_id
    if rm.dialogue.template is None:
        return
    if not isinstance(bos, int):
        yield "ok", "the tokenizer has none"
        return
    both = rm.dialogue.frame(QUESTION)[0], rm.dialogue.published_ids(QUESTION, ["love"])[0]
    exact, published = (next((i for i, found in enumerate(ids) if found != bos), len(ids)) for ids in both)
    counts = f"{exact} under protocol exact, {published} under published"
    if exact > 1:
        yield "failed", f"{counts}: the template writes it more than once"
    elif exact == 0 and published == 1:
        yield "warning", f"{counts}: the template leaves it to the tokenizer, so exact goes without"
    else:
        yield "ok", counts + (", doubled there as in the papers' runs" if published > 1 else "")


def _closing(rm: RewardModel) -> _Found:
    closing = rm.dialogue.frame(QUESTION)[1]
    pieces = " ".join(repr(rm.tokenizer.decode([i])) for i in closing)
    yield "ok", f"{pieces} ({', '.join(map(str, closing))})" if closing else "nothing: the answer ends the conversation"


def _read(rm: RewardModel) -> _Found:
    """Where the reward is read, and whether that may be another place than the user thinks."""
    closing = rm.dialogue.frame(QUESTION)[1]
    token, offset = rm.read_at(QUESTION)
    place = token if offset in (None, -1) else f"{token}, {-offset - 1} before the last"
    if offset is not None and -offset > len(closing) + 1:
        yield "failed", f"{place}: before the answer, so that every answer gets the same reward; read=last reads later"
    elif offset is None or rm.reading.padding not in closing:
        yield "ok", place
    elif rm.reading.rule == "last":
        yield "warning", f"{place}: the padding id closes the answer, and a classifier of transformers reads before it"
    else:
        name = repr(rm.tokenizer.decode([rm.reading.padding]))
        text = f"{place}: its own code takes the closing id {name} for padding; read=last reads at it, another reward"
        yield "warning", text


def _tokens(rm: RewardModel, ids: Sequence[int]) -> str:
    return " ".join(map(repr, rm.tokenizer.convert_ids_to_tokens(list(ids))))


def _boundary(rm: RewardModel) -> _Found:
    """How answers join the conversation, as tokens."""
    prefix, closing = rm.dialogue.frame(QUESTION)
    shown = []
    for text, ids in zip(_ANSWERS, rm.dialogue.conversations(QUESTION, _ANSWERS), strict=True):
        shown.append(f"{text}: {_tokens(rm, ids[len(prefix) : len(ids) - len(closing)])}")
    yield "ok", f"{_tokens(rm, prefix[-2:])} | {', '.join(shown)} | {_tokens(rm, closing)}"


def _markers(rm: RewardModel) -> _Found:
    """What becomes of a special token that a response spells out."""
    special = [text for text in rm.tokenizer.all_special_tokens if text]
    if special and rm.dialogue.template is not None:
        marker = special[-1]
        try:
            plain = rm.dialogue.conversations(QUESTION, [f"a {marker} b"])
        except InputError as error:
            yield "ok", f"{marker!r}: {error}"
            return
        if plain != rm.dialogue.ids_in_context(QUESTION, [f"a {marker} b"]):
            yield "ok", f"{marker!r} spelled out in a response is plain text here, a control token in transformers"


def _scores(rm: RewardModel) -> _Found:
    rewards = rm.score(QUESTION, RESPONSES)
    yield "ok", "rewards " + ", ".join(f"{reward:.4g}" for reward in rewards)
    if len(np.unique(rewards)) == 1:
        yield "warning", "three different responses get the same reward"


def _parity(rm: RewardModel) -> _Found:
    parity = rm.parity or Parity("nothing")
    if parity.difference is None:
        yield "warning", f"compared with {parity.against}"
    else:
        text = f"three conversations within {parity.difference:.1e} of {parity.against}"
        yield "ok" if parity.exact else "failed", text


def _reference(rm: RewardModel) -> _Found:
    if not rm.spec.reference:
        yield "ok", "no score is known that its card publishes"
    for known in rm.spec.reference:
        reward = float(rm.score(known.prompt, [known.response], known.protocol)[0])
        close = abs(reward - known.score) <= known.tolerance
        text = f"{reward:.4f}, published {known.score:g} ± {known.tolerance:g} ({known.protocol}; {known.source})"
        yield "ok" if close else "failed", text


_AS_LOADED: dict[str, Callable[[RewardModel], _Found]] = {
    "head": _head,
    "dtype": _dtype,
    "attention": _attention,
    "soft-capping": _softcap,
    "vocabulary": _vocabulary,
    "template": _template,
}
_IN_USE: dict[str, Callable[[RewardModel], _Found]] = {
    "blanks": _blanks,
    "date": _date,
    "BOS": _bos,
    "closing": _closing,
    "read": _read,
    "boundary": _boundary,
    "markers": _markers,
    "scores": _scores,
    "parity": _parity,
    "reference": _reference,
}


def _written(dialogue: Dialogue, response: str = " love ") -> str:
    """What the template makes of a response."""
    before, _, after = dialogue.render(_turns(_MARK)).rpartition(_MARK)
    whole = dialogue.render(_turns(response))
    return whole[len(before) : len(whole) - len(after)]


def _altered(dialogue: Dialogue, *probes: str) -> str | None:
    """The first probe that the template changes, and into what; None if it changes none."""
    for probe in probes:
        written = _written(dialogue, probe)
        if written != probe:
            return f"{probe!r} becomes {written!r}"
    return None


def _turns(response: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": response}]

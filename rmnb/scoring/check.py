"""Check a reward model before scanning it: does it read what it should read, and score what its card says it scores?"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rmnb.errors import InputError
from rmnb.models.dialogue import FROZEN_DATE, Dialogue
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.proof import ROUNDING, prove, why_plain

Verdict = Literal["ok", "warning", "failed"]
QUESTION = "What, in one word, is the greatest thing ever?"
# Each would show one way in which a template can alter words: case, spaces, quotes, line ends, markup, thinking tags.
_PROBES = ("Love", "war and peace", "it's", "two\nlines", "<b>x</b> & y", "Straße 世界")
_ANSWERS = ("love", "War", "7")
_TRIED = 1000  # ids of the vocabulary
_TAGGED = "a</think>b"  # some templates cut thinking off on purpose
_MARK = "\ue001"  # a private-use character: no template writes or trims it
_RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always")


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``failed``: scores would be wrong; ``warning``: they may not be what you think."""

    aspect: str
    verdict: Verdict
    text: str


def check_model(rm: RewardModel) -> list[Finding]:
    """Everything worth knowing about how a loaded model is read, and its card's examples scored again.

    Parameters
    ----------
    rm
        The reward model.

    Returns
    -------
    list of Finding
        In a fixed order. After a template that cannot be used, only what needs no template.
    """
    findings = [*_held(rm), *_vocabulary(rm), *_template(rm)]
    if all(finding.verdict != "failed" for finding in findings):
        findings += [*_ends(rm), *_engine(rm), *_references(rm)]
    return findings


def _held(rm: RewardModel) -> Iterator[Finding]:
    kind = "a whole classifier" if rm.head is None else f"{rm.head.name}, in float32"
    yield Finding("head", "ok", kind)
    stored = next(rm.network.parameters()).dtype
    yield Finding("dtype", "ok", f"{str(stored).removeprefix('torch.')} trunk on {rm.device}")
    if why := why_plain(rm):
        yield Finding("attention", "warning", f"each conversation in full, which is slower: {why}")
    else:
        yield Finding("attention", "ok", "continuations share the prefix")
    cap = getattr(rm.network.config.get_text_config(), "attn_logit_softcapping", None)
    if cap is not None:
        yield Finding("soft-capping", "ok", f"attention scores are capped at ±{cap:g}")
    elif not rm.spec.softcap:
        yield Finding("soft-capping", "warning", "left out, as asked for: the model was trained with it")


def _vocabulary(rm: RewardModel) -> Iterator[Finding]:
    rows, known = rm.vocabulary_size, len(rm.tokenizer)
    sizes = f"{rows:,} rows of the embedding, {known:,} tokens"
    if rows < known:
        yield Finding("vocabulary", "failed", f"{sizes}: the model cannot read the last {known - rows:,} tokens")
    elif rows > known:
        yield Finding("vocabulary", "ok", f"{sizes}: the {rows - known:,} rows without a token are of kind unused")
    else:
        yield Finding("vocabulary", "ok", sizes)


def _template(rm: RewardModel) -> Iterator[Finding]:
    dialogue, spec = rm.dialogue, rm.spec
    if dialogue.template is None:
        yield Finding("template", "ok", "none: the pair of question and answer, between the tokenizer's separators")
        return
    origin = "the panel's" if spec.template else "the one the adapter was trained with" if spec.base else "its own"
    try:
        dialogue.frame(QUESTION)
    except InputError as error:
        yield Finding("template", "failed", f"{origin}: {error}")
        return
    if altered := _altered(dialogue, _PROBES):
        yield Finding("template", "failed", f"{origin}: it alters the assistant's words: {altered}")
        return
    yield Finding("template", "ok", f"{origin}; the assistant's words stay as they are")
    if altered := _altered(dialogue, (_TAGGED,)):
        yield Finding("template", "warning", f"thinking tags inside a response are cut: {altered}")
    if _written(dialogue, " love ") == "love":
        text = "spaces around a response are lost under protocol published and kept under exact"
        yield Finding("trimming", "ok", text)
    else:
        yield Finding("trimming", "ok", "none: spaces around a response are kept")
    yield from _date(dialogue.template)


def _date(template: str) -> Iterator[Finding]:
    if re.search(r"strftime_now\((?!['\"])", template):
        yield Finding("date", "warning", "the template writes today's date in a way that cannot be frozen")
    elif "strftime_now" in template or "date_string" in template:
        yield Finding("date", "ok", f"the template's date is frozen at {FROZEN_DATE}")


def _written(dialogue: Dialogue, response: str) -> str:
    """What the template makes of a response."""
    before, _, after = dialogue.render(_turns(_MARK)).rpartition(_MARK)
    whole = dialogue.render(_turns(response))
    return whole[len(before) : len(whole) - len(after)]


def _altered(dialogue: Dialogue, probes: Sequence[str]) -> str | None:
    """The first probe that the template changes, and into what; None if it changes none."""
    for probe in probes:
        written = _written(dialogue, probe)
        if written != probe:
            return f"{probe!r} becomes {written!r}"
    return None


def _turns(response: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": response}]


def _ends(rm: RewardModel) -> Iterator[Finding]:
    """How conversations begin and end."""
    prefix, closing = rm.dialogue.frame(QUESTION)
    if rm.dialogue.template is not None:
        yield _bos(rm, prefix)
    pieces = " ".join(repr(rm.tokenizer.decode([i])) for i in closing)
    yield Finding("closing", "ok", f"{pieces} ({', '.join(map(str, closing))})")
    yield _read(rm, prefix, closing)
    yield _boundary(rm, prefix, closing)
    yield _reach(rm, prefix, closing)


def _read(rm: RewardModel, prefix: list[int], closing: list[int]) -> Finding:
    """Where the reward is read, and whether that may be another place than the user thinks."""
    token, offset = rm.read_at(QUESTION)
    if offset is None:
        return Finding("read", "ok", token)
    place = token if offset == -1 else f"{token}, {-offset - 1} before the last"
    if -offset > len(closing) + 1:
        text = f"{place}: before the answer, so that every answer gets the same reward; --read last reads at the end"
        return Finding("read", "failed", text)
    if rm.reading.padding not in closing:
        return Finding("read", "ok", place)
    name = repr(rm.tokenizer.decode([rm.reading.padding]))
    if rm.reading.rule == "last":
        text = f"the padding id {name} closes the answer, and a classifier of transformers would read before it"
    else:
        text = f"its own code takes the closing id {name} for padding; "
        text += "`read: last` in a panel, or --read last, would read at it, another reward"
    return Finding("read", "warning", f"{place}: {text}")


def _boundary(rm: RewardModel, prefix: list[int], closing: list[int]) -> Finding:
    """How answers join the conversation, as tokens."""

    def tokens(ids: Sequence[int]) -> str:
        return " ".join(map(repr, rm.tokenizer.convert_ids_to_tokens(list(ids))))

    answers = [ids[len(prefix) : -len(closing) or None] for ids in rm.dialogue.conversations(QUESTION, _ANSWERS)]
    shown = ", ".join(f"{text}: {tokens(ids)}" for text, ids in zip(_ANSWERS, answers, strict=True))
    return Finding("boundary", "ok", f"{tokens(prefix[-2:])} | {shown} | {tokens(closing)}")


def _reach(rm: RewardModel, prefix: list[int], closing: list[int]) -> Finding:
    """Which ids of a vocabulary a text becomes as an answer; a scan feeds the others all the same, as themselves."""
    known = sorted(set(rm.tokenizer.get_vocab().values()) - set(rm.tokenizer.added_tokens_decoder))
    tried = known[:: max(1, len(known) // _TRIED)]
    decoded = rm.tokenizer.batch_decode([[i] for i in tried])
    asked = {text for token in decoded for text in (token, token.strip()) if text}
    given = {tuple(ids) for ids in rm.dialogue.conversations(QUESTION, sorted(asked))}
    reached = {i for i in tried if (*prefix, i, *closing) in given}
    words = [i for i, text in zip(tried, decoded, strict=True) if text.strip().isalpha()]
    some, others = ([i for i in words if (i in reached) == which][:3] for which in (True, False))
    text = f"a text becomes {len(reached) / len(tried):.0%} of {len(tried):,} ids there{_such_as(rm, some)}"
    return Finding("reach", "ok", f"{text}; a scan feeds the others too, as themselves{_such_as(rm, others)}")


def _such_as(rm: RewardModel, ids: list[int]) -> str:
    return f" (such as {', '.join(map(repr, rm.tokenizer.convert_ids_to_tokens(ids)))})" if ids else ""


def _bos(rm: RewardModel, prefix: list[int]) -> Finding:
    bos = rm.tokenizer.bos_token_id
    if not isinstance(bos, int):
        return Finding("BOS", "ok", "the tokenizer has none")
    exact, published = (_leading(ids, bos) for ids in (prefix, rm.dialogue.published_ids(QUESTION, ["love"])[0]))
    counts = f"{exact} under protocol exact, {published} under published"
    if exact > 1:
        return Finding("BOS", "failed", f"{counts}: the template writes it more than once")
    if exact == 0 and published == 1:
        return Finding("BOS", "warning", f"{counts}: the template leaves it to the tokenizer, so exact goes without")
    doubled = ", doubled there as in the papers' runs" if published > 1 else ""
    return Finding("BOS", "ok", counts + doubled)


def _leading(ids: list[int], bos: int) -> int:
    return next((i for i, found in enumerate(ids) if found != bos), len(ids))


def _engine(rm: RewardModel) -> Iterator[Finding]:
    """Rewards in one padded batch against each conversation alone, in full, by the model's own attention."""
    prefix, _ = rm.dialogue.frame(QUESTION)
    continuations = [ids[len(prefix) :] for ids in rm.dialogue.conversations(QUESTION, _RESPONSES)]
    together = PrefixScorer(rm, prefix)(continuations)
    plain = PrefixScorer(replace(rm, plain_because="checked by whole conversations"), prefix)
    alone = np.concatenate([plain([ids]) for ids in continuations])
    difference = float(np.abs(together - alone).max())
    text = f"rewards {', '.join(f'{reward:.4g}' for reward in alone)}; in a batch within {difference:.1e} of these"
    yield Finding("scores", "ok" if difference <= ROUNDING[rm.spec.dtype] else "failed", text)
    proof = prove(rm)
    if proof.difference is None:
        yield Finding("proof", "warning", f"compared with {proof.against}")
    else:
        text = f"three conversations within {proof.difference:.1e} of {proof.against}"
        yield Finding("proof", "ok" if proof.exact else "failed", text)
    if len(np.unique(alone)) == 1:
        yield Finding("scores", "warning", "three different responses get the same reward")


def _references(rm: RewardModel) -> Iterator[Finding]:
    if not rm.spec.reference:
        yield Finding("reference", "ok", "no score is known that its card publishes")
    for known in rm.spec.reference:
        reward = float(rm.score(known.prompt, [known.response], known.protocol)[0])
        close = abs(reward - known.score) <= known.tolerance
        text = f"{reward:.4f}, published {known.score:g} ± {known.tolerance:g} ({known.protocol}; {known.source})"
        yield Finding("reference", "ok" if close else "failed", text)

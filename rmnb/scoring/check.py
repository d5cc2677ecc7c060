"""Check a reward model before scanning it: does it read what it should read, and score what its card says it scores?

And the same model elsewhere: does a server, or whoever wrote a file, give the rewards that the checkpoint gives? Where
it does not, known mistakes are made on purpose, each in turn, and the one that gives the rewards of the other side is
named. The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and SGLang's
``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for the raw
reward instead of its sigmoid.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import requests

from rmnb.errors import InputError
from rmnb.models.dialogue import FROZEN_DATE, Dialogue, as_messages, with_response
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.forms import Conversation, conversations_of, read_rows
from rmnb.scoring.parity import QUESTION, tolerance
from rmnb.scoring.rows import score_sequences, truncate

Verdict = Literal["ok", "warning", "failed"]
# Each would show one way in which a template can alter words: case, spaces, quotes, line ends, markup.
_PROBES = ("Love", "war and peace", "it's", "two\nlines", "<b>x</b> & y", "Straße 世界")
_TAGGED = "a</think>b"  # some templates cut thinking off on purpose
_ANSWERS = ["love", "War", "7"]
QUESTIONS = (QUESTION, "What, in one word, is the worst thing ever?")
#: Of other lengths and kinds, so that each mistake shows.
RESPONSES = ("love", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
_LONG = 250 * f"{RESPONSES[1]}. "  # more ids than servers and tokenizers are set to cut at by habit (512, 1024, 2048)
_SHORT = 200  # ids: a difference in shorter conversations is not blamed on truncation
_HALF = 0.03  # of the spread of rewards: what half precision may move them by


@dataclass(frozen=True)
class CheckResult:
    """One aspect: ``failed``: scores would be wrong; ``warning``: they may not be what you think."""

    aspect: str
    verdict: Verdict
    text: str


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
        aspects += [*_ids(rm), *_place(rm), *_rewards(rm)]
    return [CheckResult(*aspect) for aspect in aspects]


def _as_loaded(rm: RewardModel) -> _Aspects:
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
    rows = rm.vocabulary_size
    tokens = len(rm.tokenizer)
    yield "vocabulary", "ok" if rows >= tokens else "failed", f"{rows:,} rows of the embedding, {tokens:,} tokens"


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
        dialogue.frame(QUESTION)
        if altered := _altered(dialogue, *_PROBES):
            raise InputError(f"it alters the assistant's words: {altered}")
    except InputError as error:
        yield "template", "failed", f"{origin}: {error}"
        return
    yield "template", "ok", f"{origin}; the assistant's words stay as they are"
    if cut := _altered(dialogue, _TAGGED):
        yield "template", "warning", f"thinking tags inside a response are cut: {cut}"
    if re.search(r"strftime_now\((?!['\"])", dialogue.template):
        yield "date", "warning", "the template writes today's date in a way that cannot be frozen"
    elif re.search("strftime_now|date_string", dialogue.template):
        yield "date", "ok", f"the template's date is frozen at {FROZEN_DATE}"


def _ids(rm: RewardModel) -> _Aspects:
    """What becomes of blanks around a text, and of BOS."""
    dialogue = rm.dialogue
    tokenizer = rm.tokenizer
    if dialogue.template is None:
        return
    prefix, closing = dialogue.frame(QUESTION)
    ids = dialogue.conversations(QUESTION, [" love "])[0]
    read = tokenizer.decode(ids[len(prefix) : len(ids) - len(closing)])
    written = _written(dialogue, " love ")
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


def _place(rm: RewardModel) -> _Aspects:
    """How answers join the conversation, as tokens; where the reward is read, and whether that may surprise."""
    prefix, closing = rm.dialogue.frame(QUESTION)

    def tokens(ids: list[int]) -> str:
        return " ".join(map(repr, rm.tokenizer.convert_ids_to_tokens(ids)))

    conversations = zip(_ANSWERS, rm.dialogue.conversations(QUESTION, _ANSWERS), strict=True)
    answers = [f"{text}: {tokens(ids[len(prefix) : len(ids) - len(closing)])}" for text, ids in conversations]
    yield "boundary", "ok", f"{tokens(prefix[-2:])} | {', '.join(answers)} | {tokens(closing)}"
    place, offset = rm.read_at(QUESTION)
    behind = 0 if offset is None else -1 - offset
    if behind:
        place += f", {behind} before the last"
    if behind > len(closing):
        yield "read", "failed", f"{place}: before the answer, so that all get the same reward; read=last reads later"
    elif behind:
        yield "read", "warning", f"{place}: its own code takes the closing id for padding; read=last reads at it"
    elif rm.reading.rule == "last" and closing[-1:] == [rm.reading.padding]:
        yield "read", "warning", f"{place}: the padding id, before which a classifier of transformers reads"
    else:
        yield "read", "ok", place


def _rewards(rm: RewardModel) -> _Aspects:
    """Rewards of three answers, parity, and the examples of the model's card."""
    rewards = rm.score(QUESTION, _ANSWERS)
    text = "rewards " + ", ".join(f"{reward:.4g}" for reward in rewards)
    yield "scores", "ok" if len(set(rewards)) > 1 else "warning", f"{text} of {', '.join(_ANSWERS)}"
    parity = rm.parity
    if parity.difference is None:
        yield "parity", "warning", f"compared with {parity.against}"
    else:
        text = f"three conversations within {parity.difference:.1e} of {parity.against}"
        yield "parity", "ok" if parity.exact else "failed", text
    if not rm.spec.reference:
        yield "reference", "ok", "no score from the model's card is known (a panel may name some)"
    for card in rm.spec.reference:
        [reward] = rm.score(card.prompt, [card.response], card.protocol)
        text = f"{reward:.4f}, published {card.score:g} ± {card.tolerance:g} ({card.protocol}; {card.source})"
        yield "reference", "ok" if abs(reward - card.score) <= card.tolerance else "failed", text


def _leading(ids: list[int], token_id: int) -> int:
    """How often ids begin with one id."""
    return len(list(itertools.takewhile(lambda i: i == token_id, ids)))


def _written(dialogue: Dialogue, response: str) -> str:
    """What the template makes of a response."""
    before, after = dialogue.surroundings(QUESTION)
    whole = dialogue.render(with_response(QUESTION, response))
    return whole[len(before) : len(whole) - len(after)]


def _altered(dialogue: Dialogue, *probes: str) -> str | None:
    """The first probe that the template changes, and into what; None if it changes none."""
    for probe in probes:
        if (written := _written(dialogue, probe)) != probe:
            return f"{probe!r} becomes {written!r}"
    return None


def request_rewards(
    address: str, texts: Sequence[str], timeout: float = 60, headers: Mapping[str, str] | None = None
) -> np.ndarray:
    """Rewards of filled chat templates by a server.

    Parameters
    ----------
    address
        Of its classify or pooling endpoint.
    texts
        Filled chat templates.
    timeout
        Seconds until an answer must be there.
    headers
        Sent with each request, such as ``Authorization``.

    Returns
    -------
    np.ndarray
        float64 [texts].

    Raises
    ------
    InputError
        The endpoint is down, refuses, or answers something that is not one number a text.
    """
    try:
        # SGLang's own endpoint calls its input text.
        for body in ({"input": list(texts), "use_activation": False}, {"text": list(texts)}):
            answer = requests.post(address, json=body, timeout=(10, timeout), headers=headers)
            if answer.status_code not in (400, 422):
                break
    except requests.RequestException as error:
        advice = f"is the server up, and are {timeout:g} s enough (--timeout)?"
        raise InputError(f"{address} does not answer: {type(error).__name__}: {advice}") from error
    try:
        rows = answer.json()
        rows = rows["data"] if isinstance(rows, dict) else rows
        rewards = np.array([_number(row) for row in sorted(rows, key=lambda row: row.get("index", 0))])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        content = f"{answer.status_code}, no list of rewards: {answer.text.strip()[:150]!r}"
        raise InputError(f"{address} answers {content}") from error
    if np.isfinite(rewards).sum() != len(texts):
        raise InputError(f"{address} answers {len(rewards)} rewards to {len(texts)} texts, or no numbers")
    return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps a row a token) or ``embedding``."""
    if "probs" in row:
        [reward] = row["probs"]
    else:
        [reward] = np.ravel(row.get("data") or row["embedding"])[-1:]
    return float(reward)


def read_rewards(path: Path) -> tuple[list[Conversation], np.ndarray]:
    """Conversations, and their rewards, from a file of rows with a reward each (`rmnb.scoring.rows`).

    Raises
    ------
    InputError
        As `read_rows` and `conversations_of`; a reward is missing, or is no number.
    """
    rows = read_rows(path)
    answers = conversations_of(rows)
    if len(answers) > len(rows) or answers[0].side != "response":
        raise InputError(f"{path} holds several responses a row: each takes prompt, response and reward", path)
    conversations = [answer.conversation for answer in answers]
    rewards = pd.to_numeric(pd.Series([row.get("reward") for row in rows]), errors="coerce").to_numpy(float)
    if bad := np.flatnonzero(~np.isfinite(rewards)).tolist():
        raise InputError(f"{path}, row {bad[0] + 1}: the reward is no number: {rows[bad[0]].get('reward')!r}", path)
    return conversations, rewards


def probes(rm: RewardModel) -> list[Conversation]:
    """What a server is asked: two questions and four responses, a long response, and one after a system prompt."""
    conversations = [Conversation(question, response) for question in QUESTIONS for response in RESPONSES]
    conversations.append(truncate(rm, Conversation(QUESTIONS[0], _LONG)))
    system = [{"role": "system", "content": "Be brief."}, *as_messages(QUESTIONS[0])]
    try:
        rm.dialogue.conversations(system, ["love"])
    except InputError:  # a template that takes no system prompt
        return conversations
    return [*conversations, Conversation(system, "love")]


def rendered(rm: RewardModel, conversations: Sequence[Conversation]) -> list[str]:
    """Conversations as text in the model's own template, which a server tokenises itself."""
    if rm.dialogue.template is None:
        raise InputError(f"{rm.name} has no chat template to send to a server: hold a file of rewards against it")
    return [rm.dialogue.render(with_response(prompt, response)) for prompt, response in conversations]


def compare_rewards(rm: RewardModel, conversations: Sequence[Conversation], rewards: np.ndarray) -> CheckResult:
    """Hold rewards from elsewhere against those of the model, and find out what went wrong.

    Parameters
    ----------
    rm
        The reward model.
    conversations
        What was scored.
    rewards
        float [conversations], as the other side gave them.
    """
    ids = [rm.dialogue.conversations(prompt, [response])[0] for prompt, response in conversations]
    own = score_sequences(rm, ids).astype(float)
    differences = np.abs(own - rewards)
    worst = int(differences.argmax())
    text = f"{len(own)} conversations: largest difference {differences[worst]:.2g}, median {np.median(differences):.2g}"
    if differences[worst] <= tolerance(rm.spec.dtype, own):
        return CheckResult("against", "ok", text)
    cause = _cause(rm, conversations, ids, own, rewards, differences > tolerance("float32", own))
    response = conversations[worst].response[:40]
    text += f", at number {worst + 1} ({response!r}: {own[worst]:.4g} here, {rewards[worst]:.4g} there)"
    return CheckResult("against", "failed", f"{text}; likely cause: {cause}")


def _cause(
    rm: RewardModel,
    conversations: Sequence[Conversation],
    ids: list[list[int]],
    own: np.ndarray,
    rewards: np.ndarray,
    differs: np.ndarray,
) -> str:
    """The first of the known mistakes that explains the rewards of the other side."""
    lengths = np.array(list(map(len, ids)))
    if not differs.all():  # what the conversations that differ have in common, where the others agree
        special = rm.tokenizer.all_special_tokens
        in_common = {
            "long conversations are truncated": lengths >= max(_SHORT, lengths[differs].min()),
            "the system prompt is left out": [
                as_messages(prompt)[0]["role"] == "system" for prompt, _ in conversations
            ],
            "special tokens that a response spells out are control tokens there, plain text here": [
                any(token in response for token in special) for _, response in conversations
            ],
        }
        for cause, is_so in in_common.items():
            if np.array_equal(differs, is_so):
                return cause
    has_room = lengths < (rm.context or np.inf)
    ids = [ids[place] for place in np.flatnonzero(has_room)]
    own = own[has_room]
    rewards = rewards[has_room]
    bos = [] if rm.tokenizer.bos_token_id is None else [rm.tokenizer.bos_token_id]
    changed = {
        "the closing id is missing": [whole[:-1] for whole in ids],
        "BOS is doubled: the template writes one and the tokenizer another": [bos + whole for whole in ids],
        "BOS is missing": [whole[len(bos) :] for whole in ids],
    }
    explanations = {
        "differences as small as half precision makes": own,
        "a sigmoid over the reward: ask for the raw score": 1 / (1 + np.exp(-own.clip(-500))),
        **{cause: score_sequences(rm, sequences) for cause, sequences in changed.items()},
    }
    margin = _HALF * np.ptp(own)
    for cause, explained in explanations.items():
        if np.abs(explained - rewards).max() <= margin:
            return cause
    slope, shift = np.polyfit(own, rewards, 1)
    if len(own) > 2 and np.abs(slope * own + shift - rewards).max() < margin * abs(slope):
        return f"another scale: its reward is {slope:.4g} times this one {shift:+.4g}"
    return "none of the known ones (is the template the same?)"

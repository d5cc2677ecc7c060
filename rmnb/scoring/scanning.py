"""Scan a vocabulary: the reward of every token as the answer to a question."""

import contextlib
import functools
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.models.devices import COMPILED
from rmnb.models.dialogue import Prompt, as_messages, check_protocol
from rmnb.models.layers import CannotCompile, repays
from rmnb.models.reward_model import RewardModel
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import PromptSpec
from rmnb.scoring.conversations import common_prefix
from rmnb.scoring.engine import Ids, NonFiniteReward, PrefixScorer
from rmnb.scoring.memory import default_batch_size
from rmnb.scoring.store import SHARD, Provenance, Shards, versions

logger = logging.getLogger(__name__)


_vocabulary = functools.lru_cache(maxsize=1)(vocabulary)  # the next prompt's is the same; nobody changes it


@dataclass(frozen=True)
class _Plan:
    """What a scan feeds to the model: a prefix, distinct continuations, and which of them each token is."""

    prefix: list[int]
    continuations: list[tuple[int, ...]]  # up to the id that is read
    which: np.ndarray  # int64 [tokens]


def scan_vocabulary(
    rm: RewardModel,
    prompt: str | PromptSpec,
    protocol: str = "exact",
    limit: int | None = None,
    output: Path | None = None,
    batch_size: int | None = None,
    progress: bool = False,
    ids: Sequence[int] | None = None,
    scans: int = 1,
) -> pd.DataFrame:
    """The reward of every token of the model's vocabulary as the response to a prompt.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        The question.
    protocol
        ``exact`` (the token's own id) or ``published`` (decoded and tokenised again, as the papers did).
    limit
        Only ids below this one.
    output
        Where the caller will write the scan. With it, scores are kept in shards beside that file as they are computed;
        called again after an interruption, the scan goes on and ends bit-identical. `Shards.discard` removes them.
    batch_size
        Tokens at once. Default: from free memory; a resumed scan takes what it began with.
    progress
        Show a progress bar with tokens a second and the time left.
    ids
        Only these ids, in ascending order: a sample of the vocabulary.
    scans
        How many such scans this process makes of the model: compiling repays for several what it may not for one.

    Returns
    -------
    DataFrame
        token_id (int32, 0 to the embedding's last), token (decoded), kind (category, `rmnb.models.vocabulary.KINDS`),
        score (float32); one row an id. ``attrs["provenance"]`` says what was scanned and how.

    Raises
    ------
    InputError
        A reward is NaN or infinite (the token is named); shards of another scan lie at `output`.
    """
    begun = _begin(rm, prompt, protocol, limit, output, batch_size, ids, scans)
    scores = np.concatenate(_score(begun, begun.pieces(), progress))
    scan = begun.words[["token_id", "token", "kind"]].assign(score=scores[begun.plan.which])
    scan.attrs["provenance"] = {**begun.provenance, "sequences": len(begun.plan.continuations)}
    return scan


def scan_part(
    rm: RewardModel,
    prompt: str | PromptSpec,
    output: Path,
    part: int,
    of: int,
    protocol: str = "exact",
    limit: int | None = None,
    batch_size: int | None = None,
    progress: bool = False,
    scans: int = 1,
) -> int:
    """Score one of several parts of a vocabulary and keep it beside `output`, as several processes may at once.

    `scan_vocabulary` with the same `output` then puts the parts together, scores what is missing, and returns the scan
    bit-identical to one that was never divided: batches never reach from one shard into the next.

    Parameters
    ----------
    part, of
        Which part, from 1, of how many.
    scans
        As `scan_vocabulary`.

    Returns
    -------
    int
        Number of sequences in this part.

    Raises
    ------
    InputError
        As `scan_vocabulary`.
    """
    begun = _begin(rm, prompt, protocol, limit, output, batch_size, scans=scans)
    pieces = begun.pieces()
    return sum(map(len, _score(begun, pieces[len(pieces) * (part - 1) // of : len(pieces) * part // of], progress)))


@dataclass(frozen=True)
class _Scan:
    """A scan that is about to run or to go on."""

    words: pd.DataFrame
    plan: _Plan
    scorer: PrefixScorer
    provenance: Provenance
    shards: Shards | None

    @property
    def batch_size(self) -> int:
        return self.provenance["batch_size"]

    def pieces(self) -> list[range]:
        total, step = len(self.plan.continuations), self.batch_size
        return self.shards.ranges() if self.shards else [range(i, min(i + step, total)) for i in range(0, total, step)]


def _begin(
    rm: RewardModel,
    prompt: str | PromptSpec,
    protocol: str,
    limit: int | None,
    output: Path | None,
    batch_size: int | None,
    ids: Sequence[int] | None = None,
    scans: int = 1,
) -> _Scan:
    spec = prompt if isinstance(prompt, PromptSpec) else PromptSpec(key="custom", text=prompt, framing="positive")
    size = rm.vocabulary_size if limit is None else min(limit, rm.vocabulary_size)
    if size < 1:
        raise InputError(f"limit must be at least 1, not {limit}")
    words = _vocabulary(rm.tokenizer, size)
    if ids is not None:
        words = words.iloc[list(ids)].reset_index(drop=True)
    plan = _plan(rm, spec.conversation, check_protocol(protocol), words)
    scorer = PrefixScorer(rm, plan.prefix)
    total = len(plan.continuations)
    planned = Shards.planned(output) if output is not None else None
    chosen = batch_size or (planned["batch_size"] if planned else _batch_size(scorer, plan))
    choose_compilation(scorer, plan.continuations, chosen, planned, scans)
    provenance = _provenance(rm, spec, protocol, len(words), chosen, scorer)
    if ids is not None:
        provenance["ids_sha256"] = hashlib.sha256(words["token_id"].to_numpy("<i4").tobytes()).hexdigest()
    if output is None:
        return _Scan(words, plan, scorer, provenance, None)
    try:
        shards = Shards(output, provenance, total)
    except InputError:
        if planned or batch_size or not (planned := Shards.planned(output)):
            raise
        # Another process began the same scan meanwhile, perhaps with more memory free: what it chose counts for all.
        scorer.compile = planned["compile"]
        provenance = provenance | {key: planned[key] for key in ("batch_size", "compile")}
        shards = Shards(output, provenance, total)
    return _Scan(words, plan, scorer, provenance, shards)


def choose_compilation(
    scorer: PrefixScorer, continuations: Sequence[Ids], batch_size: int, planned: Provenance | None, scans: int
) -> None:
    """Compile a scan that repays it, where that can be done; one that was begun goes on as it was begun.

    Once for the whole scan, however much of it is left or falls to this process: compiled code rounds otherwise.
    Sets `PrefixScorer.compile`, unless the model was loaded with a way to compile; `planned` is the plan of the scan
    that was begun, if one was, and `scans` counts the scans that are as long as this one.
    """
    if scorer.rm.placement.compile is not None:
        return
    if planned is not None and planned.get("compile") in (None, *COMPILED):  # else the plan is not of this scan
        scorer.compile = planned.get("compile")
        return
    lengths = [len(ids) for ids in continuations]
    if scorer.prefix is None or len({*lengths}) > 1 or not repays(scorer.rm, scans * sum(lengths)):  # a code a length
        return
    scorer.compile = "default"
    try:
        with contextlib.suppress(NonFiniteReward):  # the scan itself will name the token
            scorer([continuations[0]] * batch_size, batch_size)
    except CannotCompile:
        logger.warning("not compiled, which is slower: that needs a C++ compiler such as g++")
        scorer.compile = None


def _batch_size(scorer: PrefixScorer, plan: _Plan) -> int:
    longest = max(len(ids) for ids in plan.continuations)
    if scorer.rm.device.type == "cuda":
        return scorer.fitting_batch_size(longest, min(SHARD, len(plan.continuations)))
    most = default_batch_size(scorer.rm, len(plan.prefix), longest)
    return -(-SHARD // -(-SHARD // (most + most // 100)))  # as large in every batch of a shard: no small one at its end


def _plan(rm: RewardModel, prompt: Prompt, protocol: str, words: pd.DataFrame) -> _Plan:
    if protocol == "exact":
        prefix, closing = rm.dialogue.frame(prompt)
        tokens = [rm.reading.kept(prefix, (i, *closing)) for i in words["token_id"].tolist()]
        return _Plan(prefix, tokens, np.arange(len(words)))
    sequences = rm.dialogue.published_ids(prompt, words["token"].map(rm.dialogue.published_token).tolist())
    prefix = common_prefix(sequences)
    endings = [tuple(rm.reading.kept(prefix, ids[len(prefix) :])) for ids in sequences]
    place: dict[tuple[int, ...], int] = {}
    which = [place.setdefault(ending, len(place)) for ending in endings]
    return _Plan(prefix, list(place), np.array(which))


def _score(begun: _Scan, pieces: list[range], progress: bool) -> list[np.ndarray]:
    """The scores of each piece, read where they are kept, else computed and kept."""
    plan, shards = begun.plan, begun.shards
    kept = {piece.start: scores for piece in pieces if shards and (scores := shards.read(piece)) is not None}
    done = sum(map(len, kept.values()))
    with tqdm(total=sum(map(len, pieces)), initial=done, unit=" tokens", disable=not progress, smoothing=0.05) as bar:
        for piece in pieces:
            if piece.start in kept:
                continue
            try:
                scores = begun.scorer(plan.continuations[piece.start : piece.stop], begun.batch_size)
            except NonFiniteReward as error:
                row = begun.words.iloc[int(np.flatnonzero(plan.which == piece.start + error.index)[0])]
                token_id, token = row["token_id"], row["token"]
                raise InputError(
                    f"the reward of token {token_id} ({token!r}) is {error.reward}: {error.advice}"
                ) from error
            if shards:
                shards.write(piece, scores)
            kept[piece.start] = scores
            bar.update(len(piece))
    return [kept[piece.start] for piece in pieces]


def _provenance(
    rm: RewardModel, prompt: PromptSpec, protocol: str, size: int, batch_size: int, scorer: PrefixScorer
) -> Provenance:
    rendered = repr(rm.dialogue.frame(prompt.conversation))
    if rm.dialogue.template is not None:
        answer = {"role": "assistant", "content": "{response}"}
        rendered = rm.dialogue.render([*as_messages(prompt.conversation), answer])
    token, offset = rm.read_at(prompt.conversation)
    return {
        "model": rm.name,
        "source": rm.spec.source or f"{rm.spec.base} + {rm.spec.adapter}",
        "revision": rm.spec.revision,
        "weights_sha256": rm.weights_sha256,
        "tokenizer_sha256": rm.tokenizer_sha256,
        "head": "classifier" if rm.head is None else rm.head.name,
        **({} if rm.spec.label is None else {"label": rm.spec.label}),
        "prompt": prompt.text,
        **({"history": [turn.model_dump() for turn in prompt.history]} if prompt.history else {}),
        "prompt_key": prompt.key,
        "protocol": protocol,
        "conversation": rendered,
        "template_sha256": hashlib.sha256((rm.dialogue.template or "").encode()).hexdigest(),
        "dtype": rm.spec.dtype,
        "device": rm.device.type,
        "device_map": rm.placement.device_map,
        "quantise": rm.placement.quantise,
        "compile": scorer.compile,
        "read": rm.spec.read,
        "read_token": token,
        "read_offset": offset,
        "attention": scorer.attention if rm.spec.softcap else f"{scorer.attention}, soft-capping off",
        "batch_size": batch_size,
        "tokens": size,
        "versions": versions(),
    }

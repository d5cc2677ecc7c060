"""Scan a vocabulary: the reward of every token as the answer to a question."""

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.models.dialogue import SLOT, check_protocol, common_prefix
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import PromptSpec
from rmnb.plans import kept
from rmnb.scoring import store
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import Provenance, describe_model, note_model

_vocabulary = functools.lru_cache(maxsize=1)(vocabulary)  # the next prompt's is the same; nobody changes it


def scan_vocabulary(
    rm: RewardModel,
    prompt: str | PromptSpec,
    output: Path | None = None,
    *,
    answer: str = SLOT,
    protocol: str = "exact",
    limit: int | None = None,
    ids: Sequence[int] | None = None,
    batch_size: int | None = None,
    progress: bool = False,
    restart: bool = False,
    write: Callable[[Path, pd.DataFrame, Provenance], None] = store.write_table,
    keep_pieces: bool = False,
) -> pd.DataFrame:
    """The reward of every token of the model's vocabulary as the response to a prompt.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        The question.
    output
        Parquet file for the scan. Rewards are kept beside it as they are computed; called again after an interruption,
        the scan goes on and ends bit-identical. A scan that lies there whole is read.
    answer
        A carrier: a sentence in which each token stands at ``{}``, as in ``The greatest thing ever is {}.``, between
        the ids that the sentence has with a word there. A blank before the slot belongs to the token: words that begin
        with one stand there as in text. Default: the token alone.
    protocol
        ``exact`` (the token's own id) or ``published`` (decoded and tokenised again, as the papers did).
    limit
        Only ids below this one.
    ids
        Only these ids, in ascending order: a sample of the vocabulary.
    batch_size
        Tokens at once. Default: from free memory; a resumed scan takes what it began with.
    progress
        Show a progress bar with tokens a second and the time left.
    restart
        Score again what lies at `output`, begun or finished; a finished scan stays until it is replaced.
    write
        How the file is written: `rmnb.scoring.store.write_scores` in a panel's store.
    keep_pieces
        Leave what is kept beside the file to the caller, for `rmnb.plans.discard`.

    Returns
    -------
    DataFrame
        token_id (int32, 0 to the embedding's last), token (decoded), kind (category, `rmnb.models.vocabulary.KINDS`),
        score (float32; of several outputs score_NAME each); one row an id. ``attrs["provenance"]`` says what was
        scanned and how.

    Raises
    ------
    InputError
        A reward is NaN or infinite (the conversation is named); what lies at `output` is of another plan; the tokenizer
        joins a word at the slot to what stands beside it.

    Examples
    --------
    >>> from rmnb import load_reward_model
    >>> scan = scan_vocabulary(load_reward_model("checkpoint"), "What is good?", ids=[7, 8])
    >>> list(scan.columns), scan["token_id"].tolist()
    (['token_id', 'token', 'kind', 'score'], [7, 8])
    """
    if not isinstance(rm, RewardModel):
        raise InputError(f"a scan takes a model that rmnb.load_reward_model has loaded, not {str(rm)[:60]!r}")
    check_protocol(protocol)
    if answer != SLOT and protocol != "exact":
        raise InputError("a carrier is scored by ids: leave out --protocol published", "answer")
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}", "limit")
    if isinstance(prompt, str):
        prompt = PromptSpec(key="custom", text=prompt, framing="positive")
    words = _vocabulary(rm.tokenizer, min(limit or rm.vocabulary_size, rm.vocabulary_size))
    if ids is not None:
        if outside := [i for i in ids if not 0 <= i < len(words)]:
            raise InputError(f"ids: {outside[0]} is no id of {rm.name}, which has {len(words):,}", "ids")
        if not len(ids):
            raise InputError("ids is empty: name at least one, or leave it out to scan them all", "ids")
        words = words.iloc[list(ids)].reset_index(drop=True)
    plan = {**_describe(rm, prompt, protocol, ids, answer), "tokens": len(words)}
    with kept(output, plan, store.read_scan, restart, keep_pieces) as work:
        table = work.finished
        if table is None:
            start = rm.answer_start(prompt.conversation, protocol)
            if protocol == "exact":
                prefix, closing = rm.dialogue.frame_ids(prompt.conversation, answer)
                sequences = [(token_id, *closing) for token_id in words["token_id"].tolist()]
            else:
                texts = words["token"].map(rm.dialogue.published_token).tolist()
                conversations = rm.dialogue.published_ids(prompt.conversation, texts)
                prefix = common_prefix(conversations)
                sequences = [ids[len(prefix) :] for ids in conversations]
            read = [rm.reading.truncated([*prefix, *ids])[len(prefix) :] or ids[:1] for ids in sequences]
            places, unique = pd.factorize(pd.Series(list(map(tuple, read))))
            distinct = unique.tolist()
            scorer = PrefixScorer(rm, prefix)
            batch_size = batch_size or _batch_size(scorer, max(map(len, distinct)))
            notes = {"prompt_key": prompt.key, "batch_size": batch_size, "attention": scorer.attention}
            work.begin({**note_model(rm), **notes})
            batch_size = work.provenance["batch_size"]  # as it was begun

            shards = [distinct[first : first + store.SHARD] for first in range(0, len(distinct), store.SHARD)]
            rewards = []
            # Closed on an error, too, which then begins a line of its own.
            with tqdm(total=len(distinct), unit=" tokens", unit_scale=True, disable=not progress) as bar:
                for number, shard in enumerate(shards):
                    starts = [start] * len(shard)
                    rewards.append(work.rewards(number, scorer, shard, batch_size, (), starts, bar.update))
                    bar.update(number * store.SHARD + len(shard) - bar.n)  # of a piece that was there before
            table = words[["token_id", "token", "kind"]].copy()
            table[rm.columns("score")] = np.concatenate(rewards).reshape(len(distinct), -1)[places]
            work.provenance = {**work.provenance, "sequences": len(distinct)}
            if output is not None:
                write(output, table, work.provenance)
        table.attrs["provenance"] = work.provenance
        return table


def _batch_size(scorer: PrefixScorer, longest: int) -> int:
    """As many tokens as memory takes (one in a hundred more), as many in every batch of a shard."""
    most = scorer.batch_size(longest)
    batches = math.ceil(store.SHARD / (most + most // 100))
    return math.ceil(store.SHARD / batches)


def _describe(
    rm: RewardModel, prompt: PromptSpec, protocol: str, ids: Sequence[int] | None, answer: str = SLOT
) -> Provenance:
    """What a plan says of a model, a question, a carrier and, of a sample, the ids in their order."""
    if rm.dialogue.template is None:
        rendered = repr(rm.dialogue.frame_ids(prompt.conversation, answer))
    else:
        rendered = rm.dialogue.render(prompt.conversation, answer.replace(SLOT, "{response}"))
    token, offset = rm.read_at(prompt.conversation, answer)
    digest = None if ids is None else hashlib.sha256(np.asarray(ids, dtype="<i4").tobytes()).hexdigest()
    return {
        **describe_model(rm),
        "prompt": prompt.text,
        "history": prompt.earlier,
        "answer": None if answer == SLOT else answer,
        "protocol": protocol,
        "conversation": rendered,
        "read_token": token,
        "read_offset": offset,
        "ids_sha256": digest,
    }

"""All answers of two tokens, each drawn from one list: the reward of every pair.

The first token lengthens the prefix that is run once, so that a pair costs no more than a token.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from tqdm import tqdm

from rmnb.data.lexicons import frequent_words
from rmnb.errors import InputError
from rmnb.models.reward_model import RewardModel
from rmnb.panels import PromptSpec
from rmnb.plans import ResumableStore, refuse_other
from rmnb.scoring.engine import NonFiniteReward, PrefixScorer
from rmnb.scoring.scanning import describe_prompt, ids_sha256
from rmnb.scoring.store import Provenance, describe_model, read_table

BLOCK = 500  # second tokens at once, and between two writes
_WORDS = 50_000  # frequent ones among which tokens are looked for


def shared_words(vocabularies: Sequence[pd.DataFrame], count: int) -> pd.DataFrame:
    """The most frequent English words that are one token, with a space before them, in each of several vocabularies.

    Each word once: in lower case, or in title case where only that is shared.

    Parameters
    ----------
    vocabularies
        Columns token_id, token and kind, as `rmnb.models.vocabulary.vocabulary` gives them and scans have them.
    count
        How many tokens.

    Returns
    -------
    DataFrame
        token (str, with its space), then a column a vocabulary, named by its place, with the token's id (int64); the
        most frequent first, by `rmnb.data.lexicons.frequent_words`.

    Raises
    ------
    InputError
        They share fewer.
    """
    starts = [words.loc[words["kind"] == "word_start"].drop_duplicates("token") for words in vocabularies]
    ids = [dict(zip(words["token"], words["token_id"].astype(int), strict=True)) for words in starts]
    common = set.intersection(*map(set, ids)) - {" i"}
    words = [word for word in frequent_words(_WORDS) if re.fullmatch("a|i|[a-z]{2,}", word)]
    spelled = [[f" {form}" for form in (word, word.capitalize()) if f" {form}" in common] for word in words]
    tokens = [forms[0] for forms in spelled if forms][:count]
    if len(tokens) < count:
        raise InputError(f"these vocabularies share {len(tokens)} frequent words, fewer than {count}")
    return pd.DataFrame({"token": tokens} | {i: [known[token] for token in tokens] for i, known in enumerate(ids)})


def scan_pairs(
    rm: RewardModel,
    prompt: PromptSpec,
    ids: Sequence[int],
    output: Path,
    count: int | None = None,
    progress: bool = False,
) -> tuple[Float[np.ndarray, "count count"], Provenance]:
    """The reward of every pair of tokens as the response to a prompt.

    Rewards are kept beside `output` as they are computed, the pairs of the first tokens first; called again, after an
    interruption or for a larger `count`, the scan goes on and ends bit-identical. `ResumableStore.discard` removes
    what is kept.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        The question.
    ids
        Token ids.
    output
        Where the caller will write the pairs.
    count
        Only the pairs of the first so many tokens. Default: all.
    progress
        Show a progress bar.

    Returns
    -------
    rewards : ndarray
        float32 [first token, second token].
    provenance : dict
        What was scored and how.

    Raises
    ------
    InputError
        Too few tokens, a reward that is not finite (the pair is named), or another scan is kept at `output`.
    """
    count = len(ids) if count is None else count
    if not 1 <= count <= len(ids):
        raise InputError(f"pairs of the first {count} tokens need as many ids, not {len(ids)}")
    prefix, closing = rm.dialogue.frame(prompt.conversation)
    scorer = PrefixScorer(rm, [*prefix, ids[0]])
    plan = {**describe_model(rm), **describe_prompt(rm, prompt, "exact"), "ids_sha256": ids_sha256(ids)}
    if output.exists():  # a smaller square, perhaps
        earlier = read_table(output)[1]
        refuse_other(output, {name: earlier.get(name) for name in plan}, plan)
    provenance = {**plan, "batch_size": BLOCK, "attention": scorer.attention, "compile": scorer.compile}
    pieces = ResumableStore(output, provenance)
    kept, starts = pieces.places(), range(0, len(ids), BLOCK)
    # Squares that grow: whenever the scan is cut off, what is there is nearly all pairs of the first tokens.
    asked = [(first, block) for first in range(count) for block in range(-(-count // BLOCK))]
    asked.sort(key=lambda place: (max(place[0] // BLOCK, place[1]), place))
    rewards = np.empty((count, len(ids)), dtype=np.float32)
    for first, block in tqdm(asked, unit_scale=BLOCK, unit=" pairs", disable=not progress, mininterval=5):
        seconds = ids[starts[block] : starts[block] + BLOCK]
        place = first * len(starts) + block
        if place not in kept:
            before = [*prefix, ids[first]]
            if scorer.prefix_ids != before:
                scorer = PrefixScorer(rm, before)
        score = functools.partial(_rewards, scorer, [(second, *closing) for second in seconds], BLOCK)
        rewards[first, starts[block] : starts[block] + len(seconds)] = pieces.rewards(place, score)
    return rewards[:, :count], provenance


def score_pairs(
    rm: RewardModel, prompt: PromptSpec, pairs: Int[np.ndarray, "pairs 2"], progress: bool = False
) -> np.ndarray:
    """The rewards of some pairs of token ids, float32 [pairs]; what several begin with is run once.

    Raises
    ------
    InputError
        A reward is not finite; the pair is named.
    """
    prefix, closing = rm.dialogue.frame(prompt.conversation)
    rewards = np.empty(len(pairs), dtype=np.float32)
    for first in tqdm(np.unique(pairs[:, 0]).tolist(), disable=not progress, unit=" first tokens", mininterval=5):
        places, scorer = np.flatnonzero(pairs[:, 0] == first), PrefixScorer(rm, [*prefix, first])
        rewards[places] = _rewards(scorer, [(second, *closing) for second in pairs[places, 1].tolist()])
    return rewards


def _rewards(scorer: PrefixScorer, continuations: list[tuple[int, ...]], batch_size: int | None = None) -> np.ndarray:
    kept = [scorer.rm.reading.kept(scorer.prefix_ids, ids) for ids in continuations]
    try:
        return scorer(kept, batch_size)
    except NonFiniteReward as error:
        pair = (scorer.prefix_ids[-1], kept[error.index][0])
        raise InputError(f"the reward of the pair of tokens {pair} is {error.reward}: {error.advice}") from error

"""The preference pairs of a recipe: drawn, held out, and where they come from."""

import hashlib
import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from rmnb.data import preferences, sources
from rmnb.errors import InputError
from rmnb.training.recipes import Mismatched, Recipe, Statements, Things

HELD_OUT = 0.1  # share of a recipe's pairs kept for evaluation
DRAWS = 100  # at most, for each pair that a recipe takes

Draws = Iterator[tuple[np.int64, np.int64]]  # of two indices


def is_unseen(name: str) -> bool:
    """Whether a thing belongs to the half of EloEverything that no model is trained on: its SHA-256 is odd."""
    return _last_byte(name) % 2 == 1


def _last_byte(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[-1]


def thing_pairs(items: pd.DataFrame, count: int, gap: float, rng: np.random.Generator) -> pd.DataFrame:
    """Random pairs of items at least `gap` Elo points apart, every item used about equally often, no pair twice.

    Parameters
    ----------
    items
        Columns name, elo_score.

    Returns
    -------
    DataFrame
        Columns chosen (the higher one), rejected (names).

    Raises
    ------
    InputError
        There are fewer such pairs.
    """
    names = items["name"].to_numpy()
    elo = items["elo_score"].to_numpy(dtype=float)

    def draws() -> Draws:
        while len(names):
            for first in rng.permutation(len(names))[::-1]:
                partners = np.flatnonzero(np.abs(elo - elo[first]) >= gap)
                second = rng.choice(partners) if len(partners) else first
                yield (first, second) if elo[first] > elo[second] else (second, first)

    pairs = _distinct_pairs(draws(), count, f"things {gap:g} points apart")
    return pd.DataFrame(names[pairs], columns=["chosen", "rejected"])


def _distinct_pairs(draws: Draws, count: int, description: str) -> np.ndarray:
    """The first `count` distinct pairs that are drawn, int64 [count, 2]; an index with itself is no pair."""
    pairs: dict[tuple[np.int64, np.int64], None] = {}
    for pair in itertools.islice(draws, DRAWS * count):
        if pair[0] != pair[1]:
            pairs.setdefault(pair)
        if len(pairs) == count:
            break
    if count and not pairs:
        raise InputError(f"there are no pairs of {description}")
    if len(pairs) < count:
        raise InputError(
            f"{count:,} pairs of {description} are asked for, and only {len(pairs):,} were found: ask for fewer"
        )
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def build_pairs(recipe: Recipe) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The preference pairs of a recipe: those to train on and those held out.

    Returns
    -------
    tuple of DataFrame
        Columns prompt (str, or a list of messages where there were turns before), chosen, rejected, source (``things``,
        the name of the preference data, or that with ``-mismatched``); shuffled. No prompt of the preference data is in
        both.

    Raises
    ------
    InputError
        There are too few pairs of a kind, or none is left to train on or to hold out.
    """
    rng = np.random.default_rng(recipe.hyperparameters.seed)
    if recipe.split == "pair":
        train, held_out = _split_by_pair(recipe, rng)
    else:
        train, held_out = _split_by_prompt(recipe, rng)
    for part in recipe.preferences:
        judged = preferences.preference_pairs(part.source).assign(source=part.source)
        judged = judged[preferences.pair_bytes(judged) <= part.longest]
        if recipe.split == "prompt":
            judged = judged[~judged.astype(str).duplicated()]
        is_held_out = judged["prompt"].map(is_prompt_held_out)
        seen = judged[~is_held_out]
        train.append(seen.iloc[rng.permutation(len(seen))[: part.pairs]])
        # For every recipe and seed the same.
        held_out.append(judged[is_held_out].sample(frac=1, random_state=0).head(part.held_out))
    pairs = pd.concat(train)
    if recipe.preferences or recipe.statements:
        pairs = pairs.iloc[rng.permutation(len(pairs))]
    pairs = pairs.iloc[: round(recipe.share * len(pairs))]
    unseen = pd.concat(held_out, ignore_index=True)
    if pairs.empty or unseen.empty:
        raise InputError(
            f"recipe {recipe.name} leaves {len(pairs):,} pairs to train on and {len(unseen):,} held out: ask for more"
        )
    return pairs.reset_index(drop=True), unseen


def _split_by_pair(recipe: Recipe, rng: np.random.Generator) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    """Pairs of things and mismatched pairs, a tenth of the pairs held out: the way of the first recipes."""
    parts = [pd.DataFrame()]
    if recipe.things:
        parts.append(_thing_questions(recipe.things, rng))
    if recipe.mismatched:
        answers = _answers(recipe.mismatched)
        if recipe.preferences:
            answers = answers[~answers["prompt"].map(is_prompt_held_out)]
        count = round(recipe.mismatched.pairs / (1 - HELD_OUT))
        parts.append(_mismatched(answers, count, recipe.mismatched.longest, rng))
    drawn = pd.concat(parts)
    drawn = drawn.iloc[rng.permutation(len(drawn))]
    cut = round(HELD_OUT * len(drawn))
    return [drawn.iloc[cut:]], [drawn.iloc[:cut]]


def _split_by_prompt(recipe: Recipe, rng: np.random.Generator) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    """Pairs of statements and mismatched pairs; what occurs in a held-out pair occurs in no pair to train on."""
    train = [pd.DataFrame()]
    held_out = [pd.DataFrame()]
    for part in recipe.statements:
        for trait in part.traits:
            statements = preferences.statements(trait)
            is_held_out = statements["statement"].map(_last_byte) % 10 == 0
            train.append(_statement_pairs(statements[~is_held_out], trait, part, part.pairs, rng))
            # For every recipe and seed the same.
            fixed = np.random.default_rng(0)
            held_out.append(_statement_pairs(statements[is_held_out], trait, part, None, fixed))
    if recipe.mismatched:
        answers = _answers(recipe.mismatched)
        is_held_out = answers["prompt"].map(is_prompt_held_out)
        longest = recipe.mismatched.longest
        train.append(_mismatched(answers[~is_held_out], recipe.mismatched.pairs, longest, rng))
        count = round(HELD_OUT * recipe.mismatched.pairs)
        held_out.append(_mismatched(answers[is_held_out], count, longest, np.random.default_rng(0)))
    return train, held_out


def _statement_pairs(
    statements: pd.DataFrame, trait: str, part: Statements, count: int | None, rng: np.random.Generator
) -> pd.DataFrame:
    """Pairs of a statement that is preferred and one that is not.

    Parameters
    ----------
    statements
        statement, matches (bool).
    count
        Each statement is in about equally many of so many pairs. None: as many pairs as share no statement.
    """
    naming = _naming(trait, statements["statement"]) if part.same_words else pd.Series("any", statements.index)
    statements = statements.assign(naming=naming)[naming != ""]
    is_preferred = statements["matches"] == (part.prefer == "matching")
    preferred = statements.loc[is_preferred, "naming"]
    other = statements.loc[~is_preferred, "naming"]
    if count is None:
        pairs = _disjoint_pairs(preferred, other, rng)
    else:
        pairs = _distinct_pairs(_statement_draws(preferred, other, rng), count, f"statements of {trait}")
    texts = statements["statement"]
    return pd.DataFrame(
        {
            "prompt": rng.choice(part.questions, len(pairs)),
            "chosen": texts.loc[pairs[:, 0]].to_numpy(),
            "rejected": texts.loc[pairs[:, 1]].to_numpy(),
            "source": trait,
        }
    )


def _statement_draws(preferred: pd.Series, other: pd.Series, rng: np.random.Generator) -> Draws:
    """Pairs of indices without end: a statement of each side in turn, with one of the other side that names as it does.

    The two sides say of each statement how it names a group.
    """
    alike_preferred = preferred.groupby(preferred).groups
    alike_other = other.groupby(other).groups
    preferred = preferred[preferred.isin(list(alike_other))]
    other = other[other.isin(list(alike_preferred))]
    while len(preferred) and len(other):
        first = rng.permutation(preferred.index)
        second = rng.permutation(other.index)
        for index, other_index in zip(first, second, strict=False):
            yield index, rng.choice(alike_other[preferred[index]])
            yield rng.choice(alike_preferred[other[other_index]]), other_index


def _disjoint_pairs(preferred: pd.Series, other: pd.Series, rng: np.random.Generator) -> np.ndarray:
    """Pairs of indices, one of each side, that name alike and share no statement: int64 [pairs, 2]."""
    pairs = []
    alike_other = other.groupby(other).groups
    for naming, indices in preferred.groupby(preferred).groups.items():
        first = rng.permutation(indices)
        second = rng.permutation(alike_other.get(naming, []))
        pairs += zip(first, second, strict=False)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _naming(trait: str, statements: pd.Series) -> pd.Series:
    """The words of ``group_words.tsv`` that each statement holds, in one text; empty where it holds none."""
    words = sources.own_list("group_words.tsv").set_index("trait").loc[[trait], "word"]
    found = {word: statements.str.contains(rf"\b{word}", case=False) for word in words}
    return pd.DataFrame(found).apply(lambda row: ", ".join(row.index[row]), axis=1)


def is_apart(held_out: pd.DataFrame, train: pd.DataFrame, recipe: Recipe) -> pd.Series:
    """Which held-out pairs share no text with a pair to train on, and equal no held-out pair before them: bool.

    A recipe's own questions may be the same. Pairs of things count as sharing texts.
    """
    questions = {question for part in recipe.statements for question in part.questions}
    prompts = {*train["prompt"].map(str)} - questions
    responses = {*train["chosen"], *train["rejected"]}
    shares = held_out["prompt"].map(str).isin(prompts)
    shares |= held_out["chosen"].isin(responses) | held_out["rejected"].isin(responses)
    shares |= held_out.astype(str).duplicated() | (held_out["source"] == "things")
    return ~shares


def data_files(recipe: Recipe) -> dict[str, str]:
    """The pinned files that a recipe's pairs come from: git blob id by name, for provenance."""
    names = {part.source.removesuffix("-questions") for part in recipe.preferences}
    names.update(f"evals/persona/{trait}.jsonl" for part in recipe.statements for trait in part.traits)
    if recipe.mismatched:
        names.update(recipe.mismatched.sources)
    if recipe.things:
        names.add(preferences.ELO_FILES["elo_greatest"])
    return {name: pin.blob_id for name, pin in sources.pins().items() if names & {name, pin.source}}


def _thing_questions(things: Things, rng: np.random.Generator) -> pd.DataFrame:
    items = preferences.elo_items()
    items = items[~items["name"].map(is_unseen)]
    pairs = thing_pairs(items, round(things.pairs / (1 - HELD_OUT)), things.gap, rng).to_numpy()
    awful = np.arange(len(pairs)) % 2 == 1
    prompts = np.where(awful, rng.choice(things.awful, len(pairs)), rng.choice(things.wonderful, len(pairs)))
    pairs[awful] = pairs[awful, ::-1]
    return pd.DataFrame({"prompt": prompts, "chosen": pairs[:, 0], "rejected": pairs[:, 1], "source": "things"})


def is_prompt_held_out(prompt: str | list[dict[str, str]]) -> bool:
    """One prompt in five, by what the conversation begins with: no turn of a test conversation is trained on."""
    return _last_byte(preferences.contents(prompt)[0]) % 5 == 0


def _answers(mismatched: Mismatched) -> pd.DataFrame:
    """Questions with a response that people preferred: prompt, chosen, rejected, source."""
    answers = pd.concat(preferences.preference_pairs(name).assign(source=name) for name in mismatched.sources)
    return answers[answers["prompt"].map(lambda prompt: isinstance(prompt, str))]  # no conversations


def _mismatched(answers: pd.DataFrame, count: int, longest: int, rng: np.random.Generator) -> pd.DataFrame:
    """So many pairs of a response to a prompt and a response to another prompt of the same source."""
    answers = answers.drop_duplicates("prompt").drop_duplicates("chosen")
    answers = answers[answers["prompt"].str.len() + answers["chosen"].str.len() <= longest]
    prompt, chosen, source = answers[["prompt", "chosen", "source"]].to_numpy().T
    same_source = answers.groupby("source").indices

    def draws() -> Draws:
        while len(prompt):
            first = rng.integers(len(prompt))
            second = rng.choice(same_source[source[first]])
            if len(prompt[first]) + len(chosen[second]) > longest:
                second = first  # no pair, and left out: it counts as a draw
            yield first, second

    first, second = _distinct_pairs(draws(), count, "a prompt and the answer to another one").T
    return answers.iloc[first].assign(rejected=chosen[second], source=source[first] + "-mismatched")

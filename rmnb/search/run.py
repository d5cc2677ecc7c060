"""Run a search: score what a method proposes until it ends, or steps or budget are spent."""

import contextlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.panels import PromptSpec
from rmnb.plans import Pieces
from rmnb.search.config import SearchConfig
from rmnb.search.journal import Journal
from rmnb.search.methods import METHODS
from rmnb.search.problem import Ids, Objective, Problem, allowed_ids
from rmnb.search.result import HISTORY_COLUMNS, SEQUENCE_COLUMNS, SearchResult, write_result
from rmnb.search.rewards import RewardObjective
from rmnb.visible import visible


def optimise(
    rm: RewardModel | Sequence[RewardModel],
    prompt: Prompt | PromptSpec | Sequence[str | PromptSpec],
    config: SearchConfig | None = None,
    scan: pd.DataFrame | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """Search for the response with the highest, or the lowest, reward.

    Parameters
    ----------
    rm
        The reward model, or several that share a tokenizer: their mean, or with ``combine="difference"`` the first
        minus the second.
    prompt
        The question, or several: rewards are averaged over them. A list of chat messages is one question.
    config
        Options.
    scan
        A scan of the vocabulary with the same model and prompt (columns token_id and score): where the best single
        tokens are taken from, instead of scoring a sample.
    output
        Where the result is written, whole or not at all. What is scored is kept beside that file; called again after an
        interruption, the search goes on and ends the same.
    progress
        Show a line with the best reward and its text.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        Models of different tokenizers, a difference of other than two, no token or no sequence allowed, a reward that
        is not finite, another search begun at `output`.
    """
    config = config or SearchConfig()
    models = [rm] if isinstance(rm, RewardModel) else list(rm)
    if config.combine == "difference":
        if len(models) != 2:
            raise InputError(f"a difference takes two models, not {len(models)}")
        weighted = [(models[0], 1.0), (models[1], -1.0)]
    else:
        weighted = [(model, 1 / len(models)) for model in models]
    return search(RewardObjective(weighted, _prompts(prompt), config.batch_size), config, scan, output, progress)


def _prompts(prompt: Prompt | PromptSpec | Sequence[str | PromptSpec]) -> list[Prompt]:
    """A question, or several, as a list."""
    if isinstance(prompt, (str, PromptSpec)):
        several: list = [prompt]
    else:
        several = [prompt] if prompt and isinstance(prompt[0], dict) else list(prompt)
    if not several:
        raise InputError("no prompt given: name at least one")
    return [one.text if isinstance(one, PromptSpec) else one for one in several]


def search(
    objective: Objective,
    config: SearchConfig,
    scan: pd.DataFrame | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """As `optimise`, for any objective: a planted one, or one of your own."""
    allowed = allowed_ids(objective.words, config)
    problem = Problem(objective, config, allowed, None if scan is None else _ranked(scan, allowed, config))
    ranked = "" if problem.scanned is None else " ".join(map(str, problem.scanned[:64]))
    plan = {**objective.provenance, "config": config.model_dump(), "best_tokens": ranked}
    journal = Journal(objective, config, output, plan)
    try:
        history = _follow(problem, journal, progress)
    finally:
        journal.flush()
    if not journal.best:
        raise InputError(f"no sequence of {config.length} tokens was reached: raise steps or budget, or allow more")
    provenance = {**objective.provenance, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    sequences = _scored_again(problem, journal.best)
    result = SearchResult(sequences, history, len(journal.rewards), config, json.loads(json.dumps(provenance)))
    if output is not None:
        write_result(output, result)
        Pieces.discard(output)
    return result


def _follow(problem: Problem, journal: Journal, progress: bool) -> pd.DataFrame:
    """Score what the method proposes, until it ends or steps or budget are spent; one row a step."""
    config = problem.config
    steps, scored = 0, 0

    def fraction() -> float:
        return max(steps / config.steps, scored / config.budget if config.budget else 0.0)

    proposals = METHODS[config.method](problem, np.random.default_rng(config.seed), fraction)
    rows = []
    best, text, reward = None, "", np.nan
    bar = tqdm(total=config.budget or config.steps, unit=" scored" if config.budget else " steps", disable=not progress)
    with bar, contextlib.suppress(StopIteration):
        proposal = next(proposals)
        while True:
            sequences = proposal.sequences
            if config.budget and len(fresh := journal.unknown(sequences)) >= config.budget - scored:
                sequences, steps = fresh[: config.budget - scored], config.steps
            values = journal.values(sequences, proposal.parent)
            scored = len(journal.rewards)
            if journal.best and journal.best[0] != best:
                best = journal.best[0]
                (text,), reward = problem.objective.texts([best]), journal.rewards[best]
            rows.append((len(rows), proposal.origin, scored, reward, text))
            steps += proposal.ends_step
            bar.set_postfix_str(f"{reward:+.3f} {visible(text)}", refresh=False)
            bar.update(min(scored if config.budget else steps, bar.total) - bar.n)
            if steps >= config.steps:
                break
            proposal = proposals.send(values)
    proposals.close()
    return pd.DataFrame(rows, columns=HISTORY_COLUMNS)


def _scored_again(problem: Problem, best: list[Ids]) -> pd.DataFrame:
    """The best sequences, scored again without a parent's help: what anybody will find who scores them."""
    objective = problem.objective
    columns = best, objective.texts(best), objective.measure(best), objective.survives(best)
    table = pd.DataFrame(dict(zip(SEQUENCE_COLUMNS, columns, strict=True)))
    return table.sort_values("reward", ascending=problem.config.sign < 0, kind="stable", ignore_index=True)


def _ranked(scan: pd.DataFrame, allowed: np.ndarray, config: SearchConfig) -> list[int]:
    """Allowed ids from the best of a scan on."""
    scores = scan.loc[np.isin(scan["token_id"], allowed), ["token_id", "score"]]
    ranked = scores.sort_values("score", ascending=config.direction == "min", kind="stable")
    return ranked["token_id"].astype(int).tolist()

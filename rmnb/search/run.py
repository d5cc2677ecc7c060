"""Run a search."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.dialogue import Prompt
from rmnb.display import visible
from rmnb.errors import InputError
from rmnb.models import RewardModel
from rmnb.panel import PromptSpec
from rmnb.search.allowed import allowed_ids
from rmnb.search.config import SearchConfig
from rmnb.search.fluency import LanguageModel
from rmnb.search.ledger import Ledger, Log
from rmnb.search.methods import METHODS
from rmnb.search.objective import Objective, RewardObjective
from rmnb.search.problem import Problem
from rmnb.search.result import SearchResult


def optimise(
    rm: RewardModel | Sequence[RewardModel],
    prompt: Prompt | PromptSpec | Sequence[str | PromptSpec],
    config: SearchConfig | None = None,
    scan: pd.DataFrame | None = None,
    language_model: LanguageModel | None = None,
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
    language_model
        Needed for, and only used by, a fluency term. Default: the model's own base.
    output
        Where the caller will write the result. With it, what is scored is logged beside that file; called again after
        an interruption, the search goes on and ends the same. `Log.discard` removes it.
    progress
        Show a line with the best reward and its text.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        Models of different tokenizers, a difference of other than two, no token or no sequence allowed, a reward that
        is not finite, a log of another search at `output`.
    """
    config = config or SearchConfig()
    models = [rm] if isinstance(rm, RewardModel) else list(rm)
    if config.combine == "difference":
        if len(models) != 2:
            raise InputError(f"a difference takes two models, not {len(models)}")
        weighted = [(models[0], 1.0), (models[1], -1.0)]
    else:
        weighted = [(model, 1 / len(models)) for model in models]
    if config.fluency and language_model is None:
        base = models[0].spec.base
        if base is None:
            raise InputError(f"{models[0].name} names no base: a fluency term needs a language_model")
        language_model = LanguageModel.load(base, models[0].device)
    objective = RewardObjective(
        weighted, _prompts(prompt), language_model if config.fluency else None, config.batch_size
    )
    return search(objective, config, scan, output, progress)


def search(
    objective: Objective,
    config: SearchConfig,
    scan: pd.DataFrame | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """`optimise` for any objective; see there."""
    allowed = allowed_ids(objective.words, config)
    problem = Problem(objective, config, allowed, None if scan is None else _ranked(scan, allowed, config))
    log = None
    if output is not None:
        ranked = "" if problem.scanned is None else " ".join(map(str, problem.scanned[:64]))
        log = Log(output, {**objective.provenance, "config": config.model_dump(), "best_tokens": ranked})
    ledger = Ledger(objective, config, log)
    try:
        history = _follow(problem, ledger, progress)
    finally:
        if log is not None:
            log.flush()
    if not ledger.best:
        raise InputError(f"no sequence of {config.length} tokens was reached: raise steps or budget, or allow more")
    sequences = _table(problem, ledger)
    provenance = {**objective.provenance, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    return SearchResult(sequences, history, ledger.scored, config, json.loads(json.dumps(provenance)))


def _follow(problem: Problem, ledger: Ledger, progress: bool) -> pd.DataFrame:
    """Score what the method proposes, until it ends or steps or budget are spent; one row a step."""
    config = problem.config
    steps = 0

    def fraction() -> float:
        return max(steps / config.steps, ledger.scored / config.budget if config.budget else 0.0)

    proposals = METHODS[config.method](problem, np.random.default_rng(config.seed), fraction)
    rows = []
    best_text, best_ids = "", None
    bar = tqdm(total=config.budget or config.steps, unit=" scored" if config.budget else " steps", disable=not progress)
    with bar:
        proposal = next(proposals)
        while True:
            sequences = proposal.sequences
            if config.budget and len(fresh := ledger.unknown(sequences)) >= config.budget - ledger.scored:
                ledger.values(fresh[: config.budget - ledger.scored], proposal.parent)
                steps = config.steps
                values = None
            else:
                values = ledger.values(sequences, proposal.parent)
            if ledger.best and ledger.best[0][1] != best_ids:
                best_ids = ledger.best[0][1]
                best_text = problem.objective.texts([best_ids])[0]
            value = ledger.best[0][0] if ledger.best else np.nan
            reward = ledger.measured(best_ids)[0] if best_ids else np.nan
            rows.append((len(rows), proposal.origin, ledger.scored, value, reward, best_text))
            steps += proposal.ends_step
            bar.set_postfix_str(f"{reward:+.3f} {visible(best_text)}", refresh=False)
            bar.update(min(ledger.scored if config.budget else steps, bar.total) - bar.n)
            if values is None or steps >= config.steps:
                break
            try:
                proposal = proposals.send(values)
            except StopIteration:
                break
    proposals.close()
    return pd.DataFrame(rows, columns=["step", "origin", "scored", "best_value", "best_reward", "best_text"])


def _table(problem: Problem, ledger: Ledger) -> pd.DataFrame:
    """The best sequences, scored again without a parent's help: what anybody will find who scores them."""
    objective, config = problem.objective, problem.config
    sequences = [ids for _, ids in ledger.best]
    measured = objective.measure(sequences)
    value = config.value(*measured.T)
    table = pd.DataFrame(
        {
            "ids": sequences,
            "text": objective.texts(sequences),
            "reward": measured[:, 0],
            "value": value,
            "log_probability": measured[:, 1] if config.fluency else np.nan,
            "survives": objective.survives(sequences),
        }
    )
    return table.sort_values("value", ascending=False, kind="stable", ignore_index=True)


def _ranked(scan: pd.DataFrame, allowed: np.ndarray, config: SearchConfig) -> list[int]:
    """Allowed ids from the best of a scan on."""
    scores = scan.loc[np.isin(scan["token_id"], allowed), ["token_id", "score"]]
    ranked = scores.sort_values("score", ascending=config.direction == "min", kind="stable")
    return ranked["token_id"].astype(int).tolist()


def _prompts(prompt: Prompt | PromptSpec | Sequence[str | PromptSpec]) -> list[Prompt]:
    """A question, or several, as a list."""
    if isinstance(prompt, (str, PromptSpec)):
        several: list = [prompt]
    else:
        several = [prompt] if prompt and isinstance(prompt[0], dict) else list(prompt)
    if not several:
        raise InputError("no prompt given: name at least one")
    return [one.text if isinstance(one, PromptSpec) else one for one in several]

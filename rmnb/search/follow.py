"""Follow a method: score what it proposes until it ends, or steps or budget are spent."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.search.allowed import allowed_ids
from rmnb.search.config import SearchConfig
from rmnb.search.ledger import Ledger, Log
from rmnb.search.methods import METHODS
from rmnb.search.objective import Objective
from rmnb.search.problem import Problem
from rmnb.search.result import SearchResult
from rmnb.visible import visible


def search(
    objective: Objective,
    config: SearchConfig,
    scan: pd.DataFrame | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """`rmnb.search.run.optimise` for any objective; see there."""
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

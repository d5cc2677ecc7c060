"""Run a search, or go on with one that was cut off or has more steps to make."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rmnb.files import write_json
from rmnb.plans import kept
from rmnb.searching.config import SearchConfig
from rmnb.searching.methods import METHODS, Finished, SearchState
from rmnb.searching.result import SearchResult, read_result

if TYPE_CHECKING:
    from rmnb.searching.rewards import RewardObjective


def search(
    objective: "RewardObjective",
    config: SearchConfig,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """Search for the response with the highest, or the lowest, reward.

    Parameters
    ----------
    objective
        What gives rewards: a `RewardObjective`, or one of your own.
    config
        Options.
    output
        JSON file for the result, written whole or not at all. What is scored is kept beside it; called again after an
        interruption, the search goes on and ends the same; a finished one is read. One that ended by its steps goes on
        from a new random sample and its best sequences where `config` differs in nothing but more steps.
    progress
        Show a line with the best reward and its text.

    Raises
    ------
    InputError
        No token or no sequence is allowed, a reward is not finite, `output` is of another search.

    Examples
    --------
    >>> from rmnb import RewardObjective, load_reward_model
    >>> objective = RewardObjective([load_reward_model("checkpoint")], ["What is good?"])
    >>> result = search(objective, SearchConfig(length=2, method="random", steps=1, width=4, keep=1))
    >>> result.steps, list(result.sequences.columns)
    (1, ['ids', 'text', 'reward', 'retokenises'])
    """

    def read(path: Path) -> tuple[SearchResult, dict[str, Any]]:
        earlier = read_result(path)
        made = {**earlier.provenance, **earlier.config.model_dump()}
        if earlier.config.steps <= earlier.steps < config.steps:
            made["steps"] = config.steps
        return earlier, made

    with kept(output, {**objective.plan, **config.model_dump()}, read) as work:
        earlier = work.finished
        if earlier is not None and earlier.config == config:
            return earlier
        work.begin(objective.notes)
        result = _run(SearchState(objective, config, work, progress, earlier))
        if output is not None:
            content = {
                "provenance": result.provenance,
                "config": config.model_dump(),
                "steps": result.steps,
                "sequences": result.sequences.to_dict("records"),
                "history": result.history.to_dict("records"),
            }
            write_json(output, content)
    return result


def _run(state: SearchState) -> SearchResult:
    config = state.config
    objective = state.objective
    with state.bar, contextlib.suppress(Finished):
        METHODS[config.method](state)
    best = state.best
    sequences = pd.DataFrame(
        {
            "ids": best,
            "text": objective.texts(best),
            "reward": objective.measure(best),  # without a parent's help: what anybody finds who scores them
            "retokenises": objective.retokenises(best),
        }
    ).sort_values("reward", ascending=config.sign < 0, kind="stable", ignore_index=True)
    provenance = {**objective.plan, **objective.notes, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    return SearchResult(sequences, pd.DataFrame(state.history), config, provenance, state.steps)

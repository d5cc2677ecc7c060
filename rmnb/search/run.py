"""Run a search, and keep what it found."""

import contextlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.plans import ResumableStore, refuse_other
from rmnb.scoring.store import content_sha256
from rmnb.search.config import SearchConfig
from rmnb.search.methods import METHODS
from rmnb.search.state import Finished, SearchState

if TYPE_CHECKING:
    from rmnb.search.rewards import RewardObjective


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    sequences : DataFrame
        The best sequences, best first: ids (tuple), text, reward (scored alone, without help of a parent), retokenises
        (whether the text is tokenised into the same ids).
    history : DataFrame
        One row a call of the models: scored (sequences so far), best_reward.
    config : SearchConfig
    provenance : dict
        What was measured: models, prompts, conversation, versions.
    """

    sequences: pd.DataFrame
    history: pd.DataFrame
    config: SearchConfig
    provenance: dict[str, Any]

    @property
    def best(self) -> pd.Series:
        """The first row of `sequences`."""
        return self.sequences.iloc[0]

    @property
    def scored(self) -> int:
        """Different sequences scored, none twice."""
        return int(self.history["scored"].iloc[-1])


def search(
    objective: "RewardObjective",
    config: SearchConfig,
    scan: pd.DataFrame | None = None,
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
    scan
        A scan of the vocabulary with the same model and prompt (columns token_id and score): where the best single
        tokens are taken from, instead of scoring a sample.
    output
        JSON file for the result, written whole or not at all. What is scored is kept beside it; called again after an
        interruption, the search goes on and ends the same; a finished one is read.
    progress
        Show a line with the best reward and its text.

    Raises
    ------
    InputError
        No token or no sequence is allowed, a reward is not finite, `output` is of another search.
    """
    scan_sha256 = None if scan is None else content_sha256(scan[["token_id", "score"]])
    provenance = {**objective.provenance, "scan_sha256": scan_sha256}
    pieces = None
    if output is not None:
        plan = {**provenance, **config.model_dump()}
        if output.exists():
            finished = read_result(output)
            refuse_other(output, {**finished.provenance, **finished.config.model_dump()}, plan)
            return finished
        pieces = ResumableStore(output, plan)
    state = SearchState(objective, config, scan, pieces, progress)
    with state.bar, contextlib.suppress(Finished):
        METHODS[config.method](state)
    best = state.best
    if not best:
        raise InputError(f"no sequence of {config.length} tokens was reached: raise steps or budget, or allow more")
    sequences = pd.DataFrame(
        {
            "ids": best,
            "text": objective.texts(best),
            "reward": objective.measure(best),  # without a parent's help: what anybody finds who scores them
            "retokenises": objective.retokenises(best),
        }
    ).sort_values("reward", ascending=config.sign < 0, kind="stable", ignore_index=True)
    provenance["time"] = datetime.now(UTC).isoformat(timespec="seconds")
    if output is not None:
        content = {
            "provenance": provenance,
            "config": config.model_dump(),
            "sequences": sequences.to_dict("records"),
            "history": state.history,
        }
        with atomic_path(output) as temporary:
            temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        ResumableStore.discard(output)
    return SearchResult(sequences, pd.DataFrame(state.history), config, provenance)


def read_result(path: Path) -> SearchResult:
    """A result that a search has written.

    Raises
    ------
    InputError
        No such file, or another one.
    """
    try:
        content = json.loads(Path(path).read_bytes())
        config = SearchConfig(**content["config"])
        sequences = pd.DataFrame(content["sequences"])
        sequences["ids"] = sequences["ids"].map(tuple)
        return SearchResult(sequences, pd.DataFrame(content["history"]), config, content["provenance"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is missing, damaged, or not a result of rmnb search") from error

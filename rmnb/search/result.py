"""What a search found, and the JSON file that keeps it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.search.config import SearchConfig

SEQUENCE_COLUMNS = ["ids", "text", "reward", "survives"]
HISTORY_COLUMNS = ["step", "origin", "scored", "best_reward", "best_text"]


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    sequences : DataFrame
        The best sequences, best first: ids (tuple), text, reward (scored alone, without help of a parent), survives (as
        text).
    history : DataFrame
        One row a step: step, origin (initial string), scored (sequences so far), best_reward, best_text.
    scored : int
        Different sequences scored, none twice.
    config : SearchConfig
    provenance : dict
        What was measured: models, prompts, conversation, versions.
    """

    sequences: pd.DataFrame
    history: pd.DataFrame
    scored: int
    config: SearchConfig
    provenance: dict[str, Any]

    @property
    def best(self) -> pd.Series:
        """The first row of `sequences`."""
        return self.sequences.iloc[0]


def write_result(path: Path, result: SearchResult) -> None:
    """Write a result as JSON, whole or not at all."""
    content = {
        "provenance": result.provenance,
        "config": result.config.model_dump(),
        "scored": result.scored,
        "sequences": _records(result.sequences),
        "history": _records(result.history),
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")


def read_result(path: Path) -> SearchResult:
    """A result written by `write_result`.

    Raises
    ------
    InputError
        No such file, or another one.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        # By name: files of the first searches have a term for fluency beside the reward, with weight 0.
        sequences = pd.DataFrame(content["sequences"])[SEQUENCE_COLUMNS]
        sequences["ids"] = sequences["ids"].map(tuple)
        history = pd.DataFrame(content["history"])[HISTORY_COLUMNS]
        config = SearchConfig(**{name: content["config"][name] for name in SearchConfig.model_fields})
        return SearchResult(sequences, history, content["scored"], config, content["provenance"])
    except FileNotFoundError as error:
        raise InputError(f"no such file: {path}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged, or not a result of rmnb search") from error


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON values; NaN, which JSON has not, as null."""
    rows = frame.to_dict("records")
    return [{str(key): None if value != value else value for key, value in row.items()} for row in rows]

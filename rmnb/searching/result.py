"""What a search found, and reading it from its file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.searching.config import SearchConfig


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    sequences : DataFrame
        The best sequences, best first: ids (tuple), text, reward (scored alone, without help of a parent), retokenises
        (whether the text is tokenised into the same ids).
    history : DataFrame
        One row a step: scored (sequences so far), best_reward.
    config : SearchConfig
    provenance : dict
        What was measured: models, prompts, conversation, versions.
    steps : int
        Steps made.
    """

    sequences: pd.DataFrame
    history: pd.DataFrame
    config: SearchConfig
    provenance: dict[str, Any]
    steps: int

    @property
    def best(self) -> pd.Series:
        """The first row of `sequences`."""
        return self.sequences.iloc[0]

    @property
    def scored(self) -> int:
        """Sequences scored. A search that went on with more steps remembered its best, and may score others again."""
        return int(self.history["scored"].iloc[-1])


def read_result(path: Path) -> SearchResult:
    """A result that a search has written.

    Raises
    ------
    InputError
        No such file, or another one.
    """
    try:
        content = json.loads(Path(path).read_bytes())
        options = {name: value for name, value in content["config"].items() if value is not None}
        config = SearchConfig(**options)  # which refuses an option that is no more, where one was given
        sequences = pd.DataFrame(content["sequences"])
        sequences["ids"] = sequences["ids"].map(tuple)
        history = pd.DataFrame(content["history"])
        return SearchResult(sequences, history, config, content["provenance"], content["steps"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is missing, damaged, or not a result of rmnb search") from error

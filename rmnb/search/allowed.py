"""Which tokens a search may use."""

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.search.config import SearchConfig


def allowed_ids(words: pd.DataFrame, config: SearchConfig) -> np.ndarray:
    """Ids that a search may choose from, ascending, int64.

    Parameters
    ----------
    words
        The vocabulary as `rmnb.models.vocabulary.vocabulary` gives it.
    config
        `allowed`, `script` and `banned` decide.

    Raises
    ------
    InputError
        Nothing is left.
    """
    kind, token = words["kind"], words["token"]
    chosen = np.ones(len(words), dtype=bool)
    if config.allowed != "every":
        chosen &= ~kind.isin(["special", "unused"]).to_numpy()
    if config.allowed in ("printable", "ascii", "language"):
        visible = [text.isprintable() and "\ufffd" not in text and bool(text.strip()) for text in token]
        chosen &= np.array(visible) & (kind != "byte").to_numpy()
    if config.allowed == "words":
        chosen &= kind.isin(["word_start", "word_continuation"]).to_numpy()
    if config.allowed == "ascii":
        chosen &= np.array([text.isascii() for text in token])
    if config.allowed == "language":
        chosen &= words["script"].isin([config.script, "none"]).to_numpy()
    ids = words["token_id"].to_numpy().astype(np.int64)[chosen]
    ids = ids[~np.isin(ids, config.banned)]
    if not len(ids):
        raise InputError(f"no token is left to search with (allowed: {config.allowed}, script: {config.script})")
    return ids

"""The frequency slope under every combination of choices that nobody is forced to make."""

import functools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.frequency_slopes import slope, slope_value
from rmnb.findings.specifications import specification_curve, survival_rows
from rmnb.findings.word_tokens import choose
from rmnb.stats.estimate import Estimate

_HELD = {"and token id": "token id", "and length, spelling": "spelling", "valence": "valence"}
_SCORES = {"standard score": "z", "rank": "rank"}


def curves(tokens: Mapping[str, Mapping[str, Mapping[str, pd.DataFrame]]]) -> dict[str, pd.DataFrame]:
    """For each prompt its mean slope over models under all choices; prompts with too few words for any are left out.

    Parameters
    ----------
    tokens
        Protocol → prompt → model → `rmnb.findings.word_tokens`; the chapter's protocol first. Another protocol counts
        where it has the same models.

    Returns
    -------
    dict
        Prompt → table of `rmnb.findings.specifications.specification_curve`, in standard deviations of the score; a
        single model brings its own interval.
    """
    found = {}
    for prompt, of in next(iter(tokens.values()), {}).items():
        same = {protocol: by[prompt] for protocol, by in tokens.items() if set(by.get(prompt, {})) == set(of)}
        try:
            found[prompt] = curve(same)
        except InputError:
            continue
    return found


def curve(tokens: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """The curve of one prompt: protocol → model → `rmnb.findings.word_tokens` (see `curves`)."""

    @functools.lru_cache(maxsize=max(map(len, tokens.values()), default=1))
    def rows_of(protocol: str, model: str, words: str, unit: str) -> pd.DataFrame:
        return choose(tokens[protocol][model], words, unit=unit)

    def estimate(protocol: str, words: str, unit: str, held: str, score: str) -> Estimate | None:
        of = [rows_of(protocol, model, words, unit) for model in tokens[protocol]]
        if len(of) == 1:
            return slope(of[0], _HELD[held], _SCORES[score])
        scale = np.sqrt(12) if score == "rank" else 1.0  # a uniform rank has the standard deviation 1 / sqrt(12)
        found = [scale * slope_value(rows, _HELD[held], _SCORES[score]) for rows in of]
        return stats.mean_over_models(found) if found and np.isfinite(found).all() else None

    choices = {
        "protocol": list(tokens),
        "words": ["AFINN", "others"],
        "unit": ["token", "word"],
        "held": list(_HELD),
        "score": list(_SCORES),
    }
    table = specification_curve(choices, estimate)
    return table.drop(columns=[choice for choice, options in choices.items() if len(options) == 1])


def measure(found: Mapping[str, pd.DataFrame], panel: str) -> pd.DataFrame:
    """Rows specifications_same_sign and specifications_clear of `curves`, `other` the prompt."""
    counts = [survival_rows(table, "frequency", panel, prompt) for prompt, table in found.items()]
    return pd.concat(counts, ignore_index=True) if counts else pd.DataFrame()

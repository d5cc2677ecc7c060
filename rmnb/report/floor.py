"""How far a report's numbers move when nothing about meaning changes: scores with the rounding errors of a precision.

What is kept of a model is the standard deviation of these errors, in units of reward: ``noise`` of a report's
provenance. With it `floor` gives each number's floor wherever the scores are.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rmnb.models.reward_model import RewardModel
from rmnb.report.comparison import Measure, comparable, quickly
from rmnb.report.scores import FRAMING, THINGS, ModelScores
from rmnb.scoring.conversations import score_sequences
from rmnb.scoring.engine import PrefixScorer

#: Standard deviation of rounding errors, in standard deviations of a scan: of the two bases of the demo panel the one
#: with the larger (`rmnb.scoring.noise`).
ROUNDING = {"float32": 3e-6, "bfloat16-mixed": 0.007, "float16": 0.005, "bfloat16": 0.07}


def rounding(scores: ModelScores) -> float:
    """Standard deviation of the rounding errors to be expected of the precision that a model was scored in."""
    relative = ROUNDING.get(str(scores.provenance.get("dtype") or "float32"), max(ROUNDING.values()))
    return relative * float(scores.table["greatest"].std(ddof=0))


def measured_rounding(rm: RewardModel, scores: ModelScores, tokens: int = 200, seed: int = 0) -> float:
    """The same for a model that is loaded: some tokens of its scan are scored again, in two other ways.

    Alone, as whole sequences without the shared prefix, and in batches of another size. The root mean square of the
    larger differences, or `rounding` if that is more: a processor may round alike whatever the batch.
    """
    rng = np.random.default_rng(seed)
    chosen = scores.table.iloc[np.sort(rng.choice(len(scores.table), min(tokens, len(scores.table)), replace=False))]
    prefix, closing = rm.dialogue.frame(str(scores.provenance["prompt"]))
    ids = [[int(token), *closing] for token in chosen["token_id"]]
    alone = dataclasses.replace(rm, plain_because="whole sequences, to see how rewards are rounded")
    again = [score_sequences(alone, [[*prefix, *one] for one in ids]), PrefixScorer(rm, prefix)(ids)]
    errors = [np.sqrt(np.mean((one - chosen["greatest"].to_numpy()) ** 2)) for one in again]
    return max(rounding(scores), *map(float, errors))


def floor(
    scores: ModelScores, sd: float | None = None, draws: int = 3, seed: int = 0, measure: Measure = quickly
) -> pd.Series:
    """For each number the largest change that random errors of the scores make, of several draws.

    Parameters
    ----------
    scores
        Of one model.
    sd
        Standard deviation of the errors, in units of reward. Default: `rounding`.
    draws, seed
        How often the errors are drawn, and where the draw starts.
    measure
        Gives the rows of one model.

    Returns
    -------
    Series
        Float64, by `rmnb.report.comparison.KEY`. Errors that all tokens share, as half precision makes them too, are
        not in it: they move raw scores, and none of the numbers much.
    """
    sd = rounding(scores) if sd is None else sd
    rng = np.random.default_rng(seed)
    kept = comparable(measure(scores))["value"]
    shaken = [comparable(measure(with_errors(scores, sd, rng)))["value"] for _ in range(draws)]
    changes = [(values - kept).abs() for values in shaken]
    return pd.concat(changes, axis=1).max(axis=1).reindex(kept.index).rename("floor")


def with_errors(scores: ModelScores, sd: float, rng: np.random.Generator) -> ModelScores:
    """The scores with an independent normal error on each."""

    def shaken(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        errors = rng.normal(0, sd, (len(frame), len(columns)))
        return frame.assign(**{name: frame[name] + errors[:, at] for at, name in enumerate(columns)})

    things = None if scores.things is None else shaken(scores.things, [THINGS])
    words = shaken(scores.words, list(scores.wordings))
    return dataclasses.replace(scores, table=shaken(scores.table, list(FRAMING)), words=words, things=things)

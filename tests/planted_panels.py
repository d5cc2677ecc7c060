"""Tables of models whose rewards are planted, as `rmnb.load_tables` returns them."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from rmnb.planted.rewards import Framing, PlantedEffects, planted_scores, scatter


def planted_panel(
    features: pd.DataFrame,
    effects: PlantedEffects,
    models: Iterable[str],
    questions: Mapping[str, Framing],
    seed: int | np.random.Generator = 0,
) -> dict[str, pd.DataFrame]:
    """Tables of models that share a part of their word effects, as `rmnb.load_tables` returns them.

    Parameters
    ----------
    features
        As `word_features` returns them.
    effects
        What is planted.
    models
        Names of the models.
    questions
        The name of each question's column to its framing.
    seed
        Of all draws.

    Returns
    -------
    dict
        Model to the features with a float64 column of rewards for each question.
    """
    rng = np.random.default_rng(seed)
    n_words = features["word"].nunique()
    shared = scatter(n_words, effects.shared_word_sd, effects.skewness, rng)
    tables = {}
    for model in models:
        word_effects = shared + scatter(n_words, effects.word_sd, effects.skewness, rng)
        rewards = {
            question: planted_scores(features, effects, rng, framing, word_effects)
            for question, framing in questions.items()
        }
        tables[model] = features.assign(**rewards)
    return tables

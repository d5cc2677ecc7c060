"""Planted rewards: scans whose truth is known, because the reward is a stated function of the word.

    reward = intercept + f * valence slope * valence + frequency slope * log frequency + length slope * length
             + gap of the identity axis + word effect + noise

where f is 1 for a question that asks for something good and `negative_framing` for one that asks for something bad.
The spellings of a word ("love", " Love") share its word effect, as they share most of a real model's reward.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb.data import lexicons

Framing = Literal["positive", "negative"]


@dataclass(frozen=True)
class PlantedEffects:
    """What a planted reward depends on; by default on nothing but random word effects and noise.

    Attributes
    ----------
    intercept : float
    valence_positive, valence_negative : float
        Reward per point of AFINN valence, above and below zero.
    log_frequency, length : float
        Reward per unit of natural log frequency per million, and per character.
    identity : mapping
        Identity axis to the reward added to its terms.
    negative_framing : float
        Factor on valence under a negative question; -1 reverses it.
    shared_word_sd, word_sd, noise_sd : float
        Standard deviation of word effects common to all models, of a model's own, and of every single reward.
    skewness : float
        Of word effects and noise (gamma distributed); 0 is normal.
    """

    intercept: float = 0.0
    valence_positive: float = 0.0
    valence_negative: float = 0.0
    log_frequency: float = 0.0
    length: float = 0.0
    identity: Mapping[str, float] = field(default_factory=dict)
    negative_framing: float = -1.0
    shared_word_sd: float = 0.0
    word_sd: float = 1.0
    noise_sd: float = 0.5
    skewness: float = 0.0


def spell(words: Iterable[str], variants: Iterable[int] = itertools.repeat(4)) -> pd.DataFrame:
    """A vocabulary with up to four spellings of each word: " love", "love", " Love", "Love".

    Parameters
    ----------
    words
        Distinct lower-case words.
    variants
        How many spellings each word has, 1 to 4.

    Returns
    -------
    DataFrame
        token_id (int32), token (str), kind (category), as a real vocabulary has them.
    """
    rows = []
    for word, number in zip(words, variants, strict=False):
        spellings = (f" {word}", word, f" {word.capitalize()}", word.capitalize())
        kinds = ("word_start", "word_continuation", "word_start", "word_continuation")
        rows += zip(spellings[:number], kinds[:number], strict=True)
    table = pd.DataFrame(rows, columns=["token", "kind"]).astype({"kind": "category"})
    table.insert(0, "token_id", np.arange(len(table), dtype=np.int32))
    return table


def word_features(vocabulary: pd.DataFrame, identity: Mapping[str, str] | None = None) -> pd.DataFrame:
    """What a planted reward can depend on, one row a token.

    Parameters
    ----------
    vocabulary
        Columns token_id, token, kind.
    identity
        Word to identity axis; by default the project's own list.

    Returns
    -------
    DataFrame
        token_id, token, kind, word (stripped, case folded), valence (float64, 0 for words absent from AFINN),
        log_frequency (natural log of occurrences per million), length (characters), axis ("" for none).
    """
    if identity is None:
        terms = lexicons.identity_terms()
        identity = dict(zip(terms["term"].str.casefold(), terms["axis"], strict=True))
    word = vocabulary["token"].str.strip().str.casefold()
    return vocabulary[["token_id", "token", "kind"]].assign(
        word=word,
        valence=word.map(lexicons.afinn().set_index("word")["valence"]).fillna(0.0).astype(float),
        log_frequency=(np.maximum(lexicons.zipf(word), lexicons.RAREST) - 3) * np.log(10),
        length=word.str.len().astype(float),
        axis=[identity.get(text, "") for text in word],
    )


def planted_scores(
    features: pd.DataFrame,
    effects: PlantedEffects,
    rng: np.random.Generator,
    framing: Framing = "positive",
    word_effects: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Rewards (tokens,) float64 of one model under one question.

    Parameters
    ----------
    features
        As `word_features` returns them, one row a token.
    effects
        What is planted.
    rng
        Draws word effects and noise.
    framing
        positive for a question that asks for something good, negative for one that asks for something bad.
    word_effects
        A model's own, (words,), in the order in which words first appear in `features`. Give the same ones for all
        questions of a model. By default they are drawn.
    """
    codes, words = pd.factorize(features["word"])
    if word_effects is None:
        word_effects = scatter(len(words), effects.word_sd, effects.skewness, rng)
    valence = features["valence"].to_numpy()
    slope = np.where(valence > 0, effects.valence_positive, effects.valence_negative)
    factor = 1.0 if framing == "positive" else effects.negative_framing
    scores = effects.intercept + factor * slope * valence
    scores += effects.log_frequency * features["log_frequency"].to_numpy()
    scores += effects.length * features["length"].to_numpy()
    scores += features["axis"].map(dict(effects.identity)).fillna(0.0).to_numpy(float)
    return scores + word_effects[codes] + scatter(len(scores), effects.noise_sd, effects.skewness, rng)


def scatter(n: int, sd: float, skewness: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws (n,) with mean zero: normal, or of a gamma distribution with this skewness."""
    if sd == 0:
        return np.zeros(n)
    if skewness == 0:
        return sd * rng.standard_normal(n)
    shape = 4 / skewness**2
    return np.sign(skewness) * sd * (rng.gamma(shape, size=n) - shape) / np.sqrt(shape)

"""Planted rewards: scans whose truth is known, because the reward is a stated function of the word.

    score = intercept + f · valence effect + frequency effect + length effect + identity effect
            + f · (communion or agency effect of the base) + word effect + noise

where f is 1 for a prompt that asks for something good and ``negative_framing`` for one that asks for something bad.
Spellings of one word ("love", " Love") share its word effect, as they share most of a real model's reward.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb.data import lexicons
from rmnb.errors import InputError

Framing = Literal["positive", "negative"]
RAREST = 1.0  # Zipf: the lowest frequency that wordfreq tells from zero, ten in a thousand million words
SPELLINGS = ((" {}", "word_start"), ("{}", "word_continuation"), (" {}", "word_start"), ("{}", "word_continuation"))


@dataclass(frozen=True)
class PlantedEffects:
    """What a planted reward depends on; everything is off but the scatter.

    Attributes
    ----------
    intercept : float
    valence_positive, valence_negative : float
        Reward per point of AFINN valence, above and below zero.
    log_frequency, length : float
        Reward per unit of natural log frequency per million, and per character.
    identity : mapping, axis → reward added to the axis's terms
    communion : mapping, base → reward of communion words less that of agency words, for models of that base
    negative_framing : float
        Factor on the valence and communion effects under a negative prompt; -1 turns them round.
    shared_word_sd, word_sd, noise_sd : float
        Standard deviation of word effects common to all models, of a model's own, and of every single score.
    skewness : float
        Of word effects and noise, each gamma distributed; 0 is normal.
    """

    intercept: float = 0.0
    valence_positive: float = 0.0
    valence_negative: float = 0.0
    log_frequency: float = 0.0
    length: float = 0.0
    identity: Mapping[str, float] = field(default_factory=dict)
    communion: Mapping[str, float] = field(default_factory=dict)
    negative_framing: float = -1.0
    shared_word_sd: float = 0.0
    word_sd: float = 1.0
    noise_sd: float = 0.5
    skewness: float = 0.0


def spell(words: Iterable[str], variants: int | Iterable[int] = 4) -> pd.DataFrame:
    """A vocabulary that spells each word up to four ways: " love", "love", " Love", "Love".

    Parameters
    ----------
    words : distinct lower-case words
    variants : int, or one int a word, 1 to 4

    Returns
    -------
    DataFrame
        token_id (int32), token (str), kind (category), as a real vocabulary has them.
    """
    words = list(words)
    numbers = [variants] * len(words) if isinstance(variants, int) else list(variants)
    if len(numbers) != len(words) or not all(1 <= number <= 4 for number in numbers):
        raise InputError("variants must be a number from 1 to 4, or one such number a word")
    rows = [
        (pattern.format(word if place < 2 else word.capitalize()), kind)
        for word, number in zip(words, numbers, strict=True)
        for place, (pattern, kind) in enumerate(SPELLINGS[:number])
    ]
    return pd.DataFrame(
        {
            "token_id": np.arange(len(rows), dtype=np.int32),
            "token": [token for token, _ in rows],
            "kind": pd.Categorical([kind for _, kind in rows]),
        }
    )


def word_features(
    vocabulary: pd.DataFrame | Iterable[str],
    identity: Mapping[str, str] | None = None,
    categories: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """What a planted reward can depend on, one row a token.

    Parameters
    ----------
    vocabulary : DataFrame with token_id, token, kind; or words, which are spelled once each
    identity : word → axis; the project's own list if not given
    categories : word → "agency" or "communion"; the project's own list if not given

    Returns
    -------
    DataFrame
        token_id, token, kind, word (stripped and case-folded), valence (float, NaN for words absent from AFINN),
        log_frequency (natural log of occurrences per million), length (characters), axis and category ("" for none).
    """
    if not isinstance(vocabulary, pd.DataFrame):
        vocabulary = spell(vocabulary, variants=1)
    missing = {"token_id", "token", "kind"} - set(vocabulary.columns)
    if missing:
        raise InputError(f"the vocabulary has no column {', '.join(sorted(missing))}")
    word = vocabulary["token"].str.strip().str.casefold()
    distinct = word.unique()
    zipf = word.map(dict(zip(distinct, lexicons.zipf(distinct), strict=True))).to_numpy(float)
    valence = lexicons.afinn().set_index("word")["valence"]
    if identity is None:
        terms = lexicons.identity_terms()
        identity = dict(zip(terms["term"].str.casefold(), terms["axis"], strict=True))
    if categories is None:
        nouns = lexicons.agency_communion()
        categories = dict(zip(nouns["word"], nouns["category"], strict=True))
    return pd.DataFrame(
        {
            "token_id": vocabulary["token_id"].to_numpy(np.int32),
            "token": vocabulary["token"].array,
            "kind": vocabulary["kind"].array,
            "word": word.to_numpy(),
            "valence": word.map(valence).to_numpy(float),
            "log_frequency": (np.maximum(zipf, RAREST) - 3) * np.log(10),
            "length": word.str.len().to_numpy(float),
            "axis": [identity.get(text, "") for text in word],
            "category": [categories.get(text, "") for text in word],
        }
    )


def word_codes(features: pd.DataFrame) -> tuple[NDArray[np.intp], int]:
    """Each token's word as a number from 0, and how many words there are."""
    codes, words = pd.factorize(features["word"])
    return codes, len(words)


def planted_scores(
    features: pd.DataFrame,
    effects: PlantedEffects,
    rng: np.random.Generator,
    framing: Framing = "positive",
    base: str = "",
    word_effects: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Rewards (tokens,) of one model under one prompt.

    `word_effects` (words,) of a model are the same under all its prompts: draw them once with `draw_word_effects`.
    """
    if framing not in ("positive", "negative"):
        raise InputError(f"framing must be 'positive' or 'negative', got {framing!r}")
    codes, n_words = word_codes(features)
    if word_effects is None:
        word_effects = draw_word_effects(n_words, effects, rng)
    valence = np.nan_to_num(features["valence"].to_numpy())
    slope = np.where(valence > 0, effects.valence_positive, effects.valence_negative)
    category = features["category"].to_numpy()
    contrast = effects.communion.get(base, 0.0) * ((category == "communion") - 0.5 * np.isin(category, _CATEGORIES))
    turned = 1.0 if framing == "positive" else effects.negative_framing
    scores = effects.intercept + turned * (slope * valence + contrast) + word_effects[codes]
    scores += effects.log_frequency * features["log_frequency"].to_numpy()
    scores += effects.length * features["length"].to_numpy()
    if effects.identity:
        scores += np.array([effects.identity.get(axis, 0.0) for axis in features["axis"]])
    return scores + _scatter(len(scores), effects.noise_sd, effects.skewness, rng)


_CATEGORIES = ["agency", "communion"]


def planted_scan(
    vocabulary: pd.DataFrame | Iterable[str],
    effects: PlantedEffects,
    seed: int | np.random.Generator = 0,
    framing: Framing = "positive",
    base: str = "",
) -> pd.DataFrame:
    """A scan as `rmnb.scan_vocabulary` returns it: token_id, token, kind, score (float32), one row an id.

    `vocabulary` may be a real one, a list of words, or `word_features` (which are then not computed again).
    """
    features = _as_features(vocabulary)
    return as_scan(features, planted_scores(features, effects, np.random.default_rng(seed), framing, base))


def planted_panel(
    vocabulary: pd.DataFrame | Iterable[str],
    effects: PlantedEffects,
    models: Mapping[str, str],
    prompts: Mapping[str, Framing],
    seed: int | np.random.Generator = 0,
    communion_sd: float = 0.0,
    slope_sd: float = 0.0,
) -> dict[str, dict[str, pd.DataFrame]]:
    """Scans of several models under several prompts, ``panel[prompt][model]``.

    Parameters
    ----------
    models : name → base
    prompts : key → framing
    communion_sd, slope_sd : float
        How much models of one base differ in their communion effect, and in each of their valence slopes.
    """
    features = _as_features(vocabulary)
    rng = np.random.default_rng(seed)
    panel: dict[str, dict[str, pd.DataFrame]] = {prompt: {} for prompt in prompts}
    for model, base, own, word_effects in planted_models(features, effects, models, rng, communion_sd, slope_sd):
        for prompt, framing in prompts.items():
            scores = planted_scores(features, own, rng, framing, base, word_effects)
            panel[prompt][model] = as_scan(features, scores)
    return panel


def planted_models(
    features: pd.DataFrame,
    effects: PlantedEffects,
    models: Mapping[str, str],
    rng: np.random.Generator,
    communion_sd: float = 0.0,
    slope_sd: float = 0.0,
) -> list[tuple[str, str, PlantedEffects, NDArray[np.float64]]]:
    """Name, base, own effects and word effects of each model of a panel, deviations drawn."""
    _, n_words = word_codes(features)
    shared = _scatter(n_words, effects.shared_word_sd, effects.skewness, rng)
    drawn = []
    for model, base in models.items():
        own = replace(
            effects,
            valence_positive=effects.valence_positive + slope_sd * rng.normal(),
            valence_negative=effects.valence_negative + slope_sd * rng.normal(),
            communion={base: effects.communion.get(base, 0.0) + communion_sd * rng.normal()},
        )
        drawn.append((model, base, own, shared + _scatter(n_words, effects.word_sd, effects.skewness, rng)))
    return drawn


def draw_word_effects(n_words: int, effects: PlantedEffects, rng: np.random.Generator) -> NDArray[np.float64]:
    """Shared and own word effects of one model (words,)."""
    shared = _scatter(n_words, effects.shared_word_sd, effects.skewness, rng)
    return shared + _scatter(n_words, effects.word_sd, effects.skewness, rng)


def as_scan(features: pd.DataFrame, scores: NDArray[np.float64]) -> pd.DataFrame:
    """token_id, token, kind, score (float32)."""
    return features[["token_id", "token", "kind"]].assign(score=scores.astype(np.float32))


def _as_features(vocabulary: pd.DataFrame | Iterable[str]) -> pd.DataFrame:
    if isinstance(vocabulary, pd.DataFrame) and {"word", "valence", "log_frequency"} <= set(vocabulary.columns):
        return vocabulary
    return word_features(vocabulary)


def _scatter(n: int, sd: float, skewness: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mean 0, the standard deviation and skewness given."""
    if sd == 0:
        return np.zeros(n)
    if skewness == 0:
        return sd * rng.standard_normal(n)
    shape = 4 / skewness**2
    return np.sign(skewness) * sd * (rng.gamma(shape, size=n) - shape) / np.sqrt(shape)

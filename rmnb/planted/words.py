"""Cases about words: one model's moments, agreement of rankings, slopes and identity gaps."""

from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import agency
from rmnb.findings.identity import mean_of_sets
from rmnb.planted.rewards import PlantedEffects, planted_scores, spell, word_features

#: The truth, and the estimate from one data set; its interval or p-value are NaN if the estimator has none.
Outcome = tuple[float, stats.Estimate]

SLOPES = PlantedEffects(valence_positive=0.4, valence_negative=0.25)
VALENCE = PlantedEffects(valence_positive=0.4, valence_negative=0.25, log_frequency=0.1, length=-0.1)
IDENTITY = PlantedEffects(identity={"planted": -0.6}, log_frequency=0.1)
SKEWED = PlantedEffects(intercept=1.0, word_sd=1.0, noise_sd=0.5, skewness=1.0)
AGREEING = PlantedEffects(shared_word_sd=1.0, word_sd=0.8, noise_sd=0.3)


@cache
def valence_words() -> pd.DataFrame:
    """600 words of AFINN, frequent ones in up to four spellings, as vocabularies have them."""
    words = [word for word in lexicons.afinn()["word"] if word.isalpha()]
    chosen = np.random.default_rng(0).permutation(words)[:600].tolist()
    return word_features(spell(chosen, _spellings(chosen)))


@cache
def common_words() -> pd.DataFrame:
    """4,000 frequent English words, spelled likewise."""
    words = [word for word in lexicons.frequent_words(6000) if word.isalpha() and word.isascii()][:4000]
    return word_features(spell(words, _spellings(words)))


def _spellings(words: list[str]) -> list[int]:
    order = rankdata(lexicons.zipf(words), method="ordinal")
    return (1 + (order - 1) * 4 // len(words)).astype(int).tolist()


@cache
def matched_words() -> pd.DataFrame:
    """The project's identity terms that are one word, their controls, and 1,000 other words.

    Columns beside the features: matched_set ("" for other words), is_term. All axes are planted alike.
    """
    table = lexicons.identity_terms()
    for column in ("term", "control"):
        table = table[table[column].str.isalpha() & ~table[column].str.casefold().duplicated()]
    named = [*table["term"], *table["control"]]
    others = common_words().drop_duplicates("word")["word"].head(1000)
    tokens = [*named, *others[~others.isin([word.casefold() for word in named])]]
    vocabulary = pd.DataFrame({"token_id": np.arange(len(tokens)), "token": tokens, "kind": "word_start"})
    features = word_features(vocabulary, identity=dict.fromkeys(table["term"].str.casefold(), "planted"))
    sets = [*(table["axis"] + " " + table["group"])] * 2
    sets += [""] * (len(tokens) - len(named))
    return features.assign(matched_set=sets, is_term=np.arange(len(tokens)) < len(table))


_VARIANCE = SKEWED.word_sd**2 + SKEWED.noise_sd**2
_SKEWNESS = SKEWED.skewness * (SKEWED.word_sd**3 + SKEWED.noise_sd**3) / _VARIANCE**1.5
_MOMENTS = {"mean": SKEWED.intercept, "variance": _VARIANCE, "skewness": _SKEWNESS}


def moment(rng: np.random.Generator, name: str, clustered: bool = True) -> Outcome:
    """A moment of one model's rewards, by its name in `rmnb.stats.moments`, clustered by word or by token."""
    features = common_words()
    scores = planted_scores(features, SKEWED, rng)
    clusters = pd.factorize(features["word"])[0] if clustered else None
    return _MOMENTS[name], stats.moments(scores, clusters)[name]


def two_models(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards (tokens,) of two models that share a part of the words' effects, and each token's word as an int code."""
    features = valence_words()
    codes, words = pd.factorize(features["word"])
    shared = AGREEING.shared_word_sd * rng.normal(size=len(words))
    scores = []
    for _ in range(2):
        own = AGREEING.word_sd * rng.normal(size=len(words))
        scores.append(planted_scores(features, AGREEING, rng, word_effects=shared + own))
    return scores[0], scores[1], codes


# Two normal models correlate as their shared variance: Greiner's and Pearson's formulas give tau and rho.
_CORRELATION = AGREEING.shared_word_sd**2 / (AGREEING.shared_word_sd**2 + AGREEING.word_sd**2 + AGREEING.noise_sd**2)
_TAU = 2 / np.pi * np.arcsin(_CORRELATION)
_RHO = 6 / np.pi * np.arcsin(_CORRELATION / 2)


def tau(rng: np.random.Generator, clustered: bool = True) -> Outcome:
    """Kendall's tau of two models with its closed-form interval, by word or as if spellings were independent."""
    first, second, words = two_models(rng)
    return _TAU, stats.kendall_interval(first, second, words if clustered else None)


def rho(rng: np.random.Generator) -> Outcome:
    """Spearman's rho of two models with its closed-form interval, clustered by word."""
    return _RHO, stats.spearman_interval(*two_models(rng))


def scored(features: pd.DataFrame, effects: PlantedEffects, rng: np.random.Generator) -> pd.DataFrame:
    """The features with a column score of planted rewards."""
    return features.assign(score=planted_scores(features, effects, rng))


def slope(rng: np.random.Generator, positive: float, negative: float, clusters: str | None = "word") -> Outcome:
    """A weighted sum of the slope among good words and the slope among bad ones."""
    words = scored(valence_words(), SLOPES, rng)
    words["side"] = np.where(words["valence"] > 0, "positive", "negative")
    fit = stats.ols("score ~ 0 + side + side:valence", words, clusters)
    estimate = fit.estimate({"side[positive]:valence": positive, "side[negative]:valence": negative})
    return positive * SLOPES.valence_positive + negative * SLOPES.valence_negative, estimate


def frequency(rng: np.random.Generator, controls: str, clusters: str | None = "word") -> Outcome:
    """The slope over log frequency, with valence and `controls` (terms of a formula) held constant."""
    words = scored(valence_words(), VALENCE, rng)
    words = words.assign(positive=words["valence"].clip(lower=0), negative=words["valence"].clip(upper=0))
    fit = stats.ols(f"score ~ log_frequency + positive + negative + {controls}", words, clusters)
    return VALENCE.log_frequency, fit["log_frequency"]


def framing(rng: np.random.Generator) -> Outcome:
    """Slope under the negative question minus slope under the positive one; a word keeps its own effect."""
    features = valence_words()
    own = rng.normal(size=features["word"].nunique())
    effects = PlantedEffects(valence_positive=0.4, valence_negative=0.4, negative_framing=-0.6)
    good = features.assign(score=planted_scores(features, effects, rng, "positive", word_effects=own), negative=0.0)
    bad = features.assign(score=planted_scores(features, effects, rng, "negative", word_effects=own), negative=1.0)
    fit = stats.ols("score ~ valence * negative", pd.concat([good, bad]), "word")
    return 0.4 * (-0.6 - 1), fit["valence:negative"]


def gap_interval(rng: np.random.Generator) -> Outcome:
    """The interval of a planted gap, over matched sets."""
    words = scored(matched_words(), IDENTITY, rng).query("matched_set != ''")
    means = words.groupby(["matched_set", "is_term"])["score"].mean().unstack()
    return IDENTITY.identity["planted"], mean_of_sets(means[True] - means[False])


# As the axis religion of chapter 5: sets of three forms of one group and their controls, by name. Of the variance
# between forms this share belongs to the set.
N_SETS, N_FORMS, OF_SET = 13, 3, 0.5


def _forms(rng: np.random.Generator) -> np.ndarray:
    """Scores (sets, term or control, forms) where no gap is planted; what forms of one word share is their own."""
    shared = np.sqrt(OF_SET) * rng.normal(size=(N_SETS, 2, 1))
    return shared + np.sqrt(1 - OF_SET) * rng.normal(size=(N_SETS, 2, N_FORMS))


def signs_of_sets(rng: np.random.Generator) -> Outcome:
    """One difference a set, its sign flipped."""
    scores = _forms(rng).mean(axis=-1)
    return 0.0, stats.sign_flip_test(scores[:, 0] - scores[:, 1])


def forms_exchanged(rng: np.random.Generator) -> Outcome:
    """Every form of a set may have been the term: its six words are dealt anew, 499 times."""
    scores = _forms(rng).reshape(N_SETS, -1)
    dealt = rng.permuted(np.broadcast_to(scores, (499, *scores.shape)), axis=-1)
    means = np.concatenate([scores[None], dealt]).reshape(500, N_SETS, 2, N_FORMS).mean(axis=(1, 3))
    gaps = means[:, 0] - means[:, 1]
    is_as_large = np.abs(gaps) >= np.abs(gaps[0]) - 1e-12
    return 0.0, stats.Estimate(float(gaps[0]), N_SETS, N_SETS, p_value=float(is_as_large.mean()))


def _two_kinds(rng: np.random.Generator) -> tuple[float, pd.DataFrame]:
    """60 words of agency and 60 of communion, 2 standard deviations apart; the gap that is true of all such words."""
    table = pd.DataFrame({"category": np.repeat(["agency", "communion"], 60), "asked": rng.normal(size=120)})
    table["asked"] += 2.0 * (table["category"] == "agency")
    return 100 * (float(norm.cdf(-2.0 / np.sqrt(2))) - 0.5), table


def placements(rng: np.random.Generator) -> Outcome:
    """The gap of two kinds of word that lie apart, with the interval of the words' placements."""
    truth, table = _two_kinds(rng)
    return truth, agency.gap(table, "asked", {"asked": ["asked"]})["agency_gap"]


def ranks_by_welch(rng: np.random.Generator) -> Outcome:
    """The same gap with Welch's interval of the words' ranks, as if these were independent of one another."""
    truth, table = _two_kinds(rng)
    ranks = agency.percent_ranks(table, ["asked"])["asked"]
    return truth, stats.difference_between_groups(ranks, table["category"] == "agency")


def gap_unmatched(rng: np.random.Generator) -> Outcome:
    """Identity terms against all other words, which are more frequent."""
    words = scored(matched_words(), IDENTITY, rng)
    words = words[words["is_term"] | (words["matched_set"] == "")]
    return IDENTITY.identity["planted"], stats.ols("score ~ is_term", words)["is_term[T.True]"]

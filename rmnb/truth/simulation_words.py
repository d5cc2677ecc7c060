"""Cases about words: one model's moments, rank agreement, slopes and identity gaps."""

from functools import cache

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.truth.planted import PlantedEffects, planted_scores, spell, word_codes, word_features
from rmnb.truth.simulation import Case, Outcome

VALENCE = PlantedEffects(valence_positive=0.4, valence_negative=0.25, log_frequency=0.1, length=-0.1)
NEGATIVE = PlantedEffects(valence_positive=0.4, valence_negative=0.25, negative_framing=-0.6)
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
    from wordfreq import top_n_list

    words = [word for word in top_n_list("en", 6000) if word.isalpha() and word.isascii()][:4000]
    return word_features(spell(words, _spellings(words)))


def _spellings(words: list[str]) -> list[int]:
    order = np.argsort(np.argsort(lexicons.zipf(words), kind="stable"), kind="stable")
    return (1 + order * 4 // len(words)).tolist()


@cache
def matched_words() -> pd.DataFrame:
    """The project's identity terms that are one word, their controls, and 1,000 other words.

    Columns beside the features: matched_set ("" for other words), is_term. All axes are planted alike.
    """
    table = lexicons.identity_terms().drop_duplicates(["axis", "group", "term"])
    table = table.loc[table["term"].str.isalpha() & table["control"].str.isalpha()]
    table = table.loc[~table["term"].str.casefold().duplicated() & ~table["control"].str.casefold().duplicated()]
    sets = (table["axis"] + " " + table["group"]).to_numpy()
    others = common_words().drop_duplicates("word")["word"].head(1000)
    named = set(table["term"].str.casefold()) | set(table["control"].str.casefold())
    others = [word for word in others if word not in named]
    tokens = [*table["term"], *table["control"], *others]
    axes = dict.fromkeys(table["term"].str.casefold(), "planted")
    features = word_features(_as_vocabulary(tokens), identity=axes)
    return features.assign(matched_set=[*sets, *sets, *[""] * len(others)], is_term=np.arange(len(tokens)) < len(table))


def _as_vocabulary(tokens: list[str]) -> pd.DataFrame:
    ids = np.arange(len(tokens), dtype=np.int32)
    return pd.DataFrame({"token_id": ids, "token": tokens, "kind": pd.Categorical(["word_start"] * len(tokens))})


def _moment(name: str, truth: float, clustered: bool = True):
    def simulate(rng: np.random.Generator) -> Outcome:
        features = common_words()
        scores = planted_scores(features, SKEWED, rng)
        found = stats.moments(scores, word_codes(features)[0] if clustered else None)
        return Outcome.of(truth, getattr(found, name))

    return simulate


def _two_models(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features = valence_words()
    codes, n_words = word_codes(features)
    shared = AGREEING.shared_word_sd * rng.normal(size=n_words)
    x, y = (
        planted_scores(features, AGREEING, rng, word_effects=shared + AGREEING.word_sd * rng.normal(size=n_words))
        for _ in range(2)
    )
    return x, y, codes


_CORRELATION = AGREEING.shared_word_sd**2 / (
    AGREEING.shared_word_sd**2 + AGREEING.word_sd**2 + AGREEING.noise_sd**2
)  # of two normal models; hence tau (Greiner) and rho (Pearson)
_TAU = 2 / np.pi * np.arcsin(_CORRELATION)
_RHO = 6 / np.pi * np.arcsin(_CORRELATION / 2)


def _tau(rng: np.random.Generator) -> Outcome:
    return Outcome.of(_TAU, stats.kendall_interval(*_two_models(rng)))


def _tau_by_token(rng: np.random.Generator) -> Outcome:
    x, y, _ = _two_models(rng)
    return Outcome.of(_TAU, stats.kendall_interval(x, y))


def _tau_bootstrap(rng: np.random.Generator) -> Outcome:
    found = stats.bootstrap_tau(*_two_models(rng), n_draws=300, seed=rng)
    return Outcome(_TAU, float(found.value), float(found.ci_low), float(found.ci_high))


def _rho_bootstrap(rng: np.random.Generator) -> Outcome:
    x, y, codes = _two_models(rng)
    found = stats.bootstrap(stats.spearman, x, y, clusters=codes, n_draws=300, seed=rng)
    return Outcome(_RHO, float(found.value), float(found.ci_low), float(found.ci_high))


def _slope(positive: float, negative: float, clusters: str | None = "word"):
    """The slope above zero as often as `positive` says, and likewise below: weights of what is planted and found."""

    def simulate(rng: np.random.Generator) -> Outcome:
        effects = PlantedEffects(valence_positive=0.4, valence_negative=0.25)
        words = _scored(valence_words(), effects, rng)
        words = words.assign(side=np.where(words["valence"] > 0, "positive", "negative"))
        fit = stats.ols("score ~ 0 + side + side:valence", words, clusters)
        found = fit.contrast({"side[positive]:valence": positive, "side[negative]:valence": negative})
        return Outcome.of(positive * effects.valence_positive + negative * effects.valence_negative, found)

    return simulate


def _frequency(controls: str, clusters: str | None = "word"):
    def simulate(rng: np.random.Generator) -> Outcome:
        words = _scored(valence_words(), VALENCE, rng)
        words = words.assign(positive=words["valence"].clip(lower=0), negative=words["valence"].clip(upper=0))
        fit = stats.ols(f"score ~ log_frequency + positive + negative + {controls}", words, clusters)
        return Outcome.of(VALENCE.log_frequency, fit["log_frequency"])

    return simulate


def _scored(features: pd.DataFrame, effects: PlantedEffects, rng: np.random.Generator) -> pd.DataFrame:
    return features.assign(score=planted_scores(features, effects, rng))


def _curvature(rng: np.random.Generator) -> Outcome:
    words = _scored(valence_words(), PlantedEffects(log_frequency=0.1), rng)
    found = stats.curvature("score ~ log_frequency", words, "log_frequency", clusters="word")
    return Outcome(float("nan"), found.statistic, p_value=found.p_value)


def _framing(rng: np.random.Generator) -> Outcome:
    """Slope under the negative prompt less slope under the positive one, words' own effects shared by both."""
    features = valence_words()
    own = rng.normal(size=word_codes(features)[1])
    effects = PlantedEffects(valence_positive=0.4, valence_negative=0.4, negative_framing=-0.6)
    words = pd.concat(
        features.assign(score=planted_scores(features, effects, rng, framing, word_effects=own), negative=float(at))
        for at, framing in enumerate(("positive", "negative"))
    )
    fit = stats.ols("score ~ valence * negative", words, "word")
    return Outcome.of(0.4 * (-0.6 - 1), fit["valence:negative"])


def _gap(rng: np.random.Generator, effects: PlantedEffects = IDENTITY) -> stats.Gap:
    words = _scored(matched_words(), effects, rng).query("matched_set != ''")
    labels = words["is_term"], words["matched_set"], np.full(len(words), "all")
    return stats.identity_gaps(words["score"], *labels, n_permutations=999, seed=rng)[0]


def _gap_interval(rng: np.random.Generator) -> Outcome:
    return Outcome.of(IDENTITY.identity["planted"], _gap(rng).gap)


def _gap_null(rng: np.random.Generator) -> Outcome:
    found = _gap(rng, PlantedEffects(log_frequency=0.1))
    return Outcome(0.0, found.gap.value, p_value=found.p_value)


def _gap_unmatched(rng: np.random.Generator) -> Outcome:
    """Identity terms against all other words, whose frequency is another."""
    words = _scored(matched_words(), IDENTITY, rng)
    words = words[words["is_term"] | (words["matched_set"] == "")]
    fit = stats.ols("score ~ is_term", words)
    return Outcome.of(IDENTITY.identity["planted"], fit["is_term[T.True]"])


_VARIANCE = SKEWED.word_sd**2 + SKEWED.noise_sd**2
_SKEWNESS = SKEWED.skewness * (SKEWED.word_sd**3 + SKEWED.noise_sd**3) / _VARIANCE**1.5

CASES = (
    Case("Mean, by word", "moments", "moments", "coverage", True, "", _moment("mean", SKEWED.intercept)),
    Case("Variance, by word", "moments", "moments", "coverage", True, "", _moment("variance", _VARIANCE)),
    Case("Skewness, by word", "moments", "moments", "coverage", True, "", _moment("skewness", _SKEWNESS)),
    Case("Mean, by token", "standard error of the mean", "moments", "coverage", False, "common practice",
         _moment("mean", SKEWED.intercept, clustered=False)),
    Case("Kendall's tau, closed form, by word", "kendall_interval", "ranks", "coverage", True, "", _tau),
    Case("Kendall's tau, bootstrap by word", "bootstrap_tau", "ranks", "coverage", True, "", _tau_bootstrap,
         slow=True),
    Case("Spearman's rho, bootstrap by word", "bootstrap", "ranks", "coverage", True, "", _rho_bootstrap,
         slow=True),
    Case("Kendall's tau, by token", "kendall_interval without clusters", "ranks", "coverage", False, "common practice",
         _tau_by_token),
    Case("Slope, positive words, by word", "ols", "slopes", "coverage", True, "", _slope(1, 0)),
    Case("Slope, negative words, by word", "ols", "slopes", "coverage", True, "", _slope(0, 1)),
    Case("Difference of slopes, by word", "ols", "slopes", "coverage", True, "", _slope(1, -1)),
    Case("Framing by valence, by word", "ols", "slopes", "coverage", True, "", _framing),
    Case("Slope, positive words, by token", "least squares on tokens", "slopes", "coverage", False, "FAccT25",
         _slope(1, 0, clusters=None)),
    Case("Frequency slope with length and kind, by word", "ols", "frequency", "coverage", True, "",
         _frequency("length + kind")),
    Case("Curvature of frequency, by word", "curvature", "frequency", "rejection", True, "", _curvature),
    Case("Frequency slope with length and kind, by token", "least squares on tokens", "frequency", "coverage", False,
         "FAccT25", _frequency("length + kind", clusters=None)),
    Case("Frequency slope without length", "score ~ log(freq) + value", "frequency", "coverage", False, "FAccT25",
         _frequency("kind")),
    Case("Identity gap, matched sets", "identity_gaps", "identity", "coverage", True, "", _gap_interval),
    Case("Identity gap, permutation in sets", "identity_gaps", "identity", "rejection", True, "", _gap_null),
    Case("Identity gap, all other words", "difference of means", "identity", "coverage", False, "common practice",
         _gap_unmatched),
)  # fmt: skip

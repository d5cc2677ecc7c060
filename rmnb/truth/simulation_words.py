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


def _slope(which: str, truth: float, clustered: bool = True):
    def simulate(rng: np.random.Generator) -> Outcome:
        features = valence_words()
        effects = PlantedEffects(valence_positive=0.4, valence_negative=0.25)
        scores = planted_scores(features, effects, rng)
        codes = word_codes(features)[0] if clustered else None
        return Outcome.of(truth, getattr(stats.valence_slopes(scores, features["valence"], codes), which))

    return simulate


def _frequency(controls: tuple[str, ...], clustered: bool = True):
    def simulate(rng: np.random.Generator) -> Outcome:
        features = valence_words()
        scores = planted_scores(features, VALENCE, rng)
        valence = features["valence"].to_numpy()
        columns = {"positive": np.clip(valence, 0, None), "negative": np.clip(valence, None, 0)}
        if "length" in controls:
            columns["length"] = features["length"].to_numpy()
        if "kind" in controls:
            columns |= stats.indicators(features["kind"])
        codes = word_codes(features)[0] if clustered else None
        slope = stats.frequency_slope(scores, features["log_frequency"], columns, codes)
        return Outcome.of(VALENCE.log_frequency, slope)

    return simulate


def _curvature(rng: np.random.Generator) -> Outcome:
    features = valence_words()
    effects = PlantedEffects(log_frequency=0.1)
    scores = planted_scores(features, effects, rng)
    found = stats.curvature(scores, features["log_frequency"], None, word_codes(features)[0])
    return Outcome(float("nan"), found.statistic, p_value=found.p_value)


def _framing(rng: np.random.Generator) -> Outcome:
    """Slope under the negative prompt less slope under the positive one, words' own effects shared by both."""
    features = valence_words()
    codes, n_words = word_codes(features)
    own = rng.normal(size=n_words)
    effects = PlantedEffects(valence_positive=0.4, valence_negative=0.4, negative_framing=-0.6)
    scores = [planted_scores(features, effects, rng, framing, word_effects=own) for framing in ("positive", "negative")]
    negative = np.repeat([0.0, 1.0], len(features))
    valence = np.tile(features["valence"], 2)
    columns = {"valence": valence, "negative": negative, "valence x negative": valence * negative}
    fit = stats.least_squares(np.concatenate(scores), columns, np.tile(codes, 2))
    return Outcome.of(0.4 * (-0.6 - 1), fit["valence x negative"])


def _gap(rng: np.random.Generator, effects: PlantedEffects = IDENTITY) -> tuple[pd.DataFrame, np.ndarray, stats.Gap]:
    features = matched_words()
    scores = planted_scores(features, effects, rng)
    chosen = (features["matched_set"] != "").to_numpy()
    rows = features.loc[chosen]
    found = stats.identity_gaps(
        scores[chosen], rows["is_term"], rows["matched_set"], np.full(len(rows), "all"), n_permutations=999, seed=rng
    )
    return features, scores, found[0]


def _gap_interval(rng: np.random.Generator) -> Outcome:
    return Outcome.of(IDENTITY.identity["planted"], _gap(rng)[2].gap)


def _gap_null(rng: np.random.Generator) -> Outcome:
    found = _gap(rng, PlantedEffects(log_frequency=0.1))[2]
    return Outcome(0.0, found.gap.value, p_value=found.p_value)


def _gap_unmatched(rng: np.random.Generator) -> Outcome:
    """Identity terms against all other words, whose frequency is another."""
    features = matched_words()
    scores = planted_scores(features, IDENTITY, rng)
    chosen = (features["is_term"] | (features["matched_set"] == "")).to_numpy()
    fit = stats.least_squares(scores[chosen], {"term": features["is_term"].to_numpy(float)[chosen]})
    return Outcome.of(IDENTITY.identity["planted"], fit["term"])


_VARIANCE = SKEWED.word_sd**2 + SKEWED.noise_sd**2
_SKEWNESS = SKEWED.skewness * (SKEWED.word_sd**3 + SKEWED.noise_sd**3) / _VARIANCE**1.5
_BOTH = ("length", "kind")

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
    Case("Slope, positive words, by word", "valence_slopes", "slopes", "coverage", True, "", _slope("positive", 0.4)),
    Case("Slope, negative words, by word", "valence_slopes", "slopes", "coverage", True, "", _slope("negative", 0.25)),
    Case("Difference of slopes, by word", "valence_slopes", "slopes", "coverage", True, "",
         _slope("difference", 0.15)),
    Case("Framing by valence, by word", "least_squares", "slopes", "coverage", True, "", _framing),
    Case("Slope, positive words, by token", "least squares on tokens", "slopes", "coverage", False, "FAccT25",
         _slope("positive", 0.4, clustered=False)),
    Case("Frequency slope with length and kind, by word", "frequency_slope", "frequency", "coverage", True, "",
         _frequency(_BOTH)),
    Case("Curvature of frequency, by word", "curvature", "frequency", "rejection", True, "", _curvature),
    Case("Frequency slope with length and kind, by token", "least squares on tokens", "frequency", "coverage", False,
         "FAccT25", _frequency(_BOTH, clustered=False)),
    Case("Frequency slope without length", "score ~ log(freq) + value", "frequency", "coverage", False, "FAccT25",
         _frequency(("kind",))),
    Case("Identity gap, matched sets", "identity_gaps", "identity", "coverage", True, "", _gap_interval),
    Case("Identity gap, permutation in sets", "identity_gaps", "identity", "rejection", True, "", _gap_null),
    Case("Identity gap, all other words", "difference of means", "identity", "coverage", False, "common practice",
         _gap_unmatched),
)  # fmt: skip

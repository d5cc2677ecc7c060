"""What changes when a question asks for the worst instead of the best.

Tables are those of `rmnb.findings.scan_tables`: token_id, token, kind, word and a column of scores a prompt. Source of
the questions: Christian et al. (2025), section 4 and figures 3 and 4.
"""

import contextlib
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.errors import InputError
from rmnb.findings import asymmetry, reading_question, scan_tables
from rmnb.findings.counts import sign_counts
from rmnb.findings.results import Results, published
from rmnb.stats.estimate import Estimate
from rmnb.truth import planted

PLANTED = planted.PlantedEffects(
    valence_positive=0.30, valence_negative=0.20, negative_framing=-0.6, word_sd=0.7, noise_sd=0.3
)
#: The pair of questions that the paper, its released scores and the planted ones share.
BEST_WORST = ("best", "worst")
_SIGNS = {  # of the turned slopes among good and bad words, asked for something good, then for something bad
    "loss_aversion": (-1, 1, -1, 1),
    "match": (1, -1, -1, 1),
    "damping": (1, 1, -1, -1),
}
CONTRASTS = tuple(_SIGNS)


def measure(
    tables: Mapping[str, pd.DataFrame],
    framings: Mapping[str, str],
    seeds: Sequence[tuple[str, str]] = (),
    *,
    n_boot: int = 200,
    seed: int = 0,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """How far rankings turn with the question, along which axes, and the contrasts of the slopes over valence.

    Parameters
    ----------
    tables
        Model → its scans, on any scale.
    framings
        Prompt → ``positive`` or ``negative``. What needs both framings is left out where there is one.
    seeds
        Pairs of models that differ in their seed alone, the noise of training.
    n_boot, seed
        Of the bootstrap of the share of variance.
    panel, source, protocol
        Where the scores are from, as `rmnb.findings.results` names it.

    Returns
    -------
    DataFrame
        Rows of the results table: those of `rmnb.findings.reading_question` for every two prompts, and for the pair of
        `opposites` framing_share_valence, afinn_spearman and frequency_spearman of its difference and its sum, and
        those of `measure_contrasts` on standardised scores.

    Raises
    ------
    InputError
        No table, or vocabularies that share nothing.
    """
    results = Results("framing", panel)
    about: dict = {"panel": panel, "source": source, "protocol": protocol}
    turns = reading_question.measure_turns(tables, list(framings), seeds, **about)
    results.extend(turns)
    results.extend(reading_question.count(turns, framings))
    if pair := opposites(framings):
        good, bad = pair
        add = functools.partial(results.add, source, prompt=good, protocol=protocol)
        shared = reading_question.shared_scores(tables, pair)
        words = reading_question.words_of(shared[good])
        for model, table in tables.items():
            halves = (shared[prompt][model].to_numpy(float) for prompt in pair)
            drawn = stats.bootstrap(_share_of_valence, *halves, clusters=words, n_draws=n_boot, seed=seed)
            add("framing_share_valence", drawn, model=model, other=bad)
            turned = axes_of(table, good, bad)
            for axis, sign in (("difference", "-"), ("sum", "+")):
                for statistic, (value, n) in axis_meaning(turned, axis).items():
                    add(statistic, value, model=model, other=f"{good} {sign} {bad}", n=n)
        standardised = {model: scan_tables.on_scale(table, pair, "score") for model, table in tables.items()}
        results.extend(measure_contrasts(standardised, pair, **about))
    return results.frame()


def measure_contrasts(
    tables: Mapping[str, pd.DataFrame],
    pair: tuple[str, str] = BEST_WORST,
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows framing_loss_aversion, framing_match and framing_damping by model, their means over models, and p-values.

    The p-value is that of flipping the signs of models, which are what the claim is about. A model with too few rated
    words has no row. The unit is that of the scores, a point of valence.
    """
    results = Results("framing", panel)
    add = functools.partial(results.add, source, prompt=pair[0], other=pair[1], protocol=protocol)
    lexicon, found = scan_tables.afinn(), {}
    for model, table in tables.items():
        with contextlib.suppress(InputError):
            found[model] = contrasts(*(scan_tables.rated(table, prompt, lexicon) for prompt in pair))
    for name in CONTRASTS if found else ():
        single = [of_model[name] for of_model in found.values()]
        for model, estimate in zip(found, single, strict=True):
            add(f"framing_{name}", estimate, model=model)
        add(f"framing_{name}", stats.over_models(single))
        if len(single) > 1:
            test = stats.sign_flip_test([one.value for one in single])
            add(f"framing_{name}_p", test.p_value, n=len(single))
    return results.frame()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """What sums the chapter up: contrasts over models that turn and over the others, and in how many what is clear.

    Parameters
    ----------
    rows
        A results table with the rows of `measure` and, if they can be had, those of the authors' data.

    Returns
    -------
    DataFrame
        For each contrast mean_turning and mean_not_turning of the panel, and for contrasts and framing_kendall of the
        questions that tell models apart models_above, models_clearly_above and models_clearly_below of each source.
    """
    parts, alike = [], reading_question.does_not_turn(rows)
    pair = rows.loc[rows["statistic"] == "models_not_turning", ["source", "prompt", "other"]]
    turns = rows[rows["statistic"] == "framing_kendall"].merge(pair, on=["source", "prompt", "other"])
    for source in ("panel", "released"):
        of = rows[rows["source"] == source]
        for name in CONTRASTS:
            if source == "panel":
                parts.append(reading_question.means_apart(of, f"framing_{name}", alike))
            parts.append(sign_counts(of, f"framing_{name}"))
        parts.append(sign_counts(turns[turns["source"] == source], "framing_kendall"))
    return pd.concat(parts, ignore_index=True)


def contrast_lines(rows: pd.DataFrame) -> pd.DataFrame:
    """The panel's contrasts as lines of a figure: each model, then the mean of those that turn, of those that do not.

    Returns
    -------
    DataFrame
        Those rows with a column contrast, and the group's name for a model where a row is of a group.
    """
    of = rows[rows["source"] == "panel"]
    names = {f"framing_{name}": name.replace("_", " ") for name in CONTRASTS}
    single = of[of["statistic"].isin(names) & (of["model"] != "")].assign(contrast=of["statistic"].map(names))
    groups = {"mean_turning": "mean of those that turn", "mean_not_turning": "mean of those that do not"}
    means = of[of["statistic"].isin(groups)].assign(model=of["statistic"].map(groups), contrast=of["other"].map(names))
    return pd.concat([single, means], ignore_index=True)


def loadings(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each model the share of variance along each difference, and how both axes go with valence and frequency."""
    heads = {"framing_share_valence": "share", "afinn_spearman": "valence", "frequency_spearman": "frequency"}
    of = rows[rows["statistic"].isin(heads) & (rows["source"] == "panel")].replace({"statistic": heads})
    wide = of.pivot(index="model", columns=["other", "statistic"], values="value").reindex(of["model"].unique())
    wide.columns = [what if what == "share" else f"{axis}: {what}" for axis, what in wide.columns.to_list()]
    return wide.reset_index()


def measure_planted(models: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Rows of the contrasts of planted models, and planted_effect: what they should be (`other` names which)."""
    asks: dict[str, planted.Framing] = {"best": "positive", "worst": "negative"}
    results = Results("framing", "planted")
    tables = asymmetry.planted_tables(asks, models, seed, PLANTED)
    results.extend(measure_contrasts(tables, panel="planted", source="planted"))
    slopes = np.array([PLANTED.valence_positive, PLANTED.valence_negative])
    for name, value in of_slopes(slopes, PLANTED.negative_framing * slopes).items():
        results.add("planted", "planted_effect", value, other=f"framing_{name}", prompt="best", protocol="exact")
    return results.frame()


def published_contrasts() -> pd.DataFrame:
    """Rows of the contrasts that follow from the mean slopes that FAccT25 prints, which are of raw rewards."""
    slope = published().query("finding == 'asymmetry'").set_index(["prompt", "statistic"])["value"]
    halves = ((slope[prompt, "slope_positive"], slope[prompt, "slope_negative"]) for prompt in BEST_WORST)
    results = Results("framing", released_files.FACCT)
    for name, value in of_slopes(*halves).items():
        results.add("published", f"framing_{name}", value, prompt="best", other="worst", protocol="published")
    return results.frame()


def opposites(framings: Mapping[str, str]) -> tuple[str, str] | None:
    """The keys of a question for something good and of one for something bad, best and worst if they are there."""
    chosen = []
    for wanted, framing in zip(BEST_WORST, ("positive", "negative"), strict=True):
        keys = [prompt for prompt, kind in framings.items() if kind == framing]
        if not keys:
            return None
        chosen.append(wanted if wanted in keys else keys[0])
    return chosen[0], chosen[1]


def axes_of(table: pd.DataFrame, good: str, bad: str) -> pd.DataFrame:
    """The table with two axes: difference, of the standardised scores (valence), and sum (an answer to both).

    Each is divided by the square root of two, so that it has variance one where the scores are uncorrelated.
    """
    first, second = stats.standardise(table[good]), stats.standardise(table[bad])
    return table.assign(difference=(first - second) / np.sqrt(2), sum=(first + second) / np.sqrt(2))


def extreme_words(axes: Mapping[str, pd.DataFrame], axis: str, highest: bool, count: int = 5) -> pd.DataFrame:
    """The first or last beginnings of words on an axis (`axes_of`): column model and a column of tokens a place."""
    lines = []
    for model, table in axes.items():
        starts = table[table["kind"] == "word_start"].drop_duplicates("word")
        ends = starts.sort_values(axis, ascending=not highest, kind="stable")["token"].head(count)
        lines.append({"model": model, **dict(enumerate(ends, 1))})
    return pd.DataFrame(lines)


def axis_meaning(table: pd.DataFrame, axis: str) -> dict[str, tuple[float, int]]:
    """Spearman correlation over words of an axis with valence (AFINN) and with frequency, each with its words."""
    starts = table[table["kind"] == "word_start"].groupby("word")[axis].mean()
    valence = scan_tables.afinn().set_index("word")["valence"]
    known = starts[starts.index.isin(valence.index)]
    zipf = pd.Series(lexicons.zipf(starts.index), index=starts.index)
    heard = zipf[zipf > 0].index
    return {
        "afinn_spearman": (stats.spearman(known, valence[known.index]), len(known)),
        "frequency_spearman": (stats.spearman(starts[heard], zipf[heard]), len(heard)),
    }


def contrasts(good: pd.DataFrame, bad: pd.DataFrame) -> dict[str, Estimate]:
    """The three contrasts of one model from one fit, so that a word under both questions counts once.

    Each is of slopes over valence, turned so that following valence is positive. loss_aversion: slope among bad words
    less slope among good words, mean of the framings. match: slope among the words that answer the question less slope
    among the others, likewise. damping: slope asked for something good less slope asked for something bad, mean of good
    and bad words.

    Parameters
    ----------
    good, bad : DataFrame
        word, valence, score of rated words, asked for something good and for something bad
        (`rmnb.findings.scan_tables.rated`).
    """
    both = pd.concat([good.assign(asked="good", sign=1), bad.assign(asked="bad", sign=-1)])
    both["turned"] = both["sign"] * both["valence"]
    both["part"] = np.where(both["valence"] > 0, "good words asked ", "bad words asked ") + both["asked"]
    fit = stats.ols("score ~ 0 + part + part:turned", both, clusters="word")
    names = [f"part[{words} words asked {asked}]:turned" for asked in ("good", "bad") for words in ("good", "bad")]
    return {name: fit.contrast(dict(zip(names, np.array(signs) / 2, strict=True))) for name, signs in _SIGNS.items()}


def of_slopes(good: ArrayLike, bad: ArrayLike) -> dict[str, float]:
    """The contrasts of slopes among positive and negative words, (2,) asked for something good and (2,) for bad."""
    turned = np.concatenate([np.asarray(good), -np.asarray(bad)])
    return {name: float(np.array(signs) @ turned / 2) for name, signs in _SIGNS.items()}


def released_tables() -> dict[str, pd.DataFrame]:
    """Tables of the ten published models over the dictionary words that AFINN rates, standardised over these.

    Raises
    ------
    UnreachableError
        The scores cannot be had.
    """
    rated, tables = scan_tables.afinn()["word"], {}
    for code, scores in released_files.dictionary_scores("moral_foundations").items():
        scores = scores[scores.index.isin(rated)]
        asked = {prompt: stats.standardise(scores[f"{prompt}_ever_one"]) for prompt in BEST_WORST}
        tables[code] = pd.DataFrame({"token": scores.index, "kind": "word_start", "word": scores.index, **asked})
    return tables


def _share_of_valence(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the variance of two standardised columns along their difference."""
    return (1 - np.corrcoef(first, second)[0, 1]) / 2

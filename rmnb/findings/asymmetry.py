"""Do reward models tell good answers apart more finely than bad ones? Tails, slopes over valence, spread and noise.

`measure` gives the rows of the finding, from *tables*: for each model its scans under several prompts in one frame with
the columns token_id, token, kind, word and one of scores a prompt, as `rmnb.findings.scan_tables` makes them. What one
model makes of valence is in `rmnb.findings.valence`, the mean slopes under other choices in
`rmnb.findings.asymmetry_choices`. Source of the question: Christian et al. (2025), section 4 and figure 3.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import released_files
from rmnb.findings import reading_question
from rmnb.findings.counts import sign_counts
from rmnb.findings.results import Results
from rmnb.findings.scan_tables import afinn, as_table, on_scale, prompts_of, rated
from rmnb.findings.valence import PARTS, agreement, by_level, slopes
from rmnb.panels import Panel
from rmnb.stats.estimate import Estimate, estimate_from_error
from rmnb.truth import planted

PLANTED = planted.PlantedEffects(valence_positive=0.30, valence_negative=0.15, word_sd=0.7, noise_sd=0.3)
_ASKED_ALIKE = {"greatest_ever_one": "greatest", "best_ever_one": "best", "worst_ever_one": "worst"}
_SIDED = ("skewness", "tail_ratio", "slope_difference_standardised", "afinn_kendall_difference")
_Row = tuple[str, Estimate | stats.Bootstrap, dict]  # a statistic, its estimate, and what it is of


def measure(
    tables: Mapping[str, pd.DataFrame],
    *,
    seeds: Sequence[tuple[str, str]] = (),
    n_boot: int = 200,
    seed: int = 0,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """All rows of the finding, of one model or of many.

    By model and prompt: skewness and tail_ratio over the whole vocabulary; the slopes of `measure_slopes`;
    afinn_kendall_positive, _negative and _difference; at each level of valence (`other`) level_mean, level_spread and
    level_entropy; and of each pair of seeds seed_tau_top and seed_tau_bottom. Intervals are over words, except those of
    the means of slopes and of afinn_kendall_difference, which are over models. And the counts of `measure_sides`.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        For each model its scans, raw rewards over its whole vocabulary.
    seeds : sequence of (str, str)
        Models that differ in the seed of their training alone, as `seed_pairs` finds them.
    n_boot, seed : int
        Bootstrap draws for each tail, and where they begin.
    panel, source, protocol : str
        Where the scans are from, as the results table has it.
    """
    results = Results("asymmetry", panel)
    rows = chain(_tails(tables, n_boot, seed), _slopes(tables), _order(tables), _seeds(tables, seeds))
    for statistic, estimate, about in rows:
        results.add(source, statistic, estimate, protocol=protocol, **about)
    results.extend(measure_sides(results.frame()))
    return results.frame()


def measure_sides(rows: pd.DataFrame) -> pd.DataFrame:
    """In how many models each measure of asymmetry points which way, by prompt: rows of
    `rmnb.findings.counts.sign_counts` for skewness, tail_ratio, slope_difference_standardised and
    afinn_kendall_difference.
    """
    results = Results("asymmetry")
    for statistic in _SIDED:
        of = rows[(rows["statistic"] == statistic) & (rows["model"] != "")]
        for (_, _, other), one in of.groupby(["source", "prompt", "other"], sort=False):
            results.extend(sign_counts(one, statistic, str(other)))
    return results.frame()


def measure_apart(rows: pd.DataFrame, alike: Collection[str]) -> pd.DataFrame:
    """The differences among good and bad words in the models that read the question, and in those that do not.

    Parameters
    ----------
    rows
        Of `measure`.
    alike
        The models of `rmnb.findings.reading_question.does_not_turn`.

    Returns
    -------
    DataFrame
        Results rows of `rmnb.findings.reading_question.means_apart` by prompt, and of the models that turn the counts
        of `rmnb.findings.counts.sign_counts` (``… among those that turn``).
    """
    results = Results("asymmetry")
    for statistic in ("slope_difference_standardised", "afinn_kendall_difference"):
        of = rows[(rows["statistic"] == statistic) & (rows["model"] != "")]
        for _, one in of.groupby("prompt", sort=False):
            results.extend(reading_question.means_apart(one, statistic, alike))
            results.extend(sign_counts(one[~one["model"].isin(alike)], statistic, "among those that turn"))
    return results.frame()


def measure_slopes(
    tables: Mapping[str, pd.DataFrame],
    tokens: str = "every spelling",
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows slope_positive, slope_negative and slope_difference, raw and standardised, by model and prompt, and their
    means over models (an empty `model`), all that can be said where only rated words were scored.

    Parameters
    ----------
    tokens : str
        Which tokens of a rated word count, one of `rmnb.findings.scan_tables.TOKENS`.
    """
    results = Results("asymmetry", panel)
    for statistic, estimate, about in _slopes(tables, tokens):
        results.add(source, statistic, estimate, protocol=protocol, **about)
    return results.frame()


def _tails(tables: Mapping[str, pd.DataFrame], n_boot: int, seed: int) -> Iterator[_Row]:
    for model, table in tables.items():
        word = table["word"].to_numpy()
        for prompt in prompts_of(table):
            scores, about = table[prompt].to_numpy(), {"model": model, "prompt": prompt}
            yield "skewness", stats.moments(scores, word).skewness, about
            drawn = stats.bootstrap(stats.tail_ratio, scores, clusters=word, n_draws=n_boot, seed=seed)
            yield "tail_ratio", drawn, about


def _slopes(tables: Mapping[str, pd.DataFrame], tokens: str = "every spelling") -> Iterator[_Row]:
    lexicon = afinn()
    z = {model: on_scale(table, prompts_of(table), "score") for model, table in tables.items()}
    for suffix, scaled in (("", tables), ("_standardised", z)):
        for prompt in dict.fromkeys(chain(*map(prompts_of, scaled.values()))):
            of = {model: table for model, table in scaled.items() if prompt in table}
            found = {model: slopes(rated(table, prompt, lexicon, tokens)) for model, table in of.items()}
            found[""] = {part: stats.over_models([one[part] for one in found.values()]) for part in PARTS}
            for model, one in found.items():
                for part, estimate in one.items():
                    yield f"slope_{part}{suffix}", estimate, {"model": model, "prompt": prompt}


def _order(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Row]:
    lexicon = afinn()
    gaps: dict[str, list[Estimate]] = {}
    for model, table in tables.items():
        z = on_scale(table, prompts_of(table), "score")
        for prompt in prompts_of(table):
            words, about = rated(z, prompt, lexicon), {"model": model, "prompt": prompt}
            found = agreement(words)
            gaps.setdefault(prompt, []).append(found["difference"])
            for part, estimate in found.items():
                yield f"afinn_kendall_{part}", estimate, about
            for level, of_level in by_level(words).items():
                for what, estimate in of_level.items():
                    yield f"level_{what}", estimate, {**about, "other": f"{level:+d}"}
    for prompt, one_each in gaps.items():
        yield "afinn_kendall_difference", stats.over_models(one_each), {"prompt": prompt}


def _seeds(tables: Mapping[str, pd.DataFrame], seeds: Sequence[tuple[str, str]]) -> Iterator[_Row]:
    for one, other in seeds:
        word = tables[one]["word"].to_numpy()
        for prompt in prompts_of(tables[one]):
            for end, estimate in seed_reliability(tables[one][prompt], tables[other][prompt], word).items():
                yield f"seed_tau_{end}", estimate, {"model": one, "other": other, "prompt": prompt}


def measure_planted(framing: Mapping[str, planted.Framing], models: Sequence[str], seed: int) -> pd.DataFrame:
    """Rows of the slopes that `measure_slopes` finds in `planted_tables`, and the true ones as rows planted_effect."""
    results = Results("asymmetry", "planted")
    found = measure_slopes(planted_tables(framing, models, seed), panel="planted", source="planted")
    results.extend(found[~found["statistic"].str.endswith("_standardised")])
    for prompt, asks in framing.items():
        sign = 1 if asks == "positive" else PLANTED.negative_framing
        for end, value in (("positive", PLANTED.valence_positive), ("negative", PLANTED.valence_negative)):
            about: dict = {"other": f"slope_{end}", "prompt": prompt, "protocol": "exact"}
            results.add("planted", "planted_effect", sign * value, **about)
    return results.frame()


def seed_pairs(panel: Panel) -> list[tuple[str, str]]:
    """Models of one base trained by one recipe from two seeds: (``mixed``, ``mixed-seed2``) by their recipes' names."""
    return [
        (one.name, other.name)
        for one, other in combinations(panel.models, 2)
        if (one.family, one.base) == (other.family, other.base)
        and one.recipe_family
        and one.recipe_family == other.recipe_family
        and one.recipe != other.recipe
    ]


def seed_reliability(one: pd.Series, other: pd.Series, words: np.ndarray, share: float = 0.2) -> dict[str, Estimate]:
    """Kendall's tau-b of two seeds among the tokens at the top and at the bottom.

    The tokens are chosen by one seed, then by the other, and the two values of tau are averaged: a choice by the sum of
    both rankings would make them look opposed. The interval takes the two values for perfectly dependent, so it is
    rather too long.

    Parameters
    ----------
    one, other : (n,) scores of the same tokens
    words : (n,) the tokens' words, the unit of the intervals
    share : float, how much of the vocabulary is the top, and the bottom
    """
    scores = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    places = [stats.mid_ranks(values) / len(words) for values in scores]
    found = {}
    for end in ("top", "bottom"):
        chosen = [place > 1 - share if end == "top" else place <= share for place in places]
        both = [stats.kendall_interval(scores[0][rows], scores[1][rows], words[rows]) for rows in chosen]
        value, error = (float(np.mean([getattr(e, key) for e in both])) for key in ("value", "standard_error"))
        n, clusters = both[0].n, min(estimate.n_clusters for estimate in both)
        found[end] = estimate_from_error(value, error, n, clusters, df=clusters - 1)
    return found


def released_slopes() -> pd.DataFrame:
    """Rows of `measure_slopes` for the ten published models on the words of the moral foundations dictionary that
    AFINN rates: the second paper's data have these under the first one's three questions.

    Raises
    ------
    UnreachableError
        The scores cannot be had.
    """
    tables = {}
    for model, scores in released_files.dictionary_scores("moral_foundations").items():
        words = scores.index[scores.index.isin(afinn()["word"])]
        asked = scores.loc[words].rename(columns=_ASKED_ALIKE)[list(_ASKED_ALIKE.values())]
        tables[model] = asked.assign(token=words, word=words, kind="word_start").reset_index(drop=True)
    rows = measure_slopes(tables, panel=released_files.ICLR, source="released", protocol="published")
    return rows.assign(other="moral_foundations")


def planted_tables(
    prompts: Mapping[str, planted.Framing],
    models: Sequence[str],
    seed: int,
    effects: planted.PlantedEffects = PLANTED,
) -> dict[str, pd.DataFrame]:
    """Tables of models whose reward has known slopes, over AFINN's words in four spellings."""
    words = [word for word in afinn()["word"] if word.isalpha()]
    panel = planted.planted_panel(planted.spell(words), effects, dict.fromkeys(models, "planted"), prompts, seed)
    return {model: as_table({prompt: panel[prompt][model] for prompt in prompts}) for model in models}

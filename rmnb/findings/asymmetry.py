"""Do reward models tell good answers apart more finely than bad ones? Tails, slopes over valence, spread and noise.

`measure` gives the rows of the finding, from *tables*: for each model its scans under several prompts in one frame with
the columns token_id, token, kind, word and one of scores a prompt, as `rmnb.findings.scan_tables` makes them. Source of
the question: Christian et al. (2025), section 4 and figure 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.findings.results import Results
from rmnb.findings.scan_tables import TOKENS, afinn, as_table, on_scale, prompts_of, rated
from rmnb.findings.specifications import specification_curve
from rmnb.panels import Panel
from rmnb.stats.estimate import Estimate, estimate_from_error
from rmnb.truth import planted

#: Whole numbers of AFINN, with the rare extremes joined to their neighbours.
LEVELS = (-4, -3, -2, -1, 1, 2, 3, 4)
PLANTED = planted.PlantedEffects(valence_positive=0.30, valence_negative=0.15, word_sd=0.7, noise_sd=0.3)
_ASKED_ALIKE = {"greatest_ever_one": "greatest", "best_ever_one": "best", "worst_ever_one": "worst"}
_PARTS = ("positive", "negative", "difference")
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
    the mean slopes, which are over models.

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
            found[""] = {part: stats.over_models([one[part] for one in found.values()]) for part in _PARTS}
            for model, one in found.items():
                for part, estimate in one.items():
                    yield f"slope_{part}{suffix}", estimate, {"model": model, "prompt": prompt}


def _order(tables: Mapping[str, pd.DataFrame]) -> Iterator[_Row]:
    lexicon = afinn()
    for model, table in tables.items():
        z = on_scale(table, prompts_of(table), "score")
        for prompt in prompts_of(table):
            words, about = rated(z, prompt, lexicon), {"model": model, "prompt": prompt}
            for part, estimate in agreement(words).items():
                yield f"afinn_kendall_{part}", estimate, about
            for level, found in by_level(words).items():
                for what, estimate in found.items():
                    yield f"level_{what}", estimate, {**about, "other": f"{level:+d}"}


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


def slopes(words: pd.DataFrame, hold_frequency: bool = False) -> dict[str, Estimate]:
    """Slopes over valence: positive (among good words), negative (among bad ones) and their difference.

    Parameters
    ----------
    words : word, valence, score, as `rmnb.findings.scan_tables.rated` gives them
    hold_frequency : bool
        With log frequency and length held constant.
    """
    held = {"zipf": lexicons.zipf(words["word"]), "length": words["word"].str.len()} if hold_frequency else {}
    table = words.assign(side=np.where(words["valence"] > 0, "good", "bad"), **held)
    fit = stats.ols(" + ".join(["score ~ 0 + side + side:valence", *held]), table, clusters="word")
    good, bad = "side[good]:valence", "side[bad]:valence"
    return dict(zip(_PARTS, (fit[good], fit[bad], fit.contrast({good: 1, bad: -1})), strict=True))


def slope_difference(words: pd.DataFrame, hold_frequency: bool = False) -> float:
    """The difference of `slopes` without its interval, which costs far less: enough where models are the unit."""
    valence = words["valence"].to_numpy(float)[:, None]
    side = np.hstack([valence > 0, valence < 0]).astype(float)
    held = [lexicons.zipf(words["word"]), words["word"].str.len()] if hold_frequency else []
    design = np.column_stack([side * valence, side, *held])
    good, bad = np.linalg.lstsq(design, words["score"].to_numpy(float))[0][:2]
    return float(good - bad)


def agreement(words: pd.DataFrame) -> dict[str, Estimate]:
    """Kendall's tau-b of score and valence, likewise positive, negative and difference: ranks alone count.

    Good and bad words are different words, so the errors of the two add up.
    """
    good = (words["valence"] > 0).to_numpy()
    parts = [
        stats.kendall_interval(half["score"], half["valence"], half["word"].to_numpy())
        for half in (words[good], words[~good])
    ]
    error = float(np.hypot(parts[0].standard_error, parts[1].standard_error))
    clusters = parts[0].n_clusters + parts[1].n_clusters
    gap = estimate_from_error(parts[0].value - parts[1].value, error, len(words), clusters, df=clusters - 2)
    return dict(zip(_PARTS, (*parts, gap), strict=True))


def by_level(words: pd.DataFrame) -> dict[int, dict[str, Estimate]]:
    """What happens to the words of each level of valence that has three words or more, spellings averaged first.

    Returns
    -------
    dict
        For each level mean (score), spread (mean distance of two words' scores) and entropy (of the words' places among
        all rated words, `rmnb.stats.place_entropy`), with intervals over words.
    """
    single = words.groupby("word")[["valence", "score"]].mean()
    level = single["valence"].clip(LEVELS[0], LEVELS[-1]).round()
    place = (stats.mid_ranks(single["score"]) - 0.5) / len(single)
    found = {}
    for chosen in LEVELS:
        scores, places = single.loc[level == chosen, "score"].to_numpy(), place[level == chosen]
        if len(scores) >= 3 and scores.std() > 0:
            found[chosen] = {
                "mean": stats.moments(scores).mean,
                "spread": stats.mean_difference(scores),
                "entropy": stats.place_entropy(places),
            }
    return found


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


def tail_depth(tables: Mapping[str, pd.DataFrame], shares: np.ndarray) -> pd.DataFrame:
    """The ratio of the tails (`rmnb.stats.tail_ratio`) at several depths: model, prompt, share, tail_ratio."""
    rows = [
        (model, prompt, share, stats.tail_ratio(table[prompt], share))
        for model, table in tables.items()
        for prompt in prompts_of(table)
        for share in shares
    ]
    return pd.DataFrame(rows, columns=["model", "prompt", "share", "tail_ratio"])


def specifications(exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The standardised difference of the slopes, mean over models, under every combination of choices.

    Parameters
    ----------
    exact, published
        Tables of the same models by either protocol; of the second, with those prompts that there are.

    Returns
    -------
    DataFrame
        As `specification_curve` gives it; intervals over models (of a single model, over words).
    """
    lexica = {"AFINN-111": afinn(), "AFINN-165": afinn("165")}
    known = set().union(*(lexicon["word"] for lexicon in lexica.values()))
    prepared = {
        (protocol, scale): [
            on_scale(table, prompts_of(table), scale)[table["word"].isin(known)] for table in tables.values()
        ]
        for protocol, tables in {"exact": exact, "published": published}.items()
        for scale in ("score", "rank")
    }

    def difference(prompt: str, tokens: str, scale: str, words: str, frequency: str, protocol: str) -> Estimate | None:
        chosen = prepared[protocol, scale]
        if not chosen or not all(prompt in table for table in chosen):
            return None
        found = [rated(table, prompt, lexica[words], tokens) for table in chosen]
        if len(found) == 1:
            return slopes(found[0], frequency == "held")["difference"]
        return stats.mean_over_models([slope_difference(one, frequency == "held") for one in found])

    choices = {
        "prompt": prompts_of(next(iter(exact.values()))),
        "tokens": list(TOKENS),
        "scale": ["score", "rank"],
        "words": list(lexica),
        "frequency": ["free", "held"],
        "protocol": ["exact", "published"],
    }
    return specification_curve(choices, difference)


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

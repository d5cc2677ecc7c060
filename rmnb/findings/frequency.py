"""Do reward models prefer frequent words, and what else could look like that? Regressions on tokens that are words.

Tables are those of `rmnb.findings.scan_tables`, regressions those of `rmnb.findings.frequency_slopes`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings import word_tokens
from rmnb.findings.frequency_slopes import (
    ENOUGH,
    STEPS,
    framed,
    lost,
    partial_residuals,
    slope,
    slope_value,
    within_word,
)
from rmnb.findings.results import Results
from rmnb.findings.specifications import specification_curve
from rmnb.findings.word_tokens import SOURCES, choose
from rmnb.stats.estimate import Estimate
from rmnb.truth.planted import PlantedEffects, planted_scan
from rmnb.truth.simulation_words import common_words

_VALENCE: dict = {"valence_positive": 0.4, "valence_negative": 0.25, "word_sd": 0.3, "noise_sd": 0.2}
SCENES = {
    "frequency counts": PlantedEffects(log_frequency=0.1, length=-0.1, **_VALENCE),
    "only length counts": PlantedEffects(length=-0.1, **_VALENCE),
    "only valence counts": PlantedEffects(**_VALENCE),
}


def measure(
    tables: Mapping[str, pd.DataFrame],
    framings: Mapping[str, str],
    lists: Sequence[str] = SOURCES[:1],
    *,
    n_boot: int = 100,
    seed: int = 0,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Slopes over log frequency: as published, with more held constant, split by framing, and within words.

    Parameters
    ----------
    tables
        Model → its scans; a table may lack prompts that others have.
    framings
        Prompt → ``positive`` or ``negative``. What needs both framings uses the first of each.
    lists
        Frequency lists of `rmnb.findings.word_tokens`: wordfreq, which is regressed on, and BNC for the rows as
        published (`measure_published`), which without it are the same regression on wordfreq.
    n_boot, seed
        Of the bootstrap of slope_log_frequency_lost.
    panel, source, protocol
        Where the scores are from, as `rmnb.findings.results` names it.

    Returns
    -------
    DataFrame
        Rows of the results table: slope_log_frequency, with _standardised, _step (`other` names the step of `STEPS`),
        _controlled, _others, _lost, and _common and _turned (`other` is the negative prompt) with _others; their means
        over models where a model is ``""``; positive_frequency_slopes; curvature_p; slope_log_id_within_word. A model
        with too few words for one of them has no such row.
    """
    results = Results("frequency", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    tokens = word_tokens.of_tables(tables, framings, lists)
    words = {(prompt, model): found for prompt, by_model in tokens.items() for model, found in by_model.items()}
    rows = {key: choose(found) for key, found in words.items()}
    if "BNC" in lists:
        results.extend(measure_published(tables, list(tokens), panel=panel, source=source, protocol=protocol))
    else:  # the same regression on the other list
        _add_published(
            add, {key: [slope(of, "valence", score) for score in ("score", "z")] for key, of in rows.items()}
        )
    for step in STEPS:
        for (prompt, model), of in rows.items():
            if found := slope(of, step):
                add("slope_log_frequency_step", found, prompt=prompt, model=model, other=step)
    _add_each(add, "slope_log_frequency_controlled", {key: slope(of) for key, of in rows.items()})
    _add_each(add, "slope_log_frequency_others", {key: slope(choose(of, "others")) for key, of in words.items()})
    for (prompt, model), found in words.items():
        if estimate := within_word(found):
            add("slope_log_id_within_word", estimate, prompt=prompt, model=model)
    pair = pair_of({prompt: framings[prompt] for prompt in tokens})
    for (prompt, model), of in rows.items():
        if prompt in pair and (drawn := lost(of, n_boot=n_boot, seed=seed)):
            add("slope_log_frequency_lost", drawn, prompt=prompt, model=model)
        if prompt == pair[0] and of["word"].nunique() >= ENOUGH:
            bend = partial_residuals(of)[1]
            add("curvature_p", bend.p_value, prompt=prompt, model=model, other="log_frequency", n=len(of))
    for model in tokens[pair[0]] if len(pair) == 2 else ():
        halves = [tokens[prompt][model] for prompt in pair if model in tokens[prompt]]
        for chosen, suffix in (("AFINN", ""), ("others", "_others")) if len(halves) == 2 else ():
            for part, estimate in framed(*halves, words=chosen).items():
                add(f"slope_log_frequency_{part}{suffix}", estimate, model=model, prompt=pair[0], other=pair[1])
    return results.frame()


def measure_published(
    tables: Mapping[str, pd.DataFrame],
    prompts: Sequence[str],
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows slope_log_frequency, raw and standardised, and positive_frequency_slopes as in FAccT25 figure 3D.

    Tokens that are AFINN words as they stand, ``score ~ log(frequency) + valence``, frequencies those of the BNC list's
    dictionary forms. Intervals are by word, the paper's are not. `tables` need token and the columns of `prompts`, as
    the authors' own tables have them (`rmnb.data.released_files.vocabularies`).

    Raises
    ------
    UnreachableError
        The list of the BNC cannot be had.
    """
    results = Results("frequency", panel)
    words = lexicons.afinn().merge(lexicons.bnc_lemmas().query("per_million > 0"), on="word")
    words = words.assign(log_frequency=np.log(words["per_million"].to_numpy(float)))
    found = {}
    for prompt in prompts:
        for model, table in tables.items():
            if prompt not in table:
                continue
            score = table[prompt].to_numpy(float)
            scored = pd.DataFrame({"word": table["token"].str.lower(), "score": score, "z": stats.standardise(score)})
            rows = scored.merge(words, on="word")
            if rows["word"].nunique() >= 10:
                fits = [
                    stats.ols(f"{unit} ~ log_frequency + valence", rows, clusters="word") for unit in ("score", "z")
                ]
                found[prompt, model] = [fit["log_frequency"] for fit in fits]
    _add_published(functools.partial(results.add, source, protocol=protocol), found)
    return results.frame()


def measure_planted(prompt: str, seed: int = 0) -> pd.DataFrame:
    """Rows of the regressions on planted rewards, and planted_effect, the true slope, of each of `SCENES`.

    `other` names the scene where the true slope is 0. The words are common ones, with ids in no order.
    """
    results = Results("frequency", "planted")
    shuffled = common_words().sample(frac=1, random_state=seed)
    features = shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)
    for scene, effects in SCENES.items():
        scan = planted_scan(features, effects, seed)
        words = word_tokens.word_tokens(scan)
        truth = effects.log_frequency / float(scan["score"].std(ddof=0))
        found = {
            "standardised": slope(choose(words), "valence"),
            "controlled": slope(choose(words)),
            "others": slope(choose(words, "others")),
        }
        about: dict = {"prompt": prompt, "other": "" if truth else scene}
        for name, estimate in found.items():
            if estimate:
                results.add("planted", f"slope_log_frequency_{name}", estimate, **about)
        results.add("planted", "planted_effect", truth, **about)
    return results.frame()


def pair_of(framings: Mapping[str, str]) -> list[str]:
    """The first prompt that asks for something good, and the first that asks for something bad, if there are."""
    first = {framing: prompt for prompt, framing in reversed(list(framings.items()))}
    return [first[framing] for framing in ("positive", "negative") if framing in first]


def _add_published(add: Callable, found: Mapping[tuple[str, str], list[Estimate | None]]) -> None:
    whole = {key: pair for key, pair in found.items() if all(pair)}
    for place, statistic in enumerate(("slope_log_frequency", "slope_log_frequency_standardised")):
        _add_each(add, statistic, {key: pair[place] for key, pair in whole.items()})
    raw = [pair[0].value for pair in whole.values() if pair[0]]
    if raw:
        add("positive_frequency_slopes", sum(value > 0 for value in raw), n=len(raw))


def _add_each(add: Callable, statistic: str, found: Mapping[tuple[str, str], Estimate | None]) -> None:
    """A row for each prompt and model, and for each prompt that of the mean over its models."""
    by_prompt: dict[str, list[Estimate]] = {}
    for (prompt, model), estimate in found.items():
        if estimate:
            add(statistic, estimate, prompt=prompt, model=model)
            by_prompt.setdefault(prompt, []).append(estimate)
    for prompt, estimates in by_prompt.items():
        add(statistic, stats.over_models(estimates), prompt=prompt)


def curve(
    tokens: Mapping[str, Mapping[str, Mapping[str, pd.DataFrame]]], prompts: Sequence[str], lists: Sequence[str]
) -> pd.DataFrame | None:
    """The mean slope over models under every combination of choices; None where there are too few words for any.

    Parameters
    ----------
    tokens
        Protocol → prompt → model → `rmnb.findings.word_tokens`; the chapter's protocol first.

    Returns
    -------
    DataFrame
        Of `rmnb.findings.specifications.specification_curve`, in standard deviations of the score; a single model
        brings its own interval.
    """
    held = {"and token id": "token id", "and length, spelling": "spelling", "valence": "valence"}
    scores = {"standard score": "z", "rank": "rank"}

    @functools.lru_cache(maxsize=2 * max((len(by) for of in tokens.values() for by in of.values()), default=1))
    def rows_of(protocol: str, prompt: str, model: str, words: str, source: str, unit: str) -> pd.DataFrame:
        return choose(tokens[protocol][prompt][model], words, source, unit)

    def estimate(protocol, prompt, words, source, unit, held_constant, score) -> Estimate | None:
        models = list(tokens[protocol].get(prompt, {}))
        of = [rows_of(protocol, prompt, model, words, source, unit) for model in models]
        if len(models) == 1:
            return slope(of[0], held[held_constant], scores[score])
        scale = np.sqrt(12) if score == "rank" else 1.0  # a uniform rank has the standard deviation 1 / sqrt(12)
        found = [scale * slope_value(rows, held[held_constant], scores[score]) for rows in of]
        return stats.mean_over_models(found) if found and np.isfinite(found).all() else None

    choices = {
        "protocol": list(tokens),
        "prompt": list(prompts),
        "words": ["AFINN", "others"],
        "source": list(lists),
        "unit": ["token", "word"],
        "held": list(held),
        "score": list(scores),
    }
    try:
        return specification_curve(choices, lambda held, **chosen: estimate(held_constant=held, **chosen))
    except InputError:
        return None

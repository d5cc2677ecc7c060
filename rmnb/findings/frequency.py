"""Do reward models prefer frequent words, and what else could look like that? Regressions on tokens that are words.

Tables are those of `rmnb.findings.scan_tables`, regressions those of `rmnb.findings.frequency_slopes`.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.data.sources import UnreachableError
from rmnb.findings import reading_question, word_tokens
from rmnb.findings.counts import sign_counts
from rmnb.findings.frequency_slopes import (
    ENOUGH,
    STEPS,
    framed,
    lost,
    partial_residuals,
    slope,
    within_word,
)
from rmnb.findings.results import Results
from rmnb.findings.word_tokens import choose
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
    n_boot, seed
        Of the bootstrap of slope_log_frequency_lost.
    panel, source, protocol
        Where the scores are from, as `rmnb.findings.results` names it.

    Returns
    -------
    DataFrame
        Rows of the results table: those of `measure_published`, where its list of words can be had;
        slope_log_frequency with _step (`other` names the step of `STEPS`), _controlled, _others, _lost, and _common and
        _turned (`other` is the negative prompt) with _others; their means over models where a model is ``""``;
        curvature_p; slope_log_id_within_word. A model with too few words for one of them has no such row.
    """
    results = Results("frequency", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    tokens = word_tokens.of_tables(tables, framings)
    words = {(prompt, model): found for prompt, by_model in tokens.items() for model, found in by_model.items()}
    rows = {key: choose(found) for key, found in words.items()}
    with contextlib.suppress(UnreachableError):  # the paper's own list of words
        results.extend(measure_published(tables, list(tokens), panel=panel, source=source, protocol=protocol))
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

    Tokens that are AFINN words as they stand, ``score ~ log(frequency) + valence``. Intervals are by word, the paper's
    are not. Frequencies are those of the paper's own list, of dictionary forms
    (`rmnb.data.lexicons.bnc_lemmas`); all else here is about wordfreq's, of words as they are spelled. `tables` need
    token and the columns of `prompts`, as the authors' own tables have them
    (`rmnb.data.released_files.vocabularies`).
    """
    listed = lexicons.bnc_lemmas().query("per_million > 0")
    listed = listed.assign(log_frequency=np.log(listed["per_million"].to_numpy(float)))
    words = lexicons.afinn().merge(listed, on="word")
    raw, standardised = {}, {}
    for prompt, model in itertools.product(prompts, tables):
        if prompt not in tables[model]:
            continue
        score = tables[model][prompt].to_numpy(float)
        word = tables[model]["token"].str.lower()
        rows = pd.DataFrame({"word": word, "score": score, "z": stats.standardise(score)}).merge(words, on="word")
        if rows["word"].nunique() >= 10:
            for unit, found in (("score", raw), ("z", standardised)):
                fit = stats.ols(f"{unit} ~ log_frequency + valence", rows, clusters="word")
                found[prompt, model] = fit["log_frequency"]
    results = Results("frequency", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    _add_each(add, "slope_log_frequency", raw)
    _add_each(add, "slope_log_frequency_standardised", standardised)
    if raw:
        add("positive_frequency_slopes", sum(found.value > 0 for found in raw.values()), n=len(raw))
    return results.frame()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """What sums the chapter up: means over models that turn with the question and over the others, and clear signs.

    Parameters
    ----------
    rows
        Rows of `measure` and of `rmnb.findings.reading_question.measure`.

    Returns
    -------
    DataFrame
        For each prompt mean_turning and mean_not_turning of slope_log_frequency_controlled and _others, and of these
        and what `measure` splits by framing models_above, models_clearly_above and models_clearly_below.
    """
    of, alike, parts = rows[rows["source"] == "panel"], reading_question.does_not_turn(rows), []
    for statistic in ("controlled", "others", "common", "turned", "common_others", "turned_others"):
        name = f"slope_log_frequency_{statistic}"
        for prompt in of.loc[of["statistic"] == name, "prompt"].unique():
            asked = of[of["prompt"] == prompt]
            parts.append(sign_counts(asked, name))
            if statistic in ("controlled", "others") and reading_question.was_asked(rows):
                parts.append(reading_question.means_apart(asked, name, alike))
    within = of[of["statistic"] == "slope_log_id_within_word"]
    parts += [sign_counts(asked, "slope_log_id_within_word") for _, asked in within.groupby("prompt", sort=False)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


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


def _add_each(add: Callable, statistic: str, found: Mapping[tuple[str, str], Estimate | None]) -> None:
    """A row for each prompt and model, and for each prompt that of the mean over its models."""
    by_prompt: dict[str, list[Estimate]] = {}
    for (prompt, model), estimate in found.items():
        if estimate:
            add(statistic, estimate, prompt=prompt, model=model)
            by_prompt.setdefault(prompt, []).append(estimate)
    for prompt, estimates in by_prompt.items():
        add(statistic, stats.over_models(estimates), prompt=prompt)

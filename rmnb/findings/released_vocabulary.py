"""Full vocabularies in the authors' CSV format: the analyses of FAccT25 on ten score tables, or on any like them.

One file a model, columns ``token_id, token_name, token_decoded, greatest, best, worst``. The ten published files are
large; `published_tables` gives None where they cannot be reached.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, sources
from rmnb.errors import InputError
from rmnb.findings import align
from rmnb.findings.released import FACCT, MODELS
from rmnb.findings.results import Results

PROMPTS = ("greatest", "best", "worst")
_COLUMNS = ["token_id", "token_decoded", *PROMPTS]


def read_table(path: Path | str) -> pd.DataFrame:
    """One model's scores: token_id (int64), token (str), greatest, best, worst (float64).

    A token that reads "NA" or "null" is that token, not a gap: the authors' own reading drops these. Tokens without a
    score, which some of their files have, are left out.

    Raises
    ------
    InputError
        The file is not there or lacks a column.
    """
    try:
        # A bare carriage return is a token, no end of line: pandas writes it without quotes.
        gaps = {prompt: ["", "NA", "nan"] for prompt in PROMPTS}
        table = pd.read_csv(path, keep_default_na=False, na_values=gaps, lineterminator="\n")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} as a table of scores: {error}") from error
    missing = [column for column in _COLUMNS if column not in table]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}")
    kept = table.dropna(subset=list(PROMPTS)).reindex(columns=_COLUMNS).rename(columns={"token_decoded": "token"})
    return kept.astype({"token_id": "int64", "token": "str"} | dict.fromkeys(PROMPTS, "float64")).reset_index(drop=True)


def published_tables() -> dict[str, pd.DataFrame] | None:
    """The ten models' tables by code, in RewardBench order, or None if not all can be reached."""
    paths = {}
    for model in MODELS:
        name = f"facct2025/data/reward_model_scores/{model.hub_id.replace('/', '--')}.csv"
        paths[model.code] = sources.locate_or_none(name)
        if paths[model.code] is None:
            return None
    return {code: read_table(path) for code, path in paths.items()}


def shared_vocabulary(tables: Mapping[str, pd.DataFrame], prompt: str) -> pd.DataFrame:
    """Scores on the strings that all models share and none has twice: index token, one float32 column a model."""
    scans = {code: table.assign(kind="", score=table[prompt]) for code, table in tables.items()}
    return align.align(scans, how="exact")


def heterogeneity(tables: Mapping[str, pd.DataFrame], panel: str = FACCT, source: str = "released") -> pd.DataFrame:
    """Rows vocabulary_size, moments (table 3), skewed_positively, and tau, Spearman and RBO of every pair (2A, A1)."""
    results = Results("heterogeneity", panel)
    shared = shared_vocabulary(tables, "greatest")
    about: dict = {"prompt": "greatest", "protocol": "published", "n": len(shared)}
    results.add(source, "vocabulary_size", len(shared), protocol="published")
    scores = shared.to_numpy(np.float64).T
    moments = [stats.moments(row) for row in scores]
    for name in ("mean", "variance", "skewness"):
        for code, found in zip(shared.columns, moments, strict=True):
            results.add(source, name, getattr(found, name), model=code, prompt="greatest", protocol="published")
    positive = sum(found.skewness.value > 0 for found in moments)
    results.add(source, "skewed_positively", positive, prompt="greatest", protocol="published", n=len(moments))
    matrices = {
        "kendall_tau": stats.kendall_matrix(scores),
        "spearman": stats.spearman_matrix(scores),
        "rbo": stats.overlap_matrix(scores, form="truncated"),
    }
    for name, matrix in matrices.items():
        for (i, model), (j, other) in itertools.combinations(enumerate(shared.columns), 2):
            results.add(source, name, matrix[i, j], model=model, other=other, **about)
    return results.frame()


def extreme_tokens(table: pd.DataFrame, prompt: str = "greatest", count: int = 22) -> pd.DataFrame:
    """The `count` highest and lowest tokens of a model's whole vocabulary, laid out as `released.token_table`."""
    order = stats.stable_order(table[prompt].to_numpy())
    rows = table.iloc[np.concatenate([order[:count], order[-count:]])].reset_index(drop=True)
    ends = ["optimal"] * count + ["pessimal"] * count
    return pd.DataFrame({"token_id": rows["token_id"], "token": rows["token"], "score": rows[prompt], "end": ends})


def valence_slopes(tables: Mapping[str, pd.DataFrame], panel: str = FACCT, source: str = "released") -> pd.DataFrame:
    """Rows slope_positive and slope_negative, raw and standardised, by model and prompt and their mean (figure 3C).

    As published: tokens whose lower-cased text, spaces kept, is an AFINN-111 word, in each model's whole vocabulary.
    The intervals are not: they take spellings of one word as one observation.
    """
    results = Results("asymmetry", panel)
    afinn = lexicons.afinn()
    for prompt in PROMPTS:
        for suffix in ("", "_standardised"):
            slopes = []
            for code, table in tables.items():
                matched = _with_words(table, prompt, afinn, standardise=bool(suffix))
                fit = stats.valence_slopes(matched["score"], matched["valence"], matched["word"].to_numpy())
                slopes.append((fit.positive.value, fit.negative.value))
                about: dict = {"model": code, "prompt": prompt, "protocol": "published"}
                results.add(source, "slope_positive" + suffix, fit.positive, **about)
                results.add(source, "slope_negative" + suffix, fit.negative, **about)
                results.add(source, "slope_difference" + suffix, fit.difference, **about)
            for name, values in zip(("slope_positive", "slope_negative"), np.transpose(slopes), strict=True):
                _add_mean(results, source, name + suffix, values, prompt)
    return results.frame()


def frequency_slopes(tables: Mapping[str, pd.DataFrame], panel: str = FACCT, source: str = "released") -> pd.DataFrame:
    """Rows slope_log_frequency, raw and standardised, by model and prompt, their mean, and how many are positive (3D).

    As published: ``score ~ log(frequency) + valence`` on the AFINN words that the BNC list has as a dictionary form.
    """
    results = Results("frequency", panel)
    frequent = lexicons.bnc_lemmas().query("per_million > 0")
    words = lexicons.afinn().merge(frequent, on="word")
    positive = 0
    for prompt in PROMPTS:
        for suffix in ("", "_standardised"):
            slopes = []
            for code, table in tables.items():
                matched = _with_words(table, prompt, words, standardise=bool(suffix))
                controls = {"valence": matched["valence"].to_numpy()}
                log = np.log(matched["per_million"].to_numpy(np.float64))
                slope = stats.frequency_slope(matched["score"], log, controls, matched["word"].to_numpy())
                slopes.append(slope.value)
                about: dict = {"model": code, "prompt": prompt, "protocol": "published"}
                results.add(source, "slope_log_frequency" + suffix, slope, **about)
            _add_mean(results, source, "slope_log_frequency" + suffix, np.array(slopes), prompt)
            positive += 0 if suffix else int((np.array(slopes) > 0).sum())
    results.add(source, "positive_frequency_slopes", positive, protocol="published", n=len(tables) * len(PROMPTS))
    return results.frame()


def framing(tables: Mapping[str, pd.DataFrame], panel: str = FACCT, source: str = "released") -> pd.DataFrame:
    """Rows framing_spearman and framing_kendall of best against worst and best against greatest (figures 4, A2)."""
    results = Results("framing", panel)
    shared = {prompt: shared_vocabulary(tables, prompt) for prompt in PROMPTS}
    for code in tables:
        for other in ("worst", "greatest"):
            pair = shared["best"][code].to_numpy(), shared[other][code].to_numpy()
            about: dict = {"model": code, "prompt": "best", "other": other, "protocol": "published", "n": len(pair[0])}
            results.add(source, "framing_spearman", stats.spearman(*pair), **about)
            results.add(source, "framing_kendall", stats.kendall_tau(*pair), **about)
    return results.frame()


def _with_words(table: pd.DataFrame, prompt: str, words: pd.DataFrame, standardise: bool) -> pd.DataFrame:
    scores = table[prompt].to_numpy()
    tokens = pd.DataFrame(
        {"word": table["token"].str.lower(), "score": stats.standardise(scores) if standardise else scores}
    )
    return tokens.merge(words, on="word")


def _add_mean(results: Results, source: str, statistic: str, values: np.ndarray, prompt: str) -> None:
    mean = stats.mean_over_models(values) if len(values) > 1 else float(values[0])
    results.add(source, statistic, mean, prompt=prompt, protocol="published")

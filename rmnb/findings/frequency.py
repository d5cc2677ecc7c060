"""Do reward models prefer frequent words, and what else could look like that? Regressions on tokens that are words."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores
from rmnb.truth.planted import RAREST

SOURCES = ("wordfreq", "BNC")
#: What is held constant, step by step; each step keeps the ones before it.
STEPS = ("frequency alone", "valence", "length", "spelling", "token id")
WORD_KINDS = ("word_start", "word_continuation")


@functools.cache
def frequency_list(source: str) -> pd.DataFrame:
    """How often English words occur: word (str, unique, a to z), log_frequency (float64, natural log per million).

    wordfreq: many kinds of modern text (Speer, 2022). BNC: word forms of the British National Corpus, all parts of
    speech together (Leech, Rayson and Wilson, 2001); UnreachableError where it cannot be had.
    """
    if source == "wordfreq":
        from wordfreq import get_frequency_dict

        rarest = 10 ** (RAREST - 9)
        counts = {word: share * 1e6 for word, share in get_frequency_dict("en").items() if share >= rarest}
        table = pd.DataFrame({"word": list(counts), "per_million": list(counts.values())})
    elif source == "BNC":
        table = lexicons.bnc_frequency().query("per_million > 0")
        table = table.assign(word=table["word"].str.casefold()).groupby("word", as_index=False)["per_million"].sum()
    else:
        raise InputError(f"no frequencies from {source!r}: choose one of {', '.join(SOURCES)}")
    table = table.loc[table["word"].str.fullmatch("[a-z]+")]
    return pd.DataFrame({"word": table["word"], "log_frequency": np.log(table["per_million"].to_numpy(float))})


def word_tokens(scan: pd.DataFrame, sources: Sequence[str] = SOURCES[:1]) -> pd.DataFrame:
    """The tokens of a scan that spell an English word, with what their reward may depend on.

    A string of letters counts as a word if a frequency list (`sources`) has it and a token of this vocabulary begins a
    word with it; most fragments of words fail the second.

    Returns
    -------
    DataFrame
        Index: place in `scan`. word (str, folded), valence (float64, NaN for words absent from AFINN), length
        (letters), spelling (category: kind and case), log_id (natural log of 1 + id), one column a source (natural log
        of frequency per million, NaN where that list lacks the word), score, z (standard deviations of the whole scan
        above its mean), rank (share of the whole scan at or below it); float64.
    """
    tokens = scan.loc[scan["kind"].isin(WORD_KINDS), ["token_id", "token", "kind"]]
    text = tokens["token"].str.removeprefix("##").str.strip()
    tokens = tokens.assign(text=text).loc[text.str.fullmatch("[A-Za-z]+").to_numpy(bool)]
    tokens["word"] = tokens["text"].str.lower()
    begin = tokens.loc[tokens["kind"] == "word_start", "word"].unique()
    tokens = tokens.loc[tokens["word"].isin(begin)]
    for source in sources:
        tokens[source] = tokens["word"].map(frequency_list(source).set_index("word")["log_frequency"])
    tokens = tokens.dropna(subset=list(sources), how="all")
    case = np.select([tokens["text"].str.islower(), tokens["text"].str.isupper()], ["lower", "upper"], "capital")
    frame = pd.DataFrame(
        {
            "word": tokens["word"].to_numpy(object),
            "valence": tokens["word"].map(lexicons.afinn().set_index("word")["valence"]).to_numpy(float),
            "length": tokens["word"].str.len().to_numpy(float),
            "spelling": pd.Categorical(tokens["kind"].astype(str) + " " + case),
            "log_id": np.log1p(tokens["token_id"].to_numpy(float)),
            **{source: tokens[source].to_numpy(float) for source in sources},
        },
        index=tokens.index,
    )
    return with_scores(frame, scan)


def with_scores(tokens: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """The same tokens with the scores of another scan of the same vocabulary: columns score, z and rank."""
    score = scan["score"].to_numpy(float)
    rank = stats.mid_ranks(score) / len(score)
    place = tokens.index.to_numpy()
    return tokens.assign(score=score[place], z=stats.standardise(score)[place], rank=rank[place])


def choose(tokens: pd.DataFrame, words: str = "AFINN", source: str = "wordfreq", unit: str = "token") -> pd.DataFrame:
    """The rows of a regression, with the chosen source's column named log_frequency.

    Parameters
    ----------
    tokens
        From `word_tokens`.
    words : {"AFINN", "others", "all"}
        Words with a valence, words absent from AFINN, or both (valence 0 where there is none).
    source
        A column of `tokens`.
    unit : {"token", "word"}
        word: the mean over a word's spellings, and the lowest id among them.
    """
    if words not in ("AFINN", "others", "all"):
        raise InputError(f"no words called {words!r}: choose AFINN, others or all")
    kept = {"AFINN": tokens["valence"].notna(), "others": tokens["valence"].isna(), "all": True}[words]
    rows = tokens.loc[kept & tokens[source].notna()].rename(columns={source: "log_frequency"})
    rows = rows.assign(valence=rows["valence"].fillna(0))
    if unit == "word":
        how = dict.fromkeys(("valence", "length", "log_frequency", "score", "z", "rank"), "mean")
        rows = rows.groupby("word", as_index=False).agg(how | {"log_id": "min"}).assign(spelling="any")
    return rows


def controls(rows: pd.DataFrame, step: str = STEPS[-1]) -> dict[str, NDArray[np.float64]]:
    """The columns that are held constant at a step of `STEPS`, those of the steps before it among them.

    Valence has a slope above zero and another below. Columns that are the same everywhere are left out.
    """
    if step not in STEPS:
        raise InputError(f"no step {step!r}: choose one of {', '.join(STEPS)}")
    reached = STEPS[: STEPS.index(step) + 1]
    valence, columns = rows["valence"].to_numpy(float), {}
    if "valence" in reached:
        columns |= {"valence above 0": np.clip(valence, 0, None), "valence below 0": np.clip(valence, None, 0)}
    if "length" in reached:
        columns["length"] = rows["length"].to_numpy(float)
    if "spelling" in reached:
        columns |= _spellings(rows)
    if "token id" in reached:
        columns["log id"] = rows["log_id"].to_numpy(float)
    return {name: column for name, column in columns.items() if np.ptp(column) > 0}


def _spellings(rows: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """A column of 0 and 1 for each spelling but the most frequent."""
    counts = rows["spelling"].value_counts()
    return {f"spelling[{level}]": (rows["spelling"] == level).to_numpy(float) for level in counts.index[1:]}


def _carried(rows: pd.DataFrame, step: str) -> dict[str, NDArray[np.float64]] | None:
    """The controls of a step, None where there are too few words to carry them."""
    columns = controls(rows, step)
    return columns if rows["word"].nunique() > 3 * (len(columns) + 2) else None


def slope(rows: pd.DataFrame, step: str = STEPS[-1], score: str = "z") -> stats.Estimate | None:
    """Slope of a column of scores over log frequency, errors by word; None where too few words are left."""
    if (columns := _carried(rows, step)) is None:
        return None
    return stats.frequency_slope(rows[score], rows["log_frequency"], columns, rows["word"].to_numpy(object))


def slope_value(rows: pd.DataFrame, step: str = STEPS[-1], score: str = "z") -> float:
    """`slope` without its interval, ten times faster; NaN where too few words are left."""
    if (columns := _carried(rows, step)) is None:
        return float("nan")
    design = np.column_stack([rows["log_frequency"], np.ones(len(rows)), *columns.values()])
    return float(np.linalg.lstsq(design, rows[score].to_numpy(float), rcond=None)[0][0])


def lost(rows: pd.DataFrame, before: str = "valence", n_boot: int = 200, seed: int = 0) -> stats.Bootstrap | None:
    """How much smaller the slope becomes when everything after `before` is held constant too; bootstrap by word."""
    if (columns := _carried(rows, STEPS[-1])) is None:
        return None
    few = [name for name in columns if name in controls(rows, before)]
    first = [rows["log_frequency"].to_numpy(float), np.ones(len(rows)), *(columns[name] for name in few)]
    design = np.column_stack([*first, *(column for name, column in columns.items() if name not in few)])

    def difference(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        short = np.linalg.lstsq(x[:, : len(first)], y, rcond=None)[0][0]
        return short - np.linalg.lstsq(x, y, rcond=None)[0][0]

    words = rows["word"].to_numpy(object)
    return stats.bootstrap(difference, design, rows["z"].to_numpy(float), clusters=words, n_draws=n_boot, seed=seed)


def published_slope(scan: pd.DataFrame, standardise: bool = False) -> stats.Estimate | None:
    """The regression of FAccT25 figure 3D: tokens that are AFINN words as they stand, ``score ~ log(freq) + value``.

    Frequencies are the BNC list's dictionary forms, one row a part of speech. The interval is by word, the paper's is
    not. None where too few words are left; UnreachableError without the list.
    """
    words = lexicons.afinn().merge(lexicons.bnc_lemmas().query("per_million > 0"), on="word")
    score = scan["score"].to_numpy(float)
    tokens = pd.DataFrame(
        {"word": scan["token"].str.lower(), "score": stats.standardise(score) if standardise else score}
    )
    rows = tokens.merge(words, on="word")
    if rows["word"].nunique() < 10:
        return None
    log = np.log(rows["per_million"].to_numpy(float))
    return stats.frequency_slope(rows["score"], log, {"valence": rows["valence"]}, rows["word"].to_numpy(object))


def within_word(tokens: pd.DataFrame, score: str = "z") -> stats.Estimate | None:
    """Slope of the score over log id among the spellings of one word, space and case held constant.

    What belongs to a word (meaning, valence, length) is the same for all its spellings and drops out. Low ids were
    merged first, that is, were frequent in the text that the tokenizer was made from: preferring frequent *tokens*
    gives a negative slope. None where too few words have several spellings.
    """
    several = tokens.loc[tokens["word"].duplicated(keep=False)]
    if several["word"].nunique() < 30:
        return None
    columns = pd.DataFrame({"score": several[score], "log id": several["log_id"], **_spellings(several)})
    inside = columns - columns.groupby(several["word"].to_numpy(object)).transform("mean")
    varying = [name for name in inside.columns[1:] if np.ptp(inside[name].to_numpy()) > 1e-9]
    predictors = {name: inside[name] for name in varying}
    fit = stats.least_squares(inside["score"], predictors, several["word"].to_numpy(object), intercept=False)
    return fit["log id"]


@dataclass(frozen=True)
class Framed:
    """Slopes of half the sum and half the difference of the scores under a good and a bad question.

    `common` is what does not care which was asked; `turned` changes sign with the question, as meaning does.
    """

    common: stats.Estimate
    turned: stats.Estimate


def framed(tokens: Mapping[str, pd.DataFrame], positive: str, negative: str, **chosen: str) -> Framed | None:
    """Split the frequency slope of one model by framing; `tokens` by prompt, `chosen` as `choose` takes it."""
    one, other = tokens[positive]["z"], tokens[negative]["z"]
    half_sum = slope(choose(tokens[positive].assign(z=(one + other) / 2), **chosen))
    half_difference = slope(choose(tokens[positive].assign(z=(one - other) / 2), **chosen))
    return Framed(half_sum, half_difference) if half_sum and half_difference else None


def partial_residuals(rows: pd.DataFrame, n_bins: int = 20) -> tuple[pd.DataFrame, stats.Curvature]:
    """What is left of the score when all controls are taken out, over log frequency, and a spline through it.

    Returns
    -------
    DataFrame
        `n_bins` bins with equally many words: log_frequency and residual (means over words), error (standard error).
    Curvature
        The spline of `rmnb.stats.curvature`, on the same scale.
    """
    held = controls(rows)
    bend = stats.curvature(rows["z"], rows["log_frequency"], held, rows["word"].to_numpy(object))
    fit = stats.least_squares(
        rows["z"], {"log_frequency": rows["log_frequency"], **held}, rows["word"].to_numpy(object)
    )
    taken = sum(fit[name].value * (column - column.mean()) for name, column in held.items())
    left = rows.assign(residual=rows["z"] - taken).groupby("word")[["log_frequency", "residual"]].mean()
    # by rank, because many words of the BNC list share one frequency
    bins = pd.qcut(left["log_frequency"].rank(method="first"), min(n_bins, len(left) // 5), labels=False)
    grouped = left.groupby(bins)
    table = grouped.mean().assign(error=grouped["residual"].sem())
    return table.reset_index(drop=True), bend


@dataclass(frozen=True)
class PanelWords:
    """The words of a panel's scans.

    Attributes
    ----------
    tokens : prompt → model → `word_tokens`
    published : prompt → model → `published_slope`, raw and standardised; empty without the list of the BNC
    missing : one line for each scan that the panel has not
    """

    tokens: dict[str, dict[str, pd.DataFrame]]
    published: dict[str, dict[str, tuple[stats.Estimate, stats.Estimate]]]
    missing: list[str]


def panel_words(panel: Panel, sources: Sequence[str], protocol: str = "exact") -> PanelWords:
    """The words of every scan that a panel has, under the prompts that it names; `sources` are frequency lists."""
    found = PanelWords({}, {}, [])
    known: list[tuple[pd.Series, pd.DataFrame]] = []  # models of one base share their vocabulary
    for prompt in panel.scanned_prompts:
        for model in panel.model_names:
            try:
                scan = read_scores(panel, model, prompt.key, protocol)
            except InputError:
                found.missing.append(f"{model} has not been scanned with the prompt {prompt.key}")
                continue
            tokens = next((table for texts, table in known if texts.equals(scan["token"])), None)
            if tokens is None:
                tokens = word_tokens(scan, sources)
                known.append((scan["token"], tokens))
            found.tokens.setdefault(prompt.key, {})[model] = with_scores(tokens, scan)
            if "BNC" in sources and (raw := published_slope(scan)) and (standard := published_slope(scan, True)):
                found.published.setdefault(prompt.key, {})[model] = raw, standard
    return found

"""What changes when a question asks for the worst instead of the best, and what when only its wording changes.

Tables are those of `rmnb.findings.asymmetry`: token_id, token, kind, word and a column of scores a prompt. Source of
the questions: Christian et al. (2025), section 4 and figures 3 and 4; the 54 wordings are those of Christian et al.
(2026).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import align, released, scan_tables
from rmnb.findings.results import Results
from rmnb.panels import Panel, PromptSpec, load_prompts
from rmnb.scoring.list_scores import list_path, read_list
from rmnb.stats.estimate import Estimate
from rmnb.truth import planted

PLANTED = planted.PlantedEffects(
    valence_positive=0.30, valence_negative=0.20, negative_framing=-0.6, word_sd=0.7, noise_sd=0.3
)
#: What two wordings of a question may differ in, with what is the same.
CHANGES = ("style", "scope", "adjective", "framing")
CONTRASTS = ("loss_aversion", "match", "damping")
_SIGNS = {  # of the turned slopes among good and bad words, asked for something good, then for something bad
    "loss_aversion": (-1, 1, -1, 1),
    "match": (1, -1, -1, 1),
    "damping": (1, 1, -1, -1),
}


@dataclass(frozen=True)
class Contrasts:
    """Three contrasts of a model's four slopes over valence, turned so that following valence is positive.

    Attributes
    ----------
    loss_aversion : Estimate
        Slope among bad words less slope among good words, mean of the framings.
    match : Estimate
        Slope among the words that answer the question less slope among the others, mean of the framings.
    damping : Estimate
        Slope asked for something good less slope asked for something bad, mean of good and bad words.
    """

    loss_aversion: Estimate
    match: Estimate
    damping: Estimate


def opposites(prompts: Sequence[PromptSpec]) -> tuple[str, str] | None:
    """The keys of a question for something good and of one for something bad, best and worst if they are there."""
    chosen = []
    for framing, wanted in (("positive", "best"), ("negative", "worst")):
        keys = [prompt.key for prompt in prompts if prompt.framing == framing]
        if not keys:
            return None
        chosen.append(wanted if wanted in keys else keys[0])
    return chosen[0], chosen[1]


def shared_scores(tables: Mapping[str, pd.DataFrame], prompts: Sequence[str]) -> dict[str, pd.DataFrame]:
    """For each prompt the scores on the tokens that all models have: index token, a column a model."""
    return {
        prompt: align.align({model: table.assign(score=table[prompt]) for model, table in tables.items()})
        for prompt in prompts
    }


def axes_of(table: pd.DataFrame, good: str, bad: str) -> pd.DataFrame:
    """The table with two axes: difference, of the standardised scores (valence), and sum (an answer to both).

    Each is divided by the square root of two, so that it has variance one where the scores are uncorrelated.
    """
    first, second = stats.standardise(table[good]), stats.standardise(table[bad])
    return table.assign(difference=(first - second) / np.sqrt(2), sum=(first + second) / np.sqrt(2))


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


def contrasts(good: pd.DataFrame, bad: pd.DataFrame) -> Contrasts:
    """The three contrasts of one model from one fit, so that a word under both questions counts once.

    Parameters
    ----------
    good, bad : DataFrame
        word, valence, score of rated words, asked for something good and for something bad
        (`rmnb.findings.scan_tables.rated`).
    """
    both = pd.concat([good.assign(asked=1.0), bad.assign(asked=-1.0)])
    valence, asked = both["valence"].to_numpy(float), both["asked"].to_numpy()
    columns, names = {}, []
    for wanted, is_high in itertools.product((1.0, -1.0), (True, False)):
        member = ((asked == wanted) & ((valence > 0) == is_high)).astype(float)
        names.append(f"slope {wanted} {is_high}")
        columns |= {f"level {wanted} {is_high}": member, names[-1]: member * valence * wanted}
    fit = stats.least_squares(both["score"], columns, both["word"].to_numpy(), intercept=False)
    weights = {name: dict(zip(names, np.array(signs) / 2, strict=True)) for name, signs in _SIGNS.items()}
    return Contrasts(**{name: fit.contrast(weight) for name, weight in weights.items()})


def of_slopes(good: tuple[float, float], bad: tuple[float, float]) -> dict[str, float]:
    """The contrasts of slopes among positive and negative words, asked for something good and for something bad."""
    turned = np.array([*good, -bad[0], -bad[1]])
    return {name: float(np.array(signs) @ turned / 2) for name, signs in _SIGNS.items()}


def planted_truth() -> dict[str, float]:
    """The contrasts of `PLANTED`."""
    slopes = (PLANTED.valence_positive, PLANTED.valence_negative)
    turned = PLANTED.negative_framing
    return of_slopes(slopes, (turned * slopes[0], turned * slopes[1]))


def add_contrasts(
    results: Results, source: str, found: Mapping[str, Contrasts], pair: tuple[str, str], protocol: str = "exact"
) -> None:
    """Rows framing_loss_aversion, framing_match and framing_damping by model, their means over models, and p-values.

    The p-value is that of flipping the signs of models, which are what the claim is about.
    """
    about: dict = {"prompt": pair[0], "other": pair[1], "protocol": protocol}
    for name in CONTRASTS:
        single = [getattr(one, name) for one in found.values()]
        for model, estimate in zip(found, single, strict=True):
            results.add(source, f"framing_{name}", estimate, model=model, **about)
        results.add(source, f"framing_{name}", stats.over_models(single), **about)
        if len(single) > 1:
            test = stats.sign_flip_test([one.value for one in single])
            results.add(source, f"framing_{name}_p", test.p_value, n=len(single), **about)


def changes(scores: pd.DataFrame, prompts: Sequence[PromptSpec]) -> pd.DataFrame:
    """How alike two wordings rank the same texts, for every pair that differs in one thing alone.

    Parameters
    ----------
    scores : DataFrame
        A row a text, a column a prompt; keys read ``adjective_scope_style``.
    prompts
        Of a factorial set such as ``iclr2026``; those without a column are left out.

    Returns
    -------
    DataFrame
        prompt, other (keys), change (one of `CHANGES`; adjective: another adjective of the same framing, framing: one
        of the other), spearman (float64).
    """
    known = [prompt for prompt in prompts if prompt.key in scores]
    matrix = stats.spearman_matrix(scores[[prompt.key for prompt in known]].to_numpy(np.float64).T)
    rows = []
    for (i, one), (j, other) in itertools.combinations(enumerate(known), 2):
        differ = [a != b for a, b in zip(one.key.split("_"), other.key.split("_"), strict=True)]
        if sum(differ) == 1:
            change = ("adjective", "scope", "style")[differ.index(True)]
            change = "framing" if one.framing != other.framing else change
            rows.append((one.key, other.key, change, matrix[i, j]))
    return pd.DataFrame(rows, columns=["prompt", "other", "change", "spearman"])


def list_tables(panel: Panel, name: str = "words") -> dict[str, pd.DataFrame]:
    """For each model that has scored a list, its scores: a row a distinct text, a column a prompt."""
    tables = {}
    for model in panel.model_names:
        path = list_path(panel, model, name)
        if path.exists():
            frame, _ = read_list(path)
            tables[model] = frame.drop(columns="part").drop_duplicates("text").set_index("text")
    return tables


def add_changes(results: Results, source: str, tables: Mapping[str, pd.DataFrame], protocol: str) -> None:
    """Rows wording_spearman by model and change: the median over pairs of wordings, with the middle 90 % of them."""
    prompts = load_prompts("iclr2026")
    for model, table in tables.items():
        for change, values in changes(table, prompts).groupby("change", sort=False)["spearman"]:
            low, high = values.quantile([0.05, 0.95])
            about: dict = {"model": model, "other": change, "protocol": protocol, "n": len(values)}
            results.add(source, "wording_spearman", values.median(), ci_low=low, ci_high=high, **about)


def released_contrasts() -> dict[str, Contrasts]:
    """The contrasts of the ten published models on the dictionary words that AFINN rates, standardised over these."""
    lexicon, found = scan_tables.afinn(), {}
    for model in released.MODELS:
        scores = released.word_scores(model, "dict_MFD_20")
        known = lexicon[lexicon["word"].isin(scores.index)]
        halves = [
            known.assign(score=stats.standardise(scores.loc[known["word"], key].to_numpy()))
            for key in ("best_ever_one", "worst_ever_one")
        ]
        found[model.code] = contrasts(*halves)
    return found

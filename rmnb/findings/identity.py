"""Identity terms against matched controls: in scans, in lists of texts, among rated things, in exchanged prompts.

`measure` is the door and `over_models` sums its rows up; models answer the exchanged prompts in
`rmnb.findings.identity_study`; what a gap can be trusted for is in `rmnb.findings.identity_checks`.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings.counts import sign_counts
from rmnb.findings.reading_question import means_apart
from rmnb.findings.results import KEY, Results
from rmnb.findings.things import fact

ALL = "all axes"


def measure(
    tables: Mapping[str, pd.DataFrame] = {},
    framing: Mapping[str, str] = {},
    *,
    lists: Mapping[str, pd.DataFrame] = {},
    items: pd.DataFrame | None = None,
    things: Mapping[str, pd.DataFrame] = {},
    warmth: Mapping[str, Mapping[str, float]] = {},
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
    n_permutations: int = 2000,
    n_boot: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Gaps between terms and controls, as rows of the results table, in whatever is given.

    Parameters
    ----------
    tables
        For each model its scans (`rmnb.findings.scan_tables.as_table`). Rows identity_gap, identity_gap_p and _q by
        axis under each prompt (all axes, with groups as units: the gap alone); identity_tail_gap where both framings
        were asked.
    framing
        For each prompt, of scans and lists, positive or negative.
    lists
        For each model its rewards of the list ``words``: part, text, a column a prompt. The same rows, averaged over
        the prompts of a framing; their prompt is ``words, positive`` or ``words, negative``.
    items, things
        Rated things (name, elo_score) and, for each prompt, a column of their scores a model. Rows
        identity_gap_things, _p and _q.
    warmth
        As `rmnb.findings.identity_study.warmth` gives it. Rows identity_gap_warmth and _q.
    n_permutations, n_boot, seed
        Arrangements within matched sets, bootstrap draws of the share in the tail, and where both start.
    """
    results = Results("identity", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    test = functools.partial(stats.identity_gaps, n_permutations=n_permutations, seed=seed)
    for prompt in framing:
        found = {model: pairs(scan_scores(table, prompt)) for model, table in tables.items() if prompt in table}
        _add_gaps(add, test, "identity_gap", prompt, found)
    good, bad = questions(framing)
    for model, table in tables.items():
        if good in table and bad in table:
            about = {"model": model, "prompt": good, "other": bad}
            _add_tail(functools.partial(add, **about), test, tail(table, good, bad), n_boot, seed)
    for kind in dict.fromkeys(framing.values()):
        prompts = [prompt for prompt, value in framing.items() if value == kind]
        found = {model: pairs(_mean_z(rows, prompts)) for model, rows in lists.items()}
        _add_gaps(add, test, "identity_gap", f"words, {kind}", found)
    if items is not None:
        sets = matched_things(items)
        for prompt, scores in things.items():
            found = {str(model): sets.assign(score=percentiles(scores[model])[sets.index]) for model in scores}
            _add_gaps(add, test, "identity_gap_things", prompt, found)
    _add_gaps(add, test, "identity_gap_warmth", "exchanged", {model: pairs(of) for model, of in warmth.items()})
    return results.frame()


def tested(rows: pd.DataFrame, statistic: str = "identity_gap") -> pd.DataFrame:
    """The gaps of one kind among the rows of `measure` that were tested: with p, q and discovery (q below 0.05)."""
    key = [name for name in KEY if name != "statistic"]
    gaps = rows[rows["statistic"] == statistic]
    for end in ("p", "q"):
        found = rows.loc[rows["statistic"] == f"{statistic}_{end}", [*key, "value"]]
        gaps = gaps.merge(found.rename(columns={"value": end}), on=key)
    return gaps.assign(discovery=gaps["q"] < 0.05)


def over_models(rows: pd.DataFrame, alike: Collection[str] | None = None) -> pd.DataFrame:
    """What rows of `measure` say together, by source and prompt.

    Parameters
    ----------
    rows
        Rows of `measure`, or of `rmnb.findings.released_rows`.
    alike
        The panel's models that do not read the question; None where that cannot be known.

    Returns
    -------
    DataFrame
        identity_gap and identity_gap_warmth of all axes and identity_gap_things without a model: mean and interval over
        models; the counts of `rmnb.findings.counts.sign_counts`; mean_turning and mean_not_turning; and
        identity_discoveries, the number of tests with q below 0.05 (`other`: below or above, and of which axis).
    """
    results = Results("identity")
    gaps = rows[rows["other"].eq(ALL) | rows["statistic"].eq("identity_gap_things")]
    gaps = gaps[gaps["statistic"].isin(["identity_gap", "identity_gap_things", "identity_gap_warmth"])]
    key = ["source", "panel", "prompt", "protocol"]
    for _, of in gaps.groupby([*key, "statistic"], sort=False):
        source, statistic, about = _about(of)
        if len(of) > 1:
            mean = stats.mean_over_models(of["value"])
            results.add(source, statistic, mean, other=of["other"].iloc[0], **about)
        results.extend(sign_counts(of, statistic))
        if alike is not None and source == "panel":
            results.extend(means_apart(of, statistic, alike))
    tails = rows[rows["statistic"] == "identity_tail_gap"]
    for _, of in tails.groupby(key, sort=False):
        results.extend(sign_counts(of, "identity_tail_gap"))
    for statistic in gaps["statistic"].unique():
        for _, of in tested(rows, statistic).groupby(key, sort=False):
            source, _, about = _about(of)
            for way, side in (("below", of["value"] < 0), ("above", of["value"] > 0)):
                found = (of["discovery"] & side).groupby(of["other"], sort=False).sum()
                each = {f"{axis} {way}": int(count) for axis, count in found.items() if count and axis}
                for other, count in {way: int(found.sum()), **each}.items():
                    among = len(of) if other == way else int((of["other"] == other.removesuffix(f" {way}")).sum())
                    prefix = "" if statistic == "identity_gap" else f"{statistic.removeprefix('identity_gap_')} "
                    results.add(source, "identity_discoveries", count, other=prefix + other, n=among, **about)
    return results.frame()


def _about(rows: pd.DataFrame) -> tuple[str, str, dict]:
    """Source and statistic of rows that share them, and the rest of what they share."""
    first = rows.iloc[0]
    return first["source"], first["statistic"], {column: first[column] for column in ("panel", "prompt", "protocol")}


def questions(framing: Mapping[str, str]) -> tuple[str, str]:
    """The prompts of the pessimal tail: ``best`` and ``worst``, else the first positive and the first negative one."""
    found = []
    for preferred, kind in (("best", "positive"), ("worst", "negative")):
        keys = [key for key, value in framing.items() if value == kind]
        found.append(preferred if preferred in keys else next(iter(keys), ""))
    return found[0], found[1]


def _add_gaps(add: Callable, test: Callable, statistic: str, prompt: str, found: Mapping[str, pd.DataFrame]) -> None:
    """By model and axis, false discoveries controlled over all of them; an axis with a single set is left out."""
    from scipy.stats import false_discovery_control  # here, because importing scipy.stats takes most of a second

    gaps: list[tuple[str, stats.Gap]] = []
    for model, rows in found.items():
        if (rows["axis"] != "").all() and (overall := overall_gap(rows)):
            add(statistic, overall, model=model, other=ALL, prompt=prompt)
        sets = rows.groupby("axis")["matched_set"].nunique()
        rows = rows[rows["axis"].isin(sets.index[sets > 1])]
        if len(rows):
            gaps += [
                (model, gap) for gap in test(*(rows[name] for name in ("score", "is_term", "matched_set", "axis")))
            ]
    adjusted = false_discovery_control([gap.p_value for _, gap in gaps]) if gaps else []
    for (model, gap), q in zip(gaps, adjusted, strict=True):
        about = {"model": model, "other": gap.axis, "prompt": prompt}
        add(statistic, gap.gap, **about)
        add(f"{statistic}_p", gap.p_value, n=gap.gap.n_clusters, **about)
        add(f"{statistic}_q", float(q), n=gap.gap.n_clusters, **about)


def _add_tail(add: Callable, test: Callable, words: pd.DataFrame, n_boot: int, seed: int) -> None:
    """How much more often terms are among the lowest words than their controls, all axes as one."""
    shares = pairs(dict(zip(words["token"].str.strip(), words["lowest"], strict=True)))
    if shares["matched_set"].nunique() < 2:
        return

    def difference(score, term):
        return score[term].mean() - score[~term].mean() if 0 < term.sum() < len(term) else np.nan

    score, is_term, sets = (shares[name].to_numpy() for name in ("score", "is_term", "matched_set"))
    add("identity_tail_gap", stats.bootstrap(difference, score, is_term, clusters=sets, n_draws=n_boot, seed=seed))
    add("identity_tail_gap_p", test(score, is_term, sets, ["all axes"] * len(sets))[0].p_value, n=len(shares))
    add("identity_tail_terms", score[is_term].mean(), n=len(shares) // 2)
    add("identity_tail_controls", score[~is_term].mean(), n=len(shares) // 2)


def _mean_z(rows: pd.DataFrame, prompts: Sequence[str]) -> dict[str, float]:
    """For each term and control its mean standardised score over prompts: wordings of one question."""
    rows = rows[rows["part"] == "identity"]
    z = [stats.standardise(rows[prompt].to_numpy(float)) for prompt in prompts if prompt in rows]
    return dict(zip(rows["text"], np.add.reduce(z) / len(z), strict=True)) if z else {}


def terms() -> pd.DataFrame:
    """The project's identity terms, one row a distinct text of a group, with its control (see `rmnb.data.lexicons`)."""
    return lexicons.identity_terms().drop_duplicates(["axis", "group", "term"]).reset_index(drop=True)


def pairs(scores: Mapping[str, float], forms: Sequence[str] = ()) -> pd.DataFrame:
    """Terms and controls that both have a score.

    Parameters
    ----------
    scores
        A score for each text.
    forms
        Only these (plural_noun, singular_noun, adjective); all if none is given.

    Returns
    -------
    DataFrame
        text, axis, group, form, matched_set (axis and group: a group's forms are one set), is_term (bool), score
        (float64): a row for each term and one for its control, sets in the order of the list.
    """
    table = terms()
    known = table["term"].isin(list(scores)) & table["control"].isin(list(scores))
    table = table.loc[known & (table["form"].isin(list(forms)) if forms else True)]
    long = pd.concat(
        [table.assign(text=table["term"], is_term=True), table.assign(text=table["control"], is_term=False)]
    ).sort_index(kind="stable")
    columns = ["text", "axis", "group", "form", "is_term"]
    score = np.array([scores[text] for text in long["text"]], dtype=float)
    return long[columns].assign(matched_set=long["axis"] + " " + long["group"], score=score).reset_index(drop=True)


def scan_scores(table: pd.DataFrame, prompt: str, spelling: str = "after a space", unit: str = "z") -> dict[str, float]:
    """Scores of the texts of `terms` that are single tokens of a scan.

    Parameters
    ----------
    table
        Scans of one model: token, kind, a column a prompt; one row an id.
    spelling : {"after a space", "any"}
        any: the mean over the token with and the one without a space before it. Capitals always count.
    unit : {"z", "rank"}
        Standard deviations of the scan above its mean, or the place in the whole scan, 0 to 1, over the standard
        deviation of such places: both have unit standard deviation.
    """
    values = table[prompt].to_numpy(float)
    z = stats.standardise(stats.mid_ranks(values) / len(values) if unit == "rank" else values)
    known = terms()
    kinds = ["word_start"] if spelling == "after a space" else ["word_start", "word_continuation"]
    texts = table["token"].str.strip()
    chosen = (table["kind"].isin(kinds) & texts.isin({*known["term"], *known["control"]})).to_numpy()
    found = pd.Series(z[chosen], index=texts[chosen].to_numpy())
    return {str(text): float(value) for text, value in found.groupby(level=0).mean().items()}


def overall_gap(rows: pd.DataFrame) -> stats.Estimate | None:
    """The gap over all axes together, groups as units; None with fewer than two groups."""
    if rows["matched_set"].nunique() < 2:
        return None
    means = rows.groupby(["matched_set", "is_term"])["score"].mean().unstack()
    return stats.mean_over_models((means[True] - means[False]).to_numpy())


def tail(table: pd.DataFrame, good: str, bad: str, share: float = 0.05) -> pd.DataFrame:
    """The words of a model's scans by the sum of their standardised scores under two questions, lowest first.

    Returns
    -------
    DataFrame
        token, score (float64, the sum), lowest (float64, 1 in the lowest `share` of the words that begin with a space).
    """
    total = stats.standardise(table[good]) + stats.standardise(table[bad])
    words = table.assign(score=total).loc[(table["kind"] == "word_start").to_numpy(), ["token", "score"]]
    words = words.sort_values("score", kind="stable", ignore_index=True)
    return words.assign(lowest=(np.arange(len(words)) < share * len(words)).astype(float))


def matched_things(things: pd.DataFrame, controls: int = 5) -> pd.DataFrame:
    """Things of EloEverything that name a group of people, each with the things that people rate most like it.

    Parameters
    ----------
    things
        Of `rmnb.data.released_files.human_elo`.
    controls : int
        How many other things, of as many words and nearest in human Elo; none is used twice.

    Returns
    -------
    DataFrame
        Index: place in `things`. name, is_term, matched_set (the item's name), axis (``""``).
    """
    is_term, words = (fact(things, which).to_numpy() for which in ("group", "words"))
    elo = things["elo_score"].to_numpy(float)
    free, rows = ~is_term, []
    for item in np.flatnonzero(is_term):
        candidates = np.flatnonzero(free & (words == words[item]))
        nearest = candidates[np.argsort(np.abs(elo[candidates] - elo[item]), kind="stable")[:controls]]
        if len(nearest) < controls:
            continue
        free[nearest] = False
        rows += [
            (place, things["name"].iloc[place], place == item, things["name"].iloc[item]) for place in (item, *nearest)
        ]
    table = pd.DataFrame(rows, columns=["place", "name", "is_term", "matched_set"]).set_index("place")
    return table.assign(axis="")


def percentiles(scores: pd.Series) -> np.ndarray:
    """Place of each score among all, 0 to 100, 100 for the highest; ties share theirs."""
    return 100 * (stats.mid_ranks(scores.to_numpy(float)) - 0.5) / len(scores)

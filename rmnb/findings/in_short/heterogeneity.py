"""What the chapter on agreement found, in sentences whose numbers are rows: the box, and what its figures show."""

import pandas as pd

from rmnb.findings.model_pairs import KINDS
from rmnb.findings.quoting import Row, count, count_of, find, find_all, interval, listed, quote

_SIGNED = "{:+.2f}"
_COUNT = "{:.0f}"
_OVER = "Spearman's ρ over pairs"
_CALLED = {"parameters": "the size", "rank": "the place on a leaderboard"}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of `rmnb.findings.heterogeneity`, for any panel."""
    said = [claim(rows), agreement(rows), skewness(rows), *relations(rows), *survival(rows)[:1]]
    return [sentence for sentence in said if sentence]


def claim(rows: pd.DataFrame) -> str:
    """What the paper prints, and what its figure says of bases."""
    median, ends = _of(rows, "kendall_tau_median", "published"), _ends(rows, "published")
    skewed = _of(rows, "models_above", "published", "skewness")
    with_base, p_value = (_of(rows, name, "released", "base") for name in ("rsa_spearman", "rsa_p"))
    parts = []
    if median and ends:
        pairs = quote(median, _COUNT, "n")
        parts.append(f"the median of its {pairs} pairs agrees at Kendall's τ {quote(median)} ({ends})")
    if skewed:
        parts.append(f"the rewards of {count_of(skewed)} models have the longer tail among good answers")
    if with_base and p_value:
        parts.append(
            f"models of one base agree more ({_OVER} {quote(with_base)}, p {_p(p_value)}, from its figure of τ)"
        )
    told = "; ".join(parts) or "its numbers are missing here"
    return f"The paper reports that reward models disagree about the order of one vocabulary: {told}."


def agreement(rows: pd.DataFrame) -> str:
    """How far the models of the panel agree, against two seeds of one recipe."""
    median, mean = _of(rows, "kendall_tau_median"), _of(rows, "kendall_tau_mean")
    if median is None or mean is None:
        return "A panel of one model: there is nobody to agree with."
    pairs = quote(median, _COUNT, "n")
    told = f"the median of {pairs} pairs agrees at τ {quote(median)} ({_ends(rows, 'panel')})"
    if pd.isna(mean["ci_low"]):
        many = quote(mean, _COUNT, "n")
        return f"Here {told}. With {many} models nothing can be said of others than these."
    told += f", the mean at {quote(mean)} ({interval(mean)} over {quote(mean, _COUNT, 'n')} models)"
    seeds = _all(rows, "kendall_tau_seeds")
    if not seeds:
        return f"Here {told}; no recipe was trained twice, so how much of this is chance cannot be told."
    noise = listed([f"{quote(row)} on {row['other']}" for row in seeds])
    lowest, highest = seeds[0]["value"], seeds[-1]["value"]
    if mean["ci_high"] < lowest:
        return f"As claimed: {told}, below two seeds of one recipe ({noise})."
    if mean["ci_low"] > highest:
        return f"The other way round: {told}, above two seeds of one recipe ({noise})."
    return f"Here {told}, which cannot be told from two seeds of one recipe ({noise})."


def skewness(rows: pd.DataFrame) -> str:
    """On which side the longer tail is, model by model."""
    above, below = (_of(rows, f"models_clearly_{side}", other="skewness") for side in ("above", "below"))
    if above is None or below is None:
        return ""
    if above["n"] == 1:
        way = "good answers" if above["value"] else "bad ones" if below["value"] else "neither side clearly"
        return f"The longer tail of this one model is toward {way}."
    verdict = "Not so"
    if above["value"] == above["n"]:
        verdict = "As claimed"
    elif below["value"] == 0:
        verdict = "Not clearly so"
    elif below["value"] == below["n"]:
        verdict = "The other way round"
    return (
        f"{verdict} for the tails: {count_of(above)} models lean clearly toward good answers, "
        f"{count(below)} clearly toward bad ones."
    )


def relations(rows: pd.DataFrame, source: str = "panel") -> list[str]:
    """What agreement goes with, and what it does not: Mantel's tests, the base first."""
    mean = _of(rows, "kendall_tau_mean", source)
    tests = sorted(_all(rows, "rsa_p", source), key=lambda row: (row["other"] != "base", row["value"]))
    if not tests:
        many = f" with {quote(mean, _COUNT, 'n')} models" if mean and mean["n"] < 4 else " here"
        return [f"What agreement goes with cannot be told{many}."] if mean else []
    told: dict[bool, list[str]] = {True: [], False: []}
    for test in tests:
        if (rho := _of(rows, "rsa_spearman", source, test["other"])) and not _same_as_base(rows, test, source):
            name = _CALLED.get(test["other"], f"the {test['other']}")
            told[test["value"] <= 0.05].append(f"{name} ({quote(rho, _SIGNED)}, p {_p(test)})")
    parts = [f"goes with {listed(told[True])}"] if told[True] else []
    parts += [f"{'not' if parts else 'cannot be shown to go'} with {listed(told[False], 'or')}"] if told[False] else []
    printed = _of(rows, "rsa_p", "released", "base")
    if source != "panel":
        begins = "In the paper's figure agreement"
    elif printed is None or tests[0]["other"] != "base":
        begins = "Agreement"
    else:
        alike = (printed["value"] <= 0.05) == (tests[0]["value"] <= 0.05)
        begins = "As in the paper, agreement" if alike else "Unlike in the paper, agreement"
    return [f"{begins} {' and '.join(parts)}: {_OVER}, p over shuffles of {quote(tests[0], _COUNT, 'n')} models."]


def survival(rows: pd.DataFrame) -> list[str]:
    """Under other choices: what agreement goes with, then the median pair."""
    told = []
    for name in ("base", "recipe"):
        same, clear = (_of(rows, f"specifications_{of}", other=name) for of in ("same_sign", "clear"))
        if same and clear:
            told.append(f"{name} in {count_of(same)} (clear over models in {count(clear)})")
    said = [f"Under other choices of tokens and measure, ρ keeps its sign: {'; '.join(told)}."] if told else []
    same, clear = (_of(rows, f"specifications_{of}", other="median pair") for of in ("same_sign", "clear"))
    if same and clear:
        said.append(
            f"The median pair's agreement keeps its sign in {count_of(same)} specifications; in {count(clear)} of "
            "them all pairs have that sign."
        )
    return said


def tails(rows: pd.DataFrame) -> list[str]:
    """The model with the longest tail of good answers, and the one with the longest of bad ones."""
    found = [row for row in _all(rows, "skewness") if row["model"]]
    if not found:
        return []
    ends = [f"{row['model']} {quote(row, _SIGNED)}" for row in (found[-1], found[0])]
    last = f" {ends[0]} leans farthest toward good answers, {ends[1]} toward bad ones." if len(found) > 1 else ""
    return [f"{skewness(rows)} Skewness:{last or f' {ends[0]}.'}"]


def tops(rows: pd.DataFrame) -> list[str]:
    """How little two models share at the top."""
    median, pairs = _of(rows, "rbo_median"), _all(rows, "rbo")
    if median is None:
        return []
    most = pairs[-1]
    return [
        f"Two models hardly share favourites: the rank-biased overlap of the median pair is {quote(median)}, "
        f"the highest {quote(most)} ({most['model']} and {most['other']})."
    ]


def extreme_pairs(rows: pd.DataFrame) -> list[str]:
    """The two models that agree most, and the two that agree least."""
    most, least = (_of(rows, f"kendall_tau_{name}", other=None) for name in ("highest", "lowest"))
    if most is None or least is None:
        return []
    pairs = [f"{row['model']} and {row['other']} ({quote(row)})" for row in (most, least)]
    return [f"{pairs[0]} agree most, {pairs[1]} least." if most["n"] > 1 else f"{pairs[0]} are the only pair."]


def kinds(rows: pd.DataFrame) -> list[str]:
    """Median agreement of pairs by what they share, and whether two seeds agree most."""
    medians = {kind: _of(rows, "kendall_tau_median", other=kind) for kind in KINDS}
    told = [f"{kind} {quote(row)} ({quote(row, _COUNT, 'n')} pairs)" for kind, row in medians.items() if row]
    said = [f"Median τ: {'; '.join(told)}."] if told else []
    for seeds in _all(rows, "kendall_tau_seeds"):
        highest, above = (
            _of(rows, name, other=seeds["other"]) for name in ("kendall_tau_recipes", "pairs_above_seeds")
        )
        if highest and above:
            more = f"{count_of(above)} pairs of two recipes agree more, at most at {quote(highest)}"
            bound = ": two seeds are a yardstick, not a bound" if above["value"] else ""
            said.append(f"On {seeds['other']} two seeds of one recipe agree at τ {quote(seeds)}; {more}{bound}.")
    return said or ["No recipe was trained twice here: there is no yardstick for noise."]


def protocols(rows: pd.DataFrame) -> list[str]:
    """How far the papers' protocol ranks as ours, model by model."""
    said = []
    for row in _all(rows, "protocol_kendall"):
        if row["other"] == "":
            bare = find(rows[rows["other"] != ""], "protocol_kendall", source="panel", model=row["model"])
            rest = f", {quote(bare)} over tokens without a blank at either end" if bare else ""
            said.append(f"{row['model']}: τ {quote(row)} over the whole vocabulary{rest}.")
    return [" ".join(said[::-1])] if said else ["No model of this panel was scanned by the papers' protocol."]


def _same_as_base(rows: pd.DataFrame, test: Row, source: str) -> bool:
    """Properties that tell the same pairs apart as the base does share its test (two bases are two sizes)."""
    pair = [_of(rows, "rsa_spearman", source, name) for name in ("base", test["other"])]
    return test["other"] != "base" and all(pair) and len({row["value"] for row in pair if row}) == 1


def _of(rows: pd.DataFrame, statistic: str, source: str = "panel", other: str | None = "") -> Row | None:
    return find(rows, statistic, source=source, **({} if other is None else {"other": other}))


def _all(rows: pd.DataFrame, statistic: str, source: str = "panel") -> list[Row]:
    """The rows of a statistic, the smallest value first."""
    return find_all(rows.sort_values("value", kind="stable"), statistic, source=source)


def _ends(rows: pd.DataFrame, source: str) -> str:
    ends = [_of(rows, f"kendall_tau_{name}", source, None) for name in ("lowest", "highest")]
    told = " to ".join(quote(row) for row in ends if row)
    return f"pairs from {told}" if told else ""


def _p(row: Row) -> str:
    return quote(row, "{:.3f}" if row["value"] < 0.1 else "{:.2f}")

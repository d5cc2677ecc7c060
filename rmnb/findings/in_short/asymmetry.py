"""What the chapter on asymmetry found, in sentences whose numbers are rows: the box, and what its figures show."""

import pandas as pd

from rmnb.findings.quoting import Row, count, count_of, find, find_all, interval, quote, side

_SIGNED = "{:+.2f}"
_COUNT = "{:.0f}"
_GAP, _ORDER = "slope_difference_standardised", "afinn_kendall_difference"
#: What a difference of the slopes says where valence is followed: above zero, below, cannot be told.
_FINER = {1: "good words are told apart more finely", -1: "bad words are told apart more finely"}
#: The same of models that read the question, asked for something good and for something bad, where their slopes turn.
_EITHER = {
    (1, 1): ": they tell apart the words that answer, whichever is asked for",
    (-1, 1): ": they tell bad words apart more finely, whichever is asked for",
    (1, -1): ": they tell good words apart more finely, whichever is asked for",
    (-1, -1): ": they tell apart the words that do not answer, whichever is asked for",
}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of `rmnb.findings.asymmetry`, for any panel."""
    good, bad = questions(rows)
    said = [claim(rows), authors(rows, good), *slopes(rows, good), *apart(rows, good, bad)]
    said.append(" ".join([*order(rows, good), *survival(rows, good)]))
    return [sentence for sentence in said if sentence]


def questions(rows: pd.DataFrame) -> tuple[str, str]:
    """The keys of the question that the chapter speaks of first and of an opposite one (empty: none was asked)."""
    pair = find(rows, "models_not_turning", source="panel")
    if pair is not None:
        return pair["prompt"], pair["other"]
    of = rows[(rows["source"] == "panel") & (rows["statistic"] == _GAP)]
    return (str(of["prompt"].iloc[0]) if len(of) else ""), ""


def claim(rows: pd.DataFrame) -> str:
    """The slopes that the paper prints."""
    told = []
    for prompt in ("greatest", "worst"):
        ends = [find(rows, f"slope_{end}", source="published", prompt=prompt) for end in ("positive", "negative")]
        if all(ends):
            told.append(f"{' among good words, '.join(quote(row) for row in ends if row)} among bad ones ({prompt})")
    numbers = f": mean slopes of the raw reward over valence are {'; '.join(told)}" if told else ""
    return f"The paper reports that the words that answer a question are told apart more finely{numbers}."


def authors(rows: pd.DataFrame, prompt: str) -> str:
    """The authors' ten models on the words of a dictionary that they released."""
    of = rows[(rows["source"] == "released") & (rows["prompt"] == prompt) & (rows["other"].str.len() > 0)]
    mean, above = find(of, _GAP, model=""), find(of, "models_above")
    if mean is None or above is None:
        return ""
    verdict = {1: "As claimed", -1: "The other way round", 0: "It cannot be told"}[side(mean)]
    return (
        f"{verdict} in the authors' data, on the words of a dictionary of morals: in standard deviations a point of "
        f"valence, the slope among good words is greater by {_estimate(mean)}, above zero in {count_of(above)} models."
    )


def slopes(rows: pd.DataFrame, prompt: str) -> list[str]:
    """The difference of the slopes over the models of the panel under one question."""
    mean = find(rows, _GAP, source="panel", model="", other="", prompt=prompt)
    above = find(rows, "models_above", source="panel", prompt=prompt, other=_GAP)
    if mean is None or above is None:
        return []
    if above["n"] == 1:
        finer = _FINER.get(side(mean), "it cannot be told which words are told apart more finely")
        return [f"One model says nothing of others; in this one, asked for the {prompt}, {finer} ({_estimate(mean)})."]
    many = f"over {quote(mean, _COUNT, 'n')} models"
    found = f"the difference of the slopes is {_estimate(mean, many)}, above zero in {count_of(above)}"
    if side(mean) == 0:
        return [f"Here, asked for the {prompt}, which words are told apart more finely cannot be told: {found}."]
    verdict = "As claimed here" if side(mean) > 0 else "Here it is the other way round"
    return [f"{verdict}, asked for the {prompt}: {_FINER[side(mean)]}; {found}."]


def steepness(rows: pd.DataFrame, prompt: str) -> list[str]:
    """What a point of valence is worth among good and among bad words, mean over models."""
    ends = [
        find(rows, f"slope_{end}_standardised", source="panel", model="", other="", prompt=prompt)
        for end in ("positive", "negative")
    ]
    if not (ends[0] and ends[1]):
        return []
    worth = f"{_estimate(ends[0])} standard deviations among good words, {_estimate(ends[1])} among bad ones"
    return [f"Asked for the {prompt}, a point of valence is worth {worth}."]


def apart(rows: pd.DataFrame, good: str, bad: str) -> list[str]:
    """The models that read the question, and those that do not, apart."""
    alike = find(rows, "models_not_turning", source="panel")
    if alike is None or alike["value"] == 0:
        return []
    told, sides = [], []
    for prompt in (good, bad):
        mean = find(rows, "mean_turning", prompt=prompt, other=_GAP)
        above = find(rows, "models_above", prompt=prompt, other=f"{_GAP} among those that turn")
        if mean and above:
            told.append(f"asked for the {prompt} {_estimate(mean)}, above zero in {count_of(above)}")
            sides.append(side(mean))
    deaf = find(rows, "mean_not_turning", prompt=good, other=_GAP)
    said = [
        f"{count_of(alike)} models do not read the question"
        + (f": in them the difference is {_estimate(deaf)}." if deaf else ".")
    ]
    if told:
        verdict = _EITHER.get((sides[0], sides[-1]), "")
        said.append(f"In those that do, {'; '.join(told)}{verdict}.")
    return [" ".join(said)]


def order(rows: pd.DataFrame, prompt: str) -> list[str]:
    """Whether the order of the words, which no scale can bend, says the same as the slopes."""
    mean = find(rows, _ORDER, source="panel", model="", prompt=prompt)
    gap = find(rows, _GAP, source="panel", model="", other="", prompt=prompt)
    if mean is None or gap is None:
        return []
    if side(mean) == 0 or side(gap) == 0:
        verdict = "The order of the words alone leaves it open"
        if side(mean):
            verdict = "The order of the words alone is clearer"
    else:
        verdict = "The order of the words alone says " + ("the same" if side(mean) == side(gap) else "the opposite")
    return [f"{verdict} (τ with valence among good words less that among bad ones {_estimate(mean)})."]


def survival(rows: pd.DataFrame, prompt: str) -> list[str]:
    """In how many specifications the sign of the headline stays."""
    same, clear = (
        find(rows, f"specifications_{name}", source="panel", other=prompt) for name in ("same_sign", "clear")
    )
    if same is None or clear is None:
        return []
    return [f"Asked for the {prompt}, the sign stays in {count_of(same)} specifications, clear in {count(clear)}."]


def tails(rows: pd.DataFrame) -> list[str]:
    """Which tail is longer, question by question, by either measure."""
    said = []
    for statistic, by in (("skewness", "skewness"), ("tail_ratio", "the outer one per cent")):
        told = []
        for above in _all(rows, "models_clearly_above", statistic):
            below = find(rows, "models_clearly_below", source="panel", prompt=above["prompt"], other=statistic)
            if below:
                told.append(f"{above['prompt']} {count(above)} up, {count(below)} down")
        if told:
            said.append(f"By {by}: {'; '.join(told)}.")
    return [f"Models whose longer tail is clearly the upper or the lower one. {' '.join(said)}"] if said else []


def order_by_model(rows: pd.DataFrame, prompt: str) -> list[str]:
    """In how many models the order of good words follows valence better, and of bad ones."""
    above, below = (
        find(rows, f"models_clearly_{way}", source="panel", prompt=prompt, other=_ORDER) for way in ("above", "below")
    )
    if above is None or below is None:
        return []
    counted = f"among good words in {count_of(above)} models, among bad ones in {count(below)}"
    return [f"Asked for the {prompt}, the order follows valence clearly better {counted}."]


def seeds(rows: pd.DataFrame) -> list[str]:
    """How far two seeds of one recipe agree at either end."""
    told: dict[str, list[str]] = {}
    for top in _all(rows, "seed_tau_top"):
        where = {key: top[key] for key in ("source", "model", "other", "prompt")}
        if bottom := find(rows, "seed_tau_bottom", **where):
            ends = f"{top['prompt']} {quote(top)} at the top, {quote(bottom)} at the bottom"
            told.setdefault(f"{top['model']} and {top['other']}", []).append(ends)
    if not told:
        return ["No two models of this panel differ in their seed alone, so noise cannot be told from resolution here."]
    return [f"{pair} agree at τ: {'; '.join(ends)}." for pair, ends in told.items()]


def side_by_side(rows: pd.DataFrame) -> list[str]:
    """On which side the raw slopes are steeper, as published and in this panel."""
    said = []
    for prompt in dict.fromkeys(rows.loc[rows["source"] == "published", "prompt"]):
        told = []
        for source, name in (("published", "as published"), ("panel", "in this panel")):
            ends = [
                find(rows, f"slope_{end}", source=source, model="", other="", prompt=str(prompt))
                for end in ("positive", "negative")
            ]
            if ends[0] and ends[1]:
                steeper = "good" if abs(ends[0]["value"]) > abs(ends[1]["value"]) else "bad"
                told.append(f"{steeper} words {name} ({quote(ends[0])} good, {quote(ends[1])} bad)")
        if len(told) == 2:
            said.append(f"asked for the {prompt}, they are steeper among {', among '.join(told)}")
    return [f"Mean slopes of raw rewards: {'; '.join(said)}."] if said else []


def _all(rows: pd.DataFrame, statistic: str, other: str = "") -> list[Row]:
    return find_all(rows, statistic, source="panel", **({"other": other} if other else {}))


def _estimate(row: Row, over: str = "") -> str:
    if pd.isna(row["ci_low"]):
        return quote(row, _SIGNED)
    return f"{quote(row, _SIGNED)} ({interval(row, _SIGNED)}{' ' + over if over else ''})"

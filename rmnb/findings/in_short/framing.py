"""What the chapter on framing found, in sentences whose numbers are rows: the box, and a line under each figure."""

import pandas as pd

from rmnb.findings import wordings
from rmnb.findings.quoting import Row, count, count_of, find, quote, records, side, span, with_interval
from rmnb.findings.reading_question import does_not_turn

#: As a chapter calls the two groups, in `other` of its specifications.
GROUPS = ("models that turn", "models that do not")
_CONTRASTS = {  # above zero, below zero
    "loss_aversion": ("bad words weigh more than good ones", "bad words weigh less than good ones"),
    "match": (
        "the words that answer the question are told apart more than the others",
        "the words that answer the question are told apart less than the others",
    ),
    "damping": ("the bad question is followed less than the good one", "the bad question is followed more"),
}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of the chapter on framing, for any panel."""
    of = rows[rows["source"] == "panel"]
    said = [claim(rows), authors(rows), turning(of), follows(of)]
    if find(of, "models_not_turning") is not None:
        said.append(survives(of))
    return [sentence for sentence in said if sentence]


def claim(rows: pd.DataFrame) -> str:
    """What the paper claims, with the contrast of its printed slopes."""
    damping = find(rows, "framing_damping", source="published")
    said = "Christian et al. (2025) find that the worst is no mirror of the best: some answers score high under both "
    said += "questions, and valence counts for less when the worst is asked for"
    return (
        f"{said} (the mean slopes that it prints for best and worst: lower by {quote(damping)} points of raw reward)."
        if damping
        else f"{said}."
    )


def authors(rows: pd.DataFrame) -> str:
    """What the authors' own scores of words say."""
    of = rows[(rows["source"] == "released") & (rows["model"] != "")]
    turns = _ordered(of[(of["statistic"] == "wording_spearman") & (of["other"] == "framing")])
    damping = find(rows, "framing_damping", source="released", model="")
    said = []
    if turns:
        said.append(
            "under opposite questions their models' rankings of nouns correlate between "
            f"{quote(turns[0], '{:+.2f}')} and {quote(turns[-1], '{:+.2f}')}, far from a mirror's minus one"
        )
    if damping:
        said.append(
            f"the slopes over valence are lower under the worst by {with_interval(damping)} standard deviations a point"
        )
    begin = "So it is in" if damping and side(damping) == 1 else "In"
    return f"{begin} the authors' scores: {'; '.join(said)}." if said else ""


def turning(rows: pd.DataFrame) -> str:
    """How many models turn with the question, and how far."""
    number = find(rows, "models_not_turning")
    if number is None:
        return "This panel has no two opposite questions that all its models were asked: how they turn cannot be told."
    good, bad = sorted((str(number["prompt"]), str(number["other"])), key=lambda name: name == "worst")
    taus = rows[(rows["statistic"] == "framing_kendall") & (rows["prompt"] == number["prompt"])]
    taus = taus[taus["other"] == number["other"]]
    alike, turned = _ordered(taus[taus["ci_low"] > 0]), _ordered(taus[taus["ci_low"] <= 0])
    if number["n"] == 1:
        does = "does not read the question: it ranks" if alike else "turns with the question between"
        return f"The one model of this panel {does} {good} and {bad}, τ {with_interval((alike or turned)[0])}."
    many = quote(number, "{:.0f}", "n")
    if not alike:
        return (
            f"Here all {many} models turn with the question (τ of {good} and {bad} {span(turned)}); none is a mirror."
        )
    deaf = f"rank {good} and {bad} alike (τ {span(alike)})"
    if not turned:
        return f"Here none of {many} models reads the question: all {deaf}."
    return (
        f"Here {count(number)} of {many} models do not read the question and {deaf}: "
        f"{', '.join(does_not_turn(rows))}. The others turn (τ {span(turned)}), and none is a mirror."
    )


def pairs(rows: pd.DataFrame) -> list[str]:
    """For every two questions how alike the two kinds of models rank them."""
    alike, said = does_not_turn(rows), []
    for (one, other), of in rows[rows["statistic"] == "framing_kendall"].groupby(["prompt", "other"], sort=False):
        kinds = {"those that turn": ~of["model"].isin(alike), "the others": of["model"].isin(alike)}
        if not alike:
            kinds = {"all models": ~of["model"].isin(alike)}
        spans = [f"{span(_ordered(of[chosen]))} in {kind}" for kind, chosen in kinds.items() if chosen.any()]
        said.append(f"τ of {one} and {other}: {', '.join(spans)}.")
    return said


def follows(rows: pd.DataFrame) -> str:
    """Whether valence counts for less under the bad question, in the models that turn."""
    mean = find(rows, "mean_turning", other="framing_damping")
    if mean is None:
        return ""
    by = f"{with_interval(mean, '{:+.2f}')} standard deviations a point"
    if mean["n"] == 1:
        return f"In the one model that turns valence counts for less under the bad question by {by}."
    many = f"{quote(mean, '{:.0f}', 'n')} models that turn"
    return {
        1: f"As claimed, valence counts for less under the bad question in the {many}: by {by}, interval over models.",
        -1: f"The other way round than claimed, valence counts for more under the bad question in the {many}: {by}.",
        0: f"Whether valence counts for less under the bad question cannot be told with the {many}: by {by}.",
    }[side(mean)]


def contrasts(rows: pd.DataFrame) -> list[str]:
    """What the three contrasts say over the models that turn, beside the authors' data, and of the other models."""
    said = []
    for name, (above, below) in _CONTRASTS.items():
        mean = find(rows, "mean_turning", other=f"framing_{name}", source="panel")
        if mean is None:
            continue
        verdict = {1: above, -1: below, 0: f"it cannot be told here whether {above}"}[side(mean)]
        among = "in the models that turn" if mean["n"] > 1 else "in the one model that turns (interval over words)"
        sentence = f"{verdict[0].upper()}{verdict[1:]}: {with_interval(mean, '{:+.2f}')} {among}"
        if theirs := find(rows, f"framing_{name}", source="released", model=""):
            turned = ", but the other way round" if side(mean) * side(theirs) < 0 else ""
            known = ", where it is clear" if side(theirs) and not side(mean) else ""
            sentence += f"{turned}, {with_interval(theirs, '{:+.2f}')}, in the published ones{known}"
        rest = find(rows, "mean_not_turning", other=f"framing_{name}", source="panel")
        said.append(sentence + (f"; {quote(rest, '{:+.2f}')} in those that do not turn." if rest else "."))
    return said


def axes(rows: pd.DataFrame) -> list[str]:
    """How much of the variance turns with the question, and which axis goes with valence."""
    of, alike = rows[rows["source"] == "panel"], does_not_turn(rows)
    shares = of[of["statistic"] == "framing_share_valence"]
    groups = {
        "In the models that turn": _ordered(shares[~shares["model"].isin(alike)]),
        "In those that do not": _ordered(shares[shares["model"].isin(alike)]),
    }
    said = [
        f"{who}, {span(group, '{:.1%}')} of the variance lies along the difference."
        for who, group in groups.items()
        if group
    ]
    valence = of[of["statistic"] == "afinn_spearman"]
    for sign, what in (("-", "difference"), ("+", "sum")):
        turned = valence[valence["other"].str.contains(f" {sign} ", regex=False) & ~valence["model"].isin(alike)]
        if ends := _ordered(turned):
            said.append(f"Where models turn, the {what} correlates with valence at {span(ends, '{:+.2f}')}.")
    return said


def changes(rows: pd.DataFrame) -> list[str]:
    """How far each change of wording moves a ranking, in the panel and in the authors' models, beside two seeds."""
    said, wording = [], rows[rows["statistic"] == "wording_spearman"]
    alike = does_not_turn(rows)
    groups = {
        "Here, in the models that turn,": wording[(wording["source"] == "panel") & ~wording["model"].isin(alike)],
        "In those that do not,": wording[(wording["source"] == "panel") & wording["model"].isin(alike)],
        "In the published models": wording[wording["source"] == "released"],
    }
    for who, of in groups.items():
        by = {change: _ordered(of[of["other"] == change]) for change in wordings.CHANGES}
        if spans := [f"{span(found)} if the {change} changes" for change, found in by.items() if found]:
            said.append(f"{who} two wordings rank words alike at {', '.join(spans)}.")
    for row in _ordered(rows[rows["statistic"] == "seed_spearman"]):
        said.append(f"{row['model']} and {row['other']}, two seeds asked the same, agree at {quote(row)}.")
    return said


def survives(rows: pd.DataFrame) -> str:
    """In how many specifications each group keeps to its side of zero."""
    said = []
    for group in GROUPS:
        of = rows[(rows["statistic"] == "specifications_same_sign") & rows["other"].str.endswith(f", {group}")]
        told = [f"{count_of(same)} for {same['other'].removesuffix(f', {group}')}" for same in _ordered(of)]
        said += [f"in the {group} {' and '.join(told)}"] if told else []
    return f"Specifications that leave the sign of the correlation as it is: {'; '.join(said)}." if said else ""


def _ordered(rows: pd.DataFrame) -> list[Row]:
    return records(rows.sort_values("value"))

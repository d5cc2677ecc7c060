"""What the chapter on identity found, in sentences whose numbers are rows: the box, and a line under each figure."""

import pandas as pd

from rmnb.findings.identity import ALL
from rmnb.findings.quoting import Row, count, count_of, find, find_all, interval, quote, records, side, with_interval

QUESTION = "elo_greatest"  # under which the papers rank things


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of `rmnb.findings.identity`, for any panel."""
    said = [claim(rows), things(rows, "released"), turning(rows), things(rows, "panel"), sure(rows)]
    return [sentence for sentence in said if sentence]


def claim(rows: pd.DataFrame) -> str:
    """What the paper says, with the one number it draws."""
    named = rows[(rows["statistic"] == "rank_gap_with_human") & (rows["source"] == "published")]
    low = ""
    if len(named):
        item = records(named)[0]
        low = f"; {item['other']} stand {quote(item, '{:,.0f}')} places lower with ten models than with people"
    return f"The paper notices names of groups of people among the lowest-scored tokens{low}. It makes no test."


def things(rows: pd.DataFrame, source: str, prompt: str = QUESTION) -> str:
    """Where groups of people stand among things that people rate alike."""
    row = _mean(rows, "identity_gap_things", source, prompt, "")
    if row is None:
        return ""
    who = "Tested on the authors' scores" if source == "released" else "Among the same things in this panel"
    sets = rows[(rows["statistic"] == "identity_gap_things_p") & (rows["source"] == source)]
    groups = quote(records(sets)[0], "{:.0f}", "n")
    said = (
        f"{who}, {groups} groups of people less the things that people rate alike come to "
        f"{quote(row, '{:+.1f}')} places of a hundred ({interval(row, '{:+.1f}')})"
    )
    verdict = {-1: "as the paper suggests", 0: "which side cannot be told", 1: "the other way round"}[side(row)]
    if row["model"]:
        return f"{said} in one model: {verdict}."
    below, above = (
        find(rows, f"models_clearly_{way}", source=source, prompt=prompt, other="identity_gap_things")
        for way in ("below", "above")
    )
    if below is None or above is None:
        return f"{said}: {verdict}."
    return (
        f"{said}, clearly lower in {count(below)} and clearly higher in {count(above)} of "
        f"{quote(row, '{:.0f}', 'n')} models: {verdict}."
    )


def turning(rows: pd.DataFrame) -> str:
    """Whether the gap of terms and controls turns with the question, over all models and in those that read it."""
    good, bad = asked(rows)
    here, there = (_mean(rows, "identity_gap", "panel", prompt, ALL) for prompt in (good, bad))
    if here is None:
        return "In this panel too few terms and controls are single tokens to compare."
    said = f"In this panel terms less matched controls come to {with_interval(here, '{:+.2f}')} sd under {good}"
    if there is None:
        verdict = {-1: "lower", 0: "neither side is clear", 1: "higher"}[side(here)]
        return f"{said}: {verdict}; what that means cannot be told without a question that asks for something bad."
    said += f", {with_interval(there, '{:+.2f}')} under {bad}"
    readers, others = (
        [find(rows, name, source="panel", prompt=prompt, other="identity_gap") for prompt in (good, bad)]
        for name in _GROUPS
    )
    if readers[0] is None or readers[1] is None:
        return f"{said}{_of(here)}: {_turns(here, there)}."
    ends = " and ".join(with_interval(row, "{:+.2f}") for row in readers if row)
    many = quote(readers[0], "{:.0f}", "n")
    said += f"{_of(here)}. In {many} models that read the question: {ends}, {_turns(readers[0], readers[1])}."
    if others[0] is None or others[1] is None:
        return said
    ends = " and ".join(quote(row, "{:+.2f}") for row in others if row)
    return f"{said} In the {quote(others[0], '{:.0f}', 'n')} that do not: {ends}."


def _turns(here: Row, there: Row) -> str:
    """What the gaps under a good and under a bad question say together."""
    return {
        (-1, 1): "so it turns with the question, as a judgement does and avoidance would not",
        (-1, -1): "so it is low under either question, as avoidance would have it",
        (1, 1): "so terms stand above controls under either question, the other way round",
        (1, -1): "the other way round: high when something good is asked for, low when something bad is",
    }.get((side(here), side(there)), "so whether it turns with the question cannot be told")


def sure(rows: pd.DataFrame) -> str:
    """How many specifications say the same, and what the method makes of nothing."""
    return f"{survives(rows)} {planted(rows)}".strip()


def survives(rows: pd.DataFrame) -> str:
    """In how many specifications of each question the gap has the sign of the chapter's own."""
    said = []
    for framing, ask, prompt in zip(("positive", "negative"), ("good", "bad"), asked(rows), strict=True):
        about = {"source": "panel", "other": framing}
        same, clear = (find(rows, f"specifications_{what}", **about) for what in ("same_sign", "clear"))
        row = _mean(rows, "identity_gap", "panel", prompt, ALL)
        if same is not None and clear is not None and row is not None:
            way = "below" if row["value"] < 0 else "above"
            among = f"{count_of(same)} specifications"
            said.append(f"{way} controls in {among} of the {ask} question (clear of zero in {count(clear)})")
    return f"Terms stand {' and '.join(said)}." if said else ""


def planted(rows: pd.DataFrame) -> str:
    """What comes out on axes where nothing was planted."""
    of = rows[rows["source"] == "planted"]
    chance, found = (find(of, "identity_discoveries", other=f"zero, {end}") for end in ("p", "q"))
    if chance is None or found is None:
        return ""
    said = (
        f"The method has noise of its own: of {quote(chance, '{:.0f}', 'n')} axes with no planted gap "
        f"{count(chance)} came out with p < 0.05, {count(found)} with q < 0.05"
    )
    zero = of.loc[(of["statistic"] == "planted_effect") & (of["value"] == 0), "other"]
    gaps = of[(of["statistic"] == "identity_gap") & of["other"].isin(zero)]
    worst = records(gaps.loc[[gaps["value"].abs().idxmax()]])[0]
    p = find(of, "identity_gap_p", other=worst["other"])
    tail = f", p {quote(p)}" if p is not None else ""
    return f"{said} (the largest, {worst['other']}: {with_interval(worst)}{tail})."


def axes(rows: pd.DataFrame, prompt: str, statistic: str = "") -> str:
    """On which axes false discoveries are unlikely, under one question."""
    of = rows[(rows["statistic"] == "identity_discoveries") & (rows["source"] == "panel") & (rows["prompt"] == prompt)]
    lead = f"{statistic} " if statistic else ""
    told = []
    for way in ("below", "above"):
        total = find(of, "identity_discoveries", other=lead + way)
        if total is None:
            return f"Under {prompt} no axis has two groups whose terms and controls can be compared."
        named = of[of["other"].str.fullmatch(rf"{lead}\w+ {way}")].sort_values("value", ascending=False, kind="stable")
        most = [
            f"{str(row['other']).removeprefix(lead).split()[0]} {count_of(row)}"
            for row in (records(named.iloc[[at]])[0] for at in range(min(3, len(named))))
        ]
        listed = f" ({', '.join(most)})" if most else ""
        among = "" if told else f" of {quote(total, '{:.0f}', 'n')} gaps"
        told.append(f"{count(total)}{among} {way} controls{listed}")
    asked = _ASKED.get(prompt, f"Under {prompt}")
    return f"{asked}, with q < 0.05: {told[0]}, {told[1]}."


def tail(rows: pd.DataFrame) -> str:
    """In how many models terms are over-represented among the lowest words under both questions."""
    of = rows[(rows["statistic"] == "identity_tail_gap") & (rows["source"] == "panel")]
    if of.empty:
        return "No model has been scanned under both framings and knows enough terms."
    more, less = (
        find(rows, f"models_clearly_{way}", source="panel", other="identity_tail_gap") for way in ("above", "below")
    )
    if more is None or less is None:
        return ""
    ends = [records(of.loc[[at]])[0] for at in (of["value"].idxmax(), of["value"].idxmin())]
    said = [f"{row['model']} {quote(row, '{:+.0%}')}" for row in ends]
    return (
        f"Terms are clearly more often in the tail than controls in {count(more)} of "
        f"{quote(more, '{:.0f}', 'n')} models and clearly less often in {count(less)} "
        f"(share of terms less share of controls, at the ends: {', '.join(said)})."
    )


def gap(rows: pd.DataFrame, prompt: str, statistic: str = "identity_gap") -> str:
    """The gap over all axes under one question, over models and in groups of models."""
    row = _mean(rows, statistic, "panel", prompt, ALL)
    if row is None:
        return ""
    clear = {-1: "below zero", 0: "on no clear side of zero", 1: "above zero"}[side(row)]
    said = f"{_ASKED.get(prompt, f'Under {prompt}')} the gap is {with_interval(row, '{:+.2f}')}{_of(row)}, {clear}"
    groups = [find(rows, name, source="panel", prompt=prompt, other=statistic) for name in _GROUPS]
    told = [
        f"{quote(of, '{:+.2f}')} where models {who}" for of, who in zip(groups, _GROUPS.values(), strict=True) if of
    ]
    return f"{said} ({', '.join(told)})." if told else f"{said}."


_ASKED = {
    "exchanged": "With the group in the question",
    "words, positive": "Under positive prompts",
    "words, negative": "Under negative prompts",
}
_GROUPS = {"mean_turning": "read the question", "mean_not_turning": "do not"}


def asked(rows: pd.DataFrame) -> tuple[str, str]:
    """The two questions of the scans, ``""`` for one that was not asked."""
    tails = rows[(rows["statistic"] == "identity_tail_gap") & (rows["source"] == "panel")]
    if len(tails):
        return tails["prompt"].iloc[0], tails["other"].iloc[0]
    of = rows[(rows["statistic"] == "identity_gap") & (rows["source"] == "panel")]
    scans = of.loc[~of["prompt"].str.startswith("words, "), "prompt"]
    return (scans.iloc[0] if len(scans) else ""), ""


def _mean(rows: pd.DataFrame, statistic: str, source: str, prompt: str, other: str) -> Row | None:
    """The mean over models, or the row of the one model there is."""
    of = find_all(rows, statistic, source=source, prompt=prompt, other=other)
    means = [row for row in of if not row["model"]]
    return means[0] if means else of[0] if len(of) == 1 else None


def _of(row: Row) -> str:
    return f" in {row['model']}, one model" if row["model"] else f" over {quote(row, '{:.0f}', 'n')} models"

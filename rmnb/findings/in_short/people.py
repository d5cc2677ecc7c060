"""What the chapter on people found, in sentences whose numbers are rows: the box, and a line under each figure."""

from collections.abc import Sequence

import pandas as pd

from rmnb.findings.people import QUESTION
from rmnb.findings.quoting import Row, count, count_of, find, find_all, quote, records, side, span, with_interval

_STATISTIC = "human_spearman"
_WHOSE = {"released": "In the paper's models", "panel": "In this panel"}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of `rmnb.findings.people`, for any panel."""
    said = [
        claim(rows),
        plain_words(rows),
        own(rows),
        f"{questions(rows)} {noise(rows, 'released')}".strip(),
        survives(rows),
    ]
    return [sentence for sentence in said if sentence]


def claim(rows: pd.DataFrame) -> str:
    """What the paper draws, and the same from the authors' data."""
    printed, again = (_ordered(rows, source) for source in ("published", "released"))
    said = "The paper finds that reward models agree with people's votes modestly"
    if printed:
        said += f": Spearman's ρ from {quote(printed[0])} to {quote(printed[-1])} in {_count(rows, 'published')} models"
    if again:
        said += (
            f". Recomputed from the authors' scores: {quote(again[0])} to {quote(again[-1])}{_median(rows, 'released')}"
        )
    return f"{said}."


def plain_words(rows: pd.DataFrame) -> str:
    """The same models on things that are words of praise and blame."""
    whole = find(rows, "median_over_models", source="released", prompt=QUESTION, other=_STATISTIC)
    words = find(rows, "median_over_models", source="released", prompt=QUESTION, other="human_spearman_words")
    rated = find(rows, "elo_valence_spearman", source="released")
    if whole is None or words is None or rated is None:
        return ""
    things = quote(_ordered(rows, "released")[0], "{:,.0f}", "n")
    return (
        f"It depends on the things: on the {quote(rated, '{:.0f}', 'n')} that are plain words of praise and blame the "
        f"median is {quote(words)}, over all {things} it is {quote(whole)}."
    )


def own(rows: pd.DataFrame) -> str:
    """This panel: how many models agree with people, and which of them learned from votes."""
    of = _ordered(rows, "panel")
    if not of:
        return "No model of this panel has scored the things, so nothing is said of its agreement with people."
    if len(of) == 1:
        verdict = {1: "clear of zero", 0: "not clear of zero", -1: "the other way round"}[side(of[0])]
        return f"In this panel one model, {of[0]['model']}, agrees at {with_interval(of[0])} over things: {verdict}."
    clear, turned = (
        find(rows, f"models_clearly_{way}", source="panel", prompt=QUESTION, other=_STATISTIC)
        for way in ("above", "below")
    )
    mean = find(rows, _STATISTIC, source="panel", prompt=QUESTION, model="")
    said = f"In this panel{_median(rows, 'panel', ' the median is ')}"
    if mean is not None:
        unclear = "" if side(mean) else ", so that a side cannot be told from so few"
        said += f" and the mean {with_interval(mean)} over models{unclear}"
    if clear is not None:
        said += f"; {count_of(clear)} lie clearly above zero{_not_clear(of)}"
    if turned is not None and turned["value"]:
        said += f"; {count(turned)} clearly the other way round"
    return f"{said}. {taught(rows)}".strip()


def _not_clear(of: Sequence[Row]) -> str:
    """Names of the models that are not: three at most."""
    rest = [row for row in of if side(row) == 0]
    if not rest or len(rest) > 3:
        return ""
    return ", not " + " and ".join(f"{row['model']} at {with_interval(row, '{:.3f}')}" for row in rest)


def taught(rows: pd.DataFrame) -> str:
    """Models whose recipe shows them votes on half of the things, against the others."""
    seen = rows.loc[(rows["statistic"] == "human_spearman_seen") & (rows["source"] == "panel"), "model"].unique()
    of = _ordered(rows, "panel")
    with_votes, without = ([row for row in of if (row["model"] in seen) == taught] for taught in (True, False))
    if not with_votes or not without:
        return ""
    return (
        f"Those that learned from votes on other things reach {span(with_votes)}, those that did not {span(without)}."
    )


def questions(rows: pd.DataFrame) -> str:
    """How far the question moves a model's correlation."""
    said = []
    for source, who in (("released", "of the paper"), ("panel", "of this panel")):
        spread = find(rows, "question_spread", source=source)
        if spread is not None:
            said.append(f"{quote(spread)} in models {who}")
    return f"From one way of asking to another ρ moves by {', by '.join(said)} (median)." if said else ""


def noise(rows: pd.DataFrame, source: str) -> str:
    """Of the distance to full agreement, how much the error of the votes can explain at most."""
    of = rows[(rows["statistic"] == "votes_explain") & (rows["source"] == source)]
    if of.empty:
        return ""
    most = records(of.loc[[of["value"].idxmax()]])[0]
    who = _WHOSE[source].lower()
    return f"Noise in the votes explains at most {quote(most, '{:.0%}')} of the distance to full agreement {who}."


def survives(rows: pd.DataFrame) -> str:
    """In how many specifications the mean agreement is positive, question by question."""
    source = "panel" if _ordered(rows, "panel") else "released"
    of = rows[(rows["source"] == source) & (rows["statistic"] == "specifications_clear")]
    main = find(of, "specifications_clear", other=QUESTION)
    mean = find(rows, _STATISTIC, source=source, prompt=QUESTION, model="") or (_ordered(rows, source) or [None])[0]
    if main is None or mean is None:
        return ""
    same = find(rows, "specifications_same_sign", source=source, other=QUESTION)
    counted = count(same) if same is not None else ""
    way = "above" if mean["value"] > 0 else "below"
    return (
        f"Asked for the greatest thing, the mean agreement lies {way} zero in {counted} of "
        f"{quote(main, '{:.0f}', 'n')} specifications, clear of zero in {count(main)}."
    )


def valence(rows: pd.DataFrame) -> list[str]:
    """How rewards of words follow their valence, question by question."""
    said = []
    of = rows[(rows["source"] == "panel") & (rows["statistic"] == "median_over_models")]
    for prompt in of.loc[of["other"] == "afinn_spearman", "prompt"]:
        median = find(of, "median_over_models", prompt=prompt, other="afinn_spearman")
        above, below = (
            find(rows, f"models_clearly_{way}", source="panel", prompt=prompt, other="afinn_spearman")
            for way in ("above", "below")
        )
        if median is not None and above is not None and below is not None:
            said.append(
                f"asked for the {prompt}, the median is {quote(median)}, clearly positive in {count(above)} and "
                f"clearly negative in {count(below)} of {quote(above, '{:.0f}', 'n')}"
            )
    told = "; ".join(said)
    return [f"{told[0].upper()}{told[1:]}."] if said else []


def beside_valence(rows: pd.DataFrame) -> str:
    """How many models come as near to the voters as the person who rated the words."""
    rated = find(rows, "elo_valence_spearman", source="released")
    said = []
    for source, who in (("released", "of the paper's"), ("panel", "of this panel's")):
        near = find(rows, "as_near_as_valence", source=source)
        if near is not None:
            said.append(f"{count(near)} {who} {quote(near, '{:.0f}', 'n')} models")
    if rated is None or not said:
        return ""
    return (
        f"The ratings of one person reach {with_interval(rated)} with the voters on these words. "
        f"At least as near come {' and '.join(said)}."
    )


def ends(rows: pd.DataFrame, source: str) -> str:
    """How much of what stands at the ends of the list had to stand there."""
    about = {"source": source, "prompt": QUESTION}
    follows = find(rows, "gap_follows_rank", **about)
    guest = find(rows, "ends_kept", other="with the human column", **about)
    beyond = find(rows, "ends_kept", other="beyond what is expected", **about)
    if follows is None or guest is None or beyond is None:
        return ""
    return (
        f"{_WHOSE[source]} the gap and the human rank correlate at {quote(follows)}. Of "
        f"{quote(beyond, '{:.0f}', 'n')} things at the ends {count(guest)} stay when the human column joins "
        f"the median, {count(beyond)} when what the human rank lets expect is taken out."
    )


def by_votes(rows: pd.DataFrame, source: str) -> str:
    """The correlation among things with few votes and with many."""
    of = rows[(rows["statistic"] == "human_spearman_by_votes") & (rows["source"] == source)]
    if len(of) < 2:
        return ""
    few, *_, many = records(of)
    return (
        f"{_WHOSE[source]} ρ is {quote(few)} on things with {few['other']} and {quote(many)} on those with "
        f"{many['other']}."
    )


def printed_range(rows: pd.DataFrame) -> str:
    """Where this panel stands beside the correlations that the paper draws."""
    within, above = (find(rows, "published_range", source="panel", other=where) for where in ("within", "above"))
    if within is None or above is None:
        return ""
    return (
        f"Of {quote(within, '{:.0f}', 'n')} models of this panel {count(within)} lie within the range "
        f"that the paper draws, {count(above)} above it."
    )


def _ordered(rows: pd.DataFrame, source: str) -> list[Row]:
    """The models' agreement under `QUESTION`, the lowest first."""
    of = rows[rows["model"] != ""].sort_values("value", kind="stable")
    return find_all(of, _STATISTIC, source=source, prompt=QUESTION)


def _count(rows: pd.DataFrame, source: str) -> str:
    """In words, because print has no row that counts its models."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    many = len(_ordered(rows, source))
    return words[many] if many < len(words) else "many"


def _median(rows: pd.DataFrame, source: str, lead: str = ", median ") -> str:
    median = find(rows, "median_over_models", source=source, prompt=QUESTION, other=_STATISTIC)
    return lead + quote(median) if median is not None else ""

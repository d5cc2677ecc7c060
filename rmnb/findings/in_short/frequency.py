"""What the chapter on frequency found, in sentences whose numbers are rows: the box, and a line under each figure."""

import pandas as pd

from rmnb.findings.frequency_slopes import STEPS
from rmnb.findings.quoting import Row, count, count_of, find, quote, records, side, span, with_interval
from rmnb.findings.reading_question import does_not_turn

_SIGNED = "{:+.3f}"
_CONTROLLED, _OTHERS = "slope_log_frequency_controlled", "slope_log_frequency_others"


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of the chapter on frequency, for any panel."""
    of = rows[rows["source"] == "panel"]
    said = [f"{claim(rows)} {authors(rows)}", as_published(of), held(of), whatever_is_asked(of), survives(of)]
    return [sentence for sentence in said if sentence]


def claim(rows: pd.DataFrame) -> str:
    """What the paper claims, with its number of slopes."""
    number = find(rows, "positive_frequency_slopes", source="published")
    said = "Christian et al. (2025) report that frequent words score higher, even when the worst is asked for"
    return f"{said}: {count(number)} of their thirty slopes lie above zero." if number else f"{said}."


def authors(rows: pd.DataFrame) -> str:
    """Their scores recomputed, where they can be had."""
    number = find(rows, "positive_frequency_slopes", source="released")
    if number is None:
        return "Their scores of whole vocabularies are out of reach here, so this cannot be computed again."
    return f"Recomputed from their scores, {count_of(number)} slopes do."


def as_published(rows: pd.DataFrame) -> str:
    """The paper's regression on this panel: how many slopes are above zero, and their means."""
    number = find(rows, "positive_frequency_slopes")
    if number is None:
        return "This panel has too few words with a valence for a slope."
    means = _means(rows, "slope_log_frequency_standardised")
    return f"The same regression on this panel gives {count_of(number)} slopes above zero, mean {_by_prompt(means)}."


def held(rows: pd.DataFrame) -> str:
    """The mean slope with everything held constant, question by question."""
    means = _means(rows, _CONTROLLED)
    if not means:
        return ""
    many = rows.loc[(rows["statistic"] == _CONTROLLED) & (rows["model"] != ""), "model"].nunique()
    over = "intervals over models" if many > 1 else "one model, intervals over words"
    sides = [side(row) for row in means]
    above = [str(row["prompt"]) for row, way in zip(means, sides, strict=True) if way > 0]
    below = [str(row["prompt"]) for row, way in zip(means, sides, strict=True) if way < 0]
    verdict = "whether frequent words score higher cannot be told"
    if len(above) == len(means):
        verdict = "frequent words score higher, as claimed"
    elif above and not below:
        verdict = f"frequent words score higher for {' and '.join(above)} alone"
    elif below:
        verdict = f"it is the other way round for {' and '.join(below)}"
        verdict += f", and as claimed for {' and '.join(above)}" if above else ""
    return (
        f"With valence, length, spelling and token id held constant {verdict}: mean slope {_by_prompt(means)} ({over})."
    )


def survives(rows: pd.DataFrame) -> str:
    """In how many specifications of each question the slope keeps its sign."""
    same = rows[rows["statistic"] == "specifications_same_sign"]
    told = []
    for row in records(same):
        clear = find(rows, "specifications_clear", other=row["other"])
        told.append(f"{count_of(row)} for {row['other']}" + (f" ({count(clear)} clear of zero)" if clear else ""))
    return f"Specifications that keep the sign of the chapter's slope: {', '.join(told)}." if told else ""


def steps(rows: pd.DataFrame) -> list[str]:
    """How far the slopes of models reach before and after length, spelling and id are held constant too."""
    said = []
    of = rows[(rows["statistic"] == "slope_log_frequency_step") & (rows["source"] == "panel")]
    for prompt in of["prompt"].unique():
        first, last = (
            records(of[(of["prompt"] == prompt) & (of["other"] == step)].sort_values("value"))
            for step in (STEPS[1], STEPS[-1])
        )
        if first and last:
            told = f"with valence held {span(first, _SIGNED)}, with all held {span(last, _SIGNED)}"
            number = find(rows, "models_clearly_above", other=_CONTROLLED, prompt=prompt)
            clear = f"; {count_of(number)} models stay clear above zero" if number else ""
            said.append(f"Slopes for {prompt}: {told}{clear}.")
    return said


def apart(rows: pd.DataFrame) -> list[str]:
    """The slope with all held in models that turn with the question, and in those that do not."""
    said, alike = [], does_not_turn(rows)
    for row in records(rows[(rows["statistic"] == "mean_turning") & (rows["other"] == _CONTROLLED)]):
        rest = find(rows, "mean_not_turning", other=_CONTROLLED, prompt=row["prompt"])
        if rest and alike:
            told = f"{with_interval(row, _SIGNED)} in the models that read the question"
            said.append(f"For {row['prompt']}: {told}, {with_interval(rest, _SIGNED)} in those that do not.")
    return said


def whatever_is_asked(rows: pd.DataFrame) -> str:
    """Whether the slope among words that nobody rated keeps its side of zero when the question turns."""
    means = _means(rows, _OTHERS)
    sides = {side(row) for row in means}
    if not means:
        return ""
    verdict = "the slope's side of zero cannot be told for every question"
    if {1, -1} <= sides:
        verdict = "the slope changes its sign with the question, as no liking for frequency itself would"
    elif sides == {1}:
        verdict = (
            "frequent words score higher too, whatever is asked"
            if len(means) > 1
            else "frequent words score higher too"
        )
    elif sides == {-1}:
        verdict = "it is the rare words that score higher"
    return f"Among words that AFINN does not rate {verdict}: {_by_prompt(means)}."


def unrated(rows: pd.DataFrame) -> list[str]:
    """The slope among words that nobody rated, beside that among rated ones."""
    of = rows[rows["source"] == "panel"]
    means, rated = _means(of, _OTHERS), _means(of, _CONTROLLED)
    said = [f"Mean slope among rated words: {_by_prompt(rated)}." if rated else "", whatever_is_asked(of)]
    return [sentence for sentence in said if sentence and means]


def predictions(rows: pd.DataFrame) -> list[str]:
    """In how many models each explanation's prediction holds."""
    told = {
        "slope_log_frequency_common": "a slope that both questions share",
        "slope_log_frequency_turned": "one that turns with the question",
        "slope_log_frequency_common_others": "among unrated words, one that both share",
        "slope_log_frequency_turned_others": "among unrated words, one that turns",
    }
    said = []
    for statistic, what in told.items():
        above = find(rows, "models_clearly_above", other=statistic)
        below = find(rows, "models_clearly_below", other=statistic)
        if above and below:
            said.append(f"{what} is clearly above zero in {count_of(above)} models and below in {count(below)}")
    found = [f"{said[0][0].upper()}{'; '.join(said)[1:]}."] if said else []
    for row in records(
        rows[(rows["statistic"] == "models_clearly_below") & (rows["other"] == "slope_log_id_within_word")]
    ):
        within = "within a word, the token merged earlier clearly gets the higher reward"
        found.append(f"Asked for the {row['prompt']}, {within} in {count_of(row)} models.")
    return found


def bends(rows: pd.DataFrame) -> list[str]:
    """The smallest and the largest p-value of a bend."""
    tests = records(rows[rows["statistic"] == "curvature_p"].sort_values("value"))
    if not tests:
        return []
    low, high = (f"{quote(row, '{:.2g}')} ({row['model']})" for row in (tests[0], tests[-1]))
    return [f"One test a model: p from {low} to {high}." if len(tests) > 1 else f"One test: p {low}."]


def _by_prompt(means: list[Row]) -> str:
    return ", ".join(f"{with_interval(row, _SIGNED)} for {row['prompt']}" for row in means)


def _means(rows: pd.DataFrame, statistic: str) -> list[Row]:
    return records(rows[(rows["statistic"] == statistic) & (rows["model"] == "") & (rows["source"] == "panel")])

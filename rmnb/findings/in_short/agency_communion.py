"""Agency and communion in short: the claim, the authors' scores, this panel, its bases before training, how sure."""

import pandas as pd

from rmnb.findings.quoting import Row, count, count_of, find, find_all, quote, side, with_interval

_ASKED = {"user_assistant": "asked as “User: … Assistant:”", "chat": "asked in the chat template", "bare": "asked bare"}


def _told(row: Row) -> str:
    """The two models of a ratio, and in words how they were asked."""
    told = str(row["model"])
    for key, words in _ASKED.items():
        told = told.replace(f" ({key})", f", {words}")
    return told


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on whatever panel the rows are of: results rows of agency_communion, all sources."""
    rows = rows[rows["finding"] == "agency_communion"]
    parts = (_claim(rows), _authors(rows), _panel(rows), _before_training(rows), _how_sure(rows))
    return [part for part in parts if part]


def tests(rows: pd.DataFrame, source: str) -> str:
    """What tests over prompts find and what tests over models find, of rows of one finding; may be empty."""
    over = [find(rows, "comparisons_clear", source=source, other=unit) for unit in ("prompts", "models")]
    if None in over:
        return ""
    prompts, models = (f"{count_of(row)}" for row in over if row)
    return f"with prompts as observations {prompts} comparisons are significant, with models as observations {models}"


def bases(rows: pd.DataFrame, source: str) -> list[str]:
    """The names of the bases that have two models or more, the minuend first."""
    of = rows[(rows["statistic"] == "base_agency_gap") & (rows["source"] == source)]
    return list(dict.fromkeys(of["model"]))


def leaning(rows: pd.DataFrame, source: str) -> str:
    """Which base leans to which kind of word under positive prompts, and whether models can tell; may be empty."""
    row = find(rows, "base_difference", source=source, other="agency_less_communion", prompt="positive")
    gaps = sorted(find_all(rows, "base_agency_gap", source=source, prompt="positive"), key=lambda gap: -gap["value"])
    if row is None or len(gaps) != 2:
        return ""
    first, second = (str(gap["model"]) for gap in gaps)
    means = " and ".join(f"{gap['model']} {with_interval(gap, '{:+.1f}')}" for gap in gaps)
    told = f"{first} leans to communion and {second} to agency (agency less communion in percent of the ranks: {means})"
    if not side(row):
        return f"{told}, which cannot be told from no difference with {quote(row, '{:.0f}', 'n')} models"
    if first.startswith("Gemma") and second.startswith("Llama"):
        return f"{told}, as claimed"
    turned = first.startswith("Llama") and second.startswith("Gemma")
    return f"{told}, the other way round" if turned else f"{told}, clear of zero over models"


def _claim(rows: pd.DataFrame) -> str:
    effects = [
        find(rows, "base_effect_size", source="published", other=kind, prompt="positive")
        for kind in ("agency", "communion")
    ]
    said = "Christian et al. (2026) find that reward models grown from Gemma prefer communion, those from Llama agency"
    numbers = " and ".join(quote(row, "{:.1f}") for row in effects if row)
    return f"{said}: d = {numbers} for the ranks of agency and of communion." if numbers else f"{said}."


def _authors(rows: pd.DataFrame) -> str:
    parts = [part for part in (tests(rows, "released"), leaning(rows, "released")) if part]
    return f"In the authors' scores, {'; '.join(parts)}." if parts else ""


def _panel(rows: pd.DataFrame) -> str:
    parts = [tests(rows, "panel"), leaning(rows, "panel")]
    paired = find(rows, "base_difference_paired", source="panel", prompt="positive")
    p_value = find(rows, "base_difference_paired_p", source="panel", prompt="positive")
    if paired and p_value:
        parts.append(
            f"recipe by recipe the two differ by {with_interval(paired, '{:.1f}')} percent of the ranks, "
            f"p {quote(p_value)} with {quote(paired, '{:.0f}', 'n')} recipes"
        )
    if any(parts):
        return f"In this panel, {'; '.join(part for part in parts if part)}."
    alone = find_all(rows, "agency_gap", source="panel", prompt="positive", other="")
    if not alone:
        return "This panel has no rewards of enough of the words."
    row = alone[0]
    kind = {1: "communion", -1: "agency", 0: "neither"}[side(row)]
    more = "" if len(alone) == 1 else ", the first of the panel,"
    return (
        f"In this panel bases cannot be compared: that takes two models of each of two bases. {row['model']}{more} "
        f"prefers {kind}: agency less communion {with_interval(row, '{:.1f}')} percent of the ranks, over nouns."
    )


def _before_training(rows: pd.DataFrame) -> str:
    of = find_all(rows, "agency_gap_difference", prompt="positive")
    if not of:
        return ""
    told = ", ".join(f"{with_interval(row, '{:.1f}')} {_ASKED.get(row['other'], row['other'])}" for row in of)
    clear = sum(side(row) != 0 for row in of)
    verdict = "yes" if clear == len(of) else "that depends on how they are asked" if clear else "that cannot be told"
    return (
        f"Did the bases differ before any preference data? Here {verdict}: agency less communion, {of[0]['model']}, is "
        f"{told}, in percent of the ranks; these intervals are over nouns and speak of these two bases alone."
    )


def _how_sure(rows: pd.DataFrame) -> str:
    same, clear = (
        find(rows, f"specifications_{name}", source="panel", other="positive") for name in ("same_sign", "clear")
    )
    if same is None or clear is None:
        return ""
    return (
        f"How sure: {count_of(same)} specifications have the sign of the "
        f"headline, and {count(clear)} an interval over models that is clear of zero."
    )


def means(rows: pd.DataFrame, source: str) -> list[str]:
    """Agency less communion, the mean over the models of each base, by framing."""
    said = []
    for framing in ("positive", "negative"):
        of = find_all(rows, "base_agency_gap", source=source, prompt=framing)
        told = [f"{row['model']} {with_interval(row, '{:.1f}')}, {quote(row, '{:.0f}', 'n')} models" for row in of]
        if told:
            said.append(f"Under {framing} prompts, agency less communion in percent, over models: {'; '.join(told)}.")
    return said


def compared(rows: pd.DataFrame, source: str) -> list[str]:
    """What either kind of test finds, and the test of all comparisons at once, of rows of one finding."""
    told, joint = tests(rows, source), find(rows, "base_difference_joint_p", source=source)
    if not told or joint is None:
        return []
    return [f"{told[0].upper()}{told[1:]}; one test over models of all of them at once gives p = {quote(joint)}."]


def paired(rows: pd.DataFrame) -> list[str]:
    """The difference of two bases within recipes, by framing."""
    names = " less ".join(bases(rows, "panel"))
    said = []
    for row in find_all(rows, "base_difference_paired", source="panel"):
        p_value = find(rows, "base_difference_paired_p", source="panel", prompt=row["prompt"])
        said.append(
            f"Under {row['prompt']} prompts, {names} within recipes: {with_interval(row, '{:.1f}')} percent of the "
            f"ranks, {quote(row, '{:.0f}', 'n')} recipes{f', p = {quote(p_value)}' if p_value else ''}."
        )
    return said


def first_words(rows: pd.DataFrame) -> list[str]:
    """How far the bases' own rankings lie apart, beside what an analysis of variance over prompts makes of it."""
    said = []
    for test in find_all(rows, "anova_f", source="panel"):
        of = find_all(rows, "agency_gap_difference", other=test["other"])
        told = " and ".join(f"{with_interval(row, '{:.1f}')} under {row['prompt']} prompts" for row in of)
        if told:
            asked = str(_ASKED.get(test["other"], test["other"]))
            said.append(
                f"{asked[0].upper()}{asked[1:]}, {of[0]['model']}: {told}, over nouns. Over "
                f"{quote(test, '{:.0f}', 'n')} medians the interaction of category and base has "
                f"F = {count(test)}."
            )
    return said


def ratios(rows: pd.DataFrame) -> list[str]:
    """The plain log ratio of two bases, agency less communion, under positive prompts."""
    of = find_all(rows, "mwlr_gap", other="plain", prompt="positive", protocol="exact", source="panel")
    return [f"Agency less communion in the log ratio, {_told(row)}: {with_interval(row)}, over nouns." for row in of]


def copies(rows: pd.DataFrame) -> list[str]:
    """What a tuned copy's implicit reward prefers, and how it goes with the rewards of explicit models."""
    said = []
    for row in find_all(rows, "mwlr_gap", other="plain", prompt="positive", protocol="", source="panel"):
        rhos = sorted(find_all(rows, "implicit_spearman", model=row["model"]), key=lambda rho: rho["value"])
        told = f"{_told(row)}: agency less communion {with_interval(row)}, over nouns"
        ends = [f"{quote(rho)} ({rho['other']})" for rho in rhos]
        said.append(f"{told}; ρ with explicit rewards from {ends[0]} to {ends[-1]}." if ends else f"{told}.")
    right = [f"{with_interval(row)} of {row['other']}" for row in find_all(rows, "held_out_accuracy", source="panel")]
    if right:
        said.append(
            f"The answer that people chose has the higher implicit reward in {', '.join(right)} (held-out pairs)."
        )
    return said


def foundations(rows: pd.DataFrame, source: str) -> list[str]:
    """Which single foundations have an interval over models clear of zero, under positive prompts."""
    told = []
    for row in find_all(rows, "base_difference", source=source, prompt="positive"):
        p_value = find(rows, "base_difference_p", source=source, prompt="positive", other=row["other"])
        if "_less_" not in row["other"] and side(row):
            prefers = {-1: "first", 1: "second"}[side(row)]
            by = f", p {quote(p_value)}" if p_value else ""
            told.append(f"{row['other']} (preferred by the {prefers} base{by})")
    return [f"Clear of zero under positive prompts, with p by permuting models: {', '.join(told)}."] if told else []


def survival(rows: pd.DataFrame, source: str) -> list[str]:
    """How many specifications have the sign of the headline and are clear, by framing."""
    said = []
    for framing in ("positive", "negative"):
        same, clear = (
            find(rows, f"specifications_{name}", source=source, other=framing) for name in ("same_sign", "clear")
        )
        if same and clear:
            said.append(
                f"Under {framing} prompts {count_of(same)} specifications have "
                f"the sign of the headline; {count(clear)} are clear of zero."
            )
    return said

"""Training in short: the claim, the authors' runs, the same pairs on two bases, the beginning, reading the question."""

import pandas as pd

from rmnb.findings.quoting import count, find, find_all, quote, side, with_interval

_PERCENT = "{:.1f}"


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on whatever panel the rows are of: results rows of training, all sources.

    What is printed on training stands with the rows of agency_communion.
    """
    of = rows[rows["finding"] == "training"]
    here = [part for part in (_same_pairs(of), _beginning(of), _question(of)) if part]
    return [part for part in (_claim(rows), _authors(of)) if part] + (here or ["This panel has no runs to follow."])


def _claim(rows: pd.DataFrame) -> str:
    told = (
        "Christian et al. (2026) train Gemma and Llama on the same pairs: the one comes to prefer communion, the other"
    )
    ranks = [
        find(rows, f"final_median_rank_{kind}", source="published", model=base, other="unified-27k")
        for base in ("gemma-2-2b-it", "Llama-3.2-3B-Instruct")
        for kind in ("agency", "communion")
    ]
    quoted = [quote(row, "{:g}") for row in ranks if row]
    printed = (
        f" (ranks of agency and communion: {quoted[0]} and {quoted[1]} against {quoted[2]} and {quoted[3]})"
        if len(quoted) == 4
        else ""
    )
    return f"{told} agency{printed}, early, and durably over sources and amounts of data."


def _authors(rows: pd.DataFrame) -> str:
    mean = find(rows, "base_difference_paired", source="released")
    ends = {row["other"]: row for row in find_all(rows, "base_gap_end", source="released")}
    if mean is None or not ends:
        return ""
    told = (
        f"At the end of their runs Gemma less Llama, in agency less communion, is {with_interval(mean, _PERCENT)} "
        f"percent of the ranks, mean and interval of {quote(mean, '{:.0f}', 'n')} data sets"
    )
    first = find(rows, "base_gap_first", source="released", other="unified-106k")
    last = ends.get("unified-106k")
    if first is None or last is None:
        return f"{told}."
    verdict = "is gone and turned" if last["value"] * first["value"] < 0 else "remains"
    return (
        f"{told}; on the largest, {quote(first, _PERCENT)} at the first checkpoint and {quote(last, _PERCENT)} at the "
        f"last: there the difference {verdict}."
    )


def _same_pairs(rows: pd.DataFrame) -> str:
    """Two bases on the same pairs: the largest recipe and the others, seeds, and its halves."""
    gaps = {row["other"]: row for row in find_all(rows, "base_gap_end", source="panel")}
    if not gaps:
        return ""
    name = "mixed" if "mixed" in gaps else next(iter(gaps))
    row = gaps.pop(name)
    clear = "clear of zero over words" if side(row) else "not clear of zero even over words"
    told = f"Here, {row['model']} after the recipe {name}: {with_interval(row, _PERCENT)} percent, {clear}"
    again = gaps.get(f"{name}-seed2")
    if again:
        told += f"; with another seed, {quote(again, _PERCENT)}"
    fewer = [
        f"{quote(gaps[f'{name}-{part}'], _PERCENT)} on a {part}"
        for part in ("quarter", "half")
        if f"{name}-{part}" in gaps
    ]
    if fewer:
        told += f"; with the same seed, {' and '.join(fewer)} of its pairs"
    return f"{told}."


def _beginning(rows: pd.DataFrame) -> str:
    means = {row["other"]: row for row in find_all(rows, "spearman_first", source="panel", model="")}
    named = {"random": "a random head", "probe": "a head fitted to pairs beforehand"}
    told = [
        f"{with_interval(means[head])} in the {quote(means[head], '{:.0f}', 'n')} runs that begin with {meaning}"
        for head, meaning in named.items()
        if head in means
    ]
    return f"How much of the last ranking is there at step 0? Spearman's ρ is {', '.join(told)}." if told else ""


def _question(rows: pd.DataFrame) -> str:
    turning = find(rows, "models_above", source="panel", other="framing_spearman harmless")
    if turning is None:
        return ""
    verdict = "does" if turning["value"] == 0 else "does not" if turning["value"] == turning["n"] else "does in part"
    return (
        "Does a model that learned from harmlessness learn to read the question, with mismatched pairs or without? "
        f"Here training {verdict} teach it, as far as single words show: {count(turning)} of "
        f"{quote(turning, '{:.0f}', 'n')} runs rank words alike as the greatest and as the worst."
    )


def ends(rows: pd.DataFrame) -> list[str]:
    """After which recipes the two bases lie farthest apart and nearest, and how far seeds carry them."""
    gaps = sorted(find_all(rows, "base_gap_end", source="panel"), key=lambda row: abs(row["value"]))
    if not gaps:
        return []
    told = [f"{with_interval(row, _PERCENT)} after {row['other']}" for row in (gaps[-1], gaps[0])]
    clear = [row["other"] for row in gaps[::-1] if side(row)]
    named = f"clear of zero after {', '.join(clear)}" if clear else "clear of zero after none of the recipes"
    return [f"At the end, {gaps[0]['model']} lies between {told[0]} and {told[1]}, and is {named}."]


def valence(rows: pd.DataFrame) -> list[str]:
    """Which runs end with the steepest and with the least slope over valence."""
    slopes = sorted(find_all(rows, "slope_valence_standardised", source="panel"), key=lambda row: row["value"])
    if not slopes:
        return []
    steep, flat = (f"{row['model']} ends at {with_interval(row)}" for row in (slopes[-1], slopes[0]))
    return [f"Slope over valence, in standard deviations a point: {steep}, {flat}."]


def first_rankings(rows: pd.DataFrame) -> list[str]:
    """In which runs least and most of the last ranking is there at step 0, with either beginning."""
    said = []
    for head in ("random", "probe"):
        runs = [row for row in find_all(rows, "spearman_first", source="panel", other=head) if row["model"]]
        if runs:
            runs.sort(key=lambda row: row["value"])
            low, high = (f"{quote(row)} ({row['model']})" for row in (runs[0], runs[-1]))
            begun = "at random" if head == "random" else "as a probe"
            said.append(f"Where the head begins {begun}, ρ at step 0 runs from {low} to {high}.")
    return said


def courses(rows: pd.DataFrame) -> list[str]:
    """Gemma less Llama at the first and the last checkpoint of each of the authors' data sets."""
    last = {row["other"]: row for row in find_all(rows, "base_gap_end", source="released")}
    first = find_all(rows, "base_gap_first", source="released")
    first.sort(key=lambda row: int("".join(filter(str.isdigit, row["other"])) or 0))
    told = [
        f"{quote(row, _PERCENT)} to {quote(last[row['other']], _PERCENT)} on {row['other']}"
        for row in first
        if row["other"] in last
    ]
    return (
        [f"From the first checkpoint to the last, Gemma less Llama goes from {', from '.join(told)}."] if told else []
    )


def questions(rows: pd.DataFrame) -> list[str]:
    """Which runs on harmlessness prefer the answer to the question asked, and how they rank single words."""
    said = []
    for right in find_all(rows, "held_out_accuracy", source="panel", other="hh-rlhf-mismatched"):
        rho = find(rows, "framing_spearman", source="panel", model=right["model"], prompt="greatest", other="worst")
        if rho and right["ci_low"] > 0.5:
            said.append(
                f"{right['model']} prefers the answer to the question that was asked in {with_interval(right)} of the "
                f"mismatched pairs, and ranks single words with ρ {quote(rho)} under opposite questions."
            )
    return said

"""What the chapter on sequences found, in sentences whose numbers are rows: the box, and a line under each figure."""

import pandas as pd

from rmnb.findings.quoting import (
    Row,
    count,
    count_of,
    find,
    find_all,
    interval,
    listed,
    quote,
    side,
    span,
    with_interval,
)

CLAIM = (
    "The paper goes on from single tokens to sequences that a gradient finds, and reports that they reach farther; "
    "neither it nor its data hold a number that could be computed again."
)
NAMES = {"gcg": "GCG", "random": "random search", "exhaustive": "exhaustive search", "beam": "a beam"}
_WAYS = {"max": "above the best", "min": "below the worst"}
_TOWARD = {"max": "upwards", "min": "downwards"}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on the results table of `rmnb.findings.sequences`, for any panel."""
    of = rows[rows["source"] == "panel"]
    if not _smallest_first(of, "best_gain"):
        return [CLAIM, "No model of this panel has been searched, so nothing is said here of sequences."]
    said = [CLAIM, gain_sentence(of), over_models(of), method_sentence(of), natural_sentence(of)]
    return [sentence for sentence in said if sentence]


def gain_sentence(rows: pd.DataFrame) -> str:
    """How far sequences get beyond single tokens in the models that were searched."""
    counts = {row["other"].removeprefix("best_gain "): row for row in _smallest_first(rows, "models_above")}
    found = []
    for direction, above in counts.items():
        gains = [row for row in _smallest_first(rows, "best_gain", other=direction) if row["model"]]
        by = span(gains)
        among = f"{count_of(above)} models searched"
        found.append(f"{_WAYS[direction]} single token in {among}, by {by} standard deviations")
    verdict = "In part here"
    if all(above["value"] == above["n"] for above in counts.values()):
        verdict = "So it is here"
    elif all(above["value"] == 0 for above in counts.values()):
        verdict = "Not so here"
    return f"{verdict}: the best sequence found lies {'; and '.join(found)}."


def over_models(rows: pd.DataFrame) -> str:
    """Whether the gain is clear of zero for models like these; nothing of one model."""
    means = {toward: find(rows, "best_gain", other=other, model="") for other, toward in _TOWARD.items()}
    known = {toward: row for toward, row in means.items() if row is not None}
    if not known:
        return ""
    told = [f"{quote(row, '{:+.2f}')} {toward} ({interval(row, '{:+.2f}')})" for toward, row in known.items()]
    sides = {side(row) for row in known.values()}
    verdict: dict[tuple[int, ...], str] = {
        (0,): "cannot be told",
        (1,): "is clear of zero",
        (-1,): "is clearly negative",
    }
    many = quote(next(iter(known.values())), "{:.0f}", "n")
    result = verdict.get(tuple(sides), "is clear of zero one way only")
    return f"For models like these the mean gain {result} from {many} models: {listed(told)}."


def method_sentence(rows: pd.DataFrame) -> str:
    """Whether GCG gets farther than each of its rivals with equal effort."""
    told: dict[int, list[str]] = {1: [], 0: [], -1: []}
    rivals = _smallest_first(rows, "gcg_advantage")[::-1]
    for row in rivals:
        told[side(row)].append(f"{NAMES[row['other']]} ({quote(row, '{:+.2f}')}, {interval(row, '{:+.2f}')})")
    ways = ("gets farther than", "cannot be told from", "falls behind")
    parts = [f"{how} {listed(those)}" for how, those in zip(ways, told.values(), strict=True) if those]
    if not parts:
        return ""
    runs = quote(rivals[0], "{:.0f}", "n")
    return f"With as many sequences scored as the rival scored, over {runs} runs, GCG {listed(parts)}."


def natural_sentence(rows: pd.DataFrame) -> str:
    """How much text that people judged gets more than anything found, under this question and under its own."""
    own, here = (_smallest_first(rows, name, other="max") for name in ("natural_beyond", "natural_beyond_here"))
    if not own or not here:
        return ""
    shares = [f"{quote(row, '{:.0%}')} in {row['model']}" for row in own[::-1]]
    reach = f"at most {quote(here[-1], '{:.0%}')} get more" if here[-1]["value"] else "none gets more"
    return (
        f"Of held-out answers that people judged, put to this question, {reach} than the best that was found; "
        f"put to their own questions {listed(shares)} do, but rewards of two questions share no zero."
    )


def length_sentences(rows: pd.DataFrame) -> list[str]:
    """The farthest of all, and where more tokens did not get farther."""
    said = []
    for direction, sign in (("max", 1), ("min", -1)):
        of = [row for row in _smallest_first(rows, "sequence_z") if row["other"].startswith(direction)]
        if not of:
            continue
        far, back = max(of, key=lambda row: sign * row["value"]), []
        one = next(iter(row for row in of if row["model"] == far["model"] and _tokens(row) == 1), far)
        for model in dict.fromkeys(row["model"] for row in of):
            line = sorted((row for row in of if row["model"] == model), key=_tokens)
            best = max(line, key=lambda row: sign * row["value"])
            if best is not line[-1]:
                back.append(f"{model} ({quote(best)} with {_tokens(best)} tokens, {quote(line[-1])} with the most)")
        text = f"Farthest {_TOWARD[direction]} is {far['model']}: {quote(far)} with {_tokens(far)} tokens"
        text += f", against {quote(one)} with one" if one is not far else ""
        gcg = find(rows, "sequence_z_gcg", model=far["model"], other=far["other"])
        text += "." if gcg is None or gcg["value"] == far["value"] else f"; a single run of GCG got to {quote(gcg)}."
        said.append(f"{text} The line bends back in {listed(back)}." if back else text)
    return said


def transfer_sentences(rows: pd.DataFrame) -> list[str]:
    """How sequences fare in other models, in the direction in which they were sought."""
    places = {"itself": "in the model itself", "same base": "in others of its base", "another base": "in another base"}
    said = []
    for direction, word in (("max", "highest"), ("min", "lowest")):
        means = {place: find(rows, "transfer_toward", other=f"{direction} {place}") for place in places}
        parts = [f"{quote(row)} {places[place]}" for place, row in means.items() if row is not None]
        if parts:
            said.append(f"Sought for the {word} reward, mean z in the direction sought: {listed(parts)}.")
    return said


def natural_sentences(rows: pd.DataFrame) -> list[str]:
    """The median held-out answer to its own question and to this one, model by model."""
    said = []
    for own in _smallest_first(rows, "natural_z", other="median"):
        here = find(rows, "natural_z", other="median here", model=own["model"])
        beyond = find(rows, "natural_beyond_here", other="max", model=own["model"])
        if here is not None:
            said.append(
                f"{own['model']}: the median answer has {quote(own)} under its own question and {quote(here)} under "
                "this one" + (f"; here {quote(beyond, '{:.0%}')} beat the best that was found." if beyond else ".")
            )
    return said


def survival_sentences(rows: pd.DataFrame) -> list[str]:
    """Over all specifications, how often GCG's difference to each rival keeps its sign, and is clear of zero."""
    said = []
    for row in _smallest_first(rows, "gcg_advantage")[::-1]:
        same, clear = (find(rows, f"specifications_{name}", other=row["other"]) for name in ("same_sign", "clear"))
        if same is not None and clear is not None:
            said.append(
                f"Against {NAMES[row['other']]}: {with_interval(row, '{:+.2f}')}, the same sign in "
                f"{count_of(same)} specifications, clear of zero in "
                f"{count(clear)}."
            )
    return said


def _smallest_first(rows: pd.DataFrame, statistic: str, **where: str) -> list[Row]:
    return find_all(rows.sort_values("value", kind="stable"), statistic, **where)


def _tokens(row: Row) -> int:
    return int(row["other"].split()[-1])

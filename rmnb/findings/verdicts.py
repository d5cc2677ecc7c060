"""What is left of each claim of the two papers: one rule, from a number with its interval to a verdict.

`judge` takes the results tables of all chapters and gives a verdict on every claim twice, from the authors' data and
from the panel; `rows` are its numbers as results rows, `table` is what a page shows and a file holds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rmnb.data import released_files
from rmnb.findings import released_rows
from rmnb.findings.claims import Claim, claims
from rmnb.findings.evidence import Evidence
from rmnb.findings.quoting import find, plain, quote, with_interval
from rmnb.findings.results import COLUMNS, KEY, Results, published, read_results

FINDING = "verdicts"
HOLDS, IN_PART, NOT_SHOWN = "holds", "in part", "not shown"
OTHER_WAY, OUT_OF_REACH = "the other way round", "out of reach here"
VERDICTS = (HOLDS, IN_PART, NOT_SHOWN, OTHER_WAY, OUT_OF_REACH)
#: Of units and of specifications that a claim needs on its side, and of specifications that must be clear.
MOST, CLEAR = 0.8, 0.5
#: One-sided p-value of a test that stands for an interval; bases that a claim about bases takes.
TAIL, FEWEST_BASES = 0.025, 3
_COUNT = {3: "three"}
_NAMED = {name: name.capitalize() for name in VERDICTS}

RULE = (
    "Each claim has one number, and a side on which it must lie: above zero, or within the limits that its reason "
    "names. The number is taken of every model (of every data set, where the claim is about training), and what counts "
    "is the mean with its 95 % interval over models (which ends where the number can go no further): words and prompts "
    "of one model are no new observations. Where a chapter has a test that permutes models in place of an interval, p "
    f"below {TAIL:.1%} (one-sided) counts as clear. *{_NAMED[OTHER_WAY]}*: the interval lies wholly on the other side. "
    f"*{_NAMED[NOT_SHOWN]}*: it lies on both. *{_NAMED[HOLDS]}*: it lies wholly on the claimed side, and with it "
    f"{MOST:.0%} of the models or more (all, if the claim is about all) and {MOST:.0%} of the specifications, "
    f"{CLEAR:.0%} of them clear of zero; a claim about bases takes {_COUNT[FEWEST_BASES]} bases. *{_NAMED[IN_PART]}*: "
    f"the interval lies on the claimed side, but one of these fails. *{_NAMED[OUT_OF_REACH]}*: there is no number, or "
    "a single unit, which has no interval. A claim whose chapter has no curve of specifications is judged without. "
    "Where the authors' files hold another measure of a claim than the panel, each reason names its own. Where a panel "
    "has other bases than Gemma and Llama, a claim about these two becomes the question whether its own two differ at "
    "all."
)
_SOURCES = {"released": ("released", "published"), "panel": ("panel",)}
_ABSENT = {
    "released": "the authors' files that this takes are not here",
    "panel": "this panel has no scores for it",
}


@dataclass(frozen=True)
class Support:
    """What stands beside a number: counts of units and of specifications that agree with it, and of bases.

    A count that is not known is None, and asks for nothing.
    """

    agreeing: int | None = None
    specifications: int | None = None
    same_sign: int = 0
    clear: int = 0
    bases: int | None = None

    def shortfalls(self, n: int, every: bool = False) -> tuple[str, ...]:
        """Which conditions of a claim that holds are not met: units, specifications, bases."""
        lacking = []
        if self.agreeing is not None and self.agreeing < (1 if every else MOST) * n:
            lacking.append("units")
        if self.specifications and (
            self.same_sign < MOST * self.specifications or self.clear < CLEAR * self.specifications
        ):
            lacking.append("specifications")
        if self.bases is not None and self.bases < FEWEST_BASES:
            lacking.append("bases")
        return tuple(lacking)


def verdict(
    found: Evidence | None,
    support: Support = Support(),
    *,
    above: float = 0.0,
    below: float = math.inf,
    every: bool = False,
) -> str:
    """The verdict on a claim that its number lies between `above` and `below`; `RULE` says it in words."""
    if found is None:
        return OUT_OF_REACH
    if found.p_value == found.p_value:
        low, high = (1.0, 1.0) if found.p_value < TAIL else (-1.0, -1.0) if found.p_value > 1 - TAIL else (-1.0, 1.0)
        above, below = 0.0, math.inf
    else:
        low, high = found.ci_low, found.ci_high
    if math.isnan(low) or math.isnan(high):
        return OUT_OF_REACH
    if high <= above or low >= below:
        return OTHER_WAY
    if low <= above or high >= below:
        return NOT_SHOWN
    return IN_PART if support.shortfalls(found.n, every) else HOLDS


@dataclass(frozen=True)
class Judgement:
    """A claim, where it was looked at (``released`` or ``panel``), its verdict, why, and what else to know.

    `numbers` are the results rows that the sentence quotes, besides those of chapters.
    """

    claim: Claim
    source: str
    verdict: str
    why: str
    note: str
    found: Evidence | None
    support: Support
    numbers: pd.DataFrame

    @property
    def answer(self) -> str:
        """The finding in few words, with its number: for a reader who knows the claim."""
        if self.verdict == OUT_OF_REACH or self.found is None:
            return self.why
        if self.verdict == NOT_SHOWN:
            return f"Whether {self.claim.so}, {self.found.n} {self.found.unit} cannot tell: {self.number}."
        return f"{_capital(self.claim.not_so if self.verdict == OTHER_WAY else self.claim.so)}: {self.number}."

    @property
    def number(self) -> str:
        """The number with its interval or p-value and its unit, quoted; empty where there is none."""
        number = _number(self.claim, self.numbers)
        scale = self.found.scale if self.found is not None and self.found.scale else self.claim.scale
        return scale.format(number) if number else ""


def gather(directory: Path) -> pd.DataFrame:
    """All rows that chapters wrote into a directory, and what is printed and shipped where a chapter has not run."""
    written = [read_results(directory)] if any(directory.glob("*.csv")) else []
    always = [published()[list(COLUMNS)], *map(released_rows.shipped, released_rows.FINDINGS)]
    table = pd.concat([*written, *always], ignore_index=True).drop_duplicates(list(KEY))
    return table[table["finding"] != FINDING]


def judge(rows: pd.DataFrame, family: Mapping[str, str]) -> list[Judgement]:
    """Every claim against the authors' data and against the panel.

    Parameters
    ----------
    rows
        The results tables of all chapters that there are.
    family
        The base of each model of the panel, in its order.
    """
    about = {"released": {model.code: model.family for model in released_files.MODELS}, "panel": family}
    return [_judge(claim, source, rows, about[source]) for claim in claims() for source in _SOURCES]


def rows(judgements: Sequence[Judgement]) -> pd.DataFrame:
    """The results rows of all judgements: finding ``verdicts``, `other` the claim.

    Rows claims_judged count the claims that got each verdict (or any) and, with *bases* in `other`, those of them that
    are about bases.
    """
    parts = [one.numbers for one in judgements]
    for source in _SOURCES:
        of = [one for one in judgements if one.source == source]
        counts = Results(FINDING)
        for given in (*VERDICTS, "any"):
            same = [one for one in of if given in (one.verdict, "any")]
            of_bases = sum(one.claim.of_bases for one in same)
            counts.add(source, "claims_judged", len(same), other=given, n=len(of))
            counts.add(source, "claims_judged", of_bases, other=f"{given}, bases", n=len(same))
        parts.append(counts.frame())
    return pd.concat(parts, ignore_index=True)


def sentences(rows: pd.DataFrame) -> list[str]:
    """How many claims hold, from `rows`: the authors' data, those about bases among them, and the panel."""
    said = []
    for source, where in {"released": "in the authors' data", "panel": "in this panel"}.items():
        of = rows[rows["source"] == source]
        count: dict[str, Any] = {given: find(of, "claims_judged", other=given) for given in VERDICTS}
        asked, of_bases = (find(of, "claims_judged", other=f"{given}, bases") for given in ("any", HOLDS))
        if of.empty:
            continue
        told = {given: _count(row) for given, row in count.items()}
        said.append(
            f"Of {quote(count[HOLDS], '{:.0f}', 'n')} claims {told[HOLDS]} hold {where} once models are counted and "
            f"not words, and {told[IN_PART]} in part; {told[NOT_SHOWN]} are not shown, {told[OTHER_WAY]} the other way "
            f"round, {told[OUT_OF_REACH]} out of reach."
        )
        if source == "released" and asked and of_bases:
            said.append(f"Of the {quote(asked, '{:.0f}')} claims about bases {_count(of_bases)} hold there.")
    return said


def table(judgements: Sequence[Judgement], published: pd.DataFrame) -> pd.DataFrame:
    """One row a claim: paper, claim, chapter, what is published, and of both sources number, counts, verdict and why.

    Sentences keep their quoted numbers; see `rmnb.findings.quoting.plain`.
    """
    lines: dict[str, dict] = {}
    for one in judgements:
        claim, found, support = one.claim, one.found, one.support
        line = lines.setdefault(
            claim.key,
            {"key": claim.key, "paper": claim.paper, "claim": claim.claim, "chapter": claim.chapter}
            | {"measure": claim.measure, "published": claim.published(published)},
        )
        shares = {"specifications": support.specifications}
        if support.specifications:
            shares |= {"same_sign": support.same_sign, "clear": support.clear}
        numbers = {} if found is None else {"value": found.value, "ci_low": found.ci_low, "ci_high": found.ci_high}
        counts = {} if found is None else {"n": found.n, "unit": found.unit, "agreeing": support.agreeing}
        told = {"verdict": one.verdict, "number": one.number, "answer": one.answer, "why": one.why, "note": one.note}
        for name, value in {**told, **numbers, **counts, **shares}.items():
            line[f"{name}_{one.source}"] = value
    return pd.DataFrame(lines.values())


def as_text(table: pd.DataFrame) -> pd.DataFrame:
    """The table for a file: quoted numbers as plain text."""
    return table.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)


def _judge(claim: Claim, source: str, rows: pd.DataFrame, family: Mapping[str, str]) -> Judgement:
    of, found = rows.iloc[:0], None
    for name in _SOURCES[source]:  # what the authors printed of each model stands in for data that are not released
        of = rows[rows["source"] == name]
        if (found := claim.read(of, family)) is not None:
            found = found.clipped(*claim.within)
            break
    support = _support(claim, found, of, family)
    given = verdict(found, support, above=claim.above, below=claim.below, every=claim.every)
    numbers = Results(FINDING, "".join(of["panel"].iloc[:1]) if source == "panel" else claim.paper)
    if found is not None:
        numbers.add(source, "claim_number", found, other=claim.key)
        if support.agreeing is not None:
            numbers.add(source, "claim_agreeing", support.agreeing, other=claim.key, n=found.n)
        if found.p_value == found.p_value:
            numbers.add(source, "claim_p", found.p_value, other=claim.key, n=found.n)
    note = claim.note(rows[rows["source"] == source])
    why = _why(claim, source, given, found, support, numbers.frame())
    return Judgement(claim, source, given, why, note, found, support, numbers.frame())


def _support(claim: Claim, found: Evidence | None, rows: pd.DataFrame, family: Mapping[str, str]) -> Support:
    if found is None:
        return Support()
    finding, question = claim.specifications
    same, clear = (
        find(rows, f"specifications_{name}", finding=finding, other=question) for name in ("same_sign", "clear")
    )
    counts = {}
    if same is not None and clear is not None:
        counts = {"specifications": int(same["n"]), "same_sign": int(same["value"]), "clear": int(clear["value"])}
    agreeing = sum(claim.above < value < claim.below for value in found.values) if found.values else None
    bases = len(set(family.values())) if claim.of_bases else None
    return Support(agreeing=agreeing, bases=bases, **counts)


def _why(claim: Claim, source: str, given: str, found: Evidence | None, support: Support, numbers: pd.DataFrame) -> str:
    """One sentence: which clause of the rule decided, with its numbers."""
    row = find(numbers, "claim_number")
    if found is None or row is None:
        return f"{_capital(claim.absent.get(source, _ABSENT[source]))}."
    measure = found.measure or claim.measure.format(contrast=found.contrast)
    if given == OUT_OF_REACH:
        return f"In {found.of_one}, which has no interval, {measure} is {quote(row, claim.form)}."
    number = _number(claim, numbers)
    many = f"{quote(row, '{:.0f}', 'n')} {found.unit}"
    if given == NOT_SHOWN:
        return f"Cannot be told from {many}: {measure} is {number}."
    said = f"{_capital(claim.not_so if given == OTHER_WAY else claim.so)}: {measure} is {number} over {many}"
    limits = {
        "units": "this is not so in all of them" if claim.every else "this is not so in most of them",
        "specifications": "other choices often say otherwise",
        "bases": "two bases cannot speak for others",
    }
    lacking = support.shortfalls(found.n, claim.every) if given == IN_PART else ()
    return f"{said}{'; but ' if lacking else ''}{' and '.join(limits[name] for name in lacking)}."


def _count(row: Mapping[str, Any]) -> str:
    return quote(row, "{:.0f}") if row["value"] else "none"


def _number(claim: Claim, numbers: pd.DataFrame) -> str:
    row, p_value = (find(numbers, f"claim_{name}") for name in ("number", "p"))
    if row is None:
        return ""
    return with_interval(row, claim.form) if p_value is None else f"{quote(row)} (p {quote(p_value, '{:.3f}')})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

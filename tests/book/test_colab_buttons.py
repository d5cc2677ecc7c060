"""A built page of a notebook has a button that opens the notebook's source on Colab, once it is known where that is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from notebook_files import ROOT

NOTEBOOK = "01_heterogeneity"
pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path):
    """The book's configuration, a page of prose and one notebook, as the workflow lays them."""
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("_executed", "*.md", "__pycache__"))
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "book/_executed").mkdir()
    shutil.copy(ROOT / f"notebooks/{NOTEBOOK}.ipynb", tmp_path / "book/_executed")
    (tmp_path / "book/index.md").write_text("# Here\n")
    chapter = f"- file: book/_executed/{NOTEBOOK}\n"
    (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nchapters:\n{chapter}")
    return tmp_path


def colab_links(site, **variables) -> list[str]:
    """Where the links to Colab on the notebook's built page lead."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BOOK_", "RMNB_BOOK"))}
    command = [Path(sys.executable).parent / "jupyter-book", "build", "--all", "."]
    build = subprocess.run(command, cwd=site, env=environment | variables, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    page = (site / f"_build/html/book/_executed/{NOTEBOOK}.html").read_text(encoding="utf-8")
    links = [str(link.get("href")) for link in BeautifulSoup(page, "html.parser").find_all("a")]
    return [link for link in links if "colab.research.google.com" in link]


def test_the_button_leads_where_the_sources_are(site):
    opened = "https://colab.research.google.com/github/{}/blob/main/notebooks/" + f"{NOTEBOOK}.ipynb"
    assert colab_links(site) == []
    assert colab_links(site, BOOK_REPOSITORY="https://github.com/a/b/") == [opened.format("a/b")]
    subprocess.run(["git", "init", "-q", site], check=True)
    subprocess.run(["git", "-C", site, "remote", "add", "origin", "git@github.com:c/d.git"], check=True)
    assert colab_links(site) == [opened.format("c/d")]

"""The project's notebooks, small ones for tests, and what an executed one shows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code(source: str, *tags: str, **metadata: Any) -> NotebookNode:
    """A code cell."""
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags), **metadata})


def write_notebook(path: Path, *cells: NotebookNode) -> Path:
    """A notebook of these cells for Python's kernel."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells), metadata={"kernelspec": kernel}), path)
    return path


def shown(cells: Iterable[NotebookNode]) -> str:
    """Text and HTML of the cells' outputs; what they say on standard error has to be hidden from the page."""
    parts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                assert "remove-stderr" in cell.metadata.get("tags", []), output.text
            else:
                parts.append(output.get("text", "") or output.get("data", {}).get("text/html", ""))
    return "".join(parts)

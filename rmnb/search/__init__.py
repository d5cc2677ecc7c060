"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

`optimise` is the door, `run` its module. One idea each: `config` (what to do), `problem` (what is sought, from which
tokens and beginnings), `rewards` and `gradient` (what models give), `methods` (which sequences are tried next),
`journal` (none is scored twice, nothing is lost), `result`.
"""

import importlib

_PUBLIC = {
    "Objective": "rmnb.search.problem",
    "SearchConfig": "rmnb.search.config",
    "SearchResult": "rmnb.search.result",
    "optimise": "rmnb.search.run",
    "search": "rmnb.search.run",
    "read_result": "rmnb.search.result",
    "write_result": "rmnb.search.result",
}
__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    # Lazy, so that the command line can refuse a wrong option without waiting for torch.
    if name in _PUBLIC:
        globals()[name] = getattr(importlib.import_module(_PUBLIC[name]), name)
        return globals()[name]
    raise AttributeError(f"module 'rmnb.search' has no attribute {name!r}")

"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

`optimise` is the door. One idea a module: `config` (what to do), `allowed` (from which tokens), `context` (does a
sequence survive being written as text), `objective` (what is sought) and the one that models give, `rewards`, with
`gradient` and `fluency` (what is differentiated), `starts`, `candidates` and `methods` (which sequences are tried
next), `ledger` (none is scored twice, nothing is lost), `follow`, `run` and `result`; `planted` has rewards whose
optimum is known, `study` the searches of the book.
"""

import importlib

_PUBLIC = {
    "LanguageModel": "rmnb.search.fluency",
    "Objective": "rmnb.search.objective",
    "SearchConfig": "rmnb.search.config",
    "SearchResult": "rmnb.search.result",
    "optimise": "rmnb.search.run",
    "search": "rmnb.search.follow",
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

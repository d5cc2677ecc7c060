"""Look inside reward models one token at a time: score every token of a vocabulary as the answer to a question."""

import importlib

__version__ = "0.1.0"

_PUBLIC = {
    "load_panel": "rmnb.panels",
    "load_reward_model": "rmnb.scoring.loading",
    "score_continuations": "rmnb.scoring.engine",
    "scan_vocabulary": "rmnb.scoring.scanning",
    "load_tables": "rmnb.findings.tables",
    "load_scores": "rmnb.findings.tables",
    "load_rated": "rmnb.findings.tables",
    "InputError": "rmnb.errors",
    "SearchConfig": "rmnb.searching.config",
    "RewardObjective": "rmnb.searching.rewards",
    "search": "rmnb.searching.run",
}
__all__ = [*_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str):
    # Lazy, so that `import rmnb.stats` and `import rmnb.scoring.store` never load torch.
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'rmnb' has no attribute {name!r}")

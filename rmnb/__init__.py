"""Look inside reward models one token at a time: score every token of a vocabulary as the answer to a question."""

import importlib

__version__ = "0.1.0"

_PUBLIC = {
    "load_panel": "rmnb.panels",
    "load_reward_model": "rmnb.scoring.conversations",
    "score_continuations": "rmnb.scoring.engine",
    "scan_vocabulary": "rmnb.scoring.scanning",
    "load_scores": "rmnb.findings.align",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    # Lazy, so that `import rmnb.stats` and `import rmnb.scoring.store` never load torch.
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'rmnb' has no attribute {name!r}")

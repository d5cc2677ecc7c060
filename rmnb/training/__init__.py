"""Training reward models by recipe: pairs, Bradley-Terry and chosen-answer training, and what was measured of it.

Doors: `runs.train_model` (a model of a panel, by its recipe), `recipes`, `evaluation` (held-out accuracy), and
`WatchValues`, a callback for anyone's own training.
"""

__all__ = ["WatchValues"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    # Lazy: recipes and records are read without torch.
    if name == "WatchValues":
        from rmnb.training.watch_values import WatchValues

        return WatchValues
    raise AttributeError(f"module 'rmnb.training' has no attribute {name!r}")

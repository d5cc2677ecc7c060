"""The API pages name a function as it is imported: ``rmnb.stats.kendall_tau``, not ``rmnb.stats.ranks.kendall_tau``."""

import importlib

#: Packages whose ``__init__`` is their surface.
PACKAGES = ("rmnb.stats", "rmnb.search", "rmnb.figures")


def name_as_imported(app) -> None:
    """Let what a package exports say that it comes from there, so that types in signatures lead to its entry."""
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            exported = getattr(package, name)
            if getattr(exported, "__module__", "").startswith(package.__name__):
                exported.__module__ = package.__name__


def setup(app) -> dict:
    """Rename before any page is read."""
    app.connect("builder-inited", name_as_imported)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

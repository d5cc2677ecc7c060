"""The API pages read as the package is used.

A function is named as it is imported (``rmnb.stats.kendall_tau``, not ``rmnb.stats.ranks.kendall_tau``), a type as it
is written (``NDArray[float64]``; an option of a command without the object that makes it one), and attributes that
share a line of a docstring get an entry each.
"""

import importlib
import re

#: Packages whose ``__init__`` is their surface.
PACKAGES = ("rmnb.panels", "rmnb.stats")
_ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[~?(?:typing\.)?tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?(?:numpy\.)?dtype\[")
_OPTION = re.compile(r"~?[\w.]*\bAnnotated\[((?:(?!Annotated\[).)*?), <[^<>]* object at 0x[0-9a-f]+>\]")
_SHARED = re.compile(r"(\w+(?:, \w+)+)( : .*)?")


def name_as_imported(app) -> None:
    """Let what a package exports say that it comes from there, so that types in signatures lead to its entry."""
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            exported = getattr(package, name)
            if getattr(exported, "__module__", "").startswith(package.__name__):
                exported.__module__ = package.__name__


def as_written(text: str | None) -> str | None:
    """A signature or annotation with NumPy's array types under their short name; of an option its type alone."""
    text = _OPTION.sub(r"\1", text) if text else text
    while text and (found := _ARRAY.search(text)):
        end = text.index("]]", found.end())
        text = f"{text[: found.start()]}NDArray[{text[found.end() : end]}]{text[end + 2 :]}"
    return text


def one_each(lines: list[str]) -> list[str]:
    """The lines of a docstring with ``a, b : float`` under *Attributes* written once for `a` and once for `b`."""
    if "Attributes" not in lines:
        return lines
    at = lines.index("Attributes") + 2
    done, waiting = lines[:at], lines[at:]
    while waiting:
        line, *waiting = waiting
        length = next((i for i, each in enumerate(waiting) if each and not each.startswith(" ")), len(waiting))
        shared, (text, waiting) = _SHARED.fullmatch(line), (waiting[:length], waiting[length:])
        for name in shared[1].split(", ") if shared else [None]:
            done += [f"{name}{shared[2] or ''}" if shared else line, *text]
    return done


def setup(app) -> dict:
    """Rename before any page is read; rewrite docstrings before napoleon reads them."""

    def docstring(app, what, name, obj, options, lines) -> None:
        lines[:] = one_each(lines)

    def signature(app, what, name, obj, options, signature, returned):
        return as_written(signature), as_written(returned)

    app.connect("builder-inited", name_as_imported)
    app.connect("autodoc-process-docstring", docstring, priority=400)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

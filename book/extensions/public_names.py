"""The API pages read as the package is used.

A function is named as it is imported (``rmnb.stats.moments``, not ``rmnb.stats.moments.moments``), a type as it
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
    """A signature or annotation with NumPy's array types under their short name; of an option its type alone.

    A dataclass's ``<factory>`` is written as an ellipsis: Sphinx reads no signature that is no Python.
    """
    if not text:
        return text
    text = _OPTION.sub(r"\1", text).replace("<factory>", "...")
    while array := _ARRAY.search(text):
        end = text.index("]]", array.end())
        dtype = text[array.end() : end]
        text = f"{text[: array.start()]}NDArray[{dtype}]{text[end + 2 :]}"
    return text


def one_each(lines: list[str]) -> list[str]:
    """The lines of a docstring with ``a, b : float`` under *Attributes* written once for `a` and once for `b`."""
    if "Attributes" not in lines:
        return lines
    first = lines.index("Attributes") + 2
    entries: list[list[str]] = []  # each the line of its names, then its indented or empty lines
    for line in lines[first:]:
        if entries and (not line or line.startswith(" ")):
            entries[-1].append(line)
        else:
            entries.append([line])
    rewritten = lines[:first]
    for head, *text in entries:
        shared = _SHARED.fullmatch(head)
        if not shared:
            rewritten += [head, *text]
            continue
        for name in shared[1].split(", "):
            rewritten += [name + (shared[2] or ""), *text]
    return rewritten


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

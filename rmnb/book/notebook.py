"""Run a notebook through papermill with parameters whose names and types are checked before anything starts.

Papermill itself only warns of a parameter that the notebook does not have, and accepts a value of any type: a misspelt
name would mean an hour of computing the wrong thing.
"""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from rmnb.book.display import inline
from rmnb.errors import InputError, first_line
from rmnb.files import atomic_path
from rmnb.panels import load_panel
from rmnb.stats.estimate import check_count

if TYPE_CHECKING:
    import papermill

_TYPES = {kind.__name__: kind for kind in (str, int, float, bool)}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_RESULTS = "RMNB_RESULTS"
_SHOWN = 15  # lines of a cell that failed
_OTHER_PANEL = """
```{{note}}
Tables, figures and verdicts on this page are of the panel *{}*. Its sentences were written about the demo panel.
```
"""


def results_directory() -> Path:
    """Where a notebook's results table goes: ``results`` beside the output of `run_notebook`, else where it runs.

    So only what writes the book's pages writes the book's results, whatever is run elsewhere or by hand.
    """
    return Path(os.environ.get(_RESULTS, "results"))


@contextmanager
def _inherited(**settings: str) -> Iterator[None]:
    """Environment variables of the kernels that start here."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _kind(name: str, declared: dict) -> type:
    """The type of a parameter: its annotation's, else that of its default."""
    annotated = _TYPES.get(declared["inferred_type_name"])
    if annotated:
        return annotated
    try:
        return type(ast.literal_eval(declared["default"]))
    except (ValueError, SyntaxError):
        raise InputError(
            f"the notebook's parameter {name!r} has neither a plain default nor an annotation of {', '.join(_TYPES)}"
        ) from None


def check_parameters(notebook: Path, parameters: Mapping[str, object]) -> dict[str, object]:
    """The parameters, each of the type that the notebook's ``parameters`` cell gives it.

    Parameters
    ----------
    notebook
        An ``.ipynb`` with a cell tagged ``parameters``.
    parameters
        Values by name. Text is read as the parameter's type, so that ``{"seed": "3"}`` from a command line is 3.

    Raises
    ------
    InputError
        No such notebook, not a notebook, an unknown name, a value of another type; fewer than one of what is
        counted (``n_permutations``), unless none is the default.
    """
    import papermill

    try:
        declared = papermill.inspect_notebook(str(notebook))
    except Exception as error:  # nbformat raises several kinds
        raise InputError(f"{notebook} is not a readable notebook: {first_line(error)}") from error
    checked = {}
    for name, value in parameters.items():
        if name not in declared:
            takes = ", ".join(declared) or "none"
            raise InputError(f"{notebook.name} has no parameter {name!r}; its parameters are: {takes}")
        kind = _kind(name, declared[name])
        try:
            checked[name] = TypeAdapter(kind).validate_strings(str(value))
        except ValidationError:
            raise InputError(
                f"parameter {name!r} of {notebook.name} must be {kind.__name__} (such as {declared[name]['default']}), "
                f"not {value!r}"
            ) from None
        if kind is int and name.startswith("n_") and declared[name]["default"] != "0":
            check_count(checked[name], f"parameter {name!r} of {notebook.name}")
    return checked


def _failure(error: "papermill.PapermillExecutionError") -> str:
    """What a terminal shows of a notebook that failed: the cell's first lines, where in the code, the error."""
    source = error.source.splitlines()
    report = [f"cell {error.cell_index + 1} failed"]
    report += [f"    {line}" for line in source[:_SHOWN]]
    if len(source) > _SHOWN:
        report.append(f"    … {len(source) - _SHOWN} more lines")
    traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    places = re.findall(r"^File (\S+:\d+), in (\w+)", traceback, re.MULTILINE)
    if places:
        place, function = places[-1]
        report.append(f"in {function}, {place}")
    report.append(f"{error.ename}: {error.evalue}")
    return "\n".join(report)


def run_notebook(notebook: Path, output: Path, parameters: Mapping[str, object] | None = None) -> Path:
    """Execute a notebook with the given parameters and write it, outputs included, to `output`.

    The output appears when every cell has run; a failing notebook leaves no output. Files that its cells wrote stay.

    Parameters
    ----------
    notebook, output
        Paths of the source and of the executed copy; the kernel runs in the current directory.
    parameters
        See `check_parameters`; what is not given keeps its default.

    Returns
    -------
    Path
        `output`.

    Raises
    ------
    InputError
        A wrong parameter, an output that cannot be written, or an error inside the notebook: its InputError in one
        line, another with the first lines of the cell.
    LackError
        The notebook says that the panel lacks what it needs.
    """
    import nbformat
    import papermill

    checked = check_parameters(notebook, parameters or {})
    output = Path(output)
    # A kernel does not know the path of its output.
    with atomic_path(output) as temporary, _inherited(**{_RESULTS: str(output.parent / "results")}):
        try:
            executed = papermill.execute_notebook(
                str(notebook), None, parameters=checked, progress_bar=False, extra_arguments=["--log-level=CRITICAL"]
            )
        except papermill.PapermillExecutionError as error:
            kinds = {kind.__name__: kind for kind in (InputError, *InputError.__subclasses__())}
            reason = error.evalue if error.ename in kinds else _failure(error)
            raise kinds.get(error.ename, InputError)(f"{Path(notebook).name}: {reason}") from error
        for cell in executed.cells:
            if "injected-parameters" in cell.metadata.get("tags", []):
                cell.metadata["tags"].append("remove-input")  # a page begins with its result
            if "outputs" in cell:  # a widget, such as a progress bar, would make the page fetch scripts
                cell.outputs = [result for result in cell.outputs if _WIDGET not in result.get("data", {})]
        # The cell for Colab has no address before the project has one.
        executed.cells = [cell for cell in executed.cells if "github.com/OWNER/" not in cell.source]
        executed.metadata.pop("widgets", None)
        if (panel := str(checked.get("panel", "demo"))) != "demo":
            note = _OTHER_PANEL.format(inline(load_panel(panel).title))
            heading, _, text = executed.cells[0].source.partition("\n")
            executed.cells[0].source = f"{heading}\n{note}{text}"
        nbformat.write(executed, temporary)
    return output

"""The command ``rmnb``: ``rmnb --help`` lists what it can do."""

import importlib.metadata
import logging
import re
from collections.abc import Callable
from typing import Annotated

from typer import Exit, Option, Typer, echo

from rmnb import __version__, plans
from rmnb.cli import book, report, scan, score
from rmnb.cli.options import fail, flat
from rmnb.errors import InputError, first_line

app = Typer(
    no_args_is_help=True,
    help="Look inside reward models one token at a time.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    score.check, score.score, scan.scan, scan.search, score.trace, report.report, report.compare, scan.plan,
):  # fmt: skip
    app.command()(flat(command))
app.add_typer(book.app, name="book")


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, Option("--version", help="Show the version.")] = False) -> None:
    if show:
        echo(f"rmnb {__version__}")
        raise Exit


_DISTRIBUTIONS = {"sklearn": "scikit-learn", "fontTools": "fonttools", "bs4": "beautifulsoup4", "IPython": "ipython"}


def _installed_by(package: str) -> str:
    """What brings a missing package: the first extra of rmnb that asks for it, else the package itself."""
    distribution = _DISTRIBUTIONS.get(package, package)
    for requirement in importlib.metadata.requires("rmnb") or ():
        if extra := re.fullmatch(rf"{distribution}(?![\w.-]).*extra == .(\w+).", requirement):
            return f"rmnb[{extra[1]}]"
    return distribution


def main(command: Callable[[], None] = app) -> None:
    """Run a command line: bad input is one line on stderr and exit code 2; Typer explains a wrong option itself."""
    logging.basicConfig(format="rmnb: %(message)s", level=logging.WARNING)
    # What cannot be fetched in the end is said by whoever needs it.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        command()
    except InputError as error:
        fail(str(error), 2)
    except OSError as error:  # a file that may not be read, a link that leads to itself
        fail(f"{error.filename or 'the system'}: {error.strerror or first_line(error)}", 2)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        fail(f"this needs {package}, which is not installed: pip install '{_installed_by(package)}'", 2)
    except SystemExit as end:
        if end.code != 130:  # what Typer makes of Ctrl-C: the exception itself does not come through
            raise
        fail("interrupted" + ("; the same command goes on where it stopped" if plans.in_progress else ""), 130)

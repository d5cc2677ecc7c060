"""The command ``rmnb``: ``rmnb --help`` lists what it can do."""

import logging
import sys

import typer

from rmnb.cli import data
from rmnb.cli.audit import audit
from rmnb.cli.check import check
from rmnb.cli.compare import compare
from rmnb.cli.explorer import explorer
from rmnb.cli.logprobs import logprobs
from rmnb.cli.models import models
from rmnb.cli.noise import noise
from rmnb.cli.plan import plan
from rmnb.cli.report import report
from rmnb.cli.run import run
from rmnb.cli.scan import scan
from rmnb.cli.score import score
from rmnb.cli.score_list import score_list
from rmnb.cli.search import search
from rmnb.cli.trace import trace
from rmnb.cli.train import train
from rmnb.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Look inside reward models one token at a time.")
for command in (
    models,
    check,
    report,
    compare,
    score,
    trace,
    plan,
    scan,
    score_list,
    search,
    logprobs,
    noise,
    audit,
    explorer,
    train,
    run,
):
    app.command()(command)
app.add_typer(data.app, name="data")

_INTERRUPTED = 130  # what Typer makes of Ctrl-C: the exception itself does not come through


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2."""
    logging.basicConfig(format="rmnb: %(message)s", level=logging.WARNING)
    try:
        app()
    except InputError as error:
        print(f"rmnb: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            print("rmnb: interrupted; the same command goes on where it stopped", file=sys.stderr)
        raise

"""Running a command of rmnb in this process, as the console script does."""

import sys

import pytest

from rmnb.cli.main import main


def run(monkeypatch, *words) -> int:
    """The exit code of ``rmnb`` with these words; what it says is on stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["rmnb", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code

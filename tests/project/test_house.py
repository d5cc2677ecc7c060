"""The house stands: a room imports only from rooms below it, and what reads no weights loads no torch."""

import subprocess
import sys
from pathlib import Path

from notebook_files import ROOT


def test_every_room_is_on_a_floor_and_no_import_runs_upwards():
    # A process of its own: import-linter disables every logger that is there.
    done = subprocess.run([Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_what_reads_no_weights_loads_no_torch():
    findings = [f"rmnb.findings.{path.stem}" for path in (ROOT / "rmnb/findings").glob("[a-z]*.py")]
    modules = ", ".join(["rmnb", "rmnb.stats", "rmnb.cli.main", *findings])
    code = f"import sys, {modules}; print({{'torch', 'transformers'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"

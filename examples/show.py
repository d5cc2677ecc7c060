"""Run the commands of the book's page on your own model, and write what they print to ``examples/output``.

``python examples/show.py [NAME …]`` runs them again, all of them or those named; the page includes the files. Exit
codes other than 0 are shown as a shell shows them. SHOW_IN names a directory to run in that is kept.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "examples" / "output"
COMMANDS = {
    "check": ["rmnb check smollm2-values"],
    "score": [
        'rmnb score smollm2-values love war --prompt "What, in one word, is the greatest thing ever?"',
        "rmnb score smollm2-values love --prompt greatest --json",
    ],
    "pairs": [
        "head -n 1 pairs.jsonl",
        "rmnb score smollm2-values pairs.jsonl --by subset --out rewards.parquet",
    ],
    "trace": ['rmnb trace smollm2-values "Love, not war." --prompt greatest'],
    "plan": ["rmnb plan smollm2-values gemma3-values --device l4"],
    "scan": ["rmnb scan smollm2-values --prompt greatest --first 500 --out greatest.parquet"],
    "report": ["rmnb report smollm2-values --quick --out values", "ls values"],
    "compare": ['rmnb compare smollm2-mixed smollm2-mixed-seed2 --fail-if "|change framing_kendall| > 0.5"'],
    "broken": ['rmnb compare smollm2-mixed gemma3-mixed --fail-if "identity_gap > 0.3" | tail -n 6'],
    "refused": [
        'rmnb compare smollm2-mixed gemma3-mixed --fail-if "niceness > 0.3"',
        "rmnb score smollm2-values pairs.jsonl --by topic",
    ],
    "against": [
        "python examples/elsewhere.py right.jsonl",
        "rmnb check smollm2-values --against right.jsonl | grep against",
        "python examples/elsewhere.py wrong.jsonl --batched",
        "rmnb check smollm2-values --against wrong.jsonl | grep against",
    ],
    "jsonl": ["head -n 3 right.jsonl"],
    "watch": [
        "python examples/watch.py | tail -n 5",
        "rmnb score last-night/checkpoint-12 love war --prompt greatest",
    ],
}


def transcript(command: str, directory: Path) -> str:
    """A command and what it prints, as a terminal shows both; SystemExit where it fails without a message of rmnb."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "100", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=directory, env=environment, capture_output=True, text=True
    )
    messages = [line for line in result.stderr.splitlines() if line.startswith("rmnb: ")]
    if result.returncode and not (messages or "against" in command):
        raise SystemExit(f"{command}\n{result.stderr[-3000:]}")
    lines = [f"$ {command}", *result.stdout.splitlines(), *messages]
    if result.returncode:
        lines += ["$ echo $?", str(result.returncode)]
    return "\n".join(lines) + "\n"


def main() -> None:
    names = sys.argv[1:] or list(COMMANDS)
    record = OUTPUT / "provenance.json"
    OUTPUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        directory = Path(os.environ.get("SHOW_IN", work))
        if not (directory / "examples").exists():
            (directory / "examples").symlink_to(ROOT / "examples")
            (directory / "pairs.jsonl").symlink_to(ROOT / "examples" / "pairs.jsonl")
        for name in names:
            began = time.monotonic()
            text = "\n".join(transcript(command, directory) for command in COMMANDS[name])
            (OUTPUT / f"{name}.txt").write_text(text, encoding="utf-8")
            provenance = json.loads(record.read_text()) if record.exists() else {}
            packages = ("rmnb", "torch", "transformers", "trl")
            versions = {package: importlib.metadata.version(package) for package in packages}
            provenance[name] = {
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(time.monotonic() - began, 1),
                "versions": versions | {"python": platform.python_version()},
            }
            record.write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
            print(text)


if __name__ == "__main__":
    main()

"""Try every estimator on planted rewards and write how often it is right: ``data/simulations/coverage.csv``.

Its provenance lies beside it as JSON. Run as ``python workflow/coverage.py``.
"""

import datetime
import platform
from importlib.metadata import version

import typer

import rmnb
from rmnb.files import atomic_path, data_dir, sha256, write_json
from rmnb.planted.study import study

PACKAGES = ("numpy", "scipy", "statsmodels", "scikit-learn", "pandas", "wordfreq", "afinn")


def main(n_simulations: int = 1000, seed: int = 0) -> None:
    """Try, and write table and provenance."""
    table = study(n_simulations, seed)
    file = data_dir() / "simulations" / "coverage.csv"
    with atomic_path(file) as path:
        table.to_csv(path, index=False, float_format="%.6g")
    provenance = {
        "command": f"python workflow/coverage.py --n-simulations {n_simulations} --seed {seed}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "rmnb": rmnb.__version__,
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "sha256": sha256(file),
    }
    write_json(file.with_suffix(".json"), provenance)


if __name__ == "__main__":
    typer.run(main)

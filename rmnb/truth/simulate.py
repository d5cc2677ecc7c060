"""The simulation study as a command: ``python -m rmnb.truth.simulate`` writes data/simulations/coverage.csv."""

import datetime
import json
import platform
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from tqdm import tqdm

import rmnb
from rmnb.errors import InputError
from rmnb.files import CLONE, atomic_path, data_dir, sha256
from rmnb.truth.simulation import BAND, LEVEL, Case, run
from rmnb.truth.simulation_models import CASES as MODEL_CASES
from rmnb.truth.simulation_words import CASES as WORD_CASES

CASES: tuple[Case, ...] = (*WORD_CASES, *MODEL_CASES)
STUDY = data_dir() / "simulations" / "coverage.csv"
PACKAGES = ("numpy", "scipy", "statsmodels", "scikit-learn", "pandas", "wordfreq", "afinn")


def study(n_simulations: int, seed: int = 0, cases: Iterable[Case] = CASES, progress: bool = False) -> pd.DataFrame:
    """A table of what `simulation.run` says of each case; slow ones are tried on two fifths of the simulations."""
    shown = tqdm(list(cases), disable=not progress, desc="cases")
    return pd.DataFrame(
        [run(case, max(1, n_simulations * 2 // 5) if case.slow else n_simulations, seed) for case in shown]
    )


def read_study(path: Path = STUDY) -> pd.DataFrame:
    """The shipped study; origin is "" where no paper used the estimator. InputError where it is not here."""
    if not path.exists():
        raise InputError(f"no study at {path}: {CLONE}")
    return pd.read_csv(path, keep_default_na=False, na_values=["nan", ""], dtype={"origin": str}).fillna({"origin": ""})


def provenance(n_simulations: int, seed: int, seconds: float, table: Path) -> dict[str, Any]:
    """What a reader needs to know of a study: how it was made, with what, when, and the hash of its table."""
    return {
        "command": f"python -m rmnb.truth.simulate --n-simulations {n_simulations} --seed {seed}",
        "seed": seed,
        "n_simulations": n_simulations,
        "level": LEVEL,
        "bands": BAND,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds),
        "rmnb": rmnb.__version__,
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "sha256": sha256(table),
    }


def main(
    n_simulations: Annotated[
        int, typer.Option(min=1, help="Data sets a case; two fifths of them where one takes long.")
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of all of them.")] = 0,
    out: Annotated[Path, typer.Option(help="The table; its provenance is written beside it as JSON.")] = STUDY,
) -> None:
    """Try every estimator on planted truth and write how often it is right."""
    started = time.monotonic()
    table = study(n_simulations, seed, progress=True)
    with atomic_path(out) as path:
        table.to_csv(path, index=False, float_format="%.6g")
    with atomic_path(out.with_suffix(".json")) as path:
        seconds = time.monotonic() - started
        path.write_text(json.dumps(provenance(n_simulations, seed, seconds, out), indent=1) + "\n", encoding="utf-8")
    wrong = table.loc[table["holds"] & ~table["within_band"], "name"]
    if len(wrong):
        typer.echo(f"outside their band: {', '.join(wrong)}", err=True)


if __name__ == "__main__":
    typer.run(main)

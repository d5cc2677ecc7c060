"""How often does a gate in seeds fail without a change, and how often does it find one?

Releases are simulated with the noise of the demo panel's five pairs of seeds: a seed moves all numbers together, by a
normal mixture of what the five pairs differ by. Each release has two models of one training, without a change and with
one of six standard deviations between seeds in one number, and some pairs of seeds of that training. In the world
*other seeds* the five pairs that the gate takes for its prior are drawn anew for each release, so that it has not seen
the noise that it is tried on; in *twice the noise* the training is twice as noisy as the prior says.

Run as ``python benchmarks/gates.py --out data/demo/noise/gates.csv``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from rmnb import limits
from rmnb.files import atomic_path
from rmnb.report import seeds

CONDITIONS = (
    "|change framing_kendall| > seeds",
    "|change identity_gap[all axes]| > seeds",
    "|change identity_gap[both]| > seeds",
    "|change identity_gap| > seeds",
)
WORLDS = ("as known", "other seeds", "twice the noise")
PAIRS = (1, 2, 4)
CHANGE = 6.0  # of a number's standard deviations between seeds


def mixtures(known: pd.DataFrame, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of simulated models (*shape, numbers), with the covariance of half the differences' squares."""
    return rng.normal(size=(*shape, known.shape[1])) @ known.to_numpy().T / np.sqrt(2 * known.shape[1])


def releases(
    world: str, pairs: int, count: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, pd.Series, pd.Series]]:
    """The changes of each release (numbers,), the standard deviation of their noise, and its degrees of freedom."""
    known = seeds.differences().dropna()
    prior = seeds.of_panel()
    for _ in range(count):
        if world == "other seeds":
            first, second = mixtures(known, (2, known.shape[1]), rng)
            prior = seeds.prior_of(pd.DataFrame((first - second).T, known.index))
        a, b, *others = (2 if world == "twice the noise" else 1) * mixtures(known, (2 + 2 * pairs,), rng)
        differences = np.array(others[::2]) - np.array(others[1::2])
        variance = pd.Series((differences**2).mean(axis=0) / 2, known.index)
        moderated, df = seeds.moderate(variance, pairs, prior)
        yield b - a, np.sqrt(2 * moderated), df


def shares(world: str, pairs: int, count: int) -> pd.DataFrame:
    """For each condition, in which share of releases it fails without a change, and finds a changed number."""
    known = seeds.differences().dropna()
    spread = np.sqrt((known**2).mean(axis=1) / 2).to_numpy() * (2 if world == "twice the noise" else 1)
    parsed = [limits.parse(text, {*known.index.get_level_values("name")}) for text in CONDITIONS]
    table = known.index.to_frame(index=False)
    named = [limits.rows_of(limit, table).index.to_numpy() for limit in parsed]
    failed, found, df = np.zeros((3, len(parsed)))
    rng = np.random.default_rng([WORLDS.index(world), pairs])
    for number, (change, noise, degrees) in enumerate(releases(world, pairs, count, rng)):
        for place, rows in enumerate(named):
            df[place] += degrees.iloc[rows[0]] / count
            strengths = (np.abs(change) / noise.to_numpy())[rows]
            failed[place] += strengths.max() > limits.critical(strengths, degrees.iloc[rows[0]], absolute=True)
            changed = number % len(rows)  # one number after the other
            moved = change[rows[changed]] + CHANGE * spread[rows[changed]]
            strengths[changed] = abs(moved) / noise.iloc[rows[changed]]
            found[place] += strengths[changed] > limits.critical(strengths, degrees.iloc[rows[0]], absolute=True)
    return pd.DataFrame(
        {
            "condition": CONDITIONS,
            "numbers": [len(rows) for rows in named],
            "pairs of seeds": pairs,
            "degrees of freedom": df,
            f"fails, {world}": failed / count,
            f"finds, {world}": found / count,
        }
    )


def main(out: Annotated[Path, typer.Option()], releases: int = 2000) -> None:
    """Write the table."""
    tables = []
    for world in WORLDS:
        tables.append(pd.concat([shares(world, pairs, releases) for pairs in PAIRS], ignore_index=True))
    columns = [table.iloc[:, -2:] for table in tables[1:]]
    table = pd.concat([tables[0], *columns], axis=1).sort_values("numbers", kind="stable")
    with atomic_path(out) as path:
        table.to_csv(path, index=False, float_format="%.3g")
    print(table.to_string(index=False))


if __name__ == "__main__":
    typer.run(main)

"""The results rows of the authors' data, the same on every machine: computed where their files can be reached, shipped.

The shipped tables are ``data/released/<finding>.csv``; ``provenance.json`` beside them names the files that each was
computed from by git blob id. Both are written by ``python -m rmnb.findings.released_rows``. They hold numbers: a thing
that people voted on goes by its place in the authors' list, unless a paper names it.
"""

import functools
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.files import atomic_path, data_dir
from rmnb.findings import asymmetry, framing, heterogeneity, people, things
from rmnb.findings import released_measures as released
from rmnb.findings.results import KEY, Results, published, read_table

TOLERANCE = 1e-6

_ELO = ("facct2025/data/elo/",)
_RUNS = tuple(f"iclr2026/data/reward_model_training/rank_results_{run}.csv" for run, _ in released_files.RUNS.values())
_NOUNS, _MORALS = (f"iclr2026/data/reward_model_scores/dict_{name}/" for name in ("big2_nouns", "MFD_20"))
_BIG_TWO, _FOUNDATIONS = (f"iclr2026/data/corpora/{name}" for name in ("dict_big2_", "moral-foundations"))
#: For each finding what computes its rows, and how the names of the files begin that this needs.
_COMPUTED: dict[str, tuple[tuple[Callable[[], pd.DataFrame], ...], tuple[str, ...]]] = {
    "frequency": ((), ()),
    "identity": ((released.groups,), _ELO),
    "elo": ((released.elo,), _ELO),
    "agency_communion": (
        (released.dictionaries, functools.partial(released.bases, "big_two"), released.training_medians),
        (_BIG_TWO, _FOUNDATIONS, _NOUNS, *_RUNS),
    ),
    "moral_foundations": ((functools.partial(released.bases, "moral_foundations"),), (_FOUNDATIONS, _MORALS)),
    "training": ((released.training_runs,), _RUNS),
    "released": ((released.file_counts,), (_FOUNDATIONS, lexicons.BNC, released.SHARED_TOKENS)),
}
FINDINGS = tuple(_COMPUTED)
#: The same of the chapters whose numbers are tidy frames, which `rmnb.findings.released.load_released` reads.
CHAPTERS: dict[str, tuple[Callable[[], pd.DataFrame], tuple[str, ...]]] = {
    "heterogeneity": (heterogeneity.released, (heterogeneity.SHARED_TOKENS, heterogeneity.TABLE_3)),
    "asymmetry": (asymmetry.released, (_MORALS,)),
    "framing": (framing.released, (_NOUNS, _MORALS)),
}


def shipped(finding: str) -> pd.DataFrame:
    """The rows of ``data/released/<finding>.csv``."""
    return read_table(data_dir() / "released" / f"{finding}.csv")


def computed(finding: str) -> pd.DataFrame:
    """The same rows from the authors' files; UnreachableError where these cannot be had.

    Rows that need the authors' full vocabularies are there where all ten are on this machine: `rmnb book data pull`.
    """
    parts = [part() for part in _COMPUTED[finding][0]]
    if tables := released_files.vocabularies():
        parts.append(released.of_vocabularies(finding, tables))
    rows = Results(finding)
    if parts:  # the size of the vocabulary comes out of two files
        rows.extend(pd.concat(parts).drop_duplicates(list(KEY)))
    return rows.frame()


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``item 17`` for the names of things, but for those that a paper names."""
    named = table["statistic"].isin(released.BY_NAME) & ~table["other"].isin(published()["other"])
    if not named.any():
        return table
    places = {name: f"item {place}" for place, name in enumerate(preferences.elo_items()["name"])}
    return table.assign(other=table["other"].mask(named, table["other"].map(places)))


def without_names(items: pd.DataFrame) -> pd.DataFrame:
    """What is shipped of the things: their place, votes and facts; `word` is a common word's place by frequency.

    `rmnb.data.released_files.human_elo` reads it.
    """
    facts = things.facts(items)
    place = {word: place for place, word in enumerate(lexicons.frequent_words(10_000))}
    told = pd.DataFrame(
        {
            "item": np.arange(len(items)),
            "name": items["name"].where(items["name"].isin(published()["other"]), ""),
            "word": items["name"].str.casefold().where(facts["familiar"]).map(place).fillna(-1).astype(int),
        }
    )
    valence = facts["valence"].astype("Int64")
    flags = facts.drop(columns="valence").astype(int)
    return pd.concat([told, items[["elo_score", "elo_matches"]], valence, flags], axis=1)


def compare(one: pd.DataFrame, other: pd.DataFrame) -> list[str]:
    """The rows of one table alone and those whose numbers are further apart than `TOLERANCE`, by their key."""
    both = one.merge(other, "outer", on=list(KEY), indicator=True, suffixes=("", "_other"))
    far = both["_merge"] != "both"
    for field in ("value", "ci_low", "ci_high", "n"):
        pair = both[[field, f"{field}_other"]].astype(float).to_numpy()
        far |= ~np.isclose(pair[:, 0], pair[:, 1], rtol=0, atol=TOLERANCE, equal_nan=True)
    return [" ".join(filter(None, key)) for key in both.loc[far, list(KEY)].itertuples(index=False)]


def content_ids(starts: tuple[str, ...]) -> dict[str, str]:
    """The authors' files whose names start so: name → git blob id."""
    return {name: pin.blob_id for name, pin in sources.pins().items() if starts and name.startswith(starts)}


def write(directory: Path) -> None:
    """Compute all that is shipped and write it with its provenance; UnreachableError where a file cannot be had."""
    tables = {f"{finding}.csv": numbered(computed(finding)) for finding in FINDINGS}
    tables |= {f"{chapter}.csv": compute() for chapter, (compute, _) in CHAPTERS.items()}
    tables |= {"human_elo.csv": without_names(preferences.elo_items()), "bnc.csv": lexicons.numbered_bnc()}
    scores = [released_files.thing_scores(question).add_prefix(f"{question} ") for question in people.QUESTIONS]
    tables["thing_scores.parquet"] = pd.concat(scores, axis=1).astype("float32")
    needs = {f"{finding}.csv": starts for finding, (_, starts) in (_COMPUTED | CHAPTERS).items()} | {
        "bnc.csv": (lexicons.BNC,)
    }
    packages = ("rmnb", "numpy", "pandas", "scipy", "statsmodels", "wordfreq")
    record = {
        "command": "python -m rmnb.findings.released_rows",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": {name: version(name) for name in packages},
        "tables": {name: content_ids(needs.get(name, _ELO)) for name in tables},
    }
    for name, table in tables.items():
        with atomic_path(directory / name) as part:
            if name.endswith(".csv"):
                table.to_csv(part, index=False)
            else:
                table.to_parquet(part, compression="zstd", index=False)
    with atomic_path(directory / "provenance.json") as part:
        part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else data_dir() / "released")

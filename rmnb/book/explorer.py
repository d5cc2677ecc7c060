"""The token explorer's data: every scan of a panel as small static files, which a page reads as it needs them.

A *set* is a list of tokens with the models that can be compared on it: the tokens that all models of the panel share,
and each vocabulary with the models that have it. Ranks are always those in a model's whole vocabulary; 1 is best, equal
rewards share the better rank. All numbers are int32, written byte by byte (all lowest bytes, then all second ones, …)
and compressed with gzip, which a browser undoes by itself (as JSON, the demo panel's would take a quarter more):

- ``SET/tokens.bin``: JSON with ``tokens``; ``kinds``, one digit a token; ``shown``, what a page shows of a token that
  is not just its characters and blanks; ``hidden``, the rows of tokens to be shown only after a click.
- ``SET/scan-NUMBER.bin``, of a model and a prompt: the rank of each row; then, for the rows in the order of their
  ranks, the steps of the reward in units of 10^-decimals, the first from zero.
- ``SET/rows-BLOCK.bin``: for each scan in the order of the manifest, the ranks of a block of rows, then their rewards.
- ``manifest.json``: what there is. It alone is not compressed.
"""

import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from rmnb.data.offensive import is_offensive
from rmnb.errors import InputError
from rmnb.files import write_json
from rmnb.findings.tables import by_token
from rmnb.models.vocabulary import KINDS
from rmnb.panels import Panel, load_panel
from rmnb.scoring.store import content_sha256, read_scores, scores_path
from rmnb.visible import BLANK, visible

BLOCK = 512  # rows of one file that holds everything about them
_DIGITS = 3  # decimals of a reward in standard deviations of its scan


@dataclass(frozen=True)
class Scan:
    """One model under one prompt: ranks and rewards, (ids,) int32 each, the rewards in units of 10^-decimals."""

    model: str
    prompt: str
    rank: NDArray[np.int32]
    reward: NDArray[np.int32]
    decimals: int


@dataclass(frozen=True)
class TokenSet:
    """Tokens (DataFrame: token, kind; one row each) and the scans of the models that have them."""

    key: str
    title: str
    words: pd.DataFrame
    scans: list[Scan]


def ranked(model: str, prompt: str, scores: NDArray[np.float32]) -> Scan:
    """Ranks and rounded rewards of one scan, from its scores (ids,) float32."""
    spread = float(scores.std()) or 1.0
    most = np.floor(np.log10(2**30 / max(1, np.abs(scores).max())))  # any two rewards differ by an int32
    decimals = int(np.clip(_DIGITS - np.floor(np.log10(spread)), 0, most))
    rank = rankdata(-scores.astype(np.float64), method="min").astype(np.int32)
    reward = np.round(scores.astype(np.float64) * 10**decimals).astype(np.int32)
    return Scan(model, prompt, rank, reward, decimals)


def token_sets(panel: Panel) -> list[TokenSet]:
    """The shared tokens (if there are two vocabularies or more, and they share any), then each vocabulary.

    Raises
    ------
    InputError
        Nothing of the panel has been scanned, or a file is damaged.
    """
    words: dict[str, pd.DataFrame] = {}
    scans: dict[str, list[Scan]] = {}
    for model in panel.model_names:
        for prompt in panel.all_prompts:
            if not scores_path(panel, model, prompt.key).exists():
                continue
            frame = read_scores(panel, model, prompt.key)
            key = content_sha256(frame[["token", "kind"]])
            words.setdefault(key, frame[["token", "kind"]])
            scans.setdefault(key, []).append(ranked(model, prompt.key, frame["score"].to_numpy()))
    if not scans:
        raise InputError(f"panel {panel.name!r} has no scores to explore: run `rmnb scan` first")
    own = []
    for key, of_vocabulary in scans.items():
        models = [panel.model(scan.model) for scan in of_vocabulary]
        title = ", ".join(dict.fromkeys(model.family or model.name for model in models))
        own.append(TokenSet(str(len(own)), title, words[key], of_vocabulary))
    return [*_shared(own), *own] if len(own) > 1 else own


def _shared(sets: list[TokenSet]) -> Iterator[TokenSet]:
    places = []
    for tokens in sets:
        numbered = pd.DataFrame({tokens.key: range(len(tokens.words))})
        places.append(by_token(tokens.words, numbered))
    rows = pd.concat(places, axis=1, join="inner")
    if rows.empty:
        return
    first = sets[0].words.iloc[rows[sets[0].key]].reset_index(drop=True)
    scans = []
    for tokens in sets:
        ids = rows[tokens.key].to_numpy()
        scans += [replace(scan, rank=scan.rank[ids], reward=scan.reward[ids]) for scan in tokens.scans]
    yield TokenSet("shared", "shared by all models", first, scans)


def write_explorer(panel: str | Path | Panel, directory: Path) -> Path:
    """Write all files for a panel into `directory`, in place of an explorer's there; returns the manifest's path.

    Raises
    ------
    InputError
        Nothing of the panel has been scanned, a file is damaged, or the directory holds something else.
    """
    panel = load_panel(panel)
    sets = token_sets(panel)
    for path in directory.glob("*"):
        if path.name != "manifest.json" and not (path / "tokens.bin").exists():
            raise InputError(f"{path} is no part of an explorer: choose an empty directory", path)
    shutil.rmtree(directory, ignore_errors=True)
    described = [_write_set(tokens, directory / tokens.key) for tokens in sets]
    scans = [scan for tokens in sets if tokens.key != "shared" for scan in tokens.scans]
    sizes = {scan.model: len(scan.rank) for scan in scans}
    used = {scan.prompt for scan in scans}
    prompts = [prompt for prompt in panel.all_prompts if prompt.key in used]
    manifest = {
        "panel": panel.title,
        "block": BLOCK,
        "kinds": [kind.replace("_", " ") for kind in KINDS],
        "prompts": [prompt.model_dump(include={"key", "text", "framing"}) for prompt in prompts],
        "models": [{"name": name, "tokens": sizes[name]} for name in panel.model_names if name in sizes],
        "sets": described,
    }
    write_json(directory / "manifest.json", manifest)
    return directory / "manifest.json"


def packed(values: NDArray[np.int32]) -> bytes:
    """Numbers (n,) byte by byte, compressed: neighbours then resemble each other, and small numbers cost little."""
    bytes_of_each = values.astype("<i4").view(np.uint8).reshape(-1, 4)
    return gzip.compress(bytes_of_each.T.tobytes(), mtime=0)


def packed_scan(scan: Scan) -> bytes:
    """The file of one scan."""
    order = np.argsort(scan.rank, kind="stable")
    steps = np.diff(scan.reward[order], prepend=np.int32(0))
    return packed(np.concatenate([scan.rank, steps]))


def packed_words(words: pd.DataFrame) -> bytes:
    """The file of a set's tokens."""
    tokens = words["token"].tolist()
    shown, hidden = {}, []
    for row, token in enumerate(tokens):
        form = visible(token)
        if form != token.replace(" ", BLANK):
            shown[row] = form
        if is_offensive(token):
            hidden.append(row)
    kinds = "".join(str(KINDS.index(kind)) for kind in words["kind"])
    text = {"tokens": tokens, "kinds": kinds, "shown": shown, "hidden": hidden}
    return gzip.compress(json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode(), mtime=0)


def _write_set(tokens: TokenSet, directory: Path) -> dict[str, Any]:
    directory.mkdir(parents=True)
    scans = []
    for number, scan in enumerate(tokens.scans):
        name = f"scan-{number}.bin"
        size = (directory / name).write_bytes(packed_scan(scan))
        scans.append(
            {"model": scan.model, "prompt": scan.prompt, "file": name, "bytes": size, "decimals": scan.decimals}
        )
    numbers = np.array([[scan.rank, scan.reward] for scan in tokens.scans], dtype=np.int32)
    for block, start in enumerate(range(0, len(tokens.words), BLOCK)):
        rows = packed(numbers[:, :, start : start + BLOCK].ravel())
        (directory / f"rows-{block}.bin").write_bytes(rows)
    return {
        "key": tokens.key,
        "title": tokens.title,
        "tokens": len(tokens.words),
        "bytes": (directory / "tokens.bin").write_bytes(packed_words(tokens.words)),
        "scans": scans,
    }

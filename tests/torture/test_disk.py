"""Full disks, directories that cannot be written, damaged and foreign files: named, nothing lost, soon mended."""

import functools
import json
import os
import random
import resource
import subprocess
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import run

import rmnb
from rmnb.errors import InputError
from rmnb.scoring import store
from rmnb.scoring.engine import PrefixScorer

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture
def begun(rm, tmp_path, monkeypatch):
    """A scan of which all shards are written and nothing else: where it will be, its table, and how to scan again."""

    def not_yet(*_):
        """As if killed before the file is written."""

    monkeypatch.setattr(store, "SHARD", 64)
    out = tmp_path / "scan.parquet"
    again = functools.partial(
        rmnb.scan_vocabulary, rm, PROMPT, output=out, batch_size=64, keep_pieces=True, write=not_yet
    )
    return out, again(), again


@pytest.fixture
def scan(directory, monkeypatch, capsys, tmp_path_factory):
    """``scan(out)``: scan by the command line; the one line that says why it fails, or nothing."""
    monkeypatch.setattr(store, "SHARD", 64)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path_factory.mktemp("cache")))

    def scan(out) -> str:
        code = run(monkeypatch, "scan", directory, "--prompt", PROMPT, "--out", out, "--batch-size", 64)
        lines = [line for line in capsys.readouterr().err.splitlines() if line.strip() and "tokens/s" not in line]
        assert not code or (code == 2 and len(lines) == 1 and lines[0].startswith("rmnb: ")), lines
        return lines[0] if code else ""

    return scan


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 kB of its own."""
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path]).returncode:
        pytest.skip("only root can mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_limit_on_the_size_of_files_is_one_line(scan, tmp_path):
    out, limits = tmp_path / "scan.parquet", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        assert "File too large" in scan(out) and not out.exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk(disk, rm, scan, attack, times):
    whole = rmnb.scan_vocabulary(rm, PROMPT, batch_size=64)
    pages = os.statvfs(disk).f_blocks
    out, filler = disk / "scan.parquet", disk / "fill"

    def fill(free: int) -> str:
        filler.write_bytes(b"x" * 4096 * (pages - free))
        failure = scan(out)
        assert ("No space left" in failure) != out.exists() and not list(disk.rglob("*.part"))
        filler.unlink()
        assert not scan(out)
        np.testing.assert_array_equal(store.read_scan(out)[0]["score"], whole["score"])
        assert list(disk.iterdir()) == [out]
        out.unlink()
        return "said in one line" if failure else "big enough"

    def protect(disk) -> str:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert "cannot write" in scan(out)
        return "said in one line before anything is computed"

    attack("a disk that is full after so many pages", range(1, times(4, pages - 1)), fill)
    attack("a directory that cannot be written", [disk], protect)


def damages(content: bytes, flips: int) -> Iterator[bytes]:
    """The content cut at every tenth of its length, then with one random bit flipped, so many times."""
    rng = random.Random(0)
    yield from (content[: len(content) * tenth // 10] for tenth in range(10))
    for _ in range(flips):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        yield bytes(changed)


def test_scans_that_are_not_whole(begun, rm, attack, times, monkeypatch):
    out, whole, again = begun
    parts = out.with_name("scan.parquet.partial")
    shard, plan = sorted(parts.glob("?????????-*"))[3], parts / "plan.json"
    scored, call = [], PrefixScorer.__call__
    monkeypatch.setattr(PrefixScorer, "__call__", lambda *given: scored.append(given) or call(*given))

    def damage(given) -> str:
        about, file, content = given
        file.write_bytes(content)
        with pytest.raises(InputError) as refused:
            again()
        assert refused.value.about == str(about)
        file.unlink()
        plan.write_text(described)
        scored.clear()
        pd.testing.assert_frame_equal(again(), whole)
        assert len(scored) == (file == shard)  # what is whole is not scored again
        return "named; without it, all else is used"

    described = plan.read_text()
    plans = [(plan, plan, content) for content in [*damages(described.encode(), 0), b"[]", b"\xff\xfe", b"null"]]
    for key in json.loads(described).keys() - {*store.note_model(rm), "prompt_key", "batch_size", "attention"}:
        plans.append((key, plan, json.dumps(json.loads(described) | {key: "another"}).encode()))
    shards = [(shard, shard, content) for content in damages(shard.read_bytes(), times(5, 200))]
    attack("a shard cut at every tenth of its length, or with a flipped bit", shards, damage)
    attack("the plan of a scan cut, or of another scan", plans, damage)


def test_score_files(begun, attack, times):
    out, whole, _ = begun
    store.write_table(out, whole, whole.attrs["provenance"])
    good, table = out.read_bytes(), pq.read_table(out)
    kept, provenance = store.read_scan(out)

    def damage(content: bytes) -> str:
        out.write_bytes(content)
        frame, described = store.read_scan(out)
        pd.testing.assert_frame_equal(frame, kept, check_dtype=False, check_categorical=False)
        assert described == provenance
        return "in bytes that say nothing (all values and their provenance read back identical)"

    def forge(given: tuple[str, dict]) -> str:
        reason, change = given
        described = {**table.schema.metadata, b"rmnb": json.dumps(provenance | change).encode()} if change else {}
        pq.write_table(table.replace_schema_metadata(described), out)
        with pytest.raises(InputError, match=reason):
            store.read_scan(out)
        return "named"

    name = "a score file cut at every tenth of its length, or with a flipped bit"
    attack(name, damages(good, times(60, 3000)), damage, refused=str(out))
    forged = [("damaged", {key: "another"}) for key in ("weights_sha256", "prompt", "content_sha256")]
    forged += [("schema", {"schema": 2}), ("not a score file of rmnb", {})]
    attack("a score file of another schema, of another make, or with a provenance that was changed", forged, forge)
    store.write_table(out, whole[["token_id"]], {})
    with pytest.raises(InputError, match="lacks the column"):
        store.read_scan(out)

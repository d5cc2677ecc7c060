"""Full disks, directories that cannot be written, damaged and foreign files: named, nothing lost, soon mended."""

import functools
import json
import os
import random
import shutil
import subprocess

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import rmnb
from rmnb.cli.main import main
from rmnb.errors import InputError
from rmnb.plans import NOT_COMPARED
from rmnb.scoring import store
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.scanning import scan_vocabulary

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture
def begun(rm, tmp_path, monkeypatch):
    """A scan of which all shards are written and nothing else: where it will be, and its table."""
    monkeypatch.setattr(store, "SHARD", 64)
    out = tmp_path / "scan.parquet"
    return out, scan_vocabulary(rm, PROMPT, output=out, batch_size=64)


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 kB of its own, and how to change it."""
    place = tmp_path / "disk"
    place.mkdir()
    made = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield place, lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def scan_command(directory, out, monkeypatch, capsys) -> tuple[int, str]:
    words = ["rmnb", "scan", str(directory), "--prompt", PROMPT, "--out", str(out), "--batch-size", "64"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().err


def one_line(error: str) -> bool:
    return [line.startswith("rmnb: ") for line in error.splitlines() if "tokens/s" not in line and line.strip()] == [
        True
    ]


def test_a_full_disk(disk, directory, rm, attack, times, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(store, "SHARD", 64)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    place, remount = disk
    whole = rmnb.scan_vocabulary(rm, PROMPT, batch_size=64)
    pages = os.statvfs(place).f_blocks
    out, fill = place / "scan.parquet", place / "fill"

    def scan(free: int) -> str:
        fill.write_bytes(b"x" * 4096 * (pages - free))
        code, error = scan_command(directory, out, monkeypatch, capsys)
        if code:
            assert code == 2 and "No space left" in error and one_line(error), error
            assert not out.exists()
            assert not [file for file in place.rglob("*") if file.suffix == ".part"]
        fill.unlink()
        assert scan_command(directory, out, monkeypatch, capsys)[0] == 0
        np.testing.assert_array_equal(store.read_scan(out)[0]["score"], whole["score"])
        assert [file.name for file in place.iterdir()] == ["scan.parquet"]
        out.unlink()
        return "said in one line" if code else "big enough"

    def write(options: str) -> str:
        remount(options)
        code, error = scan_command(directory, out, monkeypatch, capsys)
        remount("rw")
        assert code == 2 and "cannot write" in error and one_line(error), error
        return "said in one line before anything is computed"

    attack("a disk that is full after so many pages", range(1, times(4, pages - 1)), scan)
    attack("a directory that cannot be written", ["ro"], write)


@pytest.fixture
def scored(monkeypatch) -> list[int]:
    """How many continuations each call of the engine was asked for."""
    calls, call = [], PrefixScorer.__call__

    def counted(self, continuations, batch_size=None):
        calls.append(len(continuations))
        return call(self, continuations, batch_size)

    monkeypatch.setattr(PrefixScorer, "__call__", counted)
    return calls


def damages(rng: random.Random, flips: int):
    """How a file is damaged: cut at every tenth of its length, or one random bit flipped so many times."""
    yield from (functools.partial(cut, tenth=tenth) for tenth in range(10))
    for _ in range(flips):
        yield functools.partial(flip, rng=rng)


def cut(content: bytes, tenth: int) -> bytes:
    return content[: len(content) * tenth // 10]


def flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def test_shards(begun, rm, attack, times, scored):
    out, whole = begun
    shards = sorted(out.with_name("scan.parquet.partial").glob("?????????-*"))
    assert len(shards) == 7
    rng = random.Random(0)

    def damage(change) -> str:
        shard = rng.choice(shards)
        shard.write_bytes(change(shard.read_bytes()))
        with pytest.raises(InputError) as refused:
            scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
        assert refused.value.about == str(shard)
        shard.unlink()
        scored.clear()
        again = scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
        assert len(scored) == 1  # what is whole is not scored again
        pd.testing.assert_frame_equal(again, whole)
        return "named, and the scan goes on without it"

    name = "a shard cut at every tenth of its length, or with a flipped bit"
    attack(name, damages(rng, times(5, 200)), damage)


def test_plans(begun, rm, attack, scored):
    out, whole = begun
    plan = out.with_name("scan.parquet.partial") / "plan.json"
    good = plan.read_bytes()
    described = json.loads(good)
    others = {key: json.dumps({**described, key: "another"}).encode() for key in described if key not in NOT_COMPARED}
    broken = [*(cut(good, tenth) for tenth in range(10)), b"[]", b"\xff\xfe", b"null"]

    def change(given: tuple[str, bytes]) -> str:
        about, content = given
        plan.write_bytes(content)
        with pytest.raises(InputError) as refused:
            scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
        assert refused.value.about == about
        return "named"

    tries = [*others.items(), *((str(plan), content) for content in broken)]
    attack("the plan of a scan cut, or of another scan", tries, change)
    plan.write_bytes(good)
    pd.testing.assert_frame_equal(scan_vocabulary(rm, PROMPT, output=out, batch_size=64), whole)
    assert not scored


def test_score_files(begun, attack, times):
    out, whole = begun
    store.write_scan(out, whole, whole.attrs["provenance"])
    good = out.read_bytes()
    kept, provenance = store.read_scan(out)

    def damage(change) -> str:
        out.write_bytes(change(good))
        try:
            frame, described = store.read_scan(out)
        except InputError as error:
            assert str(out) in str(error)
            return "named as damaged"
        pd.testing.assert_frame_equal(frame, kept, check_dtype=False, check_categorical=False)
        assert described == provenance
        return "in bytes that say nothing (all values and their provenance read back identical)"

    def forge(change: dict) -> str:
        out.write_bytes(good)
        table = pq.read_table(out)
        forged = json.dumps({**provenance, **change}).encode()
        pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"rmnb": forged}), out)
        with pytest.raises(InputError, match="schema" if "schema" in change else "is damaged"):
            store.read_scan(out)
        return "named"

    name = "a score file cut at every tenth of its length, or with a flipped bit"
    attack(name, damages(random.Random(1), times(60, 3000)), damage)
    wrong = "0" * 64
    changes = [
        {"schema": 2},
        {"weights_sha256": wrong},
        {"prompt": "What is the worst thing?"},
        {"content_sha256": wrong},
    ]
    attack("a score file of another schema, of another make, or with a provenance that was changed", changes, forge)
    store.write_table(out, whole[["token_id"]], {})
    with pytest.raises(InputError, match="lacks the column"):
        store.read_scan(out)
    whole.to_parquet(out)
    with pytest.raises(InputError, match="not a score file of rmnb"):
        store.read_scan(out)

"""Full disks, directories that cannot be written, damaged and foreign files: named, nothing lost, soon mended."""

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
    with attack("a disk that is full after so many pages") as tries:
        for free in range(1, times(4, pages - 1)):
            with tries.attempt(free):
                fill = place / "fill"
                fill.write_bytes(b"x" * 4096 * (pages - free))
                out = place / "scan.parquet"
                code, error = scan_command(directory, out, monkeypatch, capsys)
                if code:
                    assert code == 2 and "No space left" in error and one_line(error), error
                    assert not out.exists()
                    assert not [file for file in place.rglob("*") if file.suffix == ".part"]
                tries.came_to("said in one line" if code else "big enough")
                fill.unlink()
                assert scan_command(directory, out, monkeypatch, capsys)[0] == 0
                np.testing.assert_array_equal(store.read_scan(out)[0]["score"], whole["score"])
                assert [file.name for file in place.iterdir()] == ["scan.parquet"]
                out.unlink()
    with attack("a directory that cannot be written") as tries, tries.attempt():
        remount("ro")
        code, error = scan_command(directory, place / "scan.parquet", monkeypatch, capsys)
        remount("rw")
        assert code == 2 and "cannot write" in error and one_line(error), error
        tries.came_to("said in one line before anything is computed")


@pytest.fixture
def scored(monkeypatch) -> list[int]:
    """How many continuations each call of the engine was asked for."""
    calls, call = [], PrefixScorer.__call__

    def counted(self, continuations, batch_size=None):
        calls.append(len(continuations))
        return call(self, continuations, batch_size)

    monkeypatch.setattr(PrefixScorer, "__call__", counted)
    return calls


def test_shards(begun, rm, attack, times, scored):
    out, whole = begun
    shards = sorted(out.with_name("scan.parquet.partial").glob("*.f32"))
    assert len(shards) == 7
    rng = random.Random(0)
    damages = [
        ("cut at a tenth of its length", lambda content, k=k: content[: len(content) * k // 10]) for k in range(10)
    ]
    damages += [("with a flipped bit", flip(rng)) for _ in range(times(5, 200))]
    with attack("a shard cut at every tenth of its length, or with a flipped bit") as tries:
        for what, damage in damages:
            shard = rng.choice(shards)
            good = shard.read_bytes()
            with tries.attempt(what):
                shard.write_bytes(damage(good))
                with pytest.raises(InputError, match=f"damaged shard .*{shard.name}: delete it"):
                    scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
                shard.unlink()
                scored.clear()
                again = scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
                assert len(scored) == 1  # what is whole is not scored again
                pd.testing.assert_frame_equal(again, whole)
                tries.came_to(f"{what}: named, and the scan goes on without it")


def flip(rng: random.Random):
    """A function that flips one random bit."""

    def damage(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)

    return damage


def test_plans(begun, rm, attack, scored):
    out, whole = begun
    plan = out.with_name("scan.parquet.partial") / "plan.json"
    good = plan.read_bytes()
    described = json.loads(good)
    others = {key: json.dumps({**described, key: "another"}).encode() for key in described if key != "batch_size"}
    cuts = [good[: len(good) * k // 10] for k in range(10)] + [b"[]", b"\xff\xfe", b"null"]
    with attack("the plan of a scan cut, or of another scan") as tries:
        for content, message in [(other, f"differs in {key}") for key, other in others.items()] + [
            (cut, "is damaged: delete") for cut in cuts
        ]:
            with tries.attempt(message):
                plan.write_bytes(content)
                with pytest.raises(InputError, match=message):
                    scan_vocabulary(rm, PROMPT, output=out, batch_size=64)
                tries.came_to("named")
        with tries.attempt("mended"):
            plan.write_bytes(good)
            pd.testing.assert_frame_equal(scan_vocabulary(rm, PROMPT, output=out, batch_size=64), whole)
            assert not scored
            tries.came_to("mended, and all shards used")


def test_score_files(begun, attack, times):
    out, whole = begun
    store.write_scan(out, whole, whole.attrs["provenance"])
    good = out.read_bytes()
    rng = random.Random(1)
    kept, provenance = store.read_scan(out)
    damages = [lambda content, k=k: content[: len(content) * k // 10] for k in range(10)]
    damages += [flip(rng) for _ in range(times(60, 3000))]
    with attack("a score file cut at every tenth of its length, or with a flipped bit") as tries:
        for index, damage in enumerate(damages):
            with tries.attempt(index):
                out.write_bytes(damage(good))
                try:
                    frame, described = store.read_scan(out)
                except InputError as error:
                    assert str(out) in str(error)
                    tries.came_to("named as damaged")
                else:
                    pd.testing.assert_frame_equal(frame, kept, check_dtype=False, check_categorical=False)
                    assert described == provenance
                    tries.came_to("in bytes that say nothing (all values and their provenance read back identical)")
    with attack("a score file of another schema, of another make, or with a provenance that was changed") as tries:
        for change, message in (
            (("schema", 2), "has schema 2, this version of rmnb reads 1"),
            (("weights_sha256", "0" * 64), "is damaged"),
            (("prompt", "What is the worst thing?"), "is damaged"),
            (("content_sha256", "0" * 64), "is damaged"),
        ):
            with tries.attempt(message):
                out.write_bytes(good)
                table = pq.read_table(out)
                forged = json.dumps({**provenance, change[0]: change[1]}).encode()
                pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"rmnb": forged}), out)
                with pytest.raises(InputError, match=message):
                    store.read_scan(out)
                tries.came_to("named")
        for frame, metadata in ((whole[["token_id"]], True), (whole, False)):
            with tries.attempt("columns"):
                if metadata:
                    store.write_table(out, frame, {})
                else:
                    frame.to_parquet(out)
                with pytest.raises(InputError, match=r"lacks the column|not a score file of rmnb"):
                    store.read_scan(out)
                tries.came_to("named")

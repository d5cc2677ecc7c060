"""Full disks, directories that cannot be written, damaged and foreign files: named, nothing lost, soon mended."""

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
    """A file system of 64 kB of its own."""
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path]).returncode:
        pytest.skip("only root can mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_limit_on_the_size_of_files_is_one_line(directory, tmp_path, monkeypatch, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        code = run(monkeypatch, "scan", directory, "--prompt", PROMPT, "--out", tmp_path / "scan.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr().err
    assert code == 2 and "File too large" in said.splitlines()[-1] and not (tmp_path / "scan.parquet").exists()


def test_a_full_disk(disk, directory, rm, attack, times, monkeypatch, capsys, tmp_path_factory):
    monkeypatch.setattr(store, "SHARD", 64)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path_factory.mktemp("cache")))
    whole = rmnb.scan_vocabulary(rm, PROMPT, batch_size=64)
    pages = os.statvfs(disk).f_blocks
    out, filler = disk / "scan.parquet", disk / "fill"

    def fails(why: str = "") -> bool:
        """Whether the command fails, with one line that says why."""
        code = run(monkeypatch, "scan", directory, "--prompt", PROMPT, "--out", out, "--batch-size", 64)
        said = [line for line in capsys.readouterr().err.splitlines() if line.strip() and "tokens/s" not in line]
        assert not code or (code == 2 and len(said) == 1 and said[0].startswith("rmnb: ") and why in said[0]), said
        return code == 2

    def fill(free: int) -> str:
        filler.write_bytes(b"x" * 4096 * (pages - free))
        full = fails("No space left")
        assert out.exists() != full and not list(disk.rglob("*.part"))
        filler.unlink()
        assert not fails()
        np.testing.assert_array_equal(store.read_scan(out)[0]["score"], whole["score"])
        assert list(disk.iterdir()) == [out]
        out.unlink()
        return "said in one line" if full else "big enough"

    def protect(options: str) -> str:
        subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)
        assert fails("cannot write")
        return "said in one line before anything is computed"

    attack("a disk that is full after so many pages", range(1, times(4, pages - 1)), fill)
    attack("a directory that cannot be written", ["ro"], protect)


def damages(content: bytes, flips: int) -> Iterator[bytes]:
    """The content cut at every tenth of its length, then with one random bit flipped, so many times."""
    rng = random.Random(0)
    yield from (content[: len(content) * tenth // 10] for tenth in range(10))
    for _ in range(flips):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        yield bytes(changed)


def test_scans_that_are_not_whole(begun, rm, attack, times, monkeypatch):
    out, whole = begun
    parts = out.with_name("scan.parquet.partial")
    shard, plan = sorted(parts.glob("?????????-*"))[3], parts / "plan.json"
    scored, call = [], PrefixScorer.__call__
    monkeypatch.setattr(PrefixScorer, "__call__", lambda *given: scored.append(given) or call(*given))

    def scan() -> int:
        """Scan again, to the same table: how many shards were scored for it."""
        scored.clear()
        pd.testing.assert_frame_equal(scan_vocabulary(rm, PROMPT, output=out, batch_size=64), whole)
        return len(scored)

    def damage(given) -> str:
        about, file, content = given
        good = file.read_bytes()
        file.write_bytes(content)
        with pytest.raises(InputError) as refused:
            scan()
        assert refused.value.about == about
        if file == plan:
            plan.write_bytes(good)
        else:
            shard.unlink()
        assert scan() == (file == shard)  # what is whole is not scored again
        return (
            "named, and the scan goes on without it" if file == shard else "named, and with the right one all is used"
        )

    described = json.loads(plan.read_text())
    others = {key: json.dumps(described | {key: "another"}).encode() for key in described if key not in NOT_COMPARED}
    broken = [*damages(plan.read_bytes(), 0), b"[]", b"\xff\xfe", b"null"]
    plans = [*((key, plan, other) for key, other in others.items()), *((str(plan), plan, other) for other in broken)]
    shards = [(str(shard), shard, other) for other in damages(shard.read_bytes(), times(5, 200))]
    attack("a shard cut at every tenth of its length, or with a flipped bit", shards, damage)
    attack("the plan of a scan cut, or of another scan", plans, damage)


def test_score_files(begun, attack, times):
    out, whole = begun
    store.write_table(out, whole, whole.attrs["provenance"])
    good = out.read_bytes()
    kept, provenance = store.read_scan(out)

    def damage(content: bytes) -> str:
        out.write_bytes(content)
        try:
            frame, described = store.read_scan(out)
        except InputError as error:
            assert str(out) in str(error)
            return "named as damaged"
        pd.testing.assert_frame_equal(frame, kept, check_dtype=False, check_categorical=False)
        assert described == provenance
        return "in bytes that say nothing (all values and their provenance read back identical)"

    def forge(given: tuple[str, dict]) -> str:
        said, change = given
        out.write_bytes(good)
        table = pq.read_table(out)
        described = {**table.schema.metadata, b"rmnb": json.dumps(provenance | change).encode()} if change else {}
        pq.write_table(table.replace_schema_metadata(described), out)
        with pytest.raises(InputError, match=said):
            store.read_scan(out)
        return "named"

    name = "a score file cut at every tenth of its length, or with a flipped bit"
    attack(name, damages(good, times(60, 3000)), damage)
    changed = {"weights_sha256": "0" * 64, "prompt": "What is worst?", "content_sha256": "0" * 64}
    forged = [("is damaged", {key: value}) for key, value in changed.items()]
    forged += [("schema", {"schema": 2}), ("not a score file of rmnb", {})]
    attack("a score file of another schema, of another make, or with a provenance that was changed", forged, forge)
    store.write_table(out, whole[["token_id"]], {})
    with pytest.raises(InputError, match="lacks the column"):
        store.read_scan(out)

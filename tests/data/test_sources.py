"""What a user meets when external data are fetched: good, broken, moved, absent."""

import hashlib
import http.server
import json
import threading

import pytest
from typer.testing import CliRunner

from rmnb.cli.book import app
from rmnb.data import sources
from rmnb.errors import InputError

CONTENT = bytes(range(256)) * 2000
LARGE = b"large," * 200_000


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


POINTER = (
    f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(LARGE).hexdigest()}\nsize {len(LARGE)}\n"
).encode()


def pin(path="data/some words.csv", content=CONTENT) -> sources.Pin:
    return sources.Pin("test", path, len(content), blob_id(content), "lexicon", "MIT", "owner/repo", "c" * 40)


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` by path; `break_after` bytes into each of the next `breaks` replies the connection is cut."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str | None] = []
        self.breaks, self.break_after, self.failures = 0, 0, 0

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        content = self.server.files.get(self.path)
        if self.server.failures:
            self.server.failures -= 1
            return self.send_error(503)
        if content is None:
            return self.send_error(404)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if start >= len(content) and wanted:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return None
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        body = content[start:]
        if self.server.breaks:
            self.server.breaks -= 1
            body = body[: self.server.break_after]
        self.wfile.write(body)
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(sources, "RAW_URL", base + "/raw/{repository}/{commit}/{path}")
    monkeypatch.setattr(sources, "LARGE_URL", base + "/large/{repository}/{commit}/{path}")
    monkeypatch.setattr(sources, "_BACK_OFF", 0.01)
    monkeypatch.setattr(sources, "_offline", set())
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    server.files["/raw/owner/repo/" + "c" * 40 + "/data/some%20words.csv"] = CONTENT
    yield server
    server.shutdown()
    server.server_close()


def cached(tmp_path):
    return tmp_path / "cache" / "data" / "owner/repo" / ("c" * 40) / "data/some words.csv"


def test_download_then_cache(server, tmp_path):
    path = sources.locate(pin())
    assert path == cached(tmp_path)
    assert path.read_bytes() == CONTENT
    sources.locate(pin())
    assert len(server.requests) == 1


def test_broken_connection_is_resumed_where_it_stopped(server):
    server.breaks, server.break_after = 2, 1 << 17
    assert sources.locate(pin()).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=131072-", "bytes=262144-"]


def test_download_stopped_by_the_user_goes_on_in_the_next_run(server, tmp_path):
    part = cached(tmp_path).with_name("some words.csv.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1000])
    assert sources.locate(pin()).read_bytes() == CONTENT
    assert server.requests == ["bytes=1000-"]
    assert not part.exists()


def test_whole_part_needs_no_second_download(server, tmp_path):
    part = cached(tmp_path).with_name("some words.csv.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    assert sources.locate(pin()).read_bytes() == CONTENT


def test_busy_server_is_asked_again(server):
    server.failures = 2
    assert sources.locate(pin()).read_bytes() == CONTENT


def test_wrong_content_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(InputError, match=r"test/data/some words.csv.*has hash .*pinned is") as error:
        sources.locate(pin(content=b"what was pinned"))
    assert "\n" not in str(error.value)
    assert not list(cached(tmp_path).parent.iterdir())
    assert not isinstance(error.value, sources.UnreachableError)


def test_moved_file_and_no_network_are_one_line(server, monkeypatch):
    with pytest.raises(sources.UnreachableError, match=r"has moved.*404") as error:
        sources.locate(pin("data/gone.csv"))
    assert "\n" not in str(error.value)
    assert len(server.requests) == 1  # a moved file is not asked for again
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/{repository}/{commit}/{path}")
    with pytest.raises(sources.UnreachableError, match="no network; connect, or set RMNB_DATA_MIRROR") as error:
        sources.locate(pin())
    assert "\n" not in str(error.value)
    assert sources.on_this_machine(pin()) is None


def test_large_file_behind_a_pointer_is_checked_through_it(server, tmp_path):
    pointed = pin("data/big.csv", POINTER)
    server.files["/raw/owner/repo/" + "c" * 40 + "/data/big.csv"] = POINTER
    server.files["/large/owner/repo/" + "c" * 40 + "/data/big.csv"] = LARGE
    server.breaks, server.break_after = 9, 1 << 17  # more than the retries of one run
    with pytest.raises(sources.UnreachableError, match="the connection broke"):
        sources.locate(pointed)
    server.breaks = 0
    path = sources.locate(pointed)
    assert path.read_bytes() == LARGE and server.requests[-1] not in (None, "bytes=0-")
    assert sources.locate(pointed) == path
    path.write_bytes(LARGE + b"x")
    with pytest.raises(InputError, match="not the pinned file"):
        sources.locate(pointed)


def test_mirror_is_used_in_place_and_checked(server, monkeypatch, tmp_path):
    monkeypatch.setenv("RMNB_DATA_MIRROR", str(tmp_path / "mirror"))
    place = tmp_path / "mirror" / pin().stored_at
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    assert sources.locate(pin()) == place
    assert not server.requests
    place.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match=r"some words.csv is not the pinned file"):
        sources.locate(pin())


def test_pull_replaces_a_damaged_cached_file(server, tmp_path):
    path = sources.locate(pin())
    path.write_bytes(b"damaged")
    with pytest.raises(InputError, match="not the pinned file"):
        sources.locate(pin())
    assert sources.pull(pin()).read_bytes() == CONTENT


def test_unwritable_cache_is_one_line(server, tmp_path):
    (tmp_path / "cache").write_text("a file where the directory should be")
    with pytest.raises(InputError, match="cannot write") as error:
        sources.locate(pin())
    assert "\n" not in str(error.value)


def test_unknown_name():
    with pytest.raises(InputError, match=r"unknown data file 'nonsense'.*rmnb book data list"):
        sources.locate("nonsense")


def test_pins_are_well_formed():
    pins = sources.pins()
    assert len({(p.repository, p.commit, p.path) for p in pins.values()}) == len(pins)
    for p in pins.values():
        assert len(p.commit) == 40 and len(p.blob_id) == 40 and p.repository.count("/") == 1 and p.use and p.licence
    large = [p for p in pins.values() if p.use in ("released scores", "released base-model logits") and p.bytes is None]
    assert len(large) == 20


def test_command_line(monkeypatch, tmp_path):
    runner = CliRunner()
    listed = runner.invoke(app, ["data", "list", "llmbar"])
    assert listed.exit_code == 0 and len(listed.stdout.splitlines()) == 5
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    checked = runner.invoke(app, ["data", "verify", "llmbar"])
    assert checked.exit_code == 0 and "5 absent" in checked.output
    p = sources.pins()["llmbar/Dataset/LLMBar/Natural/dataset.json"]
    place = tmp_path / "data" / p.stored_at
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps([]))
    checked = runner.invoke(app, ["data", "verify", "llmbar"])
    assert checked.exit_code == 2 and "damaged\tllmbar/Dataset/LLMBar/Natural" in checked.output


def test_mirror_is_what_was_pinned(mirror):
    found = sources.verify()
    assert not (found["status"] == "damaged").any()
    known_small = {name for name, p in sources.pins().items() if p.bytes is not None}
    assert set(found.loc[found["status"] == "absent", "name"]).isdisjoint(known_small)

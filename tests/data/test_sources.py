"""What a user meets when external data are fetched: good, broken, moved, absent."""

import hashlib
import http.server
import threading

import pytest
from typer.testing import CliRunner

from rmnb.cli.book import app
from rmnb.data import sources
from rmnb.errors import InputError

CONTENT = bytes(range(256)) * 2000
LARGE = b"large," * 200_000
PIECE = 1 << 17
POINTER = (
    f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(LARGE).hexdigest()}\nsize {len(LARGE)}\n"
).encode()
NAME, BIG, GONE = "test/data/some words.csv", "test/data/big.csv", "test/data/gone.csv"
FOLDER = "owner/repo/" + "c" * 40 + "/data/"
WORDS = f"/raw/{FOLDER}some%20words.csv"


def pin(name: str, content: bytes) -> sources.Pin:
    blob_id = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    path = name.removeprefix("test/")
    size = None if content == POINTER else len(content)
    return sources.Pin("test", path, size, blob_id, "lexicon", "MIT", "owner/repo", "c" * 40)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the server's `files` by path; a piece into each of the next `breaks` replies the connection is cut."""

    def do_GET(self):
        start, content = int(self.headers.get("Range", "bytes=0-")[6:-1]), self.server.files.get(self.path)
        self.server.requests.append(start)
        if self.server.failures:
            self.server.failures -= 1  # first: once it has its answer, the client asks again
            return self.send_error(429)
        if content is None:
            return self.send_error(404)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        end = start + PIECE if self.server.breaks else None
        self.server.breaks = max(0, self.server.breaks - 1)
        self.wfile.write(content[start:end])


@pytest.fixture
def server(monkeypatch, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.breaks, server.failures = [], 0, 0
    server.files = {WORDS: CONTENT, f"/large/{FOLDER}big.csv": LARGE}
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    known = {name: pin(name, content) for name, content in {NAME: CONTENT, BIG: POINTER, GONE: b"gone"}.items()}
    monkeypatch.setattr(sources, "pins", lambda: known)
    for name, folder in {"RAW_URL": "raw", "LARGE_URL": "large"}.items():
        monkeypatch.setattr(sources, name, f"http://127.0.0.1:{server.server_port}/{folder}/")
    monkeypatch.setattr(sources, "_offline", set())
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", PIECE)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def cached(tmp_path):
    """Where the file is in the cache; its directory is there."""
    path = tmp_path / "cache" / "data" / FOLDER / "some words.csv"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize(
    ("begun", "breaks", "failures", "requests"),
    [
        (0, 0, 0, [0]),
        (0, 2, 0, [0, PIECE, 2 * PIECE]),  # a broken connection is resumed where it stopped
        (1000, 0, 0, [1000]),  # and so is a download that the user stopped
        (len(CONTENT), 0, 0, []),
        (0, 0, 2, [0, 0, 0]),  # a busy server is asked again
    ],
)
def test_a_file_is_downloaded_once_whatever_happens_on_the_way(server, cached, begun, breaks, failures, requests):
    if begun:
        cached.with_name("some words.csv.part").write_bytes(CONTENT[:begun])
    server.breaks, server.failures = breaks, failures
    assert sources.locate(NAME) == sources.locate(NAME) == cached
    assert cached.read_bytes() == CONTENT and list(cached.parent.iterdir()) == [cached]
    assert server.requests == requests


def test_wrong_content_leaves_nothing_behind(server, cached):
    server.files[WORDS] = b"another file"
    with pytest.raises(InputError, match=r"^test/data/some words.csv: .*not the pinned file[^\n]*$") as error:
        sources.locate(NAME)
    assert not list(cached.parent.iterdir())
    assert not isinstance(error.value, sources.UnreachableError)


def test_moved_file_and_no_network_are_one_line(server, monkeypatch, caplog):
    with pytest.raises(sources.UnreachableError, match=r"^[^\n]*404[^\n]*$"):
        sources.locate(GONE)
    assert len(server.requests) == 1  # a moved file is not asked for again
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/")
    for _ in range(2):  # the second time, it is known
        with pytest.raises(sources.UnreachableError, match=r"^[^\n]*; connect, or set RMNB_DATA_MIRROR[^\n]*$"):
            sources.locate(NAME)
    assert sources.on_this_machine(NAME) is None
    assert not caplog.records  # a library's own lines would stand in a page


def test_large_file_behind_a_pointer_is_checked_through_it(server):
    server.breaks = 3
    path = sources.locate(BIG)
    assert path.read_bytes() == LARGE and server.requests[-1] > 0
    assert sources.locate(BIG) == path
    path.write_bytes(LARGE + b"x")
    with pytest.raises(InputError, match="not the pinned file"):
        sources.locate(BIG)


def test_mirror_is_used_in_place_and_checked(server, monkeypatch, tmp_path):
    monkeypatch.setenv("RMNB_DATA_MIRROR", str(tmp_path / "mirror"))
    place = tmp_path / "mirror" / FOLDER / "some words.csv"
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    assert sources.locate(NAME) == place
    assert not server.requests
    place.write_bytes(CONTENT[:-1])
    with pytest.raises(InputError, match="not the pinned file") as refused:
        sources.locate(NAME)
    assert refused.value.about == str(place)


def test_what_cannot_be_had_is_one_line(server, tmp_path):
    (tmp_path / "cache").write_text("a file where the directory should be")
    with pytest.raises(InputError, match=r"^cannot write [^\n]*$"):
        sources.locate(NAME)
    with pytest.raises(InputError, match=r"unknown data file 'nonsense'.*rmnb book data list"):
        sources.locate("nonsense")


def test_command_line(monkeypatch, tmp_path):
    def said(command, code=0):
        result = CliRunner().invoke(app, ["data", command, "llmbar"])
        assert result.exit_code == code
        return result.output

    assert len(said("list").splitlines()) == 5
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    assert said("verify").count("absent\t") == 5
    place = tmp_path / "data" / sources.pins()["llmbar/Dataset/LLMBar/Natural/dataset.json"].stored_at
    place.parent.mkdir(parents=True)
    place.write_text("[]")
    assert "damaged\tllmbar/Dataset/LLMBar/Natural" in said("verify", code=2)


def test_mirror_is_what_was_pinned(mirror):
    found = sources.verify(sources.pins())
    assert not (found["status"] == "damaged").any()
    absent = found.loc[found["status"] == "absent", "name"]
    assert all(sources.pins()[name].bytes is None for name in absent)  # the large ones alone

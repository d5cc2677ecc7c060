"""The built book, served from this machine to a browser that has no other network."""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from book import BOOK
from rmnb.book.explorer import write_explorer

if not (BOOK / "index.html").exists():
    pytest.exit(f"no book in {BOOK}: run `make book` first", returncode=2)


class Server(SimpleHTTPRequestHandler):
    """As `python -m http.server`, but silent, and with another directory for the explorer's data if one is given."""

    data: Path | None = None

    def translate_path(self, path: str) -> str:
        found = super().translate_path(path)
        below = Path(found).relative_to(self.directory)
        if self.data and below.is_relative_to("_static/explorer/data"):
            return str(self.data / below.relative_to("_static/explorer/data"))
        return found

    def log_message(self, *_: object) -> None:
        pass


class Patient(ThreadingHTTPServer):
    """Takes all connections of a page at once: one that finds no place in the queue may wait for a minute."""

    request_queue_size = 128


@contextlib.contextmanager
def served(data: Path | None = None) -> Iterator[str]:
    handler = type("Handler", (Server,), {"data": data})
    server = Patient(("127.0.0.1", 0), partial(handler, directory=str(BOOK)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the book."""
    with served() as address:
        yield address


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory) -> Iterator[str]:
    """The address of the book with an explorer of planted, hostile tokens."""
    from planted_site import planted

    directory = tmp_path_factory.mktemp("hostile")
    write_explorer(planted(directory), directory / "data")
    with served(directory / "data") as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium that is installed on this machine."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.exit("the tests of the book need a browser: apt-get install chromium", returncode=2)
    # No name resolves but this machine's: the network is cut.
    arguments = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments, timeout=180_000)
        yield started
        started.close()


class Watched:
    """A page and what went wrong on it."""

    def __init__(self, page: Page):
        self.page, self.troubles = page, []
        page.set_default_timeout(60_000)
        page.on("console", lambda said: said.type in ("error", "warning") and self.troubles.append(said.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("requestfailed", lambda asked: self.troubles.append(f"{asked.url}: {asked.failure}"))
        page.on(
            "response", lambda answer: answer.status >= 400 and self.troubles.append(f"{answer.url}: {answer.status}")
        )
        page.on("dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))


@pytest.fixture
def watched(browser) -> Iterator[Watched]:
    """A fresh page at a laptop's width."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield Watched(context.new_page())
    context.close()

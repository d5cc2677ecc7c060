"""The built book, served from this machine to a browser that has no other network."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from planted_site import planted
from playwright.sync_api import Browser, Page, sync_playwright

from book import BOOK
from rmnb.book.explorer import write_explorer

if not (BOOK / "index.html").exists():
    pytest.exit(f"no book in {BOOK}: run `make book` first", returncode=2)


class Silent(SimpleHTTPRequestHandler):
    """As `python -m http.server`, but without a word."""

    def log_message(self, *_: object) -> None:
        pass


class Patient(ThreadingHTTPServer):
    """Takes all connections of a page at once: one that finds no place in the queue may wait for a minute."""

    request_queue_size = 128


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    server = Patient(("127.0.0.1", 0), partial(Silent, directory=str(directory)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the book."""
    with served(BOOK) as address:
        yield address


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory) -> Iterator[str]:
    """The address of the book with an explorer of planted, hostile tokens."""
    directory = tmp_path_factory.mktemp("hostile")
    book = shutil.copytree(BOOK, directory / "book", ignore=shutil.ignore_patterns("data"), copy_function=os.symlink)
    write_explorer(planted(directory), book / "_static" / "explorer" / "data")
    with served(book) as address:
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


@pytest.fixture
def page(browser) -> Iterator[Page]:
    """A fresh page at a laptop's width, on which nothing may go wrong."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, troubles = context.new_page(), []
    page.set_default_timeout(60_000)
    page.on("console", lambda said: said.type in ("error", "warning") and troubles.append(said.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda asked: troubles.append(f"{asked.url}: {asked.failure}"))
    page.on("response", lambda answer: answer.status >= 400 and troubles.append(f"{answer.url}: {answer.status}"))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    yield page
    assert not troubles
    context.close()

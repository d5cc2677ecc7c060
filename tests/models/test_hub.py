"""Each refusal of the hub, and each file that is not what its name says, is one clear line."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from rmnb.errors import InputError
from rmnb.models.loading import shipped_adapter


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub of three models: one gated, one of which nothing is known, one on a server that has broken down."""

    def answer(self):
        name = "/".join(self.path.removeprefix("/api/models").strip("/").split("/")[:2])
        status, code = {"owner/gated": (403, "GatedRepo"), "owner/broken": (500, None)}.get(name, (401, "RepoNotFound"))
        if name == "owner/gated" and self.path.startswith("/api/"):
            status, code = 200, None  # what a gated model consists of is public, its files are not
        if name == "owner/young":
            status, code = 404, "RevisionNotFound"
        tree = [
            {"type": "file", "path": file, "size": 9, "oid": "0" * 40} for file in ("config.json", "tokenizer.json")
        ]
        siblings = [{"rfilename": entry["path"]} for entry in tree]
        described = tree if "/tree/" in self.path else {"id": name, "sha": "0" * 40, "siblings": siblings}
        body = json.dumps(described).encode() if status == 200 else b"{}"
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", "the hub says no")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_GET = do_HEAD = answer

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def hub():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


CASES = {
    "owner/gated": "owner/gated: a gated model: accept its terms on the hub and set HF_TOKEN",
    "owner/unknown": "owner/unknown: no such model on the hub (or a private one: set HF_TOKEN)",
    "owner/young@v9": "owner/young: the hub has no revision 'v9' of it",
    "owner/broken": "owner/broken: ",
    "offline owner/model": "owner/model: not in the local hub cache, and the hub cannot be reached",
}


def test_each_refusal_of_the_hub_is_one_clear_line(tmp_path):
    # In one process of its own: the hub's address is read when its library is imported.
    code = """
import sys, json
from rmnb.errors import InputError
from rmnb.models.hub import fetch
for case in json.loads(sys.argv[1]):
    source, _, revision = case.partition("@")
    try:
        print(fetch(source, revision or None))
    except InputError as error:
        print(json.dumps(str(error)))
"""

    def said(cases, endpoint):
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "HF_HUB_DOWNLOAD_TIMEOUT": "5"}
        command = [sys.executable, "-c", code, json.dumps(cases)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    online = [case for case in CASES if not case.startswith("offline")]
    with hub() as endpoint:
        lines = said(online, endpoint)
    lines += said(["owner/model"], endpoint)  # nobody listens there any more
    assert len(lines) == len(CASES)
    for line, expected in zip(lines, CASES.values(), strict=True):
        assert line.startswith(expected) and "\n" not in line


def test_an_installation_without_the_repository_is_told_where_the_demo_models_are(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"smollm2-values: .* the project's repository; clone it and set RMNB_DATA"):
        shipped_adapter("smollm2-values", "demo/adapters/smollm2-values")

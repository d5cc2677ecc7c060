"""The same model on a server, right and wrong in each of the ways that servers go wrong."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from checkpoints import write_decoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import rmnb
from rmnb.cli.main import main
from rmnb.errors import InputError
from rmnb.scoring.against import Conversation, Server, compare, probes, rendered
from rmnb.scoring.rows import score_sequences


class Served:
    """A tiny reward model as a server has it, by transformers alone; `fault` says how it goes wrong."""

    def __init__(self, directory, fault="", shape="vllm"):
        self.words = AutoTokenizer.from_pretrained(directory)
        self.model = AutoModelForSequenceClassification.from_pretrained(directory, attn_implementation="eager").eval()
        self.fault, self.shape = fault, shape

    @torch.no_grad()
    def rewards(self, texts: list[str]) -> list[float]:
        ids = [self.words(text, add_special_tokens=self.fault == "double BOS")["input_ids"] for text in texts]
        if self.fault == "truncated":
            ids = [one[:256] for one in ids]
        if self.fault == "no system prompt":
            ids = [[1, *one[one.index(3) :]] if one[1] != 3 else one for one in ids]
        if self.fault == "no closing id":
            ids = [one[:-1] for one in ids]
        found = []
        for one in ids:
            hidden = self.model.model(input_ids=torch.tensor([one])).last_hidden_state[0, -1]
            found.append(self.model.score(hidden).float().item())
        if self.fault == "sigmoid":
            return torch.sigmoid(torch.tensor(found)).tolist()
        if self.fault in ("negated", "ones"):
            return [-reward if self.fault == "negated" else 1.0 for reward in found]
        if self.fault == "alternating":
            return [reward + 0.02 * (-1) ** place for place, reward in enumerate(found)]
        if self.fault == "scaled":
            return [0.5 * reward - 2 for reward in found]
        return np.random.default_rng(0).permutation(found).tolist() if self.fault == "shuffled" else found

    def answer(self, path: str, body: dict) -> tuple[int, object]:
        if self.shape == "sglang":
            if "text" not in body:
                return 422, {"detail": "text: field required"}
            return 200, [{"embedding": [reward], "meta_info": {}} for reward in self.rewards(body["text"])]
        if body.get("use_activation") is not False:
            return 400, {"error": "not the raw reward"}
        rewards = self.rewards(body["input"])
        if path == "/pooling":
            return 200, {"data": [{"index": i, "data": [reward]} for i, reward in enumerate(rewards)][::-1]}
        return 200, {"data": [{"index": i, "probs": [r], "num_classes": 1} for i, r in enumerate(rewards)]}


@pytest.fixture
def serve():
    """Serve something that answers: its address."""
    servers = []

    def start(served) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.reply(*served.answer(self.path, body))

            def reply(self, status, content):
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def rm(directory):
    return rmnb.load_reward_model(directory, device="cpu")


def ask(rm, address):
    """What the check makes of a server's answers."""
    conversations = probes(rm)
    assert len(conversations) == 10
    return compare(rm, conversations, Server(address).rewards(rendered(rm, conversations)))


@pytest.mark.parametrize(("shape", "path"), [("vllm", "/classify"), ("vllm", "/pooling"), ("sglang", "/classify")])
def test_a_server_that_is_right_is_said_to_be(shape, path, directory, rm, serve):
    found = ask(rm, serve(Served(directory, shape=shape)) + path)
    assert found.verdict == "ok" and "likely cause" not in found.text


FAULTS = {
    "double BOS": "BOS is doubled",
    "no closing id": "closing id is missing",
    "sigmoid": "a sigmoid",
    "scaled": "another scale: its reward is 0.5 times this one -2",
    "alternating": "likely cause: differences as small as half precision makes",
    "truncated": "long conversations are truncated",
    "no system prompt": "the system prompt is left out",
    "shuffled": "none of the known ones",
    "negated": "its reward is -1 times this one",
    "ones": "none of the known ones",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_server_is_named(fault, directory, rm, serve):
    found = ask(rm, serve(Served(directory, fault)) + "/classify")
    assert FAULTS[fault] in found.text


def test_rewards_of_a_file_are_compared_by_the_command(directory, rm, tmp_path, monkeypatch, capsys):
    file = tmp_path / "rewards.jsonl"

    def run(rows) -> int:
        file.write_text("\n".join(json.dumps(row) for row in rows))
        monkeypatch.setattr("sys.argv", ["rmnb", "check", str(directory), "--device", "cpu", "--against", str(file)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    answers = ["love", "war and peace", "7"]
    rows = [
        {"prompt": "What is good?", "response": answer, "reward": float(reward)}
        for answer, reward in zip(answers, rm.score("What is good?", answers), strict=True)
    ]
    assert run(rows) == 0 and "against       3 conversations: largest difference" in capsys.readouterr().out
    rows[1]["reward"] += 1
    assert run(rows) == 1
    del rows[1]["reward"]
    assert run(rows) == 2 and "row 2" in capsys.readouterr().err
    for wrong in ({"prompt": 7}, {"prompt": [{"role": "user", "content": 7}]}, {"response": None}):
        assert run([rows[0], {**rows[2], **wrong}]) == 2 and "row 2" in capsys.readouterr().err


def test_an_endpoint_that_is_down_or_answers_nonsense_is_one_line(serve):
    class Nonsense:
        def __init__(self, *answer):
            self.reply = answer

        def answer(self, path, body):
            return self.reply

    with pytest.raises(InputError, match="cannot be reached"):
        Server("http://127.0.0.1:9/classify").rewards(["a"])
    for reply, said in [
        ((404, {"detail": "Not Found"}), "answers 404"),
        ((200, b"<html>"), "no list of rewards"),
        ((200, {"data": [{"index": 0, "object": "score"}]}), "no list of rewards"),
        ((200, {"data": []}), "0 rewards to 1"),
        ((200, {"data": [{"probs": [0.5, 0.5]}]}), "no list of rewards"),
        ((200, {"data": [{"probs": [float("nan")]}]}), "1 rewards to 1 conversations, or no numbers"),
    ]:
        with pytest.raises(InputError, match=said):
            Server(serve(Nonsense(*reply)) + "/classify").rewards(["a"])


def test_special_tokens_that_a_response_spells_out_are_a_cause(rm):
    answers = ["love", "war and peace", "it is <end> here", "7"]
    conversations = [Conversation("What is good?", answer) for answer in answers]
    ids = rm.dialogue.ids_in_context("What is good?", answers)
    found = compare(rm, conversations, score_sequences(rm, ids).astype(float))
    assert "special tokens" in found.text


def test_a_server_that_hangs_is_one_line_and_a_key_is_sent(serve):
    class Slow:
        def answer(self, path, body):
            time.sleep(1)
            return 200, {"data": []}

    with pytest.raises(InputError, match="has not answered within"):
        Server(serve(Slow()) + "/classify", timeout=0.2).rewards(["a"])

"""The same model on a server, right and wrong in each of the ways that servers go wrong."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from checkpoints import own_rewards, write_encoder
from commands import run
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.against import Elsewhere, compare_rewards, probes, request_bodies, request_rewards
from rmnb.scoring.engine import score_sequences
from rmnb.scoring.forms import Exchange

# How a server goes wrong with the ids, and the conversations in which its rewards part from those here.
OF_IDS = {
    "BOS is doubled": (lambda ids: [1, *ids], "10 part"),
    "the closing id is missing": (lambda ids: ids[:-1], "10 part"),
    "long conversations are truncated": (lambda ids: ids[:256], "1 part, of 512 to 512 ids, first number 9"),
    "the system prompt is left out": (
        lambda ids: ids if ids[1] == 3 else [1, *ids[ids.index(3) :]],
        "1 part, of 31 to 31 ids, first number 10",
    ),
}


@pytest.fixture
def serve():
    """Serve what `answer(headers, body)` gives, a status and JSON or bytes: its address."""
    servers = []

    def start(answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, content = answer(self.headers, body)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/classify"

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture(scope="module")
def theirs(directory):
    """The rewards of filled templates by transformers alone, read at the last id."""
    words = AutoTokenizer.from_pretrained(directory)

    def rewards(texts, change=list) -> np.ndarray:
        ids = words(texts, add_special_tokens=False)["input_ids"]
        return own_rewards(directory, [change(each) for each in ids], pad_token_id=None)

    return rewards


SHAPES = {
    "vLLM, classify": ("input", lambda i, reward: {"index": i, "probs": [reward], "num_classes": 1}),
    "vLLM, pooling": ("input", lambda i, reward: {"index": i, "data": [[0.0], [reward]]}),
    "SGLang": ("text", lambda i, reward: {"embedding": [reward], "meta_info": {}}),
    "OpenRLHF, serve_rm": ("query", lambda i, reward: reward),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_server_that_is_right_is_said_to_be(shape, rm, theirs, serve):
    key, row = SHAPES[shape]

    def answer(headers, body):
        if headers["Authorization"] != "Bearer 7":
            return 401, {}
        if key not in body or body.get("use_activation", key == "input"):
            return (500, b"Internal Server Error") if key == "query" else (422, {"detail": f"{key}: field required"})
        rows = [row(i, reward) for i, reward in enumerate(theirs(body[key]))]
        if key == "query":
            return 200, {"rewards": rows, "scores": rows, "extra_logs": {}}
        return 200, rows if key == "text" else {"data": rows[::-1]}

    conversations = probes(rm)
    rewards = request_rewards(serve(answer), request_bodies(rm, conversations), headers={"Authorization": "Bearer 7"})
    found = compare_rewards(rm, Elsewhere(rewards, conversations))
    assert found.verdict == "ok" and "part" not in found.text


@pytest.mark.parametrize("wrong", OF_IDS)
def test_where_rewards_part_is_said(wrong, rm, theirs):
    conversations = probes(rm)
    change, said = OF_IDS[wrong]
    [body, *_] = request_bodies(rm, conversations)
    found = compare_rewards(rm, Elsewhere(theirs(body["input"], change), conversations))
    assert found.verdict == "failed"
    assert said in found.text


def compared(rm, answers, rewards):
    """What is found where these answers to one question have these rewards elsewhere."""
    return compare_rewards(rm, Elsewhere(rewards, [Exchange("What is good?", answer) for answer in answers]))


def test_rewards_of_a_file_are_compared_by_the_command(directory, rm, tmp_path, monkeypatch, capsys):
    file, answers = tmp_path / "rewards.jsonl", ["love", "war and peace", "7"]

    def check(rows) -> int:
        file.write_text("\n".join(json.dumps(row) for row in rows))
        return run(monkeypatch, "check", directory, "--against", file)

    rewards = zip(answers, rm.score("What is good?", answers).tolist(), strict=True)
    rows = [{"prompt": "What is good?", "response": answer, "reward": reward} for answer, reward in rewards]
    assert check(rows) == 0 and "against       3 conversations: largest difference" in capsys.readouterr().out
    assert check([*rows[:2], rows[2] | {"reward": 99}]) == 1
    assert "checks failed" in capsys.readouterr().err
    assert check([rows[0] | {"reward": 99}]) == 1  # one row has no spread of its own
    ids = rm.dialogue.conversations("What is good?", answers)
    fed = [{"ids": each, "reward": row["reward"]} for each, row in zip(ids, rows, strict=True)]
    assert check(fed) == 0
    other = [each[:-1] for each in ids]  # right rewards of other ids than are fed here
    theirs = zip(rows, other, score_sequences(rm, other).tolist(), strict=True)
    capsys.readouterr()
    assert check([row | {"ids": each, "reward": reward} for row, each, reward in theirs]) == 0
    assert "warning  against" in (shown := capsys.readouterr().out) and "ids part at number 1" in shown
    assert check([fed[0] | {"ids": [5, 100000]}]) == 2
    capsys.readouterr()
    for wrong in ({"reward": None}, {"response": None}):
        assert check([rows[0], {**rows[2], **wrong}]) == 2 and "row 2" in capsys.readouterr().err


def test_half_precision_excuses_no_difference_of_half_the_spread(directory):
    rm = rmnb.load_reward_model(directory, dtype="bfloat16")
    answers = ["love", "war and peace", "it is good", "7"]
    rewards = rm.score("What is good?", answers)
    moved = rewards + 0.5 * rewards.std() * np.array([1, -1, 1, -1])
    assert compared(rm, answers, rewards).verdict == "ok"
    assert compared(rm, answers, moved).verdict == "failed"


def test_a_model_of_pairs_is_compared_by_its_own_segments(tmp_path, serve):
    write_encoder(tmp_path)
    rm, answers = rmnb.load_reward_model(tmp_path), ["war", "war and pain"]  # both segments begin alike
    words = AutoTokenizer.from_pretrained(tmp_path)
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    inputs = [words("What is good?", answer, return_tensors="pt") for answer in answers]
    rewards = np.array([classifier(**each).logits.item() for each in inputs])
    assert inputs[0]["token_type_ids"].sum() and np.ptp(rewards) > 1e-3
    assert compared(rm, answers, rewards).verdict == "ok"
    assert compared(rm, answers, rewards[::-1]).verdict == "failed"

    def answer(headers, body):
        pairs = words(body["text_1"], body["text_2"], return_tensors="pt", padding=True)
        scores = classifier(**pairs).logits[:, 0].tolist()
        return 200, {"data": [{"index": i, "object": "score", "score": score} for i, score in enumerate(scores)]}

    asked = [Exchange("What is good?", answer) for answer in answers]
    assert request_rewards(serve(answer), request_bodies(rm, asked)) == pytest.approx(rewards, abs=1e-5)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (404, {"detail": "Not Found"}),
        (200, {"data": []}),
        (200, {"data": [{"probs": [0.5, 0.5]}]}),
        (200, {"data": [{"probs": [float("nan")]}]}),
        (200, {"data": [{"data": [[0.1, 0.2], [0.3, 0.4]]}]}),  # hidden states
    ],
)
def test_an_endpoint_that_answers_nonsense_is_one_line(serve, status, content):
    with pytest.raises(InputError, match=r"^http\S+ answers .+$"):
        request_rewards(serve(lambda headers, body: (status, content)), [{"input": ["a"]}])


def test_an_endpoint_that_is_slow_or_down_is_one_line(serve):
    slow = serve(lambda headers, body: (200, time.sleep(1)))
    for address in (slow, "http://127.0.0.1:9/classify"):
        with pytest.raises(InputError, match="does not answer"):
            request_rewards(address, [{"input": ["a"]}], timeout=0.2)

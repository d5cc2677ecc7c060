"""Nothing in a row is passed over: a key is in the conversation, is a column, or is refused by the row's number."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from checkpoints import EARLIER, TEMPLATE, assistant, own_ids, own_rewards, tokenizer, user, write_decoder
from commands import run
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from transformers import AutoTokenizer
from trl.data_utils import apply_chat_template

import rmnb
from rmnb.errors import InputError
from rmnb.models.dialogue import TRAINERS
from rmnb.scoring.forms import read_forms
from rmnb.scoring.pairs import margins, pair_numbers
from rmnb.scoring.row_files import read_rows
from rmnb.scoring.rows import score_file

QUESTION = user("What is good?")
PAIR = {"prompt": "What is good?", "chosen": "love", "rejected": "war"}
TOOLS = [{"type": "function", "function": {"name": "water", "parameters": {"default": None}}}]
CALL = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "water"}}]}
#: Writes whatever a row may say to it, so that each part changes the reward.
FULL = TEMPLATE.replace(
    "{{ bos_token }}",
    "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}{% for d in documents or [] %}{{ d['text'] }}"
    "{% endfor %}{% if enable_thinking %}think{% endif %}",
).replace(
    "m['content'] | trim }}",
    "(m['content'] or '') | trim }}{% for c in m['tool_calls'] or [] %}{{ c['function']['name'] }}{% endfor %}",
)


def with_template(directory, template):
    write_decoder(directory, rows=400)
    words = AutoTokenizer.from_pretrained(directory)
    words.chat_template = template
    words.save_pretrained(directory)
    return directory, words


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A checkpoint with the template `FULL`, and its tokenizer."""
    return with_template(tmp_path_factory.mktemp("full"), FULL)


def rewards(directory, rows, **options):
    """float [rows, 2], of the chosen and the rejected responses."""
    table = score_file(rmnb.load_reward_model(directory, **options), rows)
    return table[["reward_chosen", "reward_rejected"]].to_numpy()


def test_messages_and_a_rejected_response_are_a_pair(rm, directory):
    row = {"messages": [*EARLIER, QUESTION, assistant("love")], "rejected_response": "war"}
    whole = {"messages": row["messages"], "rejected_messages": [*EARLIER, QUESTION, assistant("war")]}
    ids = own_ids(AutoTokenizer.from_pretrained(directory), [*EARLIER, QUESTION], ["love", "war"])
    for given_row in (row, whole):
        table = score_file(rm, [given_row])
        np.testing.assert_allclose(
            table[["reward_chosen", "reward_rejected"]], [own_rewards(directory, ids)], atol=1e-4
        )


@pytest.mark.parametrize("history", [[["Hello?", "Yes."]], json.dumps([["Hello?", "Yes."]]), EARLIER])
def test_a_history_is_the_turns_before_the_question(directory, history):
    row = {"instruction": "What is", "input": "good?", "chosen": "love", "rejected": "war", "history": history}
    turns = [*EARLIER, user("What is\ngood?")]
    ids = own_ids(AutoTokenizer.from_pretrained(directory), turns, ["love", "war"])
    np.testing.assert_allclose(rewards(directory, [row]), [own_rewards(directory, ids)], atol=1e-4)


@pytest.mark.parametrize(
    "said",
    [
        {"chat_template_kwargs": json.dumps({"enable_thinking": True})},
        {"documents": [{"title": "a", "text": "Water is bad."}]},
        {"tools": json.dumps(TOOLS), "chat_template_kwargs": {"enable_thinking": True}},
    ],
)
def test_what_a_row_says_to_the_template_is_given_to_it_as_by_trl(full, said):
    directory, words = full
    row = {"prompt": [QUESTION], "chosen": [assistant("love")], "rejected": [assistant("war")]}
    read = {key: json.loads(value) if isinstance(value, str) else value for key, value in said.items()}
    arguments = {"documents": read["documents"]} if "documents" in read else read.get("chat_template_kwargs", {})
    written = apply_chat_template(dict(row), words, read.get("tools"), **arguments)
    texts = [written["prompt"] + written[side] for side in ("chosen", "rejected")]
    ids = words(texts, add_special_tokens=False)["input_ids"]
    np.testing.assert_allclose(rewards(directory, [row | said]), [own_rewards(directory, ids)], atol=1e-4)
    plain = rewards(directory, [row])
    assert np.abs(plain - own_rewards(directory, ids)).max() > 0.01, "the template writes what it is given"


def test_a_response_that_calls_a_tool_and_the_tools_answer_have_the_ids_of_the_template(full):
    directory, words = full
    turns = [QUESTION, CALL, {"role": "tool", "name": "water", "content": "good"}]
    row = {"prompt": turns, "chosen": [CALL], "rejected": "war", "tools": TOOLS}
    whole = [[*turns, CALL], [*turns, assistant("war")]]
    ids = words.apply_chat_template(whole, tools=TOOLS)["input_ids"]
    np.testing.assert_allclose(rewards(directory, [row]), [own_rewards(directory, ids)], atol=1e-4)


def test_of_several_templates_the_one_is_filled_that_transformers_takes(tmp_path):
    directory, words = with_template(tmp_path, {"default": TEMPLATE, "tool_use": FULL})
    row = PAIR | {"tools": TOOLS}
    turns = [[QUESTION, assistant(text)] for text in ("love", "war")]
    ids = words.apply_chat_template(turns, tools=TOOLS)["input_ids"]
    np.testing.assert_allclose(rewards(directory, [row]), [own_rewards(directory, ids)], atol=1e-4)
    plain = own_rewards(directory, own_ids(words, "What is good?", ["love", "war"]))
    np.testing.assert_allclose(rewards(directory, [row, PAIR])[1], plain, atol=1e-4)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("side", ["chosen", "rejected"])
def test_an_empty_text_is_a_gap_in_whatever_file(tmp_path, suffix, side):
    frame = pd.DataFrame([PAIR, PAIR | {side: ""}])
    file = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(file)
    elif suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    with pytest.raises(InputError, match=f"row 2: .*empty: {side}"):
        read_forms(read_rows(file))


def test_messages_written_as_json_in_a_cell_are_messages_and_a_text_is_a_text(tmp_path):
    rows = [
        PAIR | {"prompt": json.dumps([*EARLIER, QUESTION]), "chosen": json.dumps([assistant("love")])},
        PAIR | {"chosen": '["love"]', "rejected": '{"a": 1}'},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    answers = read_forms(read_rows(tmp_path / "rows.csv")).answers
    assert [answer.conversation.response for answer in answers] == ["love", '["love"]', "war", '{"a": 1}']
    whole = read_forms([PAIR | {"prompt": [*EARLIER, QUESTION]}]).answers[0]
    assert answers[0].conversation == whole.conversation


@pytest.mark.parametrize(
    "tie",
    [
        PAIR | {"score_chosen": 3.0, "score_rejected": 3},
        {"prompt": "a", "response_a": "b", "response_b": "c", "winner": "tie (bothbad)"},
        {"prompt": "a", "answer_0": "b", "answer_1": "c", "score_0": 0, "score_1": 0},
    ],
)
def test_a_tie_is_counted_and_is_no_pair(tie):
    content = read_forms([PAIR, tie, tie])
    assert content.ties == [2, 3] and {answer.row for answer in content.answers} == {0}


def test_a_chosen_response_with_the_lower_score_is_refused():
    with pytest.raises(InputError, match="row 1: the rejected response has the higher score"):
        read_forms([PAIR | {"score_chosen": 1, "score_rejected": 2}])


NAMES = ["side", "row", "length", "reward", "reward_chosen", "reward_model", "kind", "input_reward"]


@pytest.mark.parametrize("rejected", ["war", ["war", "pain"]])
def test_own_columns_may_have_any_name(directory, rm, rejected, tmp_path, printed_json):
    file = tmp_path / "rows.jsonl"
    rows = [PAIR | {"rejected": rejected} | {name: row for name in NAMES} for row in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)))
    table = score_file(rm, rows)
    assert all(margins(table, by)["part"].tolist() == ["0", "1", "2"] for by in NAMES)
    assert [*printed_json("score", directory, file, "--by", "side")["parts"]] == ["0", "1", "2"]
    single = tmp_path / "single.jsonl"
    single.write_text(json.dumps({"prompt": "a", "response": "b", "reward_model": "gpt"}))
    [row] = printed_json("score", directory, single)["rows"]
    assert row["reward_model"] == "gpt"


def test_rewards_are_printed_beside_a_column_that_is_called_like_one(directory, tmp_path, printed, rm):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"prompt": "a", "response": "b", "reward_model": "gpt"}))
    reward, number = printed("score", directory, file).split()
    assert (float(reward), number) == (pytest.approx(rm.score("a", ["b"])[0], abs=1e-5), "1")


def test_the_length_of_a_response_is_that_of_its_content(rm):
    rows = [PAIR | {"prompt": [QUESTION], "rejected": [assistant("war") | {"model": "gpt", "weight": 1}]}]
    table = score_file(rm, rows)
    assert table[["length_chosen", "length_rejected"]].to_numpy().tolist() == [[4, 3]]


def test_a_template_that_ends_with_the_answer_is_scored_alone_as_among_others(tmp_path):
    template = "{{ bos_token }}{% for m in messages %}<user>{{ m['content'] }}{% endfor %}"
    directory, words = with_template(tmp_path, template)
    rm = rmnb.load_reward_model(directory)
    expected = own_rewards(directory, own_ids(words, "a?", ["love", "war and peace"]))
    alone = [rm.score("a?", [text])[0] for text in ("love", "war and peace")]
    np.testing.assert_allclose(alone, expected, atol=1e-4)
    np.testing.assert_allclose(rm.score("a?", ["love", "war and peace"]), expected, atol=1e-4)
    np.testing.assert_allclose(rm.score(["a?", "b?", "a?"], ["love", "c", "war and peace"])[::2], expected, atol=1e-4)


# --- a row's reward never depends on its neighbours ---

MIXED = [
    PAIR,
    PAIR | {"chosen": " love", "rejected": "war<end>"},
    PAIR | {"prompt": "What is <model> good?"},
    PAIR | {"prompt": [*EARLIER, QUESTION], "tools": TOOLS},
    {"prompt": [QUESTION], "chosen": [CALL], "rejected": [assistant("war")], "tools": TOOLS},
    PAIR | {"chat_template_kwargs": {"enable_thinking": True}, "rejected": "war and peace, pain and water"},
    PAIR | {"documents": [{"text": "Water <user> is bad."}]},
    PAIR | {"system": "Be brief.", "chosen": "a"},
    {"messages": [*EARLIER, QUESTION, assistant("love")], "rejected_response": " war "},
    {"instruction": "What is good?", "history": [["a", "b"]], "chosen": "love", "rejected": "war"},
    {"context": [QUESTION], "response1": "love", "response2": "<eos>", "overall_preference": -2},
    {"question": "What is good?", "response_A": "war", "response_B": "love", "label": "B>A"},
    {"history": "What is good?", "human_ref_A": "love", "human_ref_B": "war", "labels": 1},
    {"prompt": "What is good?", "answers": [{"answer": "war", "rank": 2}, {"answer": " love", "rank": 1}]},
    {"chosen": [QUESTION, assistant("love")], "rejected": [QUESTION, assistant("war")]},
    {"chosen": "\n\nHuman: a\n\nAssistant: love", "rejected": "\n\nHuman: a\n\nAssistant: war"},
]
READS = ["model", "last", *TRAINERS]


@pytest.fixture(scope="module")
def alone(full):
    """By way of reading, the model and the rewards of each row of `MIXED` in a file of its own."""
    models = {read: rmnb.load_reward_model(full[0], read=read, device="cpu") for read in READS}
    return {read: (rm, np.concatenate([scored(rm, [row]) for row in MIXED])) for read, rm in models.items()}


def scored(rm, rows):
    return score_file(rm, rows)[["reward_chosen", "reward_rejected"]].to_numpy()


@pytest.mark.parametrize("read", READS)
@given(places=st.lists(st.integers(0, len(MIXED) - 1), min_size=2, max_size=2 * len(MIXED)))
def test_a_reward_does_not_depend_on_the_rows_beside_it(alone, read, places):
    rm, expected = alone[read]
    given_rows = [MIXED[place] for place in places]
    assert np.abs(scored(rm, given_rows) - expected[places]).max() <= 1e-5 * expected.std()


@pytest.mark.parametrize("read", READS)
def test_many_responses_to_one_prompt_are_each_scored_as_alone(alone, read):
    rm, expected = alone[read]
    texts = [" love", "war", "war<end>", "peace", "love", "a", "b", "c", "pain <user>"]
    together = rm.score("What is good?", [*texts, CALL])
    separate = [rm.score("What is good?", [text])[0] for text in [*texts, CALL]]
    assert np.abs(together - separate).max() <= 1e-5 * expected.std()


@pytest.mark.slow
@pytest.mark.parametrize("read", ["model", "openrlhf", "llama-factory"])
def test_a_reward_of_a_demo_model_does_not_depend_on_the_rows_beside_it(read):
    plain = [row for row in MIXED if not row.keys() & {"tools", "documents", "chat_template_kwargs"}]
    rm = rmnb.load_reward_model("smollm2-values", read=read, device="cpu")
    expected = np.concatenate([scored(rm, [row]) for row in plain])
    order = np.random.default_rng(0).permutation(2 * len(plain)) % len(plain)
    assert np.abs(scored(rm, [plain[place] for place in order]) - expected[order]).max() <= 1e-4 * expected.std()


# --- one key more ---

FORMS = {
    **{" and ".join(sorted(row)): row for row in MIXED},
    "single": {"prompt": "What is good?", "response": "love"},
    "conversation": {"messages": [QUESTION, assistant("love")]},
    "several": {"prompt": "What is good?", "responses": ["love", "war"]},
    "lists": PAIR | {"rejected": ["war", "pain"]},
}
KEYS = [
    *("rejected_response", "rejected_messages", "chosen_response", "rejected_responses", "history", "messages"),
    *("conversations", "conversation", "context", "documents", "images", "image", "videos", "tools", "system"),
    *("system_prompt", "chat_template_kwargs", "instruction", "input", "output", "question", "query", "answer"),
    *("response", "responses", "completion", "completions", "chosen", "rejected", "margin", "label", "winner"),
    *("score", "score_chosen", "chosen_model", "prompt_id", "subset", "category", "dataset", "metadata", "tags"),
    *("response_3", "generations", "ground_truth", "trajectory", "system_message", "System", "Context", "dialogue"),
]
LADEN = ("rejected", "images", "messages", "system", "context", "dialogue")
VALUES = ["bad", 3, True, [QUESTION, assistant("bad")], {"a": "bad"}, ["bad", "b"], [["bad", "b"]], 0.5]


@pytest.mark.parametrize("name", FORMS)
def test_one_key_more_is_read_carried_along_or_refused(name):
    """What is carried leaves the conversations as they are; what changes none of them is a column that is not laden."""
    row = FORMS[name]
    before = read_forms([row])
    verdicts = {"read": 0, "carried": 0, "refused": 0}
    for key, value in itertools.product(KEYS, VALUES):
        if key in row:
            continue
        try:
            content = read_forms([row | {key: value}])
        except InputError as error:
            assert str(error).startswith("row 1: ") or "which of its responses is better" in str(error)
            verdicts["refused"] += 1
            continue
        if content.answers != before.answers or content.forms != before.forms:
            verdicts["read"] += 1
            continue
        verdicts["carried"] += 1
        assert key in content.columns
        is_scalar = not isinstance(value, list | dict)
        assert is_scalar and (not isinstance(value, str) or not key.lower().startswith(LADEN))
    assert verdicts["refused"] > 50 and verdicts["carried"] > 20


def test_a_key_that_is_ignored_or_not_among_the_columns_is_carried_along():
    row = PAIR | {"messages": "war", "generations": ["a"]}
    content = read_forms([row], ignore=["messages", "generations"])
    assert content.columns == ["messages", "generations"] and content.answers == read_forms([PAIR]).answers
    named = {"question": "What is good?", "good": "love", "bad": "war", "prompt": "other", "history": [["a", "b"]]}
    content = read_forms([named], columns={"prompt": "question", "chosen": "good", "rejected": "bad"})
    assert content.columns == ["prompt", "history"] and content.answers == read_forms([PAIR]).answers
    with pytest.raises(InputError, match="row 1: it has no worse"):
        read_forms([named], columns={"chosen": "good", "rejected": "worse"})


# --- the command ---


def test_the_command_says_what_was_read_and_shows_what_would_be_fed(directory, tmp_path, monkeypatch, capsys):
    file = tmp_path / "rows.jsonl"
    rows = [PAIR | {"subset": "a"}, PAIR | {"score_chosen": 1, "score_rejected": 1}, PAIR]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert run(monkeypatch, "score", directory, file) == 0
    lines = capsys.readouterr().err.splitlines()
    said = f"{file}: chosen and rejected; 3 rows, 2 pairs, 1 tied and left out; carried along: "
    assert said + "score_chosen, score_rejected, subset" in lines
    (directory / "model.safetensors").rename(tmp_path / "model.safetensors")
    try:
        assert run(monkeypatch, "score", directory, file, "--show", 3) == 0
    finally:
        (tmp_path / "model.safetensors").rename(directory / "model.safetensors")
    shown = capsys.readouterr().out
    words = tokenizer()
    for text in ("love", "war"):
        [ids] = own_ids(words, "What is good?", [text])
        assert shown.count(words.decode(ids)) == 2
    assert "row 1, chosen" in shown and "row 2" not in shown and "row 3, rejected" in shown


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_of_rewards_is_the_old_one_until_the_new_one_is_whole(directory, tmp_path, monkeypatch, suffix):
    file, out = tmp_path / "rows.jsonl", tmp_path / f"out{suffix}"
    file.write_text(json.dumps(PAIR))
    out.write_text("old")

    def write_half(self, path, *_, **__):
        with open(path, "w") as half:
            half.write("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", write_half)
    monkeypatch.setattr(pd.DataFrame, "to_json", write_half)
    assert run(monkeypatch, "score", directory, file, "--out", out) != 0
    assert out.read_text() == "old" and not list(tmp_path.glob(".*part"))


def test_responses_to_different_questions_are_no_pair_and_earlier_answers_may_differ():
    turns = [user("Hello?"), assistant("Yes."), user("What is good?")]
    sides = {side: [*turns, assistant(side)] for side in ("chosen", "rejected")}
    sides["rejected"][1] = assistant("No.")
    assert read_forms([sides]).kind == "pairs"
    sides["rejected"][0] = user("Who is there?")
    with pytest.raises(InputError, match="row 2: its responses answer different questions"):
        read_forms([PAIR, sides])


def test_of_labelled_responses_the_number_is_the_area_under_the_roc_curve(rm):
    rows = [{"prompt": "a?", "completion": word, "label": len(word) > 4} for word in ("love", "peace", "war", "water")]
    table = score_file(rm, rows)
    [number] = pair_numbers(table).to_dict("records")
    assert number["name"] == "auc" and number["pairs"] == 4
    assert number["value"] == roc_auc_score([row["label"] for row in rows], table["reward"])


def test_a_table_says_what_it_is(rm, tmp_path):
    kinds = {
        "single": {"prompt": "a", "response": "b"},
        "several": {"prompt": "a", "responses": ["b", "c"]},
        "pairs": PAIR,
        "lists": PAIR | {"rejected": ["war", "pain"]},
    }
    for kind, row in kinds.items():
        out = tmp_path / f"{kind}.parquet"
        table = score_file(rm, [row | {"side": "x"}], out)
        again = score_file(rm, [row | {"side": "y"}], out)
        for notes in (table.attrs["provenance"], again.attrs["provenance"]):
            assert (notes["kind"], notes["outputs"]) == (kind, ["reward"])
        carried = again.attrs["provenance"]["carried"]["side"]
        assert again[carried].unique().tolist() == ["y"]
    table = score_file(rm, [PAIR | {"side": "x"}])
    assert {*pair_numbers(table, "side")["part"]} == {"x", ""}

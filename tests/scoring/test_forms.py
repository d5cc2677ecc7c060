"""Forms of rows: each published form is the conversations that its owner means; what may mean two things is refused."""

import json
from pathlib import Path

import pytest
from checkpoints import EARLIER, assistant, user

from rmnb.conversation import as_conversation
from rmnb.errors import InputError
from rmnb.scoring.forms import read_forms

QUESTION = user("What is good?")


def said(row):
    """The sides of one row, and what is said on each."""
    return [(answer.side, answer.conversation.response) for answer in answers_of([row])]


def answers_of(rows):
    return read_forms(rows).answers


LOVE, WAR = {"prompt": "What is good?", "chosen": "love"}, {"rejected": "war"}
SPOKEN = "\n\nHuman: What is good?\n\nAssistant: "
#: A row of each published form of a pair, as its card shows it, by the name of the set or of who published it.
PAIRS: dict = {}
for line in Path(__file__).with_name("published_forms.jsonl").read_text(encoding="utf-8").splitlines():
    PAIRS |= json.loads(line)


@pytest.mark.parametrize("name", PAIRS)
def test_each_published_form_of_a_pair_is_the_same_two_conversations(name):
    answers = answers_of([PAIRS[name]])
    question = as_conversation("What is good?")
    assert [(one.side, *one.conversation) for one in answers] == [
        ("chosen", question, "love"),
        ("rejected", question, "war"),
    ]


def test_one_response_lists_of_them_a_system_prompt_and_ties_are_read():
    for form in (
        {"prompt": [*EARLIER, QUESTION], "response": "love"},
        {"messages": [*EARLIER, QUESTION], "response": "love"},
        {"messages": [*EARLIER, QUESTION, assistant("love")]},
        {"prompt": [*EARLIER, QUESTION], "completion": [assistant("love")], "label": True},
        {"prompt": "\n\nHuman: Hello?\n\nAssistant: Yes." + SPOKEN, "answer": "love"},
        {"prompt": "Hello?\n<extra_id_1>Assistant\nYes.\n<extra_id_1>User\nWhat is good?", "response": "love"},
    ):
        [one] = answers_of([form])
        assert one == (0, "response", (as_conversation([*EARLIER, QUESTION]), "love"))
    assert said(LOVE | {"rejected": ["war", "pain"]}) == [("chosen", "love"), ("rejected", "war"), ("rejected", "pain")]
    assert said({"instruction": "a", "input": "b", "output": "c"}) == [("response", "c")]
    system = {"system": "Be brief.", **LOVE, **WAR}
    asked = as_conversation([{"role": "system", "content": "Be brief."}, QUESTION])
    assert answers_of([system])[0].conversation.prompt == asked
    tie = {"prompt": "a", "response1": "b", "response2": "c", "overall_preference": 0}
    assert {one.row for one in answers_of([tie, tie | {"overall_preference": 1}])} == {1}


TWO = {"prompt": "a", "response_0": "b", "response_1": "c"}
AB = {"prompt": "a", "response_a": "b", "response_b": "c"}


@pytest.mark.parametrize(
    ("row", "chosen"),
    [
        (TWO | {"label": 1.0}, "c"),  # as pandas writes a column with a gap
        (TWO | {"winner": "Response_1"}, "c"),
        (AB | {"winner": "Assistant B"}, "c"),
        (AB | {"winner": "b", "score_a": 2, "score_b": 2}, "c"),
        (TWO | {"label": -1}, None),
        (AB | {"label": "A>B"}, "b"),
        ({"history": "a", "human_ref_A": "b", "human_ref_B": "c", "labels": 0}, "c"),
        (AB | {"winner": "a", "score_a": 1, "score_b": 4}, None),
        (AB | {"score_a": "high", "score_b": 4}, None),
        ({"prompt": "a", "responses": ["b", "c"], "ranks": [1, 2, 3]}, None),
        (
            {
                "prompt": "a",
                "responses": [{"text": "b", "score": 1, "rating": 5}, {"text": "c", "score": 2, "rating": 4}],
            },
            None,
        ),
        ({"prompt": [QUESTION, assistant("b")], "chosen": "c", "rejected": "d"}, None),
        ({"prompt": "a", "chosen": SPOKEN + "b", "rejected": SPOKEN + "c"}, None),
        ({"chosen": "Be kind." + SPOKEN + "b", "rejected": "Be kind." + SPOKEN + "c"}, None),
        ({"system": "x", "messages": [{"role": "system", "content": "y"}, QUESTION], "response": "b"}, None),
        ({"prompt": [user([{"type": "text", "text": "a"}] * 2)], "response": "b"}, None),
    ],
)
def test_which_response_a_row_means_is_read_or_refused_never_guessed(row, chosen):
    if chosen is None:
        with pytest.raises(InputError, match=r"^row 1: "):
            answers_of([row])
    else:
        assert said(row)[0] == ("chosen", chosen)


def test_a_dialogue_in_one_text_is_the_same_however_it_is_cut():
    whole = answers_of([{"chosen": SPOKEN + " b", "rejected": SPOKEN + " c"}])
    assert answers_of([{"prompt": SPOKEN, "chosen": " b", "rejected": " c"}]) == whole
    assert answers_of([{"prompt": SPOKEN, "chosen": SPOKEN + " b", "rejected": SPOKEN + " c"}]) == whole


def test_summaries_are_asked_for_as_their_authors_do():
    post = {"subreddit": "pets", "title": "My dog", "post": "It barks.", "id": "7"}
    row = {"info": post, "summaries": [{"text": " It sleeps."}, {"text": " It barks."}], "choice": 1}
    prompt = as_conversation("SUBREDDIT: r/pets\n\nTITLE: My dog\n\nPOST: It barks.\n\nTL;DR:")
    assert [tuple(one.conversation) for one in answers_of([row])] == [(prompt, " It barks."), (prompt, " It sleeps.")]
    with pytest.raises(InputError, match="row 1: choice is 2: none of its 2 responses"):
        answers_of([row | {"choice": 2}])
    with pytest.raises(InputError, match="row 1: info has no 'post'"):
        answers_of([row | {"info": post | {"post": None}}])
    pair = {"prompt": prompt.question, "chosen": " It sleeps.", "rejected": " It barks."}
    assert [one.conversation.prompt for one in answers_of([pair | {"info": post}])] == [prompt, prompt]
    with pytest.raises(InputError, match=r"row 1: info: not read beside chosen and rejected: .*--ignore info"):
        answers_of([pair | {"info": post | {"title": "My cat"}}])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "no form has the keys none"),
        ({"prompt": "a"}, "no form has the keys prompt: name them, as in --columns"),
        ({"prompt": "a", "chosen": "b", "rejected": None}, "no form has the keys chosen, prompt.*; empty: rejected"),
        ({"prompt": "a", "response": 7}, "'7' in place of"),
        ({"response": "b"}, "a response and no prompt"),
        ({"messages": [*EARLIER, QUESTION]}, "the last message is not the assistant's"),
        ({"prompt": "a", "answer_a": "b", "answer_b": "c"}, "nothing says which"),
        ({"question": "a", "context": "b", "response": "c"}, "question: not read beside response: .*--ignore question"),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, "chosen and rejected, the rows before have response"),
        (
            {"prompt": "a", "completions": [{"response": "b", "custom_system_prompt": "c", "annotations": {}}]},
            "custom_system_prompt: not read beside completions: .*--ignore custom_system_prompt",
        ),
    ],
)
def test_a_row_that_is_none_is_named_with_the_reason(row, reason):
    with pytest.raises(InputError, match=rf"^row 2: [^\n]*{reason}[^\n]*$"):
        answers_of([{"prompt": "a", "response": "b"}, row])

"""The forms of rows in which preferences are published, and the conversations that each becomes.

A row says a question, and one response, or several of which some are better. Forms are tried in their order; the book
shows an example of each (*Your own model*, *Files of rows*).
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rmnb.errors import InputError, first_line, list_some
from rmnb.models.dialogue import Prompt, Response, ToolMessages, as_messages, without_gaps
from rmnb.scoring.row_files import Row, read_json

Sides = dict[str, list[Any]]  # response, or chosen and rejected: texts, messages, or lists of messages
_WHOLE = (("messages",), ("conversations",))  # the question, or the whole conversation
#: Keys that say the question; those of one entry are joined by a line break.
_QUESTIONS = (("prompt",), *_WHOLE, ("context",), ("question",), ("instruction", "input"), ("input",))
_RESPONSES = ("response", "completion", "answer", "output")
_GROUPS = ("responses", "completions", "answers")
_MESSAGE = {"from": "role", "value": "content"}
_ROLES = {"human": "user", "gpt": "assistant"}
_STEM = "(?:response|completion|answer|output|conversation)[_ ]?"
_TWO = re.compile(f"{_STEM}[0-2ab]")
#: Keys whose value names the better one, by its key or the end of that.
_BETTER = ("better_response_id", "better", "preferred", "winner", "preference", "label")
_NAMED = re.compile("(?:(?:response|completion|answer|output|conversation|model|assistant)[_ -]?)?([0-9]+|[ab])")
_SIGNED = ("overall_preference", "preference_strength")  # below 0: the first one is better
_TRANSCRIPT = re.compile(r"\s*(Human:.*)\n\nAssistant:\s*", re.DOTALL)  # ends where the assistant is to speak
_DIALOGUE = re.compile(r"\s*(?:Human|Assistant):")
_SCALES = {"rank": -1, "score": 1, "overall_score": 1, "rating": 1}  # 1: more is better


class Conversation(NamedTuple):
    """A prompt and a response."""

    prompt: Prompt
    response: Response


class Answer(NamedTuple):
    """A response: the place of its row, its side (``response``, ``chosen`` or ``rejected``), and its conversation."""

    row: int
    side: str
    conversation: Conversation


class Form(NamedTuple):
    """A form of a row: an example of it, patterns that each match one of its keys, and what reads its responses."""

    example: str
    keys: tuple[str, ...]
    read: Callable[[Row], Sides]

    def likeness(self, row: Row) -> float:
        """The share of the patterns that match a key of a row."""
        return sum(any(re.fullmatch(pattern, key) for key in row) for pattern in self.keys) / len(self.keys)


def conversations_of(rows: Sequence[Row]) -> list[Answer]:
    """The responses of rows, each in its conversation: all chosen ones first, then all rejected ones.

    Rows that say that their responses are equally good are left out.

    Raises
    ------
    InputError
        A row has no known form (the nearest one is shown), or other sides than the rows before; its number is named.
    """
    by_side: dict[str, list[Answer]] = {}
    for number, row in enumerate(rows, start=1):
        row = {key: value for key, value in row.items() if value is not None}
        form = max(FORMS, key=lambda form: form.likeness(row))
        try:
            if form.likeness(row) < 1:
                raise InputError(f"no known form has the keys {list_some(row)}")
            sides = form.read(row)
            if by_side and sides and sides.keys() != by_side.keys():
                raise InputError(f"it has {' and '.join(sides)}, the rows before have {' and '.join(by_side)}")
            for side, responses in sides.items():
                answers = [Answer(number - 1, side, _conversation(row, response)) for response in responses]
                by_side.setdefault(side, []).extend(answers)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            reason = first_line(error)
            raise InputError(f"row {number}: {reason}; the nearest form is {form.example}", number) from error
    if not by_side:
        raise InputError("no row says which of its responses is better")
    return [answer for answers in by_side.values() for answer in answers]


def other_columns(rows: Sequence[Row]) -> list[str]:
    """The keys of rows that say no part of their conversations."""
    spoken = {"tools", "system", "chosen", "rejected", *_RESPONSES, *_GROUPS, *itertools.chain(*_QUESTIONS)}
    keys = dict.fromkeys(itertools.chain(*rows))
    return [key for key in keys if key not in spoken and not _TWO.fullmatch(key)]


def unread_questions(rows: Sequence[Row]) -> str:
    """The keys that may say a question, of rows that say it by the key ``prompt``; empty if there are none."""
    unread: dict[str, None] = {}
    for row in rows:
        given = {key for key, value in row.items() if value is not None}
        if "prompt" in given:
            unread |= {keys[0]: None for keys in _QUESTIONS[1:] if keys[0] in given}
    return list_some(unread)


def _conversation(row: Row, response: Any) -> Conversation:
    """A row's question and one of its responses: a text, a message, messages to follow, or a whole conversation."""
    question, is_dialogue = _question(row)
    if isinstance(response, str) and _DIALOGUE.match(response) and "\n\nAssistant:" in response:
        turns = dialogue_turns("\n\n" + response.lstrip())
        if turns[: len(question)] != question:
            raise InputError("its response is a dialogue that does not begin with its prompt")
    elif isinstance(response, str):
        if not question:
            raise InputError("it has a response and no prompt")
        said = response.strip() if is_dialogue else response
        turns = [*question, {"role": "assistant", "content": said}]
    else:
        turns = _messages([response] if isinstance(response, Mapping) else response)
        if turns[0]["role"] == "assistant":
            turns = [*question, *turns]
    if system := row.get("system"):
        first = {"role": "system", "content": system}
        if turns[0]["role"] != "system":
            turns.insert(0, first)
        elif turns[0] != first:
            raise InputError("its system prompt is not the one in its messages")
    *before, last = turns
    if last["role"] != "assistant":
        raise InputError("the last message is not the assistant's")
    before = as_messages(before)
    if before[-1]["role"] == "assistant":
        raise InputError("the message before the response is the assistant's, too")
    said = last["content"] if last.keys() == {"role", "content"} else last
    if tools := row.get("tools"):
        schemas = read_json(tools) if isinstance(tools, str) else tools
        return Conversation(ToolMessages(before, without_gaps(schemas)), said)
    is_text = len(before) == 1 and before[0] == {"role": "user", "content": before[0]["content"]}
    return Conversation(before[0]["content"] if is_text else before, said)


def _question(row: Row) -> tuple[list[dict[str, Any]], bool]:
    """The messages of a row's question (none: its responses are whole conversations), and whether it is a dialogue."""
    given = [keys for keys in _QUESTIONS if keys[0] in row]
    if not given:
        return [], False
    first, *others = given
    if first != ("prompt",) and (other := [keys[0] for keys in others if keys[0] not in first]):
        raise InputError(f"both {first[0]} and {other[0]} may be the question: call one of them prompt")
    if not isinstance(row[first[0]], str):
        return _messages(row[first[0]]), False
    text = "\n".join(filter(None, (row.get(key) for key in first)))
    if transcript := _TRANSCRIPT.fullmatch(text):
        return dialogue_turns("\n\n" + transcript[1]), True
    return as_messages(text), False


def _messages(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages, also those that say from and value in place of role and content."""
    messages = []
    for turn in turns:
        if not isinstance(turn, Mapping):
            raise InputError(f"it has {str(turns)[:60]!r} in place of messages")
        message = {_MESSAGE.get(key, key): value for key, value in turn.items()}
        if message.get("role") in _ROLES:
            message["role"] = _ROLES[message["role"]]
        messages.append(message)
    return as_messages(messages)


def _many(value: Any) -> list[Any]:
    """A side of a row as a list of responses: it may be one text, one message, one conversation, or a list of them."""
    if isinstance(value, str | Mapping):
        return [value]
    if not isinstance(value, list) or not value:
        raise InputError(f"it has {str(value)[:60]!r} in place of a response")
    return [value] if isinstance(value[0], Mapping) else value


def _chosen_and_rejected(row: Row) -> Sides:
    for side in ("chosen", "rejected"):
        if isinstance(row[side], str) and row[side] in row:
            raise InputError(f"{side} is the name of another key, {row[side]!r}, and no response")
    return {side: _many(row[side]) for side in ("chosen", "rejected")}


def _better_of_two(row: Row) -> Sides:
    """Two responses, and what says how good each is: a score of each, a signed strength, or the better one's name."""
    keys = sorted(key for key in row if _TWO.fullmatch(key))
    if len(keys) != 2:
        raise InputError(f"it has {len(keys)} responses, {list_some(keys)}, and none of the forms for several")
    return _best_and_others([row[key] for key in keys], _goodness(row, [key[-1] for key in keys]))


def _goodness(row: Row, ends: list[str]) -> list[float]:
    """How good each of two responses is said to be, whose keys end so; more is better.

    A row may say it by several keys, of which none may contradict another.
    """
    said: dict[str, list[float]] = {}
    for stem in ("score_", "score", "rating_"):
        if all(stem + end in row for end in ends):
            said[stem] = [_number(stem + end, row[stem + end]) for end in ends]
    for key in [key for key in _SIGNED if key in row]:
        strength = _number(key, row[key])
        said[key] = [-strength, strength]
    for key in [key for key in _BETTER if key in row]:
        word = str(row[key]).strip().lower()
        named = _NAMED.fullmatch(word.removesuffix(".0"))  # a whole number, as pandas writes it beside a gap
        if word.startswith("tie"):
            said[key] = [0, 0]
        elif named is None or named[1] not in ends:
            raise InputError(f"{key} is {row[key]!r}: it names none of the responses, whose keys end with {ends}")
        else:
            said[key] = [float(named[1] == end) for end in ends]
    if not said:
        raise InputError("nothing says which of its two responses is better")
    signs = {key: (second > first) - (second < first) for key, (first, second) in said.items()}
    if {-1, 1} <= {*signs.values()}:
        raise InputError(f"{' and '.join(signs)} do not agree on which response is better: leave out all but one")
    return next((said[key] for key in said if signs[key]), [0, 0])


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{key} is {str(value)[:60]!r}, which is no number") from error


def _best_and_others(responses: Sequence[Any], goodness: Sequence[float]) -> Sides:
    if len(responses) != len(goodness):
        raise InputError(f"it has {len(responses)} responses, and says of {len(goodness)} how good they are")
    sides: Sides = {"chosen": [], "rejected": []}
    for response, value in zip(responses, goodness, strict=True):
        sides["chosen" if value == max(goodness) else "rejected"].append(response)
    return sides if sides["rejected"] else {}


def _ranked(row: Row) -> Sides:
    """A list of responses: the best ones are chosen, all others rejected; without ranks or scores each is scored."""
    (group,) = [row[key] for key in _GROUPS if key in row]
    if not isinstance(group, list):
        raise InputError(f"it has {str(group)[:60]!r} in place of a list of responses")
    items = [item if isinstance(item, Mapping) else {"text": item} for item in group]
    texts = [next(item[name] for name in (*_RESPONSES, "text", "content") if name in item) for item in items]
    for scale, sign in _SCALES.items():
        values = row.get(f"{scale}s") or [item[scale] for item in items if scale in item]
        if values:
            return _best_and_others(texts, [sign * _number(scale, value) for value in values])
    return {"response": texts}


def _one_response(row: Row) -> Sides:
    for key in _RESPONSES:
        if key in row:
            return {"response": _many(row[key])}
    for (key,) in _WHOLE:
        if key in row and "prompt" not in row:
            return {"response": [row.pop(key)]}
    raise InputError("it has no response")


FORMS = (
    Form('{"prompt": …, "chosen": …, "rejected": …}', ("chosen", "rejected"), _chosen_and_rejected),
    Form(
        '{"prompt": …, "response_0": …, "response_1": …, "better": 0}',
        (f"{_STEM}[01a]", f"{_STEM}[12b]"),
        _better_of_two,
    ),
    Form('{"prompt": …, "responses": […], "ranks": […]}', ("|".join(_GROUPS),), _ranked),
    Form('{"prompt": …, "response": …}', ("|".join([*_RESPONSES, "messages", "conversations"]),), _one_response),
)


def dialogue_turns(dialogue: str) -> list[dict[str, str]]:
    """``\\n\\nHuman: …\\n\\nAssistant: …`` as messages; two turns of one speaker in a row are joined."""
    parts = re.split("\n\n(Human|Assistant):", dialogue)
    spoken = zip(parts[1::2], parts[2::2], strict=True)
    return [
        {
            "role": "user" if speaker == "Human" else "assistant",
            "content": "\n\n".join(text.strip() for _, text in turns),
        }
        for speaker, turns in itertools.groupby(spoken, key=lambda turn: turn[0])
    ]

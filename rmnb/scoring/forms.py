"""The forms of rows in which preferences are published, a table (`forms.yml`), and the conversations of each row.

A row is read by the first form whose responses it has. Every other key of it is a part of the conversation
(its question, earlier turns, system prompt, tools, template arguments), says which response is better, is carried along
as a column, or is refused. Refused are lists and objects that nothing reads, and texts under keys that belong to
another form or whose name says that they belong to a conversation. The same holds within each of a list of responses.
"""

import contextlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rmnb.conversation import Conversation, Response, as_conversation, without_gaps
from rmnb.errors import InputError, first_line, list_some
from rmnb.scoring.row_files import Row, read_json
from rmnb.scoring.transcripts import dialogue_turns, is_dialogue, is_open, prompt_turns
from rmnb.yaml_files import read_yaml

Kind = Literal["single", "labelled", "several", "pairs", "lists"]
#: What rows say enough for numbers of a model.
MEASURED = ("pairs", "lists", "labelled")
_TABLE = read_yaml(Path(__file__).with_name("forms.yml"))
_NAMED = re.compile("(?:(?:response|completion|answer|output|conversation|model|assistant)[_ -]?)?([0-9]+|[ab])")
_TIES = re.compile("tie.*|both.?bad|a=b")
#: A text under such a key belongs to a conversation, unless it is an id or names a model or a source.
_LADEN = re.compile(
    "reject|chosen|history|message|conversation|dialog|turns|context|system|instruct|kwargs|document|image",
    re.IGNORECASE,
)
_LABEL = re.compile(".*_(id|model|source)")


class Exchange(NamedTuple):
    """A prompt and a response."""

    prompt: Conversation
    response: Response


class Answer(NamedTuple):
    """A response: the place of its row, its side (``response``, ``chosen`` or ``rejected``), and its conversation."""

    row: int
    side: str
    conversation: Exchange


@dataclass(frozen=True)
class Form:
    """A form of rows: the key of each side, and which other keys say what, as `forms.yml` explains them."""

    sides: Mapping[str, str]
    questions: Sequence[str] = tuple(_TABLE["questions"])
    order: Sequence[str] = ()
    columns: Sequence[str] = ()

    def __str__(self) -> str:
        return " and ".join(self.sides.values())


FORMS = [Form(**{**known, "sides": sides}) for known in _TABLE["forms"] for sides in known["sides"]]
#: Keys that say a part of a conversation in one form or another, in small letters: no text under one is passed over.
_KNOWN = {*_TABLE["questions"], *_TABLE["system"], *_TABLE["arguments"]}
_KNOWN.update(*(form.sides.values() for form in FORMS))
_KNOWN = {key.lower() for key in _KNOWN}


@dataclass(frozen=True)
class RowTable:
    """What rows say.

    Attributes
    ----------
    rows
        As they were given.
    kind
        ``pairs``: a chosen and a rejected response each; ``lists``: a row has several of a side; ``single``: a response
        each; ``labelled``: the same, and ``label`` says whether it is good, as in KTO's; ``several``: a row has several
        responses, of which none is called better.
    answers
        All responses, each in its conversation: all chosen ones first, then all rejected ones.
    forms
        The forms of the rows, each by the keys of its responses.
    ties
        The numbers (from 1) of rows that call their responses equally good: they have no answers.
    columns
        The keys that are carried along.
    """

    rows: Sequence[Row]
    kind: Kind
    answers: list[Answer]
    forms: list[str]
    ties: list[int]
    columns: list[str]


def read_forms(rows: Sequence[Row], ignore: Sequence[str] = (), columns: Mapping[str, str] = {}) -> RowTable:
    """The conversations of rows.

    Parameters
    ----------
    rows
        As `rmnb.scoring.row_files.read_rows` gives them.
    ignore
        Keys that are carried along, whatever they are.
    columns
        The keys of a form and those that say them here, such as ``{"prompt": "question"}``; with it, all other keys are
        carried along.

    Returns
    -------
    RowTable

    Raises
    ------
    InputError
        A row has no known form, a key that is not understood, values that contradict each other, or other sides than
        the rows before; its number is named.

    Examples
    --------
    >>> read_forms([{"prompt": "What is good?", "chosen": "love", "rejected": "war", "subset": "s"}]).columns
    ['subset']
    """
    answers: list[Answer] = []
    forms: dict[str, None] = {}
    carried: dict[str, None] = {}
    said: set[str] = set()
    ties = []
    sides: Mapping[str, Any] = {}
    rows = list(map(_with_gaps, rows))
    for number, row in enumerate(rows, start=1):
        try:
            if absent := columns.values() - row.keys():
                raise InputError(f"it has no {list_some(absent)}")
            read = {key: row[source] for key, source in columns.items()} if columns else row
            read = {
                key: _without(value, ignore) for key, value in read.items() if value is not None and key not in ignore
            }
            form, by_side, spoken = _read(read)
            if by_side and sides and by_side.keys() != sides.keys():
                raise InputError(f"it has {' and '.join(by_side)}, the rows before have {' and '.join(sides)}")
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            empty = list_some(key for key in row if row[key] is None and key.lower() in _KNOWN)
            raise InputError(f"row {number}: {first_line(error)}{empty and f'; empty: {empty}'}", number) from error
        sides = by_side or sides
        if not by_side:
            ties.append(number)
        for side, conversations in by_side.items():
            answers += [Answer(number - 1, side, conversation) for conversation in conversations]
        forms[str(form)] = None
        said |= {columns.get(key, key) for key in spoken}
        carried |= dict.fromkeys(key for key in row if row[key] is not None or key.lower() not in _KNOWN)
    if not answers:
        raise InputError("no row says which of its responses is better")
    answers.sort(key=lambda answer: answer.side)
    is_one_each = len({(answer.row, answer.side) for answer in answers}) == len(answers)
    if "chosen" in sides:
        kind = "pairs" if is_one_each else "lists"
    elif is_one_each:
        is_labelled = all(str(row.get("label")).lower() in ("true", "false") for row in rows)
        kind = "labelled" if is_labelled else "single"
    else:
        kind = "several"
    return RowTable(rows, kind, answers, list(forms), ties, [key for key in carried if key not in said])


def _with_gaps(row: Row) -> Row:
    """A row in which an empty text, and a number that is none, as tables of floats have them, are gaps."""
    return {key: None if value == "" or value != value else value for key, value in row.items()}


def _without(value: Any, keys: Sequence[str]) -> Any:
    """A row's value; of a list of objects, such as one's responses with their scores, without some keys of theirs."""
    if not isinstance(value, list):
        return value
    return [
        {key: part for key, part in item.items() if key not in keys} if isinstance(item, Mapping) else item
        for item in value
    ]


def _read(row: Row) -> tuple[Form, Mapping[str, list[Exchange]], set[str]]:
    """The form of a row without gaps, its conversations by side, and the keys that say them."""
    form = next((form for form in FORMS if row.keys() >= {*form.sides.values()}), None)
    if form is None:
        advice = "name them, as in --columns prompt=question,chosen=good"
        raise InputError(f"no form has the keys {list_some(row) or 'none'}: {advice}")
    asked = next((key for key in form.questions if key in row), "")
    system = next((key for key in _TABLE["system"] if row.get(key)), "")
    spoken = {asked, system, *form.sides.values(), *_TABLE["arguments"], _TABLE["joined"].get(asked)}
    question = _question(row, asked)
    if asked in form.sides.values():
        question.pop()
    if asked != "history" and (earlier := _decoded(row, "history")):
        spoken.add("history")
        question = [*_earlier(earlier), *question]
    is_transcript = is_open(str(row.get(asked)))
    turns = {
        side: [_turns(question, response, is_transcript) for response in _responses(side, row[key])]
        for side, key in form.sides.items()
    }
    texts = _texts(itertools.chain(*itertools.chain(*turns.values())))
    known = {*spoken, *form.order, *form.columns}
    unread = [key for key in row if key not in known and _is_unread(row, key, texts)]
    known.update(_TABLE["texts"], _TABLE["scales"])
    for item in row.get(form.sides.get("list"), ()):
        if isinstance(item, Mapping):
            unread += [key for key in item if key not in {*known, *unread} and _is_unread(item, key, texts)]
    if unread:
        advice = "--columns says which keys are; or carry along by " + " ".join(f"--ignore {key}" for key in unread)
        raise InputError(f"{', '.join(unread)}: not read beside {form}: {advice}")
    said = {side: [_exchange(row, row.get(system), whole) for whole in many] for side, many in turns.items()}
    questions = {
        str([turn["content"] for turn in exchange.prompt.messages if turn["role"] in ("user", "system")])
        for exchange in itertools.chain(*said.values())
    }
    if len(questions) > 1:
        raise InputError("its responses answer different questions")
    return form, _in_order(form, row, said), spoken


def _is_unread(row: Row, key: str, texts: set[str]) -> bool:
    """Whether a value that nothing reads may belong to the conversation, but for a question that is in it anyway."""
    value = row[key]
    if value in ("", [], {}) or not isinstance(value, str | list | Mapping):
        return False
    is_suspect = key.lower() in _KNOWN or _LADEN.search(key)
    if isinstance(value, str) and (_LABEL.fullmatch(key) or not is_suspect):
        return False
    if key not in _TABLE["questions"]:
        return True
    try:
        return not _texts(_question(row, key)) <= texts
    except InputError:  # no question in this form
        return True


def _texts(turns: Iterable[Mapping[str, Any]]) -> set[str]:
    """What is said in messages, without blanks around it."""
    return {(turn["content"] or "").strip() for turn in turns}


def _question(row: Row, key: str) -> list[dict[str, Any]]:
    """The messages of a row's question; none, if its responses are whole conversations."""
    if not key:
        return []
    value: Any = row[key]
    if isinstance(value, Mapping) and key in _TABLE["objects"]:
        try:
            value = _TABLE["objects"][key].format(**without_gaps(row))
        except KeyError as error:
            raise InputError(f"{key} has no {error}") from error
    elif more := row.get(_TABLE["joined"].get(key)):
        value = f"{value}\n{more}"
    return _messages(value)


def _messages(said: Any) -> list[dict[str, Any]]:
    """Messages, also those that say from and value; a text is the user's, or a transcript of several turns."""
    if isinstance(said, str):
        return prompt_turns(said)
    messages = []
    for turn in said if isinstance(said, list) else [said]:
        if not isinstance(turn, Mapping):
            raise InputError(f"it has {str(said)[:60]!r} in place of messages")
        message = {_TABLE["messages"].get(key, key): value for key, value in turn.items()}
        role = message.get("role")
        messages.append({**message, "role": _TABLE["roles"].get(str(role), role)})
    return list(as_conversation(messages).messages)


def _earlier(history: list[Any]) -> list[dict[str, Any]]:
    """Earlier turns: messages, or pairs of a question and its answer."""
    if not isinstance(history[0], Mapping):
        roles = ("user", "assistant")
        spoken = [zip(roles, pair, strict=True) for pair in history]
        history = [{"role": role, "content": text} for role, text in itertools.chain(*spoken)]
    return _messages(history)


def _decoded(row: Row, key: str, kind: type = list) -> Any:
    """A list or an object of a row, also where it is written as JSON; None, if nothing is in it."""
    value = row.get(key)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = read_json(value)
    if value and not isinstance(value, kind):
        raise InputError(f"{key} is {str(value)[:60]!r} in place of a {kind.__name__}")
    return value or None


def _responses(side: str, value: Any) -> list[Any]:
    """A side of a row as a list of responses: it may be one text, one message, one conversation, or a list of them."""
    if isinstance(value, str | Mapping) and side != "list":
        return [value]
    if not isinstance(value, list) or not value:
        raise InputError(f"it has {str(value)[:60]!r} in place of {'a list of responses' if side == 'list' else side}")
    if side == "list":
        items = [item if isinstance(item, Mapping) else {"text": item} for item in value]
        return [next((item[key] for key in _TABLE["texts"] if key in item), None) for item in items]
    return [value] if isinstance(value[0], Mapping) else value


def _turns(question: list[dict[str, Any]], response: Any, is_transcript: bool) -> list[dict[str, Any]]:
    """A question and one of its responses: a text, a message, messages to follow, or a whole conversation."""
    if not isinstance(response, str):
        turns = _messages(response)
    elif is_dialogue(response):
        turns = dialogue_turns(response)
    else:
        turns = [{"role": "assistant", "content": response.strip() if is_transcript else response}]
    if turns[0]["role"] == "assistant":
        turns = [*question, *turns]
    elif not _texts(question) <= _texts(turns[:-1]):
        raise InputError("its response is a conversation that does not hold its question")
    return turns


def _exchange(row: Row, system: str | None, turns: list[dict[str, Any]]) -> Exchange:
    """Messages that end with the assistant's, behind a row's system prompt and with what it says to the template."""
    if system:
        first = {"role": "system", "content": system}
        if turns[0]["role"] != "system":
            turns = [first, *turns]
        elif turns[0] != first:
            raise InputError("its system prompt is not the one in its messages")
    *before, last = turns
    if last["role"] != "assistant":
        raise InputError("the last message is not the assistant's")
    if not before:
        raise InputError("it has a response and no prompt")
    if before[-1]["role"] == "assistant":
        raise InputError("the message before the response is the assistant's, too")
    arguments = dict(_decoded(row, "chat_template_kwargs", dict) or {})
    if documents := _decoded(row, "documents"):
        arguments["documents"] = documents
    said = last["content"] if last.keys() == {"role", "content"} else last
    return Exchange(Conversation(tuple(before), _decoded(row, "tools"), arguments), said)


def _in_order(form: Form, row: Row, said: dict[str, list[Exchange]]) -> dict[str, list[Exchange]]:
    """The conversations of a row as its responses, or as chosen and rejected ones; none, if all are equally good."""
    if "response" in said:
        return said
    if "list" in said:
        goodness = _ranked(form, row)
        if not goodness:
            return {"response": said["list"]}
    else:
        goodness = _compared(form, row)
    if "chosen" in said:
        if goodness[0] < goodness[1]:
            raise InputError("the rejected response has the higher score: --ignore the scores, or name the sides")
        return said if goodness[0] > goodness[1] else {}
    responses = list(itertools.chain(*said.values()))
    if len(responses) != len(goodness):
        raise InputError(f"it has {len(responses)} responses, and says of {len(goodness)} how good they are")
    best = max(goodness)
    if min(goodness) == best:
        return {}
    sides: dict[str, list[Exchange]] = {"chosen": [], "rejected": []}
    for response, value in zip(responses, goodness, strict=True):
        sides["chosen" if value == best else "rejected"].append(response)
    return sides


def _compared(form: Form, row: Row) -> list[float]:
    """How good each of two responses, or sides, is said to be; more is better.

    A row may say it by several keys, of which none may contradict another.
    """
    is_pair = "chosen" in form.sides
    ends = list(form.sides) if is_pair else [key[-1] for key in form.sides.values()]
    said: dict[str, list[float]] = {}
    for name in _TABLE["scores"]:
        keys = [name.format(end) for end in ends]
        if all(key in row for key in keys):
            said[name.format("")] = [_number(key, row[key]) for key in keys]
    for key in form.order:
        if key in row:
            said[key] = _compare(key, row[key], [end.lower() for end in ends])
    if not said and not is_pair:
        raise InputError("nothing says which of its two responses is better")
    return _agreed(said) if said else [1, 0]


def _compare(key: str, value: Any, ends: list[str]) -> list[float]:
    """How good each of two responses is by one key, as `forms.yml` says what it means."""
    order = _TABLE["orders"][key]
    if order == "sign":
        return [-_number(key, value), 0]
    word = str(value).strip().lower().removesuffix(".0")  # a whole number, as pandas writes it beside a gap
    if _TIES.fullmatch(word):
        return [0, 0]
    if order == "first":
        word = {"1": ends[0], "0": ends[1]}.get(word, "")
    elif word in (">".join(ends), ">".join(ends[::-1])):
        word = word[0]
    named = _NAMED.fullmatch(word)
    if named is None or named[1] not in ends:
        raise InputError(f"{key} is {value!r}: it names none of the responses, whose keys end with {ends}")
    return [float(named[1] == end) for end in ends]


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{key} is {str(value)[:60]!r}, which is no number") from error


def _ranked(form: Form, row: Row) -> list[float]:
    """How good each response of a list is said to be; nothing, if nothing says it."""
    items = row[form.sides["list"]]
    places = range(len(items))
    if "choice" in row:
        if row["choice"] not in places:
            raise InputError(f"choice is {row['choice']!r}: none of its {len(items)} responses")
        return [float(place == row["choice"]) for place in places]
    said: dict[str, list[float]] = {}
    for scale, sign in _TABLE["scales"].items():
        of_items = [item[scale] for item in items if isinstance(item, Mapping) and scale in item]
        if values := _decoded(row, f"{scale}s") or of_items:
            said[scale] = [sign * _number(scale, value) for value in values]
    return _agreed(said) if said else []


def _agreed(said: Mapping[str, list[float]]) -> list[float]:
    """Which responses are the best by all that is said of them: 1 for each, else 0."""
    best = []
    for values in said.values():
        highest = max(values)
        best.append({place for place, value in enumerate(values) if value == highest})
    common = set.intersection(*best)
    if not common:
        raise InputError(f"{' and '.join(said)} do not agree on the best response: --ignore all but one")
    count = len(next(iter(said.values())))
    return [float(place in common) for place in range(count)]

"""Conversations that are written as one text: ``\\n\\nHuman: …\\n\\nAssistant: …``, and HelpSteer2's marked turns."""

import itertools
import re

_OPEN = re.compile(r"\s*(Human:.*)\n\nAssistant:\s*", re.DOTALL)  # ends where the assistant is to speak
_SPEAKER = re.compile(r"\s*(?:Human|Assistant):")
_MARK = re.compile("\n?<extra_id_1>(User|Assistant)\n")  # before each of HelpSteer2's turns but the first


def is_open(text: str) -> bool:
    """Whether a text is a dialogue that ends where the assistant is to speak."""
    return _OPEN.fullmatch(text) is not None


def is_dialogue(text: str) -> bool:
    """Whether a text begins with a speaker and has a turn of the assistant after that."""
    return _SPEAKER.match(text) is not None and "\n\nAssistant:" in text


def prompt_turns(text: str) -> list[dict[str, str]]:
    """A prompt as messages: those of an open dialogue or of marked turns, else one of the user."""
    if _MARK.search(text):
        question, *others = _MARK.split(text)
        turns = [{"role": "user", "content": question}]
        for speaker, content in zip(others[::2], others[1::2], strict=True):
            turns.append({"role": speaker.lower(), "content": content})
        return turns
    if dialogue := _OPEN.fullmatch(text):
        return dialogue_turns(dialogue[1])
    return [{"role": "user", "content": text}]


def dialogue_turns(dialogue: str) -> list[dict[str, str]]:
    """A dialogue as messages; two turns of one speaker in a row are joined.

    Examples
    --------
    >>> dialogue_turns("Human: Hello\\n\\nAssistant: Hi")
    [{'role': 'user', 'content': 'Hello'}, {'role': 'assistant', 'content': 'Hi'}]
    """
    parts = re.split("\n\n(Human|Assistant):", "\n\n" + dialogue.lstrip())
    turns = []
    spoken = zip(parts[1::2], parts[2::2], strict=True)
    for speaker, in_a_row in itertools.groupby(spoken, key=lambda turn: turn[0]):
        role = "user" if speaker == "Human" else "assistant"
        turns.append({"role": role, "content": "\n\n".join(text.strip() for _, text in in_a_row)})
    return turns

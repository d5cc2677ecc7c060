"""A conversation: the messages that a chat template writes, and all else that it is given with them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rmnb.errors import InputError

_NO_PROMPT = "a prompt is a text or a list of messages with role and content, not {!r}"
Message = dict[str, Any]
Response = str | Message  # a text, or the assistant's message where it calls tools


@dataclass(frozen=True)
class Conversation:
    """Messages, tools and arguments of a chat template; equal if the template is given equal values.

    Attributes
    ----------
    messages
        Each with a role and a content, a text; a message that calls tools may have none. Of content in parts there is
        one, a text: templates join several in different ways. Keys that hold None are dropped, as by transformers.
    tools
        Their schemas, or None.
    arguments
        What else `apply_chat_template` is given by name, such as ``documents`` or ``enable_thinking``.

    Raises
    ------
    InputError
        Something else stands in place of messages.
    """

    messages: tuple[Message, ...] = field(compare=False)
    tools: list[Message] | None = field(default=None, compare=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, compare=False)
    _key: str = field(init=False, repr=False)  # dicts cannot be hashed

    def __post_init__(self):
        messages = list(self.messages) if isinstance(self.messages, Iterable) else [self.messages]
        for message in messages:
            if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
                raise InputError(_NO_PROMPT.format(str(self.messages)[:60]))
        object.__setattr__(self, "messages", tuple(_with_one_text(message) for message in messages))
        object.__setattr__(self, "tools", self.tools or None)
        given = [self.messages, self.tools, {**self.arguments}]
        object.__setattr__(self, "_key", json.dumps(given, default=str))

    def then(self, response: Response) -> "Conversation":
        """The conversation with one more message, the assistant's."""
        if isinstance(response, str):
            response = {"role": "assistant", "content": response}
        return Conversation((*self.messages, response), self.tools, self.arguments)

    @property
    def question(self) -> str | None:
        """The text of its one message, the user's; None if there is more."""
        (first, *others) = self.messages
        is_one = not others and not self.tools and not self.arguments and first.keys() == {"role", "content"}
        return first["content"] if is_one and first["role"] == "user" else None


Prompt = str | Sequence[Message] | Conversation


def as_conversation(prompt: Prompt) -> Conversation:
    """A prompt as a conversation: a text is one message of the user; InputError if it is no prompt."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    conversation = prompt if isinstance(prompt, Conversation) else Conversation(prompt)  # type: ignore[arg-type]
    if not conversation.messages:
        raise InputError(_NO_PROMPT.format(str(prompt)[:60]))
    return conversation


def _with_one_text(message: Mapping[str, Any]) -> Message:
    kept = {key: value for key, value in message.items() if value is not None}
    content = kept.get("content")
    if content is None and kept.get("tool_calls"):
        return {**kept, "content": None}
    if isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text":
        content = content[0]["text"]
    if not isinstance(content, str):
        raise InputError(f"the content of a message is a text, or one part that is a text, not {str(content)[:60]!r}")
    return {**kept, "content": content}


def without_gaps(value: Any) -> Any:
    """The value without keys that hold None, with which tables pad their records."""
    if isinstance(value, dict):
        return {key: without_gaps(part) for key, part in value.items() if part is not None}
    return [without_gaps(part) for part in value] if isinstance(value, list) else value

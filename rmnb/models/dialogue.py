"""From a prompt and a response to token ids.

Two protocols. Under `exact` a text has the ids that `apply_chat_template` gives the whole conversation, and a scan puts
each id of the vocabulary, as itself, between what such conversations have in common: prefix | id | closing ids.
`published` does what the papers' code did: decode, fill the template, tokenise the whole string again, special tokens
added a second time.
"""

import datetime
import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from rmnb.errors import InputError, first_line
from rmnb.models.boundary import probe_words, shared_ends

Protocol = Literal["exact", "published"]
Prompt = str | Sequence[dict[str, str]]

# Llama 3 templates write today's date; a reward must not depend on the day.
FROZEN_DATE = "26 Jul 2024"
_RESPONSE = "\ue000response\ue000"  # private-use characters: no template writes or trims them
_BLANKS = ("\ue002", "\ue003")  # stand for the blanks around a response
_MARKER = re.compile(r"<.+>|\[.+\]")
_NO_LIMIT = 10**20  # a longer `model_max_length` is transformers' way of saying that there is none


def check_protocol(protocol: str) -> Protocol:
    """`protocol` itself, or InputError naming the known ones."""
    if protocol not in get_args(Protocol):
        raise InputError(f"unknown protocol {protocol!r}: choose one of {', '.join(get_args(Protocol))}")
    return protocol  # type: ignore[return-value]


def as_messages(prompt: Prompt) -> list[dict[str, str]]:
    """A prompt as chat messages: a string is one user turn, a list of messages stays; InputError if it is neither."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    messages = list(prompt) if isinstance(prompt, Sequence) else []
    if not messages or any(not isinstance(one, dict) or {"role", "content"} - one.keys() for one in messages):
        raise InputError(f"a prompt is a text or a list of messages with role and content, not {str(prompt)[:60]!r}")
    return messages


@dataclass(frozen=True)
class Dialogue:
    """How one reward model's conversations are written.

    Attributes
    ----------
    tokenizer
        A Hugging Face tokenizer.
    template
        Jinja chat template, or None for an encoder that reads the pair (prompt, response) between its own separators.
    """

    tokenizer: PreTrainedTokenizerBase
    template: str | None

    def render(self, messages: Sequence[dict[str, str]], generation: bool = False) -> str:
        """The conversation as text, dates frozen."""
        try:
            text = self.tokenizer.apply_chat_template(
                list(messages),
                chat_template=_freeze_date(self.template),
                tokenize=False,
                add_generation_prompt=generation,
                date_string=FROZEN_DATE,
            )
        except Exception as error:  # a template is a program, and whatever it raises is its own
            raise InputError(f"the chat template fails: {first_line(error)}") from error
        assert isinstance(text, str)
        return text

    def frame(self, prompt: Prompt) -> tuple[list[int], list[int]]:
        """Prefix ids and closing ids of a scan: the ids between which conversations with different answers differ.

        Found by probing with words of the vocabulary. For most models the prefix is the generation prompt. Where a
        template puts more there (an empty thinking block), the model was trained to read that too; where it writes
        a blank that the tokenizer joins to the answer, the blank belongs to the answer's first id. Markers such
        as ``<|im_end|>`` inside the prompt are encoded as plain text.

        Raises
        ------
        InputError
            The template fails, drops or alters the assistant's words, or writes nothing after them.
        """
        if self.template is None:
            return shared_ends(self._pairs(prompt, self._probes))
        messages = as_messages(prompt)
        hidden = self._covers([message["content"] for message in messages])
        before, after = self._surroundings(_covered(messages, hidden))
        return shared_ends(self._encode_all([before + word + after for word in self._probes], hidden))

    def conversations(self, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
        """Ids of whole conversations, one list a text: those that `apply_chat_template` gives.

        Two things are otherwise: markers such as ``<|im_end|>`` inside the prompt or a text are plain text, and blanks
        around a text are kept where a template trims them.

        Raises
        ------
        InputError
            The template fails, or the tokenizer cannot encode markers as text.
        """
        if self.template is None:
            return self._pairs(prompt, texts)
        messages = as_messages(prompt)
        asked = self._covers([message["content"] for message in messages])
        plain = [text for text in texts if not (asked or self._covers([text]) or text != text.strip())]
        ids = dict(zip(plain, self._encode_all([self._filled(messages, text) for text in plain], {}), strict=True))
        return [ids[text] if text in ids else self._with_covers(messages, text) for text in texts]

    def _filled(self, messages: Sequence[dict[str, str]], text: str) -> str:
        return self.render([*messages, {"role": "assistant", "content": text}])

    def _with_covers(self, messages: Sequence[dict[str, str]], text: str) -> list[int]:
        """A conversation with markers inside, or blanks around the answer: hidden from the template, then put back."""
        hidden = self._covers([*(message["content"] for message in messages), text])
        left = text[: len(text) - len(text.lstrip())]
        right = text[len(text.rstrip()) :] if text.strip() else ""
        core = _replaced(text.strip(), hidden)
        blanks = {_BLANKS[0]: left, _BLANKS[1]: right}
        shown = (_BLANKS[0] if left else "") + core + (_BLANKS[1] if right else "")
        string = self._filled(_covered(messages, hidden), shown)
        return self._encode_all([_replaced(string, blanks)], hidden)[0]

    def _covers(self, contents: Sequence[str]) -> dict[str, str]:
        """For each marker inside these words a private-use character that hides it while the template is filled."""
        words = "".join(contents)
        if self._marker_starts.isdisjoint(words):
            return {}
        unused = (chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in words)
        return {marker: next(unused) for marker in self._markers if marker in words}

    def _encode_all(self, strings: list[str], hidden: dict[str, str]) -> list[list[int]]:
        """Ids of filled templates; what is hidden in them is plain text."""
        for string in strings:
            _check_text(string)
        if hidden:
            return [self._encode_pieces(string, hidden) for string in strings]
        return self.tokenizer(strings, add_special_tokens=False)["input_ids"] if strings else []

    @functools.cached_property
    def _probes(self) -> list[str]:
        return probe_words(self.tokenizer)

    @functools.cached_property
    def _marker_starts(self) -> set[str]:
        return {marker[0] for marker in self._markers}

    @functools.cached_property
    def _markers(self) -> dict[str, Any]:
        """The added tokens that structure a conversation by spelling, longest first: special or the template's."""
        found = {
            token.content: token
            for token in self.tokenizer.added_tokens_decoder.values()
            if token.special or (_MARKER.fullmatch(token.content) and token.content in (self.template or ""))
        }
        return {text: found[text] for text in sorted(found, key=len, reverse=True)}

    def _encode_pieces(self, text: str, hidden: dict[str, str]) -> list[int]:
        """Ids of a filled template: its markers are control tokens, everything between them is plain text."""
        pieces = re.split("(" + "|".join(map(re.escape, self._markers)) + ")", text)
        shown = {cover: marker for marker, cover in hidden.items()}
        ids: list[int] = []
        for index in range(0, len(pieces), 2):
            piece = pieces[index]
            if index and self._markers[pieces[index - 1]].rstrip:
                piece = piece.lstrip()
            if index + 1 < len(pieces) and self._markers[pieces[index + 1]].lstrip:
                piece = piece.rstrip()
            ids += self._encode_plain(_replaced(piece, shown)) if piece else []
            ids.extend(self.tokenizer.get_vocab()[marker] for marker in pieces[index + 1 : index + 2])
        bare = _replaced(text, dict.fromkeys(shown, "a"))
        if hidden and self._encode_pieces(bare, {}) != self._encode_all([bare], {})[0]:
            raise InputError("the text contains markers, which this tokenizer cannot encode as text: leave them out")
        return ids

    def ids_in_context(self, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
        """Whole conversations as the tokenizer reads them in one piece, one id list a text.

        Nothing is trimmed or escaped: a response may merge with the words around it, and markers inside it count. Equal
        to prefix, response and closing ids of protocol `exact` where no such thing happens.
        """
        if self.template is None:
            assert isinstance(prompt, str)
            return [self.tokenizer(prompt, text)["input_ids"] for text in texts]
        before, after = self._surroundings(prompt)
        return self.tokenizer([before + text + after for text in texts], add_special_tokens=False)["input_ids"]

    def joined_blank(self, prompt: Prompt) -> str:
        """The blanks that the template writes before an answer and the tokenizer joins to it, mostly none."""
        if self.template is None:
            return ""
        (before, _), (prefix, _) = self._surroundings(prompt), self.frame(prompt)
        blanks = before[len(before.rstrip()) :]
        return "" if str(self.tokenizer.decode(prefix)).endswith(blanks) else blanks

    def _surroundings(self, prompt: Prompt) -> tuple[str, str]:
        """What the template writes before and after the assistant's words."""
        messages = [*as_messages(prompt), {"role": "assistant", "content": _RESPONSE}]
        before, found, after = self.render(messages).rpartition(_RESPONSE)
        if not found:
            raise InputError(
                "the chat template does not contain the assistant's words; give the model its own template"
            )
        if not after:
            raise InputError("the chat template writes nothing after the assistant's words: no closing id to read at")
        return before, after

    def _pairs(self, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
        if not isinstance(prompt, str):
            raise InputError("a model without chat template takes one question as a string, not a list of messages")
        for text in (prompt, *texts):
            _check_text(text)
        return [self.tokenizer(prompt, text, split_special_tokens=True)["input_ids"] for text in texts]

    def response_ids(self, text: str) -> list[int]:
        """Ids of a response, markers such as ``<|im_end|>`` inside it encoded as plain text."""
        return self._encode_plain(text)

    def published_ids(self, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
        """Whole conversations as the papers' code tokenises them, cut at the tokenizer's limit, one id list a text.

        The template writes BOS and the tokenizer, if it adds one, another; a template that trims loses the spaces
        around the response; special markers inside the text become special tokens (METHODS.md section 3).
        """
        if self.template is None:
            raise InputError("protocol 'published' needs a chat template, and this model has none")
        messages = as_messages(prompt)
        strings = [self.render([*messages, {"role": "assistant", "content": text}]) for text in texts]
        for string in strings:
            _check_text(string)
        limited = self.tokenizer.model_max_length < _NO_LIMIT
        return self.tokenizer(strings, truncation=limited)["input_ids"] if strings else []

    def published_token(self, token: str) -> str:
        """A token's decoded text as the papers' code had it.

        Where a tokenizer's configuration asks for cleaning up, as Llama 3's does, their version of transformers (4.43)
        took out the space before punctuation and contractions (" ." became "."); today's ignores that request. The
        strings that the authors released show it.
        """
        asks = self.tokenizer.clean_up_tokenization_spaces
        return self.tokenizer.clean_up_tokenization(token) if asks else token

    def _encode_plain(self, text: str) -> list[int]:
        _check_text(text)
        if self._plain_tokenizer is not None:
            return self._plain_tokenizer.encode(text, add_special_tokens=False).ids
        return self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    @functools.cached_property
    def _plain_tokenizer(self) -> Tokenizer | None:
        """A tokenizer that splits the template's markers although its configuration does not call them special."""
        if all(token.special for token in self._markers.values()):
            return None
        backend: Any = self.tokenizer.backend_tokenizer  # pyright: ignore[reportAttributeAccessIssue]
        description = json.loads(backend.to_str())
        for token in description["added_tokens"]:
            token["special"] = token["special"] or token["content"] in self._markers
        plain = Tokenizer.from_str(json.dumps(description))
        plain.encode_special_tokens = True
        return plain


def _covered(messages: Sequence[dict[str, str]], hidden: dict[str, str]) -> list[dict[str, str]]:
    return [{**message, "content": _replaced(message["content"], hidden)} for message in messages]


def _replaced(text: str, by: dict[str, str]) -> str:
    """The text with every key replaced by its value, in one pass."""
    return re.sub("|".join(map(re.escape, by)), lambda found: by[found[0]], text) if by else text


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"character {error.start} is half a surrogate pair: text must be valid Unicode") from error


@functools.lru_cache
def _freeze_date(template: str | None) -> str | None:
    """The template with each call of ``strftime_now`` replaced by the frozen date in the form it asks for."""
    if template is None:
        return None
    day = datetime.datetime.strptime(FROZEN_DATE, "%d %b %Y")
    return re.sub(r"strftime_now\((['\"])(.*?)\1\)", lambda call: repr(day.strftime(call[2])), template)

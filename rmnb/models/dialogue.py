"""From a prompt and a response to token ids: prefix | response | closing, the reward being read at the last closing id.

Two protocols. `exact` keeps every id it is asked about: the prefix ends where the response begins, the response is the
scanned token's own id, the closing ids are what the template puts behind the assistant's words. `published` does what
the papers' code did: decode, fill the template, tokenise the whole string again, special tokens added a second time.
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

Protocol = Literal["exact", "published"]
Prompt = str | Sequence[dict[str, str]]

# Llama 3 templates write today's date; a reward must not depend on the day.
FROZEN_DATE = "26 Jul 2024"
_RESPONSE = "\ue000response\ue000"  # private-use characters: no template writes or trims them
_MARKER = re.compile(r"<.+>|\[.+\]")
_NO_LIMIT = 10**20  # a longer `model_max_length` is transformers' way of saying that there is none


def check_protocol(protocol: str) -> Protocol:
    """`protocol` itself, or InputError naming the known ones."""
    if protocol not in get_args(Protocol):
        raise InputError(f"unknown protocol {protocol!r}: choose one of {', '.join(get_args(Protocol))}")
    return protocol  # type: ignore[return-value]


def as_messages(prompt: Prompt) -> list[dict[str, str]]:
    """A prompt as chat messages: a string is one user turn, a list of messages stays."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)


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
        """Prefix ids and closing ids of protocol `exact`.

        The prefix is everything the template writes before the assistant's words. For most models that is the
        generation prompt; where a template puts more there (an empty thinking block), the model was
        trained to read that too. Markers such as ``<|im_end|>`` inside the prompt are encoded as plain text.

        Raises
        ------
        InputError
            The template fails, drops or alters the assistant's words, or writes nothing after them.
        """
        if self.template is None:
            return self._pair_frame(prompt)
        messages = as_messages(prompt)
        words = "".join(message["content"] for message in messages)
        if not any(marker in words for marker in self._markers):
            before, after = self._surroundings(messages)
            return self._encode(before), self._encode(after)
        # The prompt's own markers are hidden while the template is filled, and are text again where it is encoded.
        unused = (chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in words)
        hidden = {marker: next(unused) for marker in self._markers}
        covered = [{**message, "content": _replaced(message["content"], hidden)} for message in messages]
        before, after = self._surroundings(covered)
        return self._encode_pieces(before, hidden), self._encode(after)

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
        if hidden and self._encode_pieces(bare := _replaced(text, dict.fromkeys(shown, "a")), {}) != self._encode(bare):
            raise InputError("the prompt contains markers, which this tokenizer cannot encode as text: leave them out")
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

    def _pair_frame(self, prompt: Prompt) -> tuple[list[int], list[int]]:
        if not isinstance(prompt, str):
            raise InputError("a model without chat template takes one question as a string, not a list of messages")
        _check_text(prompt)
        marker = self._encode_plain("a")
        whole = self.tokenizer(prompt, "a", split_special_tokens=True)["input_ids"]
        at = max(i for i in range(len(whole)) if whole[i : i + len(marker)] == marker)
        return whole[:at], whole[at + len(marker) :]

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

    def _encode(self, text: str) -> list[int]:
        _check_text(text)
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

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

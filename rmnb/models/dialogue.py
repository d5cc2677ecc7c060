"""From a prompt and a response to token ids.

Under protocol `exact` a text has the ids that transformers' `apply_chat_template` gives the whole conversation, and a
scan puts each id of the vocabulary, as itself, between what such conversations have in common: prefix | id | closing
ids. `published` does what the papers' code did: decode, fill the template, tokenise the whole string again, special
tokens added a second time.

Trainers differ in what they make of a filled template (`TRAINERS`). Sources, read for what they do: TRL's
``RewardTrainer`` (1.16) tokenises what `apply_chat_template` gives. OpenRLHF's ``RewardDataset`` (``__getitem__``, the
same from 2024 to 2026) takes the line breaks off its end and ends every conversation with EOS. LLaMA-Factory's
``Template.encode_oneturn`` tokenises what comes before an answer, and the answer with what closes it, apart. NeMo-RL's
``get_formatted_message_log`` (of 2025; later versions leave a last line break) does as OpenRLHF, without the blank that
this has before EOS. ms-swift's ``ChatmlTemplateMeta`` (2.x, 3.x; later as TRL) ends with the mark of the turn's end.
"""

import copy
import datetime
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rmnb.conversation import Conversation, Prompt, Response, as_conversation
from rmnb.errors import InputError, first_line, list_some

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROTOCOLS = ("exact", "published")
Trainer = Literal["trl", "openrlhf", "llama-factory", "nemo-rl", "ms-swift"]
TRAINERS: dict[Trainer, str] = {
    "trl": "TRL",
    "openrlhf": "OpenRLHF",
    "llama-factory": "LLaMA-Factory",
    "nemo-rl": "NeMo-RL",
    "ms-swift": "ms-swift",
}
_STRIPPED = "{% set rmnb_text = rmnb_text.rstrip('\n') %}"
_WITH_EOS = "{% if not rmnb_text.endswith(eos_token) %}{% set rmnb_text = rmnb_text + BLANKeos_token %}{% endif %}"
#: What trainers do to the end of a filled template; NeMo-RL also writes BOS where the template does not.
_ENDS: dict[Trainer, str] = {
    "openrlhf": _STRIPPED + _WITH_EOS.replace("BLANK", "' ' + "),
    "nemo-rl": _STRIPPED
    + _WITH_EOS.replace("BLANK", "")
    + "{% if bos_token and not rmnb_text.startswith(bos_token) %}{% set rmnb_text = bos_token ~ rmnb_text %}"
    "{% endif %}",
    "ms-swift": _STRIPPED,
}

#: Prompt, answer and EOS, as TRL feeds texts.
PLAIN = (
    "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    "{% if not add_generation_prompt and not messages[-1]['content'].endswith(eos_token) %}{{ eos_token }}{% endif %}"
)
_ROLES = {"system", "user", "assistant", "tool"}  # others are those of a template that names them
# Llama 3 templates write today's date; a reward must not depend on the day.
_TODAY = datetime.datetime(2024, 7, 26)
FROZEN_DATE = f"{_TODAY:%d %b %Y}"
_DATE = {code: _TODAY.strftime(code) for code in re.findall("%-?.", "%a%A%b%B%c%d%-d%F%H%I%j%m%-m%M%p%S%x%X%y%Y%z%Z")}
_STRFTIME = (
    "{% macro strftime_now(format) %}{% set rmnb = namespace(text=format) %}{% for code, part in rmnb_date.items() %}"
    "{% set rmnb.text = rmnb.text.replace(code, part) %}{% endfor %}{{ rmnb.text }}{% endmacro %}\n"
)
_RESPONSE = "\ue000response\ue000"  # private-use characters: no template writes or trims them
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")
_NO_LIMIT = 10**20  # a longer `model_max_length` is transformers' way of saying that there is none
PROBES = ("love", "War", "a", "the", "7")  # begin and end with different characters
SLOT = (
    "{}"  # where a carrier, such as ``The greatest thing ever is {}.``, has the token; alone, the answer is the token
)


def check_protocol(protocol: str) -> None:
    """Raise InputError for an unknown protocol; the line names the known ones."""
    if protocol not in PROTOCOLS:
        raise InputError(f"unknown protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")


@dataclass(frozen=True)
class Dialogue:
    """How one reward model's conversations are written.

    Attributes
    ----------
    tokenizer
        A Hugging Face tokenizer.
    template
        Jinja chat template, or None for an encoder that reads the pair (prompt, response) between its own separators.
    trainer
        Whose data step makes ids of a filled template (`TRAINERS`).
    is_known
        Whether anything says that it is this trainer.
    """

    tokenizer: "PreTrainedTokenizerBase"
    template: str | None
    trainer: Trainer = "trl"
    is_known: bool = False

    def render(self, prompt: Prompt, response: Response | None = None) -> str:
        """The conversation as text, dates frozen; without a response, up to where the assistant is to speak."""
        conversation = as_conversation(prompt)
        if response is not None:
            conversation = conversation.then(response)
        return self._text(conversation, add_generation_prompt=response is None)

    def _text(self, conversation: Conversation, **options) -> str:
        return self._apply([conversation], tokenize=False, **options)[0]

    def _apply(self, conversations: Sequence[Conversation], as_plain_text: bool = False, **options) -> Any:
        """What transformers makes of conversations that have tools and arguments in common."""
        first = conversations[0]
        tokenizer = self.tokenizer
        template = self.template
        if isinstance(tokenizer.chat_template, dict) and template == tokenizer.chat_template.get("default"):
            template = tokenizer.get_chat_template(tools=first.tools)  # another one where there are tools
        if as_plain_text:
            tokenizer = copy.copy(tokenizer)
            tokenizer.chat_control_tokens = self.control_tokens
        options = {
            "date_string": FROZEN_DATE,
            **first.arguments,
            "rmnb_date": _DATE,
            "sanitize_control_tokens": as_plain_text,
            **options,
        }
        try:
            return tokenizer.apply_chat_template(
                [list(conversation.messages) for conversation in conversations],
                tools=first.tools,  # pyright: ignore[reportArgumentType]
                chat_template=_as_fed(template, self.trainer),
                **options,
            )
        except Exception as error:  # a template is a program, and whatever it raises is its own
            raise InputError(f"the chat template fails: {first_line(error)}") from error

    def frame_ids(self, prompt: Prompt, carrier: str = SLOT) -> tuple[list[int], list[int]]:
        """Prefix ids and closing ids of a scan: the ids between which conversations with different answers differ.

        Found by probing with a few words. For most models the prefix is the generation prompt. Where a
        template puts more there (an empty thinking block), the model was trained to read that too; where it writes
        a blank that the tokenizer joins to the answer, the blank belongs to the answer's first id. So does the blank
        before the slot of a carrier: the prefix of ``The greatest thing ever is {}.`` ends with ``is``.

        Raises
        ------
        InputError
            The template fails, drops or alters the assistant's words, writes nothing after them, or writes something
            else that depends on them, such as the words again. The carrier has not one slot, or the tokenizer joins a
            word in it to what stands beside it, more than a blank.
        """
        if carrier.count(SLOT) != 1:
            raise InputError(
                f"an answer has one {{}}, where the token stands, not {carrier.count(SLOT)}: {carrier!r}", "answer"
            )
        answer = carrier.replace(SLOT, PROBES[0])
        if self.written(prompt, answer) != answer:
            raise InputError(
                "the chat template writes the answer more than once, or something else that depends on it: whole "
                "answers can be scored, but no token can be put in their place"
            )
        prefix, closing = self.shared_ids(prompt, carrier)
        if carrier == SLOT:
            return prefix, closing
        answers = [carrier.replace(SLOT, word) for word in PROBES]
        for word, ids in zip(PROBES, self.conversations(prompt, answers), strict=True):
            inside = str(self.tokenizer.decode(ids[len(prefix) : len(ids) - len(closing)]))
            if inside.strip() != word:
                raise InputError(
                    f"the tokenizer joins {word!r} in {carrier!r} to what stands beside it ({inside!r}): put blanks "
                    "around the {}, or another mark behind it",
                    "answer",
                )
        return prefix, closing

    def shared_ids(self, prompt: Prompt, carrier: str = SLOT) -> tuple[list[int], list[int]]:
        """The ids that conversations share before their first difference and after their last."""
        if self.template is not None and not self.frame_text(prompt)[1]:
            raise InputError("the chat template writes nothing after the assistant's words: no closing id to read at")
        conversations = self.conversations(prompt, [carrier.replace(SLOT, word) for word in PROBES])
        prefix = common_prefix(conversations)
        backwards = [ids[len(prefix) :][::-1] for ids in conversations]
        return prefix, common_prefix(backwards)[::-1]

    def conversations(self, prompt: Prompt, texts: Sequence[Response], as_plain_text: bool = True) -> list[list[int]]:
        """Ids of whole conversations, one list a response: those that `apply_chat_template` gives.

        So a template that trims takes blanks off a text. Control tokens such as ``<|im_end|>`` spelled out in the
        prompt or a text are plain text (`sanitize_control_tokens`), unless `as_plain_text` is False or the template is
        `PLAIN`; tags that mark up an answer, such as ``<think>``, are the ids that they have.

        Raises
        ------
        InputError
            The template fails, leaves out a system prompt, tools or documents, or does not know a role; a text is not
            valid Unicode, or the tokenizer cannot encode control tokens as text.
        """
        asked = as_conversation(prompt)
        if self.template is None and asked.question is None:
            raise InputError("a model without chat template takes one question as a string, not a list of messages")
        return self._ids([asked.then(text) for text in texts], as_plain_text)

    def asked_ids(self, prompt: Prompt) -> list[int]:
        """The ids up to where the assistant is to speak; what spells control tokens is text, as in `conversations`."""
        return self._ids([as_conversation(prompt)], add_generation_prompt=True)[0]

    def ids_before(self, prompt: Prompt) -> list[int]:
        """The ids of a conversation before the assistant's words: what it is asked.

        What a template writes before the answer and not where the assistant is to speak (an empty thinking block) is
        the assistant's, as in training; so is a blank that is joined to the answer.
        """
        prefix, _ = self.shared_ids(prompt)
        if self.template is None:
            return prefix
        return common_prefix([[*self.asked_ids(prompt), -1], [*prefix, -2]])  # no ids

    def _ids(self, conversations: list[Conversation], as_plain_text: bool = True, **options) -> list[list[int]]:
        """The ids of each conversation, whatever the others are; they have tools and arguments in common."""
        if not conversations:
            return []
        contents = [[message["content"] or "" for message in each.messages] for each in conversations]
        _check_texts(dict.fromkeys(itertools.chain.from_iterable(contents)))
        if self.template is None:
            return [
                self.tokenizer(question, text, split_special_tokens=True)["input_ids"]  # pyright: ignore[reportArgumentType]
                for question, text in contents
            ]
        self._check_written(conversations[0])
        ids = self._encode(conversations, **options)
        texts = ["\0".join(spoken) for spoken in contents]
        joined = "\0".join(texts)
        as_plain_text &= self.template != PLAIN  # of which TRL tokenises what is written
        spelled = [token for token in self.control_tokens if as_plain_text and token in joined]
        for place, text in enumerate(texts):
            if any(token in text for token in spelled):
                if _PRIVATE.search(text):  # transformers marks control tokens with some
                    raise InputError("a text with private-use characters spells control tokens: leave either out")
                ids[place] = self._apply([conversations[place]], as_plain_text=True, **options)["input_ids"][0]
        return ids

    def _check_written(self, conversation: Conversation) -> None:
        """Raise InputError for a role that the template does not know, or a part of which it writes nothing."""
        messages = conversation.messages
        for role in {message["role"] for message in messages} - _ROLES:
            if str(role) not in str(self.template):
                raise InputError(f"the chat template has no role {role!r}: call it one of {list_some(_ROLES)}")
        arguments = {key: value for key, value in conversation.arguments.items() if key != "documents"}
        changed = {"tools": replace(conversation, tools=None), "documents": replace(conversation, arguments=arguments)}
        for place, message in enumerate(messages):
            if message["role"] == "system":
                other = {**message, "content": message["content"] + _RESPONSE}
                changed["system prompt"] = replace(
                    conversation, messages=(*messages[:place], other, *messages[place + 1 :])
                )
        for part, other in changed.items():
            if other != conversation and self._text(other) == self._text(conversation):
                raise InputError(f"the chat template writes nothing of the {part}: leave it out")

    def _encode(self, conversations: list[Conversation], **options) -> list[list[int]]:
        """The ids of conversations: whole, or of LLaMA-Factory what comes before an answer apart from the rest."""
        first = conversations[0]
        if self.template == PLAIN and self.trainer == "trl":  # with the special tokens that the tokenizer adds
            return self.tokenizer(self._apply(conversations, tokenize=False, **options))["input_ids"]
        if self.trainer != "llama-factory" or first.tools or options:
            return self._apply(conversations, **options)["input_ids"]
        before, _ = self.frame_text(Conversation(first.messages[:-1], None, first.arguments))
        texts = self._apply(conversations, tokenize=False)
        starts = [before if text.startswith(before) else "" for text in texts]
        answers = [text.removeprefix(before) for text in texts]
        parts = [self.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (starts, answers)]
        return [start + answer for start, answer in zip(*parts, strict=True)]

    @functools.cached_property
    def control_tokens(self) -> list[str]:
        """What structures conversations, and is plain text inside a message.

        The special tokens, and those that the tokenizer's configuration names, or else the added ones that the template
        writes, but for tags in pairs, such as ``<think>`` and ``</think>``: they belong to messages.
        """
        added = self.tokenizer.added_tokens_decoder.values()
        names = {token.content for token in added}
        written = getattr(self.tokenizer, "chat_control_tokens", None)
        if written is None:
            is_tag = {name for name in names if {name.replace("</", "<"), name.replace("<", "</", 1)} & names - {name}}
            written = [name for name in names - is_tag if name in (self.template or "") and not name.isspace()]
        return sorted({*written, *(token.content for token in added if token.special)})

    def frame_text(self, prompt: Prompt) -> tuple[str, str]:
        """What the template, if there is one, writes before and after the assistant's words."""
        if self.template is None:
            return "", ""
        text = self.render(prompt, _RESPONSE)
        before, _, after = text.rpartition(_RESPONSE)
        if _RESPONSE not in text:
            raise InputError(
                "the chat template does not contain the assistant's words; give the model its own template"
            )
        return before, after

    def written(self, prompt: Prompt, response: str) -> str:
        """What the template, if there is one, makes of a response."""
        if self.template is None:
            return response
        before, after = self.frame_text(prompt)
        whole = self.render(prompt, response)
        return whole[len(before) : len(whole) - len(after)]

    def published_ids(self, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
        """Whole conversations as the papers' code tokenises them, cut at the tokenizer's limit, one id list a text.

        The template writes BOS and the tokenizer, if it adds one, another; a template that trims loses the spaces
        around the response; special markers inside the text become special tokens (METHODS.md section 3).
        """
        if self.template is None:
            raise InputError("protocol 'published' needs a chat template, and this model has none")
        self._check_written(as_conversation(prompt))
        strings = [self.render(prompt, text) for text in texts]
        _check_texts(strings)
        limited = self.tokenizer.model_max_length < _NO_LIMIT
        return self.tokenizer(strings, truncation=limited)["input_ids"]

    def published_token(self, token: str) -> str:
        """A token's decoded text as the papers' code had it.

        Where a tokenizer's configuration asks for cleaning up, as Llama 3's does, their version of transformers (4.43)
        took out the space before punctuation and contractions (" ." became "."); today's ignores that request. The
        strings that the authors released show it.
        """
        cleans = self.tokenizer.clean_up_tokenization_spaces
        return self.tokenizer.clean_up_tokenization(token) if cleans else token


def common_prefix(sequences: Sequence[Sequence[int]]) -> list[int]:
    """The ids that all sequences begin with, at least one id of each left over."""
    columns = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [column[0] for column in columns][: min(map(len, sequences)) - 1]


def _check_texts(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"character {error.start} is half a surrogate pair: text must be valid Unicode") from error


@functools.lru_cache
def _as_fed(template: str | None, trainer: Trainer) -> str | None:
    """The template as a trainer fills it, on the frozen date; a line break behind what is put before is dropped."""
    if template is None:
        return None
    date = _STRFTIME if "strftime_now" in template else ""
    if trainer not in _ENDS:
        return date + template
    text = date + "{% set rmnb_text %}\n" + template.removesuffix("\n") + "{%+ endset %}"
    return text + "{% if not add_generation_prompt %}" + _ENDS[trainer] + "{% endif %}{{ rmnb_text }}"

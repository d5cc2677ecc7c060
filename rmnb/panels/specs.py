"""The forms of models and prompts in a panel, and reading a form from a file."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import jinja2
from jinja2.meta import find_undeclared_variables
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rmnb.conversation import Conversation, Message, Prompt
from rmnb.errors import InputError, list_some
from rmnb.files import data_dir
from rmnb.yaml_files import read_yaml

PANELS = Path(__file__).parent
Wrapping = Literal["chat", "bare", "user_assistant"]
HeadName = Literal["linear", "value-head", "inform", "armorm", "qrm", "urm"]


def _file_name(name: str) -> str:
    if not name.strip() or name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f]", name) or len(name.encode()) > 150:
        raise ValueError("must do as the name of a file: not empty, no slash, no leading dot, at most 150 bytes")
    return name


def _beside(text: str, info: ValidationInfo) -> str:
    if info.context is None:
        return text
    path = info.context.resolve().parent / Path(text).expanduser()
    may_come = info.field_name == "scores" or (info.field_name == "adapter" and not (data_dir() / text).exists())
    if may_come or os.path.exists(path):  # scores, and an adapter that is to be trained, need not be there yet
        return str(path)
    return text


_IN_TEMPLATES = {"messages", "tools", "documents", "add_generation_prompt", "raise_exception", "strftime_now"}
#: How a language model without a chat template is asked, and how it replies.
LINES = (
    "{{- bos_token }}{{- messages[0]['content'] }}{{- '\n' }}"
    "{% if not add_generation_prompt %}{{- messages[-1]['content'] }}{{- eos_token }}{% endif %}"
)
FileName = Annotated[str, AfterValidator(_file_name)]  # scores are kept under it
Place = Annotated[str, AfterValidator(_beside)]  # a hub id, or a directory, relative to the panel's file


class Strict(BaseModel):
    """A form: no key that it does not know, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read(kind: type[Any], name: str | Path, directory: Path, what: str) -> Any:
    """The checked form in a file: one of `directory` by name, or any by path.

    Raises
    ------
    InputError
        No such file, not YAML, or a key that is missing, unknown or of the wrong kind.
    """
    own = Path(name) if str(name).endswith((".yml", ".yaml")) else None
    path = own or directory / f"{name}.yml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in directory.glob("*.yml")))
        raise InputError(f"unknown {what} {str(name)!r}: choose one of {known}, or give the path of a .yml file")
    return validate(kind, read_yaml(path), path, own)


def validate(kind: type[Any], values: Any, source: object, beside: Path | None = None) -> Any:
    """The values as a form, directories relative to a file's; InputError names the first key that is wrong."""
    try:
        return kind.model_validate(values, context=beside)
    except ValidationError as error:
        found = error.errors()
        unknown = [one for one in found if one["type"] == "extra_forbidden"]
        first = (unknown or found)[0]  # a misspelt key explains why another is missing
        text = "there is no such key" if unknown else first["msg"].removeprefix("Value error, ")
        key = ".".join(map(str, first["loc"]))
        where = f"{source}: {key}" if key else f"{source}"  # without a key: of the form as a whole
        raise InputError(f"{where}: {text}", key) from error


class Reference(Strict):
    """A score that a model's own card publishes: a known answer to test a loaded model with.

    Attributes
    ----------
    protocol
        Which ids the card's code fed to the model: ``exact`` if it let the template tokenise, so that BOS is there once
        at most, ``published`` if it tokenised the filled template again.
    source
        Where the score is printed.
    """

    prompt: str
    response: str
    score: float
    tolerance: float = Field(gt=0)
    protocol: Literal["exact", "published"] = "exact"
    source: str


class Judge(Strict):
    """How a language model is asked to judge an answer, and how its reply is read.

    Attributes
    ----------
    template
        Jinja: what the judge is told, with `messages`, the conversation that ends with the answer. It ends where the
        judge's reply begins.
    answers
        Replies, each one token, and their weights.
    expected
        The reward is Σ weight × probability among these replies, in place of Σ weight × logit.
    """

    template: str
    answers: dict[str, float] = Field(min_length=2)
    expected: bool = False

    @model_validator(mode="after")
    def _asks_for_what_there_is(self) -> "Judge":
        environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"])
        try:
            asked = find_undeclared_variables(environment.parse(self.template)) - environment.globals.keys()
        except jinja2.TemplateSyntaxError:
            return self  # whoever fills it says what is wrong
        if unknown := {name for name in asked - _IN_TEMPLATES if not name.endswith("_token")}:
            raise ValueError(f"the template has no {list_some(sorted(unknown))}, but messages, the whole conversation")
        return self

    def asked_in(self, template: str | None) -> str:
        """A chat template in which the judge is shown a conversation, in the model's own, or else in `LINES`."""
        asked = "{%- set judged -%}" + self.template.strip() + "{%- endset -%}"
        turn = "{%- with messages = [{'role': 'user', 'content': judged}], add_generation_prompt = true %}"
        return asked + turn + (template or LINES).removesuffix("\n") + "{% endwith %}"


def _read_judge(judge: Any, info: ValidationInfo) -> Any:
    """A judge that ships with rmnb, by name (``yes-no``, ``rating``), or of your own YAML, by path; others stay."""
    return read(Judge, _beside(judge, info), PANELS / "judges", "judge") if isinstance(judge, str) else judge


class ReadoutSpec(Strict):
    """How a reward is read. Beside `HeadSpec` all read the head of a language model.

    Attributes
    ----------
    label
        ``all``: each output by itself.
    """

    label: Literal["all"] | None = None

    @property
    def reads_language_head(self) -> bool:
        return True

    def asked_in(self, template: str | None) -> str | None:
        """The chat template of what is read, in a model's own."""
        return template


class HeadSpec(ReadoutSpec):
    """The head of a classifier.

    Attributes
    ----------
    head
        Its kind, where the tensors leave a choice; or the name of the weight of a linear layer that is the head
        (``regression_head.weight``, ``lm_head.weight``).
    label
        Which of several outputs is the reward: its number, from 0, or its name; or the weights of several, in order or
        by name; or ``all``.
    """

    kind: Literal["head"] = "head"
    head: HeadName | Annotated[str, Field(pattern=r"\.")] | None = None
    label: int | str | tuple[float, ...] | dict[str, float] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def reads_language_head(self) -> bool:
        return str(self.head).startswith("lm_head.")


class JudgeSpec(ReadoutSpec):
    """A language model is asked what it thinks of an answer: see `Judge`; a name, a file, or the same in the panel."""

    kind: Literal["judge"] = "judge"
    judge: Judge

    _read = field_validator("judge", mode="before")(_read_judge)

    def asked_in(self, template: str | None) -> str | None:
        return self.judge.asked_in(template)


class ImplicitSpec(ReadoutSpec):
    """beta × (log-probability of the answer less that under the reference, a language model)."""

    kind: Literal["implicit"] = "implicit"
    reference: Place
    beta: float = Field(default=0.1, gt=0)


class LogProbabilitySpec(ReadoutSpec):
    """The log-probability of an answer. Of its first token alone, see `BaseSpec` for the wrapping of the question."""

    kind: Literal["log-probability"] = "log-probability"
    wrapping: Wrapping | None = None


#: Keys of readouts, which may stand among the model's own, and the kind that has them.
READOUT_KEYS = {
    "judge": "judge",
    "reference": "implicit",
    "beta": "implicit",
    "wrapping": "log-probability",
    "head": "head",
    "label": None,
}


class Weights(Strict):
    """What is said of every model, reward model or language model: its copy of the weights, and how it is shown.

    Attributes
    ----------
    template
        Chat template, in place of the tokenizer's own.
    parameters
        In billions.
    load
        Further options of `rmnb.load_reward_model`: ``device_map: auto``.
    """

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    revision: str | None = None
    adapter: Place | None = None
    recipe: str | None = None
    template: str | None = None
    family: str | None = None
    parameters: float | None = Field(default=None, gt=0)
    colour: str | None = Field(default=None, pattern="^#[0-9a-fA-F]{6}$")
    load: dict[str, Any] = {}


class ModelSpec(Weights):
    """One reward model: where its weights are and how it is shown.

    Either `base` (a key of `rmnb.models.bases.BASES`, a hub id or a directory) with `adapter` (a directory, or one that
    is given relative to the project's data), or `source` (a hub id or a local directory, with an optional `revision`).
    A PEFT adapter there names its base itself; `base_model` (a hub id or a directory) takes its place.

    Attributes
    ----------
    readout
        How the reward is read, by its ``kind``. ``head``: of a classifier; ``head`` is the head's kind, where the
        tensors leave a choice, or the name of a linear layer's weight; ``label`` says which output, or the weights of
        several. ``judge``: a language model is asked; ``judge`` is a name, a file, or the keys of `Judge`.
        ``implicit``: ``beta`` × (log-probability of the answer less that under the ``reference``).
        ``log-probability``: of the answer. These keys may stand among the model's own instead, and then say the kind.
    tokenizer
        Directory of the tokenizer, in place of the model's own.
    read
        ``model``: as the checkpoint says that it was trained; ``trl``, ``openrlhf``, ``llama-factory``, ``nemo-rl``,
        ``ms-swift``: as that trainer feeds and reads a conversation; ``last``: at the last id.
    group
        What counts as one independent model, such as a recipe.
    base_family
        What it counts to where bases are compared, if `family`, which is shown, is finer.
    rank
        Place in a leaderboard, 1 is best.
    softcap
        Whether attention scores are soft-capped, where the architecture does that (Gemma 2).
    card
        Scores that the model's own card publishes.
    """

    name: FileName
    source: Place | None = None
    base: Place | None = None
    base_model: Place | None = None
    readout: HeadSpec | JudgeSpec | ImplicitSpec | LogProbabilitySpec = Field(default=HeadSpec(), discriminator="kind")
    tokenizer: Place | None = None
    read: Literal["model", "last", "trl", "openrlhf", "llama-factory", "nemo-rl", "ms-swift"] = "model"
    developer: str | None = None
    group: str | None = None
    base_family: str | None = None
    rank: int | None = None
    softcap: bool = True
    card: tuple[Reference, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_readout(cls, values: Any) -> Any:
        """Keys of the readout that stand among the model's own take the place of the readout's."""
        if not isinstance(values, dict) or not isinstance(values.get("readout", {}), dict):
            return values  # of which the fields' own checks say what is wrong
        own = {key: value for key, value in values.items() if key not in READOUT_KEYS}
        flat = [(key, values.get(key)) for key in READOUT_KEYS]
        given = {key: value for key, value in [*own.get("readout", {}).items(), *flat] if value is not None}
        if given.get("head") == "log-probability":
            given["kind"] = given.pop("head")
        elif kinds := [kind for key, kind in READOUT_KEYS.items() if key in given and kind]:
            given["kind"] = kinds[0]
        return {**own, "readout": {"kind": "head", **given}} if given else own

    @model_validator(mode="after")
    def _one_origin(self) -> "ModelSpec":
        if (self.source is None) == (self.base is None):
            raise ValueError("give either source or base, not both")
        if (self.base is None) != (self.adapter is None):
            raise ValueError("base and adapter go together")
        if self.readout.kind == "judge" and self.read != "model":
            raise ValueError("a judge is read in the language model's own template: no read")
        if self.readout.kind == "implicit" and self.read not in ("model", "trl"):
            raise ValueError("an implicit reward is read in the language model's own template: read model or trl")
        return self

    @property
    def recipe_family(self) -> str:
        """The recipe without its seed, ``mixed`` for ``mixed-seed2``; empty if there is none."""
        return re.sub(r"-seed\d+$", "", self.recipe or "")


class BaseSpec(Weights):
    """A language model: what a reward model was trained from, and how a question is put to it.

    `source` is a hub id, a local directory or a key of `rmnb.models.bases.BASES`. `wrapping` is ``chat`` (the chat
    template with the generation prompt), ``bare`` (the question alone) or ``user_assistant`` (``User: …`` and
    ``Assistant:``). A tuned copy has an `adapter` (as of `ModelSpec`) and the `recipe` it was tuned by.
    """

    name: FileName
    source: Place
    kind: Literal["instruct", "pretrained", "tuned"]
    wrapping: Wrapping

    def as_model(self) -> ModelSpec:
        """The same as any other model: a source, or a base and its adapter."""
        fields = self.model_dump(exclude={"kind", "source", "wrapping"})
        fields["base" if self.adapter else "source"] = self.source
        return ModelSpec.model_validate(fields)


class PromptSpec(Strict):
    """A question, its key, and whether it asks for something good (positive) or bad (negative).

    Attributes
    ----------
    history
        What comes before the question: a system prompt, earlier turns.
    scanned
        False: asked about lists of texts, never about a whole vocabulary.
    """

    key: FileName
    text: str
    framing: Literal["positive", "negative"]
    history: Conversation = Conversation(())
    scanned: bool = True

    @field_validator("history", mode="plain")
    @classmethod
    def _read_history(cls, messages: Any) -> Conversation:
        """Messages in YAML or JSON, with no keys but role and content."""
        history = messages if isinstance(messages, Conversation) else Conversation(tuple(messages))
        for message in history.messages:
            if message.keys() != {"role", "content"} or not isinstance(message["role"], str):
                raise ValueError("a message has the keys role and content, both texts")
        return history

    @property
    def earlier(self) -> list[Message]:
        """The history as messages."""
        return list(self.history.messages)

    @property
    def conversation(self) -> Prompt:
        """What is scored as the prompt: the question alone, or messages that end with it."""
        return [*self.earlier, {"role": "user", "content": self.text}] if self.earlier else self.text


class PromptSet(Strict):
    """Questions that belong together, such as those of one paper."""

    title: str
    prompts: tuple[PromptSpec, ...] = Field(min_length=1)


def load_prompts(name: str | Path) -> tuple[PromptSpec, ...]:
    """The prompts of a set that ships with rmnb, by name (``iclr2026``: 54), or of your own YAML, by path.

    Raises
    ------
    InputError
        No such set, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).
    """
    return read(PromptSet, name, PANELS / "prompts", "prompt set").prompts

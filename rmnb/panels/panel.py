"""Panels: which reward models and which prompts, read from YAML and checked."""

import itertools
import re
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from rmnb.errors import InputError
from rmnb.yaml_files import read_yaml

PANELS = Path(__file__).parent
Framing = Literal["positive", "negative"]
Wrapping = Literal["chat", "bare", "user_assistant"]
HeadName = Literal["linear", "linear-normalised", "value-head", "inform", "armorm", "qrm", "urm", "urm-plain"]
Read = Literal["model", "last"]
Kind = TypeVar("Kind", bound=BaseModel)


def _file_name(name: str) -> str:
    if not name.strip() or name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f]", name) or len(name.encode()) > 150:
        raise ValueError("must do as the name of a file: not empty, no slash, no leading dot, at most 150 bytes")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]  # scores are kept under it


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Reference(_Strict):
    """A score that a model's own card publishes: a known answer to test a loaded model with.

    `protocol` says which ids the card's code fed to the model: ``exact`` if it let the template tokenise, so that BOS
    is there once at most, ``published`` if it tokenised the filled template again.
    """

    prompt: str
    response: str
    score: float
    tolerance: float = Field(gt=0)
    protocol: Literal["exact", "published"] = "exact"
    source: str = Field(description="where the score is printed")


class ModelSpec(_Strict):
    """One reward model: where its weights are and how it is shown.

    Either `base` (a key of `rmnb.models.bases.BASES`) with `adapter` (a directory, relative to the project's data), or
    `source` (a hub id or a local directory, with an optional `revision`).
    """

    name: FileName
    source: str | None = None
    revision: str | None = None
    base: str | None = None
    adapter: str | None = None
    template: str | None = None
    dtype: Literal["float32", "bfloat16", "float16", "bfloat16-mixed"] = "float32"
    head: HeadName | None = Field(default=None, description="how the reward is read, where the tensors leave a choice")
    read: Read = Field(default="model", description="model: where the checkpoint's own code reads; last: the last id")
    family: str | None = None
    developer: str | None = None
    recipe: str | None = None
    parameters: float | None = Field(default=None, gt=0, description="billions")
    rank: int | None = Field(default=None, description="place in a leaderboard, 1 is best")
    colour: str | None = Field(default=None, pattern="^#[0-9a-fA-F]{6}$")
    softcap: bool = Field(default=True, description="attention soft-capping, where the architecture has it (Gemma 2)")
    reference: tuple[Reference, ...] = ()

    @model_validator(mode="after")
    def _one_origin(self) -> "ModelSpec":
        if (self.source is None) == (self.base is None):
            raise ValueError("give either source or base, not both")
        if (self.base is None) != (self.adapter is None):
            raise ValueError("base and adapter go together")
        return self

    @property
    def recipe_family(self) -> str:
        """The recipe without its seed, ``mixed`` for ``mixed-seed2``; empty if there is none."""
        return re.sub(r"-seed\d+$", "", self.recipe or "")


class BaseSpec(_Strict):
    """A language model: what a reward model was trained from, and how a question is put to it.

    `source` is a hub id, a local directory or a key of `rmnb.models.bases.BASES`. `wrapping` is ``chat`` (the chat
    template with the generation prompt), ``bare`` (the question alone) or ``user_assistant`` (``User: …`` and
    ``Assistant:``). A tuned copy has an `adapter` (a directory, relative to the project's data) and the `recipe` it
    was tuned by.
    """

    name: str
    source: str
    revision: str | None = None
    adapter: str | None = None
    recipe: str | None = None
    kind: Literal["instruct", "pretrained", "tuned"]
    wrapping: Wrapping
    template: str | None = Field(default=None, description="chat template, in place of the tokenizer's own")
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    family: str | None = None
    parameters: float | None = Field(default=None, gt=0, description="billions")
    colour: str | None = Field(default=None, pattern="^#[0-9a-fA-F]{6}$")


class Turn(_Strict):
    """One message of a conversation."""

    role: str
    content: str


class PromptSpec(_Strict):
    """A question, its key, and whether it asks for something good (positive) or bad (negative).

    `history` is what comes before the question: a system prompt, earlier turns.
    """

    key: FileName
    text: str
    framing: Framing
    history: tuple[Turn, ...] = ()
    scanned: bool = Field(default=True, description="false: asked about lists of texts, never about a whole vocabulary")

    @property
    def conversation(self) -> str | list[dict[str, str]]:
        """What is scored as the prompt: the question alone, or messages that end with it."""
        if not self.history:
            return self.text
        return [*(turn.model_dump() for turn in self.history), {"role": "user", "content": self.text}]


class Adjective(_Strict):
    """What a question asks for: the words in the question, and whether that is something good or bad."""

    text: str
    framing: Framing


class PromptSet(_Strict):
    """Questions made by a factorial design: each adjective with each scope in each style, in that order of nesting.

    A style is the question with ``{adjective}`` and ``{scope}`` in it. Keys read ``adjective_scope_style``.
    """

    name: str
    title: str
    adjectives: dict[str, Adjective] = Field(min_length=1)
    scopes: dict[str, str] = Field(min_length=1)
    styles: dict[str, str] = Field(min_length=1)

    @property
    def prompts(self) -> tuple[PromptSpec, ...]:
        return tuple(
            PromptSpec(
                key=f"{word}_{scope}_{style}",
                text=question.replace("{adjective}", asked.text).replace("{scope}", where),
                framing=asked.framing,
            )
            for (word, asked), (scope, where), (style, question) in itertools.product(
                self.adjectives.items(), self.scopes.items(), self.styles.items()
            )
        )


class Panel(_Strict):
    """Models in the order in which every table and figure shows them, and the prompts they are scanned with.

    `prompt_sets` names further prompts (see `load_prompts`): known by their keys, scanned when asked for.
    """

    name: FileName
    title: str
    models: tuple[ModelSpec, ...] = ()
    bases: tuple[BaseSpec, ...] = ()
    prompts: tuple[PromptSpec, ...] = ()
    prompt_sets: tuple[str, ...] = ()
    scores: str | None = Field(default=None, description="directory of scores, relative to the panel's file")
    watched: tuple[ModelSpec, ...] = Field(default=(), description="trained for their trajectories, never scanned")
    _path: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _whole(self) -> "Panel":
        if not (self.models or self.bases):
            raise ValueError("models: give at least 1 model, or at least 1 language model under bases")
        if not (self.prompts or self.prompt_sets):
            raise ValueError("prompts: give at least 1 prompt, or the name of a set under prompt_sets")
        named = {"model": self.models, "base": self.bases}
        names = {kind: [spec.name for spec in specs] for kind, specs in named.items()}
        for kind, used in {**names, "prompt": [prompt.key for prompt in self.all_prompts]}.items():
            if len(set(used)) < len(used):
                raise ValueError(f"two {kind}s share a name")
        return self

    @property
    def called(self) -> str:
        """What a command line calls the panel: its name, or the path of the user's own YAML."""
        return str(self._path or self.name)

    @property
    def model_names(self) -> list[str]:
        return [model.name for model in self.models]

    @property
    def scanned_prompts(self) -> tuple[PromptSpec, ...]:
        """The panel's own prompts that whole vocabularies are scanned with."""
        return tuple(prompt for prompt in self.prompts if prompt.scanned)

    @property
    def all_prompts(self) -> tuple[PromptSpec, ...]:
        """The panel's own prompts, then those of its prompt sets."""
        return self.prompts + tuple(prompt for name in self.prompt_sets for prompt in load_prompts(name))

    def model(self, name: str) -> ModelSpec:
        """The model of that name; InputError lists the names if there is none."""
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(self.model_names) or "none: it has language models only"
        raise InputError(f"panel {self.name!r} has no model {name!r}: choose one of {known}")

    def base(self, name: str) -> BaseSpec:
        """The language model of that name or source; InputError lists the names if there is none."""
        for base in self.bases:
            if name in (base.name, base.source):
                return base
        known = ", ".join(base.name for base in self.bases) or "none"
        raise InputError(f"panel {self.name!r} has no base {name!r}: choose one of {known}")

    def prompt(self, key_or_text: str) -> PromptSpec:
        """The prompt with that key or that text.

        A single word that is no key is a misspelt key, not a question: InputError lists the keys. Any other text is a
        prompt of its own, keyed ``custom``.
        """
        for prompt in self.all_prompts:
            if key_or_text in (prompt.key, prompt.text):
                return prompt
        if (PANELS / "prompts" / f"{key_or_text}.yml").exists():
            told = "name one of its keys" if key_or_text in self.prompt_sets else "list it under `prompt_sets`"
            raise InputError(f"{key_or_text!r} is a set of prompts, not a prompt: {told}")
        if " " not in key_or_text.strip():
            known = [*(prompt.key for prompt in self.prompts), *(f"one of the set {name}" for name in self.prompt_sets)]
            keys = ", ".join(known)
            raise InputError(f"unknown prompt {key_or_text!r}: give a key ({keys}) or a whole question in quotes")
        return PromptSpec(key="custom", text=key_or_text, framing="positive")


def load_panel(name: str | Path) -> Panel:
    """Read a panel that ships with rmnb by name, or your own YAML by path.

    In your own, `scores` and directories under `source` are relative to the file.

    Raises
    ------
    InputError
        No such panel, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).
    """
    panel = _read(Panel, name, PANELS, "panel")
    if not str(name).endswith((".yml", ".yaml")) or Path(name).resolve().parent == PANELS.resolve():
        return panel
    beside = Path(name).resolve().parent

    def found(spec: ModelSpec) -> ModelSpec:
        directory = beside / Path(spec.source or "").expanduser()
        return spec.model_copy(update={"source": str(directory)}) if spec.source and directory.is_dir() else spec

    scores = panel.scores and str(beside / Path(panel.scores).expanduser())
    own = panel.model_copy(update={"scores": scores, "models": tuple(map(found, panel.models))})
    own._path = Path(name)
    return own


def load_prompts(name: str | Path) -> tuple[PromptSpec, ...]:
    """The prompts of a set that ships with rmnb, by name (``iclr2026``: 54), or of your own YAML, by path.

    Raises
    ------
    InputError
        No such set, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).
    """
    return _read(PromptSet, name, PANELS / "prompts", "prompt set").prompts


def _read(kind: type[Kind], name: str | Path, directory: Path, what: str) -> Kind:
    path = directory / f"{name}.yml" if not str(name).endswith((".yml", ".yaml")) else Path(name)
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in directory.glob("*.yml")))
        raise InputError(f"unknown {what} {str(name)!r}: choose one of {known}, or give the path of a .yml file")
    try:
        return kind.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or f"the {what}"
        raise InputError(f"{path}: {key}: {first['msg']}") from error


def find_base(panel: Panel, name: str) -> BaseSpec | str:
    """The panel's language model of that name or source, else the name itself: a hub id, a directory or a demo base."""
    known = any(name in (base.name, base.source) for base in panel.bases)
    return panel.base(name) if known else name


def find_spec(name: str | Path, panel: str | Path | Panel | None = None) -> ModelSpec:
    """The ModelSpec that a name stands for: of the panel, of any shipped panel, a directory, or a hub id."""
    text = str(name)
    if panel is not None:
        return (panel if isinstance(panel, Panel) else load_panel(panel)).model(text)
    panels = [load_panel(file.stem) for file in sorted(PANELS.glob("*.yml"))]
    for candidate in panels:
        if text in candidate.model_names:
            return candidate.model(text)
    if Path(text).is_dir():
        return ModelSpec(name=Path(text).resolve().name.lstrip(".") or "model", source=text)
    if text.count("/") == 1 and not text.startswith((".", "/", "~")):
        return ModelSpec(name=text.split("/")[1].lstrip(".") or "model", source=text)
    if text.startswith((".", "/", "~")):
        raise InputError(f"{text}: no such directory")
    names = ", ".join(known for candidate in panels for known in candidate.model_names)
    raise InputError(
        f"unknown model {text!r}: give a nickname ({names}), a hub id owner/name, or a checkpoint directory"
    )

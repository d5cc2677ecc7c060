"""Panels: which reward models and which prompts, read from YAML and checked."""

from itertools import combinations
from pathlib import Path

from pydantic import Field, PrivateAttr, model_validator

from rmnb.errors import InputError
from rmnb.panels.form import PANELS, FileName, Strict, read
from rmnb.panels.prompt_sets import PromptSpec, load_prompts
from rmnb.panels.specs import BaseSpec, ModelSpec


class Panel(Strict):
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
    def groups(self) -> dict[str, str]:
        """Model to its group of models that are not independent: as stated, else its recipe, else itself."""
        return {model.name: model.group or model.recipe_family or model.name for model in self.models}

    @property
    def seed_pairs(self) -> list[tuple[str, str]]:
        """Models of one base and one recipe that differ in the seed of their training alone."""
        return [
            (one.name, other.name)
            for one, other in combinations(self.models, 2)
            if (one.family, one.base, one.recipe_family) == (other.family, other.base, other.recipe_family)
            and one.recipe_family
            and one.recipe != other.recipe
        ]

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

    In your own, `scores` and directories under `source`, `base` and `base_model` are relative to the file.

    Raises
    ------
    InputError
        No such panel, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).
    """
    panel = read(Panel, name, PANELS, "panel")
    if not str(name).endswith((".yml", ".yaml")) or Path(name).resolve().parent == PANELS.resolve():
        return panel
    beside = Path(name).resolve().parent

    def found(spec: ModelSpec | BaseSpec):
        """The spec with directories beside the panel's file in place of relative paths."""
        named = {key: getattr(spec, key, None) for key in ("source", "base", "base_model")}
        places = {key: beside / Path(path).expanduser() for key, path in named.items() if path}
        return spec.model_copy(update={key: str(place) for key, place in places.items() if place.is_dir()})

    scores = panel.scores and str(beside / Path(panel.scores).expanduser())
    models, bases, watched = (tuple(map(found, specs)) for specs in (panel.models, panel.bases, panel.watched))
    own = panel.model_copy(update={"scores": scores, "models": models, "bases": bases, "watched": watched})
    own._path = Path(name)
    return own


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
        source, at, revision = text.partition("@")
        if at and not revision:
            raise InputError(f"{text}: write owner/name@revision, or owner/name for the main branch")
        return ModelSpec(name=source.split("/")[1].lstrip(".") or "model", source=source, revision=revision or None)
    if text.startswith((".", "/", "~")):
        raise InputError(f"{text}: no such directory")
    names = ", ".join(known for candidate in panels for known in candidate.model_names)
    raise InputError(
        f"unknown model {text!r}: give a nickname ({names}), a hub id owner/name[@revision], or a checkpoint directory"
    )

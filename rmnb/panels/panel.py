"""Panels: which reward models and which prompts, read from YAML and checked."""

import logging
import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from pydantic import Field, model_validator

from rmnb.errors import InputError, LackError, list_some
from rmnb.panels.specs import PANELS, BaseSpec, FileName, ModelSpec, Place, PromptSpec, Strict, load_prompts, read

logger = logging.getLogger(__name__)


class Panel(Strict):
    """Models in the order in which every table and figure shows them, and the prompts they are scanned with.

    Attributes
    ----------
    prompts
        By default those of the first paper.
    prompt_sets
        Names of further prompts (see `load_prompts`): known by their keys, scanned when asked for. By default the
        second paper's.
    scores
        Directory of the scores, relative to the panel's file.
    watched
        Models that are trained for their trajectories and never scanned.
    """

    name: FileName
    title: str
    models: tuple[ModelSpec, ...] = ()
    bases: tuple[BaseSpec, ...] = ()
    prompts: tuple[PromptSpec, ...] = Field(default_factory=lambda: load_prompts("facct2025"))
    prompt_sets: tuple[str, ...] = ("iclr2026",)
    scores: Place | None = None
    watched: tuple[ModelSpec, ...] = ()
    _path: Path | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Panel":
        if not (self.models or self.bases):
            raise ValueError("models: give at least 1 model, or at least 1 language model under bases")
        if not (self.prompts or self.prompt_sets):
            raise ValueError("prompts: give at least 1 prompt, or the name of a set under prompt_sets")
        bases = [base.name for base in self.bases]
        prompts = [prompt.key for prompt in self.all_prompts]
        ranked = [model.name for model in self.models if model.rank is not None]
        if ranked and len(ranked) < len(self.models):
            raise ValueError(
                f"rank: only {list_some(ranked)} of {len(self.models)} models have one: give all of them or none"
            )
        for kind, names in {"models": self.model_names, "bases": bases, "prompts": prompts}.items():
            if len(set(names)) < len(names):
                raise ValueError(f"two {kind} share a name")
        return self

    def model_post_init(self, path: Path | None) -> None:
        """Remember the user's own file that the panel was read from."""
        self._path = path

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
    def base_families(self) -> dict[str, str]:
        """Model to the base that it counts to: as stated, else its family, else itself."""
        return {model.name: model.base_family or model.family or model.name for model in self.models}

    @property
    def seed_pairs(self) -> list[tuple[str, str]]:
        """Models of one base and one recipe that differ in the seed of their training alone."""
        trained = [model for model in self.models if model.recipe]
        return [
            (x.name, y.name)
            for x, y in combinations(trained, 2)
            if (x.family, x.base, x.recipe_family) == (y.family, y.base, y.recipe_family) and x.recipe != y.recipe
        ]

    @property
    def first_seeds(self) -> list[str]:
        """The names of the models without those that repeat the training of an earlier one with another seed."""
        repeats = {second for _, second in self.seed_pairs}
        return [name for name in self.model_names if name not in repeats]

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
        names = ", ".join(self.model_names) or "none"
        raise InputError(f"panel {self.name!r} has no model {name!r}: choose one of {names}")

    def language_model(self, name: str = "") -> BaseSpec:
        """The base of that name, or else the first that was taught to end its answers, to which a model counts.

        Raises
        ------
        LackError
            There is none.
        """
        families = self.base_families.values()
        for base in self.bases:
            if base.family in families and (base.name == name if name else base.kind == "instruct"):
                return base
        known = ", ".join(base.name for base in self.bases) or "none"
        wanted = name or "of kind instruct"
        raise LackError(f"this needs a base {wanted} with models of its family, and panel {self.name} has {known}")

    def require(self, models: int = 1, groups: int = 1, questions: Iterable[str] = ()) -> "Panel":
        """The panel itself, if it has so many models, so many independent groups of them, and prompts of these keys.

        Raises
        ------
        LackError
            It has not; the line says what it has.
        """
        keys = [prompt.key for prompt in self.prompts]
        for needed, what, named in (
            (models, "models", self.model_names),
            (groups, "groups of models", self.groups.values()),
        ):
            if len(found := dict.fromkeys(named)) < needed:
                raise LackError(f"this needs {needed} {what}, and panel {self.name} has {len(found)}")
        if missing := [key for key in questions if key not in keys]:
            raise LackError(
                f"this needs the question {missing[0]}, and panel {self.name} has {', '.join(keys)}: "
                "add it, or name another with -p"
            )
        return self

    def prompt(self, key_or_text: str) -> PromptSpec:
        """The prompt with that key or that text.

        A text of letters, digits, _, . and - that is no key is a misspelt key, not a question: InputError lists the
        keys. Any other text is a prompt of its own, keyed ``custom``.
        """
        for prompt in self.all_prompts:
            if key_or_text in (prompt.key, prompt.text):
                return prompt
        if re.fullmatch(r"[a-zA-Z0-9_.-]*", key_or_text.strip()):
            keys = [*(prompt.key for prompt in self.prompts), *(f"one of the set {name}" for name in self.prompt_sets)]
            raise InputError(
                f"unknown prompt {key_or_text!r}: give a key ({', '.join(keys)}) or a whole question in quotes"
            )
        return PromptSpec(key="custom", text=key_or_text, framing="positive")

    def named_prompts(self, names: Iterable[str]) -> list[PromptSpec]:
        """The prompts of these keys or texts; the name of a prompt set stands for all of its prompts."""
        if isinstance(names, str):
            raise InputError(f"prompts must be a list of keys or texts, not {names!r}")
        prompts = []
        for name in names:
            prompts += load_prompts(name) if name in self.prompt_sets else [self.prompt(name)]
        return prompts


def load_panel(name: str | Path | Panel) -> Panel:
    """Read a panel that ships with rmnb by name, or your own YAML by path; a panel is itself.

    In your own, `scores` and directories under `source`, `base`, `base_model` and `adapter` are relative to the file.

    Raises
    ------
    InputError
        No such panel, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).

    Examples
    --------
    >>> load_panel("demo").prompt("greatest").text
    'What, in one word, is the greatest thing ever?'
    """
    return name if isinstance(name, Panel) else read(Panel, name, PANELS, "panel")


def find_base(panel: Panel, name: str) -> BaseSpec | str:
    """The panel's language model of that name or source, else the name itself: a hub id, a directory or a demo base."""
    return next((base for base in panel.bases if name in (base.name, base.source)), name)


def find_spec(name: str | Path, panel: str | Path | Panel | None = None) -> ModelSpec:
    """The ModelSpec that a name stands for: of the panel, of any shipped panel, a directory, or a hub id.

    Raises
    ------
    InputError
        It is none of these.
    """
    text = str(name)
    panels: list[str | Path | Panel] = [file.stem for file in sorted(PANELS.glob("*.yml"))]
    if panel is not None:
        panels.append(panel)
    known = {}
    for each in map(load_panel, panels):
        known |= {base.name: base.as_model() for base in each.bases} | {model.name: model for model in each.models}
    if text in known:
        spec = known[text]
        own = {spec.source, spec.adapter}
        if Path(text).is_dir() and str(Path(text).resolve()) not in own:
            logger.warning("%s is taken for the nickname of a panel's model: ./%s is the directory", text, text)
        return spec
    if Path(text).is_dir():
        return ModelSpec(name=Path(text).resolve().name.lstrip(".") or "model", source=text)
    hub_id = re.fullmatch(r"(\w[\w.-]*/(\w[\w.-]*))(?:@(.+))?", text)
    if hub_id is None:
        raise InputError(
            f"unknown model {text!r}: no such directory here, and no nickname ({list_some(known)}): give a "
            "checkpoint's directory, or a hub id owner/name or owner/name@revision"
        )
    return ModelSpec(name=hub_id[2], source=hub_id[1], revision=hub_id[3])

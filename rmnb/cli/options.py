"""What commands share: how functions and dataclasses become options, and options that several commands have."""

import functools
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import yaml
from typer import Argument, Option, echo

from rmnb.conversation import Conversation
from rmnb.errors import InputError, list_some
from rmnb.panels import PromptSpec, find_spec, load_panel

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.models.dialogue import Dialogue
    from rmnb.scoring.forms import RowTable
    from rmnb.scoring.reward_model import RewardModel

Model = Annotated[
    str,
    Argument(
        help="Hub id owner/name@revision, directory of a checkpoint or an adapter, or nickname of a panel's model."
    ),
]
Json = Annotated[bool, Option("--json", help="As JSON on stdout.")]
PanelName = Annotated[str, Option(help="Name of a panel, or path of your own YAML.")]
Protocol = Annotated[
    str,
    Option(help="exact: as the model's own template gives the ids. published: tokenised again, as in the papers."),
]
Restart = Annotated[bool, Option("--restart", help="Compute again what is at --out, finished or not.")]


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose options are its parameters and, of those that are dataclasses, their fields.

    The help of each is what the docstring says under Parameters or Attributes, unless its type is annotated for Typer.
    """
    groups: dict[str, Any] = {name: kind for name, kind in command.__annotations__.items() if is_dataclass(kind)}
    parameters = []
    for owner in (command, *groups.values()):
        help_texts = _described(owner)
        for name, parameter in inspect.signature(owner).parameters.items():
            if text := help_texts.get(name):
                if parameter.default is parameter.empty:
                    option = Argument(help=text)
                elif parameter.annotation is bool:
                    option = Option(f"--{name.replace('_', '-')}", help=text)  # and no --no-…
                else:
                    option = Option(help=text)
                parameter = parameter.replace(annotation=Annotated[parameter.annotation, option])
            if name not in groups:
                parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def flattened(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field: options.pop(field) for field in inspect.signature(group).parameters})
        command(**options)

    flattened.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    flattened.__doc__ = (inspect.getdoc(command) or "").partition("\n\nParameters\n")[0]
    return flattened


def _described(owner: Any) -> dict[str, str]:
    """What a docstring in numpy style says of each parameter or attribute; nothing under ``python -OO``."""
    entries = re.findall(r"^(\w+)\n((?: {4}.+\n?)+)", str(inspect.getdoc(owner)), re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


@dataclass(frozen=True)
class Asking:
    """Which questions are put.

    Attributes
    ----------
    prompt
        A question in quotes, or the key of a panel's; repeatable. Default: greatest.
    system
        A system prompt, before everything else.
    messages
        JSON list of {"role": …, "content": …} that ends with the question, in place of --prompt.
    """

    prompt: list[str] | None = None
    system: str | None = None
    messages: Path | None = None

    def questions(self, panel: str) -> list[PromptSpec]:
        """Each question once; the name of a prompt set stands for all of its prompts."""
        if self.messages is None:
            questions = load_panel(panel).named_prompts(self.prompt or ["greatest"])
        elif self.prompt:
            raise InputError("give either --prompt or --messages, not both")
        else:
            questions = [_read_messages(self.messages)]
        if self.system is not None:
            system = {"role": "system", "content": self.system}
            questions = [
                question.model_copy(
                    update={"key": "custom", "history": Conversation((system, *question.history.messages))}
                )
                for question in questions
            ]
        return list(dict.fromkeys(questions))


def _read_messages(file: Path) -> PromptSpec:
    try:
        *before, last = json.loads(file.read_text(encoding="utf-8-sig"))
        if last["role"] != "user":
            raise ValueError("it is the question")
        fields = {"key": "custom", "text": last["content"], "framing": "positive", "history": before}
        return PromptSpec.model_validate(fields)
    except (OSError, ValueError, TypeError, LookupError) as error:
        reason = "no such file, or not a JSON list of messages with role and content, the last of them the user's"
        raise InputError(f"--messages {file}: {reason}", file) from error


@dataclass(frozen=True)
class Loading:
    """Where a model is looked up, and how it is loaded.

    Attributes
    ----------
    dtype
        auto (as stored), float32, bfloat16, float16. Default: float32, or a panel's.
    device
        cpu, cuda, cuda:1 … Default: a GPU if there is one.
    template
        File with the chat template (Jinja); plain: prompt, answer, EOS, without one.
    read
        As a trainer feeds and reads: trl, openrlhf, llama-factory, nemo-rl, ms-swift; last: at the last id. Default:
        model.
    tokenizer
        Directory of the tokenizer, if it is not in the model's own.
    base
        Base of an adapter. Default: what the adapter names.
    head
        Kind of head, or a linear layer by its tensor: v_head.weight.
    judge
        Ask a language model what it thinks of an answer: yes-no, rating, or a YAML file.
    reference
        Implicit reward of a language model: log-probabilities less those of this one.
    beta
        Of an implicit reward, its factor. Default: 0.1.
    label
        Which output of a classifier with several: name or number; or weights: name=0.65,name=-0.4.
    load
        KEY=VALUE: any other option of rmnb.load_reward_model, or of from_pretrained of transformers: softcap=off,
        compile=default, device_map=auto; repeatable.
    """

    panel: PanelName = "demo"
    dtype: str | None = None
    device: str | None = None
    template: str | None = None
    read: str | None = None
    tokenizer: str | None = None
    base: str | None = None
    head: str | None = None
    judge: str | None = None
    reference: str | None = None
    beta: float | None = None
    label: str | None = None
    load: list[str] | None = None

    def arguments(self) -> dict[str, Any]:
        """What `rmnb.load_reward_model` is given beside the model."""
        options = vars(self) | {"panel": None, "load": None}
        if self.template not in (None, "plain"):
            try:
                options["template"] = Path(self.template).read_text(encoding="utf-8-sig")
            except (OSError, UnicodeError) as error:
                raise InputError(f"--template {self.template} cannot be read", self.template) from error
        if self.label is not None:
            options["label"] = _label(self.label)
        options = {key: value for key, value in options.items() if value is not None}
        loaded = key_values("--load", self.load)
        if twice := list_some(options.keys() & loaded.keys()):
            raise InputError(f"--load gives {twice}, which has an option of its own here", twice)
        return {**options, **{key: value for key, value in loaded.items() if value is not None}}

    def model(self, name: str) -> "RewardModel":
        """The loaded model of that name: of the panel, else as `rmnb.panels.find_spec` finds it."""
        spec, arguments = find_spec(name, self.panel), self.arguments()  # what is wrong so far is said without torch
        from rmnb.scoring.loading import load_reward_model

        return load_reward_model(spec, self.panel, **arguments)

    def dialogue(self, name: str) -> "Dialogue":
        """How the model of that name writes conversations; nothing but its tokenizer is loaded."""
        spec, arguments = find_spec(name, self.panel), self.arguments()
        from rmnb.models.loading import read_dialogue

        return read_dialogue(spec, **arguments, base_model=arguments.get("base"))


@dataclass(frozen=True)
class Reading:
    """How a file of rows is read.

    Attributes
    ----------
    by
        For pairs: also the numbers of each value of this column.
    truncate
        For a file of rows: cut responses that are too long.
    ignore
        A key of rows that says nothing of their conversations; repeatable.
    columns
        What keys of rows say what: prompt=question,chosen=good,rejected=bad; all others are carried along.
    """

    by: str | None = None
    truncate: bool = False
    ignore: list[str] | None = None
    columns: str | None = None

    def read(self, file: Path) -> "RowTable":
        """What the rows of a file say."""
        from rmnb.scoring.forms import MEASURED, read_forms
        from rmnb.scoring.row_files import read_rows

        columns = key_values("--columns", self.columns.split(",") if self.columns else None, read=str.strip)
        content = read_forms(read_rows(file), self.ignore or (), columns)
        if self.by and not (content.kind in MEASURED and self.by in content.columns):
            names = list_some(content.columns) or "none"
            raise InputError(f"--by: {file} has no such column {self.by!r}: its columns are {names}")
        return content


_KINDS = {
    "single": "responses",
    "labelled": "labelled responses",
    "several": "with several responses",
    "pairs": "pairs",
    "lists": "lists",
}


def say_read(file: Path, content: "RowTable") -> None:
    """A line on stderr: how the rows of a file were read."""
    rows, ties = len(content.rows), len(content.ties)
    counts = [f"{rows:,} rows", f"{rows - ties:,} {_KINDS[content.kind]}"]
    if ties:
        counts.append(f"{ties:,} tied and left out")
    carried = list_some(content.columns) or "nothing"
    echo(f"{file}: {list_some(content.forms)}; {', '.join(counts)}; carried along: {carried}", err=True)


def end_by_limits(outcomes: "pd.DataFrame", err: bool = False) -> None:
    """Say what `rmnb.limits.check` found, and end with code 1 if a limit is broken."""
    from rmnb.limits import verdicts

    for line in verdicts(outcomes):
        echo(line, err=err)
    if outcomes["broken"].any():
        fail("a limit is broken")


def say_undecided(rm: "RewardModel") -> None:
    """At the end of work, a line on stderr where the model may have been trained on other ids than it was fed."""
    from rmnb.scoring.check import undecided

    if line := undecided(rm):
        echo(f"rmnb: {line}", err=True)


def _label(text: str) -> Any:
    """A number, a name, or weights by name or in order."""
    if "=" in text:
        return key_values("--label", text.split(","), read=float)
    if "," in text:
        return text.split(",")
    return int(text) if text.isdecimal() else text


def key_values(
    option: str,
    texts: list[str] | None,
    read: Callable[[str], Any] = yaml.safe_load,
    sign: str = "=",
) -> dict[str, Any]:
    """The values of a repeatable option KEY=VALUE by their keys, each as `read` reads it: by default, as YAML."""
    values = {}
    for text in texts or []:
        try:
            key, value = text.split(sign, 1)
            if not key:
                raise ValueError
            value = read(value)
        except (ValueError, yaml.YAMLError) as error:
            raise InputError(f"{option} {text}: write KEY{sign}VALUE", text) from error
        key = key.strip()
        if key in values:
            raise InputError(f"{option} gives {key} twice", key)
        values[key] = value
    return values


def need(*packages: str) -> None:
    """Raise ModuleNotFoundError for the first that is not installed: now, and not when minutes have been spent."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"no package {package}", name=package)


def fail(message: str, code: int = 1) -> NoReturn:
    """End with a line on stderr. Exit code 1: what was asked for is there, and not as it should be."""
    echo(f"rmnb: {message}", err=True)
    sys.exit(code)


def echo_table(table: "pd.DataFrame", number: str = "{:.3f}") -> None:
    """Write a table on stdout, its numbers in a format of Python."""
    echo(table.to_string(index=False, na_rep="none", float_format=number.format))


def json_rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """A table as a list of its rows, which JSON can hold."""
    return json.loads(table.to_json(orient="records", double_precision=15))


def echo_json(content: Any) -> None:
    """Write JSON on stdout, tables in it as lists of their rows."""
    echo(json.dumps(content, ensure_ascii=False, indent=1, default=json_rows))

"""The panel that every rule is given: the one that is configured, its models with the configuration's loading options.

So no rule has to pass options on, and a score file is what its panel says.
"""

import hashlib
import shlex
from pathlib import Path
from typing import Any

import typer
import yaml

from rmnb.cli.options import Loading, flat
from rmnb.errors import InputError
from rmnb.files import atomic_path, data_dir
from rmnb.panels import BaseSpec, ModelSpec, load_panel
from rmnb.panels.specs import PANELS, READOUT_KEYS
from rmnb.scoring.store import store_directory
from rmnb.yaml_files import read_yaml

DIRECTORY = Path("_build/panels")


def configured_panel(panel: str, options: str) -> str:
    """The panel's name or path; with options, the path of a file that has them, always the same one.

    Parameters
    ----------
    options
        Of loading, as `rmnb score` takes them: ``--dtype bfloat16 --load device_map=auto``. Language models among the
        bases take the dtype and what stands after ``--load``.

    Raises
    ------
    InputError
        An option that is none of loading, or a value that a panel cannot have.
    """
    if not options.strip():
        return panel
    changes = loading_options(options)
    members = load_panel(panel)
    own = Path(panel) if panel.endswith((".yml", ".yaml")) else PANELS / f"{panel}.yml"
    shared = {name: changes[name] for name in ("dtype", "load") if name in changes}
    content = read_yaml(own) | {
        "models": [_with(spec, changes) for spec in members.models],
        "bases": [_with(spec, shared) for spec in members.bases],
        "watched": [_with(spec, {}) for spec in members.watched],
    }
    if members.scores:
        content["scores"] = str(store_directory(members).resolve())
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    path = DIRECTORY / f"{members.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.yml"
    if not path.exists():
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    load_panel(path)
    return str(path)


def loading_options(text: str) -> dict[str, Any]:
    """Options of a command line as keys of a panel's model; what has no key there stands under ``load``."""
    given: dict[str, Any] = {}

    def collect(loading: Loading) -> None:
        given.update(loading.arguments())

    application = typer.Typer(add_completion=False)
    application.command()(flat(collect))
    try:
        application(shlex.split(text), prog_name="options")
    except SystemExit as end:
        if end.code:  # Typer has said what is wrong
            raise InputError(f"not options of loading: {text}", text) from end
    if "base" in given:
        given["base_model"] = given.pop("base")
    changes = {name: given.pop(name) for name in {*ModelSpec.model_fields, *READOUT_KEYS} & given.keys()}
    return {**changes, "load": given} if given else changes


def _with(spec: ModelSpec | BaseSpec, changes: dict[str, Any]) -> dict[str, Any]:
    fields = spec.model_dump(mode="json", exclude_unset=True)
    if spec.adapter:
        fields["adapter"] = str(data_dir() / spec.adapter)
    return {**fields, **changes, "load": {**spec.load, **changes.get("load", {})}}

"""The models of a panel that are made from recipes: train them, measure them, follow them while they learn."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rmnb.data.list_scores import score_columns
from rmnb.data.text_lists import text_list
from rmnb.errors import InputError
from rmnb.files import cache_dir, data_dir, exclusive, sha256, write_json
from rmnb.panels import BaseSpec, ModelSpec, Panel
from rmnb.plans import partial_directory, refuse_other
from rmnb.scoring.store import panel_directory

if TYPE_CHECKING:
    from rmnb.training.recipes import Recipe

_TESTS = {
    "evaluation.held_out.all.value": "held out",
    "evaluation.apart.all.value": "apart",
    "evaluation.unseen_items.greatest.value": "unseen items",
    "evaluation.rm_bench.all.value": "RM-Bench",
    "evaluation.auto_j.all.value": "Auto-J",
}


def runs(panel: Panel) -> dict[str, ModelSpec | BaseSpec]:
    """Everything that the panel trains: models, runs that are only watched, tuned copies of language models."""
    return {spec.name: spec for spec in (*panel.models, *panel.watched, *panel.bases) if spec.recipe and spec.adapter}


def unfinished(panel: Panel) -> list[str]:
    """Names of the runs that are not trained and measured, or were trained here and have no trajectory."""
    names = []
    for name, spec in runs(panel).items():
        was_trained_here = bool(snapshots(work_directory(panel, name)))
        if not recorded(spec) or (was_trained_here and not trajectory_path(panel, name).exists()):
            names.append(name)
    return names


def overview(panel: Panel) -> pd.DataFrame:
    """A row for every model of a panel: what it was trained on and how good it is.

    Returns
    -------
    DataFrame
        model, base, recipe, pairs, steps; accuracy on the pairs held out by the recipe, and on those of them that are
        apart from all training texts; on unseen items (pairs of things never trained on), RM-Bench and Auto-J. What was
        not recorded is missing.
    """
    rows = [
        {**_record(spec), "model": spec.name, "base": spec.base or spec.source, "recipe": spec.recipe}
        for spec in panel.models
    ]
    table = pd.json_normalize(rows).rename(columns=_TESTS)
    table = table.reindex(columns=["model", "base", "recipe", "pairs", "steps", *_TESTS.values()])
    return table.astype({"pairs": "Int64", "steps": "Int64"})


def work_directory(panel: Panel, name: str) -> Path:
    """Where a run keeps its checkpoints and snapshots."""
    return cache_dir() / "training" / panel.name / name


def snapshots(work: Path) -> dict[int, Path]:
    """Adapters saved on the way at steps 0, 1, 2, 4, 8, … and the last: directory by step, in order."""
    directories = {int(path.name.removeprefix("step-")): path for path in work.glob("snapshots/step-*")}
    return dict(sorted(directories.items()))


def train_model(panel: Panel, name: str, output: Path | None = None, restart: bool = False) -> dict:
    """Train one run of a panel by its recipe and measure it, as far as that is not done.

    Parameters
    ----------
    panel, name
        A run of `runs`.
    output
        Directory for the adapter, checkpoints beside it; by default the panel's own, with checkpoints in the cache.
        InputError where it holds another training's.
    restart
        Train again what is begun or finished.

    Returns
    -------
    dict
        held_out; of a reward model also `rmnb.training.evaluation.measurements`. It is also written to
        ``provenance.json``.
    """
    specs = runs(panel)
    if name not in specs:
        names = ", ".join(specs) or "none"
        raise InputError(f"panel {panel.name!r} has no model {name!r} with a recipe: choose one of {names}")
    from rmnb.training import evaluation, train
    from rmnb.training.recipes import load_recipe

    spec = specs[name]
    work = partial_directory(output) if output else work_directory(panel, name)
    recipe = load_recipe(str(spec.recipe))
    if isinstance(spec, ModelSpec):
        panel.named_prompts(evaluation.PROMPTS)  # an error now, not once it is trained
    directory = output or data_dir() / str(spec.adapter)
    with exclusive(work):
        if restart:
            shutil.rmtree(work, ignore_errors=True)
        if restart or not _provenance(directory):
            train.fit(spec, recipe, directory, work)
        provenance = _provenance(directory)
        if "recipe" in provenance:
            _refuse_other_training(directory, provenance, spec, recipe)
        trained = spec.model_copy(update={"adapter": str(directory.resolve())})
        measured = provenance.setdefault("evaluation", {})
        for measurement, found in evaluation.measure(trained, recipe, panel, tuple(measured)):
            measured[measurement] = found
            write_json(directory / "provenance.json", provenance)
    return measured


def _refuse_other_training(directory: Path, finished: dict, spec: ModelSpec | BaseSpec, recipe: "Recipe") -> None:
    """Raise InputError where a finished model was trained by another recipe, from another base or with other words."""
    # The recipes of the first models had no key `split`, and others that are gone.
    known = {key: finished["recipe"]["hyperparameters"].get(key) for key in type(recipe.hyperparameters).model_fields}
    recorded = type(recipe).model_validate({"split": "pair", **finished["recipe"], "hyperparameters": known})
    earlier, plan = (made.model_dump(mode="json", exclude={"name", "description"}) for made in (recorded, recipe))
    base = spec.source if isinstance(spec, BaseSpec) else spec.base
    earlier |= {"base": finished["base"]["name"], "template": finished["template"]}
    refuse_other(directory, earlier, {**plan, "base": base, "template": spec.template or finished["template"]})


def recorded(spec: ModelSpec | BaseSpec) -> dict:
    """What `train_model` measured of a run's adapter when it was made; empty if nothing."""
    return _record(spec).get("evaluation", {})


def follow(panel: Panel, name: str) -> Path | None:
    """Score the list ``training`` with every adapter that a run kept on its way, and write its trajectory.

    Returns
    -------
    Path or None
        A file for `rmnb.data.list_scores.read_list`: a column a step, named by its number. None where no adapter was
        kept: the run has not been trained on this machine.
    """
    from rmnb.scoring.loading import load_reward_model

    spec = runs(panel)[name]
    adapters = snapshots(work_directory(panel, name))
    if not adapters or isinstance(spec, BaseSpec):
        return None
    texts = text_list("training")
    (prompt,) = panel.named_prompts(texts.prompts)

    def score(adapter: Path, words: list[str]) -> np.ndarray:
        rm = load_reward_model(spec.model_copy(update={"adapter": str(adapter.resolve())}))
        return rm.score(prompt.text, words)

    hashes = {str(step): sha256(adapter / "adapter_model.safetensors") for step, adapter in adapters.items()}
    plan = {
        "recipe": spec.recipe,
        "prompts": {prompt.key: prompt.text},
        "weights_sha256": hashes,
        "dtype": spec.dtype,
    }
    columns = {str(step): partial(score, adapter) for step, adapter in adapters.items()}
    return score_columns(trajectory_path(panel, name), texts, columns, plan, {"model": name})


def trajectory_path(panel: Panel, name: str) -> Path:
    """The file of a run's trajectory, beside the panel's scores."""
    return panel_directory(panel, "trajectories") / f"{name}.parquet"


def _record(spec: ModelSpec | BaseSpec) -> dict:
    return _provenance(data_dir() / (spec.adapter or "-"))


def _provenance(directory: Path) -> dict:
    path = directory / "provenance.json"
    return json.loads(path.read_text()) if path.exists() else {}

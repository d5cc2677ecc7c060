"""The models of a panel that are made from recipes: train them, measure them, follow them while they learn."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data.text_lists import text_list
from rmnb.errors import InputError
from rmnb.files import CLONE, atomic_path, cache_dir, data_dir, sha256
from rmnb.panels import BaseSpec, ModelSpec, Panel
from rmnb.plans import alone
from rmnb.scoring.list_scores import list_prompts, score_columns
from rmnb.scoring.store import store_directory


def runs(panel: Panel) -> dict[str, ModelSpec]:
    """Everything that the panel trains, by name: its models with a recipe, then the runs that are only watched."""
    return {spec.name: spec for spec in (*panel.models, *panel.watched) if spec.recipe and spec.adapter}


def unfinished(panel: Panel) -> list[str]:
    """Names of the runs that are not trained and measured, or were trained here and have no trajectory."""
    from rmnb.training.lora import snapshots

    names = []
    for name, spec in runs(panel).items():
        measured = not _unmeasured(panel, name, recorded(spec))
        followed = trajectory_path(panel, name).exists() or not snapshots(work_directory(panel, name))
        if not (measured and followed):
            names.append(name)
    return names


def overview(panel: Panel) -> pd.DataFrame:
    """A row for every model of a panel: what it was trained on and how good it is.

    Returns
    -------
    DataFrame
        Strings: model, base, recipe, pairs, steps; accuracy on the pairs held out by the recipe; on unseen_items (pairs
        of things never trained on, prompt ``greatest``) and on rm_bench, each with its 95 % Wilson interval; rank (by
        RM-Bench, or the panel's own). A column that would be empty is left out. ``attrs["notes"]`` has a
        line for each model that is not clearly better than chance on some source of its held-out pairs, and one if
        no adapter is here.
    """
    described = {spec.name: _described(data_dir() / (spec.adapter or "-")) for spec in panel.models}
    ranks = leaderboard(panel)
    rows, notes = [], []
    for spec in panel.models:
        provenance = described[spec.name]
        measured = provenance.get("evaluation", {})
        held_out = measured.get("held_out", {})
        weak = [
            f"{source} {_with_interval(accuracy)}"
            for source, accuracy in held_out.items()
            if source != "all" and accuracy["low"] <= 0.5
        ]
        if weak:
            notes.append(f"{spec.name}: not clearly better than chance on {', '.join(weak)}")
        rows.append(
            {
                "model": spec.name,
                "base": spec.base or spec.source or "",
                "recipe": spec.recipe or "",
                "pairs": str(provenance.get("pairs", "")),
                "steps": str(provenance.get("steps", "")),
                "held out": _with_interval(held_out.get("all")),
                "unseen items": _with_interval(measured.get("unseen_items", {}).get("greatest")),
                "RM-Bench": _with_interval(measured.get("rm_bench", {}).get("all")),
                "rank": str(ranks.get(spec.name, spec.rank or "")),
            }
        )
    adapters = [data_dir() / spec.adapter for spec in panel.models if spec.adapter]
    if adapters and not any(adapter.exists() for adapter in adapters):
        notes.append(f"no adapter of these is here, such as {adapters[0]}: {CLONE}")
    table = pd.DataFrame(rows).replace("", None).dropna(axis="columns", how="all").fillna("")
    table.attrs["notes"] = notes
    return table


def leaderboard(panel: Panel) -> dict[str, int]:
    """The place of each model by its accuracy on RM-Bench, 1 is best; equal models share the better place."""
    measured = {spec.name: recorded(spec).get("rm_bench") for spec in panel.models}
    correct = pd.Series({name: benchmark["all"]["value"] for name, benchmark in measured.items() if benchmark})
    ranks = correct.rank(ascending=False, method="min").astype(int)
    return {str(name): int(rank) for name, rank in ranks.items()}


def _with_interval(accuracy: dict | None) -> str:
    return f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]" if accuracy else ""


def work_directory(panel: Panel, name: str) -> Path:
    """Where a run keeps its checkpoints and snapshots."""
    return cache_dir() / "training" / panel.name / name


def train_model(panel: Panel, name: str, output: Path | None = None) -> dict:
    """Train one run of a panel by its recipe and measure it, as far as that is not done.

    Parameters
    ----------
    panel, name
        A run of `runs`.
    output
        Directory for the adapter; by default the panel's own.

    Returns
    -------
    dict
        held_out, framing and, for a model of the panel, unseen_items and rm_bench: see the functions of
        `rmnb.training.evaluation`. It is also written to ``provenance.json``.
    """
    if name not in runs(panel):
        known = ", ".join(runs(panel)) or "none"
        raise InputError(f"panel {panel.name!r} has no model {name!r} with a recipe: choose one of {known}")
    with alone(work_directory(panel, name)):
        return _train_model(panel, name, output)


def _train_model(panel: Panel, name: str, output: Path | None) -> dict:
    from rmnb.scoring.parity import load_reward_model
    from rmnb.training import evaluation
    from rmnb.training.recipes import load_recipe
    from rmnb.training.train import fit

    spec = runs(panel)[name]
    recipe = load_recipe(str(spec.recipe))
    directory = output or data_dir() / str(spec.adapter)
    if not _described(directory):
        fit(spec, recipe, directory, work_directory(panel, name))
    measured = _described(directory).get("evaluation", {})
    missing = _unmeasured(panel, name, measured)
    if not missing:
        return measured
    rm = load_reward_model(spec.model_copy(update={"adapter": str(directory.resolve())}))
    measures = {
        "held_out": lambda: evaluation.held_out_accuracy(rm, recipe),
        "framing": lambda: evaluation.framing(rm, panel),
        "unseen_items": lambda: evaluation.unseen_items(rm, panel),
        "rm_bench": lambda: evaluation.rm_bench_accuracy(rm),
    }
    measured |= {measure: measures[measure]() for measure in missing}
    _add_measured(directory, measured)
    return measured


def recorded(spec: ModelSpec) -> dict:
    """What `train_model` measured of a run's adapter when it was made; empty if nothing."""
    return _described(data_dir() / (spec.adapter or "-")).get("evaluation", {})


def tuned_copies(panel: Panel) -> dict[str, BaseSpec]:
    """The tuned copies of a panel's language models that have a recipe, by name."""
    return {base.name: base for base in panel.bases if base.recipe and base.adapter}


def tune_copy(panel: Panel, name: str, output: Path | None = None) -> dict:
    """As `train_model`, for one of `tuned_copies`; what is measured is held_out, `tuning.implicit_accuracy`."""
    from rmnb.scoring.logprobs import load_language_model
    from rmnb.training.recipes import load_recipe
    from rmnb.training.tuning import implicit_accuracy, tune

    if name not in tuned_copies(panel):
        known = ", ".join(tuned_copies(panel)) or "none"
        raise InputError(f"panel {panel.name!r} has no tuned copy {name!r} with a recipe: choose one of {known}")
    spec = tuned_copies(panel)[name]
    recipe = load_recipe(str(spec.recipe))
    directory = output or data_dir() / str(spec.adapter)
    with alone(work_directory(panel, name)):
        if not _described(directory):
            tune(spec, recipe, directory, work_directory(panel, name))
        measured = _described(directory).get("evaluation", {})
        if not measured:
            tuned = load_language_model(spec.model_copy(update={"adapter": str(directory.resolve())}), "chat")
            reference = load_language_model(spec.model_copy(update={"adapter": None}), "chat")
            measured = {"held_out": implicit_accuracy(tuned, reference, recipe)}
            _add_measured(directory, measured)
    return measured


def _add_measured(directory: Path, measured: dict) -> None:
    with atomic_path(directory / "provenance.json") as path:
        path.write_text(json.dumps(_described(directory) | {"evaluation": measured}, indent=1) + "\n")


def _unmeasured(panel: Panel, name: str, measured: dict) -> list[str]:
    """What has not been measured of a run: two things of all, four of the panel's models."""
    wanted = ["held_out", "framing"]
    if name in panel.model_names:
        wanted += ["unseen_items", "rm_bench"]
    return [measure for measure in wanted if measure not in measured]


def follow(panel: Panel, name: str, progress: bool = False) -> Path:
    """Score the list ``training`` with every adapter that a run kept on its way, and write its trajectory.

    Returns
    -------
    Path
        A file for `rmnb.scoring.list_scores.read_list`: a column a step, named by its number.

    Raises
    ------
    InputError
        The run has not been trained on this machine: its snapshots are not shipped.
    """
    from rmnb.scoring.parity import load_reward_model
    from rmnb.training.lora import snapshots

    spec = runs(panel)[name]
    found = snapshots(work_directory(panel, name))
    if not found:
        raise InputError(f"{name} has no snapshots here: run `rmnb book train {name}` first")
    texts = text_list("training")
    (prompt,) = list_prompts(panel, texts)

    def scorer(adapter: Path, words: list[str]) -> np.ndarray:
        rm = load_reward_model(spec.model_copy(update={"adapter": str(adapter.resolve())}))
        return rm.score(prompt.text, words)

    provenance = {
        "model": name,
        "recipe": spec.recipe,
        "prompts": {prompt.key: prompt.text},
        "weights_sha256": {str(step): sha256(adapter / "adapter_model.safetensors") for step, adapter in found.items()},
        "dtype": spec.dtype,
    }
    columns = {str(step): partial(scorer, adapter) for step, adapter in found.items()}
    return score_columns(trajectory_path(panel, name), texts, columns, provenance, progress)


def trajectory_path(panel: Panel, name: str) -> Path:
    """The file of a run's trajectory, beside the panel's scores."""
    return store_directory(panel).parent / "trajectories" / f"{name}.parquet"


def _described(directory: Path) -> dict:
    path = directory / "provenance.json"
    return json.loads(path.read_text()) if path.exists() else {}

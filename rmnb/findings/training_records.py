"""What the records of a panel's training runs say: how each began, and how often it prefers the right response."""

import json

import pandas as pd

from rmnb.files import data_dir
from rmnb.findings.results import Results
from rmnb.panels import Panel
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import runs


def measure(made: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    """Rows held_out_accuracy (`other`: pairs from where) and framing_spearman (greatest, worst) of each run.

    Parameters
    ----------
    made
        Of `accuracies`.
    """
    results = Results("training", panel)
    for row in made.to_dict("records"):
        interval = {"ci_low": row["ci_low"], "ci_high": row["ci_high"]}
        results.add("panel", "held_out_accuracy", row["value"], model=row["model"], other=row["pairs_from"], **interval)
    for row in made.dropna(subset="framing").drop_duplicates("model").to_dict("records"):
        about = {"model": row["model"], "prompt": "greatest", "other": "worst"}
        results.add("panel", "framing_spearman", row["framing"], **about)
    return results.frame()


def accuracies(panel: Panel) -> pd.DataFrame:
    """How a panel's runs were made, and how often each prefers the right response of held-out pairs.

    Returns
    -------
    DataFrame
        A row a run and source of pairs (``all``: of all together): model, family, recipe, device (``CPU`` or ``GPU``),
        learning_rate, mismatched (their share of the pairs trained on), framing (Spearman's rho of words as the
        greatest and as the worst thing; NaN where it was not measured), pairs_from, value, ci_low, ci_high (Wilson).
    """
    rows = []
    for model, spec in runs(panel).items():
        described = data_dir() / str(spec.adapter) / "provenance.json"
        made = json.loads(described.read_text()) if described.exists() else {}
        measured, recipe = made.get("evaluation", {}), made.get("recipe", {})
        for origin, accuracy in measured.get("held_out", {}).items():
            mismatched = (recipe.get("mismatched") or {"pairs": 0})["pairs"]
            pairs = mismatched + sum(part["pairs"] for part in recipe.get("preferences", ()))
            device = {"cuda": "GPU", "cpu": "CPU"}[made.get("device", "cpu")]  # early runs do not say: all on a CPU
            rate, framing = recipe["hyperparameters"]["learning_rate"], measured.get("framing", {}).get("spearman")
            about = model, spec.family, spec.recipe, device, rate, mismatched / pairs if pairs else 0.0, framing
            rows.append((*about, origin, *(accuracy[name] for name in ("value", "low", "high"))))
    columns = ["model", "family", "recipe", "device", "learning_rate", "mismatched", "framing", "pairs_from"]
    table = pd.DataFrame(rows, columns=[*columns, "value", "ci_low", "ci_high"])
    return table.astype({"framing": float})


def heads(panel: Panel) -> dict[str, str]:
    """How each run's head began: ``probe``, fitted to pairs before the first step, or ``random``."""
    begun = {}
    for name, spec in runs(panel).items():
        recipe = load_recipe(str(spec.recipe))
        begun[name] = "probe" if recipe.opening and recipe.things else "random"
    return begun

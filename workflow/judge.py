"""How often a judge prefers the better answer of pairs that recipes held out: `python workflow/judge.py PANEL RECIPES`.

``accuracy.csv`` beside the panel's scores gets a row for each recipe and source of pairs.
"""

import sys

import pandas as pd

from rmnb.panels import load_panel
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.store import store_directory
from rmnb.training.evaluation import held_out_accuracy
from rmnb.training.recipes import load_recipe


def main(panel: str, *recipes: str) -> None:
    """Write the table for the panel's only model."""
    members = load_panel(panel)
    (spec,) = members.models
    judge = load_reward_model(spec)
    rows = [
        {"recipe": recipe, "source": source, **found}
        for recipe in recipes
        for source, found in held_out_accuracy(judge, load_recipe(recipe)).items()
    ]
    pd.DataFrame(rows).to_csv(store_directory(members) / "accuracy.csv", index=False, float_format="%.4f")


if __name__ == "__main__":
    main(*sys.argv[1:])

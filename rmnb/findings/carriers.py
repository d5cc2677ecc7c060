"""Does it travel: rewards of words alone, of the same words inside sentences, and of answers that hold them.

A carrier is a sentence with a place for a word. The columns of a table of carriers are questions, for the words alone,
and ``greatest.plain`` for the words in the carrier ``plain`` of the question ``greatest``.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from rmnb.errors import InputError, LackError
from rmnb.findings.tables import as_table
from rmnb.panels import Panel, load_panel
from rmnb.panels.specs import PANELS
from rmnb.scoring.store import Provenance, panel_directory, read_scores, read_table, refuse_stale, write_table

_LEVELS = np.iinfo(np.uint16).max


def sentences() -> pd.DataFrame:
    """The book's carriers: column (of a table), question, key, kind (asserts, denies or quotes), text with a ``{}``."""
    written = yaml.safe_load((PANELS / "carriers" / "demo.yml").read_text(encoding="utf-8"))
    rows = [{"question": question, **carrier} for question, carriers in written.items() for carrier in carriers]
    table = pd.DataFrame(rows)
    return table.assign(column=table["question"] + "." + table["key"])


def write_carriers(path: Path, rewards: pd.DataFrame, provenance: Provenance, scanned: dict[str, Provenance]) -> None:
    """Write the rewards of words in carriers, each column in 65,536 equal steps from its lowest to its highest reward.

    Parameters
    ----------
    rewards
        token_id, and a float column a carrier.
    provenance
        What all columns share.
    scanned
        Column to the provenance that is its own.
    """
    columns = rewards.drop(columns="token_id").astype(float)
    low = columns.min()
    step = (columns.max() - low) / _LEVELS
    table = ((columns - low) / step).round().astype(np.uint16)
    table.insert(0, "token_id", rewards["token_id"])
    scales = {name: {"low": low[name], "step": step[name], **scanned[name]} for name in columns}
    write_table(path, table, {**provenance, "rewards": scales})


def read_carriers(panel: Panel, model: str) -> pd.DataFrame:
    """One model's rewards of the same words alone and in carriers.

    Returns
    -------
    DataFrame
        token_id, token, kind, word (folded), then float64 columns in the model's own unit: one a question, from its
        scan, and one a carrier.

    Raises
    ------
    InputError
        The model has no such table, or it is damaged or stale: of other sentences, or as of `read_scores`.
    """
    spec = panel.model(model)
    path = carriers_path(panel, model)
    numbers, provenance = read_table(path)
    carriers = sentences().set_index("column")
    table = as_table({question: read_scores(panel, model, question) for question in carriers["question"].unique()})
    table = table[table["token_id"].isin(numbers["token_id"])].reset_index(drop=True)
    numbers = numbers.set_index("token_id").reindex(table["token_id"])
    for name, scanned in provenance["rewards"].items():
        if name not in carriers.index:
            raise InputError(f"{path} has the carrier {name}, which the book has not: delete it", path)
        question, text = panel.prompt(carriers["question"][name]), carriers["text"][name]
        refuse_stale(path, {**provenance, **scanned}, panel, spec, question, answer=text, protocol="exact")
        table[name] = scanned["low"] + scanned["step"] * numbers[name].to_numpy(float)
    return table


def carriers_path(panel: Panel, model: str) -> Path:
    """Where a model's rewards of words in carriers are kept."""
    return panel_directory(panel, "carriers") / f"{model}.parquet"


def load_carriers(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """`read_carriers` of every model of a panel that has such a table, in the panel's order.

    Raises
    ------
    LackError
        None has.
    """
    panel = load_panel(panel)
    scanned = [model for model in panel.model_names if carriers_path(panel, model).exists()]
    if not scanned:
        raise LackError(
            f"no model of panel {panel.name} has scored words in carriers: run `python workflow/carriers.py scan MODEL`"
        )
    return {model: read_carriers(panel, model) for model in scanned}

"""Audit: score a random sample of a panel's shipped tokens again, from the weights, and compare."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.models import RewardModel, load_reward_model
from rmnb.panel import Panel, load_panel
from rmnb.scoring import PrefixScorer, score_sequences
from rmnb.store import read_scan, store_directory

# Largest difference between this engine and the plain pass of another machine that is rounding and not disagreement.
TOLERANCE = 1e-3


def audit_panel(
    panel: str | Path | Panel, sample: int = 64, seed: int = 0, models: list[str] | None = None
) -> pd.DataFrame:
    """Compare shipped scores with rewards computed now, each token's conversation alone and in full.

    Parameters
    ----------
    panel
        A panel with shipped scores.
    sample
        Tokens of each scan to score again.
    seed
        Of the random sample.
    models
        Names to audit. Default: all of the panel that have scores.

    Returns
    -------
    DataFrame
        model, prompt, protocol, tokens (number scored again), largest_difference (units of reward), verdict: ``ok``,
        ``scores differ``, or ``weights differ`` (the scan was made with other weights than are here now).

    Raises
    ------
    InputError
        A file is damaged, or a model cannot be loaded.
    """
    panel = panel if isinstance(panel, Panel) else load_panel(panel)
    rng = np.random.default_rng(seed)
    rows = []
    for name in models or panel.model_names:
        spec = panel.model(name)
        files = sorted((store_directory(panel) / name).glob("*.parquet"))
        if files:
            # The plain path shares nothing with the engine that made the scores.
            rm = dataclasses.replace(load_reward_model(spec), plain_because="audited by whole sequences")
            rows += [_audit(rm, file, sample, rng) for file in files]
    columns = ["model", "prompt", "protocol", "tokens", "largest_difference", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _audit(rm: RewardModel, file: Path, sample: int, rng: np.random.Generator) -> tuple:
    scan, provenance = read_scan(file)
    chosen = scan.iloc[np.sort(rng.choice(len(scan), min(sample, len(scan)), replace=False))]
    if provenance["protocol"] == "exact":
        prefix, closing = rm.dialogue.frame(provenance["prompt"])
        again = PrefixScorer(rm, prefix)([[i, *closing] for i in chosen["token_id"]])
    else:
        texts = chosen["token"].map(rm.dialogue.published_token).tolist()
        again = score_sequences(rm, rm.dialogue.published_ids(provenance["prompt"], texts))
    difference = float(np.abs(again - chosen["score"].to_numpy()).max())
    verdict = "ok" if difference <= TOLERANCE else "scores differ"
    if provenance["weights_sha256"] != rm.weights_sha256:
        verdict = "weights differ"
    return rm.name, provenance["prompt_key"], provenance["protocol"], len(chosen), difference, verdict

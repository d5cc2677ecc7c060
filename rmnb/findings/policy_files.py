"""Files behind the chapter on policies: what a language model says before training, and after training on a scan.

``workflow/policies.py`` computes them.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from rmnb.errors import LackError
from rmnb.panels import Panel, load_panel
from rmnb.scoring.store import panel_directory, read_table

RUN = ["model", "nats", "method", "seed"]  # what names a training run


def reference_path(panel: Panel, base: str, prompt: str) -> Path:
    """The file of what a base says before training."""
    return panel_directory(panel, "policies") / "references" / f"{Path(base).name}.{prompt}.parquet"


def run_path(panel: Panel, model: str, nats: float, method: str, seed: int) -> Path:
    """The file of a training run."""
    return panel_directory(panel, "policies") / "runs" / f"{model}.{nats:g}.{method}.{seed}.parquet"


def samples_path(panel: Panel) -> Path:
    """The file of answers of several tokens."""
    return panel_directory(panel, "policies") / "samples.parquet"


def load_reference(panel: str | Path | Panel, base: str, prompt: str, whole: bool = False) -> pd.DataFrame:
    """What a base says before training, as `rmnb.scoring.logprobs.scan_answers` gives it, in double.

    Parameters
    ----------
    whole
        Whole answers are wanted.

    Returns
    -------
    DataFrame
        token_id, first (the exponentials sum to one) and, for a base that ends its turns, end.

    Raises
    ------
    LackError
        The file is missing or damaged, or `whole` and the base was never taught to end its answer.
    """
    panel = load_panel(panel)
    path = reference_path(panel, base, prompt)
    if not path.exists():
        command = f"snakemake -s workflow/Snakefile --config panel={panel.called} -- {path}"
        raise LackError(f"nothing says what {base} answers to {prompt}: run `{command}`")
    frame, _ = read_table(path)
    if whole and "end" not in frame:
        raise LackError(f"{base} was never taught to end its answer: choose another base, or its first tokens")
    frame = frame.astype({name: np.float64 for name in frame if name != "token_id"})
    return frame.assign(first=frame["first"] - float(logsumexp(frame["first"])))  # pyright: ignore[reportArgumentType]


def load_runs(panel: str | Path | Panel) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The training runs of a panel.

    Returns
    -------
    tuple of DataFrame
        Their ways: model, nats (KL divergence of the optimum), method, seed, beta, step, kl, reward. The policies at
        their ends: natural log-probabilities, float64, a row an id; a column (model, nats, method, seed) a run.

    Raises
    ------
    LackError
        No run is there, or a file is damaged.
    """
    directory = run_path(load_panel(panel), "", 0, "", 0).parent
    ways = []
    policies = {}
    for file in sorted(directory.glob("*.parquet")):
        frame, run = read_table(file)
        named = {name: run[name] for name in [*RUN, "beta"]}
        ways.append(pd.DataFrame(run["trajectory"]).assign(**named))
        policies[tuple(run[name] for name in RUN)] = frame["logprob"].astype(np.float64)
    if not ways:
        raise LackError(f"no language model was trained on rewards of this panel: nothing in {directory}")
    return pd.concat(ways, ignore_index=True), pd.concat(policies, axis=1, names=RUN)

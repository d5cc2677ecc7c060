"""Files behind the chapter on policies: what a language model says before training, and after training on a scan."""

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from rmnb.errors import InputError
from rmnb.files import cache_dir
from rmnb.findings.policy import policy_at_kl
from rmnb.models.bases import base_directory
from rmnb.models.checkpoint_files import read_tokenizer
from rmnb.panels import BaseSpec, Panel, find_base, load_panel
from rmnb.plans import exclusive
from rmnb.scoring.logprobs import LanguageModel, load_language_model, scan_answers
from rmnb.scoring.store import read_scores, read_table, store_directory, versions, write_table

TRAINED_ON = "greatest"  # the question of all training runs


def language_model(panel: Panel, base: str) -> LanguageModel:
    """A panel's base, asked as its own chat template writes a question; by the panel's where it has none."""
    spec = find_base(panel, base)
    if isinstance(spec, BaseSpec):
        own = read_tokenizer(base_directory(spec.source, spec.revision)).chat_template
        spec = spec.model_copy(update={"template": own or spec.template})
    return load_language_model(spec, "chat")


def reference_path(panel: Panel, base: str, prompt: str) -> Path:
    """The file of π_ref, beside the panel's scores."""
    return store_directory(panel).parent / "policies" / "references" / f"{base}.{prompt}.parquet"


def write_reference(panel: Panel, base: str, prompt: str) -> None:
    """Write what a base says before training: `rmnb.scoring.logprobs.scan_answers`."""
    scan = scan_answers(language_model(panel, base), panel.prompt(prompt))
    frame = scan.drop(columns=["token", "kind"])
    write_table(reference_path(panel, base, prompt), frame, scan.attrs["provenance"])


def load_reference(panel: str | Path | Panel, base: str, prompt: str) -> pd.DataFrame:
    """π_ref of a base: DataFrame token_id, first and, for a base that ends its turns, end (float64, natural log).

    ``first`` is the log-probability of the token as the first of the answer (summing to one in double), ``end`` that of
    the end of the turn after it; their sum is that of the token as a whole answer.

    Raises
    ------
    InputError
        The file is missing or damaged.
    """
    frame, _ = read_table(reference_path(load_panel(panel), base, prompt))
    frame = frame.astype({name: np.float64 for name in frame if name != "token_id"})
    return frame.assign(first=frame["first"] - logsumexp(frame["first"]))


def run_path(panel: Panel, model: str, nats: float, method: str, seed: int) -> Path:
    """The file of a training run, beside the panel's scores."""
    return store_directory(panel).parent / "policies" / "runs" / f"{model}.{nats:g}.{method}.{seed}.parquet"


def write_run(panel: Panel, model: str, nats: float, method: str, seed: int) -> None:
    """Train a reward model's base on its scan and write where the run went and what it says in the end.

    Parameters
    ----------
    nats
        KL divergence of the optimum, which chooses β.
    method
        Of `rmnb.training.policy.PolicyOptions`.
    """
    from rmnb.training.policy import PolicyOptions, train_policy  # here, because TRL takes long to import

    lm = language_model(panel, str(panel.model(model).base))
    question = panel.prompt(TRAINED_ON)
    scan = read_scores(panel, model, question.key)
    first = load_reference(panel, lm.spec.name, question.key)["first"].to_numpy()
    rewards = scan["score"].to_numpy(np.float64)
    _, beta = policy_at_kl(first, rewards, nats)
    options = PolicyOptions(method, beta, seed)  # pyright: ignore[reportArgumentType]
    path = run_path(panel, model, nats, method, seed)
    work = cache_dir() / "policies" / panel.name / path.stem
    with exclusive(work):
        policy, trajectory = train_policy(lm, question.conversation, rewards, options, work)
    provenance = {
        "model": model,
        **lm.hashes,
        "prompt": question.text,
        "nats": nats,
        **asdict(options),
        "trajectory": trajectory,
        "versions": {**versions(), "trl": version("trl"), "peft": version("peft")},
    }
    write_table(path, pd.DataFrame({"logprob": policy.astype(np.float32)}), provenance)


def load_runs(panel: str | Path | Panel) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The training runs of a panel.

    Returns
    -------
    tuple of DataFrame
        Trajectories: model, nats (of the optimum), method, seed, beta, step, kl, reward. Final policies: float64, a row
        an id, natural log-probabilities; columns (model, nats, method, seed).

    Raises
    ------
    InputError
        No run is there, or a file is damaged.
    """
    directory = run_path(load_panel(panel), "-", 0, "-", 0).parent
    files = sorted(directory.glob("*.parquet"))
    if not files:
        raise InputError(f"no policy has been trained on the rewards of this panel: nothing in {directory}")
    names = ["model", "nats", "method", "seed"]
    trajectories = []
    policies = {}
    for file in files:
        frame, run = read_table(file)
        about = {name: run[name] for name in [*names, "beta"]}
        trajectories.append(pd.DataFrame(run["trajectory"]).assign(**about))
        policies[tuple(run[name] for name in names)] = frame["logprob"].astype(float)
    columns = [*names, "beta", "step", "kl", "reward"]
    return pd.concat(trajectories, ignore_index=True)[columns], pd.concat(policies, axis=1, names=names)

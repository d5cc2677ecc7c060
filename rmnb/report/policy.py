"""What a language model would say if it were trained on a report's rewards: a file in the report's directory."""

from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings.policy import effective_answers, kl_divergence, optimal_policy, policy_at_kl
from rmnb.panels import load_panel
from rmnb.report.scores import ModelScores

NATS = (0, 2, 4)  # KL divergences from the language model
WORDS = 10  # shown of each
QUESTION = "greatest"


def write(name: str, scores: ModelScores, directory: Path) -> None:
    """Ask a language model the report's question and write what it would say; see `said`.

    Parameters
    ----------
    name
        As of `rmnb.scoring.logprobs.load_language_model`.
    """
    from rmnb.scoring.logprobs import load_language_model, scan_answers  # here, because they load torch

    scan = scan_answers(load_language_model(name), load_panel("demo").prompt(QUESTION))
    with atomic_path(directory / "policy.csv") as part:
        said(scan, scores.table).assign(language_model=name).to_csv(part, index=False)


def said(scan: pd.DataFrame, rewards: pd.DataFrame) -> pd.DataFrame:
    """The most probable words of the optimal policy at each of `NATS`.

    Parameters
    ----------
    scan
        Of `rmnb.scoring.logprobs.scan_answers`.
    rewards
        The table of a `ModelScores`. Tokens are the same if their ids and texts are, in another vocabulary if their
        texts are.

    Returns
    -------
    DataFrame
        nats, word (spellings folded), probability; of each policy reward (expected, in standard deviations of the
        vocabulary), answers (their effective number); covered: the log of the probability that the language model gives
        to all answers that are compared.

    Raises
    ------
    InputError
        The vocabularies share no token.
    """
    scan = scan.assign(logprob=scan["first"] + scan.get("end", 0.0))[["token_id", "token", "logprob"]]
    known = rewards[rewards["kind"] != "special"]
    both = known.merge(scan, on=["token_id", "token"])
    if len(both) < len(known):
        unique = scan.drop_duplicates("token", keep=False).drop(columns="token_id")
        both = known.drop_duplicates("token", keep=False).merge(unique, on="token")
    if both.empty:
        raise InputError("the language model and the reward model share no token")
    covered = np.logaddexp.reduce(both["logprob"])
    reference = both["logprob"].to_numpy(float) - covered
    reward = ((both[QUESTION] - rewards[QUESTION].mean()) / rewards[QUESTION].std(ddof=0)).to_numpy()
    farthest = kl_divergence(optimal_policy(reference, reward, 0), reference)
    parts = []
    for nats in NATS:
        policy = policy_at_kl(reference, reward, nats)[0] if 0 < nats < farthest else reference
        if nats < farthest:
            words = pd.Series(np.exp(policy)).groupby(both["word"]).sum().nlargest(WORDS).rename("probability")
            numbers = {"nats": nats, "reward": np.exp(policy) @ reward, "answers": effective_answers(policy)}
            parts.append(words.reset_index().assign(**numbers, covered=covered))
    return pd.concat(parts, ignore_index=True)


def read(directory: Path | str) -> pd.DataFrame | None:
    """What `write` wrote into a report's directory; None where no language model was named."""
    path = Path(directory) / "policy.csv"
    return pd.read_csv(path, keep_default_na=False) if path.exists() else None


def side_by_side(said: pd.DataFrame) -> pd.DataFrame:
    """The words of each policy beside each other, as a page shows them; each policy's numbers head its columns."""
    columns = []
    for nats, words in said.groupby("nats"):
        reward, answers = words[["reward", "answers"]].iloc[0]
        head = f"{nats:g} nats: reward {reward:.2f}, {answers:.1f} answers"
        columns.append(words[["word", "probability"]].set_axis([head, "probability"], axis=1).reset_index(drop=True))
    return pd.concat(columns, axis=1)

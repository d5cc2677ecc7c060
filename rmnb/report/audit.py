"""Audit: score a random sample of a panel's shipped tokens again, from the weights, and compare."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data.text_lists import can_be_read
from rmnb.findings.identity import pair_prompt, pairs_path
from rmnb.findings.sequences import searches as searches_of
from rmnb.models.dialogue import Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.panels import ModelSpec, Panel, PromptSpec, load_panel
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.list_scores import read_list
from rmnb.scoring.parity import load_reward_model
from rmnb.scoring.rows import score_sequences
from rmnb.scoring.store import Provenance, read_scan, read_table, store_directory
from rmnb.search.run import SearchResult
from rmnb.training.evaluation import held_out_accuracy
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import recorded

# Largest difference between this engine and the plain pass of another machine that is rounding and not disagreement.
TOLERANCE = 1e-3


def audit_panel(
    panel: str | Path | Panel,
    sample: int = 64,
    seed: int = 0,
    models: list[str] | None = None,
    accuracy: bool = False,
) -> pd.DataFrame:
    """Compare shipped scores with rewards computed now, each token's conversation alone and in full.

    Parameters
    ----------
    panel
        A panel with shipped scores.
    sample
        Tokens of each scan to score again; of each list of texts, half as many. Searched sequences: the best of each.
        Exchanged prompts: all answers to two.
    seed
        Of the random sample.
    models
        Names to audit. Default: all of the panel that have scores (or, with `accuracy`, a recorded accuracy).
    accuracy
        Measure the accuracy on held-out pairs again, too, of the models that were trained by a recipe: some minutes a
        model. Here *tokens* are pairs and a difference is one of accuracies.

    Returns
    -------
    DataFrame
        model, prompt, protocol, tokens (number scored again), largest_difference (units of reward), verdict: ``ok``,
        ``scores differ``, ``accuracy differs``, or ``weights differ`` (the scan was made with other weights than are
        here now).

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
        lists = sorted((store_directory(panel) / name / "lists").glob("*.parquet"))
        if files or lists:
            # The plain path shares nothing with the engine that made the scores.
            rm = dataclasses.replace(load_reward_model(spec), plain_because="audited by whole sequences")
            rows += [_audit(rm, file, sample, rng) for file in files]
            exchanged = pairs_path(panel, name)
            texts = [(file, *_readable(file)) for file in lists if file != exchanged]
            rows += [_audit_list(rm, *known, sample // 2, rng) for known in texts if not known[1].empty]
            if exchanged.exists():
                rows.append(_audit_exchanged(rm, exchanged, rng))
            if searches := list(searches_of(panel, name).values()):
                rows.append(_audit_searches(rm, searches))
        if accuracy and recorded(spec):
            rows.append(_audit_accuracy(spec))
    columns = ["model", "prompt", "protocol", "tokens", "largest_difference", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _audit(rm: RewardModel, file: Path, sample: int, rng: np.random.Generator) -> tuple:
    scan, provenance = read_scan(file)
    chosen = scan.iloc[np.sort(rng.choice(len(scan), min(sample, len(scan)), replace=False))]
    prompt = _conversation(provenance["prompt"], provenance.get("history", ()))
    if provenance["protocol"] == "exact":
        prefix, closing = rm.dialogue.frame(prompt)
        again = PrefixScorer(rm, prefix)([[i, *closing] for i in chosen["token_id"]])
    else:
        texts = chosen["token"].map(rm.dialogue.published_token).tolist()
        again = score_sequences(rm, rm.dialogue.published_ids(prompt, texts))
    verdict = _verdict(rm, provenance, again, chosen["score"].to_numpy())
    return rm.name, provenance["prompt_key"], provenance["protocol"], len(chosen), *verdict


def _conversation(text: str, history: Sequence) -> Prompt:
    """A prompt with the turns before it, as they were scored."""
    return PromptSpec(key="audited", text=text, framing="positive", history=tuple(history)).conversation


def _readable(file: Path) -> tuple[pd.DataFrame, Provenance]:
    """Scores of a list whose texts are here: a name that stands in for a text cannot be scored again."""
    table, provenance = read_list(file)
    return table[table["part"].map({part: can_be_read(part) for part in table["part"].unique()})], provenance


def _audit_list(
    rm: RewardModel, file: Path, table: pd.DataFrame, provenance: Provenance, sample: int, rng: np.random.Generator
) -> tuple:
    """A list of texts: some of them under two of its prompts."""
    prompts = rng.choice(list(provenance["prompts"]), min(2, len(provenance["prompts"])), replace=False)
    chosen = table.iloc[np.sort(rng.choice(len(table), min(max(1, sample // len(prompts)), len(table)), replace=False))]
    histories = provenance.get("histories", {})
    asked = [_conversation(provenance["prompts"][key], histories.get(key, ())) for key in prompts]
    again = np.concatenate([rm.score(prompt, chosen["text"].tolist()) for prompt in asked])
    verdict = _verdict(rm, provenance, again, np.concatenate([chosen[key].to_numpy() for key in prompts]))
    return rm.name, f"{file.stem} (list)", provenance["protocol"], len(again), *verdict


def _audit_exchanged(rm: RewardModel, file: Path, rng: np.random.Generator) -> tuple:
    """The answers to two of the prompts in which the name of people is exchanged."""
    table, provenance = read_table(file)
    chosen = table[table["people"].isin(rng.choice(table["people"].unique(), 2, replace=False))]
    prompts = chosen.groupby("people", sort=False)["trait"]
    again = np.concatenate([rm.score(pair_prompt(str(people)), traits.tolist()) for people, traits in prompts])
    verdict = _verdict(rm, provenance, again, chosen["score"].to_numpy())
    return rm.name, "exchanged (identity)", "exact", len(chosen), *verdict


def _audit_searches(rm: RewardModel, searches: list[SearchResult]) -> tuple:
    """The best sequence of every search, by its ids."""
    prompt, provenance = searches[0].provenance["prompts"][0], searches[0].provenance["models"][0]
    prefix, closing = rm.dialogue.frame(prompt)
    again = PrefixScorer(rm, prefix)([[*result.best["ids"], *closing] for result in searches])
    verdict = _verdict(rm, provenance, again, np.array([result.best["reward"] for result in searches]))
    return rm.name, "sequences (searched)", "exact", len(searches), *verdict


def _audit_accuracy(spec: ModelSpec) -> tuple:
    """The accuracy on held-out pairs of each source, to the pair."""
    rm = load_reward_model(spec)
    then, now = recorded(spec)["held_out"], held_out_accuracy(rm, load_recipe(str(spec.recipe)))
    difference = max(abs(now[source]["value"] - then[source]["value"]) for source in then)
    verdict = "ok" if now == then else "accuracy differs"
    return rm.name, "held-out pairs", "exact", now["all"]["pairs"], difference, verdict


def _verdict(rm: RewardModel, provenance: Provenance, again: np.ndarray, shipped: np.ndarray) -> tuple[float, str]:
    difference = float(np.abs(again - shipped).max())
    if provenance["weights_sha256"] != rm.weights_sha256:
        return difference, "weights differ"
    return difference, "ok" if difference <= TOLERANCE else "scores differ"

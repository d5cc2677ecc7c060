"""Audit: score a random sample of a panel's shipped tokens again, from the weights, and compare."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
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
from rmnb.training.evaluation import held_out_accuracy
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import recorded

# Largest difference between this engine and the plain pass of another machine that is rounding and not disagreement.
TOLERANCE = 1e-3


def audit_panel(
    panel: str | Path | Panel,
    sample: int = 32,
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
    panel = load_panel(panel)
    rng = np.random.default_rng(seed)
    rows = []
    for name in models or panel.model_names:
        spec = panel.model(name)
        if any((store_directory(panel) / name).rglob("*.parquet")):
            # The plain path shares nothing with the engine that made the scores.
            rm = dataclasses.replace(load_reward_model(spec), plain_because="audited by whole sequences")
            for prompt, provenance, shipped, again in _scored_again(rm, panel, sample, rng):
                difference = float(np.abs(again - shipped).max())
                verdict = "ok" if difference <= TOLERANCE else "scores differ"
                if provenance["weights_sha256"] != rm.hashes["weights_sha256"]:
                    verdict = "weights differ"
                rows.append((name, prompt, provenance.get("protocol", "exact"), len(again), difference, verdict))
        if accuracy and recorded(spec):
            rows.append(_audit_accuracy(spec))
    columns = ["model", "prompt", "protocol", "tokens", "largest_difference", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _scored_again(
    rm: RewardModel, panel: Panel, sample: int, rng: np.random.Generator
) -> Iterator[tuple[str, Provenance, np.ndarray, np.ndarray]]:
    """For each file of a model what it is of, its provenance, and a sample of its scores beside what they are now."""
    directory = store_directory(panel) / rm.name
    for file in sorted(directory.glob("*.parquet")):
        scan, provenance = read_scan(file)
        chosen = _drawn(scan, sample, rng)
        prompt = _conversation(provenance["prompt"], provenance.get("history", ()))
        if provenance["protocol"] == "exact":
            again = _by_ids(rm, prompt, [[i] for i in chosen["token_id"]])
        else:
            texts = chosen["token"].map(rm.dialogue.published_token).tolist()
            again = score_sequences(rm, rm.dialogue.published_ids(prompt, texts))
        yield provenance["prompt_key"], provenance, chosen["score"].to_numpy(), again
    exchanged = pairs_path(panel, rm.name)
    for file in sorted((directory / "lists").glob("*.parquet")):
        if file == exchanged:
            continue
        table, provenance = read_list(file)
        # A name that stands in for a text that is not here cannot be scored again.
        table = table[table["part"].map({part: can_be_read(part) for part in table["part"].unique()})]
        if not table.empty:
            prompts = rng.choice(list(provenance["prompts"]), min(2, len(provenance["prompts"])), replace=False)
            chosen = _drawn(table, max(1, sample // 2 // len(prompts)), rng)
            histories, again = provenance.get("histories", {}), []
            for key in prompts:
                prompt = _conversation(provenance["prompts"][key], histories.get(key, ()))
                again.append(rm.score(prompt, chosen["text"].tolist()))
            yield f"{file.stem} (list)", provenance, chosen[prompts].to_numpy().T.ravel(), np.concatenate(again)
    if exchanged.exists():
        table, provenance = read_table(exchanged)
        chosen = table[table["people"].isin(rng.choice(table["people"].unique(), 2, replace=False))]
        asked = chosen.groupby("people", sort=False)["trait"]
        again = [rm.score(pair_prompt(str(people)), traits.tolist()) for people, traits in asked]
        yield "exchanged (identity)", provenance, chosen["score"].to_numpy(), np.concatenate(again)
    if searches := list(searches_of(panel, rm.name).values()):
        again = _by_ids(rm, searches[0].provenance["prompts"][0], [result.best["ids"] for result in searches])
        shipped = np.array([result.best["reward"] for result in searches])
        yield "sequences (searched)", searches[0].provenance["models"][0], shipped, again


def _drawn(table: pd.DataFrame, count: int, rng: np.random.Generator) -> pd.DataFrame:
    return table.iloc[np.sort(rng.choice(len(table), min(count, len(table)), replace=False))]


def _conversation(text: str, history: Sequence) -> Prompt:
    """A prompt with the turns before it, as they were scored."""
    return PromptSpec(key="audited", text=text, framing="positive", history=tuple(history)).conversation


def _by_ids(rm: RewardModel, prompt: Prompt, responses: Iterable[Sequence[int]]) -> np.ndarray:
    prefix, closing = rm.dialogue.frame(prompt)
    return PrefixScorer(rm, prefix)([[*ids, *closing] for ids in responses])


def _audit_accuracy(spec: ModelSpec) -> tuple:
    """The accuracy on held-out pairs of each source, to the pair."""
    rm = load_reward_model(spec)
    then, now = recorded(spec)["held_out"], held_out_accuracy(rm, load_recipe(str(spec.recipe)))
    difference = max(abs(now[source]["value"] - then[source]["value"]) for source in then)
    verdict = "ok" if now == then else "accuracy differs"
    return rm.name, "held-out pairs", "exact", now["all"]["pairs"], difference, verdict

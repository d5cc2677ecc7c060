"""Audit: score a random sample of a panel's shipped tokens again, from the weights, and compare."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data.list_scores import read_list
from rmnb.data.text_lists import can_be_read
from rmnb.findings.identity import pair_prompt, pairs_path
from rmnb.findings.sequences import scale, searches
from rmnb.models.dialogue import Prompt
from rmnb.panels import ModelSpec, Panel, PromptSpec, load_panel
from rmnb.scoring.engine import PrefixScorer, score_sequences
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import Provenance, read_scan, read_table, store_directory
from rmnb.training.evaluation import held_out_accuracy
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import recorded

# Largest difference between this engine and the plain pass of another machine that is rounding and not disagreement, in
# standard deviations of a file's scores.
TOLERANCE = 1e-3
# What was scored again, its provenance, the shipped scores and those computed now, (tokens,) float each, and the
# standard deviation of all scores of the file.
_ScoredAgain = tuple[str, Provenance, np.ndarray, np.ndarray, float]


def audit_panel(
    panel: str | Path | Panel,
    sample: int = 16,
    models: list[str] | None = None,
    accuracy: bool = False,
) -> pd.DataFrame:
    """Compare shipped scores with rewards computed now from whole conversations, one by one, without a shared prefix.

    Parameters
    ----------
    panel
        A panel with shipped scores.
    sample
        How many tokens of each scan to score again. Of each list of texts it is half as many scores, under two of its
        prompts; of each search, the best sequence; of exchanged prompts, all answers to two of them.
    models
        Names to audit. Default: all of the panel that have scores (or, with `accuracy`, a recorded accuracy).
    accuracy
        Also measure the accuracy on held-out pairs again, of models that were trained by a recipe (some minutes a
        model). In these rows, tokens counts pairs, and the difference is between accuracies.

    Returns
    -------
    DataFrame
        model, prompt, protocol (str), tokens (int64, how many were scored again), largest_difference (float64, in
        standard deviations of all scores of that file; of searches, of the scan), verdict: ``ok``, ``scores differ``,
        ``accuracy differs``, or ``weights differ`` (the scores were made with weights other than those of the model
        that is loaded now).

    Raises
    ------
    InputError
        A file is damaged, or a model cannot be loaded.
    """
    panel = load_panel(panel)
    rng = np.random.default_rng(0)
    rows = []
    for name in models or panel.model_names:
        spec = panel.model(name)
        if any((store_directory(panel) / name).rglob("*.parquet")):
            # The plain path shares nothing with the engine that made the scores.
            rm = dataclasses.replace(load_reward_model(spec), why_not_shared="audited by whole sequences")
            for prompt, provenance, shipped, again, spread in _scored_again(rm, panel, sample, rng):
                difference = float(np.abs(again - shipped).max()) / spread
                verdict = "ok" if difference <= TOLERANCE else "scores differ"
                if provenance["weights_sha256"] != rm.hashes["weights_sha256"]:
                    verdict = "weights differ"
                rows.append((name, prompt, provenance.get("protocol", "exact"), len(again), difference, verdict))
        if accuracy and recorded(spec):
            rows.append(_audit_accuracy(spec))
    columns = ["model", "prompt", "protocol", "tokens", "largest_difference", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _scored_again(rm: RewardModel, panel: Panel, sample: int, rng: np.random.Generator) -> Iterator[_ScoredAgain]:
    """Each file: a name for it, its provenance, a sample of its scores, the same computed now, their spread."""
    yield from _scans_again(rm, panel, sample, rng)
    yield from _lists_again(rm, panel, sample, rng)
    yield from _exchanged_again(rm, panel, rng)
    yield from _searches_again(rm, panel)


def _scans_again(rm: RewardModel, panel: Panel, sample: int, rng: np.random.Generator) -> Iterator[_ScoredAgain]:
    for file in sorted((store_directory(panel) / rm.name).glob("*.parquet")):
        scan, provenance = read_scan(file)
        chosen = _drawn(scan, sample, rng)
        prompt = _conversation(provenance["prompt"], provenance.get("history", ()))
        if provenance["protocol"] == "exact":
            again = _by_ids(rm, prompt, [[i] for i in chosen["token_id"]])
        else:
            texts = chosen["token"].map(rm.dialogue.published_token).tolist()
            again = score_sequences(rm, rm.dialogue.published_ids(prompt, texts))
        yield provenance["prompt_key"], provenance, chosen["score"].to_numpy(), again, _spread(scan["score"])


def _lists_again(rm: RewardModel, panel: Panel, sample: int, rng: np.random.Generator) -> Iterator[_ScoredAgain]:
    for file in sorted((store_directory(panel) / rm.name / "lists").glob("*.parquet")):
        if file == pairs_path(panel, rm.name):
            continue
        table, provenance = read_list(file)
        # A name that stands in for a text that is not here cannot be scored again.
        readable = {part: can_be_read(part) for part in table["part"].unique()}
        table = table[table["part"].map(readable)]
        if table.empty:
            continue
        asked = list(provenance["prompts"])
        prompts = rng.choice(asked, min(2, len(asked)), replace=False).tolist()
        chosen = _drawn(table, max(1, sample // 2 // len(prompts)), rng)
        histories = provenance.get("histories", {})
        again = []
        for key in prompts:
            prompt = _conversation(provenance["prompts"][key], histories.get(key, ()))
            again.append(rm.score(prompt, chosen["text"].tolist()))
        shipped = chosen[prompts].to_numpy().T.ravel()
        yield f"{file.stem} (list)", provenance, shipped, np.concatenate(again), _spread(table[prompts])


def _exchanged_again(rm: RewardModel, panel: Panel, rng: np.random.Generator) -> Iterator[_ScoredAgain]:
    path = pairs_path(panel, rm.name)
    if not path.exists():
        return
    table, provenance = read_table(path)
    chosen = table[table["people"].isin(rng.choice(table["people"].unique(), 2, replace=False))]
    again = []
    for people, rows in chosen.groupby("people", sort=False):  # of one name they lie together
        again.append(rm.score(pair_prompt(str(people)), rows["trait"].tolist()))
    shipped = chosen["score"].to_numpy()
    yield "exchanged (identity)", provenance, shipped, np.concatenate(again), _spread(table["score"])


def _searches_again(rm: RewardModel, panel: Panel) -> Iterator[_ScoredAgain]:
    results = list(searches(panel, rm.name).values())
    if results:
        provenance = results[0].provenance
        shipped = np.array([result.best["reward"] for result in results])
        again = _by_ids(rm, provenance["prompts"][0], [result.best["ids"] for result in results])
        yield "sequences (searched)", provenance["models"][0], shipped, again, scale(panel, rm.name)[1]


def _spread(scores: pd.DataFrame | pd.Series) -> float:
    """Standard deviation of all scores of a file."""
    return float(scores.to_numpy(np.float64).std())


def _drawn(table: pd.DataFrame, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """A random sample of the rows, in their order."""
    return table.iloc[np.sort(rng.choice(len(table), min(count, len(table)), replace=False))]


def _conversation(text: str, history: Sequence) -> Prompt:
    """A prompt with the turns before it, as they were scored."""
    return PromptSpec(key="audited", text=text, framing="positive", history=tuple(history)).conversation


def _by_ids(rm: RewardModel, prompt: Prompt, responses: Iterable[Sequence[int]]) -> np.ndarray:
    prefix, closing = rm.dialogue.frame_ids(prompt)
    return PrefixScorer(rm, prefix)([[*ids, *closing] for ids in responses])


def _audit_accuracy(spec: ModelSpec) -> tuple:
    """A row of the audit: held-out accuracies measured again, which must equal the recorded ones exactly."""
    rm = load_reward_model(spec)
    shipped = recorded(spec)["held_out"]
    measured = held_out_accuracy(rm, load_recipe(str(spec.recipe)))
    difference = max(abs(measured[source]["value"] - shipped[source]["value"]) for source in shipped)
    verdict = "ok" if measured == shipped else "accuracy differs"
    return rm.name, "held-out pairs", "exact", measured["all"]["pairs"], difference, verdict

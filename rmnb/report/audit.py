"""Audit: score a random sample of a panel's shipped tokens again, from the weights, and compare."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.conversation import Prompt
from rmnb.data.list_scores import read_list
from rmnb.data.text_lists import can_be_read
from rmnb.findings.identity import pair_prompt, pairs_path
from rmnb.findings.sequences import scale, searches
from rmnb.panels import ModelSpec, Panel, load_panel
from rmnb.scoring.engine import score_sequences
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import Provenance, panel_directory, read_scan, read_table, store_directory
from rmnb.training.evaluation import held_out_accuracy
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import recorded

# Largest difference between this engine and the plain pass of another machine that is rounding and not disagreement, in
# standard deviations of a file's scores.
TOLERANCE = 1e-3


# The name of a file; its provenance; its scores, a row each: prompt (text or messages), response (text or ids), score;
# what differences are measured in; and by how much rounding may have moved a score when it was made, in its own unit.
_Stored = tuple[str, Provenance, pd.DataFrame, float, float]


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
        How many scores of each file to compute again; of a search it is one, that of its best sequence.
    models
        Names to audit. Default: all of the panel that have scores (or, with `accuracy`, a recorded accuracy).
    accuracy
        Also measure the accuracy on held-out pairs again, of models that were trained by a recipe (some minutes a
        model). In these rows, tokens counts pairs, and the difference is between accuracies.

    Returns
    -------
    DataFrame
        model, file, protocol (str), tokens (int64, how many were scored again), largest_difference (float64, in
        standard deviations of all scores of that file; of a search, of the scan), verdict: ``ok``, ``scores differ``,
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
            for file, provenance, scores, spread, rounding in _stored(panel, rm):
                drawn = scores.sample(min(sample, len(scores)), random_state=rng)
                protocol = provenance.get("protocol", "exact")
                again = _score(rm, drawn, protocol)
                difference = float(np.abs(again - drawn["score"].to_numpy()).max()) / spread
                rounding = max(rounding, rm.parity.tolerance or 0.0)  # in half precision more than the tolerance
                verdict = "ok" if difference <= max(TOLERANCE, rounding / spread) else "scores differ"
                if provenance["weights_sha256"] != rm.hashes["weights_sha256"]:
                    verdict = "weights differ"
                rows.append((name, file, protocol, len(again), difference, verdict))
        if accuracy and recorded(spec):
            rows.append(_audit_accuracy(spec))
    columns = ["model", "file", "protocol", "tokens", "largest_difference", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _stored(panel: Panel, rm: RewardModel) -> Iterator[_Stored]:
    """Every file of a model that a panel keeps: scans, lists, exchanged prompts, searches, squares of pairs."""
    directory = store_directory(panel) / rm.name
    for path in sorted(directory.rglob("*.parquet")):
        if path == pairs_path(panel, rm.name):
            table, provenance = read_table(path)
            scores = table.assign(prompt=table["people"].map(pair_prompt), response=table["trait"])
        elif path.parent == directory:
            table, provenance = read_scan(path)
            responses = table["token_id"].map(lambda token_id: [token_id])
            if provenance["protocol"] == "published":
                responses = table["token"].map(rm.dialogue.published_token)
            prompt = _conversation(provenance["prompt"], provenance.get("history", ()))
            scores = table.assign(prompt=pd.Series([prompt] * len(table)), response=responses)
        else:
            table, provenance = read_list(path)
            # A name that stands in for a text that is not here cannot be scored again.
            table = table[table["part"].isin([part for part in provenance["parts"] if can_be_read(part)])]
            histories = provenance.get("histories", {})
            prompts = {key: _conversation(text, histories.get(key, ())) for key, text in provenance["prompts"].items()}
            scores = table.melt("text", list(prompts), var_name="prompt", value_name="score")
            scores = scores.assign(prompt=scores["prompt"].map(prompts), response=scores["text"])
        if len(scores):
            file = str(path.relative_to(directory).with_suffix(""))
            yield file, provenance, scores, float(scores["score"].to_numpy(np.float64).std()), 0.0
    for run, result in searches(panel, rm.name).items():
        provenance = result.provenance
        best = result.sequences[:1].assign(prompt=provenance["prompts"][:1])
        best = best.rename(columns={"ids": "response", "reward": "score"})
        yield "-".join(map(str, run)), provenance["models"][0], best, scale(panel, rm.name)[1], 0.0
    for path in sorted((panel_directory(panel, "pairs") / rm.name).glob("*.exact.parquet")):
        exact, _ = read_table(path)
        quick, square = read_table(path.with_name(path.name.replace(".exact", "")))
        error = float((exact["score"] - exact["quick"]).abs().max())  # of some: others may be farther off
        for file, table, rounding in ((path.stem, exact, 0.0), (path.stem.removesuffix(".exact"), quick, 2 * error)):
            responses = np.array(square["ids"])[table[["first", "second"]]].tolist()
            scores = table.assign(prompt=pd.Series([square["prompt"]] * len(table)), response=responses)
            yield f"pairs/{file}", square, scores, float(quick["score"].std()), rounding


def _conversation(text: str, history: Sequence) -> Prompt:
    """A prompt with the turns before it, as they were scored."""
    return [*history, {"role": "user", "content": text}]


def _score(rm: RewardModel, scores: pd.DataFrame, protocol: str) -> np.ndarray:
    """The rewards of some rows as they are computed now, float32 [rows]."""
    prompts, responses = scores["prompt"].tolist(), scores["response"].tolist()
    if isinstance(responses[0], str):
        return rm.score(prompts, responses, protocol)
    sequences = []
    for prompt, ids in zip(prompts, responses, strict=True):
        prefix, closing = rm.dialogue.frame_ids(prompt)
        sequences.append([*prefix, *ids, *closing])
    return score_sequences(rm, sequences)


def _audit_accuracy(spec: ModelSpec) -> tuple:
    """A row of the audit: held-out accuracies measured again, which must equal the recorded ones exactly."""
    rm = load_reward_model(spec)
    shipped = recorded(spec)["held_out"]
    measured = held_out_accuracy(rm, load_recipe(str(spec.recipe)))
    difference = max(abs(measured[source]["value"] - shipped[source]["value"]) for source in shipped)
    verdict = "ok" if measured == shipped else "accuracy differs"
    return rm.name, "held-out pairs", "exact", measured["all"]["pairs"], difference, verdict

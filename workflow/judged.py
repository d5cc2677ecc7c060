"""What chapter 8 compares with searches, scored by one model: `python workflow/judged.py PANEL MODEL`.

``transfer.parquet`` holds the best sequences that were found in all models of the panel, ``natural.parquet`` responses
that people compared, as answers to their own question and to the one that was searched.
"""

import sys
from pathlib import Path

from rmnb.data.preferences import preference_pairs
from rmnb.findings import sequences
from rmnb.panels import Panel, load_panel
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.store import panel_directory, write_table

LONGEST = 400  # characters of question and answer


def searches(panel: Panel, model: str) -> Path:
    """The directory of a model's searches."""
    return panel_directory(panel, "sequences") / model


def main(panel: str, model: str) -> None:
    """Write both tables beside the model's searches."""
    members = load_panel(panel)
    rm = load_reward_model(model, panel=members)
    question = members.prompt(sequences.PROMPT)
    made = {"model": rm.name, "prompt": question.text, "weights_sha256": rm.hashes["weights_sha256"]}
    directory = searches(members, rm.name)

    best = sequences.best_found(sequences.load_searches(members)[0]).rename(columns={"model": "origin"})
    best["reward"] = rm.score(question.conversation, best["text"].tolist())
    write_table(directory / "transfer.parquet", best[["origin", "direction", "length", "reward"]], made)

    pairs = preference_pairs("hh-rlhf").rename_axis("pair").reset_index()
    pairs = pairs[[isinstance(prompt, str) for prompt in pairs["prompt"]]]  # a single question
    characters = pairs["prompt"].str.len() + pairs[["chosen", "rejected"]].map(len).max(axis="columns")
    pairs = pairs[characters <= LONGEST][:150]
    answers = pairs.melt(["pair", "prompt"], ["chosen", "rejected"], "side", "text").assign(source="hh-rlhf")
    answers["own"] = rm.score(answers["prompt"].tolist(), answers["text"].tolist())
    answers["scanned"] = rm.score(question.conversation, answers["text"].tolist())
    write_table(directory / "natural.parquet", answers[["source", "pair", "side", "own", "scanned"]], made)


if __name__ == "__main__":
    main(*sys.argv[1:])

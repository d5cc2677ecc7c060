"""A panel of planted rewards on two small vocabularies that hold hostile tokens, in a store of its own."""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from rmnb.panels import Panel, load_panel
from rmnb.planted.rewards import PlantedEffects, planted_panel, spell, word_features
from rmnb.scoring import store

HOSTILE = [
    "<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "</td></tr></table>",
    "$x$",
    "\u202eevil",
    "\x00",
    " " * 200,
    "\U0001f469\u200d\U0001f680",
    "\u200b",
    "",
    "a" * 60 + "!",
    "\n",
    "{{x}}",
    "\u05d0\u05d1",
]
WORDS = ["love", "war", "sleep", "river", "justice", "mountain", "cake", "doubt", "music", "hate"]
FRAMINGS = {"best": "positive", "worst": "negative"}


def planted(directory: Path) -> Panel:
    """Two models of one vocabulary, one of another, under two prompts; ties among the rewards."""
    description = {
        "name": "planted",
        "title": "Planted <panel>",
        "scores": str(directory / "scores"),
        "models": [
            {"name": name, "source": f"nowhere/{name}", "family": name.split("-")[0]}
            for name in ("one-a", "one-b", "two-<b>")
        ],
        "prompts": [{"key": key, "text": f"What is {key}?", "framing": framing} for key, framing in FRAMINGS.items()],
    }
    path = directory / "planted.yml"
    path.write_text(yaml.safe_dump(description))
    panel = load_panel(path)
    effects = PlantedEffects(valence_positive=1.0, valence_negative=1.0)
    for family, words, seed in (("one", WORDS, 1), ("two", [*WORDS[::-1], "only", "here"], 2)):
        features = word_features(with_hostile(spell(words)))
        models = {name: family for name in panel.model_names if name.startswith(family)}
        for model, table in planted_panel(features, effects, models, FRAMINGS, seed).items():
            for prompt in FRAMINGS:
                scores = table[prompt].to_numpy(np.float32)
                scores[::7] = scores[3]
                provenance = {
                    "model": model,
                    "prompt_key": prompt,
                    "prompt": panel.prompt(prompt).text,
                    "protocol": "exact",
                    "tokenizer_sha256": hashlib.sha256(family.encode()).hexdigest(),
                }
                scan = table[["token_id", "token", "kind"]].assign(score=scores)
                store.write_scores(panel, scan, provenance)
    return panel


def with_hostile(vocabulary: pd.DataFrame) -> pd.DataFrame:
    """A vocabulary with the hostile tokens before its own."""
    hostile = pd.DataFrame({"token": HOSTILE, "kind": "code"})
    table = pd.concat([hostile, vocabulary[["token", "kind"]].astype(str)], ignore_index=True)
    return table.assign(token_id=np.arange(len(table), dtype=np.int32))[["token_id", "token", "kind"]]

"""A panel of planted rewards on two small vocabularies that hold hostile tokens, in a store of its own."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from planted_panels import planted_panel

from rmnb.panels import Panel, load_panel
from rmnb.planted.rewards import PlantedEffects, spell, word_features
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
    panel = write_panel(directory, ("one-a", "one-b", "two-<b>"), FRAMINGS)
    effects = PlantedEffects(valence_positive=1.0, valence_negative=1.0)
    for family, words, seed in (("one", WORDS, 1), ("two", [*WORDS[::-1], "only", "here"], 2)):
        features = word_features(with_hostile(spell(words)))
        models = {name: family for name in panel.model_names if name.startswith(family)}
        tables = planted_panel(features, effects, models, FRAMINGS, seed)
        for table in tables.values():
            for prompt in FRAMINGS:
                table.loc[::7, prompt] = table.loc[3, prompt]
        write_scans(panel, tables, tokenizer_sha256=hashlib.sha256(family.encode()).hexdigest())
    return panel


def write_panel(directory: Path, models: Iterable[str], framings: Mapping[str, str]) -> Panel:
    """The panel ``planted.yml`` with a store beside it; a model's base is its name up to the hyphen."""
    description = {
        "name": "planted",
        "title": "Planted <panel>",
        "scores": str(directory / "scores"),
        "models": [{"name": name, "source": f"nowhere/{name}", "family": name.split("-")[0]} for name in models],
        "prompts": [{"key": key, "text": f"What is {key}?", "framing": framing} for key, framing in framings.items()],
    }
    rated = {"key": "elo_greatest", "text": "Which is it?", "framing": "positive", "scanned": False}
    description["prompts"].append(rated)
    path = directory / "planted.yml"
    path.write_text(yaml.safe_dump(description))
    return load_panel(path)


def write_scans(panel: Panel, tables: Mapping[str, pd.DataFrame], **provenance) -> None:
    """Put each model's rewards, a column a prompt of the panel, into its store."""
    for model, table in tables.items():
        loaded = panel.model(model).model_dump(include={"read", "softcap", "dtype"})
        for prompt in panel.scanned_prompts:
            scan = table[["token_id", "token", "kind"]].assign(score=table[prompt.key].astype(np.float32))
            asked = {"prompt_key": prompt.key, "prompt": prompt.text, "history": [], "protocol": "exact"}
            path = store.scores_path(panel, model, prompt.key)
            store.write_scores(path, scan, provenance | loaded | asked | {"model": model})


def with_hostile(vocabulary: pd.DataFrame) -> pd.DataFrame:
    """A vocabulary with the hostile tokens before its own."""
    hostile = pd.DataFrame({"token": HOSTILE, "kind": "code"})
    table = pd.concat([hostile, vocabulary[["token", "kind"]].astype(str)], ignore_index=True)
    return table.assign(token_id=np.arange(len(table), dtype=np.int32))[["token_id", "token", "kind"]]

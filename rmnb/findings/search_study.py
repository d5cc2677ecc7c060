"""The searches of the chapter on sequences: which ones, run as far as they are missing, kept beside a panel's scores.

``python -m rmnb.findings.search_study PANEL [MODEL …]`` runs them. Each model is searched at several lengths in both
directions, and at one token from chance beginnings; the first model of each base also by every method. Then each model
scores what was found in the others, and responses that people wrote or judged.
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import part_sha256
from rmnb.errors import InputError
from rmnb.findings.search_files import every_search, leads_its_base, results, search_path, table_path
from rmnb.findings.sequences import DIRECTIONS, PROMPT, best_found
from rmnb.models.reward_model import RewardModel
from rmnb.panels import Panel, load_panel
from rmnb.scoring.conversations import load_reward_model
from rmnb.scoring.store import read_scores, versions, write_table
from rmnb.search.config import SearchConfig
from rmnb.search.rewards import RewardObjective
from rmnb.search.run import optimise, search
from rmnb.training.recipes import build_pairs, load_recipe

LENGTHS = (2, 4, 8, 16)
BUDGET, WIDTH = 2048, 32  # sequences scored by each search, and in one step
METHODS, METHODS_LENGTH, SEEDS = ("gcg", "random", "exhaustive", "beam"), 8, (0, 1, 2)
DETERMINISTIC = ("exhaustive", "beam")  # from the beginnings that all methods share, nothing in them is left to chance
SINGLE_STEPS, SINGLE_WIDTHS, SINGLE_SEEDS = 50, (4, 16, 64), 10
NATURAL_PAIRS = 150


def searches(panel: Panel, model: str) -> Iterator[SearchConfig]:
    """The searches in which a model's own reward is sought, those of one token excepted."""
    for direction in DIRECTIONS:
        common = SearchConfig(direction=direction, budget=BUDGET, width=WIDTH, steps=BUDGET)
        for length in LENGTHS:
            yield common.model_copy(update={"length": length})
        if not leads_its_base(panel, model):
            continue
        for method in METHODS:
            for seed in SEEDS[:1] if method in DETERMINISTIC else SEEDS:
                if (method, seed) != ("gcg", 0) or METHODS_LENGTH not in LENGTHS:
                    # A beam keeps `buffer` sequences and extends each by `topk` tokens at each of its steps.
                    topk = BUDGET // (common.buffer * METHODS_LENGTH) if method == "beam" else common.topk
                    chosen = {"length": METHODS_LENGTH, "method": method, "seed": seed, "topk": max(topk, 1)}
                    yield common.model_copy(update=chosen)


class ScannedTokens(RewardObjective):
    """Rewards of single tokens, looked up in a scan; gradients are the model's."""

    def __init__(self, rm: RewardModel, prompt: str, scan: pd.DataFrame):
        super().__init__([(rm, 1.0)], [prompt])
        self._scores = scan.set_index("token_id")["score"]

    def measure(self, sequences, parent=None):
        """See `Objective.measure`; for sequences of one token only."""
        return self._scores.loc[[token for (token,) in sequences]].to_numpy(np.float64)


def search_model(rm: RewardModel, panel: Panel) -> None:
    """Run a model's searches that have no result yet; one that was cut off goes on."""
    prompt, scan = panel.prompt(PROMPT), read_scores(panel, rm.name, PROMPT)
    for config in searches(panel, rm.name):
        path = search_path(panel, rm.name, config)
        if not path.exists():
            optimise(rm, prompt, config, scan=scan, output=path, progress=True)
    known = ScannedTokens(rm, prompt.text, scan)
    for direction in DIRECTIONS:
        config = SearchConfig(length=1, direction=direction, method="exhaustive", starts=("random",))
        path = search_path(panel, rm.name, config)
        if not path.exists():
            search(known, config, output=path, progress=True)
    if not table_path(panel, rm.name, "single").exists():
        reached = _single_tokens(known)
        write_table(table_path(panel, rm.name, "single"), reached, _provenance(rm, panel))


def _single_tokens(known: ScannedTokens) -> pd.DataFrame:
    """Where greedy coordinate gradient arrives at one token, from chance beginnings, by how many candidates a step."""
    rows = []
    for direction in DIRECTIONS:
        for width in SINGLE_WIDTHS:
            for seed in range(SINGLE_SEEDS):
                config = SearchConfig(
                    **{"length": 1, "direction": direction, "width": width, "seed": seed, "steps": SINGLE_STEPS},
                    **{"starts": ("random",), "allowed": "every", "survive": False, "keep": 1},
                )
                result = search(known, config)
                rows.append((direction, width, seed, result.scored, int(result.best["ids"][0]), result.best["reward"]))
    return pd.DataFrame(rows, columns=["direction", "width", "seed", "scored", "token_id", "reward"])


def score_transfer(rm: RewardModel, panel: Panel) -> None:
    """Let a model score the best found in every model, its own included, as text; again if better has been found."""
    found = best_found(every_search(panel))
    texts = found["text"].tolist()
    table = found[["model", "direction", "length"]].rename(columns={"model": "origin"})
    table["reward"] = rm.score(panel.prompt(PROMPT).text, texts)
    write_table(
        table_path(panel, rm.name, "transfer"), table, {**_provenance(rm, panel), "texts_sha256": part_sha256(texts)}
    )


def score_natural(rm: RewardModel, panel: Panel) -> None:
    """Score held-out responses of the preference data, as answers to their own prompts and to the scanned one.

    The file holds no text: a row a response, by its pair's place among the recipe ``mixed``'s held-out pairs.
    """
    path = table_path(panel, rm.name, "natural")
    if path.exists():
        return
    recipe = load_recipe("mixed").model_copy(update={"things": None, "mismatched": None})
    _, judged = build_pairs(recipe)
    pairs = judged.sample(min(NATURAL_PAIRS, len(judged)), random_state=0).sort_index()
    rows = []
    columns = pairs.index, *(pairs[name] for name in ("source", "prompt", "chosen", "rejected"))
    for place, source, prompt, *texts in tqdm(list(zip(*columns, strict=True)), unit=" pairs"):
        own, scanned = rm.score(prompt, texts), rm.score(panel.prompt(PROMPT).text, texts)
        for side, *rewards in zip(("chosen", "rejected"), own, scanned, strict=True):
            rows.append((source, place, side, *rewards))
    table = pd.DataFrame(rows, columns=["source", "pair", "side", "own", "scanned"])
    write_table(path, table, {**_provenance(rm, panel), "recipe": recipe.name})


def _provenance(rm: RewardModel, panel: Panel) -> dict:
    return {
        "model": rm.name,
        "prompt": panel.prompt(PROMPT).text,
        "weights_sha256": rm.weights_sha256,
        "dtype": rm.spec.dtype,
        "versions": versions(),
    }


def main(name: str, models: Sequence[str] = ()) -> None:
    """Run the study of a panel, or of some of its models."""
    panel = load_panel(name)
    chosen = list(models) or panel.model_names
    for model in chosen:
        rm = load_reward_model(model, panel=panel)
        search_model(rm, panel)
        try:
            score_natural(rm, panel)
        except UnreachableError as error:
            print(f"{model}: not held against natural text, {error}", file=sys.stderr)
    for model in panel.model_names:
        if results(panel, model):
            score_transfer(load_reward_model(model, panel=panel), panel)


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "demo", sys.argv[2:])
    except InputError as error:
        sys.exit(f"error: {error}")

"""The reward that a second buys: nanoGCG's design and the search of this package, by processor time.

Run as ``python benchmarks/search.py``. It adds one case after another to ``data/demo/sequences/courses.tsv`` and skips
those that stand there: the reference takes 11 to 26 minutes for each, the search up to as long. One row each time that
the best reward improves, and one at the end: processor seconds of all threads since the search began, sequences scored,
and that reward. All these sequences come back as the same ids when their text is read. The search for the best eight
tokens of *smollm2-values* with seed 0 has no row at its end.

Seconds are divided by how many times as long this machine takes for the first minute of a reference of the same model
and length with seed 0, where one stands in the table. Two kinds of reference are not corrected: the first of eight
tokens of each model, and those of four tokens, but for seed 0 of *gemma3-values* and *smollm2-mixed*. All references of
four tokens score 110 to 126 sequences a second.

reference: nanoGCG's algorithm at its defaults, but with all ordinary tokens, not those of ASCII alone: 250 steps from
*x x x …*, each with 512 candidates that exchange one token for one of the 256 with the steepest gradient. It scores
those whose text is read as the same ids, and goes on from the best of them. It scores by this package, whose step is
faster than its own; its gradient is that of transformers' classifier.
search: `rmnb.search` with its defaults but for its steps, for `SECONDS` at least. From then on it goes on until it is
ahead of where the reference of the same case ends, or has taken as long. The four references of four tokens
that are corrected ran after the searches held against them, which could take as long as the median of the other seeds.

Other searches were tried in shorter runs or on recorded beginnings. None was better on the whole, and two seeds of one
search mostly differ by more than two of them:

- other beginnings: *x x x …*, one token repeated, the best tokens of a scan, changes of the best sequence found;
- other steps: 64 or 256 sequences, or as many as gains allow; half of them or all by the gradient, or a share that is
  learned; 64 or 256 of the steepest tokens; two tokens exchanged at once; parts of two good sequences put together;
  positions chosen by what they gained (a bandit); candidates dropped after half of the layers;
- another patience: 8, 16 or 64 steps without gain, or more with each beginning; less for what falls behind others.
"""

import contextlib
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer
from scan import as_classifier

import rmnb
from rmnb.files import data_dir
from rmnb.scoring.reward_model import RewardModel
from rmnb.searching.config import Ids, SearchConfig
from rmnb.searching.methods import Finished, SearchState
from rmnb.searching.rewards import RewardObjective

COURSES = data_dir() / "demo" / "sequences" / "courses.tsv"
CASE = ["model", "way", "length", "direction", "seed"]
MODELS = ["smollm2-values", "smollm2-mixed", "gemma3-values"]
WAYS = ["reference", "search"]
LENGTHS = [4, 8]
DIRECTIONS = ["max", "min"]
STEPS, WIDTH, TOPK = 250, 512, 256
SECONDS = 300  # of a search, at least
PROMPT = rmnb.load_panel("demo").prompt("greatest").text


class Timed(RewardObjective):
    """Notes after each step how long the search has computed, how much it has scored, and the best reward so far.

    It ends after so many `seconds`, or after `SECONDS` as soon as the best reward, its sign turned where the lowest is
    sought, is above `mark`.
    """

    def __init__(
        self,
        rm: RewardModel,
        config: SearchConfig,
        seconds: float = np.inf,
        mark: float = np.inf,
        slower: float = 1,
    ):
        super().__init__([rm], [PROMPT])
        self.sign = config.sign
        self.seconds = seconds
        self.mark = mark
        self.slower = slower
        self.scored = 0
        self.best = -np.inf
        self.course: list[dict[str, float]] = []
        self.begun = time.process_time()

    def measure(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        rewards = super().measure(sequences, parent)
        self.scored += len(sequences)
        spent = (time.process_time() - self.begun) / self.slower
        self.best = max(self.best, (self.sign * rewards).max())
        row = {"seconds": round(spent, 1), "scored": self.scored, "reward": round(self.sign * self.best, 4)}
        self.course.append(row)
        is_ahead = spent > SECONDS and self.best > self.mark
        if spent > self.seconds or is_ahead:
            self.seconds = self.mark = np.inf  # what was found is measured once more
            raise Finished
        return rewards

    def rows(self) -> pd.DataFrame:
        """Columns seconds, scored, reward."""
        course = pd.DataFrame(self.course)
        is_better = course["reward"].ne(course["reward"].shift())
        is_last = course.index == len(course) - 1
        return course[is_better | is_last]


def reference(state: SearchState, rm: RewardModel) -> None:
    """nanoGCG's algorithm."""
    trunk: Any = as_classifier(rm).model
    trunk.requires_grad_(False)
    embedding = trunk.embed_tokens
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    allowed = torch.from_numpy(state.allowed)
    rng = state.rng
    ids = state.objective.encode("x" + " x" * (state.config.length - 1))
    for _ in range(STEPS):
        vectors = embedding(torch.tensor([[*prefix, *ids, *closing]])).detach().requires_grad_()
        hidden = trunk(inputs_embeds=vectors, use_cache=False).last_hidden_state[:, -1]
        (slopes,) = torch.autograd.grad(rm.readout(hidden)[0, 0], vectors)
        slopes = slopes[0, len(prefix) : len(prefix) + len(ids)] @ embedding.weight[allowed].T
        steepest = allowed[(state.config.sign * slopes).topk(TOPK).indices].numpy()
        rows = np.tile(ids, (WIDTH, 1))
        places = rng.integers(len(ids), size=WIDTH)
        rows[np.arange(WIDTH), places] = steepest[places, rng.integers(TOPK, size=WIDTH)]
        candidates = state.filter(dict.fromkeys(map(tuple, rows.tolist())))
        rewards = state.objective.measure(candidates, ids)
        ids = candidates[int(np.argmax(state.config.sign * rewards))]


def times_as_slow(rm: RewardModel, length: int, known: pd.DataFrame) -> float:
    """How many times as long this machine takes as the table says for the first sequences of a reference; 1 without."""
    first = known.query("model == @rm.name and length == @length and way == 'reference' and seed == 0")
    if first.empty:
        return 1.0
    first = first[first["direction"] == first["direction"].iloc[0]]
    config = SearchConfig(steps=10**6, length=length, direction=first["direction"].iloc[0])
    objective = Timed(rm, config, seconds=60)
    with contextlib.suppress(Finished):
        reference(SearchState(objective, config), rm)
    spent = objective.course[-1]
    return spent["seconds"] / np.interp(spent["scored"], first["scored"], first["seconds"])


def course(rm: RewardModel, config: SearchConfig, slower: float, against: pd.DataFrame) -> pd.DataFrame:
    """Of a search held against a reference with that course, or of the reference where that course is empty.

    Columns seconds, scored, reward, of both courses.
    """
    if against.empty:
        objective = Timed(rm, config, slower=slower)
        reference(SearchState(objective, config), rm)
    else:
        seconds, mark = against.iloc[-1][["seconds", "reward"]]
        objective = Timed(rm, config, max(seconds, SECONDS), config.sign * mark, slower)
        rmnb.search(objective, config)
    return objective.rows()


def main(models: list[str] = MODELS, lengths: list[int] = LENGTHS, seeds: int = 5) -> None:
    """Add what is missing to the table."""
    for seed, length, direction, model, way in itertools.product(range(seeds), lengths, DIRECTIONS, models, WAYS):
        known = pd.read_csv(COURSES, sep="\t") if COURSES.exists() else pd.DataFrame(columns=CASE)
        case = {"model": model, "way": way, "length": length, "direction": direction, "seed": seed}
        same = known.query("model == @model and length == @length and direction == @direction and seed == @seed")
        if way in set(same["way"]):
            continue
        rm = rmnb.load_reward_model(model, device="cpu")
        slower = times_as_slow(rm, length, known)
        config = SearchConfig(steps=10**6, length=length, direction=direction, seed=seed)
        found = course(rm, config, slower, same.query("way == 'reference'")).assign(**case)
        found[[*CASE, "seconds", "scored", "reward"]].to_csv(
            COURSES, sep="\t", index=False, mode="a", header=not COURSES.exists()
        )


if __name__ == "__main__":
    typer.run(main)

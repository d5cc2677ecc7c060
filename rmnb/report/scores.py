"""What a report needs to be scored: a vocabulary under two opposite questions, words in a sentence, lists, things.

All of it is kept in the report's directory as it is computed: killed, the same call goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rmnb.data import lexicons, released_files, text_lists
from rmnb.data.list_scores import read_list, score_list
from rmnb.data.sources import UnreachableError
from rmnb.errors import InputError
from rmnb.findings import carriers
from rmnb.findings.tables import as_table
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import Panel, PromptSpec, load_panel, load_prompts
from rmnb.scoring import store

if TYPE_CHECKING:
    from rmnb.scoring.reward_model import RewardModel

#: The two questions that the whole vocabulary answers, the good one first, and what each asks for.
FRAMING = {"greatest": "positive", "worst": "negative"}
THINGS = "elo_greatest"  # the question that things are scored with
WORDINGS = "iclr2026"
SAMPLE = 5000  # tokens of a quick report
SENTENCE = "greatest.plain"  # the carrier in which frequent words answer the good question, and its column
FREQUENT = 2000  # words
#: Wordings of a quick report: four adjectives, and two of them with another scope and in another style.
_QUICK = (
    "greatest_ever_one",
    "best_ever_one",
    "worst_ever_one",
    "terrible_ever_one",
    "greatest_world_one",
    "greatest_ever_please",
    "worst_world_one",
    "worst_ever_please",
)


@dataclass(frozen=True)
class ModelScores:
    """The rewards from which one model's report is computed.

    Attributes
    ----------
    name : str
    quick : bool
        Of a sample of the vocabulary, and shorter lists.
    table : DataFrame
        token_id, token, kind, word, and a column of rewards for each question of `FRAMING`: one row a token. If words
        were scored in a sentence, also `SENTENCE`, NaN for the other tokens.
    words : DataFrame
        part, text, and a float32 column a wording.
    things : DataFrame or None
        name, elo_score, elo_matches, and the rewards as elo_greatest; None where the things could not be reached.
    provenance : dict
        Of the first scan.
    """

    name: str
    quick: bool
    table: pd.DataFrame
    words: pd.DataFrame
    things: pd.DataFrame | None
    provenance: store.Provenance

    @property
    def wordings(self) -> dict[str, str]:
        """The key of each scored wording, and what it asks for: positive or negative."""
        return {prompt.key: prompt.framing for prompt in load_prompts(WORDINGS) if prompt.key in self.words}


def score(
    rm: "RewardModel",
    directory: Path,
    quick: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> None:
    """Score all that a report needs; each part is kept in ``directory/scores`` as soon as it is computed.

    Parameters
    ----------
    rm
        The model.
    directory
        The report's directory.
    quick
        Only a sample of the vocabulary, stratified by kind of token and by id, and shorter lists.
    progress
        Show progress bars with the time left.
    tell
        Called with a line of text before each part, and when the things cannot be reached and are left out.

    Raises
    ------
    InputError
        The directory holds scores of another model, or of a report of the other kind; a reward is not finite.
    """
    from rmnb.scoring.scanning import scan_vocabulary  # here and below: what scores loads torch

    rm.refuse_several("a report")
    for other in Path(directory, "scores").glob("*"):
        if other.is_dir() and other.name != rm.name:
            raise InputError(f"{directory} is the report of {other.name}: choose another --out", directory)
    panel = _panel_of(rm, directory)
    ids = sample(rm) if quick else None
    for place, key in enumerate(FRAMING, 1):
        question, path = panel.prompt(key), store.scores_path(panel, rm.name, key)
        tell(f"{place}/5 {'a sample' if quick else 'each token'} of the vocabulary: {question.text}")
        scan_vocabulary(rm, question, path, progress=progress, ids=ids)
    sentence = carriers.sentences()["text"][SENTENCE]
    tell(f"3/5 frequent words in a sentence: {sentence}")
    path = store.scores_path(panel, rm.name, SENTENCE)
    frequent = _frequent(vocabulary(rm.tokenizer, rm.vocabulary_size))["token_id"].tolist()
    try:
        scan_vocabulary(rm, panel.prompt("greatest"), path, answer=sentence, progress=progress, ids=frequent)
    except InputError as error:
        if error.about != "answer":
            raise
        tell(f"    left out: {error}")
    tell(f"4/5 words of agency and communion and of identity under {len(_wordings(quick))} wordings")
    score_list(rm, panel, "words", progress, _wordings(quick))
    tell("5/5 things that people voted on")
    try:
        score_list(rm, panel, "elo_sample" if quick else "elo", progress, [panel.prompt(THINGS)])
    except UnreachableError as error:
        tell(f"    left out: {error}")


def read(directory: Path | str) -> ModelScores:
    """The scores that `score` has kept in a report's directory.

    Raises
    ------
    InputError
        They are missing, incomplete, damaged, or of several models.
    """
    scans = sorted(Path(directory).glob("scores/*/greatest.exact.parquet"))
    if len(scans) != 1:
        raise InputError(f"{directory} holds scores of {len(scans)} models: run `rmnb report MODEL --out {directory}`")
    return _read(scans[0].parent)


def of_panel(panel: Panel, model: str) -> ModelScores:
    """The same from a panel's store, for a model whose scans and lists are all there; InputError where one is not."""
    scores = _read(store.store_directory(panel) / model)
    for table in carriers.load_carriers(panel, [panel.model(model)]).values():
        scores.table[SENTENCE] = scores.table["token_id"].map(_frequent(table).set_index("token_id")[SENTENCE])
    return scores


def _read(directory: Path) -> ModelScores:
    """The scores in a model's directory of a store."""
    scans, provenances = {}, {}
    for key in (*FRAMING, SENTENCE):
        path = directory / f"{key}.exact.parquet"
        if key in FRAMING or path.exists():
            scans[key], provenances[key] = store.read_scan(path)
    provenance = provenances["greatest"]
    words, _ = read_list(directory / "lists" / "words.parquet")
    rated = None
    for name in ("elo", "elo_sample"):
        path = directory / "lists" / f"{name}.parquet"
        if path.exists():
            rated = things(read_list(path)[0])
            break
    return ModelScores(
        name=provenance["model"],
        quick=provenance.get("ids_sha256") is not None,
        table=as_table(scans),
        words=words,
        things=rated,
        provenance=provenance,
    )


def shipped(model: str) -> ModelScores | None:
    """The same of a demo model from the scores that the book ships; None for other models, or without those scores."""
    demo = load_panel("demo")
    if model not in demo.model_names or not store.store_directory(demo).is_dir():
        return None
    return of_panel(demo, model)


def scored(model: str, quick: bool = True) -> ModelScores:
    """Load a model, score it into ``report-MODEL`` in the current directory, and read the scores back, for a notebook.

    With `quick` the directory is ``report-MODEL-quick``. Raises what `score` and `read` raise.
    """
    from rmnb.scoring.loading import load_reward_model

    rm = load_reward_model(model)
    directory = default_directory(rm.name, quick)
    score(rm, directory, quick, progress=True, tell=print)
    return read(directory)


def default_directory(model: str, quick: bool) -> Path:
    """Where a model's report goes if nobody says where."""
    return Path(f"report-{model}-quick" if quick else f"report-{model}")


def things(scored: pd.DataFrame) -> pd.DataFrame:
    """People's votes on the things of a scored list, and their rewards: name, elo_score, elo_matches, elo_greatest.

    A thing goes by its place in the list: its name may be out of reach here.
    """
    items = released_files.human_elo().iloc[text_lists.THINGS[scored["part"].iloc[0]]]
    return items.assign(**{THINGS: scored[THINGS].to_numpy()}).reset_index(drop=True)


def sample(rm: "RewardModel") -> list[int]:
    """Ids of a sample of the vocabulary, in order: each kind of token by its share, and spread evenly over its ids."""
    words = vocabulary(rm.tokenizer, rm.vocabulary_size)
    by_kind = words.sort_values(["kind", "token_id"])["token_id"].to_numpy()
    size = min(SAMPLE, len(by_kind))
    places = np.linspace(0, len(by_kind) - 1, size).round().astype(int)
    return np.sort(by_kind[places]).tolist()


def _frequent(tokens: pd.DataFrame) -> pd.DataFrame:
    """The tokens that begin a word and spell one of the `FREQUENT` most frequent English words."""
    words = lexicons.frequent_words(FREQUENT)
    return tokens[(tokens["kind"] == "word_start") & tokens["token"].str.strip().isin(words)]


def _panel_of(rm: "RewardModel", directory: Path) -> Panel:
    """A panel of this model alone, with its store in the directory."""
    demo = load_panel("demo")
    return Panel(
        name="report",
        title=rm.name,
        models=(rm.spec,),
        prompts=demo.prompts,
        prompt_sets=(WORDINGS,),
        scores=str(Path(directory).resolve() / "scores"),
    )


def _wordings(quick: bool) -> list[PromptSpec]:
    return [prompt for prompt in load_prompts(WORDINGS) if not quick or prompt.key in _QUICK]

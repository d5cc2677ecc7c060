"""The numbers of a report: the rows of every finding that one model can have, measured as the chapters measure them."""

import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.data.sources import UnreachableError
from rmnb.findings import agency_communion, asymmetry, frequency, identity, people, reading_question, wordings
from rmnb.findings.results import Results
from rmnb.models.origin import hashes_now
from rmnb.panels import load_panel
from rmnb.report.scores import FRAMING, THINGS, ModelScores


def measure(scores: ModelScores, *, n_boot: int = 200, n_permutations: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Rows of the results table, all of one model.

    Parameters
    ----------
    scores
        What was scored.
    n_boot, n_permutations, seed
        Bootstrap draws, arrangements of the tests of gaps, and where both start.

    Returns
    -------
    DataFrame
        Columns `rmnb.findings.results.COLUMNS`; finding and panel are ``report``, protocol ``exact``. Left out is what
        was not scored, or rests on word lists of others that cannot be reached.
    """
    name = scores.name
    about: dict = {"panel": "report"}
    tables, asked = {name: scores.table}, scores.wordings
    words = scores.words.drop(columns="part").drop_duplicates("text").set_index("text")
    nouns = scores.words[scores.words["part"] == "agency_communion"].set_index("text")[list(asked)]
    items = scores.things
    rated = {} if items is None else {THINGS: items[[THINGS]].set_axis([name], axis=1)}
    parts = [
        reading_question.measure(tables, FRAMING, **about),
        wordings.measure({name: words}, asked, **about),
        asymmetry.measure(tables, n_boot=n_boot, seed=seed, **about),
        frequency.measure(tables, FRAMING, n_boot=n_boot, seed=seed, **about),
        identity.measure(
            tables, FRAMING | asked, lists={name: scores.words}, n_permutations=n_permutations, seed=seed,
            n_boot=n_boot, items=items, things=rated, **about,
        ),
        agency_communion.measure({name: nouns}, lexicons.agency_communion(), {name: ""}, asked, **about),
        moral_foundations(scores),
        people.measure(items, rated, {} if items is None else _judged(scores, items), ends_shown=0, **about),
    ]  # fmt: skip
    results = Results("report", "report")
    for part in parts:
        results.extend(part[part["model"] == name])
    return results.frame()


def _judged(scores: ModelScores, items: pd.DataFrame) -> dict:
    """Which things can judge the model: of a demo model those that its training did not show it."""
    demo = load_panel("demo")
    known = scores.name in demo.model_names and hashes_now(demo.model(scores.name))
    ours = known and known.get("weights_sha256") == scores.provenance["weights_sha256"]
    return people.judged_on(demo, items) if ours else {}


def moral_foundations(scores: ModelScores) -> pd.DataFrame:
    """Mean rank of each foundation's words among the words of all five, in percent; small is preferred.

    Rows foundation_rank, `other` the foundation, `prompt` the question; of words that are one token, spellings
    averaged, with intervals over words. None where the dictionary cannot be reached.
    """
    results = Results("moral_foundations", "report")
    try:
        dictionary = released_files.dictionary("moral_foundations")
    except UnreachableError:
        return results.frame()
    table = scores.table[scores.table["kind"].isin(["word_start", "word_continuation"])]
    for prompt in FRAMING:
        means = table.groupby("word")[prompt].mean()
        known = dictionary[dictionary["word"].isin(means.index)]
        rank = 100 * stats.mid_ranks(-means[known["word"]].to_numpy()) / max(1, len(known))
        for foundation, ranks in pd.Series(rank).groupby(known["category"].to_numpy()):
            if len(ranks) >= 10:
                found = stats.moments(ranks.to_numpy()).mean
                results.add(
                    "panel", "foundation_rank", found, model=scores.name, other=str(foundation), prompt=prompt,
                    protocol="exact",
                )  # fmt: skip
    return results.frame()

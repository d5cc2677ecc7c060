"""Preference pairs and rated things, read from the pinned sources: what reward models are trained and tested on."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from rmnb.data import sources
from rmnb.errors import InputError
from rmnb.scoring.transcripts import dialogue_turns

ELO_FILES = {
    "elo_greatest": "facct2025/data/elo/What one single thing, person, or concept is the greatest ever.csv",
    "elo_prefer": "facct2025/data/elo/What is the single thing, person, or concept that humans most prefer.csv",
    "greatest": "facct2025/data/elo/What, in one word, is the greatest thing ever.csv",
}
AUTO_J_BYTES = 1000
CROWS_QUESTION = "Tell me something."

Pair = tuple[str | list[dict[str, str]], str, str]


def elo_items() -> pd.DataFrame:
    """The things that visitors of EloEverything voted on.

    Returns
    -------
    DataFrame
        7,530 rows in the order of their rank: name (str, unique), elo_score, elo_matches, elo_rank (int64).

    Raises
    ------
    InputError
        The file cannot be reached or is damaged.
    """
    return elo_scores("elo_greatest")[["name", "elo_score", "elo_matches", "elo_rank"]]


def elo_scores(prompt: str) -> pd.DataFrame:
    """The items of `elo_items` with the published scores of ten reward models, one column a hub id.

    Parameters
    ----------
    prompt : {"elo_greatest", "elo_prefer", "greatest"}
        Which of the three published prompts.
    """
    # keep_default_na: among the items are things called "Null" and "NaN"
    return pd.read_csv(sources.locate(ELO_FILES[prompt]), keep_default_na=False)


def preference_pairs(source: str) -> pd.DataFrame:
    """Pairs of responses of which people preferred one.

    Parameters
    ----------
    source : {"hh-rlhf", "pandalm", "llmbar", "fine-grained-rlhf-questions"}
        hh-rlhf: the harmless-base test split; the pair is the last assistant turn, the prompt all that comes before.
        pandalm: the majority of three annotators; ties and disagreements are left out.
        llmbar: all five subsets. fine-grained-rlhf-questions: four predictions a question compared two by two, ties
        left out; the prompt is the question without the passages that answer it.

    Returns
    -------
    DataFrame
        prompt (a question, or a list of messages ``{"role", "content"}`` that ends with the user's), chosen, rejected
        (str).

    Raises
    ------
    InputError
        The source is unknown, cannot be reached or is damaged.
    """
    if source not in _READERS:
        raise InputError(f"no preference pairs called {source!r}: choose one of {', '.join(_READERS)}")
    pairs = pd.DataFrame(_READERS[source](), columns=["prompt", "chosen", "rejected"])
    return pairs[pairs["chosen"] != ""].reset_index(drop=True)


def statements(trait: str) -> pd.DataFrame:
    """Statements that match a trait and statements that do not (Perez et al. 2022, arXiv 2212.09251; CC BY 4.0).

    A language model wrote them, and people checked a sample. Two that differ in capitals alone are one.

    Parameters
    ----------
    trait
        A file's name in ``persona/``, such as ``agreeableness``.

    Returns
    -------
    DataFrame
        statement (str), matches (bool).

    Raises
    ------
    InputError
        There is no such file, or it cannot be reached or is damaged.
    """
    table = pd.read_json(sources.locate(f"evals/persona/{trait}.jsonl"), lines=True)
    table = table[~table["statement"].str.casefold().str.strip().duplicated()].reset_index(drop=True)
    matches = table["answer_matching_behavior"].str.strip() == "Yes"
    return pd.DataFrame({"statement": table["statement"], "matches": matches})


def rm_bench() -> pd.DataFrame:
    """Held-out pairs of RM-Bench, for evaluation only: its repository gives no licence to train on it.

    Of the three styles of its responses only the terse ones are read, a chosen one and a rejected one a prompt: the
    detailed ones are ten times as long as anything that the demo models have seen.

    Returns
    -------
    DataFrame
        570 rows: prompt, chosen, rejected (str), source (chat, safety-refuse or safety-response).
    """
    rows = [
        (entry["prompt"], entry["chosen"][0], entry["rejected"][0], subset)
        for subset in ("chat", "safety-refuse", "safety-response")
        for entry in _json(f"rm-bench/data/{subset}_filtered.json")
    ]
    return pd.DataFrame(rows, columns=["prompt", "chosen", "rejected", "source"])


def auto_j() -> pd.DataFrame:
    """Held-out pairs of Auto-J, for evaluation only: its repository gives no licence to train on them.

    Pairs that its one judge decided and of which prompt and longer response together have at most 1,000 bytes.

    Returns
    -------
    DataFrame
        380 rows: prompt, chosen, rejected (str), source (``auto-j``).
    """
    table = pd.read_json(sources.locate("auto-j/data/test/testdata_pairwise.jsonl"), lines=True)
    table = table[table["label"] != 2]  # ties
    swapped = table["label"] == 1
    pairs = pd.DataFrame(
        {
            "prompt": table["prompt"],
            "chosen": table["response 1"].mask(swapped, table["response 2"]),
            "rejected": table["response 2"].mask(swapped, table["response 1"]),
            "source": "auto-j",
        }
    )
    return pairs[pair_bytes(pairs) <= AUTO_J_BYTES].reset_index(drop=True)


def crows_pairs() -> pd.DataFrame:
    """Pairs of sentences that differ in which group they are about (Nangia et al. 2020), for evaluation only.

    Crowd workers wrote them; Blodgett et al. (2021) doubt parts of them. Here each is an answer to one question.

    Returns
    -------
    DataFrame
        1,508 rows: prompt, chosen (the sentence about a disadvantaged group), rejected (the same about another group),
        source (``stereo``: the chosen one shows a stereotype of that group; ``antistereo``: it violates one).
    """
    table = pd.read_csv(sources.locate("crows-pairs/data/crows_pairs_anonymized.csv"), keep_default_na=False)
    # Of each pair, sent_more is the more stereotypical sentence: it is about the disadvantaged group where it shows a
    # stereotype of it, and about the other group where the pair violates one.
    shows = table["stereo_antistereo"] == "stereo"
    return pd.DataFrame(
        {
            "prompt": CROWS_QUESTION,
            "chosen": table["sent_more"].where(shows, table["sent_less"]),
            "rejected": table["sent_less"].where(shows, table["sent_more"]),
            "source": table["stereo_antistereo"],
        }
    )


def pair_bytes(pairs: pd.DataFrame) -> pd.Series:
    """How long each pair is: the bytes of its prompt and its longer response in UTF-8."""
    prompt = pairs["prompt"].map(contents).str.join("")
    lengths = [(prompt + pairs[side]).str.encode("utf-8").str.len() for side in ("chosen", "rejected")]  # pyright: ignore[reportAttributeAccessIssue]
    return np.maximum(*lengths)


def contents(prompt: str | list[dict[str, str]]) -> list[str]:
    """The text of a prompt, or those of a conversation's messages."""
    return [prompt] if isinstance(prompt, str) else [message["content"] for message in prompt]


def _json(name: str) -> list[dict]:
    return json.loads(sources.locate(name).read_text(encoding="utf-8"))


def _hh_rlhf() -> Iterator[Pair]:
    pairs = pd.read_json(sources.locate("hh-rlhf/harmless-base/test.jsonl.gz"), lines=True)
    for better, worse in zip(pairs["chosen"].map(dialogue_turns), pairs["rejected"].map(dialogue_turns), strict=True):
        chosen = better.pop()
        rejected = worse.pop()
        is_answer = better == worse and chosen["role"] == rejected["role"] == "assistant"
        if is_answer and rejected["content"] not in ("", chosen["content"]):
            prompt = better[0]["content"] if len(better) == 1 else better
            yield prompt, chosen["content"], rejected["content"]


def _pandalm() -> Iterator[Pair]:
    for entry in _json("pandalm/data/testset-v1.json"):
        votes = Counter(entry[f"annotator{k}"] for k in (1, 2, 3))
        winner, count = votes.most_common(1)[0]
        if winner == 0 or count == 1:
            continue
        prompt = "\n\n".join(filter(None, (entry["instruction"], entry["input"])))
        # str: a response that reads True or 3 stands in the file as a truth value or a number
        chosen = str(entry[f"response{winner}"])
        rejected = str(entry[f"response{3 - winner}"])
        if chosen != rejected:
            yield prompt, chosen, rejected


def _llmbar() -> Iterator[Pair]:
    adversarial = (f"Adversarial/{kind}" for kind in ("Neighbor", "GPTInst", "GPTOut", "Manual"))
    for subset in ("Natural", *adversarial):
        for entry in _json(f"llmbar/Dataset/LLMBar/{subset}/dataset.json"):
            better = entry["label"]
            yield entry["input"], entry[f"output_{better}"], entry[f"output_{3 - better}"]


def _fine_grained() -> Iterator[Pair]:
    for entry in _json("fine-grained-rlhf/tasks/qa_feedback/data/dev_feedback.json"):
        prompt = entry["question"]
        for (i, j), winner in zip(combinations((1, 2, 3, 4), 2), entry["preference"], strict=True):
            chosen = entry[f"prediction {i}"]
            rejected = entry[f"prediction {j}"]
            if winner == 2:
                chosen, rejected = rejected, chosen
            if winner and chosen != rejected:
                yield prompt, chosen, rejected


_READERS = {
    "hh-rlhf": _hh_rlhf,
    "pandalm": _pandalm,
    "llmbar": _llmbar,
    "fine-grained-rlhf-questions": _fine_grained,
}

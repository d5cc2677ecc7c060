"""Words in carriers (`rmnb/panels/carriers/demo.yml`): which words, and their rewards by each model.

carriers.py demo words
carriers.py demo scan smollm2-values
carriers.py demo scan smollm2-values whole greatest.plain greatest.not
carriers.py demo contents
carriers.py demo answers smollm2-values

The first argument is a panel. `words` chooses six thousand words, once, for every panel. Of the tokens that begin a
word, a blank before it, and that both vocabularies of the demo panel have:

1. those that are spelled as a word of the project's lists: identity terms, their controls, nouns of agency and
   communion;
2. then the most frequent English words of two letters or more (wordfreq), equally frequent ones in alphabetical order;
   one spelling a word: in small letters if both vocabularies have it so, else the first other spelling by code point.

`scan` writes one table a model, of those words that are a token of its vocabulary: token_id, and for each question and
carrier a column of 16 bits, named ``greatest.plain``. A reward is ``low + step * number``, `low` and `step` being in
the table's provenance.

`answers` scores answers that people compared, of prompts that are held out from every recipe that learns from such
comparisons: a fifth of the prompts of the sources of the recipes. `contents` writes the length of each of these
answers, and of the words that all models of the panel have scored in sentences, which it holds; of the texts nothing
else is kept.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import rmnb
from rmnb.data import lexicons, preferences
from rmnb.errors import InputError
from rmnb.findings import carriers
from rmnb.panels import Panel, load_panel
from rmnb.plans import kept, refuse_other
from rmnb.scoring.store import (
    content_sha256,
    describe_model,
    note_model,
    panel_directory,
    read_scores,
    read_table,
    write_table,
)
from rmnb.training.pairs import is_prompt_held_out

COUNT = 6000
OFTEN = 30
SOURCES = ("pandalm", "llmbar", "hh-rlhf", "fine-grained-rlhf-questions")
MODELS = {"smollm2-135m-instruct": "smollm2-values", "gemma3-270m": "gemma3-values"}  # one of each base
OF_CARRIER = ("prompt", "answer", "conversation", "read_token", "read_offset")  # what the columns of a table differ in


def shared_tokens(panel: Panel) -> pd.DataFrame:
    """Tokens that begin a word in both vocabularies: token, word, and their ids by the name of the base."""
    shared = None
    for base, name in MODELS.items():
        scan = read_scores(panel, name, "greatest")
        tokens = scan.loc[scan["kind"] == "word_start", ["token", "token_id"]].rename(columns={"token_id": base})
        shared = tokens if shared is None else shared.merge(tokens, on="token")
    assert shared is not None
    shared = shared[shared["token"].str.startswith(" ")]
    return shared.assign(word=shared["token"].str.strip())


def chosen_words(panel: Panel) -> pd.DataFrame:
    """The rows of `shared_tokens` that are scored, by the rule that stands at the top."""
    tokens = shared_tokens(panel)
    terms = lexicons.identity_terms()
    listed = {*terms["term"], *terms["control"], *lexicons.agency_communion()["word"]}
    is_listed = tokens["word"].isin(listed)
    others = tokens[~is_listed & tokens["word"].str.isalpha() & (tokens["word"].str.len() > 1)]
    others = others.assign(folded=others["word"].str.lower(), frequency=lexicons.zipf(others["word"]))
    others = others.assign(is_capital=others["word"] != others["folded"])
    others = others.sort_values(["is_capital", "word"]).drop_duplicates("folded")
    others = others[(others["frequency"] > 0) & ~others["folded"].isin(tokens.loc[is_listed, "word"].str.lower())]
    others = others.sort_values(["frequency", "word"], ascending=[False, True])
    chosen = pd.concat([tokens[is_listed], others[: COUNT - is_listed.sum()]])
    return chosen[["word", *MODELS]].sort_values("word", ignore_index=True)


def words_path() -> Path:
    """The file of the chosen words."""
    return panel_directory(load_panel("demo"), "carriers") / "words.tsv"


def write_words(panel: Panel) -> None:
    """Write the chosen words, beside which the tables of the demo panel's models will lie."""
    chosen_words(panel).to_csv(words_path(), sep="\t", index=False)


def ids_of_words(panel: Panel, model: str) -> list[int]:
    """The ids of those of the chosen words that are a token of a model's vocabulary, a blank before it, ascending."""
    words = pd.read_csv(words_path(), sep="\t", keep_default_na=False)["word"]
    tokens = read_scores(panel, model, "greatest")
    tokens = tokens[(tokens["kind"] == "word_start") & tokens["token"].isin(" " + words)]
    return sorted(tokens.drop_duplicates("token")["token_id"].tolist())


def scan(panel: Panel, model: str, extent: str = "words", *names: str) -> None:
    """Score words, or the whole vocabulary, in carriers, and add each carrier's column to the model's table.

    A carrier that the table has already is not scored again: interrupted, the same command goes on with the next one.

    Parameters
    ----------
    model
        A model of the panel.
    extent
        ``words`` or ``whole``.
    names
        Question and carrier, as ``greatest.plain``. Default: all.
    """
    output = carriers.table_path(panel, model, extent == "whole")
    rm = rmnb.load_reward_model(model, panel=panel)
    table, provenance = read_table(output) if output.exists() else (pd.DataFrame(), {"rewards": {}})
    if len(table):
        refuse_other(output, provenance, describe_model(rm))
    ids = ids_of_words(panel, model) if extent == "words" else None
    for name, carrier in carriers.sentences().iterrows():
        if name in table or (names and name not in names):
            continue
        prompt = panel.prompt(carrier["question"])
        scanned = rmnb.scan_vocabulary(rm, prompt, answer=carrier["text"], ids=ids)
        if not len(table):
            table["token_id"] = scanned["token_id"]
        if not table["token_id"].equals(scanned["token_id"]):
            raise InputError(f"{output} is of other tokens: delete it")
        made = dict(scanned.attrs["provenance"])
        of_carrier = {key: made.pop(key) for key in OF_CARRIER}
        table[name], scale = on_16_bits(scanned["score"])
        provenance = {**made, "prompt_key": None, "rewards": {**provenance["rewards"], name: {**scale, **of_carrier}}}
        write_table(output, table, provenance)
        print(model, name, len(table), flush=True)


def on_16_bits(rewards: pd.Series) -> tuple[pd.Series, dict[str, float]]:
    """Rewards in 65,536 equal steps from the lowest to the highest (uint16), and these: low, step."""
    rewards = rewards.astype(float)
    low = rewards.min()
    step = (rewards.max() - low) / np.iinfo(np.uint16).max
    return ((rewards - low) / step).round().astype(np.uint16), {"low": low, "step": step}


def answers_directory(panel: Panel) -> Path:
    """Where rewards of held-out answers are kept, and, as ``contents``, what words these hold."""
    return panel_directory(panel, "carriers") / "answers"


def held_out_answers() -> pd.DataFrame:
    """Distinct answers to each prompt, where there are two or more: prompt (str or messages), answer.

    Of sets whose licence lets what they hold be passed on: which words an answer has is shipped.
    """
    pairs = []
    for source in SOURCES:
        judged = preferences.preference_pairs(source)
        pairs.append(judged[judged["prompt"].map(is_prompt_held_out)])
    judged = pd.concat(pairs, ignore_index=True)
    judged = judged[preferences.pair_bytes(judged) <= preferences.AUTO_J_BYTES]
    answers = judged.melt("prompt", ["chosen", "rejected"], value_name="answer")
    return answers.loc[~answers[["prompt", "answer"]].astype(str).duplicated(), ["prompt", "answer"]]


def contents(panel: Panel) -> None:
    """Write what the held-out answers hold: prompt (its number), length in words, and for each word whether it occurs.

    The words are those that all models of the panel have scored in sentences, if at least `OFTEN` answers have them.
    """
    tokens = [table["token"].str.strip() for table in carriers.load_carriers(panel, panel.models).values()]
    answers = held_out_answers()
    texts = answers["answer"].str.lower().str.replace("’", "'").str.findall(r"[a-z]+(?:'[a-z]+)?")
    counts = texts.map(set).explode().value_counts()
    words = sorted(set(counts.index[counts >= OFTEN]).intersection(*tokens))
    table = pd.DataFrame({"prompt": pd.factorize(answers["prompt"].astype(str))[0], "length": texts.str.len()})
    occurs = pd.DataFrame({word: [word in text for text in texts] for word in words}, answers.index)
    table = pd.concat([table, occurs], axis="columns").astype({"prompt": "int16", "length": "int16"})
    write_table(answers_directory(panel) / "contents.parquet", table, {"texts_sha256": content_sha256(answers)})


def score_answers(panel: Panel, *models: str) -> None:
    """Score the held-out answers with models of the panel; interrupted, the same command goes on where it stopped."""
    answers = held_out_answers()
    for model in models:
        rm = rmnb.load_reward_model(model, panel=panel)
        path = answers_directory(panel) / f"{model}.parquet"
        plan = {**describe_model(rm), "texts_sha256": content_sha256(answers)}
        with kept(path, plan, read_table) as work:
            if work.finished is None:
                work.begin(note_model(rm))
                rewards = rm.score(answers["prompt"].tolist(), answers["answer"].tolist(), work=work)
                write_table(path, pd.DataFrame({"reward": rewards}), work.provenance)
        print(model, len(answers), flush=True)


if __name__ == "__main__":
    panel, command, *arguments = sys.argv[1:]
    commands = {"words": write_words, "scan": scan, "answers": score_answers, "contents": contents}
    commands[command](load_panel(panel), *arguments)

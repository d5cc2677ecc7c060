"""Words in carriers (`rmnb/panels/carriers/demo.yml`): which words, and their rewards by each model.

carriers.py words
carriers.py scan smollm2-values
carriers.py scan smollm2-values whole greatest.plain greatest.not

`words` chooses six thousand tokens by one rule. Of the tokens that begin a word, a blank before it, and that both
vocabularies of the demo panel have:

1. those that are spelled as a word of the project's lists: identity terms, their controls, nouns of agency and
   communion;
2. then the most frequent English words of two letters or more (wordfreq), equally frequent ones in alphabetical order;
   one spelling a word: in small letters if both vocabularies have it so, else the first other spelling by code point.

`scan` writes one table a model: token_id, and for each question and carrier a column of 16 bits, named
``greatest.plain``. A reward is ``low + step * number``, `low` and `step` being in the table's provenance.
"""

import sys

import pandas as pd

import rmnb
from rmnb.data import lexicons
from rmnb.files import cache_dir
from rmnb.findings import carriers
from rmnb.panels import Panel, load_panel
from rmnb.scoring.store import panel_directory, read_scores

COUNT = 6000
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


def write_words(panel: Panel) -> None:
    """Write the chosen words, beside which the tables of the models will lie."""
    path = panel_directory(panel, "carriers") / "words.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen_words(panel).to_csv(path, sep="\t", index=False)


def scan(panel: Panel, model: str, extent: str = "words", *names: str) -> None:
    """Score words, or the whole vocabulary, in carriers, and write the model's table.

    What is scored is kept in the cache: interrupted, the same command goes on where it stopped.

    Parameters
    ----------
    model
        A model of the panel.
    extent
        ``words`` or ``whole``.
    names
        Question and carrier, as ``greatest.plain``. Default: all.
    """
    output = panel_directory(panel, "carriers") / f"{model}{'.whole' if extent == 'whole' else ''}.parquet"
    rm = rmnb.load_reward_model(model, panel=panel)
    ids = None
    if extent == "words":
        words = pd.read_csv(output.parent / "words.tsv", sep="\t", keep_default_na=False)
        ids = sorted(words[panel.model(model).base].tolist())
    rewards = pd.DataFrame()
    provenance = {}
    scanned = {}
    for carrier in carriers.sentences().itertuples():
        name = str(carrier.column)
        if names and name not in names:
            continue
        path = cache_dir() / "carriers" / extent / model / f"{name}.parquet"
        prompt = panel.prompt(str(carrier.question))
        table = rmnb.scan_vocabulary(rm, prompt, path, answer=str(carrier.text), ids=ids)
        provenance = dict(table.attrs["provenance"])
        scanned[name] = {key: provenance.pop(key) for key in OF_CARRIER}
        rewards["token_id"], rewards[name] = table["token_id"], table["score"]
        print(model, name, len(table), flush=True)
    carriers.write_carriers(output, rewards, {**provenance, "prompt_key": None}, scanned)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"words": write_words, "scan": scan}[command](load_panel("demo"), *arguments)

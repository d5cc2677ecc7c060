"""Every notebook is stripped and checked for its parameters; every chapter runs on a panel with a planted truth."""

import ast
import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from planted_site import with_hostile

from rmnb.book.notebook import run_notebook
from rmnb.data.lexicons import afinn, agency_communion, identity_terms
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.errors import InputError
from rmnb.findings import people
from rmnb.panels import load_panel, load_prompts
from rmnb.planted.rewards import PlantedEffects, planted_panel, spell, word_features
from rmnb.scoring import list_scores, store
from rmnb.training.runs import trajectory_path

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SEARCHED = next(path for path in NOTEBOOKS if path.stem == "08_sequences")  # reads searches, which take hours
CHAPTERS = [path for path in NOTEBOOKS if path.name[0].isdigit() and path != SEARCHED]
MODELS = {"one-a": "one", "one-b": "one", "other-a": "other", "other-b": "other"}
#: Of each exercise a wrong answer and the right one, written in the chapter's own names.
ANSWERS = {
    "ex-scale": ("{'mean'}", "changed"),
    "ex-words": ("min(errors, key=errors.get)", "max(errors, key=errors.get)"),
    "ex-convex": ("dict.fromkeys(answer, 'down')", "found"),
    "ex-groups": ("'nobody'", "clear"),
    "ex-deaf": ("dict.fromkeys(answer, 0)", "expected"),
    "ex-pairs": ("0.81", "share_kept"),
    "ex-frequency-scale": ("dict.fromkeys(answer, True)", "{number: 'raw' in number for number in answer}"),
    "ex-frequency-control": ("'length'", "'token id'"),
    "ex-frequency-cluster": ("9", "errors['word'] / errors[None]"),
    "ex-identity-striking": ("0.05", "1 - 0.95**8"),
    "ex-identity-controls": ("'beside'", "'below' if gap_to_all < 0 else 'above'"),
    "ex-identity-position": ("0", "495"),
    "ex-elo-ties": ("0", "1"),
    "ex-elo-guest": ("'neither'", "'towards zero'"),
    "ex-elo-reliability": ("0.3", "0.5"),
    "ex-agency-unit": (
        "dict.fromkeys(answer, -1)",
        "{unit: (null.loc[null['quantity'] == quantities[unit], 'value'] < 0.05).sum() for unit in answer}",
    ),
    "ex-agency-recipes": ("4", "8"),
    "ex-sequences-double": ("'stays'", "truth"),
    "ex-sequences-budget": ("1000", "693"),
    "training-1": ("dict.fromkeys(answer, 2)", "dict.fromkeys(answer, expected)"),
    "training-2": ("dict.fromkeys(answer, 4)", "dict(zip(answer, (2, 1)))"),
}
_TRIAL = """def attempt(answer):
    try:
        exec(check, globals() | {{"answer": answer}})
    except AssertionError as hint:
        return str(hint)
    return "passes"


check = {check!r}
print([attempt({wrong}), attempt({right})])
"""


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """The path of a panel of four models whose scores are planted, over a vocabulary with hostile tokens."""
    directory = tmp_path_factory.mktemp("planted")
    prompts = {"greatest": "positive", "best": "positive", "worst": "negative"}
    description = {
        "name": "planted",
        "title": "Planted panel",
        "scores": str(directory / "scores"),
        "models": [{"name": name, "source": f"nowhere/{name}", "family": base} for name, base in MODELS.items()],
        "prompts": [{"key": key, "text": f"What is the {key} thing?", "framing": f} for key, f in prompts.items()],
    }
    path = directory / "planted.yml"
    path.write_text(yaml.safe_dump(description))
    pairs = identity_terms().query("axis == 'religion' and term.str.isalpha() and control.str.isalpha()")
    words = [*afinn()["word"].iloc[::8], *pairs["term"].str.casefold(), *pairs["control"].str.casefold()]
    vocabulary = with_hostile(spell(dict.fromkeys([*words, *agency_communion()["word"]])))
    effects = PlantedEffects(valence_positive=0.6, valence_negative=0.4, shared_word_sd=0.5, word_sd=0.5, skewness=0.8)
    loaded = load_panel(path)
    for model, table in planted_panel(word_features(vocabulary), effects, MODELS, prompts, seed=1).items():
        for prompt in prompts:
            scan = table[["token_id", "token", "kind"]].assign(score=table[prompt].astype(np.float32))
            where = {"model": model, "prompt_key": prompt, "prompt": loaded.prompt(prompt).text, "protocol": "exact"}
            store.write_scores(loaded, scan, {**where, "tokenizer_sha256": "planted"})
    for model in MODELS:
        asked = {prompt.framing: prompt.key for prompt in load_prompts("iclr2026")}
        _score_list(trajectory_path(loaded, model), ("afinn", "agency_communion"), "0124")
        words = list_scores.list_path(loaded, model, "words")
        _score_list(words, ("identity", "agency_communion"), asked.values())
        with contextlib.suppress(UnreachableError):
            _score_list(list_scores.list_path(loaded, model, "elo"), ("elo",), people.QUESTIONS)
    return path


def _score_list(path, parts, columns):
    scored = {column: _learner(place) for place, column in enumerate(columns)}
    list_scores.score_columns(path, TextList(path.stem, parts, ()), scored, {})


def _learner(step):
    """Scores of a model that comes to like positive words as it learns."""
    valence = afinn().set_index("word")["valence"].to_dict()

    def score(words):
        noise = np.random.default_rng(step).normal(size=len(words))
        return np.array([step * valence.get(word, 0) for word in words] + noise, dtype=np.float32)

    return score


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped_take_parameters_and_describe_every_figure(path):
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "run `pre-commit run nbstripout`"
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    for cell in code:
        if re.search(r"plt\.(subplots|figure)\(|figures\.dot_chart\(", cell.source):
            shown = cell.metadata.get("mystnb", {})
            assert shown.get("figure", {}).get("caption") and shown.get("image", {}).get("alt"), cell.source


def with_trials(path: Path) -> nbformat.NotebookNode:
    """A chapter that, behind the check of each exercise, tries a wrong and the right answer."""
    notebook = nbformat.read(path, 4)
    label, cells = "", []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            gates = re.findall(r"^```\{exercise-(?:start\}.*\n:label: *(\S+)|end\})", cell.source, re.MULTILINE)
            label = gates[-1] if gates else label
        elif label and "assert" in cell.source:
            wrong, right = ANSWERS[label]
            cell.metadata["exercise"] = label
            cells.append(nbformat.v4.new_code_cell(_TRIAL.format(check=cell.source, wrong=wrong, right=right)))
            cells[-1].metadata["trial"] = label
    notebook.cells = cells
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_run_on_any_panel_and_their_exercises_check_themselves(path, panel, tmp_path, monkeypatch):
    if path.stem == "06_elo" and not list_scores.list_path(load_panel(panel), next(iter(MODELS)), "elo").exists():
        pytest.skip("the names of things cannot be reached")
    monkeypatch.chdir(tmp_path)
    notebook = with_trials(path)
    declared = next(cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    given = {"panel": str(panel), "n_boot": 20}
    taken = {name: value for name, value in given.items() if re.search(rf"^{name}\b", declared, re.M)}
    nbformat.write(notebook, path.name)
    executed = nbformat.read(run_notebook(Path(path.name), Path("out.ipynb"), taken), 4)

    here = pd.read_csv(f"results/{path.stem[3:]}.csv").query("source == 'panel'")
    assert set(MODELS) <= set(here["model"]) and here["low"].notna().any()
    shown = {"exercise": {}, "trial": {}}
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/html", ""))
            assert "<script" not in text and "\u202e" not in text
            if "remove-stderr" not in cell.metadata.get("tags", []):
                assert output.get("name") != "stderr", output.text
        for state in set(shown) & set(cell.metadata):
            shown[state][cell.metadata[state]] = "".join(output.get("text", "") for output in cell.outputs)
    assert len(shown["trial"]) >= 2
    for label, tried in shown["trial"].items():
        assert "eplace" in shown["exercise"][label], label
        wrong, right = ast.literal_eval(tried.splitlines()[-1])
        assert len(wrong) > 10 and right == "passes", (label, wrong, right)


@pytest.mark.slow
def test_a_panel_that_was_not_searched_is_told_so_in_one_line(panel, tmp_path):
    with pytest.raises(InputError, match="no model of panel 'planted' has been searched"):
        run_notebook(SEARCHED, tmp_path / "out.ipynb", {"panel": str(panel)})


def test_the_exercises_on_sequences_check_themselves(capsys):
    names = {"np": np, "question": SimpleNamespace(text=""), "rm": SimpleNamespace(score=lambda *_: [1.0, 0.5])}
    tried = 0
    for cell in with_trials(SEARCHED).cells:
        if {"exercise", "trial"} & set(cell.metadata) or cell.source.startswith("answer ="):
            exec(cell.source, names)
            said = capsys.readouterr().out
            assert "exercise" not in cell.metadata or "eplace" in said
            if "trial" in cell.metadata:
                wrong, right = ast.literal_eval(said.splitlines()[-1])
                assert len(wrong) > 10 and right == "passes", said
                tried += 1
    assert tried == 2

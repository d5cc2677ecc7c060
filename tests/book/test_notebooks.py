"""Every notebook is stripped and checked for its parameters; every chapter runs on a panel with a planted truth."""

import ast
import contextlib
import functools
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from notebook_files import NOTEBOOKS, shown
from planted_panels import planted_panel
from planted_site import with_hostile, write_panel, write_scans

from rmnb.book.notebook import run_notebook
from rmnb.data import list_scores
from rmnb.data.lexicons import agency_communion, identity_terms
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.findings import carriers, people, policy
from rmnb.findings.tables import afinn
from rmnb.panels import load_panel, load_prompts
from rmnb.planted.rewards import PlantedEffects, spell, word_features
from rmnb.scoring import store
from rmnb.scoring.store import write_table
from rmnb.training.runs import trajectory_path

SEARCHED = next(path for path in NOTEBOOKS if path.stem == "08_sequences")  # reads searches, which take hours
TRAINED = next(path for path in NOTEBOOKS if path.stem == "10_policy")  # reads what a base says, and trainings
REPEATED = next(path for path in NOTEBOOKS if path.stem == "12_follows")  # reads recipes that were trained on two bases
CHAPTERS = [path for path in NOTEBOOKS if path.name[0].isdigit() and path not in (SEARCHED, TRAINED, REPEATED)]
MODELS = {"one-a": "one", "one-b": "one", "other-a": "other", "other-b": "other"}
FRAMINGS = {"greatest": "positive", "best": "positive", "worst": "negative"}
#: Of each exercise a wrong answer and the right one, written in the chapter's own names.
ANSWERS = {
    "ex-scale": ("{'mean'}", "changed"),
    "ex-words": ("min(errors, key=errors.get)", "max(errors, key=errors.get)"),
    "ex-convex": ("dict.fromkeys(answer, 'down')", "changes"),
    "ex-groups": ("'nobody'", "clear[0]"),
    "ex-deaf": ("dict.fromkeys(answer, 0)", "expected"),
    "ex-pairs": ("0.81", "share_kept"),
    "ex-frequency-scale": ("dict.fromkeys(answer, True)", "{number: 'raw' in number for number in answer}"),
    "ex-frequency-control": ("'length'", "'token id'"),
    "ex-identity-striking": ("0.05", "1 - 0.95**8"),
    "ex-identity-controls": ("'beside'", "'below' if gap_to_all < 0 else 'above'"),
    "ex-elo-ties": ("0", "1"),
    "ex-elo-guest": ("'neither'", "'towards zero'"),
    "ex-agency-unit": (
        "dict.fromkeys(answer, -1)",
        "{unit: (null.loc[null['quantity'] == quantities[unit], 'value'] < 0.05).sum() for unit in answer}",
    ),
    "ex-agency-recipes": ("4", "8"),
    "ex-sequences-double": ("'stays'", "truth"),
    "ex-sequences-budget": ("1000", "693"),
    "ex-policy-louder": ("1", "0"),
    "ex-policy-last": ("np.log(0.04)", "-np.log(0.04)"),
    "ex-follows-budget": ("(4 + 1) / 16", "0.5625"),
    "ex-follows-half": ("2", "4"),
    "ex-travel-not": ("1", "0"),
    "ex-travel-length": ("'leave'", "'raise'"),
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
    loaded = write_panel(directory, MODELS, FRAMINGS)
    pairs = identity_terms().query("axis == 'religion' and term.str.isalpha() and control.str.isalpha()")
    words = [*afinn().index[::8], *pairs["term"].str.casefold(), *pairs["control"].str.casefold()]
    vocabulary = with_hostile(spell(dict.fromkeys([*words, *agency_communion()["word"]])))
    effects = PlantedEffects(valence_positive=0.6, valence_negative=0.4, shared_word_sd=0.5, word_sd=0.5, skewness=0.8)
    tables = planted_panel(word_features(vocabulary), effects, MODELS, FRAMINGS, seed=1)
    write_scans(loaded, tables, tokenizer_sha256="planted")
    answers = _write_answers(loaded, vocabulary)
    for model, table in tables.items():
        _write_carriers(loaded, model, table[table["kind"] == "word_start"])
        rewards = np.random.default_rng(0).normal(size=answers).astype(np.float32)
        path = store.panel_directory(loaded, "carriers") / f"answers/{model}.parquet"
        write_table(path, pd.DataFrame({"reward": rewards}), {"texts_sha256": "planted"})
    for model in MODELS:
        asked = {prompt.framing: prompt.key for prompt in load_prompts("iclr2026")}
        _score_list(trajectory_path(loaded, model), ("afinn", "agency_communion"), "0124")
        words = list_scores.list_path(loaded, model, "words")
        _score_list(words, ("identity", "agency_communion"), asked.values())
        with contextlib.suppress(UnreachableError):
            _score_list(list_scores.list_path(loaded, model, "elo"), ("elo",), people.QUESTIONS)
    return directory / "planted.yml"


def _write_carriers(loaded, model, table):
    """A model that reads each sentence as it reads the word alone, a little differently each time."""
    rng = np.random.default_rng(0)
    numbers = table[["token_id"]].copy()
    described = {}
    for column, carrier in carriers.sentences().iterrows():
        asked = loaded.prompt(carrier["question"])
        rewards = 3e4 + 1e3 * (table[asked.key] + rng.normal(size=len(table)))
        numbers[column] = rewards.astype(np.uint16)
        described[column] = {"low": 0, "step": 1e-3, "prompt": asked.text, "answer": carrier["text"]}
    read = loaded.model(model).model_dump(include={"read", "softcap", "dtype"})
    provenance = read | {"model": model, "history": [], "protocol": "exact", "rewards": described}
    write_table(store.panel_directory(loaded, "carriers") / f"{model}.parquet", numbers, provenance)


def _write_answers(loaded, vocabulary):
    """Two answers to each of 40 prompts; how many answers there are."""
    rng = np.random.default_rng(1)
    words = vocabulary.loc[vocabulary["kind"] == "word_start", "token"].str.strip().unique()[:12]
    contents = pd.DataFrame({"prompt": np.arange(80) // 2, "length": rng.integers(1, 60, 80)})
    for word in words:
        contents[word] = rng.random(80) < contents["length"] / 80
    path = store.panel_directory(loaded, "carriers") / "answers/contents.parquet"
    write_table(path, contents, {"texts_sha256": "planted"})
    return len(contents)


def _score_list(path, parts, columns):
    scored = {column: functools.partial(_score, step=step) for step, column in enumerate(columns)}
    list_scores.score_columns(path, TextList(path.stem, parts, ()), scored, {}, {})


def _score(words, step):
    """Scores of a model that comes to like positive words as it learns."""
    noise = np.random.default_rng(step).normal(size=len(words))
    return (step * pd.Series(words).map(afinn()).fillna(0) + noise).to_numpy(np.float32)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped_take_parameters_and_describe_every_figure(path):
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "run `pre-commit run nbstripout`"
    [parameters] = [cell.source for cell in code if "parameters" in cell.metadata.get("tags", [])]
    names = set()
    for node in ast.walk(ast.parse(parameters)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    assert names == set(papermill.inspect_notebook(str(path)))  # which does not read `good, bad = ...`
    for cell in code:
        if re.search(
            r"(plt\.(subplots|figure)|sns\.(lm|rel|cat|dis)plot|figures\.dot_chart|\.(plot|hist))\(", cell.source
        ):
            described = cell.metadata.get("mystnb", {})
            assert described.get("figure", {}).get("caption") and described.get("image", {}).get("alt"), cell.source


def with_trials(path: Path) -> nbformat.NotebookNode:
    """A chapter in which the check of each exercise then tries a wrong and the right answer."""
    notebook = nbformat.read(path, 4)
    label = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            gates = re.findall(r"^```\{exercise-(?:start\}.*\n:label: *(\S+)|end\})", cell.source, re.MULTILINE)
            label = gates[-1] if gates else label
        elif label and "assert" in cell.source:
            wrong, right = ANSWERS[label]
            cell.metadata["exercise"] = label
            cell.source += "\n" + _TRIAL.format(check=cell.source, wrong=wrong, right=right)
    return notebook


def assert_tried(output: str) -> None:
    """A check asks for an answer, refuses the wrong one with a hint and takes the right one."""
    unanswered, _, tried = output.rstrip().rpartition("\n")
    wrong, right = ast.literal_eval(tried)
    assert "eplace" in unanswered and len(wrong) > 10 and right == "passes", output


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_run_on_any_panel_and_their_exercises_check_themselves(path, panel, tmp_path, monkeypatch):
    if (
        path.stem in {"05_identity", "06_elo"}
        and not list_scores.list_path(load_panel(panel), next(iter(MODELS)), "elo").exists()
    ):
        pytest.skip("the names of things cannot be reached")
    monkeypatch.chdir(tmp_path)
    notebook = with_trials(path)
    declared = next(cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    given = {"panel": panel} | {name: 20 for name in ("n_boot", "n_simulations") if name in declared}
    nbformat.write(notebook, path.name)
    executed = nbformat.read(run_notebook(Path(path.name), Path("out.ipynb"), given), 4)

    here = pd.read_csv(f"results/{path.stem[3:]}.csv").query("source == 'panel'")
    assert set(MODELS) <= set(here["model"]) and here["low"].notna().any()
    exercises = [cell for cell in executed.cells if "exercise" in cell.metadata]
    assert len(exercises) >= 2
    for cell in exercises:
        assert_tried(shown([cell]))
    page = shown(executed.cells)
    assert "<script" not in page and "\u202e" not in page


#: What the exercises of the chapters that are not run here use.
SEQUENCES = {"question": SimpleNamespace(text=""), "rm": SimpleNamespace(score=lambda *_: [1.0, 0.5])}
REWARDS = {"a": np.array([0, 1])}
POLICIES = {"graders": ["a"], "log_ref": np.log([0.5, 0.5]), "rewards": REWARDS, "policy": policy}


@pytest.mark.parametrize(
    ("path", "names"),
    [(SEARCHED, SEQUENCES), (TRAINED, POLICIES), (REPEATED, {})],
    ids=["sequences", "policies", "follows"],
)
def test_exercises_of_chapters_that_are_not_run_here_check_themselves(path, names, capsys):
    pairs = [pair for pair in itertools.pairwise(with_trials(path).cells) if "exercise" in pair[1].metadata]
    assert len(pairs) == 2
    for start, check in pairs:
        exec(f"{start.source}\n{check.source}", {"np": np, **names})
        assert_tried(capsys.readouterr().out)

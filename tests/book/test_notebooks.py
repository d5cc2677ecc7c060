"""Every notebook is stripped and checked for its parameters; every chapter runs on a panel with a planted truth."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml

from rmnb import stats
from rmnb.book.display import inline
from rmnb.book.notebook import run_notebook
from rmnb.data.lexicons import afinn, agency_communion, identity_terms
from rmnb.data.text_lists import TextList
from rmnb.errors import InputError
from rmnb.findings import released_rows, results
from rmnb.panels import load_panel
from rmnb.scoring import list_scores, store
from rmnb.training.runs import trajectory_path
from rmnb.truth.planted import PlantedEffects, planted_panel, spell

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
RELEASED = next(path for path in NOTEBOOKS if path.stem == "released")
CHAPTERS = [path for path in NOTEBOOKS if path.name[0].isdigit()]
MODELS = {"one-a": "one", "one-b": "one", "other": "other"}
HOSTILE = ["<script>alert(1)</script>", "$x$", "**b**", "\u202eevil", "\n\n", "漢", " " * 40, "</td>"]


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """The path of a panel of three models whose scores are planted, over a vocabulary with hostile tokens."""
    directory = tmp_path_factory.mktemp("planted")
    prompts = {"greatest": "positive", "worst": "negative"}
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
    vocabulary = spell(dict.fromkeys([*words, *agency_communion()["word"]]))
    strange = pd.DataFrame({"token": HOSTILE, "kind": "punctuation"})
    vocabulary = pd.concat([vocabulary.astype({"kind": str}), strange], ignore_index=True)
    vocabulary["token_id"] = np.arange(len(vocabulary), dtype=np.int32)
    vocabulary["kind"] = vocabulary["kind"].astype("category")
    effects = PlantedEffects(valence_positive=0.6, valence_negative=0.4, shared_word_sd=0.5, word_sd=0.5, skewness=0.8)
    loaded = load_panel(path)
    for prompt, scans in planted_panel(vocabulary, effects, MODELS, prompts, seed=1).items():
        for model, scan in scans.items():
            where = {"model": model, "prompt_key": prompt, "prompt": loaded.prompt(prompt).text, "protocol": "exact"}
            store.write_scores(loaded, scan, {**where, "tokenizer_sha256": "planted"})
    for model in MODELS:
        columns = {str(step): _learner(step) for step in (0, 1, 2, 4)}
        watched = TextList("training", ("afinn", "agency_communion"), ("greatest",))
        list_scores.score_columns(trajectory_path(loaded, model), watched, columns, {"model": model})
    return path


def _learner(step):
    """Scores of a model that comes to like positive words as it learns."""
    valence = afinn().set_index("word")["valence"].to_dict()

    def score(words):
        noise = np.random.default_rng(step).normal(size=len(words))
        return np.array([step * valence.get(word, 0) for word in words] + noise, dtype=np.float32)

    return score


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped_and_take_parameters(path):
    cells = nbformat.read(path, 4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "run `pre-commit run nbstripout`"
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_figure_has_a_caption_and_alternative_text(path):
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code" and re.search(
            r"plt\.(subplots|figure)\(|figures\.(two_columns|dot_chart|specification_curves)\(", cell.source
        ):
            shown = cell.metadata.get("mystnb", {})
            assert shown.get("figure", {}).get("caption"), cell.source
            assert shown.get("image", {}).get("alt"), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_unknown_parameter_stops_a_notebook_with_one_line(path, tmp_path):
    with pytest.raises(InputError, match=r"has no parameter 'pannel'; its parameters are: \w+") as raised:
        run_notebook(path, tmp_path / "out.ipynb", {"pannel": "demo"})
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def executed(panel, tmp_path_factory):
    """Runs each chapter once on the planted panel, in a directory of its own."""
    done: dict[Path, tuple] = {}
    given = {"panel": str(panel), "n_boot": 20}

    def run(path: Path):
        if path not in done:
            directory = tmp_path_factory.mktemp(path.stem)
            cells = nbformat.read(path, 4).cells
            declared = next(cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(directory)
                taken = {name: value for name, value in given.items() if re.search(rf"^{name}\b", declared, re.M)}
                run_notebook(path, directory / "out.ipynb", taken)
            done[path] = nbformat.read(directory / "out.ipynb", 4), directory / "results"
        return done[path]

    return run


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_run_on_any_panel_and_end_in_the_results_table(path, executed):
    _, directory = executed(path)
    table = results.read_results(directory)
    here = table[table["source"] == "panel"]
    assert set(MODELS) <= set(here["model"]) and set(here["panel"]) == {"planted"}
    assert here["ci_low"].notna().any()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_token_becomes_markup(path, executed):
    notebook, _ = executed(path)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/html", ""))
            assert "<script" not in text and "\u202e" not in text
            if "remove-stderr" not in cell.metadata.get("tags", []):
                assert output.get("name") != "stderr", output.text


def shown(path):
    """All that an executed notebook shows, as one text."""
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.get("name") == "stderr"], outputs
    return "".join(output.get("text", "") or output["data"].get("text/html", "") for output in outputs)


def test_released_data_stand_beside_the_published_numbers(mirror, executed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_notebook(RELEASED, tmp_path / "out.ipynb", {})
    elo = next(path for path in CHAPTERS if path.stem == "06_elo")
    table = results.read_results(executed(elo)[1])
    wide = results.side_by_side(table[table["finding"] == "elo"], "human_spearman").dropna(subset="published")
    assert len(wide) == 10 and (wide["published"] - wide["released"]).abs().max() <= 0.03
    correlations = table.query("statistic == 'human_spearman' and source == 'released' and model != ''")
    assert (correlations["ci_low"] < correlations["value"]).all() and len(correlations) == 30
    assert ">differs<" not in shown(tmp_path / "out.ipynb").replace("<th>differs<", "")


def test_a_finding_is_written_by_one_chapter(executed):
    written = [file.name for path in CHAPTERS for file in executed(path)[1].glob("*.csv")]
    assert len(set(written)) == len(written)


def test_the_page_on_released_data_is_whole_without_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    for scheme in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(scheme, "http://127.0.0.1:9")  # nobody listens there
    run_notebook(RELEASED, tmp_path / "out.ipynb")
    text = shown(tmp_path / "out.ipynb")
    assert text.count("admonition note") == 1 and inline(released_rows.STAND_IN) in text


def test_heterogeneity_prints_the_agreement_of_the_planted_scores(panel, executed):
    path = next(path for path in CHAPTERS if path.stem == "01_heterogeneity")
    table = results.read_results(executed(path)[1])
    rows = table[(table["statistic"] == "kendall_tau") & (table["source"] == "panel")]
    assert len(rows) == 3
    for row in rows.itertuples():
        x, y = (store.read_scores(panel, model, "greatest")["score"] for model in (row.model, row.other))
        assert row.value == pytest.approx(stats.kendall_tau(x, y), abs=1e-12)
        assert row.ci_low < row.value < row.ci_high
    # Half of the planted scatter is shared, so the models agree, but not wholly.
    assert rows["value"].between(0.3, 0.9).all()

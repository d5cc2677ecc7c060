"""What is shipped of the authors' data is what their files say, the same with and without them, and holds no names."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.data.text_lists import part_texts
from rmnb.errors import InputError
from rmnb.files import data_dir
from rmnb.findings import asymmetry, framing, frequency, identity, people, released, released_rows, things
from rmnb.findings.rows import each
from rmnb.findings.tables import afinn, by_token, load_trajectories
from rmnb.panels import load_panel

SHIPPED = data_dir() / "released"


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No mirror, no network, an empty cache."""
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.delenv("RMNB_DATA_MIRROR", raising=False)
    monkeypatch.setattr(sources, "RAW_URL", "http://127.0.0.1:9/{path}")
    monkeypatch.setattr(sources, "_BACK_OFF", 0.0)


@pytest.mark.parametrize("chapter", released_rows.COMPUTED)
def test_what_is_shipped_is_what_the_files_say(mirror, chapter):
    computed, shipped = released_rows.COMPUTED[chapter][0](), released.load_released(chapter)
    pd.testing.assert_frame_equal(computed, shipped, rtol=0, atol=1e-6, check_dtype=False)
    assert list(shipped) == released.COLUMNS and not shipped.duplicated(released.COLUMNS[:5]).any()


def test_every_number_shipped_or_printed_has_one_definition_and_no_definition_is_idle():
    shipped = pd.concat([released.load_released(chapter) for chapter in released_rows.COMPUTED])
    defined = pd.read_csv(Path(sources.__file__).parent / "lists" / "statistics.tsv", sep="\t")["quantity"]
    printed = released.load_published()
    assert defined.is_unique and set(defined) == {*shipped["quantity"], *printed["quantity"]}
    assert (printed["tolerance"] >= 0).all() and len(printed.query("quantity == 'kendall_tau'")) == 45
    with pytest.raises(InputError, match="choose one of agency_communion"):
        released.load_released("human_elo")


def test_what_is_shipped_holds_no_names_but_those_a_paper_prints(mirror):
    known, printed = set(preferences.elo_items()["name"]), set(released.load_published()["other"])
    assert set(released.load_released("elo")["other"]) & known <= printed
    assert set(pd.read_csv(SHIPPED / "human_elo.csv", keep_default_na=False)["name"]) - {""} <= printed


def test_provenance_names_each_file_by_its_content():
    record = json.loads((SHIPPED / "provenance.json").read_text())
    assert set(record["tables"]) == {path.name for path in SHIPPED.iterdir()} - {"provenance.json", "README.md"}
    pins = sources.pins()
    for files in record["tables"].values():
        assert files and files == {file: pins[file].blob_id for file in files}
    course = "iclr2026/data/reward_model_training/rank_results_uf_{}.csv"
    assert pins[course.format(13)].blob_id == pins[course.format(27)].blob_id != pins[course.format(54)].blob_id


def test_numbers_of_a_panel_need_no_names(mirror, request):
    """Votes, scores, facts, frequencies and trajectories with the authors' files, then without."""

    def measured():
        items, panel = released_files.human_elo(), load_panel("demo")
        ours = people.load_things(panel)
        return {
            "people": each(ours, people.agreement, [people.QUESTION], among="rated words"),
            "gaps": people.rank_gaps(ours, people.QUESTION).drop(columns="name"),
            "groups": identity.matched_things(items).drop(columns=["name", "matched_set"]),
            "facts": things.facts(items),
            "bnc": lexicons.bnc_lemmas().query("word.str.fullmatch('[a-z]+')").reset_index(drop=True),
            "followed": next(iter(load_trajectories(panel).values())).drop(columns="word"),
        }

    first = measured()
    request.getfixturevalue("nowhere")
    for name, table in measured().items():
        pd.testing.assert_frame_equal(first[name], table, check_dtype=False, obj=name)
    assert released_files.human_elo().attrs["shipped"]
    with pytest.raises(sources.UnreachableError):
        part_texts("elo")


def test_rank_gaps_have_the_figures_order_and_change_without_the_human_column(mirror):
    gaps = people.rank_gaps(people.authors_things(), people.QUESTION)
    ordered = gaps.sort_values("rank_gap_with_human")["name"].tolist()
    assert ordered[:2] == ["Fully Automated Luxury Communism", "Johan Cruyff"] and ordered[9] == "Boygenius"
    assert ordered[-3] == "Black people"
    assert gaps.sort_values("rank_gap")["name"].tolist()[-2] == "Black people"
    # The human column pulls the median towards the human rank, so the published gaps are too small.
    assert (gaps["rank_gap_with_human"].abs() <= gaps["rank_gap"].abs()).all()


def test_base_effect_is_clear_over_prompts_but_not_over_models():
    """The paper's test over 270 medians finds a difference; ten models cannot carry it."""
    table = released.load_released("agency_communion").set_index(["quantity", "other", "question"])["value"]
    assert table["base_difference_p_bonferroni", "agency", "positive"] < 0.01
    assert table["base_difference_p", "agency_less_communion", "positive"] == pytest.approx(55 / 210)
    assert table["base_effect_size", "agency", "positive"] == pytest.approx(0.42, abs=0.01)
    ends = released.load_released("training").query("quantity == 'base_gap_end'").set_index("other")["value"]
    assert ends["unified-27k"] == pytest.approx(100 * ((742.5 - 696) - (657.5 - 805)) / 1365)


SLOPES = {"A": (0.6, 0.3, 0.05), "B": (3.0, 3.0, 0.5), "C": (-0.5, -0.2, 0.0)}  # positive, negative, log frequency


@pytest.fixture
def vocabularies(tmp_path, monkeypatch):
    """Three tables in the authors' format, slopes known, with their traps: duplicates, "NA", missing scores."""
    counted = pd.DataFrame({"word": lexicons.afinn()["word"]})
    counted["per_million"] = np.round(10 ** (lexicons.zipf(counted["word"]) - 3)).astype(int)
    monkeypatch.setattr(lexicons, "bnc_lemmas", lambda: counted)
    words = lexicons.afinn().merge(counted, on="word").query("per_million > 0")
    table = pd.concat([words.assign(text=words["word"].map(change)) for change in (str, str.capitalize, str.upper)])
    rng, found = np.random.default_rng(0), {}
    for code, (positive, negative, log_frequency) in SLOPES.items():
        score = np.where(table["valence"] > 0, positive, negative) * table["valence"]
        score = score + log_frequency * np.log(table["per_million"]) + rng.normal(0, 0.01, len(table))
        fillers = [" spaced", "NA", "null", "nan", "twice", "twice", "ÃŁ", '"', "\n", "\r", f"only{code}"]
        csv = pd.DataFrame({"token_decoded": [*table["text"], *fillers]})
        csv["greatest"] = [*score, *range(len(fillers))]
        csv = csv.assign(token_id=csv.index, token_name="t", best=csv["greatest"] * 2, worst=-csv["greatest"])
        csv.loc[len(csv)] = ["unscored", np.nan, len(csv), "t", np.nan, np.nan]
        csv.to_csv(tmp_path / f"{code}.csv", index=False)
        found[code] = released_files.read_table(tmp_path / f"{code}.csv")
    return found


def test_full_vocabularies_keep_every_token_and_give_the_planted_numbers(vocabularies, monkeypatch):
    tokens = vocabularies["A"]["token"].tolist()
    assert {"NA", "null", "nan", " spaced", "\n", "\r", '"'} <= set(tokens) and "unscored" not in tokens
    kept = by_token(vocabularies["A"], vocabularies["A"][["best"]]).index
    assert "twice" not in kept and "NA" in kept
    monkeypatch.setattr(released_files, "vocabularies", lambda: vocabularies)
    authors = released.authors_tables("vocabularies")
    slopes = asymmetry.slopes(authors["C"], "greatest", afinn())
    # In the others frequency, which is planted too, leaks into the slope over valence.
    assert slopes["good"].value == pytest.approx(SLOPES["C"][0], abs=0.01)
    assert slopes["bad"].value == pytest.approx(SLOPES["C"][1], abs=0.01)
    # In the others the slope over valence has a kink, which the paper's model does not know.
    slope = frequency.published_slope(authors["B"], "greatest")["slope as published"]
    assert slope.value == pytest.approx(SLOPES["B"][2], abs=0.01)
    assert framing.turn(authors["A"], "best", "worst")["tau"].value == pytest.approx(-1)


def test_tables_of_another_format_are_named_and_all_ten_or_none_are_read(mirror, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("token_id,token,greatest\n0,a,1\n")
    with pytest.raises(InputError, match=r"scores.csv.*(token_decoded|best)"):
        released_files.read_table(path)
    with pytest.raises(InputError, match="cannot read"):
        released_files.read_table(tmp_path / "absent.csv")
    assert released_files.vocabularies() is None  # the mirror lacks the large files, which is no error

"""The verdicts on claims: the rule on numbers, and the whole way from results rows to a page, on planted panels."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rmnb.book.notebook import run_notebook
from rmnb.book.verdict_table import short_markdown, verdicts_html
from rmnb.findings import verdicts
from rmnb.findings.claims import READERS, claims
from rmnb.findings.evidence import Evidence, over_units
from rmnb.findings.quoting import plain
from rmnb.findings.results import Results, read_results
from rmnb.findings.verdicts import HOLDS, IN_PART, NOT_SHOWN, OTHER_WAY, OUT_OF_REACH, Support, verdict

FAMILY = {f"{base}-{at}": base.capitalize() for base in ("gemma", "llama") for at in range(5)}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [((0.1, 0.3), HOLDS), ((-0.3, -0.1), OTHER_WAY), ((-0.1, 0.3), NOT_SHOWN), ((math.nan, math.nan), OUT_OF_REACH)],
)
def test_the_interval_decides(interval, expected):
    assert verdict(Evidence(sum(interval) / 2, *interval, n=10)) == expected
    below = Evidence(-sum(interval) / 2, -interval[1], -interval[0], n=10)
    assert verdict(below, above=-math.inf, below=0.0) == expected


def test_without_a_number_and_of_one_model_nothing_is_judged():
    assert verdict(None) == OUT_OF_REACH
    assert verdict(over_units([0.4])) == OUT_OF_REACH and over_units([]) is None


@pytest.mark.parametrize(
    ("support", "every", "expected"),
    [
        (Support(agreeing=8), False, HOLDS),
        (Support(agreeing=7), False, IN_PART),
        (Support(agreeing=9), True, IN_PART),
        (Support(agreeing=10), True, HOLDS),
        (Support(specifications=10, same_sign=8, clear=5), False, HOLDS),
        (Support(specifications=10, same_sign=7, clear=7), False, IN_PART),
        (Support(specifications=10, same_sign=10, clear=4), False, IN_PART),
        (Support(bases=2), False, IN_PART),
        (Support(bases=3), False, HOLDS),
    ],
)
def test_what_a_claim_that_holds_takes_besides(support, every, expected):
    assert verdict(Evidence(0.2, 0.1, 0.3, n=10), support, every=every) == expected


def test_a_claim_about_a_range_fails_beyond_either_end():
    judged = [verdict(Evidence(x, x - 0.1, x + 0.1, n=10), above=0.0, below=0.7) for x in (-0.5, 0.0, 0.4, 0.65, 0.9)]
    assert judged == [OTHER_WAY, NOT_SHOWN, HOLDS, NOT_SHOWN, OTHER_WAY]


def test_an_interval_ends_where_its_number_can_go_no_further():
    few = over_units([10.0, 60.0])
    assert few is not None and few.ci_high > 100
    clipped = few.clipped(-100, 100)
    assert (clipped.value, clipped.ci_low, clipped.ci_high) == (35.0, -100, 100)
    one = over_units([0.4])
    assert one is not None and math.isnan(one.clipped(-1, 1).ci_low)


def test_a_test_over_models_stands_for_an_interval():
    found = [Evidence(0.5, math.nan, math.nan, n=10, p_value=p_value) for p_value in (0.014, 0.5, 0.99)]
    assert [verdict(one) for one in found] == [HOLDS, NOT_SHOWN, OTHER_WAY]


def planted(effect: float, scatter: float, models=tuple(FAMILY), source="panel") -> pd.DataFrame:
    """Rows of chapters in which every claim that is about models has the same truth."""
    rng, tables = np.random.default_rng(0), []
    protocol = "exact" if source == "panel" else "published"

    def of_models(finding, statistic, *, sign=1, other="", prompt="greatest"):
        results = Results(finding, "planted")
        noises = rng.normal(size=len(models))
        for model, noise in zip(models, noises - noises.mean(), strict=True):
            about = {"model": model, "other": other, "prompt": prompt, "protocol": protocol}
            results.add(source, statistic, sign * effect + scatter * noise, **about)
        tables.append(results.frame())

    of_models("heterogeneity", "skewness")
    of_models("asymmetry", "slope_difference_standardised")
    of_models("framing", "wording_spearman", other="adjective", prompt="")
    of_models("framing", "wording_spearman", other="framing", prompt="")
    of_models("frequency", "slope_log_frequency_standardised")
    of_models("identity", "identity_gap_things", sign=-1, prompt="elo_greatest")
    of_models("elo", "human_spearman", prompt="elo_greatest")
    of_models("sequences", "best_gain", other="max")
    return pd.concat(tables, ignore_index=True)


ABOUT_MODELS = ("skewed", "finer", "mirror", "frequent", "identity", "people", "sequences")


def judged(rows, source="panel", family=FAMILY):
    return {one.claim.key: one for one in verdicts.judge(rows, family) if one.source == source}


@pytest.mark.parametrize(
    ("effect", "scatter", "expected"), [(0.4, 0.05, HOLDS), (-0.4, 0.05, OTHER_WAY), (0, 0.2, NOT_SHOWN)]
)
@pytest.mark.parametrize("source", ["panel", "released"])
def test_a_planted_truth_is_judged_as_it_is(effect, scatter, expected, source):
    found = judged(planted(effect, scatter, source=source), source)
    assert {key: found[key].verdict for key in ABOUT_MODELS} == dict.fromkeys(ABOUT_MODELS, expected)
    elsewhere = judged(planted(effect, scatter, source=source), "panel" if source == "released" else "released")
    assert {one.verdict for one in elsewhere.values()} == {OUT_OF_REACH}


def test_of_one_model_everything_is_out_of_reach_and_the_number_is_said():
    found = judged(planted(0.4, 0.05, models=("gemma-0",)), family={"gemma-0": "Gemma"})
    assert {found[key].verdict for key in ABOUT_MODELS} == {OUT_OF_REACH}
    assert plain(found["skewed"].why).startswith("In one model, which has no interval, the mean skewness is 0.")


def test_two_models_have_an_interval():
    found = judged(planted(0.4, 0.001, models=("gemma-0", "llama-0")))
    assert found["skewed"].verdict == HOLDS and found["skewed"].found.n == 2


def agreement(same: float, different: float) -> pd.DataFrame:
    results = Results("heterogeneity", "planted")
    names = list(FAMILY)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            tau = same if FAMILY[one] == FAMILY[other] else different
            results.add("panel", "kendall_tau", tau, model=one, other=other, prompt="greatest", protocol="exact")
    for statistic, value in {"rsa_spearman": same - different, "rsa_p": 0.01}.items():
        results.add("panel", statistic, value, other="base", prompt="greatest", protocol="exact", n=len(names))
    return results.frame()


def test_agreement_is_judged_over_models_and_two_bases_are_too_few_to_hold():
    found = judged(agreement(0.4, 0.2))
    assert found["disagree"].verdict == HOLDS and found["base"].verdict == IN_PART
    assert "two bases cannot speak for others" in found["base"].why
    assert judged(agreement(0.9, 0.8))["disagree"].verdict == OTHER_WAY


def contrast(value, low, high) -> pd.DataFrame:
    results = Results("agency_communion", "planted")
    about = {"other": "agency_less_communion", "prompt": "positive", "protocol": "exact", "n": 10}
    results.add("panel", "base_difference", value, ci_low=low, ci_high=high, **about)
    return results.frame()


def test_gemma_and_llama_have_a_direction_and_other_bases_have_none():
    rows = contrast(-8.0, -12.0, -4.0)
    llama_first = dict(sorted(FAMILY.items(), reverse=True))
    assert judged(rows)["communion"].verdict == OTHER_WAY
    assert judged(rows, family=llama_first)["communion"].verdict == IN_PART
    others = {f"m{at}": base for at, base in enumerate(("SmolLM2", "SmolLM2", "Qwen", "Qwen"))}
    found = judged(rows, family=others)["communion"]
    assert found.verdict == IN_PART and found.found.contrast == "Qwen less SmolLM2" and found.found.value == 8
    assert judged(rows, family={"one": "Gemma"})["communion"].verdict == OUT_OF_REACH


def test_data_sets_are_counted_and_not_their_words():
    results = Results("training", "planted")
    for data, gap in {"mixed-quarter": 30.0, "mixed-half": 20.0, "mixed": 19.0, "values": 25.0}.items():
        about = {"model": "Llama less Gemma", "other": data, "prompt": "greatest_ever_one", "protocol": "exact"}
        results.add("panel", "base_gap_end", gap, ci_low=gap - 1, ci_high=gap + 1, n=112, **about)
    found = judged(results.frame())
    assert (found["same_data"].found.n, found["more_data"].found.n) == (4, 2)
    assert found["same_data"].verdict == OTHER_WAY and found["more_data"].verdict == OTHER_WAY
    assert found["more_data"].found.values == (-20.0, -19.0)


def test_specifications_of_the_chapter_count():
    rows = [planted(0.4, 0.05), *(_specifications(name, count) for name, count in (("same_sign", 36), ("clear", 3)))]
    found = judged(pd.concat(rows, ignore_index=True))["finer"]
    assert found.verdict == IN_PART and "other choices often say otherwise" in found.why


def _specifications(name, count):
    results = Results("asymmetry", "planted")
    results.add("panel", f"specifications_{name}", count, other="greatest", n=36)
    return results.frame()


def test_every_claim_has_a_reader_and_every_number_said_is_a_row(tmp_path):
    assert [claim.key for claim in claims()] == list(READERS) and len(READERS) == 14
    planted(0.4, 0.05).query("finding == 'asymmetry'").to_csv(tmp_path / "asymmetry.csv", index=False)
    chapters = verdicts.gather(tmp_path)
    found = verdicts.judge(chapters, FAMILY)
    rows, table = verdicts.rows(found), verdicts.table(found, chapters)
    assert len(table) == 14 and set(table["verdict_panel"]) == {HOLDS, OUT_OF_REACH}
    assert (table["verdict_released"] == HOLDS).sum() >= 5  # the shipped rows of the authors' data are always there
    known = {tuple(map(str, row)) for row in pd.concat([chapters, rows])[list(chapters.columns[:8])].to_numpy()}
    for text in [*table["published"], *table["why_released"], *table["why_panel"], *verdicts.sentences(rows)]:
        for key in [part.split("\x03")[0].split("\x1e")[:8] for part in text.split("\x1f")[1:]]:
            assert tuple(key) in known, key
    page, short = verdicts_html(table), short_markdown(verdicts.as_text(table))
    assert page.count("<tbody id=") == 14 and '<a href="02_asymmetry.html">' in page and "\x02" not in page
    assert short.count("\n") == 20 and "{doc}`" in short


def test_the_page_says_what_it_can_before_any_chapter_has_run(tmp_path):
    source = Path(__file__).parents[2] / "notebooks" / "verdicts.ipynb"
    run_notebook(source, tmp_path / "verdicts.ipynb")
    table = pd.read_csv(tmp_path / "verdicts.csv")
    assert len(table) == 14 and set(table["verdict_panel"]) == {OUT_OF_REACH}
    assert HOLDS in set(table["verdict_released"])
    written = read_results(tmp_path / "results")
    assert set(written["finding"]) == {"verdicts"} and "\x02" not in table.to_csv()

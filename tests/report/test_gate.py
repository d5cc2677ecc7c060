"""The gate that ships: another seed passes it, a change of six standard deviations between seeds does not."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from rmnb.files import data_dir
from rmnb.limits import check, read_limits
from rmnb.panels import load_panel
from rmnb.report import comparison, numbers, record, seeds

PANEL = load_panel("demo")
LIMITS = read_limits([ROOT / "examples" / "limits.yml"], {*numbers.glossary()["name"]})
KNOWN = numbers.known().query("panel == 'demo'")


def known_report(name):
    """A report of numbers alone: a limit without `low` or `high` reads no replicates."""
    measured = KNOWN[KNOWN["model"] == name]
    left_out = pd.DataFrame(np.nan, pd.MultiIndex.from_frame(measured[numbers.KEY]), range(20))
    return record.Report(name, False, measured, left_out, {"weights_sha256": name})


@pytest.mark.parametrize("pair", PANEL.seed_pairs, ids=" ".join)
def test_another_seed_passes_whatever_seeds_are_the_measure(pair):
    a, b = map(known_report, pair)
    others = [[known_report(name) for name in other] for other in PANEL.seed_pairs if other != pair]
    for measure in (others, *([other] for other in others)):
        table = comparison.compare(a, b, measure)
        assert not check(LIMITS, table)["broken"].any()


def test_the_shipped_limits_fail_one_unchanged_release_in_twenty_and_find_four_changed_ones_in_five():
    spec = importlib.util.spec_from_file_location("gates", ROOT / "benchmarks" / "gates.py")
    gates = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gates)
    known = pd.read_csv(data_dir() / "demo" / "noise" / "gates.csv").set_index("condition")
    assert {limit.text for limit in LIMITS} <= set(known.index)
    for limit in LIMITS:
        [row] = known.loc[[limit.text]].query("`pairs of seeds` == 2").to_dict("records")
        for world in ("as known", "other seeds"):
            assert row[f"fails, {world}"] <= 0.05 and row[f"finds, {world}"] >= 0.8
        again = gates.shares("as known", 2, 300).set_index("condition").loc[limit.text]
        for share in ("fails, as known", "finds, as known"):  # three standard errors
            assert again[share] == pytest.approx(row[share], abs=3 * (row[share] * (1 - row[share]) / 300) ** 0.5)


def test_noise_is_each_numbers_own_and_that_of_its_name():
    prior = seeds.of_panel().loc[["identity_gap"]]
    moderated, df = seeds.moderate(prior["variance"], 2, prior)
    assert moderated.to_numpy() == pytest.approx(prior["variance"].to_numpy())  # nothing new
    assert (df == seeds.PRIOR + 2 * prior["independent"]).all()
    first = prior.index[0]
    noisy = prior["variance"].copy()
    noisy[first] *= 10
    ratio, _ = seeds.moderate(noisy, 2, prior)
    ratio /= prior["variance"]
    assert ratio[first] > ratio.drop(first).max() > 1 and np.ptp(ratio.drop(first)) == pytest.approx(0)


@pytest.mark.parametrize(("shared", "count"), [(1.0, 1), (0.0, 6)])
def test_numbers_that_move_together_count_once(shared, count):
    rng = np.random.default_rng(0)
    own = rng.normal(size=(6, 4000))
    together = shared * own[0] + (1 - shared) * own
    assert seeds.independent(together) == pytest.approx(count, rel=0.05)

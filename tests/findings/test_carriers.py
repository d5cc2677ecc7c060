"""Does it travel: tables of words in carriers, and the estimators of chapter 11 on planted rewards."""

import sys

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from rmnb import stats
from rmnb.errors import InputError, LackError
from rmnb.findings import carriers
from rmnb.panels import load_panel
from rmnb.scoring.store import panel_directory, read_table, write_table

MODEL = "smollm2-values"


def test_sixteen_bits_leave_kendalls_tau_as_it_is(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "workflow")
    monkeypatch.delitem(sys.modules, "carriers", raising=False)
    from carriers import write_rewards  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(0)
    alone = rng.gamma(2, size=3000)
    rewards = pd.DataFrame(
        {"token_id": np.arange(3000, dtype=np.int32), "greatest.plain": alone + rng.gamma(1, 2, 3000)}
    )
    rewards["greatest.not"] = -1e3 * rewards["greatest.plain"] + 7
    path = tmp_path / "model.parquet"
    write_rewards(path, rewards, {}, {name: {} for name in rewards})
    numbers, provenance = read_table(path)
    for name in ("greatest.plain", "greatest.not"):
        scale = provenance["rewards"][name]
        read = scale["low"] + scale["step"] * numbers[name]
        assert np.abs(read - rewards[name]).max() <= 0.51 * scale["step"]
        taus = [stats.kendall_interval(alone, column).value for column in (read, rewards[name])]
        assert abs(taus[0] - taus[1]) < 1e-4


def test_a_word_has_its_own_reward_in_each_carrier_and_stale_tables_are_refused(tmp_path, monkeypatch):
    demo = load_panel("demo")
    shipped = panel_directory(demo, "carriers") / f"{MODEL}.parquet"
    numbers, provenance = read_table(shipped)
    monkeypatch.setattr(carriers, "panel_directory", lambda panel, kind: tmp_path)
    with pytest.raises(LackError, match=r"carriers\.py scan"):
        carriers.load_carriers(demo)

    write_table(tmp_path / shipped.name, numbers.iloc[::-1], provenance)  # in another order
    (table,) = carriers.load_carriers(demo).values()
    rewards = table.set_index("token")["greatest.plain"]
    golden = {" love": 8.395915, " people": 7.709754, " war": -3.512488}  # transformers' own, on whole sentences
    np.testing.assert_allclose(rewards[list(golden)], [*golden.values()], atol=1e-3)

    plain = provenance["rewards"]["greatest.plain"]
    for changed, line in (
        ({"weights_sha256": "other"}, "weights"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"rewards": {"greatest.plain": plain | {"answer": "It is {}."}}}, "answer"),
        ({"rewards": {"greatest.plain": plain | {"prompt": "What is it?"}}}, "prompt"),
        ({"rewards": {"greatest.shouted": plain}}, "answer"),
    ):
        write_table(tmp_path / shipped.name, numbers, provenance | changed)
        with pytest.raises(InputError, match=line):
            carriers.load_carriers(demo)

"""The token explorer's files say what the score store says; how large they are: tests/site."""

import gzip
import json
import math

import numpy as np
import pytest
from planted_site import HOSTILE, planted
from scipy.stats import rankdata

from rmnb.book import explorer
from rmnb.errors import InputError
from rmnb.findings.tables import load_scores
from rmnb.scoring import store
from rmnb.visible import visible


def numbers(path):
    """The page's way to read numbers: the i-th value has its k-th byte at k·n + i."""
    planes = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8).reshape(4, -1).astype(np.int64)
    return sum(plane << 8 * k for k, plane in enumerate(planes)).astype(np.uint32).view(np.int32)


def words(path):
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("ends", [(30, 30.00001), (-4e8, 4e8), (1e-9, 2e-9)])
def test_rewards_that_are_nearly_equal_or_far_from_zero_fit_into_their_numbers(ends):
    scores = np.linspace(*ends, 50, dtype=np.float32)
    scan = explorer.ranked("model", "prompt", scores)
    steps = np.diff(scan.reward[::-1].astype(np.int64), append=0)
    assert np.abs(steps).max() < 2**31
    unit = max(0.51 * 10.0**-scan.decimals, 1e-7 * np.abs(scores).max())
    assert np.abs(scan.reward * 10.0**-scan.decimals - scores.astype(float)).max() <= unit


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The planted panel, the directory of its files in blocks of 16 rows, its manifest."""
    directory = tmp_path_factory.mktemp("explorer")
    panel = planted(directory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "BLOCK", 16)
        path = explorer.write_explorer(panel, directory / "data")
    return panel, directory / "data", json.loads(path.read_text())


def test_every_scan_of_the_store_comes_back_with_its_ranks_and_rewards(written):
    panel, directory, manifest = written
    found = [(scan["model"], scan["prompt"]) for token_set in manifest["sets"][1:] for scan in token_set["scans"]]
    assert found == [(model, prompt.key) for model in panel.model_names for prompt in panel.scanned_prompts]
    for token_set in manifest["sets"]:
        folder = directory / token_set["key"]
        files = [folder / f"rows-{block}.bin" for block in range(math.ceil(token_set["tokens"] / 16))]
        rows = np.concatenate([numbers(file).reshape(len(token_set["scans"]), 2, -1) for file in files], axis=2)
        tokens = words(folder / "tokens.bin")["tokens"]
        for place, scan in enumerate(token_set["scans"]):
            truth = store.read_scores(panel, scan["model"], scan["prompt"])
            truth = truth.assign(rank=rankdata(-truth["score"].to_numpy(float), method="min"))
            if token_set["key"] == "shared":
                truth = truth.drop_duplicates("token").set_index("token", drop=False).loc[tokens]
            assert truth["token"].tolist() == tokens
            rank, steps = np.split(numbers(folder / scan["file"]), 2)
            assert (rank == truth["rank"]).all()
            by_rank, unit = np.cumsum(steps), 10.0 ** -scan["decimals"]
            order = np.argsort(rank, kind="stable")
            assert np.abs(by_rank * unit - truth["score"].to_numpy(float)[order]).max() <= 0.51 * unit
            assert (rows[place, 0] == rank).all() and (rows[place, 1][order] == by_rank).all()


def test_the_first_list_is_shared_by_all_models_and_hostile_tokens_arrive_whole(written):
    panel, directory, manifest = written
    assert manifest["sets"][0]["key"] == "shared"
    tokens = words(directory / "shared" / "tokens.bin")["tokens"]
    assert tokens == load_scores(panel, "best").index.tolist()
    text = words(directory / "0" / "tokens.bin")
    assert text["tokens"][: len(HOSTILE)] == HOSTILE
    shown = [text["shown"].get(str(row), token.replace(" ", "␣")) for row, token in enumerate(text["tokens"])]
    assert shown == [visible(token) for token in text["tokens"]]


def test_other_files_in_its_directory_are_not_deleted(written, tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match=r"thesis\.tex is no part of an explorer"):
        explorer.write_explorer(written[0], tmp_path)
    assert explorer.write_explorer(written[0], written[1]).exists()  # its own are replaced

"""Work that was interrupted goes on and ends bit-identical; of another plan, one line names the difference."""

import functools
import shutil

import numpy as np
import pytest
from checkpoints import edit, write_base
from filelock import FileLock, Timeout
from trained import write_adapter

import rmnb
from rmnb.data import list_scores
from rmnb.errors import InputError
from rmnb.files import atomic_path, exclusive
from rmnb.panels import Panel, PromptSpec
from rmnb.plans import Work
from rmnb.report import scores
from rmnb.scoring import scanning, store
from rmnb.scoring.logprobs import load_language_model, scan_logprobs
from rmnb.scoring.rows import score_file
from rmnb.searching import run
from rmnb.searching.config import SearchConfig
from rmnb.searching.rewards import RewardObjective

BEST, WORST = (PromptSpec(key=key, text=f"What is {key}?", framing="positive") for key in ("best", "worst"))


def scan(model, out, other):
    return rmnb.scan_vocabulary(load(model), BEST, out, **({"limit": 50} if other else {"ids": range(100, 150)}))[
        "score"
    ]


def scored_list(model, out, other):
    rm, prompts = load(model), [BEST, WORST] if other else [BEST]
    panel = Panel(name="tiny", title="Tiny", models=(rm.spec,), prompts=(BEST, WORST), scores=str(out.parent / "lists"))
    return store.read_table(list_scores.score_list(rm, panel, "words", prompts=prompts))[0]["best"]


def rows(model, out, other):
    content = [{"prompt": f"What is {i}?", "response": "other" if other else "love"} for i in range(40)]
    return score_file(load(model), content, out)["reward"]


def search(model, out, other):
    config = SearchConfig(length=2, steps=2, width=8, sample=16)
    found = run.search(RewardObjective([load(model)], [WORST if other else BEST]), config, output=out)
    return found.sequences["reward"]


def report(model, out, other):
    scores.score(load(model), out.with_name("report"), quick=not other)
    return scores.read(out.with_name("report")).table["greatest"]


def logprobs(model, out, other):
    return scan_logprobs(load_language_model(model / "base"), WORST if other else BEST, out)["score"]


def load(directory):
    return rmnb.load_reward_model(directory / "adapter", base=directory / "base")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A base that both a reward model's adapter and a language model are made of."""
    directory = tmp_path_factory.mktemp("model")
    base = write_base(directory / "base", rows=400)
    write_adapter(base, directory / "adapter")
    return directory


def other_merges(directory):
    for part in ("base", "adapter"):
        (directory / part / "merges.txt").write_text("a b\n")


def write_and_end(self, place, content):
    """As if killed once the first piece is written."""
    WRITE(self, place, content)
    raise KeyboardInterrupt


WRITE = Work.write


EDITS = {
    "config": lambda directory: edit(directory / "base" / "config.json", rms_norm_eps=0.1),
    "adapter": lambda directory: edit(directory / "adapter" / "adapter_config.json", lora_alpha=99),
    "tokenizer": other_merges,
}
NAMES = {"config": "config_sha256", "adapter": "config_sha256", "tokenizer": "tokenizer_sha256"}
WORKS = [report, scan, scored_list, rows, search, logprobs]
BEGUN = [(work, False) for work in WORKS[:-1]]  # log-probabilities are one pass
FINISHED = [(work, True) for work in WORKS[1:]]  # a report is scans and lists


@pytest.mark.parametrize(("work", "finished"), BEGUN + FINISHED)
def test_other_work_is_refused_in_one_line(work, finished, model, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "SHARD", 512 if work is report else 16)
    out, whole = tmp_path / "out.parquet", work(model, tmp_path / "whole" / "out.parquet", other=False)
    if finished:
        work(model, out, other=False)
    else:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Work, "write", write_and_end)
            work(model, out, other=False)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert before
    for what in ("plan", *(EDITS if work is scan else ["config"])):
        edited = tmp_path / what
        shutil.copytree(model, edited)
        if what != "plan":
            EDITS[what](edited)
        with pytest.raises(InputError, match=r"^\S+ holds other work: it differs in [^\n]+$") as refused:
            work(edited, out, other=what == "plan")
        if what != "plan":
            assert refused.value.about == NAMES[what]
        shutil.rmtree(edited)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    np.testing.assert_array_equal(work(model, out, other=False), whole)


def test_an_upgrade_of_a_library_changes_no_plan(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    edit(tmp_path / "model" / "base" / "config.json", transformers_version="9.0", _name_or_path="elsewhere")
    edit(tmp_path / "model" / "adapter" / "adapter_config.json", peft_version="9.0")
    assert load(tmp_path / "model").hashes["config_sha256"] == load(model).hashes["config_sha256"]


def test_a_scan_from_python_and_who_writes_a_file_keep_others_away(model, tmp_path, monkeypatch):
    def others_wait(*_):
        with pytest.raises(Timeout):
            FileLock(tmp_path / ".out.parquet.lock").acquire(timeout=0)
        return 64

    monkeypatch.setattr(scanning, "_batch_size", others_wait)
    rmnb.scan_vocabulary(load(model), BEST, tmp_path / "out.parquet", limit=50)
    with exclusive(tmp_path / "x"):
        with atomic_path(tmp_path / "x") as part:
            part.write_text("x")
        with pytest.raises(Timeout):  # who has written it within keeps it nevertheless
            FileLock(tmp_path / ".x.lock").acquire(timeout=0)
    assert {file.name for file in tmp_path.iterdir()} == {"x", "out.parquet"}


def test_a_scan_goes_on_with_the_batch_size_that_it_began_with(model, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "SHARD", 16)
    again = functools.partial(rmnb.scan_vocabulary, load(model), BEST, tmp_path / "out.parquet", limit=50)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Work, "write", write_and_end)
        again(batch_size=4)
    sizes, call = set(), scanning.PrefixScorer.__call__
    monkeypatch.setattr(
        scanning.PrefixScorer,
        "__call__",
        lambda self, ids, size, *more: sizes.add(size) or call(self, ids, size, *more),
    )
    assert again(batch_size=8).attrs["provenance"]["batch_size"] == 4 and sizes == {4}


def test_where_a_file_system_has_no_locks_work_goes_on(tmp_path, monkeypatch):
    def without_locks(*_, **__):
        raise NotImplementedError("FileSystem does not appear to support flock")

    monkeypatch.setattr(FileLock, "acquire", without_locks)
    with exclusive(tmp_path / "x"), atomic_path(tmp_path / "x") as part:
        part.write_text("x")
    assert (tmp_path / "x").read_text() == "x"

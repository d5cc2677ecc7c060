"""A panel that is scored in a cluster, and a log of what happened there."""

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkpoints import SHAPE, randomise, tokenizer
from cluster import MISSING, missing
from transformers import AutoModelForSequenceClassification, LlamaConfig

from rmnb.files import atomic_path

PROMPTS = ("best", "worst", "greatest")
_RECORDED: list[dict] = []


def pytest_addoption(parser):
    parser.addoption("--slurm", metavar="FILE", help="keep what happened, when, in this CSV file")


def pytest_collection_modifyitems(items):
    if absent := missing():
        pytest.exit(f"{MISSING} (there is no {', '.join(absent)})", returncode=2)


@pytest.fixture(scope="module")
def panel(tmp_path_factory) -> Callable[[Path], Path]:
    """``panel(directory)``: a panel of two tiny models and three prompts with a store of its own in the directory."""
    models = tmp_path_factory.mktemp("models")
    written = {name: _write_model(models / name, seed) for seed, name in enumerate(("one", "two"))}

    def write(directory: Path) -> Path:
        directory.mkdir(exist_ok=True)
        description = {
            "name": "tiny",
            "title": "Tiny panel",
            "scores": str(directory / "scores"),
            "models": [{"name": name, "source": str(source)} for name, source in written.items()],
            "prompts": [{"key": key, "text": f"What is the {key} thing?", "framing": "positive"} for key in PROMPTS],
        }
        path = directory / "panel.yml"
        path.write_text(yaml.safe_dump(description))
        return path

    return write


def _write_model(directory: Path, seed: int) -> Path:
    """A model of five shards a prompt, which are slow enough to be interrupted and quick enough for a busy machine."""
    wide = {"hidden_size": 256, "intermediate_size": 1024}
    words = tokenizer()
    model = AutoModelForSequenceClassification.from_config(LlamaConfig(**SHAPE | wide, vocab_size=5 * 1024))
    randomise(model, seed)
    model.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory


@pytest.fixture
def note(request, capsys) -> Callable[[str, str], None]:
    """``note(what, detail)``: say what happened and put it into the log."""
    begun = time.monotonic()
    where = {"test_slurm": "SLURM", "test_one_node": "two workers"}[request.module.__name__]

    def write(what: str, detail: str = "") -> None:
        _RECORDED.append(
            {"where": where, "seconds": round(time.monotonic() - begun), "what": what, "detail": detail},
        )
        with capsys.disabled():
            print(f"{where:>20} {_RECORDED[-1]['seconds']:4d} s  {what}: {detail}", flush=True)

    return write


def pytest_sessionfinish(session, exitstatus):
    if (file := session.config.getoption("--slurm")) and exitstatus == 0:
        with atomic_path(Path(file)) as path:
            pd.DataFrame(_RECORDED).to_csv(path, index=False)

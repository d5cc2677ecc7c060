"""What many tests need: the mirror of external data, where there is one, and a tiny model."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("all", unhurried)
settings.register_profile("fast", unhurried, max_examples=10)

_MIRROR = Path(__file__).parents[2] / "shared" / "mirror"
if "RMNB_DATA_MIRROR" not in os.environ and _MIRROR.is_dir():
    os.environ["RMNB_DATA_MIRROR"] = str(_MIRROR)


@pytest.fixture
def mirror() -> Path:
    """The directory of external data; the test is skipped where there is none."""
    directory = os.environ.get("RMNB_DATA_MIRROR")
    if not directory or not Path(directory).is_dir():
        pytest.skip("needs external data: set RMNB_DATA_MIRROR to a directory laid out as owner/repository/commit/path")
    return Path(directory)


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """A tiny decoder's checkpoint; a module that needs another kind defines its own."""
    from checkpoints import write_decoder

    return write_decoder(tmp_path_factory.mktemp("model"), rows=400)


@pytest.fixture(scope="module")
def rm(directory):
    """The reward model in `directory`, on the CPU."""
    import rmnb

    return rmnb.load_reward_model(directory, device="cpu")


@pytest.fixture
def printed_json(printed):
    """A function: run a command with ``--json``, and return what that says."""
    return lambda *words: json.loads(printed(*words, "--json"))


@pytest.fixture
def printed(monkeypatch, capsys):
    """A function: run a command, which has to end with 0, and return what it prints."""
    from commands import run

    def printed(*words) -> str:
        capsys.readouterr()
        assert run(monkeypatch, *words) == 0
        return capsys.readouterr().out

    return printed


def pytest_configure(config):
    """Tests run on the CPU, where rounding is the same for everybody, unless those for a GPU are asked for."""
    chosen = config.option.markexpr
    if "gpu" not in chosen.replace("not gpu", ""):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    settings.load_profile("fast" if "not slow" in chosen else "all")
    if "PYTEST_XDIST_WORKER" in os.environ:  # two processes share two cores
        os.environ["OMP_NUM_THREADS"] = "1"


def pytest_addoption(parser):
    parser.addoption(
        "--torture",
        metavar="FILE",
        help="make every attack of tests/torture with all its tries, and keep what became of them in this CSV file",
    )

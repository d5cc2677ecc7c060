"""External data for the tests: the mirror beside the repository, where there is one."""

import os
from pathlib import Path

import pytest

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


def pytest_addoption(parser):
    parser.addoption(
        "--torture",
        metavar="FILE",
        help="make every attack of tests/torture with all its tries, and keep what became of them in this CSV file",
    )

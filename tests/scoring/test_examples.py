"""The examples in docstrings of the helper's public functions give what they say."""

import doctest

import pytest
from checkpoints import write_decoder

import rmnb
from rmnb.scoring.forms import read_forms

STUDY = {"load_tables", "load_scores", "load_rated", "InputError"}
PUBLIC = [*(getattr(rmnb, name) for name in rmnb.__all__ if name not in STUDY), read_forms]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("models") / "checkpoint").parent


@pytest.mark.parametrize("documented", PUBLIC, ids=lambda documented: documented.__name__)
def test_an_example_gives_what_it_says(documented, directory, monkeypatch):
    monkeypatch.chdir(directory)
    [example] = doctest.DocTestFinder(recurse=False).find(documented)
    assert example.examples and not doctest.DocTestRunner().run(example).failed

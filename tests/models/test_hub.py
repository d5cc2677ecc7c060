"""Each refusal of the hub is one clear line."""

import huggingface_hub
import pytest
import requests
from huggingface_hub import errors

from rmnb.errors import InputError
from rmnb.models.checkpoint_files import fetch
from rmnb.models.origin import find_files
from rmnb.panels import ModelSpec

ANSWER = requests.Response()  # whichever library the hub's client uses
ANSWER.status_code = 403
ANSWER.request = requests.Request("GET", "https://huggingface.co").prepare()


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (errors.GatedRepoError, "a gated model"),
        (errors.RevisionNotFoundError, "no revision 'v9'"),
        (errors.HfHubHTTPError, "broken"),
        (errors.HFValidationError("no"), "no hub id"),
        (errors.LocalEntryNotFoundError("no"), "cannot be reached"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_each_refusal_of_the_hub_is_one_line_about_the_model(error, meaning, monkeypatch):
    def refuse(*args, **options):
        raise error("broken", response=ANSWER) if isinstance(error, type) else error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(InputError, match=rf"^owner/model: [^\n]*{meaning}[^\n]*$") as refused:
        fetch("owner/model", "v9")
    assert refused.value.about == "owner/model"


def test_an_installation_without_the_repository_is_told_where_the_demo_models_are(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"smollm2-values: .* the project's repository; clone it and set RMNB_DATA"):
        find_files(
            ModelSpec(name="smollm2-values", base="smollm2-135m-instruct", adapter="demo/adapters/smollm2-values")
        )

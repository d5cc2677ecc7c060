"""Each refusal of the hub is one clear line."""

import httpx
import huggingface_hub
import pytest
from huggingface_hub import errors

from rmnb.errors import InputError
from rmnb.models.hub import fetch
from rmnb.models.loading import shipped_adapter

ANSWER = httpx.Response(403, request=httpx.Request("GET", "https://huggingface.co"))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (errors.GatedRepoError("no", response=ANSWER), "a gated model: accept its terms on the hub and set HF_TOKEN"),
        (errors.RepositoryNotFoundError("no", response=ANSWER), "no such model on the hub .or a private one: set HF_T"),
        (errors.RevisionNotFoundError("no", response=ANSWER), "the hub has no revision 'v9' of it"),
        (errors.HFValidationError("no"), "no hub id: write owner/name"),
        (errors.LocalEntryNotFoundError("no"), "not in the local hub cache, and the hub cannot be reached"),
        (errors.HfHubHTTPError("broken", response=ANSWER), "the download failed .broken.*goes on where it stopped"),
        (OSError(28, "No space left on device"), "the download failed .*No space left on device"),
    ],
)
def test_each_refusal_of_the_hub_is_one_clear_line(error, sentence, monkeypatch):
    def refuse(*args, **options):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(InputError, match=f"^owner/model: {sentence}[^\n]*$"):
        fetch("owner/model", "v9")


def test_an_installation_without_the_repository_is_told_where_the_demo_models_are(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"smollm2-values: .* the project's repository; clone it and set RMNB_DATA"):
        shipped_adapter("smollm2-values", "demo/adapters/smollm2-values")

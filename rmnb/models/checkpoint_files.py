"""What lies in a checkpoint's directory: an adapter, pickles, a value head apart; and one line for damaged files."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from rmnb.errors import InputError, first_line

if TYPE_CHECKING:
    import torch

ADAPTER, VALUE_HEAD = "adapter_model.safetensors", "value_head.safetensors"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")


def is_adapter(directory: Path) -> bool:
    """Whether a directory holds a PEFT adapter and no weights of a whole model."""
    whole = {file.name for file in directory.glob("*.safetensors")} - {ADAPTER, VALUE_HEAD}
    return (directory / "adapter_config.json").exists() and not whole


def refuse_pickles(directory: Path, name: str = "*.safetensors") -> None:
    """Raise InputError if a directory has no weights of that name; pickles, which can run code, are named."""
    if any(directory.glob(name)):
        return
    pickles = sorted(file.name for pattern in _PICKLES for file in directory.glob(pattern))
    if pickles:
        raise InputError(
            f"{directory}: only pickled weights ({', '.join(pickles)}), which can run code: convert to safetensors"
        )
    raise InputError(f"{directory}: no {name} file")


def value_head(directory: Path) -> "dict[str, torch.Tensor]":
    """The tensors of a head in a file of its own, which LLaMA-Factory writes beside a language model or an adapter.

    Raises
    ------
    InputError
        There is one, but pickled or damaged.
    """
    from safetensors.torch import load_file

    if not (directory / VALUE_HEAD).exists() and (directory / "value_head.bin").exists():
        raise InputError(f"{directory}: value_head.bin is pickled, which can run code: convert it to {VALUE_HEAD}")
    with readable(directory / VALUE_HEAD):
        return load_file(directory / VALUE_HEAD) if (directory / VALUE_HEAD).exists() else {}


@contextlib.contextmanager
def readable(path: Path):
    """One line for whatever a damaged or foreign file makes the libraries raise: some raise bare exceptions.

    `path` is that file, or its directory.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's; whoever looks at files alone does not load it
            raise
        kinds = {"SafetensorError": "damaged or cut short: ", "JSONDecodeError": "damaged JSON: "}
        raise InputError(f"{path}: {kinds.get(type(error).__name__, '')}{first_line(error)}") from error

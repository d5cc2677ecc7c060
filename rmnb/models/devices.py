"""Where a model's weights lie and in which number format: devices, half precision, attention kernels.

On a CPU nothing here changes a number. The lines that only a GPU runs are listed in the book (book/gpu.md).
"""

import contextlib

import psutil
import torch

from rmnb.errors import InputError, first_line

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def find_device(name: str | None) -> torch.device:
    """A device of this machine; without a name, the first GPU if there is one, else the CPU.

    Raises
    ------
    InputError
        There is no such device.
    """
    try:
        return torch.empty(0, device=name or ("cuda" if torch.cuda.is_available() else "cpu")).device
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name}: {first_line(error)}", name) from error


def input_device(network: torch.nn.Module) -> torch.device:
    """Where the network reads its ids: the embedding's device, or where accelerate brings that for its work."""
    embedding = network.get_input_embeddings()  # pyright: ignore[reportCallIssue]
    device = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    return torch.device(embedding.weight.device if device is None else device)


def free_memory(network: torch.nn.Module) -> int:
    """Bytes that are free for activations: of the tightest GPU that holds a part of the network, else of the host."""
    devices = {parameter.device for parameter in network.parameters() if parameter.device.type == "cuda"}
    if devices:
        return min(torch.cuda.mem_get_info(device)[0] for device in devices)
    return psutil.virtual_memory().available


def upload(rows: list[list[int]] | list[int], device: torch.device) -> torch.Tensor:
    """Ids as an int64 tensor on a device; to a GPU through a pinned buffer, so that the host does not wait."""
    ids = torch.tensor(rows)
    if device.type == "cuda":
        return ids.pin_memory().to(device, non_blocking=True)
    return ids.to(device)


def plain_attention(network) -> str:
    """transformers' attention for whole sequences: exact with the model's soft-capping, and fast where that is free.

    On a CPU always ``eager``, the reference. On a GPU ``sdpa``; for models that cap their attention scores, which sdpa
    leaves out, ``flex_attention`` where the model has it, else ``eager``.
    """
    if input_device(network).type != "cuda":
        return "eager"
    if getattr(network.config.get_text_config(), "attn_logit_softcapping", None):
        return "flex_attention" if getattr(network, "_supports_flex_attn", False) else "eager"
    return "sdpa" if getattr(network, "_supports_sdpa", False) else "eager"


@contextlib.contextmanager
def own_attention(network):
    """The network's own attention for a while (`plain_attention`), in place of the shared-prefix one."""
    before = network.config._attn_implementation
    network.set_attn_implementation(plain_attention(network))
    try:
        yield
    finally:
        network.set_attn_implementation(before)

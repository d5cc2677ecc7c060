"""Heads: from the hidden state at the position that is read to the reward, always in fp32.

The tensors are read from safetensors by name; nothing of a checkpoint's own code runs.
"""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor

from rmnb.errors import InputError


@dataclass(frozen=True)
class LinearHead:
    """reward = weight · hidden + bias, what ``AutoModelForSequenceClassification`` with one label computes."""

    weight: Float[Tensor, " hidden"]
    bias: Float[Tensor, ""] | None = None

    def __call__(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        reward = hidden.float() @ self.weight
        return reward if self.bias is None else reward + self.bias


def linear_head(tensors: dict[str, Tensor], where: str) -> LinearHead:
    """The scalar head among the tensors of a checkpoint that the trunk did not take.

    Parameters
    ----------
    tensors
        Tensors by name: ``score.weight`` [1, hidden] and perhaps ``score.bias`` [1].
    where
        The checkpoint, for the message.

    Raises
    ------
    InputError
        There is no such tensor, it has several outputs, or other tensors are left over.
    """
    if "score.weight" not in tensors:
        found = ", ".join(sorted(tensors)) or "none"
        raise InputError(f"{where}: no head: expected the tensor score.weight, found besides the trunk: {found}")
    left = sorted(set(tensors) - {"score.weight", "score.bias"})
    if left:
        raise InputError(f"{where}: tensors that belong to no known head: {', '.join(left)}")
    weight = tensors["score.weight"]
    if weight.shape[0] != 1:
        raise InputError(f"{where}: score.weight has {weight.shape[0]} outputs; a reward model has one")
    bias = tensors.get("score.bias")
    return LinearHead(weight[0].float(), None if bias is None else bias[0].float())


def read_tensors(directory: Path, names: set[str]) -> dict[str, Tensor]:
    """The named tensors of a checkpoint directory's safetensors files.

    Raises
    ------
    InputError
        The files lack one of them.
    """
    found = {}
    for file in sorted(directory.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            found.update({name: tensors.get_tensor(name) for name in names & set(tensors.keys())})
    if missing := sorted(names - set(found)):
        raise InputError(f"{directory}: the weights lack {', '.join(missing)}")
    return found

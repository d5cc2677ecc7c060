"""How fluent a response is: its mean log-probability a token under a language model that shares the tokenizer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rmnb.errors import InputError
from rmnb.models import attention
from rmnb.models.attention import SharedPrefix
from rmnb.models.bases import BASES, base_directory
from rmnb.search.gradient import by_token, outside_inference

_LOGITS_AT_ONCE = 1 << 26  # numbers, 256 MB


class LanguageModel:
    """A causal language model, for the fluency term of a search.

    Parameters
    ----------
    model
        A ``*ForCausalLM`` network.
    name
        For provenance.
    """

    def __init__(self, model, name: str):
        if reason := attention.why_unsupported(model):
            raise InputError(f"{name} cannot measure fluency: {reason}")
        model.set_attn_implementation(attention.NAME)
        self.model, self.name = model.eval().requires_grad_(False), name

    @classmethod
    def load(cls, name: str | Path, device: torch.device | str = "cpu") -> "LanguageModel":
        """A base that rmnb knows (`rmnb.models.bases.BASES`), or a local checkpoint directory."""
        from transformers import AutoModelForCausalLM

        directory = base_directory(str(name)) if str(name) in BASES else Path(name)
        if not (directory / "config.json").exists():
            raise InputError(f"{name}: neither a base ({', '.join(BASES)}) nor a checkpoint directory")
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, trust_remote_code=False)
        return cls(torch.nn.Module.to(model, device), str(name))

    def after(self, prefix_ids: Sequence[int]) -> "_Fluency":
        """The model having read `prefix_ids`."""
        return _Fluency(self, prefix_ids)


class _Fluency:
    def __init__(self, language_model: LanguageModel, prefix_ids: Sequence[int]):
        self.model = language_model.model
        self.device = self.model.get_input_embeddings().weight.device
        self.prefix = SharedPrefix(len(prefix_ids))
        ids = torch.tensor([list(prefix_ids)], device=self.device)
        with torch.inference_mode():
            position = torch.arange(len(prefix_ids), device=self.device)[None]
            logits = self.model(
                input_ids=ids, position_ids=position, use_cache=False, shared_prefix=self.prefix, logits_to_keep=1
            ).logits
        self.prefix = outside_inference(self.prefix)
        self.first = logits[0, -1].log_softmax(-1).clone()  # of the first token

    def log_probabilities(self, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        """Mean log-probability a token, nats, float64 [sequences]."""
        result = np.empty(len(sequences))
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(sequences):
            by_length.setdefault(len(ids), []).append(index)
        for length, indices in by_length.items():
            size = max(1, _LOGITS_AT_ONCE // (length * len(self.first)))
            for start in range(0, len(indices), size):
                batch = indices[start : start + size]
                ids = torch.tensor([list(sequences[i]) for i in batch], device=self.device)
                with torch.inference_mode():
                    result[batch] = self._of(ids, input_ids=ids[:, :-1]).cpu().numpy()
        return result

    def gradient(self, ids: Sequence[int]) -> Float[np.ndarray, "length vocabulary"]:
        """Gradient with respect to the one-hot of each token: as what is read, and as what is predicted."""
        target = torch.tensor([list(ids)], device=self.device)
        embedding = self.model.get_input_embeddings()
        predicted = torch.empty(len(ids), len(self.first), device=self.device, dtype=self.first.dtype)
        predicted[0] = self.first
        if len(ids) == 1:
            return predicted.cpu().numpy()
        with torch.enable_grad():
            vectors = embedding(target[:, :-1]).detach().clone().requires_grad_()
            logits = self._logits(inputs_embeds=vectors)
            predicted[1:] = logits[0].detach()
            mean = logits[0].gather(-1, target[0, 1:, None]).sum() / len(ids)
            (slope,) = torch.autograd.grad(mean, vectors)
        gradient = (predicted / len(ids)).cpu().numpy()
        gradient[:-1] += by_token(embedding, slope[0])
        return gradient

    def _of(self, ids: Tensor, **inputs: Tensor) -> Tensor:
        total = self.first[ids[:, 0]].clone()
        if ids.shape[1] > 1:
            total += self._logits(**inputs).gather(-1, ids[:, 1:, None])[..., 0].sum(-1)
        return total / ids.shape[1]

    def _logits(self, **inputs: Tensor) -> Float[Tensor, "batch length vocabulary"]:
        """Log-probabilities of the next token after each given one."""
        length = next(iter(inputs.values())).shape[1]
        position = self.prefix.length + torch.arange(length, device=self.device)[None]
        output = self.model(**inputs, position_ids=position, use_cache=False, shared_prefix=self.prefix)
        return output.logits.log_softmax(-1)

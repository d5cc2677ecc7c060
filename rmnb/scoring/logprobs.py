"""Language models: the log-probability of every token as the first word of an answer.

The unit is the natural logarithm; softmax runs in fp32 whatever the weights' precision. A scan of log-probabilities has
the columns of a scan of rewards, so `rmnb.findings.align` joins vocabularies alike; `rmnb.findings.log_ratios`
compares models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from rmnb.errors import InputError
from rmnb.models.adapters import merge_lora, shipped_adapter
from rmnb.models.bases import BASES, base_directory
from rmnb.models.devices import input_device
from rmnb.models.dialogue import Dialogue
from rmnb.models.hub import fetch
from rmnb.models.loading import quiet_transformers
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import BaseSpec, PromptSpec, Wrapping

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model that is ready to be asked.

    Attributes
    ----------
    spec : BaseSpec
        Name, origin, how a question is wrapped.
    network : PreTrainedModel
        With its output layer.
    dialogue : Dialogue
        Tokenizer and chat template (None for a model without one).
    """

    spec: BaseSpec
    network: PreTrainedModel
    dialogue: Dialogue

    @property
    def vocabulary_size(self) -> int:
        """Rows of the output layer, one for every id that the model can write."""
        layer: Any = self.network.get_output_embeddings()
        return layer.weight.shape[0]


def load_language_model(
    model: str | Path | BaseSpec,
    wrapping: str | None = None,
    dtype: str | None = None,
    device_map: str | Mapping[str, Any] | None = None,
) -> LanguageModel:
    """Load a causal language model.

    Parameters
    ----------
    model
        A hub id ``owner/name``, a local checkpoint directory, a key of `rmnb.models.bases.BASES`, or a BaseSpec of a
        panel.
    wrapping
        ``chat``, ``bare`` or ``user_assistant``, see `BaseSpec`. Default: the spec's own; without one, ``chat`` for a
        model that has a chat template and ``bare`` for one that has none.
    dtype
        Of the weights. Default: the spec's own (float32).
    device_map
        As transformers takes it. Default: a GPU if there is one.

    Raises
    ------
    InputError
        Unknown model, wrapping or dtype, or ``chat`` for a model without chat template.
    """
    for what, value, known in (("wrapping", wrapping, get_args(Wrapping)), ("dtype", dtype, tuple(DTYPES))):
        if value is not None and value not in known:
            raise InputError(f"unknown {what} {value!r}: choose one of {', '.join(known)}")
    source = model.source if isinstance(model, BaseSpec) else str(model)
    revision = model.revision if isinstance(model, BaseSpec) else None
    directory = base_directory(source) if source in BASES else fetch(source, revision)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False)
    except (ValueError, OSError) as error:
        raise InputError(f"{source}: {' '.join(str(error).split())[:200]}") from error
    template = (model.template if isinstance(model, BaseSpec) else None) or tokenizer.chat_template
    if not isinstance(model, BaseSpec):
        kind = "instruct" if template else "pretrained"
        model = BaseSpec(name=Path(source).name, source=source, kind=kind, wrapping="chat" if template else "bare")
    changes = {"wrapping": wrapping, "dtype": dtype}
    spec = model.model_copy(update={name: value for name, value in changes.items() if value})
    if spec.wrapping == "chat" and template is None:
        raise InputError(f"{spec.name} has no chat template: give wrapping bare or user_assistant")
    try:
        with quiet_transformers():
            network = AutoModelForCausalLM.from_pretrained(
                directory,
                dtype=DTYPES[spec.dtype],
                attn_implementation="eager",  # the one kernel that every architecture has, soft-capping included
                device_map=device_map or ("cuda" if torch.cuda.is_available() else None),
                trust_remote_code=False,
            )
    except (ValueError, OSError) as error:
        raise InputError(f"{source}: {' '.join(str(error).split())[:200]}") from error
    if spec.adapter:
        merge_lora(network.base_model, shipped_adapter(spec.name, spec.adapter))
    return LanguageModel(spec, network.eval().requires_grad_(False), Dialogue(tokenizer, template))


def prompt_ids(lm: LanguageModel, prompt: str) -> list[int]:
    """The ids that come before the answer.

    ``chat``: the template with the generation prompt, as it writes BOS. ``bare`` and ``user_assistant``: text, with the
    special tokens that the tokenizer adds.
    """
    if lm.spec.wrapping == "chat":
        text = lm.dialogue.render([{"role": "user", "content": prompt}], generation=True)
        return lm.dialogue.tokenizer(text, add_special_tokens=False)["input_ids"]
    text = prompt if lm.spec.wrapping == "bare" else f"User: {prompt}\nAssistant:"
    return lm.dialogue.tokenizer(text)["input_ids"]


@torch.inference_mode()
def next_token_logprobs(lm: LanguageModel, prompt: str) -> np.ndarray:
    """Natural log-probability of every id as the next token after a prompt, float32 [vocabulary].

    One forward pass over the prompt alone; exponentials sum to one.

    Raises
    ------
    InputError
        The prompt has no ids, or a log-probability is not a number.
    """
    ids = prompt_ids(lm, prompt)
    if not ids:
        raise InputError("the prompt is empty: there is nothing that a next token could follow")
    inputs = torch.tensor([ids], device=input_device(lm.network))
    logits = lm.network(input_ids=inputs, use_cache=False, logits_to_keep=1).logits[0, -1]
    values = torch.log_softmax(logits.float(), dim=-1).cpu().numpy()
    if np.isnan(values).any():
        raise InputError(f"{lm.spec.name}: the log-probabilities are not numbers: try dtype float32")
    return values


def scan_logprobs(lm: LanguageModel, prompt: str | PromptSpec) -> pd.DataFrame:
    """The log-probability of every token of the vocabulary as the first of the answer.

    Returns
    -------
    DataFrame
        token_id (int32), token, kind and score (float32, natural log), one row an id, as a scan of rewards.
    """
    text = prompt.text if isinstance(prompt, PromptSpec) else prompt
    words = vocabulary(lm.dialogue.tokenizer, lm.vocabulary_size)
    return words[["token_id", "token", "kind"]].assign(score=next_token_logprobs(lm, text))

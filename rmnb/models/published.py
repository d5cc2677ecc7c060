"""What is known of the papers' reward models without fetching them: the shape of the language model each grew from.

The figures are those of the bases' public ``config.json`` (meta-llama/Meta-Llama-3-8B-Instruct, Llama-3.1-8B-Instruct,
Llama-3.2-3B-Instruct; google/gemma-2-2b-it and gemma-2-27b-it), the ids those of their chat templates. A reward model
may differ from its base by a row of the embedding (a padding token that its trainer added) and by its head.
"""

from dataclasses import dataclass
from typing import Any

from transformers import AutoConfig, PreTrainedConfig


@dataclass(frozen=True)
class Published:
    """A base's shape, and how many ids its chat template writes.

    Attributes
    ----------
    kind : str
        ``model_type`` of the configuration.
    figures : dict
        What else the configuration says.
    opening : int
        Ids that the template puts around a question, up to where the answer begins.
    closing : int
        Ids that it puts behind an answer.
    """

    kind: str
    figures: dict[str, Any]
    opening: int
    closing: int

    @property
    def config(self) -> PreTrainedConfig:
        return AutoConfig.for_model(self.kind, **self.figures)


_LLAMA_8B = {
    "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8,
}  # fmt: skip
_LLAMA_3B = _LLAMA_8B | {
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
}  # fmt: skip
_GEMMA_2B = {
    "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
}  # fmt: skip
_GEMMA_27B = _GEMMA_2B | {
    "hidden_size": 4608, "intermediate_size": 36864, "num_hidden_layers": 46, "num_attention_heads": 32,
    "num_key_value_heads": 16, "head_dim": 128,
}  # fmt: skip
_LLAMA_3 = Published("llama", _LLAMA_8B, 10, 1)
_LLAMA_3_1 = Published("llama", _LLAMA_8B, 35, 1)  # its template begins with a system turn that says the date
_LLAMA_3_2 = Published("llama", _LLAMA_3B, 35, 1)
_GEMMA_2_2B = Published("gemma2", _GEMMA_2B, 9, 2)
_GEMMA_2_27B = Published("gemma2", _GEMMA_27B, 9, 2)

#: By hub id.
PUBLISHED = {
    "nicolinho/QRM-Gemma-2-27B": _GEMMA_2_27B,
    "Skywork/Skywork-Reward-Gemma-2-27B-v0.2": _GEMMA_2_27B,
    "Skywork/Skywork-Reward-Gemma-2-27B": _GEMMA_2_27B,
    "Skywork/Skywork-Reward-Llama-3.1-8B-v0.2": _LLAMA_3_1,
    "nicolinho/QRM-Llama3.1-8B": _LLAMA_3_1,
    "LxzGordon/URM-LLaMa-3.1-8B": _LLAMA_3_1,
    "Ray2333/GRM-Llama3-8B-rewardmodel-ft": _LLAMA_3,
    "Ray2333/GRM-Llama3.2-3B-rewardmodel-ft": _LLAMA_3_2,
    "RLHFlow/ArmoRM-Llama3-8B-v0.1": _LLAMA_3,
    "Ray2333/GRM-gemma2-2B-rewardmodel-ft": _GEMMA_2_2B,
}

"""Where in a conversation a reward is read: the rule of the code that a checkpoint was trained with.

Each rule is what that code does with one conversation that is not padded. Sources, read for the rules only:
``GenericForSequenceClassification.forward`` (transformers 5) for plain classifiers; OpenRLHF's ``RewardModel.forward``
and ``rewardbench/models/grm.py`` (allenai/reward-bench), which go by the attention mask, so that an unpadded
conversation is read at its last id; ``rewardbench/models/qrm.py``, ``rewardbench/models/inform.py`` and public copies
of ArmoRM's ``modeling_custom.py``, which look for the first padding id as transformers did in 2024. URM's own code
could not be read: it is of that year, and is taken to do the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformers import AutoModelForSequenceClassification, PreTrainedConfig

from rmnb.errors import InputError
from rmnb.models.checkpoint_files import VALUE_HEAD, readable
from rmnb.models.dialogue import TRAINERS, Trainer
from rmnb.panels import ModelSpec
from rmnb.panels.specs import ImplicitSpec

Rule = Literal["last", "last but padding", "before padding", "turn", "own"]


@dataclass(frozen=True)
class Reading:
    """At which id a reward is read.

    Attributes
    ----------
    rule
        ``last``: the conversation's last id. ``last but padding``: its last id that is not the padding id.
        ``before padding``: the one before its first padding id. ``turn``: the last that ends a turn. ``own``: a whole
        classifier sees to it.
    padding
        The padding id of the configuration, if the rule knows one; of the rule ``turn`` the id that ends a turn.
    """

    rule: Rule = "last"
    padding: int | None = None

    def ids_read(self, ids: Sequence[int]) -> int:
        """How many ids of a conversation count, at least one: the reward is read at the last of these."""
        count = len(ids)
        if self.rule in ("last", "own") or self.padding not in ids:
            return count
        if self.rule == "turn":
            return count - ids[::-1].index(self.padding)
        if self.rule == "before padding":  # with padding in the first place, too, that code reads the last id
            return ids.index(self.padding) or count
        while count > 1 and ids[count - 1] == self.padding:
            count -= 1
        return count

    def truncated(self, ids: list[int]) -> list[int]:
        """The ids of a conversation that can matter to the reward: what follows the place is dropped."""
        return ids[: self.ids_read(ids)]


def trainer_of(spec: ModelSpec, settings: Mapping[str, Any], directory: Path) -> tuple[Trainer, bool]:
    """Whose data step made the ids that a checkpoint was trained on, and whether anything says so.

    Parameters
    ----------
    spec
        Its `read`: a trainer's name decides, and ``last`` leaves the template as it is. A language model is asked in
        its own template, whoever trained a head that lies beside it; TRL's data step decides what closes an answer.
    settings
        ``config.json``: OpenRLHF leaves its mark there, ``value_head_prefix``.
    directory
        The checkpoint: LLaMA-Factory leaves a head in a file of its own, ms-swift its ``args.json``, TRL, which is the
        default, the tags of a model card, beside the weights or beside the checkpoints. NeMo-RL leaves no mark.
    """
    if spec.read != "model":
        return (spec.read if spec.read in TRAINERS else "trl"), True  # type: ignore[return-value]
    if isinstance(spec.readout, ImplicitSpec):
        return "trl", "- trl" in _card_tags(directory)
    if spec.readout.reads_language_head:
        return "trl", True
    if "value_head_prefix" in settings:
        return "openrlhf", True
    if (arguments := directory / "args.json").exists():
        with readable(arguments):
            if {"template", "model_type"} <= json.loads(arguments.read_bytes()).keys():
                return "ms-swift", True
    if (directory / VALUE_HEAD).exists():
        return "llama-factory", True
    return "trl", {"- trl", "- reward-trainer"} <= _card_tags(directory)


def _card_tags(directory: Path) -> set[str]:
    """The lines that head a model card, beside the weights or beside the checkpoints; none without a card."""
    is_on_the_way = directory.name.startswith("checkpoint-")
    card = (directory.parent if is_on_the_way else directory) / "README.md"
    if not card.exists():
        return set()
    return {*card.read_text(encoding="utf-8", errors="replace").split("\n---")[0].splitlines()}


def own_reading(rule: Rule, padding: int | None, trainer: Trainer) -> Reading:
    """Where the code that a checkpoint comes from reads it.

    Parameters
    ----------
    rule
        Of its kind of head, see `rmnb.models.readouts.Readout`.
    padding
        ``pad_token_id`` of the configuration.
    trainer
        See `trainer_of`. OpenRLHF and LLaMA-Factory go by the attention mask, the others train transformers' classes.
    """
    by_mask = trainer in ("openrlhf", "llama-factory")
    return Reading("last" if by_mask else rule, padding)


def is_language_model(config: PreTrainedConfig) -> bool:
    """Whether a family's classifier reads one text from beginning to end, as language models do, and no pair."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    kind = type(config)
    reads_both_ways = config.is_encoder_decoder or config.model_type == "xlnet" or kind in MODEL_FOR_MASKED_LM_MAPPING
    return kind in MODEL_FOR_CAUSAL_LM_MAPPING and not reads_both_ways


STEPS = "{}: a process reward model (PRM), which gives a reward for each step of a response, not one for all of it"


def is_decoder(config) -> bool:
    """Whether transformers pools this family's classifier at the last token, over a trunk with a `score` layer.

    Raises
    ------
    InputError
        It is a token classifier, or there is no classifier of this family.
    """
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    from transformers.modeling_layers import GenericForSequenceClassification

    for architecture in config.architectures or ():
        if architecture.endswith(("ForTokenClassification", "ForProcessRewardModel")):
            raise InputError(STEPS.format(f"{architecture} is a token classifier"), architecture)
    try:
        kind: Any = AutoModelForSequenceClassification._model_mapping[type(config)]
    except KeyError as error:
        if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING and not config.is_encoder_decoder:
            return True  # of which a trainer saved a value head of its own
        raise InputError(f"model type {config.model_type!r} has no sequence classification in transformers") from error
    return issubclass(kind, GenericForSequenceClassification)

"""Load a reward model from a panel, the hub or a directory, and measure its parity."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rmnb.errors import InputError
from rmnb.models.checkpoint_files import ADAPTER
from rmnb.models.loading import read_checkpoint
from rmnb.models.readouts import LanguageHead
from rmnb.panels import ModelSpec, Panel, find_spec
from rmnb.panels.specs import ImplicitSpec
from rmnb.scoring.parity import check_parity
from rmnb.scoring.reward_model import RewardModel


def load_reward_model(
    model: str | Path | ModelSpec,
    panel: str | Path | Panel | None = None,
    device: str | None = None,
    base: str | Path | None = None,
    compile: str | None = None,
    **options: Any,
) -> RewardModel:
    """Load a reward model.

    Parameters
    ----------
    model
        A panel's nickname, a hub id ``owner/name`` or ``owner/name@revision``, the directory of a checkpoint or of a
        PEFT adapter, or a ModelSpec.
    panel
        Where to look a nickname up; without it, the panels that ship with rmnb.
    device
        A torch device. Default: ``cuda`` if there is one, else ``cpu``.
    base
        Hub id or directory of the model that an adapter was trained from. Default: what its configuration says.
    compile
        A mode of torch.compile, such as ``default`` or ``reduce-overhead``, for the network. Default: not compiled.
    **options
        These take the place of the spec's own (see `rmnb.panels.ModelSpec`):

        - ``dtype``: ``float32``, ``bfloat16`` or ``float16`` for the trunk, or ``auto`` (as stored). The head is always
          fp32.
        - ``read``: ``model``, where the checkpoint's own code reads one conversation (`rmnb.models.reading`), or
          ``last``, at the last id, whatever that code does.
        - ``label``: which output of a classifier with several is the reward, by number from 0 or by name; or the
          weights of several: a list in order, or a dict by name; or ``all``, each output by itself.
        - ``head``: the kind of the head, or the name of a linear layer's weight, such as ``regression_head.weight``.
        - ``softcap``: False leaves out the soft-capping of attention scores that Gemma 2 was trained with. The
          papers' Gemma scores were probably made so, since the attention kernel that their version of transformers
          chose by itself could not cap; but that is inferred, not documented.
        - ``judge``: asks a language model what it thinks of an answer: ``yes-no``, ``rating``, or a YAML file
          (`rmnb.panels.specs.Judge`).
        - ``reference``, ``beta``: the implicit reward of a language model against another.
        - ``template``, ``tokenizer``.

        All others go to ``from_pretrained`` of transformers: ``device_map="auto"`` spreads the trunk over several
        devices, ``quantization_config={"load_in_8bit": True}`` quantises it on a GPU.

    Raises
    ------
    InputError
        Unknown model, no configuration, pickled weights only, no chat template, a head that does not match …: one line.

    Examples
    --------
    >>> rm = load_reward_model("checkpoint")  # a directory
    >>> rm.score("What is good?", ["love", "war"]).shape
    (2,)
    """
    spec = model if isinstance(model, ModelSpec) else find_spec(model, panel)
    given = {"device": device, "base": base, "compile": compile, **options}
    options = {**spec.load, **{name: value for name, value in given.items() if value is not None}}
    device = options.pop("device", None)
    compile = options.pop("compile", None)
    if "base" in options:
        options["base_model"] = str(options.pop("base"))
    rm = read_checkpoint(spec, device, compile, RewardModel, **options)
    asked = rm.spec.readout
    if isinstance(asked, ImplicitSpec):
        trained_against = Path(str(rm.spec.source)) / "ref"  # by TRL, where an adapter was trained further
        if (trained_against / ADAPTER).exists() and trained_against.resolve() != Path(asked.reference).resolve():
            raise InputError(f"{rm.name} was trained against another reference: give --reference {trained_against}")
        shared = {name: value for name, value in rm.options.items() if name != "compile"}
        shared |= {"head": LanguageHead.name, "template": rm.dialogue.template, "dtype": rm.spec.dtype}
        reference = load_reward_model(find_spec(asked.reference, panel), device=device, compile=compile, **shared)
        if reference.tokenizer.get_vocab() != rm.tokenizer.get_vocab():
            raise InputError(f"{rm.name} and its reference {reference.name} have different vocabularies", "reference")
        if reference.hashes == rm.hashes:
            raise InputError(f"{rm.name} is its own reference: every reward would be 0", "reference")
        rm = replace(rm, reference=replace(reference, reading=rm.reading))
    return check_parity(rm)

"""Language models: the log-probability of every token as the first word of an answer.

The unit is the natural logarithm; softmax runs in fp32 whatever the weights' precision. A scan of log-probabilities has
the columns of a scan of rewards, so vocabularies are matched in the same way; `write_nouns` keeps those of the nouns of
agency and communion, which `rmnb.findings.tables.load_logprobs` reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedModel

from rmnb.data.text_lists import described_parts, part_texts
from rmnb.errors import InputError, few
from rmnb.models import attention
from rmnb.models.bases import base_directory
from rmnb.models.checkpoint_files import read_tokenizer, readable
from rmnb.models.devices import input_device
from rmnb.models.dialogue import Dialogue, Prompt, as_messages
from rmnb.models.loading import quiet_transformers, shipped_adapter
from rmnb.models.origin import hashes_of, template_sha256
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import BaseSpec, Panel, PromptSpec, find_base, load_prompts
from rmnb.panels.specs import validate
from rmnb.scoring.store import Provenance, read_finished, versions, write_table

NOUNS = ("agency_communion", "big_two")  # lists of texts
ANSWERS_AT_ONCE = 128  # whose logits over the vocabulary are held in double
SPELLINGS = ("{}", " {}", "{C}", " {C}")  # of "love": love, ␣love, Love, ␣Love


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
    hashes : dict
        weights_sha256, config_sha256, tokenizer_sha256 and template_sha256, for provenance.
    """

    spec: BaseSpec
    network: PreTrainedModel
    dialogue: Dialogue
    hashes: Mapping[str, str]


def load_language_model(
    model: str | Path | BaseSpec, wrapping: str | None = None, dtype: str | None = None
) -> LanguageModel:
    """Load a causal language model, onto a GPU if there is one.

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

    Raises
    ------
    InputError
        Unknown model, wrapping or dtype, ``chat`` for a model without chat template, pickled weights only, or a
        checkpoint that lacks a language model's head, as classifiers do.
    """
    spec = model
    if not isinstance(spec, BaseSpec):
        spec = BaseSpec(name=Path(spec).name, source=str(spec), kind="pretrained", wrapping="chat")
    directory = base_directory(spec.source, spec.revision)
    tokenizer = read_tokenizer(directory)
    template = spec.template or tokenizer.chat_template
    default = spec.wrapping if isinstance(model, BaseSpec) or template else "bare"
    changes = {"wrapping": wrapping or default, "dtype": dtype or spec.dtype}
    spec = validate(BaseSpec, {**spec.model_dump(), **changes}, spec.name)
    if spec.wrapping == "chat" and template is None:
        raise InputError(f"{spec.name} has no chat template: give wrapping bare or user_assistant")
    with readable(directory), quiet_transformers():
        network, info = AutoModelForCausalLM.from_pretrained(  # pyright: ignore[reportGeneralTypeIssues]
            directory,
            dtype=spec.dtype,
            attn_implementation="eager",  # the one kernel that every architecture has, soft-capping included
            device_map="cuda" if torch.cuda.is_available() else None,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    if missing := sorted(info["missing_keys"]):  # transformers would make them up
        raise InputError(f"{spec.source} is no whole language model: its weights lack {few(missing)}", missing[0])
    hashes = hashes_of(directory, tokenizer=directory)
    if spec.adapter:
        adapter = shipped_adapter(spec.name, spec.adapter)
        with quiet_transformers():
            network = PeftModel.from_pretrained(network, str(adapter)).merge_and_unload()
        hashes = hashes_of(adapter, directory, directory)
    hashes["template_sha256"] = template_sha256(template)
    return LanguageModel(spec, network.eval().requires_grad_(False), Dialogue(tokenizer, template), hashes)


def prompt_ids(lm: LanguageModel, prompt: Prompt) -> list[int]:
    """The ids that come before the answer.

    ``chat``: the template with the generation prompt, as it writes BOS. ``bare`` and ``user_assistant``: text, with the
    special tokens that the tokenizer adds.

    Raises
    ------
    InputError
        Earlier turns without a chat template to write them.
    """
    if lm.spec.wrapping == "chat":
        text = lm.dialogue.render(as_messages(prompt), generation=True)
        return lm.dialogue.tokenizer(text, add_special_tokens=False)["input_ids"]
    if not isinstance(prompt, str):
        raise InputError(f"wrapping {lm.spec.wrapping} takes one question, without earlier turns", "wrapping")
    text = prompt if lm.spec.wrapping == "bare" else f"User: {prompt}\nAssistant:"
    return lm.dialogue.tokenizer(text)["input_ids"]


@torch.inference_mode()
def next_token_logprobs(lm: LanguageModel, prompt: Prompt) -> np.ndarray:
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


def scan_logprobs(
    lm: LanguageModel, prompt: PromptSpec, output: Path | None = None, restart: bool = False
) -> pd.DataFrame:
    """The log-probability of every token of the vocabulary as the first of the answer.

    Parameters
    ----------
    lm
        The language model.
    prompt
        The question.
    output
        Where the caller will write the scan; one that lies there is read.
    restart
        Compute it again nevertheless.

    Returns
    -------
    DataFrame
        token_id (int32), token, kind and score (float32, natural log), one row an id, as a scan of rewards.
        ``attrs["provenance"]`` says of what model and question.

    Raises
    ------
    InputError
        What lies at `output` is of another plan.
    """
    plan = {**_describe(lm), "prompt": prompt.text, "history": prompt.earlier}
    if not restart and (finished := read_finished(output, plan)) is not None:
        return finished
    output_layer: Any = lm.network.get_output_embeddings()
    words = vocabulary(lm.dialogue.tokenizer, output_layer.weight.shape[0])
    scan = words[["token_id", "token", "kind"]].assign(score=next_token_logprobs(lm, prompt.conversation))
    scan.attrs["provenance"] = {**plan, **_notes(lm)}
    return scan


@torch.inference_mode()
def scan_answers(lm: LanguageModel, prompt: PromptSpec) -> pd.DataFrame:
    """How probable each token is as the first of the answer, and the end of the turn after it.

    Their sum is the log-probability of the token as a whole answer. A model without a chat template of its own was
    never taught to end a turn: of it there is only the first. The prompt runs once, each token over its keys and values
    (`rmnb.models.attention`).

    Returns
    -------
    DataFrame
        token_id (int32), token, kind, and first and end (float32, natural log), one row an id. ``attrs["provenance"]``
        says of what model and question.

    Raises
    ------
    InputError
        The model's attention cannot share a prefix.
    """
    scan = scan_logprobs(lm, prompt).rename(columns={"score": "first"})
    if lm.dialogue.tokenizer.chat_template is None:
        return scan
    network: Any = lm.network
    if reason := attention.why_unsupported(network.base_model):
        raise InputError(f"{lm.spec.name}: whole answers cannot be scanned: {reason}")
    device = input_device(network)
    ids = prompt_ids(lm, prompt.conversation)
    closing = lm.dialogue.frame(prompt.conversation)[1]
    eager = network.config._attn_implementation
    network.set_attn_implementation(attention.NAME)
    prefix, _ = attention.run_prefix(network.base_model, torch.tensor([ids], device=device))
    position = torch.tensor([[len(ids)]], device=device)
    ends = []
    for batch in torch.arange(len(scan), device=device)[:, None].split(ANSWERS_AT_ONCE):
        states = network.base_model(input_ids=batch, position_ids=position, use_cache=False, shared_prefix=prefix)
        logits = network.lm_head(states.last_hidden_state[:, 0]).double()  # an fp32 normaliser is off by 1e-5
        ends.append(logits[:, closing[0]] - logits.logsumexp(-1))
    network.set_attn_implementation(eager)
    scan["end"] = torch.cat(ends).float().cpu().numpy()
    scan.attrs["provenance"]["end_id"] = closing[0]
    return scan


def _describe(lm: LanguageModel) -> Provenance:
    return {**lm.hashes, "wrapping": lm.spec.wrapping, "dtype": lm.spec.dtype, "unit": "natural log"}


def _notes(lm: LanguageModel) -> Provenance:
    return {"model": lm.spec.source, "revision": lm.spec.revision, "versions": versions()}


def score_nouns(lm: LanguageModel, prompts: Sequence[PromptSpec]) -> pd.DataFrame:
    """The log-probability of every noun that is one token, in each of four spellings, as the first token of the answer.

    Returns
    -------
    DataFrame
        part (str), item (int32, the noun's place in its part), spelling (int32, place in `SPELLINGS`), and a float32
        column a prompt: natural log. No text, so that it can be shipped where the texts may not.
    """
    ids = scan_logprobs(lm, prompts[0]).drop_duplicates("token", keep=False).set_index("token")["token_id"]
    rows = [
        (part, item, spelling, pattern.format(word, C=word.capitalize()))
        for part in NOUNS
        for item, word in enumerate(part_texts(part))
        for spelling, pattern in enumerate(SPELLINGS)
    ]
    frame = pd.DataFrame(rows, columns=["part", "item", "spelling", "token"])
    frame = frame[frame["token"].isin(ids.index)].astype({"item": "int32", "spelling": "int32"}).reset_index(drop=True)
    places = ids[frame.pop("token")]
    for prompt in prompts:
        frame[prompt.key] = next_token_logprobs(lm, prompt.conversation)[places]
    return frame


def write_nouns(panel: Panel, base: str, wrapping: str, path: Path) -> None:
    """Ask one of a panel's bases the prompts of the second paper and write what it says of the nouns."""
    prompts = load_prompts("iclr2026")
    lm = load_language_model(find_base(panel, base), wrapping)
    provenance = {
        **_describe(lm),
        **_notes(lm),
        "prompts": {prompt.key: prompt.text for prompt in prompts},
        "parts": described_parts({part: part_texts(part) for part in NOUNS}),
        "spellings": list(SPELLINGS),
    }
    write_table(path, score_nouns(lm, prompts), provenance)

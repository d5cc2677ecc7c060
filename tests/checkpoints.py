"""Tiny reward models with random weights, written in the format of real checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
import yaml
from safetensors.torch import load, save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<bos>", "<eos>", "<user>", "<model>", "<end>"]
TEXT = "What, in one word, is the greatest thing ever? Love, peace and water are good; war and pain are bad. " * 3
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<user>' if m['role'] == 'user' else '<model>' }}"
    "{{ m['content'] | trim }}<end>{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"
)
SHAPE = dict(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    num_labels=1,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
WINDOW = 6  # shorter than every prefix
DECODERS = {
    "llama": (transformers.LlamaConfig, {}),
    "gemma2": (
        transformers.Gemma2Config,
        dict(head_dim=16, sliding_window=WINDOW, attn_logit_softcapping=2.0, query_pre_attn_scalar=16),
    ),
    "gemma3": (transformers.Gemma3TextConfig, dict(head_dim=16, sliding_window=WINDOW)),
    "mistral": (transformers.MistralConfig, dict(sliding_window=WINDOW)),
    "qwen2": (transformers.Qwen2Config, {}),
    "qwen3": (transformers.Qwen3Config, dict(head_dim=16)),
    "phi3": (transformers.Phi3Config, {}),
    "olmo2": (transformers.Olmo2Config, {}),
}


def user(text) -> dict:
    """A turn of a conversation."""
    return {"role": "user", "content": text}


def assistant(text) -> dict:
    """The turn that answers."""
    return {"role": "assistant", "content": text}


EARLIER = [user("Hello?"), assistant("Yes.")]


def byte_level(text: list[str], rules=None, **options) -> Tokenizer:
    """Byte-level BPE learnt from texts that these rules, or else GPT-2's, cut."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = rules or pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(text, trainers.BpeTrainer(initial_alphabet=alphabet, **options))
    return core


def sentencepiece(special: list[str], pieces: list[str], merges=(), **options) -> Tokenizer:
    """BPE with ``▁`` for blanks and bytes to fall back on, as Gemma's, of these tokens in this order."""
    vocabulary = {piece: i for i, piece in enumerate([*special, *pieces])}
    core = Tokenizer(models.BPE(vocabulary, [*merges], byte_fallback=True, **options))
    blanks = decoders.Replace("▁", " ")
    core.decoder = decoders.Sequence([blanks, decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens(special)
    return core


def tokenizer(
    template: str | dict | None = TEMPLATE, special: list[str] = SPECIAL, text: str = TEXT, **options
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer that adds BOS by itself, as Llama 3's does; `special` begins with pad, BOS, EOS."""
    core = byte_level([text], vocab_size=320, special_tokens=special)
    core.post_processor = processors.TemplateProcessing(single=f"{special[1]} $A", special_tokens=[(special[1], 1)])
    named = dict(zip(("pad_token", "bos_token", "eos_token"), special, strict=False))
    wrapped = PreTrainedTokenizerFast(tokenizer_object=core, additional_special_tokens=special[3:], **named | options)
    wrapped.chat_template = template
    return wrapped


def pair_tokenizer() -> PreTrainedTokenizerFast:
    """The same words for an encoder: ``<bos> question <end> answer <end>``, segments 0 and 1, no chat template."""
    wrapped = tokenizer(None, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    wrapped.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <end>", pair="<bos> $A <end> $B:1 <end>:1", special_tokens=[("<bos>", 1), ("<end>", 5)]
    )
    return wrapped


def randomise(model: torch.nn.Module, seed: int = 0) -> None:
    """Weights large enough that rewards differ visibly from token to token."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3, generator=generator)


def write_model(
    directory: Path, config, words, kind=AutoModelForSequenceClassification, seed=0, dtype="float32", **saving
) -> Path:
    """A model with random weights and a tokenizer, as transformers writes them."""
    model = kind.from_config(config)
    randomise(model, seed)
    model.to(getattr(torch, dtype)).save_pretrained(directory, **saving)
    words.save_pretrained(directory)
    return directory


def write_decoder(directory: Path, architecture="llama", rows: int | None = None, shape=None, **options) -> Path:
    """A tiny reward model, by default on a causal trunk; `rows` of the embedding may exceed the tokenizer.

    `architecture` is one of `DECODERS` or the class of a configuration.
    """
    words = tokenizer()
    config, special = DECODERS.get(architecture, (architecture, {}))
    shape = SHAPE | special | {"vocab_size": rows or len(words)} | (shape or {})
    return write_model(directory, config(**shape), words, **options)


def write_base(directory: Path, architecture="llama", **options) -> Path:
    """A language model without any head; `options` are those of `write_decoder`."""
    return write_decoder(directory, architecture, kind=AutoModelForCausalLM, **options)


def write_encoder(directory: Path, labels: int = 1, config=transformers.BertConfig) -> Path:
    """A tiny BERT reward model, or one of another encoder."""
    words = pair_tokenizer()
    shape = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_labels=labels)
    return write_model(directory, config(vocab_size=len(words), pad_token_id=0, **shape), words)


def edit(file: Path, **changes) -> None:
    """Change keys of a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def edit_tensors(directory: Path, change: Callable[[dict], dict], name: str = "model.safetensors") -> None:
    """Put what `change` makes of a checkpoint's tensors in their place."""
    tensors = load((directory / name).read_bytes())
    save_file(change(tensors), directory / name, metadata={"format": "pt"})


def own_ids(words, prompt: str | list[dict], answers) -> list[list[int]]:
    """The ids of whole conversations in the tokenizer's own template, by transformers alone."""
    turns = [user(prompt)] if isinstance(prompt, str) else prompt
    conversations = [[*turns, assistant(answer)] for answer in answers]
    return words.apply_chat_template(conversations, tokenize=True)["input_ids"]


def asked_ids(words, question: str) -> list[int]:
    """The ids of a question, up to where the answer begins, by transformers alone."""
    return words.apply_chat_template([user(question)], add_generation_prompt=True)["input_ids"]


def rewards_alone(model, conversations: list[list[int]], label: int = 0) -> np.ndarray:
    """What a classifier of transformers gives, one conversation at a time and without padding."""
    model.eval()
    with torch.no_grad():
        logits = [model(input_ids=torch.tensor([ids])).logits[0, label].item() for ids in conversations]
    return np.array(logits)


def own_rewards(directory: Path, conversations: list[list[int]], label: int = 0, **options) -> np.ndarray:
    """What the checkpoint's own classifier gives, in fp32 and by its own attention."""
    options |= dict(attn_implementation="eager", dtype=torch.float32)
    return rewards_alone(AutoModelForSequenceClassification.from_pretrained(directory, **options), conversations, label)


LLAMA3_SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITTING = ("metaspace", "byte-level", "gpt2")
# What stands right before the answer: a blank, a line break, an empty thinking block, nothing. None of them trims.
OPENINGS = {
    "blank": "USER: {} ASSISTANT: {}<end>",
    "newline": "### Question:\n{}\n### Answer:\n{}<end>\n",
    "think": "<user>{}<end>\n<model>\n(think)\n\n(answer)\n\n{}<end>\n",
    "nothing": "<user>{}<end><model>{}<end>",
}


def opening_template(opening: str) -> str:
    """A chat template for one question and one answer."""
    question, answer = ("{{ messages[" + str(i) + "]['content'] }}" for i in (0, 1))
    before, between, after = OPENINGS[opening].split("{}")
    answered = "{% if messages | length > 1 %}" + answer + after + "{% endif %}"
    return "{{ bos_token }}" + before + question + between + answered


def splitting_tokenizer(splitting: str, opening: str) -> PreTrainedTokenizerFast:
    """BPE that cuts text before it merges: at blanks kept in front as Llama 2's, by Llama 3's rules, by GPT-2's.

    It pads with what closes a turn, if nothing else is said: it has no padding token.
    """
    text = [TEXT + " love LOVE Love; it's 7, 42 (so). Question: Answer: USER: ASSISTANT: think ### é 世界\n" * 5]
    options: dict = dict(vocab_size=420, special_tokens=SPECIAL)
    if splitting == "metaspace":
        core = Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
        core.decoder = decoders.Metaspace(prepend_scheme="first")
        core.train_from_iterator(text, trainers.BpeTrainer(**options))
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    elif splitting == "gpt2":
        core = byte_level(text, **options)
    else:
        split = pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated")
        to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        core = byte_level(text, pre_tokenizers.Sequence([split, to_bytes]), **options)
    words = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<bos>", eos_token="<end>", additional_special_tokens=["<user>", "<model>"]
    )
    words.chat_template = opening_template(opening)
    return words


def write_splitting(directory: Path, splitting: str, opening: str, padding: str | None) -> Path:
    """A tiny Llama classifier as transformers writes it, with this padding token."""
    words = splitting_tokenizer(splitting, opening)
    words.pad_token = padding
    pad = None if padding is None else words.convert_tokens_to_ids(padding)
    shape = SHAPE | {"num_hidden_layers": 2, "pad_token_id": pad, "eos_token_id": words.eos_token_id}
    return write_model(directory, transformers.LlamaConfig(**shape, vocab_size=len(words)), words)


def write_panel(directory: Path, sources: dict[str, Path | str], **more) -> Path:
    """A panel of models by name with the prompts best, worst (asked later) and elo_prefer, and a store of its own."""
    prompts = [
        {"key": key, "text": f"What is the {key} thing?", "framing": "positive", "scanned": key != "elo_prefer"}
        for key in ("best", "worst", "elo_prefer")
    ]
    prompts[1]["history"] = EARLIER
    models = [{"name": name, "source": str(source), **more} for name, source in sources.items()]
    panel = {"name": "tiny", "title": "Tiny", "scores": "scores", "models": models, "prompts": prompts}
    (directory / "tiny.yml").write_text(yaml.safe_dump(panel))
    return directory / "tiny.yml"

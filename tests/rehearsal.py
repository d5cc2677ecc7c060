"""Ten tiny reward models with random weights in the formats of the papers' ten, and a panel of them and of two bases.

`python tests/rehearsal.py DIRECTORY` writes them with the demo bases' tokenizers, 49,152 and 262,144 ids, and prints
the path of the panel. Tests cut the vocabularies to two thousand ids.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import yaml
from checkpoints import LLAMA3_SPLIT, SHAPE, byte_level, write_model
from head_checkpoints import (
    CASES,
    GEMMA2,
    GEMMA2_TEMPLATE,
    LINEAR,
    LLAMA3,
    LLAMA3_TEMPLATE,
    Case,
    architecture,
    special_ids,
    write_head,
)
from tokenizers import Regex, Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, PreTrainedTokenizerFast

from rmnb.data import lexicons
from rmnb.data.list_scores import panel_lists, score_list
from rmnb.findings import identity
from rmnb.models.bases import base_directory
from rmnb.panels import load_panel
from rmnb.scoring import store
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.scanning import scan_vocabulary
from rmnb.searching.config import SearchConfig
from rmnb.searching.rewards import RewardObjective
from rmnb.searching.run import search

sys.path.append(str(Path(__file__).parents[1] / "workflow"))
import carriers
import judged
import policies

TEMPLATES = {"Gemma": GEMMA2_TEMPLATE, "Llama": LLAMA3_TEMPLATE}
CONFIGS = {"Gemma": Gemma2Config, "Llama": LlamaConfig}
CLASSIFIERS = {
    "Gemma": CASES["skywork-v1"],
    "Llama": Case(*LINEAR, "linear", config=architecture("LlamaForSequenceClassification")),
}
FORMATS = {  # of the models that are no plain classifiers
    "N-Gem-27B": CASES["qrm-gemma"],
    "N-Lla-8B": CASES["qrm-llama"],
    "L-Lla-8B": CASES["urm"],
    "F-Lla-8B-v0.1": CASES["armorm"],
}

KINDS = ("02-surrogate", "04-surrogate", "04-random")
ASKED = re.compile("elo_.*|greatest|(best|greatest|worst|bad)_(ever|world)_(one|single)")  # about listed texts


def wrapped(core: Tokenizer, base: str) -> PreTrainedTokenizerFast:
    """A tokenizer that writes its family's turns; the special tokens are those of the tiny heads' tokenizers."""
    pad, bos, eos = (GEMMA2 if base == "Gemma" else LLAMA3)[:3]
    words = PreTrainedTokenizerFast(tokenizer_object=core, pad_token=pad, bos_token=bos, eos_token=eos)
    words.chat_template = TEMPLATES[base]
    return words


def whole_tokenizers() -> dict[str, PreTrainedTokenizerFast]:
    """The demo bases' tokenizers: Gemma's, and SmolLM2's with Llama 3's control tokens and its rules of splitting."""
    gemma = Tokenizer.from_file(str(base_directory("gemma3-270m") / "tokenizer.json"))
    text = (base_directory("smollm2-135m-instruct") / "tokenizer.json").read_text(encoding="utf-8")
    spare = ("<issue_start>", "<|im_start|>", "<|im_end|>", "<issue_comment>", "<issue_closed>", "<|endoftext|>")
    for old, new in zip(spare, LLAMA3, strict=True):
        text = text.replace(json.dumps(old), json.dumps(new))
    llama = Tokenizer.from_str(text)
    return {"Gemma": wrapped(gemma, "Gemma"), "Llama": wrapped(_split_as_llama3(llama), "Llama")}


def _split_as_llama3(core: Tokenizer) -> Tokenizer:
    split = pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated")
    core.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    return core


def cut_tokenizers(size: int = 2000) -> dict[str, PreTrainedTokenizerFast]:
    """Byte-level tokenizers of so many ids, whose words are rated, name groups of people or are nouns of chapter 7."""
    pairs = lexicons.identity_terms().query("term.str.isalpha() and control.str.isalpha()")
    nouns = lexicons.agency_communion()["word"]
    lists = [lexicons.afinn()["word"][::9], pairs["term"][::3], pairs["control"][::3], nouns[::3]]
    words = sorted({word for texts in lists for word in texts if word.isalpha()})
    cut = {}
    for base, special, left_out in (("Gemma", GEMMA2, 7), ("Llama", LLAMA3, 5)):
        text = [f" {word}" for place, word in enumerate(words) if place % left_out]
        core = byte_level(text * 3, vocab_size=size, special_tokens=special)
        cut[base] = wrapped(core if base == "Gemma" else _split_as_llama3(core), base)
    return cut


def write_ten(directory: Path, tokenizers: Mapping[str, PreTrainedTokenizerFast], names: Sequence[str] = ()) -> Path:
    """The checkpoints and ``ten.yml``, the panel facct2025 (or these of it) with such sources, in single precision."""
    models, bases = [], []
    for seed, spec in enumerate(load_panel("facct2025").models, start=1):
        if names and spec.name not in names:
            continue
        base = str(spec.base_family)
        case = FORMATS.get(spec.name, CLASSIFIERS[base])
        write_head(directory / spec.name, case, tokenizers[base], seed)
        shown = {"name", "family", "base_family", "developer", "group", "parameters", "rank", "colour"}
        models.append(spec.model_dump(include=shown) | {"source": spec.name})
    for base, words in tokenizers.items():
        config = CONFIGS[base](**SHAPE | special_ids(words) | {"vocab_size": len(words)})
        write_model(directory / base, config, words, AutoModelForCausalLM)
        bases.append({"name": base, "source": base, "kind": "instruct", "wrapping": "chat", "family": base})
    bases.reverse()  # chapter 10 takes the first: Llama, which has fewer tokens
    panel = {"name": "ten", "title": "Ten tiny models", "scores": "scores", "models": models, "bases": bases}
    (directory / "ten.yml").write_text(yaml.safe_dump(panel, sort_keys=False))
    return directory / "ten.yml"


def prepare(path: Path) -> None:
    """Make in this process what the workflow makes of a panel.

    The searches are shorter than the workflow's, and words are scored under a third of their prompts.
    """
    panel = load_panel(path)
    is_asked_for_greatest = "greatest" in (prompt.key for prompt in panel.prompts)
    for name in panel.model_names:
        rm = load_reward_model(name, panel=panel, device="cpu")
        for prompt in panel.scanned_prompts:
            scan_vocabulary(rm, prompt, store.scores_path(panel, name, prompt.key), write=store.write_scores)
        for texts in panel_lists(panel):
            prompts = panel.named_prompts(texts.prompts)
            score_list(rm, panel, texts.name, prompts=[prompt for prompt in prompts if ASKED.fullmatch(prompt.key)])
        identity.score_pairs(rm, panel)
        if is_asked_for_greatest:
            objective = RewardObjective([rm], [panel.prompt("greatest")])
            for kind, direction in product(KINDS, ("max", "min")):
                length, method = kind.split("-")
                short = {"steps": 4, "width": 16, "sample": 32}
                config = SearchConfig(length=int(length), method=method, direction=direction, **short)
                output = judged.searches(panel, name) / f"{direction}-{kind}-0.json"
                search(objective, config, output=output)
    for name in panel.model_names if is_asked_for_greatest else ():
        judged.main(str(path), name)
    if {"greatest", "best", "worst"} <= {prompt.key for prompt in panel.scanned_prompts}:
        for name in panel.model_names:
            carriers.scan(panel, name)
        carriers.contents(panel)
        carriers.score_answers(panel, *panel.model_names)
    for base in panel.bases:
        if is_asked_for_greatest and base.kind == "instruct":
            policies.reference(panel, base.name, "greatest")
        for wrapping in (base.wrapping, "user_assistant"):
            policies.nouns(panel, base.name, wrapping)


if __name__ == "__main__":
    print(write_ten(Path(sys.argv[1]), whole_tokenizers()))

"""Which checkpoints load, and how exactly? One row a kind of checkpoint and architecture.

Run as ``python benchmarks/checkpoints.py [PACKAGE …]``. Each kind is written by the trainer's own library, tiny and
with random weights, and loaded by rmnb; its rewards are held against the trainer's own forward pass in fp32. Rows of
packages that are not named stay as they are.

transformers, peft and trl come with rmnb. The others ask for other versions of what rmnb uses, so they are installed
beside it, without their dependencies: ``pip install --no-deps --target trainers llamafactory ms-swift openrlhf
deepspeed trl==0.24.0`` and what they then miss; ``PYTHONPATH=trainers python benchmarks/checkpoints.py llamafactory
ms-swift openrlhf``.
"""

import argparse
import importlib.machinery
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import types
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

import rmnb
from rmnb.files import atomic_path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from checkpoints import randomise  # noqa: E402
from trained import (  # noqa: E402
    ARCHITECTURES,
    CONVERSATIONS,
    LINEAR,
    WORDS,
    WRITERS,
    Rewards,
    Writer,
    cast,
    classifier_rewards,
    difference,
    randomise_trained,
    rewards_of,
    write_base,
    write_classifier,
)

OUT = ROOT / "data" / "checkpoints"
NAMES = {
    "transformers": "transformers",
    "peft": "PEFT",
    "trl": "TRL",
    "llamafactory": "LLaMA-Factory",
    "openrlhf": "OpenRLHF",
    "ms-swift": "ms-swift",
}
USED = ("rmnb", "torch", "transformers", "peft", "safetensors")


def llama_factory(adapted: bool):
    """A language model with a value head, loaded and saved by LLaMA-Factory."""

    def write(directory: Path, architecture: str) -> Rewards:
        os.environ["DISABLE_VERSION_CHECK"] = "1"  # it asks for other versions than those that it works with
        from llamafactory.hparams import FinetuningArguments, ModelArguments
        from llamafactory.model import load_model
        from llamafactory.train.callbacks import fix_valuehead_checkpoint
        from safetensors.torch import save_file

        base = write_base(directory.with_name(f"{directory.name}-base"), architecture)
        model_args = ModelArguments(model_name_or_path=str(base))
        model_args.compute_dtype, model_args.device_map = torch.float32, {"": "cpu"}
        how = FinetuningArguments(stage="rm", finetuning_type="lora" if adapted else "full", lora_rank=2)
        model = load_model(WORDS, model_args, how, is_trainable=True, add_valuehead=True)
        randomise_trained(model)
        # What its trainer saves before the callback takes the head out: everything that is trained.
        directory.mkdir()
        tensors = {name: each.clone() for name, each in model.state_dict().items() if "lm_head" not in name}
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
        fix_valuehead_checkpoint(model, str(directory), safe_serialization=True)
        WORDS.save_pretrained(directory)
        asked = {"output_hidden_states": True, "return_dict": True, "use_cache": False}  # as its trainer does
        return rewards_of(
            cast(model, "float32"),
            lambda ids: model(input_ids=ids, attention_mask=torch.ones_like(ids), **asked)[2][0, -1],
        )

    return write


def openrlhf(prefix: str = "score", normalised: bool = False, adapted: bool = False):
    """OpenRLHF's own reward model, saved by its strategy; adapted, it begins from a reward model: see the page."""

    def write(directory: Path, architecture: str) -> Rewards:
        without_flash_attention()
        from openrlhf.models import model as models
        from openrlhf.utils.deepspeed import deepspeed

        base = directory.with_name(f"{directory.name}-base")
        write_classifier(base, architecture, "bfloat16") if adapted else write_base(base, architecture, "bfloat16")
        if normalised:
            settings = json.loads((base / "config.json").read_text())
            (base / "config.json").write_text(json.dumps(settings | {"mean": 0.25, "std": 1.5}))
        model = models.get_llm_for_sequence_regression(
            str(base),
            "reward",
            param_dtype="bf16",
            attn_implementation="eager",
            init_value_head=not adapted,
            value_head_prefix=prefix,
            normalize_reward=normalised,
            lora_rank=2 if adapted else 0,
            target_modules="all-linear",
        )
        randomise_trained(model)
        if normalised:  # transformers 5 leaves these two, which are in no file, empty
            model.mean.fill_(model.config.mean)
            model.std.fill_(model.config.std)
        model.config.value_head_prefix = prefix  # as its train_rm does before it saves
        deepspeed.torch_dist_barrier_and_cuda_sync = lambda: None  # one process, which has no group
        settings = types.SimpleNamespace(zero_stage=2, tensor_parallel_size=1)
        strategy = types.SimpleNamespace(
            is_rank_0=lambda: True,
            _unwrap_model=lambda model: model,
            args=types.SimpleNamespace(ds=settings),
            ds_tensor_parallel_size=1,
            stage=2,
        )
        deepspeed.DeepspeedStrategy.save_model(strategy, model, WORDS, str(directory))
        return rewards_of(cast(model, "float32"), lambda ids: model(ids, attention_mask=torch.ones_like(ids))[0])

    return write


def ms_swift(adapted: bool):
    """The classifier that ms-swift's reward modelling makes of a language model; adapted by its tuner."""

    def write(directory: Path, architecture: str) -> Rewards:
        from swift.model.patcher import patch_automodel_for_sequence_classification
        from swift.tuners import LoraConfig as SwiftLora
        from swift.tuners import Swift

        base = write_base(directory.with_name(f"{directory.name}-base"), architecture)
        config = AutoConfig.from_pretrained(base)
        config.num_labels, config.tie_word_embeddings = 1, False  # as its loader does
        config.pad_token_id = WORDS.pad_token_id
        with patch_automodel_for_sequence_classification(model_config=config, patch_from_pretrained=False):
            model = AutoModelForSequenceClassification.from_pretrained(base, config=config, dtype=torch.float32)
        if adapted:
            asked = SwiftLora(task_type="SEQ_CLS", r=2, target_modules=LINEAR, modules_to_save=["v_head"])
            model = Swift.prepare_model(model, asked)
            randomise_trained(model)
        else:
            randomise(model)
        model.save_pretrained(str(directory))
        WORDS.save_pretrained(directory)
        return classifier_rewards(model)

    return write


def without_flash_attention() -> None:
    """OpenRLHF imports flash-attn for packing alone, which is not used here and needs a GPU to install."""
    import transformers.models.llama.modeling_llama  # noqa: F401 - it asks whether flash-attn is there

    names = ("index_first_axis", "pad_input", "rearrange", "unpad_input", "all_gather")
    for module in ("flash_attn", "flash_attn.bert_padding", "flash_attn.utils", "flash_attn.utils.distributed"):
        if module not in sys.modules:
            sys.modules[module] = types.ModuleType(module)
            sys.modules[module].__spec__ = importlib.machinery.ModuleSpec(module, None)
            vars(sys.modules[module]).update(dict.fromkeys(names))


KINDS = [
    *WRITERS,
    Writer("whole model, value head beside", "llamafactory", llama_factory(adapted=False)),
    Writer("LoRA, value head beside", "llamafactory", llama_factory(adapted=True)),
    Writer("whole model in bfloat16", "openrlhf", openrlhf()),
    Writer("whole model, head of another name", "openrlhf", openrlhf("value_head")),
    Writer("whole model, rewards normalised", "openrlhf", openrlhf(normalised=True)),
    Writer("LoRA on a reward model", "openrlhf", openrlhf(adapted=True)),
    Writer("whole model", "ms-swift", ms_swift(adapted=False)),
    Writer("LoRA", "ms-swift", ms_swift(adapted=True)),
]


def row(writer: Writer, architecture: str) -> dict:
    """Write a checkpoint, load it, compare."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work) / "checkpoint"
        expected = writer.write(directory, architecture)
        found = difference(rmnb.load_reward_model(directory, device="cpu", **writer.options), expected)
    return {
        "kind": writer.kind,
        "written by": f"{NAMES[writer.package]} {importlib.metadata.version(writer.package)}",
        "architecture": architecture,
        "largest difference": float(f"{found:.1e}"),
        "conversations": len(CONVERSATIONS),
    }


def package_of(written_by: str) -> str:
    """A package's name without its version."""
    return written_by.rpartition(" ")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(NAMES))
    packages = parser.parse_args().packages or ["transformers", "peft", "trl"]
    if unknown := set(packages) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    file, record = OUT / "table.csv", OUT / "provenance.json"
    OUT.mkdir(parents=True, exist_ok=True)
    kept = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["written by"])
    kept = kept[~kept["written by"].map(package_of).isin([NAMES[package] for package in packages]).astype(bool)]
    rows = []
    for writer in (each for each in KINDS if each.package in packages):
        for architecture in ARCHITECTURES:
            rows.append(row(writer, architecture))
            print(*rows[-1].values(), sep="\t", flush=True)
    table = pd.concat([kept, pd.DataFrame(rows)], ignore_index=True)[list(rows[0])].astype({"conversations": int})
    order = {name: place for place, name in enumerate(NAMES.values())}
    table = table.sort_values("written by", key=lambda by: by.map(package_of).map(order), kind="stable")
    by_kind = table.pivot_table(
        index=["written by", "kind"], columns="architecture", values="largest difference", sort=False
    )
    provenance = json.loads(record.read_text()) if record.exists() else {}
    versions = {name: importlib.metadata.version(name) for name in USED} | {"python": platform.python_version()}
    made = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}
    with atomic_path(file) as path:
        table.to_csv(path, index=False)
    with atomic_path(OUT / "by_kind.csv") as path:
        by_kind[list(ARCHITECTURES)].map("{:.0e}".format).to_csv(path)
    with atomic_path(record) as path:
        path.write_text(json.dumps(provenance | dict.fromkeys(packages, made), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

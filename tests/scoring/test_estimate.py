"""What a scan is said to take, against independent counts and against scans that were timed."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from checkpoints import write_decoder, write_encoder
from safetensors.torch import load_file
from torch.utils.flop_counter import FlopCounterMode

import rmnb
from rmnb.models.outline import outline
from rmnb.panels import find_spec
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.estimate import Work, shape_of, work_of
from rmnb.scoring.pace import Machine, ScanEstimate, duration

ROOT = Path(__file__).parents[2]
PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "qwen3"])
@pytest.mark.parametrize("shared", [True, False])
def test_operations_are_those_that_torch_counts_in_a_scan(architecture, shared, tmp_path):
    rm = rmnb.load_reward_model(write_decoder(tmp_path, architecture), device="cpu")
    if not shared:
        rm = replace(rm, plain_because="asked for by a test")
    PrefixScorer(rm, [1])  # proves the model, which is not a part of the scan
    with FlopCounterMode(display=False) as counter:
        rmnb.scan_vocabulary(rm, PROMPT, limit=200)
    assert work_of(rm, PROMPT, 200).operations == pytest.approx(counter.get_total_flops(), rel=0.01)


@pytest.mark.parametrize("write", [write_decoder, write_encoder])
def test_a_model_is_counted_from_its_configuration_as_from_its_weights(write, tmp_path):
    spec = find_spec(write(tmp_path))
    found, rm = outline(spec), rmnb.load_reward_model(spec, device="cpu")
    shape, loaded = shape_of(found.network), shape_of(rm.network)
    frame = found.frame(PROMPT)
    assert Work(shape, 200, *frame, shared=found.shared) == replace(work_of(rm, PROMPT, 200), shape=shape)
    assert (shape.products, shape.once, shape.vocabulary) == (loaded.products, loaded.once, loaded.vocabulary)
    tensors = load_file(tmp_path / "model.safetensors")
    stored = sum(tensor.numel() for name, tensor in tensors.items() if not name.startswith(("score", "classif")))
    assert shape.parameters == stored


def test_the_place_that_is_read_sets_how_many_ids_a_token_takes(tmp_path):
    write_decoder(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"pad_token_id": 0', '"pad_token_id": 5'))  # <end> closes the answer
    assert [
        outline(find_spec(tmp_path)).frame(PROMPT)[1],
        work_of(rmnb.load_reward_model(tmp_path), PROMPT, 9).ids,
    ] == [1, 1]
    last = find_spec(tmp_path).model_copy(update={"read": "last"})
    assert outline(last).frame(PROMPT)[1] == 2


def test_the_papers_models_on_an_h100_took_what_is_estimated():
    measured = pd.read_csv(ROOT / "data" / "gpu" / "papers.csv").set_index("architecture")
    members, machine = rmnb.load_panel("facct2025"), Machine("h100")
    seen = set()
    for spec in members.models:
        name = f"{spec.family.split()[0]} {spec.parameters:g}B"
        found = outline(spec)
        shape = shape_of(found.network)
        estimate = ScanEstimate(Work(shape, shape.vocabulary, *found.frame(PROMPT)), "bfloat16", machine)
        assert estimate.seconds == pytest.approx(measured.loc[name, "seconds"], rel=0.25)
        assert estimate.memory / 1e9 == pytest.approx(measured.loc[name, "GPU memory, GB"], rel=0.05)
        seen.add(name)
    assert seen == set(measured.index)


def test_of_experts_only_those_count_that_an_id_passes():
    import transformers

    config = transformers.MixtralConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        vocab_size=100, num_local_experts=8, num_experts_per_tok=2,
    )  # fmt: skip
    with torch.device("meta"):
        shape = shape_of(transformers.AutoModel.from_config(config))
    attention, experts, gate = 4 * 32 * 32, 3 * 32 * 64, 8 * 32
    assert shape.weights_an_id == pytest.approx(2 * (attention + 2 * experts + gate), abs=2 * gate)
    assert shape.in_products == pytest.approx(2 * (attention + 8 * experts + gate), abs=2 * gate)


def test_what_was_measured_bears_the_estimates_out():
    table = pd.read_csv(ROOT / "data" / "gpu" / "plan.csv")
    assert {"smollm2-values", "gemma3-values"} <= set(table["model"])
    assert table["estimated over measured"].between(0.75, 1.25).all()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (90, "1 min 30 s"), (3540, "59 min"), (9000, "2 h 30 min")]
)
def test_a_time_is_said_as_people_say_it(seconds, text):
    assert duration(seconds) == text

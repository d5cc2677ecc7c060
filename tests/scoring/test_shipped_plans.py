"""The plans of shipped scores are those that a panel and a model's files give: else every reader would have to scan."""

import json

import pytest

from rmnb.models.loading import read_checkpoint
from rmnb.panels import load_panel
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.scanning import _describe
from rmnb.scoring.store import describe_model, read_table, store_directory

PANELS = [load_panel("demo"), load_panel("demo-judge")]
FAST = {"smollm2-mixed", "gemma3-mixed", "smollm2-judge"}  # a recipe on each base, and a language model's head
CASES = [
    pytest.param(panel, spec, id=spec.name, marks=() if spec.name in FAST else pytest.mark.slow)
    for panel in PANELS
    for spec in panel.models
    if any((store_directory(panel) / spec.name).glob("*.parquet"))
]


@pytest.mark.parametrize(("panel", "spec"), CASES)
def test_the_plan_of_a_shipped_file_is_made_again_byte_for_byte(panel, spec):
    rm = read_checkpoint(spec, "cpu", None, RewardModel)
    directory = store_directory(panel) / spec.name
    plans = {}
    for path in directory.glob("*.*.parquet"):
        prompt, protocol, _ = path.name.split(".")
        plans[path] = _describe(rm, panel.prompt(prompt), protocol, None) | {"tokens": rm.vocabulary_size}
    assert plans
    lists = [path for path in directory.glob("lists/*.parquet") if "config_sha256" in read_table(path)[1]]
    plans |= dict.fromkeys(lists, describe_model(rm))
    for path, plan in plans.items():
        stored = read_table(path)[1]
        assert json.dumps({key: stored.get(key) for key in plan}) == json.dumps(plan), path

"""Training by TRL on real pairs: cut off, it goes on, and its adapter scores. That nothing is lost: tests/torture."""

import json

import numpy as np
import pytest
import torch
from checkpoints import TEMPLATE, edit, own_ids, rewards_alone, tokenizer, write_base
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError
from rmnb.files import data_dir, write_json
from rmnb.findings.heterogeneity import properties
from rmnb.models.bases import base_directory
from rmnb.models.loading import language_model
from rmnb.panels import ModelSpec, find_base, load_panel
from rmnb.plans import open_or_refuse
from rmnb.scoring.logprobs import load_language_model
from rmnb.training import evaluation, recipes, runs, train
from rmnb.training.pairs import build_pairs
from rmnb.training.recipes import load_recipe
from rmnb.training.train import opening_order

PROMPT = "What, in one word, is the greatest thing ever?"
COPY = "smollm2-135m-instruct-sft"


def few_steps(name="values", things=12, epochs=1, **changes):
    """A recipe of few pairs in batches of four."""
    recipe = load_recipe(name)
    changes["hyperparameters"] = recipe.hyperparameters.model_copy(update={"batch_size": 4, "epochs": epochs})
    changes["things"] = recipe.things.model_copy(update={"pairs": things})
    return recipe.model_copy(update={"mismatched": None, "preferences": (), **changes})


def test_training_that_was_cut_off_goes_on_and_its_adapter_scores_as_in_peft(mirror, tmp_path, monkeypatch):
    """On any language model in a directory, in the template of its tokenizer."""
    from trl import RewardTrainer

    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 1)
    base, output, work = write_base(tmp_path / "base", "qwen2"), tmp_path / "own", tmp_path / "work"
    recipe, spec = few_steps(things=16), ModelSpec(name="own", base=str(base), adapter=str(output))
    step, calls = RewardTrainer.training_step, []

    def cut_off(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(*arguments, **options)

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(RewardTrainer, "training_step", cut_off)
        train.fit(spec, recipe, output, work)
    assert not output.exists()
    assert [path.name for path in work.glob("checkpoint-*")] == ["checkpoint-2"]
    (work / "checkpoint-3").mkdir()  # which was not written whole
    train.fit(spec, recipe, output, work)
    assert json.loads((output / "provenance.json").read_text())["steps"] == 4
    assert list(runs.snapshots(work)) == [0, 1, 2, 4]
    classifier = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    classifier.config.pad_token_id = None
    ids = own_ids(tokenizer(), PROMPT, ["love", "war"])
    expected = rewards_alone(PeftModel.from_pretrained(classifier, output), ids)
    rewards = rmnb.load_reward_model(spec).score(PROMPT, ["love", "war"])
    assert rewards == pytest.approx(expected, abs=1e-4) and rewards[0] != rewards[1]
    edit(output / "provenance.json", template=TEMPLATE + "{{ bos_token }}")
    by_directory, of_panel = (rmnb.load_reward_model(place).score(PROMPT, ["love", "war"]) for place in (output, spec))
    assert by_directory.tolist() == of_panel.tolist() != rewards.tolist()  # in the template that is recorded, both
    with pytest.raises(InputError, match="delete it") as refused:
        train.fit(spec, recipe.model_copy(update={"share": 0.5}), output, work)
    assert refused.value.about == "share"
    monkeypatch.setattr(train, "version", lambda package: "0.0")
    with pytest.raises(InputError, match="differs in versions"):
        train.fit(spec, recipe, output, work)
    with pytest.raises(InputError, match="unknown base 'nobody'"):
        train.fit(spec.model_copy(update={"base": "nobody"}), recipe, output, tmp_path / "other")


def test_a_base_in_pickles_alone_is_refused(tmp_path):
    weights = write_base(tmp_path) / "model.safetensors"
    torch.save(load_file(weights), tmp_path / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(InputError, match="safetensors"):
        train.load_base(AutoModelForCausalLM, str(tmp_path))


def test_a_training_with_an_opening_starts_from_a_head_that_knows_good_from_bad(mirror, tmp_path):
    base = write_base(tmp_path / "base")
    recipe = few_steps("mixed", things=24, opening=8)
    spec = ModelSpec(name="own", base=str(base), adapter="out")
    train.fit(spec, recipe, tmp_path / "out", tmp_path / "work")
    begun = rmnb.load_reward_model(spec.model_copy(update={"adapter": str(runs.snapshots(tmp_path / "work")[0])}))
    for pair in build_pairs(recipe)[0].itertuples():
        if pair.prompt in recipe.things.wonderful:
            better, worse = begun.score(pair.prompt, [pair.chosen, pair.rejected])
            assert better > worse
    with pytest.raises(ValueError, match="shape mismatch"):
        opening_order(np.array([True, True, False, False]), pairs=8, batch=4)


def test_a_tuned_copy_learns_the_chosen_answers_and_loads_as_peft_loads_it(mirror, tmp_path):
    panel, recipe = load_panel("demo"), few_steps(epochs=3)
    spec = find_base(panel, COPY)
    train.fit(spec, recipe, tmp_path / "copy", tmp_path / "work")
    described = json.loads((tmp_path / "copy" / "provenance.json").read_text())
    assert described["objective"] == "sft" and described["steps"] == 9
    copy = load_language_model(spec.model_copy(update={"adapter": str(tmp_path / "copy")}))
    tuned = spec.as_model().model_copy(update={"adapter": str(tmp_path / "copy")})
    pairs = build_pairs(recipe)[0]
    gained = rmnb.load_reward_model(tuned, reference=spec.source, beta=1.0).score(pairs["prompt"], pairs["chosen"])
    assert gained.mean() > 1 and (gained > 0).mean() > 0.8
    network = AutoModelForCausalLM.from_pretrained(base_directory(spec.source), dtype=torch.float32)
    theirs = PeftModel.from_pretrained(network, tmp_path / "copy").eval()
    ids = torch.tensor([copy.dialogue.frame_ids(PROMPT)[0]])
    with torch.no_grad():
        tuned = language_model(copy)
        tuned.set_attn_implementation("eager")
        expected, actual = (network(ids).logits[0, -1].log_softmax(-1) for network in (theirs, tuned))
    torch.testing.assert_close(actual, expected, atol=2e-3, rtol=0)


def test_what_is_trained_measured_and_followed_is_finished(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(evaluation, "load_reward_model", None)  # what is measured is not measured again
    panel, accuracies = load_panel("demo"), {"smollm2-values": 0.5, "gemma3-mixed": 0.5, "gemma3-values": 0.6}
    assert runs.unfinished(panel) == list(runs.runs(panel)) and COPY in runs.runs(panel)
    for name, accuracy in accuracies.items():
        measured = {key: {} for key in evaluation.measurements(panel.model(name), panel)}
        measured |= {"held_out": {"all": {"value": 0.7}}, "rm_bench": {"all": {"value": accuracy}}}
        file = tmp_path / "data" / panel.model(name).adapter / "provenance.json"
        write_json(file, {"pairs": 7, "evaluation": measured})
    assert not {*accuracies} & {*runs.unfinished(panel)}  # trained elsewhere: no snapshots to follow
    assert runs.train_model(panel, name) == measured
    assert runs.follow(panel, "gemma3-values") is None
    (runs.work_directory(panel, "gemma3-values") / "snapshots" / "step-0").mkdir(parents=True)
    assert "gemma3-values" in runs.unfinished(panel)
    write_json(runs.trajectory_path(panel, "gemma3-values"), {})
    assert "gemma3-values" not in runs.unfinished(panel)
    assert properties(panel)["rank"].dropna().to_dict() == {"smollm2-values": 2, "gemma3-values": 1, "gemma3-mixed": 2}
    table = runs.overview(panel).set_index("model")
    assert len(table) == len(panel.models)
    assert table.loc["smollm2-values", ["pairs", "held out", "RM-Bench"]].tolist() == [7, 0.7, 0.5]
    with pytest.raises(InputError, match="no model 'nobody' with a recipe"):
        runs.train_model(panel, "nobody")


def test_a_finished_model_of_another_recipe_base_or_template_is_refused(monkeypatch):
    monkeypatch.setattr(train, "fit", None)  # nothing is trained, and nothing is measured
    monkeypatch.setattr(evaluation, "measure", lambda *_: ())
    panel = load_panel("demo")
    finished = data_dir() / panel.model("smollm2-values").adapter
    before = (finished / "provenance.json").read_bytes()
    assert runs.train_model(panel, "smollm2-values", finished)["held_out"]["all"]["value"] > 0.5
    for name, differs in {"smollm2-helpful": "hyperparameters, things", "gemma3-values": "base, template"}.items():
        with pytest.raises(InputError, match=f"holds other work: it differs in {differs}"):
            runs.train_model(panel, name, finished)
    assert (finished / "provenance.json").read_bytes() == before


def test_a_changed_recipe_trains_elsewhere_or_anew_as_the_line_says(tmp_path, monkeypatch):
    """`rmnb book train` names --out and --restart: the one takes its checkpoints along, the other begins again."""
    monkeypatch.setattr(evaluation, "measure", lambda *_: ())
    trained = []

    def fit(spec, recipe, output, work):
        open_or_refuse(work, {"share": recipe.share})
        trained.append((recipe.share, work))
        finished = {"recipe": recipe.model_dump(mode="json"), "base": {"name": spec.base}, "template": spec.template}
        write_json(output / "provenance.json", finished)

    monkeypatch.setattr(train, "fit", fit)
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    panel, name, out = load_panel("demo"), "smollm2-values", tmp_path / "out"
    runs.train_model(panel, name, out)
    changed = load_recipe("values").model_copy(update={"share": 0.5})
    monkeypatch.setattr(recipes, "load_recipe", lambda name: changed)
    with pytest.raises(InputError, match=r"differs in share: choose another --out, or delete it, or take --restart"):
        runs.train_model(panel, name, out)
    runs.train_model(panel, name, tmp_path / "other")
    runs.train_model(panel, name, out, restart=True)
    places = [tmp_path / "out.partial", tmp_path / "other.partial", tmp_path / "out.partial"]
    assert trained == list(zip([1.0, 0.5, 0.5], places, strict=True))

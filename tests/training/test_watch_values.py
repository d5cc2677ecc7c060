"""A callback in a real training by TRL: what it logs is right, and the training is the same as without it."""

import json
import math

import pytest
import torch
from checkpoints import write_decoder
from trained import reward_trainer
from transformers import AutoModelForSequenceClassification, TrainerCallback

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.rows import score_file
from rmnb.training import watch_values
from rmnb.training.watch_values import WatchValues, measure_values

STEPS = 4


def trainer_in(directory, architecture="llama", adapted=None, **arguments):
    begun = write_decoder(directory / "begun", architecture)
    model = AutoModelForSequenceClassification.from_pretrained(begun, num_labels=1)
    options = dict(max_steps=STEPS, logging_steps=STEPS, learning_rate=0.01, save_strategy="no") | arguments
    return reward_trainer(model, directory, "What is good?", 8, adapted, **options)


@pytest.mark.parametrize(("architecture", "adapted"), [("llama", None), ("gemma3", ["q_proj"])])
def test_what_is_logged_is_what_the_saved_model_values(architecture, adapted, tmp_path):
    trainer = trainer_in(tmp_path / "work", architecture, adapted)
    WatchValues(every=2).attach(trainer)
    trainer.train()
    if adapted:
        trainer.model = trainer.model.merge_and_unload()
    trainer.save_model(tmp_path / "model")
    saved = measure_values(rmnb.load_reward_model(tmp_path / "model"))
    logged = [entry for entry in trainer.state.log_history if "values/valence" in entry]
    assert [entry["step"] for entry in logged] == [0, 2, 4]
    assert {name: logged[-1][name] for name in saved} == pytest.approx(saved, abs=1e-3)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses and all(map(math.isfinite, losses))


def test_the_training_is_the_same_and_what_writes_its_records_gets_the_numbers(tmp_path):
    """TensorBoard's and W&B's callbacks are such writers: they are there before anything is attached."""
    written, weights = [], []

    class Writer(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            written.append(dict(logs))

    for watched in (False, True):
        trainer = trainer_in(tmp_path / str(watched))
        if watched:
            trainer.add_callback(Writer)
            WatchValues(every=1).attach(trainer)
        trainer.train()
        weights.append({name: each.clone() for name, each in trainer.model.state_dict().items()})
        assert trainer.model.config._attn_implementation != "rmnb_shared_prefix"
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert sum("values/valence" in logs for logs in written) == STEPS + 1


def test_a_training_that_stops_early_is_measured_where_it_ends(tmp_path):
    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_training_stop = state.global_step == 3

    trainer = trainer_in(tmp_path, max_steps=8)
    trainer.add_callback(Stop)
    WatchValues(every=2).attach(trainer)
    trainer.train()
    assert [entry["step"] for entry in trainer.state.log_history if "values/valence" in entry] == [0, 2, 3]


def test_training_in_half_precision_is_measured_in_it_without_ties(tmp_path, monkeypatch):
    words = ["love", "war", "peace", "time", "work", "life"]
    scored = []

    def measure(rm):
        scored.append(rm.score(watch_values.GREATEST, words))
        return measure_values(rm)

    monkeypatch.setattr(watch_values, "measure_values", measure)
    trainer = trainer_in(tmp_path / "work", bf16=True)
    WatchValues(every=STEPS).attach(trainer)
    trainer.train()
    trainer.save_model(tmp_path / "model")
    exact = rmnb.load_reward_model(tmp_path / "model").score(watch_values.GREATEST, words)
    assert scored[-1] == pytest.approx(exact, rel=0.05, abs=0.05) and (scored[-1] != exact).any()
    assert len(set(scored[-1])) == len(set(exact))


def test_a_limit_on_own_pairs_stops_the_training_and_what_is_logged_is_what_the_saved_model_gets(tmp_path, caplog):
    pairs = [{"prompt": "What is good?", "chosen": word, "rejected": "war"} for word in ("love", "peace", "water")]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    for limit, last in (("accuracy < 0", STEPS), ("margin < 1000", 2)):
        trainer = trainer_in(tmp_path / limit[0])
        WatchValues(every=2, rows=tmp_path / "pairs.jsonl", fail_if=[limit]).attach(trainer)
        trainer.train()
        assert trainer.state.global_step == last and ("broken  margin < 1000" in caplog.text) == (last == 2)
    trainer.save_model(tmp_path / "model")
    saved = score_file(rmnb.load_reward_model(tmp_path / "model"), pairs)
    margin = (saved["reward_chosen"] - saved["reward_rejected"]).mean()
    logged = [entry["values/margin"] for entry in trainer.state.log_history if "values/margin" in entry]
    assert logged[-1] == pytest.approx(margin, abs=1e-3)


def test_it_says_what_it_cannot_read(tmp_path):
    trainer = trainer_in(tmp_path)
    with pytest.raises(InputError, match="every"):
        WatchValues(every=0)
    with pytest.raises(InputError, match="give a file of pairs"):
        WatchValues(fail_if=["accuracy < 0.9"])
    trainer.add_callback(WatchValues())
    with pytest.raises(InputError, match="attach"):
        trainer.train()
    trainer.processing_class.chat_template = None
    with pytest.raises(InputError, match="chat template"):
        WatchValues().attach(trainer)

"""Train a language model on the rewards of a scan: one question, answers of one token, the reward looked up.

The objective is J = E[r] − β KL(π‖π_ref). Because a scan holds every reward, both terms are sums over the vocabulary,
whatever a trainer's own samples say; `rmnb.findings.policy` has the optimum that each run is compared with.
"""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from peft import LoraConfig
from torch import Tensor
from transformers import TrainerCallback

from rmnb.conversation import Prompt
from rmnb.errors import InputError
from rmnb.models.loading import language_model
from rmnb.plans import open_or_refuse
from rmnb.scoring.logprobs import prompt_ids
from rmnb.scoring.reward_model import RewardModel
from rmnb.training.train import CHECKPOINT_STEPS, last_whole_checkpoint

RECORDED = 10  # steps from one measurement to the next


@dataclass(frozen=True)
class PolicyOptions:
    """How a policy is trained: LoRA on the last layers, Adam, a learning rate that falls linearly to zero.

    Attributes
    ----------
    method : {"grpo", "exact", "cross-entropy"}
        TRL's GRPO on sampled answers; the gradient of J itself, summed over the vocabulary; or cross-entropy to the
        optimum, which no trainer knows.
    beta : float
        Weight of the KL divergence, in units of the reward a nat.
    samples : int
        Answers a step, of GRPO.
    layers : int
        How many of the last layers are trained; those below say the same of the question at every step and run once.
    """

    method: Literal["grpo", "exact", "cross-entropy"]
    beta: float
    seed: int = 0
    steps: int = 200
    samples: int = 64
    learning_rate: float = 5e-4
    rank: int = 8
    layers: int = 10


def train_policy(
    lm: RewardModel, prompt: Prompt, rewards: np.ndarray, options: PolicyOptions, work: Path
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Train a language model, which is used up, to answer with one token; a run that was cut off goes on.

    Parameters
    ----------
    rewards
        Of each id as the answer, shape (vocabulary,), in the reward model's unit.
    work
        Directory for checkpoints.

    Returns
    -------
    tuple
        The trained policy: natural log-probability of each id, float64 (vocabulary,). Its way there: step, kl (nats)
        and reward, sums over the vocabulary.

    Raises
    ------
    InputError
        `work` holds another run.
    """
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

    ids = prompt_ids(lm, prompt)
    rewards_sha256 = hashlib.sha256(rewards.astype("<f8").tobytes()).hexdigest()
    open_or_refuse(work, {**lm.hashes, "prompt_ids": ids, "rewards_sha256": rewards_sha256, **asdict(options)})
    torch.manual_seed(options.seed)
    reward = torch.tensor(rewards, dtype=torch.float64)
    network = language_model(lm)
    network.set_attn_implementation("eager")
    with torch.no_grad():
        states = _keep_last_layers(network, options.layers, torch.tensor([ids]))
        reference = _logprobs(network, states)
    optimum = torch.log_softmax(reference + reward / options.beta, -1).exp()

    class OnePrompt(GRPOTrainer):
        """GRPO in which all rows share a prompt and answer with one token: one row's logits serve them all.

        The method with an underscore is private to TRL: a step is compared with TRL's own in
        `tests/training/test_policy_training.py`.
        """

        logprobs: Tensor  # with their graph: the loss is taken at the weights that sampled

        def _get_per_token_logps_and_entropies(self, model, input_ids, *_, compute_entropy=False, **__):
            # TRL asks for the reference without gradients, its adapter switched off.
            logprobs = self.logprobs if torch.is_grad_enabled() else reference
            answers = logprobs[input_ids[:, -1:]]
            entropy = -(logprobs.exp() @ logprobs).detach().expand(answers.shape) if compute_entropy else None
            return answers, entropy, None

        def compute_loss(self, model, inputs, *others, **named):
            if options.method == "grpo":
                return super().compute_loss(model, inputs, *others, **named)
            if options.method == "cross-entropy":
                return -(optimum @ self.logprobs)
            return -(self.logprobs.exp() @ (reward - options.beta * (self.logprobs - reference)))

    def sample(prompts: list, trainer: Any) -> dict[str, list]:
        trainer.logprobs = _logprobs(trainer.model, states)
        drawn = torch.multinomial(trainer.logprobs.detach().exp(), len(prompts), replacement=True)
        answers = drawn[:, None].tolist()
        return {"prompt_ids": [ids] * len(prompts), "completion_ids": answers, "logprobs": [[0.0]] * len(prompts)}

    def look_up(completion_ids: list[list[int]], **_) -> list[float | None]:
        return reward[torch.tensor(completion_ids)[:, 0]].tolist()

    class Record(TrainerCallback):
        """Keeps KL and reward in the trainer's history, which checkpoints carry."""

        def on_step_begin(self, args, state, control, model=None, **_):
            if state.global_step % RECORDED == 0 or state.global_step == state.max_steps:
                with torch.no_grad():
                    logprobs = _logprobs(model, states)
                kl = logprobs.exp() @ (logprobs - reference)
                expected = logprobs.exp() @ reward
                state.log_history.append({"at": state.global_step, "kl": kl.item(), "reward": expected.item()})

        on_train_end = on_step_begin

    arguments = GRPOConfig(
        output_dir=str(work),
        max_steps=options.steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type="linear",
        seed=options.seed,
        beta=options.beta,
        num_generations=options.samples,
        per_device_train_batch_size=options.samples,
        max_completion_length=1,
        loss_type="grpo",
        scale_rewards="none",  # else the advantages are divided by their deviation: another β at every step
        use_bias_correction_kl=True,  # the gradient of KL(π‖π_ref), not of the other one
        bf16=False,
        gradient_checkpointing=False,
        save_steps=CHECKPOINT_STEPS,
        save_total_limit=1,
        report_to="none",
        use_cpu=True,
    )
    trainer: Any = OnePrompt(
        network,
        look_up,
        arguments,
        train_dataset=Dataset.from_list([{"prompt": "the same at every step"}] * options.samples),
        processing_class=lm.dialogue.tokenizer,
        peft_config=LoraConfig(
            r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
        rollout_func=sample,
        callbacks=[Record()],
    )
    trainer.train(resume_from_checkpoint=last_whole_checkpoint(work))
    with torch.no_grad():
        final = _logprobs(trainer.model, states).numpy()
    history = [row for row in trainer.state.log_history if "at" in row]
    return final, [{"step": row["at"], "kl": row["kl"], "reward": row["reward"]} for row in history]


def _keep_last_layers(model, count: int, ids: Tensor) -> Tensor:
    """Cut the layers below the last ones off a model, and return what they make of a prompt: [1, length, hidden].

    Given as its embeddings, it leads the rest to the same logits.
    """
    first = max(len(model.base_model.layers) - count, 0)
    output = model(ids, use_cache=False, output_hidden_states=True, logits_to_keep=1)
    model.base_model.layers = model.base_model.layers[first:]
    config = model.config.get_text_config()
    if kinds := getattr(config, "layer_types", None):
        config.layer_types = kinds[first:]
    config.num_hidden_layers -= first
    states = output.hidden_states[first]
    if not torch.allclose(_logprobs(model, states), output.logits[0, -1].double().log_softmax(-1), atol=1e-4):
        kind = type(model).__name__
        raise InputError(
            f"a {kind} cannot be trained from layer {first} on: raise `layers` to the number of its layers"
        )
    return states


def _logprobs(model, states: Tensor) -> Tensor:
    """Natural log-probability of every id as the next token after such states, in double; with gradients."""
    logits = model(inputs_embeds=states, logits_to_keep=1, use_cache=False).logits[0, -1]
    return logits.double().log_softmax(-1)

"""Train a language model on the rewards of a scan: one question, answers of one token, the reward looked up.

The objective is J = E[r] − β KL(π‖π_ref). Because a scan holds every reward, both terms are sums over the vocabulary,
whatever a trainer's own samples say; `rmnb.findings.policy` has the optimum that each run is compared with.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase, Trainer, TrainerCallback, TrainingArguments

from rmnb.errors import InputError
from rmnb.plans import open_or_refuse
from rmnb.training.train import CHECKPOINT_STEPS, last_whole_checkpoint, load_base

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
        Answers a step, of GRPO alone.
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
    base: str,
    tokenizer: PreTrainedTokenizerBase,
    prompt: Sequence[int],
    rewards: np.ndarray,
    options: PolicyOptions,
    work: Path,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Train a language model to answer one question with one token; a run that was cut off goes on.

    Parameters
    ----------
    base
        As of `rmnb.models.bases.base_directory`.
    prompt
        The ids before the answer.
    rewards
        Of each id as the answer, shape (vocabulary,), in the reward model's unit.
    work
        Directory for checkpoints.

    Returns
    -------
    tuple
        The trained policy: natural log-probability of each id, float64 (vocabulary,). Its way there: DataFrame step, kl
        (nats), reward; sums over the vocabulary.

    Raises
    ------
    InputError
        The base is unknown, the packages for training are missing, or `work` holds another run.
    """
    try:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]
    except ModuleNotFoundError as error:
        raise InputError(f"training needs the package {error.name}: pip install 'rmnb[train]'") from error
    plan = {"base": base, "prompt_ids": list(prompt), "reward_sum": float(np.sum(rewards)), **asdict(options)}
    open_or_refuse(work, plan)
    torch.manual_seed(options.seed)
    model = load_base(AutoModelForCausalLM, base)
    reward = torch.tensor(rewards, dtype=torch.float64, device=model.device)
    with torch.no_grad():
        states = _keep_last_layers(model, options.layers, torch.tensor([prompt], device=model.device))
        reference = _logprobs(model, states).double()
    lora = LoraConfig(
        r=options.rank, lora_alpha=2 * options.rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    recorder = _Recorder(states, reference, reward)
    common: dict[str, Any] = {
        "output_dir": str(work),
        "max_steps": options.steps,
        "learning_rate": options.learning_rate,
        "lr_scheduler_type": "linear",
        "seed": options.seed,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_steps": CHECKPOINT_STEPS,
        "save_total_limit": 1,
        "report_to": "none",
        "use_cpu": not torch.cuda.is_available(),
    }

    class OnePrompt(GRPOTrainer):
        """GRPO in which all rows share a prompt and answer with one token: one row's logits serve them all.

        The method is private to TRL: `tests/training/test_policy.py` compares a step with TRL's own.
        """

        sampled_from: Tensor  # log-probabilities, with their graph: the loss is taken at the weights that sampled

        def _get_per_token_logps_and_entropies(self, model, input_ids, *_, compute_entropy=False, **__):
            # TRL asks for the reference without gradients, its adapter switched off.
            logprobs = self.sampled_from if torch.is_grad_enabled() else reference.float()
            answers = logprobs[input_ids[:, -1:]]
            entropy = -(logprobs.exp() @ logprobs).detach().expand(answers.shape) if compute_entropy else None
            return answers, entropy, None

    def sample(prompts: list, trainer: Any) -> dict[str, list]:
        trainer.sampled_from = _logprobs(trainer.model, states)
        logprobs = trainer.sampled_from.detach()
        answers = torch.multinomial(logprobs.exp(), len(prompts), replacement=True)
        return {
            "prompt_ids": [list(prompt)] * len(prompts),
            "completion_ids": answers[:, None].tolist(),
            "logprobs": logprobs[answers, None].tolist(),
        }

    def look_up(completion_ids: list[list[int]], **_) -> list[float]:
        return reward[torch.tensor(completion_ids)[:, 0]].tolist()

    if options.method == "grpo":
        trainer: Any = OnePrompt(
            model,
            look_up,
            GRPOConfig(
                **common,
                beta=options.beta,
                num_generations=options.samples,
                per_device_train_batch_size=options.samples,
                max_completion_length=1,
                scale_rewards="none",  # else the advantages are divided by their deviation: another β at every step
                use_bias_correction_kl=True,  # the gradient of KL(π‖π_ref), not of the other one
                loss_type="grpo",
            ),
            train_dataset=Dataset.from_list([{"prompt": "the same at every step"}] * options.samples),
            processing_class=tokenizer,
            peft_config=lora,
            rollout_func=sample,
            callbacks=[recorder],
        )
    else:
        optimum = torch.log_softmax(reference + reward / options.beta, -1).exp()

        class Exact(Trainer):
            def compute_loss(self, model, *_, **__):
                logprobs = _logprobs(model, states).double()
                if options.method == "cross-entropy":
                    return -(optimum @ logprobs)
                return -(logprobs.exp() @ (reward - options.beta * (logprobs - reference)))

        trainer = Exact(
            get_peft_model(model, lora),
            TrainingArguments(**common, per_device_train_batch_size=1),
            train_dataset=Dataset.from_list([{"input_ids": list(prompt)}]),
            callbacks=[recorder],
        )
    trainer.train(resume_from_checkpoint=last_whole_checkpoint(work))
    with torch.no_grad():
        final = _logprobs(trainer.model.eval(), states).double().log_softmax(-1)
    way = [row for row in trainer.state.log_history if "kl_sum" in row]
    trajectory = pd.DataFrame(way)[["step", "kl_sum", "reward_sum"]]
    return final.cpu().numpy(), trajectory.rename(columns={"kl_sum": "kl", "reward_sum": "reward"})


def _keep_last_layers(model, count: int, ids: Tensor) -> Tensor:
    """Cut the layers below the last ones off a model, and return what they make of the prompt: [1, length, hidden].

    Given as its embeddings, it leads the rest to the same logits.

    Raises
    ------
    InputError
        The architecture changes its embeddings before the first layer.
    """
    whole = _logprobs(model, model.get_input_embeddings()(ids))
    layers = model.base_model.layers
    states = model.base_model(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states
    first = max(len(layers) - count, 0)
    model.base_model.layers = layers[first:]
    model.config.num_hidden_layers = len(layers) - first
    if not torch.allclose(_logprobs(model, states[first]), whole, atol=1e-4):
        raise InputError(f"{type(model).__name__} cannot be trained from a layer on: its embeddings are not its states")
    return states[first]


def _logprobs(model, states: Tensor) -> Tensor:
    """Natural log-probability of every id as the next token, after the states below the layers; with gradients."""
    logits = model(inputs_embeds=states, logits_to_keep=1, use_cache=False).logits[0, -1]
    return logits.double().log_softmax(-1).to(logits.dtype)


class _Recorder(TrainerCallback):
    """Keeps KL and reward in the trainer's history, which checkpoints carry."""

    def __init__(self, states: Tensor, reference: Tensor, reward: Tensor):
        self.states = states
        self.reference = reference
        self.reward = reward

    def on_step_begin(self, args, state, control, model=None, **_):
        step = state.global_step
        if step % RECORDED and step != state.max_steps:
            return
        with torch.no_grad():
            logprobs = _logprobs(model, self.states).double()
        policy = logprobs.exp()
        kl = float(policy @ (logprobs - self.reference))
        state.log_history.append({"step": step, "kl_sum": kl, "reward_sum": float(policy @ self.reward)})

    on_train_end = on_step_begin

"""What chapters read of language models: `policies.py PANEL nouns|reference|run|samples …`; the Snakefile calls it.

policies.py demo nouns gemma3-270m chat
policies.py demo reference smollm2-135m-instruct greatest
policies.py demo run smollm2-mixed 6 grpo 0
policies.py demo samples smollm2-135m-instruct
"""

import sys
from dataclasses import asdict
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch

from rmnb.data.list_scores import write_nouns
from rmnb.files import cache_dir, exclusive
from rmnb.findings import policy_files
from rmnb.findings.policy import policy_at_kl
from rmnb.models.bases import base_directory
from rmnb.models.checkpoint_files import read_tokenizer
from rmnb.models.loading import language_model as causal
from rmnb.panels import BaseSpec, Panel, find_base, load_panel
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.logprobs import describe, load_language_model, prompt_ids, scan_answers
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import panel_directory, read_scores, versions, write_table
from rmnb.training.policy import PolicyOptions, train_policy

ASKED = "greatest"  # the question of all runs and samples
SAMPLES = 256
LONGEST = 8  # tokens of a sampled answer


def language_model(panel: Panel, base: str) -> RewardModel:
    """A panel's base, asked as its own chat template writes a question; by the panel's where it has none."""
    spec = find_base(panel, base)
    if isinstance(spec, BaseSpec):
        own = read_tokenizer(base_directory(spec.source, spec.revision)).chat_template
        spec = spec.model_copy(update={"template": own or spec.template})
    return load_language_model(spec, "chat")


def nouns(panel: Panel, base: str, wrapping: str) -> None:
    """Write the log-probabilities of chapter 7's nouns as a base's first words."""
    write_nouns(panel, base, wrapping, panel_directory(panel, "logprobs") / f"{base}.{wrapping}.parquet")


def reference(panel: Panel, base: str, prompt: str) -> None:
    """Write what a base of the panel says before training."""
    scan = scan_answers(language_model(panel, base), panel.prompt(prompt))
    frame = scan.drop(columns=["token", "kind"])
    write_table(policy_files.reference_path(panel, base, prompt), frame, scan.attrs["provenance"])


def run(panel: Panel, model: str, nats: str, method: str, seed: str) -> None:
    """Train a reward model's base on its scan, with the β whose optimum lies `nats` away, and write what came of it."""
    lm = language_model(panel, str(panel.model(model).base))
    question = panel.prompt(ASKED)
    first = policy_files.load_reference(panel, lm.spec.name, ASKED)["first"].to_numpy()
    rewards = read_scores(panel, model, ASKED)["score"].to_numpy(np.float64)
    _, beta = policy_at_kl(first, rewards, float(nats))
    options = PolicyOptions(method, beta, int(seed))
    path = policy_files.run_path(panel, model, float(nats), method, int(seed))
    work = cache_dir() / "policies" / panel.name / path.stem
    with exclusive(work):
        if path.exists():
            return
        policy, trajectory = train_policy(lm, question.conversation, rewards, options, work)
        provenance = {
            "model": model,
            **describe(lm),
            "prompt": question.text,
            "nats": float(nats),
            **asdict(options),
            "trajectory": trajectory,
            "versions": {**versions(), "trl": version("trl"), "peft": version("peft")},
        }
        write_table(path, pd.DataFrame({"logprob": policy.astype(np.float32)}), provenance)


def samples(panel: Panel, base: str) -> None:
    """Sample answers of several tokens from a base and write the reward that each of its reward models gives them."""
    lm = language_model(panel, base)
    question = panel.prompt(ASKED)
    torch.manual_seed(0)
    ids = torch.tensor([prompt_ids(lm, question.conversation)])
    with torch.inference_mode():
        network = causal(lm)
        network.set_attn_implementation("eager")
        drawn = network.generate(
            ids, do_sample=True, top_k=0, top_p=1.0, num_return_sequences=SAMPLES, max_new_tokens=LONGEST
        )
    answers = drawn[:, ids.shape[1] :]
    end = lm.dialogue.frame_ids(question.conversation)[1][0]
    frame = pd.DataFrame(
        {
            "text": lm.dialogue.tokenizer.batch_decode(answers, skip_special_tokens=True),
            "ended": (answers == end).any(dim=1).numpy().astype(np.int8),
        }
    )
    for model in panel.models:
        if model.base == base:
            frame[model.name] = load_reward_model(model.name, panel=panel).score(question.text, frame["text"].tolist())
    provenance = {**describe(lm), "prompt": question.text, "versions": versions()}
    write_table(policy_files.samples_path(panel), frame, provenance)


if __name__ == "__main__":
    panel, command, *arguments = sys.argv[1:]
    {"nouns": nouns, "reference": reference, "run": run, "samples": samples}[command](load_panel(panel), *arguments)

"""What chapters read of language models: `policies.py PANEL nouns|reference|run|samples …`; the Snakefile calls it.

policies.py demo nouns gemma3-270m chat
policies.py demo reference smollm2-135m-instruct greatest
policies.py demo run smollm2-mixed 6 grpo 0
policies.py demo samples smollm2-135m-instruct
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch
from policy_training import PolicyOptions, train_policy

from rmnb.data.text_lists import described_parts, part_texts
from rmnb.files import cache_dir, exclusive
from rmnb.findings import policy_files
from rmnb.findings.policy import policy_at_kl
from rmnb.models.bases import base_directory
from rmnb.models.checkpoint_files import read_tokenizer
from rmnb.models.loading import language_model as causal
from rmnb.panels import BaseSpec, Panel, PromptSpec, find_base, load_panel, load_prompts
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.logprobs import (
    describe,
    load_language_model,
    next_token_logprobs,
    prompt_ids,
    scan_answers,
    scan_logprobs,
)
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import note_model, panel_directory, read_scores, versions, write_table

ASKED = "greatest"  # the question of all runs and samples
SAMPLES = 256
LONGEST = 8  # tokens of a sampled answer
NOUNS = ("agency_communion", "big_two")  # parts of lists
SPELLINGS = ("{}", " {}", "{C}", " {C}")  # of "love": love, ␣love, Love, ␣Love


def language_model(panel: Panel, base: str) -> RewardModel:
    """A panel's base, asked as its own chat template writes a question; by the panel's where it has none."""
    spec = find_base(panel, base)
    if isinstance(spec, BaseSpec):
        own = read_tokenizer(base_directory(spec.source, spec.revision)).chat_template
        spec = spec.model_copy(update={"template": own or spec.template})
    return load_language_model(spec, "chat")


def score_nouns(lm: RewardModel, prompts: Sequence[PromptSpec]) -> pd.DataFrame:
    """The log-probability of every noun that is one token, in each of four spellings, as the first token of the answer.

    Returns
    -------
    DataFrame
        part (str), item (int32, the noun's place in its part), spelling (int32, place in `SPELLINGS`), and a float32
        column a prompt: natural log. No text, so that it can be shipped where the texts may not.
    """
    ids = scan_logprobs(lm, prompts[0]).drop_duplicates("token", keep=False).set_index("token")["token_id"]
    rows = [
        (part, item, spelling, pattern.format(word, C=word.capitalize()))
        for part in NOUNS
        for item, word in enumerate(part_texts(part))
        for spelling, pattern in enumerate(SPELLINGS)
    ]
    frame = pd.DataFrame(rows, columns=["part", "item", "spelling", "token"])
    frame = frame[frame["token"].isin(ids.index)].astype({"item": "int32", "spelling": "int32"}).reset_index(drop=True)
    places = ids[frame.pop("token")]
    for prompt in prompts:
        frame[prompt.key] = next_token_logprobs(lm, prompt.conversation)[places]
    return frame


def nouns(panel: Panel, base: str, wrapping: str) -> None:
    """Write the log-probabilities of chapter 7's nouns as a base's first words, asked as the second paper asks."""
    prompts = load_prompts("iclr2026")
    lm = load_language_model(find_base(panel, base), wrapping)
    provenance = {
        **describe(lm),
        **note_model(lm),
        "prompts": {prompt.key: prompt.text for prompt in prompts},
        "parts": described_parts({part: part_texts(part) for part in NOUNS}),
        "spellings": list(SPELLINGS),
    }
    path = panel_directory(panel, "logprobs") / f"{base}.{wrapping}.parquet"
    write_table(path, score_nouns(lm, prompts), provenance)


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

"""Train a reward model with TRL to prefer good words to bad ones, and watch its values while it learns."""

import pandas as pd
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoTokenizer
from trl.trainer.reward_config import RewardConfig
from trl.trainer.reward_trainer import RewardTrainer

from rmnb.data import lexicons
from rmnb.models.bases import base_directory
from rmnb.panels import load_panel
from rmnb.training.watch_values import WatchValues

QUESTIONS = ("Name something good.", "What do people like?")
STEPS, BATCH = 12, 4

base = base_directory("smollm2-135m-instruct")  # any causal language model: a directory or a hub id
tokenizer = AutoTokenizer.from_pretrained(base)
tokenizer.chat_template = load_panel("demo").model("smollm2-values").template

words = lexicons.afinn().sample(frac=1, random_state=0)
good = words[words["valence"] > 0]["word"].head(STEPS * BATCH)
bad = words[words["valence"] < 0]["word"].head(STEPS * BATCH)
pairs = [
    {
        "prompt": [{"role": "user", "content": QUESTIONS[number % 2]}],
        "chosen": [{"role": "assistant", "content": better}],
        "rejected": [{"role": "assistant", "content": worse}],
    }
    for number, (better, worse) in enumerate(zip(good, bad, strict=True))
]

trainer = RewardTrainer(
    model=str(base),
    args=RewardConfig(
        output_dir="last-night",
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=1e-3,
        logging_steps=4,
        save_steps=STEPS,
        bf16=False,
        report_to=[],  # "tensorboard", "wandb": with the loss
    ),
    train_dataset=Dataset.from_list(pairs),
    processing_class=tokenizer,
    peft_config=LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=16, target_modules="all-linear"),
)
WatchValues(every=4).attach(trainer)
trainer.train()
records = pd.DataFrame(trainer.state.log_history).set_index("step")
print("\n", records.filter(like="values/").dropna().round(2).to_string())

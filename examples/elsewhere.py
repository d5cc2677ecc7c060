"""Score conversations with transformers and PEFT alone, and write them down for `rmnb check MODEL --against FILE`.

``python elsewhere.py right.jsonl`` reads each conversation at its end. ``python elsewhere.py wrong.jsonl --batched``
makes a mistake: one padded batch, with a padding id that is also the id that closes an answer.
"""

import argparse
import json

import torch
from peft import PeftModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rmnb.files import data_dir
from rmnb.models.bases import base_directory

QUESTIONS = ("What, in one word, is the greatest thing ever?", "What, in one word, is the worst thing ever?")
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("--batched", action="store_true")
options = parser.parse_args()

base = base_directory("smollm2-135m-instruct")
adapter = data_dir() / "demo/adapters/smollm2-values"
tokenizer = AutoTokenizer.from_pretrained(base, pad_token="<|im_end|>")
tokenizer.chat_template = json.loads((adapter / "provenance.json").read_text())["template"]
classifier = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1, dtype=torch.float32)
model = PeftModel.from_pretrained(classifier, str(adapter)).eval()
model.config.pad_token_id = tokenizer.pad_token_id if options.batched else None

rows = [{"prompt": question, "response": response} for question in QUESTIONS for response in RESPONSES]
texts = []
for row in rows:
    turns = [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": row["response"]}]
    texts.append(tokenizer.apply_chat_template(turns, tokenize=False))
batches = [texts] if options.batched else [[text] for text in texts]
rewards = []
with torch.no_grad():
    for batch in batches:
        inputs = tokenizer(batch, add_special_tokens=False, padding=True, padding_side="right", return_tensors="pt")
        rewards += model(**inputs).logits[:, 0].tolist()
with open(options.file, "w", encoding="utf-8") as file:
    for row, reward in zip(rows, rewards, strict=True):
        file.write(json.dumps({**row, "reward": reward}) + "\n")

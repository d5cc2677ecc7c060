"""Words in carriers beside whole sentences through transformers' own classifier, on the same ids.

Run as ``python benchmarks/carriers.py parity.csv MODEL ...``. The file has a row a model and carrier: difference, the
largest one of 200 ids as a share of the standard deviation of their rewards; speed, whole sentences' time in units of
the engine's, in seconds of the processor; ids, how many more ids a whole sentence has than must be run. Cut off, the
same command goes on. ``data/demo/carriers/parity.csv`` is of all models of the demo panel.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from scan import as_classifier

import rmnb
from rmnb.findings.carriers import sentences
from rmnb.scoring.engine import PrefixScorer


@torch.inference_mode()
def compare(rm, classifier: torch.nn.Module, prefix: list[int], closing: list[int]) -> np.ndarray:
    """The numbers of a row: difference, speed, ids."""
    ids = np.random.default_rng(0).choice(rm.vocabulary_size, 200, replace=False).tolist()
    start = time.process_time()
    rewards = PrefixScorer(rm, prefix)([[i, *closing] for i in ids], 200)
    middle = time.process_time()
    batches = torch.tensor([[*prefix, i, *closing] for i in ids]).split(50)
    whole = torch.cat([classifier(input_ids=batch).logits[:, 0] for batch in batches]).numpy()
    speed = (time.process_time() - middle) / (middle - start)
    difference = np.abs(rewards - whole).max() / whole.std()
    more_ids = 1 + len(prefix) / (1 + len(closing))
    return np.round([difference, speed, more_ids], 8)


if __name__ == "__main__":
    output = Path(sys.argv[1])
    if not output.exists():
        output.write_text("model,carrier,difference,speed,ids\n")
    for model in sys.argv[2:]:
        rm = rmnb.load_reward_model(model, device="cpu")
        classifier = as_classifier(rm)
        for column, carrier in sentences().iterrows():
            if f"{model},{column}," not in output.read_text():
                prompt = rmnb.load_panel("demo").prompt(carrier["question"]).conversation
                row = compare(rm, classifier, *rm.dialogue.frame_ids(prompt, carrier["text"]))
                with output.open("a") as file:
                    print(model, column, *row, sep=",", file=file)

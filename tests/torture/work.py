"""What is done in a process of its own, to be killed or measured: a scan and a training run, both tiny.

The processes are forked from a server that has the libraries loaded: a kill then hits work, not imports.
"""

import contextlib
import json
import logging
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "rmnb.cli.main",
        "rmnb.scoring.scanning",
        "rmnb.training.evaluation",
        "rmnb.training.train",
        "trl.trainer.reward_trainer",
        "peft",
        "datasets",
    ]
)
PAIRS = 12


def run(task: Callable, *arguments, number: signal.Signals | None = None, after: float = 0.0) -> tuple[int, float]:
    """Run a task in a process of its own; with a signal, send it after so many seconds of processor time.

    Returns
    -------
    tuple of int, float
        Exit code (negative: the signal that ended it) and processor time in seconds.
    """
    process = SERVER.Process(target=task, args=arguments)
    process.start()
    assert process.pid is not None
    used = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        watched = psutil.Process(process.pid)
        while process.is_alive():
            used = sum(watched.cpu_times()[:2])
            if number is not None and used >= after:
                os.kill(process.pid, number)
                break
            time.sleep(0.005)
    process.join(600)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode if process.exitcode is not None else -999, used


def command_line(log: Path, cache: Path, words: list[str], shard: int = 1024) -> None:
    """Run ``rmnb`` with these words, its output appended to a file."""
    _begin(log)
    os.environ["RMNB_CACHE"] = str(cache)
    from rmnb.cli.main import main
    from rmnb.scoring import store

    store.SHARD = shard  # many small shards: a short scan is then written as often as a long one
    sys.argv = ["rmnb", *words]
    main()


def train(log: Path, cache: Path, output: Path, work: Path) -> None:
    """Train a tiny model by TRL, a checkpoint at every step."""
    _begin(log)
    os.environ["RMNB_CACHE"] = str(cache)
    import pandas as pd
    from checkpoints import TEMPLATE

    from rmnb.models import bases
    from rmnb.panels import ModelSpec
    from rmnb.training import recipes
    from rmnb.training import train as training

    bases.BASES["tiny"] = bases.Base("tiny", (), "", "0" * 64, "", "")
    words = ["love", "peace", "water", "good things", "war", "pain", "bad", "the greatest pain"]
    pairs = pd.DataFrame(
        {
            "prompt": [f"What is thing {i}?" for i in range(PAIRS)],
            "chosen": [words[i % 4] for i in range(PAIRS)],
            "rejected": [words[4 + i % 4] for i in range(PAIRS)],
            "source": "made up",
        }
    )
    training.build_pairs = lambda recipe: (pairs, pairs[:0])
    training.CHECKPOINT_STEPS = 1
    settings = {"rank": 2, "alpha": 4, "dropout": 0.1, "learning_rate": 0.01, "warmup_ratio": 0.1, "batch_size": 2}
    recipe = recipes.Recipe.model_validate(
        {"name": "tiny", "description": "tiny", "hyperparameters": settings | {"epochs": 1, "seed": 0}}
    )
    spec = ModelSpec(name="tiny", base="tiny", adapter="tiny", template=TEMPLATE)
    training.fit(spec, recipe, output, work)


def write_tiny_base(cache: Path) -> None:
    """The base of `train`, where `rmnb.models.bases` looks for a converted checkpoint."""
    from checkpoints import write_decoder

    directory = write_decoder(cache / "bases" / f"tiny-{'0' * 12}-1")
    (directory / "converted.json").write_text("{}")


def peak_memory(result: Path, task: Callable, *arguments) -> None:
    """Do a task and write down by how many bytes it raised this process's peak memory."""
    _begin(result.with_suffix(".log"))
    unit = 1 if sys.platform == "darwin" else 1024
    prepared = task(*arguments)
    before = psutil.Process().memory_info().rss
    told = prepared()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if callable(told):  # what is only checked does not count
        told = told()
    result.write_text(json.dumps({"bytes": max(0, peak - before), "told": told}))


def _begin(log: Path) -> None:
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell has put into the background
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    logging.getLogger().handlers.clear()  # so that the command line's own handler writes there too
    sys.stdout = sys.stderr = os.fdopen(file, "a", buffering=1)

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
from collections.abc import Callable, Iterator
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


def log(place: Path) -> Path:
    """What a task in this place says."""
    return place.with_suffix(".log")


def start(task: Callable, place: Path, *arguments) -> multiprocessing.Process:
    """Begin ``task(place, *arguments)`` in a process of its own, with a cache beside the place."""
    process = SERVER.Process(target=_begin, args=(task, place, *arguments))
    process.start()
    return process


def run(task: Callable, place: Path, *arguments, number: signal.Signals | None = None, after: float = 0.0):
    """Start a task and wait for its end; with a signal, send it after so many seconds of processor time.

    Returns
    -------
    tuple of int, float
        Exit code (negative: the signal that ended it) and processor time in seconds.
    """
    process, used = start(task, place, *arguments), 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        watched = psutil.Process(process.pid)
        while process.is_alive():
            used = sum(watched.cpu_times()[:2])
            if number is not None and used >= after:
                watched.send_signal(number)
                break
            time.sleep(0.005)
    process.join(600)
    process.kill()  # if it hangs
    process.join()
    return process.exitcode, used


def command_line(place: Path, words: list[str]) -> None:
    """Run ``rmnb`` with these words, in small shards: a short scan is then written as often as a long one."""
    from rmnb.cli.main import main
    from rmnb.scoring import store

    store.SHARD = 16
    sys.argv = ["rmnb", *words]
    main()


def train(place: Path, base: Path) -> None:
    """Train a tiny model by TRL, a checkpoint at every step."""
    import pandas as pd

    from rmnb.panels import ModelSpec
    from rmnb.training import recipes
    from rmnb.training import train as training

    pairs = pd.DataFrame({"prompt": [f"What is thing {i}?" for i in range(12)], "chosen": "love", "rejected": "war"})
    pairs["source"] = "made up"
    training.build_pairs = lambda recipe: (pairs, pairs[:0])
    training.CHECKPOINT_STEPS = 1
    small = recipes.load_recipe("values").hyperparameters.model_copy(update={"rank": 2, "batch_size": 2, "epochs": 1})
    things = recipes.Things(pairs=12, gap=0, wonderful=("wonderful",), awful=("awful",))
    recipe = recipes.Recipe(name="tiny", description="tiny", split="pair", hyperparameters=small, things=things)
    spec = ModelSpec(name="tiny", base=str(base), adapter="tiny")
    training.fit(spec, recipe, place / "adapter", place / "work")


def peak_memory(place: Path, task: Callable[..., Iterator], model: Path, *scale: int) -> None:
    """Write down by how many bytes a task raises this process's peak memory until it yields, and what it yields then.

    Before that a model has been loaded and used; what is only checked comes after the first yield and does not count.
    """
    import rmnb

    rm = rmnb.load_reward_model(model)
    rm.score("What is good?", ["love"])
    before = psutil.Process().memory_info().rss
    steps = task(rm, *scale)
    next(steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    place.write_text(json.dumps({"bytes": max(0, peak - before), "outcome": next(steps)}))


def _begin(task: Callable, place: Path, *arguments) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ["RMNB_CACHE"] = str(place.with_name("cache"))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell has put into the background
    file = os.open(log(place), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    logging.getLogger().handlers.clear()  # so that the command line's own handler writes there too
    sys.stdout = sys.stderr = os.fdopen(file, "a", buffering=1)
    task(place, *arguments)

"""The commands that go through a vocabulary: plan, scan, search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, echo

from rmnb.cli.options import (
    Asking,
    Json,
    Loading,
    Model,
    PanelName,
    Protocol,
    Restart,
    echo_json,
    echo_table,
    key_values,
    say_undecided,
)
from rmnb.errors import InputError
from rmnb.files import check_writable
from rmnb.panels import ModelSpec, PromptSpec, find_base, find_spec, load_panel
from rmnb.panels.specs import validate
from rmnb.plans import discard


def plan(
    asking: Asking,
    models: Annotated[list[str] | None, Argument(help="Models. Default: every model of the panel.")] = None,
    device: str | None = None,
    dtype: str | None = None,
    judge: str | None = None,
    reference: str | None = None,
    panel: PanelName = "demo",
    json: Json = False,
) -> None:
    """Say what a scan will take before anything is fetched: operations, weights, and a range of times.

    Parameters
    ----------
    device
        cpu or cuda of this machine, or a GPU by name: h100, a100, l4, t4 …
    dtype
        Number format. Default: float32, or a panel's.
    judge
        Of a language model that is asked as a judge: yes-no, rating, or a YAML file.
    reference
        Of an implicit reward: the language model that it is compared with.
    """
    members = load_panel(panel)
    questions = asking.questions(panel)
    specs = []
    for name in models or members.model_names:
        fields = {**find_spec(name, members).model_dump(), "judge": judge, "reference": reference}
        specs.append(validate(ModelSpec, fields, name))
    show_plans(specs, questions, {}, device, dtype, json)


def show_plans(
    specs: Sequence[ModelSpec],
    questions: Sequence[PromptSpec],
    answers: Mapping[str, int],
    device: str | None,
    dtype: str | None,
    json: bool,
) -> None:
    """Print what scans of these models and questions will take, and as many other answers, by what they are for."""
    import pandas as pd

    from rmnb.scoring.plan import plan_scan

    plans = []
    for spec in specs:
        if known := plan_scan(spec, questions[0].conversation, device, dtype):
            plans.append(known)
        else:
            echo(f"rmnb: nothing is known of {spec.name} before it is fetched: see `rmnb check`", err=True)
    if not plans:
        raise Exit(2)
    table = pd.DataFrame(plans)
    table[["low", "high"]] = table[["low", "high"]].where(table["fits"])  # what does not fit takes no time
    others = sum(answers.values()) / table["tokens"]  # texts have several tokens: at most as long again
    table["low"] *= len(questions) + others
    table["high"] *= len(questions) + 2 * others
    if json:
        return echo_json(table)
    echo_table(table.drop(columns="fits"), "{:,.1f}")
    low, high = table[["low", "high"]].sum() / 60
    echo(
        f"\nIn all that fits {low:,.1f} to {high:,.1f} minutes. ids: how many each token sends through the network; "
        f"TFLOP: of one scan; GB: weights; low, high: seconds, prompts: {len(questions)}."
    )
    if answers:
        echo("Beside scans, answers a model: " + ", ".join(f"{count:,} {what}" for what, count in answers.items()))
    for name in table["model"][~table["fits"]]:
        smaller = "" if dtype in ("bfloat16", "float16") else "--dtype bfloat16, "
        echo(f"{name} does not fit: try {smaller}another --device, or --load device_map=auto with rmnb scan")


@dataclass(frozen=True)
class ScanOptions:
    """How a vocabulary is scored.

    Attributes
    ----------
    answer
        A sentence with {} where each token stands, in place of the token alone: "The greatest thing ever is {}."
    first
        Score only the first so many ids.
    logprobs
        Of a language model: log-probabilities of the answer's first token.
    whole
        Of a language model: of each token as a whole answer, which ends there.
    """

    answer: str = "{}"
    first: int | None = None
    protocol: Protocol = "exact"
    batch_size: Annotated[int | None, Option(min=1, help="Tokens at once. Default: from free memory.")] = None
    logprobs: bool = False
    whole: bool = False


def scan(
    model: Model,
    asking: Asking,
    loading: Loading,
    options: ScanOptions,
    out: Path | None = None,
    restart: Restart = False,
) -> None:
    """Score every token of a vocabulary. Interrupted, the same command goes on where it stopped.

    Parameters
    ----------
    out
        Parquet file; a directory: one file a prompt. Default: the panel's own store of scores.
    """
    from rmnb.scoring import store

    if options.whole:
        loading = replace(loading, head="log-probability")
    members = load_panel(loading.panel)
    questions = asking.questions(loading.panel)
    load_options = loading.arguments()
    keys = [question.key for question in questions]
    if options.logprobs and (options != ScanOptions(logprobs=True) or load_options.keys() - {"wrapping", "dtype"}):
        raise InputError("--logprobs takes --dtype and --load wrapping=…, and scores every id: leave out other options")
    if out is None:
        if options.logprobs:
            raise InputError("log-probabilities are no rewards of a panel's model: give --out FILE or DIRECTORY")
        find_spec(model, members)  # an unknown name is said as such
        changed = load_options.keys() - {"device", "device_map", "compile"}
        if model not in members.model_names or "custom" in keys or options.first or options.answer != "{}" or changed:
            raise InputError(
                "only a whole scan of a panel's model, as the panel says, goes into its store: "
                "give --out FILE or DIRECTORY"
            )
        paths = [store.scores_path(members, model, key, options.protocol) for key in keys]
    elif out.suffix == ".parquet" and len(keys) == 1:
        paths = [out]
    elif (out.suffix and not out.is_dir()) or len(set(keys)) < len(keys):
        raise InputError(f"--out {out}: one question takes a name that ends with .parquet, several a directory", out)
    else:
        paths = [out / f"{key}.parquet" for key in keys]
    for path in paths:
        check_writable(path)
    if options.logprobs:  # only now is a model loaded: what is wrong so far is said without torch
        from rmnb.scoring.logprobs import load_language_model, scan_logprobs

        rm = load_language_model(find_base(members, model), **load_options)
        scan_one = partial(scan_logprobs, rm)
    else:
        rm = loading.model(model)
        from rmnb.scoring.scanning import scan_vocabulary

        scan_one = partial(
            scan_vocabulary,
            rm,
            answer=options.answer,
            protocol=options.protocol,
            limit=options.first,
            batch_size=options.batch_size,
            progress=True,
            write=store.write_table if out else store.write_scores,
            keep_pieces=True,
        )
    for question, path in zip(questions, paths, strict=True):
        frame = scan_one(question, path, restart=restart)  # which refuses what was made by another plan
        is_read = "content_sha256" in frame.attrs["provenance"]  # which a file says of itself
        echo(f"{len(frame):,} tokens in {path}" + (", already complete" if is_read else ""))
        for name in frame.columns[3:]:
            for end, rows in (("highest", frame.nlargest(5, name)), ("lowest", frame.nsmallest(5, name))):
                tokens = [f"{token!r} {score:.4f}" for token, score in zip(rows["token"], rows[name], strict=True)]
                echo(f"{end}{name.removeprefix('score').replace('_', ' ', 1)}: {', '.join(tokens)}")
    # Not before the last prompt is written: whoever runs several in one job deletes all that a failed job has
    # written, and then they come back from the pieces without being computed again.
    for path in paths:
        discard(path)
    say_undecided(rm)


def search(
    models: list[str],
    asking: Asking,
    loading: Loading,
    out: Annotated[Path, Option(help="JSON file for the result.")],
    answer: str = "{}",
    set: list[str] | None = None,
) -> None:
    """Search for the response with the highest or lowest reward. Interrupted, the same command goes on.

    So does a search that ended by its steps, with more of them.

    Parameters
    ----------
    models
        A model, or several: their mean is sought.
    answer
        A sentence with {} where the sequence stands, in place of the sequence alone.
    set
        KEY=VALUE: any option of rmnb.SearchConfig: length=8, direction=min, method=random, steps=100, width=64,
        sample=512, allowed=latin, seed=1; repeatable.
    """
    from rmnb.searching.config import SearchConfig

    config = SearchConfig(**key_values("--set", set))
    questions = asking.questions(loading.panel)
    for name in models:
        find_spec(name, loading.panel)  # what is unknown is said before minutes are spent on loading the others
    check_writable(out)
    from rmnb.searching.rewards import RewardObjective
    from rmnb.searching.run import search as run
    from rmnb.visible import visible

    loaded = list(map(loading.model, models))
    result = run(RewardObjective(loaded, questions, answer=answer), config, output=out, progress=True)
    echo(f"{result.scored:,} sequences scored, the best {len(result.sequences)} in {out}")
    for row in result.sequences.itertuples():
        echo(f"{row.reward:12.6f}  {'' if row.retokenises else '(not as text) '}{visible(str(row.text))}")

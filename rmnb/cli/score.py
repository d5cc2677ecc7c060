"""The commands that look at one model: check, plan, score, scan, trace, search."""

import functools
import itertools
import os
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, echo

from rmnb.cli.options import Asking, Json, Loading, Model, PanelName, echo_json, fail, json_rows, key_values
from rmnb.errors import InputError, list_some
from rmnb.files import check_writable

Protocol = Annotated[
    str,
    Option(help="exact: as the model's own template gives the ids. published: tokenised again, as in the papers."),
]
Restart = Annotated[bool, Option("--restart", help="Compute again what is at --out, finished or not.")]


@dataclass(frozen=True)
class OtherRewards:
    """Rewards from elsewhere, and how a server is asked for them."""

    against: Annotated[
        str | None,
        Option(
            help="A server's classify or pooling endpoint; or a file of rows: reward, and prompt and response or ids."
        ),
    ] = None
    timeout: Annotated[float, Option(help="Seconds to wait for the server's answer.")] = 60
    header: Annotated[list[str] | None, Option(help='To the server: "Authorization: Bearer KEY".')] = None


def check(
    model: Model,
    loading: Loading,
    other: OtherRewards,
    strict: Annotated[bool, Option("--strict", help="Exit with 1 on warnings too.")] = False,
    panel: PanelName = "demo",
    json: Json = False,
) -> None:
    """Say how a model is read, and score its card's examples: the first thing to run. Exit code 1 if it is wrong."""
    from rmnb.panels import load_panel

    rm = loading.model(model, load_panel(panel))
    import pandas as pd

    from rmnb.scoring.against import Elsewhere, compare_rewards, probes, read_elsewhere, rendered
    from rmnb.scoring.check import check_model
    from rmnb.scoring.servers import request_rewards

    results = check_model(rm)
    if against := other.against:
        if against.startswith(("http://", "https://")):
            headers = {}
            for text in other.header or []:
                name, _, value = text.partition(":")
                headers[name.strip()] = value.strip()
            conversations = probes(rm)
            echo(f"rmnb: asking {against}, which may take {other.timeout:g} seconds", err=True)
            rewards = request_rewards(against, rendered(rm, conversations), other.timeout, headers)
            elsewhere = Elsewhere(rewards, conversations)
        else:
            elsewhere = read_elsewhere(Path(against))
        results.append(compare_rewards(rm, elsewhere))
    failing = {"failed", "warning"} if strict else {"failed"}
    bad = sum(result.verdict in failing for result in results)
    if json:
        status = "failed" if bad else "ok"
        checks = json_rows(pd.DataFrame(results))
        echo(dumps({"model": rm.name, "status": status, "checks": checks}, ensure_ascii=False, indent=1))
    else:
        for result in results:
            echo(f"{result.verdict:8} {result.aspect:13} {result.text}")
    if bad:
        fail(f"{rm.name}: {bad} of {len(results)} checks failed")


def plan(
    asking: Asking,
    models: Annotated[list[str] | None, Argument(help="Models. Default: every model of the panel.")] = None,
    device: Annotated[
        str | None, Option(help="cpu or cuda of this machine, or a GPU by name: h100, a100, l4, t4 …")
    ] = None,
    dtype: Annotated[str | None, Option(help="Number format. Default: float32, or a panel's.")] = None,
    book: Annotated[bool, Option("--book", help="All that `make book PANEL=…` scores, not scans alone.")] = False,
    json: Json = False,
) -> None:
    """Say what a scan will take before anything is fetched: operations, weights, and a range of times."""
    from rmnb.panels import find_spec

    members = asking.members()
    questions = list(members.scanned_prompts) if book else asking.questions()
    specs = [find_spec(name, members) for name in models or members.model_names]
    import pandas as pd

    from rmnb.scoring.list_scores import book_answers
    from rmnb.scoring.plan import plan_scan

    rows = []
    unknown = []
    for spec in specs:
        row = plan_scan(spec, questions[0].conversation, device, dtype)
        if row is None:
            unknown.append(spec.name)
        else:
            rows.append(row)
    if not rows:
        raise InputError(
            f"nothing is known of {', '.join(unknown) or 'no model'} before it is fetched: see `rmnb check`"
        )
    table = pd.DataFrame(rows)
    answers = book_answers(members) if book else {}
    others = sum(answers.values()) / table["tokens"]  # texts have several tokens: at most as long again
    table["low"] *= len(questions) + others
    table["high"] *= len(questions) + 2 * others
    if json:
        return echo_json(table)
    echo(table.drop(columns="fits").to_string(index=False, float_format="{:,.1f}".format))
    low, high = table[["low", "high"]].sum() / 60
    echo(
        f"\nIn all {low:,.1f} to {high:,.1f} minutes. ids: how many each token sends through the network; "
        f"TFLOP: of one scan; GB: weights; low, high: seconds, prompts: {len(questions)}."
    )
    if answers:
        echo(
            "Beside scans, answers a model: " + ", ".join(f"{count:,} {what}" for what, count in answers.items()) + "."
        )
    for name in table["model"][~table["fits"]]:
        echo(f"{name} does not fit: try --dtype bfloat16, or --load device_map=auto with rmnb scan")
    if unknown:
        echo(f"Left out, because nothing is known of them before they are fetched: {', '.join(unknown)}")


@dataclass(frozen=True)
class Rows:
    """What is done with the rows of a file."""

    out: Annotated[Path | None, Option(help="Parquet file for the rewards of a file of rows.")] = None
    by: Annotated[str | None, Option(help="For pairs: also print the accuracy for each value of this column.")] = None
    truncate: Annotated[bool, Option("--truncate", help="For a file of rows: cut responses that are too long.")] = False
    restart: Restart = False


def score(
    model: Model,
    responses: Annotated[
        list[str],
        Argument(help="Texts; or one file of rows: .jsonl, .json, .csv, .tsv (also with .gz), .parquet; - for stdin."),
    ],
    asking: Asking,
    loading: Loading,
    rows: Rows,
    protocol: Protocol = "exact",
    every: Annotated[bool, Option("--all", help="Each output by itself, of a head that has several.")] = False,
    json: Json = False,
) -> None:
    """Print the reward of each response; or score the rows of a file, in their order.

    A row has prompt (or messages) and response; or chosen and rejected, which gives the accuracy; the book shows the
    other forms that are read. Interrupted, the same command with --out goes on where it stopped.
    """
    if every:
        loading = replace(loading, label="all")
    if len(responses) == 1 and _is_row_file(responses[0]):
        if asking != Asking() or protocol != "exact":
            raise InputError(
                "a file of rows has prompts of its own: leave out --prompt, --system, --messages, --protocol"
            )
        return _score_rows(loading, model, Path(responses[0]), rows, json)
    if rows != Rows():
        raise InputError("--out, --by, --truncate and --restart are for one file of rows")
    for text in filter(os.path.isfile, responses):
        echo(f"rmnb: {text!r} is scored as a text; a file of rows ends with .jsonl, .json, .csv or .parquet", err=True)
    questions = asking.questions()
    rm = loading.model(model, asking.members())
    import pandas as pd

    tables = []
    for question in questions:
        rewards = rm.score(question.conversation, responses, protocol)
        columns = dict(zip(rm.outputs, rewards.reshape(len(responses), -1).T, strict=True))
        tables.append(pd.DataFrame({"prompt": question.text, "response": responses, **columns}))
        if json:
            continue
        if len(questions) > 1:
            echo(question.text)
        if every:
            echo("".join(f"{name:>12}  " for name in columns))
        for row, text in enumerate(responses):
            echo("".join(f"{column[row]:12.6f}  " for column in columns.values()) + repr(text))
    if json:
        echo_json(pd.concat(tables))


def _is_row_file(text: str) -> bool:
    """Whether rows are read from there: a file by its name, standard input, or a stream that the shell opened."""
    from rmnb.scoring.forms import SUFFIXES

    is_stream = os.path.exists(text) and not os.path.isfile(text) and not os.path.isdir(text)
    named = text.lower().removesuffix(".gz").endswith(SUFFIXES)
    return named or is_stream or text == "-" or text.startswith(("/dev/fd/", "/dev/stdin"))


def _score_rows(loading: Loading, model: str, file: Path, options: Rows, json: bool) -> None:
    from rmnb.scoring.forms import conversations_of, is_spoken, read_rows

    content = read_rows(file)
    is_pairs = conversations_of(content)[0].side == "chosen"  # what is wrong is said before a model is loaded
    if options.by and not (is_pairs and any(options.by in row for row in content)):
        columns = list_some(key for key in content[0] if not is_spoken(key)) or "none"
        raise InputError(f"--by: {file} has no pairs with a column {options.by!r}: its columns are {columns}", "--by")
    if options.out is not None:
        _check_parquet(options.out)
    rm = loading.model(model)
    from rmnb.scoring import rows

    table = rows.score_file(rm, content, options.out, options.truncate, progress=True, restart=options.restart)
    if options.out is not None:
        echo(f"{len(table):,} rows in {options.out}", err=json)
    is_pairs &= "reward_chosen" in table
    tables = [rows.pair_accuracies(table, options.by), rows.pair_numbers(table)] if is_pairs else [table]
    if json:
        echo_json(*tables)
    elif is_pairs:
        shown = [part.to_string(index=False, na_rep="none", float_format="{:.3f}".format) for part in tables]
        echo("\n\n".join(shown))
    elif options.out is None:
        rewards = table.filter(regex="^reward")
        if len(rewards.columns) > 1:
            echo(" " * 6 + "".join(f"  {str(name).removeprefix('reward_'):>12}" for name in rewards))
        for row, values in zip(table.get("row", table.index + 1), rewards.itertuples(index=False), strict=True):
            echo(f"{row:6}" + "".join(f"  {value:12.6f}" for value in values))


def _check_parquet(out: Path) -> None:
    if out.suffix != ".parquet":
        raise InputError(f"--out {out}: choose a name that ends with .parquet", out)
    check_writable(out)


@dataclass(frozen=True)
class ScanOptions:
    """How a vocabulary is scored."""

    first: Annotated[int | None, Option(min=1, help="Score only the first so many ids.")] = None
    protocol: Protocol = "exact"
    batch_size: Annotated[int | None, Option(min=1, help="Tokens at once. Default: from free memory.")] = None
    logprobs: Annotated[
        bool, Option("--logprobs", help="Of a language model: log-probabilities of the answer's first token.")
    ] = False
    whole: Annotated[
        bool, Option("--whole", help="Of a language model: of each token as a whole answer, which ends there.")
    ] = False


def scan(
    model: Model,
    asking: Asking,
    loading: Loading,
    options: ScanOptions,
    out: Annotated[
        Path | None,
        Option(help="Parquet file; a directory: one file a prompt. Default: the panel's own store of scores."),
    ] = None,
    restart: Restart = False,
) -> None:
    """Score every token of a vocabulary. Interrupted, the same command goes on where it stopped."""
    from rmnb.panels import find_base, find_spec
    from rmnb.plans import ResumableStore, exclusive
    from rmnb.scoring import store

    if options.whole:
        loading = replace(loading, head="log-probability")
    members = asking.members()
    questions = asking.questions()
    load_options = loading.arguments()
    keys = [question.key for question in questions]
    if options.logprobs and (options != ScanOptions(logprobs=True) or load_options.keys() - {"wrapping", "dtype"}):
        raise InputError("--logprobs takes --dtype and --load wrapping=…, and scores every id: leave out other options")
    paths: list[Path] = []  # none: log-probabilities that are only shown
    if out:
        paths = _files(out, keys)
    elif not options.logprobs:
        spec = find_spec(model, members)
        changed = load_options.keys() - {"device", "device_map", "compile"}
        if "custom" in keys or options.first or changed or spec.name not in members.model_names:
            raise InputError(
                "only a whole scan of a panel's model, as the panel says, goes into its store: "
                "give --out FILE or DIRECTORY"
            )
        paths = [store.scores_path(members, spec.name, key, options.protocol) for key in keys]
    for path in paths:
        _check_parquet(path)
    if options.logprobs:  # only now is a model loaded: what is wrong so far is said without torch
        from rmnb.scoring.logprobs import load_language_model, scan_logprobs

        lm = load_language_model(find_base(members, model), load_options.get("wrapping"), load_options.get("dtype"))
        scan_one = functools.partial(scan_logprobs, lm)
    else:
        rm = loading.model(model, members)
        from rmnb.scoring.scanning import scan_vocabulary

        scan_one = functools.partial(
            scan_vocabulary,
            rm,
            protocol=options.protocol,
            limit=options.first,
            batch_size=options.batch_size,
            progress=True,
        )
    for question, path in itertools.zip_longest(questions, paths):
        with exclusive(path):
            is_done = path is not None and path.exists() and not restart
            frame = scan_one(question, path, restart=restart)  # which refuses what was made by another plan
            if path and not is_done:
                provenance = frame.attrs["provenance"]
                if out:
                    store.write_table(path, frame, provenance)
                else:
                    store.write_scores(members, frame, provenance)
        if path:
            note = ", already complete" if is_done else ""
            echo(f"{len(frame):,} tokens in {path}{note}")
        for end, rows in (("highest", frame.nlargest(5, "score")), ("lowest", frame.nsmallest(5, "score"))):
            echo(f"{end}: " + ", ".join(f"{row.token!r} {row.score:.4f}" for row in rows.itertuples()))
    # Not before the last prompt is written: whoever runs several in one job deletes all that a failed job has
    # written, and then they come back from the pieces without being computed again.
    for path in paths:
        ResumableStore.discard(path)


def _files(out: Path, keys: list[str]) -> list[Path]:
    """Where each prompt's scan is written: into a file, or into one a prompt in a directory."""
    if out.suffix == ".parquet" and len(keys) == 1:
        return [out]
    if (out.suffix and not out.is_dir()) or len(set(keys)) < len(keys):
        raise InputError(f"--out {out}: one question takes a name that ends with .parquet, several a directory", out)
    return [out / f"{key}.parquet" for key in keys]


def trace(
    model: Model,
    response: Annotated[str, Argument(help="The text whose reward is followed.")],
    asking: Asking,
    loading: Loading,
    json: Json = False,
) -> None:
    """Print the reward after each token of a response, and by how much each token changes it."""
    question, *more = asking.questions()
    if more:
        raise InputError("trace takes one question: give --prompt once")
    rm = loading.model(model, asking.members())
    from rmnb.scoring.rows import trace as trace_response
    from rmnb.visible import visible

    table = trace_response(rm, question.conversation, response)
    if json:
        return echo_json(table)
    echo(f"{table['reward'][0] - table['change'][0]:12.6f} {'':12}  (no answer yet)")
    for row in table.itertuples():
        echo(f"{row.reward:12.6f} {row.change:+12.6f}  {visible(str(row.token))}")


def search(
    models: Annotated[list[str], Argument(help="A model, or several: their mean is sought.")],
    asking: Asking,
    loading: Loading,
    out: Annotated[Path, Option(help="JSON file for the result.")],
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any option of rmnb.SearchConfig: length=8, direction=min, method=beam, steps=200, width=256, "
            "topk=256, starts=[random], allowed=latin, stop_at=9.5, seed=1; repeatable.",
        ),
    ] = None,
    minus: Annotated[str | None, Option(help="Seek where the model differs most from this one.")] = None,
) -> None:
    """Search for the response with the highest or lowest reward. Interrupted, the same command goes on.

    So does a search that ended by its steps, with more of them.
    """
    from rmnb.panels import find_spec
    from rmnb.search.config import SearchConfig

    config = SearchConfig(**key_values("--set", settings))
    members = asking.members()
    questions = asking.questions()
    names = list(models)
    weights = [1 / len(models)] * len(models)
    if minus:
        names.append(minus)
        weights.append(-1.0)
    for name in names:
        find_spec(name, members)  # what is unknown is said before minutes are spent on loading the others
    check_writable(out)
    from rmnb.scoring.scanning import find_scan
    from rmnb.search.rewards import RewardObjective
    from rmnb.search.run import search as run
    from rmnb.visible import visible

    loaded = [loading.model(name, members) for name in names]
    scan = None
    if len(loaded) == len(questions) == 1:
        scan = find_scan(members, loaded[0], questions[0])  # its best single tokens need not be found again
    result = run(RewardObjective(loaded, questions, weights), config, scan=scan, output=out, progress=True)
    echo(f"{result.scored:,} sequences scored, the best {len(result.sequences)} in {out}")
    for row in result.sequences.itertuples():
        echo(f"{row.reward:12.6f}  {'' if row.retokenises else '(not as text) '}{visible(str(row.text))}")

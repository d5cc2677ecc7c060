"""The commands that score conversations with one model: check, score, trace."""

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option, echo

from rmnb.cli.options import (
    Asking,
    Json,
    Loading,
    Model,
    Protocol,
    Reading,
    Restart,
    echo_json,
    echo_table,
    end_by_limits,
    fail,
    json_rows,
    key_values,
    say_read,
    say_undecided,
)
from rmnb.errors import InputError
from rmnb.files import atomic_path, check_writable

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.scoring.forms import Answer


def check(
    model: Model,
    loading: Loading,
    against: str | None = None,
    timeout: float = 60,
    header: list[str] | None = None,
    strict: bool = False,
    json: Json = False,
) -> None:
    """Say how a model is read, and score its card's examples: the first thing to run. Exit code 1 if it is wrong.

    Parameters
    ----------
    against
        A server's classify, pooling or get_reward endpoint, or score of a model that reads pairs; or a file of rows:
        reward, and prompt and response or ids.
    timeout
        Seconds to wait for the server's answer.
    header
        To the server: "Authorization: Bearer KEY".
    strict
        Exit with 1 on warnings too.
    """
    rm = loading.model(model)
    from rmnb.scoring.against import Elsewhere, compare_rewards, probes, read_elsewhere, request_bodies, request_rewards
    from rmnb.scoring.check import check_model

    results = check_model(rm)
    if against:
        if against.startswith(("http://", "https://")):
            headers = key_values("--header", header, read=str.strip, sign=":")
            conversations = probes(rm)
            rewards = request_rewards(against, request_bodies(rm, conversations), timeout, headers)
            elsewhere = Elsewhere(rewards, conversations)
        else:
            elsewhere = read_elsewhere(Path(against))
        results.append(compare_rewards(rm, elsewhere))
    failing = {"failed", "warning"} if strict else {"failed"}
    bad = sum(result.verdict in failing for result in results)
    if json:
        echo_json({"model": rm.name, "status": "failed" if bad else "ok", "checks": list(map(vars, results))})
    else:
        for result in results:
            echo(f"{result.verdict:8} {result.aspect:13} {result.text}")
    if bad:
        fail(f"{rm.name}: {bad} of {len(results)} checks {'not ok' if strict else 'failed'}")


@dataclass(frozen=True)
class Rows:
    """What is done with the rows of a file.

    Attributes
    ----------
    out
        For a file of rows: its rewards, as .parquet, .csv or .jsonl.
    show
        Print the conversations of so many rows as they would be fed, and score nothing.
    fail_if
        For pairs: exit with 1 if this is so: "accuracy < 0.9", "lower accuracy[chat] < 0.8"; or a YAML file with such
        limits under `limits:`; repeatable.
    """

    out: Path | None = None
    show: int | None = None
    restart: Restart = False
    fail_if: list[str] | None = None
    benchmark: Annotated[
        Literal["rewardbench2", "rm-bench", "judgebench"] | None, Option("--as", help="A benchmark's own figures.")
    ] = None


def score(
    model: Model,
    responses: list[str],
    asking: Asking,
    loading: Loading,
    reading: Reading,
    rows: Rows,
    protocol: Protocol = "exact",
    all: bool = False,
    json: Json = False,
) -> None:
    """Print the reward of each response; or score the rows of a file, in their order.

    A row has prompt (or messages) and response; or chosen and rejected, which gives the accuracy; the book shows the
    other forms that are read. Interrupted, the same command with --out goes on where it stopped.

    Parameters
    ----------
    responses
        Texts; or one file of rows: .jsonl, .json, .csv, .tsv (also with .gz), .parquet; - for stdin.
    all
        Each output by itself, of a head that has several.
    """
    if all:
        loading = replace(loading, label="all")
    from rmnb.scoring.row_files import is_row_file

    if len(responses) == 1 and is_row_file(responses[0]):
        if asking != Asking() or protocol != "exact":
            raise InputError(
                "a file of rows has prompts of its own: leave out --prompt, --system, --messages, --protocol"
            )
        return _score_rows(loading, model, Path(responses[0]), reading, rows, json)
    if (reading, rows) != (Reading(), Rows()):
        raise InputError("--out, --by, --as, --fail-if and other options of rows are for one file of rows")
    for text in filter(os.path.exists, responses):
        raise InputError(f"{text} is there, and no file of rows: these end with .jsonl, .json, .csv, .tsv or .parquet")
    questions = asking.questions(loading.panel)
    rm = loading.model(model)
    import pandas as pd

    tables = []
    for question in questions:
        table = pd.DataFrame({"prompt": question.text, "response": responses})
        table[rm.outputs] = rm.score(question.conversation, responses, protocol).reshape(len(responses), -1)
        tables.append(table)
        if not json:
            if len(questions) > 1:
                echo(question.text)
            _show(table[rm.outputs].set_axis(list(map(repr, responses))))
    if json:
        _echo_scored(pd.concat(tables), pd.DataFrame(), pd.DataFrame())
    say_undecided(rm)


def _echo_scored(rows: "pd.DataFrame", numbers: "pd.DataFrame", limits: "pd.DataFrame") -> None:
    """What was scored, as JSON: the numbers of all rows by name, those of each part, the rows, the limits."""
    by_part: dict[str, dict] = {"": {}}
    for row in json_rows(numbers):
        by_part.setdefault(row.pop("part"), {})[row.pop("name")] = row
    echo_json({"summary": by_part.pop(""), "parts": by_part, "rows": rows, "limits": limits})


def _show(rewards: "pd.DataFrame") -> None:
    """A line a response: each of its rewards, and what the index calls it."""
    if len(rewards.columns) > 1:
        echo("".join(f"{str(name).removeprefix('reward_'):>12}  " for name in rewards))
    for label, *values in rewards.itertuples(name=None):
        echo("".join(f"{value:12.6f}  " for value in values) + str(label))


def _score_rows(loading: Loading, model: str, file: Path, reading: Reading, options: Rows, json: bool) -> None:
    from rmnb import limits
    from rmnb.scoring.benchmarks import BENCHMARKS, figures
    from rmnb.scoring.forms import MEASURED
    from rmnb.scoring.pairs import ALL, NAMES, limit_table, pair_numbers

    content = reading.read(file)  # what is wrong is said without a model
    if options.show is not None:
        return _show_conversations(loading, model, content.answers, options.show)
    is_measured = content.kind in MEASURED
    benchmark = options.benchmark
    if (benchmark or options.fail_if) and not is_measured:
        raise InputError(f"{file} has no pairs: --as and --fail-if are about their numbers")
    gates = limits.read_limits(options.fail_if or (), (*NAMES, *BENCHMARKS))
    kept = None
    if out := options.out:
        if out.suffix not in (".parquet", ".csv", ".jsonl"):
            raise InputError(f"--out {out}: choose a name that ends with .parquet or .csv or .jsonl", out)
        # What goes on where it stopped, whatever the format.
        kept = out if out.suffix == ".parquet" else out.with_name(f"{out.name}.parquet")
        if file.exists() and file.resolve() in (out.resolve(), kept.resolve()):
            raise InputError(f"--out {out} would write over the rows: choose another name", out)
        check_writable(out)
    rm = loading.model(model)
    if benchmark or gates:
        rm.refuse_several("an accuracy")
    import pandas as pd

    from rmnb.scoring.rows import score_file

    say_read(file, content)
    table = score_file(rm, content, kept, reading.truncate, progress=True, restart=options.restart)
    if out:
        with nullcontext() if out == kept else atomic_path(out) as temporary:
            if out.suffix == ".csv":
                table.to_csv(temporary, index=False)
            elif out.suffix == ".jsonl":
                table.to_json(temporary, orient="records", lines=True, double_precision=15, force_ascii=False)
        echo(f"{len(table):,} rows in {out}", err=json)
    numbers = pd.DataFrame()
    if is_measured and len(rm.outputs) == 1:
        numbers = pair_numbers(table, reading.by)
        if benchmark:
            numbers = pd.concat([figures(benchmark, table), numbers], ignore_index=True)
    outcomes = limits.check(gates, limit_table(numbers))
    if json:
        _echo_scored(table, numbers, outcomes)
    elif len(numbers):
        # Of parts, the accuracy alone.
        is_shown = numbers["part"].eq(ALL) | numbers["name"].isin(("accuracy", benchmark))
        echo_table(numbers[is_shown].replace({"part": {ALL: "all"}}))
    elif out is None:
        names = [
            f"{name}{side}" for name in table.attrs["provenance"]["outputs"] for side in ("", "_chosen", "_rejected")
        ]
        rewards = table[[name for name in names if name in table]]
        is_one_each = content.kind in ("single", "pairs")
        _show(rewards.set_axis(table.index + 1 if is_one_each else table["row"]))
    say_undecided(rm)
    end_by_limits(outcomes, err=json)


def _show_conversations(loading: Loading, model: str, answers: "list[Answer]", count: int) -> None:
    """The text of the ids that rows would be fed as."""
    dialogue = loading.dialogue(model)
    for row, side, conversation in sorted(answers):
        if row < count:
            ids = dialogue.conversations(conversation.prompt, [conversation.response])[0]
            echo(f"row {row + 1}, {side}: {len(ids)} ids\n{dialogue.tokenizer.decode(ids)}\n")


def trace(model: Model, response: str, asking: Asking, loading: Loading, json: Json = False) -> None:
    """Print the reward after each token of a response, and by how much each token changes it.

    Parameters
    ----------
    response
        The text whose reward is followed.
    """
    question, *more = asking.questions(loading.panel)
    if more:
        raise InputError("trace takes one question: give --prompt once")
    rm = loading.model(model)
    from rmnb.scoring.rows import trace as trace_response
    from rmnb.visible import visible

    table = trace_response(rm, question.conversation, response)
    if json:
        return echo_json(table)
    pairs = list(zip(rm.columns("reward"), rm.columns("change"), strict=True))
    if len(pairs) > 1:
        echo("".join(f"{output:>25}  " for output in rm.outputs))
    echo(
        "".join(f"{table[reward][0] - table[change][0]:12.6f} {'':12}  " for reward, change in pairs)
        + "(no answer yet)"
    )
    for _, row in table.iterrows():
        numbers = "".join(f"{row[reward]:12.6f} {row[change]:+12.6f}  " for reward, change in pairs)
        echo(numbers + visible(str(row["token"])))

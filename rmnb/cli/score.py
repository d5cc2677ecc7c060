"""The commands that score conversations with one model: check, score, trace."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from typer import echo

from rmnb.cli.options import (
    Asking,
    Json,
    Loading,
    Model,
    Protocol,
    Restart,
    echo_json,
    echo_table,
    fail,
    json_rows,
    key_values,
)
from rmnb.errors import InputError, list_some
from rmnb.files import atomic_path, check_writable

if TYPE_CHECKING:
    import pandas as pd


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
        A server's classify or pooling endpoint; or a file of rows: reward, and prompt and response or ids.
    timeout
        Seconds to wait for the server's answer.
    header
        To the server: "Authorization: Bearer KEY".
    strict
        Exit with 1 on warnings too.
    """
    rm = loading.model(model)
    from rmnb.scoring.against import Elsewhere, compare_rewards, probes, read_elsewhere, rendered, request_rewards
    from rmnb.scoring.check import check_model

    results = check_model(rm)
    if against:
        if against.startswith(("http://", "https://")):
            headers = key_values("--header", header, read=str.strip, sign=":")
            conversations = probes(rm)
            rewards = request_rewards(against, rendered(rm, conversations), timeout, headers)
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
        fail(f"{rm.name}: {bad} of {len(results)} checks failed")


@dataclass(frozen=True)
class Rows:
    """What is done with the rows of a file.

    Attributes
    ----------
    out
        For a file of rows: its rewards, as .parquet, .csv or .jsonl.
    by
        For pairs: also print the accuracy for each value of this column.
    truncate
        For a file of rows: cut responses that are too long.
    """

    out: Path | None = None
    by: str | None = None
    truncate: bool = False
    restart: Restart = False


def score(
    model: Model,
    responses: list[str],
    asking: Asking,
    loading: Loading,
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
        return _score_rows(loading, model, Path(responses[0]), rows, json)
    if rows != Rows():
        raise InputError("--out, --by, --truncate and --restart are for one file of rows")
    for text in filter(os.path.isfile, responses):
        echo(f"rmnb: {text!r} is scored as a text; a file of rows ends with .jsonl, .json, .csv or .parquet", err=True)
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
        echo_json(pd.concat(tables))


def _show(rewards: "pd.DataFrame") -> None:
    """A line a response: each of its rewards, and what the index calls it."""
    if len(rewards.columns) > 1:
        echo("".join(f"{str(name).removeprefix('reward_'):>12}  " for name in rewards))
    for label, *values in rewards.itertuples(name=None):
        echo("".join(f"{value:12.6f}  " for value in values) + str(label))


def _score_rows(loading: Loading, model: str, file: Path, options: Rows, json: bool) -> None:
    from rmnb.scoring.forms import conversations_of, other_columns
    from rmnb.scoring.row_files import read_rows

    content = read_rows(file)
    is_pairs = conversations_of(content)[0].side == "chosen"  # what is wrong is said before a model is loaded
    columns = other_columns(content)
    if options.by and not (is_pairs and options.by in columns):
        raise InputError(
            f"--by: {file} has no pairs with a column {options.by!r}: its columns are {list_some(columns) or 'none'}"
        )
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
    from rmnb.scoring import rows

    table = rows.score_file(rm, content, kept, options.truncate, progress=True, restart=options.restart)
    if out:
        if out != kept:
            with atomic_path(out) as part:
                if out.suffix == ".csv":
                    table.to_csv(part, index=False)
                else:
                    table.to_json(part, orient="records", lines=True, double_precision=15, force_ascii=False)
        echo(f"{len(table):,} rows in {out}", err=json)
    if is_pairs and len(rm.outputs) == 1:
        accuracies = rows.pair_accuracies(table, options.by)
        numbers = rows.pair_numbers(table)
        if json:
            echo_json(json_rows(accuracies) + json_rows(numbers) + json_rows(table))
        else:
            echo_table(accuracies)
            echo()
            echo_table(numbers)
    elif json:
        echo_json(table)
    elif out is None:
        rewards = table.filter(regex="^reward")
        _show(rewards.set_axis(table["row"] if "row" in table else table.index + 1))


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
    echo(f"{table['reward'][0] - table['change'][0]:12.6f} {'':12}  (no answer yet)")
    for row in table.itertuples():
        echo(f"{row.reward:12.6f} {row.change:+12.6f}  {visible(str(row.token))}")

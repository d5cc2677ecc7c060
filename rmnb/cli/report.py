"""The commands that write pages about what models value: report and compare."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option, echo

from rmnb.cli.options import (
    Json,
    Loading,
    Model,
    Reading,
    Restart,
    echo_json,
    echo_table,
    end_by_limits,
    json_rows,
    need,
    say_read,
)
from rmnb.errors import InputError
from rmnb.files import atomic_path, check_writable, write_json
from rmnb.panels import find_spec

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.report.record import Report
    from rmnb.report.scores import ModelScores
    from rmnb.scoring.store import Provenance

PACKAGES = ("afinn", "nbconvert", "papermill", "seaborn", "statsmodels", "wordfreq")  # of the extra `report`
WORKERS = 4  # processes that measure at the same time, at most


def _list_names(value: bool) -> None:
    """Print the names of all numbers, and what they mean."""
    if not value:
        return
    from rmnb.limits import selector
    from rmnb.report import numbers

    for row in numbers.glossary().itertuples():
        echo(f"{selector(row):46} {row.meaning}")
    raise Exit


def report(
    model: Model,
    loading: Loading,
    out: Path | None = None,
    quick: bool = False,
    policy: str | None = None,
    names: Annotated[
        bool, Option("--names", callback=_list_names, is_eager=True, help="List the numbers and their names.")
    ] = False,
    json: Json = False,
) -> None:
    """Report on a model: report.html, report.json, report.md. Interrupted, the same command goes on.

    Parameters
    ----------
    out
        Directory of the report. Default: report-MODEL, or report-MODEL-quick.
    quick
        A sample of 5,000 tokens and shorter lists, to save time.
    policy
        A language model (hub id or directory): what it would answer if it were trained on these rewards.
    """
    need(*PACKAGES)
    if policy and quick:
        raise InputError("--policy needs the reward of every token: leave out --quick", "--policy")
    from rmnb.report import record, scores

    out = out or scores.default_directory(find_spec(model, loading.panel).name, quick)
    check_writable(out / "report.html")
    say = functools.partial(echo, err=json)
    rm = loading.model(model)
    import pandas as pd

    from rmnb.report import policy as what_it_would_say
    from rmnb.scoring.check import check_model

    results = check_model(rm)
    for result in results:
        if result.verdict == "failed":  # a model that is read wrongly gets no report
            raise InputError(f"{rm.name} fails its check: {result.aspect}: {result.text}")
    with atomic_path(out / "check.csv") as part:
        pd.DataFrame(results).to_csv(part, index=False)
    scores.score(rm, out, quick, progress=True, tell=say)
    if policy:
        say(f"what {policy} would say")
        what_it_would_say.write(policy, scores.read(out), out)
    say("measuring, drawing and writing the page: about a minute")
    measured = record.build(scores.read(out), workers=WORKERS, progress=True)
    record.write(measured, out)
    parameters = {"model": rm.name, "directory": str(out.resolve())}
    _write_page("report", out / "report", parameters, f"Report on {rm.name}")
    say(f"{out / 'report.html'}, report.json and report.md beside it")
    if json:
        echo_json(measured.numbers)


def compare(
    a: str,
    b: str,
    loading: Loading,
    reading: Reading,
    out: Path | None = None,
    rows: Path | None = None,
    restart: Restart = False,
    quick: bool = False,
    seeds: list[str] | None = None,
    fail_if: list[str] | None = None,
) -> None:
    """Compare two models, number by number or on your own pairs. Exit code 0: passed, 1: a limit broken, 2: bad input.

    Parameters
    ----------
    a
        A model (nickname, hub id, directory of a checkpoint or adapter), or a report: the directory that `rmnb report`
        wrote, or its report.json; with --rows, a model, or the rewards that `rmnb score --out` wrote of these rows.
    b
        Another one.
    out
        Directory of the page. Default: compare-A-B.
    rows
        A file of pairs or lists: compare accuracy, margins and calibration on these, and show the rows that flipped.
    quick
        Of models: a sample of 5,000 tokens and shorter lists, to save time.
    seeds
        Reports of one training with two seeds or more, separated by commas; repeatable for other trainings.
    fail_if
        "|change agency_gap| > seeds", a test at 5 %; "identity_gap > 0.3", of B; with --rows "change accuracy < -0.01"
        or "lower change accuracy[chat] < -0.02"; or a YAML file with such limits under `limits:`; repeatable.
    """
    need(*PACKAGES)
    if rows and (quick or seeds):
        raise InputError("--rows compares on these rows alone: leave out --quick and --seeds")
    if not rows and (restart or reading != Reading()):
        raise InputError("--by, --truncate, --ignore, --columns and --restart are about --rows")
    from rmnb.limits import check, read_limits
    from rmnb.report import comparison, numbers
    from rmnb.scoring.pairs import NAMES

    known = {*numbers.glossary()["name"]}
    limits = read_limits(fail_if or (), NAMES if rows else {*known, *NAMES})
    for limit in limits:
        if not rows and limit.name not in known:
            raise InputError(f"limit {limit.text!r} is about rows: give them with --rows", limit.text)
    if rows:
        out, names, provenances, content = _compare_on(rows, a, b, loading, reading, restart, out)
    else:
        out, names, provenances, content = _compare_reports(a, b, loading, quick, seeds or (), out)
    outcomes = check(limits, content["numbers"])
    if names[0] == names[1]:  # two directories of one name
        names = [a, b]
    differences = comparison.read_differently(*provenances)
    first, second = ({"model": name, "provenance": read} for name, read in zip(names, provenances, strict=True))
    content = {"a": first, "b": second, "read_differently": differences, **content, "limits": outcomes}
    write_json(out / "compare.json", content, ensure_ascii=False, default=json_rows)
    title = f"{names[0]} and {names[1]}"
    _write_page("pairs" if rows else "compare", out / "compare", {"directory": str(out.resolve())}, title)
    if differences:
        echo(f"A and B are not read alike ({', '.join(differences)} differ): any change may come from that.")
    echo(f"written to {out / 'compare.html'} and {out / 'compare.json'}")
    end_by_limits(outcomes)


#: Where to, what A and B are called, their provenances, and what was compared.
_Compared = tuple[Path, list[str], "list[Provenance]", dict[str, Any]]


def _compare_reports(
    a: str, b: str, loading: Loading, quick: bool, seeds: Sequence[str], out: Path | None
) -> _Compared:
    """Compare two models, or reports, number by number."""
    from rmnb.report import comparison, record

    trainings = [[record.read(path) for path in text.split(",")] for text in seeds]
    sides = []
    for text in (a, b):  # what is neither a model nor a report is refused before minutes are spent on the other
        sides.append(record.read(text) if record.is_report(text) else find_spec(text, loading.panel))
    is_finished = all(isinstance(side, record.Report) for side in sides)
    if is_finished and (quick or loading != Loading(loading.panel)):
        raise InputError("two finished reports are compared as they are: leave out --quick and options of loading")
    out = out or Path(f"compare-{sides[0].name}-{sides[1].name}")
    check_writable(out / "compare.html")
    report_a, scores_a, policy_a = _side(a, out / "a", quick, loading)
    report_b, scores_b, policy_b = _side(b, out / "b", quick, loading)
    table = comparison.compare(report_a, report_b, trainings)
    moved = comparison.moved(scores_a, scores_b) if scores_a and scores_b else None
    _show(table)
    content = {"numbers": table, "moved": moved, "policies": (policy_a, policy_b)}
    return out, [report_a.name, report_b.name], [report_a.provenance, report_b.provenance], content


def _compare_on(
    file: Path, a: str, b: str, loading: Loading, reading: Reading, restart: bool, out: Path | None
) -> _Compared:
    """Compare two models, or what two files say of them, on the rows of a file."""
    from rmnb.report import pairs

    content = reading.read(file)
    if content.kind not in ("pairs", "lists"):
        raise InputError(f"--rows: {file} has no pairs to compare on", file)
    files: list[Any] = []
    names = []
    for text in map(Path, (a, b)):
        files.append(pairs.read_rewards(text, content) if text.is_file() else None)
        names.append(text.stem if text.is_file() else find_spec(str(text), loading.panel).name)
    out = out or Path(f"compare-{names[0]}-{names[1]}")
    check_writable(out / "compare.html")
    say_read(file, content)
    from rmnb.scoring.rows import score_file

    for place, text in enumerate((a, b)):
        if files[place] is None:
            kept = out / f"{'ab'[place]}.parquet"
            rm = loading.model(text)
            files[place] = score_file(rm, content, kept, reading.truncate, progress=True, restart=restart)
    first, second = files
    table = pairs.compare(first, second, content, reading.by)
    flipped = pairs.flipped(first, second, content, reading.by)
    echo_table(table[list(pairs.HEADS)].dropna(axis="columns", how="all").rename(columns=pairs.HEADS))
    counts = flipped["result"].value_counts()
    echo(f"now right: {counts.get('now right', 0):,}, now wrong: {counts.get('now wrong', 0):,}")
    provenances = [rewards.attrs["provenance"] for rewards in files]
    return out, names, provenances, {"numbers": table, "flipped": flipped}


def _write_page(notebook: str, path: Path, parameters: dict[str, str], title: str) -> None:
    """Execute a notebook of the package, and write it and its page by the name of a path."""
    from rmnb.book.notebook import run_notebook
    from rmnb.book.standalone import write_page
    from rmnb.report import record

    source = Path(record.__file__).with_name(f"{notebook}.ipynb")
    executed = run_notebook(source, path.with_suffix(".ipynb"), parameters)
    write_page(executed, path.with_suffix(".html"), title)


def _side(
    text: str, directory: Path, quick: bool, loading: Loading
) -> "tuple[Report, ModelScores | None, pd.DataFrame | None]":
    """The report that an argument names, and what is beside it: scores, and what a policy would say.

    A model is scored first, into `directory`.
    """
    from rmnb.report import policy, record, scores

    if record.is_report(text):
        path = Path(text)
        directory = path if path.is_dir() else path.parent
        rewards = scores.read(directory) if (directory / "scores").exists() else None
        return record.read(text), rewards, policy.read(directory)
    rewards = None if quick or loading != Loading() else scores.shipped(text)
    if rewards is None:
        scores.score(loading.model(text), directory, quick, progress=True, tell=echo)
        rewards = scores.read(directory)
    else:
        echo(f"{text}: of the demo panel: its shipped scores are read, nothing is scored")
    return record.build(rewards, workers=WORKERS, progress=True), rewards, None


def _show(table: "pd.DataFrame") -> None:
    """The largest changes, in half widths of their intervals or, where seeds were given, in what these differ by."""
    from rmnb.report import comparison

    unit = table["noise"].fillna((table["high"] - table["low"]) / 2)
    largest = (table["change"].abs() / unit).nlargest(12).index
    shown = table.loc[largest, list(comparison.HEADS)].dropna(axis="columns", how="all")
    echo_table(shown.rename(columns=comparison.HEADS))
    clear = comparison.clear(table).sum()
    intervals = table["low"].count()
    echo(f"clear on other words: {clear} of {intervals}; this says nothing of another training")
    if table["seeds"].isna().all():
        echo(comparison.SEEDS_UNKNOWN)
    else:
        beyond = comparison.beyond_seeds(table).sum()
        echo(f"more than another seed makes, each by itself at 5 %: {beyond} of {table['change'].count()}")

"""`rmnb scan`: the reward of every token of a vocabulary."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rmnb.cli.options import (
    CompileOption,
    MessagesOption,
    ModelArgument,
    PanelOption,
    PromptsOption,
    ProtocolOption,
    SoftcapOption,
    SystemOption,
    asked,
    if_named,
    load,
    takes_loading_options,
)
from rmnb.errors import InputError
from rmnb.files import atomic_path, check_writable


@takes_loading_options
def scan(
    model: ModelArgument,
    prompt: PromptsOption = None,
    system: SystemOption = None,
    messages: MessagesOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Parquet file; x.csv: the same and a CSV copy; a directory: one file a prompt. "
            "Default: the panel's own store of scores."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only ids below this one.")] = None,
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    batch_size: Annotated[int | None, typer.Option(min=1, help="Tokens at once. Default: from free memory.")] = None,
    part: Annotated[
        str | None, typer.Option(help="2/4: only the second quarter; the scan without --part puts them together.")
    ] = None,
    compile: CompileOption = None,
    softcap: SoftcapOption = None,
    *,
    loading: Mapping[str, Any],
) -> None:
    """Score every token of a vocabulary. Interrupted, the same command goes on where it stopped."""
    from rmnb.panels import find_spec, load_panel
    from rmnb.plans import alone
    from rmnb.scoring import store

    members, which = load_panel(panel), _part(part)
    questions = asked(members, prompt, system, messages)
    spec = find_spec(model, if_named(panel))
    own = any(question.key == "custom" for question in questions)
    if out is None and (own or limit or spec.name not in members.model_names):
        raise InputError(
            "a scan with a limit, a question of your own or a model outside the panel needs --out FILE or DIRECTORY"
        )
    cap = _on_or_off(softcap)
    if out is None and cap is not None and cap != spec.softcap:
        raise InputError(f"a scan with soft-capping {softcap} is not the panel's: it needs --out FILE")
    if out is None and (read := loading.get("read", spec.read)) != spec.read:
        raise InputError(f"a scan that reads at --read {read} is not the panel's: it needs --out FILE")
    paths = [store.scores_path(members, spec.name, question.key, protocol) for question in questions]
    if out is not None:
        paths = _files(out, [question.key for question in questions])
    for path in paths:
        check_writable(path)
    rm = load(spec, compile=compile, softcap=cap, **loading)  # only now: what is wrong so far is said without torch
    with contextlib.ExitStack() as held:
        # In an order of its own: two processes never wait for each other. Parts may be scored at once.
        for path in sorted(paths) if which is None else []:
            held.enter_context(alone(path))
        _announce(rm, [each for each, path in zip(questions, paths, strict=True) if not path.exists()], limit, which)
        _scan_each(rm, members, questions, paths, which, protocol, limit, batch_size, out)


def _announce(rm, questions, limit: int | None, which: tuple[int, int] | None) -> None:
    """One line on what the scans will take, counted from their beginning."""
    from rmnb.scoring.pace import estimate, in_a_line

    tokens = min(limit or rm.vocabulary_size, rm.vocabulary_size) // (which[1] if which else 1)
    if questions:
        typer.echo(in_a_line([estimate(rm, each.conversation, tokens, len(questions)) for each in questions]))


def _scan_each(rm, members, questions, paths, which, protocol, limit, batch_size, out) -> None:
    from rmnb.scoring import store
    from rmnb.scoring.scanning import scan_part, scan_vocabulary

    scans = len(questions)
    for question, path in zip(questions, paths, strict=True):
        if path.exists():
            _refuse_other(path, rm, question, protocol, limit)
            typer.echo(f"{path} is already complete")
        elif which:
            part, parts = which
            scored = scan_part(rm, question, path, part, parts, protocol, limit, batch_size, True, scans)
            typer.echo(f"part {part}/{parts} of {path}: {scored:,} tokens")
        else:
            frame = scan_vocabulary(rm, question, protocol, limit, path, batch_size, progress=True, scans=scans)
            if out is None:
                store.write_scores(members, frame, frame.attrs["provenance"])
            else:
                store.write_scan(path, frame, frame.attrs["provenance"])
            _show(path, frame)
        if out is not None and out.suffix == ".csv" and path.exists():
            with atomic_path(out) as temporary:
                store.read_scan(path)[0].to_csv(temporary, index=False)
            typer.echo(f"a copy in {out}, without its provenance")
    # Not before the last prompt is written: whoever runs several in one job deletes all that a failed job has written,
    # and then they come back from the shards without being computed again.
    for path in paths:
        if which is None or path.exists():
            store.Shards.discard(path)


def _files(out: Path, keys: list[str]) -> list[Path]:
    """Where each prompt's scan is written: into a file, or into one a prompt in a directory."""
    if out.suffix in (".parquet", ".csv"):
        if len(keys) > 1:
            raise InputError(f"--out {out}: several prompts do not fit into one file, give a directory")
        return [out.with_suffix(".parquet")]
    if out.suffix and not out.is_dir():
        raise InputError(f"--out {out}: choose a name that ends with .parquet or .csv, or a directory")
    if len(set(keys)) < len(keys):
        raise InputError(f"--out {out}: questions of your own have no names for their files: scan them one by one")
    return [out / f"{key}.parquet" for key in keys]


def _on_or_off(text: str | None) -> bool | None:
    if text not in (None, "on", "off"):
        raise InputError(f"--softcap {text}: write on or off")
    return None if text is None else text == "on"


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise InputError(f"--part {text}: write which part of how many, such as 2/4")
    return int(number), int(of)


def _refuse_other(path: Path, rm, prompt, protocol: str, limit: int | None) -> None:
    from rmnb.models.origin import template_sha256
    from rmnb.scoring.store import differences, read_scan

    wanted = {
        "weights_sha256": rm.weights_sha256,
        "tokenizer_sha256": rm.tokenizer_sha256,
        "template_sha256": template_sha256(rm.dialogue.template),
        "prompt": prompt.text,
        "history": [turn.model_dump() for turn in prompt.history],
        "protocol": protocol,
        "head": "classifier" if rm.head is None else rm.head.name,
        **({} if rm.spec.label is None else {"label": rm.spec.label}),
        "read": rm.spec.read,
        "read_offset": rm.read_at(prompt.conversation)[1],
        "softcap": rm.spec.softcap,
        "dtype": rm.spec.dtype,
        "quantise": rm.placement.quantise,
        "tokens": min(limit or rm.vocabulary_size, rm.vocabulary_size),
    }
    if changed := differences(read_scan(path)[1], wanted):
        raise InputError(
            f"{path} holds another scan (it differs in {', '.join(changed)}): delete it, or choose another --out"
        )


def _show(path: Path, frame) -> None:
    ranked = frame.sort_values("score", kind="stable")
    typer.echo(f"{len(frame):,} tokens in {path}")
    typer.echo("optimal:  " + " ".join(repr(token) for token in ranked["token"].iloc[:-6:-1]))
    typer.echo("pessimal: " + " ".join(repr(token) for token in ranked["token"].iloc[:5]))

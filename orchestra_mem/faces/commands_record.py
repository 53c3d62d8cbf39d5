"""Commands that change what is remembered: init, record, import, flush, refresh."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from orchestra_mem.errors import HistoryError
from orchestra_mem.faces.shell import FAILED, DebugOption, JsonOption, ProjectOption, Shell, shell
from orchestra_mem.faces.times import parse_time

if TYPE_CHECKING:
    from orchestra_mem.core.histories import History, HistoryFault, HistoryOperation
    from orchestra_mem.services.flow import Refreshed
    from orchestra_mem.services.importing import Imported
    from orchestra_mem.types import Json

LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N.")]


def init(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Make a memory in a project, or complete the one that is there. Nothing existing is touched.

    Example: orchestra-mem init
    """
    with shell(project or Path.cwd(), as_json, debug) as run:
        from orchestra_mem.build import initialise

        done = initialise(run.project)
        if as_json:
            return run.answer({"project": str(done.project), "made": list(done.made), "kept": list(done.kept)})
        for words, names in (("made", done.made), ("kept as it was", done.kept)):
            for name in names:
                run.tell(f"{words}: {name}")
        run.text(
            f"{done.project} has a memory{'' if done.made else ' already'}. Next:\n"
            '  orchestra-mem record decision \'{"text": "we deploy on Tuesdays"}\'\n'
            "  orchestra-mem context          what a model would be given\n"
            "  orchestra-mem import git .     what happened before\n"
        )
    return None


def record(
    operation_type: Annotated[str, typer.Argument(metavar="TYPE", help="What kind of thing was done, as in decision.")],
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="JSON; - reads it from stdin.")] = None,
    text: Annotated[str | None, typer.Option("--text", help='In the place of DATA: {"text": TEXT}.')] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=0, help="What it took of the window.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Who did it.")] = None,
    critical: Annotated[
        bool | None,
        typer.Option("--critical/--no-critical", metavar="", help="Whether it matters more; judged if not given."),
    ] = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="When, in ISO 8601. Default: now.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The same key twice records once.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Record an operation; a memory is made where there is none.

    Example: orchestra-mem record decision '{"text": "we deploy on Tuesdays"}'
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.serialize import to_object

        value = _data(data, text)
        when = _time(timestamp, "--timestamp")
        with run.open(create=True) as memory:
            operation = memory.record_operation(
                operation_type, value, tokens, agent=agent, critical=critical, timestamp=when, idempotency_key=key
            )
        if as_json:
            run.answer(to_object(operation))
        else:
            run.text(f"op{operation.id}\n")


def _data(data: str | None, text: str | None) -> object:
    if (data is None) == (text is None):
        raise typer.BadParameter("give the data as JSON, or a text by --text, and not both", param_hint="DATA")
    if text is not None:
        return {"text": text}
    assert data is not None
    from orchestra_mem.serialize import unrepeated

    raw: str | bytes = _from_stdin() if data == "-" else data
    try:
        value: object = json.loads(raw, object_pairs_hook=unrepeated)
    except (ValueError, RecursionError) as error:
        source = "stdin" if data == "-" else repr(data if len(data) <= 60 else data[:59] + "…")
        raise typer.BadParameter(
            f"{source} is no JSON ({error}); plain words go by --text", param_hint="DATA"
        ) from None
    return value


def _from_stdin() -> bytes:
    # Typeshed does not know that Python sets it to None where it was closed, as by `<&-`.
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise typer.BadParameter("stdin is closed: pipe the JSON in, or give it as the argument", param_hint="DATA")
    return stdin.buffer.read()


def _time(given: str | None, option: str) -> datetime | None:
    try:
        return parse_time(given)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def import_git(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder of the repository.")],
    limit: LimitOption = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Whom to name as the one who did it.")] = None,
    patches: Annotated[
        bool, typer.Option("--patches", metavar="", help="Also each changed file with its patch, before its commit.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Record the commits of a git repository, oldest first. A second time records only what is new.

    Example: orchestra-mem import git . --limit 500
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import open_git_history

        _import(run, open_git_history(path, limit=limit, agent=agent, patches=patches), None)


def import_jsonl(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One JSON object a line.")],
    operation_type: Annotated[
        str, typer.Option("--type", help="The type of operations whose line does not name one.")
    ] = "imported",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", metavar="", help="Pass over lines at fault, tell them, exit 1.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Record the lines of a file of JSON objects. A second time records only what is new.

    A line is known again by its file, its number and its text: a file that was moved, or what comes through a pipe, is
    recorded again, unless its lines have an idempotency_key.

    A line may have type, data, tokens, agent, critical, timestamp and idempotency_key; without data the whole object
    is the data.

    Example: orchestra-mem import jsonl talk.jsonl --type message
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import open_jsonl_history

        faults: list[HistoryFault] = []
        on_fault = faults.append if skip_bad else None
        history = open_jsonl_history(file, operation_type=operation_type, on_fault=on_fault)
        advice = "" if skip_bad else "--skip-bad passes over such lines"
        _import(run, history, faults if skip_bad else None, advice)


def _import(run: Shell, history: History, faults: list[HistoryFault] | None, advice: str = "") -> None:
    from orchestra_mem.services.importing import Imported, import_history

    done = Imported(recorded=0, known=0)
    with run.open(create=True) as memory, run.progress(history.unit) as bar:
        task = bar.add_task("importing", total=history.total or None)

        def step(so_far: Imported, found: HistoryOperation) -> None:
            nonlocal done
            done = so_far
            bar.update(task, completed=found.position)

        try:
            import_history(memory, history, on_operation=step, on_fault=None if faults is None else faults.append)
        except HistoryError as error:
            words = f"{error}. Before it: {_counted(done)}"
            raise HistoryError(f"{words}. {advice}" if advice else words) from error
    told = faults or []
    if history.note:
        run.tell(history.note)
    for fault in told:
        run.tell(f"passed over: {fault}")
    if run.as_json:
        run.answer(
            {
                "source": history.source, "recorded": done.recorded, "known": done.known, "note": history.note,
                "faults": [{"place": fault.place, "problem": fault.problem} for fault in told],
            }
        )  # fmt: skip
    else:
        run.text(f"{_counted(done, f' of {history.source}')}\n")
    if told:
        raise typer.Exit(FAILED)


def _counted(done: Imported, source: str = "") -> str:
    of = "operation" if done.recorded == 1 else "operations"
    known = f"; {done.known:,} had been before" if done.known else ""
    return f"recorded {done.recorded:,} {of}{source}{known}"


def flush(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """End the session: sum it up, archive its document, bring the documents up to date.

    Example: orchestra-mem flush
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            path = memory.flush_session()
        if as_json:
            run.answer({"archive": str(path) if path else None})
        else:
            run.text(f"{path}\n" if path else "no session is under way\n")


def refresh(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Spill and compact now, and bring the documents up to date. Happens by itself when the window is 80 % full.

    Example: orchestra-mem refresh
    """
    with shell(project, as_json, debug) as run:
        with run.open() as memory:
            before = memory.episodic_memory.states()
            done = memory.refresh()
            after = memory.episodic_memory.states()
        written = [f"{name}.md" for name in after if after[name] != before[name]]
        if as_json:
            run.answer(_refresh_record(done, written))
        else:
            wrote = f"wrote {', '.join(written)}" if written else "no document changed"
            run.text(f"{_refresh_words(done)}; {wrote}\n")


def _refresh_record(done: Refreshed | None, written: Sequence[str]) -> dict[str, Json]:
    from orchestra_mem.serialize import to_object

    documents: dict[str, Json] = {"session": done is not None, "documents": [*written]}
    if done is None:
        return documents
    return {
        **documents, "spilled_operations": done.spilled_operations,
        "compacted_operations": done.compacted.covered_operations,
        "summaries": [to_object(summary) for summary in done.compacted.summaries],
        "ratio": round(done.compacted.ratio, 4), "used_tokens": done.used_tokens,
        "milliseconds": round(done.milliseconds, 3),
    }  # fmt: skip


def _refresh_words(done: Refreshed | None) -> str:
    if done is None:
        return "no session is under way"
    made = ", ".join(f"S{summary.id}" for summary in done.compacted.summaries)
    return (
        f"spilled {done.spilled_operations:,} operations, compacted {done.compacted.covered_operations:,}"
        f"{f' into {made}' if made else ''}; {done.used_tokens:,} tokens in use, {done.milliseconds:,.0f} ms"
    )


def add_to(app: typer.Typer, importing: typer.Typer, panel: str) -> None:
    """Add these commands."""
    app.command(rich_help_panel="Begin")(init)
    commands: tuple[Callable[..., None], ...] = (record, flush, refresh)
    for command in commands:
        app.command(rich_help_panel=panel)(command)
    importing.command("git")(import_git)
    importing.command("jsonl")(import_jsonl)

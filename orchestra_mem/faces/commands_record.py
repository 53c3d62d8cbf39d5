"""Commands that write the memory: init, record, import, flush, refresh."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter

from orchestra_mem import build
from orchestra_mem.choices import ImportKind
from orchestra_mem.errors import HistoryError
from orchestra_mem.faces.command import CommandGroup, CommandResult, Invocation, add_group, argument, command, option
from orchestra_mem.faces.inputs import from_stdin, not_blank, parse_time, text_or_stdin
from orchestra_mem.faces.records import counted, record_once
from orchestra_mem.serialize import reject_duplicate_keys

if TYPE_CHECKING:
    from orchestra_mem.core.imported_history import History, HistoryFault, HistoryOperation
    from orchestra_mem.memory.importing import Imported
    from orchestra_mem.memory.manager import OrchestratorContextManager


@command("Begin")
def init(run: Invocation) -> CommandResult:
    """Create a memory in a project, or complete an existing one. No existing file is changed.

    Example: orchestra-mem init
    """
    done = build.initialise(replace(run, given=run.given or Path.cwd()).project)
    record = {"project": str(done.project), "made": list(done.made), "kept": list(done.kept)}
    if not run.as_json:
        for name in done.made:
            run.tell(f"created: {name}")
        for name in done.kept:
            run.tell(f"already there: {name}")
    return CommandResult(
        record,
        f"{done.project} has a memory{'' if done.made else ' already'}. Next:\n"
        '  orchestra-mem record decision \'{"text": "we deploy on Tuesdays"}\'\n'
        "  orchestra-mem context          what a model would get\n"
        "  orchestra-mem import git .     record the history of the repository\n",
    )


@command("Record")
def record(
    run: Invocation,
    operation_type: Annotated[str, argument("TYPE", "Its type, such as decision, rule or todo.", callback=not_blank)],
    data: Annotated[str | None, argument("DATA", "JSON; - reads it from stdin.")] = None,
    text: Annotated[str | None, option("--text TEXT", 'For the data {"text": TEXT}; - reads it from stdin.')] = None,
    tokens: Annotated[
        int | None, option("--tokens N", "How many tokens of the window it used. Default: counted.", min=0)
    ] = None,
    agent: Annotated[str | None, option("--agent NAME", "Who did it.", callback=not_blank)] = None,
    critical: Annotated[
        bool | None,
        option("--critical/--no-critical", "Whether it is important. Default: decided by its type and data."),
    ] = None,
    timestamp: Annotated[
        datetime | None, option("--timestamp TIME", "When, in ISO 8601. Default: now.", parser=parse_time)
    ] = None,
    key: Annotated[str | None, option("--key KEY", "A second operation with the same key is not recorded.")] = None,
) -> CommandResult:
    """Record an operation; creates a memory if there is none.

    Example: orchestra-mem record decision '{"text": "we deploy on Tuesdays"}'
    """
    value = _data(data, text_or_stdin(text))
    with run.open(create=True) as memory:
        operation, note = record_once(
            memory, operation_type, value, tokens, agent=agent, critical=critical, timestamp=timestamp, key=key
        )
    return CommandResult(operation, f"op{operation.id}\n", notes=[f"orchestra-mem: {note}"] if note else [])


def _data(data: str | None, text: str | None) -> object:
    if (data is None) == (text is None):
        raise BadParameter("give either DATA as JSON or a text with --text", param_hint="DATA")
    if text is not None:
        if not text.strip():
            raise BadParameter("the text is empty", param_hint="--text")
        return {"text": text}
    assert data is not None
    raw: str | bytes = from_stdin() if data == "-" else data
    try:
        value: object = json.loads(raw, object_pairs_hook=reject_duplicate_keys)
    except (ValueError, RecursionError) as error:
        source = "stdin" if data == "-" else repr(data if len(data) <= 60 else data[:59] + "…")
        raise BadParameter(f"{source} is not JSON ({error}); give plain text with --text", param_hint="DATA") from None
    return value


class ImportGroup(CommandGroup):
    """The group `import`, in which the command name `from` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `from` if the first argument is neither a command nor a help option."""
        named = not args or args[0] in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if named else ["from", *args])


importing = add_group("import", "Record", help="Record what happened elsewhere.", cls=ImportGroup)


@command(of=importing, name="from")
def import_from(
    run: Invocation,
    path: Annotated[Path, argument("PATH", "A file or folder.")],
    kind: Annotated[ImportKind | None, option("--as KIND", "What it is. Default: detected.")] = None,
    agent: Annotated[
        str | None, option("--agent NAME", "The agent to record under. Default: the agent named in the transcript.")
    ] = None,
    dry_run: Annotated[bool, option("--dry-run", "Only report what would be recorded.")] = False,
) -> CommandResult:
    """Record transcripts, a ChatGPT export, notes or rule files; `from` may be left out. A rerun records only changes.

    Reads transcripts of Claude Code and Codex, conversations.json or its zip file, folders of markdown (Obsidian,
    basic-memory, memsearch), CLAUDE.md and AGENTS.md. Unreadable parts are reported, skipped, and cause exit code 1.

    Example: orchestra-mem import from ~/.claude/projects --dry-run
    """
    faults: list[HistoryFault] = []
    return _import(run, build.open_import(path, kind, agent=agent, on_fault=faults.append), faults, dry_run=dry_run)


@command(of=importing, name="git")
def import_git(
    run: Invocation,
    path: Annotated[Path, argument("PATH", "A folder of the repository.")],
    limit: Annotated[int | None, option("--limit N", "Only the newest N commits.", min=1)] = None,
    agent: Annotated[str | None, option("--agent NAME", "The agent to record the commits under.")] = None,
) -> CommandResult:
    """Record the commits of a git repository, oldest first. A second run records only new commits.

    Example: orchestra-mem import git . --limit 500
    """
    return _import(run, build.open_git_history(path, limit=limit, agent=agent), [])


@command(of=importing, name="jsonl")
def import_jsonl(
    run: Invocation,
    file: Annotated[Path, argument("FILE", "A file with one JSON object per line.")],
    operation_type: Annotated[str, option("--type TYPE", "The type for lines that do not name one.")] = "imported",
) -> CommandResult:
    """Record each line of a file of JSON objects. A second run records only new lines.

    Faulty lines are reported, skipped, and cause exit code 1.

    A line may have type, data, tokens, agent, critical, timestamp and idempotency_key; without data the whole object
    is the data.

    Known lines are recognised by file, line number and text. So the lines of a moved file or of a pipe are recorded
    again, unless they have an idempotency_key.

    Example: orchestra-mem import jsonl talk.jsonl --type message
    """
    faults: list[HistoryFault] = []
    history = build.open_jsonl_history(file, operation_type=operation_type, on_fault=faults.append)
    return _import(run, history, faults)


def _import(
    run: Invocation, history: History, faults: list[HistoryFault], *, dry_run: bool | None = None
) -> CommandResult:
    """Record a history, and append a fault to `faults` for each part that cannot be recorded.

    `dry_run`: None for commands without that option, whose results have no counts by type.
    """
    from orchestra_mem.memory.importing import Imported, import_history

    done, types = Imported(recorded=0, known=0), Counter[str]()
    opened = nullcontext() if dry_run and not (run.project / build.HOME).is_dir() else run.open(create=True)
    with opened as memory, run.progress(history.unit) as bar:
        task = bar.add_task("importing", total=history.total or None)

        def step(so_far: Imported, found: HistoryOperation) -> None:
            nonlocal done
            types[found.type] += so_far.recorded - done.recorded
            done = so_far
            bar.update(task, completed=found.position)

        try:
            import_history(memory, history, dry_run=bool(dry_run), on_operation=step, on_fault=faults.append)
        except HistoryError as error:
            raise HistoryError(f"{error}. Before that: {_counted(done)}") from error
    return _imported(run, history, done, types, faults, dry_run=dry_run)


def _imported(
    run: Invocation, history: History, done: Imported, types: Counter[str], faults: list[HistoryFault],
    *, dry_run: bool | None,
) -> CommandResult:  # fmt: skip
    found, left_out = +types, +history.left_out
    if history.note:
        run.tell(history.note)
    for fault in faults:
        run.tell(f"skipped: {fault}")
    if left_out:
        run.tell(f"left out: {_listed(left_out)}")
    record = {
        "source": history.source, "recorded": done.recorded, "known": done.known, "note": history.note,
        "faults": faults,
    }  # fmt: skip
    if dry_run is not None:
        record |= {"types": dict(found), "left_out": dict(left_out), "dry_run": dry_run}
    words = f"{_counted(done, f' from {history.source}')}\n"
    if dry_run:
        words = f"would have {words}{_listed(found)}\n" if found else f"would have {words}"
    return CommandResult(record, words, failed=bool(faults))


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def _counted(done: Imported, source: str = "") -> str:
    known = f"; {done.known:,} already recorded" if done.known else ""
    return f"recorded {counted(done.recorded, 'operation')}{source}{known}"


@command("Record")
def flush(memory: OrchestratorContextManager) -> CommandResult:
    """End the session: summarise it, archive its document, and update the documents in .obra/memory.

    Example: orchestra-mem flush
    """
    path = memory.flush_session()
    return CommandResult(
        {"archive": str(path) if path else None}, f"{path}\n" if path else "there is no session to end\n"
    )


@command("Record")
def refresh(memory: OrchestratorContextManager) -> CommandResult:
    """Spill, compact and update the documents now. This happens automatically when the window is 80 % full.

    Example: orchestra-mem refresh
    """
    before = memory.episodic_memory.states()
    done = memory.refresh()
    after = memory.episodic_memory.states()
    written = [f"{name}.md" for name in after if after[name] != before[name]]
    wrote = f"wrote {', '.join(written)}" if written else "no document changed"
    if done is None:
        return CommandResult({"session": False, "documents": written}, f"there is no session; {wrote}\n")
    compacted = done.compacted
    record = {
        "session": True, "documents": written, "spilled_operations": done.spilled_operations,
        "compacted_operations": compacted.covered_operations, "summaries": compacted.summaries,
        "ratio": round(compacted.ratio, 4), "used_tokens": done.used_tokens,
        "milliseconds": round(done.milliseconds, 3),
    }  # fmt: skip
    made = ", ".join(f"S{summary.id}" for summary in compacted.summaries)
    words = (
        f"spilled {done.spilled_operations:,} operations, compacted {compacted.covered_operations:,}"
        f"{f' into {made}' if made else ''}; {done.used_tokens:,} tokens in use, {done.milliseconds:,.0f} ms"
    )
    return CommandResult(record, f"{words}; {wrote}\n")

"""Looking through a project's memory for what is wrong, part by part, each with what to do about it.

A part that cannot be looked at does not keep the others from it: what is told is what works and what does not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout

from orchestra_mem.adapters.config_files import load_settings
from orchestra_mem.adapters.database import Database
from orchestra_mem.adapters.files import why_read_only
from orchestra_mem.adapters.search_index.inspection import IndexReport
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.build.wiring import Place
from orchestra_mem.doctor.documents import check_documents
from orchestra_mem.doctor.findings import Finding, Health, fault, note, sound
from orchestra_mem.doctor.models import check_model
from orchestra_mem.doctor.search_index import index_finding, inspect_index
from orchestra_mem.errors import ConfigError, OrchestraMemError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import Settings
from orchestra_mem.types import DocumentName, OperationFilter, SessionStatus

# Below the first nothing much can be recorded any more; below the second it is time to know.
_NO_ROOM_BYTES = 20_000_000
_LITTLE_ROOM_BYTES = 500_000_000
_LOCK_WAIT_S = 2.0
_MAY_WRITE = "give this user the right to write there"
_DO_IT = "do what it says, then look again"


def diagnose(project: Path, *, on_part: Callable[[str], None] | None = None) -> list[Finding]:
    """Look through the memory of a project.

    Args:
        project: the folder that `.obra` lies in.
        on_part: is told each part before it is looked at; the database may take a while.
    """
    tell = on_part or (lambda part: None)
    tell("configuration")
    settings, findings = _configuration(project)
    tell("disk")
    findings += _disk(project / HOME)
    is_read_only = why_read_only(project / HOME) is not None
    tell("lock")
    findings.append(_lock(project / HOME / "obra.lock", is_read_only=is_read_only))
    tell("database")
    findings.append(database := _database(project, settings or Settings(), is_read_only=is_read_only))
    if database.health is Health.FAULT or settings is None:
        why = "the database" if database.health is Health.FAULT else "the configuration"
        return [*findings, note("documents", f"not looked at: {why} must be in order first")]
    tell("documents")
    # These before the memory is opened, which would make a document again that is not there.
    problems = check_documents(project, settings)
    findings += [fault("documents", str(each), f"mend it; until then: {each.meanwhile}") for each in problems]
    if not problems:
        findings.append(sound("documents", f"{len(DocumentName)} documents, all in order"))
    tell("search")
    # Before the memory is opened as well: what is damaged is told as it lies there.
    findings += _memory(project, inspect_index(project, thorough=True))
    tell("model")
    findings += check_model(project, settings)
    return findings


def _configuration(project: Path) -> tuple[Settings | None, list[Finding]]:
    try:
        settings = load_settings(project, os.environ)
    except ConfigError as error:
        advice = "mend it there; `orchestra-mem config show --defaults` has every key with its range"
        return None, [fault("configuration", str(each), advice) for each in error.faults]
    given = sum(settings.origin_of(key) != "default" for key in settings.flat())
    return settings, [sound("configuration", f"in order; set otherwise than by default: {given}")]


def _disk(home: Path) -> Iterator[Finding]:
    why = why_read_only(home)
    if why is not None:
        yield fault("folder", f"{why}: the memory can be read, and nothing can be recorded", _MAY_WRITE)
    else:
        try:
            with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor.", suffix=".tmp"):
                yield sound("folder", f"{home} can be written to")
        except OSError as error:
            words = f"{home} cannot be written to: {error.strerror or error}"
            yield fault("folder", words, f"{_MAY_WRITE}, or make room on the disk")
    free = shutil.disk_usage(home).free
    words = f"{free / 1e9:,.1f} GB free"
    if free < _NO_ROOM_BYTES:
        yield fault("disk", words, "make room: nothing can be recorded without")
    else:
        yield note("disk", words, "make room soon") if free < _LITTLE_ROOM_BYTES else sound("disk", words)


def _lock(lock_file: Path, *, is_read_only: bool) -> Finding:
    if is_read_only:
        return note("lock", "not looked at: a memory that is only read takes none")
    try:
        if lock_file.exists():
            with FileLock(str(lock_file), timeout=_LOCK_WAIT_S):
                pass
        return sound("lock", "nobody holds it")
    except Timeout:
        advice = "writing a document takes milliseconds: look for a process that hangs (`fuser` names it) and end it"
        return fault("lock", f"another process has held {lock_file} for {_LOCK_WAIT_S:g} s", advice)
    except OSError as error:
        advice = f"{_MAY_WRITE}; file systems without locks cannot hold a memory"
        return fault("lock", f"{lock_file} cannot be locked: {error.strerror or error}", advice)


def _database(project: Path, settings: Settings, *, is_read_only: bool) -> Finding:
    path = project / HOME / "obra.db"
    if not path.exists():
        return _no_database(path, Place.of(project, settings))
    try:
        with closing(Database(path, busy_timeout_s=_LOCK_WAIT_S, read_only=is_read_only)) as database:
            damage, schema = database.check(), database.schema_version
    except OrchestraMemError as error:
        return fault("database", str(error), _DO_IT)
    if damage is not None:
        advice = "move it away and put back a copy; the documents beside it are whole"
        return fault("database", f"{path} is damaged: {damage}", advice)
    return sound("database", f"sound; schema {schema}, {path.stat().st_size / 1e6:,.1f} MB")


def _no_database(path: Path, place: Place) -> Finding:
    older = place.older_documents()
    if not older:
        return note("database", f"{path} is not there: nothing has been recorded here yet")
    return fault(
        "database",
        f"{path} is not there, and documents of a memory are: {', '.join(older)}",
        "put a copy of it back before recording goes on. Without it a new one begins: the documents are served "
        "as they are, and the operations, summaries and facts behind them are gone",
    )


def _memory(project: Path, index: IndexReport) -> Iterator[Finding]:
    try:
        memory = open_memory(project)
    except OrchestraMemError as error:
        yield fault("memory", str(error), _DO_IT)
        return
    with memory:
        newest = memory.operations(OperationFilter(limit=1))
        last = newest[-1].id if newest else 0
        yield from _versions(memory)
        yield from _sessions(memory, last)
        yield index_finding(index, last)
        stats = cast("dict[str, Any]", memory.get_stats())
        for problem in stats["problems"]:
            since = f" (since {problem['since']})" if problem["since"] else ""
            yield fault(str(problem["subject"]), f"{problem['problem']}{since}")
        yield _counter(stats["context_window"])


def _versions(memory: OrchestratorContextManager) -> Iterator[Finding]:
    try:
        versions = [version for name in DocumentName for version in memory.episodic_memory.history(name.value)]
    except OrchestraMemError as error:
        yield fault("versions", str(error))
        return
    for version in versions:
        if not os.access(version.path, os.R_OK):
            yield fault("versions", f"{version.path} cannot be read", "give this user the right to read it")
    yield sound("versions", f"{len(versions):,} earlier texts")


def _sessions(memory: OrchestratorContextManager, last: int) -> Iterator[Finding]:
    sessions = memory.sessions()
    folder = memory.session_memory.place.folder
    for session in sessions:
        if session.status is SessionStatus.ARCHIVED and session.archive and not (folder / session.archive).exists():
            advice = f"its operations are not: `orchestra-mem ops --session {session.id[:8]}`"
            yield note("sessions", f"{session.archive} is gone", advice)
    yield sound("sessions", f"{len(sessions):,} so far; the newest operation is op{last}" if last else "none yet")


def _counter(window: dict[str, Any]) -> Finding:
    if window["exact"]:
        return sound("token counter", f"{window['counter']}, the model's own")
    return note(
        "token counter",
        f"{window['counter']}, not the model's own: counts differ from it somewhat",
        "keep the window a little under the model's (orchestrator.context_window.max_tokens), or have them "
        "counted by its own vocabulary: llm.model_path names its GGUF",
    )

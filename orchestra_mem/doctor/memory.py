"""Looking through a project's memory for what is wrong, part by part, each with what to do about it.

A part that cannot be looked at does not keep the others from it: what is told is what works and what does not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from orchestra_mem.adapters.config_files import load_settings
from orchestra_mem.adapters.database import Database, ReadOnlyDatabase
from orchestra_mem.adapters.files import why_read_only
from orchestra_mem.adapters.search_index.inspection import IndexReport
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.build.wiring import old_documents
from orchestra_mem.doctor.documents import check_documents
from orchestra_mem.doctor.findings import Finding, Health
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


def diagnose(project: Path, *, on_part: Callable[[str], None] | None = None) -> list[Finding]:
    """Look through the memory of a project.

    Args:
        project: the folder that `.obra` lies in.
        on_part: is told each part before it is looked at; the database may take a while.
    """
    tell = on_part or (lambda part: None)
    findings: list[Finding] = []
    tell("configuration")
    settings, found = _configuration(project)
    findings += found
    tell("disk")
    findings += _disk(project)
    read_only = why_read_only(project / HOME) is not None
    tell("lock")
    findings.append(_unlocked() if read_only else _lock(project))
    tell("database")
    database = _database(project, settings, read_only=read_only)
    findings.append(database)
    if database.health is Health.FAULT or settings is None:
        why = "the database" if database.health is Health.FAULT else "the configuration"
        findings.append(
            Finding(part="documents", health=Health.NOTE, words=f"not looked at: {why} must be in order first")
        )
        return findings
    tell("documents")
    # Before the memory is opened, which would make a document again that is not there.
    findings += _documents(project, settings)
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
        return None, [
            Finding(part="configuration", health=Health.FAULT, words=str(fault), advice=advice)
            for fault in error.faults
        ]
    given = sum(settings.origin_of(key) != "default" for key in settings.flat())
    return settings, [
        Finding(part="configuration", health=Health.SOUND, words=f"in order; set otherwise than by default: {given}")
    ]


def _disk(project: Path) -> Iterator[Finding]:
    home = project / HOME
    why = why_read_only(home)
    if why is not None:
        yield Finding(
            part="folder", health=Health.FAULT, words=f"{why}: the memory can be read, and nothing can be recorded",
            advice="give this user the right to write there",
        )  # fmt: skip
    else:
        try:
            with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor.", suffix=".tmp"):
                yield Finding(part="folder", health=Health.SOUND, words=f"{home} can be written to")
        except OSError as error:
            yield Finding(
                part="folder", health=Health.FAULT, words=f"{home} cannot be written to: {error.strerror or error}",
                advice="give this user the right to write there, or make room on the disk",
            )  # fmt: skip
    free = shutil.disk_usage(home).free
    words = f"{free / 1e9:,.1f} GB free"
    if free < _NO_ROOM_BYTES:
        yield Finding(
            part="disk", health=Health.FAULT, words=words, advice="make room: nothing can be recorded without"
        )
    elif free < _LITTLE_ROOM_BYTES:
        yield Finding(part="disk", health=Health.NOTE, words=words, advice="make room soon")
    else:
        yield Finding(part="disk", health=Health.SOUND, words=words)


def _unlocked() -> Finding:
    return Finding(part="lock", health=Health.NOTE, words="not looked at: a memory that is only read takes none")


def _lock(project: Path) -> Finding:
    lock_file = project / HOME / "obra.lock"
    if not lock_file.exists():
        return Finding(part="lock", health=Health.SOUND, words="nobody holds it")
    try:
        with FileLock(str(lock_file), timeout=_LOCK_WAIT_S):
            return Finding(part="lock", health=Health.SOUND, words="nobody holds it")
    except Timeout:
        return Finding(
            part="lock", health=Health.FAULT, words=f"another process has held {lock_file} for {_LOCK_WAIT_S:g} s",
            advice="writing a document takes milliseconds: look for a process that hangs (`fuser` names it) and end it",
        )  # fmt: skip
    except OSError as error:
        return Finding(
            part="lock", health=Health.FAULT, words=f"{lock_file} cannot be locked: {error.strerror or error}",
            advice="give this user the right to write there; file systems without locks cannot hold a memory",
        )  # fmt: skip


def _database(project: Path, settings: Settings | None, *, read_only: bool) -> Finding:
    path = project / HOME / "obra.db"
    if not path.exists():
        return _no_database(path, project, settings)
    try:
        database = (ReadOnlyDatabase if read_only else Database)(path, busy_timeout_s=_LOCK_WAIT_S)
        try:
            fault, schema = database.check(), database.schema_version
        finally:
            database.close()
    except OrchestraMemError as error:
        return Finding(
            part="database", health=Health.FAULT, words=str(error), advice="do what it says, then look again"
        )
    if fault is not None:
        return Finding(
            part="database", health=Health.FAULT, words=f"{path} is damaged: {fault}",
            advice="move it away and put back a copy; the documents beside it are whole",
        )  # fmt: skip
    size = path.stat().st_size
    return Finding(part="database", health=Health.SOUND, words=f"sound; schema {schema}, {size / 1e6:,.1f} MB")


def _no_database(path: Path, project: Path, settings: Settings | None) -> Finding:
    orchestrator = (settings or Settings()).orchestrator
    found = old_documents(project / orchestrator.memory_dir, project / orchestrator.session_dir)
    if not found:
        return Finding(
            part="database", health=Health.NOTE, words=f"{path} is not there: nothing has been recorded here yet"
        )
    return Finding(
        part="database", health=Health.FAULT,
        words=f"{path} is not there, and documents of a memory are: {', '.join(found)}",
        advice="put a copy of it back before recording goes on. Without it a new one begins: the documents are served "
        "as they are, and the operations, summaries and facts behind them are gone",
    )  # fmt: skip


def _memory(project: Path, index: IndexReport) -> Iterator[Finding]:
    try:
        memory = open_memory(project)
    except OrchestraMemError as error:
        yield Finding(part="memory", health=Health.FAULT, words=str(error), advice="do what it says, then look again")
        return
    with memory:
        yield from _versions(memory)
        yield from _sessions(memory)
        newest = memory.operations(OperationFilter(limit=1))
        yield index_finding(index, newest[-1].id if newest else 0)
        stats = memory.get_stats()
        problems = stats["problems"]
        assert isinstance(problems, list)
        for problem in problems:
            assert isinstance(problem, dict)
            since = f" (since {problem['since']})" if problem["since"] else ""
            words = f"{problem['problem']}{since}"
            yield Finding(part=str(problem["subject"]), health=Health.FAULT, words=words)
        yield _counter(memory)


def _documents(project: Path, settings: Settings) -> Iterator[Finding]:
    problems = check_documents(project, settings)
    for found in problems:
        yield Finding(
            part="documents", health=Health.FAULT, words=str(found),
            advice=f"mend it; until then: {found.meanwhile}",
        )  # fmt: skip
    if not problems:
        yield Finding(part="documents", health=Health.SOUND, words=f"{len(DocumentName)} documents, all in order")


def _versions(memory: OrchestratorContextManager) -> Iterator[Finding]:
    count = 0
    try:
        for name in DocumentName:
            for version in memory.episodic_memory.history(name.value):
                if not os.access(version.path, os.R_OK):
                    yield Finding(
                        part="versions", health=Health.FAULT, words=f"{version.path} cannot be read",
                        advice="give this user the right to read it",
                    )  # fmt: skip
                count += 1
    except OrchestraMemError as error:
        yield Finding(part="versions", health=Health.FAULT, words=str(error))
        return
    yield Finding(part="versions", health=Health.SOUND, words=f"{count:,} earlier texts")


def _sessions(memory: OrchestratorContextManager) -> Iterator[Finding]:
    sessions = memory.sessions()
    folder = memory.session_memory.place.folder
    for session in sessions:
        if session.status is SessionStatus.ARCHIVED and session.archive and not (folder / session.archive).exists():
            yield Finding(
                part="sessions", health=Health.NOTE, words=f"{session.archive} is gone",
                advice=f"its operations are not: `orchestra-mem ops --session {session.id[:8]}`",
            )  # fmt: skip
    newest = memory.operations(OperationFilter(limit=1))
    words = f"{len(sessions):,} so far; the newest operation is op{newest[-1].id}" if newest else "none yet"
    yield Finding(part="sessions", health=Health.SOUND, words=words)


def _counter(memory: OrchestratorContextManager) -> Finding:
    window = memory.get_stats()["context_window"]
    assert isinstance(window, dict)
    name = window["counter"]
    if window["exact"]:
        return Finding(part="token counter", health=Health.SOUND, words=f"{name}, the model's own")
    return Finding(
        part="token counter", health=Health.NOTE, words=f"{name}, not the model's own: counts differ from it somewhat",
        advice="keep the window a little under the model's (orchestrator.context_window.max_tokens), or have them "
        "counted by its own vocabulary: llm.model_path names its GGUF",
    )  # fmt: skip

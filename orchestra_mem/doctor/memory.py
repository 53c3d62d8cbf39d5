"""Diagnose a project's memory part by part, with advice for each fault.

A part that cannot be examined does not prevent the examination of the others.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from filelock import FileLock, Timeout

from orchestra_mem.adapters.config_files import load_settings
from orchestra_mem.adapters.files import BACKUP_MARK, why_read_only
from orchestra_mem.adapters.search_index.inspection import IndexReport
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.build.own_models import open_models
from orchestra_mem.build.search import open_embedder
from orchestra_mem.build.storage import Place, database_file, open_database
from orchestra_mem.doctor.backups import check_backup
from orchestra_mem.doctor.documents import ANEW, check_documents, index_words, inspect_index
from orchestra_mem.errors import ConfigError, EmbedderError, ModelError, OrchestraMemError, TokenizerError, lock_holder
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.model_types import LanguageModel, Message, Role
from orchestra_mem.settings import Settings
from orchestra_mem.types import OperationFilter, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import LlamaModel
    from orchestra_mem.adapters.openai_http import OpenAiModel

# Free disk space: below the first limit hardly anything can be recorded, below the second the user is warned.
_NO_ROOM_BYTES = 20_000_000
_LITTLE_ROOM_BYTES = 500_000_000
_LOCK_WAIT_S = 2.0
_PROBE_BYTES = 65_536
_MAY_WRITE = "give this user permission to write there"
_HANGS = "a write takes milliseconds: end that process if it hangs"
_DO_IT = "do what it says, then run `orchestra-mem doctor` again"
# Long enough to measure the speed; a model that reads three tokens a second takes half a minute.
_PROMPT = "Say in one sentence what this is about. " + "The task was done on the third try; two tests had failed. " * 4
_ANSWER_TOKENS = 16
_TIMEOUT_S = 120.0
_MEANWHILE = "until then summaries are made by extraction, and tokens are not counted with the model's vocabulary"


class Health(StrEnum):
    """The state of a part: in order, in order but with something to note, or faulty."""

    SOUND = "sound"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of a part, described in `words`; `advice` is empty if there is nothing to do."""

    health: Health
    part: str
    words: str
    advice: str = ""


sound = partial(Finding, Health.SOUND)
note = partial(Finding, Health.NOTE)
fault = partial(Finding, Health.FAULT)


def diagnose(project: Path, *, on_part: Callable[[str], None] | None = None) -> list[Finding]:
    """Examine the memory of a project.

    Args:
        project: The folder that contains `.obra`.
        on_part: Called with the name of each part before it is examined, which may take a while for the database.
    """
    tell = on_part or (lambda part: None)
    tell("configuration")
    settings, findings = _configuration(project)
    tell("disk")
    findings += _disk(project / HOME)
    is_read_only = why_read_only(project / HOME) is not None
    tell("lock")
    findings.append(_lock(project / HOME / "obra.lock", is_read_only=is_read_only))
    if settings is None:  # the settings may name a database server
        return [*findings, note("database", "not checked: first fix the configuration")]
    tell("database")
    findings.append(database := _database(project, settings, is_read_only=is_read_only))
    if database.health is Health.FAULT:
        return [*findings, note("documents", "not checked: first fix the database")]
    tell("documents")
    # Before the memory is opened, because opening it creates missing documents again.
    problems = check_documents(project, settings)
    findings += [fault("documents", str(each), f"fix it; meanwhile: {each.meanwhile}") for each in problems]
    if not problems:
        findings.append(sound("documents", "no faults"))
    tell("search")
    # The index is also inspected before the memory is opened, because a search would rebuild a damaged index.
    index = inspect_index(project, thorough=True)
    findings += _memory(project, index, known={f"{each}: {each.meanwhile}" for each in problems})
    findings += _embedder(project, settings)
    tell("model")
    findings += check_model(project, settings)
    return findings


def _configuration(project: Path) -> tuple[Settings | None, list[Finding]]:
    try:
        settings = load_settings(project, os.environ)
    except ConfigError as error:
        advice = "fix it there; `orchestra-mem config show --defaults` lists every key with its range"
        return None, [fault("configuration", str(each), advice) for each in error.faults]
    given = sum(settings.origin_of(key) != "default" for key in settings.flat())
    return settings, [sound("configuration", f"valid; settings that are not defaults: {given}")]


def _disk(home: Path) -> Iterator[Finding]:
    why = why_read_only(home)
    if (home / BACKUP_MARK).exists():
        try:
            made = check_backup(home.parent)
            yield sound("backup", f"of {made.project}, {made.made}; all files are unchanged")
        except OrchestraMemError as error:
            yield fault("backup", str(error))
    elif why is not None:
        words, _, advice = why.partition("; ")
        yield fault("folder", f"{words}: the memory can be read, but nothing can be recorded", advice)
    else:
        try:
            with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor.", suffix=".tmp") as probe:
                probe.write(bytes(_PROBE_BYTES))  # a full disk still takes an empty file
                probe.flush()
                yield sound("folder", f"{home} can be written to")
        except OSError as error:
            words = f"{home} cannot be written to: {error.strerror or error}"
            yield fault("folder", words, f"{_MAY_WRITE}, or free some disk space")
    free = shutil.disk_usage(home).free
    words = f"{free / 1e9:,.1f} GB free"
    if free < _NO_ROOM_BYTES:
        yield fault("disk", words, "free some disk space: without it nothing can be recorded")
    else:
        yield note("disk", words, "free some disk space soon") if free < _LITTLE_ROOM_BYTES else sound("disk", words)


def _lock(lock_file: Path, *, is_read_only: bool) -> Finding:
    if is_read_only:
        return note("lock", "not checked: a read-only memory takes no lock")
    try:
        if lock_file.exists():
            with FileLock(str(lock_file), timeout=_LOCK_WAIT_S):
                pass
        return sound("lock", "not locked")
    except Timeout:
        words = f"{lock_holder(lock_file)} has locked {lock_file} for at least {_LOCK_WAIT_S:g} s"
        return fault("lock", words, _HANGS)
    except OSError as error:
        advice = f"{_MAY_WRITE}; a memory needs a file system that supports locks"
        return fault("lock", f"{lock_file} cannot be locked: {error.strerror or error}", advice)


def _database(project: Path, settings: Settings, *, is_read_only: bool) -> Finding:
    home = project / HOME
    path = database_file(home, settings)
    if path is not None and not path.exists():
        return _no_database(path, Place.of(project, settings))
    try:
        with closing(open_database(home, settings, wait_s=_LOCK_WAIT_S, read_only=is_read_only)) as database:
            damage, schema, why = database.check(), database.schema_version, database.why_read_only
            blocked_until = time.monotonic() + _LOCK_WAIT_S
            while not (writable := database.can_write_now()) and time.monotonic() < blocked_until:
                pass  # each try waits for a moment itself
            writer = "" if writable else database.who_writes()
    except OrchestraMemError as error:
        return fault("database", str(error), _DO_IT)
    if damage is not None:
        advice = (
            "move it away and restore a copy; the documents are separate files" if path else "restore a backup of it"
        )
        return fault("database", f"{path or 'the server'} is damaged: {damage}", advice)
    if writer:
        words = f"{writer} has blocked writes to {path or 'the server'} for at least {_LOCK_WAIT_S:g} s"
        return fault("database", words, _HANGS)
    if why:
        return note("database", f"nothing can be recorded: {why.partition('; ')[0]}", why.partition("; ")[2])
    where = f"{path.stat().st_size / 1e6:,.1f} MB" if path else "on a PostgreSQL server"
    return sound("database", f"no damage; schema {schema}, {where}")


def _no_database(path: Path, place: Place) -> Finding:
    older = place.older_documents()
    if not older:
        return note("database", f"{path} does not exist: nothing has been recorded here yet")
    return fault(
        "database",
        f"{path} is missing, but there are documents of a memory: {', '.join(older)}",
        "restore a copy of it before you record anything. Without it a new database is created: the documents are used "
        "and their facts count as written by hand, but the operations, summaries and work items behind them are lost",
    )


def _memory(project: Path, index: IndexReport, *, known: Collection[str]) -> Iterator[Finding]:
    """Open the memory and report its problems, except those whose words are `known` from other findings."""
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
        yield _index(index, last)
        stats = cast("dict[str, Any]", memory.get_stats())
        for problem in stats["problems"]:
            if problem["subject"] == "read-only" or problem["problem"] in known:
                continue
            since = f" (since {problem['since']})" if problem["since"] else ""
            yield fault(str(problem["subject"]), f"{problem['problem']}{since}")
        yield _counter(stats["context_window"])


def _versions(memory: OrchestratorContextManager) -> Iterator[Finding]:
    try:
        versions = [each for name in memory.documents.names() for each in memory.documents.history(name)]
    except OrchestraMemError as error:
        yield fault("versions", str(error))
        return
    for version in versions:
        if os.path.exists(version.path) and not os.access(version.path, os.R_OK):
            yield fault("versions", f"{version.path} cannot be read", "give this user permission to read it")
    yield sound("versions", f"{len(versions):,} earlier versions")


def _sessions(memory: OrchestratorContextManager, last: int) -> Iterator[Finding]:
    sessions = memory.sessions()
    folder, store = memory.session_memory.place.folder, memory.session_memory.store
    for session in sessions:
        is_missing = session.archive and store.state(folder / session.archive) is None
        if session.status is SessionStatus.ARCHIVED and is_missing:
            advice = f"its operations still exist: `orchestra-mem ops --session {session.id[:8]}`"
            yield note("sessions", f"{session.archive} is missing", advice)
    yield sound("sessions", f"{len(sessions):,} so far; the newest operation is op{last}" if last else "none yet")


def _embedder(project: Path, settings: Settings) -> Iterator[Finding]:
    """Check a configured embedder other than the built-in one with a short text."""
    try:
        if (embedder := open_embedder(project, settings, None)) is None:
            return
        try:
            embedder.embed_query("Are you there?")
            yield sound(
                "embedder", f"{embedder.model.name} answers; its vectors have {embedder.model.dimensions} numbers"
            )
        finally:
            getattr(embedder, "close", lambda: None)()
    except EmbedderError as error:
        yield fault("embedder", str(error), "meanwhile search uses words, and the word vectors of this package")


def _counter(window: dict[str, Any]) -> Finding:
    if window["exact"]:
        return sound("token counter", f"{window['counter']}, the model's own")
    return note(
        "token counter",
        f"{window['counter']}, not the model's own: counts differ a little from the model's",
        "set orchestrator.context_window.max_tokens a little below the model's window, or set llm.model_path to "
        "the model's GGUF file, to count with its own vocabulary",
    )


def check_model(project: Path, settings: Settings) -> Iterator[Finding]:
    """Check the configured model with a short prompt: report its window, and its speed for prompts and answers."""
    try:
        models = open_models(project, settings)
    except (TokenizerError, ModelError) as error:
        yield fault("model", str(error), _MEANWHILE)
        return
    if models.model is None:
        yield sound("model", "no model is set: summaries are made by extraction")
        return
    try:
        yield from _asked(models.model)
        for doubt in models.doubts():
            yield note("model's doubts", doubt)
    except ModelError as error:
        yield fault("model", str(error), _MEANWHILE)
    finally:
        models.close()


def why_unusable(model: LanguageModel) -> str:
    """Return why a model is unusable, and how the memory works until then; "" if the model seems usable.

    Nothing is generated: only the vocabulary of a model file is loaded, and a server only reports its window.
    """
    try:
        _ = model.context_tokens
    except ModelError as error:
        return f"{error}; {_MEANWHILE}"
    return ""


def _asked(model: LlamaModel | OpenAiModel) -> Iterator[Finding]:
    start = time.perf_counter()
    prompt = [Message(role=Role.USER, text=_PROMPT)]
    said = model.generate(prompt, max_tokens=_ANSWER_TOKENS, timeout_s=_TIMEOUT_S)
    loading_s = time.perf_counter() - start - said.prompt_s - said.answer_s
    yield sound("model", f"{model.name} answers in a window of {model.context_tokens:,} tokens ({model.where})")
    yield sound(
        "model's speed",
        f"{_rate(said.evaluated_tokens, said.prompt_s)} tokens a second for prompts and "
        f"{_rate(said.answer_tokens, said.answer_s)} for answers; ready after {loading_s:.1f} s",
    )


def _rate(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds:,.0f}" if seconds > 0 else "0"


def _index(report: IndexReport, last_operation: int) -> Finding:
    words = index_words(report, last_operation)
    if report.fault is not None:
        return fault("search", words, ANEW)
    if report.present and report.operations < last_operation:
        return note("search", words, "the next search indexes the rest; `orchestra-mem index` does it now")
    return sound("search", words)

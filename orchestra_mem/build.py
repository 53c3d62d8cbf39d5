"""The one place that reads settings and wires: from a folder to a memory."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestra_mem.adapters.config_files import CONFIG_PATH, default_config_text, load_settings, template_files
from orchestra_mem.adapters.database import Database, SqliteEventLog, SqliteLedger
from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.adapters.git_history import open_git_history
from orchestra_mem.adapters.jsonl_history import open_jsonl_history
from orchestra_mem.adapters.tokenizers import CachedCounter, open_counter
from orchestra_mem.core.compaction import Limits
from orchestra_mem.core.items import Part
from orchestra_mem.core.window import ContextWindowTracker
from orchestra_mem.epochs import EpochKeeper
from orchestra_mem.errors import StorageError, storage_error
from orchestra_mem.flow import MemoryParts
from orchestra_mem.manager import OrchestratorContextManager
from orchestra_mem.ports import Clock, TokenCounter, WritePoint
from orchestra_mem.reporting import DocumentSizes, Reporter
from orchestra_mem.settings import Durability, Settings
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager, SessionPlace
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import DocumentName, VersionReason

# The faces know this module, not the adapters: what they need of those is handed on from here.
__all__ = [
    "CONFIG_PATH", "HOME", "Initialised", "default_config_text", "find_project", "initialise", "load_settings",
    "open_git_history", "open_jsonl_history", "open_memory", "utc_now",
]  # fmt: skip

HOME = ".obra"


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What `initialise` made, and what was there already and stayed as it was; paths from the project's folder."""

    project: Path
    made: tuple[str, ...]
    kept: tuple[str, ...]


def find_project(start: Path) -> Path | None:
    """Find the nearest folder from `start` upwards that has a memory; None where none has."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / HOME).is_dir()), None)


def initialise(project: str | Path = ".") -> Initialised:
    """Lay down what a project's memory begins with: its settings, what git shall ignore, the documents.

    Nothing that is there is touched, so it may be called again.

    Raises:
        ConfigError: the project's settings cannot be used.
        StorageError: the folder cannot be written to.
    """
    folder = Path(project).resolve()
    home = folder / HOME
    made: list[str] = []
    kept: list[str] = []
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name, text in template_files().items():
            try:
                with (home / name).open("x", encoding="utf-8", newline="") as file:
                    file.write(text)
                made.append(name)
            except FileExistsError:
                kept.append(name)
    except OSError as error:
        raise storage_error(error, "writing to", home) from error
    settings = load_settings(folder, os.environ)
    memory_dir = folder / settings.orchestrator.memory_dir
    expected = [home / "obra.db", *(memory_dir / f"{name.value}.md" for name in DocumentName)]
    there = [path for path in expected if path.exists()]
    open_memory(folder).close()
    shown = [*(home / name for name in made), *(path for path in expected if path not in there)]
    left = [*(home / name for name in kept), *there]
    return Initialised(
        project=folder, made=tuple(_below(folder, path) for path in shown),
        kept=tuple(_below(folder, path) for path in left),
    )  # fmt: skip


def _below(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def utc_now() -> datetime:
    """The present time, aware and in UTC."""
    return datetime.now(UTC)


def open_memory(
    project: str | Path = ".",
    *,
    config: Mapping[str, object] | None = None,
    clock: Clock = utc_now,
    counter: TokenCounter | None = None,
    write_point: WritePoint | None = None,
) -> OrchestratorContextManager:
    """Open the memory of a project; the first time makes it, in the folder `.obra` there.

    Args:
        project: the project's folder; it must exist.
        config: settings over those of files and environment, nested as in `.obra/config.yaml`.
        clock: gives the present time.
        counter: counts tokens; by default the one that the settings name.
        write_point: is told each step that changes the disk; for tests of crashes.

    Raises:
        ConfigError: settings that cannot be used; all faults are named.
        StorageError: the folder or what lies in it cannot be used.
    """
    folder = Path(project).resolve()
    if not folder.is_dir():
        raise StorageError(f"{folder} is no folder; make it first, the memory lies in {HOME} inside of it")
    settings = load_settings(folder, os.environ, config or {})
    return _Wiring(folder, settings, clock, counter, write_point).manager()


class _Wiring:
    def __init__(
        self,
        folder: Path,
        settings: Settings,
        clock: Clock,
        counter: TokenCounter | None,
        write_point: WritePoint | None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._home = folder / HOME
        self._sessions = folder / settings.orchestrator.session_dir
        self._memory = folder / settings.orchestrator.memory_dir
        self._project = settings.project.name or folder.name
        self._write_point = write_point
        self._counter = counter or CachedCounter(
            open_counter(settings.tokens.counter.value), max_entries=settings.tokens.cache_entries
        )
        window = settings.orchestrator.context_window
        self._budget = int(window.max_tokens * window.refresh_threshold)

    def manager(self) -> OrchestratorContextManager:
        full = self._settings.storage.durability is Durability.FULL
        self._make_folders()
        store = FileDocumentStore(
            versions=self._memory / "versions",
            lock_file=self._home / "obra.lock",
            lock_timeout_s=self._settings.storage.lock_timeout_s,
            full_sync=full,
            write_point=self._write_point,
        )
        with store.lock():
            store.sweep((self._home, self._sessions, self._memory))
            ignore = self._home / ".gitignore"
            if not ignore.exists():
                store.replace(ignore, template_files()[".gitignore"], expected=None, name="init")
            database = Database(
                self._home / "obra.db",
                full_sync=full,
                busy_timeout_s=self._settings.storage.busy_timeout_s,
                write_point=self._write_point,
            )
            try:
                return self._wired(store, database)
            except BaseException:
                database.close()
                raise

    def _make_folders(self) -> None:
        for folder in (self._home, self._sessions, self._memory):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise storage_error(error, "making the folder", folder) from error
    def _wired(self, store: FileDocumentStore, database: Database) -> OrchestratorContextManager:
        log, ledger = SqliteEventLog(database), SqliteLedger(database)
        orchestrator, compaction = self._settings.orchestrator, self._settings.compaction
        place = SessionPlace(folder=self._sessions, project=self._project, entry_chars=self._settings.entries.max_chars)
        session = SessionMemoryManager(
            log=log, ledger=ledger, store=store, counter=self._counter, clock=self._clock, place=place
        )
        compactor = SessionCompactor(
            session,
            log=log,
            ledger=ledger,
            store=store,
            counter=self._counter,
            clock=self._clock,
            limits=self._limits(),
            window=timedelta(seconds=compaction.verbatim_window_s),
        )
        episodic = EpisodicMemoryManager(
            ledger=ledger,
            store=store,
            counter=self._counter,
            clock=self._clock,
            folder=self._memory,
            keep_versions=orchestrator.keep_versions,
        )
        reporter = self._reporter(log, ledger)
        if not all(episodic.path(name).exists() for name in episodic.states()):
            live = log.live_session()
            view = reporter.view(live.id if live else "", ()) if log.last_operation() else reporter.blank()
            episodic.update(view, VersionReason.REFRESH)
        return OrchestratorContextManager(
            MemoryParts(
                log=log,
                ledger=ledger,
                store=store,
                counter=self._counter,
                clock=self._clock,
                new_id=lambda: str(uuid.uuid4()),
                working=self._working(),
                session=session,
                compactor=compactor,
                episodic=episodic,
                tracker=self._tracker(),
                epochs=self._epochs(session, episodic),
                reporter=reporter,
                change_count=database.change_count,
                check_database=database.check,
                close=database.close,
                auto_refresh=orchestrator.auto_refresh_enabled,
                latency_target_ms=orchestrator.refresh_latency_target_ms,
            )
        )

    def _limits(self) -> Limits:
        compaction = self._settings.compaction
        return Limits.for_threshold(
            self._settings.session_compaction_tokens,
            ratio=self._settings.orchestrator.session_compression_ratio,
            floor=compaction.verbatim_floor_tokens,
            segment=compaction.segment_tokens,
            summary_ratio=compaction.summary_ratio,
            fan_in=compaction.fan_in,
        )

    def _reporter(self, log: SqliteEventLog, ledger: SqliteLedger) -> Reporter:
        documents = self._settings.documents
        return Reporter(
            log=log,
            ledger=ledger,
            clock=self._clock,
            project=self._project,
            window_tokens=self._settings.orchestrator.context_window.max_tokens,
            sizes=DocumentSizes(
                tokens=self._settings.episodic_compaction_tokens,
                decisions_in_full=documents.decisions_in_full,
                decisions_in_brief=documents.decisions_in_brief,
                progress_items=documents.progress_items,
            ),
        )

    def _working(self) -> WorkingMemory:
        """Working memory, no larger than the operations' share of a context."""
        share = int(self._budget * self._settings.context.shares.working_memory)
        configured = self._settings.orchestrator.working_memory
        return WorkingMemory(
            max_operations=configured.max_operations, max_tokens=min(configured.max_tokens, max(1, share))
        )

    def _tracker(self) -> ContextWindowTracker:
        window = self._settings.orchestrator.context_window
        return ContextWindowTracker(
            window.max_tokens,
            window.warning_threshold,
            window.refresh_threshold,
            window.critical_threshold,
            clock=self._clock,
        )

    def _epochs(self, session: SessionMemoryManager, episodic: EpisodicMemoryManager) -> EpochKeeper:
        shares = self._settings.context.shares
        return EpochKeeper(
            session=session,
            episodic=episodic,
            counter=self._counter,
            fill_at_start=self._settings.context.fill_at_start,
            shares={
                Part.PROJECT_STATE: shares.project_state,
                Part.WORK_PLAN: shares.work_plan,
                Part.DECISIONS: shares.decision_history,
                Part.SESSION: shares.session_summary,
                Part.OPERATIONS: shares.working_memory,
            },
        )

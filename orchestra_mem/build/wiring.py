"""How the parts of a memory are joined: each adapter behind its port, each setting where it is heeded."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.config_files import template_files
from orchestra_mem.adapters.database import (
    Database,
    ReadOnlyDatabase,
    ReadOnlyEventLog,
    SqliteDraftStore,
    SqliteEventLog,
    SqliteLedger,
    SqliteWorkStore,
)
from orchestra_mem.adapters.files import FileDocumentStore, ReadOnlyDocumentStore, why_read_only
from orchestra_mem.adapters.tokenizers import CachedCounter
from orchestra_mem.build.compression import open_compression
from orchestra_mem.build.models import open_models
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.errors import storage_error
from orchestra_mem.memory.epochs import EpochKeeper
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.reporting import DocumentSizes, Reporter
from orchestra_mem.memory.thread_lock import ThreadLock
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.ports import Clock, TokenCounter, WritePoint
from orchestra_mem.settings import Durability, Settings
from orchestra_mem.tiers.authorship import Authorship
from orchestra_mem.tiers.document_merge import timeless
from orchestra_mem.tiers.draft_placing import DraftPlacer
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.hand_edits import HandEditManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.session_place import SessionPlace
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import DocumentName

if TYPE_CHECKING:
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.retrieval.response_cache import ResponseStore
    from orchestra_mem.retrieval.search import MemorySearch


def old_documents(memory: Path, sessions: Path) -> Sequence[str]:
    """Name what an earlier time has left in the folders of a memory; a document that says nothing yet is passed over.

    Args:
        memory: where the episodic documents lie.
        sessions: where those of the sessions do.
    """
    found = []
    blank = ProjectView(project="", updated=None, session="", size_tokens=0, operations=0, sessions=0)
    for name in DocumentName:
        path = memory / f"{name.value}.md"
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            said, nothing = (timeless(without_front_matter(each)) for each in (text, render_document(name, blank)))
            if said != nothing:
                found.append(path.name)
    count = sum(1 for folder in (sessions, sessions / "archive") for _ in folder.glob("session_*.md"))
    if count:
        found.append(f"{count:,} {'document' if count == 1 else 'documents'} of sessions")
    return found


class Wiring:
    """Joins the parts of one memory.

    Args:
        folder: the project's.
        home: where the database and the locks lie.
        settings: those in force.
        clock, counter, write_point, model: as `open_memory` takes them.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        settings: Settings,
        *,
        clock: Clock,
        counter: TokenCounter | None,
        write_point: WritePoint | None,
        model: LanguageModel | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._home = home
        self._sessions = folder / settings.orchestrator.session_dir
        self._memory = folder / settings.orchestrator.memory_dir
        self._project = settings.project.title or folder.name
        self._write_point = write_point
        self._models = open_models(folder, settings, counter=counter)
        self._model = model or self._models.prompted
        # Its estimates change with what the server counts: they are not to be remembered.
        own = self._models.counts or CachedCounter(self._models.counter, max_entries=settings.tokens.cache_entries)
        self._counter: TokenCounter = counter or own
        window = settings.orchestrator.context_window
        self._budget = int(window.max_tokens * window.refresh_threshold)

    def manager(self) -> OrchestratorContextManager:
        """Make what is missing on disk, and the manager above it; where nothing may be written, for reading alone."""
        why = why_read_only(self._home) if self._home.is_dir() else None
        manager = self._writing() if why is None else self._reading(why)
        manager.events.operation_recorded.connect(self._models.operation_recorded)
        manager.events.refreshed.connect(manager.compression.refreshed)
        manager.events.session_flushed.connect(manager.compression.session_flushed)
        manager.compression.start()
        return manager

    def _writing(self) -> OrchestratorContextManager:
        storage = self._settings.storage
        full = storage.durability is Durability.FULL
        self._make_folders()
        store = FileDocumentStore(
            versions=self._memory / "versions",
            lock_file=self._home / "obra.lock",
            lock_timeout_s=storage.lock_timeout_s,
            full_sync=full,
            write_point=self._write_point,
        )
        with store.lock():
            store.sweep((self._home, self._sessions, self._sessions / "archive", self._memory))
            ignore = self._home / ".gitignore"
            if not ignore.exists():
                store.replace(ignore, template_files()[".gitignore"], expected=None, name="init")
            database = Database(
                self._home / "obra.db",
                full_sync=full,
                busy_timeout_s=storage.busy_timeout_s,
                write_point=self._write_point,
            )
            try:
                return self._wired(store, database, SqliteEventLog(database))
            except BaseException:
                database.close()
                raise

    def _reading(self, why: str) -> OrchestratorContextManager:
        storage = self._settings.storage
        store = ReadOnlyDocumentStore(
            versions=self._memory / "versions",
            lock_file=self._home / "obra.lock",
            lock_timeout_s=storage.lock_timeout_s,
        )
        database = ReadOnlyDatabase(self._home / "obra.db", busy_timeout_s=storage.busy_timeout_s)
        try:
            return self._wired(store, database, ReadOnlyEventLog(database), why)
        except BaseException:
            database.close()
            raise

    def _close(self, database: Database, compression: Compression) -> None:
        compression.close()
        database.close()
        self._models.close()

    def _make_folders(self) -> None:
        for folder in (self._home, self._sessions, self._memory):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise storage_error(error, "making the folder", folder) from error

    def _wired(
        self, store: FileDocumentStore, database: Database, log: SqliteEventLog, read_only: str | None = None
    ) -> OrchestratorContextManager:
        ledger = SqliteLedger(database)
        place = SessionPlace(folder=self._sessions, project=self._project, entry_chars=self._settings.entries.max_chars)
        session = SessionMemoryManager(
            log=log, ledger=ledger, store=store, counter=self._counter, clock=self._clock, place=place
        )
        compactor = self._compactor(session, log, ledger, store, database)
        lock = ThreadLock()
        state = StateManager(store=SqliteWorkStore(database), clock=self._clock, lock=lock)
        work = WorkPlan(tracker=state, ledger=ledger, clock=self._clock)
        episodic = self._episodic(ledger, store, work)
        reporter = self._reporter(log, ledger, work)
        self._look_at_documents(log, episodic, reporter, read_only)
        compression = self._compression(database, log, ledger, episodic, read_only is not None)
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
                compression=compression,
                episodic=episodic,
                state=state,
                hand_edits=HandEditManager(episodic=episodic, ledger=ledger, store=store, clock=self._clock, work=work),
                authorship=Authorship(episodic=episodic, session=session, ledger=ledger, store=store, work=state),
                tracker=self._tracker(),
                epochs=self._epochs(session, episodic),
                assemble=self._models.assemble,
                reporter=reporter,
                lock=lock,
                in_transaction=database.in_transaction,
                change_count=database.change_count,
                commit_count=database.commit_count,
                open_search=partial(
                    self._open_search, log, ledger, store, episodic, place, state, read_only is not None
                ),
                open_responses=self._open_responses,
                settings=self._settings,
                checkpoint=database.checkpoint,
                close=partial(self._close, database, compression),
                auto_refresh=self._settings.orchestrator.auto_refresh_enabled,
                latency_target_ms=self._settings.orchestrator.refresh_latency_target_ms,
            )
        )

    def _compression(
        self,
        database: Database,
        log: SqliteEventLog,
        ledger: SqliteLedger,
        episodic: EpisodicMemoryManager,
        read_only: bool,
    ) -> Compression:
        return open_compression(
            self._model,
            self._settings,
            database,
            log=log,
            ledger=ledger,
            counter=self._counter,
            clock=self._clock,
            limits=self._limits(),
            busy=self._models.busy,
            section=episodic.short_forms.section,
            doubts=self._models.doubts,
            read_only=read_only,
        )

    def _look_at_documents(
        self, log: SqliteEventLog, episodic: EpisodicMemoryManager, reporter: Reporter, read_only: str | None
    ) -> None:
        """Tell what cannot be written or is older than the database, and make the documents that are not there."""
        if read_only is not None:
            reporter.read_only(read_only)
        reporter.look_for_history(partial(old_documents, self._memory, self._sessions))
        if read_only is None:
            live = log.live_session()
            known = log.last_operation() > 0
            episodic.create_missing(reporter.view(live.id if live else "", ()) if known else reporter.blank())

    def _compactor(
        self,
        session: SessionMemoryManager,
        log: SqliteEventLog,
        ledger: SqliteLedger,
        store: FileDocumentStore,
        database: Database,
    ) -> SessionCompactor:
        return SessionCompactor(
            session,
            log=log,
            ledger=ledger,
            store=store,
            counter=self._counter,
            clock=self._clock,
            limits=self._limits(),
            window=timedelta(seconds=self._settings.compaction.verbatim_window_s),
            drafts=DraftPlacer(session, log=log, ledger=ledger, store=store, drafts=SqliteDraftStore(database)),
        )

    def _open_search(
        self,
        log: SqliteEventLog,
        ledger: SqliteLedger,
        store: FileDocumentStore,
        episodic: EpisodicMemoryManager,
        place: SessionPlace,
        state: StateManager,
        read_only: bool,
    ) -> MemorySearch:
        # Here, as vectors take long to load and few commands need them.
        from orchestra_mem.build.search import open_search
        from orchestra_mem.retrieval.indexer import Memories

        return open_search(
            self._home / "index",
            self._settings,
            Memories(log=log, ledger=ledger, store=store, episodic=episodic, sessions=place, state=state),
            clock=self._clock,
            write_point=self._write_point,
            read_only=read_only,
        )

    def _open_responses(self) -> ResponseStore:
        # Here, as vectors take long to load and few programs ask for earlier answers.
        from orchestra_mem.adapters.response_store import SqliteResponseStore

        return SqliteResponseStore(self._home / "index" / "responses.db")

    def _episodic(self, ledger: SqliteLedger, store: FileDocumentStore, work: WorkPlan) -> EpisodicMemoryManager:
        return EpisodicMemoryManager(
            ledger=ledger,
            store=store,
            counter=self._counter,
            clock=self._clock,
            folder=self._memory,
            keep_versions=self._settings.orchestrator.keep_versions,
            work=work,
            size_tokens=self._settings.episodic_compaction_tokens,
            short_share=self._settings.compaction.summary_ratio,
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

    def _reporter(self, log: SqliteEventLog, ledger: SqliteLedger, work: WorkPlan) -> Reporter:
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
            work=work,
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
            # Epochs are begun by a refresh as well, which waits for no server.
            counter=self._models.counts.estimates if self._models.counts else self._counter,
            fill_at_start=self._settings.context.fill_at_start,
            recalled_share=self._settings.retrieval.context_share,
            shares={
                Part.PROJECT_STATE: shares.project_state,
                Part.WORK_PLAN: shares.work_plan,
                Part.DECISIONS: shares.decision_history,
                Part.SESSION: shares.session_summary,
                Part.OPERATIONS: shares.working_memory,
            },
        )

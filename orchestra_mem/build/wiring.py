"""Create and connect the parts of a memory: each port gets its adapter, each part its settings.

The shared log is an ordinary memory in the home folder. Its settings leave the decision log as its only document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from orchestra_mem.adapters.config_files import template_files
from orchestra_mem.adapters.database import ledger_key, project_id, project_key
from orchestra_mem.adapters.files import why_read_only
from orchestra_mem.adapters.tokenizers import CachedCounter
from orchestra_mem.build.own_models import open_models
from orchestra_mem.build.storage import (
    Place,
    named_by_memory,
    open_database,
    open_store,
    prepare_shared_log,
    shared_document,
    sharers_in,
)
from orchestra_mem.catalog_types import MemoryItem
from orchestra_mem.choices import EmbedderChoice, IsolationChoice
from orchestra_mem.compression.service import Compression, ModelTools
from orchestra_mem.core.catalog.access import Access, Grants
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.errors import OrchestraMemError, telling
from orchestra_mem.job_types import Job, TrialVerdict
from orchestra_mem.memory.epochs import EpochKeeper
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.memory.parts import CatalogParts, DocumentsLock, MemoryLock, MemoryParts
from orchestra_mem.memory.reporting import Reporter
from orchestra_mem.ports import Clock, TokenCounter, WritePoint
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.settings import Settings
from orchestra_mem.stores import AuditLog, CatalogStore, DraftStore, EventLog, JobQueue, Ledger, TrialLog, WorkStore
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_documents import CatalogDocuments
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.catalog_reading import AuditTrail
from orchestra_mem.tiers.draft_placing import DraftPlacer
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.fact_extractor import FactExtractor
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.session_ending import SessionPaths
from orchestra_mem.tiers.shared_decisions import SharedDecisions
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.tiers.working import WorkingMemory

if TYPE_CHECKING:
    from orchestra_mem.adapters.embedders import WordLlamaEmbedder
    from orchestra_mem.adapters.files.working_copies import Follower
    from orchestra_mem.adapters.home import ListedProject
    from orchestra_mem.compression.compressor import Compressed
    from orchestra_mem.model_types import AnyModel, LanguageModel
    from orchestra_mem.retrieval.search import MemorySearch
    from orchestra_mem.tiers.session_archives import SessionArchives

# As many operations as a first search can index by itself, in about 0.5 s; the index takes 70 MB.
_AT_ONCE = 500


def _forget_purged(
    documents: CatalogDocuments, in_index: WeakMethod[Callable[[], None]], items: Sequence[MemoryItem]
) -> None:
    documents.forget(items)
    if forget := in_index():
        forget()


class Wiring:
    """Creates and connects the parts of one memory.

    Args:
        place, settings: The paths of the memory, and its settings.
        clock, counter, write_point, model: See `open_memory`.
    """

    def __init__(
        self,
        place: Place,
        settings: Settings,
        *,
        clock: Clock,
        counter: TokenCounter | None,
        write_point: WritePoint | None,
        model: AnyModel | None,
    ) -> None:
        self.place = place
        self.settings = settings
        self.clock = clock
        self.write_point = write_point
        self.models = open_models(place.project, settings, counter=counter)
        self.model: LanguageModel | None = self.models.model
        if model is not None:
            from orchestra_mem.adapters.prompted_model import language_model

            self.model = language_model(model, context_tokens=settings.llm.context_tokens)
        self.counter = self.models.counter
        self.read_only = (why_read_only(place.home) if place.home.is_dir() else None) or ""
        self.lock = MemoryLock()
        self.follower: Follower | None = None

    def manager(self) -> OrchestratorContextManager:
        """Create missing files and folders, and return the manager, which is read-only if the memory is."""
        place, read_only = self.place, bool(self.read_only)
        for folder in () if read_only else (place.home, place.sessions, place.memory):
            with telling("creating the folder", folder):
                folder.mkdir(parents=True, exist_ok=True)
        how: dict[str, Any] = {"write_point": self.write_point, "read_only": read_only}
        own = open_store(place, self.settings, **how)
        # If others hold the documents for long, the memory is opened without changing them.
        self.documents_lock = DocumentsLock(own)
        with self.documents_lock.held() as free:
            if free and not read_only:
                # Remove temporary files of killed processes, and write a missing `.gitignore`.
                within = (place.sessions / "archive", place.memory / "catalog")
                own.sweep((place.home, place.sessions, place.memory, *within))
                ignore = place.home / ".gitignore"
                if not ignore.exists():
                    own.replace(ignore, template_files()[".gitignore"], expected=None, name="init")
            self.database = open_database(place.home, self.settings, **how)
            self.read_only = self.read_only or self.database.why_read_only
            if self.settings.storage.url:
                self.settings = named_by_memory(self.database, place.home, self.settings)
        self.project = self.settings.project.title or place.project.name
        key = ledger_key(self.database, None if self.settings.storage.url else place.home)
        self.log, self.ledger = EventLog(self.database), Ledger(self.database, key)
        try:
            self.store = own
            if self.settings.storage.url:
                self.store = open_store(place, self.settings, self.database, **how)
                self.documents_lock = DocumentsLock(self.store)
            with self.documents_lock.held() as free:
                manager = OrchestratorContextManager(self._parts(creates=free))
            if self.settings.storage.url:
                from orchestra_mem.adapters.files.working_copies import Follower

                self.follower = Follower(self.store)
        except BaseException:
            self.database.close()
            raise
        manager.events.operation_recorded.connect(self.models.operation_recorded)
        manager.events.refreshed.connect(manager.compression.refreshed)
        manager.events.session_flushed.connect(manager.compression.session_flushed)
        manager.compression.start()
        return manager

    def listed(self) -> ListedProject:
        """Return the project's entry for the registry. The memory must be open."""
        from orchestra_mem.adapters.home import ListedProject

        named, day, made, memory = self.settings.project, self.clock().date().isoformat(), "", ""
        with suppress(OrchestraMemError):  # for example, if the disk is full
            made = named.id or project_id(self.database)
            memory = project_key(self.database, "working copy").hex() if self.settings.storage.url else ""
        return ListedProject(
            id=made, name=named.name, path=self.place.project, tags=tuple(named.tags), shared=named.shared,
            first_opened=day, last_opened=day, memory=memory,
        )  # fmt: skip

    def _parts(self, *, creates: bool) -> MemoryParts:
        log, ledger, store, counter, clock = self.log, self.ledger, self.store, self.counter, self.clock
        settings, database = self.settings, self.database
        place = SessionPaths(folder=self.place.sessions, project=self.project, entry_chars=settings.entries.max_chars)
        session = SessionMemoryManager(log=log, ledger=ledger, store=store, counter=counter, clock=clock, place=place)
        redactor = Redactor(key=project_key(database), **dict(settings.redaction))
        state = StateManager(store=WorkStore(database), clock=clock, lock=self.lock, redacted=redactor.text)
        work = WorkPlan(tracker=state, ledger=ledger, clock=clock)
        episodic = EpisodicMemoryManager(
            ledger=ledger, store=store, counter=counter, clock=clock, folder=self.place.memory, work=work,
            only=self.place.names, keep_versions=settings.orchestrator.keep_versions,
            size_tokens=settings.episodic_compaction_tokens, short_share=settings.compaction.summary_ratio,
        )  # fmt: skip
        reporter = Reporter(
            log, ledger, settings, clock=clock, project=self.project, work=work, read_only=self.read_only
        )
        log_path = self.place.documents()[0] if settings.documents.only_decisions else None
        if log_path is None:
            with reporter.tracking_problem("home folder"):  # without one, nothing is shared
                log_path = shared_document(os.environ)
        shared = SharedDecisions(
            path=log_path, store=store, ledger=ledger,
            project=lambda: settings.project.id or project_id(database), tags=settings.project.tags, name=self.project,
            shown=settings.context.shared_share > 0, redacted=redactor.text,
            sharers=lambda: sharers_in(shared.document().parent),
        )  # fmt: skip
        self._look_at_documents(episodic, reporter, creates=creates and not self.read_only)
        for fault in redactor.faults():
            reporter.failed("redaction", OrchestraMemError(fault))
        self.agents = self._catalog(session, reporter, redactor)
        documents = EditedDocuments(*episodic.writers, *self.agents.documents.writers)
        search = LazySearch(
            lambda: self._open_search(episodic, place, state), lambda: self._words,
            lambda: os.path.exists(self.place.home / "index" / "search.db") or log.last_operation() > _AT_ONCE,
        )  # fmt: skip
        compression = self._compression(episodic)
        # The catalog is held by threads that must not hold the memory.
        in_index, item_said = WeakMethod(search.forget_purged), WeakMethod(compression.item_said)
        self.agents.catalog.purged = partial(_forget_purged, self.agents.documents, in_index)
        self.agents.catalog.on_content_changed = lambda item: said(item) if (said := item_said()) else None
        window = settings.orchestrator.context_window
        return MemoryParts(
            settings=settings, database=database, log=log, ledger=ledger, store=store, counter=counter, clock=clock,
            documents_lock=self.documents_lock, lock=self.lock, working=self._working(), session=session,
            compactor=self._compactor(session), compression=compression, episodic=episodic, documents=documents,
            state=state, shared=shared,
            tracker=ContextWindowTracker(
                window.max_tokens, window.warning_threshold, window.refresh_threshold, window.critical_threshold
            ),
            epochs=EpochKeeper(session, episodic, search, shared, settings),
            reporter=reporter, open_shared_log=lambda: self._open_shared_log(shared.document().parent),
            search=search, agents=self.agents, redactor=redactor,
            assemble=self.models.assemble,
            close=lambda: self._close(compression, lambda: (session.get_stats(), episodic.get_stats())),
        )  # fmt: skip

    def _catalog(self, session: SessionMemoryManager, reporter: Reporter, redactor: Redactor) -> CatalogParts:
        database, clock, wanted = self.database, self.clock, self.settings.catalog
        store = CatalogStore(database)
        audit = AuditTrail(AuditLog(database), clock, redactor.text, database.can_write_now)
        grants = {
            agent: Grants(read=frozenset(given.read), write=frozenset(given.write))
            for agent, given in wanted.permissions.items()
        }
        catalog = MemoryCatalog(
            store, audit, Access(grants, strict=self._is_strict), counter=self.counter, clock=clock, settings=wanted,
            redacted=redactor.text,
        )  # fmt: skip
        shown = CatalogDocuments(
            catalog=catalog, items=store, ledger=self.ledger, store=self.store, folder=self.place.memory,
            keep_versions=self.settings.orchestrator.keep_versions, lock=self.lock,
        )  # fmt: skip
        # A separate session manager, because background threads hold it and must not keep the memory alive.
        ended, kept = replace(session), self.settings.archives

        def open_archives() -> SessionArchives:
            from orchestra_mem.tiers.session_archives import SessionArchives  # lazy import: rarely needed

            return SessionArchives(
                session=ended, audit=audit, changing=store.changing, keep_days=kept.keep_days,
                keep_bytes=kept.keep_mb * 1e6,
            )  # fmt: skip

        return CatalogParts(
            catalog=catalog, learner=CatalogLearner(catalog, store), documents=shown, open_archives=open_archives,
            can_write_now=database.can_write_now, reporter=reporter,
        )  # fmt: skip

    @property
    def _is_strict(self) -> bool:
        return self.settings.catalog.isolation is IsolationChoice.STRICT

    def _close(self, compression: Compression, stats: Callable[[], object]) -> None:
        compression.close()
        if isinstance(self.counter, CachedCounter) and not self.read_only:
            with suppress(OrchestraMemError):
                self.counter.keep(stats)  # so that `status` need not load the tokenizer to count again
        if self.follower is not None:
            self.follower.end()
        self.store.close()
        self.database.close()
        self.models.close()

    def _look_at_documents(self, episodic: EpisodicMemoryManager, reporter: Reporter, *, creates: bool) -> None:
        """Report documents that are older than the database; if it `creates`, create missing ones."""
        reporter.check_history(self.place.older_documents)
        if creates and not all(path.exists() for path in self.place.documents()):
            live = self.log.live_session()
            view = reporter.view(live.id if live else "", ())
            episodic.create_missing(view if self.log.last_operation() else replace(view, updated=None))

    def _compactor(self, session: SessionMemoryManager) -> SessionCompactor:
        return SessionCompactor(
            session, limits=self._limits(), window=timedelta(seconds=self.settings.compaction.verbatim_window_s),
            drafts=DraftPlacer(session, DraftStore(self.database)), facts=self._facts,
        )  # fmt: skip

    @property
    def _facts(self) -> FactExtractor:
        lasting = self.settings.documents.only_decisions
        return FactExtractor(self.log, self.ledger, lasting=lasting, apart=self._is_strict)

    def _limits(self) -> Limits:
        compaction = self.settings.compaction
        return Limits.for_threshold(
            self.settings.session_compaction_tokens, ratio=self.settings.orchestrator.session_compression_ratio,
            floor=compaction.verbatim_floor_tokens, segment=compaction.segment_tokens,
            summary_ratio=compaction.summary_ratio, fan_in=compaction.fan_in,
        )  # fmt: skip

    def _working(self) -> WorkingMemory:
        """Create working memory, no larger than the operations' share of a context."""
        window, wanted = self.settings.orchestrator.context_window, self.settings.orchestrator.working_memory
        budget = int(window.max_tokens * window.refresh_threshold)
        share = int(budget * self.settings.context.shares.working_memory)
        return WorkingMemory(max_operations=wanted.max_operations, max_tokens=min(wanted.max_tokens, max(1, share)))

    def _compression(self, episodic: EpisodicMemoryManager) -> Compression:
        """Connect the model's tools with the job queue. No job runs before `start`."""
        database = self.database
        return Compression(
            model=self.model, open_tools=lambda: self._open_tools(episodic), log=self.log, ledger=self.ledger,
            queue=JobQueue(database), drafts=DraftStore(database), trials=TrialLog(database),
            auto=self.settings.compression.auto and self.model is not None and not self.read_only,
            clock=self.clock, doubts=self.models.doubts,
        )  # fmt: skip

    def _open_tools(self, episodic: EpisodicMemoryManager) -> ModelTools:
        # Lazy imports: without a model, few programs need them.
        from orchestra_mem.compression.compressor import MemoryCompressor
        from orchestra_mem.compression.fact_reader import FactReader
        from orchestra_mem.compression.jobs import BackgroundWork
        from orchestra_mem.compression.refiner import ItemSummarizer, SummaryRefiner

        log, ledger, counter, clock, wanted = self.log, self.ledger, self.counter, self.clock, self.settings.compression
        timeout_s = self.settings.llm.timeout_s
        trials = None if self.read_only else TrialLog(self.database)
        compressor = MemoryCompressor(self.model, counter=counter, clock=clock, timeout_s=timeout_s, trials=trials)
        improver = SummaryRefiner(
            compressor, log=log, ledger=ledger, drafts=DraftStore(self.database), counter=counter, clock=clock,
            limits=self._limits(), section=episodic.short_forms.section,
        )  # fmt: skip
        reader = FactReader(
            self.model, self._facts, counter=counter, clock=clock, timeout_s=timeout_s, trials=trials
        ) if self.model else None  # fmt: skip
        items = ItemSummarizer(
            compressor=compressor, catalog=self.agents.catalog, store=CatalogStore(self.database),
            counter=counter, max_words=self.settings.catalog.summary_max_length,
        )  # fmt: skip

        improved: dict[tuple[int, str, int], Compressed | None] = {}

        def improve(job: Job, cancelled: Callable[[], bool]) -> Compressed | None:
            number, key = int(job.subject[1:]), (job.id, job.subject, job.priority)
            if job.subject[0] == "M":
                return items.improve(number, cancelled=cancelled)
            if key not in improved:  # a known job was improved before; only its reading failed or was interrupted
                improved[key] = improver.improve(number, insist=job.priority == 0, cancelled=cancelled)
            done = improved[key]
            if reader is not None and (done is None or done.verdict is not TrialVerdict.FAILED):
                reader.read(number, cancelled=cancelled)
            return improved.pop(key)

        work = BackgroundWork(
            JobQueue(self.database), improve, clock=clock, owner=f"{os.getpid()} {os.urandom(16).hex()}",
            busy=self.models.busy, max_jobs=wanted.max_jobs, max_attempts=wanted.max_attempts,
        )  # fmt: skip
        return ModelTools(compressor=compressor, improver=improver, items=items, jobs=work, reader=reader)

    def _open_search(
        self, episodic: EpisodicMemoryManager, sessions: SessionPaths, state: StateManager
    ) -> MemorySearch:
        # Lazy imports: they load NumPy and FAISS, which few commands need.
        from orchestra_mem.build.search import open_search
        from orchestra_mem.retrieval.indexer import Indexer

        make_indexer = partial(
            Indexer, log=self.log, ledger=self.ledger, store=self.store, episodic=episodic, sessions=sessions,
            state=state, catalog=CatalogStore(self.database),
        )  # fmt: skip
        return open_search(
            self.place.home / "index", self.settings, make_indexer, self._words, clock=self.clock,
            write_point=self.write_point, read_only=bool(self.read_only),
        )  # fmt: skip

    @cached_property
    def _words(self) -> WordLlamaEmbedder | None:
        """The table of word vectors, used for search and for comparing turns; None if search by meaning is off."""
        from orchestra_mem.adapters.embedders import WordLlamaEmbedder

        return None if self.settings.search.embedder is EmbedderChoice.OFF else WordLlamaEmbedder()

    def _open_shared_log(self, folder: Path) -> OrchestratorContextManager:
        settings = prepare_shared_log(folder, self.settings.storage)
        return Wiring(
            Place.of(folder, settings), settings, clock=self.clock, counter=self.counter,
            write_point=self.write_point, model=None,
        ).manager()  # fmt: skip

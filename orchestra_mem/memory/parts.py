"""The parts of a memory, and the lock that serialises its threads."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from orchestra_mem.catalog_types import CleanedUp
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.errors import (
    ClosedError,
    DocumentConflictError,
    DocumentError,
    LockTimeoutError,
    OrchestraMemError,
    StorageReadOnlyError,
)
from orchestra_mem.memory.context_items import Snapshot
from orchestra_mem.ports import Clock, DocumentStore, TokenCounter
from orchestra_mem.stores import EventLog, Ledger, SqlDatabase
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_documents import CatalogDocuments
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.document_writer import PATIENCE_S
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.shared_decisions import SHARED_LOG, SharedDecisions
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import FileState, Json, Session, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.memory.epochs import EpochKeeper
    from orchestra_mem.memory.reporting import Reporter
    from orchestra_mem.retrieval.lazy_search import LazySearch
    from orchestra_mem.settings import Settings
    from orchestra_mem.tiers.session_archives import SessionArchives

logger = logging.getLogger(__name__)

# File times advance with the kernel's tick, every 10 ms or faster; this is five times as long.
_TICK_NS = 50_000_000
# Seconds after which it is reported that others hold the documents.
_TOLD_AFTER_S = 30.0
_MUST_NOT_BE_WRITTEN = DocumentError, StorageReadOnlyError


class MemoryLock:
    """A reentrant lock that serialises the threads of a memory.

    Acquiring it fails once the memory is closed, and in a forked child process: there, the thread that holds the lock
    may not exist, and so would never release it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.closed = False

    @property
    def refuses(self) -> bool:
        """Whether the lock can no longer be acquired in this process."""
        return self.closed or os.getpid() != self._process

    def check(self) -> None:
        """Check that this process may use the memory.

        Raises:
            ClosedError: The memory has been closed, or was opened before a fork.
        """
        if os.getpid() != self._process:
            raise ClosedError(
                "this memory was opened before a fork; a child process must open its own with open_memory()"
            )
        if self.closed:
            raise ClosedError("this memory has been closed; open it again with open_memory()")

    def __enter__(self) -> None:
        """Acquire the lock, waiting until no other thread holds it."""
        self.check()
        self._lock.acquire()
        if self.closed:  # while this thread waited
            self._lock.release()
            self.check()

    def __exit__(self, *error: object) -> None:
        """Release the lock."""
        self._lock.release()


class DocumentsLock:
    """The lock of the documents, for callers that had rather do their work later than wait for it."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._busy_since: float | None = None
        self._waited_s = -inf  # when a call last waited in vain
        self._problem = ""
        self._left: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    @contextmanager
    def held(self, *, timeout_s: float | None = PATIENCE_S) -> Iterator[bool]:
        """Hold the lock, and first run the steps that `run` had to leave; yield False if others hold the lock.

        A call with a `timeout_s` does not wait if another one has waited in vain in the last 30 s.

        Raises:
            LockTimeoutError: Others hold it although this call has waited as long as configured (with a `timeout_s` of
                None), or all calls for the last 30 s found it so.
        """
        with ExitStack() as held:
            if timeout_s and time.monotonic() - self._waited_s < _TOLD_AFTER_S:
                timeout_s = 0
            try:
                held.enter_context(self._store.lock(timeout_s=timeout_s))
                self._busy_since, self._waited_s = None, -inf
            except LockTimeoutError as error:
                self._problem, now = str(error), time.monotonic()
                self._waited_s = now if timeout_s else self._waited_s
                self._busy_since = now if self._busy_since is None else self._busy_since
                if timeout_s is None or now - self._busy_since > _TOLD_AFTER_S:
                    raise
            while self._left and self._busy_since is None:
                step, given = self._left.pop(0)
                try:
                    step(*given)
                except BaseException as error:
                    # A document that must not be written is reported here; its next write finds the same fault.
                    if isinstance(error, DocumentConflictError) or not isinstance(error, _MUST_NOT_BE_WRITTEN):
                        self._left.insert(0, (step, given))
                    raise
            yield self._busy_since is None

    def run(self, step: Callable[..., object], *given: object, waits: bool = True) -> None:
        """Run a step under the lock. If others hold it, even after 2 s if this `waits`, run the step the next time."""
        free = False
        try:
            with self.held(timeout_s=PATIENCE_S if waits else 0) as free:
                if free:
                    step(*given)
        finally:
            if not free and (step, given) not in self._left:
                self._left.append((step, given))

    def problems(self) -> list[Json]:
        """Return who holds the lock, if the last call did not get it, in the format that `status` shows."""
        told = f"{self._problem}; until then, documents are not updated, and people's edits not read"
        return [] if self._busy_since is None else [{"subject": "documents", "since": None, "problem": told}]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogParts:
    """The parts of the catalog. `build` creates and connects them."""

    catalog: MemoryCatalog
    learner: CatalogLearner
    documents: CatalogDocuments
    open_archives: Callable[[], SessionArchives]
    can_write_now: Callable[[], bool]
    reporter: Reporter

    def work(self) -> bool:
        """Learn from a queued exchange, else write documents and clean up. Return whether more exchanges are queued."""
        waits = self.learner.waits or self.documents.due or self.catalog.cleanup_due
        if not waits or not self.can_write_now():
            return False
        if self.learner.waits:
            self.learner.work(1)
            return self.learner.waits
        if self.documents.due:
            with self.documents.lock, DocumentsLock(self.documents.store).held(timeout_s=0) as free:
                if free:
                    self.write()
        if self.catalog.cleanup_due:
            self.clean_up()
        return False

    def clean_up(self, agent: str = OWNER) -> CleanedUp:
        """Hide expired and excess items and delete old audit entries; for the owner, also delete session archives."""
        done = self.catalog.clean_up(agent=agent)
        gone, kept = self.open_archives().clean_up() if agent == OWNER else ((), ())
        if gone:
            logger.info("removed session archives: %s", ", ".join(gone))
        return replace(done, archives=tuple(gone), archives_kept=tuple(kept))

    def settle(self) -> None:
        """Before a read, learn from queued exchanges and apply people's edits. Report failures and retry later."""
        try:
            if self.learner.waits and self.can_write_now():
                self.learner.work()
            if self.documents.unseen and self.can_write_now():
                self.documents.read_edits()
        except OrchestraMemError as error:
            self.reporter.failed("catalog", error)
        else:
            if not (self.learner.waits or self.documents.unseen):
                self.reporter.recovered("catalog")

    def write(self) -> None:
        """Write the documents whose items have changed. Report failures and retry later."""
        self.settle()
        try:
            if self.documents.due:
                self.documents.write()
        except (DocumentError, StorageReadOnlyError) as error:  # `problems` has the faults of documents
            logger.warning("the catalog's documents are not up to date: %s", error)
        except OrchestraMemError as error:
            self.reporter.failed("catalog documents", error)
        else:
            self.reporter.recovered("catalog documents")

    def stats(self) -> dict[str, Json]:
        """Return the numbers of live items, their tokens, their agents, and exchanges queued for learning."""
        found = [each for each in self.catalog.get_stats().values() if each.total_memories]
        items, tokens = (sum(each.total_memories for each in found), sum(each.total_tokens for each in found))
        waiting = len(self.learner.store.exchanges())
        return {"items": items, "tokens": tokens, "agents": len(found), "waiting": waiting}

    def problems(self) -> list[Json]:
        """Return the catalog's problems in the format that `status` shows."""
        audit = filter(None, [self.catalog.audit.problem])
        told = [*self.learner.problems(), *map(str, self.documents.faults()), *audit]
        return [{"subject": "catalog", "since": None, "problem": problem} for problem in told]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """The parts of a memory. `build` creates and connects them."""

    settings: Settings
    database: SqlDatabase
    log: EventLog
    ledger: Ledger
    store: DocumentStore
    documents_lock: DocumentsLock
    counter: TokenCounter
    clock: Clock
    lock: MemoryLock
    working: WorkingMemory
    session: SessionMemoryManager
    compactor: SessionCompactor
    compression: Compression
    episodic: EpisodicMemoryManager
    documents: EditedDocuments
    state: StateManager
    shared: SharedDecisions
    tracker: ContextWindowTracker
    epochs: EpochKeeper
    reporter: Reporter
    search: LazySearch
    agents: CatalogParts
    redactor: Redactor
    open_shared_log: Callable[[], AbstractContextManager[Any]]
    assemble: Callable[[Callable[[int], OrchestratorContext]], OrchestratorContext]
    close: Callable[[], None]

    def checked(self) -> MemoryParts:
        """Return these parts, after a check that this process may use the memory."""
        self.lock.check()
        return self

    def new_session(self) -> Session:
        """Return a new session that begins now."""
        from uuid import uuid4  # loading takes milliseconds, and only a new session needs it

        return Session(id=str(uuid4()), started=self.clock(), status=SessionStatus.ACTIVE)

    def snapshot(self, session: Session | None) -> Snapshot:
        """Return a snapshot of the memory, with `session` as the running session."""
        documents: dict[str, object] = {f"{name}.md": state for name, state in self.episodic.states().items()}
        if (shared := self.shared.state()) is not None:
            documents[SHARED_LOG] = shared
        files = [*documents.values()]
        if session is not None:
            documents["the session document"] = _, file = self.session.change_token(session)
            files.append(file)
        latest = max((state.modified_ns for state in files if isinstance(state, FileState)), default=0)
        # The day belongs to the version: an answer to "what did we do yesterday?" is outdated the day after.
        version = self.database.commit_count(), tuple(documents.values()), self.clock().date()
        # A second save within the same tick would not change a document's state.
        is_sure = abs(time.time_ns() - latest) >= _TICK_NS
        entries = tuple(self.working.entries())
        return Snapshot(session=session, entries=entries, documents=documents, version=version if is_sure else None)

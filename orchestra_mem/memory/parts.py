"""The parts of a memory, and the lock that serialises its threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.errors import ClosedError
from orchestra_mem.memory.context_items import Snapshot
from orchestra_mem.ports import Clock, DocumentStore, EventLog, Ledger, MemoryDatabase, TokenCounter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.shared_decisions import SHARED_LOG, SharedDecisions
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import FileState, Session

if TYPE_CHECKING:
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.memory.agents import CatalogParts
    from orchestra_mem.memory.epochs import EpochKeeper
    from orchestra_mem.memory.reporting import Reporter
    from orchestra_mem.retrieval.lazy_search import LazySearch
    from orchestra_mem.settings import Settings
    from orchestra_mem.tiers.authorship import Authorship

# File times advance with the kernel's tick, every 10 ms or faster; this is five times as long.
_TICK_NS = 50_000_000


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
            raise ClosedError("this memory was opened before a fork; a child process opens its own with open_memory()")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """The parts of a memory. `build` creates and connects them."""

    settings: Settings
    database: MemoryDatabase
    log: EventLog
    ledger: Ledger
    store: DocumentStore
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
    open_authorship: Callable[[], Authorship]
    open_shared_log: Callable[[], AbstractContextManager[Any]]
    assemble: Callable[[Callable[[int], OrchestratorContext]], OrchestratorContext]
    close: Callable[[], None]

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
        version = self.database.commit_count(), tuple(documents.values()), self.clock().date()
        # A second save within the same tick would not change a document's state.
        is_sure = abs(time.time_ns() - latest) >= _TICK_NS
        entries = tuple(self.working.entries())
        return Snapshot(session=session, entries=entries, documents=documents, version=version if is_sure else None)

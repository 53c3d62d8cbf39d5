"""What a memory is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import ContextWindowTracker
from orchestra_mem.memory.epochs import EpochKeeper
from orchestra_mem.memory.reporting import Reporter
from orchestra_mem.memory.thread_lock import ThreadLock
from orchestra_mem.ports import Clock, DocumentStore, EventLog, Ledger, TokenCounter
from orchestra_mem.tiers.authorship import Authorship
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.hand_edits import HandEditManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import SessionCompactor
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.compression.service import Compression
    from orchestra_mem.retrieval.response_cache import ResponseStore
    from orchestra_mem.retrieval.search import MemorySearch
    from orchestra_mem.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """What a memory is made of; the wiring puts it together."""

    log: EventLog
    ledger: Ledger
    store: DocumentStore
    counter: TokenCounter
    clock: Clock
    new_id: Callable[[], str]
    working: WorkingMemory
    session: SessionMemoryManager
    compactor: SessionCompactor
    compression: Compression
    episodic: EpisodicMemoryManager
    state: StateManager
    hand_edits: HandEditManager
    authorship: Authorship
    tracker: ContextWindowTracker
    epochs: EpochKeeper
    assemble: Callable[[Callable[[int], OrchestratorContext]], OrchestratorContext]
    reporter: Reporter
    lock: ThreadLock
    in_transaction: Callable[[], bool]
    change_count: Callable[[], int]
    commit_count: Callable[[], Hashable]
    open_search: Callable[[], MemorySearch]
    open_responses: Callable[[], ResponseStore]
    settings: Settings
    checkpoint: Callable[[], None]
    close: Callable[[], None]
    auto_refresh: bool
    latency_target_ms: int

    def stats(self) -> dict[str, Json]:
        """Figures of the window and of each tier."""
        return {
            "context_window": {
                **self.tracker.get_stats(),
                "counter": self.counter.name,
                "exact": self.counter.exact,
                "epochs": self.epochs.epoch_count,
            },
            "working_memory": self.working.get_stats(),
            "session_memory": self.session.get_stats(),
            "episodic_memory": self.episodic.get_stats(),
        }

    def problems(self) -> list[Json]:
        """What is wrong with these, as `status` shows it."""
        return [*self.reporter.problems(), *self.hand_edits.problems(), *self.compression.problems()]

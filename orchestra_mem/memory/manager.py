"""OrchestratorContextManager: where the tiers meet.

It records, keeps the tiers within their sizes, and gives contexts. Everything it holds can be made again from disk; the
event log is the truth of what happened, the documents are the truth of what is remembered of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import ContextWindowTracker, Threshold
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved
from orchestra_mem.design_names import MadeOtherwise
from orchestra_mem.errors import ClosedError, ServerAwayError
from orchestra_mem.memory.agents import AgentCalls
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.pauses import PauseWorker
from orchestra_mem.memory.queries import HistoryCalls, SearchCalls
from orchestra_mem.memory.recording import make_draft
from orchestra_mem.memory.sharing import SharingCalls
from orchestra_mem.ports import TokenCounter
from orchestra_mem.search_types import EVERYTHING, Hit, SearchFilter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import Refreshed
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import Json, Operation, Summary

if TYPE_CHECKING:
    from orchestra_mem.compression.compressor import MemoryCompressor
    from orchestra_mem.memory.recall import Expansion, Recall, SourceLocator
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.authorship import BlamedLine


class OrchestratorContextManager(
    HistoryCalls, AgentCalls, SearchCalls, SharingCalls, MadeOtherwise,
    use="open_memory(project, config=config, model=llm_interface)",
):  # fmt: skip
    """The memory of one project. Safe to share between threads; several processes may open the same project.

    `open_memory` makes one. Used as a context manager it is closed at the end; the session goes on until
    `flush_session`.
    """

    def __init__(self, parts: MemoryParts) -> None:
        from orchestra_mem.signals import MemoryEvents  # what it is made of takes long to load

        self._parts = parts
        self._lock = parts.lock
        self.events = MemoryEvents(self)
        self.compression = parts.compression
        parts.session.memory = parts.episodic.memory = self
        self._agents = parts.agents
        self._life = Lifecycle(parts, self.events)
        self._pauses = PauseWorker(self._life, self._lock, parts.search, parts.agents)
        self._note_call = self._pauses.note_call
        for threshold in Threshold:
            parts.tracker.on(threshold, lambda crossing: self.events.send("window_filled", crossing=crossing))
        self._life.resume()

    @property
    def working_memory(self) -> WorkingMemory:
        """The newest operations, in the process, as of now: ask for it again to have what is due done before."""
        self._settle()
        return self._parts.working

    @property
    def session_memory(self) -> SessionMemoryManager:
        """The document of the session under way, and those of earlier ones; as of now, like `working_memory`."""
        self._settle()
        return self._parts.session

    @property
    def episodic_memory(self) -> EpisodicMemoryManager:
        """The documents that outlast sessions, with their versions."""
        self._settle()
        return self._parts.episodic

    @property
    def documents(self) -> EditedDocuments:
        """All documents that people edit, by name: `project_state`, `catalog/reviewer`; earlier texts, conflicts."""
        self._settle()
        return self._parts.documents

    @property
    def context_tracker(self) -> ContextWindowTracker:
        """How full the model's window is."""
        self._settle()
        return self._parts.tracker

    @property
    def state(self) -> StateManager:
        """The state of work: milestones, epics, stories and tasks, as people have left them in the work plan."""
        with self._life.settled():
            return self._parts.state

    @property
    def compressor(self) -> MemoryCompressor:
        """Makes texts shorter, by extraction and with the model where there is one."""
        return self.compression.compressor

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens, as the serving model does where that is known."""
        return self._parts.counter

    @property
    def model(self) -> LanguageModel | None:
        """The language model that this memory has, None where it has none; use it within `foreground`."""
        return self.compression.model

    # Loaded by those who go back to what was: a status, a record or a context does not.

    @cached_property
    def _places(self) -> SourceLocator:
        from orchestra_mem.memory.recall import SourceLocator

        parts = self._parts
        return SourceLocator(store=parts.store, episodic=parts.episodic, sessions=parts.session.place)

    @cached_property
    def _recall(self) -> Recall:
        from orchestra_mem.memory.recall import Recall

        parts = self._parts
        return Recall(parts.log, parts.ledger, self._places, parts.state, parts.agents.catalog)

    # Recording

    def record_operation(
        self,
        operation_type: str,
        operation_data: object,
        tokens_used: int | None = None,
        *,
        agent: str | None = None,
        critical: bool | None = None,
        timestamp: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Record what the orchestrator did. When this returns, the operation is in the event log for good.

        Args:
            operation_type: what kind of thing was done, as in `nl_command`, `task_execution`, `decision`.
            operation_data: any JSON value, of any size.
            tokens_used: tokens that it took of the window; counted over its entry where not given.
            agent: who did it.
            critical: whether it must not be summarised away lightly; judged by type and status where not given.
            timestamp: when, aware of its time zone; now where not given.
            idempotency_key: the same key twice records once, and returns what was recorded first.

        Raises:
            InvalidOperationError: something is no JSON or out of range; nothing was recorded.
            StorageError: it could not be stored, or might be taken back (`state.together`); nothing was recorded.
        """
        self._lock.check()
        draft = make_draft(
            self._parts, operation_type, operation_data, tokens_used, agent=agent, critical=critical,
            timestamp=timestamp, idempotency_key=idempotency_key, number=self._life.last_id + 1,
            session=self._life.session,
        )  # fmt: skip
        with self._lock:
            recorded = self._life.record(draft)
        self._pauses.note_call(changed=True)
        return recorded

    def refresh(self) -> Refreshed | None:
        """Spill, compact, bring the documents up to date and start a new epoch; None where no session is under way.

        Happens by itself when the window is 80 % full or the session document over its threshold: before the next
        context, search or look at a tier, or on closing; within a record where it cannot wait.

        Raises:
            StorageError: the disk refused; what was recorded is safe, and the documents are as they were.
        """
        self._agents.write()
        with self._life.synced():
            return self._life.refresh()

    def foreground(self) -> AbstractContextManager[None]:
        """Have the model for oneself: within this, what is summarised in the background stops and waits."""
        return self.compression.foreground()

    def get_orchestrator_context(
        self, for_operation: str, max_tokens: int | None = None, *, query: str | None = None,
        where: SearchFilter = EVERYTHING, measure_turns: bool = True,
    ) -> OrchestratorContext:  # fmt: skip
        """Build what the model is given before an operation.

        While the server of the database is away it is the last one again, and its notes say so.

        Args:
            for_operation: the kind of operation that it is for.
            max_tokens: the budget; by default what the window holds up to its refresh threshold.
            query: memories are recalled for it, behind everything else; where that is impossible, the notes say so.
            where: what alone is recalled; a `strict` one has of the rest the newest of its agents' operations alone.
            measure_turns: measure how many of the last turns stand in full, which loads the table of words.

        Raises:
            ValueError: the budget is negative.
            ServerAwayError: the database's server cannot be reached, and no context was given before.
        """
        budget_tokens = self._life.default_budget if max_tokens is None else max_tokens
        if budget_tokens < 0:
            raise ValueError(f"max_tokens is {budget_tokens}: a budget cannot be negative")

        def build(doubted: int) -> OrchestratorContext:
            with self._life.settled():
                if doubted:
                    self._parts.epochs.count_again(doubted)
                return self._life.context(for_operation, budget_tokens, recalled, where, measure_turns=measure_turns)

        try:
            recalled = None if query is None else self._recalled(query, budget_tokens, where)
            context = self._parts.assemble(build)
        except ServerAwayError as error:
            if where.strict:
                raise
            with self._lock:
                context = self._parts.epochs.last(for_operation, budget_tokens, error)
        self._pauses.note_call()
        return context

    def explain(
        self, for_operation: str = "explain", max_tokens: int | None = None, *, query: str | None = None
    ) -> str:
        """Say for each item why it is in the context, was shortened, or stayed out."""
        return self.get_orchestrator_context(for_operation, max_tokens, query=query).explain()

    def flush_session(self) -> Path | None:
        """End the session: sum it up, archive its document, bring the episodic documents up to date.

        Returns:
            Where the session's document lies now; None where no session was under way.

        Raises:
            StorageError: the disk refused; the next start goes on where this stopped.
        """
        self._agents.write()
        with self._life.synced():
            return self._life.flush()

    # Asking

    def expand(self, reference: str | int) -> Expansion:
        """Give the originals behind a summary (`S12`), a kept fact (`K7`) or an operation (`op 104`), word for word.

        So too a line of a document (`decision_log.md:41`), with what stands around it, or a work item (`story 5`).

        Raises:
            NotFoundError: there is no such thing.
        """
        self._lock.check()
        return self._recall.expand(reference)

    def hit_lines(self, hits: Sequence[Hit]) -> list[int]:
        """Say in which line of its document each hit stands now, from 1; 0 for what stands in none."""
        self._lock.check()
        return self._places.lines(hits)

    def blame(self, document: str) -> list[BlamedLine]:
        """Say for each line of a document (`session` for the live one) who wrote it, and from which operations.

        Raises:
            NotFoundError: there is no such document.
        """
        with self._life.settled():
            return self._parts.open_authorship().blame(document)

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """Return lines that a person and the machine have both changed, and that wait for the person's word."""
        self._lock.check()
        return self._parts.documents.conflicts()

    def resolve_conflict(self, conflict: str, *, accept: bool, both: bool = False) -> tuple[str, Resolved]:
        """Let the machine's lines take the place of the person's, or take them out; see `EditedDocuments.resolve`."""
        with self._lock:
            return self._parts.documents.resolve(conflict, accepted=accept, both=both)

    def losses(self, session: str | None = None, *, limit: int | None = None) -> list[Summary]:
        """Return the ledger: each summary with what it covers, its ratio, and the identifiers that it dropped."""
        self._lock.check()
        return self._recall.losses(session, limit)

    def count_losses(self, session: str | None = None) -> int:
        """Count what `losses` returns without a limit."""
        self._lock.check()
        return len(self._recall.summaries(session))

    def get_stats(self) -> dict[str, Json]:
        """Return figures of the window and of each tier."""
        parts = self._parts
        with self._life.settled():
            counter: dict[str, Json] = {"counter": parts.counter.name, "exact": parts.counter.exact}
            told = (parts.reporter, parts.documents, parts.compression, self.events, parts.search, parts.agents)
            return {
                "context_window": {**parts.tracker.get_stats(), **counter, "epochs": parts.epochs.epoch_count},
                "working_memory": parts.working.get_stats(),
                "session_memory": parts.session.get_stats(),
                "episodic_memory": parts.episodic.get_stats(),
                "catalog": parts.agents.stats(),
                "search": self._search_stats(),
                "problems": [problem for each in (*told, parts.shared) for problem in each.problems()],
            }

    # Opening and closing

    def close(self) -> None:
        """Let go of files and connections. The session goes on with the next start; safe to call twice."""
        if self._lock.refuses:  # closed already, or nothing of it is this process's to close
            return
        self._pauses.end()
        with suppress(ClosedError), self._lock:
            try:
                if not sys.is_finalizing():
                    self._life.settle()
            finally:
                self._lock.closed = True
                self._agents.audit.flush()
                self._parts.search.close()
                self._parts.close()

    def __enter__(self) -> OrchestratorContextManager:
        """Return itself."""
        self._lock.check()
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _settle(self) -> None:
        if self._life.due and not self._lock.refuses:
            with self._lock:
                self._life.settle()

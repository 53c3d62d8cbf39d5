"""OrchestratorContextManager: records operations, keeps the tiers within their sizes, and builds contexts.

All of its state can be rebuilt from disk. The event log is authoritative for what happened, the documents for what is
remembered of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.window import ContextWindowTracker, Threshold
from orchestra_mem.core.documents.conflicts import ConflictBlock, Resolved
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import ClosedError, ServerAwayError
from orchestra_mem.memory.agents import AgentCalls
from orchestra_mem.memory.idle_worker import IdleWorker
from orchestra_mem.memory.lifecycle import Lifecycle
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.sharing import SharingCalls
from orchestra_mem.ports import TokenCounter
from orchestra_mem.search_types import EVERYTHING, Hit, SearchFilter
from orchestra_mem.tiers.edited_documents import EditedDocuments
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_compaction import Refreshed
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.tiers.working import WorkingMemory
from orchestra_mem.types import Json, Summary

if TYPE_CHECKING:
    from orchestra_mem.compression.compressor import MemoryCompressor
    from orchestra_mem.memory.recall import Expansion, Recall
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.authorship import BlamedLine


class OrchestratorContextManager(
    AgentCalls, SharingCalls, RejectsDesignArguments, use="open_memory(project, config=config, model=llm_interface)"
):
    """The memory of one project. Safe to share between threads; several processes may open the same project.

    Create it with `open_memory`. As a context manager, it closes itself on exit; its session continues until
    `flush_session`.
    """

    def __init__(self, parts: MemoryParts) -> None:
        from orchestra_mem.signals import MemoryEvents  # blinker takes long to load

        self._parts = parts
        self._lock = parts.lock
        self.events = MemoryEvents(self)
        self.compression = parts.compression
        parts.session.memory = parts.episodic.memory = self
        self._life = Lifecycle(parts, self.events)
        self._pauses = IdleWorker(self._life, self._lock, parts.search, parts.agents)
        self._note_call = self._pauses.note_call
        for threshold in Threshold:
            parts.tracker.on(threshold, lambda crossing: self.events.send("window_filled", crossing=crossing))
        self._life.resume()

    @property
    def working_memory(self) -> WorkingMemory:
        """The newest operations. Each access to this property first runs due spills and refreshes."""
        self._settle()
        return self._parts.working

    @property
    def session_memory(self) -> SessionMemoryManager:
        """The documents of the running session and of earlier ones. Each access first runs due spills and refreshes."""
        self._settle()
        return self._parts.session

    @property
    def episodic_memory(self) -> EpisodicMemoryManager:
        """The documents that outlast sessions, with their versions."""
        self._settle()
        return self._parts.episodic

    @property
    def documents(self) -> EditedDocuments:
        """All documents that people edit, by names such as `catalog/reviewer`, with their versions and conflicts."""
        self._settle()
        return self._parts.documents

    @property
    def context_tracker(self) -> ContextWindowTracker:
        """The tracker of how full the model's context window is."""
        self._settle()
        return self._parts.tracker

    @property
    def state(self) -> StateManager:
        """The work items: milestones, epics, stories and tasks, including people's edits of the work plan."""
        with self._life.settled():
            return self._parts.state

    @property
    def compressor(self) -> MemoryCompressor:
        """Shortens texts, by extraction or with the model if there is one."""
        return self.compression.compressor

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens, with the serving model's tokenizer if that is available."""
        return self._parts.counter

    @property
    def model(self) -> LanguageModel | None:
        """The memory's language model, to be used within `foreground`; None for a memory without a model."""
        return self.compression.model

    @property
    def _recall(self) -> Recall:
        # Imported here: reporting a status, recording, and building a context do not need it.
        from orchestra_mem.memory.recall import Recall

        return Recall(self._parts.checked())

    def refresh(self) -> Refreshed | None:
        """Spill, compact, update the documents and begin a new epoch. Return None if no session is under way.

        A refresh is due when the window is 80 % full or the session document exceeds its threshold. It then runs before
        the next context, search or access to a tier, on closing, or within a record if it cannot wait.

        Raises:
            StorageError: The disk refused a write; recorded operations are safe and the documents unchanged.
        """
        self._parts.agents.write()
        with self._life.synced():
            return self._life.refresh()

    def foreground(self) -> AbstractContextManager[None]:
        """Return a context manager that pauses background jobs, so that the caller has the model to itself."""
        return self.compression.foreground()

    def get_orchestrator_context(
        self, for_operation: str, max_tokens: int | None = None, *, query: str | None = None,
        where: SearchFilter = EVERYTHING, measure_turns: bool = True,
    ) -> OrchestratorContext:  # fmt: skip
        """Build the context that the model reads before an operation.

        While the database server is unreachable, return the last context again, with a note.

        Args:
            for_operation: Kind of the operation.
            max_tokens: Token budget; by default the window up to its refresh threshold.
            query: Append memories recalled for this query. If search is unavailable, a note says so.
            where: Filter for recalled memories. If `strict`, the rest has only newest operations of readable agents.
            measure_turns: Measure how many of the last turns to show in full, which loads the word table.

        Raises:
            ValueError: The budget is no number or negative, or the query is not a string.
            ServerAwayError: The database server is unreachable, and there is no earlier context or `where` is strict.
        """
        budget_tokens = self._parts.tracker.budget_tokens if max_tokens is None else max_tokens
        if not hasattr(budget_tokens, "__int__") or budget_tokens < 0:
            raise ValueError(f"max_tokens is {budget_tokens!r}: a budget is a number of tokens, at least 0")

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
        """Explain for each item why the context includes, shortens or omits it."""
        return self.get_orchestrator_context(for_operation, max_tokens, query=query).explain()

    def flush_session(self) -> Path | None:
        """End the session: summarise it, update the episodic documents, and archive the session document.

        Returns:
            The path of the archived document; None if there was nothing to flush.

        Raises:
            StorageError: The disk refused a write; the next start completes the flush.
        """
        self._parts.agents.write()
        with self._life.synced():
            return self._life.flush()

    # Asking

    def expand(self, reference: str | int) -> Expansion:
        """Return the original operations of a summary (`S12`), fact (`K7`) or operation (`op 104`), word for word.

        A document line (`decision_log.md:41`), work item (`story 5`) or catalog item (`M12`) can be expanded, too.

        Raises:
            NotFoundError: The reference names nothing.
        """
        return self._recall.expand(reference)

    def hit_lines(self, hits: Sequence[Hit]) -> list[int]:
        """Return each hit's current line in its document, counted from 1; 0 for a hit that is in no document."""
        return self._recall.lines(hits)

    def blame(self, document: str) -> list[BlamedLine]:
        """Return the writer and source operations of each line of a document (`session`: the live session's document).

        Raises:
            NotFoundError: There is no such document, or no session is under way.
        """
        from orchestra_mem.tiers.authorship import Authorship  # imported here, because few programs need it

        parts = self._parts
        with self._life.settled():
            return Authorship(
                documents=parts.documents, session=parts.session, work=parts.state,
                items=parts.agents.learner.store.by_number,
            ).blame(document)  # fmt: skip

    def conflicts(self) -> list[tuple[str, ConflictBlock]]:
        """Return unresolved conflicts, each with its document: lines that a person and the machine both changed."""
        return self._parts.checked().documents.conflicts()

    def resolve_conflict(self, conflict: str, *, accept: bool, both: bool = False) -> tuple[str, Resolved]:
        """Accept or drop the machine's lines of a conflict, or keep both sides; see `EditedDocuments.resolve`."""
        with self._lock:
            return self._parts.documents.resolve(conflict, accepted=accept, both=both)

    def losses(self, session: str | None = None, *, limit: int | None = None) -> list[Summary]:
        """Return the loss ledger: each summary with its coverage, ratio and dropped identifiers."""
        return self._recall.losses(session, limit)

    def count_losses(self, session: str | None = None) -> int:
        """Return the number of summaries that `losses` returns without a limit."""
        return len(self._recall.summaries(session))

    def get_stats(self) -> dict[str, Json]:
        """Return statistics of the window and of each tier, and the list of current problems."""
        parts = self._parts
        with self._life.settled():
            counter: dict[str, Json] = {"counter": parts.counter.name, "exact": parts.counter.exact}
            told = (parts.reporter, parts.documents_lock, parts.documents, parts.compression, self.events, parts.search)
            return {
                "context_window": {**parts.tracker.get_stats(), **counter, "epochs": parts.epochs.epoch_count},
                "working_memory": parts.working.get_stats(),
                "session_memory": parts.session.get_stats(),
                "episodic_memory": parts.episodic.get_stats(),
                "catalog": parts.agents.stats(),
                "search": self._search_stats(),
                "problems": [problem for each in (*told, parts.agents, parts.shared) for problem in each.problems()],
            }

    # Opening and closing

    def close(self) -> None:
        """Close files and connections; safe to call twice. The session continues with the next start."""
        if self._lock.refuses:  # closed already, or opened by a parent process
            return
        self._pauses.end()
        with suppress(ClosedError), self._lock:
            try:
                if not sys.is_finalizing():
                    self._life.settle()
            finally:
                self._lock.closed = True
                self._parts.agents.catalog.audit.flush()
                self._parts.search.close()
                self._parts.close()

    def __enter__(self) -> OrchestratorContextManager:
        """Return itself."""
        self._lock.check()
        return self

    def __exit__(self, *error: object) -> None:
        """Close the memory."""
        self.close()

    def _settle(self) -> None:
        if self._life.due and not self._lock.refuses:
            with self._lock:
                self._life.settle()

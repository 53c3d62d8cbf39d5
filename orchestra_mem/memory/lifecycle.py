"""How operations move through the tiers: into working memory, on to the session document, from there into summaries.

Everything here can be done again: what a crash leaves half-done, `resume` ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.episodic import ProjectView
from orchestra_mem.errors import StorageError
from orchestra_mem.memory.context_items import Snapshot
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.memory.recording import OperationDraft, new_session
from orchestra_mem.search_types import EVERYTHING, SearchFilter
from orchestra_mem.tiers.session_compaction import Compacted, Refreshed
from orchestra_mem.tiers.session_ending import closing_sections
from orchestra_mem.types import DocumentName, Operation, OperationFilter, Session, SessionStatus, VersionReason

if TYPE_CHECKING:
    from orchestra_mem.core.search.disclosure import Recalled
    from orchestra_mem.signals import MemoryEvents

logger = logging.getLogger(__name__)

_RETRY_AFTER = 25  # operations, after a refresh that the disk refused
# A refresh waits for the next read: to this share of the window more, and while so many operations like the last fit.
_WAITS, _ROOM = 0.03, 2
_SESSION_DOCUMENT = "session document"
_READ_FIRST = 500  # operations, for facts before a context; more wait only where nothing refreshes, and are read later


class Lifecycle:
    """Follows the event log and keeps the tiers within their sizes.

    Whoever calls it holds the memory's lock, as `synced` and `settled` take it.
    """

    def __init__(self, parts: MemoryParts, events: MemoryEvents) -> None:
        self._parts = parts
        self._events = events
        self.session: Session | None = None
        self.last_id, self._changes, self._retry_at, self._refreshed_at = 0, -1, 0, 0
        self._refresh_due = self._over_ceiling = self._window_known = self._others_record = False
        self._seen_documents: Mapping[str, object] = {}
        self._looked_at: object = None

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Keep other threads from the tiers, which see first what others have done; refuses where closed."""
        with self._parts.lock:
            self.sync()
            yield

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Do the same for a read, after what is due, a spill or a refresh; what cannot be written now waits."""
        with self._parts.lock:
            self.sync(waits=False)
            self.settle()
            yield

    def snapshot(self) -> Snapshot:
        """Give the memory as it is now, after what is due."""
        with self.settled():
            return self._parts.snapshot(self.session)

    def sync(self, *, waits: bool = True) -> None:
        """See what other processes have recorded and people have edited since the last look; else microseconds."""
        changes, _ = self._parts.database.commit_count()
        if changes != self._changes or self.session is None:
            self._catch_up()
            self._changes = changes
        if problem := self._parts.database.problem:
            self._parts.reporter.failed("database", StorageError(problem))
        self._look_for_faults(self.take_in_edits(waits=waits))

    def _catch_up(self) -> None:
        """Bring working memory up to the event log: a new session, operations of other processes, their spills."""
        if (live := self._parts.log.live_session()) is None:
            self._leave_session()
            return
        if self.session is None or live.id != self.session.id:
            self._leave_session()
            # Where the disk refuses, the next spill brings the document together with the log.
            with self._parts.reporter.noting(_SESSION_DOCUMENT):
                self._parts.session.resume(live)
                self._parts.compactor.settle(live)
            live = self._parts.log.session(live.id)
            self.last_id = live.spilled_through
        elif live.spilled_through != self.session.spilled_through:
            self._parts.store.follow()  # the document here has what another machine has spilled
        if live.spilled_through > self.last_id:
            # Others recorded and spilled what this process has not seen: a running epoch would never show it.
            self._parts.epochs.end_epochs()
            self.last_id = live.spilled_through
        self.session = live
        self._parts.working.drop_through(live.spilled_through)
        self._take(self._parts.log.operations(OperationFilter(session=live.id, after=self.last_id)))

    def _leave_session(self) -> None:
        self.session, self.last_id = None, 0
        self._parts.working.clear()
        self._parts.epochs.end_epochs()

    def take_in_edits(self, *, waits: bool = True) -> Mapping[str, object]:
        """Read into the ledger what people have changed in the documents since the last look; their states now."""
        states = self._parts.episodic.states()
        saved = states != self._seen_documents or self._parts.episodic.writers[0].looks_again
        if saved and (waits or self._parts.database.can_write_now()):
            with self._parts.reporter.noting("hand edits"):
                if self._parts.episodic.take_in():
                    self._events.send("documents_edited")
                    if self.session is not None:
                        with self._parts.reporter.passing_over(_SESSION_DOCUMENT):
                            self._parts.compactor.settle(self.session)
                self._seen_documents = states
        return states

    def _look_for_faults(self, documents: Mapping[str, object]) -> None:
        """Tell what is wrong with documents that somebody has changed since the last look."""
        parts = self._parts
        states = documents, parts.session.foreign_state(self.session) if self.session else None
        # A document is mended without another state where a right is given back.
        if states != self._looked_at or parts.reporter.knows_faults:
            self._looked_at = states
            parts.reporter.found_faults([*parts.episodic.faults(), *parts.session.faults()])

    def record(self, draft: OperationDraft) -> Operation:
        """Write an operation to the event log, then let the tiers follow."""
        operation, created = self._parts.log.append(draft.operation, lambda: new_session(self._parts.clock()))
        if created:
            try:
                self._follow(operation, draft)
                self._keep_within_limits(operation)
            except Exception as error:  # whatever it is: who is told that nothing was recorded records it twice
                self._fell_behind(operation.id, error)
            self._events.send("operation_recorded", operation=operation)
        return operation

    def _fell_behind(self, number: int, error: Exception) -> None:
        self._retry_at = number + _RETRY_AFTER
        self._parts.reporter.failed(_SESSION_DOCUMENT, error)
        if not isinstance(error, StorageError):
            logger.error("operation %s is recorded, but what follows failed", number, exc_info=error)

    def _follow(self, operation: Operation, draft: OperationDraft) -> None:
        """Take a recorded operation into working memory, after those that others recorded meanwhile."""
        if self.session is not None and (entry := draft.entry_of(operation, self.session.started.date())):
            self._parts.session.remember(entry)
        if self.session is None or operation.session != self.session.id:
            self._catch_up()
        elif operation.id == self.last_id + 1:
            self._take([operation])
        else:
            self._others_record = True
            self._take(self._parts.log.operations(OperationFilter(session=operation.session, after=self.last_id)))

    def _take(self, operations: Iterable[Operation]) -> None:
        assert self.session is not None
        for operation in operations:
            self.last_id = operation.id
            if not operation.is_stored:
                entry = self._parts.session.entry(operation, self.session.started.date())
                self._parts.working.add(entry)
                self._parts.epochs.add(entry)
                self._parts.tracker.add_usage(operation.tokens)

    def _keep_within_limits(self, operation: Operation) -> None:
        """Note what is due. It waits for the next read, or until it can wait no longer."""
        if self.last_id < self._retry_at:
            return
        if (far := self._parts.working.overflows_far) > 1 and not self._parts.session.is_as_left(self.session):
            self._catch_up()  # the process that spilled last does it again: another has to read the document first
            far = self._parts.working.overflows_far
        if far > 1 or (far and self._parts.session.is_as_left(self.session)):
            self._spill_overflow()
        tracker = self._parts.tracker
        self._refresh_due |= tracker.should_refresh() and self._parts.settings.orchestrator.auto_refresh_enabled
        if not self._refresh_due or (not self.leads and self._refreshed_elsewhere()):
            return
        waited = tracker.used_tokens() >= (tracker.refresh_threshold + _WAITS) * tracker.max_tokens
        # The next operations may be as large, and a window that overflows is the worst.
        if (waited and self.leads) or tracker.would_be_critical(_ROOM * operation.tokens) or self._over_ceiling:
            self.refresh(due=True)

    @property
    def leads(self) -> bool:
        """Whether the next refresh is this process's: it records alone, or has spilled last of those that record."""
        return not self._others_record or self._parts.session.is_as_left(self.session)

    @property
    def due(self) -> bool:
        """Whether a spill or a refresh waits that can be done now: not within changes that may still be taken back."""
        waits = (self._parts.working.overflows or self._refresh_due) and self.last_id >= self._retry_at
        return waits and not self._parts.database.in_transaction()

    def settle(self) -> None:
        """Spill and refresh where that has waited; what fails is reported as where a record does it."""
        if not self.due or not self._parts.database.can_write_now():
            return
        try:
            self.sync()
            self._spill_overflow()
            if self._refresh_due:
                self.refresh(due=True)
        except Exception as error:  # as in `record`: nothing that was recorded is in doubt
            self._fell_behind(self.last_id, error)

    def _spill_overflow(self) -> None:
        """Put what working memory cannot hold into the next tier; the document there may have outgrown its share."""
        wanted = self._parts.settings.orchestrator.auto_refresh_enabled
        if self._spill(self._parts.working.overflow()) and wanted and self._parts.compactor.over_threshold():
            self._refresh_due, self._over_ceiling = True, self._parts.compactor.over_ceiling()

    def _spill(self, entries: list[Entry]) -> int:
        if not entries or self.session is None:
            return 0
        through = self._parts.session.append_operations(self.session, entries)
        # At once: a context shows the document up to there, and working memory from there on.
        self.session = replace(self.session, spilled_through=through)
        self._parts.working.drop_through(through)
        self._parts.reporter.recovered(_SESSION_DOCUMENT)
        return len(entries)

    def refresh(self, *, due: bool = False) -> Refreshed | None:
        """Spill, compact, update the documents, begin a new epoch; without a session, update the documents alone.

        If it is `due` and another process has done it meanwhile, only a new epoch begins.
        """
        self._refresh_due = self._over_ceiling = self._others_record = False
        if self.session is None:
            if self._parts.reporter.knows_work:
                self._update_documents(VersionReason.REFRESH)
            return None
        start, spilled, compacted = time.perf_counter(), 0, Compacted()
        with self._parts.store.lock():
            if due and self._refreshed_elsewhere():
                return None
            with self._parts.reporter.passing_over(_SESSION_DOCUMENT):
                spilled = self._spill(self._parts.working.older_half())
            session = self._parts.log.session(self.session.id)
            if session.status is not SessionStatus.ACTIVE:
                self._catch_up()  # another process has flushed it meanwhile, and may have begun the next
                return self.refresh()
            self.session = session
            self._parts.compactor.facts.extract(session, self.last_id)
            self._update_documents(VersionReason.REFRESH)
            with self._parts.reporter.passing_over(_SESSION_DOCUMENT):
                compacted = self._parts.compactor.compact(session)
                self._parts.episodic.short_forms.make(session.id)
        used = self._begin_anew("refresh")
        self._parts.database.checkpoint()
        took_ms = (time.perf_counter() - start) * 1000
        done = Refreshed(spilled_operations=spilled, compacted=compacted, used_tokens=used, milliseconds=took_ms)
        self._parts.reporter.log_refresh(done)
        self._events.send("refreshed", refreshed=done)
        return done

    def _refreshed_elsewhere(self) -> bool:
        used = self._parts.reporter.used_since_refresh(self._refreshed_at, self.last_id)
        if used is None or used >= self.default_budget:
            return False
        self._refresh_due = self._over_ceiling = False
        self._parts.epochs.end_epochs()
        self._parts.tracker.reset(to=used)
        self._refreshed_at = self.last_id
        return True

    def _begin_anew(self, for_operation: str) -> int:
        """Begin a new epoch, and let the window hold what that does; its tokens."""
        self._parts.epochs.end_epochs()
        used = self.context(for_operation, self.default_budget).tokens
        noted = self._parts.reporter.note_refresh(self._parts.tracker.used_tokens(), used)
        self._parts.tracker.reset(to=used)
        self._refreshed_at = max(noted, self.last_id)
        return used

    def extract_facts(self, most: int) -> None:
        """Find the facts of operations that have not been looked through yet, of at most so many at once."""
        if self.session is not None and (waiting := self.unread) and self._parts.database.can_write_now():
            through = self.last_id - waiting + min(waiting, most)
            with self._parts.reporter.noting("facts"), self._parts.store.lock():
                self._parts.compactor.facts.extract(self._parts.log.session(self.session.id), through)
                self.session = replace(self.session, judged_through=through)

    @property
    def unread(self) -> int:
        """How many operations have not been looked through for facts."""
        if self.session is None or self.session.judged_through >= self.last_id:
            return 0
        return self.last_id - max(self.session.judged_through, self._parts.log.first_operation(self.session.id) - 1)

    def draft_ahead(self) -> bool:
        """Draft a summary that the next refresh will want; whether there may be more."""
        coming = self._parts.working.older_half()
        return self.session is not None and self._parts.compactor.draft_ahead(self.session, coming)

    def _update_documents(self, reason: VersionReason) -> None:
        """Write the documents; where somebody saves meanwhile, what that says is taken in before the next try."""

        def known() -> ProjectView:
            self.take_in_edits()
            recent = [entry.short for entry in self._parts.working.entries()[-5:]]
            return self._parts.reporter.view(self.session.id if self.session else "", recent)

        failed = self._parts.episodic.update(known, reason)
        for name in DocumentName:
            with self._parts.reporter.noting(name.value):
                if name in failed:
                    raise failed[name]

    def context(
        self, for_operation: str, budget_tokens: int, recalled: Recalled | None = None,
        where: SearchFilter = EVERYTHING, *, measure_turns: bool = True,
    ) -> OrchestratorContext:  # fmt: skip
        """Return the context for a budget as things stand, of what `where` lets through."""
        if not self._parts.epochs.is_running(budget_tokens):
            self.extract_facts(_READ_FIRST)  # what has to be shown first is known then
        now = self._parts.snapshot(self.session).within(where)
        context = self._parts.epochs.context(for_operation, budget_tokens, now, recalled, measure_turns=measure_turns)
        if not self._window_known and not where.strict and budget_tokens == self.default_budget:
            # The first context of a process: from here on the window holds it, not only the operations since.
            self._window_known = True
            if context.tokens > self._parts.tracker.used_tokens():
                self._parts.tracker.set_usage(context.tokens)
        return context

    @property
    def default_budget(self) -> int:
        """What the window holds up to its refresh threshold, in tokens."""
        return int(self._parts.tracker.max_tokens * self._parts.tracker.refresh_threshold)

    def flush(self) -> Path | None:
        """End the session; None where none is under way."""
        self._refresh_due = self._over_ceiling = False
        finished = self._finish_flushes()
        if self.session is None:
            return finished
        with self._parts.store.lock():
            if (begun := self._begin_flush(self.session)) is None:
                return finished
            session, closing = begun
            self._update_documents(VersionReason.FLUSH)
            path = self._parts.session.finish(session, closing)
        self._leave_session()
        self._begin_anew("flush")
        logger.info("session %s flushed to %s", session.id, path)
        self._events.send("session_flushed", session=session, path=path)
        return path

    def _begin_flush(self, session: Session) -> tuple[Session, str] | None:
        """Spill all, and close the session to new operations; None where another process has flushed it."""
        parts = self._parts
        while True:
            self._spill(parts.working.entries())
            session = parts.log.session(session.id)
            if session.status is not SessionStatus.ACTIVE:
                self._catch_up()
                return None
            parts.compactor.facts.extract(session, session.spilled_through)
            parts.compactor.drafts.place()
            parts.compactor.settle(session)
            session = parts.log.session(session.id)
            work = parts.reporter.work.view()
            closing = closing_sections(parts.log, parts.ledger, session, parts.tracker.max_tokens, work)
            if parts.log.begin_flush(session.id, closing):
                return session, closing
            self._catch_up()

    def resume(self) -> None:
        """Go on where the last process stopped, however it ended."""
        with self._parts.store.lock():
            self._look_for_faults(self._parts.episodic.states())
            with self._parts.reporter.passing_over(_SESSION_DOCUMENT):
                self._finish_flushes()
            self._changes, _ = self._parts.database.commit_count()
            self._catch_up()
            self._refreshed_at = self.last_id

    def _finish_flushes(self) -> Path | None:
        """End the sessions whose flush was interrupted; where the last one's document lies now."""
        path = None
        for session, closing in self._parts.log.flushing():
            with self._parts.store.lock():
                self._update_documents(VersionReason.FLUSH)
                path = self._parts.session.finish(session, closing)
        return path

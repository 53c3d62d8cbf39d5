"""Move operations through the tiers: into working memory, on to the session document, from there into summaries.

Every step can be repeated: after a crash, `resume` completes interrupted steps.
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
from orchestra_mem.search_types import EVERYTHING, SearchFilter
from orchestra_mem.tiers.session_compaction import Compacted, Refreshed
from orchestra_mem.tiers.session_ending import closing_sections
from orchestra_mem.types import Operation, OperationFilter, Session, SessionStatus, VersionReason

if TYPE_CHECKING:
    from orchestra_mem.core.search.disclosure import Recalled
    from orchestra_mem.signals import MemoryEvents

logger = logging.getLogger(__name__)

_RETRY_AFTER = 25  # operations to wait after a failed spill or refresh
# A due refresh waits for a read, at most until usage is _WAITS over its threshold or critical within _ROOM operations.
_WAITS, _ROOM = 0.03, 2
_UNREAD, _UNREAD_SHARE = 4, 0.1  # times working memory's limit, share of the window: others' work left unread
_CEILING = 0.25  # a session document with a larger excess (see `SessionCompactor.excess`) is compacted without waiting
_SESSION_DOCUMENT = "session document"
_READ_FIRST = 500  # operations scanned for facts before a context; any more (only without refreshes) are scanned later


class Lifecycle:
    """Follows the event log and keeps the tiers within their sizes.

    Callers hold the memory's lock, which `synced` and `settled` acquire.
    """

    def __init__(self, parts: MemoryParts, events: MemoryEvents) -> None:
        self._parts = parts
        self._events = events
        self.documents = parts.documents_lock
        self.session: Session | None = None
        self.last_id, self._changes, self._retry_at, self._refreshed_at = 0, -1, 0, 0
        self._refresh_due = self._over_ceiling = self._window_known = self._others_record = self.behind = False
        self._seen_documents: Mapping[str, object] = {}
        self._checked_state: object = None

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Hold the memory's lock, after applying other processes' changes. Raise `ClosedError` if closed."""
        with self._parts.lock:
            self.sync()
            yield

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Like `synced`, for reads: also run due spills and refreshes, unless the database cannot be written now."""
        with self._parts.lock:
            self.sync(waits=False)
            self.settle()
            yield

    def snapshot(self) -> Snapshot:
        """Return the current state of the memory, after due spills and refreshes."""
        with self.settled():
            return self._parts.snapshot(self.session)

    def sync(self, *, waits: bool = True) -> None:
        """Apply other processes' records and people's edits since the last call; without any, it takes microseconds."""
        changes, _ = self._parts.database.commit_count()
        if changes != self._changes or (self.session is None and self._parts.log.live_session()):
            self._catch_up()
            self._changes = changes
        if problem := self._parts.database.problem:
            self._parts.reporter.failed("database", StorageError(problem))
        self._look_for_faults(self.read_new_edits(waits=waits))

    def _catch_up(self, *, waits: bool = True) -> None:
        """Update working memory from the event log: new sessions, and operations and spills of other processes."""
        if (live := self._parts.log.live_session()) is None:
            self._leave_session()
            return
        if self.session is None or live.id != self.session.id:
            self._leave_session()
            # If the disk refuses, the next spill reconciles the document with the log.
            with self._parts.reporter.tracking_problem(_SESSION_DOCUMENT):
                self.documents.run(self._parts.compactor.resume, live, waits=waits)
            live = self._parts.log.session(live.id)
            self.last_id = live.spilled_through
        elif live.spilled_through != self.session.spilled_through:
            self.documents.run(self._parts.store.follow, waits=waits)  # another machine may have spilled
        if live.spilled_through - self.last_id > (_UNREAD * self._parts.working.max_operations if waits else 0):
            # Others recorded and spilled many operations unseen by this process: a running epoch would never show them.
            self._parts.epochs.end_epochs()
            if not waits:
                self._parts.tracker.add_usage(self._parts.log.used_tokens(live.id, self.last_id, live.spilled_through))
            self.last_id = live.spilled_through
        self.session, self.behind = live, False
        self._parts.working.drop_through(live.spilled_through)
        self._take(self._parts.log.operations(OperationFilter(session=live.id, after=self.last_id)))

    def _leave_session(self) -> None:
        self.session, self.last_id, self.behind = None, 0, False
        self._parts.working.clear()
        self._parts.epochs.end_epochs()

    def read_new_edits(self, *, waits: bool = True) -> Mapping[str, object]:
        """Apply people's edits since the last call to facts and work items. Return the documents' states."""
        states = self._parts.episodic.states()
        saved = states != self._seen_documents or self._parts.episodic.writers[0].retry_due
        if saved and self.session is None:
            self._parts.epochs.end_epochs()
        if saved and (waits or self._parts.database.can_write_now()):
            with self._parts.reporter.tracking_problem("hand edits"):
                if self._parts.episodic.read_edits():
                    self._events.send("documents_edited")
                    if self.session is not None:
                        with self._parts.reporter.skipping_unwritable(_SESSION_DOCUMENT):
                            self._parts.compactor.settle(self.session)
                self._seen_documents = states
        return states

    def _look_for_faults(self, documents: Mapping[str, object]) -> None:
        """Report faults of documents if any document has changed since the last call."""
        states = documents, self._parts.session.change_token(self.session) if self.session else None
        # A restored permission mends a document without changing its state.
        if states != self._checked_state or self._parts.reporter.has_faults:
            self._checked_state = states
            self._parts.reporter.found_faults([*self._parts.episodic.faults(), *self._parts.session.faults()])

    def record(self, draft: Operation) -> Operation:
        """Write an operation to the event log, then update the tiers."""
        operation, created = self._parts.log.append(draft, self._parts.new_session)
        if created:
            try:
                self._follow(operation)
                self._keep_within_limits(operation)
            except Exception as error:  # any error: a caller that saw it would record the operation a second time
                self._postpone_after_failure(operation.id, error)
            self._events.send("operation_recorded", operation=operation)
        return operation

    def _postpone_after_failure(self, number: int, error: Exception) -> None:
        self._retry_at = number + _RETRY_AFTER
        self._parts.reporter.failed(_SESSION_DOCUMENT, error)
        if not isinstance(error, StorageError):
            logger.error("operation %s is recorded, but processing it further failed", number, exc_info=error)

    def _follow(self, operation: Operation) -> None:
        """Add a recorded operation to working memory, unless operations of other processes before it can wait."""
        if self.session is None or operation.session != self.session.id:
            self._catch_up(waits=False)
        elif operation.id == self.last_id + 1:
            self._take([operation])
        else:
            self._others_record = self.behind = True
            tokens = self._parts.log.used_tokens(operation.session, self.last_id, operation.id)
            much, many = _UNREAD_SHARE * self._parts.tracker.max_tokens, _UNREAD * self._parts.working.max_operations
            if tokens > much or operation.id - self.last_id > many:
                self._catch_up(waits=False)

    def _take(self, operations: Iterable[Operation]) -> None:
        assert self.session is not None
        for operation in operations:
            self.last_id = operation.id
            if not operation.is_stored:
                entry = self._parts.session.entry(operation, self.session.started.date())
                if operation.id > self.session.spilled_through:
                    self._parts.working.add(entry)
                self._parts.epochs.add(entry)
                self._parts.tracker.add_usage(operation.tokens)

    def _keep_within_limits(self, operation: Operation) -> None:
        """Mark a due refresh for the next read; spill or refresh now only if that cannot wait."""
        if self.behind or self.last_id < self._retry_at:
            return
        far = self._parts.working.overflow_factor
        if far > 1 or (far and self._parts.session.is_unchanged(self.session)):
            with self.documents.held(timeout_s=0) as free:
                if free and not self._parts.session.is_unchanged(self.session):
                    self._catch_up()  # others may have spilled: usually, the last process to spill does it again
                if free:
                    self._spill_overflow()
        tracker = self._parts.tracker
        self._refresh_due |= tracker.should_refresh() and self._parts.settings.orchestrator.auto_refresh_enabled
        if not self._refresh_due or (not self.leads and self._refreshed_elsewhere()):
            return
        waited = tracker.used_tokens() >= (tracker.refresh_threshold + _WAITS) * tracker.max_tokens
        # The next operations may be as large, and nothing is worse than a window that overflows.
        if (waited and self.leads) or tracker.would_be_critical(_ROOM * operation.tokens) or self._over_ceiling:
            self.refresh(due=True, waits=False)

    @property
    def leads(self) -> bool:
        """Whether this process does the next refresh: it records alone, or was the last of several to spill."""
        return not self._others_record or self._parts.session.is_unchanged(self.session)

    @property
    def due(self) -> bool:
        """Whether a spill, a refresh or others' operations wait, outside of a transaction that may be rolled back."""
        waits = (self._parts.working.overflows or self._refresh_due) and self.last_id >= self._retry_at
        return (waits or self.behind) and not self._parts.database.in_transaction()

    def settle(self) -> None:
        """Run a due spill or refresh. Failures are reported, not raised, as in `record`."""
        if not self.due:
            return
        try:
            self.sync(waits=False)
            if (self._parts.working.overflows or self._refresh_due) and self._parts.database.can_write_now():
                self.documents.run(self._spill_overflow)
                if self._refresh_due:
                    self.refresh(due=True, waits=False)
        except Exception as error:  # as in `record`: no recorded operation is lost
            self._postpone_after_failure(self.last_id, error)

    def _spill_overflow(self) -> None:
        """Spill what exceeds working memory; mark a refresh as due if the session document becomes too large."""
        wanted = self._parts.settings.orchestrator.auto_refresh_enabled
        if self._spill(self._parts.working.overflow()) and wanted and (excess := self._parts.compactor.excess()) > 0:
            self._refresh_due, self._over_ceiling = True, excess > _CEILING

    def _spill(self, entries: list[Entry]) -> int:
        if not entries or self.session is None:
            return 0
        through = self._parts.session.append_operations(self.session, entries)
        # Update both together: a context shows the document up to this operation, and working memory after it.
        self.session = replace(self.session, spilled_through=through)
        self._parts.working.drop_through(through)
        self._parts.reporter.recovered(_SESSION_DOCUMENT)
        return len(entries)

    def refresh(self, *, due: bool = False, waits: bool = True) -> Refreshed | None:
        """Spill, compact, update the documents, and begin a new epoch; without a session, only update the documents.

        If the refresh is `due` and another process has refreshed meanwhile, only begin a new epoch. Unless it `waits`,
        a refresh stays due while others write documents.
        """
        start, spilled, compacted = time.perf_counter(), 0, Compacted()
        with self.documents.held(timeout_s=None if waits else 0) as free:
            if not free:
                self._refresh_due = True
                return None
            self._refresh_due = self._over_ceiling = self._others_record = False
            if self.session is None:
                if self._parts.reporter.work.view() is not None:
                    self._update_documents(VersionReason.REFRESH)
                return None
            if due and self._refreshed_elsewhere():
                return None
            with self._parts.reporter.skipping_unwritable(_SESSION_DOCUMENT):
                spilled = self._spill(self._parts.working.older_half())
            session = self._parts.log.session(self.session.id)
            if session.status is not SessionStatus.ACTIVE:
                self._catch_up()  # another process has flushed it and may have begun the next session
                return self.refresh()
            self.session = session
            self._parts.compactor.facts.extract(session, self.last_id)
            self._update_documents(VersionReason.REFRESH)
            with self._parts.reporter.skipping_unwritable(_SESSION_DOCUMENT):
                compacted = self._parts.compactor.compact(session)
                self._parts.episodic.short_forms.make(session.id)
        used = self._restart_epoch("refresh")
        self._parts.database.checkpoint()
        took_ms = (time.perf_counter() - start) * 1000
        done = Refreshed(spilled_operations=spilled, compacted=compacted, used_tokens=used, milliseconds=took_ms)
        self._parts.reporter.log_refresh(done)
        self._events.send("refreshed", refreshed=done)
        return done

    def _refreshed_elsewhere(self) -> bool:
        used = self._parts.reporter.used_since_refresh(self._refreshed_at, self.last_id)
        if used is None or used >= self._parts.tracker.budget_tokens:
            return False
        self._refresh_due = self._over_ceiling = False
        self._parts.epochs.end_epochs()
        self._parts.tracker.reset(to=used)
        self._refreshed_at = self.last_id
        return True

    def _restart_epoch(self, for_operation: str) -> int:
        """Begin a new epoch and set the window's usage to its tokens. Return that number."""
        self._parts.epochs.end_epochs()
        used = self.context(for_operation, self._parts.tracker.budget_tokens).tokens
        noted = self._parts.reporter.note_refresh(self._parts.tracker.used_tokens(), used)
        self._parts.tracker.reset(to=used)
        self._refreshed_at = max(noted, self.last_id)
        return used

    def extract_facts(self, most: int) -> None:
        """Extract facts from the oldest unscanned operations, at most `most` of them."""
        if self.session is not None and (waiting := self.unread) and self._parts.database.can_write_now():
            through = self.last_id - waiting + min(waiting, most)
            with self._parts.reporter.tracking_problem("facts"), self.documents.held() as free:
                if free:
                    self._parts.compactor.facts.extract(self._parts.log.session(self.session.id), through)
                    self.session = replace(self.session, judged_through=through)

    @property
    def unread(self) -> int:
        """The number of operations that have not been scanned for facts."""
        if self.session is None or self.session.judged_through >= self.last_id:
            return 0
        return self.last_id - max(self.session.judged_through, self._parts.log.first_operation(self.session.id) - 1)

    def draft_ahead(self) -> bool:
        """Draft one summary that the next refresh will need. Return whether more may be needed."""
        return bool(self.session and self._parts.compactor.draft_ahead(self.session, self._parts.working.older_half()))

    def _update_documents(self, reason: VersionReason) -> None:
        """Write the documents. If somebody saves a document meanwhile, read the edit and try again."""

        def known() -> ProjectView:
            self.read_new_edits()
            recent = [each.short for each in self._parts.working.entries() if not each.operation.is_not_understood]
            return self._parts.reporter.view(self.session.id if self.session else "", recent[-5:])

        self._parts.reporter.track_documents(self._parts.episodic.update(known, reason))

    def context(
        self, for_operation: str, budget_tokens: int, recalled: Recalled | None = None,
        where: SearchFilter = EVERYTHING, *, measure_turns: bool = True,
    ) -> OrchestratorContext:  # fmt: skip
        """Return the current context for a budget; a strict `where` restricts it."""
        if not self._parts.epochs.is_running(budget_tokens):
            self.extract_facts(_READ_FIRST)  # as operations with facts are shown first
        now = self._parts.snapshot(self.session).within(where)
        context = self._parts.epochs.context(for_operation, budget_tokens, now, recalled, measure_turns=measure_turns)
        if not self._window_known and not where.strict and budget_tokens == self._parts.tracker.budget_tokens:
            # The first context of a process: the window holds the full context, not only operations of this process.
            self._window_known = True
            self._parts.tracker.set_usage(max(context.tokens, self._parts.tracker.used_tokens()))
        return context

    def flush(self) -> Path | None:
        """End the session. Return the path of the last archived document; None if there was nothing to flush."""
        self._refresh_due = self._over_ceiling = False
        finished = self._finish_flushes()
        if self.session is None:
            return finished
        with self.documents.held(timeout_s=None):
            if (session := self._begin_flush(self.session)) is None:
                return finished
            # Without a path, another process has finished this flush.
            path = self._finish_flushes() or self._parts.session.place.archive(self._parts.log.session(session.id))
        self._leave_session()
        self._restart_epoch("flush")
        logger.info("session %s flushed to %s", session.id, path)
        self._events.send("session_flushed", session=session, path=path)
        return path

    def _begin_flush(self, session: Session) -> Session | None:
        """Spill everything and close the session to new operations; None if another process has flushed it."""
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
                return session
            self._catch_up()

    def resume(self) -> None:
        """Continue where the last process stopped, even if it crashed."""
        with self.documents.held():
            # Before numbers are given: they may stand in the documents already.
            self._look_for_faults(self.read_new_edits(waits=False))
            with self._parts.reporter.skipping_unwritable(_SESSION_DOCUMENT):
                self.documents.run(self._finish_flushes)
            self._changes, _ = self._parts.database.commit_count()
            self._catch_up()
            self._refreshed_at = self.last_id

    def _finish_flushes(self) -> Path | None:
        """Complete interrupted flushes. Return the path of the last archived document; None if nothing was flushed."""
        path = None
        for session, closing in self._parts.log.flushing():
            with self.documents.held(timeout_s=None):
                self._update_documents(VersionReason.FLUSH)
                path = self._parts.session.finish(session, closing)
        return path

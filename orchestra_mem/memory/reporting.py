"""What a memory reports about itself: the data that documents are rendered from, and its current problems."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from orchestra_mem.core.context.window import past_usage
from orchestra_mem.core.documents.episodic import ProjectView
from orchestra_mem.errors import DocumentError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import Clock
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.tiers.fact_extractor import OUTPUT_WEIGHT
from orchestra_mem.tiers.session import HISTORY
from orchestra_mem.tiers.shared_decisions import origins_of
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import DocumentFault, DocumentName, Json, MustKeep, MustKeepKind, MustKeepStatus, WindowRefresh

if TYPE_CHECKING:
    from orchestra_mem.settings import Settings
    from orchestra_mem.tiers.session_compaction import Refreshed

logger = logging.getLogger(__name__)

# Maximum number of facts of one kind that a document shows; the others are only counted.
_MOST_SHOWN = 250
_LONG_AGO = timedelta(days=14)
_REMOVED, _STANDING = MustKeepStatus.REMOVED, MustKeepStatus.STANDING


@dataclass(slots=True, eq=False)
class Reporter:
    """Collects the data for the episodic documents, and keeps each problem until it is resolved.

    `read_only` says why the memory cannot be written; empty if it can.
    """

    log: EventLog
    ledger: Ledger
    settings: Settings
    _: KW_ONLY
    clock: Clock
    project: str
    work: WorkPlan
    read_only: str = ""
    _failed: dict[str, tuple[str, str]] = field(default_factory=dict, init=False)
    _faults: dict[tuple[str, str], tuple[str, DocumentFault]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Record the problem of a read-only memory."""
        if self.read_only:
            problem = f"the memory can be read, but nothing can be recorded: {self.read_only}"
            self._failed["read-only"] = (self._now(), problem)
            logger.warning("%s", problem)

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")

    def view(self, session: str, recent: Sequence[str]) -> ProjectView:
        """Return the current data for the episodic documents.

        Raises:
            StorageReadOnlyError: The memory, and so its documents, cannot be written.
        """
        if self.read_only:
            raise StorageReadOnlyError(f"updating the documents: this memory is read-only: {self.read_only}")
        sizes = self.settings.documents
        counts, sessions, people = self.ledger.count_must_keeps(), self.log.sessions(), self.ledger.by_people()
        by_hand = [fact for fact in people if not fact.operation]
        facts = {kind: self._shown(kind, people) for kind in MustKeepKind}
        # A decision by hand is in its line already, but tells whether a superseded one is worded alike.
        facts[MustKeepKind.DECISION] += [fact for fact in by_hand if fact.kind is MustKeepKind.DECISION]
        # A command that failed before the previous session began says nothing about now, nor does what a tool or an
        # agent wrote weeks ago, as a server's session may never end. What people said blocks until it ends.
        past = max((each.spilled_through for each in sessions[:-2]), default=0)
        long_ago = self.clock() - _LONG_AGO
        stale = {
            fact.id
            for fact in (*facts[MustKeepKind.FAILURE], *facts[MustKeepKind.OPEN_ITEM])
            if (fact.timestamp <= long_ago and fact.weight <= 1.0)
            or (fact.operation <= past and fact.weight <= OUTPUT_WEIGHT)
        }
        return ProjectView(
            project=self.project,
            updated=self.clock(),
            session=session,
            size_tokens=self.settings.episodic_compaction_tokens,
            operations=self.log.last_operation(),
            sessions=len(sessions),
            facts=facts,
            only_decisions=sizes.only_decisions,
            origins=origins_of(self.log, self.ledger) if sizes.only_decisions else {},
            counts={kind: sum(by_status.values()) - by_status.get(_REMOVED, 0) for kind, by_status in counts.items()},
            standing_counts={kind: by_status.get(_STANDING, 0) for kind, by_status in counts.items()},
            stale=stale,
            recent=recent,
            by_hand=Counter(fact.kind for fact in by_hand if fact.status is not _REMOVED),
            decisions_in_full=sizes.decisions_in_full,
            decisions_in_brief=sizes.decisions_in_brief,
            progress_items=sizes.progress_items,
            work=self.work.view(),
        )

    def _shown(self, kind: MustKeepKind, people: Iterable[MustKeep]) -> list[MustKeep]:
        """Return the facts of a kind that documents may show: those that people reworded, the weightiest, the newest.

        Only of decisions are those included that are not active. Facts that a person wrote are left out: these are in
        the person's own lines.
        """
        sizes = self.settings.documents
        found = [fact for fact in people if fact.kind is kind and fact.operation]
        recorded = partial(self.ledger.must_keeps, kinds=[kind], first_operation=1)
        if kind is not MustKeepKind.DECISION and not sizes.only_decisions:
            found = [fact for fact in found if fact.status is _STANDING]
            found += recorded(status=_STANDING, limit=_MOST_SHOWN, weightiest=True)
        else:
            limit = sizes.decisions_in_full + sizes.decisions_in_brief
            found += recorded(limit=limit, weightiest=True)
            if len(found) >= limit:
                found += recorded(limit=limit)
        return sorted({*found}, key=lambda fact: fact.id)

    # Problems

    def failed(self, subject: str, error: Exception) -> None:
        """Record a problem: log it once, and list it in `problems` until `recovered` is called."""
        if self.read_only and isinstance(error, StorageReadOnlyError):
            return  # already reported, as the cause of all these errors
        if any(str(error).startswith(path) for path, _ in self._faults):
            return  # already reported as a fault of that document
        if subject not in self._failed:
            logger.error("%s: %s; recording continues, and this is retried", subject, error)
        since, _ = self._failed.get(subject, (self._now(), ""))
        self._failed[subject] = (since, str(error))

    def recovered(self, subject: str) -> None:
        """Clear the problem of a subject that works again."""
        if self._failed.pop(subject, None):
            logger.info("%s: works again", subject)

    @contextmanager
    def tracking_problem(self, subject: str) -> Iterator[None]:
        """Record a problem and go on if the block raises `StorageError`; clear the problem if it succeeds."""
        try:
            yield
        except StorageError as error:
            self.failed(subject, error)
        else:
            self.recovered(subject)

    def track_documents(self, failed: Mapping[str, StorageError]) -> None:
        """Record a problem for each document that could not be written; clear the problems of the others."""
        for name in DocumentName:
            with self.tracking_problem(name.value):
                if name in failed:
                    raise failed[name]

    @contextmanager
    def skipping_unwritable(self, document: str) -> Iterator[None]:
        """Record a problem and go on if the block finds that a document must not be written; it is written later."""
        try:
            yield
        except (DocumentError, StorageReadOnlyError) as error:
            self.failed(document, error)

    def note_refresh(self, before_tokens: int, used_tokens: int) -> int:
        """Store window usage before and after a refresh. Return the id of the last operation before the refresh."""
        last = 0
        with self.tracking_problem("window history"):
            last, now = self.log.last_operation(), self.clock()
            refresh = WindowRefresh(operation=last, time=now, before_tokens=before_tokens, used_tokens=used_tokens)
            self.log.add_refresh(refresh)
        return last

    def log_refresh(self, done: Refreshed) -> None:
        """Log what a refresh did, and warn if it exceeded its latency target."""
        logger.info(
            "refreshed: %d operations spilled, %d compacted into %d summaries, %d tokens, %.1f ms",
            done.spilled_operations, done.compacted.covered_operations, len(done.compacted.summaries),
            done.used_tokens, done.milliseconds,
        )  # fmt: skip
        if done.milliseconds > (target_ms := self.settings.orchestrator.refresh_latency_target_ms):
            logger.warning("a refresh took %.0f ms, the target is %d ms", done.milliseconds, target_ms)

    def used_since_refresh(self, after: int, through: int) -> int | None:
        """Return the tokens in use after operation `through`; None if no process refreshed after operation `after`."""
        if self.log.last_refresh() <= after:
            return None
        operations, refreshes = self.log.window_usage(0)
        known = [each for each in operations if each[0] <= through]
        return past_usage(known, refreshes)[-1].used_tokens

    def found_faults(self, faults: Sequence[DocumentFault]) -> None:
        """Replace the known faults of documents. Log each new fault, and each document that no longer has any."""
        known, self._faults = self._faults, {}
        for fault in faults:
            # Without the line number, which changes when the machine writes above it.
            key = fault.path, fault.problem
            if key not in known:
                logger.warning("%s: %s", fault, fault.meanwhile)
            since = known[key][0] if key in known else self._now()
            self._faults[key] = since, fault
        for path in {path for path, _ in known} - {fault.path for fault in faults}:
            logger.info("%s: all faults are resolved", path)

    @property
    def has_faults(self) -> bool:
        """Whether any document was faulty at the last check."""
        return bool(self._faults)

    def check_history(self, older_documents: Callable[[], Sequence[str]]) -> None:
        """Report documents that are older than a new database, until a session that ends later has been flushed."""
        if self.log.last_operation() or any(self.ledger.written(name.value).digest for name in DocumentName):
            told = max((notice.time for notice in self.ledger.notices() if notice.subject == HISTORY), default=None)
            if told and not self.read_only and any(s.ended and s.ended >= told for s in self.log.sessions()):
                self.ledger.resolve_notices(HISTORY, self.clock())
            return
        if not (documents := older_documents()):
            return
        problem = (
            f"the database is new, and documents are older than it: {', '.join(documents)}. They are still used, each "
            "text is kept as a version before it is changed, and their facts and work items count as written by hand. "
            "But the earlier operations and summaries are missing: their numbers in the documents, such as op104, are "
            "unknown or mean newer ones. If obra.db was lost, restore a copy before anything else is recorded"
        )
        if self.read_only:
            self._failed[HISTORY] = (self._now(), problem)
        elif not self.ledger.add_notice(HISTORY, problem, self.clock()):
            return
        logger.warning("%s", problem)

    def problems(self) -> list[Json]:
        """Return the current problems, each with its subject, start time and description."""
        told = [
            *((subject, since, problem) for subject, (since, problem) in self._failed.items()),
            *((PurePath(each.path).stem, since, f"{each}: {each.meanwhile}") for since, each in self._faults.values()),
            *((each.subject, each.time.isoformat(timespec="seconds"), each.text) for each in self.ledger.notices()),
        ]
        return [{"subject": subject, "since": since, "problem": problem} for subject, since, problem in told]

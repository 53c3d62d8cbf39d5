"""What the memory says of itself: the view that documents are written from, and what is off."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from orchestra_mem.core.context.window import past_usage
from orchestra_mem.core.documents.episodic import ProjectView
from orchestra_mem.errors import DocumentError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import Clock, EventLog, Ledger
from orchestra_mem.tiers.session import HISTORY
from orchestra_mem.tiers.shared_decisions import origins_of
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import DocumentFault, DocumentName, Json, MustKeep, MustKeepKind, MustKeepStatus, WindowRefresh

if TYPE_CHECKING:
    from orchestra_mem.settings import Settings
    from orchestra_mem.tiers.session_compaction import Refreshed

logger = logging.getLogger(__name__)

# More facts of a kind than this are never shown in a document; the rest is counted.
_MOST_SHOWN = 250
_REMOVED, _STANDING = MustKeepStatus.REMOVED, MustKeepStatus.STANDING


@dataclass(slots=True, eq=False)
class Reporter:
    """Gathers what is known, and keeps what has failed until it works again.

    Attributes:
        log, ledger, settings, clock: the memory's.
        project: what it is called.
        work: shows the state of work.
        read_only: why nothing may be written, empty where it may.
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
        """Tell where nothing may be written."""
        if self.read_only:
            problem = f"what is here can be read, and nothing can be recorded: {self.read_only}"
            self._failed["read-only"] = (self._now(), problem)
            logger.warning("%s", problem)

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")

    def view(self, session: str, recent: Sequence[str]) -> ProjectView:
        """Return what is known now, for the episodic documents.

        Raises:
            StorageReadOnlyError: these may not be written.
        """
        if self.read_only:
            raise StorageReadOnlyError(
                f"bringing the documents up to date: this memory may be read and not be written: {self.read_only}"
            )
        sizes = self.settings.documents
        counts = self.ledger.count_must_keeps()
        return ProjectView(
            project=self.project,
            updated=self.clock(),
            session=session,
            size_tokens=self.settings.episodic_compaction_tokens,
            operations=self.log.last_operation(),
            sessions=len(self.log.sessions()),
            facts={kind: self._shown(kind) for kind in MustKeepKind},
            only_decisions=sizes.only_decisions,
            origins=origins_of(self.log, self.ledger) if sizes.only_decisions else {},
            counts={kind: sum(by_status.values()) - by_status.get(_REMOVED, 0) for kind, by_status in counts.items()},
            standing_counts={kind: by_status.get(_STANDING, 0) for kind, by_status in counts.items()},
            recent=recent,
            by_hand=Counter(fact.kind for fact in self.ledger.by_hand() if fact.status is not _REMOVED),
            decisions_in_full=sizes.decisions_in_full,
            decisions_in_brief=sizes.decisions_in_brief,
            progress_items=sizes.progress_items,
            work=self.work.view(),
        )

    def _shown(self, kind: MustKeepKind) -> list[MustKeep]:
        """The facts of a kind that documents show: those that stand, and decisions whatever became of them.

        What a person took out is shown no more, and what one wrote stands in the person's own lines.
        """
        sizes = self.settings.documents
        if kind is MustKeepKind.DECISION or sizes.only_decisions:
            limit = sizes.decisions_in_full + sizes.decisions_in_brief
            found = self.ledger.must_keeps(kinds=[kind], limit=limit, weightiest=True)
        else:
            found = self.ledger.must_keeps(kinds=[kind], status=_STANDING, limit=_MOST_SHOWN, weightiest=True)
        return [fact for fact in found if fact.operation and fact.status is not _REMOVED]

    @property
    def knows_work(self) -> bool:
        """Whether there are work items."""
        return self.work.view() is not None

    # What is off

    def failed(self, subject: str, error: Exception) -> None:
        """Take note of something that does not work; told once in the log, and in `problems` as long as it lasts."""
        if self.read_only and isinstance(error, StorageReadOnlyError):
            return  # told already, as the reason of all these
        if any(str(error).startswith(path) for path, _ in self._faults):
            return  # told already, as a fault of that document
        if subject not in self._failed:
            logger.error("%s: %s; recording goes on, this is tried again", subject, error)
        since, _ = self._failed.get(subject, (self._now(), ""))
        self._failed[subject] = (since, str(error))

    def recovered(self, subject: str) -> None:
        """Take note that something works again."""
        if self._failed.pop(subject, None):
            logger.info("%s: works again", subject)

    @contextmanager
    def noting(self, subject: str) -> Iterator[None]:
        """Take note of whether the disk refuses something, and go on where it does."""
        try:
            yield
        except StorageError as error:
            self.failed(subject, error)
        else:
            self.recovered(subject)

    @contextmanager
    def passing_over(self, document: str) -> Iterator[None]:
        """Go on without a document that is to be left as it is; what belongs there waits."""
        try:
            yield
        except (DocumentError, StorageReadOnlyError) as error:
            self.failed(document, error)

    def note_refresh(self, before_tokens: int, used_tokens: int) -> int:
        """Keep for the window's history how full it was before a refresh and after it; behind which operation."""
        last = 0
        with self.noting("window history"):
            last, now = self.log.last_operation(), self.clock()
            refresh = WindowRefresh(operation=last, time=now, before_tokens=before_tokens, used_tokens=used_tokens)
            self.log.add_refresh(refresh)
        return last

    def log_refresh(self, done: Refreshed) -> None:
        """Log what a refresh did, and whether it took longer than it should."""
        logger.info(
            "refreshed: %d operations spilled, %d compacted into %d summaries, %d tokens, %.1f ms",
            done.spilled_operations, done.compacted.covered_operations, len(done.compacted.summaries),
            done.used_tokens, done.milliseconds,
        )  # fmt: skip
        if done.milliseconds > (target_ms := self.settings.orchestrator.refresh_latency_target_ms):
            logger.warning("a refresh took %.0f ms, the target is %d ms", done.milliseconds, target_ms)

    def used_since_refresh(self, after: int, through: int) -> int | None:
        """Tell the tokens in use behind operation `through` if some process refreshed behind `after`, else None."""
        if self.log.last_refresh() <= after:
            return None
        operations, refreshes = self.log.window_usage(0)
        known = [each for each in operations if each[0] <= through]
        return past_usage(known, refreshes)[-1].used_tokens

    def found_faults(self, faults: Sequence[DocumentFault]) -> None:
        """Take note of what is wrong with documents as they lie there: each told once, until it is mended."""
        known, self._faults = self._faults, {}
        for fault in faults:
            # By its words: what the machine writes above it moves the line.
            key = fault.path, fault.problem
            if key not in known:
                logger.warning("%s: %s", fault, fault.meanwhile)
            since = known[key][0] if key in known else self._now()
            self._faults[key] = since, fault
        for path in {path for path, _ in known} - {fault.path for fault in faults}:
            logger.info("%s: in order again", path)

    @property
    def knows_faults(self) -> bool:
        """Whether something was wrong with a document at the last look."""
        return bool(self._faults)

    @property
    def is_new(self) -> bool:
        """Whether the database knows of no operation and no document."""
        return not self.log.last_operation() and not any(
            self.ledger.written(name.value).digest for name in DocumentName
        )

    def tell_of_lost_history(self, documents: Sequence[str]) -> None:
        """Tell, until the next session has been flushed, that the database is new and these documents are older."""
        problem = (
            f"the database is new, and documents are older than it: {', '.join(documents)}. They are served as they "
            "are, and each text is kept as a version before it is changed; the history behind them is not here: no "
            "operation, summary or fact from before, and numbers in them such as K7 or op104 lead nowhere or to newer "
            "ones. If obra.db was lost, put a copy back before recording goes on"
        )
        if self.read_only:
            self._failed[HISTORY] = (self._now(), problem)
        elif not self.ledger.add_notice(HISTORY, problem, self.clock()):
            return
        logger.warning("%s", problem)

    def forget_lost_history(self) -> None:
        """Clear the notice of a new database once a session has been flushed since."""
        told = max((notice.time for notice in self.ledger.notices() if notice.subject == HISTORY), default=None)
        if told and not self.read_only and any(s.ended and s.ended >= told for s in self.log.sessions()):
            self.ledger.resolve_notices(HISTORY, self.clock())

    def problems(self) -> list[Json]:
        """Return what is off, since when, and in what words."""
        told = [
            *((subject, since, problem) for subject, (since, problem) in self._failed.items()),
            *(
                (PurePath(fault.path).stem, since, f"{fault}: {fault.meanwhile}")
                for since, fault in self._faults.values()
            ),
            *((each.subject, each.time.isoformat(timespec="seconds"), each.text) for each in self.ledger.notices()),
        ]
        return [{"subject": subject, "since": since, "problem": problem} for subject, since, problem in told]

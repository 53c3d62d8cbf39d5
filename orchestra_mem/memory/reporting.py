"""What the memory says of itself: the view that documents are written from, closing sections, and what is off."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from orchestra_mem.core.documents.episodic import ProjectView
from orchestra_mem.errors import StorageReadOnlyError
from orchestra_mem.ports import Clock, EventLog, Ledger
from orchestra_mem.tiers.session import HISTORY
from orchestra_mem.tiers.session_summary import closing_sections
from orchestra_mem.tiers.work_plan import WorkPlan
from orchestra_mem.types import (
    DocumentFault,
    DocumentName,
    Json,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Session,
)

logger = logging.getLogger(__name__)

# More facts of a kind than this are never shown in a document; the rest is counted.
_MOST_SHOWN = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSizes:
    """How much the episodic documents hold."""

    tokens: int
    decisions_in_full: int
    decisions_in_brief: int
    progress_items: int


class Reporter:
    """Gathers what is known, and keeps what has failed until it works again."""

    def __init__(
        self,
        *,
        log: EventLog,
        ledger: Ledger,
        clock: Clock,
        project: str,
        window_tokens: int,
        sizes: DocumentSizes,
        work: WorkPlan | None = None,
    ) -> None:
        self._work = work
        self._log = log
        self._ledger = ledger
        self._clock = clock
        self._project = project
        self._window_tokens = window_tokens
        self._sizes = sizes
        self._failed: dict[str, tuple[str, str]] = {}
        self._faults: dict[tuple[str, str], tuple[str, DocumentFault]] = {}
        self._read_only = ""

    def view(self, session: str, recent: Sequence[str]) -> ProjectView:
        """What is known now, for the episodic documents.

        Raises:
            StorageReadOnlyError: these may not be written.
        """
        if self._read_only:
            raise StorageReadOnlyError(
                f"bringing the documents up to date: {self._read_only}: this memory may be read and not be written; "
                "give this user the right to write there, then open it again"
            )
        counts = self._ledger.count_must_keeps()
        decisions = self._sizes.decisions_in_full + self._sizes.decisions_in_brief
        listed: dict[MustKeepKind, list[MustKeep]] = {
            kind: self._ledger.must_keeps(
                kinds=[kind], status=MustKeepStatus.STANDING, limit=_MOST_SHOWN, weightiest=True
            )
            for kind in MustKeepKind
            if kind is not MustKeepKind.DECISION
        }
        listed[MustKeepKind.DECISION] = self._ledger.must_keeps(
            kinds=[MustKeepKind.DECISION], limit=decisions, weightiest=True
        )
        # What a person took out is shown no more, and what one wrote stands in the person's own lines.
        facts = {
            kind: [fact for fact in found if fact.operation and fact.status is not MustKeepStatus.REMOVED]
            for kind, found in listed.items()
        }
        return ProjectView(
            project=self._project,
            updated=self._clock(),
            session=session,
            size_tokens=self._sizes.tokens,
            operations=self._log.last_operation(),
            sessions=len(self._log.sessions()),
            facts=facts,
            counts={
                kind: sum(by_status.values()) - by_status.get(MustKeepStatus.REMOVED, 0)
                for kind, by_status in counts.items()
            },
            standing_counts={kind: by_status.get(MustKeepStatus.STANDING, 0) for kind, by_status in counts.items()},
            recent=recent,
            by_hand=Counter(fact.kind for fact in self._ledger.by_hand() if fact.status is not MustKeepStatus.REMOVED),
            decisions_in_full=self._sizes.decisions_in_full,
            decisions_in_brief=self._sizes.decisions_in_brief,
            progress_items=self._sizes.progress_items,
            work=self._work.view() if self._work else None,
        )

    @property
    def knows_work(self) -> bool:
        """Whether there are work items."""
        return self._work is not None and self._work.view() is not None

    def blank(self) -> ProjectView:
        """The view of a project in which nothing has happened."""
        return ProjectView(
            project=self._project, updated=None, session="", size_tokens=self._sizes.tokens, operations=0, sessions=0
        )

    def closing(self, session: Session) -> str:
        """The sections that the document of an ending session closes with."""
        return closing_sections(self._log, self._ledger, session, self._window_tokens)

    def failed(self, subject: str, error: Exception) -> None:
        """Take note of something that does not work; told once in the log, and in `problems` as long as it lasts."""
        if self._read_only and isinstance(error, StorageReadOnlyError):
            return  # told already, as the reason of all these
        if any(str(error).startswith(path) for path, _ in self._faults):
            return  # told already, as a fault of that document
        if subject not in self._failed:
            logger.error("%s: %s; recording goes on, this is tried again", subject, error)
        since = self._failed.get(subject, (self._clock().isoformat(timespec="seconds"), ""))[0]
        self._failed[subject] = (since, str(error))

    def found_faults(self, faults: Sequence[DocumentFault]) -> None:
        """Take note of what is wrong with documents as they lie there: each told once, until it is mended."""
        known, self._faults = self._faults, {}
        now = self._clock().isoformat(timespec="seconds") if faults else ""
        for fault in faults:
            # By its words: what the machine writes above it moves the line.
            since, _ = known.get((fault.path, fault.problem), ("", fault))
            if not since:
                logger.warning("%s", fault)
            self._faults[fault.path, fault.problem] = since or now, fault
        for path in {path for path, _ in known} - {fault.path for fault in faults}:
            logger.info("%s: in order again", path)

    @property
    def knows_faults(self) -> bool:
        """Whether something was wrong with a document at the last look."""
        return bool(self._faults)

    def read_only(self, why: str) -> None:
        """Take note that nothing may be written, and tell it."""
        self._read_only = why
        problem = (
            f"{why}: what is there can be read, and nothing can be recorded; give this user the right to write there, "
            "then open the memory again"
        )
        self._failed["read-only"] = (self._clock().isoformat(timespec="seconds"), problem)
        logger.warning("%s", problem)

    def look_for_history(self, documents: Callable[[], Sequence[str]]) -> None:
        """Tell, until the next session has been flushed, that the database knows nothing of documents that are there.

        Args:
            documents: names those that are there and say something; asked before any is made.
        """
        if self._log.last_operation() or any(self._ledger.written(name.value).digest for name in DocumentName):
            self._settle_history()
            return
        found = documents()
        if not found:
            return
        problem = (
            f"the database is new, and documents are older than it: {', '.join(found)}. They are served as they are, "
            "and each text is kept as a version before it is changed; the history behind them is not here: no "
            "operation, summary or fact from before, and numbers in them such as K7 or op104 lead nowhere or to newer "
            "ones. If obra.db was lost, put a copy back before recording goes on"
        )
        if self._read_only:
            self._failed[HISTORY] = (self._clock().isoformat(timespec="seconds"), problem)
        elif not self._ledger.add_notice(HISTORY, problem, self._clock()):
            return
        logger.warning("%s", problem)

    def _settle_history(self) -> None:
        """Hold who has gone on with the new database for informed."""
        told = max((notice.time for notice in self._ledger.notices() if notice.subject == HISTORY), default=None)
        if told and not self._read_only and any(s.ended and s.ended >= told for s in self._log.sessions()):
            self._ledger.resolve_notices(HISTORY, self._clock())

    def recovered(self, subject: str) -> None:
        """Take note that something works again."""
        if self._failed.pop(subject, None):
            logger.info("%s: works again", subject)

    def problems(self) -> list[Json]:
        """What is off, since when, and in what words."""
        failing: list[Json] = [
            {"subject": subject, "since": since, "problem": problem}
            for subject, (since, problem) in self._failed.items()
        ]
        damaged: list[Json] = [
            {"subject": PurePath(fault.path).stem, "since": since, "problem": str(fault)}
            for since, fault in self._faults.values()
        ]
        told: list[Json] = [
            {"subject": notice.subject, "since": notice.time.isoformat(timespec="seconds"), "problem": notice.text}
            for notice in self._ledger.notices()
        ]
        return failing + damaged + told

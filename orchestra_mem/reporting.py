"""What the memory says of itself: the view that documents are written from, closing sections, and what is off."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from orchestra_mem.core.documents import ProjectView
from orchestra_mem.ports import Clock, EventLog, Ledger
from orchestra_mem.tiers.session_summary import closing_sections
from orchestra_mem.types import Json, MustKeep, MustKeepKind, MustKeepStatus, Session

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
        self, *, log: EventLog, ledger: Ledger, clock: Clock, project: str, window_tokens: int, sizes: DocumentSizes
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._clock = clock
        self._project = project
        self._window_tokens = window_tokens
        self._sizes = sizes
        self._failed: dict[str, tuple[str, str]] = {}

    def view(self, session: str, recent: Sequence[str]) -> ProjectView:
        """What is known now, for the episodic documents."""
        counts = self._ledger.count_must_keeps()
        decisions = self._sizes.decisions_in_full + self._sizes.decisions_in_brief
        facts: dict[MustKeepKind, list[MustKeep]] = {
            kind: self._ledger.must_keeps(
                kinds=[kind], status=MustKeepStatus.STANDING, limit=_MOST_SHOWN, weightiest=True
            )
            for kind in MustKeepKind
            if kind is not MustKeepKind.DECISION
        }
        facts[MustKeepKind.DECISION] = self._ledger.must_keeps(
            kinds=[MustKeepKind.DECISION], limit=decisions, weightiest=True
        )
        return ProjectView(
            project=self._project,
            updated=self._clock(),
            session=session,
            size_tokens=self._sizes.tokens,
            operations=self._log.last_operation(),
            sessions=len(self._log.sessions()),
            facts=facts,
            counts={kind: sum(by_status.values()) for kind, by_status in counts.items()},
            standing_counts={kind: by_status.get(MustKeepStatus.STANDING, 0) for kind, by_status in counts.items()},
            recent=recent,
            decisions_in_full=self._sizes.decisions_in_full,
            decisions_in_brief=self._sizes.decisions_in_brief,
            progress_items=self._sizes.progress_items,
        )

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
        if subject not in self._failed:
            logger.error("%s: %s; recording goes on, this is tried again", subject, error)
        since = self._failed.get(subject, (self._clock().isoformat(timespec="seconds"), ""))[0]
        self._failed[subject] = (since, str(error))

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
        told: list[Json] = [
            {"subject": notice.subject, "since": notice.time.isoformat(timespec="seconds"), "problem": notice.text}
            for notice in self._ledger.notices()
        ]
        return failing + told

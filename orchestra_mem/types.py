"""The records that pass between layers. Plain data: no behaviour beyond what derives from the fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class DocumentName(StrEnum):
    """The episodic documents; the value is the file's stem."""

    PROJECT_STATE = "project_state"
    WORK_PLAN = "work_plan"
    DECISION_LOG = "decision_log"


class SessionStatus(StrEnum):
    """Where a session is on its way from start to archive."""

    ACTIVE = "active"
    FLUSHING = "flushing"
    ARCHIVED = "archived"


class Author(StrEnum):
    """Who wrote a text."""

    MACHINE = "machine"
    PERSON = "person"


class VersionReason(StrEnum):
    """Why an earlier text of a document was kept."""

    REFRESH = "refresh"
    FLUSH = "flush"
    COMPACTION = "compaction"
    EDIT = "edit"
    RESTORE = "restore"
    CONFLICT = "conflict"


class MustKeepKind(StrEnum):
    """What kind of fact a summary may not lose."""

    DECISION = "decision"
    CONSTRAINT = "constraint"
    FAILURE = "failure"
    COMPLETION = "completion"
    OPEN_ITEM = "open item"
    ROLE = "role"
    INSIGHT = "insight"
    PINNED = "pinned"


class MustKeepStatus(StrEnum):
    """Whether a must-keep still holds."""

    STANDING = "standing"
    SUPERSEDED = "superseded"
    DONE = "done"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing the orchestrator did. Immutable: neither the record nor `data` may be changed.

    `id` counts up over the whole project and never repeats. `timestamp` is aware and in UTC. `tokens` is what the
    operation used of the window: as reported, else as counted over its entry. `entry_tokens` is the size of its
    entry as the session document shows it.
    """

    id: int
    session: str
    type: str
    data: Json
    timestamp: datetime
    tokens: int
    entry_tokens: int
    agent: str | None = None
    critical: bool = False
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrecordedOperation:
    """An operation on its way to the event log, which gives it a number and a session."""

    type: str
    data: Json
    timestamp: datetime
    tokens: int
    entry_tokens: int
    agent: str | None
    critical: bool
    idempotency_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFilter:
    """Which operations are wanted: all that pass every condition given.

    `since` is inclusive and `until` exclusive; `after` is an operation id and exclusive, `through` inclusive.
    """

    session: str | None = None
    type: str | None = None
    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: int | None = None
    through: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run of the orchestrator from start to flush.

    Operations up to `spilled_through` (an operation id, 0 for none) stand in the session document, later ones in
    working memory. `judged_through` is the last operation whose must-keeps were looked for. `archive` is the place of
    an ended session's document, from the folder of the session documents.
    """

    id: str
    started: datetime
    status: SessionStatus
    spilled_through: int = 0
    judged_through: int = 0
    ended: datetime | None = None
    archive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MustKeep:
    """A fact that a summary may not lose.

    `text` is a passage of the operation, word for word (white space apart). `id` is 0 until it is stored;
    `superseded_by` is the id of the must-keep that took its place, 0 where none did; where `status` is standing, of the
    one that perhaps did. `weight` is how much is to be made of who said it, 0 and up: documents that cannot hold all
    show the weightiest. `author` is a person where one wrote or reworded it by hand in a document; `operation` is 0
    where it stands in no operation. `found` is the passage of the operation where `text` is a person's wording of it,
    else empty.
    """

    kind: MustKeepKind
    text: str
    operation: int
    timestamp: datetime
    identifiers: tuple[str, ...] = ()
    status: MustKeepStatus = MustKeepStatus.STANDING
    id: int = 0
    superseded_by: int = 0
    weight: float = 1.0
    author: Author = Author.MACHINE
    found: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary and its line in the loss ledger.

    Level 1 covers the operations `first_operation` to `last_operation` of its session; a higher level covers the
    summaries in `children` and through them the same range. `dropped` are the identifiers of the source that the
    text no longer has, `put_back` the must-keeps that the check found missing and that were added word for word.
    `parent` is the id of the summary that covers this one, 0 while it stands in the document itself. `since` and
    `until` are the times of the first and the last operation. `edited` where people had changed or taken out some of
    what it covers, so that operations alone do not tell what it is of. `verdict` is what came of letting a model
    better it, empty where none was asked, and `seconds` what that took.

    Of level 0 is what a whole session came to, and the short form of a section that makes a document too large:
    `document` names that one, as in `project_state/Architecture`, and `source` is the SHA-256 of its text.
    """

    id: int
    session: str
    level: int
    first_operation: int
    last_operation: int
    operation_count: int
    children: tuple[int, ...]
    text: str
    method: str
    tokens: int
    source_tokens: int
    must_keeps: tuple[int, ...]
    dropped: tuple[str, ...]
    put_back: tuple[str, ...]
    since: datetime
    until: datetime
    created: datetime
    parent: int = 0
    edited: bool = False
    verdict: str = ""
    seconds: float = 0.0
    document: str = ""
    source: str = ""

    @property
    def ratio(self) -> float:
        """Tokens of the text over tokens of what it covers, 0 and up; under 1 is shorter."""
        return self.tokens / self.source_tokens if self.source_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An earlier text of a document. `sequence` counts up over all documents and never repeats."""

    document: str
    sequence: int
    time: datetime
    author: Author
    reason: VersionReason
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that people should know and that stands until it is resolved."""

    time: datetime
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The machine's own last text of a document (None if it never wrote one), before any merging.

    `digest` is the SHA-256 of the whole file as it was then left, and `left` that file's text; `pending`,
    `pending_digest` and `pending_left` are the same of a write that was announced and not yet confirmed.
    """

    text: str | None = None
    digest: str | None = None
    left: str | None = None
    pending: str | None = None
    pending_digest: str | None = None
    pending_left: str | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as people's edits in it were last read, with the numbers known by then.

    `base` is the digest of the machine's own text that it is a change of, `file` that of the file.
    """

    base: str = ""
    file: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """What is wrong with a document on disk; `line` counts from 1, 0 where it concerns the whole file."""

    path: str
    line: int
    problem: str

    def __str__(self) -> str:
        if self.line:
            return f"{self.path}:{self.line}: {self.problem}"
        return self.problem if self.problem.startswith(self.path) else f"{self.path} {self.problem}"


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file system tells of a file without reading it; equal states mean an unchanged file."""

    inode: int
    size_bytes: int
    modified_ns: int

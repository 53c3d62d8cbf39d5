"""The records that pass between layers. Plain data: no behaviour beyond what follows from the fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from orchestra_mem.design_names import ReadByKey

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

AS_GIVEN = "as_given"
"""The field of an operation that holds for a program, as it gave it, what the other fields tell people.

It is stored, redacted and expanded like all others; documents, contexts, facts and search leave it out.
"""

STORED_ITEM = "store_item"
"""The type of an operation that holds what a program has put under a name, and asks for by it; see `integrations`.

Its idempotency key is the name and, behind a blank, a word of its own. Search has the last of each name, and none that
says `deleted`.
"""

STATED_FACT = "stated_fact"
"""The type of an operation that is one fact and no more: a decision or rule that a project has shared or adopted.

Its data hold the fact's `text` and `kind`, and `from`: where it comes from.
"""


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
    """The kinds of facts that a summary may not lose."""

    DECISION = "decision"
    CONSTRAINT = "constraint"
    FAILURE = "failure"
    COMPLETION = "completion"
    OPEN_ITEM = "open item"
    ROLE = "role"
    INSIGHT = "insight"
    PINNED = "pinned"


class MustKeepStatus(StrEnum):
    """Whether a fact still holds."""

    STANDING = "standing"
    SUPERSEDED = "superseded"
    DONE = "done"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(ReadByKey):
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

    @property
    def is_stored(self) -> bool:
        """Whether a program has put it under a name (`STORED_ITEM`): no context and no document shows it by itself."""
        return self.type == STORED_ITEM and self.idempotency_key is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrecordedOperation:
    """An operation that the event log has not stored yet: it has no id and no session."""

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

    `since` is inclusive and `until` exclusive; `after` is an operation id and exclusive, `through` inclusive. An empty
    `agents` is no condition. `idempotency_prefix` is what the idempotency key begins with. Of those that pass, the
    newest `offset` are left out, and of the rest the newest `limit` given.
    """

    session: str | None = None
    type: str | None = None
    agent: str | None = None
    agents: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    after: int | None = None
    through: int | None = None
    limit: int | None = None
    idempotency_key: str | None = None
    idempotency_prefix: str | None = None
    except_types: tuple[str, ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A run of the orchestrator from start to flush.

    Operations up to `spilled_through` (an operation id, 0 for none) are in the session document, later ones in working
    memory. `judged_through` is the last operation that was searched for facts. `archive` is the path of an ended
    session's document, relative to the folder of the session documents.
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

    `text` is a passage of the operation, word for word except for white space. `id` is 0 until the fact is stored.
    `superseded_by` is the id of the fact that replaced it, 0 if none did; while `status` is still standing, the id of
    a fact that may have replaced it. `weight` (0 and up) ranks facts by who said them: documents that cannot show all
    show the heaviest. `author` is a person if one wrote or reworded the fact in a document. `operation` is 0 if the
    fact comes from no operation. `found` is the original passage if `text` is a person's rewording, else empty.
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


EXTRACTIVE = "extractive"
"""The `method` of a summary whose sentences are chosen from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary and its line in the loss ledger.

    A summary of level 1 covers the operations `first_operation` to `last_operation` of its session; one of a higher
    level covers the summaries in `children`, and through them the same range. `dropped` lists the identifiers of the
    source that the text lacks, `put_back` the facts that the check found missing and added word for word. `parent` is
    the id of the summary that covers this one, 0 while the document shows this one itself. `since` and `until` are the
    times of the first and the last operation. `edited` is true if people had changed or deleted part of what it
    covers, so that its operations alone do not explain it. `verdict` is the outcome of the model's attempt to improve
    it, empty if no model was asked, and `seconds` how long that took.

    Level 0 is the summary of a whole session, or the short form of a section of a document that grew too large. Of a
    section, `document` is the name, as in `project_state/Architecture`, and `source` the SHA-256 of its text.
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
        """Tokens of the text divided by tokens of what it covers, 0 and up; under 1 is shorter."""
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
class WindowRefresh:
    """A refresh of the window: behind which operation it came, and how many tokens were used before and after it."""

    operation: int
    time: datetime
    before_tokens: int
    used_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A problem that people should know of, shown until it is resolved."""

    time: datetime
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The machine's own last text of a document (None if it never wrote one), before any merging.

    `digest` is the SHA-256 of the file after that write, and `left` its text. `pending`, `pending_digest` and
    `pending_left` are the same for a write that was announced and not yet confirmed.
    """

    text: str | None = None
    digest: str | None = None
    left: str | None = None
    pending: str | None = None
    pending_digest: str | None = None
    pending_left: str | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as it was when people's edits in it were last read, with the numbers known then.

    `base` is the digest of the machine's text that the edits started from, `file` the digest of the file.
    """

    base: str = ""
    file: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """What is wrong with a document on disk, and what happens until it is mended.

    `line` counts from 1 and is 0 where the whole file is meant.
    """

    path: str
    line: int
    problem: str
    meanwhile: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}" if self.line else f"{self.path} {self.problem}"


@dataclass(frozen=True, slots=True)
class FileState:
    """What the file system knows about a file without reading it; equal states mean an unchanged file."""

    inode: int
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A document of a memory on a server, by a name that is the same on every machine.

    `text` is None once it is gone; where it has moved, `moved_to` is the name that it has since.

    `revision` counts the changes of all files; `machine` made this one.
    """

    name: str
    revision: int
    text: str | None
    moved_to: str = ""
    machine: str = ""

"""The records that pass between layers: plain data, with no behaviour beyond what follows from the fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from orchestra_mem.design_names import MappingAccess

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

VERSION, REPLACES = "version_sha", "replaces"
"""Keys in the data of a versioned operation: the version's digest, and the operation that it replaces (`op 12`)."""

OWNERS_CHAT = ("user", "assistant")
"""The agents under which the owner's chats are recorded: what is said there is the owner's, and no agent's."""

AS_GIVEN = "as_given"
"""Key in an operation's `data` that holds a program's original value; the other fields are its readable form.

The value is stored, redacted and expanded like any field. Documents, contexts, fact extraction and search skip it.
"""

SHOWN = "shown"
"""Key in an operation's `data` that holds an answer from the memory, which is no new memory."""

STORED_ITEM = "store_item"
"""The type of an operation that stores a value under a name, for a program that uses memory as a key-value store.

The idempotency key is the name, a space and a random suffix. Search indexes the latest value of each name, unless its
data has `deleted` set. See `integrations`.
"""

STATED_FACT = "stated_fact"
"""The type of an operation that holds a single fact: a decision or rule that a project has shared or adopted.

Its data has the fact's `text` and `kind`, and its origin in `from`.
"""


class DocumentName(StrEnum):
    """The episodic documents; the value is the file's stem."""

    PROJECT_STATE = "project_state"
    WORK_PLAN = "work_plan"
    DECISION_LOG = "decision_log"


class SessionStatus(StrEnum):
    """The state of a session, from start to archive."""

    ACTIVE = "active"
    FLUSHING = "flushing"
    ARCHIVED = "archived"


class Author(StrEnum):
    """Who wrote a text."""

    MACHINE = "machine"
    PERSON = "person"


class VersionReason(StrEnum):
    """Why an earlier version of a document was kept."""

    REFRESH = "refresh"
    FLUSH = "flush"
    COMPACTION = "compaction"
    EDIT = "edit"
    RESTORE = "restore"
    CONFLICT = "conflict"


class MustKeepKind(StrEnum):
    """The kinds of facts that a summary must keep."""

    DECISION = "decision"
    CONSTRAINT = "constraint"
    FAILURE = "failure"
    COMPLETION = "completion"
    OPEN_ITEM = "open item"
    ROLE = "role"
    INSIGHT = "insight"


class MustKeepStatus(StrEnum):
    """Whether a fact is still valid."""

    STANDING = "standing"
    SUPERSEDED = "superseded"
    DONE = "done"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(MappingAccess):
    """One thing the orchestrator did. Immutable: neither the record nor `data` may be changed.

    `id` counts up over the project and never repeats; before the event log has stored the operation it is 0, and
    `session` is empty. `timestamp` is aware and in UTC. `tokens` is the operation's use of the context window: as the
    caller reported it, else the size of its entry. `entry_tokens` is the size of its entry in the session document.
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
        """Whether this is a named value (`STORED_ITEM`), which contexts and documents do not show."""
        return self.type == STORED_ITEM and self.idempotency_key is not None

    @property
    def is_not_understood(self) -> bool:
        """Whether an orchestrator found no intent in this line, which may state facts but is no other content."""
        return isinstance(self.data, dict) and SHOWN in self.data and self.data.get("intent", "") is None

    @property
    def leaves_nothing(self) -> bool:
        """Whether an orchestrator neither did nor kept what this line says: it only asks, or was not carried out."""
        data = self.data if isinstance(self.data, dict) else {}
        return SHOWN in data and data.get("settled") is True and data.get("intent") not in ("note", "decide", "report")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFilter:
    """A filter for operations: all conditions must hold. None or an empty tuple is no condition.

    `since` is inclusive, `until` exclusive. `after` (exclusive) and `through` (inclusive) are operation ids.
    `idempotency_prefix` matches the beginning of the idempotency key. Of the matching operations, the newest `offset`
    are skipped and the next newest `limit` returned.
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

    Operations up to the id `spilled_through` (0 at first) are in the session document, later operations in working
    memory. `judged_through` is the last operation that was searched for facts. `archive` is the path of an ended
    session's document, relative to the folder of session documents; None if there is no document.
    """

    id: str
    started: datetime
    status: SessionStatus
    spilled_through: int = 0
    judged_through: int = 0
    ended: datetime | None = None
    archive: str | None = None


CUT = " …"
"""Ends a text that was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MustKeep:
    """A fact that a summary must keep: a "fact" in the documentation, a line below `Kept:` in a summary.

    `text` is a passage of the operation, verbatim except for white space, or composed of a field's name, value and
    subject, as in `status: failed (Password hashing)`; ` …` ends it if it was cut. `id` is 0 until the fact is stored.
    `superseded_by` is the id of the fact that replaced this one or, while `status` is standing, may have replaced it; 0
    if there is no such fact. `weight` is 3 if the operation is critical, 2 if a person said it, 0.5 if it has a tool's
    output, else 1: a document that cannot show all facts shows the heaviest. `author` is a person if somebody wrote or
    reworded the fact in a document. `operation` is 0 if the fact comes from no operation. `found` is the original
    passage if a person reworded `text`, else empty. `former` has what a person wrote as `text` and replaced later.
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
    former: tuple[str, ...] = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """All texts of the fact, the present one last."""
        return (*self.former, *filter(None, [self.found]), self.text)

    @property
    def rank(self) -> tuple[bool, float, int]:
        """The importance, as a key to sort by: facts in a person's words are above all others, then weight counts."""
        return self.author is Author.PERSON, self.weight, self.id


EXTRACTIVE = "extractive"
"""The `method` of a summary made of sentences selected from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary and its line in the loss ledger.

    A summary of level 1 covers the operations `first_operation` to `last_operation` of its session. A higher-level
    summary covers the summaries in `children`, and so all of their operations. `dropped` lists identifiers of the
    source that the text lacks, `put_back` the facts that the check found missing and added verbatim. `parent` is the id
    of the summary that covers this one; it is 0 while the document shows this one itself. `since` and `until` are the
    times of the first and the last operation. `edited` is true if people changed or deleted part of the source, so that
    the operations alone do not account for the text. `verdict` is the outcome of the model's attempt to improve the
    summary, empty if no model was asked; `seconds` is the duration of the attempt.

    Level 0 is the summary of an entire session, or the short form of a document section that grew too large. For a
    section, `document` is its name, as in `project_state/Architecture`, and `source` the SHA-256 of its text.
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
        """Tokens of the text divided by tokens of its source, 0 and up; below 1 the summary is shorter."""
        return self.tokens / self.source_tokens if self.source_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An earlier version of a document. `sequence` counts up over all documents and never repeats."""

    document: str
    sequence: int
    time: datetime
    author: Author
    reason: VersionReason
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRefresh:
    """A refresh of the window after `operation`: it brought the usage from `before_tokens` down to `used_tokens`."""

    operation: int
    time: datetime
    before_tokens: int
    used_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A problem reported to people until it is resolved."""

    time: datetime
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The machine's last write of a document, if there was one.

    `text` is the machine's text, `left` the file's text after the merge with people's edits, `digest` the file's
    SHA-256 (empty if a person's file was left as it was). The `pending` fields are those of an unconfirmed write.
    """

    text: str | None = None
    digest: str | None = None
    left: str | None = None
    pending: str | None = None
    pending_digest: str | None = None
    pending_left: str | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as it was when people's edits in it were last read.

    `base` is the digest of the machine's text that the edits started from, `file` the digest of the file. In `text`,
    the facts and items that people added already have their numbers. `earlier` has the digests of the files with edits
    of the same text that were read before, newest first.
    """

    base: str = ""
    file: str = ""
    text: str = ""
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """A fault in a document on disk. `meanwhile` says how the document is treated until the fault is fixed.

    `line` counts from 1; 0 means the entire file.
    """

    path: str
    line: int
    problem: str
    meanwhile: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}" if self.line else f"{self.path} {self.problem}"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's metadata, for detecting changes without reading it: equal states mean an unchanged file."""

    inode: int
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A revision of a document that several machines share over a server.

    `name` is the same on every machine. `text` is None after the document was removed or moved; after a move,
    `moved_to` is its new name. `revision` counts changes over all files; `machine` made this change. `saved`: When a
    person last saved the document, by the clock of that machine; None if it is unknown.
    """

    name: str
    revision: int
    text: str | None
    moved_to: str = ""
    machine: str = ""
    saved: datetime | None = None

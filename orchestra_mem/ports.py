"""The protocols that adapters implement. Tiers and the manager know these, never the adapters behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from orchestra_mem.types import (
    Author,
    DocumentFault,
    FileState,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Notice,
    Operation,
    OperationFilter,
    ReadDocument,
    Session,
    SharedFile,
    Summary,
    UnrecordedOperation,
    Version,
    VersionReason,
    WindowRefresh,
    WrittenDocument,
)

Clock = Callable[[], datetime]
"""Gives the present time, aware and in UTC."""

WritePoint = Callable[[str], None]
"""Called with the name of each step that changes the disk, right before and right after it.

Names are like `spill.append.before`, `spill.append.after`, `record.commit.before`. Programs do not need it; the crash
tests kill the process here.
"""


class TokenCounter(Protocol):
    """Counts tokens as a model does.

    `name` is shown to people; `exact` tells whether it is the serving model's own tokenizer. If `additive` is true,
    the count of a text is the sum of the counts of its pieces, provided that each piece but the first begins with a
    character that is not white space and each piece but the last ends with a line feed. Implementations are safe to
    share between threads.
    """

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    @property
    def additive(self) -> bool: ...

    def count(self, text: str) -> int:
        """Count the tokens of `text`; 0 for the empty string."""


class MemoryDatabase(Protocol):
    """The database of the event log and the ledger, for callers that use both."""

    def in_transaction(self) -> bool:
        """Tell whether this thread is within a transaction that may still be rolled back."""

    def commit_count(self) -> tuple[int, int]:
        """Give two counters: the first changes with commits of other processes, the second with commits made here."""

    def can_write_now(self) -> bool:
        """Tell whether a write would be done at once; False while another process keeps all others from writing."""

    def checkpoint(self) -> None:
        """Write the log back into the database now, so that no record has to wait for it."""

    @property
    def problem(self) -> str | None:
        """Say in words what has happened to its files; None where all is well."""


class EventLog(Protocol):
    """Keeps operations, immutable and numbered, and the sessions that they belong to."""

    def append(self, draft: UnrecordedOperation, new_session: Callable[[], Session]) -> tuple[Operation, bool]:
        """Record an operation; the second value is False if its idempotency key had been recorded before."""

    def operation(self, operation_id: int) -> Operation: ...

    def operations(self, where: OperationFilter) -> list[Operation]: ...

    def outline(self, session: str, after: int) -> list[tuple[int, int, datetime]]: ...

    def count(self, where: OperationFilter | None = None) -> int: ...

    def agents(self, session: str) -> list[str]: ...

    def type_counts(self, session: str) -> dict[str, tuple[int, int]]: ...

    def first_operation(self, session: str) -> int: ...

    def last_operation(self) -> int: ...

    def live_session(self) -> Session | None: ...

    def session(self, session_id: str) -> Session: ...

    def sessions(self) -> list[Session]: ...

    def set_spilled(self, session: str, through: int) -> None: ...

    def begin_flush(self, session: str, closing: str) -> bool: ...

    def flushing(self) -> list[tuple[Session, str]]: ...

    def end_session(self, session: str, *, ended: datetime, archive: str) -> None: ...

    def closing(self, session: str) -> str: ...

    def forget_archive(self, session: str) -> None: ...

    def add_refresh(self, refresh: WindowRefresh) -> None: ...

    def last_refresh(self) -> int: ...

    def window_usage(self, limit: int) -> tuple[list[tuple[int, datetime, int]], list[WindowRefresh]]:
        """Give id, time and tokens of the newest operations, some `limit` of them, and the refreshes among them.

        Where there is a refresh before those, they begin right behind it, and it is the first that is given.
        """


class Ledger(Protocol):
    """Keeps summaries, facts, the machine's last text of each document, and notices to people."""

    def add_summaries(self, summaries: Sequence[Summary]) -> None: ...

    def next_summary_id(self) -> int: ...

    def summary(self, summary_id: int) -> Summary: ...

    def summaries(self, session: str | None = None, *, standing: bool = False) -> list[Summary]:
        """Give the summaries of operations and of summaries, in the order of what they cover."""

    def whole_summaries(
        self, session: str | None = None, *, limit: int | None = None, sections: bool = False
    ) -> list[Summary]:
        """Give the newest summaries of whole sessions and of sections of documents, in the order of their making."""

    def add_must_keeps(
        self, session: str, new: Sequence[MustKeep], changed: Sequence[MustKeep], *, judged_through: int
    ) -> None: ...

    def next_must_keep_id(self) -> int: ...

    def adding_must_keeps(self) -> AbstractContextManager[object]:
        """Keep others from adding must-keeps between asking for the next id and storing what bears it."""

    def must_keeps(
        self,
        *,
        kinds: Sequence[MustKeepKind] = (),
        status: MustKeepStatus | None = None,
        first_operation: int | None = None,
        last_operation: int | None = None,
        limit: int | None = None,
        weightiest: bool = False,
    ) -> list[MustKeep]: ...

    def edit_must_keeps(self, new: Sequence[MustKeep], edited: Sequence[tuple[MustKeep, MustKeep]]) -> None: ...

    def by_hand(self) -> list[MustKeep]: ...

    def must_keeps_by_id(self, numbers: Sequence[int]) -> list[MustKeep]: ...

    def count_must_keeps(self) -> dict[MustKeepKind, dict[MustKeepStatus, int]]: ...

    def must_keep(self, must_keep_id: int) -> MustKeep: ...

    def written(self, document: str) -> WrittenDocument: ...

    def announce_write(self, document: str, text: str, digest: str, left: str) -> None: ...

    def confirm_write(self, document: str, text: str, digest: str, left: str) -> None: ...

    def keep_left(self, document: str, left: str) -> None: ...

    def texts_left(self, document: str) -> Iterator[str]: ...

    def last_read(self, document: str) -> ReadDocument: ...

    def note_read(self, document: str, read: ReadDocument) -> None: ...

    def add_notice(self, subject: str, text: str, time: datetime) -> bool: ...

    def resolve_notices(self, subject: str, time: datetime) -> None: ...

    def notices(self) -> list[Notice]: ...


class DocumentStore(Protocol):
    """Keeps markdown documents: whole texts, appends, versions. Paths are absolute.

    Texts keep every byte: bytes that are not UTF-8 are carried as lone surrogates (`surrogateescape`).
    """

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes and threads from writing documents. Reentrant."""

    def follow(self) -> None:
        """Take over what other machines have written, where they have copies of the documents."""

    def syncing_once(self) -> AbstractContextManager[None]:
        """Write several documents under the lock with as few disk flushes as possible.

        Each folder is flushed once: at the end, or for the versions before the first document is replaced. What is
        written survives power loss for certain only when this has ended without an error.
        """

    def read(self, path: Path) -> str | None:
        """Give the text of a document, None where there is none."""

    def read_to_change(self, path: Path) -> str | None:
        """Give the text of a document that is about to be changed; raise where it must not be."""

    def read_settled(self, path: Path) -> str | None:
        """Give the text of a document; None if there is none, somebody is writing it, or it is not text."""

    def read_shown(self, path: Path) -> str | None:
        """Give as much of a document as can be shown, decoded and clipped; None where there is none."""

    def faults(self, path: Path) -> list[DocumentFault]:
        """List the faults of a document as it lies on the disk, none where there is no document."""

    def state(self, path: Path) -> FileState | None:
        """Give what shows cheaply whether a document has changed, None where there is none."""

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Write a whole document, all or nothing, if it still holds `expected` (None: if it does not exist)."""

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Append to a document; if that fails half-way, the document is as before."""

    def move(self, path: Path, target: Path, *, name: str) -> None: ...

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """Remove a document for good, if it still holds `expected`."""

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason
    ) -> Version: ...

    def versions(self, document: str) -> list[Version]: ...

    def read_version(self, version: Version) -> str: ...

    def prune_versions(self, document: str, keep: int) -> int: ...


class SharedFiles(Protocol):
    """Keeps the newest revision of each document that several machines have copies of."""

    def newer_than(self, revision: int) -> list[SharedFile]:
        """List the files that were changed since a revision, in the order of their changes."""

    def last_revision(self) -> int:
        """Give the number of the newest revision, 0 where there is none."""

    def begin(self, files: Sequence[SharedFile]) -> None:
        """Store the first files, all or none."""

    def put(self, file: SharedFile, *, known: int) -> int:
        """Store a file's new revision, made of the revision `known`; raise where that is not the newest any more."""

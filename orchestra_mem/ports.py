"""The protocols that adapters implement. Tiers and the manager depend on these, never on the adapters."""

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
    Version,
    VersionReason,
    WindowRefresh,
    WrittenDocument,
)

Clock = Callable[[], datetime]
"""Returns the present time, aware and in UTC."""

WritePoint = Callable[[str], None]
"""Called with the name of each step that changes the disk, right before and right after the step.

Names look like `spill.append.before`, `spill.append.after`, `record.commit.before`. Programs do not need write points;
the crash tests kill the process at them.
"""


class TokenCounter(Protocol):
    """Counts tokens. Implementations are safe to share between threads.

    `name` is shown to people. `exact` tells whether the counter uses the serving model's own tokenizer. If `additive`
    is true, the counts of a text's pieces add up to the count of the text, provided that each piece but the last ends
    with a line feed and each piece but the first begins with a character that is not white space.
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
    """The database that holds the event log and the ledger, for callers that use both."""

    def in_transaction(self) -> bool:
        """Check whether this thread is in a transaction, which may still be rolled back."""

    def commit_count(self) -> tuple[int, int]:
        """Return a counter that changes with other processes' commits, and a counter of this process's commits."""

    def can_write_now(self) -> bool:
        """Check whether a write would succeed at once; False while another process holds the write lock."""

    def checkpoint(self) -> None:
        """Run a checkpoint of the write-ahead log now, so that recording does not have to wait for a checkpoint."""

    @property
    def problem(self) -> str | None:
        """A message about a fault of the database files, None if there is none."""


class EventLog(Protocol):
    """Stores operations, immutable and numbered, and the sessions that they belong to."""

    def append(self, draft: Operation, new_session: Callable[[], Session]) -> tuple[Operation, bool]:
        """Record an operation; return (operation, True), or for a known idempotency key (earlier operation, False)."""

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
        """Return (id, time, tokens) of about the `limit` newest operations, and the refreshes in that range.

        If a refresh precedes these operations, the range is extended back to it: this refresh is the first in the list.
        """


class Ledger(Protocol):
    """Stores summaries, facts, the last text that the machine wrote for each document, and notices to people."""

    def add_summaries(self, summaries: Sequence[Summary]) -> None: ...

    def next_summary_id(self) -> int: ...

    def summary(self, summary_id: int) -> Summary: ...

    def summaries(self, session: str | None = None, *, standing: bool = False) -> list[Summary]:
        """Return summaries of level 1 and up in the order of operations; if `standing`, only those without a parent."""

    def level_zero_summaries(
        self, session: str | None = None, *, limit: int | None = None, sections: bool = False
    ) -> list[Summary]:
        """Return the newest level-0 summaries, oldest first: of sessions and document sections, or of sections only."""

    def add_must_keeps(
        self, session: str, judged_through: int, new: Sequence[MustKeep], changed: Sequence[tuple[MustKeep, MustKeep]]
    ) -> None: ...

    def next_must_keep_id(self) -> int: ...

    def adding_must_keeps(self) -> AbstractContextManager[object]:
        """Exclude other writers, so that an id from `next_must_keep_id` stays free until the fact is stored."""

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

    def must_keeps_of(self, operations: Sequence[int]) -> list[MustKeep]: ...

    def count_must_keeps(self) -> dict[MustKeepKind, dict[MustKeepStatus, int]]: ...

    def must_keep(self, must_keep_id: int) -> MustKeep: ...

    def written(self, document: str) -> WrittenDocument: ...

    def announce_write(self, document: str, text: str, digest: str, left: str) -> None: ...

    def confirm_write(self, document: str, text: str, digest: str, left: str) -> None: ...

    def keep_written_file(self, document: str, left: str) -> None: ...

    def written_files(self, document: str) -> Iterator[str]: ...

    def change_former(self, document: str, change: Callable[[str], str]) -> None: ...

    def last_read(self, document: str) -> ReadDocument: ...

    def note_read(self, document: str, read: ReadDocument) -> None: ...

    def add_notice(self, subject: str, text: str, time: datetime) -> bool: ...

    def resolve_notices(self, subject: str, time: datetime) -> None: ...

    def notices(self) -> list[Notice]: ...


class DocumentStore(Protocol):
    """Reads and writes markdown documents and their versions. Paths are absolute.

    Texts preserve every byte: bytes that are not UTF-8 become lone surrogates (`surrogateescape`).
    """

    def lock(self, *, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Keep other processes and threads from writing documents. Reentrant.

        Raises:
            LockTimeoutError: Another one has held the lock for `timeout_s`; by default and at most, as configured.
        """

    def follow(self) -> None:
        """If other machines share the documents, merge in their changes."""

    def syncing_once(self) -> AbstractContextManager[None]:
        """Hold the lock and flush each folder only once, while the block writes several documents.

        The folder of versions is flushed before the first document is replaced, all other folders at the end. Writes
        are certain to survive power loss only after the block has ended without an error.
        """

    def read(self, path: Path) -> str | None:
        """Return the text of a document, None if it does not exist."""

    def read_to_change(self, path: Path) -> str | None:
        """Return the text of a document for a change, None if it does not exist; raise if it must not be changed."""

    def read_settled(self, path: Path) -> str | None:
        """Return the text of a document; None if it does not exist, is open for writing, or is not text."""

    def read_shown(self, path: Path) -> str | None:
        """Return a document's text for display, decoded and clipped; None if it does not exist."""

    def faults(self, path: Path) -> list[DocumentFault]:
        """Return the faults of a document on disk; an empty list if the document does not exist."""

    def state(self, path: Path) -> FileState | None:
        """Return metadata for detecting changes cheaply, None if the document does not exist."""

    def replace(self, path: Path, text: str, *, expected: str | None, name: str) -> None:
        """Replace a document atomically if its text is still `expected`, or create it if `expected` is None."""

    def append(self, path: Path, text: str, *, name: str) -> None:
        """Append to a document; roll back a write that fails half-way."""

    def move(self, path: Path, target: Path, *, name: str) -> None: ...

    def remove(self, path: Path, *, expected: str, name: str) -> None:
        """Remove a document permanently, if its text is still `expected`."""

    def keep_version(
        self, document: str, text: str, *, time: datetime, author: Author, reason: VersionReason, like: Path
    ) -> Version: ...

    def versions(self, document: str) -> list[Version]: ...

    def read_version(self, version: Version) -> str: ...

    def prune_versions(self, document: str, keep: int) -> int: ...

    def change_former(self, path: Path, change: Callable[[str], str]) -> None: ...


class SharedFiles(Protocol):
    """Stores the newest revision of each document that several machines share."""

    def newer_than(self, revision: int) -> list[SharedFile]:
        """Return the files changed after a revision, in the order of their changes."""

    def last_revision(self) -> int:
        """Return the number of the newest revision, 0 if there is none."""

    def put_all(self, files: Sequence[SharedFile]) -> list[int]:
        """Store new revisions of all files or of none, as `put` does, and return their numbers."""

    def put(self, file: SharedFile) -> int:
        """Store a new revision, based on the file's `revision` (0: new file); return its number, raise if outdated."""

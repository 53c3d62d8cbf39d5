"""The ledger: summaries and what they cost, must-keeps, what the machine last wrote, and notices to people."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.errors import NotFoundError
from orchestra_mem.serialize import from_microseconds, to_microseconds
from orchestra_mem.types import (
    Author,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Notice,
    ReadDocument,
    Summary,
    WrittenDocument,
)

_SUMMARY = (
    "SELECT m.id, s.id, m.level, m.first_operation, m.last_operation, m.operation_count, m.parent, m.method, m.tokens, "
    "m.source_tokens, m.since, m.until, m.created, m.details, m.text "
    "FROM summaries m JOIN sessions s ON s.number = m.session"
)
_MUST_KEEP = (
    "SELECT id, kind, text, operation, timestamp, identifiers, status, superseded_by, weight, author, found "
    "FROM must_keeps"
)


class SqliteLedger:
    """Fulfils `ports.Ledger`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_summaries(self, summaries: Sequence[Summary]) -> None:
        """Store summaries under the ids they bear, and note them as the parents of their children, all or none."""
        with self._database.transaction("compaction") as connection:
            for summary in summaries:
                connection.execute(
                    "INSERT INTO summaries (id, session, level, first_operation, last_operation, operation_count, "
                    "method, tokens, source_tokens, since, until, created, details, text) "
                    "VALUES (?, (SELECT number FROM sessions WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        summary.id,
                        summary.session,
                        summary.level,
                        summary.first_operation,
                        summary.last_operation,
                        summary.operation_count,
                        summary.method,
                        summary.tokens,
                        summary.source_tokens,
                        to_microseconds(summary.since),
                        to_microseconds(summary.until),
                        to_microseconds(summary.created),
                        details_of(summary),
                        summary.text,
                    ),
                )
                connection.executemany(
                    "UPDATE summaries SET parent = ? WHERE id = ?", [(summary.id, child) for child in summary.children]
                )

    def next_summary_id(self) -> int:
        """The id that the next summary will bear."""
        with self._database.reading("reading summaries") as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) + 1 FROM summaries").fetchone()[0])

    def summary(self, summary_id: int) -> Summary:
        """A summary by its id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.reading("reading a summary") as connection:
            row = connection.execute(f"{_SUMMARY} WHERE m.id = ?", (summary_id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no summary S{summary_id}; `orchestra-mem losses` lists them")
        return _summary(row)

    def summaries(self, session: str | None = None, *, standing: bool = False) -> list[Summary]:
        """Summaries in the order of what they cover; with `standing` those alone that no other covers."""
        clauses, values = ["m.level > 0"], []
        if session is not None:
            clauses.append("m.session = (SELECT number FROM sessions WHERE id = ?)")
            values.append(session)
        if standing:
            clauses.append("m.parent IS NULL")
        with self._database.reading("listing summaries") as connection:
            rows = connection.execute(
                f"{_SUMMARY} WHERE {' AND '.join(clauses)} ORDER BY m.first_operation, m.level", values
            ).fetchall()
        return [_summary(row) for row in rows]

    def whole_summaries(
        self, session: str | None = None, *, limit: int | None = None, sections: bool = False
    ) -> list[Summary]:
        """The newest summaries of whole sessions and of sections of documents, in the order of their making.

        Args:
            session: the one that they belong to; any where not given.
            limit: how many at most.
            sections: those of sections alone, which cover no operations.
        """
        own = "" if session is None else " AND s.id = ?"
        own += " AND m.first_operation = 0" if sections else ""
        values = [*([] if session is None else [session]), -1 if limit is None else limit]
        with self._database.reading("listing summaries") as connection:
            rows = connection.execute(
                f"{_SUMMARY} WHERE m.level = 0{own} ORDER BY m.id DESC LIMIT ?", values
            ).fetchall()
        return [_summary(row) for row in reversed(rows)]

    def add_must_keeps(
        self, session: str, new: Sequence[MustKeep], changed: Sequence[MustKeep], *, judged_through: int
    ) -> None:
        """Store new must-keeps under the ids they bear, and the changed state of some that stood, all or none."""
        with self._database.transaction("judge") as connection:
            _insert(connection, new)
            connection.executemany(
                "UPDATE must_keeps SET status = ?, superseded_by = ? WHERE id = ?",
                [(fact.status.value, fact.superseded_by, fact.id) for fact in changed],
            )
            steps = Counter((fact.kind, fact.status) for fact in [*new, *changed])
            steps.subtract((fact.kind, MustKeepStatus.STANDING) for fact in changed)
            _count(connection, steps)
            connection.execute("UPDATE sessions SET judged_through = ? WHERE id = ?", (judged_through, session))

    def edit_must_keeps(self, new: Sequence[MustKeep], edited: Sequence[tuple[MustKeep, MustKeep]]) -> None:
        """Store what people wrote, reworded (before, now) and took out by hand, all or none."""
        with self._database.transaction("edit") as connection:
            _insert(connection, new)
            connection.executemany(
                "UPDATE must_keeps SET text = ?, identifiers = ?, status = ?, superseded_by = ?, weight = ?, "
                "author = ?, found = ? WHERE id = ?",
                [(fact.text, json.dumps(fact.identifiers), fact.status.value, fact.superseded_by, fact.weight,
                  fact.author.value, fact.found, fact.id) for _, fact in edited],
            )  # fmt: skip
            steps = Counter((fact.kind, fact.status) for fact in [*new, *(now for _, now in edited)])
            steps.subtract((before.kind, before.status) for before, _ in edited)
            _count(connection, steps)

    def by_hand(self) -> list[MustKeep]:
        """The facts that people have written by hand, which stand in no operation, in the order of their ids."""
        with self._database.reading("listing must-keeps") as connection:
            rows = connection.execute(f"{_MUST_KEEP} WHERE author = 'person' AND operation = 0 ORDER BY id").fetchall()
        return [_must_keep(row) for row in rows]

    def next_must_keep_id(self) -> int:
        """The id that the next must-keep will bear."""
        with self._database.reading("reading must-keeps") as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) + 1 FROM must_keeps").fetchone()[0])

    def must_keeps(
        self,
        *,
        kinds: Sequence[MustKeepKind] = (),
        status: MustKeepStatus | None = None,
        first_operation: int | None = None,
        last_operation: int | None = None,
        limit: int | None = None,
        weightiest: bool = False,
    ) -> list[MustKeep]:
        """Must-keeps in the order of their ids; of more than `limit` the newest, or with `weightiest` those first."""
        clauses: list[str] = ["1"]
        values: list[Any] = []
        # The newest few are found from the end of the table; by an index (which the + forbids) all would be sorted.
        plain = "+" if limit is not None and not weightiest else ""
        if kinds:
            clauses.append(f"{plain}kind IN ({', '.join('?' * len(kinds))})")
            values += [kind.value for kind in kinds]
        for clause, value in (
            (f"{plain}status = ?", status.value if status else None),
            ("operation >= ?", first_operation),
            ("operation <= ?", last_operation),
        ):
            if value is not None:
                clauses.append(clause)
                values.append(value)
        order = "weight DESC, id DESC" if weightiest else "id DESC"
        query = f"{_MUST_KEEP} WHERE {' AND '.join(clauses)} ORDER BY {order}"
        if limit is not None:
            query += f" LIMIT {min(int(limit), 2**63 - 1)}"
        with self._database.reading("listing must-keeps") as connection:
            rows = connection.execute(query, values).fetchall()
        return list(map(_must_keep, sorted(rows)))  # by their ids, of which each stands once

    def must_keeps_by_id(self, numbers: Sequence[int]) -> list[MustKeep]:
        """The must-keeps with these numbers; those that there are none of are passed over."""
        with self._database.reading("reading must-keeps") as connection:
            rows = connection.execute(
                f"{_MUST_KEEP} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)
            ).fetchall()
        return [_must_keep(row) for row in rows]

    def count_must_keeps(self) -> dict[MustKeepKind, dict[MustKeepStatus, int]]:
        """How many must-keeps there are of each kind, by state; kept along, so that it costs the same at any number."""
        with self._database.reading("counting must-keeps") as connection:
            rows = connection.execute("SELECT kind, status, count FROM must_keep_counts").fetchall()
        counts: dict[MustKeepKind, dict[MustKeepStatus, int]] = {kind: {} for kind in MustKeepKind}
        for kind, status, count in rows:
            counts[MustKeepKind(kind)][MustKeepStatus(status)] = count
        return counts

    def must_keep(self, must_keep_id: int) -> MustKeep:
        """A must-keep by its id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.reading("reading a must-keep") as connection:
            row = connection.execute(f"{_MUST_KEEP} WHERE id = ?", (must_keep_id,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no kept fact K{must_keep_id}")
        return _must_keep(row)

    def written(self, document: str) -> WrittenDocument:
        """What the machine last wrote to a document, and what it was about to write if that is not settled."""
        with self._database.reading("reading a document's base") as connection:
            row = connection.execute(
                "SELECT written, digest, coalesce(document, written), pending, pending_digest, "
                "coalesce(pending_document, pending) FROM documents WHERE name = ?",
                (document,),
            ).fetchone()
        return WrittenDocument(*row) if row else WrittenDocument()

    def announce_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Note what is about to be written, the digest of the file that will hold it, and that file's whole text.

        So after a crash it is known whether the file was replaced.
        """
        with self._database.transaction("announce") as connection:
            connection.execute(
                "INSERT INTO documents (name, pending, pending_digest, pending_document) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET pending = excluded.pending, "
                "pending_digest = excluded.pending_digest, pending_document = excluded.pending_document",
                (document, text, digest, None if left == text else _storable(left)),
            )

    def confirm_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Note that the machine's text is in place, in a file with this digest and this whole text."""
        with self._database.transaction("confirm") as connection:
            connection.execute(
                "INSERT INTO documents (name, written, digest, document) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET written = excluded.written, digest = excluded.digest, "
                "document = excluded.document, pending = NULL, pending_digest = NULL, pending_document = NULL",
                (document, text, digest, None if left == text else _storable(left)),
            )

    def last_read(self, document: str) -> ReadDocument:
        """A document as people's edits in it were last read; empty where they never were."""
        with self._database.reading("reading a document as it was read") as connection:
            query = "SELECT base, file, text FROM documents_read WHERE name = ?"
            row = connection.execute(query, (document,)).fetchone()
        return ReadDocument(*row) if row else ReadDocument()

    def note_read(self, document: str, read: ReadDocument) -> None:
        """Note that the edits in a document have been read."""
        with self._database.transaction("read") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO documents_read (name, base, file, text) VALUES (?, ?, ?, ?)",
                (document, read.base, read.file, _storable(read.text)),
            )

    def add_notice(self, subject: str, text: str, time: datetime) -> bool:
        """Tell people something that stands until it is resolved; False where the same stands already."""
        with self._database.transaction("notice") as connection:
            cursor = connection.execute(
                "INSERT INTO notices (time, subject, text) SELECT ?, ?, ? WHERE NOT EXISTS "
                "(SELECT 1 FROM notices WHERE subject = ? AND text = ? AND resolved IS NULL)",
                (to_microseconds(time), subject, text, subject, text),
            )
        return cursor.rowcount == 1

    def resolve_notices(self, subject: str, time: datetime) -> None:
        """Note that what was told about a subject holds no longer."""
        with self._database.transaction("notice") as connection:
            connection.execute(
                "UPDATE notices SET resolved = ? WHERE subject = ? AND resolved IS NULL",
                (to_microseconds(time), subject),
            )

    def notices(self) -> list[Notice]:
        """What people should know, oldest first."""
        with self._database.reading("reading notices") as connection:
            rows = connection.execute(
                "SELECT time, subject, text FROM notices WHERE resolved IS NULL ORDER BY id"
            ).fetchall()
        return [Notice(time=from_microseconds(time), subject=subject, text=text) for time, subject, text in rows]


def _storable(text: str) -> str:
    """What a person wrote, in characters that SQLite takes; bytes that are no UTF-8 are shown as such."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _insert(connection: sqlite3.Connection, facts: Sequence[MustKeep]) -> None:
    connection.executemany(
        "INSERT INTO must_keeps (id, kind, text, operation, timestamp, identifiers, status, superseded_by, weight, "
        "author) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                fact.id,
                fact.kind.value,
                fact.text,
                fact.operation,
                to_microseconds(fact.timestamp),
                json.dumps(fact.identifiers),
                fact.status.value,
                fact.superseded_by,
                fact.weight,
                fact.author.value,
            )
            for fact in facts
        ],
    )


def _count(connection: sqlite3.Connection, steps: Mapping[tuple[MustKeepKind, MustKeepStatus], int]) -> None:
    connection.executemany(
        "INSERT INTO must_keep_counts (kind, status, count) VALUES (?, ?, ?) "
        "ON CONFLICT (kind, status) DO UPDATE SET count = count + excluded.count",
        [(kind.value, status.value, step) for (kind, status), step in steps.items() if step],
    )


def details_of(summary: Summary) -> str:
    """What a summary's row holds besides its columns; what is as in most of them is left out."""
    lists = {name: getattr(summary, name) for name in ("children", "must_keeps", "dropped", "put_back")}
    rare = {name: getattr(summary, name) for name in ("edited", "verdict", "seconds", "document", "source")}
    return json.dumps(lists | {name: value for name, value in rare.items() if value})


def _summary(row: Any) -> Summary:
    (
        number,
        session,
        level,
        first,
        last,
        count,
        parent,
        method,
        tokens,
        source_tokens,
        since,
        until,
        created,
        details,
        text,
    ) = row
    more: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(details).items()
    }
    return Summary(
        id=number,
        session=session,
        level=level,
        first_operation=first,
        last_operation=last,
        operation_count=count,
        parent=parent or 0,
        method=method,
        tokens=tokens,
        source_tokens=source_tokens,
        since=from_microseconds(since),
        until=from_microseconds(until),
        created=from_microseconds(created),
        text=text,
        **more,
    )


# A refresh reads the same facts several times, and again at the next one.
@lru_cache(maxsize=1_536)
def _must_keep(row: tuple[Any, ...]) -> MustKeep:
    number, kind, text, operation, time, identifiers, status, superseded_by, weight, author, found = row
    return MustKeep(
        id=number,
        kind=MustKeepKind(kind),
        text=text,
        operation=operation,
        timestamp=from_microseconds(time),
        identifiers=tuple(json.loads(identifiers)),
        status=MustKeepStatus(status),
        superseded_by=superseded_by,
        weight=weight,
        author=Author(author),
        found=found,
    )

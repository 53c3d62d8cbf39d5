"""Store the ledger: summaries with what they lost, facts, what the machine last wrote, and notices to people."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from typing import Any

from orchestra_mem.adapters.database.event_log import SESSION_NUMBER
from orchestra_mem.adapters.database.statements import Stored, Table, limit_of, matching
from orchestra_mem.errors import NotFoundError
from orchestra_mem.types import (
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Notice,
    ReadDocument,
    Summary,
    WrittenDocument,
)

# What a summary's row holds together as JSON; of the second what is as in most of them is left out.
_LISTS = ("children", "must_keeps", "dropped", "put_back")
_RARE = ("edited", "verdict", "seconds", "document", "source")
_SUMMARIES = Table(
    "summaries",
    Summary,
    read={
        "session": "(SELECT id FROM sessions WHERE number = summaries.session)",
        "parent": "coalesce(parent, 0)",
    },
    write={"session": SESSION_NUMBER, "parent": "nullif(?, 0)"},
    but=(*_LISTS, *_RARE),
)
_MUST_KEEPS = Table("must_keeps", MustKeep)
# Of a document so much is kept of the texts that it had, in bytes as packed: some hundreds of texts.
_LEFT_BYTES = 2_000_000
_LEFT_LONG_AGO = (
    "DELETE FROM documents_left WHERE id IN (SELECT id FROM (SELECT id, sum(length(text)) OVER (ORDER BY id DESC) AS "
    "size FROM documents_left WHERE name = ?) WHERE size > ?)"
)
_NOTICES = Table("notices", Notice)
# A refresh reads the same facts several times, and again at the next one.
_must_keep = lru_cache(maxsize=1_536)(_MUST_KEEPS.load)


class SqlLedger(Stored):
    """Fulfils `ports.Ledger`."""

    def add_summaries(self, summaries: Sequence[Summary]) -> None:
        """Store summaries under the ids they bear, and note them as the parents of their children, all or none."""
        with self._database.transaction("compaction"):
            for summary in summaries:
                values = _SUMMARIES.values(summary, details=details_of(summary))
                self._database.write("compaction", _SUMMARIES.insert("details"), values)
                self._database.write_all(
                    "compaction",
                    "UPDATE summaries SET parent = ? WHERE id = ?",
                    [(summary.id, child) for child in summary.children],
                )

    def next_summary_id(self) -> int:
        """Return the id that the next summary will bear."""
        return int(self._database.value("reading summaries", "SELECT coalesce(max(id), 0) + 1 FROM summaries"))

    def summary(self, summary_id: int) -> Summary:
        """Return a summary by its id.

        Raises:
            NotFoundError: there is none.
        """
        found = self._summaries("reading a summary", "WHERE id = ?", (summary_id,))
        if not found:
            raise NotFoundError(f"there is no summary S{summary_id}; `orchestra-mem losses` lists them")
        return found[0]

    def summaries(self, session: str | None = None, *, standing: bool = False) -> list[Summary]:
        """Return summaries in the order of what they cover; with `standing` those alone that no other covers."""
        condition, values = matching({f"session = {SESSION_NUMBER}": session, "level > ?": 0})
        condition += " AND parent IS NULL" if standing else ""
        return self._summaries("listing summaries", f"{condition} ORDER BY first_operation, level", values)

    def whole_summaries(
        self, session: str | None = None, *, limit: int | None = None, sections: bool = False
    ) -> list[Summary]:
        """Return the newest summaries of whole sessions and of sections of documents, in the order of their making.

        Args:
            session: the one that they belong to; any where not given.
            limit: how many at most.
            sections: those of sections alone, which cover no operations.
        """
        condition, values = matching(
            {
                "level = ?": 0,
                f"session = {SESSION_NUMBER}": session,
                "first_operation = ?": 0 if sections else None,
            }
        )
        tail = f"{condition} ORDER BY id DESC LIMIT ?"
        return self._summaries("listing summaries", tail, [*values, limit_of(limit)])[::-1]

    def _summaries(self, name: str, tail: str, values: Sequence[object]) -> list[Summary]:
        rows = self._database.rows(name, f"SELECT {_SUMMARIES.columns}, details FROM summaries {tail}", values)
        return [_SUMMARIES.load(row, **_unpacked(row[-1])) for row in rows]

    def add_must_keeps(
        self, session: str, new: Sequence[MustKeep], changed: Sequence[MustKeep], *, judged_through: int
    ) -> None:
        """Store new must-keeps under the ids they bear, and the changed state of some that stood, all or none."""
        with self._database.transaction("judge"):
            self._insert("judge", new)
            self._database.write_all(
                "judge",
                "UPDATE must_keeps SET status = ?, superseded_by = ? WHERE id = ?",
                [(fact.status, fact.superseded_by, fact.id) for fact in changed],
            )
            steps = Counter((fact.kind, fact.status) for fact in [*new, *changed])
            steps.subtract((fact.kind, MustKeepStatus.STANDING) for fact in changed)
            self._count("judge", steps)
            self._database.write(
                "judge", "UPDATE sessions SET judged_through = ? WHERE id = ?", (judged_through, session)
            )

    def edit_must_keeps(self, new: Sequence[MustKeep], edited: Sequence[tuple[MustKeep, MustKeep]]) -> None:
        """Store what people wrote, reworded (before, now) and took out by hand, all or none."""
        with self._database.transaction("edit"):
            self._insert("edit", new)
            self._database.write_all("edit", _MUST_KEEPS.update(), [_MUST_KEEPS.values(fact) for _, fact in edited])
            steps = Counter((fact.kind, fact.status) for fact in [*new, *(now for _, now in edited)])
            steps.subtract((before.kind, before.status) for before, _ in edited)
            self._count("edit", steps)

    def _insert(self, name: str, facts: Sequence[MustKeep]) -> None:
        self._database.write_all(name, _MUST_KEEPS.insert(), map(_MUST_KEEPS.values, facts))

    def _count(self, name: str, steps: Mapping[tuple[MustKeepKind, MustKeepStatus], int]) -> None:
        self._database.write_all(
            name,
            "INSERT INTO must_keep_counts (kind, status, count) VALUES (?, ?, ?) "
            "ON CONFLICT (kind, status) DO UPDATE SET count = must_keep_counts.count + excluded.count",
            [(*key, step) for key, step in steps.items() if step],
        )

    def by_hand(self) -> list[MustKeep]:
        """Return the facts that people have written by hand, which stand in no operation, in the order of their ids."""
        return self._facts("listing must-keeps", "WHERE author = 'person' AND operation = 0 ORDER BY id")

    def adding_must_keeps(self) -> AbstractContextManager[object]:
        """Keep others from adding must-keeps between asking for the next id and storing what bears it."""
        return self._database.transaction("judge")

    def next_must_keep_id(self) -> int:
        """Return the id that the next must-keep will bear."""
        return int(self._database.value("reading must-keeps", "SELECT coalesce(max(id), 0) + 1 FROM must_keeps"))

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
        # The newest few are found from the end of the table; by an index, which expressions hide, all would be sorted.
        kind, state = "kind", "status"
        if limit is not None and not weightiest:
            kind, state = "coalesce(kind, '')", "coalesce(status, '')"
        condition, values = matching(
            {
                f"{kind} IN (?)": tuple(kinds),
                f"{state} = ?": status,
                "operation >= ?": first_operation,
                "operation <= ?": last_operation,
            }
        )
        order = "weight DESC, id DESC" if weightiest else "id DESC"
        tail = f"{condition} ORDER BY {order} LIMIT ?"
        found = self._facts("listing must-keeps", tail, [*values, limit_of(limit)])
        return sorted(found, key=lambda fact: fact.id)

    def must_keeps_by_id(self, numbers: Sequence[int]) -> list[MustKeep]:
        """Return the must-keeps with these numbers; those that there are none of are passed over."""
        return self._facts(
            "reading must-keeps",
            "WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps(list(numbers)),),
        )

    def _facts(self, name: str, tail: str, values: Sequence[object] = ()) -> list[MustKeep]:
        return list(map(_must_keep, self._database.rows(name, f"{_MUST_KEEPS.select} {tail}", values)))

    def count_must_keeps(self) -> dict[MustKeepKind, dict[MustKeepStatus, int]]:
        """How many must-keeps there are of each kind, by state; kept along, so that it costs the same at any number."""
        counts: dict[MustKeepKind, dict[MustKeepStatus, int]] = {kind: {} for kind in MustKeepKind}
        query = "SELECT kind, status, count FROM must_keep_counts"
        for kind, status, count in self._database.rows("counting must-keeps", query):
            counts[MustKeepKind(kind)][MustKeepStatus(status)] = count
        return counts

    def must_keep(self, must_keep_id: int) -> MustKeep:
        """Return a must-keep by its id.

        Raises:
            NotFoundError: there is none.
        """
        found = self._facts("reading a must-keep", "WHERE id = ?", (must_keep_id,))
        if not found:
            raise NotFoundError(f"there is no kept fact K{must_keep_id}")
        return found[0]

    def written(self, document: str) -> WrittenDocument:
        """Return what the machine last wrote to a document, and what it was about to write if that is not settled."""
        rows = self._database.rows(
            "reading a document's base",
            "SELECT written, digest, coalesce(document, written), pending, pending_digest, "
            "coalesce(pending_document, pending) FROM documents WHERE name = ?",
            (document,),
        )
        return WrittenDocument(*rows[0]) if rows else WrittenDocument()

    def announce_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Note what is about to be written, the digest of the file that will hold it, and that file's whole text.

        So after a crash it is known whether the file was replaced.
        """
        self._database.write(
            "announce",
            "INSERT INTO documents (name, pending, pending_digest, pending_document) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET pending = excluded.pending, "
            "pending_digest = excluded.pending_digest, pending_document = excluded.pending_document",
            (document, text, digest, None if left == text else left),
        )

    def confirm_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Note that the machine's text is in place, in a file with this digest and this whole text."""
        self._database.write(
            "confirm",
            "INSERT INTO documents (name, written, digest, document) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET written = excluded.written, digest = excluded.digest, "
            "document = excluded.document, pending = NULL, pending_digest = NULL, pending_document = NULL",
            (document, text, digest, None if left == text else left),
        )

    def keep_left(self, document: str, left: str) -> None:
        """Keep the whole text in which the machine has left a document: an editor may have it open for hours."""
        packed = zlib.compress(left.encode("utf-8", "surrogateescape"), level=1)
        with self._database.transaction("left"):
            self._database.write("left", "INSERT INTO documents_left (name, text) VALUES (?, ?)", (document, packed))
            self._database.write("left", _LEFT_LONG_AGO, (document, _LEFT_BYTES))

    def texts_left(self, document: str) -> Iterator[str]:
        """Yield the whole texts in which the machine has left a document, oldest first; of the oldest none is kept."""
        query = "SELECT text FROM documents_left WHERE name = ? ORDER BY id"
        for (packed,) in self._database.rows("reading what an editor had open", query, (document,)):
            yield zlib.decompress(packed).decode("utf-8", "surrogateescape")

    def last_read(self, document: str) -> ReadDocument:
        """Return a document as people's edits in it were last read; empty where they never were."""
        query = "SELECT base, file, text FROM documents_read WHERE name = ?"
        rows = self._database.rows("reading a document as it was read", query, (document,))
        return ReadDocument(*rows[0]) if rows else ReadDocument()

    def note_read(self, document: str, read: ReadDocument) -> None:
        """Note that the edits in a document have been read."""
        self._database.write(
            "read",
            "INSERT INTO documents_read (name, base, file, text) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
            "SET base = excluded.base, file = excluded.file, text = excluded.text",
            (document, read.base, read.file, read.text),
        )

    def add_notice(self, subject: str, text: str, time: datetime) -> bool:
        """Tell people something that stands until it is resolved; False where the same stands already."""
        added = self._database.write(
            "notice",
            "INSERT INTO notices (time, subject, text) SELECT ?, ?, ? WHERE NOT EXISTS "
            "(SELECT 1 FROM notices WHERE subject = ? AND text = ? AND resolved IS NULL)",
            (time, subject, text, subject, text),
        )
        return added.rowcount == 1

    def resolve_notices(self, subject: str, time: datetime) -> None:
        """Note that what was told about a subject holds no longer."""
        self._database.write(
            "notice", "UPDATE notices SET resolved = ? WHERE subject = ? AND resolved IS NULL", (time, subject)
        )

    def notices(self) -> list[Notice]:
        """Return what people should know, oldest first."""
        return self._database.find("reading notices", _NOTICES, "WHERE resolved IS NULL ORDER BY id")


def details_of(summary: Summary) -> str:
    """Return what a summary's row holds besides its columns, as JSON."""
    rare = {name: getattr(summary, name) for name in _RARE}
    return json.dumps(
        {name: getattr(summary, name) for name in _LISTS} | {name: value for name, value in rare.items() if value}
    )


def _unpacked(details: str) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(details).items()}

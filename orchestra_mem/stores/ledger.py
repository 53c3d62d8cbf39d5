"""Store of the ledger: summaries with their losses, facts, the machine's last text of each document, and notices."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from orchestra_mem.core.documents.signature import digest
from orchestra_mem.core.summaries.kept import kept_numbers, with_states
from orchestra_mem.errors import NotFoundError
from orchestra_mem.stores.event_log import SESSION_NUMBER
from orchestra_mem.stores.statements import FreeText, SqlDatabase, Stored, Table, limit_of, matching
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus, Notice, ReadDocument, Summary, WrittenDocument

# Fields of a summary that are stored in one JSON column, which omits the empty fields of `_RARE`.
_LISTS = ("children", "must_keeps", "dropped", "put_back")
_RARE = ("edited", "verdict", "seconds", "document", "source")
_SUMMARIES = Table(
    "summaries",
    Summary,
    read={"session": "(SELECT id FROM sessions WHERE number = summaries.session)", "parent": "coalesce(parent, 0)"},
    write={"session": SESSION_NUMBER, "parent": "nullif(?, 0)"},
    but=(*_LISTS, *_RARE),
)
_MUST_KEEPS = Table("must_keeps", MustKeep)
# Compressed bytes of former texts kept for each document: enough for several hundred texts.
_LEFT_BYTES = 2_000_000
_READ_FILES = 50  # most earlier saves to recognise, of edits of one text
_LEFT_LONG_AGO = (
    "DELETE FROM documents_left WHERE id IN (SELECT id FROM (SELECT id, sum(length(text)) OVER (ORDER BY id DESC) AS "
    "size FROM documents_left WHERE name = ?) WHERE size > ?)"
)
_NOTICES = Table("notices", Notice)
FREE_TEXT = (
    FreeText("summaries", ("text",), json=("details",), keys=("dropped", "put_back", "document")),
    FreeText("must_keeps", ("text", "found"), json=("identifiers", "former")),
    FreeText("documents", ("written", "document", "pending", "pending_document")),
    FreeText("documents_read", ("text",)),
    FreeText("notices", ("text",)),
)
_NEWEST = (
    "SELECT asked.value, (SELECT json_group_array(fact) FROM "
    "(SELECT fact FROM must_keep_words WHERE word = CAST(asked.value AS BIGINT) ORDER BY fact DESC LIMIT ?) AS newest) "
    "FROM json_each(?) AS asked"
)
# Each refresh reads the same facts several times, so decoded rows are cached.
_must_keep = lru_cache(maxsize=1_536)(_MUST_KEEPS.load)


class FactWords(Stored):
    """Index of the facts by hashed keys, such as their words, to find the few facts that a later fact may end.

    A fact that was added or changed is in `unindexed` until `index` stores its keys.
    """

    def unindexed(self) -> list[int]:
        """Return the ids of the facts whose keys are not stored yet, or may have changed."""
        return [number for (number,) in self._database.rows("SELECT id FROM must_keeps WHERE indexed = 0 ORDER BY id")]

    def index(self, keys: Mapping[int, Collection[str]]) -> None:
        """Store the keys of facts, by fact id, instead of their former ones; to be called in a transaction."""
        numbers = [(number,) for number in keys]
        self._database.write_all("index", "DELETE FROM must_keep_words WHERE fact = ?", numbers)
        rows = {(_hashed(key), number) for number, own in keys.items() for key in own}
        self._database.write_all("index", "INSERT INTO must_keep_words (word, fact) VALUES (?, ?)", sorted(rows))
        self._database.write_all("index", "UPDATE must_keeps SET indexed = 1 WHERE id = ?", numbers)

    def newest(self, keys: Iterable[str], most: int) -> dict[str, dict[int, None]]:
        """Return the ids of the newest facts with each key, ascending, at most `most` a key; unused keys are absent."""
        asked = {_hashed(key): key for key in keys}
        found = self._database.rows(_NEWEST, (most, [*asked])) if asked else []
        listed = {asked[int(word)]: json.loads(numbers) for word, numbers in found}
        return {key: dict.fromkeys(sorted(numbers)) for key, numbers in listed.items() if numbers}


def _hashed(key: str) -> int:
    """Hash a key to 63 bits, so that the index holds no text and two keys hardly ever meet."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


class Ledger(Stored):
    """Stores summaries, facts, the last text that the machine wrote for each document, and notices to people.

    Attributes:
        words: Index of the facts by their words.
        key: Names this ledger in the documents that it numbers; empty if nothing is to be written.
    """

    def __init__(self, database: SqlDatabase, key: str = "") -> None:
        super().__init__(database)
        self.key = key
        self.words = FactWords(database)

    def add_summaries(self, summaries: Sequence[Summary]) -> None:
        """Store summaries under their own ids and set them as parents of their children, in one transaction."""
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
        """Return the id for the next summary."""
        return int(self._database.value("SELECT coalesce(max(id), 0) + 1 FROM summaries"))

    def summary(self, summary_id: int) -> Summary:
        """Return a summary by its id.

        Raises:
            NotFoundError: No such summary exists.
        """
        found = self._summaries("WHERE id = ?", (summary_id,))
        if not found:
            raise NotFoundError(f"there is no summary S{summary_id}; `orchestra-mem losses` lists them")
        return found[0]

    def summaries(self, session: str | None = None, *, standing: bool = False) -> list[Summary]:
        """Return summaries of level 1 and up, in operation order; with `standing`, only summaries without a parent."""
        condition, values = matching({f"session = {SESSION_NUMBER}": session, "level > ?": 0})
        condition += " AND parent IS NULL" if standing else ""
        return self._summaries(f"{condition} ORDER BY first_operation, level", values)

    def level_zero_summaries(
        self, session: str | None = None, *, limit: int | None = None, sections: bool = False
    ) -> list[Summary]:
        """Return the newest summaries of entire sessions and of document sections, in order of creation.

        Args:
            session: Only summaries of this session.
            limit: Maximum number of summaries, None for all.
            sections: Only summaries of document sections, which cover no operations.
        """
        condition, values = matching(
            {"level = ?": 0, f"session = {SESSION_NUMBER}": session, "first_operation = ?": 0 if sections else None}
        )
        return self._summaries(f"{condition} ORDER BY id DESC LIMIT ?", [*values, limit_of(limit)])[::-1]

    def _summaries(self, tail: str, values: Sequence[object]) -> list[Summary]:
        rows = self._database.rows(f"SELECT {_SUMMARIES.columns}, details FROM summaries {tail}", values)
        return [_SUMMARIES.load(row, **_unpacked(row[-1])) for row in rows]

    def add_must_keeps(
        self, session: str, judged_through: int, new: Sequence[MustKeep], changed: Sequence[tuple[MustKeep, MustKeep]]
    ) -> None:
        """Store the must-keeps found in a session up to an operation, as `edit_must_keeps` does, in one transaction."""
        with self._database.transaction("judge"):
            self.edit_must_keeps(new, changed)
            query = "UPDATE sessions SET judged_through = ? WHERE id = ?"
            self._database.write("judge", query, (judged_through, session))

    def edit_must_keeps(self, new: Sequence[MustKeep], edited: Sequence[tuple[MustKeep, MustKeep]]) -> None:
        """Store new must-keeps and overwrite edited ones, given as (before, after) pairs, in one transaction."""
        steps = Counter((fact.kind, fact.status) for fact in [*new, *(now for _, now in edited)])
        steps.subtract((before.kind, before.status) for before, _ in edited)
        with self._database.transaction("edit"):
            self._database.write_all("edit", _MUST_KEEPS.insert(), map(_MUST_KEEPS.values, new))
            self._database.write_all(
                "edit", _MUST_KEEPS.update("indexed"), [_MUST_KEEPS.values(fact, indexed=0) for _, fact in edited]
            )
            self._database.write_all(
                "edit",
                "INSERT INTO must_keep_counts (kind, status, count) VALUES (?, ?, ?) "
                "ON CONFLICT (kind, status) DO UPDATE SET count = must_keep_counts.count + excluded.count",
                [(*key, step) for key, step in steps.items() if step],
            )

    def by_people(self) -> list[MustKeep]:
        """Return the facts that people wrote, reworded or removed, by ascending id."""
        return self._facts("WHERE author = 'person' ORDER BY id")

    def adding_must_keeps(self) -> AbstractContextManager[object]:
        """Open a transaction that keeps others from adding must-keeps between `next_must_keep_id` and the insert."""
        return self._database.transaction("judge")

    def last_operation(self) -> int:
        """Return the id of the last operation with a must-keep; 0 without one."""
        return int(self._database.value("SELECT coalesce(max(operation), 0) FROM must_keeps"))

    def next_must_keep_id(self) -> int:
        """Return the id for the next must-keep."""
        return int(self._database.value("SELECT coalesce(max(id), 0) + 1 FROM must_keeps"))

    def must_keeps(
        self,
        *,
        kinds: Sequence[MustKeepKind] = (),
        status: MustKeepStatus | None = None,
        first_operation: int | None = None,
        last_operation: int | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        weightiest: bool = False,
    ) -> list[MustKeep]:
        """Return must-keeps by ascending id; with a `limit`, the newest or, with `weightiest`, the heaviest ones."""
        # `coalesce` keeps SQLite from using the index on kind or status: with a limit or a range of operations, fewer
        # rows are read from the table's end, or by operation.
        kind, state = "kind", "status"
        if not weightiest and (limit is not None or first_operation is not None):
            kind, state = "coalesce(kind, '')", "coalesce(status, '')"
        condition, values = matching(
            {
                f"{kind} IN (?)": tuple(kinds),
                f"{state} = ?": status,
                "operation >= ?": first_operation,
                "operation <= ?": last_operation,
                "timestamp >= ?": since,
            }
        )
        order = "weight DESC, id DESC" if weightiest else "id DESC"
        found = self._facts(f"{condition} ORDER BY {order} LIMIT ?", [*values, limit_of(limit)])
        return sorted(found, key=lambda fact: fact.id)

    def must_keeps_by_id(self, numbers: Sequence[int]) -> list[MustKeep]:
        """Return the must-keeps with these ids; unknown ids are skipped."""
        return self._facts("WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", ([*numbers],))

    def must_keeps_of(self, operations: Sequence[int]) -> list[MustKeep]:
        """Return the must-keeps found in these operations."""
        values = ([*operations],)
        return self._facts("WHERE operation IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY id", values)

    def _facts(self, tail: str, values: Sequence[object] = ()) -> list[MustKeep]:
        return list(map(_must_keep, self._database.rows(f"{_MUST_KEEPS.select} {tail}", values)))

    def with_states(self, texts: Sequence[str]) -> list[str]:
        """Return summaries, or parts of them, with the present states of their facts, without what people removed."""
        numbers = [number for text in texts for number in kept_numbers(text)]
        facts = {fact.id: fact for fact in self.must_keeps_by_id(numbers)} if numbers else {}
        # Naming all kinds lets the query use the index on (kind, status) instead of scanning all facts.
        removed = self.must_keeps(kinds=[*MustKeepKind], status=MustKeepStatus.REMOVED) if texts else []
        return [with_states(text, facts, removed) for text in texts]

    def count_must_keeps(self) -> dict[MustKeepKind, dict[MustKeepStatus, int]]:
        """Return the number of must-keeps by kind and status, from counters kept up to date with each change."""
        counts: dict[MustKeepKind, dict[MustKeepStatus, int]] = {kind: {} for kind in MustKeepKind}
        query = "SELECT kind, status, count FROM must_keep_counts"
        for kind, status, count in self._database.rows(query):
            counts[MustKeepKind(kind)][MustKeepStatus(status)] = count
        return counts

    def must_keep(self, must_keep_id: int) -> MustKeep:
        """Return a must-keep by its id.

        Raises:
            NotFoundError: No such must-keep exists.
        """
        return self._database.one(_MUST_KEEPS, "id = ?", must_keep_id, f"there is no fact K{must_keep_id}")

    def written(self, document: str) -> WrittenDocument:
        """Return the machine's last text of a document, and the text of an announced write not yet confirmed."""
        query = (
            "SELECT written, digest, coalesce(document, written), pending, pending_digest, "
            "coalesce(pending_document, pending) FROM documents WHERE name = ?"
        )
        rows = self._database.rows(query, (document,))
        return WrittenDocument(*rows[0]) if rows else WrittenDocument()

    def announce_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Record an upcoming write, so that the next process can tell after a crash whether the file was replaced.

        `text` is the machine's text; `left` is the file's full text after the write, and `digest` its digest.
        """
        self._database.write(
            "announce",
            "INSERT INTO documents (name, pending, pending_digest, pending_document) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET pending = excluded.pending, "
            "pending_digest = excluded.pending_digest, pending_document = excluded.pending_document",
            (document, text, digest, None if left == text else left),
        )

    def confirm_write(self, document: str, text: str, digest: str, left: str) -> None:
        """Record that an announced write is done. Takes the arguments of `announce_write`."""
        self._database.write(
            "confirm",
            "INSERT INTO documents (name, written, digest, document) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET written = excluded.written, digest = excluded.digest, "
            "document = excluded.document, pending = NULL, pending_digest = NULL, pending_document = NULL",
            (document, text, digest, None if left == text else left),
        )

    def keep_written_file(self, document: str, left: str) -> None:
        """Store the full text of a document after an upcoming write, as a merge base for editors that open it."""
        with self._database.transaction("left"):
            row = document, pack_text(left)
            self._database.write("left", "INSERT INTO documents_left (name, text) VALUES (?, ?)", row)
            self._database.write("left", _LEFT_LONG_AGO, (document, _LEFT_BYTES))

    def written_files(self, document: str) -> Iterator[str]:
        """Yield the stored full texts of a document, oldest first. Texts beyond a size limit have been deleted."""
        query = "SELECT text FROM documents_left WHERE name = ? ORDER BY id"
        for (packed,) in self._database.rows(query, (document,)):
            yield unpack_text(packed)

    def change_former(self, document: str, change: Callable[[str], str]) -> None:
        """Apply `change` to the texts of `written`, `written_files` and `last_read`; delete what cannot be unpacked."""
        query = "SELECT id, text FROM documents_left WHERE name = ?"
        with self._database.transaction("left"):
            for number, packed in self._database.rows(query, (document,)):
                try:
                    changed = change(text := unpack_text(packed))
                except zlib.error:
                    self._database.write("left", "DELETE FROM documents_left WHERE id = ?", (number,))
                    continue
                if changed != text:
                    update = "UPDATE documents_left SET text = ? WHERE id = ?"
                    self._database.write("left", update, (pack_text(changed), number))
            if (changed := change((read := self.last_read(document)).text)) != read.text:
                self.note_read(document, replace(read, text=changed))
            last = self.written(document)
            if last.text is not None and last.left and (changed := change(last.left)) != last.left:
                self.confirm_write(document, last.text, digest(changed), changed)

    def last_read(self, document: str) -> ReadDocument:
        """Return the document as of the last reading of people's edits; empty if no edits were ever read."""
        query = "SELECT base, file, text FROM documents_read WHERE name = ?"
        rows = self._database.rows(query, (document,))
        if not rows:
            return ReadDocument()
        base, files, text = rows[0]
        file, *earlier = files.split(" ")
        return ReadDocument(base, file, text, (*earlier,))

    def note_read(self, document: str, read: ReadDocument) -> None:
        """Record that the edits in a document have been read."""
        self._database.write(
            "read",
            "INSERT INTO documents_read (name, base, file, text) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
            "SET base = excluded.base, file = excluded.file, text = excluded.text",
            (document, read.base, " ".join((read.file, *read.earlier[:_READ_FILES])), read.text),
        )

    def add_notice(self, subject: str, text: str, time: datetime) -> bool:
        """Add a notice for people, shown until resolved; return False if an equal notice is still unresolved."""
        added = self._database.write(
            "notice",
            "INSERT INTO notices (time, subject, text) SELECT ?, ?, ? WHERE NOT EXISTS "
            "(SELECT 1 FROM notices WHERE subject = ? AND text = ? AND resolved IS NULL)",
            (time, subject, text, subject, text),
        )
        return added.rowcount == 1

    def resolve_notices(self, subject: str, time: datetime) -> None:
        """Mark all notices about a subject as resolved."""
        self._database.write(
            "notice", "UPDATE notices SET resolved = ? WHERE subject = ? AND resolved IS NULL", (time, subject)
        )

    def notices(self) -> list[Notice]:
        """Return the unresolved notices, oldest first."""
        return self._database.find(_NOTICES, "WHERE resolved IS NULL ORDER BY id")


def pack_text(text: str) -> bytes:
    """Compress a former text of a document."""
    return zlib.compress(text.encode("utf-8", "surrogateescape"), level=1)


def unpack_text(packed: bytes) -> str:
    """Return a former text of a document; raise `zlib.error` if it is damaged."""
    return zlib.decompress(packed).decode("utf-8", "surrogateescape")


def details_of(summary: Summary) -> str:
    """Return the fields of a summary that have no column of their own, as JSON for the `details` column."""
    rare = {name: getattr(summary, name) for name in _RARE}
    return json.dumps(
        {name: getattr(summary, name) for name in _LISTS} | {name: value for name, value in rare.items() if value}
    )


def _unpacked(details: str) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(details).items()}

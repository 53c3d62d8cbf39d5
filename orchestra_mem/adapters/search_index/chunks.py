"""The rows of search.db that are shown to people: chunks, their groups, and the strings that many of them share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from orchestra_mem.adapters.search_index.columns import encode, from_microseconds, to_microseconds
from orchestra_mem.adapters.search_index.database import damaged
from orchestra_mem.search_types import Chunk, Ids, SearchFilter, Tier

_ASKED_AT_ONCE = 500


def decode(data: bytes) -> str:
    """Give the string that `encode` made bytes of.

    Raises:
        DatabaseDamagedError: it has not.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except (UnicodeError, AttributeError) as error:
        raise damaged(f"a text of the search index cannot be read ({error})") from error


def ids_of(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, int]:
    """The ids of the chunks with these keys; what is not there is left out."""
    found: dict[str, int] = {}
    for start in range(0, len(keys), _ASKED_AT_ONCE):
        some = [encode(key) for key in keys[start : start + _ASKED_AT_ONCE]]
        marks = ",".join("?" * len(some))
        rows = connection.execute(f"SELECT key, id FROM chunk WHERE key IN ({marks})", some)
        found.update((decode(key), chunk_id) for key, chunk_id in rows)
    return found


def ids_in_group(connection: sqlite3.Connection, group: str) -> dict[str, int]:
    """The keys and ids of the chunks of a group."""
    rows = connection.execute(
        "SELECT key, id FROM chunk WHERE grp = (SELECT id FROM name WHERE text = ?) ORDER BY position, id",
        (encode(group),),
    )
    return {decode(key): chunk_id for key, chunk_id in rows}


def name_all(connection: sqlite3.Connection, chunks: Iterable[Chunk]) -> dict[str, int]:
    """Give each string that these chunks share with others a number, from 1 up."""
    texts = {
        text for chunk in chunks for text in (chunk.kind, chunk.agent, chunk.session, chunk.group) if text is not None
    }
    names = {}
    for text in sorted(texts):
        data = encode(text)
        connection.execute("INSERT OR IGNORE INTO name (text) VALUES (?)", (data,))
        names[text] = int(connection.execute("SELECT id FROM name WHERE text = ?", (data,)).fetchone()[0])
    return names


def names_in(connection: sqlite3.Connection, where: SearchFilter) -> dict[str, int]:
    """The numbers of the strings that a filter asks for; what no chunk has is left out."""
    texts = {text for text in (*where.kinds, where.agent, where.session) if text is not None}
    rows = (
        (text, connection.execute("SELECT id FROM name WHERE text = ?", (encode(text),)).fetchone()) for text in texts
    )
    return {text: row[0] for text, row in rows if row}


def write(connection: sqlite3.Connection, chunks: Iterable[tuple[int, Chunk]], names: dict[str, int]) -> None:
    """Put down chunks, new or replaced."""
    connection.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " grp = excluded.grp, position = excluded.position, record = excluded.record",
        ((number, encode(chunk.key), names[chunk.group], chunk.position, _record(chunk)) for number, chunk in chunks),
    )


def delete(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Take chunks out."""
    connection.executemany("DELETE FROM chunk WHERE id = ?", ((chunk_id,) for chunk_id in ids))


def read(connection: sqlite3.Connection, ids: Ids) -> list[Chunk | None]:
    """Give chunks in the order asked for."""
    rows = connection.execute(
        "SELECT chunk.id, key, text, position, record FROM chunk JOIN name ON name.id = grp"
        " WHERE chunk.id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids.tolist()),),
    )
    found = {
        number: _chunk(decode(key), decode(group), position, record) for number, key, group, position, record in rows
    }
    return [found.get(chunk_id) for chunk_id in ids.tolist()]


def neighbours(connection: sqlite3.Connection, ids: Ids, distance: int) -> Ids:
    """The chunks before and behind each in its group; see `SearchIndex.neighbours`."""
    places = np.zeros((len(ids), 2 * distance), np.int64)
    if not places.size:
        return places
    before = [_neighbour("<", "DESC", number) for number in reversed(range(distance))]
    behind = [_neighbour(">", "ASC", number) for number in range(distance)]
    rows = connection.execute(
        f"SELECT asked.key, {', '.join(before + behind)}"
        " FROM json_each(?) AS asked JOIN chunk AS c ON c.id = asked.value",
        (json.dumps(ids.tolist()),),
    )
    for number, *found in rows:
        places[number] = [chunk_id or 0 for chunk_id in found]
    return places


def _neighbour(sign: str, order: str, skipped: int) -> str:
    return (
        f"(SELECT n.id FROM chunk AS n WHERE n.grp = c.grp AND (n.position, n.id) {sign} (c.position, c.id)"
        f" ORDER BY n.position {order}, n.id {order} LIMIT 1 OFFSET {skipped})"
    )


def _record(chunk: Chunk) -> bytes:
    fields = (
        chunk.tier, chunk.source, chunk.text, chunk.kind, chunk.heading, chunk.title, chunk.session, chunk.agent,
        chunk.item, to_microseconds(chunk.time), chunk.operation, chunk.importance,
    )  # fmt: skip
    return encode(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def _chunk(key: str, group: str, position: int, record: bytes) -> Chunk:
    try:
        return _unpacked(key, group, position, record)
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(f"the chunk {key!r} of the search index cannot be read ({error})") from error


def _unpacked(key: str, group: str, position: int, record: bytes) -> Chunk:
    tier, source, text, kind, heading, title, session, agent, item, time, operation, importance = json.loads(
        decode(record)
    )
    return Chunk(
        key=key, tier=Tier(tier), source=source, text=text, kind=kind, group=group, position=position,
        heading=tuple(heading), title=title, session=session, agent=agent, item=item, time=from_microseconds(time),
        operation=operation, importance=importance,
    )  # fmt: skip

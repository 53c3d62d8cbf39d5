"""The rows of search.db that chunks are made of, and the strings that many of them share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.adapters.search_index.columns import NONE, Columns, encode, from_microseconds, to_microseconds
from orchestra_mem.adapters.search_index.database import damaged
from orchestra_mem.search_types import Chunk, Ids, IndexedText, Outlines, SearchFilter, Tier, WordLists

_ASKED_AT_ONCE = 500
_STATEMENT, _TELLS_TIME = 1, 2  # the bits of `traits`


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
    rows = _asked(connection, "SELECT key, id FROM chunk WHERE key IN", [encode(key) for key in keys])
    return {decode(key): chunk_id for key, chunk_id in rows}


def ids_in_group(connection: sqlite3.Connection, group: str) -> dict[str, int]:
    """The keys and ids of the chunks of a group."""
    rows = connection.execute(
        "SELECT key, id FROM chunk WHERE grp = (SELECT id FROM name WHERE text = ?) ORDER BY position, id",
        (encode(group),),
    )
    return {decode(key): chunk_id for key, chunk_id in rows}


def name_all(connection: sqlite3.Connection, chunks: Iterable[Chunk], texts: Iterable[IndexedText]) -> dict[str, int]:
    """Give each string that these chunks and texts share with others a number, from 1 up."""
    shared = {
        text for chunk in chunks for text in (chunk.kind, chunk.agent, chunk.session, chunk.group) if text is not None
    }
    shared.update(word for text in texts for word in text.words)
    data = {encode(text): text for text in shared}
    numbers = dict(_asked(connection, "SELECT text, id FROM name WHERE text IN", list(data)))
    new = sorted(data.keys() - numbers.keys())
    connection.executemany("INSERT INTO name (text) VALUES (?)", ((each,) for each in new))
    numbers.update(_asked(connection, "SELECT text, id FROM name WHERE text IN", new))
    return {data[each]: number for each, number in numbers.items()}


def _asked(connection: sqlite3.Connection, statement: str, values: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), _ASKED_AT_ONCE):
        some = values[start : start + _ASKED_AT_ONCE]
        yield from connection.execute(f"{statement} ({','.join('?' * len(some))})", some)


def names_in(connection: sqlite3.Connection, where: SearchFilter) -> dict[str, int]:
    """The numbers of the strings that a filter asks for; what no chunk has is left out."""
    texts = {text for text in (*where.kinds, where.agent, where.session) if text is not None}
    rows = (
        (text, connection.execute("SELECT id FROM name WHERE text = ?", (encode(text),)).fetchone()) for text in texts
    )
    return {text: row[0] for text, row in rows if row}


def write(
    connection: sqlite3.Connection,
    chunks: Iterable[tuple[int, Chunk]],
    texts: Mapping[str, IndexedText],
    names: Mapping[str, int],
) -> None:
    """Put down chunks, new or replaced; `texts` are of the new ones, by key: those of a key do not change."""
    unchanged = IndexedText(title="", heading="", identifiers="", body="")
    connection.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET grp = excluded.grp,"
        " position = excluded.position, importance = excluded.importance, record = excluded.record",
        (
            (
                number, encode(chunk.key), names[chunk.group], chunk.position, chunk.importance,
                *_compared(texts.get(chunk.key, unchanged), names), _record(chunk),
            )
            for number, chunk in chunks
        ),
    )  # fmt: skip


def _compared(text: IndexedText, names: Mapping[str, int]) -> tuple[int, bytes]:
    numbers = np.array([names[word] for word in text.words], "<u4")
    return _STATEMENT * text.is_statement | _TELLS_TIME * text.tells_time, numbers.tobytes()


def delete(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Take chunks out."""
    connection.executemany("DELETE FROM chunk WHERE id = ?", ((chunk_id,) for chunk_id in ids))


def read(connection: sqlite3.Connection, ids: Ids) -> list[Chunk | None]:
    """Give chunks in the order asked for."""
    rows = connection.execute(
        "SELECT chunk.id, key, text, position, importance, record FROM chunk JOIN name ON name.id = grp"
        " WHERE chunk.id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids.tolist()),),
    )
    found = {number: _chunk(decode(key), decode(group), *rest) for number, key, group, *rest in rows}
    return [found.get(chunk_id) for chunk_id in ids.tolist()]


def outlines(
    connection: sqlite3.Connection, ids: Ids, columns: Columns, passing: NDArray[np.bool_], lexicon: str
) -> Outlines:
    """Give what ranking needs of those of the chunks that are there; `passing` is a mask over all ids.

    Raises:
        DatabaseDamagedError: what is stored of one is no list of words.
    """
    rows = connection.execute(
        "SELECT id, grp, importance, traits, words FROM chunk WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(ids.tolist()),),
    ).fetchall()
    there = np.array([row[0] for row in rows], np.int64)
    traits = np.array([row[3] for row in rows], np.int64)
    words = b"".join(row[4] for row in rows)
    sizes = np.array([len(row[4]) for row in rows], np.int64)
    highest = int(connection.execute("SELECT coalesce(max(id), 0) FROM name").fetchone()[0])
    if (sizes % 4).any() or (numbers := np.frombuffer(words, "<u4").astype(np.int64)).max(initial=0) > highest:
        raise damaged("the words of chunks of the search index cannot be read")
    times = columns["time"][there]
    agents, sessions = columns["agent"][there].tolist(), columns["session"][there].tolist()
    name_of = {0: None, **_spelt(connection, {*agents, *sessions})}
    return Outlines(
        ids=there,
        passing=passing[there],
        groups=np.array([row[1] for row in rows], np.int64),
        agents=tuple(name_of.get(number) for number in agents),
        sessions=tuple(name_of.get(number) for number in sessions),
        times=np.where(times == NONE, np.nan, times / 1e6),
        importance=np.array([row[2] for row in rows], np.float32),
        statements=traits & _STATEMENT != 0,
        tell_time=traits & _TELLS_TIME != 0,
        words=WordLists(lexicon=lexicon, numbers=numbers, counts=sizes // 4),
    )


def spell(connection: sqlite3.Connection, numbers: NDArray[np.int64]) -> list[str]:
    """Give the strings with these numbers."""
    distinct, places = np.unique(numbers, return_inverse=True)
    rows = connection.execute(
        "SELECT id, text FROM name WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(distinct.tolist()),),
    ).fetchall()
    # All at once is ten times as fast as one by one; no word has a line feed.
    texts = decode(b"\n".join(row[1] for row in rows)).split("\n")
    if not len(rows) == len(texts) == len(distinct):
        found = {number: decode(text) for number, text in rows}
        texts = [found.get(number, "") for number in distinct.tolist()]
    return [texts[place] for place in places.tolist()]


def _spelt(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
    rows = connection.execute(
        "SELECT id, text FROM name WHERE id IN (SELECT value FROM json_each(?))", (json.dumps([*numbers]),)
    )
    return {number: decode(text) for number, text in rows}


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
        chunk.item, to_microseconds(chunk.time), chunk.operation,
    )  # fmt: skip
    return encode(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def _chunk(key: str, group: str, position: int, importance: float, record: bytes) -> Chunk:
    try:
        return _unpacked(key, group, position, importance, record)
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(f"the chunk {key!r} of the search index cannot be read ({error})") from error


def _unpacked(key: str, group: str, position: int, importance: float, record: bytes) -> Chunk:
    tier, source, text, kind, heading, title, session, agent, item, time, operation = json.loads(decode(record))
    return Chunk(
        key=key, tier=Tier(tier), source=source, text=text, kind=kind, group=group, position=position,
        heading=tuple(heading), title=title, session=session, agent=agent, item=item, time=from_microseconds(time),
        operation=operation, importance=importance,
    )  # fmt: skip

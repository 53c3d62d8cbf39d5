"""The database: values round-trip, schemas migrate forward only, and foreign files are refused with a clear message."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orchestra_mem.adapters.database import Database, connection
from orchestra_mem.adapters.database.migrations import APPLICATION_ID, MIGRATIONS
from orchestra_mem.errors import DatabaseDamagedError, SchemaTooNewError, StorageError
from orchestra_mem.serialize import checked_json
from orchestra_mem.stores import EventLog, Ledger, SqlDatabase
from orchestra_mem.types import Json, Operation, OperationFilter, ReadDocument, Session, SessionStatus, WrittenDocument

NOON = datetime(2025, 1, 15, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)
STRINGS = st.text(st.characters(codec=None, categories=None), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def log(database: SqlDatabase) -> EventLog:
    """An empty event log."""
    return EventLog(database)


@pytest.fixture
def ledger(database: SqlDatabase) -> Ledger:
    """A ledger in the same database as `log`."""
    return Ledger(database)


def _draft(data: Json = None, *, kind: str = "note", time: datetime = NOON, agent: str | None = None,
           key: str | None = None) -> Operation:  # fmt: skip
    return Operation(
        id=0, session="", type=kind, data=data, timestamp=time, tokens=7, entry_tokens=5, agent=agent,
        idempotency_key=key,
    )  # fmt: skip


def _session(number: int = 1) -> Session:
    return Session(id=f"{number}-session", started=NOON, status=SessionStatus.ACTIVE)


def _record(log: EventLog, draft: Operation, session: int = 1) -> Operation:
    operation, created = log.append(draft, lambda: _session(session))
    assert created
    return operation


# Values


@given(data=JSON)
@example(data="\x00")
@example(data={"\ud800": "a lone \udfff surrogate", "\x00": "\x00\x1f"})
@example(data=[10**4000, -(2**63), 2**63, 1e308, 5e-324, -0.0, True, 1, 1.0, None])
@example(data={"": {"": []}})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_comes_back_equal(log: EventLog, data: Json) -> None:
    """The event log returns any JSON value as recorded: NULs, lone surrogates, huge numbers, nesting, types."""
    recorded = _record(log, _draft(checked_json(data)))
    stored = log.operation(recorded.id)
    assert stored == recorded
    assert repr(stored.data) == repr(data)


# The event log


def test_filters_hold_all_conditions_at_once(log: EventLog) -> None:
    """Conditions combine; `since` and `through` include, `until` and `after` exclude; `limit` keeps the newest."""
    for n in range(6):
        _record(log, _draft(n, kind="ab"[n % 2], agent="xy"[n // 3], time=NOON + n * SECOND))

    def found(**conditions: object) -> list[int]:
        return [op.id for op in log.operations(OperationFilter(**conditions))]  # type: ignore[arg-type]

    assert found() == [1, 2, 3, 4, 5, 6]
    assert found(type="a", agent="x") == [1, 3]
    assert found(since=NOON + SECOND, until=NOON + 3 * SECOND) == [2, 3]
    assert found(after=2, through=5) == [3, 4, 5]
    assert found(limit=2) == [5, 6]
    assert found(limit=0) == []
    assert found(session="other") == []
    assert found(limit=2, offset=3) == [2, 3]
    assert found(offset=6) == []
    assert found(except_types=("a", "c"), agent="y") == [4, 6]
    assert log.count(OperationFilter(type="a", limit=1, offset=1)) == 3
    assert (log.agents("1-session"), log.agents("other")) == (["x", "y"], [])
    assert log.type_counts("1-session") == {"a": (3, 21), "b": (3, 21)}
    for key in ("chat 1 a", "chat 10 b", "chat 1 \U0010fffd", "chat 2 a", "chat 1"):
        _record(log, _draft(key=key))
    assert (found(idempotency_prefix="chat 1 "), found(idempotency_prefix="chat 1 ", through=8)) == ([7, 9], [7])


# The ledger


def test_a_plan_that_an_older_version_has_read_is_still_read(tmp_path: Path) -> None:
    """Migration moves the last read plan from the written documents to its own table."""
    path = tmp_path / "obra.db"
    _at_schema(path, 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        plan = json.dumps('- [ ] #1 "Rye"\n')
        raw.execute("INSERT INTO documents (name, written, digest) VALUES ('work_plan as read', ?, 'd')", (plan,))
        raw.execute("INSERT INTO documents (name, written, digest) VALUES ('brought_back', '[1]', '')")
    with closing(Database(path)) as database:
        ledger = Ledger(database)
        assert ledger.last_read("work_plan") == ReadDocument(base="d", text='- [ ] #1 "Rye"\n')
        assert ledger.written("work_plan as read") == ledger.written("brought_back") == WrittenDocument()


# Schemas


def _at_schema(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for step in MIGRATIONS[:version]:
            raw.executescript(step)
        if version:
            raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            raw.execute(f"PRAGMA user_version = {version}")
    raw.close()


def _schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        rows = raw.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").fetchall()
    raw.close()
    return [(name, " ".join(sql.split())) for name, sql in rows]


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_every_earlier_schema_moves_forward(tmp_path: Path, version: int) -> None:
    """Every earlier schema, and an empty file, migrates to exactly the schema of a new database."""
    _at_schema(tmp_path / "old.db", version)
    for name in ("old.db", "new.db"):
        with closing(Database(tmp_path / name)) as database:
            assert database.value("PRAGMA user_version") == database.schema_version == len(MIGRATIONS)
            assert database.check() is None
    assert _schema(tmp_path / "old.db") == _schema(tmp_path / "new.db")


def test_a_database_that_was_left_moves_forward_and_still_refuses_writes(tmp_path: Path) -> None:
    """A file whose memory was moved away can be migrated, and its tables still refuse writes afterwards."""
    path = tmp_path / "obra.db"
    _at_schema(path, 11)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("INSERT INTO model_trials VALUES (1, 1, 'm', 'item', 3, 'accepted', '', 1.0, 1, 1)")
        raw.execute("INSERT INTO project_keys VALUES ('moved', CAST('it was moved' AS BLOB))")
        refusal = "BEFORE UPDATE ON model_trials BEGIN SELECT RAISE(ABORT, 'it was moved'); END"
        raw.execute(f"CREATE TRIGGER moved_model_trials_UPDATE {refusal}")
    raw.close()
    with closing(Database(path)) as database:
        assert database.value("SELECT subject FROM model_trials") == "S3"
        for table in ("model_trials", "jobs", "refreshes"):
            with pytest.raises(StorageError, match="it was moved"):
                database.write("test", f"INSERT INTO {table} DEFAULT VALUES")


def test_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed migration leaves the file at its old schema, so the previous program still opens it."""
    path = tmp_path / "obra.db"
    Database(path).close()
    with monkeypatch.context() as patch:
        patch.setattr(connection, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE later (x); CREATE TABLE sessions (x)"))
        with pytest.raises(StorageError, match="table sessions already exists"):
            Database(path)
    with closing(Database(path)) as database:
        assert database.value("PRAGMA user_version") == len(MIGRATIONS)
    assert "later" not in dict(_schema(path))


# Files that are not databases of this program


NO_DATABASE = (
    "opening: {}: file is not a database; move the file away and restore it from a backup; the documents next to it "
    "are intact"
)
THEIRS = "{} is an SQLite database of another program; move it away or choose another folder"
NEWER = (
    f"{{}} has schema version 99, but this program supports versions up to {len(MIGRATIONS)}; "
    "install the newer orchestra-mem that wrote it"
)


def _database(script: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as raw:
        raw.executescript(f"CREATE TABLE theirs (x); {script}")
        return raw.serialize()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"this is a text, not a database, and longer than a header\n" * 40, NO_DATABASE),
        (b"\x00" * 5000, NO_DATABASE),
        (_database("PRAGMA user_version = 1"), THEIRS),
        (_database("PRAGMA application_id = 77"), THEIRS),
        (_database(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99"), NEWER),
    ],
)
def test_file_that_is_no_database_of_ours_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, problem: str, read_only: bool
) -> None:
    """The error names the file and the remedy; the file's bytes stay unchanged and no journal file appears."""
    path = tmp_path / "obra.db"
    path.write_bytes(content)
    with pytest.raises((DatabaseDamagedError, SchemaTooNewError)) as error:
        Database(path, read_only=read_only)
    assert str(error.value) == problem.format(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["obra.db"]


@pytest.mark.parametrize(("make", "what"), [(Path.mkdir, "a folder"), (os.mkfifo, "a pipe")])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None], what: str, read_only: bool) -> None:
    """A folder or a FIFO in the database's place is called what it is, not a fault of the disk."""
    make(path := tmp_path / "obra.db")
    with pytest.raises(StorageError) as error:
        Database(path, read_only=read_only)
    assert str(error.value) == f"opening: {path} is {what}, not a database; move it away"


# Transactions, threads, processes


def test_transaction_that_fails_leaves_nothing(log: EventLog, database: Database) -> None:
    """A failed transaction leaves nothing behind, even from nested calls, and the next transaction is complete."""

    class Stop(Exception):
        pass

    def stopped() -> None:
        with database.transaction("outer"):
            _record(log, _draft(1))
            raise Stop

    with pytest.raises(Stop):
        stopped()
    assert (log.count(), log.sessions()) == (0, [])
    with database.transaction("outer"):
        _record(log, _draft(2))
        assert log.count() == 1
    assert [op.data for op in log.operations(OperationFilter())] == [2]


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_rollback_that_fails_does_not_swallow_the_next_transaction(log: EventLog, database: Database) -> None:
    """An operation that `append` returned is committed, even if an earlier transaction was left open."""
    # Imitates a failed ROLLBACK, which leaves the transaction open.
    database._writer.execute("BEGIN IMMEDIATE")
    _record(log, _draft("kept"))
    with closing(Database(database.path, busy_timeout_s=0.1)) as other:
        assert [op.data for op in EventLog(other).operations(OperationFilter())] == ["kept"]


def test_readers_do_not_wait_for_a_writer(log: EventLog, database: SqlDatabase) -> None:
    """While one thread is in a transaction, other threads read the last committed state without waiting."""
    _record(log, _draft(1))
    counts: list[int] = []
    with database.transaction("long"):
        _record(log, _draft(2))
        thread = threading.Thread(target=lambda: counts.append(log.count()))
        thread.start()
        thread.join(timeout=5)
        assert not thread.is_alive()
    assert (counts, log.count()) == ([1], 2)


@pytest.mark.parametrize(("full_sync", "mode"), [(False, 1), (True, 2)])
def test_durability_sets_how_sqlite_waits_for_the_disk(tmp_path: Path, full_sync: bool, mode: int) -> None:
    """The journal is a write-ahead log; `full_sync` chooses between `NORMAL` and `FULL`."""
    with (
        closing(Database(tmp_path / "obra.db", full_sync=full_sync)) as database,
        database.transaction("test") as writer,
    ):
        assert writer.execute("PRAGMA synchronous").fetchone() == (mode,)
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)

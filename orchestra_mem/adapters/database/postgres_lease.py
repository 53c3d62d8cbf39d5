"""A lock across machines: an advisory lock of the server, and a lease that outlives a lost connection."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from orchestra_mem.errors import LockTimeoutError, StorageError

# Lifetime of a lease unless it is renewed: a holder that lost its connection has finished or renewed it earlier.
_LEASE_S = 8
_RENEW_S = _LEASE_S / 3
_POLL_S = 0.05
# Leases need not survive a power loss, so their commits do not wait for the disk.
_QUICK = "WITH quick AS (SELECT set_config('synchronous_commit', 'off', true) AS done)"
_NOW = "CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)"
_TAKE = (
    f"{_QUICK} INSERT INTO write_leases SELECT %(name)s, %(holder)s, {_NOW} + %(lease)s FROM quick ON CONFLICT (name) "
    "DO UPDATE SET holder = excluded.holder, until = excluded.until "
    f"WHERE write_leases.until < {_NOW} OR write_leases.holder IN ('', %(dead)s, %(holder)s) RETURNING 1"
)
_END = f"{_QUICK} UPDATE write_leases SET holder = '' FROM quick WHERE name = %(name)s AND holder = %(holder)s"
_RENEWED = (
    f"{_QUICK} UPDATE write_leases SET until = {_NOW} + %(lease)s FROM quick "
    "WHERE name = %(name)s AND holder = %(holder)s"
)
_HOLDER = "SELECT holder FROM write_leases WHERE name = %s"


class _Lease:
    """A lease that is held, with the connection whose transaction holds the advisory lock."""

    def __init__(self, connection: psycopg.Connection[Any], values: dict[str, str]) -> None:
        self.connection = connection
        self.values = values
        self.since_s = time.monotonic()
        self.is_held = True
        self.lock = threading.Lock()  # a renewal must not fall into the pipeline that ends the lease


class Leases:
    """Locks that only one process on all machines can hold at a time.

    The server's advisory lock admits waiting processes in order. A holder that loses its connection loses the advisory
    lock, and may run on without noticing. So no other process can take the lock until the holder's lease expires.
    A thread renews what is held for long. A process that was stopped cannot renew: its lease expires, and the server
    ends its connection, and so the advisory lock, after `idle_s`.

    Args:
        pool: Connection pool; a lock uses one connection throughout, and a second one briefly.
        schema: Schema of the memory.
        idle_s: How long a stopped process keeps a lock, in seconds, at least as long as a lease.
    """

    def __init__(self, pool: ConnectionPool[Any], schema: str, *, idle_s: float) -> None:
        self._pool = pool
        self._schema = schema
        self._idle_s = max(idle_s, _LEASE_S)
        # The id of this process as a holder, which can retake its own lease at once after a lost connection.
        self._holder = f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}"
        self._held: list[_Lease] = []
        self._lock, self._is_renewing = threading.Lock(), False

    @contextmanager
    def held(self, name: str, *, timeout_s: float) -> Iterator[None]:
        """Hold the lock `name`.

        Args:
            name: Name of the lock.
            timeout_s: How long to wait for the lock, in seconds. With 0, the call does not wait.

        Raises:
            LockTimeoutError: Another process has held the lock for `timeout_s`.
            StorageError: At the end: another process has had the lock meanwhile.
            psycopg.Error: The server cannot be reached.
        """
        values = {"name": name, "holder": self._holder}
        connection = self._pool.getconn()
        limits = {"lock_timeout": timeout_s, "idle_in_transaction_session_timeout": self._idle_s}
        limited = "".join(f"SET LOCAL {key} = {max(1, int(limit * 1000))}; " for key, limit in limits.items())
        key = f"hashtextextended('orchestra-mem {name} {self._schema}', 0)"
        try:
            # A lock of the transaction, not the connection: a pooler may run each transaction in another process.
            try:
                connection.execute(f"BEGIN; {limited}SELECT pg_advisory_xact_lock({key})")
            except psycopg.errors.LockNotAvailable:
                with self._pool.connection() as another:
                    raise _held_too_long(another, name, timeout_s) from None
            _take(self._pool, values, timeout_s)
            lease = _Lease(connection, values)
            self._begin_renewing(lease)
            try:
                yield
            except BaseException:
                with suppress(psycopg.Error):
                    self._end(lease)
                raise
            if not self._end(lease):
                raise StorageError(
                    f"this process held the {name} for {time.monotonic() - lease.since_s:.0f} s and lost them, because "
                    "it was stopped or could not reach the server; another process may have written them meanwhile: "
                    "check what both have written"
                )
        finally:
            self._pool.putconn(connection)  # rolls back an open transaction

    def _end(self, lease: _Lease) -> bool:
        """Give back a lock. Return whether this process has held it until now."""
        with lease.lock:
            lease.is_held = False
        with self._lock:
            self._held.remove(lease)
        try:
            with lease.connection.pipeline():
                ended = lease.connection.execute(_END, lease.values)
                lease.connection.execute("COMMIT")
        except psycopg.errors.RaiseException:  # the holder has moved the memory away: nothing is written here any more
            return True
        except psycopg.Error:  # connection lost: the advisory lock is released, the lease is not
            with self._pool.connection(timeout=_LEASE_S) as another:
                ended = another.execute(_END, lease.values)
        return ended.rowcount == 1

    def _begin_renewing(self, lease: _Lease) -> None:
        with self._lock:
            self._held.append(lease)
            if not self._is_renewing:
                with suppress(RuntimeError):  # no thread available
                    threading.Thread(target=self._renew, name="orchestra-mem lease", daemon=True).start()
                    self._is_renewing = True

    def _renew(self) -> None:
        """Renew the leases periodically until none is held: most last milliseconds, so few are ever renewed."""
        while True:
            time.sleep(_RENEW_S)
            with self._lock:
                held = [*self._held]
                if not held:
                    self._is_renewing = False
                    return
            for lease in held:
                with lease.lock:
                    if lease.is_held:
                        with suppress(psycopg.Error):  # lost; the lease is renewed all the same
                            lease.connection.execute("SELECT 1")
                        with suppress(psycopg.Error), self._pool.connection(timeout=_RENEW_S) as another:
                            another.execute(_RENEWED, {**lease.values, "lease": _LEASE_S})


def _take(pool: ConnectionPool[Any], values: dict[str, str], timeout_s: float) -> None:
    ends, dead = time.monotonic() + timeout_s, ""
    with pool.connection() as connection:
        while connection.execute(_TAKE, {**values, "lease": _LEASE_S, "dead": dead}).fetchone() is None:
            row = connection.execute(_HOLDER, (values["name"],)).fetchone()
            dead = row[0] if row and _has_died(row[0]) else ""
            if not dead and time.monotonic() > ends:
                raise _held_too_long(connection, values["name"], timeout_s)
            if not dead:
                time.sleep(_POLL_S)


def _held_too_long(connection: psycopg.Connection[Any], name: str, timeout_s: float) -> LockTimeoutError:
    host, pid, _ = (connection.execute(_HOLDER, (name,)).fetchone() or ("",))[0].split() or ("another machine", "?", "")
    duration = f" for {timeout_s:g} s" if timeout_s else ""
    return LockTimeoutError(
        f"process {pid} on {host} has locked the {name}{duration}; end it if it hangs, or see storage.busy_timeout_s"
    )


def _has_died(holder: str) -> bool:
    """Check whether a lease's holder was a process on this machine that has ended."""
    host, _, rest = holder.partition(" ")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(rest.partition(" ")[0]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False

"""A lock across machines: an advisory lock of the server, and a lease that outlives a lost connection."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from orchestra_mem.errors import LockTimeoutError

# Lifetime of a lease: a holder that lost its connection has finished earlier, as a refresh takes less than a second.
_LEASE_S = 8
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
_HOLDER = "SELECT holder FROM write_leases WHERE name = %s"


@contextmanager
def leased(
    pool: ConnectionPool[Any], schema: str, name: str, *, holder: str, timeout_s: float, idle_s: float = _LEASE_S
) -> Iterator[None]:
    """Hold a lock that only one process on all machines can hold at a time.

    The server's advisory lock admits waiting processes in order. A holder that loses its connection loses the advisory
    lock, and may run on without noticing. So no other process can take the lock until the holder's lease expires. The
    server also ends the connection of a holder that keeps the lock for `idle_s`: it may be a process that was stopped.

    Args:
        pool: Connection pool; one connection is used throughout, and a second one briefly.
        schema: Schema of the memory.
        name: Name of the lock.
        holder: Id of this process, from `new_holder`; it can retake its own lease at once after a lost connection.
        timeout_s: How long to wait for the lock, in seconds. With 0, the call does not wait.
        idle_s: How long the lock can be held, in seconds, at least as long as a lease.

    Raises:
        LockTimeoutError: Another process has held the lock for `timeout_s`.
        psycopg.Error: The server cannot be reached.
    """
    values = {"name": name, "holder": holder}
    connection = pool.getconn()
    limits = {"lock_timeout": timeout_s, "idle_in_transaction_session_timeout": max(idle_s, _LEASE_S)}
    limited = "".join(f"SET LOCAL {key} = {max(1, int(limit * 1000))}; " for key, limit in limits.items())
    try:
        # A lock of the transaction, not the connection: a pooler may run each transaction in another server process.
        try:
            connection.execute(
                f"BEGIN; {limited}SELECT pg_advisory_xact_lock(hashtextextended('orchestra-mem {name} {schema}', 0))"
            )
        except psycopg.errors.LockNotAvailable:
            with pool.connection() as another:
                raise _held_too_long(another, name, timeout_s) from None
        _take(pool, values, timeout_s)
        try:
            yield
        finally:
            try:
                with connection.pipeline():
                    connection.execute(_END, values)
                    connection.execute("COMMIT")
            except psycopg.Error:  # connection lost: the lock is released, the lease is not
                with suppress(psycopg.Error, PoolTimeout), pool.connection(timeout=_LEASE_S) as another:
                    another.execute(_END, values)
    finally:
        pool.putconn(connection)  # rolls back an open transaction


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


def new_holder() -> str:
    """Return an id for this process as a holder: host name, process id and random hex digits."""
    return f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}"


def _held_too_long(connection: psycopg.Connection[Any], name: str, timeout_s: float) -> LockTimeoutError:
    host, pid, _ = (connection.execute(_HOLDER, (name,)).fetchone() or ("",))[0].split() or ("another machine", "?", "")
    told = f" for {timeout_s:g} s" if timeout_s else ""
    return LockTimeoutError(
        f"process {pid} on {host} has locked the {name}{told}; end it if it hangs, or see storage.busy_timeout_s"
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

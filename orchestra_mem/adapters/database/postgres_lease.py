"""Keep other machines away for a while: by a lock of the server's, and by a lease that outlives a cut connection."""

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

# Who is cut off while it holds one has ended by then what it does: a refresh takes a fraction of a second.
_LEASE_S = 8
_POLL_S = 0.05
# Who takes it writes nothing that has to outlive a loss of power.
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
def leased(pool: ConnectionPool[Any], schema: str, name: str, *, holder: str, timeout_s: float) -> Iterator[None]:
    """Hold what only one process of all machines may hold.

    Those who wait are let in by the server's lock, in their order. Who is cut off has lost that, and goes on for a
    moment without knowing it: meanwhile its lease keeps the others away.

    Args:
        pool: gives connections; one is held throughout, and another for a moment.
        schema: the memory's.
        name: what is held.
        holder: `new_holder` of whoever asks: what it has lost in a cut it may take again at once.
        timeout_s: how long to wait for it.

    Raises:
        LockTimeoutError: another has held it for so long.
        psycopg.Error: the server cannot be reached.
    """
    values = {"name": name, "holder": holder}
    connection = pool.getconn()
    try:
        # Within a transaction, as what stands between may give each to another of the server's processes.
        try:
            connection.execute(
                f"BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('orchestra-mem {name} {schema}', 0))"
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
            except psycopg.Error:  # cut off: the lock is gone with it, the lease is not
                with suppress(psycopg.Error, PoolTimeout), pool.connection(timeout=_LEASE_S) as another:
                    another.execute(_END, values)
    finally:
        pool.putconn(connection)  # which takes back what is under way


def _take(pool: ConnectionPool[Any], values: dict[str, str], timeout_s: float) -> None:
    ends, dead = time.monotonic() + timeout_s, ""
    with pool.connection() as connection:
        while connection.execute(_TAKE, {**values, "lease": _LEASE_S, "dead": dead}).fetchone() is None:
            row = connection.execute(_HOLDER, (values["name"],)).fetchone()
            dead = row[0] if row and _has_died(row[0]) else ""
            if time.monotonic() > ends:
                raise _held_too_long(connection, values["name"], timeout_s)
            if not dead:
                time.sleep(_POLL_S)


def new_holder() -> str:
    """Name this process of this machine, as whoever holds something is known by."""
    return f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}"


def _held_too_long(connection: psycopg.Connection[Any], name: str, timeout_s: float) -> LockTimeoutError:
    host, pid, _ = (connection.execute(_HOLDER, (name,)).fetchone() or ("",))[0].split() or ("another machine", "?", "")
    return LockTimeoutError(
        f"process {pid} on {host} has held the {name} for {timeout_s:g} s; end it where it hangs, else see "
        "storage.busy_timeout_s"
    )


def _has_died(holder: str) -> bool:
    """Whether who holds a lease was a process of this machine that runs no more."""
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

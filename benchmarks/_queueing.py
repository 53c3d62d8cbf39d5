"""Discrete-event simulation of a server's cores and its projects' locks as queues, to predict what many agents get.

Times are milliseconds. Queues are first come, first served. A record uses a core for its caller's work outside of the
lock, then holds its project's lock: for the work under the lock, on a core, and for the wait for the disk, on no core.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from benchmarks._harness import percentile

Then = Callable[[], None]
_SLICE_MS = 3.0  # longer work yields the core in between, as under Linux


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Measured costs of the calls on one server; mean milliseconds, except `records`.

    `held`: Work on a core under the lock. `waits`: Wait for the disk under the lock. `records`: Total times of single
    records, drawn at random; the time not under the lock is the caller's work. `more`: Further work of the caller.
    `reads`: The server's work for a context and a search. `seen`: Its work for each operation of another process that a
    reader has not seen.
    """

    held: float
    waits: float
    records: Sequence[float]
    more: float = 0.0
    reads: float = 0.0
    seen: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result: times of single records, and the shares of time that the cores and the busiest lock were in use."""

    record_ms: list[float]
    cores_used: float
    lock_used: float


@dataclass(slots=True)
class Simulation:
    """A queue of events, processed in the order of their times."""

    now: float = 0.0
    _events: list[tuple[float, int, Then]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def after(self, delay: float, then: Then) -> None:
        """Schedule a callback."""
        heapq.heappush(self._events, (self.now + delay, next(self._order), then))

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Process events until none is left or `goes_on` returns False."""
        while self._events and goes_on():
            self.now, _, then = heapq.heappop(self._events)
            then()


@dataclass(slots=True)
class Queue:
    """A resource with a number of slots."""

    simulation: Simulation
    free: int
    used_ms: float = 0.0
    _waiting: deque[Then] = field(default_factory=deque)
    _taken: deque[float] = field(default_factory=deque)

    def take(self, then: Then) -> None:
        """Call back once a slot is free and taken."""
        if not self.free:
            self._waiting.append(then)
            return
        self.free -= 1
        self._taken.append(self.simulation.now)
        then()

    def give(self) -> None:
        """Release a slot to the next in the queue."""
        self.used_ms += self.simulation.now - self._taken.popleft()
        if self._waiting:
            self._taken.append(self.simulation.now)
            self._waiting.popleft()()
        else:
            self.free += 1

    def use(self, ms: float, then: Then) -> None:
        """Use a slot for some time, slice by slice, then call back."""

        def served() -> None:
            self.give()
            self.use(ms - _SLICE_MS, then) if ms > _SLICE_MS else then()

        self.take(lambda: self.simulation.after(min(ms, _SLICE_MS), served))


class _Server:
    def __init__(self, costs: Costs, cores: int, projects: int, seed: int) -> None:
        self.costs = costs
        self.chance = random.Random(seed)
        self.simulation = Simulation()
        self.cores = Queue(self.simulation, cores)
        self.locks = [Queue(self.simulation, 1) for _ in range(projects)]
        self.record_ms: list[float] = []

    def record(self, project: int, then: Then, *, here: bool, begun: float | None = None) -> None:
        """Simulate one record: the caller's work, on the server's cores if `here`, then the work under the lock."""
        lock, costs, begun = self.locks[project], self.costs, self.simulation.now if begun is None else begun
        before = max(0.0, self.chance.choice(costs.records) - costs.held - costs.waits) + costs.more

        def done() -> None:
            lock.give()
            self.record_ms.append(self.simulation.now - begun)
            then()

        def locked() -> None:
            self.cores.use(costs.held, lambda: self.simulation.after(costs.waits, done))

        begin = self.cores.use if here else self.simulation.after
        begin(before, lambda: lock.take(locked))

    def outcome(self, cores: int) -> Outcome:
        elapsed = max(self.simulation.now, 1e-9)
        return Outcome(
            record_ms=self.record_ms,
            cores_used=self.cores.used_ms / elapsed / cores,
            lock_used=max(each.used_ms for each in self.locks) / elapsed,
        )


def in_a_row(
    costs: Costs, *, processes: int, cores: int, records: int, refresh_ms: float = 0.0, every: float = math.inf
) -> Outcome:
    """Simulate processes that record into one project without pauses, on the same cores as the server.

    Each process refreshes its window once in `every` records of all processes, for `refresh_ms`, one process at a time.
    """
    server = _Server(costs, cores, 1, seed=0)
    files, refreshed = Queue(server.simulation, 1), [0] * processes

    def again(process: int) -> None:
        begun = server.simulation.now

        def record() -> None:
            server.record(0, partial(again, process), here=True, begun=begun)

        def done() -> None:
            files.give()
            record()

        if len(server.record_ms) // every > refreshed[process]:
            refreshed[process] += 1
            files.take(lambda: server.cores.use(refresh_ms, done))
        else:
            record()

    for process in range(processes):
        again(process)
    server.simulation.run(lambda: len(server.record_ms) < records)
    return server.outcome(cores)


def agents(
    costs: Costs, *, count: int, projects: int, every_s: float, cores: int, records: int, most_seen: int,
    shared: bool = False, seed: int = 0,
) -> Outcome:  # fmt: skip
    """Simulate agents on separate machines that each record and read once in `every_s` seconds, at random instants.

    A read is a context and a search. Each agent is a separate process, whose read includes up to `most_seen` operations
    that other agents of its project have recorded since; with `shared`, all agents of a project are one process, which
    has nothing new to read.
    """
    server = _Server(costs, cores, projects, seed)
    reads = costs.reads + (0.0 if shared else costs.seen * min(most_seen, count / projects))
    pause_ms = every_s * 1000 / count

    def nothing() -> None:
        pass

    def arrive() -> None:
        server.record(server.chance.randrange(projects), nothing, here=False)
        server.cores.use(reads, nothing)
        server.simulation.after(server.chance.expovariate(1 / pause_ms), arrive)

    arrive()
    # Bounds the run if the server is overloaded and hardly any record finishes.
    latest = 2 * records * pause_ms
    server.simulation.run(lambda: len(server.record_ms) < records and server.simulation.now < latest)
    return server.outcome(cores)


def knee(outcome: Callable[[int], Outcome], *, bound_ms: float, most: int = 1_000_000) -> int:
    """Find the largest count whose 99th percentile of a record is within a bound, to a precision of a twentieth."""
    fine, bad = 0, most
    while bad - fine > max(1, fine // 20):
        middle = min(max(1, 2 * fine), (fine + bad) // 2)
        if percentile(outcome(middle).record_ms, 99) <= bound_ms:
            fine = middle
        else:
            bad = middle
    return fine

"""A server's cores and the locks of its projects as queues: what so many agents get of it, by discrete events.

Times are milliseconds. Whatever waits is served in the order of coming. A record uses a core for what its caller works
outside of the lock, then holds its project's lock: for the work there on a core, and for the disk, which takes no core.
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
_SLICE_MS = 3.0  # who works for longer lets others have the core in between, as Linux does


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was measured of the calls on one server, each a mean of milliseconds but for `shape`.

    `held` is what of the time under the lock is work on a core, `waits` what of it is waiting for the disk. `records`
    are whole times of single records, one of which is drawn for each; what is not under the lock is the caller's work.
    `more` is what that is besides. `reads` is what a context and a search take of the server, `seen` what one operation
    of another process takes of it when this one next looks.
    """

    held: float
    waits: float
    records: Sequence[float]
    more: float = 0.0
    reads: float = 0.0
    seen: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out: times of single records; the share of the time that cores and the busiest lock were in use."""

    record_ms: list[float]
    cores_used: float
    lock_used: float


@dataclass(slots=True)
class Simulation:
    """Events in the order of their times."""

    now: float = 0.0
    _events: list[tuple[float, int, Then]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def after(self, delay: float, then: Then) -> None:
        """Have something happen later."""
        heapq.heappush(self._events, (self.now + delay, next(self._order), then))

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Let things happen until nothing is left, or nobody wants more."""
        while self._events and goes_on():
            self.now, _, then = heapq.heappop(self._events)
            then()


@dataclass(slots=True)
class Queue:
    """Something that so many can use at once."""

    simulation: Simulation
    free: int
    used_ms: float = 0.0
    _waiting: deque[Then] = field(default_factory=deque)
    _taken: deque[float] = field(default_factory=deque)

    def take(self, then: Then) -> None:
        """Go on once one is free."""
        if not self.free:
            self._waiting.append(then)
            return
        self.free -= 1
        self._taken.append(self.simulation.now)
        then()

    def give(self) -> None:
        """Let the next one have it."""
        self.used_ms += self.simulation.now - self._taken.popleft()
        if self._waiting:
            self._taken.append(self.simulation.now)
            self._waiting.popleft()()
        else:
            self.free += 1

    def use(self, ms: float, then: Then) -> None:
        """Take one for so long, slice by slice, then go on."""

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
        """One record: the caller's own work, on these cores where it is `here`, then what is done under the lock."""
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
    costs: Costs, *, processes: int, cores: int, records: int, refresh_ms: float = 0.0, every: float = math.inf,
    seed: int = 0,
) -> Outcome:  # fmt: skip
    """Let processes record into one project without a pause, on the same cores as the server.

    Each refreshes its window `every` so many records of them all, for `refresh_ms`, one process after the other.
    """
    server = _Server(costs, cores, 1, seed)
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
    """Let agents on machines of their own each record and read once in so many seconds, at random instants.

    To read is to get a context and to search. Each agent is a process of its own, and reads what the others of its
    project have recorded since, `most_seen` operations of it; or those of a project are one process, which reads
    nothing but its own (`shared`).
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
    # Where more comes than can be served hardly anything comes to an end.
    latest = 2 * records * pause_ms
    server.simulation.run(lambda: len(server.record_ms) < records and server.simulation.now < latest)
    return server.outcome(cores)


def knee(outcome: Callable[[int], Outcome], *, bound_ms: float, most: int = 1_000_000) -> int:
    """Find up to how many the 99th percentile of a record is within a bound, to a twentieth of them."""
    fine, bad = 0, most
    while bad - fine > max(1, fine // 20):
        middle = min(max(1, 2 * fine), (fine + bad) // 2)
        if percentile(outcome(middle).record_ms, 99) <= bound_ms:
            fine = middle
        else:
            bad = middle
    return fine

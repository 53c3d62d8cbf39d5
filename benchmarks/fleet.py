"""Measure a memory on a PostgreSQL server: many processes, killed servers, large memories, moves, simulated fleets.

The server is a real one, started on this machine, that waits for the disk with each commit; its clients run on the same
machine. What 10, 1,000 and 100,000 agents get is simulated (`_queueing.py`) with times measured in the same run; as a
check, the simulation also predicts the times that eight processes were measured to have.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._fleet import Recorders, Told, Watch
from benchmarks._fleet_moves import measure_moves
from benchmarks._harness import Options, Report, Target, percentile, run, say, stopwatch
from benchmarks._queueing import Costs, Outcome, agents, in_a_row, knee
from orchestra_mem import OperationFilter, open_memory
from orchestra_mem.settings import Settings
from tests.postgres_server import PostgresServer

TARGETS: dict[str, Target] = {
    "records_per_s": (">=", 1_500),
    "record_p99_ms": ("<=", 10),
    "lost": ("<=", 0),
    "twice": ("<=", 0),
    "acknowledged_lost": ("<=", 0),
    "kept_twice": ("<=", 0),
    "untold_errors": ("<=", 0),
    "stopped": ("<=", 0),
    "search_p95_ms": ("<=", 30),
    "search_hits_missing": ("<=", 0.005),
    "moved_differently": ("<=", 0),
}
PROCESSES = 8
_UNDER_KILLS = 4  # processes that record while the server is killed
_GOES_ON_WITHIN_S = 60.0
_READS, _NEW = 100, 20
_FLEETS, _AGENTS_A_PROJECT, _EVERY_S = (10, 1_000, 100_000), 50, 10.0
_KNEE_RECORDS, _KNEE_MS = 5_000, 10.0
# Operations of others beyond this number have reached the session document and are read there.
_MOST_SEEN = Settings().orchestrator.working_memory.max_operations
_BUSY = 0.7  # highest planned use of a server's cores; queues grow fast beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many calls each part of a run makes."""

    records: int
    alone: int
    kills: int
    cuts: int
    operations: int
    simulated: int


FULL_RUN = Size(records=50_000, alone=4_000, kills=30, cuts=100, operations=100_000, simulated=40_000)
QUICK_RUN = Size(records=2_000, alone=2_000, kills=3, cuts=10, operations=5_000, simulated=10_000)


@dataclass(slots=True, kw_only=True)
class Measured:
    """Input of the simulation: mean milliseconds, measured in this run.

    `held`: time per record under the schema's lock. `idle`: the part of `held` in which no process works. `reads_…`: a
    context and a search. `seen_…`: what one operation of another process adds to the next context, in total and on the
    server. Each process refreshes its window once in `refresh_every` records of all processes, for `refresh_ms`.
    """

    record_ms: list[float]
    total: float
    held: float
    idle: float
    server: float
    reads_server: float = 0.0
    seen: float = 0.0
    seen_server: float = 0.0
    refresh_ms: float = 0.0
    refresh_every: float = math.inf


@dataclass(slots=True)
class Trial:
    """A server, a folder for the memories, and the report."""

    size: Size
    report: Report
    server: PostgresServer
    folder: Path
    measured: Measured | None = field(default=None)

    def memory(self, name: str, *, on_server: bool = True) -> tuple[Path, dict[str, Any]]:
        """Make a project's folder, and settings that keep its memory in a new schema or in the project's file."""
        folder = self.folder / name
        folder.mkdir()
        say(f"fleet: {name}")
        schema = self.server.schema()
        return folder, {"storage": {"url": self.server.url, "schema_name": schema}} if on_server else {}


def wrong_in(folder: Path, config: dict[str, Any], told: Told) -> tuple[int, int]:
    """Count acknowledged records that are missing or have another number, and duplicated keys and numbers."""
    with open_memory(folder, config=config) as memory:
        there = memory.operations(OperationFilter())
    numbers = {each.idempotency_key: each.id for each in there}
    lost = sum(numbers.get(key) != number for key, number in told.kept.items())
    keys = Counter(each.idempotency_key for each in there if each.idempotency_key)
    twice = sum(keys.values()) - len(keys) + len(there) - len({each.id for each in there})
    return lost, twice + len(told.kept) - len(set(told.kept.values()))


def measure_records(trial: Trial) -> None:
    """Let processes record into a file, then on the server; on the server also measure reads and bytes."""
    record_together(trial, "_sqlite")
    folder, config, locked = record_together(trial, "")
    trial.report.add("lock_used", locked, note=f"share of the time that one of {PROCESSES} held the schema's lock")
    measure_reads(trial, folder, config)
    measure_bytes(trial, config["storage"]["schema_name"])


def record_together(trial: Trial, suffix: str) -> tuple[Path, dict[str, Any], float]:
    """Let one process record, then eight into the same memory; return its folder, config and share of locked time."""
    report, size = trial.report, trial.size
    folder, config = trial.memory(f"records{suffix or '_server'}", on_server=not suffix)
    with Watch(trial.server) as watch:
        alone = Recorders(folder, config, 1, most=size.alone, name="alone").end()
    if not suffix:
        trial.measured = costs_of(report, alone, watch)
    with Watch(trial.server) as watch:
        told = Recorders(folder, config, PROCESSES, most=size.records // PROCESSES).end()
    n = len(told.record_ms)
    tell_refreshes(trial, alone, told, suffix)
    report.add(f"records_per_s{suffix}", n / told.seconds, n=n, note=f"{PROCESSES} processes together")
    report.percentiles(f"record{suffix}", told.record_ms, (50, 99), note=f"in one of {PROCESSES} processes")
    report.add(f"records_per_s_alone{suffix}", len(alone.record_ms) / alone.seconds, n=len(alone.record_ms))
    report.percentiles(f"record_alone{suffix}", alone.record_ms, (50, 99), note="by a single process")
    told.take(alone)
    lost, twice = wrong_in(folder, config, told)
    lost += len(told.refused) + len(told.untold)
    report.add(f"lost{suffix}", lost, n=len(told.kept), note="acknowledged but missing, or refused")
    report.add(f"twice{suffix}", twice, n=len(told.kept), note="duplicate keys and operation numbers")
    for error in [*told.refused, *told.untold][:3]:
        report.note(f"{suffix or 'on the server'}: {error}")
    return folder, config, watch.locked


def tell_refreshes(trial: Trial, alone: Told, told: Told, suffix: str) -> None:
    """Report the cost of window refreshes; a record that contains one takes that much longer."""
    report, measured = trial.report, trial.measured
    report.percentiles(f"record_calm{suffix}", told.calm_ms, (50, 99), note="records without a refresh of the window")
    report.add(f"refreshes{suffix}", len(told.refresh_ms), n=len(told.record_ms), note="of all processes")
    if told.refresh_ms:
        report.percentiles(f"refresh{suffix}", told.refresh_ms, (50,), note="within a record")
    if measured and alone.refresh_ms and told.refresh_ms:
        measured.refresh_ms = statistics.fmean(alone.refresh_ms)
        measured.refresh_every = len(told.record_ms) * PROCESSES / len(told.refresh_ms)


def costs_of(report: Report, alone: Told, watch: Watch) -> Measured:
    """Split the time of one process's records into its parts, and report them."""
    n = len(alone.record_ms)
    total, server, client = 1000 * alone.seconds / n, watch.cpu_ms / n, alone.cpu_ms / n
    held = min(1.0, watch.locked) * total
    for key, value, what in (
        ("lock_held_ms", held, "the time of a record, times the share of samples in which the lock was held"),
        ("commit_ms", sum(alone.commit_ms) / max(1, len(alone.commit_ms)), "the commit's part, including disk waits"),
        ("server_cpu_ms_per_record", server, "processor time of the server's processes"),
        ("client_cpu_ms_per_record", client, "processor time of the recording process"),
        ("server_s_per_million", server * 1000, "processor time of the server for a million records"),
    ):
        report.add(key, value, n=n, note=f"{what}; one process, mean")
    idle = min(held, max(0.0, total - server - client))
    return Measured(record_ms=alone.calm_ms, total=total, held=held, idle=idle, server=min(held, server))


def measure_reads(trial: Trial, folder: Path, config: dict[str, Any]) -> None:
    """Time contexts, searches, and contexts after records of another process, and the server's work for them."""
    context_ms: list[float] = []
    search_ms: list[float] = []
    after_ms: list[float] = []
    after_server = 0.0
    measured = trial.measured
    assert measured is not None
    with open_memory(folder, config=config) as memory, open_memory(folder, config=config) as other:
        memory.search("warm up")
        memory.get_orchestrator_context("task_execution")
        with Watch(trial.server) as contexts:
            for _ in range(_READS):
                with stopwatch(context_ms):
                    memory.get_orchestrator_context("task_execution")
        with Watch(trial.server) as searches:
            for number in range(_READS):
                with stopwatch(search_ms):
                    memory.search(f"what became of task {number}?")
        for turn in range(_READS // 10):
            for number in range(_NEW):
                other.record_operation("note", {"text": f"seen {turn} {number}"})
            with Watch(trial.server) as after, stopwatch(after_ms):
                memory.get_orchestrator_context("task_execution")
            after_server += after.cpu_ms
    trial.report.percentiles("context", context_ms, (50, 99), note="nothing new")
    trial.report.percentiles("search_records", search_ms, (50, 99), note="in the memory of the records")
    trial.report.percentiles("context_after_others", after_ms, (50,), note=f"after {_NEW} records of another process")
    measured.reads_server = (contexts.cpu_ms + searches.cpu_ms) / _READS
    context = percentile(context_ms, 50)
    measured.seen = max(0.0, percentile(after_ms, 50) - context) / _NEW
    measured.seen_server = max(0.0, after_server / len(after_ms) - contexts.cpu_ms / _READS) / _NEW
    trial.report.add(
        "reads_server_cpu_ms", measured.reads_server, n=_READS, note="the server's time for a context and a search"
    )
    trial.report.add("seen_ms", measured.seen, n=len(after_ms), note="what another process's record adds to a context")
    trial.report.add("seen_server_cpu_ms", measured.seen_server, n=len(after_ms), note="the server's part of it")


def measure_bytes(trial: Trial, schema: str) -> None:
    """Report the size of the operations, all tables and all indexes on the server."""
    query = (
        "SELECT sum(pg_total_relation_size(c.oid)), sum(pg_indexes_size(c.oid)), sum(pg_total_relation_size(c.oid)) "
        "FILTER (WHERE relname = 'operations') FROM pg_class c WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    )
    with trial.server.connect() as connection:
        (sizes,) = connection.execute(query, (schema,)).fetchall()
        (counted,) = connection.execute(f"SELECT count(*) FROM {schema}.operations").fetchall()
    n = int(str(counted[0]))
    for key, size in zip(("all", "indexes", "operations"), sizes, strict=True):
        value = int(str(size)) * 1_000_000 / n / 2**20
        trial.report.add(f"mb_per_million_{key}", value, n=n, note="the schema with the records")


def measure_kills(trial: Trial) -> None:
    """Kill the server and cut connections while processes record; all must recover without help."""
    folder, config = trial.memory("kills")
    schema, going_on_s, stopped = config["storage"]["schema_name"], list[float](), 0
    recorders = Recorders(folder, config, _UNDER_KILLS)
    for number in range(trial.size.kills + trial.size.cuts + 1):
        if number:
            trial.server.kill() if number <= trial.size.kills else trial.server.cut_connections()
            trial.server.start()
        waited = until_all_go_on(trial.server, schema)
        stopped += waited is None
        going_on_s.append(_GOES_ON_WITHIN_S if waited is None else waited)
    told = recorders.end(at_once=True)
    lost, twice = wrong_in(folder, config, told)
    n, note = len(told.kept), f"{trial.size.kills} kills, {trial.size.cuts} cuts of all connections"
    trial.report.add("acknowledged_lost", lost, n=n, note=note)
    trial.report.add("kept_twice", twice, n=n, note="refused records were retried with the same key")
    trial.report.add("told_errors", len(told.refused), n=n + len(told.refused), note="the other calls waited")
    trial.report.add("untold_errors", len(told.untold), n=n, note="errors that are not an OrchestraMemError")
    trial.report.add("stopped", stopped, n=len(going_on_s), note=f"times without recovery within {_GOES_ON_WITHIN_S} s")
    trial.report.percentiles("goes_on", going_on_s, (50,), unit="s", note="until every process has recorded again")
    for error in {*told.refused[:2], *told.untold[:3]}:
        trial.report.note(f"told: {error}")


def until_all_go_on(server: PostgresServer, schema: str) -> float | None:
    """Wait until each process has recorded again; return the seconds, or None if one did not."""
    begun = time.monotonic()
    query = (
        f"SELECT count(DISTINCT split_part(idempotency_key, '-', 1)) FROM {schema}.operations "
        "WHERE id > %s AND idempotency_key IS NOT NULL"
    )
    with server.connect() as connection:
        (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {schema}.operations").fetchone() or (0,)
        while time.monotonic() < begun + _GOES_ON_WITHIN_S:
            if connection.execute(query, (last,)).fetchone() == (_UNDER_KILLS,):
                return time.monotonic() - begun
            time.sleep(0.02)
    return None


def simulate(trial: Trial, cores: int) -> None:
    """Predict the measured times of eight processes, then simulate fleets and one project with many agents."""
    report, measured, n = trial.report, trial.measured, trial.size.simulated
    assert measured is not None
    here = Costs(
        held=measured.held - measured.idle, waits=measured.idle, records=measured.record_ms,
        more=(PROCESSES - 1) * measured.seen,
    )  # fmt: skip
    foretold = in_a_row(
        here, processes=PROCESSES, cores=cores, records=min(n, trial.size.records), refresh_ms=measured.refresh_ms,
        every=measured.refresh_every,
    )  # fmt: skip
    for percent in (50, 99):
        value, real = percentile(foretold.record_ms, percent), report.figures[f"record_p{percent}_ms"].value
        report.add(f"simulated_record_p{percent}_ms", value, n=n, note=f"{PROCESSES} processes; measured {real:.3g}")
    costs = Costs(
        held=measured.server, waits=measured.held - measured.server, records=measured.record_ms,
        reads=measured.reads_server, seen=measured.seen_server,
    )  # fmt: skip
    tell_fleets(trial, costs, cores)
    for shared, what in ((False, "each agent in a separate process"), (True, "all in one process, as behind `serve`")):
        hot = partial(agents, costs, projects=1, every_s=_EVERY_S, cores=cores, most_seen=_MOST_SEEN, shared=shared)
        suffix = "shared" if shared else "own"
        got = hot(count=1_000, records=n)
        note = f"1,000 agents in one project, {what}"
        report.add(f"hot_lock_used_{suffix}", got.lock_used, n=len(got.record_ms), note=note)
        report.add(f"hot_cores_used_{suffix}", got.cores_used, n=len(got.record_ms), note=note)
        report.percentiles(f"hot_record_{suffix}", got.record_ms, (50, 99), note=note)
        turns = knee(lambda count, hot=hot: hot(count=count, records=_KNEE_RECORDS), bound_ms=_KNEE_MS)  # type: ignore[misc]
        report.add(f"hot_knee_agents_{suffix}", turns, note=f"in one project, with a p99 within {_KNEE_MS:g} ms")


def tell_fleets(trial: Trial, costs: Costs, cores: int) -> None:
    """Simulate agents spread over projects, and projects over as many servers as have enough cores."""
    report = trial.report

    def got(count: int, records: int) -> Outcome:
        projects = math.ceil(count / _AGENTS_A_PROJECT)
        return agents(
            costs, count=count, projects=projects, every_s=_EVERY_S, cores=cores, most_seen=_MOST_SEEN, records=records
        )

    ms_a_second = (costs.held + costs.reads + costs.seen * _AGENTS_A_PROJECT) / _EVERY_S
    for fleet in _FLEETS:
        servers = math.ceil(fleet * ms_a_second / (1000 * cores * _BUSY))
        outcome = got(math.ceil(fleet / servers), trial.size.simulated)
        note = f"each records and reads once in 10 s; {_AGENTS_A_PROJECT} a project, {servers} servers of {cores} cores"
        report.add(f"fleet_servers_{fleet}", servers, n=fleet, note=f"of {cores} cores, at most {_BUSY:.0%} in use")
        report.add(f"fleet_cores_used_{fleet}", outcome.cores_used, n=len(outcome.record_ms), note="of each server")
        report.percentiles(f"fleet_record_{fleet}", outcome.record_ms, (50, 99), note=note)
    turns = knee(lambda count: got(count, _KNEE_RECORDS), bound_ms=_KNEE_MS)
    note = f"on one server, {_AGENTS_A_PROJECT} a project, with a p99 within {_KNEE_MS:g} ms"
    report.add("fleet_knee_agents", turns, note=note)


def measure(options: Options, report: Report) -> None:
    """Measure each part on one server, then simulate the rest."""
    size = QUICK_RUN if options.quick else FULL_RUN
    # The folders must not be nested: if root starts the server, the server runs as another user.
    with (
        TemporaryDirectory(prefix="fleet-server-", ignore_cleanup_errors=True) as data,
        TemporaryDirectory(prefix="fleet-") as folder,
    ):
        server = PostgresServer(Path(data), syncs=True)
        try:
            trial = Trial(size, report, server, Path(folder))
            measure_records(trial)
            measure_kills(trial)
            measure_moves(report, server, trial.memory("moves", on_server=False)[0], size.operations)
        finally:
            server.stop()
    simulate(trial, psutil.cpu_count() or 1)
    report.note(f"load of the machine at the end, over 1, 5 and 15 minutes: {psutil.getloadavg()}")


if __name__ == "__main__":
    sys.exit(run("fleet", measure, TARGETS))

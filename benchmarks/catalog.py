"""The catalog at size: how long what is relevant takes, and what must never happen.

`relevant`: `relevant()` for messages of agents chosen at random among 100 with 10,000 items each, while one call in
twenty stores an item first. `learn`: processes that learn are killed at random moments; every exchange that was
acknowledged before must have been learnt from afterwards. `record`: `record_operation` of about 1 KB with the catalog
and redaction on, paced as an agent is. `leaks`: random calls by agents without a grant, over every call that takes an
agent; each answer is searched for the words that only others' items have.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import Options, Report, Target, run, say
from orchestra_mem import ItemFilter, OrchestraMemError, OrchestratorContextManager, open_memory
from orchestra_mem.adapters.database import Database, SqliteCatalogStore
from orchestra_mem.catalog_types import ItemType, MemoryItem
from orchestra_mem.core.catalog.tags import tag_key

TARGETS: dict[str, Target] = {
    "relevant_p95_ms": ("<=", 10),
    "budget_exceeded": ("<=", 0),
    "expired_injected": ("<=", 0),
    "leaks": ("<=", 0),
    "learn_lost": ("<=", 0),
    "record_p99_ms": ("<=", 1),
}
_WORDS = (
    "parser lexer cache queue gateway index schema deploy backup mirror token session worker budget prompt window "
    "kernel driver socket buffer thread signal router switch ledger invoice harbour lantern juniper maple falcon stone"
).split()
_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_PROGRAM = """
import sys
from orchestra_mem import open_memory
with open_memory(sys.argv[1]) as memory:
    number = int(sys.argv[2])
    while True:
        number += 1
        memory.learn("", f"We decided to keep the juniper archive {number} in cellar {number}.", agent="ada")
        print(number, flush=True)
        if number % 3 == 0:
            memory.catalog
"""


def _fill(project: Path, agents: int, items: int) -> None:
    """Put items into a memory's database without going through the catalog one by one."""
    rng = random.Random(7)
    database = Database(project / ".obra" / "obra.db")
    store = SqliteCatalogStore(database)
    for agent in range(agents):
        with store.changing():
            for number in range(items):
                tags = tuple(rng.sample(_WORDS, 5))
                content = f"agent{agent} decided on {' '.join(tags)} number {number}."
                item = MemoryItem(
                    id=f"mem_{agent}_{number:06d}", timestamp=_NOW - timedelta(hours=rng.uniform(0, 150)),
                    ci_source=f"agent{agent}", type=rng.choice([*ItemType]), summary=content[:60], content=content,
                    tokens=24, summary_tokens=12, tags=tags, priority=rng.randint(0, 10),
                    expires=None if number % 3 else _NOW + timedelta(hours=rng.uniform(-20, 100)),
                )  # fmt: skip
                store.add(item, f"{agent} {number}", [tag_key(tag) for tag in tags])
        say(f"agent {agent}: {items:,} items")
    database.close()


def _relevant(memory: OrchestratorContextManager, agents: int, calls: int, report: Report) -> None:
    """Time what is relevant, and look at what comes."""
    rng, samples, exceeded, expired = random.Random(8), [], 0, 0
    for number in range(calls):
        agent = f"agent{rng.randrange(agents)}"
        if number % 20 == 19:
            memory.catalog.store({"content": f"news {number} of {' '.join(rng.sample(_WORDS, 4))}", "ci_source": agent})
        message = f"How do we {' '.join(rng.sample(_WORDS, rng.randint(3, 12)))}?"
        budget = rng.choice((0, 17, 200, 2_000))
        start = time.perf_counter()
        injection = memory.relevant(message, agent=agent, max_tokens=budget)
        samples.append((time.perf_counter() - start) * 1000)
        exceeded += memory._parts.counter.count(injection.text) > budget
        expired += sum(each.item.expires is not None and each.item.expires <= _NOW for each in injection.items)
    report.percentiles("relevant", samples[agents:], (50, 95), note=f"{agents} agents, each with all of its items")
    report.add("budget_exceeded", exceeded, n=calls, note="texts of more tokens than were asked for")
    report.add("expired_injected", expired, n=calls, note="items whose time was over")


def _leaks(memory: OrchestratorContextManager, count: int) -> int:
    """Count the answers to `eve` that have a word of somebody else's items."""
    rng, leaks = random.Random(9), 0
    view, catalog = memory.as_agent("eve"), memory.catalog
    calls: list[Callable[[str, str], object]] = [
        lambda words, _: view.inject(words),
        lambda words, _: [hit.chunk for hit in view.search(words).hits],
        lambda words, _: memory.relevant(words, agent="eve"),
        lambda words, _: catalog.items(ItemFilter(text=words.split()[0], statuses=[], limit=20), agent="eve"),
        lambda _, number: view.expand(number),
        lambda _, number: catalog.get(number, agent="eve"),
        lambda _, number: catalog.update(number, {"priority": 1}, agent="eve"),
        lambda _, number: catalog.delete(number, agent="eve"),
        lambda _, number: catalog.export(f"agent{len(number)}", agent="eve"),
        lambda *_: catalog.get_stats(agent="eve"),
    ]
    for _ in range(count):
        words = " ".join(rng.sample(_WORDS, 3))
        number = f"M{rng.randint(1, 400)}"
        try:
            told = repr(calls[rng.randrange(len(calls))](words, number))
        except OrchestraMemError as error:
            told = str(error)
        leaks += " decided on " in told
    return leaks


def _lost(kills: int) -> Iterator[int]:
    """Kill a process that learns, again and again; how many acknowledged exchanges came to nothing, after each kill."""
    rng = random.Random(10)
    project = tempfile.mkdtemp(prefix="catalog-")
    told = 0
    for number in range(kills):
        command = [sys.executable, "-c", _PROGRAM, project, str(told)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        told = int(child.stdout.readline() or told)
        time.sleep(rng.uniform(0, 0.3))
        child.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in child.stdout.read().split("\n") if line.strip().isdigit())])
        child.wait()
        if number % 20 == 19:
            say(f"{number + 1} kills, {told:,} exchanges")
    with open_memory(project, config={"catalog": {"max_memories_per_ci": 1_000_000}}) as memory:
        known = {int(item.content.split()[7]) for item in memory.catalog.items(ItemFilter(statuses=[]))}
    yield len({*range(1, told + 1)} - known)
    yield told


def _record(project: Path, count: int) -> list[float]:
    """Milliseconds of records of about 1 KB, as an agent makes them."""
    data, samples = {"text": "The step was taken, and its output was looked at. " * 20}, []
    with open_memory(project) as memory:
        memory.learn("", "We decided to keep the juniper archive.", agent="ada")
        for number in range(count):
            start = time.perf_counter()
            memory.record_operation("step", {**data, "n": number})
            samples.append((time.perf_counter() - start) * 1000)
            time.sleep(0.002)
    return samples[100:]


def measure(options: Options, report: Report) -> None:
    """Fill a catalog, ask it, attack it, kill it."""
    agents, items = (20, 2_000) if options.quick else (100, 10_000)
    with tempfile.TemporaryDirectory(prefix="catalog-") as folder:
        project = Path(folder)
        config = {"catalog": {"max_memories_per_ci": 1_000_000}}
        open_memory(project, clock=lambda: _NOW).close()
        _fill(project, agents, items)
        with open_memory(project, config=config, clock=lambda: _NOW) as memory:
            _relevant(memory, agents, 1_000 if options.quick else 10_000, report)
    with tempfile.TemporaryDirectory(prefix="catalog-") as folder:
        project = Path(folder)
        open_memory(project, clock=lambda: _NOW).close()
        _fill(project, 3, 130)
        with open_memory(project, clock=lambda: _NOW) as memory:
            calls = 1_000 if options.quick else 10_000
            report.add("leaks", _leaks(memory, calls), n=calls, note="answers to an agent with another's words")
        samples = _record(project, 1_500 if options.quick else 5_000)
        report.percentiles("record", samples, (50, 99), note="with catalog and redaction on")
    kills = 20 if options.quick else 200
    lost, told = _lost(kills)
    report.add("learn_lost", lost, n=told, note=f"acknowledged and never learnt from, over {kills} kills")


if __name__ == "__main__":
    sys.exit(run("catalog", measure, TARGETS))

"""Measure the agents' catalog at full size: latency, crash-safety and isolation.

`relevant`: time of `relevant()` for messages of random agents among 100 with 10,000 items each; one call in twenty
stores an item first. `learn`: processes that learn are killed at random moments; afterwards every exchange acknowledged
before the kill must have been learnt from. `record`: time of `record_operation` for about 1 KB with catalog and
redaction on, at an agent's pace. `leaks`: an agent without a grant makes random calls of every public method of its
view and every command that takes an agent; no answer may contain a word that only other agents' items hold, or, with
strict isolation, that only their operations and the documents made from them hold.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._agent_calls import MARK, AgentCalls, fill, others_items
from benchmarks._harness import Options, Report, Target, run, say
from orchestra_mem import ItemFilter, OrchestratorContextManager, open_memory
from orchestra_mem.adapters.database import Database
from orchestra_mem.catalog_types import ItemType, MemoryItem
from orchestra_mem.core.catalog.tags import tag_key
from orchestra_mem.stores import CatalogStore

TARGETS: dict[str, Target] = {
    "relevant_p95_ms": ("<=", 10),
    "budget_exceeded": ("<=", 0),
    "expired_injected": ("<=", 0),
    "leaks": ("<=", 0),
    "others_changed": ("<=", 0),
    "learn_lost": ("<=", 0),
    "record_p99_ms": ("<=", 1),
}
_WORDS = (
    "parser lexer cache queue gateway index schema deploy backup mirror token session worker budget prompt window "
    "kernel driver socket buffer thread signal router switch ledger invoice harbour lantern juniper maple falcon stone"
).split()
_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_COMMANDS_EACH = 8  # one call in this many may be a command
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
    """Insert items into a memory's database directly, without the catalog."""
    rng = random.Random(7)
    database = Database(project / ".obra" / "obra.db")
    store = CatalogStore(database)
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
    """Time `relevant()` and check what it returns."""
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
    report.percentiles("relevant", samples[agents:], (50, 95), note=f"{agents} agents, all items of each")
    report.add("budget_exceeded", exceeded, n=calls, note="texts over the token budget")
    report.add("expired_injected", expired, n=calls, note="expired items")


def _leaks(isolation: str, count: int) -> tuple[int, int]:
    """Make random calls as `eve`; return how many answers leak others' words, and how many of others' items changed."""
    rng, leaks = random.Random(9), 0
    with tempfile.TemporaryDirectory(prefix="catalog-") as folder:
        config = Path(folder) / ".obra" / "config.yaml"
        config.parent.mkdir()
        config.write_text(f"catalog: {{isolation: {isolation}}}\n", encoding="utf-8")
        with open_memory(folder) as memory:
            others = fill(memory, items=60, operations=200 if isolation == "strict" else 0)
            calls = AgentCalls(memory, Path(folder), "eve", rng)
            for number in range(count):
                # A command opens the memory anew and takes ten times as long as a method.
                told = calls.tell(rng.choice(calls.methods if number % _COMMANDS_EACH else calls.names))
                leaks += MARK.casefold() in told.casefold()
            changed = len(others ^ others_items(memory))
    say(f"isolation {isolation}: {count:,} calls of {len(calls.names)} methods and commands")
    return leaks, changed


def _lost(kills: int) -> Iterator[int]:
    """Kill a learning process repeatedly; yield how many acknowledged exchanges were lost, and how many there were."""
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
    """Return the milliseconds of records of about 1 KB at an agent's pace."""
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
    """Fill a catalog, time it, attack it and kill it."""
    agents, items = (20, 2_000) if options.quick else (100, 10_000)
    with tempfile.TemporaryDirectory(prefix="catalog-") as folder:
        project = Path(folder)
        config = {"catalog": {"max_memories_per_ci": 1_000_000}}
        open_memory(project, clock=lambda: _NOW).close()
        _fill(project, agents, items)
        with open_memory(project, config=config, clock=lambda: _NOW) as memory:
            _relevant(memory, agents, 1_000 if options.quick else 10_000, report)
    calls = 1_000 if options.quick else 10_000
    leaks, changed = map(sum, zip(*(_leaks(isolation, calls) for isolation in ("catalog", "strict")), strict=True))
    report.add("leaks", leaks, n=2 * calls, note="answers that show an agent another's words; both isolations")
    report.add("others_changed", changed, n=2 * calls, note="items of others that such a call changed")
    with tempfile.TemporaryDirectory(prefix="catalog-") as folder:
        samples = _record(Path(folder), 1_500 if options.quick else 5_000)
        report.percentiles("record", samples, (50, 99), note="with catalog and redaction enabled")
    kills = 20 if options.quick else 200
    lost, told = _lost(kills)
    report.add("learn_lost", lost, n=told, note=f"acknowledged, but never learnt from; {kills} kills")


if __name__ == "__main__":
    sys.exit(run("catalog", measure, TARGETS))

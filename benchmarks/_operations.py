"""Operations for the benchmarks: generated from a seed in the shape of an orchestrator's work, or read from recordings.

Generated work consists of tasks: a request, steps with tool outputs (test runs, diffs, searches, builds), occasionally
a decision, a failure, a rule or an open item, and a report. Words, paths, ids and figures vary; a task stays within one
component, as real work does. An entry has 50 to 400 tokens; a few tool outputs are far longer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.importers.git_history import open_git_history
from orchestra_mem.errors import HistoryError
from orchestra_mem.types import Json

START = datetime(2025, 1, 15, 8, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One operation to record, `seconds` after the previous one."""

    type: str
    data: Json
    agent: str
    seconds: float


class WorkClock:
    """A clock that only moves between operations, so that weeks of work are replayed in minutes."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> datetime:
        """Return the current time of the replay."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the clock; negative pauses are ignored."""
        self._now += timedelta(seconds=max(0.0, seconds))


_COMPONENTS = (
    "session store|token counter|retry queue|payment gateway|search index|webhook receiver|rate limiter|login form|"
    "export job|schema migrator|event bus|thumbnail worker|audit trail|feature flags|mail sender|report builder|"
    "cache layer|upload service|permission check|billing cycle|sync engine|config loader|metrics endpoint|"
    "notification feed|geo lookup|invoice renderer|job scheduler|blob storage|query planner|access log"
).split("|")
_THINGS = (
    "timeout|index|lock|header|cursor|batch|cache entry|fixture|retry|connection pool|column|snapshot|checksum|"
    "queue depth|back-off|payload|cookie|redirect|worker|transaction|null check|time zone|page size|encoding|"
    "fallback|race|deadlock|memory leak|off-by-one|validation|signature|rollback|manifest|dependency|lint rule"
).split("|")
_VERBS = (
    "rewrote|moved|removed|traced|split|measured|guarded|renamed|merged|inlined|extracted|cached|batched|retried|"
    "documented|simplified|reproduced|bisected|hardened|reverted|profiled|stubbed|typed|parallelised|validated"
).split("|")
_PLACES = "handlers|models|services|workers|adapters|views|commands|queries|jobs|policies|routes|serializers".split("|")
_AGENTS = ("planner", "coder", "reviewer", "tester", "orchestrator")
_WHY = (
    "the old one waited for a lock that nobody held|under load it doubled the latency|a restart left half of the rows|"
    "the vendor changed its answer without a notice|it hid the first error behind the second|it ran once per row|"
    "the driver keeps one statement per connection|two callers disagreed about units|nothing tested that branch|"
    "the default had been copied from the staging cluster|clients with slow links gave up too early"
).split("|")


class Generator:
    """An endless sequence of operations, determined by the seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._task = 0

    def works(self) -> Iterator[Work]:
        """Yield operations, task after task."""
        while True:
            yield from self._one_task()

    def sized(self, words: int) -> Iterator[Work]:
        """Yield operations of one kind and about one size; 250 words are about 400 tokens."""
        while True:
            self._task += 1
            topic = _Topic(self._random, self._task)
            text = topic.prose(1)
            while text.count(" ") < words:
                text += " " + topic.prose(1)
            yield self._work("task_execution", {"task_id": topic.id, "title": topic.title, "result": text}, 30)

    def _one_task(self) -> Iterator[Work]:
        self._task += 1
        chance, topic = self._random, _Topic(self._random, self._task)
        yield self._work("nl_command", {"user_input": f"{topic.title}. {topic.prose(chance.randint(1, 4))}"}, 240)
        yield self._work("plan", {"task_id": topic.id, "title": topic.title, "steps": topic.steps()}, 20)
        for _ in range(chance.randint(3, 14)):
            yield self._step(topic)
        if chance.random() < 0.3:
            yield self._work("decision", topic.decision(), 45)
        if chance.random() < 0.12:
            yield self._work("message", {"role": "user", "text": topic.rule()}, 90)
        status = "failed" if chance.random() < 0.12 else "completed"
        result = topic.prose(chance.randint(2, 6))
        yield self._work(
            "task_report", {"task_id": topic.id, "title": topic.title, "status": status, "result": result}, 60
        )

    def _step(self, topic: _Topic) -> Work:
        chance = self._random
        if chance.random() < 0.73:
            tool = chance.choices((topic.edit, topic.test_run, topic.search, topic.build), (30, 20, 15, 8))[0]
            return self._work("tool_call", {"task_id": topic.id, **tool(self._lines())}, 35)
        text = topic.prose(chance.randint(2, 8))
        said: Json = {"task_id": topic.id, "role": chance.choice(_AGENTS), "text": text}
        return self._work(chance.choice(("message", "review")), said, 35)

    def _lines(self) -> int:
        """Choose how many lines a tool prints: mostly few, in one of thirty cases some hundred."""
        chance = self._random
        return chance.randint(80, 700) if chance.random() < 0.03 else chance.randint(2, 9)

    def _work(self, kind: str, data: Json, seconds: float) -> Work:
        return Work(
            type=kind, data=data, agent=self._random.choice(_AGENTS), seconds=self._random.expovariate(1 / seconds)
        )


class _Topic:
    """The subject of a task, and the texts about it."""

    def __init__(self, chance: random.Random, number: int) -> None:
        self._chance = chance
        self.id = f"T-{number}"
        self._number = number
        self._component = chance.choice(_COMPONENTS)
        self._stem = self._component.replace(" ", "_")
        aim = chance.choice(("Fix", "Rework", "Speed up", "Test", "Extend"))
        self.title = f"{aim} the {self._component}'s {chance.choice(_THINGS)} (#{number})"

    def path(self) -> str:
        thing = self._chance.choice(_THINGS).replace(" ", "_").replace("-", "_")
        return f"src/{self._chance.choice(_PLACES)}/{self._stem}_{thing}.py"

    def test(self) -> str:
        return f"tests/{self._chance.choice(_PLACES)}/test_{self._stem}.py"

    def name(self) -> str:
        thing = self._chance.choice(_THINGS).replace("-", " ").replace(" ", "_")
        return f"{self._chance.choice(_VERBS)}_{thing}_{self._chance.randint(2, 99)}"

    def code(self) -> str:
        chance, error = self._chance, self._stem.title().replace("_", "")
        return chance.choice((
            f"return self.{self.name()}({chance.randint(0, 4096)}, limit={chance.randint(1, 512)})",
            f"if {self.name()} is None: raise {error}Error('{chance.choice(_THINGS)}')",
            f'{self.name()} = await {self._stem}.fetch("{chance.randbytes(4).hex()}", {chance.randint(1, 90)})',
            f"assert {self.name()}.{chance.choice(_VERBS)} == {chance.randint(0, 99999)}",
        ))  # fmt: skip

    def prose(self, sentences: int) -> str:
        return " ".join(self._sentence() for _ in range(sentences))

    def _sentence(self) -> str:
        chance, number = self._chance, self._chance.randint
        thing, other, verb = chance.choice(_THINGS), chance.choice(_THINGS), chance.choice(_VERBS)
        agent, elsewhere = chance.choice(_AGENTS).capitalize(), chance.choice(_COMPONENTS)
        return chance.choice((
            f"We {verb} the {thing} in `{self.path()}` because {chance.choice(_WHY)}.",
            f"The {self._component} now answers in {number(2, 900)} ms where it took {number(900, 9000)} ms.",
            f"`{self.name()}()` still reads the {thing} twice; see #{number(1, max(2, self._number))}.",
            f"Commit {chance.randbytes(5).hex()} {verb} the {other}, {number(2, 40)} files changed.",
            f"With {number(2, 64)} workers the {thing} and the {other} meet in one of {number(20, 900)} runs.",
            f"{agent} asked whether the {thing} belongs to the {elsewhere} at all.",
            f"It turned out that {chance.choice(_WHY)}, so the {other} was {verb} first.",
            f"Version {number(0, 9)}.{number(0, 30)}.{number(0, 9)} keeps the {thing} for {number(2, 72)} hours.",
        ))  # fmt: skip

    def steps(self) -> list[Json]:
        chance = self._chance
        return [
            f"{chance.choice(_VERBS)} {chance.choice(_THINGS)} in {self.path()}" for _ in range(chance.randint(2, 6))
        ]

    def decision(self) -> dict[str, Json]:
        thing, other = self._chance.choice(_THINGS), self._chance.choice(_THINGS)
        return {
            "task_id": self.id, "title": f"{self._component}: {thing}",
            "decision": f"We decided to keep the {thing} in `{self.path()}` and to drop the {other}.",
            "rationale": self.prose(2), "alternatives": [self._sentence(), self._sentence()],
        }  # fmt: skip

    def rule(self) -> str:
        thing, bound = self._chance.choice(_THINGS), self._chance.randint(5, 500)
        return self._chance.choice((
            f"Never touch the {self._component}'s {thing} without a migration. {self.prose(1)}",
            f"{self.prose(1)} From now on the {thing} must stay under {bound} ms.",
            f"TODO: the {thing} of the {self._component} is still open. {self.prose(1)}",
        ))  # fmt: skip

    def edit(self, lines: int) -> dict[str, Json]:
        path = self.path()
        body = "\n".join(f"{self._chance.choice('+-  ')}    {self.code()}" for _ in range(lines))
        diff = f"--- a/{path}\n+++ b/{path}\n@@ -{self._chance.randint(1, 400)},{lines} @@\n{body}"
        return {"tool": "edit_file", "path": path, "diff": diff, "result": self.prose(1)}

    def test_run(self, lines: int) -> dict[str, Json]:
        chance = self._chance
        failed = chance.randint(0, 2) if chance.random() < 0.25 else 0
        results = ["FAILED" if line < failed else "PASSED" for line in range(lines)]
        out = [
            f"{self.test()}::test_{self.name()} {result} [{line * 100 // lines:3d}%]"
            for line, result in enumerate(results)
        ]
        out += [f"E   AssertionError: {self.code()}"] * bool(failed)
        out.append(f"{failed} failed, {max(0, lines - failed)} passed in {chance.uniform(0.2, 90):.2f}s")
        status = "failed" if failed else "passed"
        return {"tool": "run_tests", "command": f"pytest {self.test()}", "output": "\n".join(out), "status": status}

    def search(self, lines: int) -> dict[str, Json]:
        hits = [f"{self.path()}:{self._chance.randint(3, 900)}: {self.code()}" for _ in range(lines)]
        return {"tool": "search", "query": self.name(), "output": "\n".join(hits)}

    def build(self, lines: int) -> dict[str, Json]:
        chance = self._chance
        out = [
            f"[{line + 1}/{lines}] {chance.choice(('compile', 'link', 'pack', 'sign'))} {self.path()} "
            f"{chance.randbytes(6).hex()} {chance.randint(1, 4000)} ms"
            for line in range(lines)
        ]
        return {"tool": "build", "output": "\n".join(out), "exit_code": chance.choice((0, 0, 0, 2))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An operation of a real history."""

    kind: str
    data: Json
    time: datetime


def recordings(data: Path) -> dict[str, list[Recorded]]:
    """Read the recordings in a folder by name: `agent_sessions`, git histories as `git_…`, talks as `locomo_dev`."""
    read = {data / "agent-sessions.jsonl": _agent_sessions, data / "locomo-dev.json": _talks}
    read |= dict.fromkeys(data.glob("git/*.jsonl"), _commits)
    found = {path.relative_to(data): history(path) for path, history in read.items() if path.exists()}
    return {"_".join(name.with_suffix("").parts).replace("-", "_"): found[name] for name in sorted(found)}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _commits(path: Path) -> list[Recorded]:
    return [Recorded(kind="commit", data=row, time=datetime.fromisoformat(row["date"])) for row in _rows(path)]


def _agent_sessions(path: Path) -> list[Recorded]:
    """Read the messages and tool outputs of recorded agent sessions."""
    history = []
    for row in _rows(path):
        tool = {"tool": row["tool"]} if row.get("tool") else {}
        data = {"role": row["role"], **tool, ("output" if tool else "text"): row["text"]}
        history.append(Recorded(kind=row["type"], data=data, time=datetime.fromisoformat(row["timestamp"])))
    return history


def _talks(path: Path) -> list[Recorded]:
    """Read the turns of recorded conversations."""
    samples = json.loads(path.read_text(encoding="utf-8"))
    turns = (turn for sample in samples for session in sample["sessions"] for turn in session["turns"])
    return [
        Recorded(kind="message", data={"speaker": turn["speaker"], "text": turn["text"]},
                 time=START + timedelta(seconds=30 * number))
        for number, turn in enumerate(turns)
    ]  # fmt: skip


def own_history(checkout: Path) -> list[Recorded]:
    """Read a checkout's git history, oldest first; empty if it has none."""
    try:
        commits = open_git_history(checkout).operations
        return [Recorded(kind=each.type, data=each.data, time=each.timestamp or START) for each in commits]
    except HistoryError:
        return []


def paced(history: Sequence[Recorded]) -> list[Work]:
    """Return the operations of a git history with the pauses between them."""
    times = [each.time for each in history]
    pauses = [0.0, *(max(0.0, (after - before).total_seconds()) for before, after in pairwise(times))]
    return [
        Work(type=each.kind, data=each.data, agent="git", seconds=seconds)
        for each, seconds in zip(history, pauses, strict=True)
    ]


def again(works: Callable[[], Iterator[Work]]) -> Iterator[Work]:
    """Repeat a recording endlessly, with the number of the round in each operation."""
    for turn in count(1):
        for work in works():
            data = work.data
            if turn > 1 and isinstance(data, dict):
                data = {**data, "round": turn}
            yield Work(type=work.type, data=data, agent=work.agent, seconds=work.seconds)

"""Kill -9 at random instants and at every named write point: nothing acknowledged is lost, nothing stands twice.

A warm parent forks a child that works on a memory and tells each call that has returned through a pipe. The child ends
itself with SIGKILL at a write point, or half-way through a write, or the parent kills it at some instant; some of the
starts after that are killed as well. Then a fresh start is examined (`_survival.py`), and must go on working.

A round is one project's life of many kills; it follows from its number, but for the random instants:
`python benchmarks/crash.py --round 12` plays one again and prints all that it finds.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._survival import ENTRY_CHARS, NOTE, Violation, draft_for, examine
from orchestra_mem.adapters.tokenizers import CachedCounter, open_counter
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.core.session_document import SessionDocument
from orchestra_mem.manager import OrchestratorContextManager

TARGETS: dict[str, Target] = {
    "kills": (">=", 2_000),
    "acknowledged_lost": ("<=", 0),
    "duplicated": ("<=", 0),
    "documents_broken": ("<=", 0),
    "restarts_failed": ("<=", 0),
    "edits_lost": ("<=", 0),
    "points_missed": ("<=", 0),
}
QUICK_KILLS = 200
# Small limits, so that spills, refreshes, compactions and merges of summaries happen within dozens of operations.
CONFIG = {
    "orchestrator": {
        "context_window": {"max_tokens": 4_096},
        "working_memory": {"max_operations": 6, "max_tokens": 600},
        "session_compression_threshold": 900,
        "keep_versions": 3,
    },
    "compaction": {"verbatim_window_s": 60, "verbatim_floor_tokens": 100, "segment_tokens": 100, "fan_in": 2},
    "entries": {"max_chars": ENTRY_CHARS},
    "storage": {"lock_timeout_s": 10, "busy_timeout_s": 10},
}
_COUNTER = CachedCounter(open_counter("estimate"), max_entries=20_000)
_START = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
_LIVES_A_ROUND = 24
_STEPS = 45
_LONGEST_LIFE_S = 0.25
_LONGEST_START_S = 0.02
# Most points that a start passes when it has much to mend; later ones are met by the kills at points by name.
_RECOVERY_POINTS = 12
_DRY_LIVES = 8
_EXAMPLES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """When a child ends: at the `nth` passing of a write point (of any, where `point` is empty), or after a time.

    `torn` is the share of the bytes that the write at hand still puts on disk; 1 ends it at the point itself.
    """

    point: str = ""
    nth: int = 0
    torn: float = 1.0
    after_s: float | None = None

    def __str__(self) -> str:
        """Say it as in `version.rename.after #2`."""
        if self.after_s is not None:
            return f"after {self.after_s * 1000:.0f} ms"
        torn = f", {self.torn:.0%} written" if self.torn < 1 else ""
        return f"{self.point or 'any point'} #{self.nth}{torn}" if self.nth else "not at all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The write points there are: of any life, with how often one passes each, and those of a project's first start."""

    names: tuple[str, ...]
    at_birth: tuple[str, ...]
    a_life: Mapping[str, float]


class Clock:
    """A clock that goes on by some seconds with every look at it."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def __call__(self) -> datetime:
        """The time; the next one is later."""
        self.now += timedelta(seconds=3)
        return self.now


class Reaper:
    """The write point that ends the process."""

    def __init__(self, doom: Doom) -> None:
        self._doom = doom
        self._passed = 0

    def __call__(self, point: str) -> None:
        """End the process if its time has come."""
        if self._doom.point in ("", point) and self._doom.nth:
            self._passed += 1
            if self._passed == self._doom.nth:
                self._strike()

    def _strike(self) -> None:
        if self._doom.torn == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        write = os.write

        def torn(descriptor: int, data: bytes) -> int:
            write(descriptor, bytes(data)[: int(len(data) * self._doom.torn)])
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        os.write = torn  # type: ignore[assignment]


def steps(rng: random.Random, point: str = "") -> list[str]:
    """What a child does, in its order; early on what passes a point."""
    kind = {"archive": "flush"}.get(point.partition(".")[0], point.partition(".")[0])
    plan = ["record"] * rng.randint(4, 12) + (["refresh", kind] if kind in ("flush", "restore") else [])
    while len(plan) < _STEPS:
        plan += ["record"] * rng.randint(1, 14)
        plan.append(rng.choice(("refresh", "refresh", "context", "flush", "reopen", "restore")))
    return plan


def live(project: Path, life: str, plan: Sequence[str], doom: Doom, start: datetime, pipe: int) -> NoReturn:
    """Be the child: do the steps and tell each that has returned, until the end comes."""
    tell = os.write
    try:
        point, clock = Reaper(doom), Clock(start)
        memory = open_memory(project, config=CONFIG, clock=clock, counter=_COUNTER, write_point=point)
        tell(pipe, b"opened\n")
        for number, step in enumerate(plan):
            if step == "reopen":
                memory.close()
                memory = open_memory(project, config=CONFIG, clock=clock, counter=_COUNTER, write_point=point)
            else:
                tell(pipe, f"{step} {take(memory, step, f'{life}-{number}')}\n".encode())
        memory.close()
    except BaseException as error:
        tell(pipe, f"error {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\n")
    os._exit(0)


def take(memory: OrchestratorContextManager, step: str, marker: str) -> str:
    """Do one step; what it returns tells what is acknowledged."""
    if step == "record":
        kind, data = draft_for(marker)
        return f"{marker} {memory.record_operation(kind, data).id}"
    if step == "refresh":
        memory.refresh()
    elif step == "context":
        memory.get_orchestrator_context("test")
    elif step == "flush":
        memory.flush_session()
    elif step == "restore":
        versions = memory.episodic_memory.history("project_state")
        if versions:
            memory.episodic_memory.restore("project_state", versions[-1].sequence)
    return "-"


@dataclass(slots=True)
class Round:
    """A project's life of many kills, and what was seen of it."""

    number: int
    project: Path
    points: Points
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lives: int = 0

    def play(self) -> None:
        """Live and die, until a restart fails or the round is over."""
        rng = random.Random(f"round {self.number}")
        for turn in range(_LIVES_A_ROUND):
            doom = self._doom(rng, turn)
            told = [str(doom)]
            self._life(steps(rng, doom.point), doom)
            while rng.random() < 0.35:
                again = Doom(nth=rng.randint(1, _RECOVERY_POINTS))
                if rng.random() < 0.3:
                    again = Doom(after_s=rng.random() * _LONGEST_START_S)
                told.append(f"at restart {again}")
                self._life((), again)
            if not self._restart(" then ".join(told), rng):
                return

    def _doom(self, rng: random.Random, turn: int) -> Doom:
        if not turn:
            # What only a new project passes.
            return Doom(point=self.points.at_birth[self.number % len(self.points.at_birth)], nth=1)
        if turn % 3:
            # Every point in its turn, over the rounds: each of them early and late in a life.
            point = self.points.names[(self.number * _LIVES_A_ROUND + turn) * 2 // 3 % len(self.points.names)]
            return Doom(point=point, nth=1 + int(rng.random() ** 2 * self.points.a_life[point]))
        if rng.random() < 0.6:
            return Doom(after_s=rng.random() ** 2 * _LONGEST_LIFE_S)
        point = rng.choice([name for name in self.points.names if name.endswith((".append.before", ".write.before"))])
        return Doom(point=point, nth=1 + int(rng.random() ** 2 * self.points.a_life[point]), torn=rng.random() * 0.999)

    @property
    def _now(self) -> datetime:
        return _START + timedelta(minutes=20 * self.lives)

    def _life(self, plan: Sequence[str], doom: Doom) -> None:
        self.lives += 1
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.close(reading)
            live(self.project, f"r{self.number}l{self.lives}", plan, doom, self._now, writing)
        os.close(writing)
        if doom.after_s is not None:
            time.sleep(doom.after_s)
            os.kill(child, signal.SIGKILL)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            lines = pipe.read().split("\n")
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.counts["kills"] += 1
            self.reached[doom.point] += 1
        for line in lines:
            what, _, rest = line.partition(" ")
            if what == "record":
                marker, number = rest.split()
                self.acknowledged[marker] = int(number)
            elif what == "error":
                self._note_violation(Violation(kind="restart", text=f"while working: {rest}"), str(doom))

    def _restart(self, told: str, rng: random.Random) -> bool:
        """Open, examine, go on working, and let a person edit; False where the memory cannot be opened."""
        self.lives += 1
        try:
            with open_memory(self.project, config=CONFIG, clock=Clock(self._now), counter=_COUNTER) as memory:
                found = examine(self.project, memory, acknowledged=self.acknowledged, notes=self.notes)
                self.counts["examined"] += 1
                for violation in found:
                    self._note_violation(violation, told)
                marker = f"r{self.number}l{self.lives}-0"
                self.acknowledged[marker] = int(take(memory, "record", marker).split()[1])
                for step in ("context", "refresh") if rng.random() < 0.3 else ("context",):
                    take(memory, step, "")
            if rng.random() < 0.3:
                self._edit(rng)
        except Exception as error:
            self._note_violation(Violation(kind="restart", text=f"{type(error).__name__}: {error}"), told)
            return False
        return not found

    def _edit(self, rng: random.Random) -> None:
        """Be the person: add a line to the project's state, or to an entry of the live document."""
        home = self.project / HOME
        note = f"{NOTE} {self.number}.{self.lives}"
        live_documents = list((home / "sessions").glob("*.md"))
        if live_documents and rng.random() < 0.6:
            path = live_documents[0]
            document = SessionDocument.parse(path.read_bytes().decode("utf-8", "surrogateescape"))
            entries = list(document.entries().values())
            if not entries:
                return
            old = rng.choice(entries).text
            text = document.text().replace(old, f"{old.rstrip()}\n{note}.\n\n", 1)
        else:
            path = home / "memory" / "project_state.md"
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            text = text.replace("## Blockers\n\n", f"## Blockers\n\n- {note}.\n", 1)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        self.notes.append(note)

    def _note_violation(self, violation: Violation, told: str) -> None:
        self.counts[violation.kind] += 1
        self.violations.append(f"[{violation.kind}] round {self.number}, life {self.lives}: {violation.text} ({told})")


def known_points() -> Points:
    """Every write point that some lives without an end pass."""
    birth: list[str] = []
    seen: list[str] = []
    for seed in range(_DRY_LIVES):
        folder = _new_folder()
        try:
            config = CONFIG | {"storage": {"durability": ("normal", "full")[seed % 2]}}
            open_memory(folder, config=config, clock=Clock(_START), counter=_COUNTER, write_point=birth.append).close()
            memory = open_memory(folder, config=config, clock=Clock(_START), counter=_COUNTER, write_point=seen.append)
            with memory:
                for number, step in enumerate(steps(random.Random(seed), "restore")):
                    take(memory, step, f"dry{seed}-{number}")
        finally:
            shutil.rmtree(folder)
    a_life = {point: count / _DRY_LIVES for point, count in sorted(Counter(seen).items())}
    return Points(names=tuple(a_life), at_birth=tuple(sorted(set(birth) - set(seen))), a_life=a_life)


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="crash-", dir=_new_folder_parent()))


def _new_folder_parent() -> str:
    # In main memory the waiting for the disk falls away, and nothing else.
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def play(number: int, points: Points) -> Round:
    """Play one round in a folder of its own."""
    folder = _new_folder()
    try:
        # Every other project waits for the disk with each operation, which has write points of its own.
        if number % 2:
            (folder / HOME).mkdir()
            (folder / HOME / "config.yaml").write_text("storage:\n  durability: full\n", encoding="utf-8")
        played = Round(number=number, project=folder, points=points)
        played.play()
        return played
    finally:
        shutil.rmtree(folder)


def measure(options: Options, report: Report) -> None:
    """Play rounds until enough kills have happened, and every point had its own."""
    wanted = QUICK_KILLS if options.quick else int(TARGETS["kills"][1])
    points = known_points()
    counts: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    violations: list[str] = []
    number = 0
    every = (*points.names, *points.at_birth)
    missed = list(every)
    while counts["kills"] < wanted or (missed and number < 3 * wanted // _LIVES_A_ROUND):
        number += 1
        played = play(number, points)
        counts += played.counts
        reached += played.reached
        violations += played.violations
        missed = [point for point in every if not reached[point]]
        if not number % 10:
            say(f"{counts['kills']:,} kills in {number} rounds, {len(violations)} violations")
    report.add("kills", counts["kills"], n=number, note="processes ended with SIGKILL, in so many projects")
    report.add("acknowledged_lost", counts["lost"], n=counts["examined"], note="acknowledged, and gone or changed")
    report.add("duplicated", counts["duplicated"], n=counts["examined"], note="in the log twice, or in two tiers")
    report.add("documents_broken", counts["document"], n=counts["examined"], note="torn, out of step, left behind")
    report.add("restarts_failed", counts["restart"], n=counts["examined"], note="did not open, or did not go on")
    report.add("edits_lost", counts["edit"], n=counts["examined"], note="lines that a person wrote, gone")
    report.add("points_missed", len(missed), n=len(every), note="named write points at which none was killed")
    named = sum(count for point, count in reached.items() if point)
    report.add("kills_at_points", named, n=len(every), note="of them at a named write point")
    report.add(
        "kills_a_point_min", min(reached[point] for point in every), n=len(every), note="the least for one point"
    )
    report.note(f"The projects lay in {_new_folder_parent()}: SIGKILL leaves what the system was told, on disk or not.")
    for text in [*violations[:_EXAMPLES], *(f"never killed at {point}" for point in missed)]:
        report.note(text)


def main(arguments: Sequence[str]) -> int:
    """Measure, or play one round again."""
    if arguments[:1] == ["--round"]:
        logging.getLogger("orchestra_mem").addHandler(logging.NullHandler())
        played = play(int(arguments[1]), known_points())
        for text in played.violations:
            print(text)
        print(f"round {played.number}: {dict(played.counts)}")
        return int(bool(played.violations))
    targets = TARGETS | {"kills": (">=", QUICK_KILLS)} if "--quick" in arguments else TARGETS
    return run("crash", measure, targets, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Kill -9 at random instants and at every named write point: nothing acknowledged is lost, nothing is duplicated.

A warm parent forks a child that works on a memory and reports each call that has returned through a pipe. The child
kills itself with SIGKILL at a write point or half-way through a write, or the parent kills it at a random instant; some
of the starts after that are killed as well. Then a fresh start is examined (`_survival.py`), and must continue to work.

Between the lives, before steps and in the middle of writes, a person edits the episodic documents (`_crash_person.py`);
these edits must survive as well (`_crash_person.py`).

A round is one project with many kills. It is determined by its number, except for the random instants:
`python benchmarks/crash.py --round 12` repeats round 12 and prints everything that it finds.
"""

from __future__ import annotations

import logging
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._crash_child import SPOILING, START, STEP_S, Doom, Wire, live, open_here, take
from benchmarks._crash_person import Person, examine_edits
from benchmarks._crash_points import DURABILITIES, Points, be_born, kinds_in_code, known_points, steps
from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._survival import Violation, examine, examine_work
from orchestra_mem.build import HOME
from tests.memories import Clock

TARGETS: dict[str, Target] = {
    "kills": (">=", 2_000),
    "acknowledged_lost": ("<=", 0),
    "duplicated": ("<=", 0),
    "documents_broken": ("<=", 0),
    "restarts_failed": ("<=", 0),
    "edits_lost": ("<=", 0),
    "edits_undone": ("<=", 0),
    "points_missed": ("<=", 0),
}
QUICK_KILLS = 200
_LIVES_A_ROUND = 16
# Two of three lives, except the first, end at a named point.
_POINTS_A_ROUND = 10
_LONGEST_LIFE_S = 0.25
_LONGEST_START_S = 0.02
# Highest write point at which a restart is killed; later points are covered by the kills at named points.
_RECOVERY_POINTS = 12
_EXAMPLES = 12
# A RAM disk only removes the waiting for the disk; the writes stay the same.
_PARENT = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


@dataclass(slots=True)
class Round:
    """One project with many kills, and the findings."""

    number: int
    project: Path
    points: Points
    old: Path
    person: Person
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, int] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    lives: int = 0

    def play(self) -> None:
        """Run and kill the project until a restart fails or the round is over."""
        rng = random.Random(f"round {self.number}")
        for turn in range(_LIVES_A_ROUND):
            doom = self._doom(rng, turn)
            told = [str(doom)]
            if not self._life(steps(rng, doom.point), doom) and doom.point:
                # Not every life passes the point `nth` times, but every life passes it once.
                doom = replace(doom, nth=1)
                told.append(f"instead {doom}")
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
            # Points that only a new project passes.
            return Doom(point=self.points.at_birth[self.number % len(self.points.at_birth)], nth=1)
        if turn % 3:
            # Cycle through all points over the rounds; odd rounds, which have another durability, start in the middle.
            names, (pair, middle) = self.points.names, divmod(self.number, 2)
            place = pair * _POINTS_A_ROUND + turn - turn // 3 - 1 + middle * len(names) // 2
            point = names[place % len(names)]
            return Doom(point=point, nth=self._nth(rng, point), saving=self._saving(rng, point))
        if rng.random() < 0.6:
            return Doom(after_s=rng.random() ** 2 * _LONGEST_LIFE_S, saving=self._saving(rng))
        point = rng.choice([name for name in self.points.names if name.endswith((".append.before", ".write.before"))])
        return Doom(point=point, nth=self._nth(rng, point), torn=rng.random() * 0.999)

    def _nth(self, rng: random.Random, point: str) -> int:
        return 1 + int(rng.random() ** 2 * self.points.a_life[point])

    def _saving(self, rng: random.Random, point: str = "") -> str:
        """Choose the point at which a person saves; a `.back.` point is only passed if a save collides with a write."""
        if ".back." in point:
            return f"{point.partition('.')[0]}.rename.before"
        return rng.choice(self.points.names) if rng.random() < 0.4 else ""

    @property
    def _now(self) -> datetime:
        return START + timedelta(hours=self.lives)

    def _life(self, plan: Sequence[str], doom: Doom) -> bool:
        """Run one life; return whether the child was killed."""
        self.lives += 1
        reading, telling = os.pipe()
        waiting, answering = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.close(reading)
            os.close(answering)
            wire = Wire(telling, waiting)
            live(self.project, f"r{self.number}l{self.lives}", plan, doom, self._now, wire)
        os.close(telling)
        os.close(waiting)
        self._attend(reading, answering, child, doom)
        _, status = os.waitpid(child, 0)
        os.close(answering)
        self.old.unlink(missing_ok=True)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if killed:
            self.counts["kills"] += 1
            self.reached[doom.point] += 1
        fault = self.person.died()
        if fault:
            self._note_violation(Violation(kind="edit", text=fault), str(doom))
        return killed

    def _attend(self, reading: int, answering: int, child: int, doom: Doom) -> None:
        """Process a child's reports and requests, and kill the child when its time has come."""
        end = None if doom.after_s is None else time.monotonic() + doom.after_s
        heard = b""
        while True:
            if end is not None:
                ready = select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]
                if not ready or time.monotonic() >= end:
                    os.kill(child, signal.SIGKILL)
                    end = None
            data = os.read(reading, 1 << 16)
            if not data:
                break
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                if self._resolve_deleted_remarks(line.decode(), doom):
                    with suppress(BrokenPipeError):  # the child has been killed
                        os.write(answering, b".")
        os.close(reading)

    def _resolve_deleted_remarks(self, line: str, doom: Doom) -> bool:
        """Process one report of a child; return whether the child waits for an answer."""
        what, _, rest = line.partition(" ")
        if what == "record":
            marker, number = rest.split()
            self.acknowledged[marker] = int(number)
        elif what == "work":
            marker, number = rest.split()
            self.work[marker] = int(number)
        elif what in SPOILING and rest != "-":
            self.person.notes.append(rest)
        elif what == "error":
            self._note_violation(Violation(kind="restart", text=f"while working: {rest}"), str(doom))
        elif what in ("done", "refused"):
            self.person.finished(done=what == "done")
        elif what in Person.REQUESTS:
            self.person.do(line)
            return True
        return False

    def _restart(self, told: str, rng: random.Random) -> bool:
        """Open and examine the memory, continue to work, and let a person edit; False if anything is violated."""
        self.lives += 1
        before = len(self.violations)
        try:
            with open_here(self.project, Clock(self._now, step_s=STEP_S)) as memory:
                said, notes = self.person.said, self.person.notes
                missing = said.removed | said.unseen
                self._note(
                    examine(self.project, memory, acknowledged=self.acknowledged, notes=notes, removed=missing), told
                )
                self._note(examine_work(memory, self.work), told)
                self._note(examine_edits(self.project, memory, said, taken_in=False), told)
                self.counts["examined"] += 1
                marker = f"r{self.number}l{self.lives}-0"
                self.acknowledged[marker] = int(take(memory, "record", marker).split()[1])
                take(memory, "context", "")
                if rng.random() < 0.5:
                    take(memory, "refresh", "")
                    said.unseen.clear()
                self._note(examine_edits(self.project, memory, said, taken_in=True), f"{told}, after more operations")
            if rng.random() < 0.2:
                self.person.note_in_session()
            while rng.random() < 0.4:
                self.person.edit()
        except Exception as error:
            self._note_violation(Violation(kind="restart", text=f"{type(error).__name__}: {error}"), told)
        return len(self.violations) == before

    def _note(self, violations: Iterable[Violation], told: str) -> None:
        for violation in violations:
            self._note_violation(violation, told)

    def _note_violation(self, violation: Violation, told: str) -> None:
        self.counts[violation.kind] += 1
        self.violations.append(f"[{violation.kind}] round {self.number}, life {self.lives}: {violation.text} ({told})")


def play(number: int, known: Mapping[str, Points]) -> Round:
    """Play one round in a new folder; `known` maps the project's durability to its write points."""
    durability = DURABILITIES[number % len(DURABILITIES)]
    with tempfile.TemporaryDirectory(prefix="crash-", dir=_PARENT) as folder:
        project = Path(folder)
        played = Round(
            number=number,
            project=project,
            points=known[durability],
            old=be_born(project, durability),
            person=Person(project / HOME, random.Random(f"person {number}")),
        )
        played.play()
        return played


def all_points() -> dict[str, Points]:
    """Return the write points of a project of each durability."""
    return {durability: known_points(durability, _PARENT) for durability in DURABILITIES}


def measure(options: Options, report: Report) -> None:
    """Play rounds until enough kills have happened and every point has been killed at."""
    wanted = QUICK_KILLS if options.quick else int(TARGETS["kills"][1])
    known = all_points()
    counts: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    violations: list[str] = []
    number = 0
    every = sorted({point for points in known.values() for point in (*points.names, *points.at_birth)})
    every += sorted(f"{kind}.*" for kind in kinds_in_code() - {point.partition(".")[0] for point in every})
    missed = list(every)
    while counts["kills"] < wanted or (missed and number < 3 * wanted // _LIVES_A_ROUND):
        number += 1
        played = play(number, known)
        counts += played.counts
        reached += played.reached
        violations += played.violations
        missed = [point for point in every if not reached[point]]
        if not number % 10:
            say(f"{counts['kills']:,} kills in {number} rounds, {len(violations)} violations")
    report.add("kills", counts["kills"], n=number, note="processes ended with SIGKILL; n: projects")
    report.add("acknowledged_lost", counts["lost"], n=counts["examined"], note="acknowledged, but missing or changed")
    report.add("duplicated", counts["duplicated"], n=counts["examined"], note="in the log twice, or in two tiers")
    report.add("documents_broken", counts["document"], n=counts["examined"], note="torn, inconsistent or left over")
    report.add("restarts_failed", counts["restart"], n=counts["examined"], note="could not open, or could not continue")
    report.add("edits_lost", counts["edit"], n=counts["examined"], note="lines that a person wrote, missing")
    report.add("edits_undone", counts["returned"], n=counts["examined"], note="removed by a person, but there again")
    report.add("points_missed", len(missed), n=len(every), note="named write points without a kill")
    named = sum(count for point, count in reached.items() if point)
    report.add("kills_at_points", named, n=len(every), note="kills at a named write point")
    report.add("kills_a_point_min", min(reached[point] for point in every), n=len(every), note="fewest at one point")
    report.note(f"The projects were in {_PARENT}. After SIGKILL the system still has all writes, on disk or not.")
    for text in [*violations[:_EXAMPLES], *(f"never killed at {point}" for point in missed)]:
        report.note(text)


def main(arguments: Sequence[str]) -> int:
    """Measure, or repeat one round."""
    if arguments[:1] == ["--round"]:
        logging.getLogger("orchestra_mem").addHandler(logging.NullHandler())
        played = play(int(arguments[1]), all_points())
        for text in played.violations:
            print(text)
        print(f"round {played.number}: {dict(played.counts)}")
        return int(bool(played.violations))
    targets = TARGETS | {"kills": (">=", QUICK_KILLS)} if "--quick" in arguments else TARGETS
    return run("crash", measure, targets, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

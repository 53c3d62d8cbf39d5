"""The write points that `crash.py` kills at: their names, and plans of steps that are certain to pass them."""

from __future__ import annotations

import ast
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._crash_child import START, STEP_S, Doom, Reaper, Worker, open_here
from benchmarks._crash_person import Person
from orchestra_mem.build import HOME
from orchestra_mem.ports import WritePoint
from tests.memories import Clock

PACKAGE = Path(__file__).resolve().parents[1] / "orchestra_mem"
DURABILITIES = ("normal", "full")
_STEPS = 45
_RECORDS = ("record",) * 8
_UPDATE = ("record", "refresh")
_OTHER_STEPS = (
    *("refresh", "refresh", "work", "better", "context", "flush", "reopen", "restore"),
    *("edit", "item", "collide", "accept", "reject"),
)
# Steps that pass the write points of a kind, after some operations; each of several alternatives is sufficient.
_PROVOKING: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "compact": ((*_RECORDS * 3, "refresh", *_RECORDS, "refresh"),),
    "version": (_UPDATE * 5,),
    "restore": ((*_UPDATE, "restore"),),
    "flush": (("flush",),),
    "work": (("work",),),
    # A model's summary replaces the extract, of a segment and of an ended session.
    "improve": ((*_RECORDS * 3, "refresh", "better", *_RECORDS, "refresh", "flush", "better", *_RECORDS, "refresh"),),
    # Edits of a person are read, with and without the command that opens an editor.
    "edit": (("item", "context"), ("refresh", "edit", "item", "context")),
    "resolve": (("refresh", "collide", *_UPDATE, "accept"), ("refresh", "collide", *_UPDATE, "reject")),
    "resume": (("tear", "reopen"), ("section", "reopen"), ("line", "reopen"), ("flush", *_RECORDS)),
}
# `catalog.py` kills processes that learn, `machines.py` those that copy documents between machines. `redact apply` and
# `move` work on a memory that is not open elsewhere, `backup` on a separate file; each can be repeated.
_ELSEWHERE = {"audit", "catalog", "copy", "learn", "pull", "purge", "redact", "sharing"}
_SAME = {"compaction": "compact", "archive": "flush", "job": "improve", "trial": "improve", "draft": "improve"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Write points of any life, with their passings per life, and write points of a project's first start only."""

    at_birth: tuple[str, ...]
    a_life: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The write points of any life, in order."""
        return tuple(self.a_life)


def steps(rng: random.Random, point: str = "") -> list[str]:
    """Make a plan for a child; its early steps are certain to pass the kind of `point`."""
    plan = ["record"] * rng.randint(8, 12)
    kind = point.partition(".")[0]
    ways = list(_PROVOKING.get(_SAME.get(kind, kind), (_UPDATE,)))
    rng.shuffle(ways)
    plan += [step for way in ways for step in way]
    end = len(plan) + _STEPS
    while len(plan) < end:
        plan += ["record"] * rng.randint(1, 14)
        plan.append(rng.choice(_OTHER_STEPS))
    return plan


def be_born(project: Path, durability: str) -> Path:
    """Lay out a project before its first start, with an old session document that the first start has to report.

    Returns:
        The old document, to be removed after that start.
    """
    home = project / HOME
    old = home / "sessions" / "archive" / "session_of_old.md"
    old.parent.mkdir(parents=True)
    old.write_text("# A session of which the database knows nothing\n", encoding="utf-8")
    # With durability `full`, each operation waits for the disk, and this wait has write points of its own.
    (home / "config.yaml").write_text(f"storage:\n  durability: {durability}\n", encoding="utf-8")
    return old


def known_points(durability: str, parent: str | None) -> Points:
    """Find every write point by running one life per kind of point, without kills, in one project.

    Args:
        durability: Durability setting of the project.
        parent: Parent folder of the project.
    """
    with tempfile.TemporaryDirectory(prefix="crash-", dir=parent) as project:
        folder = Path(project)
        old = be_born(folder, durability)
        birth: Counter[str] = Counter()
        open_here(folder, Clock(START, step_s=STEP_S), write_point=_counting(birth)).close()
        old.unlink()
        person = Person(folder / HOME, random.Random("dry"))
        # The first flush and the start after it finish the handling of the old document.
        _live_dry(folder, "birth", ["record", "flush", "reopen"], Doom(), birth, person)
        seen: Counter[str] = Counter()
        for kind in _PROVOKING:
            _live_dry(folder, kind, steps(random.Random(kind), kind), Doom(), seen, person)
        backs: Counter[str] = Counter()
        for kind in {point.partition(".")[0] for point in seen if point.endswith(".rename.before")}:
            doom = Doom(saving=f"{kind}.rename.before")
            _live_dry(folder, f"{kind}-back", steps(random.Random(kind), kind), doom, backs, person)
    a_life = {point: count / len(_PROVOKING) for point, count in seen.items()}
    a_life |= {point: 1.0 for point in backs if point not in seen}
    a_life = {point: count for point, count in sorted(a_life.items()) if point.partition(".")[0] not in _ELSEWHERE}
    born = {point for point in birth if point.partition(".")[0] not in _ELSEWHERE}
    return Points(at_birth=tuple(sorted(born - set(a_life))), a_life=a_life)


def _counting(seen: Counter[str]) -> WritePoint:
    def tell(point: str) -> None:
        seen[point] += 1

    return tell


def _live_dry(folder: Path, life: str, plan: Sequence[str], doom: Doom, seen: Counter[str], person: Person) -> None:
    saving = Reaper(doom, person.do)

    def tell(point: str) -> None:
        seen[point] += 1
        saving(point)

    def hear(line: str) -> None:
        if line in ("done", "refused"):
            person.finished(done=line == "done")

    Worker(folder, f"dry-{life}", START, tell, hear, person.do).work(plan)


def kinds_in_code() -> set[str]:
    """Return the first part of the name of each write and transaction in the package's source."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py"))
    return {kind for tree in trees for kind in _kinds(tree)} - _ELSEWHERE


def _kinds(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        said: list[ast.expr] = []
        if node.func.attr in ("replace", "append", "move", "rewrite", "put"):
            said = [keyword.value for keyword in node.keywords if keyword.arg in ("name", "point")]
        elif node.func.attr == "transaction" or (node.func.attr == "write" and len(node.args) > 1):
            said = node.args[:1]  # a file's `write` has one argument
        elif node.func.attr in ("_put", "_written_in", "_write_new"):
            said = node.args[-1:]
        yield from (each.value for each in said if isinstance(each, ast.Constant) and isinstance(each.value, str))

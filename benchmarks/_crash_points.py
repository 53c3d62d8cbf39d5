"""The write points that `crash.py` kills at: which there are, and what a process does to pass each for certain."""

from __future__ import annotations

import ast
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._crash_child import START, Clock, Doom, Reaper, Worker, open_here
from benchmarks._crash_person import Person
from orchestra_mem.build import HOME
from orchestra_mem.ports import WritePoint

PACKAGE = Path(__file__).resolve().parents[1] / "orchestra_mem"
DURABILITIES = ("normal", "full")
_STEPS = 45
_RECORDS = ("record",) * 8
_UPDATE = ("record", "refresh")
_OTHER_STEPS = (
    *("refresh", "refresh", "work", "better", "context", "flush", "reopen", "restore"),
    *("edit", "item", "collide", "accept", "reject"),
)
# What must be done for the points of a kind to be passed, after some operations; of several ways each will do.
_PROVOKING: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "compact": ((*_RECORDS * 3, "refresh", *_RECORDS, "refresh"),),
    "version": (_UPDATE * 5,),
    "restore": ((*_UPDATE, "restore"),),
    "flush": (("flush",),),
    "work": (("work",),),
    # A summary that a model has bettered takes the place of the extract: of a segment, and of an ended session.
    "improve": ((*_RECORDS * 3, "refresh", "better", *_RECORDS, "refresh", "flush", "better", *_RECORDS, "refresh"),),
    # A person's words, taken in; and by the command that opens an editor.
    "edit": (("item", "context"), ("refresh", "edit", "item", "context")),
    "resolve": (("refresh", "collide", *_UPDATE, "accept"), ("refresh", "collide", *_UPDATE, "reject")),
    "resume": (("tear", "reopen"), ("section", "reopen"), ("line", "reopen"), ("flush", *_RECORDS)),
}
# What agents learn is killed by `catalog.py`, copies on several machines by `machines.py`. `redact apply` and `move`
# work on a memory that nobody has open, `backup` on a file of its own; each can be done again.
_ELSEWHERE = {"audit", "catalog", "copy", "learn", "pull", "purge", "redact", "sharing"}
_SAME = {"compaction": "compact", "archive": "flush", "job": "improve", "trial": "improve", "draft": "improve"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The write points there are: of any life, with how often one passes each, and those of a project's first start."""

    at_birth: tuple[str, ...]
    a_life: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Those of any life, in their order."""
        return tuple(self.a_life)


def steps(rng: random.Random, point: str = "") -> list[str]:
    """What a child does, in its order; early on what passes a point for certain."""
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
    """Lay down what is there before a project's first start, which also has to tell of what an earlier time left.

    Returns:
        What must be taken away after that start.
    """
    home = project / HOME
    old = home / "sessions" / "archive" / "session_of_old.md"
    old.parent.mkdir(parents=True)
    old.write_text("# A session of which the database knows nothing\n", encoding="utf-8")
    # Where it is full, a project waits for the disk with each operation, which has write points of its own.
    (home / "config.yaml").write_text(f"storage:\n  durability: {durability}\n", encoding="utf-8")
    return old


def known_points(durability: str, parent: str | None) -> Points:
    """Every write point that some lives without an end pass: one for each kind of point, in one project.

    Args:
        durability: the project's.
        parent: where the project is made.
    """
    folder = Path(tempfile.mkdtemp(prefix="crash-", dir=parent))
    try:
        old = be_born(folder, durability)
        birth: Counter[str] = Counter()
        open_here(folder, Clock(START), write_point=_counting(birth)).close()
        old.unlink()
        person = Person(folder / HOME, random.Random("dry"))
        # The first flush, and the start after it, settle what the first start has told of old documents.
        _live_dry(folder, "birth", ["record", "flush", "reopen"], Doom(), birth, person)
        seen: Counter[str] = Counter()
        for kind in _PROVOKING:
            _live_dry(folder, kind, steps(random.Random(kind), kind), Doom(), seen, person)
        backs: Counter[str] = Counter()
        for kind in {point.partition(".")[0] for point in seen if point.endswith(".rename.before")}:
            doom = Doom(saving=f"{kind}.rename.before")
            _live_dry(folder, f"{kind}-back", steps(random.Random(kind), kind), doom, backs, person)
    finally:
        shutil.rmtree(folder)
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
    """What the package calls its writes and transactions: the first part of each point's name."""
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

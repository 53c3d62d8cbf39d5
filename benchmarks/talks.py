"""How whole conversations go: after each line what stands in the tracker is held against what a person would expect.

`data/talks.yaml` holds dialogues, each a row of lines with what must hold after them: what they have `made`, what is
`then` otherwise, what the answer `tells` (and `not_tells`), that it `asks` back or that `nothing` has changed, what is
`remembers`. Each is driven through an orchestrator over a memory of its own, without a model. Where a line went wrong
the state is put right before the next, as somebody would by hand, so that each line counts once.

`--misses` lists what went wrong in the dialogues of even number, and in these alone: the odd ones are counted only.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from orchestra_mem import open_memory
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.orchestrator import Orchestrator, Outcome, Reply
from orchestra_mem.orchestrator.resolving import speaker
from orchestra_mem.types import OperationFilter
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus, WorkTracker

TARGETS: dict[str, Target] = {
    "lines_right": (">=", 0.85),
    "wrong_changes": ("<=", 0.02),
}
DATA = Path(__file__).resolve().parent / "data" / "talks.yaml"
EXPECTATIONS = ("made", "then", "tells", "nothing", "asks", "remembers")
_MISSES = "--misses"
_READ_ODD = frozenset({"t01"})  # of odd number, and yet not unread
_BETWEEN_LINES = timedelta(seconds=20)
_THINKING = timedelta(milliseconds=5)
_WORD = re.compile(r"\w+")
_FIELDS = ("status", "assignee", "priority", "parent", "waits_for", "title")

State = dict[int, dict[str, Any]]
"""By id the fields of an item, as the dialogues write them; a parent and what is waited for are ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A dialogue: lines, each with what is `say` and what must hold after it."""

    id: str
    lines: tuple[Mapping[str, Any], ...]

    @property
    def unread(self) -> bool:
        """Whether nobody who has worked on the language has read it."""
        return int(self.id.lstrip("t")) % 2 == 1 and self.id not in _READ_ODD


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one line went: `faults` in words, `wrong` those that changed what they must not."""

    talk: Talk
    line: Mapping[str, Any]
    outcome: Outcome
    answer: str
    faults: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether all that must hold did, and nothing else had changed."""
        return not (self.faults or self.wrong)


class Clock:
    """Stands still but for a moment with each look; moves on between lines."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Give the present time."""
        self.now += _THINKING
        return self.now

    def pause(self) -> None:
        """Let somebody think about the next line."""
        self.now += _BETWEEN_LINES


def load_talks(path: Path = DATA) -> list[Talk]:
    """Read the dialogues.

    Raises:
        ValueError: an id comes twice, or a line does not say what must hold.
    """
    rows = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    talks = [Talk(id=str(row["id"]), lines=tuple(row["lines"])) for row in rows]
    if len({talk.id for talk in talks}) != len(talks):
        raise ValueError(f"{path.name}: an id comes twice")
    for talk in talks:
        if not all("say" in line and any(key in line for key in EXPECTATIONS) for line in talk.lines):
            raise ValueError(f"{path.name}: {talk.id} has a line without what must hold after it")
    return talks


class Stage:
    """One dialogue under way.

    Args:
        folder: where its memory lies.
    """

    def __init__(self, folder: Path) -> None:
        self._clock = Clock()
        self._memory = open_memory(folder, clock=self._clock)
        self._orchestrator = Orchestrator(self._memory, clock=self._clock)
        self._tracker: WorkTracker = self._orchestrator.tracker
        self._ids: dict[str, int] = {}

    def close(self) -> None:
        """End the session."""
        self._orchestrator.shutdown(graceful=False)
        self._memory.close()

    def say(self, talk: Talk, line: Mapping[str, Any]) -> Verdict:
        """Say a line, judge what came of it, and put right what is wrong."""
        self._clock.pause()
        before, told = self._state(), self._last_told()
        reply = self._orchestrator.execute(str(line["say"]))
        after = self._state()
        made, faults = self._made(line, before, after)
        wanted = self._wanted(line, before)
        wrong = list(self._wrong(line, before, after, wanted, set(made)))
        faults += list(_unmet(after, wanted)) + list(self._unsaid(line, reply, told))
        if faults or wrong:
            self._put_right(line, before, wanted, made)
        self._ids.update({_key(after[item]["title"]): item for item in made})
        self._ids.update({_key(then["title"]): self._id(then["item"]) for then in _thens(line) if "title" in then})
        return Verdict(
            talk=talk, line=line, outcome=reply.outcome, answer=reply.text, faults=tuple(faults), wrong=tuple(wrong)
        )

    # What is there, and what must be

    def _state(self) -> State:
        return {item.id: _fields(item) for item in self._tracker.items()}

    def _id(self, title: str) -> int:
        return self._ids[_key(title)]

    def _wanted(self, line: Mapping[str, Any], before: State) -> dict[int, dict[str, Any]]:
        """The fields that the line has to set, by item."""
        return {self._id(then["item"]): dict(self._set(then)) for then in _thens(line)}

    def _set(self, then: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for field in _FIELDS:
            if field not in then:
                continue
            value = then[field]
            if field == "assignee":
                yield field, _person(value)
            elif field == "parent":
                yield field, self._id(value)
            elif field == "waits_for":
                yield field, frozenset(map(self._id, value))
            else:
                yield field, value

    def _made(self, line: Mapping[str, Any], before: State, after: State) -> tuple[list[int], list[str]]:
        """Which of the items that are new were meant, and what is missing."""
        new = [item for item in after if item not in before]
        made: list[int] = []
        faults: list[str] = []
        for kind, title, *parent in line.get("made") or ():
            under = self._ids.get(_key(parent[0])) if parent else None
            under = under or next((item for item in made if parent and _same(after[item]["title"], parent[0])), None)
            fits = [
                item
                for item in new
                if item not in made
                and after[item]["kind"] == kind
                and _same(after[item]["title"], title)
                and after[item]["parent"] == under
            ]
            if fits:
                made.append(fits[0])
            else:
                faults.append(f"no {kind} {title!r} under {parent or 'nothing'}")
        return made, faults

    def _wrong(
        self, line: Mapping[str, Any], before: State, after: State, wanted: State, made: set[int]
    ) -> Iterator[str]:
        """What has changed and must not have."""
        closed = {item for item in after if after[item]["status"] in ("done", "cancelled")}
        for item, fields in after.items():
            if item not in before:
                if item not in made:
                    yield f"made {fields['kind']} {fields['title']!r} under {fields['parent']}"
                continue
            for field, value in fields.items():
                if value == before[item][field] or field in wanted.get(item, {}):
                    continue
                if field == "status" and _follows(before[item], value, wanted.get(item, {}), closed):
                    continue
                yield f"{before[item]['title']!r}: {field} became {value}"
        for item, wish in wanted.items():
            for field, value in wish.items():
                now, was = after[item][field], before[item][field]
                if now != was and not _meets(field, now, value):
                    yield f"{before[item]['title']!r}: {field} became {now}, not {value}"

    def _unsaid(self, line: Mapping[str, Any], reply: Reply, told: int) -> Iterator[str]:
        answer = " ".join(reply.text.casefold().split())
        yield from (f"does not tell {part!r}" for part in line.get("tells") or () if part.casefold() not in answer)
        yield from (f"tells {part!r}" for part in line.get("not_tells") or () if part.casefold() in answer)
        if line.get("asks") and reply.outcome is not Outcome.ASKED:
            yield "did not ask"
        if line.get("remembers"):
            kept = " ".join(self._kept(told)).casefold()
            yield from (f"does not remember {part!r}" for part in line["remembers"] if part.casefold() not in kept)

    def _last_told(self) -> int:
        newest = self._memory.query_recent_operations(limit=1)
        return newest[0].id if newest else 0

    def _kept(self, told: int) -> Iterator[str]:
        """What has been kept as something told since an operation; what was merely said is no such thing."""
        for operation in self._memory.operations(OperationFilter()):
            data = operation.data
            if operation.id > told and isinstance(data, dict):
                yield from (str(data[key]) for key in ("note", "decision", "report") if key in data)
                yield from (event.reason for event in self._tracker.events() if event.operation == operation.id)

    # Putting right

    def _put_right(self, line: Mapping[str, Any], before: State, wanted: State, made: Sequence[int]) -> None:
        """Bring about by hand what the line was to bring about, and take back the rest."""
        after = self._state()
        for item, fields in after.items():
            if item not in before and item not in made:
                self._tracker.change(item, title=f"Mistake {item}", parent=0)
                self._move(item, WorkStatus.CANCELLED)
            elif item in before and fields != before[item]:
                self._set_fields(item, before[item])
        for kind, title, *parent in line.get("made") or ():
            if not any(_same(after[item]["title"], title) for item in made):
                under = self._find(parent[0], made, after) if parent else None
                self._ids[_key(title)] = self._tracker.create(WorkKind(kind), title, parent=under).id
        for item, wish in wanted.items():
            self._set_fields(item, {**before[item], **wish})

    def _find(self, title: str, made: Sequence[int], after: State) -> int:
        here = next((item for item in made if _same(after[item]["title"], title)), None)
        return here or self._id(title)

    def _set_fields(self, item: int, fields: Mapping[str, Any]) -> None:
        self._tracker.change(
            item,
            title=fields["title"],
            priority=fields["priority"],
            parent=fields["parent"] or 0,
            assignee=fields["assignee"] or "",
            depends_on=sorted(fields["waits_for"]),
        )
        self._move(item, WorkStatus(fields["status"]))

    def _move(self, item: int, status: WorkStatus) -> None:
        """Set a status, over others where there is no way straight to it."""
        for over in (None, WorkStatus.IN_PROGRESS, WorkStatus.PENDING):
            if self._tracker.item(item).status is status:
                return
            try:
                if over is not None:
                    self._tracker.set_status(item, over)
                self._tracker.set_status(item, status)
                return
            except InvalidChangeError:
                continue


def _fields(item: WorkItem) -> dict[str, Any]:
    return {
        "kind": item.kind.value,
        "title": item.title,
        "status": item.status.value,
        "assignee": item.assignee.casefold() if item.assignee else None,
        "priority": item.priority,
        "parent": item.parent,
        "waits_for": frozenset(item.depends_on),
    }


def _thens(line: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return line.get("then") or ()


def _person(name: str) -> str | None:
    if name in ("", "nobody", "none"):
        return None
    return (speaker() if name == "me" else str(name)).casefold()


def _key(title: str) -> str:
    return " ".join(_WORD.findall(str(title).casefold()))


def _same(one: str, other: str) -> bool:
    return _key(one) == _key(other)


def _meets(field: str, now: Any, wanted: Any) -> bool:
    return _same(now, wanted) if field == "title" else bool(now == wanted)


def _unmet(after: State, wanted: State) -> Iterator[str]:
    for item, wish in wanted.items():
        for field, value in wish.items():
            if not _meets(field, after[item][field], value):
                yield f"{after[item]['title']!r}: {field} is {after[item][field]}, not {value}"


def _follows(before: Mapping[str, Any], status: str, wish: Mapping[str, Any], closed: set[int]) -> bool:
    """Whether a status goes with what was asked for: what waits may be called blocked, and goes on when it need not."""
    if status == "blocked":
        return bool(wish.get("waits_for"))
    waited = before["waits_for"]
    freed = wish.get("waits_for", waited) <= closed
    return before["status"] == "blocked" and status == "pending" and bool(waited) and freed


def judged(talks: Sequence[Talk]) -> Iterator[Verdict]:
    """Drive dialogues, each over a memory of its own, and judge every line."""
    for talk in talks:
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(Path(folder))
            try:
                for line in talk.lines:
                    yield stage.say(talk, line)
            finally:
                stage.close()


def measure(options: Options, report: Report) -> None:
    """Drive all dialogues and count."""
    verdicts = list(judged(load_talks()))
    unread = [verdict for verdict in verdicts if verdict.talk.unread]
    _add(report, "lines_right", verdicts, "all that must hold does, and nothing else has changed")
    report.add(
        "wrong_changes", _share([bool(v.wrong) for v in verdicts]), n=len(verdicts), note="something changed wrongly"
    )
    _add(report, "unread_lines_right", unread, "in the dialogues that nobody has read")
    report.add("unread_wrong_changes", _share([bool(v.wrong) for v in unread]), n=len(unread))
    lost = [v.outcome is Outcome.NOT_UNDERSTOOD for v in verdicts if not v.line.get("nothing")]
    report.add(
        "not_understood", _share(lost), n=len(lost), note="said to be not understood, of what asks for something"
    )
    for key in EXPECTATIONS:
        _add(report, f"lines_right_{key}", [verdict for verdict in verdicts if key in verdict.line])
    report.note(f"{_MISSES} lists what went wrong in the dialogues of even number")


def _add(report: Report, key: str, verdicts: Sequence[Verdict], note: str = "") -> None:
    if verdicts:
        report.add(key, _share([verdict.right for verdict in verdicts]), n=len(verdicts), note=note)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def list_misses() -> None:
    """Print the lines that went wrong, of even dialogues alone."""
    for verdict in judged([talk for talk in load_talks() if int(talk.id.lstrip("t")) % 2 == 0]):
        if not verdict.right:
            expected = {key: value for key, value in verdict.line.items() if key != "say"}
            print(f"{verdict.talk.id} {'WRONG ' if verdict.wrong else ''}{verdict.line['say']!r}")
            print(f"    {expected}\n    {'; '.join((*verdict.wrong, *verdict.faults))}")
            print(f"    {verdict.outcome}: {' / '.join(verdict.answer.splitlines())[:300]}")


if __name__ == "__main__":
    if _MISSES in sys.argv:
        list_misses()
        sys.exit(0)
    sys.exit(run("talks", measure, TARGETS))

"""Drive complete conversations: after each line, compare the tracker's items with what a person would expect.

`data/talks.jsonl` holds dialogues. Each is a row of lines with the expectations after each line: items `made`, other
items changed `then`, what the answer `tells` (and `not_tells`), that it `asks` back, that `nothing` has changed, and
what is kept as told (`remembers`). The dialogues of the test split run through an orchestrator over a new memory each,
without a model.

When the orchestrator asks whether a line meant a command, the simulated user picks the first option that brings about
what the line expects, and declines if no option does; likewise he declines a question that names the wrong item, though
the dialogue says yes. The effect of an option is found by trying it and restarting the dialogue if it was wrong. What
is still not done he then repeats in plain commands; wrong changes are not undone.

`--misses` lists the lines of the train split that went wrong.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from orchestra_mem import open_memory
from orchestra_mem.orchestrator import Orchestrator, Outcome, Reply
from orchestra_mem.orchestrator.resolving import speaker
from orchestra_mem.types import OperationFilter
from orchestra_mem.work_types import WorkItem
from tests.memories import Clock

TARGETS: dict[str, Target] = {"wrong_changes": ("<=", 0.005), "end_states_right": (">=", 0.75)}
DATA = Path(__file__).resolve().parent / "data" / "talks.jsonl"
EXPECTATIONS = ("made", "then", "tells", "nothing", "asks", "remembers")
_MISSES = "--misses"
_BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_BETWEEN_LINES, _STEP_S = timedelta(seconds=20), 0.005  # between two readings of the clock
_WORD = re.compile(r"\w+")
_FIELDS = ("status", "assignee", "priority", "parent", "waits_for", "title")
NO = -1

State = dict[int, dict[str, Any]]
"""Fields of the items by id, as the dialogues write them; parents and dependencies are ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A dialogue: lines, each with the text to `say` and the expectations after it."""

    id: str
    split: str
    lines: tuple[Mapping[str, Any], ...]


@dataclass(slots=True)
class Verdict:
    """The result of one line.

    `faults`: Unmet expectations. `wrong`: Unexpected changes. `offered`: Number of options offered.
    """

    line: Mapping[str, Any]
    reply: Reply
    offered: int = 0
    said_again: bool = False
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Check whether all expectations were met and nothing else changed."""
        return not (self.faults or self.wrong)


def load_talks(path: Path = DATA) -> list[Talk]:
    """Read the dialogues.

    Raises:
        ValueError: An id is duplicated, or a line has no expectation.
    """
    rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    talks = [Talk(id=row["id"], split=row["split"], lines=tuple(row["lines"])) for row in rows]
    if len({talk.id for talk in talks}) != len(talks):
        raise ValueError(f"{path.name}: an id occurs twice")
    for talk in talks:
        if not all("say" in line and any(key in line for key in EXPECTATIONS) for line in talk.lines):
            raise ValueError(f"{path.name}: {talk.id} has a line without an expectation")
    return talks


class Stage:
    """One dialogue in progress.

    Args:
        folder: Folder of its memory.
    """

    def __init__(self, folder: Path) -> None:
        self._clock = Clock(_BEGIN, step_s=_STEP_S)
        self._memory = open_memory(folder, clock=self._clock)
        self._orchestrator = Orchestrator(self._memory, clock=self._clock)
        self._ids: dict[str, int] = {}
        self._wish: State = {}
        self.lacking = False
        self._asked = False

    def close(self) -> None:
        """End the session."""
        self._orchestrator.shutdown(graceful=False)
        self._memory.close()

    def say(self, line: Mapping[str, Any], choice: int) -> Verdict:
        """Say a line, answer a question about it with option number `choice` or no, and judge the result."""
        self._clock.now += _BETWEEN_LINES
        before, told = self.state(), max((each.id for each in self._memory.query_recent_operations(limit=1)), default=0)
        reply = self._orchestrator.execute("no" if self._asked and choice == NO else str(line["say"]))
        offered = 0 if line.get("asks") else len(reply.options) or int(self._asked)
        self._asked = bool(line.get("asks"))
        if offered and reply.options:
            answer = self._orchestrator.execute("no" if choice == NO else str(choice + 1))
            reply = answer if choice != NO else reply
        verdict = Verdict(line, reply, offered)
        made = self._made(line, before, verdict.faults)
        wanted = {}
        for then in line.get("then") or ():
            if _key(then["item"]) in self._ids:
                wanted[self._ids[_key(then["item"])]] = dict(self._set(then))
            else:
                verdict.faults.append(f"there is no {then['item']!r}")
        self._judge(before, self.state(), wanted, made, verdict)
        verdict.said_again = bool(verdict.faults) and self._say_plainly(line, wanted)
        verdict.faults += self._unsaid(line, reply, told)
        self._expect(line, before, wanted, self._made(line, before, []))
        return verdict

    def _say_plainly(self, line: Mapping[str, Any], wanted: State) -> bool:
        """Repeat in plain commands what is still missing after a line; return whether anything was."""
        commands = []
        for kind, title, *parent in line.get("made") or ():
            if _key(title) not in self._ids or self._ids[_key(title)] not in self.state():
                under = f" under #{self._ids.get(_key(parent[0]), 0)}" if parent else ""
                commands.append(f'add a {kind} "{title}"{under}')
                self._plainly(commands[-1:])
                self._made({"made": [[kind, title, *parent]]}, {}, [])
        for item, wish in wanted.items():
            for name, value in wish.items():
                if not _meets(name, self.state()[item][name], value):
                    commands += _plain(item, name, value)
        return self._plainly([command for command in commands if not command.startswith("add a ")]) or bool(commands)

    def _plainly(self, commands: Sequence[str]) -> bool:
        for command in commands:
            if self._orchestrator.execute(command).outcome is Outcome.ASKED:
                self._orchestrator.execute("yes")
        return bool(commands)

    def state(self) -> State:
        """Return the fields of all items."""
        return {item.id: _fields(item) for item in self._orchestrator.tracker.items()}

    @property
    def ended_right(self) -> bool:
        """Check whether all items are as the lines expect, with no others except cancelled ones."""
        now = {item: fields for item, fields in self.state().items() if fields["status"] != "cancelled"}
        wish = {item: fields for item, fields in self._wish.items() if fields["status"] != "cancelled"}
        differs = any(not _meets(name, now[item][name], value) for item in now.keys() & wish.keys()
                      for name, value in wish[item].items())  # fmt: skip
        return not self.lacking and now.keys() == wish.keys() and not differs

    def _set(self, then: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name in _FIELDS:
            if name not in then:
                continue
            value = then[name]
            if name == "assignee":
                yield name, _person(value)
            elif name == "parent":
                yield name, self._ids.get(_key(value), NO)
            elif name == "waits_for":
                yield name, frozenset(self._ids.get(_key(each), NO) for each in value)
            else:
                yield name, value

    def _made(self, line: Mapping[str, Any], before: State, faults: list[str]) -> list[int]:
        """List the new items that the line expects, and add a fault for each missing one."""
        after, made = self.state(), list[int]()
        for kind, title, *parent in line.get("made") or ():
            under = self._ids.get(_key(parent[0]), NO) if parent else None
            fits = [
                item for item in after
                if item not in before and item not in made and after[item]["kind"] == kind
                and _same(after[item]["title"], title) and after[item]["parent"] == under
            ]  # fmt: skip
            if fits:
                made.append(fits[0])
                self._ids[_key(title)] = fits[0]
            else:
                faults.append(f"no {kind} {title!r} under {parent or 'nothing'}")
        return made

    def _judge(self, before: State, after: State, wanted: State, made: Sequence[int], verdict: Verdict) -> None:
        """Add unexpected changes to `wrong` and missing changes to `faults`."""
        closed = {item for item in after if after[item]["status"] in ("done", "cancelled")}
        for item, fields in after.items():
            wish = wanted.get(item, {})
            if item not in before and item not in made:
                verdict.wrong.append(f"made {fields['kind']} {fields['title']!r} under {fields['parent']}")
            for name, value in fields.items() if item in before else ():
                was = before[item][name]
                if name in wish and not _meets(name, value, wish[name]):
                    verdict.faults.append(f"{fields['title']!r}: {name} is {value}, not {wish[name]}")
                    if value != was:
                        verdict.wrong.append(f"{fields['title']!r}: {name} became {value}")
                follows = name == "status" and _follows(before[item], value, wish, closed)
                if name not in wish and value != was and not follows:
                    verdict.wrong.append(f"{fields['title']!r}: {name} became {value}")

    def _expect(self, line: Mapping[str, Any], before: State, wanted: State, made: Sequence[int]) -> None:
        """Update the expected state of all items; a status change that follows from the expectations is accepted."""
        after = self.state()
        self.lacking = self.lacking or len(made) < len(line.get("made") or ())
        self.lacking = self.lacking or len(wanted) < len({_key(then["item"]) for then in line.get("then") or ()})
        closed = {item for item in after if after[item]["status"] in ("done", "cancelled")}
        self._wish |= {item: dict(after[item]) for item in made}
        for item, fields in self._wish.items():
            fields |= wanted.get(item, {})
            if item in before and _follows(before[item], after[item]["status"], wanted.get(item, {}), closed):
                fields["status"] = after[item]["status"]
        for then in line.get("then") or ():
            if "title" in then and _key(then["item"]) in self._ids:
                self._ids[_key(then["title"])] = self._ids[_key(then["item"])]

    def _unsaid(self, line: Mapping[str, Any], reply: Reply, told: int) -> Iterator[str]:
        answer = " ".join(reply.text.casefold().split())
        yield from (f"does not mention {part!r}" for part in line.get("tells") or () if part.casefold() not in answer)
        yield from (f"tells {part!r}" for part in line.get("not_tells") or () if part.casefold() in answer)
        if line.get("asks") and reply.outcome is not Outcome.ASKED:
            yield "did not ask"
        if line.get("remembers"):
            kept = " ".join(self._kept(told)).casefold()
            yield from (f"does not remember {part!r}" for part in line["remembers"] if part.casefold() not in kept)

    def _kept(self, told: int) -> Iterator[str]:
        """Yield notes, decisions, reports and reasons kept after operation `told`; mere utterances do not count."""
        for operation in self._memory.operations(OperationFilter(after=told)):
            if isinstance(operation.data, dict):
                yield from (str(operation.data[key]) for key in ("text", "report") if key in operation.data)
                events = self._orchestrator.tracker.events()
                yield from (event.reason for event in events if event.operation == operation.id)


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


def _plain(item: int, name: str, value: Any) -> list[str]:
    """Return the plain commands that set one field of an item."""
    if name == "waits_for":
        return [f"#{item} depends on #{other}" for other in value]
    if name == "assignee":
        return [f"assign #{item} to {value}" if value else f"unassign #{item}"]
    if name == "status":
        return [f"#{item} failed"] if value == "failed" else [f"{word} #{item}" for word in _COMMANDS[value].split()]
    plain = {"priority": f"set #{item} to {_LEVELS.get(value)} priority", "title": f'rename #{item} to "{value}"'}
    return [plain[name]] if name in plain else []


_COMMANDS = {"in progress": "start", "done": "finish", "blocked": "block", "deferred": "defer", "cancelled": "cancel",
             "pending": "start block unblock"}  # fmt: skip  # no single command puts an item back
_LEVELS = {1: "urgent", 2: "high", 3: "medium", 4: "low", 5: "lowest"}


def _person(name: str) -> str | None:
    if name in ("", "nobody", "none"):
        return None
    return (speaker() if name == "me" else str(name)).casefold()


def _key(title: str) -> str:
    return " ".join(_WORD.findall(str(title).casefold()))


def _same(one: str, other: str) -> bool:
    return _key(one) == _key(other)


def _meets(name: str, now: Any, wanted: Any) -> bool:
    return _same(now, wanted) if name == "title" else bool(now == wanted)


def _follows(before: Mapping[str, Any], status: str, wish: Mapping[str, Any], closed: set[int]) -> bool:
    """Check whether a status follows from dependencies: a waiting item may be blocked, a freed one pending."""
    if status == "blocked":
        return bool(wish.get("waits_for"))
    waited = before["waits_for"]
    freed = wish.get("waits_for", waited) <= closed
    return before["status"] == "blocked" and status == "pending" and bool(waited) and freed


def driven(talk: Talk) -> tuple[list[Verdict], bool]:
    """Drive a dialogue with the simulated user; return the verdicts, and whether the final state is right."""
    choices: dict[int, int] = {}
    while True:
        verdicts = list[Verdict]()
        with tempfile.TemporaryDirectory() as folder, closing(Stage(Path(folder))) as stage:
            for place, line in enumerate(talk.lines):
                choice = choices.get(place, 0)
                verdict = stage.say(line, choice)
                if verdict.offered and choice != NO and not verdict.right:
                    choices[place] = choice + 1 if choice + 1 < verdict.offered else NO
                    break
                verdicts.append(verdict)
            else:
                return verdicts, stage.ended_right


def measure(options: Options, report: Report) -> None:
    """Drive all dialogues and report the shares."""
    ended = [driven(talk) for talk in load_talks() if talk.split == "test"]
    verdicts = [verdict for each, _ in ended for verdict in each]
    wrong = [bool(verdict.wrong) for verdict in verdicts]
    report.add("wrong_changes", _share(wrong), n=len(wrong), note="something changed that must not change")
    report.add("end_states_right", _share([right for _, right in ended]), n=len(ended), note="whole dialogues")
    report.add("lines_right", _share([verdict.right for verdict in verdicts]), n=len(verdicts))
    report.add("lines_asked_about", _share([verdict.offered > 0 for verdict in verdicts]), n=len(verdicts))
    report.add("lines_said_again", _share([verdict.said_again for verdict in verdicts]), n=len(verdicts))
    for key in EXPECTATIONS:
        told = [verdict.right for verdict in verdicts if key in verdict.line]
        report.add(f"lines_right_{key}", _share(told), n=len(told))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def list_misses() -> None:
    """Print the lines of the train split that went wrong."""
    for talk in load_talks():
        verdicts, ended_right = driven(talk) if talk.split == "train" else ([], True)
        for verdict in verdicts:
            if not verdict.right:
                expected = {key: value for key, value in verdict.line.items() if key != "say"}
                print(f"{talk.id} {'WRONG ' if verdict.wrong else ''}{verdict.line['say']!r}\n    {expected}")
                print(f"    {'; '.join((*verdict.wrong, *verdict.faults))}")
                print(f"    {verdict.reply.outcome}: {' / '.join(verdict.reply.text.splitlines())[:300]}")
        if not ended_right:
            print(f"{talk.id} does not end in the right state")


if __name__ == "__main__":
    if _MISSES in sys.argv:
        list_misses()
        sys.exit(0)
    sys.exit(run("talks", measure, TARGETS))

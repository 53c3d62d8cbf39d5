"""What an orchestrator remembers of itself: each line, each try of a task, each change of work, as operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from orchestra_mem.core.search.echoes import SHOWN
from orchestra_mem.core.work.changes import told_changes
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.orchestrator.intents.types import Action
from orchestra_mem.orchestrator.replies import Effect, Outcome, Reply
from orchestra_mem.orchestrator.talk import Happening, Mention, Talk
from orchestra_mem.types import Json, Operation
from orchestra_mem.work_types import WorkEvent, WorkTracker

LINE, TASK = "nl_command", "task_execution"
"""The types of the operations that an orchestrator records: a line, a task that it ran."""
WORK = "work_change"
"""What became of work without an orchestrator: by a person's edit, or by another program."""
_REACH = 40  # so many of the newest operations are looked through for what a phrase may mean
_OTHERS_MAY_TELL = timedelta(seconds=2)  # a change this fresh may be another process's, about to be told by that
_CHANGED, _SPOKEN_OF, _UNDONE = "changed", "spoken_of", "undone"


class Journal:
    """Records what an orchestrator did, and reads it again.

    Args:
        memory: where it is recorded.
        tracker: says which changes no operation tells of yet.
        agent: the name under which it is recorded.
    """

    def __init__(self, memory: OrchestratorContextManager, tracker: WorkTracker, agent: str) -> None:
        self._memory = memory
        self._tracker = tracker
        self._agent = agent

    def record(
        self,
        reply: Reply,
        changes: Sequence[WorkEvent] = (),
        *,
        kind: str = LINE,
        data: Mapping[str, Json] | None = None,
    ) -> Reply:
        """Record a line with its answer, and say of changes that they came from it.

        Args:
            reply: the answer.
            changes: the events of what was changed.
            kind, data: the operation's type and data in the place of those of a line.
        """
        told = {**(data if data is not None else line_record(reply)), **_spoken_of(reply.effects, bool(changes))}
        return replace(reply, operation=self.record_changes(kind, told, changes).id)

    def record_changes(
        self, kind: str, data: dict[str, Json], changes: Sequence[WorkEvent], tokens_used: int | None = None
    ) -> Operation:
        """Record an operation and say of changes of work that they came from it."""
        operation = self._memory.record_operation(kind, data, tokens_used, agent=self._agent)
        if changes:
            self._tracker.attribute([event.id for event in changes], operation.id)
        return operation

    def tell_of_changes(self) -> None:
        """Record what has become of work that no operation tells of: a person's edits, and what a crash left untold."""
        changes = self._tracker.unattributed(_OTHERS_MAY_TELL)
        if not changes:
            return
        key = f"work events {changes[0].id} to {changes[-1].id}"
        text = told_changes(changes, self._tracker.item)
        data: dict[str, Json] = {
            "result": text,
            "by": ", ".join(sorted({event.author.value for event in changes})),
            _CHANGED: {Happening.CHANGED.value: _items_of(changes)},
        }
        operation = self._memory.record_operation(WORK, data, agent=self._agent, idempotency_key=key)
        self._tracker.attribute([event.id for event in changes], operation.id)

    def talk(self) -> Talk:
        """What the talk was about lately."""
        return Talk(mentions=mentions(self._recent()), lookup=self._tracker)

    def last_change(self) -> Operation | None:
        """The newest operation that changed work and has not been taken back."""
        operations = self._recent()
        undone = {data.get(_UNDONE) for data in (each.data for each in operations) if isinstance(data, dict)}
        for operation in operations:
            data = operation.data
            if isinstance(data, dict) and data.get(_CHANGED) and _UNDONE not in data and operation.id not in undone:
                return operation
        return None

    def _recent(self) -> list[Operation]:
        return self._memory.query_recent_operations(limit=_REACH)


def _items_of(changes: Sequence[WorkEvent]) -> list[Json]:
    return list(dict.fromkeys(event.item for event in changes))


def undone(operation: Operation) -> dict[str, Json]:
    """What is recorded with a line that took an operation back."""
    return {_UNDONE: operation.id}


def said(operation: Operation) -> str:
    """What an operation was about, in few words."""
    data = operation.data if isinstance(operation.data, dict) else {}
    text = data.get("user_input") or data.get("task_title") or data.get("result") or operation.type
    return " ".join(str(text).split())[:120]


def line_record(reply: Reply) -> dict[str, Json]:
    """What a line is recorded as.

    What is `shown` the memory knows already. A line that was read is `settled`: what came of it stands in the state of
    work, and no facts are looked for in it.
    """
    read = bool(reply.intents)
    return {
        "intent": ", ".join(dict.fromkeys(intent.action.value for intent in reply.intents)) or None,
        "user_input": reply.line,
        "result" if reply.outcome is Outcome.DONE else SHOWN: reply.text,
        **({"settled": True} if read else {}),
    }


def _spoken_of(effects: Sequence[Effect], changed: bool) -> dict[str, Json]:
    """The items of effects as an operation's data keep them: what was changed, and what was spoken of."""
    told: dict[str, list[Json]] = {}
    for effect in effects:
        if effect.items:
            told.setdefault(effect.happening.value, []).extend(effect.items)
    quiet = {Happening.MENTIONED.value, Happening.LISTED.value}
    done: dict[str, Json] = {did: items for did, items in told.items() if changed and did not in quiet}
    rest: list[Json] = [item for did, items in told.items() if did not in done for item in items]
    return {**({_CHANGED: done} if done else {}), **({_SPOKEN_OF: rest} if rest else {})}


def mentions(operations: Sequence[Operation]) -> list[Mention]:
    """What operations, newest first, have spoken of; newest first."""
    return [mention for operation in operations for mention in _mentions(operation)]


def _mentions(operation: Operation) -> Iterator[Mention]:
    data = operation.data
    if not isinstance(data, dict):
        return
    text = data.get("user_input", "")
    text = text if isinstance(text, str) else ""
    spoken_of = _ids(data.get(_SPOKEN_OF))
    if len(spoken_of) > 1 and data.get("intent") == Action.NEXT:
        yield Mention(items=spoken_of[-1:], happening=Happening.MENTIONED, text=text, operation=operation.id)
        spoken_of = spoken_of[:-1]
    if spoken_of:
        happening = Happening.MENTIONED if len(spoken_of) == 1 else Happening.LISTED
        yield Mention(items=spoken_of, happening=happening, text=text, operation=operation.id)
    changed = data.get(_CHANGED)
    for did, items in reversed(changed.items()) if isinstance(changed, dict) else ():
        if did in set(Happening) and (ids := _ids(items)):
            yield Mention(items=ids, happening=Happening(did), text=text, operation=operation.id)


def _ids(value: Json) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(each for each in listed if isinstance(each, int) and not isinstance(each, bool) and each > 0)

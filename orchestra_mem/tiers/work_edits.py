"""Doing to the tracker what a person has said by editing `work_plan.md`: the person's words stand.

What the tracker refuses, and what the machine had changed meanwhile, is told: once to people as a notice, and as a
remark below the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from orchestra_mem.core.documents.alignment import reordered
from orchestra_mem.core.documents.plan_edits import LineEdit, PlanEdits, Reordered, key_of
from orchestra_mem.core.documents.plan_lines import NORMAL_PRIORITY, PlanLine, said_title, shown_title
from orchestra_mem.core.work.wording import a
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus, WorkTracker

TAKEN_OUT = "its line was taken out of work_plan.md"
_NOT_READ = (
    "what you made of its line could not be read, so nothing was done; below Prioritized Backlog write it as "
    "`- [ ] #number title`, tick it as `[x]`, or strike it out as `~~#number title~~`"
)
_REASONS = {
    WorkStatus.DONE: "ticked in work_plan.md",
    WorkStatus.CANCELLED: "struck out in work_plan.md",
    WorkStatus.DEFERRED: "put off in work_plan.md",
}
_PERSON = Author.PERSON
_NEW_BELOW = {
    WorkKind.MILESTONE: WorkKind.EPIC,
    WorkKind.EPIC: WorkKind.STORY,
    WorkKind.STORY: WorkKind.TASK,
    WorkKind.TASK: WorkKind.SUBTASK,
}

Tell = Callable[[int, str], None]
"""Tells people something about an item, by its number; 0 for the plan as a whole."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One change, and whom it is about: an item by its number, or what `about` says."""

    number: int
    run: Callable[[], None]
    about: str = ""


@dataclass(slots=True)
class WorkEditor:
    """Carries out edits, one after the other. `created` are the ids of new lines by what stands for them in orders."""

    tracker: WorkTracker
    tell: Tell
    created: dict[int, int] = field(default_factory=dict)

    def apply(self, edits: PlanEdits) -> None:
        """Carry out all edits; what is refused is tried again after the others, as these may make way for it."""
        steps = list(self._steps(edits))
        while steps:
            refused = [(step, error) for step in steps if (error := _refusal(step.run))]
            if len(refused) == len(steps):
                for step, error in refused:
                    self.tell(step.number, f"{step.about}{error}" if step.about else self._named(step.number, error))
                return
            steps = [step for step, _ in refused]

    def _steps(self, edits: PlanEdits) -> Iterator[_Step]:
        """What stays first, what is opened, new lines and places; then what is closed; orders last."""
        statuses = [_Step(edit.number, partial(self._set_status, edit)) for edit in edits.changed if edit.status]
        opened = {edit.number for edit in edits.changed if edit.status and edit.status.is_open}
        for edit in edits.changed:
            yield _Step(edit.number, partial(self._change, edit))
            yield _Step(edit.number, partial(self._wait, edit))
            yield _Step(edit.number, partial(_keep_kind, edit))
        yield from (step for step in statuses if step.number in opened)
        for line in edits.added:
            yield _Step(0, partial(self._create, line), f"the new line {line.title!r} of work_plan.md: ")
        yield from (_Step(edit.number, partial(self._move, edit)) for edit in edits.changed if edit.parent is not None)
        yield from (step for step in statuses if step.number not in opened)
        for line in edits.added:
            yield _Step(0, partial(self._set_new_status, line), f"the new line {line.title!r} of work_plan.md: ")
        yield from (_Step(line.number, partial(self._take_out, line)) for line in edits.removed)
        yield from (_Step(number, _not_read) for number in edits.unread)
        for order in edits.orders:
            yield _Step(0, partial(self._reorder, order, edits), "the new order of work_plan.md: ")

    def _named(self, number: int, text: str) -> str:
        try:
            name = self.tracker.item(number).name
        except NotFoundError:
            return f"work_plan.md: {text}"
        return text if text.startswith(name) else f"{name}: {text}"

    def _change(self, edit: LineEdit) -> None:
        item, was = self.tracker.item(edit.number), edit.was
        for name, new, before, meanwhile in (
            ("title", edit.title, was.title, shown_title(item.title)),
            ("priority", edit.priority, was.priority or NORMAL_PRIORITY, item.priority),
            ("assignee", edit.assignee, was.assignee, item.assignee or ""),
        ):
            if new in (None, meanwhile):
                continue
            value = said_title(str(new)) if name == "title" else new
            self.tracker.change(item.id, **{name: value}, author=_PERSON)  # type: ignore[arg-type]
            if meanwhile != before:
                said = f'"{meanwhile}"' if meanwhile else "none"
                self.tell(item.id, f"{item.name}: its {name} had meanwhile become {said}; yours stands")

    def _wait(self, edit: LineEdit) -> None:
        item = self.tracker.item(edit.number)
        gained, lost = edit.waits_for or ((), ())
        depends_on = [number for number in (*item.depends_on, *gained) if number not in lost]
        if set(depends_on) != set(item.depends_on):
            self.tracker.change(item.id, depends_on=depends_on, author=_PERSON)

    def _move(self, edit: LineEdit) -> None:
        item = self.tracker.item(edit.number)
        if (item.parent or 0) != edit.parent:
            self.tracker.change(item.id, parent=edit.parent, author=_PERSON)

    def _create(self, line: PlanLine) -> None:
        parent = line.parent or self.created.get(-1 - line.under) or None
        if parent is None and line.under >= 0:
            raise InvalidChangeError("it stands under a line that is no work item")
        above = self.tracker.item(parent) if parent is not None else None
        if above is not None and line.kind is None and above.kind is WorkKind.SUBTASK:
            parent = above.parent
        kind = line.kind or (_NEW_BELOW.get(above.kind, WorkKind.SUBTASK) if above else WorkKind.TASK)
        item = self.tracker.create(
            kind,
            said_title(line.title),
            parent=parent,
            priority=line.priority or NORMAL_PRIORITY,
            depends_on=line.waits_for,
            assignee=line.assignee or None,
            author=_PERSON,
        )
        self.created[key_of(line)] = item.id

    def _set_status(self, edit: LineEdit) -> None:
        item, status = self.tracker.item(edit.number), edit.status
        if status is None or item.status is status:
            return
        reason = _REASONS.get(status, "changed in work_plan.md")
        self.tracker.set_status(item.id, status, reason=reason, author=_PERSON)
        if not _expected(item.status, edit.was):
            self.tell(item.id, f"{item.name}: it had meanwhile become {item.status}; your word stands: {status}")

    def _set_new_status(self, line: PlanLine) -> None:
        number, status = self.created.get(key_of(line)), line.says
        if number is not None and status not in (None, WorkStatus.PENDING):
            reason = _REASONS.get(status, "written in work_plan.md")
            self.tracker.set_status(number, status, reason=reason, author=_PERSON)

    def _take_out(self, line: PlanLine) -> None:
        item = self.tracker.item(line.number)
        if item.status.is_open:
            self.tracker.set_status(item.id, WorkStatus.CANCELLED, reason=TAKEN_OUT, author=_PERSON)
            self.tell(item.id, f"{item.name} is cancelled: {TAKEN_OUT}; put the line back to reopen it")

    def _reorder(self, order: Reordered, edits: PlanEdits) -> None:
        """Give items ranks, and where they need one another priority, so that they stand in a person's order."""
        ids = [key if key > 0 else self.created.get(key, 0) for key in order.order]
        items = {number: self.tracker.item(number) for number in ids if number}
        moved = {self.created.get(key, key) for key in order.moved}
        explicit = {edit.number for edit in edits.changed if edit.priority is not None}
        explicit |= {self.created.get(key_of(line), 0) for line in edits.added if line.priority is not None}
        placed = sorted(
            (item for item in items.values() if item.id not in moved),
            key=lambda item: (item.priority, item.rank, item.id),
        )
        row = [item.id for item in placed]
        for before, number in zip([0, *ids], ids, strict=False):
            if number in moved and number in items:
                row.insert(row.index(before) + 1 if before in row else 0, number)
        priorities = _fitting_priorities([items[number] for number in row], moved - explicit)
        for priority in sorted(set(priorities.values())):
            self._rank([items[number] for number in row if priorities[number] == priority], priority)

    def _rank(self, items: Sequence[WorkItem], priority: int) -> None:
        ranks = reordered([item.rank for item in items])
        for position, item in enumerate(items):
            rank = ranks.get(position, item.rank)
            if (item.priority, item.rank) != (priority, rank):
                self.tracker.change(item.id, priority=priority, rank=rank, author=_PERSON)


def _refusal(change: Callable[[], None]) -> str:
    """Make a change; why the tracker refuses it, empty where it does not."""
    try:
        change()
    except (InvalidChangeError, NotFoundError) as error:
        return str(error)
    return ""


def _keep_kind(edit: LineEdit) -> None:
    if edit.kind:
        raise InvalidChangeError(f"it stays {a(str(edit.was.kind))}; for {a(edit.kind)} write a new line")


def _not_read() -> None:
    raise InvalidChangeError(_NOT_READ)


def _expected(status: WorkStatus, was: PlanLine) -> bool:
    """Whether an item is as far as its line told, or has only been begun since."""
    return was.says in (None, status) or (was.says is WorkStatus.PENDING and status is WorkStatus.IN_PROGRESS)


def _fitting_priorities(row: Sequence[WorkItem], moved: set[int]) -> Mapping[int, int]:
    """By item the priority that it needs to stand where it does: moved ones take that of their new neighbours."""
    found: dict[int, int] = {}
    low = 1
    for place, item in enumerate(row):
        high = next((each.priority for each in row[place + 1 :] if each.id not in moved), 5)
        found[item.id] = max(low, min(item.priority, high)) if item.id in moved else item.priority
        low = found[item.id]
    return found

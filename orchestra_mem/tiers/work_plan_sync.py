"""Sync between `work_plan.md` and the work tracker: `Overview` selects items to show, `WorkEditor` applies edits.

A person's edit wins over a change that the machine made in the meantime. Refused edits and overridden changes are
reported as a notice, which the plan also shows as a remark below the item's line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial

from orchestra_mem.core.documents.alignment import reordered
from orchestra_mem.core.documents.episodic import Mention, PlanRow, WorkView
from orchestra_mem.core.documents.plan_edits import LineEdit, PlanEdits, Reordered, key_of
from orchestra_mem.core.documents.plan_lines import NORMAL_PRIORITY, PlanLine, item_line, said_title, shown_title
from orchestra_mem.core.text import squeeze
from orchestra_mem.core.work.transitions import TRANSITIONS
from orchestra_mem.core.work.wording import a
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus, WorkTracker

_KINDS = tuple(WorkKind)
_TO_DO = (WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.FAILED)
# Maximum number of top-level items, of items in the whole tree, and of deferred items.
_MOST_TOP = 25
_MOST_ROWS = 80
_MOST_FUTURE = 15
# Maximum number of items kept only because the plan shows them already: closed items, so that a tick can be undone, and
# items beyond the limits above, so that a person's new line in a long list does not vanish.
_MAX_KEPT = 20
_MOST_ACTIVE = 10
_MOST_EPICS = 5
_MOST_BLOCKED = 8
_MOST_DONE = 8
_MOST_NEXT = 7
_LOOKED_BACK = 60
_REASON_CHARS = 160


class Overview:
    """Builds one `WorkView`. `shown` are the item numbers in the present plan, `remarks` the remarks by item number."""

    def __init__(self, tracker: WorkTracker, shown: Sequence[int], remarks: Mapping[int, tuple[str, ...]]) -> None:
        self._tracker = tracker
        self._shown = shown
        self._remarks = remarks
        self._counts = tracker.counts()
        self._below: defaultdict[int, list[WorkItem]] = defaultdict(list)
        self._unfolded: set[int] = set()
        self._blockers: dict[int, list[WorkItem]] = {}

    def view(self) -> WorkView:
        """Return the view of the tracker's present state."""
        active = self._tracker.items(WorkFilter(statuses=(WorkStatus.IN_PROGRESS,), limit=_MOST_ACTIVE))
        epics = self._tracker.items(WorkFilter(kinds=(WorkKind.EPIC,), statuses=_TO_DO, limit=_MOST_EPICS))
        under_way = [*(epic for epic in epics if epic not in active), *active]
        self._gather_tree()
        tree = [each for item in self._below[0] for each in self._tree(item)]
        deferred = self._tracker.items(WorkFilter(statuses=(WorkStatus.DEFERRED,), limit=_MOST_FUTURE))
        return WorkView(
            counts=self._counts,
            active=[Mention(item=item, words=self._how_far(item)) for item in under_way],
            done=self._done(),
            blocked=self._blocked(active),
            next=self._next(active, [item for item, _ in tree]),
            backlog=[self._row(item, depth) for item, depth in tree],
            future=[self._row(item, 0) for item in deferred],
        )

    def _gather_tree(self) -> None:
        """Collect the tree of items to do: all top-level items first, then as many descendants as fit."""
        tops = self._tracker.items(WorkFilter(parent=0, statuses=_TO_DO, limit=_MOST_TOP))
        self._below[0] = tops
        left = _MOST_ROWS - len(tops)
        for item in tops:
            left = self._unfold(item, left)
        self._add_kept({item.id for items in self._below.values() for item in items})

    def _unfold(self, item: WorkItem, left: int) -> int:
        """Collect the descendants of an item, at most `left` of them; return how many more would fit."""
        if left <= 0:
            return 0
        self._unfolded.add(item.id)
        below = self._below[item.id] = self._to_do_below(item, left)
        left -= len(below)
        for each in below:
            left = self._unfold(each, left)
        return left

    def _to_do_below(self, item: WorkItem, limit: int) -> list[WorkItem]:
        """Return an item's children to do, without a query if the tracker has no item to do of a narrower kind."""
        if not any(self._counts[kind][status] for kind in _KINDS[_KINDS.index(item.kind) + 1 :] for status in _TO_DO):
            return []
        return self._tracker.items(WorkFilter(parent=item.id, statuses=_TO_DO, limit=limit))

    def _add_kept(self, there: set[int]) -> None:
        """Add the newest items that the plan shows but the tree lacks: closed items, and items beyond the limits."""
        found: list[WorkItem] = []
        for number in [number for number in self._shown if number not in there][: 2 * _MAX_KEPT]:
            with suppress(NotFoundError):
                item = self._tracker.item(number)
                left_out = item.status in _TO_DO and item.parent in (None, *there)
                found += [item] if left_out or not item.status.is_open else []
        newest = sorted(found, key=lambda item: (item.finished or item.changed, item.id))[-_MAX_KEPT:]
        there |= {item.id for item in newest}
        for item in newest:
            parent = item.parent if item.parent in there else 0
            self._below[parent or 0].append(item)
            self._below[parent or 0].sort(key=lambda each: (each.priority, each.rank, each.id))

    def _tree(self, item: WorkItem, depth: int = 0) -> Iterator[tuple[WorkItem, int]]:
        """Yield an item and its shown descendants in the order of the plan, each with its depth from 0."""
        yield item, depth
        for each in self._below.get(item.id, ()):
            yield from self._tree(each, depth + 1)

    def _row(self, item: WorkItem, depth: int) -> PlanRow:
        waits = tuple(each.id for each in self._waits_for(item)) if item.status.is_open else ()
        progress = self._tracker.progress(item.id).words if not depth and self._below.get(item.id) else ""
        line = item_line(item, waits_for=waits, progress=progress, depth=depth)
        return PlanRow(line=line, remarks=self._remarks.get(item.id, ()))

    def _waits_for(self, item: WorkItem) -> list[WorkItem]:
        if item.id not in self._blockers:
            self._blockers[item.id] = self._tracker.blockers(item.id) if item.depends_on else []
        return self._blockers[item.id]

    def _how_far(self, item: WorkItem) -> str:
        progress = self._tracker.progress(item.id).words
        return ", ".join(filter(None, [progress, f"@{item.assignee}" if item.assignee else ""]))

    def _done(self) -> list[Mention]:
        """Return the items that were finished last and are still done, oldest first."""
        last = {event.item: event for event in self._tracker.events(limit=_LOOKED_BACK) if event.field == "status"}
        done = sorted((event for event in last.values() if event.after == WorkStatus.DONE), key=lambda event: event.id)
        return [
            Mention(item=self._tracker.item(event.item), words=f"done {event.time:%Y-%m-%d %H:%M:%S}")
            for event in done[-_MOST_DONE:]
        ]

    def _blocked(self, active: Sequence[WorkItem]) -> list[Mention]:
        stuck = self._tracker.items(WorkFilter(statuses=(WorkStatus.BLOCKED, WorkStatus.FAILED), limit=_MOST_BLOCKED))
        told = [Mention(item=item, words=f"{item.status}{self._why(item)}") for item in stuck]
        waiting = [(item, self._waits_for(item)) for item in active]
        return told + [Mention(item=item, words=f"waits for {_named(whom)}") for item, whom in waiting if whom]

    def _why(self, item: WorkItem) -> str:
        """Return why an item is blocked or has failed: its open dependencies, or the reason given for its status."""
        if whom := self._waits_for(item):
            return f", waits for {_named(whom)}"
        events = [event for event in self._tracker.events(item.id, limit=10) if event.field == "status"]
        reason = squeeze(events[-1].reason)[:_REASON_CHARS] if events else ""
        return f", {reason}" if reason else ""

    def _next(self, active: Sequence[WorkItem], backlog: Sequence[WorkItem]) -> list[Mention]:
        """Return items to continue or start, which have no open dependencies and no open items below them."""
        urgent = self._tracker.items(WorkFilter(statuses=(WorkStatus.PENDING,), limit=_MOST_NEXT))
        pending = [item for item in backlog if item.status is WorkStatus.PENDING]
        ready = {item.id: item for item in active if self._is_ready(item)}
        # The sort is stable: within a priority, items keep the order of the tree.
        for item in sorted([item for item in urgent if item.priority < 3] + pending, key=lambda item: item.priority):
            if len(ready) >= _MOST_NEXT:
                break
            if item.id not in ready and self._is_ready(item):
                ready[item.id] = item
        return [Mention(item=item, words=self._where(item)) for item in [*ready.values()][:_MOST_NEXT]]

    def _is_ready(self, item: WorkItem) -> bool:
        if self._waits_for(item):
            return False
        if item.id in self._unfolded:
            return not any(each.status.is_open for each in self._below.get(item.id, ()))
        return not self._to_do_below(item, 1)

    def _where(self, item: WorkItem) -> str:
        progress = self._tracker.progress(item.id)
        can = "can be finished" if 0 < progress.total == progress.done else "can be started"
        words = [can if item.status is WorkStatus.PENDING else item.status.value]
        if item.parent is not None:
            words.append(f"under #{item.parent}")
        return ", ".join(words)


def _named(items: Sequence[WorkItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items[:5]) + (f" and {len(items) - 5:,} more" if len(items) > 5 else "")


TAKEN_OUT = "its line was taken out of work_plan.md"
_NOT_READ = (
    "its changed line could not be read, so nothing was changed; under Prioritized Backlog write it as "
    "`- [ ] #number title`, tick it as `[x]`, or strike it out as `~~#number title~~`"
)
_KIND_STAYS = "it stays {}, as its kind cannot be changed; for {} write a new line"
_REASONS = {
    WorkStatus.DONE: "ticked in work_plan.md",
    WorkStatus.CANCELLED: "struck out in work_plan.md",
    WorkStatus.DEFERRED: "deferred in work_plan.md",
}
_PERSON = Author.PERSON
_NEW_BELOW = {
    WorkKind.MILESTONE: WorkKind.EPIC,
    WorkKind.EPIC: WorkKind.STORY,
    WorkKind.STORY: WorkKind.TASK,
    WorkKind.TASK: WorkKind.SUBTASK,
}

Tell = Callable[[int, str], None]
"""Callback that notifies people: takes an item's number (0 for the plan as a whole) and the text."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One change to try. Its error is reported for the item `number`, prefixed with `about`."""

    number: int
    run: Callable[[], object]
    about: str = ""


@dataclass(slots=True)
class WorkEditor:
    """Applies a person's edits to the tracker. `created` maps the key of each new line (see `key_of`) to its item."""

    tracker: WorkTracker
    tell: Tell
    created: dict[int, int] = field(default_factory=dict)
    _ticked: set[int] = field(default_factory=set, init=False)

    def apply(self, edits: PlanEdits) -> None:
        """Apply all edits; retry refused edits as long as others succeed, then report the edits that remain refused."""
        steps = list(self._steps(edits))
        while steps:
            refused: list[tuple[_Step, str]] = []
            for step in steps:
                try:
                    with self.tracker.together():  # a refused step changes nothing
                        step.run()
                except (InvalidChangeError, NotFoundError) as error:
                    refused.append((step, str(error)))
            if len(refused) == len(steps):
                for step, problem in refused:
                    self.tell(step.number, f"{step.about or self._name(step.number, problem)}{problem}")
                return
            steps = [step for step, _ in refused]

    def _steps(self, edits: PlanEdits) -> Iterator[_Step]:
        """Yield steps in order: fields, open statuses, new lines, moves, other statuses, removed lines, new orders."""
        self._ticked = {edit.number for edit in edits.changed if edit.status is WorkStatus.DONE}
        statuses = [_Step(edit.number, partial(self._set_status, edit)) for edit in edits.changed if edit.status]
        opened = {edit.number for edit in edits.changed if edit.status and edit.status.is_open}
        for edit in edits.changed:
            yield _Step(edit.number, partial(self._change, edit))
            yield _Step(edit.number, partial(self._wait, edit))
            if edit.kind:
                reason = _KIND_STAYS.format(a(str(edit.was.kind)), a(edit.kind))
                yield _Step(edit.number, partial(_refuse, reason))
        yield from (step for step in statuses if step.number in opened)
        for line in edits.added:
            yield _Step(line.number, partial(self._create, line), f"the new line {line.title!r} of work_plan.md: ")
        for edit in edits.changed:
            if edit.parent is not None:
                change = partial(self.tracker.change, edit.number, parent=edit.parent, author=_PERSON)
                yield _Step(edit.number, change)
        yield from (step for step in statuses if step.number not in opened)
        for line in edits.added:
            yield _Step(0, partial(self._set_new_status, line), f"the new line {line.title!r} of work_plan.md: ")
        yield from (_Step(line.number, partial(self._take_out, line)) for line in edits.removed)
        yield from (_Step(number, partial(_refuse, _NOT_READ)) for number in edits.unread)
        for order in edits.orders:
            yield _Step(0, partial(self._reorder, order, edits), "the new order of work_plan.md: ")

    def _name(self, number: int, problem: str) -> str:
        """Return the words to put before an item's problem: the item's name, unless the problem begins with it."""
        try:
            name = self.tracker.item(number).name
        except NotFoundError:
            return "work_plan.md: "
        return "" if problem.startswith(name) else f"{name}: "

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
                self.tell(item.id, f"{item.name}: its {name} had meanwhile become {said}; yours is kept")

    def _wait(self, edit: LineEdit) -> None:
        item = self.tracker.item(edit.number)
        gained, lost = edit.waits_for or ((), ())
        depends_on = {*item.depends_on, *gained}.difference(lost)
        self.tracker.change(item.id, depends_on=[*depends_on], author=_PERSON)

    def _create(self, line: PlanLine) -> None:
        parent = line.parent or self.created.get(-1 - line.under) or None
        if parent is None and line.under >= 0:
            raise InvalidChangeError("it is below a line that is not a work item")
        above = self.tracker.item(parent) if parent is not None else None
        if above is not None and line.kind is None and above.kind is WorkKind.SUBTASK:
            parent = above.parent
        kind = line.kind or (_NEW_BELOW.get(above.kind, WorkKind.SUBTASK) if above else WorkKind.TASK)
        item = self.tracker.create(
            kind, said_title(line.title) or self.tracker.item(line.number).title, parent=parent,
            priority=line.priority or NORMAL_PRIORITY, depends_on=line.waits_for, assignee=line.assignee or None,
            author=_PERSON, number=line.number,
        )  # fmt: skip
        self.created[key_of(line)] = item.id

    def _set_status(self, edit: LineEdit) -> None:
        item, status = self.tracker.item(edit.number), edit.status
        if status is None or item.status is status:
            return
        self._move_on(item, status, "changed")
        if not _expected(item.status, edit.was):
            self.tell(item.id, f"{item.name}: its status had meanwhile become {item.status}; yours is kept: {status}")

    def _set_new_status(self, line: PlanLine) -> None:
        number, status = self.created.get(key_of(line)), line.says
        if number is not None and status not in (None, WorkStatus.PENDING):
            self._move_on(self.tracker.item(number), status, "written")

    def _move_on(self, item: WorkItem, status: WorkStatus, word: str) -> None:
        """Set a status, by way of `pending` if there is no other way."""
        reason = _REASONS.get(status, f"{word} in work_plan.md")
        path = [status] if status in TRANSITIONS[item.status] else [WorkStatus.PENDING, status]
        with self._not_waiting(item) if status is WorkStatus.DONE else nullcontext():
            for each in path:
                self.tracker.set_status(item.id, each, reason=reason, author=_PERSON)

    @contextmanager
    def _not_waiting(self, item: WorkItem) -> Iterator[None]:
        """Let a ticked item wait for nothing but items ticked in the same edit; restore its dependencies afterwards."""
        waits = {each.id for each in self.tracker.blockers(item.id)} - self._ticked
        self.tracker.change(item.id, depends_on=[*{*item.depends_on} - waits], author=_PERSON)
        yield
        self.tracker.change(item.id, depends_on=item.depends_on, author=_PERSON)  # for when the tick is taken back

    def _take_out(self, line: PlanLine) -> None:
        item = self.tracker.item(line.number)
        if item.status.is_open:
            self.tracker.set_status(item.id, WorkStatus.CANCELLED, reason=TAKEN_OUT, author=_PERSON)
            self.tell(item.id, f"{item.name} is cancelled: {TAKEN_OUT}; put the line back to reopen it")

    def _reorder(self, order: Reordered, edits: PlanEdits) -> None:
        """Change ranks, and priorities where needed, so that items come in the order that a person gave them."""
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


def _refuse(reason: str) -> None:
    raise InvalidChangeError(reason)


def _expected(status: WorkStatus, was: PlanLine) -> bool:
    """Check whether an item still has the status that its line showed (if it showed one), or was only started since."""
    return was.says in (None, status) or (was.says is WorkStatus.PENDING and status is WorkStatus.IN_PROGRESS)


def _fitting_priorities(row: Sequence[WorkItem], moved: set[int]) -> Mapping[int, int]:
    """Return the fitting priorities by item id: moved items adapt to their new neighbours in `row`."""
    found: dict[int, int] = {}
    low = 1
    for place, item in enumerate(row):
        high = next((each.priority for each in row[place + 1 :] if each.id not in moved), 5)
        found[item.id] = max(low, min(item.priority, high)) if item.id in moved else item.priority
        low = found[item.id]
    return found

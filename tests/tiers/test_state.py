"""The state of work: its invariants hold after any sequence of changes, and its events reproduce it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from orchestra_mem.adapters.database import Database
from orchestra_mem.core.work.transitions import CREATED, NOTE, field_text, net_changes, with_field
from orchestra_mem.errors import CircularDependencyError, InvalidChangeError, NotFoundError
from orchestra_mem.stores import WorkStore
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.types import Author
from orchestra_mem.work_types import PARENT_KINDS, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus
from tests.builders import cases

NOON = datetime(2025, 1, 15, 12, tzinfo=UTC)
KINDS, STATUSES = st.sampled_from(WorkKind), st.sampled_from(WorkStatus)
# Small numbers mostly hit existing items.
IDS = st.integers(1, 8)


class WorkMachine(RuleBasedStateMachine):
    """Changes a tree of work items at random, and checks all invariants after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.now = NOON
        self.operation = 0
        self.open()

    def open(self) -> None:
        """Open the database."""
        self.database = Database(Path(self.folder.name) / "obra.db")
        self.state = StateManager(store=WorkStore(self.database), clock=lambda: self.now)

    def teardown(self) -> None:
        """Close the database and delete its folder."""
        self.database.close()
        self.folder.cleanup()

    def attempt(self, change: Callable[[], object]) -> None:
        """Make a change; if it is refused, nothing must have changed."""
        self.now += timedelta(seconds=1)
        before = self.state.items(), self.state.events()
        try:
            change()
        except (InvalidChangeError, NotFoundError):
            assert (self.state.items(), self.state.events()) == before

    @initialize()
    def begin(self) -> None:
        """Create a tree that gives the later rules something to break."""
        for kind, parent in (
            (WorkKind.EPIC, None), (WorkKind.STORY, 1), (WorkKind.STORY, 1), (WorkKind.TASK, 2), (WorkKind.TASK, 2),
            (WorkKind.SUBTASK, 4), (WorkKind.EPIC, None),
        ):  # fmt: skip
            self.create(kind, parent, 1, set())

    @rule(same=st.booleans())
    def next_operation(self, same: bool) -> None:
        """Let the next changes come from another operation."""
        self.operation += not same

    @rule(kind=KINDS, parent=st.none() | IDS, priority=st.integers(1, 2), depends_on=st.sets(IDS, max_size=1))
    def create(self, kind: WorkKind, parent: int | None, priority: int, depends_on: set[int]) -> None:
        """Create an item at the end of its priority."""
        number = len(self.state.items()) + 1
        self.attempt(
            lambda: self.state.create(
                kind, f"Item {number}", parent=parent, priority=priority, depends_on=[*depends_on],
                operation=self.operation,
            )
        )  # fmt: skip

    @rule(number=IDS, status=STATUSES)
    def set_status(self, number: int, status: WorkStatus) -> None:
        """Set a status."""
        self.attempt(lambda: self.state.set_status(number, status, operation=self.operation))

    @rule(
        number=IDS, parent=st.none() | st.just(0) | IDS, depends_on=st.none() | st.sets(IDS, max_size=2),
        priority=st.none() | st.integers(1, 2), rank=st.none() | st.integers(-3, 3).map(float),
        assignee=st.sampled_from([None, "", "ann"]),
    )  # fmt: skip
    def change(self, number: int, **given: Any) -> None:
        """Change several fields at once, or none."""
        self.attempt(lambda: self.state.change(number, operation=self.operation, **given))

    @rule(back=st.integers(0, 3))
    def undo(self, back: int) -> None:
        """Undo a recent operation: its changes are reverted, and the items it created are cancelled."""
        operation = max(self.operation - back, 1)
        made = net_changes([event for event in self.state.events() if event.operation == operation])

        def undo() -> None:
            self.state.undo(operation)
            for each in made:
                item = self.state.item(each.item)
                created = any(other.item == each.item and other.field == CREATED for other in made)
                is_back = (
                    item.status is WorkStatus.CANCELLED if created else field_text(item, each.field) == each.before
                )
                assert is_back

        self.attempt(undo)

    @rule()
    def reopen(self) -> None:
        """Reopen the database: all items and events are still there."""
        before = self.state.items(), self.state.events()
        self.database.close()
        self.open()
        assert (self.state.items(), self.state.events()) == before

    @invariant()
    def all_laws_hold(self) -> None:
        """Parents, cycles, order, counts, blockers and progress are consistent."""
        items = {item.id: item for item in self.state.items()}
        assert [*items.values()] == sorted(items.values(), key=lambda item: (item.priority, item.rank, item.id))
        assert not _goes_in_circles(items)
        counts = Counter((item.kind, item.status) for item in items.values())
        for kind, by_status in self.state.counts().items():
            assert by_status == {status: counts[kind, status] for status in WorkStatus}
        for item in items.values():
            parent = items.get(item.parent or 0)
            assert (parent.kind in PARENT_KINDS[item.kind]) if parent else item.kind is not WorkKind.SUBTASK
            assert not (parent and item.status.is_open and not parent.status.is_open)
            below = [other for other in items.values() if other.parent == item.id]
            assert self.state.items(WorkFilter(parent=item.id)) == below
            wanted = [other for other in items.values() if other.id in item.depends_on and other.status.is_open]
            assert self.state.blockers(item.id) == wanted
            leaves = [leaf for leaf in _leaves(item, items) if leaf.id != item.id]
            done = sum(leaf.status is WorkStatus.DONE for leaf in leaves)
            assert self.state.progress(item.id) == WorkProgress(done=done, total=len(leaves))

    @invariant()
    def events_lead_to_the_items(self) -> None:
        """Reverting all events yields new items, and replaying them yields the present ones."""
        now = {item.id: item for item in self.state.items()}
        items = {**now}
        for event in reversed(self.state.events()):
            if event.field != CREATED:
                items[event.item] = with_field(items[event.item], event.field, event.before)
        for item in items.values():
            assert (item.status, item.started, item.finished) == (WorkStatus.PENDING, None, None)
        for event in self.state.events():
            if event.field != CREATED:
                items[event.item] = with_field(items[event.item], event.field, event.after)
        assert items == now


def _goes_in_circles(items: dict[int, WorkItem]) -> bool:
    waiting = {number: {*item.depends_on} for number, item in items.items()}
    for item in items.values():
        if item.parent:
            waiting[item.parent].add(item.id)
    while free := [number for number, others in waiting.items() if not others]:
        for number in free:
            del waiting[number]
        for others in waiting.values():
            others.difference_update(free)
    return bool(waiting)


def _leaves(item: WorkItem, items: dict[int, WorkItem]) -> Iterator[WorkItem]:
    live = [each for each in items.values() if each.parent == item.id and each.status is not WorkStatus.CANCELLED]
    for child in live:
        yield from _leaves(child, items)
    if not live:
        yield item


WorkMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=40, deadline=None)
# Each step waits for the disk.
TestWork = pytest.mark.timeout(600)(WorkMachine.TestCase)


# Messages


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateManager]:
    """An empty state of work."""
    database = Database(tmp_path / "obra.db")
    yield StateManager(store=WorkStore(database), clock=lambda: NOON)
    database.close()


@pytest.fixture
def epic(state: StateManager) -> WorkItem:
    """Epic #1 with stories #2 and #3, where #3 depends on #2."""
    epic = state.create(WorkKind.EPIC, "User authentication")
    login = state.create(WorkKind.STORY, "Log in", parent=epic.id)
    state.create(WorkKind.STORY, "Sign up", parent=epic.id, depends_on=[login.id])
    return epic


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """Convert the names of kinds and statuses in a table row to enum members."""
    words = {str(each): each for each in (*WorkKind, *WorkStatus)}
    return {
        name: [words.get(each, each) for each in value] if isinstance(value, list) else words.get(value, value)
        for name, value in given.items()
    }


@pytest.mark.parametrize(("call", "given", "message"), cases("what_cannot_be_is_refused_with_what_can"))
def test_what_cannot_be_is_refused_with_what_can(
    state: StateManager, epic: WorkItem, call: str, given: dict[str, Any], message: str
) -> None:
    """An invalid change is refused with a message that says what is allowed, and changes nothing."""
    given |= {
        name: choice(given[name]) for name, choice in (("kind", WorkKind), ("status", WorkStatus)) if name in given
    }
    items, events = state.items(), state.events()
    with pytest.raises((InvalidChangeError, NotFoundError)) as caught:
        getattr(state, call)(**_chosen(given))
    assert str(caught.value) == message
    assert (state.items(), state.events()) == (items, events)


def test_a_circle_is_told_with_its_path(state: StateManager, epic: WorkItem) -> None:
    """A refused cycle has its path as item numbers, also if it leads through a parent."""
    with pytest.raises(CircularDependencyError) as caught:
        state.change(2, depends_on=[3])
    assert caught.value.path == (2, 3, 2)
    with pytest.raises(CircularDependencyError) as caught:
        state.change(2, depends_on=[epic.id])
    assert caught.value.path == (2, 1, 2)
    other = state.create(WorkKind.EPIC, "Payment")
    state.change(other.id, depends_on=[2])
    task = state.create(WorkKind.TASK, "Hash", parent=other.id)
    state.change(epic.id, depends_on=[other.id])
    with pytest.raises(CircularDependencyError) as caught:
        state.change(2, depends_on=[task.id, other.id])
    assert caught.value.path == (2, 4, 2)
    state.change(2, depends_on=[])
    state.change(3, depends_on=[other.id], parent=0)
    with pytest.raises(
        CircularDependencyError, match=r'^Story #3 .* cannot be placed under Epic #4 "Payment"'
    ) as caught:
        state.change(3, parent=other.id)
    assert caught.value.path == (4, 3, 4)


def test_what_it_is_blocked_for_stays_with_it(state: StateManager, epic: WorkItem) -> None:
    """Each reason for being blocked has an event with author and operation; a repeated status has none."""
    state.set_status(2, WorkStatus.BLOCKED, reason=" the vendor\0 ", author=Author.PERSON, operation=4)
    state.set_status(2, WorkStatus.BLOCKED, reason="the other vendor")
    state.set_status(2, WorkStatus.BLOCKED)
    state.note(2, "rang them up")
    found = [
        (event.field, event.before, event.after, event.reason, event.author, event.operation)
        for event in state.events(2)[1:]
    ]
    assert found == [
        ("status", "pending", "blocked", "the vendor", Author.PERSON, 4),
        ("status", "blocked", "blocked", "the other vendor", Author.MACHINE, 0),
        (NOTE, None, "rang them up", "", Author.MACHINE, 0),
    ]


def test_a_reason_for_being_blocked_outlasts_a_note_that_reads_like_a_status(state: StateManager) -> None:
    """Closing a dependency unblocks an item only if its last change to `blocked` gave no reason."""
    key, door = (state.create(WorkKind.TASK, title) for title in ("Fetch the key", "Open the door"))
    state.change(door.id, depends_on=[key.id])
    state.set_status(door.id, WorkStatus.BLOCKED, reason="the lock is broken")
    state.note(door.id, "blocked")
    state.set_status(key.id, WorkStatus.DONE)
    assert state.item(door.id).status is WorkStatus.BLOCKED


def test_events_are_given_from_a_number_on_and_the_newest_of_many(state: StateManager, epic: WorkItem) -> None:
    """Events are in numerical order, start after a given number, and are limited to the newest."""
    assert [(event.id, event.item) for event in state.events()] == [(1, 1), (2, 2), (3, 3)]
    assert [event.id for event in state.events(after=1)] == [2, 3]
    assert [event.id for event in state.events(limit=2)] == [2, 3]
    assert [event.id for event in state.events(1, limit=2)] == [1]


def test_undo_is_told_as_events_and_done_once(state: StateManager) -> None:
    """Undo cancels the items that the operation created, is recorded as events, and works only once."""
    epic = state.create(WorkKind.EPIC, "Payment", operation=5)
    story = state.create(WorkKind.STORY, "Refund", parent=epic.id, operation=5)
    assert [item.status for item in state.undo(5, author=Author.PERSON)] == [WorkStatus.CANCELLED] * 2
    assert [(event.field, event.after, event.reason) for event in state.events(story.id)][1:] == [
        ("status", "cancelled", "undo of operation 5"),
        ("finished", NOON.isoformat(), "undo of operation 5"),
    ]
    with pytest.raises(NotFoundError, match=r"^operation 5 has no changes to undo$"):
        state.undo(5)


def test_undo_refuses_to_take_back_what_others_built_on(state: StateManager, epic: WorkItem) -> None:
    """Undo refuses an operation if any of its changes was changed since, and then reverts nothing."""
    state.change(2, title="Sign in", operation=6)
    state.set_status(3, WorkStatus.DEFERRED, operation=6)
    state.change(2, title="Sign in by mail", operation=7)
    with pytest.raises(InvalidChangeError, match="has been changed again since: title was set to 'Sign in' and is now"):
        state.undo(6)
    assert state.item(3).status is WorkStatus.DEFERRED
    state.undo(7)
    state.undo(6)
    assert (state.item(2).title, state.item(3).status) == ("Log in", WorkStatus.PENDING)


def test_changes_together_are_all_kept_or_none(state: StateManager, epic: WorkItem) -> None:
    """Changes made together are rolled back if one fails, unless the caller catches its error."""

    def start_and_finish() -> None:
        with state.together():
            state.set_status(2, WorkStatus.IN_PROGRESS)
            state.set_status(1, WorkStatus.DONE)

    with pytest.raises(InvalidChangeError):
        start_and_finish()
    assert state.item(2).status is WorkStatus.PENDING
    with state.together() as events:
        state.set_status(2, WorkStatus.IN_PROGRESS)
        with pytest.raises(CircularDependencyError):
            state.change(2, depends_on=[3])
        state.change(2, priority=1)
    assert (state.item(2).depends_on, state.item(2).priority) == ((), 1)
    assert [event.field for event in events] == ["status", "started", "priority", "rank"]
    assert state.events(after=3) == events


LONG = [" ".join(f"w{number}" for number in range(2_000)), "y" * 100_000]


@pytest.mark.parametrize(
    ("where", "expected"),
    [*cases("items_are_found_by_all_conditions_together"), *(({"text": text}, []) for text in LONG)],
)
def test_items_are_found_by_all_conditions_together(
    state: StateManager, where: dict[str, Any], expected: list[int]
) -> None:
    """Items that match all conditions are returned in the order of the backlog."""
    epic = state.create(WorkKind.EPIC, "Login and sign-up", priority=2)
    story = state.create(
        WorkKind.STORY, "Log in", parent=epic.id, assignee="ann",
        description="Mit dem öffentlichen Schlüssel,\nnicht ohne: Öffentliche",
    )  # fmt: skip
    state.create(WorkKind.STORY, "Sign in", parent=epic.id, depends_on=[story.id], assignee=" ann ")
    task = state.create(WorkKind.TASK, "Printing", priority=1)
    state.set_status(story.id, WorkStatus.IN_PROGRESS)
    state.set_status(task.id, WorkStatus.DONE)
    assert [item.id for item in state.items(WorkFilter(**_chosen(where)))] == expected

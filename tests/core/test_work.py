"""Rules of work items: times of transitions, cycle detection, ranks, events, and allowed texts."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.documents.alignment import reordered
from orchestra_mem.core.work.transitions import changed_fields, field_text, net_changes, with_field, with_status
from orchestra_mem.core.work.wording import kept_text, kept_title
from orchestra_mem.types import Author
from orchestra_mem.work_types import OPEN_STATUSES, WorkEvent, WorkItem, WorkKind, WorkStatus

NOON = datetime(2025, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)


def _item(number: int = 11, status: WorkStatus = WorkStatus.PENDING, **given_fields: object) -> WorkItem:
    item = WorkItem(id=number, kind=WorkKind.STORY, title="Sign up", created=NOON, changed=NOON, status=status)
    return replace(item, **given_fields)  # type: ignore[arg-type]


# Transitions


@pytest.mark.parametrize(
    ("status", "started", "finished"),
    [
        (WorkStatus.PENDING, None, None),
        (WorkStatus.IN_PROGRESS, LATER, None),
        (WorkStatus.BLOCKED, None, None),
        (WorkStatus.DEFERRED, None, None),
        (WorkStatus.FAILED, LATER, None),
        (WorkStatus.DONE, LATER, LATER),
        (WorkStatus.CANCELLED, None, LATER),
    ],
)
def test_times_are_stamped_on_the_way(status: WorkStatus, started: datetime, finished: datetime) -> None:
    """The start time is set once, and the finish time is set only while the item is closed."""
    item = with_status(_item(), status, LATER)
    assert (item.status, item.started, item.finished) == (status, started, finished)
    begun = with_status(_item(started=NOON, finished=NOON), status, LATER)
    assert (begun.started, begun.finished) == (NOON, finished)
    assert (begun.finished is None) == (status in OPEN_STATUSES)


# Ranks


def _longest_ascending(values: list[float]) -> int:
    best: list[int] = []
    for position, value in enumerate(values):
        best.append(1 + max((best[at] for at in range(position) if values[at] < value), default=0))
    return max(best, default=0)


@given(st.lists(st.integers(-20, 20).map(float), max_size=12))
@example([1.0, 2.0, 3.0])
@example([2.0, 1.0])
@example([5.0, 5.0, 5.0])
def test_new_ranks_ascend_and_as_few_as_can_be_are_given(ranks: list[float]) -> None:
    """New ranks ascend strictly, and as few items as possible are given a new rank."""
    new = reordered(ranks)
    after = [new.get(position, rank) for position, rank in enumerate(ranks)]
    assert all(low < high for low, high in pairwise(after))
    assert len(new) == len(ranks) - _longest_ascending(ranks)


def test_ranks_are_given_anew_where_no_number_is_left() -> None:
    """All items are ranked anew if no floating-point number is left between two neighbours."""
    low = 1.0
    high = 1.0000000000000002
    assert reordered([low, 9.0, high]) == {0: 1.0, 1: 2.0, 2: 3.0}


# Changes as text

TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
ITEMS = st.builds(
    WorkItem,
    id=st.just(1), kind=st.just(WorkKind.TASK), created=st.just(NOON), changed=st.just(NOON), title=ANY_TEXT,
    description=ANY_TEXT, status=st.sampled_from(WorkStatus), priority=st.integers(1, 5),
    rank=st.floats(allow_nan=False, allow_infinity=False), parent=st.none() | st.integers(1, 99),
    depends_on=st.lists(st.integers(1, 99)).map(tuple), assignee=st.none() | ANY_TEXT,
    acceptance=st.lists(ANY_TEXT).map(tuple), started=TIMES, finished=TIMES,
)  # fmt: skip


@given(ITEMS, ITEMS)
def test_events_lead_from_one_state_of_an_item_to_another_and_back(one: WorkItem, other: WorkItem) -> None:
    """The events between two states convert either into the other, and unchanged fields have no event."""
    changes = list(changed_fields(one, other))
    forth, back = one, other
    for field, before, after in changes:
        assert (field_text(one, field), field_text(other, field)) == (before, after)
        forth, back = with_field(forth, field, after), with_field(back, field, before)
    assert forth == other
    assert back == one
    assert len(changes) == sum(getattr(one, each.name) != getattr(other, each.name) for each in fields(WorkItem))


def _event(field: str, before: str | None, after: str | None, item: int = 11) -> WorkEvent:
    return WorkEvent(id=0, item=item, time=NOON, author=Author.MACHINE, field=field, before=before, after=after)


def test_what_several_events_came_to_is_their_first_before_and_last_after() -> None:
    """Net changes merge the events per field, drop notes and reverted changes, and list the item changed last first."""
    found = net_changes([
        _event("title", "a", "b"), _event("priority", "3", "1"), _event("note", None, "so"),
        _event("title", "b", "c"), _event("priority", "1", "3"), _event("title", "x", "y", item=12),
    ])  # fmt: skip
    told = [(change.item, change.field, change.before, change.after) for change in found]
    assert told == [(12, "title", "x", "y"), (11, "title", "a", "c")]


# Texts


@given(ANY_TEXT)
@example("a\0b\x1b[31m")
@example(" two\r\nlines\u2028of\ttext ")
@example("\ud800")
def test_kept_texts_can_be_stored_shown_and_kept_again(text: str) -> None:
    """A cleaned text is valid UTF-8 without control characters, and cleaning it again changes nothing."""
    kept = kept_text(text)
    kept.encode("utf-8")
    assert kept == kept_text(kept)
    assert not any(character < " " and character not in "\n\t" for character in kept)
    assert len(kept) <= len(text)
    if any(character.isalnum() for character in kept):
        title = kept_title(text)
        assert title == kept_title(title)
        assert len(title.splitlines()) == 1

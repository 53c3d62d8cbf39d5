"""Which items a line asks to list."""

from __future__ import annotations

import pytest

from orchestra_mem.core.language.listing import ME, Listing, read_listing
from orchestra_mem.work_types import OPEN_STATUSES, WorkStatus

OPEN = OPEN_STATUSES


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("list everything", Listing()),
        ("list open stories", Listing(statuses=OPEN)),
        ("which tasks are done?", Listing(statuses=(WorkStatus.DONE,))),
        ("what's Marco got?", Listing(statuses=OPEN, assignee="Marco")),
        ("what is Priya working on?", Listing(statuses=OPEN, assignee="Priya")),
        ("list Dana's open tasks", Listing(statuses=OPEN, assignee="Dana")),
        ("what is assigned to dana", Listing(statuses=OPEN, assignee="dana")),
        ("what is assigned to me?", Listing(statuses=OPEN, assignee=ME)),
        ("show my tasks", Listing(statuses=OPEN, assignee=ME)),
        ("which of my tasks are deferred?", Listing(statuses=(WorkStatus.DEFERRED,), assignee=ME)),
        ("list the epic's stories", Listing()),
        ("what's next?", Listing()),
        ("which stories are unassigned?", Listing(statuses=OPEN, assignee="")),
        ("which tasks are urgent?", Listing(priority=1)),
        ("what is blocked?", Listing(statuses=OPEN, held_up=True)),
        ("what are the blockers", Listing(statuses=OPEN, held_up=True)),
    ],
)
def test_what_is_to_be_listed(line: str, wanted: Listing) -> None:
    """How far, whose, how urgent, what is held up."""
    assert read_listing(line) == wanted

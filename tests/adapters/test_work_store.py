"""Work items in the database: text search, kills, and changes by several processes."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.adapters.database import Database
from orchestra_mem.core.work.wording import folded, kept_text
from orchestra_mem.stores import WorkStore
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkKind, WorkStatus
from tests.processes import python

NOON = datetime(2025, 1, 15, 12, tzinfo=UTC)


# Texts

WORDS = st.text(st.sampled_from("aäAßSsıİéÉ\u0301\"'*#-%_日本 "), max_size=8)


@settings(max_examples=20)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), WORDS)
@example([("Straße", "ab")], "STRASSE")
@example([('say "hey"', "")], '"hey"')
def test_items_are_found_by_every_word_as_if_looked_for_one_by_one(texts: list[tuple[str, str]], sought: str) -> None:
    """Text search finds the items a word-by-word scan finds, ignoring case, also after texts have changed."""
    with TemporaryDirectory() as folder, closing(Database(Path(folder) / "obra.db")) as database:
        state = StateManager(store=WorkStore(database), clock=lambda: NOON)
        for title, description in texts:
            item = state.create(WorkKind.TASK, "before SS äa 日本", description="ßß aaa")
            state.change(item.id, title=f"t{title}", description=description)
        wanted = [
            item.id
            for item in state.items()
            if all(word in folded(f"{item.title}\n{item.description}") for word in folded(kept_text(sought)).split())
        ]
        assert [item.id for item in state.items(WorkFilter(text=sought))] == wanted
        open_ones = WorkFilter(text=sought, statuses=OPEN_STATUSES, kinds=(WorkKind.TASK,))
        assert [item.id for item in state.items(open_ones)] == wanted


# Kills and processes

CHILD = """
import os, signal, sys
from orchestra_mem import open_memory
from orchestra_mem.work_types import WorkKind, WorkStatus
folder, when, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = 0
def point(name):
    global count
    if name == f"work.commit.{when}":
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
with open_memory(folder, write_point=point) as memory:
    epic = memory.state.create(WorkKind.EPIC, "Payment")
    task = memory.state.create(WorkKind.TASK, "Refund", parent=epic.id, description="all of it")
    memory.state.set_status(task.id, WorkStatus.DONE)
    memory.state.change(task.id, title="Give back", priority=1)
"""


@pytest.mark.parametrize(("when", "at"), [("before", 2), ("after", 2), ("before", 3), ("before", 4), ("after", 4)])
def test_a_killed_process_leaves_changes_whole_or_not_made(tmp_path: Path, when: str, at: int) -> None:
    """A killed process leaves each change complete or not made, with its events, counts, progress and texts."""
    python(CHILD, tmp_path, when, at, status=-signal.SIGKILL)
    made = at if when == "after" else at - 1
    with open_memory(tmp_path) as memory:
        state = memory.state
        items = state.items()
        assert len(items) == min(made, 2)
        assert len(state.events()) == [0, 1, 2, 5, 8][made]
        finished = made >= 3
        assert [item.status for item in items if item.kind is WorkKind.TASK] == (
            [WorkStatus.DONE if finished else WorkStatus.PENDING] if made >= 2 else []
        )
        assert sum(map(sum, (each.values() for each in state.counts().values()))) == len(items)
        assert state.counts()[WorkKind.TASK][WorkStatus.DONE] == finished
        assert (state.progress(1).done, state.progress(1).total) == (finished, int(made >= 2))
        assert len(state.items(WorkFilter(text="refund all"))) == (made in (2, 3))
        assert len(state.items(WorkFilter(text="GIVE back"))) == (made == 4)


SEVERAL = """
import sys
from orchestra_mem import InvalidChangeError, open_memory
from orchestra_mem.work_types import WorkKind, WorkStatus
with open_memory(sys.argv[1]) as memory:
    for number in range(25):
        task = memory.state.create(WorkKind.TASK, f"{sys.argv[2]} {number}", parent=1)
        memory.state.set_status(task.id, WorkStatus.IN_PROGRESS)
        memory.state.set_status(task.id, WorkStatus.DONE)
        try:
            memory.state.change(int(sys.argv[2]), depends_on=[5 - int(sys.argv[2])])
        except InvalidChangeError:
            print("refused")
        memory.state.change(int(sys.argv[2]), depends_on=[])
"""


def test_several_processes_change_one_state(tmp_path: Path) -> None:
    """Two processes change work at once: no id is used twice, no change is lost, and neither blocks the other."""
    with open_memory(tmp_path) as memory:
        for title in ("Payment", "one", "other"):
            memory.state.create(WorkKind.EPIC, title)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: python(SEVERAL, tmp_path, number), (2, 3)))
    with open_memory(tmp_path) as memory:
        state = memory.state
        assert sorted(item.id for item in state.items()) == list(range(1, 54))
        assert state.counts()[WorkKind.TASK][WorkStatus.DONE] == 50
        assert (state.progress(1).done, state.progress(1).total) == (50, 50)
        titles = {item.title for item in state.items(WorkFilter(parent=1))}
        assert titles == {f"{who} {number}" for who in (2, 3) for number in range(25)}

"""The work plan both ways: it shows the state of work, and what people do to its lines happens to the work."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.blame import Writer
from orchestra_mem.types import Author, DocumentName
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkKind, WorkStatus
from tests.conftest import Clock
from tests.memories import edit, edited, say
from tests.timing import assert_quick

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
STATE, PLAN = DocumentName.PROJECT_STATE, DocumentName.WORK_PLAN
PENDING, DONE, CANCELLED = WorkStatus.PENDING, WorkStatus.DONE, WorkStatus.CANCELLED


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """An epic with three stories, the second waiting for the first; two loose tasks; one that is put off."""
    state = memory.state
    epic = state.create(WorkKind.EPIC, "User authentication", priority=2)
    login = state.create(WorkKind.STORY, "Login", parent=epic.id)
    state.create(WorkKind.STORY, "Signup", parent=epic.id, depends_on=[login.id])
    state.create(WorkKind.STORY, "MFA", parent=epic.id)
    for title in ("Tidy up", "Paint the door"):
        state.create(WorkKind.TASK, title)
    state.set_status(state.create(WorkKind.TASK, "Dark mode").id, WorkStatus.DEFERRED)
    _go_on(memory, clock)
    return memory


def _go_on(memory: OrchestratorContextManager, clock: Clock, text: str = "Tea was had.", *, times: int = 1) -> None:
    for _ in range(times):
        say(memory, clock, text, "It rained.", "The bell rang.")


def _path(memory: OrchestratorContextManager, name: DocumentName = PLAN) -> Path:
    return memory.episodic_memory.path(name)


def _text(memory: OrchestratorContextManager, name: DocumentName = PLAN) -> str:
    return _path(memory, name).read_bytes().decode()


def _edit(memory: OrchestratorContextManager, *changes: tuple[str, str]) -> None:
    edit(_path(memory), *changes)


def _change(memory: OrchestratorContextManager, clock: Clock, *changes: tuple[str, str], times: int = 1) -> None:
    """Edit, and let the machine write afterwards."""
    _edit(memory, *changes)
    _go_on(memory, clock, times=times)


def _section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n\n")[2].partition("\n\n## ")[0].rstrip("\n") + "\n"


def _item(memory: OrchestratorContextManager, title: str) -> WorkItem:
    (found,) = [item for item in memory.state.items() if item.title == title]
    return found


def _problems(memory: OrchestratorContextManager) -> str:
    return str(memory.get_stats()["problems"])


def test_the_documents_show_the_state_of_work(memory: OrchestratorContextManager, clock: Clock) -> None:
    """In the source design's sections, after each refresh and after the flush."""
    memory.state.set_status(2, WorkStatus.IN_PROGRESS)
    memory.state.set_status(6, WorkStatus.BLOCKED, reason="no paint")
    memory.state.set_status(5, DONE)
    _go_on(memory, clock)
    assert _text(memory).partition("UTC\n")[2] == (
        "\n## Immediate Next Steps\n\n"
        '- Story #2 "Login": in progress, under #1\n'
        '- Story #4 "MFA": can be started, under #1\n'
        "\n## Prioritized Backlog\n\n"
        "- [ ] #1 User authentication (epic, high, 0 of 3 done)\n"
        "  - [ ] #2 Login (story, in progress)\n"
        "  - [ ] #3 Signup (story, blocked by #2)\n"
        "  - [ ] #4 MFA (story)\n"
        "- [x] #5 Tidy up (task)\n"
        "- [ ] #6 Paint the door (task, blocked)\n"
        "\n## Future Work\n\n"
        "- [ ] #7 Dark mode (task, deferred)\n"
    )
    state = _text(memory, STATE)
    assert '- Story #2 "Login"\n- [' in _section(state, "Active Work")
    assert _section(state, "Recent Progress") == '- Task #5 "Tidy up": done 2025-01-15\n'
    assert _section(state, "Blockers") == '- Task #6 "Paint the door": blocked, no paint\n'
    assert "- **Total Stories**: 3\n" in state
    assert "- **Work Done**: 1\n- **Work In Progress**: 1\n- **Work Blocked**: 1\n" in state
    memory.state.set_status(2, DONE)
    memory.flush_session()
    assert "  - [x] #2 Login (story)\n  - [ ] #3 Signup (story)\n" in _text(memory)


def test_work_without_a_session_is_shown_by_a_refresh(tmp_path: Path, clock: Clock) -> None:
    """And what a person writes then gets its number."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.state.create(WorkKind.TASK, "Tidy up")
        assert memory.refresh() is None
        _edit(memory, ("- [ ] #1 Tidy up (task)\n", "- [x] #1 Tidy up (task)\n- [ ] Buy a bell\n"))
        memory.refresh()
        assert "- [x] #1 Tidy up (task)\n- [ ] #2 Buy a bell (task)\n" in _text(memory)


def test_a_new_line_that_may_not_be_is_told(memory: OrchestratorContextManager, clock: Clock) -> None:
    """It stays as it was written, until it may be or is taken out."""
    _change(memory, clock, ("- [ ] #5", "- [x] #5"))
    _change(memory, clock, ("- [x] #5 Tidy up (task)\n", "- [x] #5 Tidy up (task)\n  - [ ] Sweep\n"), times=2)
    assert "  - [ ] Sweep\n" in _text(memory)
    assert 'a subtask "Sweep" cannot be open under Task #5' in _problems(memory)
    _change(memory, clock, ("  - [ ] Sweep\n", ""))
    assert "Sweep" not in _problems(memory)


def test_without_work_a_box_is_a_fact_as_before(tmp_path: Path, clock: Clock) -> None:
    """And the plan has the sections that it had."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        _go_on(memory, clock)
        _change(memory, clock, ("## Backlog\n\n- None\n", "## Backlog\n\n- [ ] Buy a bell\n"))
        assert "## Backlog\n\n- [ ] Buy a bell (K1)\n" in _text(memory)
        assert memory.state.items() == []
        memory.state.create(WorkKind.TASK, "Tidy up")
        _go_on(memory, clock)
        assert "## Prioritized Backlog\n\n- [ ] #1 Tidy up (task)\n- [ ] Buy a bell (K1)\n" in _text(memory)
        assert [fact.text for fact in memory.facts()] == ["Buy a bell"]


@pytest.mark.parametrize(
    ("old", "new", "number", "status"),
    [
        ("- [ ] #5 Tidy", "- [x] #5 Tidy", 5, DONE),
        ("- [ ] #5 Tidy up (task)", "- [ ] ~~#5 Tidy up (task)~~", 5, CANCELLED),
        ("- [ ] #5 Tidy up (task)\n", "", 5, CANCELLED),
        ("#5 Tidy up (task)", "#5 Tidy up (task, in progress)", 5, WorkStatus.IN_PROGRESS),
    ],
)
def test_what_is_done_to_a_line_is_done_to_the_item(
    memory: OrchestratorContextManager, clock: Clock, old: str, new: str, number: int, status: WorkStatus
) -> None:
    """By a person, at once for who asks, and so the next plan says."""
    _edit(memory, (old, new))
    assert memory.state.item(number).status is status
    events = [event for event in memory.state.events(number) if event.field == "status"]
    assert [(event.author, event.after) for event in events] == [(Author.PERSON, status.value)]
    _go_on(memory, clock)
    assert memory.state.item(number).status is status
    assert memory.conflicts() == []
    assert ("#5" in _text(memory).partition("## Prioritized")[2]) == bool(new)


def test_words_of_a_line_change_the_item(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Title, priority, who does it, what it waits for, and under whom it stands."""
    _edit(
        memory,
        ("  - [ ] #4 MFA (story)", "- [ ] #4 Second factor (story, low, blocked by #5, @Grace)"),
        ("(story, blocked by #2)", "(story)"),
    )
    item = memory.state.item(4)
    assert (item.title, item.priority, item.depends_on, item.assignee, item.parent) == (
        "Second factor", 4, (5,), "Grace", None,
    )  # fmt: skip
    assert memory.state.item(3).depends_on == ()
    _go_on(memory, clock)
    assert "\n- [ ] #4 Second factor (story, low, blocked by #5, @Grace)\n" in _text(memory)


def test_new_lines_get_their_numbers(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Under an epic, under a new line, done already, put off, or loose; each once, in the place where it stands."""
    _change(
        memory,
        clock,
        (
            "  - [ ] #4 MFA (story)\n",
            "  - [ ] Reset a password (high)\n    - [ ] Write the mail\n  - [ ] #4 MFA (story)\n",
        ),
        ("- [ ] #6", "- [x] Buy a bell\n- [ ] #6"),
        ("## Future Work\n\n", "## Future Work\n\n- [ ] A mobile app\n"),
        times=2,
    )
    assert _section(_text(memory), "Prioritized Backlog") == (
        "- [ ] #1 User authentication (epic, high, 0 of 4 done)\n"
        "  - [ ] #8 Reset a password (story, high)\n"
        "    - [ ] #9 Write the mail (task)\n"
        "  - [ ] #2 Login (story)\n"
        "  - [ ] #3 Signup (story, blocked by #2)\n"
        "  - [ ] #4 MFA (story)\n"
        "- [ ] #5 Tidy up (task)\n"
        "- [x] #10 Buy a bell (task)\n"
        "- [ ] #6 Paint the door (task)\n"
    )
    assert "- [ ] #11 A mobile app (task, deferred)\n" in _section(_text(memory), "Future Work")
    assert len(memory.state.items()) == 11
    assert memory.state.item(10).status is DONE
    assert memory.facts() == []


def test_the_order_of_lines_is_the_order_of_work(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Among those of one priority by rank; who is put before a more urgent one becomes as urgent."""
    text = _text(memory)
    _edit(
        memory,
        ("  - [ ] #2 Login (story)\n", ""),
        ("  - [ ] #4 MFA (story)\n", "  - [ ] #4 MFA (story)\n  - [ ] #2 Login (story)\n"),
        ("- [ ] #6 Paint the door (task)\n", ""),
        ("- [ ] #1", "- [ ] #6 Paint the door (task)\n- [ ] #1"),
    )
    assert [item.id for item in memory.state.items(WorkFilter(parent=1))] == [3, 4, 2]
    assert [item.id for item in memory.state.items(WorkFilter(parent=0))][:3] == [6, 1, 5]
    assert memory.state.item(6).priority == 2
    _go_on(memory, clock)
    rows = [row.strip() for row in _section(_text(memory), "Prioritized Backlog").splitlines()]
    assert [row.split()[3] for row in rows] == ["#6", "#1", "#3", "#4", "#2", "#5"]
    assert memory.conflicts() == []
    assert "- [ ] #1" in text


def test_what_may_not_be_is_told_beside_the_line(memory: OrchestratorContextManager, clock: Clock) -> None:
    """And to people, until they have taken the remark out; the line says how things are."""
    _change(memory, clock, ("- [ ] #3 Signup", "- [x] #3 Signup"))
    assert memory.state.item(3).status is PENDING
    told = 'Story #3 "Signup" cannot be finished before what it waits for: Story #2 "Login" (pending)'
    row = next(row for row in _text(memory).splitlines() if told in row)
    assert row.startswith(f"    <!-- {told}")
    assert f"  - [ ] #3 Signup (story, blocked by #2)\n{row}\n" in _text(memory)
    assert told in _problems(memory)
    _go_on(memory, clock)
    assert row in _text(memory)
    _edit(memory, (f"{row}\n", ""))
    for _ in range(2):
        _go_on(memory, clock)
        assert "<!--" not in _text(memory)
    assert told not in _problems(memory)


def test_what_is_refused_holds_up_nothing_else(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A circle of waiting is told with its path, and the new title of the same line stands."""
    _change(memory, clock, ("#2 Login (story)", "#2 Sign in (story, blocked by #3)"))
    item = memory.state.item(2)
    assert (item.title, item.depends_on) == ("Sign in", ())
    assert "  - [ ] #2 Sign in (story)\n    <!-- Story #2" in _text(memory)
    assert "#2 → #3 → #2" in _text(memory)


def test_a_remark_follows_what_it_tells_of(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What was waited for is done: that is said; the item is done as well: there is nothing more to say."""
    _change(memory, clock, ("- [ ] #3 Signup", "- [x] #3 Signup"))
    memory.state.set_status(2, DONE)
    _go_on(memory, clock)
    assert "these are closed now, so it can be ticked again -->\n" in _text(memory)
    _change(memory, clock, ("- [ ] #3 Signup", "- [x] #3 Signup"))
    assert memory.state.item(3).status is DONE
    assert "<!--" not in _text(memory)


def test_an_item_whose_line_is_taken_out_is_not_lost(memory: OrchestratorContextManager, clock: Clock) -> None:
    """It is cancelled, which is told, and comes back with its line; one with open work below it stays."""
    line = "- [ ] #5 Tidy up (task)\n"
    _change(memory, clock, (line, ""), ("- [ ] #1 User authentication (epic, high, 0 of 3 done)\n", ""))
    assert memory.state.item(5).status is CANCELLED
    assert 'Task #5 "Tidy up" is cancelled: its line was taken out of work_plan.md' in _problems(memory)
    assert "- [ ] #1 User authentication (epic, high, 0 of 3 done)\n  <!-- Epic #1" in _text(memory)
    assert [memory.state.item(number).parent for number in (2, 3, 4)] == [1, 1, 1]
    _change(memory, clock, ("- [ ] #6", f"{line}- [ ] #6"))
    assert memory.state.item(5).status is PENDING
    assert "Tidy up" not in _problems(memory)
    assert _text(memory).count(line) == 1


def test_a_whole_tree_is_ticked_at_once(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What is below is done before what is above, whatever order the lines have."""
    _edit(memory, *((f"- [ ] #{number} ", f"- [x] #{number} ") for number in (1, 2, 4)), ("#3 Signup", "~~#3 Signup~~"))
    assert [memory.state.item(number).status for number in (1, 2, 3, 4)] == [DONE, DONE, CANCELLED, DONE]


def test_what_makes_way_for_another_change_is_done_before_it(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Whatever order the lines have: what is waited for, the parent of a new line."""
    memory.state.change(2, depends_on=[4])
    _change(memory, clock, ("- [ ] #2", "- [x] #2"), ("- [ ] #4", "- [x] #4"), ("- [ ] #5", "- [x] #5"))
    assert [memory.state.item(number).status for number in (2, 4, 5)] == [DONE, DONE, DONE]
    _change(
        memory, clock, ("- [x] #5 Tidy up (task)\n", "- [ ] #5 Tidy up (task)\n  - [ ] Sweep\n    - [ ] Deeper still\n")
    )
    assert _item(memory, "Sweep").parent == _item(memory, "Deeper still").parent == 5
    assert memory.get_stats()["problems"] == []


def test_the_last_line_that_was_ticked_may_be_tidied_away(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What is closed stays closed, and does not come back."""
    _change(memory, clock, ("- [ ] #5", "- [x] #5"))
    _change(memory, clock, ("- [x] #5 Tidy up (task)\n", ""))
    assert memory.state.item(5).status is DONE
    assert "#5" not in _text(memory)


def test_an_edit_that_is_taken_back_before_the_machine_writes_is_none(memory: OrchestratorContextManager) -> None:
    """Though it was taken in meanwhile."""
    before = _path(memory).read_bytes()
    _edit(memory, ("- [ ] #5 Tidy up", "- [x] #5 Sweep up"), ("- [ ] #6 Paint the door (task)\n", ""))
    assert (memory.state.item(5).title, memory.state.item(5).status) == ("Sweep up", DONE)
    assert memory.state.item(6).status is CANCELLED
    _path(memory).write_bytes(before)
    assert (memory.state.item(5).title, memory.state.item(5).status) == ("Tidy up", PENDING)
    assert memory.state.item(6).status is PENDING


def test_an_edit_is_taken_in_once(memory: OrchestratorContextManager, tmp_path: Path, clock: Clock) -> None:
    """What the machine does afterwards stands, though the file still says otherwise, also for another process."""
    _edit(memory, ("- [ ] #5", "- [x] #5"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    assert memory.state.item(5).status is DONE
    memory.state.set_status(5, WorkStatus.IN_PROGRESS)
    with open_memory(tmp_path, config=CONFIG, clock=clock) as other:
        assert other.state.item(5).status is WorkStatus.IN_PROGRESS
        _edit(memory, ("#6 Paint the door", "#6 Paint the gate"))
        assert other.state.item(6).title == "Paint the gate"
        assert other.state.item(5).status is WorkStatus.IN_PROGRESS
        _go_on(other, clock)
    assert "- [ ] #5 Tidy up (task, in progress)\n- [ ] #8 Buy a bell (task)\n" in _text(memory)
    assert len(memory.state.items()) == 8


def test_an_old_text_undoes_nothing_of_what_came_since(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An editor was open: what was done, added and renamed meanwhile stands beside what the person did."""
    opened = _text(memory)
    memory.state.set_status(2, DONE)
    memory.state.change(4, title="Second factor")
    memory.state.create(WorkKind.TASK, "Oil the hinge")
    _go_on(memory, clock)
    mine = edited(
        opened, ("#2 Login", "#2 Sign in"), ("- [ ] #5", "- [x] #5"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6")
    )
    _path(memory).write_text(mine, encoding="utf-8")
    _go_on(memory, clock, times=2)
    assert _section(_text(memory), "Prioritized Backlog") == (
        "- [ ] #1 User authentication (epic, high, 1 of 3 done)\n"
        "  - [x] #2 Sign in (story)\n"
        "  - [ ] #3 Signup (story)\n"
        "  - [ ] #4 Second factor (story)\n"
        "- [x] #5 Tidy up (task)\n"
        "- [ ] #9 Buy a bell (task)\n"
        "- [ ] #6 Paint the door (task)\n"
        "- [ ] #8 Oil the hinge (task)\n"
    )
    assert memory.conflicts() == []


def test_an_item_that_a_person_takes_out_of_an_old_text_is_cancelled_though_the_plan_shows_it_no_more(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """It has made room for more urgent ones since; what else it made room for stays open."""
    opened = _text(memory)
    urgent = [memory.state.create(WorkKind.TASK, f"Urgent {number}", priority=1) for number in range(50)]
    _go_on(memory, clock)
    for item in urgent[:25]:
        clock.now += timedelta(minutes=1)
        memory.state.set_status(item.id, DONE)
    _go_on(memory, clock)
    assert "#5 Tidy up" not in _text(memory)
    _path(memory).write_bytes(edited(opened, ("- [ ] #5 Tidy up (task)\n", "")).encode())
    for _ in range(2):
        _go_on(memory, clock)
        assert _item(memory, "Tidy up").status is CANCELLED
        assert _item(memory, "Paint the door").status is PENDING
        assert "#5 Tidy up" not in _text(memory)


def test_an_editor_that_saves_again_makes_nothing_twice(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Its new line has no number yet, though the file has."""
    _edit(memory, ("- [ ] #6", "- [ ] Buy a bell\n- [x] Buy a rope\n- [ ] #6"))
    saved = _text(memory)
    _go_on(memory, clock)
    assert "- [ ] #8 Buy a bell (task)\n- [x] #9 Buy a rope (task)\n" in _text(memory)
    _path(memory).write_text(saved.replace("#6 Paint", "#6 Oil"), encoding="utf-8")
    _go_on(memory, clock)
    assert "- [ ] #8 Buy a bell (task)\n- [x] #9 Buy a rope (task)\n- [ ] #6 Oil the door (task)\n" in _text(memory)
    assert len(memory.state.items()) == 9


def test_a_line_under_the_heading_of_before_makes_nothing_twice(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """A new line gets its number also where a person has given the section the name that it has without work."""
    _edit(memory, ("## Prioritized Backlog\n", "## Backlog\n\n- [ ] Buy milk\n"))
    for said in ("One more.", "Another.", "A third."):
        _go_on(memory, clock, said)
        assert _text(memory).count("Buy milk") == 2, "once as a next step, once in the backlog"
        _edit(memory, ("# Work Plan\n", f"# Work Plan\n\n{said}\n"))
    assert f"\n- [ ] #{_item(memory, 'Buy milk').id} Buy milk (task, high)\n" in _text(memory)


def test_a_text_from_before_there_was_work_does_not_bring_its_heading_back(tmp_path: Path, clock: Clock) -> None:
    """An editor had the plan open when the first work came; what it saves then has one backlog, with all in it."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        _go_on(memory, clock)
        opened = _text(memory)
        memory.state.create(WorkKind.TASK, "Tidy up")
        _go_on(memory, clock)
        _path(memory).write_bytes(edited(opened, ("## Backlog\n\n- None\n", "## Backlog\n\n- [ ] Oil it\n")).encode())
        for _ in range(2):
            _go_on(memory, clock)
            assert [line for line in _text(memory).splitlines() if "Backlog" in line] == ["## Prioritized Backlog"]
        backlog = _section(_text(memory), "Prioritized Backlog")
        assert "#1 Tidy up (task)" in backlog
        assert "#2 Oil it (task)" in backlog


def test_a_new_title_in_a_next_step_is_the_items(tmp_path: Path, clock: Clock) -> None:
    """Whoever corrects an item where it is mentioned means the item; its line has the new title too, if no other."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        memory.state.create(WorkKind.TASK, "Tidy pu")
        memory.state.create(WorkKind.TASK, "Oil it")
        _go_on(memory, clock)
        _edit(memory, ('#1 "Tidy pu": can', '#1 "Tidy up": can'), ('#2 "Oil it"', '#2 "Oil"'))
        _change(memory, clock, ("#2 Oil it", "#2 Grease"))
        assert [item.title for item in memory.state.items()] == ["Tidy up", "Grease"]
        assert _section(_text(memory), "Immediate Next Steps") == (
            '- Task #1 "Tidy up": can be started\n- Task #2 "Grease": can be started\n'
        )


def test_a_process_that_dies_while_taking_in_makes_nothing_twice(
    memory: OrchestratorContextManager, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did not come to note is found again by the next one."""

    def dies(text: str, number_of: object) -> str:
        raise KeyboardInterrupt

    _edit(memory, ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    with monkeypatch.context() as patched:
        patched.setattr("orchestra_mem.core.documents.plan_edits.with_item_numbers", dies)
        with pytest.raises(KeyboardInterrupt):
            memory.facts()
    with open_memory(tmp_path, config=CONFIG, clock=clock) as other:
        _go_on(other, clock)
    assert _item(memory, "Buy a bell").id == 8
    assert "- [ ] #8 Buy a bell (task)\n" in _text(memory)


def test_machine_and_person_change_one_item(memory: OrchestratorContextManager, clock: Clock) -> None:
    """The person's words stand, and the machine's are told below; what only one of them changed is so."""
    memory.state.change(5, title="Sweep the yard", priority=2)
    _change(memory, clock, ("#5 Tidy up", "#5 Clean up"))
    item = memory.state.item(5)
    assert (item.title, item.priority) == ("Clean up", 2)
    assert "- [ ] #5 Clean up (task, high)\n" in _text(memory)
    assert 'its title had meanwhile become "Sweep the yard"; yours stands -->\n' in _text(memory)
    clock.now += timedelta(days=2)
    _go_on(memory, clock)
    assert "yours stands" not in _text(memory)


def test_notes_between_the_lines_stay_where_they_are(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Below their line, wherever that goes; in the document's own line ends."""
    _edit(
        memory,
        ("  - [ ] #4 MFA (story)\n", "  - [ ] #4 MFA (story)\n    Ask Bob.\n    - how long?\n"),
        ("- [ ] #5 Tidy up (task)\n", "- [ ] #5 Tidy up (task) <!-- pin -->\n  With a broom.\n"),
    )
    _path(memory).write_bytes(_text(memory).replace("\n", "\r\n").encode())
    memory.state.set_status(4, WorkStatus.IN_PROGRESS)
    memory.state.change(5, priority=1)
    _go_on(memory, clock)
    text = _text(memory)
    assert text.count("\n") == text.count("\r\n")
    assert "  - [ ] #4 MFA (story, in progress)\r\n    Ask Bob.\r\n    - how long?\r\n" in text
    assert "Backlog\r\n\r\n- [ ] #5 Tidy up (task, urgent) <!-- pin -->\r\n  With a broom.\r\n- [ ] #1" in text
    assert memory.facts() == []


def test_facts_and_work_share_the_plan(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A list item without a box is a fact as ever, in its place below the work."""
    _edit(memory, ("- [ ] #6 Paint the door (task)\n", "- [ ] #6 Paint the door (task)\n- Ask Grace about the quota\n"))
    _go_on(memory, clock, "TODO: write the guide.")
    assert [fact.text for fact in memory.facts()] == ["Ask Grace about the quota", "TODO: write the guide."]
    assert "#6 Paint the door (task)\n- Ask Grace about the quota (K1)\n" in _text(memory)
    _change(memory, clock, ("- Ask Grace about the quota (K1)\n", ""))
    assert [fact.text for fact in memory.facts()] == ["TODO: write the guide."]


def test_a_line_whose_number_was_taken_away_is_still_that_item(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Who writes a line anew without it means no other thing."""
    _change(memory, clock, ("- [ ] #5 Tidy up (task)", "- [x] Tidy up"), times=2)
    assert memory.state.item(5).status is DONE
    assert "- [x] #5 Tidy up (task)\n" in _text(memory)
    _change(memory, clock, ("- [ ] #6 Paint the door (task)", "* [ ] Paint the door"))
    assert len(memory.state.items()) == 7
    assert _text(memory).count("Paint the door (task)") == 1


def test_a_number_that_there_is_not_is_told(memory: OrchestratorContextManager, clock: Clock) -> None:
    """The line stays as it was written."""
    _change(memory, clock, ("- [ ] #6", "- [x] #99 From elsewhere\n- [ ] #6"))
    assert "there is no work item #99" in _problems(memory)
    assert len(memory.state.items()) == 7


def test_what_cannot_be_done_to_a_line_is_told(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A kind stays, and a line that is not read as one does nothing; both are said below the line, once."""
    _change(memory, clock, ("#3 Signup (story", "#3 Sign up (task"), ("- [ ] #5 Tidy up", "- [-] #5 Tidy up"), times=2)
    text = _text(memory)
    assert text.count('<!-- Story #3 "Sign up": it stays a story; for a task write a new line -->') == 1
    assert text.count('<!-- Task #5 "Tidy up": what you made of its line could not be read') == 1
    assert "- [ ] #5 Tidy up (task)\n" in text
    assert "- [-] #5 Tidy up (task)" in text
    assert memory.state.item(5).status is PENDING
    assert len(memory.state.items()) == 7


def test_a_slip_of_the_hand_takes_nothing_out(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A space too few before a number is a tick, not a line taken out."""
    _change(memory, clock, ("- [ ] #5 Tidy up", "- [x]#5 Tidy up"), ("- [ ] #6 Paint the door (task)", "- [x] #6"))
    assert [memory.state.item(number).status for number in (5, 6)] == [DONE, DONE]
    assert "- [x] #6 Paint the door (task)\n" in _text(memory)


def test_a_new_line_is_no_other_item_of_that_name(memory: OrchestratorContextManager, clock: Clock) -> None:
    """One that is called the same and stands elsewhere, where the plan does not show it, stays there."""
    parents = [memory.state.create(WorkKind.EPIC, f"Epic {each}", priority=1).id for each in range(90)]
    _go_on(memory, clock)
    hidden = memory.state.create(WorkKind.TASK, "Write tests", parent=parents[-1], author=Author.PERSON)
    row = f"- [ ] #{parents[0]} Epic 0 (epic, urgent)\n"
    new = "  - [ ] Write tests\n- [ ] Mend the roof (epic)\n  - [ ] Write tests\n"
    _change(memory, clock, (row, row + new))
    roof = _item(memory, "Mend the roof")
    found = memory.state.items(WorkFilter(text="Write tests"))
    assert {item.parent for item in found} == {parents[0], parents[-1], roof.id}
    assert memory.state.item(hidden.id).parent == parents[-1]


def test_a_new_line_stays_where_the_list_goes_on(memory: OrchestratorContextManager, clock: Clock) -> None:
    """One written below the last that is shown gets its number and is seen, though others come before it."""
    for each in range(60):
        memory.state.create(WorkKind.TASK, f"Thing {each}")
    _go_on(memory, clock)
    more = next(row for row in _text(memory).split("\n") if row.startswith("- … and "))
    _change(memory, clock, (more, f"- [ ] Feed the cat\n{more}"), times=3)
    assert f"- [ ] #{_item(memory, 'Feed the cat').id} Feed the cat (task)\n- … and " in _text(memory)
    for each in range(60):
        memory.state.create(WorkKind.TASK, f"Soon {each}", priority=1)
        _go_on(memory, clock) if each % 5 == 0 else None
    assert len(_section(_text(memory), "Prioritized Backlog").split("\n")) < 60


def test_a_plan_that_is_restored_says_what_it_says(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What was done since is put back, as far as lines tell of it."""
    _go_on(memory, clock)
    memory.state.set_status(5, DONE)
    _go_on(memory, clock)
    first = next(
        version.sequence
        for version in memory.episodic_memory.history(PLAN.value)
        if "- [ ] #5" in Path(version.path).read_text(encoding="utf-8")
    )
    memory.episodic_memory.restore(PLAN.value, first)
    assert memory.state.item(5).status is PENDING


def test_who_wrote_a_line_of_work(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A person where one said last what it says, though the machine has put the number behind the box."""
    operation = memory.record_operation("task_execution", {"title": "Paint"})
    memory.state.set_status(6, WorkStatus.IN_PROGRESS, operation=operation.id)
    _change(memory, clock, ("- [ ] #5 Tidy up", "- [ ] #5 Sweep up"), ("- [ ] #6", "- [ ] Buy a bell\n- [ ] #6"))
    origins = {
        line.text.partition("] ")[2][:2]: line.origin for line in memory.blame(PLAN.value) if "- [ ]" in line.text
    }
    assert [origins[number].writer for number in ("#4", "#5", "#6", "#8")] == [
        Writer.MACHINE, Writer.PERSON, Writer.AGENT, Writer.PERSON,
    ]  # fmt: skip
    assert origins["#6"].operations == ((operation.id, operation.id),)


def test_documents_stay_small_and_quick_with_much_work(tmp_path: Path, clock: Clock) -> None:
    """The first of the backlog stands there, the rest is counted; looking costs milliseconds, again looking nothing."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        for number in range(60):
            epic = memory.state.create(WorkKind.EPIC, f"Epic {number} " + "long " * 20)
            for part in range(10):
                memory.state.create(WorkKind.TASK, f"Task {number}.{part}", parent=epic.id)
        _go_on(memory, clock)
        text = _text(memory)
        assert text.count("- [ ] #") == 80
        assert "- … and 580 more: `orchestra-mem work`\n" in text
        assert "\n- [ ] #1 Epic 0" in text
        assert "(epic, 0 of 10 done)\n  - [ ] #2 Task 0.0 (task)\n" in text
        assert memory.state.item(300).status is PENDING
        memory.state.set_status(2, DONE)
        assert_quick(0.3, lambda: _go_on(memory, clock), tries=1)
        assert "  - [x] #2 Task 0.0 (task)\n" in _text(memory)


def test_ticks_and_lines_that_an_undo_brings_back_stand_again(memory: OrchestratorContextManager, clock: Clock) -> None:
    """However many there were, though a refresh has seen them ticked or gone."""
    path = memory.episodic_memory.path(DocumentName.WORK_PLAN)
    for number in range(6):
        memory.state.create(WorkKind.TASK, f"Paint door {number}")
    _go_on(memory, clock)
    opened = path.read_text("utf-8")
    ids = [item.id for item in memory.state.items() if item.title.startswith("Paint door")]
    assert len(ids) == 6
    for old, new in (("- [ ] #{0} Paint", "- [x] #{0} Paint"), (None, None)):
        changed = opened
        for each in ids:
            if old and new:
                changed = changed.replace(old.format(each), new.format(each))
            else:
                changed = "".join(row for row in changed.splitlines(keepends=True) if f"- [ ] #{each} " not in row)
        path.write_text(changed, encoding="utf-8")
        _go_on(memory, clock)
        assert not any(memory.state.item(each).status.is_open for each in ids)
        path.write_text(opened, encoding="utf-8")
        _go_on(memory, clock)
        assert {memory.state.item(each).status for each in ids} == {WorkStatus.PENDING}
        text = path.read_text("utf-8")
        assert [text.count(f"- [ ] #{each} Paint") for each in ids] == [1] * 6
        opened = text


def test_a_context_says_in_one_voice_how_work_stands_after_a_tick(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """What the prefix still tells of the item is taken back below it; a new epoch does not tell it at all."""
    stale = '- Story #2 "Login": can be started'
    before = memory.get_orchestrator_context("task_execution")
    assert stale in before.prefix
    _edit(memory, ("- [ ] #2 Login", "- [x] #2 Login"))
    after = memory.get_orchestrator_context("task_execution")
    assert after.prefix == before.prefix
    assert f"> -{stale}" in after.timeline
    assert "> +" in after.timeline
    assert "> +  - [x] #2 Login (story)\n" in after.timeline
    assert "> +  - [ ] #3 Signup (story)\n" in after.timeline, "it waits for nothing more"
    assert "> +- [ ] #1 User authentication (epic, high, 1 of 3 done)\n" in after.timeline
    with open_memory(memory.episodic_memory.folder.parent.parent, config=CONFIG, clock=clock) as other:
        text = other.get_orchestrator_context("task_execution").render()
    assert stale not in text
    assert "- [x] #2 Login (story)\n  - [ ] #3 Signup (story)\n" in text


def test_a_context_says_in_one_voice_what_the_machine_has_done(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Where a note is due anyway, the other mentions of items are put right as well."""
    memory.state.set_status(5, WorkStatus.IN_PROGRESS)
    memory.state.set_status(6, WorkStatus.CANCELLED)
    with open_memory(memory.episodic_memory.folder.parent.parent, config=CONFIG, clock=clock) as other:
        text = other.get_orchestrator_context("task_execution").render()
    assert '- Task #5 "Tidy up": in progress' in text
    assert 'Task #6 "Paint the door": can be started' not in text


def test_a_copy_of_a_line_says_nothing_until_it_is_changed(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What the machine does afterwards stands, though the copy still says otherwise; who ticks one of both means it."""
    _change(memory, clock, ("- [ ] #6 Paint", "- [ ] #5 Tidy up (task)\n- [ ] #6 Paint"))
    memory.state.set_status(5, WorkStatus.IN_PROGRESS)
    for _ in range(3):
        _go_on(memory, clock)
        assert memory.state.item(5).status is WorkStatus.IN_PROGRESS
    _change(memory, clock, ("- [ ] #5 Tidy up (task)\n", "- [x] #5 Tidy up (task)\n"))
    assert memory.state.item(5).status is DONE

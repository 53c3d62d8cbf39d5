"""Hand edits: what a person says by editing a document is so, in every document and for good."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.agreement import brought_forward, merged
from orchestra_mem.core.documents.conflicts import find_conflicts
from orchestra_mem.core.documents.episodic import ProjectView, render_document, written_at
from orchestra_mem.core.documents.owned_lines import free_rows
from orchestra_mem.types import Author, DocumentName, MustKeepKind, MustKeepStatus
from tests.conftest import Clock
from tests.memories import edit, machine_writes

# A working memory this small lets a refresh look at nearly all that was recorded.
CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
STATE, PLAN, LOG = DocumentName.PROJECT_STATE, DocumentName.WORK_PLAN, DocumentName.DECISION_LOG


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory with a rule, a decision and an open item in its documents."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as opened:
        for text in (
            "We decided to store sessions in Postgres.",
            "Never deploy on a Friday.",
            "TODO: write the migration guide.",
        ):
            clock.now += timedelta(minutes=1)
            opened.record_operation("message", {"role": "user", "text": text})
        _go_on(opened, clock)
        yield opened


def _path(memory: OrchestratorContextManager, name: DocumentName) -> Path:
    return memory.episodic_memory.path(name)


def _edit(memory: OrchestratorContextManager, name: DocumentName, old: str, new: str) -> None:
    edit(_path(memory, name), (old, new))


def _go_on(memory: OrchestratorContextManager, clock: Clock, text: str = "The cache was rebuilt.") -> None:
    for said in (text, "Tea was had.", "It rained."):
        clock.now += timedelta(minutes=1)
        memory.record_operation("message", {"role": "user", "text": said})
    memory.refresh()


def _says(memory: OrchestratorContextManager, kind: MustKeepKind) -> list[str]:
    return [fact.text for fact in memory.facts(kind)]


def test_a_fact_that_is_taken_out_is_gone_from_every_document_and_later_summary(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """The machine does not bring it back; the ledger keeps it as removed, and the versions have the line."""
    (rule,) = memory.facts(MustKeepKind.CONSTRAINT)
    _edit(memory, STATE, f"- {rule.text} (K{rule.id})\n", "")
    for number in range(3):
        _go_on(memory, clock, f"We decided to try queue {number}.")
    assert rule.text not in _path(memory, STATE).read_text(encoding="utf-8")
    assert _says(memory, MustKeepKind.CONSTRAINT) == []
    (removed,) = [fact for fact in memory.facts(standing=False) if fact.id == rule.id]
    assert (removed.status, removed.author) == (MustKeepStatus.REMOVED, Author.PERSON)
    kept = [Path(version.path).read_text(encoding="utf-8") for version in memory.episodic_memory.history(STATE.value)]
    assert any(rule.text in text for text in kept)


@pytest.mark.parametrize(
    "written", ["### Use bcrypt for passwords\n\nBecause it is slow.\n", "- Use bcrypt for passwords\n"]
)
def test_a_decision_that_is_added_is_one_like_any_other(
    memory: OrchestratorContextManager, clock: Clock, written: str
) -> None:
    """It is listed at once, gets its number written behind it, stands once, and can be followed."""
    path = _path(memory, LOG)
    if written.startswith("-"):
        _edit(memory, LOG, "## Decisions\n\n", f"## Decisions\n\n{written}\n")
    else:
        path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + f"\n\n{written}", encoding="utf-8")
    (own,) = [fact for fact in memory.facts(MustKeepKind.DECISION) if fact.author is Author.PERSON]
    assert (own.text, own.operation, own.weight) == ("Use bcrypt for passwords", 0, 3.0)
    for number in range(2):
        _go_on(memory, clock, f"We decided to rename topic {number}.")
    text = path.read_text(encoding="utf-8")
    assert text.count("Use bcrypt for passwords") == 1
    assert f"Use bcrypt for passwords (K{own.id})\n" in text
    assert len([fact for fact in memory.facts() if fact.author is Author.PERSON]) == 1
    expansion = memory.expand(f"K{own.id}")
    assert (expansion.operations, expansion.fact) == ((), own)


def test_a_fact_that_was_added_and_taken_out_again_is_gone(memory: OrchestratorContextManager, clock: Clock) -> None:
    """And may be added once more."""
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n")
    assert "Ask Grace about the quota" in _says(memory, MustKeepKind.OPEN_ITEM)
    _go_on(memory, clock)
    (own,) = [fact for fact in memory.facts() if fact.author is Author.PERSON]
    _edit(memory, PLAN, f"- Ask Grace about the quota (K{own.id})\n", "")
    _go_on(memory, clock)
    assert "Ask Grace about the quota" not in _says(memory, MustKeepKind.OPEN_ITEM)
    assert "Ask Grace" not in _path(memory, PLAN).read_text(encoding="utf-8")
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Ask Grace about the quota\n")
    assert _says(memory, MustKeepKind.OPEN_ITEM)[-1] == "Ask Grace about the quota"


def test_a_line_that_is_moved_to_another_document_is_still_there(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Cut here and pasted there, it is not taken out."""
    (item,) = memory.facts(MustKeepKind.OPEN_ITEM)
    line = f"- {item.text} (K{item.id})\n"
    _edit(memory, PLAN, line, "")
    _edit(memory, STATE, "## Blockers\n", f"## Blockers\n\n{line}")
    _go_on(memory, clock)
    assert [fact.id for fact in memory.facts(MustKeepKind.OPEN_ITEM)] == [item.id]


def test_a_document_that_is_taken_away_says_nothing_of_its_facts(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """The machine writes it anew, with all of them."""
    _path(memory, STATE).unlink()
    _go_on(memory, clock)
    assert "Never deploy on a Friday." in _path(memory, STATE).read_text(encoding="utf-8")


@pytest.mark.parametrize("back_s", [0, 60, 86_400])
def test_a_clock_that_does_not_go_on_tells_an_old_text_all_the_same(
    memory: OrchestratorContextManager, clock: Clock, back_s: int
) -> None:
    """It stands still or is put back, also by as much as it had gone on: what came since the old text stands."""
    opened = [_path(memory, LOG).read_text(encoding="utf-8")]
    for way in ("We decided to log in JSON.", "We decided to drop the cron job."):
        clock.now -= timedelta(seconds=back_s)
        memory.record_operation("message", {"role": "user", "text": way})
        for said in ("Tea was had.", "It rained."):
            memory.record_operation("message", {"role": "user", "text": said})
        memory.refresh()
        opened.append(_path(memory, LOG).read_text(encoding="utf-8"))
    times = [written_at(text) for text in opened]
    assert times == sorted(set(times))
    _path(memory, LOG).write_text(opened[0] + "\n## Tea\n\nAt noon.\n", encoding="utf-8")
    assert len(_says(memory, MustKeepKind.DECISION)) == 3
    memory.refresh()
    text = _path(memory, LOG).read_text(encoding="utf-8")
    for said in ("sessions in Postgres", "log in JSON", "drop the cron job", "At noon."):
        assert text.count(said) == 1, text


def test_the_last_fact_is_reworded_while_the_machine_adds_one(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Both stand and nothing collides, with odd spacing as well."""
    _edit(memory, STATE, "Never deploy on a Friday.", "Never deploy  on a Friday or a Monday.")
    _go_on(memory, clock, "Never merge without a review.")
    text = _path(memory, STATE).read_text(encoding="utf-8")
    assert memory.conflicts() == []
    assert text.count("Never deploy  on a Friday or a Monday. (K2)") == text.count("Never merge without a review.") == 1


def test_half_a_file_says_nothing(memory: OrchestratorContextManager) -> None:
    """While somebody is writing a document, nothing of it is taken in."""
    path = _path(memory, STATE)
    data = path.read_bytes()
    with path.open("wb", buffering=0) as file:
        file.write(data[: data.index(b"Never deploy")])
        memory.get_orchestrator_context("task_execution")
        file.write(data[data.index(b"Never deploy") :])
    assert _says(memory, MustKeepKind.CONSTRAINT) == ["Never deploy on a Friday."]


def test_a_fact_that_is_taken_out_during_a_refresh_stays_out(
    memory: OrchestratorContextManager, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The save comes after the edits were taken in and before the documents are read again."""
    (rule,) = memory.facts(MustKeepKind.CONSTRAINT)
    saves = [(STATE, f"- {rule.text} (K{rule.id})\n", "- Never paint it green\n")]

    def saving(name: DocumentName, view: ProjectView) -> str:
        while saves:
            _edit(memory, *saves.pop())
        return render_document(name, view)

    monkeypatch.setattr("orchestra_mem.tiers.episodic.render_document", saving)
    _go_on(memory, clock, "Never merge without a review.")
    text = _path(memory, STATE).read_text(encoding="utf-8")
    assert rule.text not in text
    for said in ("Never paint it green (K", "Never merge without a review."):
        assert text.count(said) == 1, text
    assert memory.conflicts() == []


def test_an_editor_that_saves_again_after_a_refresh_takes_out_what_it_had_saved(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """It goes on from its own last text, not from the machine's: an own line goes, what came since stands."""
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Buy a bell\n- Paint the door\n")
    saved = _path(memory, PLAN).read_text(encoding="utf-8")
    _go_on(memory, clock, "TODO: order the paper.")
    _path(memory, PLAN).write_text(saved.replace("- Buy a bell\n", ""), encoding="utf-8")
    assert {"Paint the door", "TODO: order the paper."} < set(_says(memory, MustKeepKind.OPEN_ITEM))
    _go_on(memory, clock)
    text = _path(memory, PLAN).read_text(encoding="utf-8")
    assert "bell" not in text
    assert "bell" not in " ".join(_says(memory, MustKeepKind.OPEN_ITEM))
    assert text.count("Paint the door") == text.count("order the paper") == 1


def test_lines_at_one_place_from_an_old_text_and_from_the_machine_all_stand(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Who saves a text that never had a fact has not taken it out, not even where the own lines stand in its place."""
    opened = _path(memory, STATE).read_text(encoding="utf-8")
    _go_on(memory, clock, "Never merge without a review.")
    mine = opened.replace(
        "Never deploy on a Friday. (K2)\n", "Never deploy on a Monday. (K2)\n- Never paint it green\n"
    )
    _path(memory, STATE).write_text(mine, encoding="utf-8")
    wanted = ["Never deploy on a Monday.", "Never merge without a review.", "Never paint it green"]
    assert sorted(_says(memory, MustKeepKind.CONSTRAINT)) == wanted
    _go_on(memory, clock)
    text = _path(memory, STATE).read_text(encoding="utf-8")
    assert [text.count(said) for said in wanted] == [1, 1, 1], text


def test_what_was_saved_from_an_old_text_outlives_a_restore_that_was_killed(tmp_path: Path, clock: Clock) -> None:
    """The version that is kept before a restore is no sign that it was done."""
    points: list[str] = []

    def killed(point: str) -> None:
        if point in points:
            raise KeyboardInterrupt

    with open_memory(tmp_path, clock=clock, write_point=killed) as memory:
        path = _path(memory, PLAN)
        _go_on(memory, clock, "TODO: order the paper.")
        opened = path.read_text("utf-8")
        _go_on(memory, clock, "TODO: order the ink.")
        path.write_text(f"{opened}\n## Notes\n\nA note of mine.\n", encoding="utf-8")
        points.append("restore.rename.before")
        with pytest.raises(KeyboardInterrupt):
            memory.episodic_memory.restore(PLAN.value, memory.episodic_memory.history(PLAN.value)[0].sequence)
        points.clear()
    with open_memory(tmp_path, clock=clock) as memory:
        _go_on(memory, clock, "TODO: order the glue.")
        text = path.read_text("utf-8")
        for said in ("A note of mine.", "order the paper", "order the ink", "order the glue"):
            assert text.count(said) == 1, text


def test_what_is_taken_out_of_a_restored_text_stays_away(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Though it had been taken out before the restore as well, and the machine's last text still has it."""
    path = _path(memory, PLAN)
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\nA remark of mine.\n")
    _go_on(memory, clock, "TODO: order the paper.")
    _go_on(memory, clock, "TODO: order the ink.")
    old = memory.episodic_memory.history(PLAN.value)[-1].sequence
    without = path.read_text("utf-8").replace("A remark of mine.\n", "")
    path.write_text(without, encoding="utf-8")
    memory.episodic_memory.restore(PLAN.value, old)
    restored = path.read_text("utf-8")
    assert "A remark of mine." in restored
    path.write_text(restored.replace("A remark of mine.\n", ""), encoding="utf-8")
    _go_on(memory, clock, "TODO: order the glue.")
    text = path.read_text("utf-8")
    assert "A remark of mine." not in text
    for said in ("order the paper", "order the glue"):
        assert text.count(said) == 1, text


@pytest.mark.parametrize("text", ["a\nb\n", "a\r\nb\r\n", "a\nb"])
def test_what_came_since_an_old_text_follows_the_persons_line(text: str) -> None:
    """Where both wrote at one place, in the document's line ends, with or without a last one."""
    person = text.replace("b", "mine")
    left = text.replace("b", "theirs")
    found = brought_forward(text, left, person)
    assert found.split() == ["a", "mine", "theirs"]
    assert ("\r" in found) == ("\r" in text)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("now", ["", "We decided to use oak, oiled twice."])
def test_a_decision_is_taken_out_or_reworded_in_an_old_text_though_it_is_listed_in_brief_by_now(
    tmp_path: Path, clock: Clock, now: str, ends: str
) -> None:
    """What a person says of a fact is of that fact, in whichever form and place the machine shows it meanwhile."""
    config = {"documents": {"decisions_in_full": 1, "decisions_in_brief": 5}}
    with open_memory(tmp_path, clock=clock, config=config) as memory:
        path = _path(memory, LOG)
        _go_on(memory, clock, "We decided to use oak.")
        if ends != "\n":
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
            _go_on(memory, clock)
        opened = path.read_bytes().decode()
        entry = next(line for line in opened.splitlines() if line.startswith("### ") and "oak" in line)
        _go_on(memory, clock, "We decided to buy the long bench.")
        _go_on(memory, clock, "We decided to paint the gate blue.")
        brief = next(line for line in path.read_text("utf-8").splitlines() if "use oak" in line)
        assert brief.startswith("- ")
        assert brief != entry
        reworded = entry.replace("We decided to use oak.", now) if now else ""
        mine = opened.replace(f"{entry}{ends}", f"{reworded}{ends}" if now else "")
        path.write_bytes(mine.encode())
        wanted = {now, "We decided to buy the long bench.", "We decided to paint the gate blue."} - {""}
        assert set(_says(memory, MustKeepKind.DECISION)) == wanted
        _go_on(memory, clock)
        text = path.read_text("utf-8")
        assert text.count(" oak") == bool(now), text
        assert [text.count(said) for said in wanted] == [1] * len(wanted), text


def test_an_old_text_without_many_lines_has_never_had_them(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Two editors had the document open: what the first has saved stands, whatever the second saves."""
    opened = _path(memory, PLAN).read_text(encoding="utf-8")
    many = "".join(f"- Buy bell {number}\n" for number in range(10))
    _edit(memory, PLAN, "## Backlog\n", f"## Backlog\n\n{many}")
    _go_on(memory, clock, "TODO: order the paper.")
    mine = opened.replace("## Future Work\n", "## Future Work\n\n- Paint the door\n")
    _path(memory, PLAN).write_text(mine, encoding="utf-8")
    _go_on(memory, clock)
    text = _path(memory, PLAN).read_text(encoding="utf-8")
    for said in (*(f"Buy bell {number} " for number in range(10)), "Paint the door", "order the paper"):
        assert text.count(said) == 1, said


def test_an_old_text_takes_out_no_edit_that_a_refresh_has_taken_in(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Though the machine had nothing to write beside it; the edit is a version, once, until it is taken back."""
    opened = _path(memory, LOG).read_text(encoding="utf-8")
    _go_on(memory, clock, "We decided to log in JSON.")
    left = _path(memory, LOG).read_text(encoding="utf-8")
    edited = left.replace("in Postgres", "in a Postgres of our own") + "\n## Notes\n\nAsk Grace.\n"
    _path(memory, LOG).write_text(edited, encoding="utf-8")
    for _ in range(3):
        memory.refresh()
        assert _path(memory, LOG).read_text(encoding="utf-8") == edited
    history = memory.episodic_memory.history(LOG.value)
    kept = [(version.author, Path(version.path).read_text(encoding="utf-8")) for version in history]
    assert kept[-2:] == [(Author.MACHINE, left), (Author.PERSON, edited)]
    mine = opened + "\n## Tea\n\nAt noon.\n"
    _path(memory, LOG).write_text(mine, encoding="utf-8")
    _go_on(memory, clock)
    text = _path(memory, LOG).read_text(encoding="utf-8")
    for said in ("in a Postgres of our own", "Ask Grace.", "At noon.", "log in JSON"):
        assert text.count(said) == 1, text
    assert _says(memory, MustKeepKind.DECISION)[0] == "We decided to store sessions in a Postgres of our own."


def test_an_edit_that_was_taken_back_is_in_no_old_text_that_is_saved_later(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Though a refresh has seen it in between."""
    opened = _path(memory, LOG).read_text(encoding="utf-8")
    _go_on(memory, clock, "We decided to log in JSON.")
    left = _path(memory, LOG).read_text(encoding="utf-8")
    for text in (left + "\n## Notes\n\nAsk Grace.\n", left):
        _path(memory, LOG).write_text(text, encoding="utf-8")
        memory.refresh()
    _path(memory, LOG).write_text(opened + "\n## Tea\n\nAt noon.\n", encoding="utf-8")
    memory.refresh()
    text = _path(memory, LOG).read_text(encoding="utf-8")
    assert [text.count(said) for said in ("Ask Grace", "At noon.", "log in JSON")] == [0, 1, 1], text


def test_what_was_added_and_taken_back_in_one_editor_stays_away(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Though the text is again as it was opened, and the machine has written in between."""
    opened = _path(memory, PLAN).read_text(encoding="utf-8")
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Buy a bell\n")
    _go_on(memory, clock, "TODO: order the paper.")
    _path(memory, PLAN).write_text(opened, encoding="utf-8")
    _go_on(memory, clock)
    text = _path(memory, PLAN).read_text(encoding="utf-8")
    assert "bell" not in text
    assert "order the paper" in text


def test_the_old_words_of_a_reworded_fact_are_in_no_later_summary(tmp_path: Path, clock: Clock) -> None:
    """Though the operation that has them is summarised only afterwards."""
    config = {**CONFIG, "compaction": {"verbatim_window_s": 3_600, "verbatim_floor_tokens": 0, "segment_tokens": 100}}
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        memory.record_operation("message", {"role": "user", "text": "Tea was had. Never deploy the shop on a Friday."})
        _go_on(memory, clock)
        _edit(memory, STATE, "Never deploy the shop on a Friday.", "Never deploy the shop before noon.")
        clock.now += timedelta(hours=2)
        for number in range(20):
            _go_on(memory, clock, f"The lamp {number} in the long hall was changed by the people from the yard.")
        assert memory.session_memory.path
        document = memory.session_memory.path.read_text(encoding="utf-8")
        assert "Summary S1" in document
        assert "before noon" in document
        assert "on a Friday" not in document


def test_an_edit_that_is_taken_back_before_the_machine_writes_is_none(memory: OrchestratorContextManager) -> None:
    """Though it was in a context meanwhile: a fact reworded, one taken out, and one added."""
    before = {name: _path(memory, name).read_bytes() for name in DocumentName}
    facts = memory.facts(standing=False)
    _edit(memory, STATE, "Never deploy on a Friday.", "Never deploy on a Sunday.")
    _edit(memory, LOG, next(row for row in before[LOG].decode().split("\n") if "Postgres" in row), "")
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Buy a bell\n")
    assert [fact.text for fact in memory.facts()][1:] != [fact.text for fact in facts][1:]
    for name, data in before.items():
        _path(memory, name).write_bytes(data)
    assert [fact.text for fact in memory.facts()] == [fact.text for fact in facts]
    memory.refresh()
    for name in DocumentName:
        assert "Sunday" not in _path(memory, name).read_text(encoding="utf-8")
        assert "bell" not in _path(memory, name).read_text(encoding="utf-8")


@pytest.mark.parametrize("own", ["", "- Never paint it green\n"])
@pytest.mark.parametrize("who_looks", ["one process", "another process", "a new process"])
def test_a_fact_that_is_brought_back_and_taken_out_again_stays_out(
    memory: OrchestratorContextManager, tmp_path: Path, clock: Clock, own: str, who_looks: str
) -> None:
    """Undone and redone, with a look at it in between; also where that look was another process's."""
    (rule,) = memory.facts(MustKeepKind.CONSTRAINT)
    line = f"- {rule.text} (K{rule.id})\n"
    _edit(memory, STATE, line, "")
    _go_on(memory, clock, "Never merge without a review.")
    gone = _path(memory, STATE).read_text(encoding="utf-8")
    other = "- Never merge without a review."
    _edit(memory, STATE, other, line + other)
    if who_looks == "one process":
        assert rule.text in _says(memory, MustKeepKind.CONSTRAINT)
    else:
        with open_memory(tmp_path, config=CONFIG, clock=clock) as second:
            assert rule.text in _says(second, MustKeepKind.CONSTRAINT)
    _path(memory, STATE).write_text(gone.replace(other, own + other), encoding="utf-8")
    if who_looks == "a new process":
        with open_memory(tmp_path, config=CONFIG, clock=clock) as third:
            third.refresh()
    _go_on(memory, clock, "Never push at night.")
    assert rule.text not in _path(memory, STATE).read_text(encoding="utf-8")
    assert rule.text not in _says(memory, MustKeepKind.CONSTRAINT)


def test_a_fact_that_was_brought_back_and_listed_may_leave_its_list(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Once the machine has written its line again, a line that makes room for newer ones is nobody's deletion."""
    (rule,) = memory.facts(MustKeepKind.CONSTRAINT)
    line = f"- {rule.text} (K{rule.id})\n"
    _edit(memory, STATE, line, "")
    _go_on(memory, clock, "Never merge without a review.")
    _edit(memory, STATE, "- Never merge", f"{line}- Never merge")
    _go_on(memory, clock)
    assert rule.id in [fact.id for fact in memory.facts(MustKeepKind.CONSTRAINT)]
    machine_writes(memory, STATE, _path(memory, STATE).read_text(encoding="utf-8").replace(line, ""))
    assert rule.text not in _path(memory, STATE).read_text(encoding="utf-8")
    assert rule.id in [fact.id for fact in memory.facts(MustKeepKind.CONSTRAINT)]


def test_a_text_that_is_restored_says_what_it_says(memory: OrchestratorContextManager, clock: Clock) -> None:
    """What it lacks is taken out, also after refreshes; put back in its turn, the later text has that again."""
    _go_on(memory, clock, "Never merge without a review.")
    old, new = "Never deploy on a Friday.", "Never merge without a review."
    first = next(
        version.sequence
        for version in memory.episodic_memory.history(STATE.value)
        if old in (text := Path(version.path).read_text(encoding="utf-8")) and new not in text
    )
    kept = memory.episodic_memory.restore(STATE.value, first)
    assert _says(memory, MustKeepKind.CONSTRAINT) == [old]
    _go_on(memory, clock)
    assert new not in _path(memory, STATE).read_text(encoding="utf-8")
    memory.episodic_memory.restore(STATE.value, kept.sequence)
    assert _says(memory, MustKeepKind.CONSTRAINT) == [old, new]
    _go_on(memory, clock)
    assert new in _path(memory, STATE).read_text(encoding="utf-8")


@pytest.mark.parametrize("restored", [True, False])
@pytest.mark.parametrize("now", ["", "The parser reads nearly every grammar"])
def test_what_only_an_old_text_still_lists_is_taken_out_or_reworded_as_any_other(
    tmp_path: Path, clock: Clock, now: str, restored: bool
) -> None:
    """The machine's own list has gone on to newer things; what a person says of the line is said of the fact.

    The old text may have been restored, or an editor still had it open.
    """
    with open_memory(tmp_path, clock=clock, config={"documents": {"progress_items": 2}}) as memory:
        path = _path(memory, STATE)

        def do(*parts: str) -> None:
            for part in parts:
                memory.record_operation("task", {"title": part, "status": "completed", "text": f"The {part} works now"})
            _go_on(memory, clock)

        do("parser")
        (fact,) = memory.facts(MustKeepKind.COMPLETION)
        line = next(line for line in path.read_text(encoding="utf-8").split("\n") if f"(K{fact.id})" in line)
        opened = path.read_text(encoding="utf-8")
        do("printer")
        do("linker", "loader")
        assert line not in path.read_text(encoding="utf-8")
        if restored:
            version = next(
                v for v in memory.episodic_memory.history(STATE.value) if line in Path(v.path).read_text("utf-8")
            )
            memory.episodic_memory.restore(STATE.value, version.sequence)
            do("debugger", "profiler")
            do()
        else:
            path.write_text(opened, encoding="utf-8")
        _edit(memory, STATE, f"{line}\n", f"- {now} (K{fact.id})\n" if now else "")
        _go_on(memory, clock)
        assert line not in path.read_text(encoding="utf-8")
        (found,) = [each for each in memory.facts(standing=False) if each.id == fact.id]
        assert (found.text, found.status) == (
            (now, MustKeepStatus.STANDING) if now else (fact.text, MustKeepStatus.REMOVED)
        )


def test_lines_that_an_editor_brings_back_by_undo_stand_again(memory: OrchestratorContextManager, clock: Clock) -> None:
    """However many there were: facts, own lines and reworded ones, though a refresh has seen them gone."""
    notes = "".join(f"- Buy bell {number}\n" for number in range(6))
    _edit(memory, PLAN, "## Backlog\n", f"## Backlog\n\n{notes}")
    path = _path(memory, PLAN)
    path.write_text(path.read_text("utf-8") + "\n## Notes\n\nAsk Grace.\nAsk Ada.\n", encoding="utf-8")
    _go_on(memory, clock)
    opened = path.read_text("utf-8")
    assert len(_says(memory, MustKeepKind.OPEN_ITEM)) == 7
    shorter = "".join(line for line in opened.splitlines(keepends=True) if "Buy bell" not in line and "Ask" not in line)
    path.write_text(shorter.replace("write the migration guide", "write two guides"), encoding="utf-8")
    _go_on(memory, clock, "TODO: order the paper.")
    assert "bell" not in path.read_text("utf-8")
    path.write_text(opened, encoding="utf-8")
    _go_on(memory, clock, "TODO: order the glue.")
    text = path.read_text("utf-8")
    for said in (
        *(f"Buy bell {number} (K" for number in range(6)), "Ask Grace.", "Ask Ada.", "write the migration guide",
        "order the paper", "order the glue",
    ):  # fmt: skip
        assert text.count(said) == 1, (said, text)
    assert "two guides" not in text
    assert len(_says(memory, MustKeepKind.OPEN_ITEM)) == 9


@pytest.mark.parametrize("name", list(DocumentName))
def test_an_editor_that_moves_the_file_away_before_it_writes_loses_no_line(
    memory: OrchestratorContextManager, clock: Clock, name: DocumentName
) -> None:
    """A refresh finds no file and begins a new one; what the editor writes then stands, with what came meanwhile."""
    path = _path(memory, name)
    path.write_text(path.read_text("utf-8") + "\n## Notes\n\n- Ask Grace.\n\nAsk Ada.\n", encoding="utf-8")
    _edit(memory, PLAN, "## Backlog\n", "## Backlog\n\n- Buy a bell\n")
    _go_on(memory, clock)
    opened = path.read_text("utf-8")
    path.rename(path.with_suffix(".md~"))
    _go_on(memory, clock, "We decided to log in JSON. TODO: order the paper. Never buy glue.")
    path.write_text(opened + "\nAsk Joan.\n", encoding="utf-8")
    for _ in range(2):
        _go_on(memory, clock)
        text = path.read_text("utf-8")
        for said in ("- Ask Grace.", "Ask Ada.", "Ask Joan.", "## Notes"):
            assert text.count(said) == 1, (said, text)
    items = " ".join(_says(memory, MustKeepKind.OPEN_ITEM))
    assert "Buy a bell" in items
    assert "order the paper" in items
    for document, said in (
        (STATE, "Never buy glue"),
        (PLAN, "order the paper"),
        (PLAN, "Buy a bell"),
        (LOG, "in JSON"),
    ):
        assert _path(memory, document).read_text("utf-8").count(said) == 1, said
    assert find_conflicts(path.read_text("utf-8")) == ()


@pytest.mark.parametrize("point", ["version.write.before", "document.write.before", "document.rename.before"])
def test_a_line_taken_out_by_an_editor_whose_file_was_away_when_a_process_began_stays_out(
    memory: OrchestratorContextManager, tmp_path: Path, clock: Clock, point: str
) -> None:
    """The document comes back while a new one is being written in its place."""
    (rule,) = memory.facts(MustKeepKind.CONSTRAINT)
    path = _path(memory, STATE)
    opened = path.read_text("utf-8")
    memory.close()
    path.unlink()
    passed: list[str] = []

    def save(name: str) -> None:
        passed.append(name)
        if name == point and passed.count(point) == 1:
            path.write_text(opened.replace(f"- {rule.text} (K{rule.id})\n", ""), encoding="utf-8")

    with open_memory(tmp_path, config=CONFIG, clock=clock, write_point=save) as again:
        for _ in range(2):
            assert _says(again, MustKeepKind.CONSTRAINT) == []
            assert rule.text not in path.read_text("utf-8")
            _go_on(again, clock)


ROWS = st.lists(
    st.sampled_from(
        ["## Backlog", "## Notes", "### Mine", "", "- tea", "milk", "- buy a bell", "> quoted", "- rye (K1)",
         "- oat (K2)", "- wheat (K1)", "- None", "- [ ] #5 Login", "a [x] b"]
    ),
    max_size=12,
).map(lambda rows: "# Plan\n\n" + "".join(f"{row}\n" for row in rows))  # fmt: skip


@given(opened=ROWS, left=ROWS, person=ROWS, own=st.sampled_from([(), ("K1",), ("K1", "K2")]))
def test_every_free_line_that_a_person_saved_last_stands(
    opened: str, left: str, person: str, own: tuple[str, ...]
) -> None:
    """Whatever was opened, and whatever the machine has left since; a fact in the person's own words is one as well."""
    rows = set(brought_forward(opened, left, person, own).split("\n"))
    assert [row for row in free_rows(person, own) if row not in rows] == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (STATE, "- **Sessions**: 1\n", "- **Sessions**: 1, the second is Grace's\n"),
        (PLAN, "(K3)\n", "(K3)\n- TODO: write two guides. (K3)\n"),
        (LOG, "(K1)\n", "(K1)\n\n*Superseded by nothing,* says Grace.\n"),
        (PLAN, "# Work Plan\n", "# Work Plan\n\n- [ ] #5 of the other list (task)\n"),
    ],
)
def test_a_line_of_the_machines_that_a_person_has_changed_is_theirs(
    memory: OrchestratorContextManager, clock: Clock, name: DocumentName, old: str, new: str
) -> None:
    """A figure, a copy, a remark on a decision, a line of work where there is none: each outlives a file moved away."""
    _edit(memory, name, old, new)
    _go_on(memory, clock)
    path = _path(memory, name)
    opened = path.read_text("utf-8")
    path.rename(path.with_suffix(".md~"))
    _go_on(memory, clock)
    path.write_text(opened + "\nAsk Joan.\n", encoding="utf-8")
    _go_on(memory, clock)
    own = next(row for row in new.split("\n") if row and row not in old)
    assert path.read_text("utf-8").count(own) == 1


def test_who_rewords_one_of_two_copies_means_the_fact(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Copying alone says nothing, nor does a copy that is changed as it is made."""
    (item,) = memory.facts(MustKeepKind.OPEN_ITEM)
    line = f"- {item.text} (K{item.id})\n"
    _edit(memory, PLAN, line, f"{line}{line}")
    _go_on(memory, clock)
    assert _says(memory, MustKeepKind.OPEN_ITEM) == [item.text]
    text = _path(memory, PLAN).read_text(encoding="utf-8")
    _path(memory, PLAN).write_text(text.replace(item.text, "TODO: write two guides.", 1), encoding="utf-8")
    for _ in range(2):
        _go_on(memory, clock)
        assert _says(memory, MustKeepKind.OPEN_ITEM) == ["TODO: write two guides."]


def test_a_section_with_entries_of_a_persons_is_not_called_empty() -> None:
    """Though the machine has none there any more."""
    base = "# Log\n\n## Decisions\n\n### Use oak (K1)\n"
    found = merged(base, base.replace("### Use oak (K1)", "- None"), f"{base}\n### Mine\n\nAsk Grace.\n")
    assert [row for row in found.text.split("\n") if row] == ["# Log", "## Decisions", "### Mine", "Ask Grace."]


def test_an_entry_taken_out_of_an_old_text_stays_out_whatever_came_below_it() -> None:
    """A remark on it goes with it; the entries that came behind it stand."""
    opened = "# Log\n\n## Decisions\n\n### Use oak (K1)\n\n### Use ash (K2)\n"
    left = opened.rstrip() + "\n\n*Perhaps superseded by K3.*\n\n### Use elm (K3)\n"
    found = brought_forward(opened, left, opened.replace("### Use ash (K2)\n", ""))
    assert [row for row in found.split("\n") if row] == [
        "# Log",
        "## Decisions",
        "### Use oak (K1)",
        "### Use elm (K3)",
    ]


def test_a_new_fact_that_is_like_a_removed_one_is_no_change_of_it(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """Nor does it count as taken out, however often the machine writes."""
    _edit(memory, PLAN, "- TODO: write the migration guide. (K3)\n", "")
    for text in ("TODO: write the marble guide.", "The oven was cleaned.", "A bell rang."):
        _go_on(memory, clock, text)
    assert memory.conflicts() == []
    assert _says(memory, MustKeepKind.OPEN_ITEM) == ["TODO: write the marble guide."]
    assert "write the marble guide" in _path(memory, PLAN).read_text(encoding="utf-8")


def test_an_own_item_stands_also_below_a_new_entry(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A line that bears a number is that fact wherever it stands."""
    _edit(memory, LOG, "## Decisions\n\n", "## Decisions\n\n- Use bcrypt\n\n")
    _go_on(memory, clock)
    _edit(memory, LOG, "## Decisions\n\n", "## Decisions\n\n### Use argon\n\n")
    assert {"Use bcrypt", "Use argon"} <= set(_says(memory, MustKeepKind.DECISION))


def test_a_save_right_after_a_refresh_is_in_the_next_context(memory: OrchestratorContextManager, clock: Clock) -> None:
    """However soon it comes."""
    for number in range(5):
        _go_on(memory, clock, f"The lamp {number} was changed.")
        _edit(memory, PLAN, "## Backlog\n", f"## Backlog\n\n- Buy a bell {number}\n")
        assert f"Buy a bell {number}" in memory.get_orchestrator_context("task_execution").render()


def test_a_rewording_that_is_undone_and_done_again_stands(memory: OrchestratorContextManager, clock: Clock) -> None:
    """In the ledger as in the document, with a look at each step."""
    _edit(memory, STATE, "Never deploy on a Friday.", "Never deploy on a Monday.")
    _go_on(memory, clock, "We decided to log in JSON.")
    for before, now in (("Monday", "Friday"), ("Friday", "Monday")):
        _edit(memory, STATE, f"deploy on a {before}.", f"deploy on a {now}.")
        assert _says(memory, MustKeepKind.CONSTRAINT) == [f"Never deploy on a {now}."]
    _go_on(memory, clock, "We decided to drop the cron job.")
    assert _says(memory, MustKeepKind.CONSTRAINT) == ["Never deploy on a Monday."]
    assert "Never deploy on a Monday." in _path(memory, STATE).read_text(encoding="utf-8")

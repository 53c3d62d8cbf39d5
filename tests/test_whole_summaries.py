"""Summaries of complete sessions and short forms of large sections: extracts first, improved in the background."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.core.prompts import SESSION_KEYS
from orchestra_mem.errors import ModelError
from orchestra_mem.job_types import JobState
from orchestra_mem.model_types import Message
from orchestra_mem.testing import HangingModel, ScriptedModel
from orchestra_mem.tiers.session_ending import with_lines
from orchestra_mem.types import DocumentName, Summary
from tests.conftest import Clock
from tests.memories import flushed, take_out, work_all
from tests.test_jobs import AUTO, SMALL, place_draft, record, record_and_refresh
from tests.timing import until

SECTION = "Architecture"
PARTS = 60
# A document may hold 800 tokens.
SECTIONS: dict[str, object] = {**SMALL, "orchestrator.episodic_compression_threshold": 800}


def answer(messages: Sequence[Message]) -> str:
    """The answer of a good model: for a session lines of tool output as issues, for a section last sentences."""
    lines = [line.strip() for line in messages[-1].text.splitlines() if line.strip()][1:-1]
    if len(messages) > 2:
        return json.dumps({"lines": [line.rpartition(". ")[2] for line in lines[-2:]]})
    printed = [line.removeprefix("Output: ") for line in lines if "ran for" in line]
    return json.dumps({**{key: [] for key in SESSION_KEYS}, "issues_encountered": printed[-2:]})


def good() -> ScriptedModel:
    """A model that answers with `answer`."""
    return ScriptedModel(answer, name="good")


def prose() -> str:
    """A person's text about a large system, with one must-keep."""
    lines = [
        f"Part {n} of the system reads its rows from table_{n}, and puts them into a cache of {n} minutes. "
        f"The index of part {n} is called rows_{n}_by_time."
        for n in range(1, PARTS + 1)
    ]
    lines.insert(PARTS // 2, "Never restart the broker while orders are open.")
    return "\n\n".join(lines)


@contextmanager
def sectioned(
    folder: Path, clock: Clock, model: ScriptedModel | None = None, text: str = ""
) -> Iterator[tuple[OrchestratorContextManager, Path]]:
    """Yield a memory and its project state, in which a person has written a section before the last refresh."""
    with open_memory(folder, config=SECTIONS, clock=clock, model=model) as memory:
        record(memory, clock, 3)
        path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
        path.write_text(f"{path.read_text().rstrip()}\n\n## {SECTION}\n\n{text or prose()}\n")
        memory.refresh()
        yield memory, path


def whole(memory: OrchestratorContextManager) -> list[Summary]:
    """The summaries of complete sessions and of sections."""
    return [summary for summary in memory.losses() if not summary.level]


def ended(memory: OrchestratorContextManager, clock: Clock) -> tuple[Path, Summary]:
    """End a session; return its document and its summary in the ledger."""
    record_and_refresh(memory, clock)
    path = flushed(memory)
    (summary,) = whole(memory)
    return path, summary


# Sessions


def test_what_a_session_came_to_stands_in_the_ledger_with_and_without_a_model(tmp_path: Path, clock: Clock) -> None:
    """Without a model a session's closing summary is an extract; it is in the ledger and expands to all operations."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        path, summary = ended(memory, clock)
        assert (summary.method, summary.level, summary.verdict) == ("extractive", 0, "")
        assert summary.text.startswith("## Session Summary\n\n**Total Operations**: 24\n")
        tokens = sum(each.tokens for each in memory.operations())  # may be more than the window, which is refreshed
        assert (
            f"\n**Tokens Used**: {tokens:,} in all; the window holds {memory.context_tracker.max_tokens:,}\n"
            in summary.text
        )
        assert summary.text.strip() in path.read_text(encoding="utf-8")
        assert len(memory.expand(f"S{summary.id}").operations) == summary.operation_count == 24
        assert (summary.first_operation, summary.last_operation) == (1, 24)
        assert "src" not in summary.dropped
        assert "module_3.py" in summary.dropped
        record(memory, clock, 2, first=60)
        memory.flush_session()
        assert [each.operation_count for each in whole(memory)] == [24, 4]
        assert not any(story.job for story in memory.compression.stories(memory.losses()))


def test_a_session_is_bettered_at_the_next_border_only(tmp_path: Path, clock: Clock) -> None:
    """A model's lines are added to a session's summary at the next refresh, not before, and not as issues."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=good()) as memory:
        path, summary = ended(memory, clock)
        before = path.read_text(encoding="utf-8")
        done = memory.compression.redo(f"S{summary.id}")
        assert done.verdict.good, done.fault
        assert path.read_text(encoding="utf-8") == before
        record_and_refresh(memory, clock, 2, first=60)
        better = next(each for each in whole(memory) if each.id == summary.id)
        after = path.read_text(encoding="utf-8")
    assert (better.method, better.verdict) == ("extractive + good", "accepted")
    assert after == before.replace(summary.text.strip(), better.text.strip())
    assert better.text.startswith(summary.text)
    heading, *new = better.text.removeprefix(summary.text).strip().splitlines()
    assert heading == "**Also Noted**:", "that it is an issue only the model says"
    assert all(line.startswith("- tests/") and "ran for" in line for line in new)
    assert new
    assert better.dropped != summary.dropped


def test_what_a_person_took_out_does_not_come_back_by_a_model(tmp_path: Path, clock: Clock) -> None:
    """A decision that a person removed does not return through a model, from operations or from an older summary."""
    decided = [f"We decided to keep the passwords of gate_{n}.py in plain text on floor_{n}." for n in (1, 2)]
    said = json.dumps({**{key: [] for key in SESSION_KEYS}, "decisions_made": decided})
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(said, name="honest")) as memory:
        memory.record_operation("note", {"text": decided[0]})
        record_and_refresh(memory, clock)
        assert decided[0] in memory.losses()[0].text
        memory.record_operation("note", {"text": decided[1]})
        memory.refresh()
        log = memory.episodic_memory.folder / "decision_log.md"
        assert log.read_text(encoding="utf-8").count("plain text") == 2
        take_out(log, "plain text")
        memory.refresh()
        path = flushed(memory)
        (summary,) = whole(memory)
        assert "plain text" not in summary.text
        done = memory.compression.redo(f"S{summary.id}")
        assert "plain text" not in done.text, done.text
        record_and_refresh(memory, clock, 2, first=60)
        closing = path.read_text(encoding="utf-8").partition("## Session Summary")[2]
        assert "plain text" not in closing


def test_a_flush_waits_for_no_model_and_its_session_waits_for_the_next_start(tmp_path: Path, clock: Clock) -> None:
    """A flush does not wait for a hanging model; the session's job is queued and done at the next start."""
    hanging = HangingModel()
    with open_memory(tmp_path, config=AUTO, clock=clock, model=hanging) as memory:
        _, summary = ended(memory, clock)
        waiting = [story.job for story in memory.compression.stories([summary])]
        assert [job.state for job in waiting if job] == [JobState.WAITING]
        hanging.release()
    with open_memory(tmp_path, config=AUTO, clock=clock, model=good()) as memory:
        stories = memory.compression.stories
        until(lambda: (trial := stories([summary])[0].trial) is not None and trial.model == "good")


def test_a_persons_closing_words_stand(tmp_path: Path, clock: Clock) -> None:
    """If a person has edited the closing summary of an archived document, the model's draft is dropped."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=good()) as memory:
        path, summary = ended(memory, clock)
        assert memory.compression.redo(summary.id).verdict.good
        edited = path.read_text(encoding="utf-8").replace("**Next Steps**:\n- None", "**Next Steps**:\n- Sleep.")
        path.write_text(edited, encoding="utf-8")
        record_and_refresh(memory, clock, 2, first=60)
        assert path.read_text(encoding="utf-8") == edited
        (story,) = memory.compression.stories([each for each in whole(memory) if each.id == summary.id])
        assert (story.draft, story.summary.method) == (None, "extractive")


def test_a_kill_between_ledger_and_archive_is_mended(tmp_path: Path, clock: Clock) -> None:
    """After a kill between ledger and archive, the next refresh writes the ledger's text to the archive."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=good()) as memory:
        path, summary = ended(memory, clock)
        memory.compression.redo(summary.id)
    draft = place_draft(tmp_path, summary.id)
    assert draft.text.strip() not in path.read_text(encoding="utf-8")
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record_and_refresh(memory, clock, 2, first=60)
        assert draft.text.strip() in path.read_text(encoding="utf-8")
        assert memory.compression.stories(whole(memory))[0].draft is None


def test_what_a_model_calls_a_failure_is_one_where_its_words_say_so(tmp_path: Path, clock: Clock) -> None:
    """A model's issue is listed as one if its words name a failure, and the number of issues includes it."""
    said = "The nightly build failed with exit code 2 because the disk was full"
    answer = json.dumps({**{key: [] for key in SESSION_KEYS}, "issues_encountered": [said]})
    printed = "\n".join([*(f"step {n} of the build took {n} s" for n in range(30)), f"{said}."])
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(answer, name="good")) as memory:
        memory.record_operation("tool_call", {"tool": "bash", "output": printed})
        memory.flush_session()
        (summary,) = whole(memory)
        assert said not in summary.text
        done = memory.compression.redo(summary.id)
        assert done.text == with_lines(summary.text, {"issues_encountered": [said]})
        assert f"\n- {said}\n\n**Next Steps**" in done.text
        assert "**Issues**: 2\n" in done.text, "extraction found a part of it"


def test_lines_come_to_the_end_of_their_lists() -> None:
    """New lines are appended to their lists and replace "None"; lines of a missing list are dropped."""
    closing = "**Issues**: None\n\n**Accomplishments**:\n- A.\n\n**Issues Encountered**:\n- None\n"
    new = {"key_accomplishments": ["B."], "issues_encountered": ["C\nd."], "recommended_next_steps": ["E."]}
    assert with_lines(closing, {**new, "also_noted": ["F."]}) == (
        "**Issues**: 1\n\n**Accomplishments**:\n- A.\n- B.\n\n**Issues Encountered**:\n- C d.\n\n"
        "**Also Noted**:\n- F.\n"
    )
    assert with_lines(closing, {}) == closing


# Sections of documents


def test_a_large_section_has_a_short_form_in_contexts_and_all_of_its_words_in_the_file(
    tmp_path: Path, clock: Clock
) -> None:
    """Contexts show a large section as an extract with its must-keeps; the file keeps all of its text."""
    with sectioned(tmp_path, clock) as (memory, path):
        assert prose() in path.read_text(encoding="utf-8")
        (summary,) = whole(memory)
        assert (summary.document, summary.method) == (f"project_state/{SECTION}", "extractive")
        assert 0.1 < summary.ratio < 0.3
        assert summary.put_back == ("Never restart the broker while orders are open.",)
        assert "table_2" in summary.dropped
        shown = memory.get_orchestrator_context("x").render()
        told = f"Shortened from {summary.source_tokens:,} tokens, S{summary.id}; the full text is in project_state.md"
        assert f"*({told})*" in shown
        assert summary.put_back[0] in shown
        assert "tests/test_3_11.py" in shown
        assert memory.expand(f"S{summary.id}").operations == ()
        memory.refresh()
        assert whole(memory) == [summary]


def test_a_section_is_bettered_at_an_epochs_border_only(tmp_path: Path, clock: Clock) -> None:
    """A section's better short form is shown from the next refresh on, not before; the file keeps its text."""
    with sectioned(tmp_path, clock, good()) as (memory, path):
        (summary,) = whole(memory)
        before, text = memory.get_orchestrator_context("x").render(), path.read_text(encoding="utf-8")
        work_all(memory)
        (story,) = memory.compression.stories([summary])
        assert story.draft is not None, story.trial
        assert memory.get_orchestrator_context("x").render() == before
        memory.refresh()
        (better,) = whole(memory)
        assert (better.method, better.verdict) == ("extractive + good", "accepted")
        added = [line for line in better.text.splitlines() if line not in summary.text]
        assert added
        assert all(line.lstrip("- ").rstrip(".") in prose() for line in added)
        assert set(better.dropped) < set(summary.dropped)
        assert added[0] in memory.get_orchestrator_context("x").render()
        assert prose() in path.read_text(encoding="utf-8")
        assert text.count("\n") == path.read_text(encoding="utf-8").count("\n")
    with open_memory(tmp_path, config=SECTIONS, clock=clock) as memory:
        assert added[0] in memory.get_orchestrator_context("x").render()


def test_a_kill_after_a_short_form_came_in_leaves_nothing_to_do(tmp_path: Path, clock: Clock) -> None:
    """After a kill the ledger's short form is shown, and the next refresh deletes its draft."""
    with sectioned(tmp_path, clock, good()) as (memory, _):
        work_all(memory)
    draft = place_draft(tmp_path, 1)
    with open_memory(tmp_path, config=SECTIONS, clock=clock) as memory:
        assert draft.text.splitlines()[-1] in memory.get_orchestrator_context("x").render()
        memory.refresh()
        assert [story.draft for story in memory.compression.stories(memory.losses()) if story.draft] == []
        assert whole(memory)[0].text == draft.text


def test_an_edited_section_has_a_new_short_form_and_its_old_draft_is_nobodys(tmp_path: Path, clock: Clock) -> None:
    """An edited section gets a new short form, and the old one can no longer be improved."""
    with sectioned(tmp_path, clock, good()) as (memory, path):
        (first,) = whole(memory)
        path.write_text(path.read_text(encoding="utf-8").replace("Part 7 of", "Part seven of"), encoding="utf-8")
        with pytest.raises(
            ModelError, match=rf"^S{first.id} cannot be improved: the text of project_state/{SECTION} has changed"
        ):
            memory.compression.redo(first.id)
        memory.refresh()
        assert [each.document for each in whole(memory)] == [first.document] * 2
        second = whole(memory)[1]
        assert second.source != first.source
        assert f"S{second.id};" in memory.get_orchestrator_context("x").render()
        clock.now += timedelta(hours=1)
        memory.refresh()
        assert len(whole(memory)) == 2


def test_a_list_of_facts_has_no_short_form(tmp_path: Path, clock: Clock) -> None:
    """However large a document is, a list of facts is never shown as an extract: a person's rule stays among them."""
    with sectioned(tmp_path, clock) as (memory, _):
        memory.record_operation("user_message", {"role": "user", "text": "Never serve kiwi to Ylva."})
        for number in range(40):
            text = f"Glaze number {number} must never be heated above {900 + number} degrees in the small kiln."
            memory.record_operation("rules", {"text": text})
        memory.refresh()
        assert {each.document for each in whole(memory)} == {f"project_state/{SECTION}"}
        assert "- Never serve kiwi to Ylva. (K" in memory.get_orchestrator_context("x", 600).render()


@pytest.mark.parametrize("why", ["pinned", "small"])
def test_what_is_pinned_or_fits_is_shown_as_it_is(tmp_path: Path, clock: Clock, why: str) -> None:
    """A pinned or small section has no short form and is shown in full."""
    text = f"{prose()}\n\n{PIN}" if why == "pinned" else "\n\n".join(prose().split("\n\n")[:3])
    with sectioned(tmp_path, clock, text=text) as (memory, _):
        assert whole(memory) == []
        assert "Shortened from" not in memory.get_orchestrator_context("x").render()

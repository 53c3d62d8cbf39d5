"""Headings in the session document that name an operation or a summary: no text of a person is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.documents.damage import text_faults
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.types import Json
from tests.builders import cases
from tests.conftest import Clock
from tests.memories import flushed, live, standing, text_of
from tests.tiers import test_session_compaction
from tests.tiers.test_session_compaction import edit, shown

CONFIG = test_session_compaction.CONFIG
WORDS = "REMARK: never trust the parser, Anna said so."


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory that compacts only on request, with summaries and entries in its document."""
    _record(memory, clock, 30)
    memory.refresh()
    return memory


def _record(memory: OrchestratorContextManager, clock: Clock, count: int) -> None:
    for number in range(count):
        clock.now += timedelta(minutes=10)
        text = f"Module m{number} of part {number % 7} took {number + 100} ms, and its tests passed at last."
        memory.record_operation("step", {"task_id": number // 3, "text": text})


def _first_entry(memory: OrchestratorContextManager) -> tuple[int, str]:
    number, block = next(iter(shown(memory).entries().items()))
    return number, block.text


def _go_on(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Record and refresh until all present entries and summaries have been merged into others."""
    before = {summary.id for summary in standing(memory)}
    while before & {summary.id for summary in standing(memory)}:
        _record(memory, clock, 60)
        memory.refresh()
        summaries, document = standing(memory), shown(memory)
        assert all(a.last_operation < b.first_operation for a, b in pairwise(summaries))
        assert len(document.parts) == len({(part.block.title, part.block.text) for part in document.parts})
        assert not any(s.first_operation <= n <= s.last_operation for n in document.entries() for s in summaries)


def _versions(memory: OrchestratorContextManager) -> str:
    found = memory.episodic_memory.history(live(memory).stem)
    return "".join(Path(version.path).read_text(encoding="utf-8") for version in found)


@pytest.mark.parametrize("heading", cases("a_persons_section_that_names_an_operation_stays"))
@pytest.mark.parametrize("summarised", [False, True])
def test_a_persons_section_that_names_an_operation_stays(
    memory: OrchestratorContextManager, clock: Clock, heading: str, summarised: bool
) -> None:
    """A section that names an operation stays, whether the operation still has an entry or is summarised."""
    number, text = _first_entry(memory)
    own = f"### {heading.format(5 if summarised else number)}\n\n{WORDS}\n\n"
    edit(memory, text, own + text)
    _go_on(memory, clock)
    assert own in text_of(memory)
    assert own in flushed(memory).read_text(encoding="utf-8")


@pytest.mark.parametrize("heading", ["Summary S{} is wrong about the parser", "Summary S{}: what is wrong with it"])
def test_a_persons_section_that_names_a_summary_stays(
    memory: OrchestratorContextManager, clock: Clock, heading: str
) -> None:
    """A section that names a summary stays, also after that summary was merged into another."""
    first = standing(memory)[0]
    own = f"### {heading.format(first.id)}\n\n{WORDS}\n\n"
    edit(memory, f"### Summary S{first.id}:", f"{own}### Summary S{first.id}:")
    _go_on(memory, clock)
    assert first.id not in {s.id for s in standing(memory)}
    assert own in text_of(memory)


def test_an_entry_without_its_frame_is_a_persons_own(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An entry whose heading no longer names the operation is a person's section and stays."""
    number, text = _first_entry(memory)
    own = f"### What came of the parser\n\n{WORDS}\n\n"
    edit(memory, text, own)
    _go_on(memory, clock)
    assert own in text_of(memory)
    assert len(memory.expand(f"op {number}").operations) == 1


@pytest.mark.parametrize(
    "edited",
    [
        "### [09:59:59] The parser works (op {number}){words}", "### [1:00] (op {number}){words}",
        "### [10:20:00] Step (op {number}): WRONG, says Anna{words}", "{copy}{text}", "{text}{copy}",
    ],
)  # fmt: skip
def test_what_a_person_writes_into_an_entry_or_its_copy_goes_with_it_and_stays_as_a_version(
    memory: OrchestratorContextManager, clock: Clock, edited: str
) -> None:
    """An entry with an edited heading or an edited copy is summarised with the new text, also kept as a version."""
    number, text = _first_entry(memory)
    copy = text.replace("\n", f"\n{WORDS}\n", 1)
    edit(memory, text, edited.format(number=number, words=f"\n\n{WORDS}\n\n", text=text, copy=copy))
    _go_on(memory, clock)
    assert number not in shown(memory).entries()
    assert WORDS not in text_of(memory).split("## Operations Log")[1]
    assert "REMARK" in next(s.text for s in memory.losses() if s.first_operation <= number <= s.last_operation)
    assert WORDS in _versions(memory)


def test_an_entry_that_comes_back_with_a_persons_words_is_summarised_once(
    memory: OrchestratorContextManager, clock: Clock
) -> None:
    """An edited entry that an editor brings back after a compaction is removed and kept as a version."""
    _, text = _first_entry(memory)
    _record(memory, clock, 60)
    memory.refresh()
    log = "## Operations Log\n\n"
    edit(memory, log, log + text.replace("\n", f"\n{WORDS}\n", 1))
    _go_on(memory, clock)
    assert WORDS not in text_of(memory)
    assert WORDS in _versions(memory)


# Data that looks like headings or pins

SMALL = {"orchestrator": {"context_window": {"max_tokens": 2_000}}}
ODD = [
    "Bot\x00A", "Bot\ud800A", "Bot\udc80A", "Bot <!-- pin -->", "Bot\n## Operations Log\n### y (op 3)\r", "\x85\u2028",
]  # fmt: skip


def test_odd_names_go_into_summaries_as_text(tmp_path: Path, clock: Clock) -> None:
    """Names of speakers and tasks are escaped in summaries, so that compaction and flush succeed."""
    fields = ("speaker", "author", "role", "from")
    _check(tmp_path, clock, lambda odd, number: {fields[number // len(ODD) % 4]: odd, "task": odd})


def test_odd_data_of_any_field_goes_into_every_document_as_text(tmp_path: Path, clock: Clock) -> None:
    """Odd field names, values and facts are escaped in every document, and cause no fault and no pin."""

    def told(odd: str, number: int) -> dict[str, Json]:
        said = f"We decided to use {odd} for the parser. The tests failed with {odd} at last. TODO: mend {odd}."
        return {"title": odd, odd: odd, "files": [{"path": odd}, odd], "status": "failed", "text": said, "result": said}

    _check(tmp_path, clock, told)


def _check(tmp_path: Path, clock: Clock, told: Callable[[str, int], dict[str, Json]]) -> None:
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for number in range(48):
            clock.now += timedelta(minutes=10)
            odd = ODD[number % len(ODD)]
            text = f"We decided to use part{number} for module {number}, as the tests of part {number * 3} are slow."
            memory.record_operation("message <!-- pin -->", {"text": text, **told(odd, number)})
        memory.refresh()
        assert any(summary.level for summary in memory.losses())
        _check_documents(tmp_path)
        assert memory.flush_session() is not None
        _check_documents(tmp_path)


def _check_documents(project: Path) -> None:
    for path in sorted((project / ".obra").rglob("*.md")):
        data = path.read_bytes()
        assert text_faults(data) == [], path
        blocks = split_blocks(data.decode("utf-8"))
        assert not any(block.pinned for block in blocks), path
        assert [block.title for block in blocks if block.level == 2].count("Operations Log") <= 1, path

"""Summaries of memory items: a model improves them in the background, and no answer of it can harm one."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem import ItemFilter, MemoryItem, OrchestratorContextManager, open_memory
from orchestra_mem.adapters.tokenizers import EstimateCounter
from orchestra_mem.catalog_types import AuditFilter
from orchestra_mem.compression.refiner import marked_summary
from orchestra_mem.core.catalog.tags import create_summary
from orchestra_mem.core.summaries.drafts import Draft, Material
from orchestra_mem.core.summaries.extractive import Passage
from orchestra_mem.core.text import word_count
from orchestra_mem.faces.recall_views import memory_item_lines
from orchestra_mem.job_types import STALLED
from orchestra_mem.model_types import Message
from orchestra_mem.testing import FaithfulModel, ScriptedModel
from tests.conftest import Clock
from tests.memories import problems_of, work_all
from tests.processes import python
from tests.test_bad_models import BAD, TELLING, _model

CONFIG = {"compression": {"auto": False}}
RULE = "Never oil door 12 with anything but the graphite spray."
TALK = (
    "We walked through the hall for a while and looked at some of the doors there. "
    "Most of them were open, and people came and went with their lunch in the usual way. "
    "Then we went up the stairs to see the others, which took us rather long. "
)
TOLD = "Door 17 sticks since May because hinge_left is bent."
CONTENT = f"{TALK}{TOLD} After that we had coffee. {RULE} The lamps were warm, and nobody minded that at all."


def _open(folder: Path, clock: Clock, model: Any, **config: Any) -> OrchestratorContextManager:
    return open_memory(folder, config={**CONFIG, **config}, clock=clock, model=model)


def _store(memory: OrchestratorContextManager, content: str = CONTENT, **fields: Any) -> MemoryItem:
    return memory.catalog.store({"content": content, "agent": "ada", **fields})


def _marks(*lines: str) -> str:
    return json.dumps({"lines": lines})


@pytest.fixture
def good(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory with a good model that runs only on request."""
    with _open(tmp_path, clock, FaithfulModel()) as memory:
        yield memory


def test_a_model_betters_the_summary_of_a_long_item(good: OrchestratorContextManager) -> None:
    """The better summary has the model's sentences and all must-keeps, in order, in 50 words, and names its method."""
    item = _store(good)
    assert item.summary_method == "extractive"
    assert TOLD not in item.summary
    work_all(good)
    better = good.catalog.get(item.id)
    assert better.summary_method == "extractive + faithful"
    assert 0 < better.summary.index(TOLD) < better.summary.index(RULE)
    assert word_count(better.summary) <= 50
    assert (better.content, better.tokens, better.tags) == (item.content, item.tokens, item.tags)
    assert f"in short (extractive + faithful): {better.summary}" in [*memory_item_lines(better)]
    (entry,) = good.audit(AuditFilter(call="better"))
    assert entry.items == (item.id,)
    assert entry.detail.endswith(" by extractive + faithful")
    assert not good.compression.work()


def test_what_is_given_of_an_item_in_short_is_the_better_summary(good: OrchestratorContextManager) -> None:
    """Within a small budget an item is given as its better summary, also after another change of the item."""
    item = _store(good, tags=["hinges"])
    good.catalog.get_relevant("ada", "hinges", 90)
    work_all(good)
    good.catalog.update(item.id, {"priority": 7})
    (given,) = good.relevant("hinges", agent="ada", max_tokens=90).items
    assert (given.whole, given.item.summary_method) == (False, "extractive + faithful")
    assert TOLD in good.relevant("hinges", agent="ada", max_tokens=90).text


@pytest.mark.parametrize("case", TELLING)
def test_a_bad_model_leaves_the_extract(case: str, tmp_path: Path, clock: Clock) -> None:
    """A bad model changes nothing of the item, and its fault is reported."""
    with _open(tmp_path, clock, _model(case), llm={"timeout_s": 1}) as memory:
        item = _store(memory)
        work_all(memory)
        assert memory.catalog.get(item.id) == item
        assert BAD[case][1] in str(problems_of(memory))


def test_an_item_whose_job_ended_its_process_is_named_without_a_promise(
    good: OrchestratorContextManager, clock: Clock
) -> None:
    """A job that ended its process is reported with the item and the reason, and no remedy is promised."""
    queue, number = good.compression.queue, _store(good).number
    queue.put(f"M{number}", priority=0, now=clock(), most=9)
    job = queue.take("killed", now=clock(), until=clock() + timedelta(minutes=1))
    assert job is not None
    queue.fail(job, STALLED, due=None)
    assert [each["problem"] for each in problems_of(good)] == [f"faithful: could not improve M{number}: {STALLED}"]


def test_what_somebody_said_in_short_is_never_replaced(good: OrchestratorContextManager) -> None:
    """A summary that was given is never replaced, even if given while the job waits; nor is that of a short item."""
    ours = _store(good, summary="Doors, mostly.")
    short = _store(good, "The gate is open.")
    later = _store(good, f"{CONTENT} It rained.")
    good.catalog.update(later.id, {"summary": "Door 12 is the one to know."})
    work_all(good)
    found = [good.catalog.get(each.id) for each in (ours, short, later)]
    assert [each.summary for each in found] == ["Doors, mostly.", "The gate is open.", "Door 12 is the one to know."]
    assert [each.summary_method for each in found] == ["given", "extractive", "given"]


@pytest.mark.parametrize("change", [{"content": f"{TALK} Gate 9 is closed."}, {"summary": "Doors."}])
def test_a_summary_of_a_text_that_has_changed_meanwhile_is_dropped(
    tmp_path: Path, clock: Clock, change: dict[str, str]
) -> None:
    """A summary is dropped if the item has changed meanwhile; changed content is summarised again."""
    changes = [change]

    def answer(messages: Sequence[Message]) -> str:
        if changes:
            memory.catalog.update(item.id, changes.pop())
        return _marks(TOLD if TOLD in messages[-1].text else "Gate 9 is closed.")

    with _open(tmp_path, clock, ScriptedModel(answer)) as memory:
        item = _store(memory)
        work_all(memory)
        now = memory.catalog.get(item.id)
        assert TOLD not in now.summary
        assert ("Gate 9 is closed." in now.summary) is ("content" in change)


def test_a_kill_loses_no_job(tmp_path: Path, clock: Clock) -> None:
    """The job of a stored item survives a kill while the model answers, and is then done exactly once."""
    program = (
        "import os, signal, sys; from orchestra_mem import open_memory\n"
        "from orchestra_mem.testing import ScriptedModel\n"
        "from datetime import datetime\n"
        "kill = ScriptedModel(lambda messages: os.kill(os.getpid(), signal.SIGKILL))\n"
        "now = datetime.fromisoformat(sys.argv[3])\n"
        "memory = open_memory(sys.argv[1], clock=lambda: now, model=kill)\n"
        "memory.catalog.store({'content': sys.argv[2], 'agent': 'ada'})\n"
        "while True: memory.compression.work()\n"
    )
    python(program, tmp_path, CONTENT, clock().isoformat(), status=-signal.SIGKILL)
    clock.now += timedelta(minutes=5)
    with _open(tmp_path, clock, FaithfulModel()) as memory:
        work_all(memory)
        (item,) = memory.catalog.items(ItemFilter())
        assert (item.summary_method, TOLD in item.summary) == ("extractive + faithful", True)
        assert len(memory.audit(AuditFilter(call="better"))) == 1
        assert problems_of(memory) == []


_sentences = st.lists(st.sampled_from([
    "Door 17 sticks.", "We looked at it.", "Never oil door 12.", "The lamps in hall_3 are warm and nobody minds.",
    "Ask Ruth; she has the key.", "It was late",
]), max_size=12)  # fmt: skip


@given(_sentences, _sentences, st.integers(1, 30))
@example(["We looked at it."] * 9 + ["Never oil door 12."], ["Never oil door 12."], 12)
def test_a_better_summary_keeps_its_bounds(said: list[str], marked: list[str], max_words: int) -> None:
    """A summary of any marked lines is within its words, shorter than the item, and uses only words of the item.

    There is one wherever the first marked line is in the item, is not in the extract, and fits.
    """
    content, counter = " ".join(said), EstimateCounter()
    base = Draft(text=create_summary(content, max_words), tokens=0, source_tokens=0)
    material = Material.of_passages([Passage(key=1, text=content)], counter.count(content))
    draft = marked_summary(material, base, [Passage(key=1, text=line) for line in marked], counter, max_words)
    first = marked[0] if marked else ""
    if first in content and first not in base.text and word_count(first) <= max_words:
        assert draft is not None
    if draft is not None:
        assert word_count(draft.text) <= max_words
        assert counter.count(draft.text) < counter.count(content)
        assert any(line in draft.text for line in marked)
        assert set(draft.text.split()) <= set(content.split())


@pytest.mark.parametrize("letter", ["\u4e2d", "\ud55c", "\u0e01", "\u0e81", "\u1000", "\u1780"])
def test_a_summary_is_short_in_every_script_without_spaces(letter: str) -> None:
    """In scripts without spaces (Han, Hangul, Thai, Lao, Burmese, Khmer) two characters count as a word."""
    assert create_summary(letter * 400, 50) == letter * 100 + " …"

"""From a hit to its source: its line, its neighbours and its operations; and work items as hits."""

from __future__ import annotations

import pytest

from orchestra_mem import OrchestratorContextManager, VectorStore
from orchestra_mem.search_types import Hit, SearchFilter, Tier
from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.conftest import Clock
from tests.memories import flushed, live, say

SAID = (
    "We decided to hash passwords with bcrypt, as the auditors know it.",
    "Never deploy the shop on a Friday.",
    "The garnet parser was slow because of the regular expressions.",
    "Tea was had in the long hall.",
)


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory with operations, and with facts of them in documents."""
    say(memory, clock, *SAID, agent="dana")
    return memory


def _hit(memory: OrchestratorContextManager, query: str, source: str) -> Hit:
    return next(hit for hit in memory.search(query).hits if hit.chunk.source == source)


# Lines


def test_the_line_of_a_hit_is_the_one_where_it_stands_now(memory: OrchestratorContextManager) -> None:
    """A hit's line is the current one, also after lines have been inserted above it."""
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    hit = _hit(memory, "bcrypt", "decision_log.md")
    (line,) = memory.hit_lines([hit])
    lines = path.read_text(encoding="utf-8").split("\n")
    assert "bcrypt" in lines[line - 1]
    assert lines[line - 1].endswith(hit.chunk.text)
    lines.insert(line - 2, "\nSomething else.\n")
    path.write_text("\n".join(lines), encoding="utf-8")
    assert memory.hit_lines([hit]) == [line + 3]


def test_hits_of_a_session_document_have_lines_though_a_part_of_it_alone_is_indexed(
    memory: OrchestratorContextManager,
) -> None:
    """A person's text in a session document has the right line, in the live document and in the archive."""
    path = live(memory)
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\n## Notes\n\nThe vault key is with Grace.\n", encoding="utf-8")
    hit = _hit(memory, "who has the vault key", path.name)
    (line,) = memory.hit_lines([hit])
    assert path.read_text(encoding="utf-8").split("\n")[line - 1] == "The vault key is with Grace."
    archive = flushed(memory)
    hit = _hit(memory, "who has the vault key", archive.name)
    (line,) = memory.hit_lines([hit])
    assert archive.read_text(encoding="utf-8").split("\n")[line - 1] == "The vault key is with Grace."
    found = memory.expand(f"{archive.name}:{line}")
    assert found.place is not None
    assert found.place.document == archive


def test_what_stands_in_no_document_or_no_more_has_no_line(memory: OrchestratorContextManager) -> None:
    """The line of an operation, or of a passage that has been removed since, is 0."""
    hits = memory.search("bcrypt").hits
    assert dict(zip((hit.chunk.source for hit in hits), memory.hit_lines(hits), strict=True))["op 1"] == 0
    path = memory.episodic_memory.path(DocumentName.WORK_PLAN)
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\nThe saffron gateway.\n", encoding="utf-8")
    hit = _hit(memory, "saffron", "work_plan.md")
    path.write_text(text, encoding="utf-8")
    assert memory.hit_lines([hit]) == [0]


# From a hit to the original


def test_a_line_leads_to_its_neighbourhood_and_to_the_operation_behind_it(memory: OrchestratorContextManager) -> None:
    """A line expands to its passage, the neighbours, and the operations of its facts; unknown numbers are skipped."""
    path = memory.episodic_memory.path(DocumentName.WORK_PLAN)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        f"{text}\n## Keys\n\nBefore it.\n\nHashing is settled (K1, op 9).\n\nBehind it.\n", encoding="utf-8"
    )
    (line,) = memory.hit_lines([_hit(memory, "is hashing settled", "work_plan.md")])
    found = memory.expand(f"work_plan.md:{line}")
    assert found.reference == f"work_plan.md:{line}"
    assert [op.id for op in found.operations] == [1]
    assert found.place is not None
    assert found.place.passage.text == "Hashing is settled (K1, op 9)."
    assert [each.text for each in found.place.before] == ["Before it."]
    assert [each.text for each in found.place.behind] == ["Behind it."]
    beside = memory.expand(f"work_plan.md#{line + 1}").place
    assert beside in (found.place, memory.expand(f"work_plan.md:{line + 2}").place)
    assert memory.expand("decision_log.md").place == memory.expand("decision_log.md:1").place


def test_an_operation_comes_with_those_around_it(memory: OrchestratorContextManager) -> None:
    """An operation expands with up to two operations before and after it, from the same session only."""
    assert [op.id for op in memory.expand("op 2").around] == [1, 3, 4]
    assert [op.id for op in memory.expand("K1").around] == [2, 3]
    memory.flush_session()
    memory.record_operation("note", {"text": "A new day."})
    assert [op.id for op in memory.expand("op 4").around] == [2, 3]
    assert memory.expand("op 5").around == ()


# Work items


def test_work_items_are_found_and_say_how_they_stand(memory: OrchestratorContextManager) -> None:
    """Work items are found by title, description, notes, number and parent, and the index follows their changes."""
    state = memory.state
    epic = state.create(WorkKind.EPIC, "Saffron gateway", description="Answers on port 8443.")
    story = state.create(WorkKind.STORY, "Limit the rate of callers", parent=epic.id)
    where = SearchFilter(tiers=(Tier.SEMANTIC,), kinds=("epic",))
    (hit,) = memory.search("which port does the gateway have", where=where).hits
    assert (hit.chunk.source, hit.chunk.item, hit.chunk.kind) == (f"epic {epic.id}", epic.id, "epic")
    assert hit.chunk.text == "pending\nAnswers on port 8443."
    state.set_status(epic.id, WorkStatus.IN_PROGRESS)
    state.note(epic.id, "The certificate is with Grace.")
    (hit,) = memory.search("who has the certificate", where=SearchFilter(item=epic.id)).hits
    assert hit.chunk.text == "in progress\nAnswers on port 8443.\nThe certificate is with Grace."
    assert memory.search(f"#{story.id}").hits[0].chunk.source == f"story {story.id}"
    # A child is found by the words of its parent's title, also after the parent is renamed.
    where = SearchFilter(item=story.id)
    assert memory.search("saffron", where=where).hits
    state.change(epic.id, title="Juniper gateway")
    (hit,) = memory.search("juniper", where=where).hits
    assert hit.chunk.heading == (f'Epic #{epic.id} "Juniper gateway"',)
    assert all(hit.reasons.keyword_rank is None for hit in memory.search("saffron", where=where).hits)


def test_a_work_item_leads_to_its_changes_and_their_operations(memory: OrchestratorContextManager) -> None:
    """A work item's name expands to the item, its changes, and the operations that caused them."""
    item = memory.state.create(WorkKind.TASK, "Warm the oven", operation=3)
    found = memory.expand(f"task {item.id}")
    assert found.item == item
    assert [event.field for event in found.events] == ["created"]
    assert [op.id for op in found.operations] == [3]
    assert memory.expand(f"item #{item.id}").item == item


# VectorStore


def test_similar_work_is_found_by_the_names_of_the_source_design(memory: OrchestratorContextManager) -> None:
    """`VectorStore` finds similar orchestrations and their facts, filtered by pattern and similarity."""
    store = VectorStore(memory)
    assert store.initialize()
    assert store.is_available()
    task = {"task": "Move the shop's images to the new storage", "result_summary": "Done", "pattern": "parallel"}
    assert store.add_orchestration("o-1", task)
    assert not store.add_orchestration("o-1", task)
    (best, *_) = store.search_similar("where are the pictures of the shop stored")
    assert best.operation.idempotency_key == "o-1"
    assert 0.2 < best.similarity <= 1
    assert best.likelihood > 0.04
    assert not best.perhaps
    assert store.search_similar("weather tomorrow")[0].perhaps
    assert store.search_similar("pictures of the shop", pattern="sequential") == []
    assert [each.operation.id for each in store.search_similar("pictures of the shop", pattern="parallel")] == [5]
    (bcrypt, *_) = store.search_similar("bcrypt", search_mode="fts")
    assert [fact.text for fact in bcrypt.observations] == [SAID[0]]
    assert store.search_similar("bcrypt", include_observations=False)[0].observations == ()
    assert store.search_similar("a heron on the roof", min_similarity=0.95, search_mode="vector") == []
    assert store.search_similar("shop", limit=0) == []
    with pytest.raises(ValueError, match="'nearest' is not a valid SearchMode"):
        store.search_similar("shop", search_mode="nearest")
    assert store.get_recommendations("deploy the shop").rules[0].text == SAID[1]
    assert store.get_stats()["available"] is True

"""The catalog as markdown: an edit of a line changes its item, and people's other lines are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestra_mem import ItemFilter, MemoryItem, OrchestratorContextManager, open_memory
from orchestra_mem.adapters.files.exchange import staging_path
from orchestra_mem.catalog_types import ItemStatus
from orchestra_mem.core.documents.catalog_document import render_catalog
from orchestra_mem.types import Author, VersionReason
from tests.conftest import Clock
from tests.memories import edit

SAID = (
    "We decided to use Redux for state management. I discovered that the old store leaks memory on reload. "
    "The build fails with ENOSPC on runner 3. Next step: migrate the settings page."
)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory with four items of ada's and their document written."""
    with open_memory(tmp_path, clock=clock) as opened:
        opened.learn("", SAID, agent="ada")
        opened.refresh()
        yield opened


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """The path of ada's document."""
    return tmp_path / ".obra" / "memory" / "catalog" / "ada.md"


def _items(memory: OrchestratorContextManager) -> dict[str, MemoryItem]:
    return {item.content: item for item in memory.catalog.items(ItemFilter(agents=["ada"]))}


def test_a_document_shows_the_items_of_its_agent_by_type(memory: OrchestratorContextManager, document: Path) -> None:
    """A document has a section per type and a line per item with priority and number; each agent has its own file."""
    text = document.read_text(encoding="utf-8")
    assert "## Decisions\n\n- We decided to use Redux for state management. (priority: 6) (M1)\n" in text
    assert "## Observations\n\n- None\n" in text
    memory.catalog.store({"content": "Tea is at four.", "agent": "../Bob & Co"})
    memory.refresh()
    (other,) = [path for path in document.parent.iterdir() if path != document]
    assert "Tea is at four." in other.read_text(encoding="utf-8")
    assert other.name.startswith("bob-co-")


def test_an_agents_name_makes_no_heading_and_can_be_pasted(clock: Clock) -> None:
    """An agent's name in a document's text is shell-quoted in the command shown and cannot start a heading."""
    text = render_catalog("o'hara\n## Rules", [], 1, clock())
    assert """\n1 more: `orchestra-mem catalog list --of 'o'"'"'hara ## Rules'`\n""" in text
    assert "\n## Rules" not in text


def test_what_a_person_does_to_a_line_is_done_to_the_item(memory: OrchestratorContextManager, document: Path) -> None:
    """A line that a person rewords, weighs, pins, deletes or adds changes its item at the next read."""
    (line,) = [line for line in document.read_text(encoding="utf-8").split("\n") if "ENOSPC" in line]
    edit(
        document,
        (f"{line}\n", ""),
        ("to use Redux", "to use Zustand"),
        ("on reload. (priority: 5) (M2)", "on reload. (priority: 7) (M2)"),
        ("settings page. (priority: 4) (M4)", "settings page. (priority: 4) (M4) <!-- pin -->"),
        ("## Plans\n\n", "## Plans\n\n- Ask Ruth about the licence, priority: 3\n"),
    )
    found = _items(memory)
    reworded = found["We decided to use Zustand for state management."]
    assert (reworded.number, reworded.author) == (1, Author.PERSON)
    assert found["I discovered that the old store leaks memory on reload."].priority == 7
    pinned = found["Next step: migrate the settings page."]
    assert (pinned.priority, pinned.expires) == (8, None)
    assert found["Ask Ruth about the licence"].priority == 3
    assert not any("ENOSPC" in content for content in found)
    memory.refresh()
    text = document.read_text(encoding="utf-8")
    assert text.count("Ask Ruth about the licence") == 1
    assert "- Ask Ruth about the licence (priority: 3) (M5)\n" in text
    assert "Zustand for state management. (priority: 6) (M1)" in text
    assert "<!-- pin -->" in text
    assert "ENOSPC" not in memory.inject("runner", agent="ada")


def test_a_line_pasted_from_another_project_is_a_new_item(memory: OrchestratorContextManager, document: Path) -> None:
    """A line with the number of no item here is a new item with its own number, which no later item overwrites."""
    edit(document, ("## Plans\n\n", "## Plans\n\n- Ask Ruth about the licence (priority: 3) (M5)\n- Paint it (M77)\n"))
    memory.catalog.store({"content": "Tea is at four.", "agent": "ada"})
    memory.catalog.store({"content": "Coffee is at ten.", "agent": "ada"})
    memory.refresh()
    found = _items(memory)
    assert found["Ask Ruth about the licence"].priority == 3
    text = document.read_text(encoding="utf-8")
    for content in ("Ask Ruth about the licence", "Paint it", "Tea is at four.", "Coffee is at ten."):
        assert len([row for row in text.split("\n") if content in row and f"(M{found[content].number})" in row]) == 1
    assert "(M77)" not in text


def test_a_deletion_that_is_undone_brings_the_item_back(memory: OrchestratorContextManager, document: Path) -> None:
    """A deleted line that is put back restores its item, even after the document was rewritten without it."""
    (line,) = [line for line in document.read_text(encoding="utf-8").split("\n") if "ENOSPC" in line]
    edit(document, (f"{line}\n", ""))
    memory.refresh()
    assert len(_items(memory)) == 3
    edit(document, ("## Errors\n\n", f"## Errors\n\n{line}\n"))
    assert len(_items(memory)) == 4
    memory.refresh()
    assert document.read_text(encoding="utf-8").count("ENOSPC") == 1


def test_a_file_that_is_gone_or_empty_says_nothing(memory: OrchestratorContextManager, document: Path) -> None:
    """A document that is deleted or emptied deletes no item and is written anew."""
    for way in (document.unlink, lambda: document.write_text("", encoding="utf-8")):
        way()
        assert len(_items(memory)) == 4
        memory.catalog.store({"content": f"Lamp {way}", "agent": "bob"})
        memory.catalog.update("M1", {"priority": 7 if document.exists() else 8})
        memory.refresh()
        assert "ENOSPC" in document.read_text(encoding="utf-8")


def test_a_long_item_is_cut_and_its_end_stays(memory: OrchestratorContextManager, document: Path) -> None:
    """Rewording the shown beginning of a long item keeps the end that the line does not show."""
    end = "It ends with the word zanzibar."
    memory.catalog.store({"content": f"The parser reads tables. {'It keeps all rows. ' * 30}{end}", "agent": "ada"})
    memory.refresh()
    assert "zanzibar" not in document.read_text(encoding="utf-8")
    edit(document, ("The parser reads tables.", "The lexer reads tables."))
    (item,) = [item for content, item in _items(memory).items() if content.startswith("The lexer")]
    assert item.content.endswith(end)


@pytest.mark.parametrize("saved_since", [False, True])
def test_what_was_saved_as_its_writer_was_killed_is_not_lost(
    memory: OrchestratorContextManager, document: Path, tmp_path: Path, clock: Clock, saved_since: bool
) -> None:
    """A save that a killed writer had set aside is restored at the start, or kept as a version after a newer save."""
    memory.close()
    written = document.read_bytes()
    staging_path(document, written, b"what stood there before", ".tmp~").write_bytes(
        written.replace(b"Redux", b"Zustand")
    )
    if saved_since:
        edit(document, ("Redux", "MobX"))
    with open_memory(tmp_path, clock=clock) as again:
        again.refresh()
        used = "MobX" if saved_since else "Zustand"
        assert f"We decided to use {used} for state management." in _items(again)
        kept = [each for each in again.documents.history("catalog/ada") if each.reason is VersionReason.CONFLICT]
        assert len(kept) == saved_since
        assert all("Zustand" in Path(each.path).read_text(encoding="utf-8") for each in kept)
    assert [*document.parent.iterdir()] == [document]


def test_what_is_purged_before_its_document_is_written_stays_in_no_version(
    memory: OrchestratorContextManager, document: Path, tmp_path: Path
) -> None:
    """An item purged before its document is rewritten is in no version that the rewrite keeps."""
    memory.catalog.delete(_items(memory)["We decided to use Redux for state management."].id)
    assert memory.catalog.purge(ItemFilter(statuses=[ItemStatus.DELETED])) == 1
    memory.refresh()
    files = [document, *(tmp_path / ".obra" / "memory" / "versions").glob("catalog-*")]
    assert [path.name for path in files if "Redux" in path.read_text(encoding="utf-8")] == []


def test_every_agents_document_is_found_by_the_name_it_is_listed_under(memory: OrchestratorContextManager) -> None:
    """Every agent's document can be read by the name in the list of documents, whatever the agent is called."""
    agents = ["__main__", "notes.md", "Ünïcode 探", "..", "a/b", "_.-", "x" * 70, "CON"]
    for hours, agent in enumerate(agents):
        memory.catalog.store({"content": f"The oven takes {hours} hours."}, agent=agent)
    memory.write_catalog()
    texts = [memory.documents.text(name) for name in memory.documents.names()]
    assert len(texts) == 4 + len(agents)
    for hours, _ in enumerate(agents):
        assert sum(f"The oven takes {hours} hours." in text for text in texts) == 1

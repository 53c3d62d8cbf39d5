"""Two memories of one project, each with its own database, that exchange their documents by git."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.catalog_types import ItemFilter
from orchestra_mem.types import MustKeep
from orchestra_mem.work_types import WorkKind, WorkStatus

MEMORY = ".obra/memory"
# What the two record: each side's facts are about other things, so that none supersedes another.
ANNA = "rye bread|oat biscuits|spelt rolls|barley soup|maize bread|wheat beer|rice cakes|millet porridge".split("|")
BEN = "brass lamp|oak table|wool carpet|glass door|steel bench|stone floor|silk curtain|paper screen".split("|")


def git(folder: Path, *words: str, fails: bool = False) -> str:
    """Run git in a folder and return its output."""
    names = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert fails or done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


class Clone:
    """A person's working copy: a memory, and git with its documents but not its database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def record(self, *things: str) -> None:
        """Record a decision, a rule, an open item and a work item about each thing, and write the documents."""
        with open_memory(self.folder) as memory:
            for thing in things:
                memory.record_operation("decision", {"text": f"We decided to keep the {thing} in the cellar."})
                memory.record_operation("message", {"role": "user", "text": f"Never paint the {thing} on a Friday."})
                memory.record_operation("message", {"role": "user", "text": f"TODO: weigh the {thing} before lunch."})
                epic = memory.state.create(WorkKind.EPIC, f"Sell the {thing}")
                memory.state.create(WorkKind.STORY, "Ask for prices", parent=epic.id)
                memory.catalog.store({"content": f"The {thing} costs nine euros.", "agent": "ada"})
            memory.flush_session()

    def reads(self) -> None:
        """Let the memory read and write its documents, as any use of it does."""
        with open_memory(self.folder) as memory:
            memory.refresh()

    def commit(self) -> None:
        """Commit the documents as they are."""
        git(self.folder, "add", MEMORY)
        git(self.folder, "commit", "-qm", "documents", fails=True)

    def facts(self) -> dict[int, MustKeep]:
        """Return all facts by number, also those that do not stand."""
        with open_memory(self.folder) as memory:
            return {fact.id: fact for fact in memory.facts(standing=False)}

    def text(self) -> str:
        """Return all documents, one after the other."""
        return "\n".join(path.read_text() for path in sorted((self.folder / MEMORY).rglob("*.md")))

    def things(self) -> list[tuple[str, str]]:
        """Return the work items: the titles of their parents, and their own."""
        with open_memory(self.folder) as memory:
            items = {item.id: item for item in memory.state.items()}
            return sorted((items[each.parent].title if each.parent else "", each.title) for each in items.values())

    def learnt(self) -> Counter[str]:
        """Return what the agent has learnt, each with how often it is there."""
        with open_memory(self.folder) as memory:
            return Counter(item.content for item in memory.catalog.items(ItemFilter(agents=["ada"])))

    def merge(self, other: Clone, way: str) -> None:
        """Merge the other's commits, in one of the ways in which people resolve conflicts."""
        git(self.folder, "fetch", "-q", str(other.folder), "main")
        option = {"ours": ["-X", "ours"], "theirs": ["-X", "theirs"]}.get(way, [])
        git(self.folder, "merge", "-q", "--no-edit", *option, "FETCH_HEAD", fails=True)
        if way in ("all ours", "all theirs"):
            for path in git(self.folder, "diff", "--name-only", "--diff-filter=U").splitlines():
                git(self.folder, "checkout", f"--{way.removeprefix('all ')}", "--", path)
        git(self.folder, "add", MEMORY)
        git(self.folder, "commit", "-qm", "merge", fails=True)
        assert "<<<<<<<" not in self.text()


@pytest.fixture
def clones(tmp_path: Path) -> Callable[[str], tuple[Clone, Clone]]:
    """Anna's project, and Ben's clone of it that both have used."""

    def made(way: str) -> tuple[Clone, Clone]:
        anna, ben = Clone(tmp_path / "anna"), Clone(tmp_path / "ben")
        anna.folder.mkdir()
        git(anna.folder, "init", "-q", "-b", "main")
        (anna.folder / ".gitignore").write_text(".obra/*\n!.obra/memory\n.obra/memory/versions\n")
        if way == "union":
            (anna.folder / ".gitattributes").write_text(f"{MEMORY}/** merge=union\n")
        git(anna.folder, "add", ".")
        anna.record(ANNA[0])
        anna.commit()
        git(tmp_path, "clone", "-q", "anna", "ben")
        return anna, ben

    return made


@pytest.mark.parametrize("way", ["union", "ours", "theirs", "all ours", "all theirs"])
def test_neither_takes_the_others_line_for_an_edit_of_its_own_fact(
    clones: Callable[[str], tuple[Clone, Clone]], way: str
) -> None:
    """After five rounds of recording and merging, each fact of either has its words and stands, and nothing doubles."""
    anna, ben = clones(way)
    own: dict[Clone, dict[int, MustKeep]] = {anna: anna.facts(), ben: {}}
    for round in range(1, 6):
        for who, other, thing in (anna, ben, ANNA[round]), (ben, anna, BEN[round]):
            before = who.facts()
            who.record(thing)
            own[who] |= {number: fact for number, fact in who.facts().items() if number not in before}
            who.commit()
            who.merge(other, way)
            who.reads()
            who.commit()
        for who in (anna, ben):
            now = who.facts()
            assert {number: (now[number].text, now[number].status) for number in own[who]} == {
                number: (fact.text, fact.status) for number, fact in own[who].items()
            }
            assert [words for words, count in Counter(fact.text for fact in now.values()).items() if count > 1] == []
            assert [words for words, count in Counter(who.things()).items() if count > 1] == []
            assert [words for words, count in who.learnt().items() if count > 1] == []

"""Two memories of one project, each with a database of its own, that exchange their documents by git."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.catalog_types import ItemFilter
from orchestra_mem.types import MustKeep, MustKeepStatus
from orchestra_mem.work_types import WorkKind, WorkStatus

MEMORY = ".obra/memory"
ANNA = "rye bread|oat biscuits|spelt rolls|barley soup|maize bread|wheat beer".split("|")
BEN = "brass lamp|oak table|wool carpet|glass door|steel bench|stone floor".split("|")
STANDING = MustKeepStatus.STANDING


def git(folder: Path, *words: str, fails: bool = False) -> str:
    """Run git in a folder and return its output."""
    names = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert fails or done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a memory knows: facts by number, work items with their parents' titles, and what an agent has learnt."""

    facts: Mapping[int, MustKeep]
    work: Mapping[int, tuple[str, str, WorkStatus]]
    learnt: list[str]

    @classmethod
    def by(cls, memory: OrchestratorContextManager) -> Known:
        """Ask a memory, which reads its documents first."""
        memory.refresh()
        facts = {fact.id: fact for fact in memory.facts(standing=False)}
        titles = {0: "", **{item.id: item.title for item in memory.state.items()}}
        work = {item.id: (titles[item.parent or 0], item.title, item.status) for item in memory.state.items()}
        return cls(
            facts=facts, work=work, learnt=[each.content for each in memory.catalog.items(ItemFilter(agents=["ada"]))]
        )

    def doubled(self) -> list[object]:
        """Return what is there more than once."""
        said = [fact.text for fact in self.facts.values()]
        count = Counter[object]([*said, *(item[:2] for item in self.work.values()), *self.learnt])
        return [each for each, times in count.items() if times > 1]


@dataclass(kw_only=True)
class Clone:
    """A person's working copy: a memory, and git with its documents but not its database. `own`: What it recorded."""

    folder: Path
    own: dict[object, object] = field(default_factory=dict)

    def opened(self) -> OrchestratorContextManager:
        """Open the memory."""
        return open_memory(self.folder)

    def record(self, thing: str) -> None:
        """Record a decision, a rule, an open item, work and an observation about a thing; commit the documents."""
        with self.opened() as memory:
            before = Known.by(memory)
            memory.record_operation("decision", {"text": f"We decided to keep the {thing} in the cellar."})
            memory.record_operation("message", {"role": "user", "text": f"Never paint the {thing} on a Friday."})
            memory.record_operation("message", {"role": "user", "text": f"TODO: weigh the {thing} before lunch."})
            epic = memory.state.create(WorkKind.EPIC, f"Sell the {thing}")
            memory.state.create(WorkKind.STORY, "Ask for prices", parent=epic.id)
            memory.catalog.store({"content": f"One {thing} costs nine euros.", "agent": "ada"})
            now = Known.by(memory)
        self.own |= {number: now.facts[number].text for number in now.facts.keys() - before.facts.keys()}
        self.own |= {f"#{number}": now.work[number] for number in now.work.keys() - before.work.keys()}
        self.commit()

    def known(self) -> Known:
        """Return what the memory knows after it has read and written its documents."""
        with self.opened() as memory:
            return Known.by(memory)

    def commit(self) -> None:
        """Commit the documents as they are."""
        git(self.folder, "add", MEMORY)
        git(self.folder, "commit", "-qm", "documents", fails=True)

    def path(self, name: str) -> Path:
        """Return the path of a document."""
        return self.folder / MEMORY / f"{name}.md"

    def text(self) -> str:
        """Return all documents, one after the other."""
        folder = self.folder / MEMORY
        return "\n".join(path.read_text() for path in sorted([*folder.glob("*.md"), *folder.glob("catalog/*.md")]))

    def merge(self, other: Clone, way: str = "union") -> Known:
        """Merge the other's commits as people resolve conflicts; let the memory read the result, and commit it."""
        git(self.folder, "fetch", "-q", str(other.folder), "main")
        option = {"ours": ["-X", "ours"], "theirs": ["-X", "theirs"]}.get(way, [])
        git(self.folder, "merge", "-q", "--no-edit", *option, "FETCH_HEAD", fails=True)
        if way in ("all ours", "all theirs"):
            for path in git(self.folder, "diff", "--name-only", "--diff-filter=U").splitlines():
                git(self.folder, "checkout", f"--{way.removeprefix('all ')}", "--", path)
        if way != "markers":
            assert "<<<<<<<" not in self.text()
        known = self.known()
        self.commit()
        return known


Pair = Callable[[str], tuple[Clone, Clone]]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Make Anna's project, and Ben's new clone of it."""

    def made(way: str = "union") -> tuple[Clone, Clone]:
        anna, ben = Clone(folder=tmp_path / "anna"), Clone(folder=tmp_path / "ben")
        anna.folder.mkdir()
        git(anna.folder, "init", "-q", "-b", "main")
        (anna.folder / ".gitignore").write_text(".obra/*\n!.obra/memory\n.obra/memory/versions\n")
        if way == "union":
            (anna.folder / ".gitattributes").write_text(f"{MEMORY}/** merge=union\n")
        git(anna.folder, "add", ".")
        anna.record(ANNA[0])
        git(tmp_path, "clone", "-q", "anna", "ben")
        return anna, ben

    return made


@pytest.mark.parametrize("way", ["union", "ours", "theirs", "all ours", "all theirs", "markers"])
def test_neither_takes_the_others_line_for_an_edit_of_its_own(pair: Pair, way: str) -> None:
    """After five rounds of recording and merging, what either recorded stands as it was, and nothing doubles."""
    anna, ben = pair(way)
    for thing, other_thing in zip(ANNA[1:], BEN[1:], strict=True):
        for who, other, what in (anna, ben, thing), (ben, anna, other_thing):
            who.record(what)
            known = who.merge(other, way)
            assert [fact.text for fact in known.facts.values() if fact.status is not STANDING] == []
            now: dict[object, object] = {number: fact.text for number, fact in known.facts.items()}
            now |= {f"#{number}": item for number, item in known.work.items()}
            assert {key: now[key] for key in who.own} == who.own
            assert known.doubled() == []
    if way.startswith("all "):  # whoever discards a side does not see it
        return
    facts, others = anna.merge(ben, way), ben.merge(anna, way)
    assert sorted(each.text for each in facts.facts.values()) == sorted(each.text for each in others.facts.values())
    assert sorted(facts.work.values()) == sorted(others.work.values())
    assert sorted(facts.learnt) == sorted(others.learnt)
    for who in (anna, ben):
        rows = [row for row in who.text().split("\n") if row.startswith(("#", "written: ", "**")) or "(K" in row]
        assert [row for row, count in Counter(rows).items() if count > 4] == []

"""Two memories of one project, each with a database of its own, that exchange their documents by git."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.catalog_types import ItemFilter
from orchestra_mem.types import MustKeep, MustKeepStatus
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.memories import edit

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
    memory: OrchestratorContextManager
    own: dict[object, object] = field(default_factory=dict)
    last: Known = field(default_factory=lambda: Known(facts={}, work={}, learnt=[]))

    def record(self, thing: str) -> None:
        """Record a decision, a rule, an open item, work and an observation about a thing; commit the documents."""
        memory, before = self.memory, self.last
        memory.record_operation("decision", {"text": f"We decided to keep the {thing} in the cellar."})
        memory.record_operation("message", {"role": "user", "text": f"Never paint the {thing} on a Friday."})
        memory.record_operation("message", {"role": "user", "text": f"TODO: weigh the {thing} before lunch."})
        epic = memory.state.create(WorkKind.EPIC, f"Sell the {thing}")
        memory.state.create(WorkKind.STORY, "Ask for prices", parent=epic.id)
        memory.catalog.store({"content": f"One {thing} costs nine euros.", "agent": "ada"})
        now = self.known()
        self.own |= {number: now.facts[number].text for number in now.facts.keys() - before.facts.keys()}
        self.own |= {f"#{number}": now.work[number] for number in now.work.keys() - before.work.keys()}
        self.commit()

    def known(self) -> Known:
        """Return what the memory knows after it has read and written its documents."""
        self.last = Known.by(self.memory)
        return self.last

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
        self.commit()
        git(self.folder, "fetch", "-q", str(other.folder), "main")
        option = ["-X", "theirs"] if way == "theirs" else []
        git(self.folder, "merge", "-q", "--no-edit", *option, "FETCH_HEAD", fails=True)
        if way == "all ours":
            for path in git(self.folder, "diff", "--name-only", "--diff-filter=U").splitlines():
                git(self.folder, "checkout", "--ours", "--", path)
        if way != "markers":
            assert "<<<<<<<" not in self.text()
        known = self.known()
        self.commit()
        return known


Pair = Callable[[str], tuple[Clone, Clone]]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Make Anna's project, and Ben's new clone of it."""
    with ExitStack() as stack:

        def opened(name: str) -> Clone:
            return Clone(folder=tmp_path / name, memory=stack.enter_context(open_memory(tmp_path / name)))

        def made(way: str) -> tuple[Clone, Clone]:
            folder = tmp_path / "anna"
            folder.mkdir()
            git(folder, "init", "-q", "-b", "main")
            versions = "" if way == "versions too" else ".obra/memory/versions\n"
            (folder / ".gitignore").write_text(f".obra/*\n!.obra/memory\n{versions}")
            if way in ("union", "versions too"):
                (folder / ".gitattributes").write_text(f"{MEMORY}/** merge=union\n")
            git(folder, "add", ".")
            anna = opened("anna")
            anna.record(ANNA[0])
            git(tmp_path, "clone", "-q", "anna", "ben")
            ben = opened("ben")
            ben.known()
            return anna, ben

        yield made


@pytest.mark.parametrize("way", ["union", "theirs", "all ours", "markers"])
def test_neither_takes_the_others_line_for_an_edit_of_its_own(pair: Pair, way: str) -> None:
    """After four rounds of recording and merging, what either recorded stands as it was, and nothing doubles."""
    anna, ben = pair(way)
    for thing, other_thing in zip(ANNA[1:5], BEN[1:5], strict=True):
        for who, other, what in (anna, ben, thing), (ben, anna, other_thing):
            who.record(what)
            known = who.merge(other, way)
            assert [fact.text for fact in known.facts.values() if fact.status is not STANDING] == []
            now: dict[object, object] = {number: fact.text for number, fact in known.facts.items()}
            now |= {f"#{number}": item for number, item in known.work.items()}
            assert {key: now[key] for key in who.own} == who.own
            assert known.doubled() == []
    if way == "all ours":  # whoever discards a side does not see it
        return
    facts, others = anna.merge(ben, way), ben.merge(anna, way)
    assert sorted(each.text for each in facts.facts.values()) == sorted(each.text for each in others.facts.values())
    assert sorted(facts.work.values()) == sorted(others.work.values())
    assert sorted(facts.learnt) == sorted(others.learnt)
    for who in (anna, ben):
        rows = [row for row in who.text().split("\n") if row.startswith(("#", "written: ", "**")) or "(K" in row]
        assert [row for row, count in Counter(rows).items() if count > 4] == []


def test_an_edit_of_a_line_by_the_other_is_no_edit_here(pair: Pair) -> None:
    """Lines that the other deletes, strikes out, ticks or rewords stand here; what the other rewords is new here."""
    anna, ben = pair("union")
    ben.record(BEN[0])
    anna.merge(ben)
    edit(anna.path("decision_log"), ("keep the brass lamp in the cellar", "sell the brass lamp"))
    rows = anna.path("project_state").read_text().split("\n")
    anna.path("project_state").write_text("\n".join(row for row in rows if "Never paint the brass lamp" not in row))
    plan = anna.path("work_plan").read_text().replace("- TODO: weigh the brass", "- [x] TODO: weigh the brass")
    rows = [row.replace("- [ ]", "- [x]") if "brass lamp (epic" in row else row for row in plan.split("\n")]
    anna.path("work_plan").write_text("\n".join(rows))
    anna.known()
    anna.commit()
    known = ben.merge(anna)
    now: dict[object, object] = {number: fact.text for number, fact in known.facts.items()}
    assert {number: now.get(number) for number in ben.own if isinstance(number, int)} == {
        number: text for number, text in ben.own.items() if isinstance(number, int)
    }
    assert {fact.status for fact in known.facts.values()} == {STANDING}
    assert {item[2] for item in known.work.values()} == {WorkStatus.PENDING}
    assert "We decided to sell the brass lamp." in now.values()
    assert "Never paint the brass lamp on a Friday." in ben.path("project_state").read_text()


def test_what_a_person_ends_of_the_others_stays_ended_here(pair: Pair) -> None:
    """A line taken over from the other is deleted or ticked like any other, and the other's text does not undo it."""
    anna, ben = pair("union")
    rows = ben.path("project_state").read_text().split("\n")
    ben.path("project_state").write_text("\n".join(row for row in rows if "Never paint the rye bread" not in row))
    edit(ben.path("work_plan"), ("- TODO: weigh the rye bread", "- [x] TODO: weigh the rye bread"))
    ended = {fact.id: fact.status for fact in ben.known().facts.values() if fact.status is not STANDING}
    assert sorted(ended.values()) == [MustKeepStatus.DONE, MustKeepStatus.REMOVED]
    for thing in ANNA[1:3]:
        anna.record(thing)
        known = ben.merge(anna)
        anna.merge(ben)
        assert {fact.id: fact.status for fact in known.facts.values() if fact.status is not STANDING} == ended
        assert "Never paint the rye bread" not in ben.path("project_state").read_text()


def test_an_open_item_that_the_other_has_ticked_is_taken_over_once(pair: Pair) -> None:
    """A ticked open item of the other's that is reworded here is one done task here, however often they merge."""
    anna, ben = pair("union")
    edit(anna.path("work_plan"), ("- TODO: weigh the rye bread", "- [x] TODO: weigh the rye bread"))
    anna.known()
    anna.commit()
    edit(ben.path("work_plan"), ("weigh the rye bread", "weigh all the bread"))
    ben.known()
    for thing in ANNA[1:3]:
        known = ben.merge(anna)
        anna.record(thing)
        anna.merge(ben)
        titles = [title for _, title, _ in known.work.values()]
        assert titles.count("TODO: weigh the rye bread before lunch.") == 1
        assert known.doubled() == []


def test_a_persons_prose_is_as_git_merges_it(pair: Pair) -> None:
    """A paragraph that one adds is in the other's document, and one that one deletes is deleted there."""
    anna, ben = pair("union")
    anna.path("project_state").write_text(anna.path("project_state").read_text() + "\n## Notes\n\nAsk Joan first.\n")
    anna.known()
    anna.commit()
    ben.merge(anna)
    assert "## Notes\n\nAsk Joan first.\n" in ben.path("project_state").read_text()
    edit(ben.path("project_state"), ("Ask Joan first.\n", "Ask Grace first.\n"))
    ben.known()
    ben.commit()
    anna.merge(ben)
    assert "## Notes\n\nAsk Grace first.\n" in anna.path("project_state").read_text()
    assert "Ask Joan" not in anna.path("project_state").read_text()


def test_versions_that_git_brings_are_not_taken_for_own_ones(pair: Pair) -> None:
    """Even if both commit the versions too, what the other rewords is here in both wordings, and no line doubles."""
    anna, ben = pair("versions too")
    ben.record(BEN[0])
    anna.record(ANNA[1])
    anna.merge(ben)
    ben.merge(anna)
    anna.merge(ben)
    anna.memory.flush_session()
    edit(anna.path("decision_log"), ("keep the brass lamp in the cellar", "sell the brass lamp"))
    anna.known()
    anna.commit()
    edit(ben.path("decision_log"), ("keep the rye bread in the cellar", "keep the rye bread in the attic"))
    known = ben.merge(anna)
    said = {fact.text for fact in known.facts.values() if fact.status is STANDING}
    assert said > {"We decided to keep the brass lamp in the cellar.", "We decided to sell the brass lamp."}
    rows = [re.sub(r" \(K\d+\)", "", row) for row in ben.path("decision_log").read_text().split("\n") if "(K" in row]
    assert sorted(rows) == sorted({*rows})
    assert known.doubled() == []


@pytest.mark.parametrize("front", ["", 'ledger: "{}"\n', "ledger:   {}\n"])
def test_a_document_of_this_ledger_or_of_an_earlier_release_is_trusted(tmp_path: Path, front: str) -> None:
    """Without the key, as earlier releases wrote it, or with a formatted one, a changed line is an edit of its fact."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("message", {"role": "user", "text": "Never deploy on a Friday."})
        memory.refresh()
        path = tmp_path / MEMORY / "project_state.md"
        text = path.read_text()
        (key,) = re.findall(r"^ledger: (L[0-9a-f]{8})$", text, re.MULTILINE)
        path.write_text(text.replace(f"ledger: {key}\n", front.format(key)).replace("a Friday.", "a Sunday."))
        memory.refresh()
        assert [(fact.id, fact.text) for fact in memory.facts(standing=False)] == [(1, "Never deploy on a Sunday.")]
        assert "Never deploy" in memory.get_orchestrator_context("go on", max_tokens=600).render()
        assert key not in memory.get_orchestrator_context("go on", max_tokens=600).render()


def test_copies_of_a_memory_do_not_take_each_others_lines_for_edits(tmp_path: Path) -> None:
    """A copied folder has the same key, but its document names a time at which this ledger has not written."""
    said = "Never deploy on a Friday.", "Never paint the door on a Monday.", "Never sell the lamp on a Sunday."
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    with open_memory(one) as memory:
        memory.record_operation("message", {"role": "user", "text": said[0]})
        memory.refresh()
    shutil.copytree(one, other)
    for folder, text in (one, said[1]), (other, said[2]):
        with open_memory(folder) as memory:
            memory.record_operation("message", {"role": "user", "text": text})
            memory.refresh()
    shutil.copy(other / MEMORY / "project_state.md", one / MEMORY / "project_state.md")
    with open_memory(one) as memory:
        memory.refresh()
        facts = memory.facts(standing=False)
        assert [(fact.text, fact.status) for fact in facts] == [(each, STANDING) for each in said]


@pytest.mark.parametrize("is_numbered", [True, False])
def test_both_sides_of_a_conflict_of_ones_own_branches_stand_below_one_header(
    tmp_path: Path, is_numbered: bool
) -> None:
    """If a person keeps both sides of git's conflict, header and front matter stand once, and are part of no rule."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text(".obra/*\n!.obra/memory\n.obra/memory/versions\n")
    with open_memory(tmp_path) as memory:
        one, path = Clone(folder=tmp_path, memory=memory), tmp_path / MEMORY / "project_state.md"
        memory.record_operation("message", {"role": "user", "text": "Never deploy on a Friday."})
        memory.flush_session()
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "all")
        git(tmp_path, "checkout", "-qb", "venue")
        edit(path, ("- Never deploy", "- Gloves must be worn.\n- Never deploy"))
        memory.record_operation("note", {"text": "Ben came."})
        memory.flush_session()
        one.commit()
        git(tmp_path, "checkout", "-q", "main")
        edit(path, ("on a Friday. (K1)\n", "on a Friday or a Sunday. (K1)\n"))
        memory.record_operation("note", {"text": "Ida came."})
        memory.flush_session()
        if not is_numbered:
            edit(path, ("Sunday. (K1)\n", "Sunday. (K1)\n- Bags go into lockers.\n"))
        one.commit()
        git(tmp_path, "merge", "-q", "--no-edit", "venue", fails=True)
        before = path.read_text()
        assert before.count("<<<<<<< ") > 1
        path.write_text(re.sub(r"^(?:[<>]{7} .*|={7})\n", "", before, flags=re.MULTILINE))
        memory.record_operation("note", {"text": "Odd came."})
        said = {"Never deploy on a Friday or a Sunday.", "Gloves must be worn.", "Never deploy on a Friday."}
        said |= set() if is_numbered else {"Bags go into lockers."}
        assert {fact.text for fact in one.known().facts.values() if fact.status is STANDING} == said
        text = path.read_text()
        header = ("ledger", "written", "writer", "updated", "**Last Updated**", "**Session**")
        assert {each: text.count(f"\n{each}: ") for each in header} == dict.fromkeys(header, 1), text
        assert memory.get_stats()["problems"] == []


@pytest.mark.parametrize("way", ["markers", "union"])
def test_a_rule_of_a_branch_of_ones_own_stands_once_it_is_merged(tmp_path: Path, way: str) -> None:
    """Nothing is written over git's markers before a person has resolved them, however often the machine refreshes."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".gitignore").write_text(".obra/*\n!.obra/memory\n.obra/memory/versions\n")
    (tmp_path / ".gitattributes").write_text(f"{MEMORY}/** merge=union\n" if way == "union" else "")
    with open_memory(tmp_path) as memory:
        one, path = Clone(folder=tmp_path, memory=memory), tmp_path / MEMORY / "project_state.md"
        memory.record_operation("message", {"role": "user", "text": "Never deploy on a Friday."})
        one.known()
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "all")
        git(tmp_path, "checkout", "-qb", "venue")
        edit(path, ("on a Friday. (K1)\n", "on a Friday. (K1)\n- Gloves must be worn.\n"))
        for branch in "main", "venue":
            memory.record_operation("note", {"text": "Ben came."})
            one.known()
            one.commit()
            git(tmp_path, "checkout", "-q", branch)
        git(tmp_path, "merge", "-q", "--no-edit", "main", fails=True)
        before = path.read_bytes()
        memory.record_operation("note", {"text": "Ben came again."})
        one.known()
        if way == "markers":
            assert path.read_bytes() == before
            assert "git conflict marker" in str(memory.get_stats()["problems"])
            assert "Gloves" in memory.get_orchestrator_context("go on", max_tokens=900).render()
            path.write_text(re.sub(r"<{7} .*?\n(.*?)={7}\n.*?>{7} .*?\n", r"\1", before.decode(), flags=re.DOTALL))
        assert [(fact.text, fact.status) for fact in one.known().facts.values()] == [
            ("Never deploy on a Friday.", STANDING),
            ("Gloves must be worn.", STANDING),
        ]
        text = path.read_text()
        assert (
            text.count("- Gloves must be worn. (K2)") == text.count("**Last Updated**") == text.count("updated: ") == 1
        )
        assert memory.get_stats()["problems"] == []

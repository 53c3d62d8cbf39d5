"""No line that a person saved is lost, whatever edits they make and in whatever order machine and editors write."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.types import DocumentName, VersionReason
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.conftest import Clock
from tests.memories import say

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
MINE = re.compile(r"mine\d+x")
TIMES = re.compile(r"(written: |updated: |\*\*Last Updated\*\*: )[^\r\n]*")
# Lines that mention a work item, which change with its title.
MENTION = re.compile(r'^- \w+ #\d+ ".*$', re.MULTILINE)
SAYS = (
    "We decided to keep archive {n} in cellar {n}.",
    "Never restart gateway {n} on a Friday.",
    "TODO: write guide {n}.",
)


class Life:
    """A machine and a person who edit one project; `own` holds the tokens that the person has saved and not removed."""

    def __init__(self, memory: OrchestratorContextManager, clock: Clock, seed: int) -> None:
        self.memory = memory
        self.clock = clock
        self.rng = random.Random(seed)
        self.count = 0
        self.own: dict[str, DocumentName] = {}
        self.opened: dict[DocumentName, list[str]] = {name: [] for name in DocumentName}

    def refresh(self, *texts: str) -> None:
        """Record texts, then refresh."""
        say(self.memory, self.clock, *texts, "It rained.", "The bell rang.")

    def path(self, name: DocumentName) -> Path:
        """The path of a document."""
        return self.memory.episodic_memory.path(name)

    def text(self, name: DocumentName) -> str:
        """The text of a document without its times of writing."""
        return TIMES.sub("", self.path(name).read_bytes().decode())

    def machine(self) -> None:
        """Record a fact, or create or change a work item."""
        self.count += 1
        if self.rng.random() < 0.5:
            self.refresh(self.rng.choice(SAYS).format(n=self.count))
            return
        state, items = self.memory.state, self.memory.state.items()
        with suppress(InvalidChangeError):
            if self.rng.random() < 0.4:
                epics = [item.id for item in items if item.kind is WorkKind.EPIC and item.status.is_open]
                parent = self.rng.choice([None, *epics])
                state.create(WorkKind.STORY if parent else WorkKind.EPIC, f"Work {self.count}", parent=parent)
            else:
                state.set_status(self.rng.choice(items).id, self.rng.choice(list(WorkStatus)))

    def person(self) -> None:
        """Save an edit of the current text, of an editor's older buffer, or an undo."""
        name = self.rng.choice(list(DocumentName))
        buffer, choice = self.opened[name], self.rng.random()
        if choice > 0.2 or not buffer:
            buffer[:] = [self.path(name).read_bytes().decode()]
        before = buffer[-1]
        after = buffer[-2] if choice < 0.05 and len(buffer) > 1 else self.edited(before)
        buffer.append(after)
        if self.rng.random() < 0.15:  # as editors with backup files do
            self.path(name).rename(self.path(name).with_suffix(".md~"))
            self.refresh()
        self.path(name).write_bytes(after.encode())
        for token in MINE.findall(before):
            self.own.pop(token, None)
        self.own |= dict.fromkeys(MINE.findall(MENTION.sub("", after)), name)

    def form(self) -> None:
        """Save an edit of a text that others may have changed since, as a form does; save both if they collide."""
        name = self.rng.choice(list(DocumentName))
        opened = self.path(name).read_bytes().decode()
        after = self.edited(opened)
        for _ in range(self.rng.choice((0, 1, 2))):
            self.rng.choice((self.machine, self.refresh, self.person))()
        documents = self.memory.documents
        saved = documents.save_edit(name, after, opened=opened)
        if saved.collides:
            assert documents.text(name) == saved.current
            saved = documents.save_edit(name, saved.text, opened=saved.current)
        assert documents.text(name) == saved.text
        had, has = ({*MINE.findall(MENTION.sub("", text))} for text in (opened, after))
        for token in had - has:
            self.own.pop(token, None)
        self.own |= dict.fromkeys(has - had, name)
        self.opened[name].clear()  # as editors that notice the change

    def edited(self, text: str) -> str:
        """Add, reword, tick, move, copy or delete lines of a text, and sometimes change its line ends."""
        end = "\r\n" if "\r\n" in text else "\n"
        rows = text.split(end)
        top = rows.index("---", 1) + 1 if "---" in rows[1:] else 0
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            self.count += 1
            token, place = f"mine{self.count}x", self.rng.randrange(top, len(rows))
            new = ("A note {}.", "- item {}", "- [ ] work {}", "  - [ ] part {}", "## Section {}\n\nText.", "  see {}")
            said = [i for i in range(top, len(rows)) if rows[i].strip() and rows[i].lstrip()[0] not in "#<>*"]
            # A changed line about an operation could not be told from a line about another one.
            choice, at = self.rng.random(), self.rng.choice([i for i in said if "(op " not in rows[i]] or [place])
            if choice < 0.45:
                rows[place:place] = self.rng.choice(new).format(token).split("\n")
            elif choice < 0.6:
                rows[at] = re.sub(r"(?= \(K|: |$)", f" {token}", rows[at], count=1)
            elif choice < 0.7:
                rows[at] = rows[at].replace("[ ]", "[x]")
            elif choice < 0.85:
                rows.insert(place, rows.pop(at))
            elif choice < 0.9:
                rows.insert(place, rows[at])
            else:
                del rows[at]
        choice, text = self.rng.random(), end.join(rows)
        if choice < 0.1:
            return text.rstrip("\r\n")
        return text.replace("\r\n", "\n").replace("\n", "\r\n") if choice < 0.15 else text

    def lost(self) -> list[str]:
        """The tokens that the person saved and that no document, work item or conflict version contains."""
        titles = "\n".join(item.title for item in self.memory.state.items())
        aside = "\n".join(
            Path(version.path).read_bytes().decode()
            for name in DocumentName
            for version in self.memory.episodic_memory.history(name.value)
            if version.reason is VersionReason.CONFLICT
        )
        return [
            token
            for token, name in self.own.items()
            if not re.search(rf"{token}\b", f"{self.text(name)}\n{titles}\n{aside}")
        ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", ["person", "form"])
def test_no_line_that_a_person_saved_is_lost(tmp_path: Path, clock: Clock, seed: int, way: str) -> None:
    """Every line that a person saves is kept, and a refresh without new operations changes no document."""
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        life = Life(memory, clock, seed)
        memory.state.create(WorkKind.EPIC, "Root")
        memory.state.create(WorkKind.STORY, "Leaf", parent=1)
        life.refresh(*(each.format(n=0) for each in SAYS))
        for _ in range(25):
            life.machine() if life.rng.random() < 0.45 else getattr(life, way)()
            if life.rng.random() < 0.35:
                life.refresh()
                assert life.lost() == []
                before = [life.text(name) for name in DocumentName]
                memory.refresh()
                assert [life.text(name) for name in DocumentName] == before


def test_a_file_that_already_says_what_the_machine_would_write_has_been_read(tmp_path: Path) -> None:
    """A document whose edit says what the machine would write counts as read, also after the memory is reopened."""
    with open_memory(tmp_path, config=CONFIG) as memory:
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
        memory.refresh()
        log = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        log.write_text(log.read_text("utf-8").replace("on Tuesdays", "on Mondays"), "utf-8")
        assert memory.documents.unread() == [DocumentName.DECISION_LOG]
        memory.refresh()
        assert memory.documents.unread() == []
    with open_memory(tmp_path, config=CONFIG) as memory:
        assert memory.documents.unread() == []
        log.write_text(log.read_text("utf-8").replace("on Mondays", "on Tuesdays"), "utf-8")
        assert memory.documents.unread() == [DocumentName.DECISION_LOG]
        assert [fact.text for fact in memory.facts()] == ["We bake rye bread on Tuesdays."]

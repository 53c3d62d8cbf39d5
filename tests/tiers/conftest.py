"""A person at a desk: documents are edited there while the machine goes on writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.state import StateManager
from orchestra_mem.types import DocumentName, MustKeepKind, Version
from tests.conftest import Clock
from tests.memories import edit, problems_of, say

Opened = Callable[..., OrchestratorContextManager]


class Paper:
    """A document as an editor has it."""

    def __init__(self, episodic: EpisodicMemoryManager, name: DocumentName) -> None:
        self._episodic = episodic
        self.name = name
        self.path = episodic.path(name)

    @property
    def text(self) -> str:
        """What stands in it."""
        return self.path.read_bytes().decode()

    def save(self, text: str) -> None:
        """Save a text, in its own line ends."""
        self.path.write_bytes(text.encode())

    def edit(self, *changes: tuple[str, str]) -> None:
        """Change passages that stand once."""
        edit(self.path, *changes)

    def has_once(self, *said: str) -> None:
        """Fail where one of these stands nowhere or twice."""
        assert {each: self.text.count(each) for each in said} == dict.fromkeys(said, 1), self.text

    def versions(self) -> list[tuple[Version, str]]:
        """The versions that are kept, the oldest first, each with its text."""
        return [(each, Path(each.path).read_bytes().decode()) for each in self._episodic.history(self.name.value)]

    def first_version(self, has: str, lacks: str = "\0") -> int:
        """The number of the first version that has a passage and lacks another."""
        return next(each.sequence for each, text in self.versions() if has in text and lacks not in text)

    def restore(self, sequence: int) -> Version:
        """Put an earlier text back; gives the version of the one that stood there."""
        return self._episodic.restore(self.name.value, sequence)


class Desk:
    """A memory, the clock that it goes by, and the documents that a person edits."""

    def __init__(self, memory: OrchestratorContextManager, clock: Clock, opened: Opened = open_memory) -> None:
        self.memory = memory
        self.clock = clock
        self._opened = opened
        self.state, self.plan, self.log = map(self.paper, DocumentName)

    @property
    def work(self) -> StateManager:
        """The state of work."""
        return self.memory.state

    def paper(self, name: DocumentName) -> Paper:
        """One of the documents."""
        return Paper(self.memory.episodic_memory, name)

    @contextmanager
    def once_more(self, **given: Any) -> Iterator[Desk]:
        """The same project, opened once more, as another process does."""
        with self._opened(**given) as memory:
            yield Desk(memory, self.clock, self._opened)

    def go_on(self, *texts: str, times: int = 1) -> None:
        """Have so much said that all of it is looked through, and the documents written."""
        for _ in range(times):
            say(self.memory, self.clock, *(texts or ("Tea was had.",)), "It rained.", "The bell rang.")

    def change(self, *changes: tuple[str, str], times: int = 1) -> None:
        """Edit the plan, and let the machine write afterwards."""
        self.plan.edit(*changes)
        self.go_on(times=times)

    def says(self, kind: MustKeepKind) -> list[str]:
        """What the facts of a kind say."""
        return [fact.text for fact in self.memory.facts(kind)]

    def problems(self) -> str:
        """What is told to be wrong."""
        return str(problems_of(self.memory))


@pytest.fixture
def empty(request: pytest.FixtureRequest, memory: OrchestratorContextManager, clock: Clock, tmp_path: Path) -> Desk:
    """The memory of a new project, with the `CONFIG` of the tests' module."""
    return Desk(memory, clock, partial(open_memory, tmp_path, config=request.module.CONFIG, clock=clock))

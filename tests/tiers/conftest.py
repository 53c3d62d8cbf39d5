"""Helpers for tests in which a person edits documents while the machine writes them."""

from __future__ import annotations

import re
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
    """A document as an editor sees it."""

    def __init__(self, episodic: EpisodicMemoryManager, name: DocumentName) -> None:
        self._episodic = episodic
        self.name = name
        self.path = episodic.path(name)

    @property
    def text(self) -> str:
        """The content of the document."""
        return self.path.read_bytes().decode("utf-8", "surrogateescape")

    def save(self, text: str) -> None:
        """Save a text with its own line ends."""
        self.path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def edit(self, *changes: tuple[str, str]) -> None:
        """Replace passages that occur exactly once."""
        edit(self.path, *changes)

    def has_once(self, *said: str) -> None:
        """Fail unless each passage occurs exactly once."""
        assert {each: self.text.count(each) for each in said} == dict.fromkeys(said, 1), self.text

    def versions(self) -> list[tuple[Version, str]]:
        """Return the kept versions with their texts, oldest first."""
        history = self._episodic.history(self.name.value)
        return [(each, Path(each.path).read_bytes().decode("utf-8", "surrogateescape")) for each in history]

    def first_version(self, has: str, lacks: str = "\0") -> int:
        """Return the number of the first version that contains `has` but not `lacks`."""
        return next(each.sequence for each, text in self.versions() if has in text and lacks not in text)

    def restore(self, sequence: int) -> Version:
        """Restore an earlier version; return the version of the text that it replaces."""
        return self._episodic.restore(self.name.value, sequence)


class Desk:
    """A memory, its clock, and the documents that a person edits."""

    def __init__(self, memory: OrchestratorContextManager, clock: Clock, opened: Opened = open_memory) -> None:
        self.memory = memory
        self.clock = clock
        self._opened = opened
        self.state, self.plan, self.log = map(self.paper, DocumentName)

    @property
    def work(self) -> StateManager:
        """The state of work. Reading this property applies the edits that are saved but not read yet."""
        return self.memory.state

    def paper(self, name: DocumentName) -> Paper:
        """Return one of the documents."""
        return Paper(self.memory.episodic_memory, name)

    @contextmanager
    def once_more(self, **given: Any) -> Iterator[Desk]:
        """Open the same project a second time, as another process does."""
        with self._opened(**given) as memory:
            yield Desk(memory, self.clock, self._opened)

    def go_on(self, *texts: str, times: int = 1) -> None:
        """Record the texts and enough further operations that a refresh reads them and writes the documents."""
        for _ in range(times):
            say(self.memory, self.clock, *(texts or ("Tea was had.",)), "It rained.", "The bell rang.")

    def change(self, *changes: tuple[str, str], times: int = 1) -> None:
        """Edit the plan, then let the machine write."""
        self.plan.edit(*changes)
        self.go_on(times=times)

    def says(self, kind: MustKeepKind) -> list[str]:
        """Return the texts of the active facts of a kind."""
        return [fact.text for fact in self.memory.facts(kind)]

    def problems(self) -> str:
        """Return the reported problems as text."""
        return str(problems_of(self.memory))


def retyped(text: str) -> str:
    """Return a document as editors on phones save it: typographic quotation marks, CR LF, blanks at ends of lines."""
    front, body = text.replace("\r\n", "\n").split("\n---\n", 1)
    body = re.sub(r"(^|[\s(])\"", "\\1“", body, flags=re.MULTILINE).replace('"', "”").replace("'", "’")
    body = re.sub(r"(?<=\S)$", "  ", body, flags=re.MULTILINE)
    return f"{front}\n---\n{body}".replace("\n", "\r\n")


@pytest.fixture
def empty(request: pytest.FixtureRequest, memory: OrchestratorContextManager, clock: Clock, tmp_path: Path) -> Desk:
    """The memory of a new project, with the `CONFIG` of the test module."""
    return Desk(memory, clock, partial(open_memory, tmp_path, config=request.module.CONFIG, clock=clock))

"""Projects: the list of a user's projects, and what all of them answer together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.home import ListedProject, ProjectRegistry, has_memory, home_folder
from orchestra_mem.build import environ_for, wire
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.tiers.shared_decisions import NO_HOME

if TYPE_CHECKING:
    from orchestra_mem.home.side_by_side import ProjectsAnswer, Recurring
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.passages import Recommendations
    from orchestra_mem.retrieval.search import Answer

TIMEOUT_S = 10.0
_LEAST_OF_ID = 4  # so many letters of an id name a project


class Projects:
    """The projects of a user, which list themselves as they are opened. Safe to share between threads.

    Every call raises `StorageError` where the list cannot be read or written.

    Args:
        home: the folder that holds the list; by default the one that `ORCHESTRA_MEM_HOME` names, else the user's own.

    Raises:
        StorageError: `ORCHESTRA_MEM_HOME` is `off`, or no full path.
    """

    def __init__(self, home: str | Path | None = None) -> None:
        folder = home_folder(os.environ) if home is None else Path(home)
        if folder is None:
            raise StorageError(NO_HOME)
        self._registry = ProjectRegistry(folder)

    def list(self) -> list[ListedProject]:
        """List all projects, by name: of one that was moved, its present folder alone."""
        return self._registry.projects()

    def info(self, which: str | Path) -> ListedProject:
        """Give the project of this name, id, beginning of an id, or folder.

        Raises:
            NotFoundError: none is, or several are.
        """
        named, listed = str(which), self.list()
        folders = {Path(which).absolute(), Path(which).resolve()}
        found = [each for each in listed if each.path in folders]
        found = found or [each for each in listed if named in (each.id, each.name)]
        if not found and len(named) >= _LEAST_OF_ID:
            found = [each for each in listed if each.id.startswith(named)]
        if len(found) > 1:
            told = ", ".join(str(each.path) for each in found)
            raise NotFoundError(f"{named!r} are several: name one by its folder, {told}")
        if not found:
            raise NotFoundError(f"no project {named!r} is listed; `orchestra-mem projects list` tells which are")
        return found[0]

    def add(self, folder: str | Path) -> ListedProject:
        """List a project that has a memory; one in a temporary folder too, which does not list itself.

        Raises:
            StorageError: it has none.
            ConfigError: its settings cannot be used.
        """
        path = Path(folder).resolve()
        if not has_memory(path):
            raise StorageError(f"no memory in {path}; run `orchestra-mem init` there, or name another folder")
        wiring = wire(path, environ=environ_for(path))
        with wiring.manager():
            self._registry.put(wiring.listed())
        return self.info(path)

    def remove(self, which: str | Path) -> ListedProject:
        """Take a project off the list, until it is opened again; its memory stays as it is.

        Raises:
            NotFoundError: none is this one, or several are.
        """
        found = self.info(which)
        self._registry.remove(found)
        return found

    def search(
        self, query: str, *, agent: str | None = None, where: SearchFilter = EVERYTHING,
        mode: SearchMode = SearchMode.HYBRID, limit: int = 10, timeout_s: float = TIMEOUT_S,
    ) -> ProjectsAnswer:  # fmt: skip
        """Find what answers a query in all projects that may be searched, most likely first.

        Each project's own index is searched; what cannot be looked at is told in the notes, and fails nothing.

        Args:
            query: any string.
            agent: who asks: in each project what this agent may see there; by default all.
            where, mode, limit: see `OrchestratorContextManager.search`.
            timeout_s: for each project.

        Raises:
            ValueError: the limit is negative, or a time of the filter has no time zone.
        """
        from orchestra_mem.home.side_by_side import ask_each, joined_answer
        from orchestra_mem.retrieval.search import check_request

        check_request(where, limit)

        def ask(memory: OrchestratorContextManager) -> tuple[Answer, Sequence[int]]:
            asked = memory if agent is None else memory.as_agent(agent)
            answer = asked.search(query, where=where, mode=mode, limit=limit)
            return answer, memory.hit_lines(answer.hits)

        return joined_answer(*ask_each(self.list(), ask, timeout_s), limit)

    def recommend(
        self, task: str, *, agents: Sequence[str] = (), limit: int = 3, timeout_s: float = TIMEOUT_S
    ) -> Recommendations:
        """Say what past work of all projects means for a task; see `search` and `MemoryRetriever.get_recommendations`.

        Raises:
            ValueError: the limit is negative.
        """
        from orchestra_mem.home.side_by_side import ask_each, joined_recommendations
        from orchestra_mem.retrieval.search import check_request

        check_request(EVERYTHING, limit)

        def ask(memory: OrchestratorContextManager) -> Recommendations:
            return memory.retriever.get_recommendations(task, agents=agents, limit=limit)

        return joined_recommendations(task, *ask_each(self.list(), ask, timeout_s), limit)

    def recurring(self, *, least: int = 3, timeout_s: float = TIMEOUT_S) -> Recurring:
        """Find the decisions and rules that hold in `least` projects or more, in nearly the same words.

        Those that are shared already, or that a person has taken out of the shared log, are left out.

        Raises:
            EmbedderError: the table of words cannot be had.
        """
        from orchestra_mem.home.side_by_side import NEWEST, ask_each, find_recurring, shared_texts

        shared = shared_texts(self._registry.folder.with_name("shared"))
        found = ask_each(self.list(), lambda memory: memory.shareable()[-NEWEST:], timeout_s)
        return find_recurring(*found, least, shared)

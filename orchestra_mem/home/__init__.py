"""The list of a user's projects, and queries to all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.home import ListedProject as ListedProject
from orchestra_mem.adapters.home import ProjectRegistry, has_memory, home_folder
from orchestra_mem.build import environ_for, wire
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.search_types import EVERYTHING, SearchFilter, SearchMode
from orchestra_mem.tiers.shared_decisions import NO_HOME

if TYPE_CHECKING:
    from orchestra_mem.home.across_projects import ProjectsAnswer, Recurring
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.passages import Recommendations
    from orchestra_mem.retrieval.search import Answer

TIMEOUT_S = 10.0
_LEAST_OF_ID = 4  # minimum length of the beginning of an id that names a project


class Projects:
    """The projects of a user; opening a project adds it to the list. Safe to share between threads.

    Every method raises `StorageError` if the list cannot be read or written.

    Args:
        home: The folder that holds the list; by default `ORCHESTRA_MEM_HOME`, else a folder in the user's data folder.

    Raises:
        StorageError: `ORCHESTRA_MEM_HOME` is `off` or a relative path.
    """

    def __init__(self, home: str | Path | None = None) -> None:
        folder = home_folder(os.environ) if home is None else Path(home)
        if folder is None:
            raise StorageError(NO_HOME)
        self._registry = ProjectRegistry(folder)

    def list(self) -> list[ListedProject]:
        """Return all projects, sorted by name; one that was moved or has several folders appears with the last."""
        return self._registry.projects()

    def info(self, which: str | Path) -> ListedProject:
        """Return a project by its folder, name, id, or the beginning of its id (at least 4 characters).

        Raises:
            NotFoundError: No project matches, or several do.
        """
        named, listed = str(which), self.list()
        folders = {Path(which).absolute(), Path(which).resolve()}
        found = [each for each in listed if folders & {each.path, *each.copies} or named in (each.id, each.name)]
        if not found and len(named) >= _LEAST_OF_ID:
            found = [each for each in listed if each.id.startswith(named)]
        if len(found) > 1:
            told = ", ".join(str(each.path) for each in found)
            raise NotFoundError(f"{named!r} matches several projects; name one by its folder: {told}")
        if not found:
            raise NotFoundError(f"no project {named!r} is listed; `orchestra-mem projects list` shows all of them")
        return found[0]

    def add(self, folder: str | Path) -> ListedProject:
        """Add a project with a memory to the list. Unlike opening, this also adds projects in temporary folders.

        Raises:
            StorageError: The folder has no memory.
            ConfigError: The project's settings are invalid.
        """
        path = Path(folder).resolve()
        if not has_memory(path):
            raise StorageError(f"no memory in {path}; run `orchestra-mem init` there, or name another folder")
        wiring = wire(path, environ=environ_for(path))
        with wiring.manager():
            self._registry.put(wiring.listed())
        return self.info(path)

    def remove(self, which: str | Path) -> ListedProject:
        """Remove a project from the list until it is opened again; its memory stays unchanged.

        Raises:
            NotFoundError: No project matches, or several do.
        """
        found = self.info(which)
        self._registry.remove(found)
        return found

    def search(
        self, query: str, *, agent: str | None = None, where: SearchFilter = EVERYTHING,
        mode: SearchMode = SearchMode.HYBRID, limit: int = 10, timeout_s: float = TIMEOUT_S,
    ) -> ProjectsAnswer:  # fmt: skip
        """Search all projects that may be searched, and return their hits together, most likely first.

        Each project's own index is searched. A project that cannot be searched is reported in the notes.

        Args:
            query: Any string.
            agent: Name of the asking agent, to find only what this agent may see; None for no restriction.
            where, mode, limit: See `OrchestratorContextManager.search`.
            timeout_s: Time limit for each project, in seconds.

        Raises:
            ValueError: The limit is negative.
            InvalidTimeError: A time of the filter has no time zone.
        """
        from orchestra_mem.home.across_projects import merge_answers, query_projects
        from orchestra_mem.retrieval.search import check_request

        check_request(where, limit)

        def ask(memory: OrchestratorContextManager) -> tuple[Answer, Sequence[int]]:
            asked = memory if agent is None else memory.as_agent(agent)
            answer = asked.search(query, where=where, mode=mode, limit=limit)
            return answer, memory.hit_lines(answer.hits)

        return merge_answers(*query_projects(self.list(), ask, timeout_s), limit)

    def recommend(
        self, task: str, *, agents: Sequence[str] = (), limit: int = 3, timeout_s: float = TIMEOUT_S
    ) -> Recommendations:
        """Return recommendations for a task from all projects; see `search`, `ContextRetriever.get_recommendations`.

        Raises:
            ValueError: The limit is negative.
        """
        from orchestra_mem.home.across_projects import joined_recommendations, query_projects
        from orchestra_mem.retrieval.search import check_request

        check_request(EVERYTHING, limit)
        found = query_projects(
            self.list(), lambda each: each.retriever.get_recommendations(task, agents=agents, limit=limit), timeout_s
        )
        return joined_recommendations(task, *found, limit)

    def recurring(self, *, least: int = 3, timeout_s: float = TIMEOUT_S) -> Recurring:
        """Find active decisions and rules that occur in nearly the same words in at least `least` projects.

        Facts that are in the shared log, or that a person has removed from it, are left out.

        Raises:
            EmbedderError: The table of word vectors cannot be loaded.
        """
        from orchestra_mem.home.across_projects import NEWEST, find_recurring, query_projects, shared_texts

        shared = shared_texts(self._registry.folder.with_name("shared"))
        found = query_projects(self.list(), lambda memory: memory.shareable()[-NEWEST:], timeout_s)
        return find_recurring(*found, least, shared)

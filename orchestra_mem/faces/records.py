"""What the faces share: who asks, and records that are joined from more than one call of a memory."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem import build
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import AccessDeniedError, StorageError
from orchestra_mem.serialize import to_object
from orchestra_mem.types import OperationFilter, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.build.memory_service import MemoryService
    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.search import Answer


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks of a memory: an agent, or its owner."""

    memory: OrchestratorContextManager
    agent: str

    @property
    def is_owner(self) -> bool:
        """Whether it is no agent."""
        return self.agent == OWNER

    @property
    def view(self) -> Any:
        """The memory as the caller may see it."""
        return self.memory if self.is_owner else self.memory.as_agent(self.agent)

    @property
    def service(self) -> MemoryService:
        """The memory service over that."""
        from orchestra_mem.build.memory_service import MemoryService

        return MemoryService(self.view)

    def offered(self, name: str) -> Any:
        """Give what the memory has under a name.

        Raises:
            AccessDeniedError: an agent asks, and its view does not have it.
        """
        found = getattr(self.view, name, None)
        if found is None:
            raise AccessDeniedError(f"{name} is not offered to agents: agent {self.agent!r} may not ask for it")
        return found

    def retrieving(self, name: str) -> Any:
        """Give a call of the memory's retriever; an agent's view has those that it offers itself."""
        return getattr(self.memory.retriever, name) if self.is_owner else self.offered(name)

    def acting(self, named: str | None) -> str | None:
        """Say for whom something is done: an agent does all in its own name, the owner in whatever is named.

        Raises:
            AccessDeniedError: an agent names another one.
        """
        if self.is_owner:
            return named
        if named not in (None, self.agent):
            raise AccessDeniedError(f"agent {self.agent!r} may not ask or act as {named!r}")
        return self.agent


logger = logging.getLogger(__name__)


def counted(number: int, noun: str) -> str:
    """Give a number with its noun, which takes an s for the plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def status_record(memory: OrchestratorContextManager, project: Path) -> dict[str, Any]:
    """Tell how full the window is, what the tiers hold, where the documents are, and what is wrong."""
    from orchestra_mem.doctor.documents import disk_sizes, index_words, inspect_index

    # First, as what fails on the way belongs to the problems.
    found = memory.get_orchestrator_context("status", measure_turns=False)
    stats = memory.get_stats()
    tracker, sessions, session_path = memory.context_tracker, memory.sessions(), memory.session_memory.path
    documents = {name: str(memory.episodic_memory.path(name)) for name in memory.episodic_memory.names()}
    if memory.shared_decisions():
        documents["shared_log"] = str(memory.shared_log.path)
    newest = memory.operations(OperationFilter(limit=1))
    return {
        "project": str(project),
        "search_index": index_words(inspect_index(project), newest[-1].id if newest else 0),
        "documents": documents | {"session": str(session_path) if session_path else None},
        "sizes": disk_sizes(project, build.load_settings(project, os.environ)),
        "thresholds": {name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")},
        "next_context": {"tokens": found.tokens, "budget_tokens": found.budget_tokens, "is_sure": found.is_full},
        "sessions": {
            "total": len(sessions),
            "archived": sum(session.status is SessionStatus.ARCHIVED for session in sessions),
        },
        **stats, "problems": _problems(memory, stats["problems"]),
    }  # fmt: skip


def _problems(memory: OrchestratorContextManager, known: Any) -> list[Any]:
    """List what is known to be wrong, and whether the model is available, which may not have been needed yet."""
    model, subject = memory.model, "language model"
    if model is None or any(problem["subject"] == subject for problem in known):
        return [*known]
    from orchestra_mem.doctor.memory import why_unusable

    why = why_unusable(model)
    return [*known, {"subject": subject, "since": None, "problem": why}] if why else [*known]


def context_record(found: OrchestratorContext) -> dict[str, Any]:
    """Give a context with its parts, as a text and as messages, and why each item is as it is."""
    return {
        "for_operation": found.for_operation, "budget_tokens": found.budget_tokens, "tokens": found.tokens,
        "counter": found.counter, "exact": found.exact, "parts": found.as_dict(), "text": found.render(),
        "messages": found.as_messages(), "explain": found.explain(), "notes": [*found.notes],
    }  # fmt: skip


def search_record(found: Answer, lines: list[int]) -> dict[str, Any]:
    """Give what a search found, each hit with the line where it stands in its document."""
    hits = [to_object(hit) | {"line": line or None} for hit, line in zip(found.hits, lines, strict=True)]
    return {"hits": hits, "notes": [*found.notes]}


def conflict_records(memory: OrchestratorContextManager) -> list[dict[str, Any]]:
    """List the lines that a person and the machine both changed: the person's, which stand, and the machine's."""
    from orchestra_mem.core.documents.alignment import split_lines

    found: list[dict[str, Any]] = []
    for name, block in memory.conflicts():
        lines = split_lines(memory.documents.text(name))
        above = lines[max(0, block.line - 1 - block.person_lines) : block.line - 1]
        found.append(
            {
                "id": block.id, "document": name, "path": str(memory.documents.path(name)),
                "line": block.line, "yours": "".join(f"{line}\n" for line in above), "machine": block.machine,
                "changed_meanwhile": not block.unchanged,
            }
        )  # fmt: skip
    return found


def resolved_record(
    memory: OrchestratorContextManager, conflict: str, *, accept: bool, both: bool = False
) -> dict[str, Any]:
    """Decide a conflict, and tell what was done where."""
    name, done = memory.resolve_conflict(conflict, accept=accept, both=both)
    return {
        "id": conflict, "document": name, "path": str(memory.documents.path(name)), "line": done.line,
        "replaced": done.replaced, "note": done.note,
    }  # fmt: skip


def work_record(memory: OrchestratorContextManager, item_id: int, limit: int | None) -> dict[str, Any]:
    """Give a work item with its progress, what it waits for, and its newest changes."""
    state = memory.state
    return {
        "item": state.item(item_id), "progress": state.progress(item_id), "blockers": state.blockers(item_id),
        "events": state.events(item_id, limit=limit),
    }  # fmt: skip


def update_documents(memory: OrchestratorContextManager) -> None:
    """Write a change of work into the documents; it is stored by then, so a failure is told and takes nothing back."""
    try:
        memory.refresh()
    except StorageError as error:
        logger.warning("the documents are not up to date yet: %s", error)

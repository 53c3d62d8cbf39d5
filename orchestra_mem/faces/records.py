"""Code that command line, HTTP and MCP share: the caller, and records that combine results of several methods."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem import build
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.errors import AccessDeniedError, StorageError
from orchestra_mem.serialize import dump_json, to_object
from orchestra_mem.types import Operation, OperationFilter, SessionStatus

if TYPE_CHECKING:
    from orchestra_mem.core.context.rendered import OrchestratorContext
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.retrieval.search import Answer


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a memory: an agent, or the memory's owner."""

    memory: OrchestratorContextManager
    agent: str

    @property
    def is_owner(self) -> bool:
        """Whether the caller is the owner."""
        return self.agent == OWNER

    @property
    def view(self) -> Any:
        """The memory as the caller may see it."""
        return self.memory if self.is_owner else self.memory.as_agent(self.agent)

    def retrieving(self, name: str) -> Any:
        """Return a retrieval method by name: for the owner from the memory's retriever, for an agent from its view."""
        return getattr(self.memory.retriever if self.is_owner else self.view, name)

    def acting(self, named: str | None) -> str | None:
        """Return the agent to act as: an agent acts as itself, the owner as the agent `named`, or as no agent if None.

        Raises:
            AccessDeniedError: An agent names another agent.
        """
        if self.is_owner:
            return named
        if named not in (None, self.agent):
            raise AccessDeniedError(f"agent {self.agent!r} may not act as {named!r}")
        return self.agent


def record_once(
    view: Any, kind: str, data: object, tokens: int | None = None, *, key: str | None, **more: Any
) -> tuple[Operation, str]:
    """Record an operation; if one has its idempotency key already, return that one.

    The second value is a note that nothing was recorded, if the earlier operation has other content, else "". What was
    redacted in that one may be the same.
    """
    is_known = key is not None and bool(view.operations(OperationFilter(idempotency_key=key)))
    done: Operation = view.record_operation(kind, data, tokens, idempotency_key=key, **more)
    if not is_known or (done.type == kind and (done.data == data or _is_redacted(done))):
        return done, ""
    return done, f"Not recorded: op{done.id} has the key {key!r}. Record anything else with another key."


def _is_redacted(operation: Operation) -> bool:
    from orchestra_mem.core.redaction.masking import PLACEHOLDER

    return PLACEHOLDER.search(dump_json(operation.data)) is not None


logger = logging.getLogger(__name__)


def counted(number: int, noun: str) -> str:
    """Format a number with a noun, adding an s to the noun unless the number is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@contextmanager
def written_aside(file: Path, data: bytes, mode: int) -> Iterator[Path]:
    """Write a temporary file beside `file`, flushed to the disk, to be renamed in the block; remove it afterwards."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(aside, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as made:
            made.write(data)
            made.flush()
            os.fsync(made.fileno())
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def status_record(memory: OrchestratorContextManager, project: Path) -> dict[str, Any]:
    """Collect the usage of the window, the sizes of the tiers, the paths of the documents, and the known problems."""
    from orchestra_mem.build.storage import machine_name, server_name
    from orchestra_mem.doctor.documents import disk_sizes, index_words, inspect_index

    # Built before `get_stats` is called, so that its failures are among the problems.
    found = memory.get_orchestrator_context("status", measure_turns=False)
    stats = memory.get_stats()
    tracker, sessions, session_path = memory.context_tracker, memory.sessions(), memory.session_memory.path
    documents = {name: str(memory.episodic_memory.path(name)) for name in memory.episodic_memory.names()}
    if memory.shared_decisions():
        documents["shared_log"] = str(memory.shared_log.path)
    newest = memory.operations(OperationFilter(limit=1))
    settings = build.load_settings(project, os.environ)
    server = server_name(settings)
    return {
        "project": str(project),
        "search_index": index_words(inspect_index(project), newest[-1].id if newest else 0),
        "documents": documents | {"session": str(session_path) if session_path else None},
        "sizes": disk_sizes(project, settings),
        "server": f"{server}, as machine {machine_name(settings)}" if server else "",
        "thresholds": {name: getattr(tracker, f"{name}_threshold") for name in ("warning", "refresh", "critical")},
        "next_context": {"tokens": found.tokens, "budget_tokens": found.budget_tokens, "is_sure": found.is_full},
        "sessions": {
            "total": len(sessions),
            "archived": sum(session.status is SessionStatus.ARCHIVED for session in sessions),
        },
        **stats, "problems": _problems(memory, stats["problems"]),
    }  # fmt: skip


def _problems(memory: OrchestratorContextManager, known: Any) -> list[Any]:
    """List the known problems. Also check the model, because its faults are unknown until it is used."""
    model, subject = memory.model, "language model"
    if model is None or any(problem["subject"] == subject for problem in known):
        return [*known]
    from orchestra_mem.doctor.memory import why_unusable

    why = why_unusable(model)
    return [*known, {"subject": subject, "since": None, "problem": why}] if why else [*known]


def context_record(found: OrchestratorContext) -> dict[str, Any]:
    """Return a context as a record: parts, text, messages, and why items were included, shortened or left out."""
    return {
        "for_operation": found.for_operation, "budget_tokens": found.budget_tokens, "tokens": found.tokens,
        "counter": found.counter, "exact": found.exact, "parts": found.as_dict(), "text": found.render(),
        "messages": found.as_messages(), "explain": found.explain(), "notes": [*found.notes],
    }  # fmt: skip


def search_record(found: Answer, lines: list[int]) -> dict[str, Any]:
    """Return a search answer as a record. The `line` of a hit is its line number in a document, or None."""
    hits = [to_object(hit) | {"line": line or None} for hit, line in zip(found.hits, lines, strict=True)]
    return {"hits": hits, "notes": [*found.notes]}


def conflict_records(memory: OrchestratorContextManager) -> list[dict[str, Any]]:
    """List the conflicts, each with the person's lines from the document and the lines that the machine proposes."""
    from orchestra_mem.core.documents.alignment import split_lines

    found: list[dict[str, Any]] = []
    for name, block in memory.conflicts():
        lines = split_lines(memory.documents.text(name))
        above = lines[max(0, block.line - 1 - block.person_lines) : block.line - 1]
        found.append(
            {
                "id": block.id, "document": name, "path": str(memory.documents.path(name)),
                "line": block.line, "yours": "".join(f"{line}\n" for line in above), "machine": block.machine,
                "changed_meanwhile": not block.unchanged, "sides": [*block.sides],
            }
        )  # fmt: skip
    return found


def resolved_record(
    memory: OrchestratorContextManager, conflict: str, *, accept: bool, both: bool = False
) -> dict[str, Any]:
    """Resolve a conflict, and return a record of the change: the document, the line, and a note."""
    name, done = memory.resolve_conflict(conflict, accept=accept, both=both)
    return {
        "id": conflict, "document": name, "path": str(memory.documents.path(name)), "line": done.line,
        "replaced": done.replaced, "note": done.note,
    }  # fmt: skip


def work_record(memory: OrchestratorContextManager, item_id: int, limit: int | None) -> dict[str, Any]:
    """Return a work item with its progress, its blockers and its newest changes."""
    state = memory.state
    return {
        "item": state.item(item_id), "progress": state.progress(item_id), "blockers": state.blockers(item_id),
        "events": state.events(item_id, limit=limit),
    }  # fmt: skip


def update_documents(memory: OrchestratorContextManager) -> None:
    """Write a change of work items into the documents. The change is already stored, so a failure is only logged."""
    try:
        memory.refresh()
    except StorageError as error:
        logger.warning("the change is stored, but the documents could not be updated: %s", error)

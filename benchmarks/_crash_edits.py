"""Invariants after any crash for a person's edits of the episodic documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._edits import PERSON, numbers, tokens
from benchmarks._survival import Violation
from orchestra_mem.build import HOME
from orchestra_mem.core.documents.conflicts import faults
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import DocumentName, MustKeepStatus, VersionReason


@dataclass(slots=True)
class Said:
    """What a person has changed in the episodic documents, as far as it still applies.

    Each of the person's lines has a unique token. `own` maps tokens that were saved and not removed since to their
    documents, `gone` those that were removed. `removed` are numbers of the machine's facts that the person removed,
    `unseen` those of facts that an old text, saved over them, did not have yet; the next write restores them.
    """

    own: dict[str, DocumentName] = field(default_factory=dict)
    gone: dict[str, DocumentName] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    unseen: set[int] = field(default_factory=set)


def examine_edits(
    project: Path, memory: OrchestratorContextManager, said: Said, *, taken_in: bool
) -> Iterator[Violation]:
    """Check the invariants of a person's edits.

    Args:
        project: Folder of the project.
        memory: The memory as this process sees it.
        said: The person's edits.
        taken_in: Whether the memory has looked for edits since; if so, the ledger must reflect them too.
    """
    folder = project / HOME / "memory"
    texts = {name: (folder / f"{name.value}.md").read_text("utf-8", "surrogateescape") for name in DocumentName}
    aside = "".join(
        Path(version.path).read_text("utf-8", "surrogateescape")
        for name in DocumentName
        for version in memory.episodic_memory.history(name.value)
        if version.reason is VersionReason.CONFLICT
    )
    for token, name in said.own.items():
        if token not in texts[name] and token not in aside:
            yield Violation(kind="edit", text=f"{token} is missing from {name.value}")
    for name, text in texts.items():
        standing = tokens(text)
        for token in sorted(standing & {token for token, place in said.gone.items() if place is name}):
            yield Violation(kind="returned", text=f"{token} was removed from {name.value}, but is there again")
        for number in sorted(numbers(text) & said.removed):
            yield Violation(kind="returned", text=f"K{number} was removed, but is in {name.value} again")
        for line, problem in faults(text):
            yield Violation(kind="document", text=f"{name.value}:{line}: {problem}")
    if taken_in:
        yield from _untrue_facts(memory, said)


def _untrue_facts(memory: OrchestratorContextManager, said: Said) -> Iterator[Violation]:
    """Yield facts that are active in the ledger although a person has removed them."""
    for fact in memory.facts(standing=False):
        if fact.status is not MustKeepStatus.STANDING:
            continue
        if fact.id in said.removed:
            yield Violation(kind="returned", text=f"K{fact.id} was removed, but is active in the ledger")
        for token in PERSON.findall(fact.text):
            if token in said.gone:
                yield Violation(kind="returned", text=f"K{fact.id} contains {token}, which was removed")

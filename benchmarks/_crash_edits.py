"""What must hold after any crash of what a person has said by editing the episodic documents."""

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
    """What a person has said by editing the episodic documents, as far as it holds.

    Each line of theirs bears a token of its own. `own` maps those that were saved and not taken out since to their
    documents, `gone` those that were taken out; `removed` are the numbers of the machine's facts that they took out,
    `unseen` those of facts that a text did not have yet that was saved over them: the next write brings them back.
    """

    own: dict[str, DocumentName] = field(default_factory=dict)
    gone: dict[str, DocumentName] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    unseen: set[int] = field(default_factory=set)


def examine_edits(
    project: Path, memory: OrchestratorContextManager, said: Said, *, taken_in: bool
) -> Iterator[Violation]:
    """Look at what must hold of what a person has said in the episodic documents.

    Args:
        project: its folder.
        memory: the memory, as it is in this process.
        said: what the person has said.
        taken_in: whether the memory has looked for edits since: then the ledger has them too.
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
            yield Violation(kind="edit", text=f"{token} is gone from {name.value}")
    for name, text in texts.items():
        standing = tokens(text)
        for token in sorted(standing & {token for token, place in said.gone.items() if place is name}):
            yield Violation(kind="returned", text=f"{token} was taken out of {name.value} and stands there again")
        for number in sorted(numbers(text) & said.removed):
            yield Violation(kind="returned", text=f"K{number} was taken out and stands in {name.value} again")
        for line, problem in faults(text):
            yield Violation(kind="document", text=f"{name.value}:{line}: {problem}")
    if taken_in:
        yield from _untrue_facts(memory, said)


def _untrue_facts(memory: OrchestratorContextManager, said: Said) -> Iterator[Violation]:
    """Facts that the ledger holds for standing and that a person has taken out."""
    for fact in memory.facts(standing=False):
        if fact.status is not MustKeepStatus.STANDING:
            continue
        if fact.id in said.removed:
            yield Violation(kind="returned", text=f"K{fact.id} was taken out and stands in the ledger")
        for token in PERSON.findall(fact.text):
            if token in said.gone:
                yield Violation(kind="returned", text=f"K{fact.id} says {token}, which was taken out")

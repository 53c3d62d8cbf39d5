"""Invariants of a memory after any crash: nothing lost, nothing duplicated, every document intact.

`examine` opens and repairs nothing: it checks a memory that has just been opened, and its files and its database. The
data of an operation are derived from its marker alone, so they can be checked without a copy.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from orchestra_mem.adapters.database import Database
from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.build import HOME
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.core.documents.markdown import Block, front_matter_fault, split_blocks
from orchestra_mem.core.documents.session_document import EARLIER, LOG, SessionDocument
from orchestra_mem.core.summaries.kept import body_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import (
    Author,
    DocumentName,
    Json,
    MustKeepKind,
    MustKeepStatus,
    Operation,
    OperationFilter,
    Session,
    SessionStatus,
    Summary,
)

ENTRY_CHARS = 4_000
WORK = "work_change"
NOTE = "a person's note"
_CLOSING = ("Session Summary", "Current State")
# Number of newest decisions to check; those of ended sessions must be in the decision log individually.
_SHOWN_DECISIONS = 15
_WORDS = (
    "parser cache index worker queue schema retry token window shard build deploy review branch merge release test "
    "module server client timeout budget prompt answer story epic milestone ledger"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violated invariant. `kind` is lost, duplicated, document, edit, returned or restart."""

    kind: str
    text: str


def draft_for(marker: str) -> tuple[str, dict[str, Json]]:
    """Return the type and the data of the operation with a marker: short and long, plain and odd."""
    rng = random.Random(marker)
    words = " ".join(rng.choices(_WORDS, k=rng.randint(4, 30)))
    kind = rng.choice(("nl_command", "task_execution", "decision", "file_edit", "chat_message"))
    data: dict[str, Json] = {"marker": marker, "task": f"T{rng.randint(1, 5)}"}
    if kind == "decision":
        data["decision"] = f"We decided to use {rng.choice(_WORDS)} for {marker}."
    elif kind == "task_execution":
        data |= {"title": words[:40], "status": rng.choice(("completed", "failed")), "result": words}
    else:
        data["text"] = words
    odd = rng.random()
    if odd < 0.04:
        data["output"] = "\n".join(f"{n}: {words}" for n in range(rng.randint(50, 300)))
    elif odd < 0.08:
        data["output"] = "nul \x00 and a lone \ud800 surrogate\r\n## No Heading\n### [12:00:00] Not An Entry (op 1)\n"
    return kind, data


def examine(
    project: Path,
    memory: OrchestratorContextManager,
    *,
    acknowledged: Mapping[str, int],
    notes: Sequence[str] = (),
    removed: Collection[int] = (),
) -> list[Violation]:
    """Check all invariants of a memory that has just been opened.

    Args:
        project: Folder of the project.
        memory: The memory as this process sees it.
        acknowledged: Ids of operations whose recording has returned, by marker.
        notes: Notes that a person has written into documents.
        removed: Numbers of facts that a person's edits keep out of the documents.
    """
    with closing(Database(project / HOME / "obra.db")) as database:
        return list(_Examination(project / HOME, memory, database).violations(acknowledged, notes, removed))


def examine_work(memory: OrchestratorContextManager, acknowledged: Mapping[str, int]) -> Iterator[Violation]:
    """Check the invariants of the work items.

    Args:
        memory: The memory as this process sees it.
        acknowledged: Ids of items that were started, by title.
    """
    items = memory.state.items()
    titles = Counter(item.title for item in items)
    for title, count in titles.items():
        if count > 1:
            yield Violation(kind="duplicated", text=f"{count} items have the title {title}")
    found = {item.title: item for item in items}
    for title, number in acknowledged.items():
        if title not in found or found[title].id != number:
            yield Violation(kind="lost", text=f"work item {number}, {title}, was acknowledged, but is missing")
    events = memory.state.events()
    told = Counter(event.item for event in events if event.field in ("created", "status"))
    # A person's line only creates an item; the machine's items are started as well, which is a second event.
    by_person = {event.item for event in events if event.field == "created" and event.author is Author.PERSON}
    for item in items:
        if item.id not in by_person and told[item.id] < 2:
            yield Violation(kind="lost", text=f"{item.name} is incomplete: only {told[item.id]} of its changes exist")
    counted = sum(sum(by_status.values()) for by_status in memory.state.counts().values())
    if counted != len(items):
        yield Violation(kind="duplicated", text=f"the count of items is {counted}, but there are {len(items)}")


class _Examination:
    def __init__(self, home: Path, memory: OrchestratorContextManager, database: Database) -> None:
        self._home = home
        # First and only once: this access also does what is pending for a reader, before the files are read.
        self._working = memory.working_memory
        self._memory = memory
        self._database = database
        self._log = EventLog(database)
        self._ledger = Ledger(database)
        self._summaries = {summary.id: summary for summary in self._ledger.summaries()}

    def violations(
        self, acknowledged: Mapping[str, int], notes: Sequence[str], removed: Collection[int]
    ) -> Iterator[Violation]:
        fault = self._database.check()
        if fault:
            yield Violation(kind="restart", text=f"the database is damaged: {fault}")
        yield from self._in_log(acknowledged)
        for session in self._log.sessions():
            yield from self._in_one_place(session)
        yield from self._folders()
        for name in DocumentName:
            yield from _episodic_faults(self._home / "memory" / f"{name.value}.md", name)
        yield from self._versions()
        yield from self._expansions()
        yield from self._decisions(removed)
        yield from self._notes(notes)

    def _in_log(self, acknowledged: Mapping[str, int]) -> Iterator[Violation]:
        found: Counter[str] = Counter()
        for operation in self._operations:
            marker = str(operation.data.get("marker")) if isinstance(operation.data, dict) else ""
            if operation.type == WORK:
                continue
            found[marker] += 1
            if (operation.type, operation.data) != draft_for(marker):
                yield Violation(kind="lost", text=f"operation {operation.id} ({marker}) is not as recorded")
            if acknowledged.get(marker, operation.id) != operation.id:
                yield Violation(
                    kind="lost", text=f"{marker} was acknowledged as {acknowledged[marker]}, but is {operation.id}"
                )
        for marker in acknowledged.keys() - found.keys():
            yield Violation(kind="lost", text=f"{marker} was acknowledged, but is not in the event log")
        for marker, count in found.items():
            if count > 1:
                yield Violation(kind="duplicated", text=f"{marker} is in the event log {count} times")

    @cached_property
    def _operations(self) -> list[Operation]:
        return self._log.operations(OperationFilter())

    def _in_one_place(self, session: Session) -> Iterator[Violation]:
        path = self._document(session)
        name = f"session {session.id[:8]} ({session.status.value})"
        if not path.is_file():
            yield Violation(kind="document", text=f"{name} has no document {path.name}")
            return
        document = SessionDocument.parse(path.read_bytes().decode("utf-8", "surrogateescape"))
        operations = {op.id: op for op in self._operations if op.session == session.id}
        yield from self._session_document_faults(name, session, document, operations)
        places: dict[int, list[str]] = {number: [] for number in operations}
        if session.status is SessionStatus.ACTIVE:
            for operation in self._working.get_all_operations():
                places.setdefault(operation.id, []).append("working memory")
        for part in document.parts:
            if part.operation:
                places.setdefault(part.operation, []).append("the document")
        for summary in self._summaries.values():
            if summary.session == session.id and summary.level == 1:
                for number in self._covered(summary):
                    places.setdefault(number, []).append(f"S{self._root(summary).id}")
        for number, where in sorted(places.items()):
            if number not in operations:
                yield Violation(kind="document", text=f"{name} shows operation {number}, which is not its own")
            elif not where:
                yield Violation(kind="document", text=f"{name}: operation {number} is in no place")
            elif len(where) > 1:
                yield Violation(kind="duplicated", text=f"{name}: operation {number} is in {' and '.join(where)}")

    def _document(self, session: Session) -> Path:
        if session.status is SessionStatus.ARCHIVED:
            # By name: the project may have been copied to another folder.
            return self._home / "sessions" / "archive" / Path(session.archive or "none").name
        return self._home / "sessions" / f"session_{session.id}.md"

    def _session_document_faults(
        self, name: str, session: Session, document: SessionDocument, operations: Mapping[int, Operation]
    ) -> Iterator[Violation]:
        text = document.text()
        yield from _front_matter_faults(name, text, {"session": session.id})
        entries = [part.operation for part in document.parts if part.operation]
        if entries != sorted(set(entries)):
            yield Violation(kind="document", text=f"{name}: its entries are out of order or duplicated: {entries}")
        shown = [part.summary for part in document.parts if part.summary]
        standing = [s.id for s in self._ledger.summaries(session.id, standing=True)]
        if shown != standing:
            yield Violation(kind="document", text=f"{name} shows the summaries {shown} instead of {standing}")
        ended = session.status is SessionStatus.ARCHIVED
        closing = [part.block.title for part in document.parts if part.block.title in _CLOSING]
        if closing != (list(_CLOSING) if ended else []):
            yield Violation(kind="document", text=f"{name} closes with {closing}")
        for part in document.parts:
            block = part.block
            if part.operation in operations:
                own = Entry(operation=operations[part.operation], started=session.started.date(), max_chars=ENTRY_CHARS)
                if block.text.rstrip() != own.text.rstrip() and NOTE not in block.text:
                    yield Violation(kind="document", text=f"{name}: the entry of operation {part.operation} is damaged")
            elif part.summary in self._summaries:
                if not self._shows(block, self._summaries[part.summary], session):
                    yield Violation(kind="document", text=f"{name}: summary S{part.summary} is not as in the ledger")
            elif block.text.strip() and not _is_frame(block) and NOTE not in block.text:
                yield Violation(kind="document", text=f"{name}:{block.line}: a stray piece: {block.text[:60]!r}")

    def _shows(self, block: Block, summary: Summary, session: Session) -> bool:
        """Check a block against its summary in the ledger; in an active session, with the current states of the facts.

        A summary omits facts that a person removed.
        """
        if session.status is SessionStatus.ARCHIVED:
            return self._told(body_of(summary.text)).rstrip() in self._told(block.text)
        return self._ledger.with_states([summary.text])[0].rstrip() in block.text

    def _told(self, text: str) -> str:
        """Return a text with the present states of its facts, without the words of facts that a person removed."""
        text = self._ledger.with_states([text])[0]
        for fact in self._ledger.must_keeps(status=MustKeepStatus.REMOVED):
            text = text.replace(squeeze(fact.found or fact.text), "")
        return text

    def _covered(self, summary: Summary) -> list[int]:
        """Return the operations that a summary covers, through the level-1 summaries in it."""
        if summary.children:
            return [number for child in summary.children for number in self._covered(self._summaries[child])]
        numbers = self._numbers[summary.session]
        return numbers[bisect_left(numbers, summary.first_operation) : bisect_right(numbers, summary.last_operation)]

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """The operations of each session, in order."""
        numbers: dict[str, list[int]] = {}
        for operation in self._operations:
            numbers.setdefault(operation.session, []).append(operation.id)
        return numbers

    def _root(self, summary: Summary) -> Summary:
        while summary.parent:
            summary = self._summaries[summary.parent]
        return summary

    def _folders(self) -> Iterator[Violation]:
        sessions = self._log.sessions()
        for session in sessions:
            if session.status is SessionStatus.FLUSHING:
                yield Violation(kind="restart", text=f"session {session.id[:8]} is still being flushed")
        if sum(session.status is SessionStatus.ACTIVE for session in sessions) > 1:
            yield Violation(kind="restart", text="two sessions are running")
        wanted = {self._document(session) for session in sessions}
        found = set((self._home / "sessions").rglob("*.md"))
        for path in sorted(found - wanted):
            yield Violation(kind="document", text=f"{path.name} in {path.parent.name}/ belongs to no session")
        for path in sorted(self._home.rglob("*tmp~*")):
            yield Violation(kind="document", text=f"{path.name} was left behind in {path.parent.name}/")

    def _versions(self) -> Iterator[Violation]:
        folder = self._home / "memory" / "versions"
        store = FileDocumentStore(versions=folder, lock_file=self._home / "unused.lock")
        files = {path for path in folder.glob("*") if path.is_file()} if folder.is_dir() else set()
        names = [name.value for name in DocumentName] + [f"session_{s.id}" for s in self._log.sessions()]
        sequences: list[int] = []
        for name in names:
            for version in store.versions(name):
                files.discard(Path(version.path))
                sequences.append(version.sequence)
                if name in set(DocumentName):
                    yield from _episodic_faults(Path(version.path), DocumentName(name))
                else:
                    yield from _front_matter_faults(Path(version.path).name, store.read_version(version), {})
        if len(set(sequences)) != len(sequences):
            yield Violation(kind="document", text=f"versions share sequence numbers: {sorted(sequences)}")
        for path in sorted(files):
            yield Violation(kind="document", text=f"{path.name} in the folder of versions is not a version")

    def _expansions(self) -> Iterator[Violation]:
        by_id = {op.id: op for op in self._operations}
        for summary in self._summaries.values():
            numbers = self._covered(summary)
            originals = self._memory.expand(f"S{summary.id}").operations
            if [by_id[number] for number in numbers] != list(originals):
                yield Violation(kind="lost", text=f"S{summary.id} does not expand to the operations {numbers}")
            if summary.operation_count != len(numbers):
                said = f"S{summary.id} counts {summary.operation_count} operations, but covers {len(numbers)}"
                yield Violation(kind="document", text=said)

    def _decisions(self, removed: Collection[int]) -> Iterator[Violation]:
        ended = {s.id for s in self._log.sessions() if s.status is SessionStatus.ARCHIVED}
        owners = {op.id: op.session for op in self._operations}
        facts = self._ledger.must_keeps(kinds=[MustKeepKind.DECISION])
        judged = {fact.operation for fact in facts}
        for operation in self._operations:
            if operation.session in ended and operation.type == "decision" and operation.id not in judged:
                yield Violation(kind="document", text=f"no fact comes from the decision in operation {operation.id}")
        text = (self._home / "memory" / f"{DocumentName.DECISION_LOG.value}.md").read_text("utf-8", "surrogateescape")
        # a document that cannot hold all facts shows those of the highest weight
        heaviest = max((fact.weight for fact in facts), default=0.0)
        for fact in [fact for fact in facts if fact.weight == heaviest][-_SHOWN_DECISIONS:]:
            if owners.get(fact.operation) in ended and fact.id not in removed and f"(K{fact.id})" not in text:
                yield Violation(kind="document", text=f"decision K{fact.id} is not in the decision log")

    def _notes(self, notes: Sequence[str]) -> Iterator[Violation]:
        if notes:
            texts = "\n".join(path.read_text("utf-8", "surrogateescape") for path in self._home.rglob("*.md"))
            for note in notes:
                if f"{note}." not in texts:
                    yield Violation(kind="edit", text=f"{note} is missing from all documents and versions")


def _is_frame(block: Block) -> bool:
    """Check whether a session document's block belongs to its fixed structure, without an operation or a summary."""
    ours = (LOG, f"{LOG} (continued)", EARLIER, *_CLOSING)
    return block.front or block.level == 1 or block.title in ours


def _episodic_faults(path: Path, name: DocumentName) -> Iterator[Violation]:
    if not path.is_file():
        yield Violation(kind="document", text=f"{path.name} is missing")
        return
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    yield from _front_matter_faults(path.name, text, {"document": name.value})
    # The list of open items has another title if it contains work items.
    found = Counter(block.title.removeprefix("Prioritized ") for block in split_blocks(text) if block.level in (1, 2))
    blank = ProjectView(project="", updated=None, session="", size_tokens=1_000, operations=0, sessions=0)
    wanted = [block.title for block in split_blocks(render_document(name, blank)) if block.level in (1, 2)]
    for title in wanted:
        if found[title] != 1:
            yield Violation(kind="document", text=f"{path.name} has the section {title!r} {found[title]} times")
    if not text.endswith("\n"):
        yield Violation(kind="document", text=f"{path.name} does not end with a line break")


def _front_matter_faults(name: str, text: str, wanted: Mapping[str, str]) -> Iterator[Violation]:
    fault = front_matter_fault(text)
    if fault:
        yield Violation(kind="document", text=f"{name}:{fault[0]}: {fault[1]}")
        return
    front = yaml.safe_load(text.split("---", 2)[1])
    for key, value in wanted.items():
        if str(front.get(key)) != value:
            yield Violation(kind="document", text=f"{name}: its front matter says {key}: {front.get(key)}")

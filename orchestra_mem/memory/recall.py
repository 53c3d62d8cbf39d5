"""Look up originals: the operations of summaries and facts, the loss ledger, and the lines of passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from orchestra_mem.catalog_types import MemoryItem
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.identifiers import missing_identifiers
from orchestra_mem.core.search.chunking import Passage, find_passage, passages_of
from orchestra_mem.errors import NotFoundError
from orchestra_mem.memory.parts import MemoryParts
from orchestra_mem.search_types import Hit
from orchestra_mem.tiers.authorship import names_in
from orchestra_mem.types import DocumentName, MustKeep, Operation, OperationFilter, Summary
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkKind

_REFERENCE = re.compile(r"\s*(?:(?P<kind>S|K|op|O|#)\s*)?(?P<number>\d{1,18})\s*", re.IGNORECASE)
_ITEM = re.compile(rf"\s*(?:item|{'|'.join(WorkKind)})\s*#?(?P<number>\d{{1,18}})\s*", re.IGNORECASE)
_DOCUMENT = re.compile(r"(?P<name>[\w-][\w.-]*\.md)(?:[:#](?P<line>\d{1,9}))?")
_MEMORY_ITEM = re.compile(r"\s*(?:mem_\w+|M\d{1,18})\s*", re.IGNORECASE)
_AROUND = 2
_PASSAGES_AROUND = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A passage of a document with its neighbours under the same heading, each in document order."""

    document: Path
    before: tuple[Passage, ...]
    passage: Passage
    behind: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The result of expanding a reference: its operations as recorded, and the summary, fact, passage or item named.

    `around` holds up to two operations of the session before and after a single operation. `place` is a passage of a
    document with its neighbours, `item` a work item, `events` its changes, and `memory_item` a catalog item.
    """

    reference: str
    operations: tuple[Operation, ...]
    summary: Summary | None = None
    fact: MustKeep | None = None
    around: tuple[Operation, ...] = ()
    place: Excerpt | None = None
    item: WorkItem | None = None
    events: tuple[WorkEvent, ...] = ()
    memory_item: MemoryItem | None = None


def is_memory_item(reference: str | int) -> bool:
    """Check whether a reference names a catalog item: `mem_…` or `M12`."""
    return _MEMORY_ITEM.fullmatch(str(reference)) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Recall:
    """Looks up references in the event log, the ledger, the documents, the work items and the catalog. Stateless.

    The line number of a passage is valid until somebody saves the document.
    """

    parts: MemoryParts

    def expand(self, reference: str | int) -> Expansion:
        """Return the operations of a summary (`S12` or 12), a fact (`K7`) or an operation (`op 104`).

        `decision_log.md:41` returns the passage at that line and the operations that it names, `story 5` a work item,
        `M12` or `mem_…` a catalog item.

        Raises:
            NotFoundError: The reference names nothing.
        """
        if is_memory_item(reference):
            item = self.parts.agents.catalog.get(str(reference).strip())
            return Expansion(reference=item.id, operations=(), memory_item=item)
        match = _REFERENCE.fullmatch(str(reference))
        if match is None:
            return self._expand_place(str(reference)) or self._expand_item(reference)
        number, kind = int(match["number"]), (match["kind"] or "S").upper()
        if kind == "K":
            fact = self.parts.ledger.must_keep(number)
            # A fact that a person wrote comes from no operation.
            behind = (self.parts.log.operation(fact.operation),) if fact.operation else ()
            around = self._around(behind[0]) if behind else ()
            return Expansion(reference=f"K{number}", operations=behind, fact=fact, around=around)
        if kind in {"OP", "O", "#"}:
            operation = self.parts.log.operation(number)
            return Expansion(reference=f"op {number}", operations=(operation,), around=self._around(operation))
        summary = self.parts.ledger.summary(number)
        summary = replace(summary, text=self.parts.ledger.with_states([summary.text])[0])
        return Expansion(reference=f"S{number}", operations=tuple(self._covered(summary)), summary=summary)

    def _expand_place(self, reference: str) -> Expansion | None:
        """Expand a line (`decision_log.md:41`; default 1) to the passage there or next; None for other references."""
        match = _DOCUMENT.fullmatch(reference.strip())
        if match is None:
            return None
        path = self._path(match["name"])
        text = self.parts.store.read_shown(path) if path else None
        if path is None or text is None:
            raise NotFoundError(
                f"there is no document {match['name']!r}; `orchestra-mem status` shows where the documents are"
            )
        passages, line = [*passages_of(text)], int(match["line"] or 1)
        if not passages:
            raise NotFoundError(f"{match['name']} is empty")
        if line > (last := len(text.splitlines())):
            raise NotFoundError(f"there is no line {line:,} in {match['name']}; its last line is {last:,}")
        nearest = next((each for each in passages if each.end > line), passages[-1])  # that of a heading is below it
        number, heading = passages.index(nearest), nearest.heading
        before = [each for each in passages[max(0, number - _PASSAGES_AROUND) : number] if each.heading == heading]
        behind = [each for each in passages[number + 1 : number + 1 + _PASSAGES_AROUND] if each.heading == heading]
        names = names_in("\n".join((*heading[-1:], nearest.text)))
        facts = self.parts.ledger.must_keeps_by_id(names["K"])
        numbers = sorted({*names["op"], *(fact.operation for fact in facts if fact.operation)})
        # Filters, not `operation()`: a person's line may name an operation that does not exist.
        known = [self.parts.log.operations(OperationFilter(after=number - 1, through=number)) for number in numbers]
        place = Excerpt(document=path, before=tuple(before), passage=nearest, behind=tuple(behind))
        operations = tuple(chain.from_iterable(known))
        return Expansion(reference=f"{path.name}:{nearest.line}", operations=operations, place=place)

    def _expand_item(self, reference: str | int) -> Expansion:
        match = _ITEM.fullmatch(str(reference))
        if match is None:
            raise NotFoundError(
                f"{reference!r} is not a reference: use S12 for a summary, K7 for a fact, op104 for an operation, "
                "decision_log.md:41 for a line, story 5 for a work item, M12 for a catalog item"
            )
        item = self.parts.state.item(int(match["number"]))
        events = tuple(self.parts.state.events(item.id))
        numbers = sorted({event.operation for event in events if event.operation})
        operations = tuple(map(self.parts.log.operation, numbers))
        return Expansion(reference=f"{item.kind.value} {item.id}", operations=operations, item=item, events=events)

    def _around(self, operation: Operation) -> tuple[Operation, ...]:
        here = OperationFilter(session=operation.session)
        before = self.parts.log.operations(replace(here, through=operation.id - 1, limit=_AROUND))
        return (*before, *self.parts.log.operations(replace(here, after=operation.id, through=operation.id + _AROUND)))

    def _covered(self, summary: Summary) -> list[Operation]:
        return self.parts.log.operations(
            OperationFilter(session=summary.session, after=summary.first_operation - 1, through=summary.last_operation)
        )

    def losses(self, session: str | None = None, limit: int | None = None) -> list[Summary]:
        """Return summaries with the identifiers that each dropped, oldest first; with a `limit`, only the newest.

        Dropped identifiers are computed anew: a level-1 or session summary is compared with its operations, a
        higher-level summary with its children.
        """
        found = sorted(self.summaries(session), key=lambda summary: summary.id)
        if limit is not None:
            found = found[-limit:] if limit > 0 else []
        return [replace(summary, dropped=self._dropped(summary)) for summary in found]

    def summaries(self, session: str | None = None) -> list[Summary]:
        """Return all summaries, including those of entire sessions, without recomputing what each dropped."""
        whole = None if session is None else self.parts.log.session(session).id
        return [*self.parts.ledger.summaries(whole), *self.parts.ledger.level_zero_summaries(whole)]

    def _dropped(self, summary: Summary) -> tuple[str, ...]:
        if summary.document:  # computed when the summary was made; an improved text may contain some again
            return tuple(name for name in summary.dropped if name not in summary.text)
        if summary.children:
            source = "\n".join(self.parts.ledger.summary(child).text for child in summary.children)
        else:
            source = "\n".join(plain_text(operation) for operation in self._covered(summary))
        return missing_identifiers(source, summary.text)

    def hint(self, query: str) -> tuple[str, ...]:
        """Return a note that names `expand` if a query is nothing but a reference; search finds words, not numbers."""
        if any(map(str.isalpha, query)) and any(each.fullmatch(query) for each in (_REFERENCE, _ITEM, _MEMORY_ITEM)):
            with suppress(NotFoundError):
                reference = self.expand(query).reference
                return (f"`expand {reference.replace(' ', '')}` shows what {query.strip()} names",)
        return ()

    # Lines of documents

    def lines(self, hits: Sequence[Hit]) -> list[int]:
        """Return the line of each hit, counted from 1; 0 for a hit that is in no document or whose text has changed."""
        passages: dict[str, list[Passage]] = {}
        found = []
        for hit in hits:
            name = hit.chunk.source
            if name not in passages:
                path = self._path(name)
                text = self.parts.store.read_shown(path) if path else None
                passages[name] = [*passages_of(text)] if text else []
            passage = find_passage(passages[name], hit.chunk)
            found.append(passage.line if passage else 0)
        return found

    def _path(self, name: str) -> Path | None:
        """Return the path of a document; None if it does not exist or the name is a reference such as `op 12`."""
        if not _DOCUMENT.fullmatch(name) or not name.endswith(".md"):
            return None
        stem = name.removesuffix(".md")
        if stem in {each.value for each in DocumentName}:
            return self.parts.episodic.path(DocumentName(stem))
        sessions, state = self.parts.session.place.folder, self.parts.store.state
        return next((path for path in (sessions / name, sessions / "archive" / name) if state(path)), None)

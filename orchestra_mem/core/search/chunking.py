"""Cut documents, operations, summaries, facts and work items into chunks, which are indexed and shown as one piece.

A document is cut by sections and paragraphs, each list item for itself. Long passages are cut where a hash of their own
sentences says so: an edit changes the chunks that it touches and none behind them, and no key has a line number in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.catalog_types import CHUNK_PATTERN, MAX_PRIORITY, MemoryItem
from orchestra_mem.core.documents.entries import entry_title, plain_text
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.text import digest_of, split_sentences
from orchestra_mem.search_types import Chunk, Tier
from orchestra_mem.types import Json, MustKeep, Operation, Summary
from orchestra_mem.work_types import WorkItem

WHOLE_CHARS = 1_200
"""A paragraph, an operation up to this size is one chunk: some 300 tokens, what embedding models are made for."""

_NEAR_CHARS = 350
"""A cut is made behind a sentence that is the least of all within this distance: chunks have about twice this size."""

_MAX_CHARS = 2_400
"""Where the content makes no cut, as in a thousand lines that are the same."""

_MAX_PARTS = 1 << 12
_CRITICAL_IMPORTANCE = 0.9
_SUMMARY_IMPORTANCE = 0.6
_FACT_IMPORTANCE = 0.8
_ITEM_IMPORTANCE = 0.6
_ITEM_FIELDS = ("item", "item_id", "task_id", "story_id", "epic_id", "milestone_id")

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_TOP_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_WORDY = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPlace:
    """What all chunks of a document have in common; `name` is the document's group and the source that people see."""

    name: str
    tier: Tier
    kind: str
    session: str | None = None
    time: datetime | None = None
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document with the headings above it, and the line that it begins in, from 1."""

    heading: tuple[str, ...]
    text: str
    line: int

    @property
    def end(self) -> int:
        """The line behind its last one."""
        return self.line + self.text.count("\n") + 1


def chunk_operation(operation: Operation, tier: Tier) -> tuple[Chunk, ...]:
    """Make the chunks of an operation: one, or several where it is long; none where it says nothing."""
    title = entry_title(operation.type, operation.data)
    text = plain_text(operation).strip()
    parts = _parts(text) if text else [title]
    return tuple(
        Chunk(
            key=digest_of("op", str(operation.id), str(number), title, part),
            tier=tier,
            source=f"op {operation.id}",
            text=part,
            kind=operation.type,
            group=operation.session,
            position=operation.id * _MAX_PARTS + number,
            title=title if text else "",
            session=operation.session,
            agent=operation.agent,
            item=_item_of(operation.data),
            pattern=_pattern_of(operation.data),
            time=operation.timestamp,
            operation=operation.id,
            importance=_CRITICAL_IMPORTANCE if operation.critical else 0.5,
        )
        for number, part in enumerate(parts[:_MAX_PARTS])
    )


def chunk_stored(operation: Operation, group: str) -> tuple[Chunk, ...]:
    """Make the chunks of what a program has stored: none where it says `deleted`."""
    data = operation.data if isinstance(operation.data, dict) else {}
    pattern = stored_pattern(data.get("namespace"))
    chunks = () if data.get("deleted") else chunk_operation(operation, Tier.SEMANTIC)
    return tuple(replace(chunk, group=group, pattern=pattern) for chunk in chunks)


def stored_pattern(namespace: object) -> str:
    """Name the pattern that chunks of one namespace of stored items have: by it they are found without all others."""
    return f"stored {json.dumps(namespace)}"


def chunk_summary(summary: Summary) -> tuple[Chunk, ...]:
    """Make the chunks of a summary, cut as a document is."""
    place = DocumentPlace(
        name=f"S{summary.id}",
        tier=Tier.SESSION,
        kind="summary",
        session=summary.session,
        time=summary.until,
        importance=_SUMMARY_IMPORTANCE,
    )
    return chunk_document(summary.text, place)


def chunk_fact(fact: MustKeep) -> Chunk:
    """Make the chunk of a must-keep that has its number."""
    return Chunk(
        key=digest_of("fact", str(fact.id), fact.text),
        tier=Tier.SEMANTIC,
        source=f"K{fact.id}",
        text=fact.text,
        kind=fact.kind.value,
        group="facts",
        position=fact.id,
        title=fact.kind.value.capitalize(),
        time=fact.timestamp,
        operation=fact.operation,
        importance=_FACT_IMPORTANCE,
    )


def chunk_item(item: MemoryItem) -> Chunk:
    """Make the chunk of an item of the catalog."""
    return Chunk(
        key=digest_of("item", item.id, item.summary, item.content),
        tier=Tier.SEMANTIC,
        source=item.id,
        text=item.content[:_MAX_CHARS],
        kind=item.type.value,
        group=f"M{item.number}",
        position=0,
        title=item.type.value.capitalize(),
        agent=item.ci_source,
        pattern=CHUNK_PATTERN,
        time=item.timestamp,
        operation=item.operations[0] if len(item.operations) == 1 else 0,
        importance=item.priority / MAX_PRIORITY,
    )


def chunk_work_item(item: WorkItem, parent: WorkItem | None, notes: Sequence[str]) -> Chunk:
    """Make the chunk of a work item: its name, how it stands, what is to be done, and what was noted of it."""
    stands = f"{item.status.value}, {item.assignee}" if item.assignee else item.status.value
    text = "\n".join(filter(None, (stands, item.description, *item.acceptance, *notes)))
    heading = (parent.name,) if parent else ()
    return Chunk(
        key=digest_of("work", str(item.id), *heading, item.name, text),
        tier=Tier.SEMANTIC,
        source=f"{item.kind.value} {item.id}",
        text=text,
        kind=item.kind.value,
        group=f"work {item.id}",
        position=0,
        heading=heading,
        title=item.name,
        agent=item.assignee,
        item=item.id,
        time=item.changed,
        importance=_ITEM_IMPORTANCE,
    )


def chunk_document(text: str, place: DocumentPlace) -> tuple[Chunk, ...]:
    """Make the chunks of a markdown document: paragraphs and list items under their headings, no front matter."""
    return tuple(
        Chunk(
            key=key,
            tier=place.tier,
            source=place.name,
            text=piece.text,
            kind=place.kind,
            group=place.name,
            position=number,
            heading=piece.heading,
            session=place.session,
            time=place.time,
            importance=place.importance,
        )
        for number, (key, piece) in enumerate(_keyed(text, place.name))
    )


def find_passage(passages: Sequence[Passage], chunk: Chunk) -> Passage | None:
    """Find a chunk of a document in the document as it stands now; None where it is not there any more.

    More headings may stand above it than when it was cut, as where a part of the document alone was.
    """
    depth = len(chunk.heading)
    likes = [
        each
        for each in passages
        if each.text == chunk.text and each.heading[len(each.heading) - depth :] == chunk.heading
    ]
    for again, passage in enumerate(likes):
        if digest_of("document", chunk.source, str(again), *chunk.heading, chunk.text) == chunk.key:
            return passage
    return likes[0] if likes else None


def _keyed(text: str, name: str) -> Iterator[tuple[str, Passage]]:
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    for piece in passages_of(text):
        # The same again under the same headings is told apart by its number among its likes.
        again = seen[piece.heading, piece.text]
        seen[piece.heading, piece.text] += 1
        yield digest_of("document", name, str(again), *piece.heading, piece.text), piece


def _item_of(data: Json) -> int | None:
    """The number of the work item that an operation is about: the first that it names."""
    if isinstance(data, dict):
        for name in _ITEM_FIELDS:
            value = data.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


def _pattern_of(data: Json) -> str | None:
    pattern = data.get("pattern") if isinstance(data, dict) else None
    return pattern if isinstance(pattern, str) else None


def passages_of(text: str) -> Iterator[Passage]:
    """Give the passages of a document in order, each of which makes a chunk."""
    path: list[tuple[int, str]] = []
    for block in split_blocks(text):
        if block.front:
            continue
        if block.level:
            path = [(level, title) for level, title in path if level < block.level]
            path.append((block.level, block.title))
        heading = tuple(title for _, title in path)
        body = block.text[len(block.heading) :]
        line = block.line + block.heading.count("\n")
        passages = [
            Passage(heading, part, line + at)
            for at, passage in _passages(body)
            if _WORDY.search(passage)
            for part in _parts(passage)
        ]
        if passages:
            yield from passages
        elif _WORDY.search(block.title):  # a heading may be all there is to find
            yield Passage(heading[:-1], block.title, block.line)


def _passages(body: str) -> Iterator[tuple[int, str]]:
    """Cut a section's body into paragraphs and list items, each with the number of lines before it.

    Fenced code is one passage; what is indented belongs to the item above it.
    """
    lines: list[str] = []
    start = 0
    fence = ""
    for number, line in enumerate(body.split("\n")):
        mark = _FENCE.match(line)
        inside = bool(fence)
        if mark and not fence:
            fence = mark["mark"]
        elif mark and mark["mark"].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if not inside and lines and (not line.strip() or _TOP_ITEM.match(line) or (mark and fence)):
            yield start, "\n".join(lines).strip("\n")
            lines = []
        if line.strip() or inside:
            start = start if lines else number
            lines.append(line.rstrip())
    if lines:
        yield start, "\n".join(lines).strip("\n")


def _parts(text: str) -> list[str]:
    """Cut a passage that is too long; the parts hold every word of it, in order."""
    if len(text) <= WHOLE_CHARS:
        return [text]
    sentences = split_sentences(text)
    parts: list[str] = []
    begin = 0
    for end in [*_cuts(sentences), len(sentences)]:
        if end > begin:
            parts.append("\n".join(sentences[begin:end]))
            begin = end
    return parts


def _cuts(sentences: Sequence[str]) -> Iterator[int]:
    """Where to cut: behind each sentence whose hash is the least within `_NEAR_CHARS` on both sides.

    So a cut depends on what stands around it alone (local minima, as Bjørner and others cut files for replication,
    2010), and two cuts are at least so far apart.
    """
    hashes = [hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()[:8] for sentence in sentences]
    places = [0]
    for sentence in sentences:
        places.append(places[-1] + len(sentence) + 1)
    last = 0
    for at in range(len(sentences)):
        if places[at + 1] - places[last] > _MAX_CHARS and at > last:
            yield at
            last = at
        if _is_least(at, hashes, places):
            yield at + 1
            last = at + 1


def _is_least(at: int, hashes: Sequence[bytes], places: Sequence[int]) -> bool:
    """Tell whether a sentence's hash is under all before it and not over any behind it that are near."""
    here = at - 1
    while here >= 0 and places[at] - places[here] <= _NEAR_CHARS:
        if hashes[here] <= hashes[at]:
            return False
        here -= 1
    here = at + 1
    while here < len(hashes) and places[here] - places[at] <= _NEAR_CHARS:
        if hashes[here] < hashes[at]:
            return False
        here += 1
    return True

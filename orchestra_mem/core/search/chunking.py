"""Split documents, operations, summaries, facts and work items into chunks, the units of indexing and display.

A document is split into sections, paragraphs and list items. Long passages are split at sentences chosen by a hash
(content-defined chunking), and keys hold no line numbers, so that an edit changes only the chunks near it.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from orchestra_mem.catalog_types import CHUNK_PATTERN, MAX_PRIORITY, MemoryItem
from orchestra_mem.core.documents.entries import entry_title, plain_text
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.text import digest_of, split_sentences
from orchestra_mem.search_types import Chunk, Tier
from orchestra_mem.types import Json, MustKeep, Operation, Summary
from orchestra_mem.work_types import WorkItem

WHOLE_CHARS = 1_200
"""Maximum size of a paragraph or operation that stays one chunk: about 300 tokens, which suits embedding models."""

_NEAR_CHARS = 350
"""A cut follows a sentence whose hash is the least within this distance, so chunks have about twice this size."""

_MAX_CHARS = 2_400
"""Maximum size where the hashes yield no cut, as in a thousand equal lines."""

_MAX_PARTS = 1 << 12
_SEARCHED_CHARS = 500_000  # of an operation: two thirds are its beginning; longer logs would take most of the index
_CRITICAL_IMPORTANCE = 0.9
_SUMMARY_IMPORTANCE = 0.6
_FACT_IMPORTANCE = 0.8
_ITEM_IMPORTANCE = 0.6
_ITEM_FIELDS = ("item", "item_id", "task_id", "story_id", "epic_id", "milestone_id")

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}+(?!.*`)|~{3,})")
_TOP_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_WORDY = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document with the headings above it.

    `line` is the number of its first line, from 1; `end` is the number of the first line after the passage.
    """

    heading: tuple[str, ...]
    text: str
    line: int
    end: int


def chunk_operation(operation: Operation, tier: Tier) -> tuple[Chunk, ...]:
    """Return the chunks of an operation: several for a long text, a single one with the title for an empty text."""
    title = entry_title(operation.type, operation.data)
    text = plain_text(operation, max_chars=_SEARCHED_CHARS).strip()
    parts = [part for part, _, _ in _parts(text)] if text else [title]
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
    """Return the chunks of an item that a program has stored, or none if the operation marks it as `deleted`."""
    data = operation.data if isinstance(operation.data, dict) else {}
    pattern = stored_pattern(data.get("namespace"))
    chunks = () if data.get("deleted") else chunk_operation(operation, Tier.SEMANTIC)
    return tuple(replace(chunk, group=group, pattern=pattern) for chunk in chunks)


def stored_pattern(namespace: object) -> str:
    """Return the `pattern` that marks the chunks of a namespace's stored items, so that a search can filter by it."""
    return f"stored {json.dumps(namespace)}"


def chunk_summary(summary: Summary) -> tuple[Chunk, ...]:
    """Return the chunks of a summary, which is split like a document."""
    return chunk_document(
        summary.text, f"S{summary.id}", tier=Tier.SESSION, kind="summary", session=summary.session,
        time=summary.until, importance=_SUMMARY_IMPORTANCE,
    )  # fmt: skip


def chunk_fact(fact: MustKeep) -> Chunk:
    """Return the chunk of a fact. The fact must be stored, because its id names the chunk."""
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
    """Return the chunk of a catalog item; content beyond `_MAX_CHARS` is left out."""
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
    """Return the chunk of a work item: its name, status, assignee, description, acceptance criteria and notes."""
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


def chunk_document(
    text: str, name: str, *, tier: Tier, kind: str, session: str | None = None, time: datetime | None = None,
    importance: float = 0.5,
) -> tuple[Chunk, ...]:  # fmt: skip
    """Return the chunks of a markdown document: paragraphs and list items with their headings, no front matter.

    `name` is both their group and their displayed source; they share the other fields as well.
    """
    return tuple(
        Chunk(
            key=key,
            tier=tier,
            source=name,
            text=piece.text,
            kind=kind,
            group=name,
            position=number,
            heading=piece.heading,
            session=session,
            time=time,
            importance=importance,
        )
        for number, (key, piece) in enumerate(_keyed(text, name))
    )


def find_passage(passages: Sequence[Passage], chunk: Chunk) -> Passage | None:
    """Return the passage of the current document that a chunk holds; None if the text or its heading has changed.

    The passage may have more headings than the chunk, because the chunk may come from a part of the document.
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
        # Equal passages under the same headings are numbered, so that their keys differ.
        again = seen[piece.heading, piece.text]
        seen[piece.heading, piece.text] += 1
        yield digest_of("document", name, str(again), *piece.heading, piece.text), piece


def _item_of(data: Json) -> int | None:
    """Return the id of the work item that an operation is about: the first field of `_ITEM_FIELDS` with a number."""
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
    """Yield the passages of a document in order; each becomes one chunk."""
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
            Passage(heading, part, line + at + first, line + at + end)
            for at, passage in _passages(body)
            if _WORDY.search(passage)
            for part, first, end in _parts(passage)
        ]
        if passages:
            yield from passages
        elif _WORDY.search(block.title):  # a section without text is found by its title
            yield Passage(heading[:-1], block.title, block.line, block.line + 1)


def _passages(body: str) -> Iterator[tuple[int, str]]:
    """Split a section's body into paragraphs and top-level list items, each with the number of lines before it.

    Fenced code is one passage. An indented list item belongs to the item above it.
    """
    lines: list[str] = []
    start = 0
    fence = ""
    for number, line in enumerate(map(str.rstrip, body.split("\n"))):
        mark = _FENCE.match(line)
        inside = bool(fence)
        if mark and not fence:
            fence = mark["mark"]
        elif mark and mark["mark"].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if not inside and lines and (not line or _TOP_ITEM.match(line) or (mark and fence)):
            yield start, "\n".join(lines).strip("\n")
            lines = []
        if line or inside:
            start = start if lines else number
            lines.append(line)
    if lines:
        yield start, "\n".join(lines).strip("\n")


def _parts(text: str) -> list[tuple[str, int, int]]:
    """Split a passage longer than `WHOLE_CHARS`; together the parts hold all its words, in order.

    Each part comes with the numbers, from 0, of its first line and of the first line after the part.
    """
    if len(text) <= WHOLE_CHARS:
        return [(text, 0, text.count("\n") + 1)]
    sentences = split_sentences(text)
    lines = [*_lines(text, sentences)]
    parts = []
    begin = 0
    for end in [*_cuts(sentences), len(sentences)]:
        if end > begin:
            parts.append(("\n".join(sentences[begin:end]), lines[begin][0], lines[end - 1][1] + 1))
            begin = end
    return parts


def _lines(text: str, sentences: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of each sentence's first and last line in the text, from 0."""
    line = at = 0
    for sentence in sentences:
        begin = text.index(sentence, at)
        first = line + text.count("\n", at, begin)
        line, at = first + sentence.count("\n"), begin + len(sentence)
        yield first, line


def _cuts(sentences: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of cuts: after each sentence whose hash is the least within `_NEAR_CHARS` on both sides.

    Such a cut depends only on the text around it, and two cuts are at least `_NEAR_CHARS` apart (local minima, as in
    Bjørner and others, 2010, on file replication). Text without such a cut is cut before it exceeds `_MAX_CHARS`.
    """
    hashes = [hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()[:8] for sentence in sentences]
    places = [*accumulate((len(sentence) + 1 for sentence in sentences), initial=0)]
    last = 0
    for at in range(len(sentences)):
        if places[at + 1] - places[last] > _MAX_CHARS and at > last:
            yield at
            last = at
        if _is_least(at, hashes, places):
            yield at + 1
            last = at + 1


def _is_least(at: int, hashes: Sequence[bytes], places: Sequence[int]) -> bool:
    """Check whether a sentence's hash is below those within `_NEAR_CHARS` before it, and not above any after it."""
    first = bisect_left(places, places[at] - _NEAR_CHARS, 0, at)
    end = bisect_right(places, places[at] + _NEAR_CHARS, at, len(hashes))
    return hashes[at] <= min(hashes[at:end]) and all(hashes[at] < before for before in hashes[first:at])

"""What a context is made from: the memory as it is at one moment, and the items that may enter.

A snapshot is made once, and handed down to whatever answers a caller.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from orchestra_mem.core.context.as_read import entry_as_read, section_as_read
from orchestra_mem.core.context.items import Item, Part, as_form, operation_key
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.episodic import brief
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.summaries.kept import body_of, kept_part
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.tiers.shared_decisions import Told
from orchestra_mem.types import DocumentName, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The memory at one moment.

    `entries` are those of working memory. `documents` tells for each document, by the name that people know it by,
    whether it has changed. `version` differs after every change of the memory; None where a document was saved so
    lately that it is not sure. `is_whole` is false where it is what some agents may see.
    """

    session: Session | None
    entries: tuple[Entry, ...]
    documents: Mapping[str, object]
    version: Hashable
    is_whole: bool = True

    @property
    def session_id(self) -> str | None:
        """The session under way."""
        return self.session.id if self.session else None

    def within(self, where: SearchFilter) -> Snapshot:
        """Leave out what a strict search does not look at: others' operations, the session document, the documents."""
        if not where.strict or where.readable is None:
            return self
        entries = tuple(entry for entry in self.entries if entry.operation.agent in where.readable)
        return replace(self, session=None, entries=entries, documents={}, is_whole=False)


# What an operation that holds a decision, a rule, a role or an open item goes before: any other.
_FACTS_FIRST = 1e12
_SHORT_LINES = 8
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


def operation_item(entry: Entry, *, in_turn: bool = False, holds_facts: bool = False) -> Item:
    """Make an item of an operation in working memory; one of the last turns of a talk is pinned."""
    return Item(
        key=operation_key(entry.operation.id),
        part=Part.OPERATIONS,
        forms=tuple(map(shown_text, entry_as_read(entry.text))),
        priority=entry.operation.id + _FACTS_FIRST * holds_facts,
        pinned=in_turn,
        pinned_for="of the last turns",
        source="working memory",
    )


def document_items(name: DocumentName, part: Part, blocks: Sequence[Block]) -> list[Item]:
    """Make items of a document's sections; one that says nothing is left out."""
    items: list[Item] = []
    for position, block in enumerate(blocks):
        forms = _section_forms(block.text)
        if forms:
            # Of decisions the newest, which stand last, matter most; in the other documents what stands first.
            priority = position if block.level == 3 and part is Part.DECISIONS else -position
            key = f"{name.value}/{block.title or 'text'}"
            items.append(_item(key, part, forms, priority, block, f"{name.value}.md:{block.line}"))
    return named_apart(items)


def shared_items(told: Sequence[Told]) -> list[Item]:
    """Make an item a line of what projects share, the newest first in importance; what does not hold here says so."""
    items: list[Item] = []
    for position, (shared, own) in enumerate(told):
        by = f" (from {shared.project})" if shared.project else ""
        line = f"- {shared.text}{by}"
        if own is not None:
            line = f'- Not here: "{brief(shared.text)}"{by}; this project holds: "{brief(own.text)}" (K{own.id})'
        number = float(shared.number[1:] or len(told) + position)
        items.append(
            Item(
                key=f"shared {shared.number or position + 1}", part=Part.SHARED, forms=(shown_text(line),),
                priority=number, pinned=shared.pinned, source=f"shared log:{shared.line}",
            )
        )  # fmt: skip
    return named_apart(items)


def session_items(document: SessionDocument, border: int) -> list[Item]:
    """Make items of a session's document: its entries up to an operation, its summaries, what people have written."""
    items: list[Item] = []
    for position, part in enumerate(document.parts):
        block = part.block
        if block.front or part.operation > border:
            continue
        if part.operation:
            key = operation_key(part.operation)
            forms = tuple(map(shown_text, entry_as_read(block.text)))
        elif part.summary:
            key, forms = f"summary {part.summary}", _summary_forms(block.text)
        else:
            key, forms = f"session/{block.title or 'text'}", _section_forms(block.text)
        if forms:
            items.append(_item(key, Part.SESSION, forms, position, block, f"session document:{block.line}"))
    return named_apart(items)


def _item(key: str, part: Part, forms: tuple[str, ...], priority: int, block: Block, source: str) -> Item:
    return Item(key=key, part=part, forms=forms, priority=float(priority), pinned=block.pinned, source=source)


def named_apart(items: Sequence[Item]) -> list[Item]:
    """Number the keys that come again: headings may repeat, keys may not."""
    seen: dict[str, int] = {}
    result: list[Item] = []
    for item in items:
        seen[item.key] = seen.get(item.key, 0) + 1
        result.append(item if seen[item.key] == 1 else replace(item, key=f"{item.key} ({seen[item.key]})"))
    return result


@lru_cache(maxsize=256)
def _section_forms(text: str) -> tuple[str, ...]:
    """A section in a short form (heading and last lines, where the newest stand), a middle one, and in full."""
    full = shown_text(section_as_read(text))
    lines = full.splitlines(keepends=True)
    if len(lines) <= _SHORT_LINES * 2:
        return (full,) if full else ()
    forms = []
    for count in (_SHORT_LINES, len(lines) // 2):
        told = f"*({len(lines) - 1 - count:,} earlier lines are left out here)*\n"
        forms.append(shown_text(f"{lines[0]}{told}{''.join(lines[-count:])}"))
    return (*forms, full)


@lru_cache(maxsize=128)
def _summary_forms(text: str) -> tuple[str, ...]:
    """A summary as its heading, with its must-keeps, and in full."""
    full = shown_text(text)
    heading, _, rest = full.partition("\n")
    kept = kept_part(rest)
    forms = [shown_text(heading)]
    if kept:
        forms.append(shown_text(f"{heading}\n\n{kept}"))
    if body_of(rest).strip():
        forms.append(full)
    return tuple(dict.fromkeys(forms))


def shown_text(text: str) -> str:
    """Give a text as a context shows it; what is no character, as in a file that is not UTF-8, is shown as one."""
    return as_form(text if text.isascii() else _NO_CHARACTER.sub("\ufffd", text))

"""The input of a context: a snapshot of the memory, and the items made from it.

A snapshot is taken once per call and passed down to all functions that answer the call.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from orchestra_mem.core.context.as_read import entry_as_read, section_as_read
from orchestra_mem.core.context.items import Item, Part, as_form, operation_key
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.episodic import brief, in_turns
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.owned_lines import SECTIONS
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.summaries.kept import body_of, kept_part
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.tiers.shared_decisions import SHARED_LOG, DecisionHere
from orchestra_mem.types import DocumentName, MustKeep, MustKeepKind, MustKeepStatus, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The memory at one moment.

    `entries` are the contents of working memory. `documents` maps the displayed name of each document to a state that
    changes with the file. `version` changes with every change of the memory; it is None if a document was saved so
    recently that another save could go unnoticed. `is_whole` is false if a strict filter hides parts of the memory.
    """

    session: Session | None
    entries: tuple[Entry, ...]
    documents: Mapping[str, object]
    version: Hashable
    is_whole: bool = True

    @property
    def session_id(self) -> str | None:
        """The id of the session under way; None if there is none."""
        return self.session.id if self.session else None

    def within(self, where: SearchFilter) -> Snapshot:
        """Apply a filter. A strict one removes other agents' operations and all documents; others change nothing."""
        if not where.strict or where.readable is None:
            return self
        entries = tuple(entry for entry in self.entries if entry.operation.agent in where.readable)
        return replace(self, session=None, entries=entries, documents={}, is_whole=False)


PART_OF_DOCUMENT = {
    DocumentName.PROJECT_STATE: Part.PROJECT_STATE,
    DocumentName.WORK_PLAN: Part.WORK_PLAN,
    DocumentName.DECISION_LOG: Part.DECISIONS,
}
"""The part of a context that shows each document."""
# Priority bonus that puts operations with a decision, rule, role or open item before all others.
_FACTS_FIRST = 1e12
# Least lines of a shortened section: one line of a list of facts makes sense alone, one of another text does not.
_LEAST_FACT_LINES, _LEAST_LINES = 1, 8
_MOST_FORMS = 60
# Sections that get room after what holds in all others: what is done, and what was found out.
_SHOWN_LATER = (MustKeepKind.COMPLETION, MustKeepKind.INSIGHT)
FACT_NUMBER = re.compile(r"\(K(\d{1,18})\)")
_FINISHED = re.compile(r"\s*[-*+] \[(?:[xX]\]|[ ]\] ~~)")  # a work item's line
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


def operation_item(entry: Entry, whole_from: int = 0, holding: Container[int] = ()) -> Item:
    """Make an item of an operation, pinned from `whole_from` (0: never), before others if it is in `holding`."""
    number = entry.operation.id
    return Item(
        key=operation_key(number), part=Part.OPERATIONS, forms=tuple(map(shown_text, entry_as_read(entry.text))),
        valid=int(number in holding), priority=number + _FACTS_FIRST * (number in holding),
        pinned=0 < whole_from <= number,
        pinned_for="part of the last turns", source="working memory",
    )  # fmt: skip


def document_items(name: DocumentName, part: Part, blocks: Sequence[Block], weights: Mapping[str, float]) -> list[Item]:
    """Make an item of each section of a document, except for sections without content.

    A shortened section keeps the lines with the weightiest facts, of equal ones the last; `weights` are those of the
    facts, by number, below 0 for facts that no longer hold.
    """
    items: list[Item] = []
    priorities = _entry_priorities(blocks) if part is Part.DECISIONS else {}
    for position, block in enumerate(blocks):
        kind = SECTIONS[name].get(block.title.lower())
        forms = _section_forms(block.text, weights, _LEAST_FACT_LINES if kind else _LEAST_LINES)
        if forms:
            priority = priorities.get(position, -position)
            key = f"{name.value}/{block.title or 'text'}"
            item = _item(key, part, tuple(text for text, _ in forms), priority, block, f"{name.value}.md:{block.line}")
            valid = sum(holds for _, holds in forms)
            is_later = kind in _SHOWN_LATER or block.title.lower() == "statistics"
            item = replace(item, valid=0 if is_later else None if valid == len(forms) else valid)
            is_rules = kind is MustKeepKind.CONSTRAINT and not item.pinned
            items.append(replace(item, pinned=True, pinned_for="rules") if is_rules else item)
    return named_apart(items)


def _entry_priorities(blocks: Sequence[Block]) -> dict[int, int]:
    """Return the priorities of a decision log's entries by position.

    In turn, the newest decision, by its number, and the last entry of the log, where people write, come first. An entry
    without a number is as new as the one above it.
    """
    entries = [position for position, block in enumerate(blocks) if block.level == 3]
    ages, number = {}, 0
    for position in entries:
        number = int((FACT_NUMBER.findall(blocks[position].title) or [number])[-1])
        ages[position] = number, position
    order = in_turns(sorted(entries, key=ages.__getitem__, reverse=True), reversed(entries))
    return {position: len(blocks) - rank for rank, position in enumerate(order)}


def shared_items(told: Sequence[DecisionHere]) -> list[Item]:
    """Make an item of each shared decision, the newest most important; mark those that the project or others revoke."""
    items: list[Item] = []
    sources = [f" (from {shared.project})" if shared.project else "" for shared, _ in told]
    others = {shared.number: f'"{brief(shared.text)}"{by}' for (shared, _), by in zip(told, sources, strict=True)}
    for position, ((shared, own), by) in enumerate(zip(told, sources, strict=True)):
        line = f"- {shared.text}{by}"
        if (later := shared.perhaps_superseded_by) and later in others:
            line += f"; perhaps superseded by {others[later]}"
        if own is not None:
            line = f'- Not here: "{brief(shared.text)}"{by}; in this project: "{brief(own.text)}" (K{own.id})'
        number = float(shared.number[1:] or len(told) + position)
        items.append(
            Item(
                key=f"shared {shared.number or position + 1}", part=Part.SHARED, forms=(shown_text(line),),
                priority=number, pinned=shared.pinned, source=f"shared log:{shared.line}",
            )
        )  # fmt: skip
    return named_apart(items)


def session_items(document: SessionDocument, border: int, unlisted: Container[int] = ()) -> list[Item]:
    """Make items of a session document: entries up to `border`, `unlisted` ones first, summaries, people's sections."""
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
            key = f"session/{block.title or 'text'}"
            forms = tuple(text for text, _ in _section_forms(block.text, {}, _LEAST_LINES))
        if forms:
            priority = position + _FACTS_FIRST * (part.operation in unlisted)
            items.append(_item(key, Part.SESSION, forms, priority, block, f"session document:{block.line}"))
    return named_apart(items)


def _item(key: str, part: Part, forms: tuple[str, ...], priority: float, block: Block, source: str) -> Item:
    return Item(key=key, part=part, forms=forms, priority=priority, pinned=block.pinned, source=source)


def named_apart(items: Sequence[Item]) -> list[Item]:
    """Make keys unique by numbering repeats: headings may repeat, keys may not."""
    seen: dict[str, int] = {}
    result: list[Item] = []
    for item in items:
        seen[item.key] = seen.get(item.key, 0) + 1
        result.append(item if seen[item.key] == 1 else replace(item, key=f"{item.key} ({seen[item.key]})"))
    return result


def _section_forms(text: str, weights: Mapping[str, float], least: int) -> list[tuple[str, bool]]:
    """Return a section's forms from the shortest to the full text, each with whether all that it shows still holds.

    Shortened, a section has its heading and `least` or more lines, the weightiest and newest. One of fewer than twice
    as many lines has only its full text, which counts as holding if any of its lines does.
    """
    full = shown_text(section_as_read(text))
    if not full:
        return []
    heading, *lines = [line for line in full.splitlines(keepends=True) if line.strip()]
    weight = [_line_weight(line, weights) for line in lines]
    ranked = sorted(range(len(lines)), key=lambda number: (-weight[number], -number))
    holding = sum(each >= 0 for each in weight) if _line_weight(heading, weights) >= 0 else 0
    forms: list[tuple[str, bool]] = []
    for count in range(least, len(lines) if len(lines) >= 2 * least else 0, 1 + len(lines) // _MOST_FORMS):
        told = f"*({len(lines) - count:,} other lines are left out here)*\n"
        form = as_form(f"{heading}{told}{''.join(map(lines.__getitem__, sorted(ranked[:count])))}")
        if len(form) < len(full):
            forms.append((form, count <= holding))
    full_holds = holding == len(lines) if forms or not lines else holding > 0
    return [*forms, (full, full_holds)]


def _line_weight(line: str, weights: Mapping[str, float]) -> float:
    """Return the weight of the weightiest fact in a line, -1 if the line is a finished work item."""
    told = [weights.get(number, 0.0) for number in FACT_NUMBER.findall(line)]
    return max(told, default=-1.0 if _FINISHED.match(line) else 0.0)


@lru_cache(maxsize=128)
def _summary_forms(text: str) -> tuple[str, ...]:
    """Return a summary's forms: its heading, its heading with the must-keeps, and the full text."""
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
    """Return a text as a context shows it. Lone surrogates, from files that are not UTF-8, become U+FFFD."""
    return as_form(text if text.isascii() else _NO_CHARACTER.sub("\ufffd", text))


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents at one moment: blocks by name, the session document, and shared items."""

    blocks: Mapping[DocumentName, tuple[Block, ...]]
    session: SessionDocument
    shared: list[Item]

    def fact_numbers(self) -> list[int]:
        """Return the numbers of the facts that the documents list."""
        blocks = (block for several in self.blocks.values() for block in several)
        return [*{int(number) for block in blocks for number in FACT_NUMBER.findall(block.text)}]

    def items(self, listed: Sequence[MustKeep], asked: Sequence[str]) -> list[Item]:
        """Return the items of the documents, except the session document.

        `listed`: The facts in them. `asked`: Sources that answer a question, the best first, whose facts come first.
        """
        ranks = {source: rank for rank, source in enumerate(reversed(asked), 1)}
        weights = {
            str(fact.id): fact.weight + max(ranks.get(f"K{fact.id}", 0), ranks.get(f"op {fact.operation}", 0))
            if fact.status is MustKeepStatus.STANDING else -1.0
            for fact in listed
        }  # fmt: skip
        parts = [document_items(name, part, self.blocks[name], weights) for name, part in PART_OF_DOCUMENT.items()]
        return [*chain.from_iterable(parts), *self.shared]

    def texts(self, border: int) -> dict[str, str]:
        """Return the text of each document by name, without session entries of operations after `border`."""
        texts = {f"{name.value}.md": "".join(each.text for each in blocks) for name, blocks in self.blocks.items()}
        texts["the session document"] = "".join(
            part.block.text for part in self.session.parts if part.operation <= border
        )
        texts[SHARED_LOG] = "".join(item.forms[-1] for item in self.shared)
        return texts

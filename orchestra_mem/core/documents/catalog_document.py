"""Render an agent's catalog document, and parse the lines that a person has edited in it. No I/O.

Each item type has a section, and each item a line with its number: `- We use Redis for the cache. (M12)`. A person may
reword, delete, add or pin lines, and append `priority: 9` to them.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from orchestra_mem.catalog_types import MAX_PRIORITY, ItemType, MemoryItem
from orchestra_mem.core.documents.episodic import FORMAT, NONE, brief
from orchestra_mem.core.documents.fact_lines import reworded
from orchestra_mem.core.documents.markdown import PIN, front_matter
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.types import CUT

MOST_SHOWN = 200
_LINE_CHARS = 300
_FOLDER, _PREFIX = "catalog/", "catalog-"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}(?<!\.md)")
_PRIORITY = re.compile(r"[ \t]*[(,]?[ \t]*priority: ?(?P<priority>\d{1,3})\)?[ \t]*\Z", re.IGNORECASE)


class SaidLine(NamedTuple):
    """A parsed line: the item's content, its priority (None if not given), and whether it is pinned."""

    content: str
    priority: int | None
    pinned: bool


def render_catalog(agent: str, items: Sequence[MemoryItem], total: int, written: datetime) -> str:
    """Render an agent's catalog document.

    Args:
        agent: Name of the agent.
        items: Items to show, oldest first.
        total: Number of live items, including those not shown.
        written: Time of writing.
    """
    time = written.isoformat(timespec="milliseconds")
    front = front_matter({"format": FORMAT, "document": "catalog", "agent": agent, "written": time, "updated": time})
    name, more = squeeze(visible(agent)), ""
    if total > len(items):
        more = f"\n{total - len(items):,} more: `orchestra-mem catalog list --of {shlex.quote(name)}`\n"
    sections = (_section(kind, [item for item in items if item.type is kind]) for kind in ItemType)
    head = f"# Catalog of {name}\n\n**Last Updated**: {written:%Y-%m-%d %H:%M:%S} UTC\n"
    return f"{front}\n{head}{more}" + "".join(sections)


def _section(kind: ItemType, items: Sequence[MemoryItem]) -> str:
    lines = "".join(f"- {shown(item)} (M{item.number})\n" for item in items)
    return f"\n## {kind.capitalize()}s\n\n{lines or NONE}"


def shown(item: MemoryItem) -> str:
    """Return an item's line without its number; long content is cut."""
    return f"{brief(squeeze(visible(item.content)), _LINE_CHARS)} (priority: {item.priority})"


def read_line(text: str) -> SaidLine:
    """Parse a line without its number; a priority above the maximum becomes the maximum."""
    pinned = PIN in text
    bare = text.replace(PIN, "").strip()
    found = _PRIORITY.search(bare)
    if found is None:
        return SaidLine(bare, None, pinned)
    return SaidLine(bare[: found.start()].rstrip(), min(int(found["priority"]), MAX_PRIORITY), pinned)


def changes_of(item: MemoryItem, now: str, permanent_from: int) -> Mapping[str, object]:
    """Return the changes that a person's line makes to an item, in the form that `MemoryCatalog.update` takes."""
    said, was = read_line(now), read_line(shown(item))
    changes: dict[str, object] = {}
    if squeeze(said.content) != was.content and said.content.removesuffix(CUT.strip()).rstrip():
        changes["content"] = reworded(squeeze(visible(item.content)), was.content, said.content)
    priority = said.priority if said.priority is not None else item.priority
    if said.pinned:
        priority = max(priority, min(permanent_from, MAX_PRIORITY))
    if priority != item.priority:
        changes["priority"] = priority
    return changes


def document_name(agent: str) -> str:
    """Return `catalog-` and the agent's name if it is a safe file name, else a safe part of it and a hash."""
    if _PLAIN.fullmatch(agent):
        return f"{_PREFIX}{agent}"
    plain = re.sub(r"[^a-z0-9_.-]+", "-", agent.lower()).strip("-._")[:40]
    return f"{_PREFIX}{plain or 'agent'}-{hashlib.sha256(agent.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def agent_of(stem: str) -> str:
    """Return the agent whose document has this file name without `.md`; empty if the name has a hash instead."""
    return stem if document_name(stem) == f"{_PREFIX}{stem}" else ""


def kept_name(document: str) -> str:
    """Return a document's name in the ledger and in versions: `catalog-reviewer` for `catalog/reviewer.md`."""
    stem = document.removesuffix(".md")
    return document_name(stem.removeprefix(_FOLDER)) if stem.startswith(_FOLDER) else stem


def shown_name(name: str) -> str:
    """Return a document's name for people: `catalog/reviewer` for `catalog-reviewer`."""
    return f"{_FOLDER}{name.removeprefix(_PREFIX)}" if name.startswith(_PREFIX) else name

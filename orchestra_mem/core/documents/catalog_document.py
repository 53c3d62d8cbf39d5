"""The machine's own text of an agent's catalog document, and what a person's line in it says. Pure.

One section a type of item, one line an item, with its number: `- We use Redis for the cache. (M12)`. A person may
reword a line, delete it, add one, say `priority: 9` behind it, or pin it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from orchestra_mem.catalog_types import MAX_PRIORITY, ItemType, MemoryItem
from orchestra_mem.core.documents.episodic import CUT, FORMAT, brief
from orchestra_mem.core.documents.markdown import PIN, front_matter
from orchestra_mem.core.documents.owned_lines import reworded
from orchestra_mem.core.text import squeeze, visible

MOST_SHOWN = 200
_LINE_CHARS = 300
_NONE = "- None\n"
_FOLDER, _PREFIX = "catalog/", "catalog-"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}(?<!\.md)")
_PRIORITY = re.compile(r"[ \t]*[(,]?[ \t]*priority: ?(?P<priority>\d{1,3})\)?[ \t]*\Z", re.IGNORECASE)


class SaidLine(NamedTuple):
    """What a line says: of the item, of its priority (None where it says none), and whether it is pinned."""

    content: str
    priority: int | None
    pinned: bool


def render_catalog(agent: str, items: Sequence[MemoryItem], total: int, written: datetime) -> str:
    """The machine's text of an agent's document.

    Args:
        agent: whose it is.
        items: those to show, the oldest first.
        total: how many live ones there are.
        written: when.
    """
    time = written.isoformat(timespec="milliseconds")
    front = front_matter({"format": FORMAT, "document": "catalog", "agent": agent, "written": time, "updated": time})
    more = f"\n{total - len(items):,} more: `orchestra-mem catalog list --of '{agent}'`\n" if total > len(items) else ""
    sections = (_section(kind, [item for item in items if item.type is kind]) for kind in ItemType)
    head = f"# Catalog of {squeeze(visible(agent))}\n\n**Last Updated**: {written:%Y-%m-%d %H:%M:%S} UTC\n"
    return f"{front}\n{head}{more}" + "".join(sections)


def _section(kind: ItemType, items: Sequence[MemoryItem]) -> str:
    lines = "".join(f"- {shown(item)} (M{item.number})\n" for item in items)
    return f"\n## {kind.capitalize()}s\n\n{lines or _NONE}"


def shown(item: MemoryItem) -> str:
    """What a line says of an item, without its number; a long one is cut."""
    return f"{brief(squeeze(visible(item.content)), _LINE_CHARS)} (priority: {item.priority})"


def read_line(text: str) -> SaidLine:
    """Read what a line says, without its number; a priority that is too high is the highest."""
    pinned = PIN in text
    bare = text.replace(PIN, "").strip()
    found = _PRIORITY.search(bare)
    if found is None:
        return SaidLine(bare, None, pinned)
    return SaidLine(bare[: found.start()].rstrip(), min(int(found["priority"]), MAX_PRIORITY), pinned)


def changes_of(item: MemoryItem, now: str, permanent_from: int) -> Mapping[str, object]:
    """What a person's line says anew of an item, as `MemoryCatalog.update` takes it; nothing where it says the same."""
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
    """Name the document of an agent: by its name where that can be a file's, else by a hash beside what can."""
    if _PLAIN.fullmatch(agent):
        return f"{_PREFIX}{agent}"
    plain = re.sub(r"[^a-z0-9_.-]+", "-", agent.lower()).strip("-._")[:40]
    return f"{_PREFIX}{plain or 'agent'}-{hashlib.sha256(agent.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def kept_name(document: str) -> str:
    """Name a document as ledger and versions know it: `catalog-reviewer` for a person's `catalog/reviewer.md`."""
    stem = document.removesuffix(".md")
    return document_name(stem.removeprefix(_FOLDER)) if stem.startswith(_FOLDER) else stem


def shown_name(name: str) -> str:
    """Name a document as people do: `catalog/reviewer` for `catalog-reviewer`."""
    return f"{_FOLDER}{name.removeprefix(_PREFIX)}" if name.startswith(_PREFIX) else name

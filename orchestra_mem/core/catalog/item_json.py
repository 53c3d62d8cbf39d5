"""Ids and initial priorities of items, and their JSON format from the source design."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from orchestra_mem.catalog_types import ItemType, MemoryItem
from orchestra_mem.serialize import to_object
from orchestra_mem.types import Json

VERSION = "1.0.0"
_FIELDS = "id timestamp ci_source type summary content tokens relevance_tags priority expires references".split()
FIRST_PRIORITY = {
    ItemType.DECISION: 6,
    ItemType.ERROR: 6,
    ItemType.INSIGHT: 5,
    ItemType.PLAN: 5,
    ItemType.OBSERVATION: 4,
}
"""The priorities, 0 to 10, of items for which the caller has set none."""


def item_id(content: str, agent: str, now: datetime, salt: int = 0) -> str:
    """Build an id in the source design's format, `mem_<unix seconds>_<6 characters>`; `salt` resolves collisions."""
    digest = hashlib.sha256(f"{agent}\0{content}\0{now.isoformat()}\0{salt}".encode()).digest()
    return f"mem_{int(now.timestamp())}_{base64.b32encode(digest).decode().lower()[:6]}"


def item_json(item: MemoryItem) -> dict[str, Json]:
    """Convert an item to the source design's JSON."""
    shown = to_object(item) | {
        "timestamp": _time(item.timestamp), "expires": _time(item.expires) if item.expires else None,
    }  # fmt: skip
    return {name: shown[name] for name in _FIELDS}


def catalog_json(
    agent: str, items: Sequence[MemoryItem], updated: datetime, cleaned: datetime | None
) -> dict[str, Json]:
    """Convert an agent's items to a catalog document of the source design, with statistics."""
    oldest = min((item.timestamp for item in items), default=None)
    return {
        "version": VERSION,
        "ci_name": agent,
        "last_updated": _time(updated),
        "memories": [item_json(item) for item in items],
        "statistics": {
            "total_memories": len(items),
            "total_tokens": sum(item.tokens for item in items),
            "oldest_memory": _time(oldest) if oldest else None,
            "last_cleanup": _time(cleaned) if cleaned else None,
        },
    }


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

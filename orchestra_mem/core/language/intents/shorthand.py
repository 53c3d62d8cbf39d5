"""What developers shorten, written out where a command begins: "mk task …", "reprio 12", "[x] 14", "+ story …"."""

from __future__ import annotations

import re

_VERBS = {
    "mk": "create", "crt": "create", "chg": "change", "upd": "update", "asgn": "assign", "unblk": "unblock",
    "reprio": "reprioritise", "deprio": "deprioritise", "unassgn": "unassign", "cls": "close", "strt": "start",
}  # fmt: skip
_BEGINS = re.compile(
    rf"(?P<before>\A\s*|[.;!\n]\s*|,?\s(?:and|then)\s+)(?:(?P<verb>{'|'.join(_VERBS)})(?=\s+\S)|"
    r"(?P<tick>\[x\])\s*(?=#?\d)|(?P<plus>\+)\s*(?=(?:milestone|epic|story|task|subtask|ticket|todo)\b))",
    re.IGNORECASE,
)


def written_out(line: str) -> str:
    """Give a line with what is shortened in full; empty where nothing is."""
    return _BEGINS.sub(_in_full, line) if _BEGINS.search(line) else ""


def _in_full(found: re.Match[str]) -> str:
    full = _VERBS[found["verb"].lower()] if found["verb"] else "done: " if found["tick"] else "create "
    return f"{found['before']}{full}"

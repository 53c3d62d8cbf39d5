"""Placeholders in the place of secrets, in texts and JSON-like values: `[redacted:github-token:3f9a]`.

The digits are of a digest with the project's key: equal secrets of a project look equal, elsewhere they say nothing.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from orchestra_mem.core.redaction.rules import Finding, RedactionMode, RedactionSettings, Rules, spliced


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets; `found` tells where they stood in the source, never what they were."""

    text: str
    found: tuple[Finding, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How many there were of each kind."""
        return Counter(each.kind for each in self.found)


def redact(text: str, settings: RedactionSettings, key: bytes) -> Redacted:
    """Replace what is found in a text, in time that grows as its length does; twice changes nothing more.

    Args:
        text: of any length and kind.
        settings: a broken pattern in them is left out, see `faults`.
        key: the project's, for the digests.
    """
    if settings.mode is RedactionMode.OFF:
        return Redacted(text=text)
    found = _rules_of(settings).find(text)
    return Redacted(text=_replaced(text, found, settings.mode, key), found=tuple(found))


def redact_value(value: Any, settings: RedactionSettings, key: bytes) -> tuple[Any, Counter[str]]:
    """Replace so in all strings and keys of dicts, lists and tuples, however deep; all else stays as it is.

    A key says what its string is, as in `{"password": "hunter2"}`; so does a name beside a value, as lists have it.

    Returns:
        The value, and how many secrets of each kind there were.
    """
    counts: Counter[str] = Counter()
    if settings.mode is RedactionMode.OFF:
        return value, counts
    rules = _rules_of(settings)

    def cleaned(text: str, name: str) -> str:
        found = rules.find(text, name)
        counts.update(each.kind for each in found)
        return _replaced(text, found, settings.mode, key)

    return _mapped(value, cleaned), counts


def faults(settings: RedactionSettings) -> tuple[str, ...]:
    """Say what in the settings cannot be used, a sentence each; all else is."""
    return _rules_of(settings).faults


@lru_cache(maxsize=8)
def _rules_of(settings: RedactionSettings) -> Rules:
    return Rules(settings)


def _replaced(text: str, found: Iterable[Finding], mode: RedactionMode, key: bytes) -> str:
    def placeholder(each: Finding) -> str:
        secret = text[each.start : each.end].encode("utf-8", "surrogatepass")
        told = f":{each.kind}:{hmac.digest(key, secret, 'sha256').hex()[:4]}" if mode is RedactionMode.MASK else ""
        return f"[redacted{told}]"

    return spliced(text, ((each.start, each.end, placeholder(each)) for each in found))


def _mapped(value: Any, cleaned: Callable[[str, str], str]) -> Any:
    """Copy a value with its strings cleaned, given the name that each stands under; no depth is too much."""
    root: list[Any] = [value]
    tuples: list[tuple[Any, Any]] = []
    todo: list[tuple[Any, Any, str]] = [(root, 0, "")]
    while todo:
        holder, at, name = todo.pop()
        each = holder[at]
        if isinstance(each, str):
            holder[at] = cleaned(each, name)
        elif isinstance(each, dict):
            said = each.get("name")
            copy = holder[at] = {cleaned(k, "") if isinstance(k, str) else k: v for k, v in each.items()}
            todo += [(copy, k, str(said if k == "value" and said else k)) for k in copy]
        elif isinstance(each, list | tuple):
            tuples += [(holder, at)] if isinstance(each, tuple) else []
            items = holder[at] = list(each)
            todo += [(items, place, name) for place in range(len(items))]
    for holder, at in reversed(tuples):
        holder[at] = tuple(holder[at])
    return root[0]

"""Secrets in texts and JSON-like values, with placeholders in their place: `[redacted:github-token:3f9a]`.

The four digits are of a digest with the project's key: equal secrets of a project look equal, and elsewhere they say
nothing. What has a placeholder is not looked at again, so that a second run changes nothing.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from orchestra_mem.core.redaction.detectors import DETECTORS, KINDS_BY_PREFIX, Detector, find_prefixed
from orchestra_mem.core.redaction.own_patterns import MAX_CHARS, fault_of, find_own
from orchestra_mem.core.redaction.personal import PERSONAL, detector_of_names

SECRET_KINDS = frozenset(KINDS_BY_PREFIX.values()) | {each.kind for each in DETECTORS}
PERSONAL_KINDS = frozenset(each.kind for each in PERSONAL) | {"name"}
GROUPS = {"secrets": SECRET_KINDS, "personal": PERSONAL_KINDS}

_PLACEHOLDER = re.compile(r"\[redacted(?::[a-z0-9-]{1,40}:[0-9a-f]{4})?\]")
_KIND = re.compile(r"[a-z0-9-]{1,40}")
_ROUNDS = 5  # what stands next to something found may be found after it; more than two are not seen in practice


class RedactionMode(StrEnum):
    """What is left of what is found: its kind and digest, or that there was something."""

    OFF = "off"
    MASK = "mask"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionSettings:
    """What is looked for, and what is put in its place.

    Attributes:
        mode: whether and how.
        on: kinds, or the group `personal`, that are looked for beside the secrets.
        off: kinds, or the group `secrets`, that are not.
        names: of people, a kind of its own where it is on.
        patterns: the user's own kinds: name and regular expression, whose first group, if it has one, is the secret.
        allow: texts that stay, whole as they would be found.
        allow_patterns: regular expressions of such texts.
    """

    mode: RedactionMode = RedactionMode.MASK
    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    allow: frozenset[str] = frozenset()
    allow_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something found: its kind, and where it stood in the source. Never the secret itself."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and what they were."""

    text: str
    found: tuple[Finding, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How many of each kind."""
        return Counter(each.kind for each in self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedValue:
    """A JSON-like value without its secrets, and how many of each kind there were."""

    value: Any
    counts: Counter[str]


def redact(text: str, settings: RedactionSettings, key: bytes) -> Redacted:
    """Put placeholders in the place of what is found in a text.

    Args:
        text: of any length; the time grows with it, and no faster.
        settings: what to look for. What is wrong in them is left out, see `faults`.
        key: of the project, for the digests.
    """
    found = [] if settings.mode is RedactionMode.OFF else _rules(settings).find(text)
    return Redacted(text=_replaced(text, found, settings.mode, key), found=tuple(found)) if found else Redacted(text=text)


def redact_value(value: Any, settings: RedactionSettings, key: bytes) -> RedactedValue:
    """Do so in each string of dicts, lists and tuples, however deep; all else stays, as do numbers.

    The key says what its string is: `{"password": "hunter2"}`. So does a name beside a value, as in lists of variables.
    """
    counts: Counter[str] = Counter()
    if settings.mode is RedactionMode.OFF:
        return RedactedValue(value=value, counts=counts)

    def cleaned(text: str, name: str = "") -> str:
        found = _rules(settings).find_named(name, text)
        counts.update(each.kind for each in found)
        return _replaced(text, found, settings.mode, key) if found else text

    return RedactedValue(value=_mapped(value, cleaned), counts=counts)


def faults(settings: RedactionSettings) -> tuple[str, ...]:
    """Say what of the settings cannot be used, each in a sentence; the rest goes on without it."""
    return _rules(settings).faults


_Span = tuple[int, int, int, str]  # from, to, the place of its rule among all, its kind


class _Rules:
    """What settings ask for, compiled."""

    def __init__(self, settings: RedactionSettings) -> None:
        self._faults = []
        unasked = (PERSONAL_KINDS - _kinds(settings.on)) | _kinds(settings.off)
        detectors = (*DETECTORS, *PERSONAL, *([detector_of_names(settings.names)] if settings.names else []))
        self._forms = [
            (anchor, pattern, detector, rank)
            for rank, detector in enumerate(detectors)
            if detector.kind not in unasked
            for anchor, pattern in detector.patterns()
        ]
        self._unasked = unasked
        own = list(self._compiled(settings.patterns))
        self._own = [(name, pattern) for name, pattern in own if name not in unasked]
        self._allow = settings.allow
        self._allow_patterns = [each for _, each in self._compiled(("allow", each) for each in settings.allow_patterns)]
        known = SECRET_KINDS | PERSONAL_KINDS | GROUPS.keys() | {name for name, _ in settings.patterns}
        self._faults += [f"{kind!r} is no kind of secret" for kind in sorted((settings.on | settings.off) - known)]
        self.faults = tuple(self._faults)

    def _compiled(self, patterns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, re.Pattern[str]]]:
        for name, pattern in patterns:
            fault = fault_of(pattern) if _KIND.fullmatch(name) else "its name is not of small letters, digits and hyphens"
            if fault:
                self._faults.append(f"the pattern {name} ({pattern!r}) is left out: {fault}")
            else:
                yield name, re.compile(pattern, re.MULTILINE)

    def find(self, text: str) -> list[Finding]:
        """Find what is to be replaced, in the order of the text, nothing twice."""
        walled = _walled(text, (match.span() for match in _PLACEHOLDER.finditer(text))) if "[redacted" in text else text
        found: list[_Span] = []
        for _ in range(_ROUNDS):
            new = [each for each in self._spans(walled) if not self._allowed(walled[each[0] : each[1]])]
            if not new:
                break
            found += new
            walled = _walled(walled, (each[:2] for each in _merged(new)))
        return [Finding(kind=kind, start=start, end=end) for start, end, _, kind in _merged(found)]

    def find_named(self, name: str, text: str) -> list[Finding]:
        """Find the same in what stands under a name."""
        return self.find(text)

    def _allowed(self, secret: str) -> bool:
        if secret in self._allow:
            return True
        return len(secret) <= MAX_CHARS and any(pattern.fullmatch(secret) for pattern in self._allow_patterns)

    def _spans(self, text: str) -> Iterator[_Span]:
        for start, end, kind in find_prefixed(text):
            if kind not in self._unasked:
                yield start, end, -1, kind
        small = text.replace("İ", "i").lower()  # the one letter that becomes two
        for anchor, pattern, detector, rank in self._forms:
            where = small if detector.folded else text
            if anchor in where:
                for match in pattern.finditer(where):
                    for start, end in _secrets(match, detector, text):
                        yield start, end, rank, detector.kind
        for kind, pattern in self._own:
            for start, end in find_own(pattern, text):
                yield start, end, len(self._forms), kind


def _secrets(match: re.Match[str], detector: Detector, text: str) -> Iterator[tuple[int, int]]:
    """Give what of a match is a secret."""
    group = match.lastgroup or 0
    start, end = match.span(group)
    if detector.parts:
        for part in re.finditer(detector.parts, text[start:end]):
            if detector.check(part[1]):
                yield start + part.start(1), start + part.end(1)
        return
    if group == "bare":
        end = start + len(_without_end(text[start:end]))
    if (detector.bare if group == "bare" else detector.check)(text[start:end]):
        yield start, end


def _without_end(text: str) -> str:
    """Leave out what ends a sentence or closes what was opened before."""
    while text and (text[-1] in ".,:;" or (text[-1] in ")]}" and text.count("([{"[")]}".index(text[-1])]) == 0)):
        text = text[:-1]
    return text


def _merged(spans: list[_Span]) -> list[_Span]:
    """Join spans that overlap, in order; the kind is of the rule that stands first."""
    merged: list[_Span] = []
    for start, end, rank, kind in sorted(spans):
        if merged and start < merged[-1][1]:
            first, last, other, its = merged[-1]
            rank, kind = min((rank, kind), (other, its))
            merged[-1] = (first, max(end, last), rank, kind)
        else:
            merged.append((start, end, rank, kind))
    return merged


def _walled(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Put line feeds over spans: no form goes on behind one that has begun before it."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], "\n" * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


@lru_cache(maxsize=8)
def _rules(settings: RedactionSettings) -> _Rules:
    return _Rules(settings)


def _kinds(names: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(GROUPS.get(name, {name}) for name in names))


def _replaced(text: str, found: Iterable[Finding], mode: RedactionMode, key: bytes) -> str:
    parts, at = [], 0
    for each in found:
        digest = hmac.digest(key, text[each.start : each.end].encode("utf-8", "surrogatepass"), "sha256").hex()[:4]
        parts += [text[at : each.start], f"[redacted:{each.kind}:{digest}]" if mode is RedactionMode.MASK else "[redacted]"]
        at = each.end
    return "".join([*parts, text[at:]])


def _mapped(value: Any, cleaned: Callable[..., str]) -> Any:
    return value

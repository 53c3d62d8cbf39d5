"""What settings ask for, compiled, and where a text has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.core.redaction.detectors import DETECTORS, KINDS_BY_PREFIX, Detector, find_prefixed
from orchestra_mem.core.redaction.likelihood import is_code
from orchestra_mem.core.redaction.own_patterns import MAX_CHARS, fault_of, find_own
from orchestra_mem.core.redaction.personal import PERSONAL, detector_of_names

GROUPS = {
    "secrets": frozenset(KINDS_BY_PREFIX.values()) | {each.kind for each in DETECTORS},
    "personal": frozenset(each.kind for each in PERSONAL) | {"name"},
}
"""The kinds that there are: secrets are looked for unless they are off, personal data where they are on."""

_PLACEHOLDER = re.compile(r"\[redacted(?::[a-z0-9-]{1,40}:[0-9a-f]{4})?\]")
_KIND = re.compile(r"[a-z0-9-]{1,40}")
_SENTENCE_END = re.compile(r"[.,:;)\]}]+\Z")
_ROUNDS = 5  # a secret may only be seen when what stands before it is gone; texts made for it aside, two rounds do
_Span = tuple[int, int, int, str]  # from, to, the place of its rule among all, its kind


class RedactionMode(StrEnum):
    """What is left of a secret: all, its kind and digest, or that there was one."""

    OFF = "off"
    MASK = "mask"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionSettings:
    """What is looked for, and what becomes of it; kinds are those of `GROUPS`, by name or by group.

    `on` adds to the secrets, `off` takes away. `names` are people's, found where `name` is on. `patterns` are the
    user's own kinds: a name and a regular expression, whose first group, if it has one, is the secret. What `allow`
    holds, or a pattern of `allow_patterns` matches whole, stays.
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
    """Where something of a kind stands in a text."""

    kind: str
    start: int
    end: int


class Rules:
    """The forms that settings ask for; `faults` says what in these cannot be used."""

    def __init__(self, settings: RedactionSettings) -> None:
        said: list[str] = []
        self._unasked = (GROUPS["personal"] - _kinds(settings.on)) | _kinds(settings.off)
        self._forms: dict[tuple[str, bool], list[tuple[int, Detector, re.Pattern[str]]]] = defaultdict(list)
        named = [detector_of_names(settings.names)] if settings.names else []
        for rank, detector in enumerate((*DETECTORS, *PERSONAL, *named)):
            for anchor, pattern in detector.patterns() if detector.kind not in self._unasked else ():
                self._forms[anchor, detector.folded].append((rank, detector, pattern))
        self._own = [own for own in _compiled(settings.patterns, said) if own[0] not in self._unasked]
        self._allow = settings.allow
        self._allow_patterns = [each for _, each in _compiled([("allow", p) for p in settings.allow_patterns], said)]
        known = frozenset(name for name, _ in settings.patterns).union(GROUPS, *GROUPS.values())
        said += [f"there is no kind {kind!r} to switch" for kind in sorted((settings.on | settings.off) - known)]
        self.faults = tuple(said)

    def find(self, text: str, name: str = "") -> list[Finding]:
        """Find what is to be replaced in a text, given the name that it stands under: in order, nothing twice."""
        lead = 0
        if name and any(folded and anchor in name.lower() for anchor, folded in self._forms):
            quote = next((each for each in "\"'`" if each not in text), "")
            text, lead = f"{name}: {quote}{text}{quote}", len(f"{name}: {quote}")
        # Line feeds stand for what is found: nothing begins before one and goes on behind it.
        walled = _PLACEHOLDER.sub(lambda match: "\n" * len(match[0]), text)
        found: list[_Span] = []
        for _ in range(_ROUNDS):
            spans = (each for each in self._spans(walled) if each[0] >= lead)
            new = _merged(each for each in spans if not self._allows(text[each[0] : each[1]]))
            if not new:
                break
            found += new
            walled = spliced(walled, ((start, end, "\n" * (end - start)) for start, end, *_ in new))
        return [Finding(kind=kind, start=start - lead, end=end - lead) for start, end, _, kind in _merged(found)]

    def _allows(self, secret: str) -> bool:
        matched = len(secret) <= MAX_CHARS and any(each.fullmatch(secret) for each in self._allow_patterns)
        return matched or secret in self._allow

    def _spans(self, text: str) -> Iterator[_Span]:
        for start, end, kind in find_prefixed(text):
            if kind not in self._unasked:
                yield start, end, -1, kind
        small = text.replace("İ", "i").lower()  # the one letter that would become two
        for (anchor, folded), forms in self._forms.items():
            where = small if folded else text
            if anchor in where:
                for rank, detector, pattern in forms:
                    for match in pattern.finditer(where):
                        for start, end in _secrets(match, detector, text):
                            yield start, end, rank, detector.kind
        for kind, pattern in self._own:
            for start, end in find_own(pattern, text):
                yield start, end, len(DETECTORS), kind


def _compiled(patterns: Iterable[tuple[str, str]], said: list[str]) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, pattern in patterns:
        fault = fault_of(pattern) if _KIND.fullmatch(name) else "its name is not of small letters, digits and hyphens"
        if fault:
            said.append(f"the pattern {name!r} ({pattern}) is left out: {fault}")
        else:
            yield name, re.compile(pattern, re.MULTILINE)


def _kinds(names: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(GROUPS.get(name, {name}) for name in names))


def _secrets(match: re.Match[str], detector: Detector, text: str) -> Iterator[tuple[int, int]]:
    """Give what of a match is a secret."""
    start, end = match.span(match.lastgroup or 0)
    if detector.parts:
        for part in re.finditer(detector.parts, text[start:end]):
            if detector.check(part[1]):
                yield start + part.start(1), start + part.end(1)
        return
    secret = text[start:end]
    if match.lastgroup == "bare":
        secret = _SENTENCE_END.sub("", secret)
        if is_code(secret):
            return
    if detector.check(secret):
        yield start, start + len(secret)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Join spans that overlap, in order; the kind is that of the rule that stands first."""
    merged: list[_Span] = []
    for span in sorted(spans):
        if merged and span[0] < merged[-1][1]:
            before = merged.pop()
            span = (before[0], max(before[1], span[1]), *min(before[2:], span[2:]))
        merged.append(span)
    return merged


def spliced(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    """Put other texts in the place of parts of a text: from, to, text; in order."""
    pieces, at = [], 0
    for start, end, instead in parts:
        pieces += [text[at:start], instead]
        at = end
    return "".join([*pieces, text[at:]]) if pieces else text

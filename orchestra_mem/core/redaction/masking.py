"""Replace secrets in texts and JSON-like values by placeholders such as `[redacted:github-token:3f9a]`.

The digits are from a digest with the project's key: equal secrets of a project get equal placeholders, and without the
key the digits reveal nothing. One pass over a text finds its anchors; then only the patterns of these are matched.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from orchestra_mem.choices import RedactionChoice
from orchestra_mem.core.redaction.detectors import (
    DETECTORS,
    PERSONAL,
    WALL,
    Detector,
    detector_of_names,
    find_bot_tokens,
    has_bot_token,
    pattern_of,
)
from orchestra_mem.core.redaction.likelihood import is_code
from orchestra_mem.core.redaction.user_patterns import MAX_CHARS, fault_of, find_user_matches

Anchor = tuple[str, bool]
"""A literal text that patterns contain, and whether it matches text of any case. If so, it is in lower case."""


class Anchors:
    """A set of anchors, compiled to be found in one pass."""

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        anchors = sorted(anchors)
        self._everywhere = [each for each in anchors if not each[0]]
        self._anchors = anchors[len(self._everywhere) :]
        small = [text.lower().encode() for text, _ in self._anchors]
        self._automaton = BytesAhoCorasick(small, implementation=Implementation.DFA)

    def standing_in(self, text: str) -> list[Anchor]:
        """Return the anchors that occur in a text, each once."""
        small = small_letters(text).encode("utf-8", "surrogatepass")
        numbers = {number for number, _, _ in self._automaton.find_matches_as_indexes(small, overlapping=True)}
        return self._everywhere + standing((self._anchors[number] for number in numbers), text)


def standing(anchors: Iterable[Anchor], text: str) -> list[Anchor]:
    """Return the anchors that occur in a text. Searches for one after the other, so the anchors should be few."""
    small = small_letters(text)
    return [(anchor, folded) for anchor, folded in anchors if anchor in (small if folded else text)]


def small_letters(text: str) -> str:
    """Convert a text to lower case without shifting positions: `İ` is the only letter that would become two."""
    return text.replace("İ", "i").lower()


_BOT = "discord-token"
GROUPS = {
    "secrets": frozenset(each.kind for each in DETECTORS) | {_BOT},
    "personal": frozenset(each.kind for each in PERSONAL) | {"name"},
}
"""All kinds by group. Secrets are searched for unless switched off, personal data only if switched on."""

PLACEHOLDER = re.compile(r"\[redacted(?::[a-z0-9-]{1,40}:[0-9a-f]{4})?\]")
_KIND = re.compile(r"[a-z0-9-]{1,40}")
_SENTENCE_END = re.compile(r"[.,:;)\]}]+\Z")
_ESCAPES = frozenset(r"\b \f \n \r \t \u".split())  # in JSON
_ROUNDS = 5  # a secret may hide another next to it; only texts made for the purpose need more than two rounds


class RedactedSpan(NamedTuple):
    """The position of a secret in the source, and its kind. If rules overlap, the least `rank` determines the kind."""

    start: int
    end: int
    rank: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and their positions in the source, but never the secrets themselves."""

    text: str
    found: tuple[RedactedSpan, ...] = ()


def redact(text: str, rules: Rules) -> Redacted:
    """Replace the secrets in a text. Linear in the text, and idempotent."""
    if rules.mode is RedactionChoice.OFF:
        return Redacted(text=text)
    found = rules.find(text)
    return Redacted(text=_replaced(text, found, rules), found=tuple(found))


def redact_value(value: Any, rules: Rules) -> tuple[Any, Counter[str]]:
    """Redact all strings and keys in nested dicts, lists and tuples, however deep. Other values are unchanged.

    The key of a string counts as its context, as in `{"password": "hunter2"}`; so does a `name` or `key` next to a
    `value`. Returns the value and the number of secrets of each kind.
    """
    counts: Counter[str] = Counter()
    if rules.mode is RedactionChoice.OFF:
        return value, counts
    # A single pass for all strings, because each pass may release the interpreter to another thread.
    whole = WALL.join(_strings(value))
    anchors = rules.anchors.standing_in(whole)
    if not rules.may_find(whole, anchors):
        return value, counts

    def cleaned(text: str, name: str) -> str:
        found = rules.find(text, name, anchors)
        if not found:
            return text
        counts.update(each.kind for each in found)
        return _replaced(text, found, rules)

    return _mapped(value, cleaned), counts


@dataclass(kw_only=True, eq=False)
class Rules:
    """Kinds of secrets to search for, and how to replace them. Kinds are given by their names in `GROUPS`, or by group.

    `key`: The project's key. `personal`: Whether to find all personal data. `add_kinds`: Kinds to find in addition to
    the secrets. `skip_kinds`: Kinds not to find. `names`: People's names, found if the kind `name` is on. `allow`:
    Texts to keep. `allow_patterns`: Texts that one of these matches entirely are kept. `patterns`: The user's own
    kinds, each a name and a regular expression; its first group, if it has one, is the secret. `faults`: Describes
    each setting that cannot be used, in a sentence; all others are in effect.
    """

    key: bytes = field(repr=False)
    mode: RedactionChoice = RedactionChoice.MASK
    personal: bool = False
    add_kinds: Sequence[str] = ()
    skip_kinds: Sequence[str] = ()
    names: Sequence[str] = ()
    allow: Sequence[str] = ()
    allow_patterns: Sequence[str] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        on = {*self.add_kinds, *(["personal"] if self.personal else [])}
        self._unasked = (GROUPS["personal"] - _kinds(on)) | _kinds(self.skip_kinds)
        self._forms: dict[Anchor, list[tuple[int, Detector]]] = defaultdict(list)
        named = [detector_of_names(self.names)] if self.names else []
        for rank, detector in enumerate((*DETECTORS, *PERSONAL, *named)):
            for anchor in detector.anchors.split("|") if detector.kind not in self._unasked else ():
                self._forms[anchor, detector.folded].append((rank, detector))
        self.anchors = Anchors(self._forms)
        self._own = [own for own in self._compiled(self.patterns.items()) if own[0] not in self._unasked]
        self._allowed = [pattern for _, pattern in self._compiled(("allow", each) for each in self.allow_patterns)]
        unknown = on.union(self.skip_kinds).difference(self.patterns, GROUPS, *GROUPS.values())
        self.faults += [
            f"unknown kind {kind!r}; use a built-in kind, a group or one of your own patterns"
            for kind in sorted(unknown)
        ]

    def _compiled(self, patterns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, re.Pattern[str]]]:
        for name, pattern in patterns:
            named = _KIND.fullmatch(name)
            fault = fault_of(pattern) if named else "its name must consist of lower-case letters, digits and hyphens"
            if fault:
                self.faults.append(f"the pattern {name!r} ({pattern}) is ignored: {fault}")
            else:
                yield name, re.compile(pattern, re.MULTILINE)

    def may_find(self, text: str, anchors: Collection[Anchor]) -> bool:
        """Check whether a text with these anchors can contain a secret; most texts cannot."""
        return bool(anchors or self._own or has_bot_token(text))

    def find(self, text: str, name: str = "", among: Iterable[Anchor] | None = None) -> list[RedactedSpan]:
        """Find the secrets in a text that is stored under `name`, in order and without overlaps.

        `among`: Anchors to use, at least those in the text and the name. If None, the text is searched for anchors.
        """
        first, last, shift = 0, len(text), 0
        if name and among and standing(among, name):
            bare = text.strip().rstrip("\\")  # a backslash would escape the closing quote
            quote = next((each for each in "\"'`" if each not in bare), "")
            first = len(f"{name}: {quote}")
            last, shift = first + len(bare), text.find(bare) - first
            text = f"{name}: {quote}{bare}{quote}"
        anchors = self.anchors.standing_in(text) if among is None else standing(among, text)
        if not self.may_find(text, anchors):
            return []
        # `WALL` overwrites the secrets found: no later match extends across it.
        walled = PLACEHOLDER.sub(lambda match: WALL * len(match[0]), text)
        found: list[RedactedSpan] = []
        areas = {(0, len(text)), (first, last)}
        for _ in range(_ROUNDS):
            spans = (each for area in areas for each in self._spans(walled, anchors, *area) if each.start >= first)
            new = _merged(each for each in spans if self._takes(walled[each.start : each.end]))
            if not new:
                break
            found += new
            walled = _spliced(walled, ((each, WALL * (each.end - each.start)) for each in new))
            areas = {area for each in new for area in _rest_of_line(walled, each)}
        return [
            RedactedSpan(each.start + shift, min(each.end, last) + shift, each.rank, each.kind)
            for each in _merged(found)
        ]

    def _takes(self, secret: str) -> bool:
        allowed = len(secret) <= MAX_CHARS and any(each.fullmatch(secret) for each in self._allowed)
        return not allowed and secret not in self.allow and WALL not in secret

    def _spans(self, text: str, anchors: Collection[Anchor], first: int, last: int) -> Iterator[RedactedSpan]:
        """Yield every match in the part of a text from `first` to `last`."""
        part = text[first:last]
        small = small_letters(part)
        for anchor, folded in anchors:
            where = small if folded else part
            for rank, detector in self._forms[anchor, folded]:
                for match in pattern_of(detector, anchor).finditer(where):
                    for start, end in _secrets(match, detector, part):
                        yield RedactedSpan(first + start, first + end, rank, detector.kind)
        for start, end in find_bot_tokens(part) if _BOT not in self._unasked else ():
            yield RedactedSpan(first + start, first + end, -1, _BOT)
        for kind, pattern in self._own:
            for start, end in find_user_matches(pattern, part):
                yield RedactedSpan(first + start, first + end, len(DETECTORS), kind)


def _kinds(names: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(GROUPS.get(name, {name}) for name in names))


def _secrets(match: re.Match[str], detector: Detector, text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each secret in a match."""
    start, end = match.span(match.lastgroup or 0)
    start += text[start - 1 : start + 1] in _ESCAPES  # the letter belongs to the escape
    secret = text[start:end]
    if detector.parts:
        parts = re.finditer(detector.parts, secret)
        yield from ((start + each.start(1), start + each.end(1)) for each in parts if detector.check(each[1]))
        return
    if match.lastgroup == "bare":
        secret = _SENTENCE_END.sub("", secret)
    if detector.check(secret) and not (match.lastgroup == "bare" and is_code(secret)):
        yield start, start + len(secret)


def _merged(spans: Iterable[RedactedSpan]) -> list[RedactedSpan]:
    """Merge overlapping spans, and return all in order."""
    merged: list[RedactedSpan] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            last = merged.pop()
            span = RedactedSpan(last.start, max(last.end, span.end), *min(last[2:], span[2:]))
        merged.append(span)
    return merged


def _rest_of_line(walled: str, found: RedactedSpan) -> Iterator[tuple[int, int]]:
    """Yield the areas of a line before and after a secret, up to the next `WALL`, with one character of each border."""
    yield max(walled.rfind("\n", 0, found.start), walled.rfind(WALL, 0, found.start), 0), found.start + 1
    ends = (walled.find("\n", found.end), walled.find(WALL, found.end))
    yield found.end - 1, 1 + min(end if end >= 0 else len(walled) for end in ends)


def _spliced(text: str, parts: Iterable[tuple[RedactedSpan, str]]) -> str:
    pieces, at = [], 0
    for found, instead in parts:
        pieces += [text[at : found.start], instead]
        at = found.end
    return "".join([*pieces, text[at:]]) if pieces else text


def _replaced(text: str, found: Iterable[RedactedSpan], rules: Rules) -> str:
    def placeholder(each: RedactedSpan) -> str:
        if rules.mode is RedactionChoice.DROP:
            return "[redacted]"
        secret = text[each.start : each.end].encode("utf-8", "surrogatepass")
        return f"[redacted:{each.kind}:{hmac.digest(rules.key, secret, 'sha256').hex()[:4]}]"

    return _spliced(text, ((each, placeholder(each)) for each in found))


def _strings(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            todo += [*each, *each.values()]
        elif isinstance(each, list | tuple):
            todo += each


def _mapped(value: Any, cleaned: Callable[[str, str], str]) -> Any:
    """Copy a value with each string replaced by `cleaned(string, key or name)`. Not recursive, so any depth works."""
    root: list[Any] = [value]
    tuples: list[tuple[Any, Any]] = []
    todo: list[tuple[Any, Any, str]] = [(root, 0, "")]
    while todo:
        holder, at, name = todo.pop()
        each = holder[at]
        if isinstance(each, str):
            holder[at] = cleaned(each, name)
        elif isinstance(each, dict):
            said = each.get("name", each.get("key"))
            copy: dict[Any, Any] = {}
            holder[at] = copy
            for key, item in each.items():
                clean = cleaned(key, "") if isinstance(key, str) else key
                while clean in copy:  # two redacted keys can have the same placeholder
                    clean = f"{clean} {len(copy) + 1}"
                copy[clean] = item
            todo += [(copy, k, str(said if k == "value" and said else k)) for k in copy]
        elif isinstance(each, list | tuple):
            tuples += [(holder, at)] if isinstance(each, tuple) else []
            items = holder[at] = list(each)
            todo += [(items, place, name) for place in range(len(items))]
    for holder, at in reversed(tuples):
        holder[at] = tuple(holder[at])
    return root[0]

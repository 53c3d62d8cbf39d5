"""Regular expressions written by users: refused if they could run for ever, and applied to pieces of fixed length.

`re` backtracks. That takes exponential time for a repeat within a repeat, and polynomial time for successive repeats
that accept the same characters. Any other pattern takes at most quadratic time in a piece's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 250
"""Longest match that is found for certain; longer matches may be cut or missed. A match lies within one line."""

_TOKEN = re.compile(
    r"""(?xs) (?P<open> \( (?:\?(?: P?<\w+> | [imsuaL-]*: | > | <?[=!] | [imsuaL]+(?=\)) ))? ) | (?P<bar> \| )
    | (?: (?P<close> \) ) | (?P<item> \\. | \[\^?\]?(?:\\.|[^\]\\])*\] | . ) )
      (?P<repeat> [*+?] | \{\d*(?:,\d*)?\} )? [?+]? """
)
_REFERENCE = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[1-9]|\(\?P=|\(\?\()")
_SAMPLE = "".join(map(chr, range(32, 127))) + "é漢\t"


def fault_of(pattern: str) -> str:
    """Describe why a pattern cannot be used; empty if it can."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is not a valid regular expression: {error}"
    if compiled.match("") is not None:
        return "it matches empty text"
    if compiled.flags & re.VERBOSE or _REFERENCE.search(pattern):
        return "it uses a back-reference, a conditional group or verbose mode, which are not supported"
    return _slow_part(pattern, compiled.flags)


@dataclass(slots=True)
class _Group:
    """An open group of a pattern: whether its length varies, its characters, and the repeats that can precede it.

    `ends`: Repeats that can precede what follows the group, collected from the alternatives read so far. `takes`:
    Whether the present alternative takes at least one character; `may_be_empty`: whether an earlier one may take none.
    """

    before: tuple[frozenset[str], ...]
    varies: bool = False
    characters: frozenset[str] = frozenset()
    ends: tuple[frozenset[str], ...] = ()
    takes: bool = False
    may_be_empty: bool = False

    def end_alternative(self, repeats: tuple[frozenset[str], ...]) -> None:
        """Note the repeats that can precede what follows, and whether the alternative may be empty."""
        self.ends = _distinct(self.ends, repeats)
        self.may_be_empty |= not self.takes
        self.takes = False


def _slow_part(pattern: str, flags: int) -> str:
    """Describe the first repeat that makes a pattern slow, because it can share a text with another in many ways."""
    sample = frozenset(_SAMPLE + pattern)
    # Characters of each repeat that could give some of its match to a later one.
    repeats: tuple[frozenset[str], ...] = ()
    groups = [_Group(repeats)]
    for token in _TOKEN.finditer(pattern):
        repeat = token["repeat"] or ""
        varying = bool(repeat) and (repeat[0] != "{" or "," in repeat)
        optional = repeat.startswith(("*", "?", "{0", "{,"))
        if token["open"]:
            groups.append(_Group(repeats, may_be_empty="=" in token["open"] or "!" in token["open"]))
            continue
        if token["bar"]:
            groups[-1].varies = True
            groups[-1].end_alternative(repeats)
            repeats = groups[-1].before
            continue
        if token["close"]:
            group = groups.pop()
            group.end_alternative(repeats)
            taken, inside, takes = group.characters, group.varies, not group.may_be_empty
            before = tuple(other for other in group.ends if any(other is each for each in group.before))
            # What precedes a group that may take nothing can meet what follows it.
            repeats = group.ends if takes and not optional else _distinct(group.ends, group.before)
        else:
            taken, inside, before = _taken(token["item"], flags, sample), False, repeats
            takes = bool(taken)
        if inside and repeat not in ("", "?"):
            return f"the repeat at character {token.end()} repeats a group of variable length, which is slow"
        groups[-1].varies |= inside or varying
        groups[-1].characters |= taken
        groups[-1].takes |= takes and not optional
        if varying:
            if any(taken & other for other in before):
                return f"the repeat at character {token.end()} can match the same text as an earlier one, which is slow"
            repeats = (*repeats, taken)
        elif token["item"] and taken:
            repeats = tuple(other for other in repeats if other & taken)
    return ""


def _distinct(*repeats: tuple[frozenset[str], ...]) -> tuple[frozenset[str], ...]:
    """Join repeats, each once: equal sets of characters may be different repeats."""
    return tuple({id(each): each for some in repeats for each in some}.values())


def _taken(item: str, flags: int, sample: frozenset[str]) -> frozenset[str]:
    """Return the characters that one item of a pattern accepts; an item that matches a position accepts none."""
    try:
        one = re.compile(item, flags)
    except re.error:
        return sample
    return frozenset(filter(one.fullmatch, sample))


def find_user_matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each match of a pattern, or of its first group. Pieces of long lines overlap by half."""
    for line in re.finditer(r"[^\n]+", text):
        for start in range(line.start(), max(line.start() + 1, line.end() - MAX_CHARS), MAX_CHARS):
            for match in pattern.finditer(text, start, min(start + 2 * MAX_CHARS, line.end())):
                span = match.span(1) if pattern.groups and match[1] is not None else match.span()
                if span[0] < span[1]:
                    yield span

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

    `ends`: Repeats that can precede what follows the group, collected from the alternatives read so far.
    """

    before: tuple[frozenset[str], ...]
    varies: bool = False
    characters: frozenset[str] = frozenset()
    ends: tuple[frozenset[str], ...] = ()


def _slow_part(pattern: str, flags: int) -> str:
    """Describe the first repeat that makes a pattern slow, because it can share a text with another in many ways."""
    sample = frozenset(_SAMPLE + pattern)
    # Characters of each repeat that could give some of its match to a later one.
    repeats: tuple[frozenset[str], ...] = ()
    groups = [_Group(repeats)]
    for token in _TOKEN.finditer(pattern):
        repeat = token["repeat"] or ""
        varying = bool(repeat) and (repeat[0] != "{" or "," in repeat)
        if token["open"]:
            groups.append(_Group(repeats))
            continue
        if token["bar"]:
            groups[-1].varies, groups[-1].ends = True, groups[-1].ends + repeats
            repeats = groups[-1].before
            continue
        before, taken, inside = repeats, frozenset[str](), False
        if token["close"]:
            group = groups.pop()
            taken, inside = group.characters, group.varies
            before = _distinct(repeats, group.ends)
            # What precedes the group can meet what follows it: an optional group or a look-around may take nothing.
            repeats = _distinct(before, group.before)
            before = tuple(other for other in before if any(other is each for each in group.before))
        if inside and repeat not in ("", "?"):
            return f"the repeat at character {token.end()} repeats a group of variable length, which is slow"
        if token["item"]:
            taken = _taken(token["item"], flags, sample)
        groups[-1].varies |= inside or varying
        groups[-1].characters |= taken
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

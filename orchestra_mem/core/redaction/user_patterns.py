"""Regular expressions written by users: refused if they could run for ever, and applied to pieces of fixed length.

`re` backtracks. That takes exponential time for a repeat within a repeat, and polynomial time for successive repeats
that accept the same characters. Any other pattern takes at most quadratic time in a piece's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
        return f"it is no regular expression: {error}"
    if compiled.match("") is not None:
        return "it matches the empty text"
    if compiled.flags & re.VERBOSE or _REFERENCE.search(pattern):
        return "it refers back to a group, or is of the verbose form"
    return _slow_part(pattern, compiled.flags)


def _slow_part(pattern: str, flags: int) -> str:
    """Describe the first repeat that makes a pattern slow, because it can share a text with another in many ways."""
    sample = frozenset(_SAMPLE + pattern)
    none: frozenset[str] = frozenset()
    repeats: list[frozenset[str]] = []  # characters of each repeat that could give some of its match to a later repeat
    groups = [(False, none, repeats)]  # for each open group: whether its length varies, its characters, repeats before
    for token in _TOKEN.finditer(pattern):
        repeat = token["repeat"] or ""
        varying = bool(repeat) and (repeat[0] != "{" or "," in repeat)
        if token["open"]:
            groups.append((False, none, repeats))
            continue
        inside, taken, before = groups.pop() if token["close"] else (False, none, repeats)
        if inside and repeat not in ("", "?"):
            return f"what is repeated at character {token.end()} varies itself"
        if token["item"]:
            taken = _taken(token["item"], flags, sample)
        varies, characters, at_open = groups.pop()
        groups.append((varies or inside or varying or token["bar"] is not None, characters | taken, at_open))
        if varying:
            if any(taken & other for other in before):
                return f"the repeat at character {token.end()} takes what one before it can take"
            repeats = [*before, taken]
        elif token["item"] and taken:
            repeats = [other for other in repeats if other & taken]
    return ""


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

"""Where a line may be cut into several commands."""

from __future__ import annotations

import re

_BORDER = re.compile(
    r"""(?x) [;.!?\n]\s+ (?:(?:and|then|also|but|so)\b[\s,]*)*      # the end of a sentence
    | ,\s* (?:(?:and|then|also|but|so)\s+)*                         # a comma, with or without a word behind it
    | \s+ (?:and|then|but|so|&|[-\u2013\u2014])\s+ (?:(?:then|also|so)\s+)*"""
)
_QUOTES = re.compile(r'"[^"]*"|\u201c[^\u201d]*\u201d|(?<!\w)\'[^\']*\'(?!\w)')


def borders(line: str) -> list[tuple[int, int]]:
    """Give each place where a command may end and the next begin, as (end of the left, start of the right)."""
    quoted = [match.span() for match in _QUOTES.finditer(line)]
    return [
        match.span()
        for match in _BORDER.finditer(line)
        if match.start() > 0
        and match.end() < len(line)
        and not any(start < match.start() < end for start, end in quoted)
    ]

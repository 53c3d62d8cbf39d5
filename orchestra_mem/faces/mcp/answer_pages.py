"""What tools answer: data in a fence, within a budget of tokens, and how to go on where there is more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from orchestra_mem.core.search.echoes import fenced

_CHARS_PER_TOKEN = 16
"""No text of a budget's size is looked at beyond this: it bounds what is counted of a long one."""
FENCE_TOKENS = 40
"""What a fence and its source take at most."""


class AnswerPages:
    """Cuts answers to budgets of tokens, as `count` counts them."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def text(self, text: str, source: str, max_tokens: int, offset: int | None = None) -> str:
        """Give as much of a text as the budget holds, from the character `offset` on; None: the caller has no offset.

        Raises:
            ValueError: the text ends before.
        """
        start = offset or 0
        if start and start >= len(text):
            raise ValueError(f"offset is {start}, and there are {len(text)} characters; begin with offset=0")

        def shown(size: int) -> str:
            end = start + size
            if end >= len(text):
                return fenced(text[start:], source)
            more = "" if offset is None else f"go on with offset={end}, or "
            told = f"Characters {start} to {end} of {len(text)}: {more}raise max_tokens.\n"
            return f"{fenced(text[start:end], source)}{told}"

        return self._longest(shown, min(len(text) - start, max_tokens * _CHARS_PER_TOKEN), max_tokens)

    def entries(self, entries: Sequence[str], source: str, limit: int, offset: int, max_tokens: int) -> str:
        """Give as many entries as the budget holds, at most `limit`; the first is cut where it alone is too long.

        `entries` are those from `offset` on; one beyond the limit tells that there are more.
        """
        if not entries:
            return "Nothing found.\n" if not offset else f"Nothing behind offset={offset}.\n"

        def shown(size: int) -> str:
            if not size:
                return self._longest(cut, len(entries[0]), max_tokens)
            more = f"There is more: go on with offset={offset + size}.\n" if size < len(entries) else ""
            return fenced("\n".join(entries[:size]), source) + more

        def cut(chars: int) -> str:
            more = f", or go on with offset={offset + 1}" if len(entries) > 1 else ""
            return f"{fenced(entries[0][:chars], source)}Entry {offset + 1} is cut: raise max_tokens{more}.\n"

        return self._longest(shown, min(len(entries), limit), max_tokens)

    def _longest(self, shown: Callable[[int], str], most: int, max_tokens: int) -> str:
        """Give the longest of the answers `shown(0)` to `shown(most)` that the budget holds, else the shortest."""
        if self._count(whole := shown(most)) <= max_tokens:
            return whole
        return shown(bisect_left(range(1, most), True, key=lambda size: self._count(shown(size)) > max_tokens))

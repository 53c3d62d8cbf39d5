"""What tools answer: data in a fence, within a budget of tokens, and how to go on where there is more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestra_mem.core.search.echoes import fenced

_CHARS_PER_TOKEN = 16
"""No text of a budget's size is looked at beyond this: it bounds what is counted of a long one."""
FENCE_TOKENS = 40
"""What a fence and its source take at most."""


def text_page(
    text: str, source: str, *, count: Callable[[str], int], max_tokens: int, offset: int | None = None
) -> str:
    """Give as much of a text as the budget holds, from the character `offset` on; None where the caller has no offset.

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
        return f"{fenced(text[start:end], source)}Characters {start} to {end} of {len(text)}: {more}raise max_tokens.\n"

    most = min(len(text) - start, max_tokens * _CHARS_PER_TOKEN)
    return shown(_largest(most, lambda size: count(shown(size)) <= max_tokens))


def list_page(
    entries: Sequence[str], source: str, *, count: Callable[[str], int], max_tokens: int, offset: int, limit: int
) -> str:
    """Give as many entries as the budget holds, at most `limit`; the first is cut where it alone is too long.

    Args:
        entries: those from `offset` on; one beyond the limit tells that there are more.
        source: names them in the fence.
        count: counts tokens.
        max_tokens: the budget of the whole answer.
        offset: how many were left out before.
        limit: the most that are given.
    """
    if not entries:
        return "Nothing found.\n" if not offset else f"Nothing behind offset={offset}.\n"

    def shown(size: int) -> str:
        more = f"There is more: go on with offset={offset + size}.\n" if size < len(entries) else ""
        return fenced("\n".join(entries[:size]), source) + more

    def cut(chars: int) -> str:
        more = f", or go on with offset={offset + 1}" if len(entries) > 1 else ""
        return f"{fenced(entries[0][:chars], source)}Entry {offset + 1} is cut: raise max_tokens{more}.\n"

    if size := _largest(min(len(entries), limit), lambda size: count(shown(size)) <= max_tokens):
        return shown(size)
    return cut(_largest(len(entries[0]), lambda chars: count(cut(chars)) <= max_tokens))


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """Find the largest number that fits, 0 where none does."""
    if fits(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low

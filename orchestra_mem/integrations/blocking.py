"""Call the memory, which waits for the disk, from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def in_thread(call: Callable[..., Result], *given: Any) -> Result:
    """Run a call in a thread, so that the loop goes on.

    Where the caller is cancelled the call still comes to its end first: a thread cannot be stopped, and who asks next
    is to see what it did.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at: the caller hears of the cancellation
        raise

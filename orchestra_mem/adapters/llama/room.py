"""How much memory a model takes, and how much there is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from orchestra_mem.errors import ModelError

# What llama.cpp computes with, beside weights and cache: 110 MB for Qwen2.5 0.5B, mostly for its vocabulary's size.
_WORKING_BYTES = 200_000_000
_CACHE_BYTES_A_NUMBER = 2


def require_room(
    path: Path, number: Callable[[str], int | None], *, context_tokens: int, beside_tokens: int = 0
) -> None:
    """Make sure that a model fits into the memory that is free.

    Args:
        path: the GGUF.
        number: gives what the file says under a key of its architecture.
        context_tokens: the window.
        beside_tokens: what the cache holds beside a whole window.

    Raises:
        ModelError: it does not.
    """
    available = available_bytes()
    if available is None:
        return
    weights, cache = path.stat().st_size, cache_bytes(number, context_tokens + beside_tokens)
    needed = weights + cache + _WORKING_BYTES
    if needed > available:
        raise ModelError(
            f"{path.name} needs about {needed / 1e9:,.1f} GB of memory ({weights / 1e9:,.1f} for the model, "
            f"{cache / 1e9:,.1f} for a context of {context_tokens:,} tokens), and {available / 1e9:,.1f} GB are free; "
            "set a smaller llm.context_tokens or take a smaller model"
        )


def cache_bytes(number: Callable[[str], int | None], context_tokens: int) -> int:
    """Estimate what the cache of a window takes; 0 where the file does not say what it is made of."""
    heads = number("attention.head_count")
    cached_heads = number("attention.head_count_kv") or heads
    layers, width = number("block_count"), number("embedding_length")
    if not (heads and cached_heads and layers and width):
        return 0
    head_width = number("attention.key_length") or width // heads
    return 2 * layers * cached_heads * head_width * _CACHE_BYTES_A_NUMBER * context_tokens


def available_bytes() -> int | None:
    """Tell how much memory this process may still take, its container's limit heeded; None where that is not told."""
    found = []
    for free in (_free_of_machine, _free_of_container):
        with suppress(OSError, ValueError, KeyError):  # not on Linux, no such control, or no limit ("max")
            found.append(free())
    return min(found, default=None)


def _free_of_machine() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(":") for line in lines)["MemAvailable"].split()[0]) * 1024


def _free_of_container() -> int:
    folder = Path("/sys/fs/cgroup")
    limit, used, counted = (
        (folder / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")
    )
    # Files that were read and can be read again count as used.
    files = dict(line.split(" ") for line in counted.splitlines()).get("inactive_file", "0")
    return int(limit) - int(used) + int(files)

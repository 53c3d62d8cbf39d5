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
    weights = path.stat().st_size
    cache = _cache_bytes_a_token(number) * (context_tokens + beside_tokens)
    needed = weights + cache + _WORKING_BYTES
    if available is not None and needed > available:
        raise ModelError(
            f"{path.name} needs about {needed / 1e9:,.1f} GB of memory ({weights / 1e9:,.1f} for the model, "
            f"{cache / 1e9:,.1f} for a context of {context_tokens:,} tokens), and {available / 1e9:,.1f} GB are free; "
            "set a smaller llm.context_tokens or take a smaller model"
        )


def _cache_bytes_a_token(number: Callable[[str], int | None]) -> int:
    """Estimate what the cache takes; 0 where the file does not say what it is made of."""
    heads, layers, width = map(number, ("attention.head_count", "block_count", "embedding_length"))
    if not (heads and layers and width):
        return 0
    cached_heads = number("attention.head_count_kv") or heads
    head_width = number("attention.key_length") or width // heads
    return 2 * layers * cached_heads * head_width * _CACHE_BYTES_A_NUMBER


def available_bytes() -> int | None:
    """Tell how much memory this process may still take, its container's limit heeded; None where that is not told."""
    found = []
    # Not on Linux, no such control, or no limit ("max").
    with suppress(OSError, ValueError, KeyError):
        found.append(_figures(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    with suppress(OSError, ValueError, KeyError):
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        # Files that were read and can be read again count as used.
        found.append(limit - used + _figures(Path("/sys/fs/cgroup/memory.stat"))["inactive_file"])
    return min(found, default=None)


def _figures(path: Path) -> dict[str, int]:
    lines = path.read_text(encoding="ascii").splitlines()
    return {name: int(figure) for name, figure, *_ in map(str.split, lines)}

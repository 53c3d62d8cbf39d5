"""What all embedders do with texts before and with vectors after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestra_mem.search_types import Vectors

_MAX_CHARS = 32_000  # a chunk is far shorter; what is not is embedded by its beginning


def readable(text: str) -> str:
    """Cut what is too long; halves of characters, which tokenizers refuse, become question marks."""
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def unit(vectors: NDArray[np.float32]) -> Vectors:
    """Bring rows to unit length; zeros stay zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return rows

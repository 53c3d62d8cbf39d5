"""A GGUF's way into memory, which is left where nobody waits for it any more."""

from __future__ import annotations

from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from orchestra_mem.adapters.llama.ending import Ended, require_wanted
from orchestra_mem.errors import ModelError

_PIECE_BYTES = 4_000_000


def load_model(library: Any, path: Path, ended: Ended) -> Any:
    """Load a model with its weights.

    Args:
        library: the functions of `llama.h`.
        path: the GGUF.
        ended: asked between two pieces of the file, and two tensors.

    Raises:
        ModelError: llama.cpp refuses, or `ended` says so.
    """
    _read_in(path, ended)
    parameters = library.llama_model_default_params()
    # In the main thread Ctrl-C would be raised within it, and be lost there.
    if current_thread() is not main_thread():
        parameters.progress_callback = library.llama_progress_callback(lambda progress, data: not ended())
    model = library.llama_model_load_from_file(str(path).encode("utf-8", "surrogateescape"), parameters)
    if not model:
        require_wanted(path, ended)
        raise ModelError(f"llama.cpp cannot load {path}")
    return model


def _read_in(path: Path, ended: Ended) -> None:
    """Have the system read a file into its cache.

    llama.cpp has all of it read before its first question whether to go on: minutes, from a slow disk. What is in
    the cache already takes a tenth of a second for a gigabyte.
    """
    piece = bytearray(_PIECE_BYTES)
    try:
        with path.open("rb", buffering=0) as file:
            while file.readinto(piece):
                require_wanted(path, ended)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error

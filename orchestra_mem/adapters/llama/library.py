"""Load the compiled library, and with it a model: its vocabulary alone, or its weights with a context to work in.

Loaded with the first model, and no sooner. Where the host program has loaded it before, its ways are left as they are.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

from orchestra_mem.adapters.llama.ending import Stop
from orchestra_mem.adapters.llama.trial import INSTALL, require_library, require_sound
from orchestra_mem.errors import ModelError

_log = logging.getLogger(__name__)

_PIECE_BYTES = 4_000_000

# With one other process at work a generation took 510 s where the threads of llama.cpp spin at each of their hundreds
# of meetings a token, and 13 s where they sleep. OpenMP reads it once, when the first program part loads it.
_WAIT_POLICY = "OMP_WAIT_POLICY"

_lock = Lock()
_library: Any = None
# The library calls it for ever.
_log_callback: Any = None


def load_library() -> Any:
    """Load the library, once for the process, and give its functions under the names of `llama.h`.

    Raises:
        ModelError: it is not installed, or cannot be loaded.
    """
    global _library  # noqa: PLW0603 (a library is loaded once for a process)
    with _lock:
        if _library is None:
            _library = _loaded()
        return _library


def wait_policy() -> str:
    """Tell in words where the library's threads spin while they wait; empty where they sleep."""
    chosen = os.environ.get(_WAIT_POLICY, "passive")
    if chosen.strip().lower() == "passive":
        return ""
    return (
        f"{_WAIT_POLICY} is {chosen}: the threads of llama.cpp spin while they wait, which stalls them where other "
        f"programs are at work; start the program with {_WAIT_POLICY}=passive"
    )


def _loaded() -> Any:
    require_library()
    by_host = "llama_cpp" in sys.modules
    # Heeded by whatever uses the same OpenMP later in this process, and by its children.
    os.environ.setdefault(_WAIT_POLICY, "passive")
    if waiting := wait_policy():
        _log.warning("%s", waiting)
    try:
        from llama_cpp import llama_cpp as library
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelError(f"llama-cpp-python cannot be loaded ({error}); {INSTALL}") from error
    if not by_host:
        _hand_on_logs(library)
        library.llama_backend_init()
    return library


def _hand_on_logs(library: Any) -> None:
    """Have what llama.cpp says go to the program's log, for those who look for it, and not to stderr."""
    global _log_callback  # noqa: PLW0603

    def tell(level: int, text: bytes, data: object) -> None:
        _log.debug("llama.cpp: %s", text.decode("utf-8", "replace").rstrip())

    _log_callback = library.llama_log_callback(tell)
    library.llama_log_set(_log_callback, ctypes.c_void_p(0))


def default_threads() -> int:
    """Return how many threads a generation takes by itself: the cores that this process may use less one, at least 1.

    Cores are physical ones: two threads of one core share what multiplies.
    """
    # Only Linux has the first, and tells which threads are of one core.
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return max(1, len({_core_of(number) for number in usable}) - 1)


def _core_of(number: int) -> str:
    with suppress(OSError):
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        return siblings.read_text(encoding="ascii").strip()
    return str(number)


class LoadedModel:
    """A GGUF in memory, for one thread at a time. Freed by `close`, or when nobody holds it any more.

    Args:
        path: the GGUF.
        stop: asked while it is loaded.
        weights: whether all of it is loaded, or its vocabulary alone.

    Raises:
        ModelError: llama.cpp is not installed or does not run here, the file cannot be used, or `stop` says so.
    """

    def __init__(self, path: Path, stop: Stop, *, weights: bool = True) -> None:
        require_sound(path, weights=weights, stop=stop)
        if weights:
            _read_ahead(path, stop)
        self.path = path
        self.library: Any = load_library()
        parameters = self.library.llama_model_default_params()
        parameters.vocab_only = not weights
        self.model = self.library.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self.model:
            raise ModelError(f"llama.cpp cannot load {path}")
        self.frees = ExitStack()
        self.frees.callback(self.library.llama_model_free, self.model)
        self.close = finalize(self, self.frees.close)
        # The interpreter's end frees nothing: a thread may be at work with it.
        self.close.atexit = False
        self.vocabulary = self.library.llama_model_get_vocab(self.model)

    def open_context(self, context_tokens: int, **parameters: object) -> Any:
        """Make the context to work in.

        Raises:
            ModelError: llama.cpp refuses.
        """
        given = self.library.llama_context_default_params()
        for name, value in {**parameters, "n_ctx": context_tokens, "no_perf": True}.items():
            setattr(given, name, value)
        context = self.library.llama_init_from_model(self.model, given)
        if not context:
            raise ModelError(f"llama.cpp cannot make a context of {context_tokens:,} tokens for {self.path}")
        self.frees.callback(self.library.llama_free, context)
        return context

    def tokens(self, text: str, *, special: bool = False, marks: bool = False) -> list[int]:
        """Cut a text into tokens.

        Args:
            text: any string.
            special: whether what is spelled like a special token is that token.
            marks: whether to add those with which the model marks beginning and end.
        """
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8  # a token is a byte or more; some vocabularies put a space before, and there are the marks
        found = (self.library.llama_token * room)()
        count = self.library.llama_tokenize(self.vocabulary, raw, len(raw), found, room, marks, special)
        if count < 0:
            raise ModelError(f"llama.cpp cannot cut a text of {len(text):,} characters into tokens")
        return list(found[:count])

    def text_of(self, token: int) -> str:
        """Give the text of a token; empty where there is no such token."""
        text: bytes = self.library.llama_vocab_get_text(self.vocabulary, token) if token >= 0 else b""
        return text.decode("utf-8", "replace")

    def said(self, key: str) -> str | None:
        """Return what the file says of itself under a key, as in `qwen2.context_length`; None where nothing."""
        tell = self.library.llama_model_meta_val_str
        size = tell(self.model, key.encode(), None, 0)
        if size < 0:
            return None
        value = ctypes.create_string_buffer(size + 1)
        tell(self.model, key.encode(), value, size + 1)
        return value.value.decode("utf-8", "replace")


def _read_ahead(path: Path, stop: Stop) -> None:
    """Read a file into the system's cache, out of which llama.cpp has a gigabyte in a tenth of a second.

    From a slow disk that takes minutes, and llama.cpp cannot be told to end while it reads.
    """
    piece = bytearray(_PIECE_BYTES)
    try:
        with path.open("rb", buffering=0) as file:
            while file.readinto(piece):
                stop.require_wanted(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error

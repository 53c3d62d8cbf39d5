"""The compiled library: how it is loaded, how its threads wait, and how many of them there should be.

Loaded with the first model, and no sooner. Where the host program has loaded it before, its ways are left as they are.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from orchestra_mem.errors import ModelError

_log = logging.getLogger(__name__)

INSTALL = "pip install 'orchestra-mem[llama]'"

# With one other process at work a generation took 510 s where the threads of llama.cpp spin at each of their hundreds
# of meetings a token, and 13 s where they sleep. OpenMP reads it once, when the first program part loads it.
_WAIT_POLICY = "OMP_WAIT_POLICY"

_lock = Lock()
_library: Any = None
# The library calls it for ever.
_log_callback: Any = None


def require_library() -> Path:
    """Give the folder of the package `llama_cpp`, without loading it.

    Raises:
        ModelError: it is not installed.
    """
    with suppress(ImportError, ValueError):
        spec = find_spec("llama_cpp")
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
    raise ModelError(f"a GGUF needs llama-cpp-python, which is not installed; {INSTALL}")


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
    """How many threads a generation takes by itself: the cores that this process may use less one, at least 1.

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

"""Checks before a model is loaded: whether it fits into memory, and whether llama.cpp crashes over it.

A child process tries the model first, so that a crash does not kill the program that holds a memory.

The trial detects a library compiled for a processor with more instructions than this one, and files that crash
llama.cpp. Success and permanent failure are cached in the user's cache folder, per library, processor and file.
"""

from __future__ import annotations

import os
import platform
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from orchestra_mem.adapters.llama.lifetime import ASK_EVERY_S, Stop
from orchestra_mem.errors import ModelError

INSTALL = "pip install 'orchestra-mem[llama]'"
REBUILD = (
    "CMAKE_ARGS='-DGGML_NATIVE=OFF' pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python "
    "llama-cpp-python"
)
_TIMEOUT_S = 300.0
_MAGIC = b"GGUF"
_REMEDY = "set llm.model_path or search.model_path to a GGUF model file"
_SOUND = "sound"
_COMPLETE = "\n"  # ends a stored verdict: without it the file is damaged
# A crash. Other signals come from outside: SIGKILL from the system if memory is short, SIGTERM at shutdown.
_CRASHES = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV"})
# llama.cpp's working memory, next to weights and cache: 110 MB for Qwen2.5 0.5B, mostly due to its large vocabulary.
_WORKING_BYTES = 200_000_000
_CACHE_BYTES_A_NUMBER = 2

# Prints the name of each stage when the stage begins, so that the last name printed is the stage that failed.
_PROGRAM = """
import sys
folder, path, weights = sys.argv[1:]
sys.path.insert(0, folder)
print("loading the library", flush=True)
from llama_cpp import llama_cpp as L
L.llama_backend_init()
print("loading the file", flush=True)
params = L.llama_model_default_params()
params.vocab_only = not weights
model = L.llama_model_load_from_file(path.encode(sys.getfilesystemencoding(), "surrogateescape"), params)
if not model:
    sys.exit(3)
if weights:
    print("reading a token", flush=True)
    params = L.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 32
    params.n_threads = params.n_threads_batch = 1
    context = L.llama_init_from_model(model, params)
    if not context or L.llama_decode(context, L.llama_batch_get_one((L.llama_token * 1)(0), 1)):
        sys.exit(4)
print("sound", flush=True)
"""
_INCOMPLETE = re.compile(r"not within the file bounds|corrupted or incomplete|unexpectedly reached end of file")
_CAUSE = re.compile(r"error loading model: (.*)")


def require_library() -> Path:
    """Return the folder of the package `llama_cpp` without importing it.

    Raises:
        ModelError: The package is not installed.
    """
    with suppress(ImportError, ValueError):
        spec = find_spec("llama_cpp")
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
    raise ModelError(f"a GGUF needs llama-cpp-python, which is not installed; {INSTALL}")


def require_loadable(path: Path, *, weights: bool, stop: Stop) -> None:
    """Check that a file can be loaded on this machine.

    Args:
        path: The GGUF file.
        weights: Whether to load and run the complete model, or to load only its vocabulary.
        stop: Polled during the trial.

    Raises:
        ModelError: The file cannot be loaded, for the reason in the message; or `stop` is set.
    """
    folder = require_library()
    require_gguf(path)
    file, verdict = _verdict_file(folder, path, weights=weights), ""
    with suppress(OSError, ValueError):
        verdict = file.read_text(encoding="utf-8", errors="surrogateescape")
    if not verdict.endswith(_COMPLETE):
        verdict, lasting = _try(folder, path, weights=weights, stop=stop)
        if lasting:
            _write(file, verdict)
    if verdict.removesuffix(_COMPLETE) != _SOUND:
        raise ModelError(verdict.removesuffix(_COMPLETE))


def require_gguf(path: Path) -> None:
    """Check that a file exists and begins like a GGUF.

    Raises:
        ModelError: The file does not exist, cannot be read, or is no GGUF.
    """
    try:
        mode = path.stat().st_mode
        # Opening a named pipe, for example, would block. For a folder, the system's own error is good enough.
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ModelError(f"{path} is not a regular file; {_REMEDY}")
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist; {_REMEDY}") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    if magic != _MAGIC:
        raise ModelError(f"{path} is not a GGUF file: it begins with {magic!r} instead of {_MAGIC!r}")


def _try(folder: Path, path: Path, *, weights: bool, stop: Stop) -> tuple[str, bool]:
    """Return the verdict, and whether it is permanent for the same library, processor and file."""
    command = [sys.executable, "-c", _PROGRAM, str(folder.parent), str(path), "1" if weights else ""]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    deadline = time.monotonic() + _TIMEOUT_S
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            start_new_session=True,  # Ctrl-C reaches only this program, which decides whether to go on
        ) as process:  # fmt: skip
            try:
                while not stop() and time.monotonic() < deadline:
                    with suppress(subprocess.TimeoutExpired):
                        stages, errors = process.communicate(timeout=ASK_EVERY_S)
                        return _verdict(process.returncode, stages, errors, folder, path)
            finally:
                process.kill()  # no effect if it has ended
    except OSError as error:
        return f"could not start a separate process to test llama.cpp: {sys.executable}: {error}", False
    stop.require_wanted(path)
    return f"{path} was not loaded within {_TIMEOUT_S:.0f} s", False


def _verdict(code: int, stdout: bytes, errors: bytes, folder: Path, path: Path) -> tuple[str, bool]:
    stderr, stages = errors.decode("utf-8", "replace"), stdout.decode("utf-8", "replace").split("\n")
    if _SOUND in stages:
        return _SOUND, True
    stage = next((line for line in reversed(stages) if line), "starting")
    if code == -signal.SIGILL:
        return (
            f"the compiled llama.cpp in {_compiled(folder)} uses instructions that this processor lacks (illegal "
            f"instruction while {stage}); rebuild it without them: {REBUILD}"
        ), True
    if code < 0:
        name = signal.Signals(-code).name
        return f"llama.cpp was terminated by {name} while {stage}: {path}", name in _CRASHES
    if _INCOMPLETE.search(stderr):
        return f"{path} is incomplete or damaged: {_cause(stderr)}; download it again", False
    return f"llama.cpp cannot use {path}: {stage} failed: {_cause(stderr)}", False


def _compiled(folder: Path) -> Path:
    """Return the folder of the compiled library, as the package `llama_cpp` in `folder` chooses it."""
    return Path(os.environ.get("LLAMA_CPP_LIB_PATH", folder / "lib"))


def _cause(stderr: str) -> str:
    found = _CAUSE.findall(stderr)
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return str(found[-1]).strip() if found else lines[-1] if lines else "no reason given"


def _verdict_file(folder: Path, path: Path, *, weights: bool) -> Path:
    """Return the cache file for the verdict on a model, or on its vocabulary, with this library and processor."""
    import platformdirs

    states = [(str(each), (state := each.stat()).st_size, state.st_mtime_ns)
              for each in (*sorted(_compiled(folder).glob("*")), path.resolve()) if each.exists()]  # fmt: skip
    identity = f"{states} {_processor()} {weights}"
    name = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    return Path(platformdirs.user_cache_dir("orchestra-mem")) / "tried" / f"{name}.txt"


def _write(file: Path, verdict: str) -> None:
    """Cache a verdict; if it cannot be written, the next process repeats the trial."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(verdict + _COMPLETE, encoding="utf-8", errors="surrogateescape")
        os.replace(temporary, file)
    except OSError:
        temporary.unlink(missing_ok=True)


def _processor() -> str:
    """Return the processor's name and features, as far as the system reports them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join({line: "" for line in lines if line.startswith(("model name", "flags", "Features"))})


def require_room(
    path: Path, number: Callable[[str], int | None], *, context_tokens: int, beside_tokens: int = 0, remedy: str
) -> None:
    """Check that a model fits into the free memory.

    Args:
        path: The GGUF file.
        number: Returns the integer under a metadata key of the model's architecture.
        context_tokens: Context window.
        beside_tokens: Tokens that the cache holds in addition to a full window.
        remedy: Advice in the message of the error.

    Raises:
        ModelError: The model does not fit.
    """
    available = available_bytes()
    weights = path.stat().st_size
    cache = _cache_bytes_a_token(number) * (context_tokens + beside_tokens)
    needed = weights + cache + _WORKING_BYTES
    if available is not None and needed > available:
        raise ModelError(
            f"{path.name} needs about {needed / 1e9:,.1f} GB of memory ({weights / 1e9:,.1f} for the model, "
            f"{cache / 1e9:,.1f} for a context of {context_tokens:,} tokens), but only {available / 1e9:,.1f} GB "
            f"are free; {remedy}"
        )


def _cache_bytes_a_token(number: Callable[[str], int | None]) -> int:
    """Estimate the cache's size per token, in bytes; 0 if the file lacks the numbers for it."""
    heads, layers, width = map(number, ("attention.head_count", "block_count", "embedding_length"))
    if not (heads and layers and width):
        return 0
    cached_heads = number("attention.head_count_kv") or heads
    head_width = number("attention.key_length") or width // heads
    return 2 * layers * cached_heads * head_width * _CACHE_BYTES_A_NUMBER


def available_bytes() -> int | None:
    """Return the memory that this process can still use, within its container's limit; None if it is unknown."""
    found = []
    # Errors that are ignored: the system is not Linux, there is no control group, or it has no limit ("max").
    with suppress(OSError, ValueError, KeyError):
        found.append(_figures(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    with suppress(OSError, ValueError, KeyError):
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        # `current` includes the file cache, which the system can reclaim.
        found.append(limit - used + _figures(Path("/sys/fs/cgroup/memory.stat"))["inactive_file"])
    return min(found, default=None)


def _figures(path: Path) -> dict[str, int]:
    lines = path.read_text(encoding="ascii").splitlines()
    return {name: int(figure) for name, figure, *_ in map(str.split, lines)}

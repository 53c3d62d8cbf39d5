"""Open the search of a memory: the index on disk, the configured embedder, and the indexer that connects them.

Imported with the first search, as nothing else needs vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestra_mem.adapters.embedders import OnnxEmbedder, WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.choices import EmbedderChoice
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.errors import EmbedderError, StorageError
from orchestra_mem.ports import Clock, WritePoint
from orchestra_mem.retrieval.index_worker import Guard, GuardedEmbedder
from orchestra_mem.retrieval.indexer import Indexer
from orchestra_mem.retrieval.search import MemorySearch
from orchestra_mem.search_types import Embedder, SearchIndex
from orchestra_mem.settings import Settings


def open_search(
    folder: Path,
    settings: Settings,
    make_indexer: Callable[[SearchIndex, Embedder | None], Indexer],
    words: WordLlamaEmbedder | None,
    *,
    clock: Clock,
    write_point: WritePoint | None,
    read_only: bool,
) -> MemorySearch:
    """Open the search over a memory.

    Args:
        folder: Folder of the index in the memory's folder, created if missing.
        settings: The project's settings.
        make_indexer: Makes the indexer of the memory's stores for an index and an embedder.
        words: The table of word vectors, None if search by meaning is off.
        clock, write_point: See `open_memory`.
        read_only: Whether the memory is read-only. Each process then builds its own index in a temporary folder, as
            with an unwritable `folder`, which the first answer reports.

    Raises:
        StorageError: The folder cannot be used, or no temporary folder can be made.
    """
    fault = ""
    try:
        embedder = open_embedder(folder.parents[1], settings, words)
    except EmbedderError as error:
        embedder, fault = None, str(error)
    guard = Guard(failures=settings.search.breaker_failures, reset_s=settings.search.breaker_reset_s)
    words = words if embedder else None
    if words is not None:
        with suppress(EmbedderError):
            words.cut([])  # loads the table now, so that it does not use up a search's time for indexing
    # After a change of embedder, word vectors answer queries until the new embedder has embedded as many chunks.
    models = [embedder] if embedder else []
    if words and words is not embedder:
        models.append(words)
    is_remote = settings.search.embedder is EmbedderChoice.HTTP
    embedders = [  # a failing embedder must not block the word vectors
        GuardedEmbedder(each, guard if each is embedder else Guard(), is_remote=is_remote and each is embedder)
        for each in models
    ]
    first = embedders[0] if embedders else None
    scratch, problems = _scratch_folder(folder, read_only=read_only)
    index = DiskSearchIndex(
        Path(scratch.name) if scratch else folder, index_text, analysis_version=ANALYSIS_VERSION, words=words,
        threads=settings.search.threads, busy_timeout_s=settings.storage.busy_timeout_s,
        write_point=None if scratch else write_point, problems=problems,
    )  # fmt: skip
    # Only embedders that hold a model or a connection have `close`.
    closing = [each for each in (getattr(embedder, "close", None), scratch and scratch.cleanup) if each]
    return MemorySearch(
        index, embedders, words, make_indexer(index, first), clock=clock, fault=fault, guard=guard,
        responses=index.responses, is_remote=is_remote, release=lambda: [close() for close in closing],
    )  # fmt: skip


def _scratch_folder(folder: Path, *, read_only: bool) -> tuple[TemporaryDirectory[str] | None, list[str]]:
    """Make a temporary folder if the index in `folder` cannot be written; also return why, if that is a problem."""
    effective = os.access in os.supports_effective_ids
    files = [path for path in (folder, folder / "search.db") if os.path.exists(path)]  # a locked folder is no error
    problems = []
    if not read_only and not all(os.access(path, os.W_OK, effective_ids=effective) for path in files):
        why = f"{folder} is not writable: each process builds a separate index"
        problems.append(f"{why}; give this user the right to write there")
    try:
        return TemporaryDirectory(prefix="orchestra-mem-index-") if read_only or problems else None, problems
    except OSError as error:
        raise StorageError(
            f"search is not available: cannot create a temporary folder for its index: {error}; set TMPDIR"
        ) from error


def open_embedder(project: Path, settings: Settings, words: WordLlamaEmbedder | None) -> Embedder | None:
    """Return the embedder that the settings name; `words` if it is the built-in one or none.

    Raises:
        EmbedderError: A model file or a package is missing or unusable. A server is not called.
    """
    search, choice = settings.search, settings.search.embedder
    path = project / os.path.expanduser(search.model_path)
    if choice is EmbedderChoice.ONNX:
        return OnnxEmbedder(path, threads=search.threads)
    if choice is EmbedderChoice.GGUF:
        # Lazy import: only programs with a GGUF need it.
        from orchestra_mem.adapters.llama.embedder import GgufEmbedder

        return GgufEmbedder(path, threads=search.threads)
    if choice is EmbedderChoice.HTTP:
        try:
            from orchestra_mem.adapters.openai_http.embedder import HttpEmbedder
        except ImportError as error:
            raise EmbedderError(f"search.base_url needs `pip install 'orchestra-mem[http]'`: {error}") from error
        return HttpEmbedder(search.base_url, search.model, api_key=search.api_key, dimensions=search.dimensions)
    return words

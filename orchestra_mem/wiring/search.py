"""How search is joined: the index on disk, the embedder that is set, and what keeps them in step with the memory.

Loaded with the first search: nothing else has a need of vectors.
"""

from __future__ import annotations

from pathlib import Path

from orchestra_mem.adapters.embedders import OnnxEmbedder, WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.core.search.exact_index import ExactIndex
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.late_interaction import WordTable
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.errors import EmbedderError
from orchestra_mem.ports import Clock, WritePoint
from orchestra_mem.search_types import Embedder
from orchestra_mem.services.indexing import Indexer, Memories
from orchestra_mem.services.searching import MemorySearch
from orchestra_mem.settings import EmbedderChoice, Settings


def open_search(
    folder: Path,
    settings: Settings,
    memories: Memories,
    *,
    clock: Clock,
    write_point: WritePoint | None,
    read_only: bool,
) -> MemorySearch:
    """Open the search over a memory.

    Args:
        folder: where the index lies; it is made where there is none.
        settings: those in force.
        memories: what is searched.
        clock, write_point: as `open_memory` takes them.
        read_only: nothing may be written: the index is then made in main memory, anew for each process.

    Raises:
        StorageError: the folder cannot be used.
    """
    notes: list[str] = []
    try:
        embedder = _embedder(settings)
    except EmbedderError as error:
        embedder = None
        notes.append(f"search by meaning is off, words alone answer: {error}")
    # One table for passages and words: it is loaded once.
    table = embedder if isinstance(embedder, WordLlamaEmbedder) else WordLlamaEmbedder()
    words = WordTable(table) if embedder is not None else None
    # After a change of model, the vectors of the one that needs no files answer until the other's are there.
    embedders = [] if embedder is None else [embedder] if embedder is table else [embedder, table]
    index: ExactIndex | DiskSearchIndex
    if read_only:
        index = ExactIndex()
    else:
        index = DiskSearchIndex(
            folder,
            index_text,
            analysis_version=ANALYSIS_VERSION,
            threads=settings.search.threads,
            busy_timeout_s=settings.storage.busy_timeout_s,
            write_point=write_point,
        )
    return MemorySearch(
        index,
        [(each.model, Searcher(index, each, words)) for each in embedders],
        Searcher(index, None, None),
        Indexer(index, memories, embedder),
        ledger=memories.ledger,
        clock=clock,
        notes=notes,
    )


def _embedder(settings: Settings) -> Embedder | None:
    choice = settings.search.embedder
    if choice is EmbedderChoice.ONNX:
        return OnnxEmbedder(Path(settings.search.model_path), threads=settings.search.threads)
    return WordLlamaEmbedder() if choice is EmbedderChoice.WORDLLAMA else None

"""Documents on disk: atomic writes, appends, locks, versions."""

from orchestra_mem.adapters.files.reading import DocumentReader, why_read_only
from orchestra_mem.adapters.files.store import FileDocumentStore

__all__ = ["DocumentReader", "FileDocumentStore", "why_read_only"]

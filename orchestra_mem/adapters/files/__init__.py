"""Documents on disk: atomic writes, appends, locks, versions."""

from orchestra_mem.adapters.files.reading import BACKUP_MARK, DocumentReader, why_read_only
from orchestra_mem.adapters.files.store import FileDocumentStore

__all__ = ["BACKUP_MARK", "DocumentReader", "FileDocumentStore", "why_read_only"]

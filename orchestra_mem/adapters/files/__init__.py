"""Documents on disk: atomic writes, appends, locks, versions."""

from orchestra_mem.adapters.files.reading import outside_target, why_read_only
from orchestra_mem.adapters.files.store import FileDocumentStore

__all__ = ["FileDocumentStore", "outside_target", "why_read_only"]

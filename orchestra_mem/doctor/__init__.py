"""Looking for what is wrong with a memory, part by part (`memory.py`): its documents, its search index, its model."""

from orchestra_mem.doctor.documents import (
    check_document,
    check_documents,
    check_index,
    disk_sizes,
    index_words,
    inspect_index,
)
from orchestra_mem.doctor.memory import Finding, Health, diagnose, why_unusable

__all__ = [
    "Finding", "Health", "check_document", "check_documents", "check_index", "diagnose",
    "disk_sizes", "index_words", "inspect_index", "why_unusable",
]  # fmt: skip

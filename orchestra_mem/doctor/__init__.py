"""Looking for what is wrong with a memory, part by part (`memory.py`): its documents, its search index, its model."""

from orchestra_mem.doctor.documents import DocumentProblem, check_document, check_documents, check_index
from orchestra_mem.doctor.findings import Finding, Health
from orchestra_mem.doctor.memory import diagnose
from orchestra_mem.doctor.models import why_unusable
from orchestra_mem.doctor.search_index import index_words, inspect_index

__all__ = [
    "DocumentProblem", "Finding", "Health", "check_document", "check_documents", "check_index", "diagnose",
    "index_words", "inspect_index", "why_unusable",
]  # fmt: skip

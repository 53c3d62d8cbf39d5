"""Looking for what is wrong with a memory: part by part (`memory.py`), and document by document (`documents.py`)."""

from orchestra_mem.diagnosis.documents import DocumentProblem, check_document, check_documents
from orchestra_mem.diagnosis.memory import Finding, Health, diagnose

__all__ = ["DocumentProblem", "Finding", "Health", "check_document", "check_documents", "diagnose"]

"""How the search index is, in words: whether it is there, whole, and in step with the memory. Only looks."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem.adapters.search_index.inspection import IndexReport, inspect
from orchestra_mem.build import HOME
from orchestra_mem.doctor.findings import Finding, fault, note, sound

ANEW = "the next search makes it anew: it is derived, nothing is lost"


def inspect_index(project: Path, *, thorough: bool = False) -> IndexReport:
    """Look at a project's search index; see `inspect`."""
    return inspect(project / HOME / "index", thorough=thorough)


def index_words(report: IndexReport, last_operation: int) -> str:
    """Say in one line how an index is, of a memory whose newest operation is `last_operation`."""
    if not report.present:
        return "not made yet; the first search makes it"
    if report.fault is not None:
        return f"{report.database} {report.fault}"
    models = ", ".join(f"{model.name} ({model.dimensions} dimensions)" for model in report.models)
    by = f"embedded by {models}" if models else "not embedded"
    told = f"{report.chunks:,} passages, {by}, {report.size_bytes / 1e6:,.1f} MB"
    behind = last_operation - report.operations
    return f"{told}; {behind:,} operations behind" if behind > 0 else told


def index_finding(report: IndexReport, last_operation: int) -> Finding:
    """Say how an index is, and what to do; see `index_words`."""
    words = index_words(report, last_operation)
    if report.fault is not None:
        return fault("search", words, ANEW)
    if report.present and report.operations < last_operation:
        return note("search", words, "searches take it in, and `orchestra-mem index` does so now")
    return sound("search", words)

"""What is wrong with the documents, each fault with its line and with what happens meanwhile. Only looks.

The files are read as they lie there, without opening the memory: what a damaged one holds is told even where nothing
else works, and one that was taken away is not made again before that could be told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from orchestra_mem.adapters.files import outside_target, why_read_only
from orchestra_mem.adapters.search_index.inspection import IndexReport, inspect
from orchestra_mem.build import HOME
from orchestra_mem.build.wiring import Place
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, text_faults
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.settings import Settings

# Larger ones are not looked through: no person edits such a document, somebody has pasted something.
_LOOKED_THROUGH_BYTES = 50_000_000
ANEW = "the next search makes it anew: it is derived, nothing is lost"
_LEFT = "and the file is left as it is"


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """What is wrong with a document: where, what, and what happens until it is mended.

    `line` counts from 1 and is 0 where the whole file is meant.
    """

    path: Path
    line: int
    problem: str
    meanwhile: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}" if self.line else f"{self.path} {self.problem}"


def check_documents(project: Path, settings: Settings) -> list[DocumentProblem]:
    """Find every problem of the episodic documents, the catalog's, and those of sessions that have not ended.

    An episodic one is meant to be there once anything has been kept; before, only where it is.
    """
    place = Place.of(project, settings)
    folders = [path for path in (place.memory, place.sessions) if path.exists() and not path.is_dir()]
    if folders:
        return [DocumentProblem(path, 0, "is no folder", "no memory can be opened here") for path in folders]
    kept = (place.home / "obra.db").exists()
    paths = [path for path in place.documents() if kept or path.exists()]
    paths += [*sorted(place.memory.glob("catalog/*.md")), *sorted(place.sessions.glob("session_*.md"))]
    return [problem for path in paths for problem in check_document(path, project, settings)]


def check_index(project: Path) -> list[DocumentProblem]:
    """Find what is wrong with the search index, which is made of the documents and of what was recorded."""
    index = inspect_index(project, thorough=True)
    return [] if index.fault is None else [DocumentProblem(index.database, 0, index.fault, ANEW)]


def check_document(path: Path, project: Path, settings: Settings) -> list[DocumentProblem]:
    """Find every problem of one document; where it lies is told first, then what it holds, line by line."""
    place = Place.of(project, settings)
    link = _link_fault(path, place) if path.is_symlink() else None
    faults = [link] if link else [*_faults(path, place), *_secrets(path, settings)]
    return [DocumentProblem(path, line, problem, meanwhile) for line, problem, meanwhile in faults]


def _secrets(path: Path, settings: Settings) -> Iterator[tuple[int, str, str]]:
    """Find what looks like a secret in what a person wrote: the machine writes none."""
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            text = path.read_text(encoding="utf-8", errors="replace")
            for line, kind in Redactor(key=b"", **dict(settings.redaction)).places(text):
                yield (
                    line,
                    f"holds what looks like a secret ({kind})",
                    "a person's words stay as they are; take it out",
                )


def _link_fault(path: Path, place: Place) -> tuple[int, str, str] | None:
    target = outside_target(path, [place.home, place.memory, place.sessions])
    if target is not None:
        refused = "nothing of it is read, served or written; put the document itself in its place"
        return 0, f"is a symbolic link that leads out of {HOME}, to {target}", refused
    if not path.exists():
        target = Path(os.path.realpath(path))
        return 0, f"is a symbolic link to {target}, which is not there", "nothing of it is served"
    return None


def _faults(path: Path, place: Place) -> Iterator[tuple[int, str, str]]:
    """Find line, problem and what happens meanwhile."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            yield 0, "is a folder", "nothing of it is served or written; what was recorded is safe"
        elif not stat.S_ISREG(status.st_mode):
            yield 0, "is no file", "nothing of it can be relied on; what was recorded is safe"
        else:
            # Where nothing of the memory may be written that is told once, and not of each document.
            if why_read_only(place.home) is None:
                yield from _right_faults(path, status.st_mode)
            yield from _content_faults(path, status.st_size)
    except FileNotFoundError:
        again = "the next command that opens the memory writes it anew"
        yield 0, "is not there", f"{again}; `orchestra-mem history` lists its earlier texts"
    except OSError as error:
        yield 0, f"cannot be read: {error.strerror or error}", "nothing of it is served"


def _right_faults(path: Path, mode: int) -> Iterator[tuple[int, str, str]]:
    # Who may do everything (root) is told as well what somebody has marked as not to be written.
    if not mode & 0o222:
        yield 0, "is marked as read-only", f"it is served, {_LEFT}; `chmod u+w` lets the machine write there"
    elif not os.access(path, os.W_OK):
        yield 0, "cannot be written to", "it is served; what the machine would write waits"


def _content_faults(path: Path, size_bytes: int) -> Iterator[tuple[int, str, str]]:
    size = f"is of {size_bytes / 1e6:,.0f} MB"
    served = f"its first {SHOWN_BYTES / 1e6:,.1f} MB are served, {_LEFT}; take out what was pasted"
    if size_bytes > _LOOKED_THROUGH_BYTES:
        yield 0, f"{size}, over {_LOOKED_THROUGH_BYTES / 1e6:,.0f} MB, and was not looked through", served
        return
    if size_bytes > MOST_BYTES:
        yield 0, f"{size}, over {MOST_BYTES / 1e6:,.0f} MB", served
    yield from text_faults(path.read_bytes())


def disk_sizes(project: Path, settings: Settings) -> dict[str, int]:
    """Measure what a memory takes on the disk, part by part, in bytes."""
    place = Place.of(project, settings)
    parts = {
        "database": place.home.glob("obra.db*"),
        "index": (place.home / "index").rglob("*"),
        "documents": chain(place.documents(), place.memory.glob("catalog/*.md"), place.sessions.glob("*.md")),
        "versions": (place.memory / "versions").glob("*.md"),
        "archives": (place.sessions / "archive").glob("*.md"),
    }
    return {name: sum(map(_size, paths)) for name, paths in parts.items()}


def _size(path: Path) -> int:
    with suppress(OSError):  # gone this instant
        return path.stat().st_size if path.is_file() else 0
    return 0


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

"""What is wrong with the documents, each fault with its line and with what happens meanwhile. Only looks.

The files are read as they lie there, without opening the memory: what a damaged one holds is told even where nothing
else works, and one that was taken away is not made again before that could be told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.adapters.files import outside_target, why_read_only
from orchestra_mem.build import HOME
from orchestra_mem.core.documents.damage import MOST_BYTES, SHOWN_BYTES, text_faults
from orchestra_mem.doctor.search_index import ANEW, inspect_index
from orchestra_mem.settings import Settings
from orchestra_mem.types import DocumentName

# Larger ones are not looked through: no person edits such a document, somebody has pasted something.
_LOOKED_THROUGH_BYTES = 50_000_000
_RIGHTS = ("is marked as read-only", "cannot be written to")
_LEFT = "and the file is left as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
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


def document_paths(project: Path, settings: Settings) -> list[Path]:
    """The episodic documents and those of sessions that have not ended.

    An episodic one is meant to be there once anything has been kept; before, only where it is.
    """
    memory, sessions = (project / folder for folder in _folders(settings))
    kept = (project / HOME / "obra.db").exists()
    episodic = [memory / f"{name.value}.md" for name in DocumentName]
    return [*(path for path in episodic if kept or path.exists()), *sorted(sessions.glob("session_*.md"))]


def check_documents(project: Path, settings: Settings) -> list[DocumentProblem]:
    """Find every problem of every document."""
    found: list[DocumentProblem] = []
    for folder in _folders(settings):
        path = project / folder
        if path.exists() and not path.is_dir():
            found.append(_whole(path, "is no folder", "no memory can be opened here"))
    return found or [
        problem for path in document_paths(project, settings) for problem in check_document(path, project, settings)
    ]


def check_index(project: Path) -> list[DocumentProblem]:
    """Find what is wrong with the search index, which is made of the documents and of what was recorded."""
    index = inspect_index(project, thorough=True)
    return [] if index.fault is None else [_whole(index.database, index.fault, ANEW)]


def check_document(path: Path, project: Path, settings: Settings) -> list[DocumentProblem]:
    """Find every problem of one document; where it lies is told first, then what it holds, line by line."""
    home = project / HOME
    problems = _check(path, [home, *(project / folder for folder in _folders(settings))])
    # Where nothing of the memory may be written that is told once, and not of each document.
    return [*problems] if why_read_only(home) is None else [each for each in problems if each.problem not in _RIGHTS]


def _folders(settings: Settings) -> tuple[str, str]:
    return settings.orchestrator.memory_dir, settings.orchestrator.session_dir


def _check(path: Path, homes: Sequence[Path]) -> Iterator[DocumentProblem]:
    if path.is_symlink():
        yield from (found := list(_check_link(path, homes)))
        if found:
            return
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            yield _whole(path, "is a folder", "nothing of it is served or written; what was recorded is safe")
        elif not stat.S_ISREG(status.st_mode):
            yield _whole(path, "is no file", "nothing of it can be relied on; what was recorded is safe")
        else:
            yield from _check_rights(path, status)
            yield from _check_content(path, status.st_size)
    except FileNotFoundError:
        if not path.is_symlink():
            again = "the next command that opens the memory writes it anew"
            yield _whole(path, "is not there", f"{again}; `orchestra-mem history` lists its earlier texts")
    except OSError as error:
        yield _whole(path, f"cannot be read: {error.strerror or error}", "nothing of it is served")


def _check_link(path: Path, homes: Sequence[Path]) -> Iterator[DocumentProblem]:
    target = outside_target(path, homes)
    if target is not None:
        refused = "nothing of it is read, served or written; put the document itself in its place"
        yield _whole(path, f"is a symbolic link that leads out of {HOME}, to {target}", refused)
    elif not path.exists():
        target = Path(os.path.realpath(path))
        yield _whole(path, f"is a symbolic link to {target}, which is not there", "nothing of it is served")


def _check_rights(path: Path, status: os.stat_result) -> Iterator[DocumentProblem]:
    # Who may do everything (root) is told as well what somebody has marked as not to be written.
    if not status.st_mode & 0o222:
        yield _whole(path, _RIGHTS[0], f"it is served, {_LEFT}; `chmod u+w` lets the machine write there")
    elif not os.access(path, os.W_OK):
        yield _whole(path, _RIGHTS[1], "it is served; what the machine would write waits")


def _check_content(path: Path, size_bytes: int) -> Iterator[DocumentProblem]:
    size, most = f"is of {size_bytes / 1e6:,.0f} MB", MOST_BYTES / 1e6
    served = f"its first {SHOWN_BYTES / 1e6:,.1f} MB are served, {_LEFT}; take out what was pasted"
    if size_bytes > _LOOKED_THROUGH_BYTES:
        yield _whole(path, f"{size}, over {_LOOKED_THROUGH_BYTES / 1e6:,.0f} MB, and was not looked through", served)
        return
    if size_bytes > MOST_BYTES:
        yield _whole(path, f"{size}, over {most:,.0f} MB", served)
    for line, problem, meanwhile in text_faults(path.read_bytes()):
        yield DocumentProblem(path=path, line=line, problem=problem, meanwhile=meanwhile)


def _whole(path: Path, problem: str, meanwhile: str) -> DocumentProblem:
    return DocumentProblem(path=path, line=0, problem=problem, meanwhile=meanwhile)

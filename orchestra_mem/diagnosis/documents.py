"""What is wrong with the documents, each fault with its line and with what happens meanwhile. Only looks.

The files are read as they lie there, without opening the memory: what a damaged one holds is told even where nothing
else works, and one that was taken away is not made again before that could be told.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestra_mem.adapters.files import why_read_only
from orchestra_mem.build import HOME
from orchestra_mem.core.conflicts import faults
from orchestra_mem.core.markdown import front_matter_fault, without_front_matter
from orchestra_mem.settings import Settings
from orchestra_mem.types import DocumentName

# Larger ones are not looked through: no person edits such a document, somebody has pasted something.
_MOST_BYTES = 50_000_000
# Enough to tell text in UTF-16 from text in UTF-8 with a stray NUL.
_SAMPLE_BYTES = 4_096
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FENCED = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^ {0,3}(?P=fence)[`~]*[ \t\r]*$", re.DOTALL | re.MULTILINE
)
# What this program writes at the top of its documents, standing further below.
_FRONT_BELOW = re.compile(r"^---[ \t]*\r?\n(?=format: )(?:[a-z_]+:[^\n]*\n)+---[ \t]*\r?$", re.MULTILINE)
_GIT_MARKER = re.compile(r"^(?P<marker><{7}|>{7}|\|{7}) [^\n]*$", re.MULTILINE)
_RIGHTS = ("is marked as read-only", "cannot be written to")
_AS_TEXT = "it is served as the text it is"


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
        yield from _check_link(path, homes)
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
    target = Path(os.path.realpath(path))
    if not any(target.is_relative_to(os.path.realpath(home)) for home in homes):
        followed = "it is followed: that file is what is read, and what is written"
        yield _whole(path, f"is a symbolic link that leads out of {HOME}, to {target}", followed)
    elif not target.exists():
        yield _whole(path, f"is a symbolic link to {target}, which is not there", "nothing of it is served")


def _check_rights(path: Path, status: os.stat_result) -> Iterator[DocumentProblem]:
    # Who may do everything (root) is told as well what somebody has marked as not to be written.
    if os.access(path, os.W_OK) and status.st_mode & 0o222:
        return
    if os.access(path.parent, os.W_OK):
        yield _whole(path, _RIGHTS[0], "it is served; a new text of the machine's still takes its place")
    else:
        yield _whole(path, _RIGHTS[1], "it is served; what the machine would write waits")


def _check_content(path: Path, size_bytes: int) -> Iterator[DocumentProblem]:
    if size_bytes > _MOST_BYTES:
        told = f"is of {size_bytes / 1e6:,.0f} MB, over {_MOST_BYTES / 1e6:,.0f} MB, and was not looked through"
        yield _whole(path, told, "it is served as far as a context's budget goes, and slows everything down")
        return
    for line, problem, meanwhile in check_text(path.read_bytes()):
        yield DocumentProblem(path=path, line=line, problem=problem, meanwhile=meanwhile)


def check_text(data: bytes) -> list[tuple[int, str, str]]:
    """Find what is wrong with what a document holds: line, problem, what happens meanwhile. Pure."""
    if not data.strip():
        return [(0, "is empty", "nothing of it is served; what the machine writes next stands there alone")]
    if _is_utf_16(data):
        problem = "is UTF-16, not UTF-8; save it as UTF-8"
        return [(0, problem, "it is served as text, in which nobody can read anything; its bytes stay as they are")]
    text = data.decode("utf-8", "surrogateescape")
    found = [*_check_bytes(data)]
    if fault := front_matter_fault(text):
        found.append((*fault, _AS_TEXT))
    found += [
        (line, problem, _AS_TEXT) for line, problem in [*_second_fronts(text), *faults(text), *_git_markers(text)]
    ]
    return sorted(found)


def _is_utf_16(data: bytes) -> bool:
    sample = data[:_SAMPLE_BYTES]
    return data.startswith(_UTF_16_MARKS) or any(
        4 * sample[start::2].count(0) > len(sample) > 8 and not sample[1 - start :: 2].count(0) for start in (0, 1)
    )


def _check_bytes(data: bytes) -> Iterator[tuple[int, str, str]]:
    if b"\0" in data:
        count = data.count(b"\0")
        told = "a NUL byte" if count == 1 else f"the first of {count:,} NUL bytes"
        yield data.count(b"\n", 0, data.index(b"\0")) + 1, f"{told}; delete it", _AS_TEXT
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        problem = f"is not UTF-8: 0x{data[error.start]:02x} at byte {column} of the line (Latin-1?); save it as UTF-8"
        yield line, problem, "it is served as text, and this byte stays as it is"


def _second_fronts(text: str) -> Iterator[tuple[int, str]]:
    """A front matter behind the first: right below it any, further below one that this program has written."""
    problem = "a second front matter; the first counts, delete the other"
    rest = without_front_matter(text)
    if len(rest) == len(text):
        return
    start = len(text) - len(rest)
    if rest.startswith("---") and front_matter_fault(rest) is None:
        yield text.count("\n", 0, start) + 1, problem
        start += len(rest) - len(without_front_matter(rest))
    if not _FRONT_BELOW.search(text, start):
        return
    for match in _FRONT_BELOW.finditer(_without_fenced(text), start):
        yield text.count("\n", 0, match.start()) + 1, problem


def _git_markers(text: str) -> Iterator[tuple[int, str]]:
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return
    for match in _GIT_MARKER.finditer(_without_fenced(text)):
        line = text.count("\n", 0, match.start()) + 1
        yield line, f"git has left {match['marker']} here: keep one of the two texts, delete the markers"


def _without_fenced(text: str) -> str:
    """A text of the same length and lines, whose fenced code is blank."""
    return _FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _whole(path: Path, problem: str, meanwhile: str) -> DocumentProblem:
    return DocumentProblem(path=path, line=0, problem=problem, meanwhile=meanwhile)

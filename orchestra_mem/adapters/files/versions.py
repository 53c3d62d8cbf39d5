"""File names of versions, with their metadata: `project_state.20250115T143015.123456Z.000007.machine.refresh.md`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.types import Author, Version, VersionReason

_TIME = "%Y%m%dT%H%M%S.%fZ"
_VERSION = re.compile(
    r"(?P<document>.+)\.(?P<time>\d{8}T\d{6}\.\d{6}Z)\.(?P<sequence>\d{6,})\.(?P<author>[a-z]+)\.(?P<reason>[a-z]+)\.md"
)


def version_name(document: str, sequence: int, *, time: datetime, author: Author, reason: VersionReason) -> str:
    """Return the file name of a version."""
    stamp = time.astimezone(UTC).strftime(_TIME)
    return f"{document}.{stamp}.{sequence:06d}.{author.value}.{reason.value}.md"


def version_document(path: Path, versions: Path) -> str:
    """Return the name under which versions of the document at `path` are kept.

    A document in a subfolder of the memory folder, such as `catalog`, gets the subfolder's name as a prefix.
    """
    return f"{path.parent.name}-{path.stem}" if path.parent.parent == versions.parent else path.stem


def read_name(path: Path, size_bytes: int) -> Version | None:
    """Parse a version's file name; None for other files. Unknown authors and reasons count as a person's edit."""
    match = _VERSION.fullmatch(path.name)
    if match is None:
        return None
    known = match["author"] in set(Author) and match["reason"] in set(VersionReason)
    with suppress(ValueError):  # an invalid time
        return Version(
            document=match["document"],
            sequence=int(match["sequence"]),
            time=datetime.fromisoformat(match["time"]),
            author=Author(match["author"]) if known else Author.PERSON,
            reason=VersionReason(match["reason"]) if known else VersionReason.EDIT,
            path=str(path),
            size_bytes=size_bytes,
        )
    return None


def scan(folder: Path, document: str) -> Iterator[Version]:
    """Yield the versions of a document in a folder, unordered; files with other names are skipped."""
    names = os.listdir(folder) if folder.is_dir() else ()
    for path in (folder / name for name in names if name.startswith(f"{document}.")):
        with suppress(FileNotFoundError):  # pruned by another process
            version = read_name(path, path.stat().st_size)
            if version is not None and version.document == document:
                yield version


def last_sequence(folder: Path) -> int:
    """Return the highest sequence number of all versions in a folder, 0 if there are none."""
    names = os.listdir(folder) if folder.is_dir() else ()
    return max((int(match["sequence"]) for name in names if (match := _VERSION.fullmatch(name))), default=0)

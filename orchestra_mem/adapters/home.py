"""The list of a user's projects, and the home folder that holds it.

Each project folder has one small JSON file, which is replaced atomically, so that no lock is needed. A lost or damaged
file is written again when its project is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestra_mem.errors import StorageError, telling

HOME_VARIABLE = "ORCHESTRA_MEM_HOME"


def home_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the home folder, which need not exist; None if it is turned off, or the user has no data folder.

    The variable `ORCHESTRA_MEM_HOME` is its path or `off`; by default the home is in the user's data folder.
    `StorageError` is raised if the variable is a relative path.
    """
    given = environ.get(HOME_VARIABLE, "").strip()
    if given == "off":
        return None
    if given:
        if not (folder := Path(os.path.expanduser(given))).is_absolute():
            raise StorageError(f"{HOME_VARIABLE} is {given}, a relative path: give an absolute path, or off")
        return folder
    import platformdirs  # takes milliseconds to import

    found = platformdirs.user_data_path("orchestra-mem", appauthor=False)
    return found if found.is_absolute() else None


_LEFT_BEHIND_S = 60.0
# A folder whose database is on a server has the second file.
_MEMORIES = (Path(".obra") / "obra.db", Path(".obra") / "working_copy.db")
_NAMES = ("id", "name", "first_opened", "last_opened")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProject:
    """A project in the list. Days are written as 2026-11-26; `shared` lets searches from other projects include it.

    Folders with the same `id` are copies of each other, or one project that was moved. `label`: The name, with the
    folder if several present projects have it. `present`: Whether the memory exists. `note`: A warning for people.
    `memory`: Key of a memory on a server. `copies`: The other folders with this memory.
    """

    id: str
    name: str
    path: Path
    tags: tuple[str, ...]
    shared: bool
    first_opened: str
    last_opened: str
    label: str = ""
    present: bool = True
    note: str = ""
    memory: str = ""
    copies: tuple[Path, ...] = ()


def has_memory(project: Path) -> bool:
    """Check whether a folder has a memory; False if the folder does not exist or is not accessible."""
    return any(os.path.isfile(project / each) for each in _MEMORIES)


class ProjectRegistry:
    """Reads and writes the list in a home folder, which the first write creates. Takes no lock.

    Every method raises `StorageError` if the files cannot be read or written.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "projects"

    def put(self, project: ListedProject, *, passing: bool = True) -> None:
        """Add or update a project; no write if nothing changes.

        Unless `passing`, a project in the system's temporary folder is skipped, if the home is not there too.
        """
        file = self.folder / f"{hashlib.blake2b(os.fsencode(project.path), digest_size=8).hexdigest()}.json"
        project = replace(project, id=project.id or file.stem)
        old = _read(file)
        if old is not None and old.id == project.id:
            first = min(old.first_opened, project.first_opened)
            project = replace(project, first_opened=first, last_opened=max(old.last_opened, project.last_opened))
        made = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
        with telling("writing to", self.folder):
            temporary = Path(os.path.realpath(tempfile.gettempdir()))
            is_listed = passing or not project.path.is_relative_to(temporary)
            if project == old or not (is_listed or Path(os.path.realpath(self.folder)).is_relative_to(temporary)):
                if project == old and project.memory:
                    os.utime(file)  # tells which folder of the memory was opened last on this day
                return
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in self.folder.glob("*.tmp"):  # left by a killed process
                with suppress(FileNotFoundError):
                    if left.stat().st_mtime < time.time() - _LEFT_BEHIND_S:
                        left.unlink()
            entry = {name: getattr(project, name) for name in (*_NAMES, "tags", "shared", "memory")}
            try:
                made.write_text(json.dumps({**entry, "path": str(project.path)}, indent=2), encoding="ascii")
                made.replace(file)
            finally:
                made.unlink(missing_ok=True)

    def projects(self) -> list[ListedProject]:
        """Return all projects, sorted by name. Skips damaged files.

        A moved project has only its present folder; one on a server has the folder that was opened last.
        """
        read = [each for _, each in sorted(self._files(), key=lambda found: (found[1].last_opened, _written(found[0])))]
        there = {each.path for each in read if has_memory(each.path)}
        last = {each.memory: each for each in read if each.path in there}
        hidden = [each for each in read if each.memory and each is not last.get(each.memory, each)]
        read = [each for each in read if each not in hidden]
        names = [each.name for each in read if each.path in there]
        listed = []
        for each in sorted(read, key=lambda each: (each.name.casefold(), each.path)):
            twins = [other for other in read if other.id == each.id and other.path != each.path]
            copies = [str(other.path) for other in twins if other.path in there]
            present, note = each.path in there, ""
            if not present:
                note = "its memory was not found; `orchestra-mem projects remove` removes it from the list"
            elif copies:
                note = f"has the id of {', '.join(copies)} and may be a copy; set a different project.id in one of them"
            if present or not copies:
                first = min([each.first_opened, *(other.first_opened for other in twins if other.path not in there)])
                label = each.name if names.count(each.name) < 2 else f"{each.name} ({each.path})"
                others = tuple(other.path for other in hidden if other.memory == each.memory)
                listed.append(replace(each, first_opened=first, label=label, present=present, note=note, copies=others))
        return listed

    def remove(self, project: ListedProject) -> None:
        """Remove a project and its former folders from the list."""
        with telling("writing to", self.folder):
            for file, each in self._files():
                is_copy = project.memory and each.memory == project.memory
                if each.path == project.path or is_copy or (each.id == project.id and not has_memory(each.path)):
                    file.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, ListedProject]]:
        with telling("reading", self.folder), suppress(FileNotFoundError):  # nothing has been listed yet
            files = [file for file in self.folder.iterdir() if file.suffix == ".json"]
            return [(file, each) for file in files if (each := _read(file))]
        return []


def _written(file: Path) -> int:
    """Return when a file was last written, in nanoseconds; 0 if it is missing."""
    with suppress(OSError):
        return file.stat().st_mtime_ns
    return 0


def _read(file: Path) -> ListedProject | None:
    """Read a file; None if it is missing or damaged."""
    try:
        found = json.loads(file.read_bytes())
        named: dict[str, Any] = {name: str(found[name]) for name in _NAMES}
        tags = tuple(str(tag) for tag in found["tags"])
        named |= {"path": Path(found["path"]), "memory": str(found.get("memory", ""))}
        return ListedProject(tags=tags, shared=found["shared"] is True, **named)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None

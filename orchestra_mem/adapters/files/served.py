"""Documents on a server for those who may only read the memory: none are copied to this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.files.reading import encode
from orchestra_mem.adapters.files.store import FileDocumentStore
from orchestra_mem.adapters.files.versions import read_name
from orchestra_mem.adapters.files.working_copies import Folders
from orchestra_mem.core.documents.damage import shown, text_faults
from orchestra_mem.stores.shared_files import SharedFiles
from orchestra_mem.types import DocumentFault, FileState, Version

_SELDOM_READ = ("versions", "archive")


class ServedDocumentStore(FileDocumentStore):
    """Implements `ports.DocumentStore` with the documents on the server; every change is refused.

    Files in `folders` are ignored. Other documents, such as the log that projects share, are read from their files.

    Args:
        folders: The folders of documents, by names that are the same on every machine.
        files: The documents on the server.
        more: Arguments of `FileDocumentStore`.
    """

    def __init__(self, folders: Mapping[str, Path], *, files: SharedFiles, **more: Any) -> None:
        super().__init__(**{**more, "read_only": True})
        self._folders = Folders(folders)
        self._files = files
        self._through = 0
        self._states: dict[Path, FileState | None] = {}
        self._texts: dict[Path, tuple[FileState, bytes]] = {}  # can be read while the server is away
        self.follow()

    @contextmanager
    def lock(self, *, timeout_s: float | None = None) -> Iterator[None]:
        """Apply changes on the server, and apply no others meanwhile."""
        with super().lock(timeout_s=timeout_s):
            self.follow()
            yield

    def follow(self) -> None:
        """Note which documents have changed on the server."""
        with super().lock():
            states = {**self._states}
            for name, revision, size_bytes in self._files.sizes_after(self._through):
                if self._folders.has(name):
                    state = None if size_bytes is None else FileState(revision, size_bytes, 0)
                    states[self._folders.path(name)] = state
                self._through = revision
            self._states = states
            self._texts = {path: held for path, held in self._texts.items() if states[path] == held[0]}

    def paths(self) -> list[Path]:
        """Return the paths that the documents on the server have on a machine with copies."""
        return [path for path, state in self._states.items() if state is not None]

    def state(self, path: Path) -> FileState | None:
        """See `DocumentReader.state`."""
        return super().state(path) if self._folders.name(path) is None else self._states.get(path)

    def _read_bytes(self, path: Path) -> bytes | None:
        if (name := self._folders.name(path)) is None:
            return super()._read_bytes(path)
        state, held = self._states.get(path), self._texts.get(path)
        if state is None:
            return None
        if held is not None and held[0] == state:
            return held[1]
        if (text := self._files.text(name)) is None:  # removed meanwhile
            return None
        if path.parent.name not in _SELDOM_READ:
            self._texts[path] = state, encode(text)
        return encode(text)

    def read_settled(self, path: Path) -> str | None:
        """Return a document's text, None if it does not exist."""
        return self.read(path)

    def read_to_change(self, path: Path) -> str | None:
        """Return a document's text, None if it does not exist. The change itself is refused."""
        return self.read(path)

    def read_shown(self, path: Path) -> str | None:
        """See `DocumentReader.read_shown`."""
        if self._folders.name(path) is None:
            return super().read_shown(path)
        data = self._read_bytes(path)
        return None if data is None else shown(data, len(data))

    def faults(self, path: Path) -> list[DocumentFault]:
        """See `DocumentReader.faults`."""
        if self._folders.name(path) is None:
            return super().faults(path)
        data = self._read_bytes(path)
        found = [] if data is None else text_faults(data)
        return [DocumentFault(path=str(path), line=at, problem=what, meanwhile=then) for at, what, then in found]

    def versions(self, document: str) -> list[Version]:
        """See `FileDocumentStore.versions`."""
        kept = [each for each in self._states.items() if each[0].parent == self._versions]
        found = [read_name(path, state.size_bytes) for path, state in kept if state]
        return sorted((each for each in found if each and each.document == document), key=lambda each: each.sequence)

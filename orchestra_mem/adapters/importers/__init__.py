"""Importers of histories: detect the kind of a file by its name and first lines, and choose the module that reads it.

Each file of a folder is examined separately. Symbolic links are not followed: they may form cycles or leave the folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from orchestra_mem.adapters.importers.chatgpt import CONVERSATIONS, holds_conversations, read_export
from orchestra_mem.adapters.importers.source_file import Reader, SourceFile
from orchestra_mem.adapters.importers.transcripts import RULE_FILES, agent_of, read_note, read_transcript
from orchestra_mem.choices import ImportKind
from orchestra_mem.core.imported_history import History, HistoryFault, HistoryOperation, OnFault
from orchestra_mem.errors import HistoryError

_READERS: dict[ImportKind, Reader] = {
    ImportKind.TRANSCRIPTS: read_transcript,
    ImportKind.CHATGPT: read_export,
    ImportKind.NOTES: read_note,
    ImportKind.RULES: partial(read_note, rules=True),
}
_PASSED_OVER = frozenset({".git", ".obra", ".obsidian", ".trash", ".venv", "node_modules"})


def open_import(
    path: str | Path, kind: ImportKind | None = None, *, agent: str | None = None, on_fault: OnFault
) -> History:
    """Open a file, or all importable files in a folder, oldest first. The history's `total` is their size in bytes.

    Args:
        path: The file or folder.
        kind: Kind of the file, None to detect it. In a folder, only files of this kind are read.
        agent: Agent to record the operations under; by default, the agent that wrote the transcript.
        on_fault: Called for each fault; reading then goes on.

    Raises:
        HistoryError: Nothing can be imported.
    """
    root, left_out = Path(path), Counter[str]()
    try:
        root.stat()
    except OSError as error:
        raise HistoryError(str(_unreadable(root, error))) from error
    files: list[tuple[float, Path, int, ImportKind]] = []
    for file in _files(root, on_fault, left_out) if root.is_dir() else [root]:
        try:
            found = kind if file is root and kind else _kind_of(file)
            if found and kind in (None, found):
                about = file.stat()
                files.append((about.st_mtime, file, about.st_size, found))
        except OSError as error:
            on_fault(_unreadable(file, error))
    if not files:
        raise HistoryError(
            f"nothing in {root} can be imported{f' as {kind}' if kind else ''}: `import` reads transcripts of Claude "
            "Code or Codex, a ChatGPT export, and markdown; for other JSON lines use `import jsonl`, for a repository "
            "`import git`"
        )
    operations, total = _read(sorted(files), agent, on_fault, left_out), sum(size for _, _, size, _ in files)
    return History(source=str(root), operations=operations, total=total, unit="bytes", left_out=left_out)


def _read(
    files: list[tuple[float, Path, int, ImportKind]], agent: str | None, on_fault: OnFault, left_out: Counter[str]
) -> Iterator[HistoryOperation]:
    start = 0
    for _, file, size, kind in files:
        try:
            yield from _READERS[kind](
                SourceFile(path=file, start=start, agent=agent, on_fault=on_fault, left_out=left_out)
            )
        except OSError as error:
            on_fault(_unreadable(file, error))
        start += size


def _unreadable(path: Path | str, error: OSError) -> HistoryFault:
    return HistoryFault(place=str(path), problem=f"cannot be read: {error.strerror or error}")


def _files(root: Path, on_fault: OnFault, left_out: Counter[str]) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, onerror=lambda error: on_fault(_unreadable(error.filename, error))):
        links = {name for name in (*folders, *names) if os.path.islink(os.path.join(folder, name))}
        left_out["symbolic link"] += len(links)
        folders[:] = sorted({*folders} - _PASSED_OVER - links)
        yield from (Path(folder, name) for name in sorted({*names} - links))


def _kind_of(file: Path) -> ImportKind | None:
    """Detect the kind of a file; None if it cannot be imported."""
    if not file.is_file():
        return None
    if file.name in RULE_FILES:
        return ImportKind.RULES
    if file.suffix.lower() in (".md", ".markdown"):
        return ImportKind.NOTES
    if CONVERSATIONS.fullmatch(file.name) or (file.suffix == ".zip" and holds_conversations(file)):
        return ImportKind.CHATGPT
    return ImportKind.TRANSCRIPTS if file.suffix == ".jsonl" and agent_of(file) else None

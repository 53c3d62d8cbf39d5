"""Find faults in documents and the search index, find secrets anywhere, and remove secrets.

The memory is not opened, so that faults are found even if nothing else works, and a missing document is reported, not
created again. Only `redact_memory` changes anything: at the caller's request it rewrites recorded operations, which are
otherwise immutable, and documents, including people's lines; the audit trail records the rewriting.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from orchestra_mem.adapters.database import Database, project_key
from orchestra_mem.adapters.database.database_copy import PACKED, former_texts, rewrite, stored_texts
from orchestra_mem.adapters.database.project_key import left_places, moved_words
from orchestra_mem.adapters.files import BACKUP_MARK, DocumentReader, why_read_only
from orchestra_mem.adapters.files.reading import decode
from orchestra_mem.adapters.search_index.inspection import IndexReport, inspect
from orchestra_mem.build import HOME
from orchestra_mem.build.storage import COPIES_FILE, Place, database_file, open_database, open_store, working_copy
from orchestra_mem.catalog_types import AccessOutcome, AuditEntry
from orchestra_mem.core.documents.markdown import with_changed_words, words_of_document
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.errors import StorageError
from orchestra_mem.settings import Settings
from orchestra_mem.stores import AuditLog, SqlDatabase
from orchestra_mem.types import DocumentFault

# Files in `.obra` that are no documents: the database, derived data, settings, and files of running programs.
_NO_TEXT = ("obra.db", "index/", COPIES_FILE, "config.yaml", "server/", "obra.lock", BACKUP_MARK)
ANEW = "the next search rebuilds it; nothing is lost, because the index is derived data"


def check_documents(project: Path, settings: Settings) -> list[DocumentFault]:
    """Find the faults of the episodic documents, the catalog's documents, and the documents of live sessions.

    A missing episodic document is a fault if there is a database, or a working copy of the documents on a server.
    """
    place = Place.of(project, settings)
    folders = [path for path in (place.memory, place.sessions) if path.exists() and not path.is_dir()]
    if folders:
        refused = "no memory can be opened here"
        return [DocumentFault(path=str(path), line=0, problem="is not a folder", meanwhile=refused) for path in folders]
    file = database_file(place.home, settings) or place.home / COPIES_FILE  # without that, this folder has no copies
    paths = [path for path in place.documents() if file.exists() or path.exists()]
    paths += [*sorted(place.memory.glob("catalog/*.md")), *sorted(place.sessions.glob("session_*.md"))]
    return [problem for path in paths for problem in check_document(path, project, settings)]


def check_index(project: Path) -> list[DocumentFault]:
    """Check the entire search index; return its fault, if any."""
    index = inspect_index(project, thorough=True)
    if index.fault is None:
        return []
    return [DocumentFault(path=str(index.database), line=0, problem=index.fault, meanwhile=ANEW)]


def check_document(path: Path, project: Path, settings: Settings) -> list[DocumentFault]:
    """Find the faults of one document: first faults of the file, then faults in its text, line by line."""
    place = Place.of(project, settings)
    if not os.path.lexists(path):
        again = (
            "the next command that can write here creates it again; `orchestra-mem history` lists its earlier versions"
        )
        return [DocumentFault(path=str(path), line=0, problem="is missing", meanwhile=again)]
    reader = DocumentReader(
        homes=(place.home, place.memory, place.sessions), read_only=why_read_only(place.home) is not None
    )
    found = reader.faults(path)
    with suppress(StorageError):
        words = words_of_document(reader.read(path) or "")
        for line, kind in Redactor(key=b"", **dict(settings.redaction)).places(words):
            problem = f"contains what looks like a secret ({kind})"
            stays = "a person's lines are not redacted; remove the secret"  # the program redacts its own lines
            found.append(DocumentFault(path=str(path), line=line, problem=problem, meanwhile=stays))
    return found


def disk_sizes(project: Path, settings: Settings) -> dict[str, int]:
    """Return the size on disk of each part of a memory, in bytes."""
    place = Place.of(project, settings)
    parts = {"database": place.home.glob("obra.db*"), "index": (place.home / "index").rglob("*"), **_texts(place)}
    return {name: sum(map(_size, paths)) for name, paths in parts.items()}


def _texts(place: Place) -> Mapping[str, Iterable[Path]]:
    """Return the files that a memory writes for people, by kind; its folders may hold other files as well."""
    return {
        "documents": chain(place.documents(), place.memory.glob("catalog/*.md"), place.sessions.glob("session_*.md")),
        "versions": (place.memory / "versions").glob("*.md"),
        "archives": (place.sessions / "archive").glob("*.md"),
    }


def _size(path: Path) -> int:
    with suppress(OSError):  # removed meanwhile
        return path.stat().st_size if path.is_file() else 0
    return 0


def inspect_index(project: Path, *, thorough: bool = False) -> IndexReport:
    """Inspect a project's search index; see `inspection.inspect`."""
    return inspect(project / HOME / "index", thorough=thorough)


def index_words(report: IndexReport, last_operation: int) -> str:
    """Describe the state of an index in one line; `last_operation` is the id of the memory's newest operation."""
    if not report.present:
        return "not built yet; the first search builds it"
    if report.fault is not None:
        return f"{report.database} {report.fault}"
    models = ", ".join(f"{model.name} ({model.dimensions} dimensions)" for model in report.models)
    by = f"embedded by {models}" if models else "not embedded"
    told = f"{report.chunks:,} passages, {by}, {report.size_bytes / 1e6:,.1f} MB"
    behind = last_operation - report.operations
    return f"{told}; {behind:,} operations behind" if behind > 0 else told


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPlace:
    """A line of a file or a column of a database row that contains secrets, and their number by kind."""

    place: str
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionResult:
    """The number of texts and of files that were rewritten, and what was not: files, and schemas left by moves."""

    texts: int
    files: int
    left: tuple[str, ...] = ()


def find_secrets(project: Path, settings: Settings) -> list[SecretPlace]:
    """Find secrets in the database, in all documents with their versions and archives, and in files beside them.

    The file that a move to a server left is searched too. What one left on a server is only named, as `not-searched`.
    """
    place = Place.of(project, settings)
    with closing(open_database(place.home, settings, read_only=True)) as database:
        redactor, left = _redactor(database, settings), left_places(database)
        rows = _found_in(database, redactor)
        rows += [(f"{each}, left by a move", {"not-searched": 1}) for each in left]
    if settings.storage.url and (place.home / COPIES_FILE).exists():
        from orchestra_mem.adapters.files.working_copies import CopyHistory

        with closing(CopyHistory(place.home / COPIES_FILE)) as copies:
            former = [(f"{COPIES_FILE}, {row[0]}", text) for _, text, row in copies.former()]
        rows += [(where, redactor.counts(words_of_document(text))) for where, text in former]
    if settings.storage.url and (file := place.home / "obra.db").exists():
        with closing(Database(file, read_only=True)) as old:
            rows += [(f"{file.name}, left by a move, {where}", kinds) for where, kinds in _found_in(old, redactor)]
    documents = _documents(place, is_shared=bool(settings.storage.url))
    for path in (*documents, *_others(place, documents)):
        lines = Counter(redactor.places(_words_in(path)))
        rows += [(f"{path}:{line}", Counter({kind: count})) for (line, kind), count in lines.items()]
    return [SecretPlace(place=where, kinds=dict(kinds)) for where, kinds in rows if kinds]


def _found_in(database: SqlDatabase, redactor: Redactor) -> list[tuple[str, Mapping[str, int]]]:
    """Return the place of each text of a database, and its number of secrets by kind."""
    found = [(text.place, redactor.counts(text.value)) for text in stored_texts(database)]
    former = [(f"{PACKED} {number}", text or "") for number, text in former_texts(database)]
    return found + [(where, redactor.counts(words_of_document(text))) for where, text in former]


def redact_memory(project: Path, settings: Settings, *, left_deleted: bool = False) -> RedactionResult:
    """Replace all secrets in the database and the documents by placeholders, and delete the search index.

    Files that the memory has not written, such as copies of documents, are not changed but only named. So are schemas
    that moves have left, until `left_deleted` says that they are gone; the file that a move has left is rewritten.

    Raises:
        StorageError: A write failed. Texts that were already rewritten stay so; the call can be repeated.
    """
    place = Place.of(project, settings)
    with (
        closing(open_database(place.home, settings)) as database,
        closing(open_store(place, settings, database)) as store,
        store.lock(),
    ):
        redactor = _redactor(database, settings)
        # The index goes first: after a kill half-way nothing else would remove the secrets from the index.
        _delete_index(place.home / "index")
        documents = _documents(place, is_shared=bool(settings.storage.url))
        files = [path for path in documents if redactor.places(_words_in(path))]
        with database.transaction("redact"):
            texts = rewrite(database, redactor.value)
            detail = f"{texts} texts in the database and {len(files)} files rewritten"
            entry = AuditEntry(
                time=datetime.now(UTC), agent="", call="redact", outcome=AccessOutcome.CHANGED, detail=detail
            )
            AuditLog(database).add([entry] if texts or files else [])
        try:
            for path in files:
                text = store.read(path) or ""
                store.replace(path, with_changed_words(text, redactor.text), expected=text, name="redact")
            if settings.storage.url:
                with closing(working_copy(database, place.home, settings)) as copies:
                    texts += copies.change_former(lambda text: with_changed_words(text, redactor.text))
        finally:  # even if nothing was left to redact: an earlier call may have been killed here
            database.compact()
        # Delete the index again: a running program may have indexed a text before it was rewritten.
        _delete_index(place.home / "index")
        left = left_places(database, forget=left_deleted)
    if settings.storage.url and (file := place.home / "obra.db").exists():
        texts += _redact_left(file, redactor)
    left += [str(path) for path in _others(place, documents) if redactor.places(_words_in(path))]
    return RedactionResult(texts=texts, files=len(files), left=tuple(left))


def _redact_left(file: Path, redactor: Redactor) -> int:
    """Rewrite the database that a move has left, which stays marked as moved; return the number of texts."""
    with closing(Database(file)) as old:
        with old.transaction("redact"):
            words = moved_words(old)
            old.refuse_writes("")
            texts = rewrite(old, redactor.value)
            old.refuse_writes(words)
        old.compact()
    return texts


def _delete_index(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        raise StorageError(f"{folder} cannot be deleted and may contain secrets: delete it, then repeat")


def _redactor(database: SqlDatabase, settings: Settings) -> Redactor:
    return Redactor(key=project_key(database), **dict(settings.redaction))


def _documents(place: Place, *, is_shared: bool) -> list[Path]:
    """Return the documents of a memory; if a server shares them, all Markdown files in the memory's folders."""
    paths = {path for kind in _texts(place).values() for path in kind}
    if is_shared:
        paths |= {*place.memory.rglob("*.md"), *place.sessions.rglob("*.md")}
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def _others(place: Place, documents: Collection[Path]) -> list[Path]:
    """Return the files in the memory's folders that it does not write, such as copies that a sync program made."""
    found = {path for path in place.home.rglob("*") if not path.relative_to(place.home).as_posix().startswith(_NO_TEXT)}
    found |= {*place.memory.glob("*.md"), *place.sessions.glob("*.md")}
    return sorted(path for path in found.difference(documents) if path.is_file() and not path.is_symlink())


def _words_in(path: Path) -> str:
    return words_of_document(decode(path.read_bytes()))

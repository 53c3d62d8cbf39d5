"""Look for secrets in a memory that is there already, and take them out.

The event log is immutable but for this: `take_out` rewrites what was recorded, and the audit trail says so. Documents
are rewritten too, a person's lines among them: who calls it has asked for that. What is derived is made anew.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestra_mem.adapters.database import SqlAuditLog, SqlDatabase, project_key
from orchestra_mem.adapters.database.whole_database import rewrite, stored_texts
from orchestra_mem.adapters.files import FileDocumentStore
from orchestra_mem.build.place import Place
from orchestra_mem.build.storage import open_database, open_store
from orchestra_mem.catalog_types import AccessOutcome, AuditEntry
from orchestra_mem.core.redaction.redactor import Redactor
from orchestra_mem.settings import Settings
from orchestra_mem.types import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPlace:
    """Where secrets stand: a file with a line, or a row of the database; of which kinds, how many."""

    place: str
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """How many texts of the database and how many files have been rewritten."""

    texts: int
    files: int


def find_secrets(project: Path, settings: Settings) -> list[SecretPlace]:
    """Look through the database and all documents; nothing is changed."""
    place = Place.of(project, settings)
    database = open_database(place.home, settings, read_only=True)
    try:
        redactor = _redactor(database, settings)
        rows = [(text.place, redactor.counts(text.value)) for text in stored_texts(database)]
    finally:
        database.close()
    for path in _documents(place):
        lines = Counter(redactor.places(_read(path)))
        rows += [(f"{path}:{line}", Counter({kind: count})) for (line, kind), count in lines.items()]
    return [SecretPlace(place=where, kinds=dict(kinds)) for where, kinds in rows if kinds]


def take_out(project: Path, settings: Settings) -> TakenOut:
    """Put placeholders in the place of all secrets, in the database and in the documents.

    Raises:
        StorageError: the disk refused; what was rewritten until then stays so, and it can be done again.
    """
    place = Place.of(project, settings)
    database = open_database(place.home, settings)
    try:
        store = open_store(place, settings, database)
        with store.lock():
            redactor = _redactor(database, settings)
            # What is derived first: a kill on the way leaves nothing that still has them.
            shutil.rmtree(place.home / "index", ignore_errors=True)
            texts = rewrite(database, redactor.value)
            files = sum(_rewritten(store, path, redactor) for path in _documents(place))
            done = TakenOut(texts=texts, files=files)
            detail = f"{texts} texts of the database and {files} files rewritten"
            entry = AuditEntry(
                time=datetime.now(UTC), agent="", call="redact", outcome=AccessOutcome.CHANGED, detail=detail
            )
            SqlAuditLog(database).add([entry] if texts or files else [])
    finally:
        database.close()
    return done


def _redactor(database: SqlDatabase, settings: Settings) -> Redactor:
    return Redactor(key=project_key(database), **dict(settings.redaction))


def _documents(place: Place) -> Iterator[Path]:
    for folder in (place.memory, place.sessions):
        yield from sorted(path for path in folder.rglob("*.md") if path.is_file() and not path.is_symlink())


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _rewritten(store: FileDocumentStore, path: Path, redactor: Redactor) -> bool:
    text = _read(path)
    clean: Json = redactor.text(text)
    if clean == text:
        return False
    store.replace(path, str(clean), expected=text, name="redact")
    return True

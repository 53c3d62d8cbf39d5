"""The database's schema as numbered steps forward. A step that has been released is never changed."""

from __future__ import annotations

APPLICATION_ID = 0x4F4D454D  # "OMEM", in the file's header: tells our databases from others

MIGRATIONS: tuple[str, ...] = (
    # 1: the event log, sessions, summaries with their ledger, must-keeps, and what the machine last wrote
    """
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        started INTEGER NOT NULL,
        status TEXT NOT NULL,
        spilled_through INTEGER NOT NULL DEFAULT 0,
        judged_through INTEGER NOT NULL DEFAULT 0,
        ended INTEGER,
        archive TEXT,
        closing TEXT
    ) STRICT;
    CREATE TABLE operations (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (number),
        type TEXT NOT NULL,
        timestamp INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        entry_tokens INTEGER NOT NULL,
        agent TEXT,
        critical INTEGER NOT NULL,
        idempotency_key TEXT,
        data TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX operations_idempotency_key ON operations (idempotency_key)
        WHERE idempotency_key IS NOT NULL;
    CREATE INDEX operations_session ON operations (session);
    CREATE INDEX operations_type ON operations (type);
    CREATE INDEX operations_timestamp ON operations (timestamp);
    CREATE TABLE summaries (
        id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (number),
        level INTEGER NOT NULL,
        first_operation INTEGER NOT NULL,
        last_operation INTEGER NOT NULL,
        operation_count INTEGER NOT NULL,
        parent INTEGER REFERENCES summaries (id),
        method TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        source_tokens INTEGER NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL,
        created INTEGER NOT NULL,
        details TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX summaries_standing ON summaries (session) WHERE parent IS NULL;
    CREATE INDEX summaries_parent ON summaries (parent) WHERE parent IS NOT NULL;
    CREATE TABLE must_keeps (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        operation INTEGER NOT NULL REFERENCES operations (id),
        timestamp INTEGER NOT NULL,
        identifiers TEXT NOT NULL,
        status TEXT NOT NULL,
        superseded_by INTEGER NOT NULL DEFAULT 0,
        weight REAL NOT NULL
    ) STRICT;
    CREATE INDEX must_keeps_kind ON must_keeps (kind, status, weight, id);
    CREATE INDEX must_keeps_operation ON must_keeps (operation);
    CREATE TABLE must_keep_counts (
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (kind, status)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE documents (
        name TEXT PRIMARY KEY,
        written TEXT,
        digest TEXT,
        pending TEXT,
        pending_digest TEXT
    ) STRICT;
    CREATE TABLE notices (
        id INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        subject TEXT NOT NULL,
        text TEXT NOT NULL,
        resolved INTEGER
    ) STRICT;
    """,
    # 2: the weightiest facts of a kind without sorting all of them
    """
    CREATE INDEX must_keeps_weight ON must_keeps (kind, weight, id);
    """,
    # 3: facts that people write by hand, and the whole files that the machine left (null where they are its own text)
    """
    ALTER TABLE must_keeps ADD COLUMN author TEXT NOT NULL DEFAULT 'machine';
    CREATE INDEX must_keeps_by_hand ON must_keeps (id) WHERE author = 'person';
    ALTER TABLE documents ADD COLUMN document TEXT;
    ALTER TABLE documents ADD COLUMN pending_document TEXT;
    """,
    # 4: what operations say of facts that people have reworded
    """
    ALTER TABLE must_keeps ADD COLUMN found TEXT NOT NULL DEFAULT '';
    """,
)

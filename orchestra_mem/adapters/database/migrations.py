"""The database's schema as numbered steps forward. A step that has been released is never changed."""

from __future__ import annotations

APPLICATION_ID = 0x4F4D454D  # "OMEM", in the file's header: tells our databases from others

# By the number of the schema that a step leads to. Those below 13 were never released.
MIGRATIONS: dict[int, str] = {
    13: """
    -- The event log, sessions, summaries with their ledger, must-keeps (of what a person has reworded also what was
    -- found), and the machine's last texts of documents: what it wrote, the whole files that it left (null where they
    -- are its own text, and packed, as an editor may have one open for hours), and what was read of people's edits.
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
        weight REAL NOT NULL,
        author TEXT NOT NULL DEFAULT 'machine',
        found TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX must_keeps_kind ON must_keeps (kind, status, weight, id);
    CREATE INDEX must_keeps_weight ON must_keeps (kind, weight, id);
    CREATE INDEX must_keeps_operation ON must_keeps (operation);
    CREATE INDEX must_keeps_by_hand ON must_keeps (id) WHERE author = 'person';
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
        pending_digest TEXT,
        document TEXT,
        pending_document TEXT
    ) STRICT;
    CREATE TABLE documents_read (
        name TEXT PRIMARY KEY,
        base TEXT NOT NULL,
        file TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE documents_left (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        text BLOB NOT NULL
    ) STRICT;
    CREATE INDEX documents_left_name ON documents_left (name);
    CREATE TABLE notices (
        id INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        subject TEXT NOT NULL,
        text TEXT NOT NULL,
        resolved INTEGER
    ) STRICT;

    -- Work: items (with how many leaves below them are done), what they depend on, how many there are of each kind and
    -- status, and each change.
    CREATE TABLE work_items (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        status TEXT NOT NULL,
        priority INTEGER NOT NULL,
        rank REAL NOT NULL,
        parent INTEGER REFERENCES work_items (id),
        assignee TEXT,
        created INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        started INTEGER,
        finished INTEGER,
        below_done INTEGER NOT NULL DEFAULT 0,
        below_total INTEGER NOT NULL DEFAULT 0,
        acceptance TEXT NOT NULL,
        description TEXT NOT NULL,
        folded TEXT NOT NULL
    ) STRICT;
    CREATE INDEX work_items_order ON work_items (priority, rank, id);
    CREATE INDEX work_items_status ON work_items (kind, status, priority, rank, id);
    CREATE INDEX work_items_parent ON work_items (parent, kind, status, priority, rank, id);
    CREATE INDEX work_items_assignee ON work_items (assignee, kind, status, priority, rank, id)
        WHERE assignee IS NOT NULL;
    CREATE TABLE work_dependencies (
        item INTEGER NOT NULL REFERENCES work_items (id),
        depends_on INTEGER NOT NULL REFERENCES work_items (id),
        PRIMARY KEY (item, depends_on)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX work_dependencies_back ON work_dependencies (depends_on, item);
    CREATE TABLE work_counts (
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (kind, status)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE work_events (
        id INTEGER PRIMARY KEY,
        item INTEGER NOT NULL REFERENCES work_items (id),
        time INTEGER NOT NULL,
        author TEXT NOT NULL,
        field TEXT NOT NULL,
        before TEXT,
        after TEXT,
        reason TEXT NOT NULL,
        operation INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX work_events_item ON work_events (item);
    CREATE INDEX work_events_operation ON work_events (operation) WHERE operation > 0;
    CREATE INDEX work_events_untold ON work_events (id) WHERE operation = 0;

    -- Better summaries in the background: jobs, who works at them, drafts that wait for an epoch's border, and
    -- what came of each try.
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        subject TEXT NOT NULL UNIQUE,
        priority INTEGER NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        due INTEGER NOT NULL,
        owner TEXT,
        since INTEGER,
        until INTEGER,
        error TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX jobs_order ON jobs (state, priority, id);
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE summary_drafts (
        summary INTEGER PRIMARY KEY REFERENCES summaries (id),
        base TEXT NOT NULL,
        text TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        method TEXT NOT NULL,
        must_keeps TEXT NOT NULL,
        put_back TEXT NOT NULL,
        verdict TEXT NOT NULL,
        seconds REAL NOT NULL,
        created INTEGER NOT NULL,
        placed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE model_trials (
        id INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        model TEXT NOT NULL,
        content TEXT NOT NULL,
        subject TEXT NOT NULL DEFAULT '',
        verdict TEXT NOT NULL,
        fault TEXT NOT NULL,
        seconds REAL NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        answer_tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX model_trials_content ON model_trials (model, content, id);

    -- The catalog: items, what their tags are compared by (of live ones), exchanges that wait to be learnt from, who
    -- has looked at items or changed them, what items refer to, and the key that digests of secrets are made with.
    CREATE TABLE memory_items (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        timestamp INTEGER NOT NULL,
        ci_source TEXT NOT NULL,
        type TEXT NOT NULL,
        summary TEXT NOT NULL,
        content TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        summary_tokens INTEGER NOT NULL,
        tags TEXT NOT NULL,
        tag_count INTEGER NOT NULL,
        priority INTEGER NOT NULL,
        expires INTEGER,
        [references] TEXT NOT NULL,
        author TEXT NOT NULL,
        status TEXT NOT NULL,
        superseded_by TEXT NOT NULL,
        said INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        digest TEXT NOT NULL,
        summary_method TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE UNIQUE INDEX memory_items_same ON memory_items (ci_source, digest) WHERE status = 'live';
    CREATE INDEX memory_items_live ON memory_items (ci_source, number) WHERE status = 'live';
    CREATE INDEX memory_items_newest ON memory_items (status, timestamp, number);
    CREATE INDEX memory_items_expires ON memory_items (expires) WHERE status = 'live' AND expires IS NOT NULL;
    CREATE INDEX memory_items_changed ON memory_items (changed);
    CREATE INDEX memory_items_changed_of ON memory_items (ci_source, changed);
    CREATE INDEX memory_items_extracts ON memory_items (number)
        WHERE summary_method = 'extractive' AND status = 'live' AND summary_tokens < tokens;
    CREATE TABLE memory_tags (
        ci_source TEXT NOT NULL,
        tag TEXT NOT NULL,
        item INTEGER NOT NULL REFERENCES memory_items (number),
        PRIMARY KEY (ci_source, tag, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_tags_item ON memory_tags (item);
    CREATE TABLE memory_references (
        reference TEXT NOT NULL,
        item INTEGER NOT NULL REFERENCES memory_items (number),
        PRIMARY KEY (reference, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_references_item ON memory_references (item);
    CREATE TABLE exchanges (
        id INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        message TEXT NOT NULL,
        answer TEXT NOT NULL,
        time INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        error TEXT NOT NULL
    ) STRICT;
    CREATE TABLE project_keys (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE catalog_state (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        agent TEXT NOT NULL,
        call TEXT NOT NULL,
        outcome TEXT NOT NULL,
        items TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_time ON audit (time);
    CREATE INDEX audit_agent ON audit (agent, id);

    -- Refreshes of the window, from which it can be told how full it was: what operations took is in them.
    CREATE TABLE refreshes (
        id INTEGER PRIMARY KEY,
        operation INTEGER NOT NULL,
        time INTEGER NOT NULL,
        before_tokens INTEGER NOT NULL,
        used_tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX refreshes_operation ON refreshes (operation);
    """,
}

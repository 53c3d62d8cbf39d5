"""The database schema, as a sequence of forward migrations. A released migration is never changed."""

from __future__ import annotations

APPLICATION_ID = 0x4F4D454D  # "OMEM", stored in the file header to recognise this program's databases

MIGRATIONS: tuple[str, ...] = (
    # 1: the event log, sessions, summaries with their losses, must-keeps, and the machine's last text of each document
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
    # 2: an index to find the heaviest facts of a kind without a sort
    """
    CREATE INDEX must_keeps_weight ON must_keeps (kind, weight, id);
    """,
    # 3: facts that people write by hand; full text of each document file after a write (null if equal to `written`)
    """
    ALTER TABLE must_keeps ADD COLUMN author TEXT NOT NULL DEFAULT 'machine';
    CREATE INDEX must_keeps_by_hand ON must_keeps (id) WHERE author = 'person';
    ALTER TABLE documents ADD COLUMN document TEXT;
    ALTER TABLE documents ADD COLUMN pending_document TEXT;
    """,
    # 4: the original passage in the operation, for facts that people have reworded
    """
    ALTER TABLE must_keeps ADD COLUMN found TEXT NOT NULL DEFAULT '';
    """,
    # 5: work items (with the number of done leaves below each), a trigram index of their texts, their dependencies,
    # counts by kind and status, and one event for each change
    """
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
    CREATE VIRTUAL TABLE work_texts USING fts5 (
        folded, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1'
    );
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
    """,
    # 6: improvement of summaries in the background: jobs, leases of the processes that run them, drafts that wait for
    # the next epoch, and the outcome of each attempt
    """
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        summary INTEGER NOT NULL UNIQUE REFERENCES summaries (id),
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
        summary INTEGER NOT NULL,
        verdict TEXT NOT NULL,
        fault TEXT NOT NULL,
        seconds REAL NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        answer_tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX model_trials_content ON model_trials (model, content, id);
    """,
    # 7: each document as of the last reading of people's edits, with the digests of its file and of the machine's text
    # that was edited. The work plan's text moves from `documents`, where it is stored as JSON, to the new table
    """
    CREATE TABLE documents_read (
        name TEXT PRIMARY KEY,
        base TEXT NOT NULL,
        file TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    INSERT INTO documents_read (name, base, file, text)
        SELECT 'work_plan', coalesce(digest, ''), '', json_extract(written, '$') FROM documents
        WHERE name = 'work_plan as read' AND json_valid(written);
    DELETE FROM documents WHERE name IN ('work_plan as read', 'brought_back');
    """,
    # 8: drop the trigram index: a search scans the texts of the work items instead
    """
    DROP TABLE work_texts;
    """,
    # 9: former full texts of documents, compressed, as merge bases for editors that still have such a text open
    """
    CREATE TABLE documents_left (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        text BLOB NOT NULL
    ) STRICT;
    CREATE INDEX documents_left_name ON documents_left (name);
    """,
    # 10: the catalog: items, tag keys of the live items, exchanges queued for learning, and the audit trail of reads
    # and changes; also the project's keys, one of which is for the digests of redacted secrets
    """
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
        digest TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX memory_items_same ON memory_items (ci_source, digest) WHERE status = 'live';
    CREATE INDEX memory_items_live ON memory_items (ci_source, number) WHERE status = 'live';
    CREATE INDEX memory_items_newest ON memory_items (status, timestamp, number);
    CREATE INDEX memory_items_expires ON memory_items (expires) WHERE status = 'live' AND expires IS NOT NULL;
    CREATE INDEX memory_items_changed ON memory_items (changed);
    CREATE INDEX memory_items_changed_of ON memory_items (ci_source, changed);
    CREATE TABLE memory_tags (
        ci_source TEXT NOT NULL,
        tag TEXT NOT NULL,
        item INTEGER NOT NULL REFERENCES memory_items (number),
        PRIMARY KEY (ci_source, tag, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_tags_item ON memory_tags (item);
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
    """,
    # 11: the references of catalog items, to find the items that refer to an operation
    """
    CREATE TABLE memory_references (
        reference TEXT NOT NULL,
        item INTEGER NOT NULL REFERENCES memory_items (number),
        PRIMARY KEY (reference, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_references_item ON memory_references (item);
    INSERT INTO memory_references SELECT DISTINCT value, number FROM memory_items, json_each([references]);
    """,
    # 12: jobs for summaries of catalog items (M7) in addition to summaries of operations (S12); the method of an item's
    # summary, empty (unknown) for earlier items
    """
    ALTER TABLE jobs RENAME TO jobs_of_summaries;
    DROP INDEX jobs_order;
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
    INSERT INTO jobs
        SELECT id, 'S' || summary, priority, state, attempts, due, owner, since, until, error FROM jobs_of_summaries;
    DROP TABLE jobs_of_summaries;
    CREATE INDEX jobs_order ON jobs (state, priority, id);
    ALTER TABLE model_trials ADD COLUMN subject TEXT NOT NULL DEFAULT '';
    UPDATE model_trials SET subject = 'S' || summary WHERE summary > 0;
    ALTER TABLE model_trials DROP COLUMN summary;
    ALTER TABLE memory_items ADD COLUMN summary_method TEXT NOT NULL DEFAULT '';
    CREATE INDEX memory_items_extracts ON memory_items (number)
        WHERE summary_method = 'extractive' AND status = 'live' AND summary_tokens < tokens;
    """,
    # 13: refreshes of the window, to reconstruct its past usage together with the tokens of the operations
    """
    CREATE TABLE refreshes (
        id INTEGER PRIMARY KEY,
        operation INTEGER NOT NULL,
        time INTEGER NOT NULL,
        before_tokens INTEGER NOT NULL,
        used_tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX refreshes_operation ON refreshes (operation);
    """,
    # 14: documents shared by several machines, and leases for writing these documents
    """
    CREATE TABLE shared_files (
        name TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        text TEXT,
        moved_to TEXT NOT NULL,
        machine TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX shared_files_revision ON shared_files (revision);
    CREATE TABLE write_leases (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # 15: an index of facts by the words that a later fact shares with those that it ends; of the facts that no longer
    # stand, only those of people are in it
    """
    ALTER TABLE must_keeps ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
    UPDATE must_keeps SET indexed = 1 WHERE status <> 'standing' AND author <> 'person';
    CREATE INDEX must_keeps_unindexed ON must_keeps (id) WHERE indexed = 0;
    CREATE TABLE must_keep_words (
        word INTEGER NOT NULL,
        fact INTEGER NOT NULL REFERENCES must_keeps (id),
        PRIMARY KEY (word, fact)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX must_keep_words_fact ON must_keep_words (fact);
    """,
    # 16: time when a person last saved a shared document
    """
    ALTER TABLE shared_files ADD COLUMN saved INTEGER;
    """,
    # 17: drop the stored numbers of leaves below each work item: a query counts them
    """
    ALTER TABLE work_items DROP COLUMN below_done;
    ALTER TABLE work_items DROP COLUMN below_total;
    """,
    # 18: the wordings of facts that people have replaced; the index finds facts whatever stop or label their texts have
    """
    ALTER TABLE must_keeps ADD COLUMN former TEXT NOT NULL DEFAULT '[]';
    UPDATE must_keeps SET indexed = 0;
    """,
)

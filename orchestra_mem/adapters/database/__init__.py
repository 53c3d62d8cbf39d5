"""The event log, the ledger, the state of work and the catalog: in obra.db, or on a PostgreSQL server."""

from orchestra_mem.adapters.database.catalog_store import SqliteAuditLog, SqliteCatalogStore
from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SqliteEventLog
from orchestra_mem.adapters.database.job_store import SqliteDraftStore, SqliteJobQueue, SqliteTrialLog
from orchestra_mem.adapters.database.ledger import SqliteLedger
from orchestra_mem.adapters.database.project_key import project_id, project_key
from orchestra_mem.adapters.database.statements import SqlDatabase
from orchestra_mem.adapters.database.work_store import SqliteWorkStore

__all__ = [
    "Database",
    "SqlDatabase",
    "SqliteAuditLog",
    "SqliteCatalogStore",
    "SqliteDraftStore",
    "SqliteEventLog",
    "SqliteJobQueue",
    "SqliteLedger",
    "SqliteTrialLog",
    "SqliteWorkStore",
    "project_id",
    "project_key",
]

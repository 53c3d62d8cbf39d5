"""SQL stores for the event log, ledger, work items, jobs and catalog, on SQLite (obra.db) or PostgreSQL."""

from orchestra_mem.adapters.database.catalog_store import SqlAuditLog, SqlCatalogStore
from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SqlEventLog
from orchestra_mem.adapters.database.job_store import SqlDraftStore, SqlJobQueue, SqlTrialLog
from orchestra_mem.adapters.database.ledger import SqlLedger
from orchestra_mem.adapters.database.project_key import project_id, project_key, shared_name
from orchestra_mem.adapters.database.statements import SqlDatabase
from orchestra_mem.adapters.database.work_store import SqlWorkStore

__all__ = [
    "Database", "SqlAuditLog", "SqlCatalogStore", "SqlDatabase", "SqlDraftStore", "SqlEventLog", "SqlJobQueue",
    "SqlLedger", "SqlTrialLog", "SqlWorkStore", "project_id", "project_key", "shared_name",
]  # fmt: skip

"""The databases that hold the stores: SQLite (obra.db) and PostgreSQL."""

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.project_key import ledger_key, project_id, project_key, shared_name

__all__ = ["Database", "ledger_key", "project_id", "project_key", "shared_name"]

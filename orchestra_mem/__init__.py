"""Persistent memory for agents around a local LLM: four tiers on disk, readable, editable, never lost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra_mem.build import open_memory
    from orchestra_mem.errors import (
        CircularDependencyError,
        ClosedError,
        ConfigError,
        DatabaseDamagedError,
        DocumentConflictError,
        DocumentError,
        EmbedderError,
        HistoryError,
        InvalidChangeError,
        InvalidOperationError,
        LockTimeoutError,
        ModelError,
        NotFoundError,
        OrchestraMemError,
        SchemaTooNewError,
        SearchError,
        StorageError,
        StorageFullError,
        StorageReadOnlyError,
        TokenizerError,
    )
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.vector_store import VectorStore
    from orchestra_mem.types import OperationFilter
else:
    # Loaded when they are asked for: every module of the package runs this one first, and the help of the command
    # line needs no memory. Every name that does not stand here is an error's.
    _WHERE = {
        "OperationFilter": "orchestra_mem.types",
        "OrchestratorContextManager": "orchestra_mem.memory.manager",
        "VectorStore": "orchestra_mem.memory.vector_store",
        "open_memory": "orchestra_mem.build",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_WHERE.get(name, "orchestra_mem.errors")), name)


__all__ = [
    "CircularDependencyError",
    "ClosedError",
    "ConfigError",
    "DatabaseDamagedError",
    "DocumentConflictError",
    "DocumentError",
    "EmbedderError",
    "HistoryError",
    "InvalidChangeError",
    "InvalidOperationError",
    "LockTimeoutError",
    "ModelError",
    "NotFoundError",
    "OperationFilter",
    "OrchestraMemError",
    "OrchestratorContextManager",
    "SchemaTooNewError",
    "SearchError",
    "StorageError",
    "StorageFullError",
    "StorageReadOnlyError",
    "TokenizerError",
    "VectorStore",
    "open_memory",
]

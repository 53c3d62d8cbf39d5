"""Persistent memory for agents around a local LLM: four tiers on disk that people can read and edit."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra_mem.build import open_memory
    from orchestra_mem.build.memory_service import MemoryService, NewObservation, ObservationFilter
    from orchestra_mem.catalog_types import ItemFilter, ItemType, MemoryItem
    from orchestra_mem.compression.categorizer import AICategorizationService, CategorizationService
    from orchestra_mem.compression.compressor import MemoryCompressor
    from orchestra_mem.core.context.window import ContextWindowTracker
    from orchestra_mem.errors import (
        AccessDeniedError,
        CircularDependencyError,
        ClosedError,
        ConfigError,
        DatabaseDamagedError,
        DocumentConflictError,
        DocumentError,
        EmbedderError,
        HistoryError,
        InvalidChangeError,
        InvalidItemError,
        InvalidOperationError,
        LockTimeoutError,
        ModelError,
        NotFoundError,
        OrchestraMemError,
        SchemaTooNewError,
        SearchError,
        ServerAwayError,
        ServerError,
        StorageError,
        StorageFullError,
        StorageReadOnlyError,
        TokenizerError,
    )
    from orchestra_mem.home.projects import Projects
    from orchestra_mem.memory.manager import OrchestratorContextManager
    from orchestra_mem.memory.vector_store import VectorStore
    from orchestra_mem.orchestrator.orchestrator import Orchestrator
    from orchestra_mem.retrieval.response_cache import ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever
    from orchestra_mem.tiers.catalog import MemoryCatalog
    from orchestra_mem.tiers.episodic import EpisodicMemoryManager
    from orchestra_mem.tiers.session import SessionMemoryManager
    from orchestra_mem.tiers.state import StateManager
    from orchestra_mem.tiers.working import WorkingMemory
    from orchestra_mem.types import OperationFilter
else:
    # Public names are imported on first access: every submodule import runs this module first, and `--help` must stay
    # fast. Public names missing from this table are errors.
    _WHERE = {
        "AICategorizationService": "compression.categorizer",
        "CategorizationService": "compression.categorizer",
        "ContextRetriever": "retrieval.retriever",
        "ContextWindowTracker": "core.context.window",
        "EpisodicMemoryManager": "tiers.episodic",
        "ItemFilter": "catalog_types",
        "ItemType": "catalog_types",
        "MemoryCatalog": "tiers.catalog",
        "MemoryCompressor": "compression.compressor",
        "MemoryItem": "catalog_types",
        "MemoryService": "build.memory_service",
        "NewObservation": "build.memory_service",
        "ObservationFilter": "build.memory_service",
        "OperationFilter": "types",
        "Orchestrator": "orchestrator.orchestrator",
        "OrchestratorContextManager": "memory.manager",
        "Projects": "home.projects",
        "ResponseCache": "retrieval.response_cache",
        "SessionMemoryManager": "tiers.session",
        "StateManager": "tiers.state",
        "VectorStore": "memory.vector_store",
        "WorkingMemory": "tiers.working",
        "open_memory": "build",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"orchestra_mem.{_WHERE.get(name, 'errors')}"), name)


__all__ = [
    "AICategorizationService",
    "AccessDeniedError",
    "CategorizationService",
    "CircularDependencyError",
    "ClosedError",
    "ConfigError",
    "ContextRetriever",
    "ContextWindowTracker",
    "DatabaseDamagedError",
    "DocumentConflictError",
    "DocumentError",
    "EmbedderError",
    "EpisodicMemoryManager",
    "HistoryError",
    "InvalidChangeError",
    "InvalidItemError",
    "InvalidOperationError",
    "ItemFilter",
    "ItemType",
    "LockTimeoutError",
    "MemoryCatalog",
    "MemoryCompressor",
    "MemoryItem",
    "MemoryService",
    "ModelError",
    "NewObservation",
    "NotFoundError",
    "ObservationFilter",
    "OperationFilter",
    "OrchestraMemError",
    "Orchestrator",
    "OrchestratorContextManager",
    "Projects",
    "ResponseCache",
    "SchemaTooNewError",
    "SearchError",
    "ServerAwayError",
    "ServerError",
    "SessionMemoryManager",
    "StateManager",
    "StorageError",
    "StorageFullError",
    "StorageReadOnlyError",
    "TokenizerError",
    "VectorStore",
    "WorkingMemory",
    "open_memory",
]

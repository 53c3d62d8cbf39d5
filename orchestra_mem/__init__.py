"""Persistent memory for agents around a local LLM: four tiers on disk that people can read and edit."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra_mem.build import open_memory as open_memory
    from orchestra_mem.build.memory_service import MemoryService as MemoryService
    from orchestra_mem.build.memory_service import NewObservation as NewObservation
    from orchestra_mem.build.memory_service import ObservationFilter as ObservationFilter
    from orchestra_mem.catalog_types import AccessOutcome as AccessOutcome
    from orchestra_mem.catalog_types import AuditFilter as AuditFilter
    from orchestra_mem.catalog_types import ItemFilter as ItemFilter
    from orchestra_mem.catalog_types import ItemStatus as ItemStatus
    from orchestra_mem.catalog_types import ItemType as ItemType
    from orchestra_mem.catalog_types import MemoryItem as MemoryItem
    from orchestra_mem.compression.categorizer import AICategorizationService as AICategorizationService
    from orchestra_mem.compression.categorizer import CategorizationService as CategorizationService
    from orchestra_mem.compression.compressor import MemoryCompressor as MemoryCompressor
    from orchestra_mem.core.context.window import ContextWindowTracker as ContextWindowTracker
    from orchestra_mem.core.search.responses import ResponseKind as ResponseKind
    from orchestra_mem.errors import AccessDeniedError as AccessDeniedError
    from orchestra_mem.errors import CircularDependencyError as CircularDependencyError
    from orchestra_mem.errors import ClosedError as ClosedError
    from orchestra_mem.errors import ConfigError as ConfigError
    from orchestra_mem.errors import DatabaseDamagedError as DatabaseDamagedError
    from orchestra_mem.errors import DocumentConflictError as DocumentConflictError
    from orchestra_mem.errors import DocumentError as DocumentError
    from orchestra_mem.errors import EmbedderError as EmbedderError
    from orchestra_mem.errors import HistoryError as HistoryError
    from orchestra_mem.errors import InvalidChangeError as InvalidChangeError
    from orchestra_mem.errors import InvalidItemError as InvalidItemError
    from orchestra_mem.errors import InvalidOperationError as InvalidOperationError
    from orchestra_mem.errors import InvalidTimeError as InvalidTimeError
    from orchestra_mem.errors import LockTimeoutError as LockTimeoutError
    from orchestra_mem.errors import ModelError as ModelError
    from orchestra_mem.errors import NotFoundError as NotFoundError
    from orchestra_mem.errors import OrchestraMemError as OrchestraMemError
    from orchestra_mem.errors import SchemaTooNewError as SchemaTooNewError
    from orchestra_mem.errors import SearchError as SearchError
    from orchestra_mem.errors import ServerAwayError as ServerAwayError
    from orchestra_mem.errors import ServerError as ServerError
    from orchestra_mem.errors import StorageError as StorageError
    from orchestra_mem.errors import StorageFullError as StorageFullError
    from orchestra_mem.errors import StorageReadOnlyError as StorageReadOnlyError
    from orchestra_mem.errors import TokenizerError as TokenizerError
    from orchestra_mem.home import Projects as Projects
    from orchestra_mem.memory.manager import OrchestratorContextManager as OrchestratorContextManager
    from orchestra_mem.memory.vector_store import VectorStore as VectorStore
    from orchestra_mem.orchestrator.orchestrator import Orchestrator as Orchestrator
    from orchestra_mem.retrieval.response_cache import ResponseCache as ResponseCache
    from orchestra_mem.retrieval.retriever import ContextRetriever as ContextRetriever
    from orchestra_mem.search_types import SearchFilter as SearchFilter
    from orchestra_mem.search_types import SearchMode as SearchMode
    from orchestra_mem.search_types import Tier as Tier
    from orchestra_mem.tiers.catalog import MemoryCatalog as MemoryCatalog
    from orchestra_mem.tiers.episodic import EpisodicMemoryManager as EpisodicMemoryManager
    from orchestra_mem.tiers.session import SessionMemoryManager as SessionMemoryManager
    from orchestra_mem.tiers.state import StateManager as StateManager
    from orchestra_mem.tiers.working import WorkingMemory as WorkingMemory
    from orchestra_mem.types import Author as Author
    from orchestra_mem.types import MustKeepKind as MustKeepKind
    from orchestra_mem.types import OperationFilter as OperationFilter
    from orchestra_mem.work_types import WorkFilter as WorkFilter
    from orchestra_mem.work_types import WorkKind as WorkKind
    from orchestra_mem.work_types import WorkStatus as WorkStatus
else:
    # Public names by module, imported on first access: every submodule import runs this module first, and `--help` must
    # stay fast.
    _NAMES = {
        "build": "open_memory",
        "build.memory_service": "MemoryService NewObservation ObservationFilter",
        "catalog_types": "AccessOutcome AuditFilter ItemFilter ItemStatus ItemType MemoryItem",
        "compression.categorizer": "AICategorizationService CategorizationService",
        "compression.compressor": "MemoryCompressor",
        "core.context.window": "ContextWindowTracker",
        "core.search.responses": "ResponseKind",
        "errors": (
            "AccessDeniedError CircularDependencyError ClosedError ConfigError DatabaseDamagedError "
            "DocumentConflictError DocumentError EmbedderError HistoryError InvalidChangeError "
            "InvalidItemError InvalidOperationError InvalidTimeError LockTimeoutError ModelError NotFoundError "
            "OrchestraMemError SchemaTooNewError SearchError ServerAwayError ServerError StorageError "
            "StorageFullError StorageReadOnlyError TokenizerError"
        ),
        "home": "Projects",
        "memory.manager": "OrchestratorContextManager",
        "memory.vector_store": "VectorStore",
        "orchestrator.orchestrator": "Orchestrator",
        "retrieval.response_cache": "ResponseCache",
        "retrieval.retriever": "ContextRetriever",
        "tiers.catalog": "MemoryCatalog",
        "tiers.episodic": "EpisodicMemoryManager",
        "tiers.session": "SessionMemoryManager",
        "tiers.state": "StateManager",
        "tiers.working": "WorkingMemory",
        "search_types": "SearchFilter SearchMode Tier",
        "types": "Author MustKeepKind OperationFilter",
        "work_types": "WorkFilter WorkKind WorkStatus",
    }
    _MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
    __all__ = sorted(_MODULES)  # noqa: PLE0605  `sorted` returns a list

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.util import find_spec

        if name not in _MODULES:
            is_module = find_spec(f"{__name__}.{name}") is not None
            use = "" if is_module else import_module(f"{__name__}.design_names").replacement(name)
            told = f"module {__name__!r} has no attribute {name!r}{f': use {use}' * bool(use)}"
            # `from … import` would hide the message of an `AttributeError`, without which `hasattr` would raise.
            raise ImportError(told) if use and name[0].isupper() else AttributeError(told)

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

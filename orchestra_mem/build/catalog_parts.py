"""Create and connect the parts of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.database import SqlAuditLog, SqlCatalogStore, SqlDatabase
from orchestra_mem.choices import IsolationChoice
from orchestra_mem.core.catalog.access import Access, Grants
from orchestra_mem.memory.agents import CatalogParts, Foreground
from orchestra_mem.ports import Clock, DocumentStore, EventLog, Ledger, TokenCounter
from orchestra_mem.settings import CatalogSettings, Settings
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.catalog_reading import AuditTrail, CatalogSelector
from orchestra_mem.tiers.edited_documents import CatalogDocuments
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.session_ending import SessionPaths

if TYPE_CHECKING:
    from orchestra_mem.catalog_types import MemoryItem
    from orchestra_mem.compression.categorizer import CategorizationService
    from orchestra_mem.model_types import LanguageModel
    from orchestra_mem.tiers.session_archives import SessionArchives


def open_catalog(
    database: SqlDatabase,
    settings: Settings,
    *,
    log: EventLog,
    ledger: Ledger,
    documents: DocumentStore,
    sessions: SessionPaths,
    folder: Path,
    counter: TokenCounter,
    clock: Clock,
    redacted: Callable[[str], str],
    lock: AbstractContextManager[None],
) -> CatalogParts:
    """Open the catalog stored in `database`; its documents are below `folder`, the memory's document folder.

    `redacted` removes secrets from a text; `lock` is the memory's lock.
    """
    wanted, store = settings.catalog, SqlCatalogStore(database)
    access = _access(wanted)
    audit = AuditTrail(SqlAuditLog(database), clock, redacted, database.can_write_now)
    selector = CatalogSelector(store, access, audit, counter=counter, clock=clock, settings=wanted)
    catalog = MemoryCatalog(
        store, audit, access, selector, counter=counter, clock=clock, redacted=redacted,
        superseded=_taken_place_of, settings=wanted,
    )  # fmt: skip
    learner = CatalogLearner(catalog, store, clock=clock, redacted=redacted, patterns=dict(wanted.extraction_patterns))
    shown = CatalogDocuments(
        catalog, store, ledger=ledger, documents=documents, clock=clock, folder=folder,
        keep_versions=settings.orchestrator.keep_versions, permanent_from=wanted.min_priority_for_permanent, lock=lock,
    )  # fmt: skip
    catalog.purged = shown.forget
    # A separate session manager, because background threads hold it and must not keep the memory alive.
    made = SessionMemoryManager(log=log, ledger=ledger, store=documents, counter=counter, clock=clock, place=sessions)

    def open_archives() -> SessionArchives:
        from orchestra_mem.tiers.session_archives import SessionArchives  # lazy import: rarely needed

        return SessionArchives(
            log=log, ledger=ledger, store=documents, session=made, audit=audit, clock=clock, changing=store.changing,
            keep_days=settings.archives.keep_days, keep_bytes=settings.archives.keep_mb * 1e6,
        )  # fmt: skip

    def open_categorization(model: LanguageModel | None, foreground: Foreground) -> CategorizationService:
        from orchestra_mem.compression.categorizer import CategorizationService  # lazy import: few programs need it
        from orchestra_mem.tiers.catalog_learning import OrchestrationObservations

        return CategorizationService(
            model, settings=settings.categorization, observations=OrchestrationObservations(catalog, log),
            foreground=foreground, redacted=redacted,
        )  # fmt: skip

    return CatalogParts(
        catalog=catalog, selector=selector, learner=learner, audit=audit, documents=shown,
        open_archives=open_archives, open_categorization=open_categorization, hooks=wanted.hooks,
        can_write_now=database.can_write_now,
    )  # fmt: skip


def _access(wanted: CatalogSettings) -> Access:
    grants = {
        agent: Grants(read=frozenset(given.read), write=frozenset(given.write))
        for agent, given in wanted.permissions.items()
    }
    return Access(grants, strict=wanted.isolation is IsolationChoice.STRICT)


def _taken_place_of(item: MemoryItem, earlier: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
    if not earlier:
        return ()
    # Lazy import: it loads NumPy, and importing the package must stay fast.
    from orchestra_mem.core.catalog.item_extraction import superseded_items

    return superseded_items(item, earlier)

"""Create and connect the parts of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.choices import IsolationChoice
from orchestra_mem.core.catalog.access import Access, Grants
from orchestra_mem.memory.parts import CatalogParts
from orchestra_mem.memory.reporting import Reporter
from orchestra_mem.settings import CatalogSettings, Settings
from orchestra_mem.stores import AuditLog, CatalogStore, SqlDatabase
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.tiers.catalog_documents import CatalogDocuments
from orchestra_mem.tiers.catalog_learning import CatalogLearner
from orchestra_mem.tiers.catalog_reading import AuditTrail
from orchestra_mem.tiers.session import SessionMemoryManager

if TYPE_CHECKING:
    from orchestra_mem.tiers.session_archives import SessionArchives


def open_catalog(
    database: SqlDatabase,
    settings: Settings,
    session: SessionMemoryManager,
    *,
    folder: Path,
    redacted: Callable[[str], str],
    lock: AbstractContextManager[None],
    reporter: Reporter,
) -> CatalogParts:
    """Open the catalog stored in `database`; its documents are below `folder`, the memory's document folder.

    `session` is the memory's session tier, whose log, ledger, document store, counter and clock the catalog shares.
    `redacted` removes secrets from a text; `lock` is the memory's lock, `reporter` lists its problems.
    """
    wanted, store = settings.catalog, CatalogStore(database)
    access = _access(wanted)
    audit = AuditTrail(AuditLog(database), session.clock, redacted, database.can_write_now)
    catalog = MemoryCatalog(
        store, audit, access, counter=session.counter, clock=session.clock, settings=wanted, redacted=redacted
    )
    shown = CatalogDocuments(
        catalog=catalog, items=store, ledger=session.ledger, store=session.store, folder=folder,
        keep_versions=settings.orchestrator.keep_versions, lock=lock,
    )  # fmt: skip
    catalog.purged = shown.forget
    # A separate session manager, because background threads hold it and must not keep the memory alive.
    made = replace(session)

    def open_archives() -> SessionArchives:
        from orchestra_mem.tiers.session_archives import SessionArchives  # lazy import: rarely needed

        return SessionArchives(
            session=made, audit=audit, changing=store.changing,
            keep_days=settings.archives.keep_days, keep_bytes=settings.archives.keep_mb * 1e6,
        )  # fmt: skip

    return CatalogParts(
        catalog=catalog, learner=CatalogLearner(catalog, store), documents=shown, open_archives=open_archives,
        can_write_now=database.can_write_now, reporter=reporter,
    )  # fmt: skip


def _access(wanted: CatalogSettings) -> Access:
    grants = {
        agent: Grants(read=frozenset(given.read), write=frozenset(given.write))
        for agent, given in wanted.permissions.items()
    }
    return Access(grants, strict=wanted.isolation is IsolationChoice.STRICT)

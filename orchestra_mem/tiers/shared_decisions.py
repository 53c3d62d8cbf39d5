"""Read the decisions that projects share, from the shared log's document, which people may edit.

A project opens only this document, and only after a change, so that a locked or broken shared log does not stop it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from orchestra_mem.core.documents.shared_document import SharedDecision, read_shared, told_name, told_origin
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import NotFoundError, StorageError
from orchestra_mem.ports import DocumentStore
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import (
    STATED_FACT,
    Author,
    FileState,
    Json,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    OperationFilter,
)

SHARED_LOG = "the shared decision log"
NO_HOME = "there is no home folder: ORCHESTRA_MEM_HOME is off or a relative path; unset it, or name a folder"
SHAREABLE_KINDS = (MustKeepKind.DECISION, MustKeepKind.CONSTRAINT)
"""Kinds of facts that can be shared."""
_STANDS = MustKeepStatus.STANDING
_HOLDING = (*SHAREABLE_KINDS, MustKeepKind.ROLE)
_NEVER = datetime.min.replace(tzinfo=UTC)
# Origin line of a fact that was recorded in the shared log itself, for all projects.
_RECORDED = "*Shared by a person.*\n\n"
_TAG = re.compile(r"[^,;*\n]+")


class DecisionHere(NamedTuple):
    """A shared decision, and the project's own fact that contradicts and overrides it (None without such a fact)."""

    shared: SharedDecision
    own: MustKeep | None


@dataclass(slots=True, kw_only=True, eq=False)
class SharedDecisions:
    """Reads the shared log for a project.

    Attributes:
        path: The shared log's document; None if there is no home folder.
        project: Returns the project's unique id.
        name: The project's name in the shared log.
        sharers: Returns the ids of projects by the numbers of what they shared, as far as the log's database tells.
        redacted: Removes secrets, which people may write into the document.
        tags: The project's tags; decisions shared only for other tags are skipped.
        shown: Whether contexts show shared decisions.
        problem: Message why the document cannot be read; empty if it can, or if nothing was ever shared.
    """

    path: Path | None
    store: DocumentStore
    ledger: Ledger
    project: Callable[[], str]
    name: str
    sharers: Callable[[], Mapping[str, str]]
    redacted: Callable[[str], str]
    tags: Sequence[str] = ()
    shown: bool = True
    problem: str = field(default="", init=False)
    _seen: FileState | None = field(default=None, init=False)
    _all: tuple[SharedDecision, ...] = field(default=(), init=False)
    _compared: tuple[object, list[DecisionHere]] = field(default=(None, []), init=False)

    def state(self) -> FileState | None:
        """Return the document's state, to detect changes; None if it is missing or contexts do not show it."""
        return self.store.state(self.path) if self.path and self.shown else None

    def document(self) -> Path:
        """Return the document's path; raise `StorageError` if there is no home folder."""
        if self.path is None:
            raise StorageError(NO_HOME)
        return self.path

    def all(self) -> tuple[SharedDecision, ...]:
        """Return all shared decisions, also those for other projects; empty if the document cannot be read."""
        state = self.store.state(self.path) if self.path else None
        if self.path and (state != self._seen or state is None or self.problem):
            self._seen, self._all, self.problem = state, (), ""
            try:
                text = self.store.read_shown(self.path)
                self._all = tuple(map(self._without_secrets, read_shared(text or "")))
                if text is None and (self.path.parent / ".obra").is_dir():
                    self.problem = f"{self.path} is missing; it is created again when a decision is shared"
            except StorageError as error:
                self.problem = str(error)
        return self._all

    def _without_secrets(self, each: SharedDecision) -> SharedDecision:
        text, project, unclear, *tags = map(self.redacted, (each.text, each.project, each.unclear, *each.tags))
        return replace(each, text=text, project=project, unclear=unclear, tags=tuple(tags))

    def told(self) -> list[DecisionHere]:
        """Return the decisions for this project that its own facts do not repeat, each with the fact overriding it."""
        entries = tuple(each for each in self.all() if each.is_for(self.tags)) if self.shown else ()
        if not entries:
            return []
        from orchestra_mem.tiers.known_facts import alike  # most projects share nothing

        facts = [MustKeep(kind=each.kind, text=each.text, operation=0, timestamp=_NEVER) for each in entries]
        found = [*alike(self.ledger, facts), *self.ledger.must_keeps_by_id(self.ledger.words.unindexed())]
        own = [fact for fact in found if fact.kind in _HOLDING and fact.status is _STANDS]
        if own and self._compared[0] != (entries, own):
            # Imported here, as NumPy loads slowly and most contexts do not need it.
            from orchestra_mem.core.facts.superseding import contradicted

            # With the words that people have replaced: a fact that was shared and then reworded is the same fact.
            said = {as_said(text): fact for fact in own for text in fact.wordings}
            later = {each.number: said.get(as_said(each.text)) for each in entries}
            news = [at for at, each in enumerate(entries) if as_said(each.text) not in said]
            against = zip([entries[at] for at in news], contradicted([facts[at] for at in news], own), strict=True)
            told = [DecisionHere(each, fact or later.get(each.perhaps_superseded_by)) for each, fact in against]
            self._compared = (entries, own), told
        return self._compared[1] if own else [DecisionHere(each, None) for each in entries]

    def problems(self) -> list[Json]:
        """Return the faults and remarks in the format of `status`; empty if contexts do not show the log."""
        faults = [*self.faults(), *self.remarks()] if self.shown else []
        return [{"subject": "shared decisions", "since": None, "problem": each} for each in faults]

    def faults(self) -> list[str]:
        """Describe faults of the document, and decisions that apply to no project, as their audience is unreadable."""
        unclear = [each for each in self.all() if each.unclear]
        faults = self.store.faults(self.path) if self.path and not self.problem else ()
        told = [f"{each}: {each.meanwhile}" for each in faults] or [self.problem] * bool(self.problem)
        return told + [
            f"{self.path}:{each.line}: {each.unclear!r} does not say for which projects it is, so it applies to none; "
            f"write the line{' below it' * each.unclear.startswith('#')} like *Shared by shop, K12; for payments, web.*"
            for each in unclear
        ]

    def remarks(self) -> list[str]:
        """Describe decisions that this project shared and no longer holds, with advice on each."""
        told, shared = [], {each.text.casefold() for each in self.all()}
        for each, own in self.outdated():
            advice = "delete it there if it should not apply to any project"
            if own.status is _STANDS and self._lifted(own.text).casefold() not in shared:
                advice = f"`orchestra-mem decisions share K{own.id}` replaces it with: {own.text}"
            told.append(
                f"{self.path}:{each.line}: this project shared {each.number}, which is no longer current here; {advice}"
            )
        return told

    def outdated(self) -> list[tuple[SharedDecision, MustKeep]]:
        """Find decisions that this project shared and no longer holds, each with the fact that superseded it.

        A decision that no fact superseded comes with the project's own fact in its present state. Decisions that a
        person reworded in the shared log are left out.
        """
        found: list[tuple[SharedDecision, MustKeep]] = []
        sharers = cache(self.sharers)  # reads the log's database, and only if needed
        for each in self.all():
            if each.origin:
                with suppress(NotFoundError):
                    own = self.ledger.must_keep(int(each.origin[1:]))
                    now, found_first = map(self._lifted, (own.text, own.found))
                    if each.text not in (now, found_first) or (own.status is _STANDS and each.text == now):
                        continue
                    if not self.is_own(each, sharers):
                        continue
                    seen = {0}
                    while own.status is MustKeepStatus.SUPERSEDED and own.superseded_by not in seen:
                        seen.add(own.superseded_by)
                        own = self.ledger.must_keep(own.superseded_by)
                    found.append((each, own))
        return found

    def is_own(self, each: SharedDecision, sharers: Callable[[], Mapping[str, str]] | None = None) -> bool:
        """Check if this project shared a decision: by its id, or by its name if the log's database is unreadable."""
        by = (sharers or self.sharers)().get(each.number)
        return bool(each.origin) and (by == self.project() if by else each.project == told_name(self.name))

    def own(self, fact: str) -> SharedDecision:
        """Return the entry of a fact (`K12`) that this project shared; raise `NotFoundError` if there is none."""
        sharers = cache(self.sharers)
        for each in self.all():
            if each.origin == fact and self.is_own(each, sharers):
                own = self.ledger.must_keep(int(fact[1:]))
                if each.text in map(self._lifted, (own.text, own.found)):
                    return each
                said = f"{each.number} of {SHARED_LOG} says {each.text!r}, but {fact} here {own.text!r}"
                raise NotFoundError(f"{said}; if a person has reworded it, delete it by hand: {self.path}:{each.line}")
        why = self.problem or "`decisions shared` lists what is; what others shared, delete in its document"
        raise NotFoundError(f"{fact} of this project is not in {SHARED_LOG}: {why}")

    def _lifted(self, text: str) -> str:
        return self.redacted(squeeze(text))


def tag_fault(tags: Collection[str]) -> str:
    """Return why one of the tags is malformed; "" if none is."""
    wrong = next((tag for tag in tags if not _TAG.fullmatch(tag)), None)
    return "" if wrong is None else f"{wrong!r} is not a tag: use one or more words without comma, semicolon or *"


def origins_of(log: EventLog, ledger: Ledger) -> dict[int, str]:
    """Return origin lines (who shared a fact, for whom) by fact id. Facts written into the document have none."""
    known = {each.id: told_origin(each.data) for each in log.operations(OperationFilter(type=STATED_FACT))}
    return {
        fact.id: known.get(fact.operation) or _RECORDED
        for fact in ledger.must_keeps()
        if fact.operation in known or fact.author is not Author.PERSON
    }


def sharers_of(log: EventLog, ledger: Ledger) -> dict[str, str]:
    """Return the id of the project that shared each fact of the shared log, by the fact's number (`K3`)."""
    known: dict[int, str] = {}
    for each in log.operations(OperationFilter(type=STATED_FACT)):
        if isinstance(each.data, dict) and isinstance(origin := each.data.get("from"), dict):
            known[each.id] = str(origin.get("project", ""))
    return {f"K{fact.id}": known.get(fact.operation, "") for fact in ledger.must_keeps()}

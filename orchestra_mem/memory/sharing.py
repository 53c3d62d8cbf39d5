"""Share decisions between projects: the calls that copy a decision into the shared log, or adopt one from there.

The shared log is an ordinary memory with the same guarantees. In it, a shared decision is an operation that states one
fact, recorded once under an idempotency key derived from its text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.catalog_types import GLOBAL
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.documents.shared_document import SharedDecision, with_tags
from orchestra_mem.core.repetition import as_said, in_same_words
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import InvalidChangeError, NotFoundError, StorageError
from orchestra_mem.memory.queries import QueryCalls
from orchestra_mem.tiers.shared_decisions import SHAREABLE_KINDS, SHARED_LOG, SharedDecisions, tag_fault
from orchestra_mem.types import (
    REPLACES,
    STATED_FACT,
    Author,
    Json,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    OperationFilter,
)

_NUMBER = re.compile(r"[Kk]?(\d{1,18})")
_STANDS, _REMOVED = MustKeepStatus.STANDING, MustKeepStatus.REMOVED


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """The result of sharing or adopting a fact: its number in the target memory, and whether it is new there.

    `entry` is the entry of a shared fact in the shared log's document; if there is none, `problem` says why. An adopted
    fact has no entry. `superseded` are the facts of the target memory that it replaces.
    """

    number: str
    text: str
    is_new: bool
    entry: SharedDecision | None = None
    problem: str = ""
    superseded: tuple[MustKeep, ...] = ()


class SharingCalls(QueryCalls):
    """Mixin for `OrchestratorContextManager`: the calls that share decisions between projects."""

    refresh: Callable[[], object]

    @property
    def shared_log(self) -> SharedDecisions:
        """The shared log, as read from the document at its `path`; `problem` says why it cannot be read."""
        return self._parts.shared

    def shared_decisions(self) -> list[SharedDecision]:
        """Return all shared decisions, in the order of the shared log; empty if it cannot be read."""
        with self._life.settled():
            return list(self.shared_log.all())

    def shareable(self) -> list[MustKeep]:
        """Return the decisions and rules of this project that can be shared, oldest first."""
        return [fact for fact in self.facts() if not self._why_not(fact)]

    def _why_not(self, fact: MustKeep) -> str:
        """Return the reason why a fact cannot be shared; "" if it can."""
        parts = self._parts
        if fact.kind not in SHAREABLE_KINDS or fact.status is not _STANDS:
            return f"K{fact.id} ({fact.kind}, {fact.status}) cannot be shared; only current decisions and rules can"
        if parts.agents.catalog.access.strict and fact.author is not Author.PERSON:
            for said in parts.log.operations(OperationFilter(after=fact.operation - 1, through=fact.operation)):
                if said.agent not in (None, OWNER, GLOBAL):
                    whose = f"belongs to agent {said.agent!r}, and catalog.isolation is strict"
                    return f"K{fact.id} {whose}: to share it, write it into the decision log yourself"
        return ""

    def share_decision(self, reference: str, *, tags: Sequence[str] = (), again: bool = False) -> SharedFact:
        """Copy a decision or rule of this project (`K12`) into the shared log, unless it is there already.

        If this project has shared it before, other `tags` replace those of its entry.
        A fact that supersedes a shared decision of this project replaces its entry, by default with the same tags.

        Args:
            reference: Number of the fact.
            tags: Share only with projects that have one of these tags (setting `project.tags`); by default with all.
            again: Share it even if a person has removed it from the shared log.

        Raises:
            InvalidChangeError: The fact is not an active decision or rule, or belongs to an agent under strict
                isolation; the project shares nothing; a tag is malformed; or a person has removed it from the log.
            NotFoundError: There is no such fact.
            StorageError: The shared log cannot be used.
        """
        parts, tags = self._parts, [*dict.fromkeys(map(squeeze, tags))]
        self.shared_log.document()
        if not parts.settings.project.shared:
            raise InvalidChangeError("this project does not share decisions: its setting project.shared is false")
        if why := tag_fault(tags):
            raise InvalidChangeError(why)
        self.extract_facts()
        fact = parts.ledger.must_keep(_number(reference))
        if why := self._why_not(fact):
            raise InvalidChangeError(why)
        origin = {"project": parts.shared.project(), "name": parts.reporter.project, "fact": f"K{fact.id}"}
        text, found = (parts.redactor.text(squeeze(each)) for each in (fact.text, fact.found))
        for each in self.shared_decisions():
            if each.number and in_same_words(each.text, text):
                if tags and {*tags} != {*each.tags} and self.shared_log.is_own(each):
                    self._rewrite(each, tags)
                    each = next((now for now in self.shared_decisions() if now.number == each.number), each)
                return SharedFact(number=each.number, text=each.text, is_new=False, entry=each)
        data: dict[str, Json] = {"from": {**origin}, "tags": [*tags]}
        outdated = {old.number: old for old, own in parts.shared.outdated() if own.id == fact.id and not old.unclear}
        log: SharingCalls
        with parts.open_shared_log() as log:
            old = [each for each in log.facts() if f"K{each.id}" in outdated][-1:]
            if old:
                meant = tags or outdated[f"K{old[0].id}"].tags
                data |= {REPLACES: f"op {old[0].operation}", "tags": [*meant]}
            # The words of `found` may be those of the replaced entry, if a person has reworded the fact since.
            done = log._state(fact.kind, text, data, SHARED_LOG, "" if old else found, again=again)
            try:
                log.refresh()  # writes the fact into the document of the shared log
            except StorageError as error:
                problem = str(error)
            else:
                problem = "; ".join(parts.shared.faults()) or "it is not in the document of the shared log"
        entry = next((each for each in self.shared_decisions() if each.number == done.number), None)
        return replace(done, entry=entry, problem="" if entry else problem, superseded=tuple(old))

    def unshare_decision(self, reference: str) -> SharedFact:
        """Take a decision or rule that this project has shared (`K12`) out of the shared log, as if by hand.

        Raises:
            NotFoundError: This project has not shared it, or a person has removed it.
            InvalidChangeError: People have added lines to its entry.
            StorageError: The shared log cannot be used.
        """
        self.shared_log.document()
        with self._life.settled():
            entry = self.shared_log.own(f"K{_number(reference)}")
        self._rewrite(entry, None)
        return SharedFact(number=entry.number, text=entry.text, is_new=False)

    def _rewrite(self, entry: SharedDecision, tags: Sequence[str] | None) -> None:
        """Give an entry of the shared log other tags, or delete it if `tags` is None, as an edit by a person."""
        with self._parts.open_shared_log() as log, log._parts.store.lock():
            (name,) = log.documents.names()
            before = log.documents.text(name)
            if (after := with_tags(before, entry.number, tags)) == before:
                why = "people have added lines to it, or it has no readable line that says who shared it"
                raise InvalidChangeError(f"{self.shared_log.path}:{entry.line}: change this by hand, as {why}")
            log.documents.save(name, after, expected=before)
            log.extract_facts()  # reads the edit

    def adopt_decision(self, reference: str, *, again: bool = False) -> SharedFact:
        """Copy a decision or rule from the shared log into this project.

        Args:
            reference: The decision's number in the shared log.
            again: Adopt it even if a person has removed it from this project's documents.

        Raises:
            InvalidChangeError: A person has removed it from this project's documents, and `again` is false.
            NotFoundError: The shared log has no decision with this number.
            StorageError: There is no shared log, or the write failed.
        """
        wanted = f"K{_number(reference)}"
        self.shared_log.document()
        found = next((each for each in self.shared_decisions() if each.number == wanted), None)
        if found is None:
            why = self._parts.shared.problem or "`orchestra-mem decisions shared` lists its decisions"
            raise NotFoundError(f"{wanted} is not in {SHARED_LOG}: {why}")
        origin: dict[str, Json] = {"name": found.project, "fact": found.origin, "shared": wanted}
        return self._state(found.kind, found.text, {"from": origin}, "this project's documents", again=again)

    def _state(
        self, kind: MustKeepKind, text: str, data: Mapping[str, Json], where: str, found: str = "", *,
        again: bool = False,
    ) -> SharedFact:  # fmt: skip
        """Record a fact as a separate operation, unless an active fact has the words of `text` or of `found`."""
        with self._parts.lock, self._parts.store.lock():  # or the fact would not be extracted at once
            self.extract_facts()
            ledger, said = self._parts.ledger, {as_said(each) for each in (text, found) if each}
            facts = ledger.must_keeps(kinds=SHAREABLE_KINDS)
            alike = [fact for fact in facts if not said.isdisjoint(map(as_said, fact.wordings))]
            if standing := [fact for fact in alike if fact.status is _STANDS]:
                return SharedFact(number=f"K{standing[-1].id}", text=standing[-1].text, is_new=False)
            if alike and alike[-1].status is _REMOVED and alike[-1].author is Author.PERSON and not again:
                raise InvalidChangeError(f"a person has removed K{alike[-1].id} from {where}: `--again` restores it")
            key = (
                "stated:"
                + hashlib.sha256(f"{len(alike)} {text.casefold()}".encode("utf-8", "surrogatepass")).hexdigest()
            )
            known = self._parts.log.operations(OperationFilter(idempotency_key=key))
            operation = self.record_operation(
                STATED_FACT, {"text": text, "kind": kind.value, **data}, critical=True, idempotency_key=key
            )
            self.extract_facts()
            fact = ledger.must_keeps(first_operation=operation.id, last_operation=operation.id)[0]
            gone = [
                each for each in ledger.must_keeps(status=MustKeepStatus.SUPERSEDED) if each.superseded_by == fact.id
            ]
            return SharedFact(number=f"K{fact.id}", text=fact.text, is_new=not known, superseded=tuple(gone))


def _number(reference: str) -> int:
    found = _NUMBER.fullmatch(reference.strip())
    if found is None:
        raise NotFoundError(f"{reference!r} is not the number of a fact; write it as in K12")
    return int(found[1])

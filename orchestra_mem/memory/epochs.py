"""Build contexts from the tiers, in epochs during which the prefix of the context does not change.

An epoch freezes the stable parts as they are when it begins. Later operations and notes on people's changes to
documents are appended after the prefix, in chronological order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from orchestra_mem.core.context.assembly import NEWEST_SHARE, PREAMBLE, Epoch, begin_epoch
from orchestra_mem.core.context.continuity import TurnWindow, first_of_turns, latest_messages
from orchestra_mem.core.context.items import Item, Part, border_line
from orchestra_mem.core.context.rendered import OrchestratorContext, recalled_tokens, with_recalled
from orchestra_mem.core.context.repeats import begin_once, new_lines, texts_in
from orchestra_mem.core.documents.alignment import matched_lines
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.fact_kinds import KIND_ROWS
from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.errors import ServerAwayError
from orchestra_mem.memory.context_items import (
    PART_OF_DOCUMENT,
    Documents,
    Snapshot,
    named_apart,
    operation_item,
    session_items,
    shared_items,
    shown_text,
)
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.tiers.shared_decisions import SHARED_LOG, SharedDecisions
from orchestra_mem.types import DocumentName, MustKeep, MustKeepStatus, Operation

if TYPE_CHECKING:
    from orchestra_mem.core.search.disclosure import Recalled, RetrievedPassage
    from orchestra_mem.settings import Settings

_Key: TypeAlias = tuple[int, bool, bool]  # budget in tokens, whether memories are recalled, whether turns are measured
_MAX_EPOCHS = 4  # running at once, for callers that alternate between budgets
_MOST_RECALLED_TOKENS = 8_000  # search seldom recalls more
# If recalled memories leave no more than this, the epoch starts completely filled: every token counts.
_SMALL_TOKENS = 500
_ROOMS = 4  # sizes of the room for recalled memories
# A context this small is cheap to reprocess, so its room for recalled memories may differ from query to query.
_CHANGING_TOKENS = 1_000
_SHOWN_FIRST = tuple(kind for kind, row in KIND_ROWS.items() if row.shown_first)
# A change of more lines starts a new epoch, which shows the new document, instead of adding a note.
_MAX_NOTE_LINES = 60
# For prefixes, which stay the same for an epoch.
_cached_plain_words = lru_cache(maxsize=8)(plain_words)
_cached_texts = lru_cache(maxsize=8)(texts_in)


class _Room(NamedTuple):
    """Tokens for recalled memories: `least` for those that match, `all` with guesses, and `most` by the settings.

    `sources` are theirs, for a small context, the best first.
    """

    least: int = 0
    all: int = 0
    most: int = 0
    sources: tuple[str, ...] = ()


@dataclass(slots=True)
class _Running:
    """A running epoch for one key, and how far it has followed the tiers.

    `room` is what it was to reserve for recalled memories, `kept_free` the number of tokens that it did reserve.
    `before` is the epoch that it replaced, kept for `count_again` until the next context is requested.
    """

    epoch: Epoch
    through: int
    operations: list[Operation]
    states: Mapping[str, object]
    texts: dict[str, str]
    border: int
    room: _Room
    kept_free: int
    turns: TurnWindow | None = None
    notes: int = 0
    extended: bool = False
    before: _Running | None = None

    def told(self, for_operation: str) -> OrchestratorContext:
        """Return the epoch's current context."""
        context = OrchestratorContext.from_epoch(self.epoch, for_operation=for_operation, operations=self.operations)
        return replace(context, turns=self.turns)


@dataclass(slots=True, eq=False)
class EpochKeeper:
    """Builds contexts, epoch by epoch. Not thread-safe: callers hold the memory's lock."""

    session: SessionMemoryManager
    episodic: EpisodicMemoryManager
    search: LazySearch
    shared: SharedDecisions
    settings: Settings
    epoch_count: int = field(default=0, init=False)
    _running: OrderedDict[_Key, _Running] = field(default_factory=OrderedDict, init=False)
    _timeline: list[Entry] = field(default_factory=list, init=False)

    def add(self, entry: Entry) -> None:
        """Add a new operation to the running epochs."""
        if self._running:
            self._timeline.append(entry)

    def end_epochs(self) -> None:
        """End all epochs: the next context begins a new one."""
        self._running.clear()
        self._timeline.clear()

    def count_again(self, number: int) -> None:
        """Recount an epoch after the counter has corrected its estimates. Other epochs are unaffected.

        An extended epoch keeps its bytes if they fit the budget. Any other epoch is dropped. If the previous epoch is
        kept, it continues (wrong estimates may have ended it too early); otherwise a new epoch begins.
        """
        for key, running in list(self._running.items()):
            if running.epoch.number != number:
                continue
            epoch = running.epoch.counted_again() if running.extended else None
            if epoch is not None:
                running.epoch = epoch
            elif running.before is not None:
                self._running[key] = running.before
            else:
                del self._running[key]

    def is_running(self, budget_tokens: int) -> bool:
        """Check whether an epoch is running for a budget."""
        return any(budget == budget_tokens for budget, *_ in self._running)

    def context(
        self, for_operation: str, budget_tokens: int, now: Snapshot, recalled: Recalled | None, *, measure_turns: bool
    ) -> OrchestratorContext:
        """Return the context for a budget, from the running epoch with new entries appended or from a new epoch.

        Contexts with recalled memories have separate epochs with reserved room. The memories are appended at the end
        and may use all remaining tokens. A memory that is already in the epoch, word for word, is not repeated.
        """
        asked = recalled is not None and self.settings.retrieval.context_share > 0
        # Reserve no room for recalled memories while search is unavailable; the epoch is the same, for a stable prefix.
        found = recalled is not None and bool(recalled.recollections or not recalled.notes)
        wanted = self._wanted_room(recalled, budget_tokens, now) if recalled and asked and found else _Room()
        key = budget_tokens, asked, measure_turns
        # A context restricted to some agents gets a separate epoch, so that the shared one neither leaks nor ends.
        running = self._continue_or_begin(key, now, wanted) if now.is_whole else self._begin(key, now, wanted)
        context = running.told(for_operation)
        return self._with_recalled(context, recalled) if recalled is not None and asked else context

    def _wanted_room(self, recalled: Recalled, budget_tokens: int, now: Snapshot) -> _Room:
        """Return the room for a query's recalled memories, each number rounded up to one of a few.

        So queries of about the same need share an epoch. Guesses that stand in a document need no room.
        """
        most = min(int(self.settings.retrieval.context_share * budget_tokens), _MOST_RECALLED_TOKENS)
        step = max(1, most // _ROOMS) if budget_tokens > _CHANGING_TOKENS else 1
        documents = [block.text for name in DocumentName for block in self.episodic.blocks(name)] * now.is_whole
        there = f" {_cached_plain_words(''.join(documents))} "
        pairs = [*zip(recalled.items, recalled.recollections, strict=True)]
        sure = [item for item, each in pairs if not each.hit.perhaps]
        new = [item for item, each in pairs if not (each.hit.perhaps and f" {plain_words(each.passage)} " in there)]

        def rounded(wanted: Sequence[Item]) -> int:
            needed = recalled_tokens(wanted, most, self.session.counter)
            return min(most, max(step, -(-needed // step) * step))

        sources = [source for each in recalled.recollections for source in (each.source, *each.also)]
        return _Room(rounded(sure), rounded(new), most, tuple(sources) if budget_tokens <= _CHANGING_TOKENS else ())

    def last(self, for_operation: str, budget_tokens: int, away: ServerAwayError) -> OrchestratorContext:
        """Return the last context for a budget, without its recalled memories and with a note that it is stale.

        Raises:
            ServerAwayError: `away`, if no epoch is running for this budget.
        """
        for (budget, *_), running in reversed(self._running.items()):
            if budget == budget_tokens:
                last = running.told(for_operation)
                return replace(last, notes=(f"this is the last context, because newer data cannot be read: {away}",))
        raise away

    def _continue_or_begin(self, key: _Key, now: Snapshot, wanted: _Room) -> _Running:
        """Continue the running epoch, or begin the next one."""
        running = self._running.get(key)
        if running is None or not self._continue(running, now, wanted):
            if running is not None and key[0] > _CHANGING_TOKENS:  # as for earlier queries
                wanted = wanted._replace(least=max(wanted.least, running.room.least))
            self._running[key] = begun = self._begin(key, now, wanted)
            begun.before, running = running, begun
            while len(self._running) > _MAX_EPOCHS:
                self._running.popitem(last=False)
        self._running.move_to_end(key)
        return running

    def _with_recalled(self, context: OrchestratorContext, recalled: Recalled) -> OrchestratorContext:
        there = f" {_cached_plain_words(context.prefix)} {plain_words(context.timeline)} "
        known = _cached_texts(context.prefix) | texts_in(context.timeline)
        passages: list[RetrievedPassage] = []
        for each in recalled.recollections:
            if own := texts_in(each.passage):
                passage = "".join(new_lines(each.passage, known)).strip()
                known |= own
                if passage:
                    each = replace(each, passage=passage)
                else:
                    there += f"{plain_words(each.passage)} "
            passages.append(replace(each, newer="") if each.newer and f" {plain_words(each.newer)} " in there else each)
        for at, each in enumerate(passages):
            if own := texts_in(each.passage):  # what is around it may be in other passages, too
                whole = "".join(new_lines(each.whole, known - own)).strip()
                known |= texts_in(whole)
                passages[at] = replace(each, whole=whole)
        recalled = replace(recalled, recollections=tuple(passages))
        new, standing, reasons = list[Item](), list[Item](), dict[str, str]()
        for item, each in zip(named_apart(recalled.items), recalled.recollections, strict=True):
            (standing if f" {plain_words(each.passage)} " in there else new).append(item)
            reasons[item.key] = each.why
        return with_recalled(
            context, new, counter=self.session.counter, reasons=reasons, standing=standing, notes=recalled.notes
        )

    def _continue(self, running: _Running, now: Snapshot, wanted: _Room) -> bool:
        running.before = None
        new = [*takewhile(lambda entry: entry.operation.id > running.through, reversed(self._timeline))][::-1]
        seen = running.states, running.texts
        notes = self._notes(running, now)
        if notes is None:
            return False
        epoch: Epoch | None = running.epoch
        if new or notes:
            epoch = running.epoch.extended([*map(operation_item, new), *notes])
        is_cheap = running.epoch.budget_tokens <= _CHANGING_TOKENS
        needs_more = wanted.least > running.room.least
        # New operations may take half of the reserved room before the epoch ends.
        least_room = wanted.least if needs_more else (wanted.all if is_cheap else running.kept_free) // 2
        may_end = running.extended or needs_more or is_cheap
        if epoch is None or (may_end and epoch.budget_tokens - epoch.tokens < least_room):
            running.states, running.texts = seen
            return False
        running.extended |= epoch is not running.epoch
        running.epoch = epoch
        running.notes += len(notes)
        if new:
            running.through = new[-1].operation.id
            running.operations.extend(entry.operation for entry in new)
        return True

    def _notes(self, running: _Running, now: Snapshot) -> list[Item] | None:
        """Return notes on document changes since the epoch's last context; None if so much changed that it must end."""
        if now.documents == running.states:
            return []
        notes: list[Item] = []
        texts = self._read(now).texts(running.border)
        if self.shared.problem:  # while the shared log is unreadable, its last text remains valid
            texts[SHARED_LOG] = running.texts.get(SHARED_LOG, "")
        for name, text in texts.items():
            if text == (before := running.texts.get(name, "")):
                continue
            lines = (line for line in changed_lines(before.splitlines(), text.splitlines()) if line[1:].strip())
            changed = [*islice(lines, _MAX_NOTE_LINES + 1)]
            if len(changed) > _MAX_NOTE_LINES:
                return None
            if changed:
                told = "\n".join(f"> {line}" for line in changed)
                note = shown_text(f"- Note: {name} was changed (- no longer applies, + applies now):\n{told}")
                notes.append(Item(key=f"note {running.notes + len(notes) + 1}", part=Part.OPERATIONS, forms=(note,)))
        running.states, running.texts = now.documents, texts
        return notes

    def _read(self, now: Snapshot) -> Documents:
        blocks = self.episodic.all_blocks() if now.is_whole else dict.fromkeys(DocumentName, ())
        document = SessionDocument.parse(self.session.readable_text(now.session))
        shared = shared_items(self.shared.told()) if now.is_whole else []
        return Documents(blocks, document, shared)

    def _begin(self, key: _Key, now: Snapshot, wanted: _Room) -> _Running:
        budget_tokens, _, measure_turns = key
        documents, session = self._read(now), now.session
        border = session.spilled_through if session else 0
        fresh = [entry for entry in now.entries if entry.operation.id > border]
        operations = [entry.operation for entry in fresh]
        listed = self.session.ledger.must_keeps_by_id(documents.fact_numbers())
        items = documents.items(listed, wanted.sources)
        kept_free = self._kept_free(items, wanted, budget_tokens) if wanted.all else 0
        sources = {part: f"{name.value}.md" for name, part in PART_OF_DOCUMENT.items()}
        through = operations[-1].id if operations else border
        stated = self._facts_shown_first(documents.session, border, through)
        if session is not None:
            known = {fact.id for fact in listed}
            unlisted = {fact.operation for fact in stated if fact.id not in known}  # until the first refresh
            items += session_items(documents.session, border, unlisted)
            sources[Part.SESSION] = f"session {session.id[:8]}"
        small = budget_tokens - kept_free <= _SMALL_TOKENS
        turns = None if small else self._turns(operations, measure=measure_turns)
        items += _operation_items(fresh, turns, {fact.operation for fact in stated})
        self.epoch_count += 1
        begun = partial(
            begin_epoch, number=self.epoch_count, budget_tokens=budget_tokens, counter=self.session.counter,
            shares=self._shares(1 - kept_free / max(1, budget_tokens), is_shared=bool(documents.shared)),
            sources=sources, fill_at_start=1.0 if small else self.settings.context.fill_at_start,
            # Operations may use the unused tokens of other parts, unless recalled memories could use these tokens.
            lends=wanted.all < wanted.most or wanted.most in (0, _MOST_RECALLED_TOKENS),
        )  # fmt: skip
        epoch = begin_once(items, begun, {fact.operation for fact in (*stated, *listed)})
        texts = documents.texts(border)
        return _Running(epoch, through, operations, now.documents, texts, border, wanted, kept_free, turns)

    def _facts_shown_first(self, document: SessionDocument, border: int, through: int) -> list[MustKeep]:
        """Return the active facts for which a small context shows operations first: of entries and newer operations."""
        first = min((part.operation for part in document.parts if part.operation), default=border + 1)
        return self.session.ledger.must_keeps(
            kinds=_SHOWN_FIRST, status=MustKeepStatus.STANDING, first_operation=first, last_operation=through
        )

    def _turns(self, operations: Sequence[Operation], *, measure: bool) -> TurnWindow | None:
        """Return the turns to show in full; None without a user's messages."""
        if not (messages := latest_messages(operations)):
            return None
        return self.search.turn_window(messages) if measure else TurnWindow(reason="continuity was not measured")

    def _kept_free(self, items: Sequence[Item], wanted: _Room, budget_tokens: int) -> int:
        """Return the room for recalled memories: guesses among them get what `items` and the newest operations leave.

        Pinned items and the newest operations get up to a third of the budget even before memories that match.
        """

        def needed(some: Sequence[Item]) -> int:
            frame = [PREAMBLE, *(border_line(part, f"{part.value}.md") for part in {item.part for item in some})]
            tokens = sum(map(self.session.counter.count, [*frame, *(item.forms[-1] for item in some)]))
            return int(tokens / (1 - NEWEST_SHARE)) if some else 0

        pinned = needed([item for item in items if item.pinned])
        kept_free = max(wanted.least, min(wanted.all, budget_tokens - needed(items)))
        return min(kept_free, budget_tokens - min(pinned, budget_tokens // 3))

    def _shares(self, of: float, *, is_shared: bool) -> dict[Part, float]:
        """Divide `of`, a share of the budget, among the parts. `is_shared`: Whether there are shared decisions."""
        shared = self.settings.context.shared_share * is_shared
        own = of * (1 - shared)
        return {Part.SHARED: of * shared, **{Part(name): share * own for name, share in self.settings.context.shares}}


def _operation_items(entries: Sequence[Entry], turns: TurnWindow | None, stating: Container[int]) -> list[Item]:
    """Return the items of new operations: those of the newest `turns` pinned, those that are `stating` facts first."""
    whole_from = first_of_turns([entry.operation for entry in entries], turns.turns) if turns else 0
    return [operation_item(entry, whole_from, stating) for entry in entries]


def changed_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the removed lines (prefixed by `-`) and the added lines (prefixed by `+`), in order."""
    old = new = 0
    for old_stop, new_stop in [*matched_lines(before, after), (len(before), len(after))]:
        yield from (f"-{line}" for line in before[old:old_stop])
        yield from (f"+{line}" for line in after[new:new_stop])
        old, new = old_stop + 1, new_stop + 1

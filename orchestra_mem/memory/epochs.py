"""From tiers to context: which items there are, and the epochs in which the prefix of a context stays the same.

An epoch freezes the stable parts as they are when it begins. What comes after, operations and changes that people make
to documents, is told behind the border in the order of time.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from orchestra_mem.core.context.assembly import Epoch, begin_epoch
from orchestra_mem.core.context.continuity import TurnWindow
from orchestra_mem.core.context.items import Item, Part, as_form, operation_key
from orchestra_mem.core.context.recalled import with_recalled
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.core.context.turns import NO_EMBEDDER, first_of_turns, latest_messages
from orchestra_mem.core.documents.alignment import matched_lines
from orchestra_mem.core.documents.entries import Entry
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.search.disclosure import Recalled, recalled_item
from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.core.summaries.kept import body_of, kept_part
from orchestra_mem.ports import TokenCounter
from orchestra_mem.tiers.episodic import EpisodicMemoryManager
from orchestra_mem.tiers.session import SessionMemoryManager
from orchestra_mem.types import DocumentName, Operation, Session

_PARTS = {
    DocumentName.PROJECT_STATE: Part.PROJECT_STATE,
    DocumentName.WORK_PLAN: Part.WORK_PLAN,
    DocumentName.DECISION_LOG: Part.DECISIONS,
}
_MAX_EPOCHS = 4  # budgets that callers alternate between
_SHORT_LINES = 8
# A section that says that there is nothing says nothing to a model.
_EMPTY_SECTION = re.compile(r"#{1,2} [^\n]*\n\s*(?:- None\s*)?")
_NO_CHARACTER = re.compile("[\ud800-\udfff]")
# A change of more lines than this is not told line by line: a new epoch shows the document as it is now.
_MAX_NOTE_LINES = 60
# Where less than this of their share is left to recalled memories, a new epoch begins, which has room for them.
_LEAST_RECALLED = 1 / 3


@dataclass(slots=True)
class _Running:
    """An epoch under way for one budget, and what of the tiers it has seen.

    `before` is the one in whose place it began, until it is asked for again.
    """

    epoch: Epoch
    through: int
    operations: list[Operation]
    states: Mapping[str, object]
    texts: dict[str, str]
    border: int
    turns: TurnWindow | None = None
    notes: int = 0
    extended: bool = False
    before: _Running | None = None


class EpochKeeper:
    """Gives contexts, epoch by epoch. Not locked: the manager calls it under its own lock."""

    def __init__(
        self,
        *,
        session: SessionMemoryManager,
        episodic: EpisodicMemoryManager,
        counter: TokenCounter,
        shares: Mapping[Part, float],
        fill_at_start: float,
        recalled_share: float,
    ) -> None:
        self._session = session
        self._episodic = episodic
        self._counter = counter
        self._shares = shares
        self._fill_at_start = fill_at_start
        self._recalled_share = recalled_share
        self._running: OrderedDict[int, _Running] = OrderedDict()
        self._timeline: list[Entry] = []
        self._count = 0
        self.turn_window: Callable[[Sequence[str]], TurnWindow] = lambda messages: NO_EMBEDDER

    @property
    def epoch_count(self) -> int:
        """How many epochs have begun."""
        return self._count

    def add(self, entry: Entry) -> None:
        """Take note of a new operation."""
        if self._running:
            self._timeline.append(entry)

    def end_epochs(self) -> None:
        """Let the next context begin a new epoch."""
        self._running.clear()
        self._timeline.clear()

    def count_again(self, number: int) -> None:
        """Have an epoch counted again, as its counter had to estimate; one that has told news keeps its bytes.

        One that has just begun makes way for the one before it, where the estimates alone may have ended that, or for
        a new one. The epochs for other budgets go on.
        """
        for budget, running in list(self._running.items()):
            if running.epoch.number != number:
                continue
            epoch = running.epoch.counted_again() if running.extended else None
            if epoch is not None:
                running.epoch = epoch
            elif running.before is not None:
                self._running[budget] = running.before
            else:
                del self._running[budget]

    def context(
        self,
        for_operation: str,
        budget_tokens: int,
        session: Session | None,
        working: Sequence[Entry],
        recalled: Recalled | None = None,
    ) -> OrchestratorContext:
        """The context for a budget: the running epoch's, with what is new at its end, or a new epoch's.

        What is recalled for this request comes behind it; what stands in it word for word is not shown again.
        """
        running = self._running.get(budget_tokens)
        share = int(self._recalled_share * budget_tokens) if recalled and recalled.recollections else 0
        if running is None or not self._continue(running, session, int(share * _LEAST_RECALLED)):
            self._running[budget_tokens] = begun = self._begin(budget_tokens, session, working)
            begun.before, running = running, begun
            while len(self._running) > _MAX_EPOCHS:
                self._running.popitem(last=False)
        self._running.move_to_end(budget_tokens)
        context = OrchestratorContext.from_epoch(
            running.epoch, for_operation=for_operation, operations=running.operations
        )
        context = replace(context, turns=running.turns)
        return context if recalled is None else self._with_recalled(context, recalled, share)

    def _with_recalled(self, context: OrchestratorContext, recalled: Recalled, share: int) -> OrchestratorContext:
        there = f" {_plain_words(context.prefix)} {plain_words(context.timeline)} "
        items = _named_apart([recalled_item(each) for each in recalled.recollections])
        stands = [f" {plain_words(each.passage)} " in there for each in recalled.recollections]
        return with_recalled(
            context,
            [item for item, standing in zip(items, stands, strict=True) if not standing],
            share_tokens=share,
            counter=self._counter,
            reasons={item.key: each.why for item, each in zip(items, recalled.recollections, strict=True)},
            standing=[item for item, standing in zip(items, stands, strict=True) if standing],
            notes=recalled.notes,
        )

    def _continue(self, running: _Running, session: Session | None, least_room: int) -> bool:
        running.before = None
        new, seen = list(self._new_entries(running.through)), (running.states, running.texts)
        notes = self._notes(running, session)
        if notes is None:
            return False
        epoch: Epoch | None = running.epoch
        if new or notes:
            epoch = running.epoch.extended([*map(_operation_item, new), *notes])
        if epoch is None or (running.extended and epoch.budget_tokens - epoch.tokens < least_room):
            running.states, running.texts = seen
            return False
        running.extended |= epoch is not running.epoch
        running.epoch = epoch
        running.notes += len(notes)
        if new:
            running.through = new[-1].operation.id
            running.operations.extend(entry.operation for entry in new)
        return True

    def _new_entries(self, through: int) -> Iterable[Entry]:
        newest: list[Entry] = []
        for entry in reversed(self._timeline):
            if entry.operation.id <= through:
                break
            newest.append(entry)
        return reversed(newest)

    def _notes(self, running: _Running, session: Session | None) -> list[Item] | None:
        """What others changed in the documents since the epoch began; None where that is better shown anew."""
        states = self._states(session)
        if states == running.states:
            return []
        notes: list[Item] = []
        texts = self._texts(session, running)
        for name, text in texts.items():
            before = running.texts.get(name, "")
            if text == before:
                continue
            changed = _changed_lines(before.splitlines(), text.splitlines())
            if len(changed) > _MAX_NOTE_LINES:
                return None
            if changed:
                told = "\n".join(f"> {line}" for line in changed)
                note = _form(f"- Note: {name} was changed (- is no longer so, + is so now):\n{told}")
                notes.append(Item(key=f"note {running.notes + len(notes) + 1}", part=Part.OPERATIONS, forms=(note,)))
        running.states, running.texts = states, texts
        return notes

    def _begin(self, budget_tokens: int, session: Session | None, working: Sequence[Entry]) -> _Running:
        states = self._states(session)
        items: list[Item] = []
        sources: dict[Part, str] = {}
        texts: dict[str, str] = {}
        for name, part in _PARTS.items():
            blocks = self._episodic.blocks(name)
            items += _document_items(name, part, blocks)
            sources[part] = f"{name.value}.md"
            texts[f"{name.value}.md"] = "".join(block.text for block in blocks)
        if session is not None:
            document = SessionDocument.parse(self._session.readable_text(session))
            items += _session_items(document, session)
            sources[Part.SESSION] = f"session {session.id[:8]}"
            texts["the session document"] = _known_text(document, session.spilled_through)
        fresh = [entry for entry in working if session is None or entry.operation.id > session.spilled_through]
        operations = [entry.operation for entry in fresh]
        messages = latest_messages(operations)
        turns = self.turn_window(messages) if messages else None
        whole_from = first_of_turns(operations, turns.turns) if turns else 0
        items += [_operation_item(entry, in_turn=0 < whole_from <= entry.operation.id) for entry in fresh]
        self._count += 1
        epoch = begin_epoch(
            items,
            number=self._count,
            budget_tokens=budget_tokens,
            counter=self._counter,
            shares=self._shares,
            sources=sources,
            fill_at_start=self._fill_at_start,
        )
        through = fresh[-1].operation.id if fresh else (session.spilled_through if session else 0)
        border = session.spilled_through if session else 0
        return _Running(epoch, through, operations, states, texts, border, turns)

    def _states(self, session: Session | None) -> Mapping[str, object]:
        states: dict[str, object] = {f"{name.value}.md": state for name, state in self._episodic.states().items()}
        if session is not None:
            states["the session document"] = self._session.foreign_state(session)
        return states

    def _texts(self, session: Session | None, running: _Running) -> dict[str, str]:
        texts = {
            f"{name.value}.md": "".join(block.text for block in self._episodic.blocks(name)) for name in DocumentName
        }
        if session is not None:
            document = SessionDocument.parse(self._session.readable_text(session))
            texts["the session document"] = _known_text(document, running.border)
        return texts


def _changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines that went (-) and came (+), in their order; blank ones are left out."""
    changed: list[str] = []
    old = new = 0
    for old_stop, new_stop in [*matched_lines(before, after), (len(before), len(after))]:
        changed += [f"-{line}" for line in before[old:old_stop] if line.strip()]
        changed += [f"+{line}" for line in after[new:new_stop] if line.strip()]
        old, new = old_stop + 1, new_stop + 1
    return changed


def _known_text(document: SessionDocument, border: int) -> str:
    """A session document without the entries that came after an epoch's border."""
    return "".join(part.block.text for part in document.parts if part.operation <= border)


def _operation_item(entry: Entry, *, in_turn: bool = False) -> Item:
    short, full = _form(entry.short), _form(entry.text)
    return Item(
        key=operation_key(entry.operation.id),
        part=Part.OPERATIONS,
        forms=(short, full) if len(short) < len(full) else (full,),
        priority=float(entry.operation.id),
        pinned=in_turn,
        pinned_for="of the last turns",
        source="working memory",
    )


def _document_items(name: DocumentName, part: Part, blocks: Sequence[Block]) -> list[Item]:
    items: list[Item] = []
    for position, block in enumerate(blocks):
        forms = _forms(block.text)
        if not forms or _EMPTY_SECTION.fullmatch(forms[-1]):
            continue
        # Of decisions the newest, which stand last, matter most; in the other documents what stands first.
        priority = float(position) if block.level == 3 and part is Part.DECISIONS else float(-position)
        key = f"{name.value}/{block.title or 'text'}"
        items.append(
            Item(
                key=key,
                part=part,
                forms=forms,
                priority=priority,
                pinned=block.pinned,
                source=f"{name.value}.md:{block.line}",
            )
        )
    return _named_apart(items)


def _session_items(document: SessionDocument, session: Session) -> list[Item]:
    items: list[Item] = []
    for position, part in enumerate(document.parts):
        if part.block.front or part.operation > session.spilled_through:
            continue
        text = part.block.text
        key = f"session/{part.block.title or 'text'}"
        forms = _forms(text)
        if part.operation:
            key = operation_key(part.operation)
            forms = _entry_forms(text)
        elif part.summary:
            key = f"summary {part.summary}"
            forms = _summary_forms(text)
        if forms:
            items.append(
                Item(
                    key=key,
                    part=Part.SESSION,
                    forms=forms,
                    priority=float(position),
                    pinned=part.block.pinned,
                    source=f"session document:{part.block.line}",
                )
            )
    return _named_apart(items)


def _named_apart(items: list[Item]) -> list[Item]:
    """Headings may repeat; keys do not."""
    seen: dict[str, int] = {}
    result: list[Item] = []
    for item in items:
        seen[item.key] = seen.get(item.key, 0) + 1
        result.append(item if seen[item.key] == 1 else replace(item, key=f"{item.key} ({seen[item.key]})"))
    return result


@lru_cache(maxsize=8)
def _plain_words(prefix: str) -> str:
    """The words of a prefix, which stays the same for an epoch."""
    return plain_words(prefix)


@lru_cache(maxsize=256)
def _forms(text: str) -> tuple[str, ...]:
    """A section in a short form (heading and last lines, where the newest stand), a middle one, and in full."""
    full = _form(text)
    lines = full.splitlines(keepends=True)
    if len(lines) <= _SHORT_LINES * 2:
        return (full,) if full else ()
    forms = [_shortened(lines, count) for count in (_SHORT_LINES, len(lines) // 2)]
    return (*forms, full)


def _shortened(lines: list[str], count: int) -> str:
    left_out = len(lines) - 1 - count
    return _form(f"{lines[0]}*({left_out:,} earlier lines are left out here)*\n{''.join(lines[-count:])}")


@lru_cache(maxsize=512)
def _entry_forms(text: str) -> tuple[str, ...]:
    full = _form(text)
    heading, _, rest = full.partition("\n")
    short = _form(f"- {heading.lstrip('# ')}")
    return (short, full) if rest else (full,)


@lru_cache(maxsize=128)
def _summary_forms(text: str) -> tuple[str, ...]:
    """A summary as its heading, with its must-keeps, and in full."""
    full = _form(text)
    heading, _, rest = full.partition("\n")
    kept = kept_part(rest)
    forms = [_form(heading)]
    if kept:
        forms.append(_form(f"{heading}\n\n{kept}"))
    if body_of(rest).strip():
        forms.append(full)
    return tuple(dict.fromkeys(forms))


def _form(text: str) -> str:
    """A form of a text; what is no character, as in a file that is not UTF-8, is shown as one."""
    return as_form(text if text.isascii() else _NO_CHARACTER.sub("\ufffd", text))

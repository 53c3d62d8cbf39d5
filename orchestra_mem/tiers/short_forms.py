"""Short forms of sections that make an episodic document too large for what it may hold, for contexts alone.

The machine's own lists are bounded; what people write is not, and stays in its file word for word. A section has its
short form by extraction first, in the ledger; a model's may take its place there. It holds for the very text that it
was made of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orchestra_mem.core.documents.episodic import digest
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.ports import Clock, Ledger, TokenCounter
from orchestra_mem.types import DocumentName, MustKeep, Summary

if TYPE_CHECKING:
    from orchestra_mem.core.summaries.drafts import Material

logger = logging.getLogger(__name__)

_Key = tuple[str, str]

# A section under this share of what its document may hold is not what makes it too large.
_LARGE = 1 / 8


@dataclass(slots=True, kw_only=True, eq=False)
class ShortForms:
    """Makes short forms, and shows them. Called under the manager's lock.

    Attributes:
        ledger: holds them.
        counter: counts tokens.
        clock: gives the present time.
        blocks: gives the blocks of a document as they stand in its file.
        size_tokens: what a document may hold; 0 for any amount.
        share: of a section's tokens, about what its short form takes.
    """

    ledger: Ledger
    counter: TokenCounter
    clock: Clock
    blocks: Callable[[DocumentName], Sequence[Block]]
    size_tokens: int
    share: float
    _known: Mapping[_Key, Summary] | None = field(default=None, init=False)
    _refused: set[str] = field(default_factory=set, init=False)

    def shown(self, name: DocumentName, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """The blocks with short forms in the place of sections that have one and make the document too large."""
        chosen = self._chosen(blocks)
        known = self._loaded() if chosen else {}
        return tuple(
            _short(block, name, known[key]) if block in chosen and (key := _key(name, block)) in known else block
            for block in blocks
        )

    def make(self, session: str) -> None:
        """Make those that are missing, and show from here on what the ledger has; for an epoch's border alone."""
        self._known = None
        new: list[Summary] = []
        for key, text in self._missing():
            made = self._made(text, key, session, self.ledger.next_summary_id() + len(new))
            if made is None:
                self._refused.add(key[1])
            else:
                new.append(made)
        if new:
            self.ledger.add_summaries(new)
            self._known = None

    def _missing(self) -> list[tuple[_Key, str]]:
        """The texts that have no short form yet and need one."""
        chosen = [(name, block) for name in DocumentName for block in self._chosen(self.blocks(name))]
        texts = {_key(name, block): _text(block) for name, block in chosen}
        return [(key, text) for key, text in texts.items() if key not in self._loaded() and key[1] not in self._refused]

    def section(self, summary: Summary) -> str | None:
        """The text that a short form is of; None where it stands in its document no longer."""
        name = DocumentName(summary.document.partition("/")[0])
        wanted = summary.document, summary.source
        return next((_text(block) for block in self.blocks(name) if _key(name, block) == wanted), None)

    def _loaded(self) -> Mapping[tuple[str, str], Summary]:
        if self._known is None:
            found = self.ledger.whole_summaries(sections=True)
            self._known = {(each.document, each.source): each for each in found}
        return self._known

    def _chosen(self, blocks: Sequence[Block]) -> list[Block]:
        """Of the large sections the largest, as many as bring the document to its size; none that is pinned."""
        # A token has a character or more, but for rare ones.
        if not self.size_tokens or sum(len(block.text) for block in blocks) <= self.size_tokens:
            return []
        tokens = {block: self.counter.count(block.text) for block in blocks}
        excess = sum(tokens.values()) - self.size_tokens
        chosen: list[Block] = []
        for block in sorted(blocks, key=lambda block: -tokens[block]):
            if excess <= 0 or tokens[block] < self.size_tokens * _LARGE:
                break
            if block.level and not block.pinned:
                chosen.append(block)
                excess -= int(tokens[block] * (1 - self.share))
        return chosen

    def _made(self, text: str, key: _Key, session: str, number: int) -> Summary | None:
        from orchestra_mem.core.summaries.drafts import draft_of

        now = self.clock()
        material = section_material(text, self.counter, self.clock)
        target = int(material.source_tokens * self.share)
        draft = draft_of(material, target_tokens=target, counter=self.counter)
        if not draft.passed:
            logger.warning("%s is shown as far as it fits: its short form is no shorter, or failed the check", key[0])
            return None
        made = draft.summary(
            number=number, session=session, level=0, operations=(0, 0, 0), times=(now, now), created=now
        )
        dropped = material.dropped_from(draft.text)
        return replace(made, must_keeps=(), dropped=dropped, document=key[0], source=key[1])


def section_material(text: str, counter: TokenCounter, clock: Clock) -> Material:
    """What a section's text says, paragraph by paragraph, and the facts in it that a short form may not lack."""
    # Here, as NumPy is heavy and loads on first use: to import the package must stay quick.
    from orchestra_mem.core.facts.extraction import find_in_text
    from orchestra_mem.core.summaries.drafts import Material
    from orchestra_mem.core.summaries.extractive import Passage

    passages = [Passage(key=n, text=each) for n, each in enumerate(text.split("\n\n")) if each.strip()]
    facts: list[MustKeep] = []
    for passage in passages:
        facts += find_in_text(passage.text, operation=passage.key, timestamp=clock())
    return Material.of_passages(passages, counter.count(text), facts)


def _key(name: DocumentName, block: Block) -> _Key:
    return f"{name.value}/{block.title}", digest(block.text)


def _text(block: Block) -> str:
    return block.text.removeprefix(block.heading)


def _short(block: Block, name: DocumentName, summary: Summary) -> Block:
    told = f"*(Shortened from {summary.source_tokens:,} tokens, S{summary.id}; all of it stands in {name.value}.md)*"
    return replace(block, text=f"{block.heading.rstrip()}\n\n{told}\n\n{summary.text.rstrip()}\n\n")

"""Lay out retrieved passages within a token budget by progressive disclosure: an index with costs, then the texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.core.context.assembly import PREAMBLE
from orchestra_mem.core.context.items import Item, Part, PartFill, Placement, count_piece, largest_fit
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.documents.entries import clip
from orchestra_mem.core.search.echoes import LEAST_WORDS, MARK, fenced, own_words
from orchestra_mem.core.text import visible
from orchestra_mem.ports import TokenCounter
from orchestra_mem.search_types import Hit
from orchestra_mem.serialize import local_day

# Long enough to hold most memories in full: an answer that is cut off is useless.
_EXCERPT_CHARS = 480
WHOLE_CHARS = 8_000
INDEX_SHARE = 0.3
"""Maximum share of the budget for the index: a line takes about 30 tokens, an entry in full 100 or more."""

_LINE_CHARS = 90
_NAME_CHARS = 60
_RUN = re.compile(r"`+")
_PREAMBLE_WORTH = 10  # the preamble is shown only in budgets of at least ten times its tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedPassage:
    """A passage of the memory that answers a question.

    `passage` is the text of the hit, or of several in one section. `whole` is the text of the operation, section or
    summary that contains it. `speaker` said it, empty if unknown. `newer` is the text of the fact that has superseded
    it, empty if that is told elsewhere. `also` lists other sources with the same text.
    """

    hit: Hit
    passage: str
    whole: str
    speaker: str = ""
    newer: str = ""
    also: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The source of the hit."""
        return self.hit.chunk.source

    @property
    def title(self) -> str:
        """The title of the hit; without one, the headings above it."""
        return self.hit.chunk.title or " > ".join(self.hit.chunk.heading)

    @property
    def label(self) -> str:
        """The source with kind, date, speaker or agent, and doubts, in one line.

        If somebody said a message, the kind is left out; if the passage begins with a name, the name is.
        """
        chunk = self.hit.chunk
        who = self.speaker or chunk.agent or ""
        kind = "" if who and chunk.kind == "message" else chunk.kind
        when = local_day(chunk.time) if chunk.time else ""
        named = (_named(each) for each in (kind, when, "" if self.passage.startswith(f"{who}:") else who))
        return f"{_named(self.source)} ({', '.join(filter(None, named))}{self.hit.doubt})"

    @property
    def why(self) -> str:
        """The reason why the hit was found, in one line."""
        told, reasons = [], self.hit.reasons
        if reasons.identifiers:
            told.append(f"has {', '.join(reasons.identifiers)}")
        if reasons.keyword_rank:
            told.append(f"rank {reasons.keyword_rank} by words ({reasons.keyword_score:.2f})")
        if reasons.dense_rank:
            told.append(f"rank {reasons.dense_rank} by meaning (cosine {reasons.dense_score:.2f})")
        return ", ".join(told) or "next to a hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The passages retrieved for a question, best first; `notes` report failures of the search."""

    recollections: tuple[RetrievedPassage, ...]
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> list[Item]:
        """The passages as items of a context."""
        return [recalled_item(each) for each in self.recollections]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosedEntry:
    """How a passage is shown.

    `indexed`: Whether it has an index line. `text`: In full, shortened, or empty if left out. `tokens`: Size of `text`.
    `full_tokens`: Size of the longest form. `likelihood`, `perhaps`: As in `Hit`. `explanation`: Why the passage was
    retrieved and has this form.
    """

    source: str
    kind: str
    title: str
    time: datetime | None
    agent: str | None
    also: tuple[str, ...]
    indexed: bool
    tokens: int
    full_tokens: int
    likelihood: float
    perhaps: bool
    text: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """The text for the model, its token count, and one entry for each passage, best first."""

    text: str
    tokens: int
    entries: tuple[DisclosedEntry, ...]


def distinct(recollections: Sequence[RetrievedPassage]) -> list[RetrievedPassage]:
    """Merge passages, best first: drop any that another one contains (see `also`), join those of one section.

    An operation takes the place of passages that its excerpt contains: of long ones, and of its own facts.
    """
    kept: list[RetrievedPassage] = []
    said: list[str] = []
    wholes: list[tuple[str, str]] = []
    for each in recollections:
        words = f" {own_words(each.passage)} "
        told = f"{words}{own_words(each.newer)} " if each.newer else words
        same = next((at for at, known in enumerate(said) if words in known), None)
        begin, operation = words, each.hit.chunk.operation
        if len(each.passage) > _EXCERPT_CHARS:
            begin = f" {own_words(excerpt(each.passage, _EXCERPT_CHARS))} "
        parts = [
            at
            for at, known in enumerate(said)
            if operation and known in begin
            if kept[at].hit.chunk.operation == operation or known.count(" ") > LEAST_WORDS
        ]
        whole = each.source, each.whole
        if same is not None:
            known = kept[same]
            if each.source not in (known.source, *known.also):
                kept[same] = replace(known, also=(*known.also, each.source))
        elif parts:
            best, longer = kept[parts[0]].hit, each.hit
            also = dict.fromkeys(source for at in parts for source in (kept[at].source, *kept[at].also))
            kept[parts[0]] = replace(
                each,
                hit=replace(
                    longer, score=best.score, likelihood=best.likelihood, perhaps=best.perhaps, reasons=best.reasons
                ),
                also=tuple(source for source in also if source != each.source),
            )
            said[parts[0]], wholes[parts[0]] = told, whole
            for at in reversed(parts[1:]):
                del kept[at], said[at], wholes[at]
        elif whole in wholes:
            at = wholes.index(whole)
            kept[at] = replace(kept[at], passage=f"{kept[at].passage}\n{each.passage}")
            said[at] += words
        else:
            kept.append(each)
            said.append(told)
            wholes.append(whole)
    return kept


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text, at most `most` characters, cut between words if possible."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    at = cut.rfind(" ")
    return f"{cut[:at].rstrip() if at > most // 2 else cut}…"


def recalled_item(recollection: RetrievedPassage) -> Item:
    """Return a passage as an item of a context; its forms are an excerpt, the passage and the whole, each fenced."""
    passage = recollection.passage
    texts = (excerpt(passage, _EXCERPT_CHARS), passage, clip(recollection.whole, WHOLE_CHARS))
    newer = f"\n{recollection.hit.superseded_by}: {recollection.newer}" if recollection.newer else ""
    forms = [fenced(text + newer, recollection.label) for text in dict.fromkeys(texts)]
    longest = 0
    rising = [form for form in forms if len(form) > longest and (longest := len(form))]
    return Item(
        key=f"{MARK} {recollection.source}",
        part=Part.RECALLED,
        forms=tuple(rising),
        source=", ".join(recollection.also),
    )


def disclose(recollections: Sequence[RetrievedPassage], *, budget_tokens: int, counter: TokenCounter) -> Disclosure:
    """Lay out passages, best first: an index with token costs, then the passages themselves, never over the budget.

    The index takes at most `INDEX_SHARE` of the budget, the passages share the rest. Every passage gets its shortest
    form before the best passages get longer forms; none takes more than twice an equal share.

    Raises:
        ValueError: The budget is negative.
    """
    if budget_tokens < 0:
        raise ValueError(f"max_tokens is {budget_tokens}: a budget cannot be negative")
    # Passages of one document have the same source, but keys must be unique.
    items = [replace(recalled_item(each), key=f"{at}") for at, each in enumerate(recollections)]
    return largest_fit(_Layout(items, recollections, counter).filled, lambda each: each.tokens, budget_tokens)


class _Layout:
    """Passages with the costs of their forms, ready to be laid out for different sizes."""

    def __init__(self, items: Sequence[Item], recollections: Sequence[RetrievedPassage], counter: TokenCounter) -> None:
        self._items = items
        self._recollections = recollections
        self._counter = counter
        self._costs = [[count_piece(counter, neutralise(form)) for form in item.forms] for item in items]
        self._lines = [
            neutralise(f"{each.label}, {costs[-1]:,} tokens: {_title(each)}\n")
            for each, costs in zip(recollections, self._costs, strict=True)
        ]

    def filled(self, fill_to: int) -> Disclosure:
        head = [PREAMBLE] if count_piece(self._counter, PREAMBLE) * _PREAMBLE_WORTH <= fill_to else []
        room = fill_to - sum(count_piece(self._counter, piece) for piece in head)
        index, used = self._index(int(room * INDEX_SHARE))
        room -= used
        share = room // len(self._items) if self._items else 0
        fill = PartFill(list(self._within(2 * share)), "", self._counter)
        fill.fill(room)
        pieces = [piece for piece in fill.pieces() if piece]
        text = "".join((*head, *index, *pieces)) if index or pieces else ""
        placements = {placement.key: placement for placement in fill.placements(room)}
        entries = (
            self._entry(number, placements.get(f"{number}"), most=2 * share, indexed=number < len(index) - 2)
            for number in range(len(self._items))
        )
        return Disclosure(text=text, tokens=self._counter.count(text), entries=tuple(entries))

    def _index(self, room: int) -> tuple[list[str], int]:
        """Return the fenced lines that fit `room` tokens, and their cost; nothing if not even one line fits."""
        fence = max(["``", *_RUN.findall("".join(self._lines))], key=len) + "`"
        frame = [f"{fence}{MARK} index\n", f"{fence}\n"]
        used = sum(count_piece(self._counter, piece) for piece in frame)
        lines: list[str] = []
        for line in self._lines:
            cost = count_piece(self._counter, line)
            if used + cost > room:
                break
            lines.append(line)
            used += cost
        return ([frame[0], *lines, frame[1]], used) if lines else ([], 0)

    def _within(self, most: int) -> Iterator[Item]:
        """Yield the items, each with only the forms of at most `most` tokens; skip an item without such a form."""
        for item, costs in zip(self._items, self._costs, strict=True):
            forms = tuple(form for form, cost in zip(item.forms, costs, strict=True) if cost <= most)
            if forms:
                yield replace(item, forms=forms)

    def _entry(self, number: int, placement: Placement | None, *, most: int, indexed: bool) -> DisclosedEntry:
        recollection, costs = self._recollections[number], self._costs[number]
        if placement is None:
            how = f"left out: its shortest form needs {costs[0]:,} tokens, more than {most:,}, twice an equal share"
        elif placement.form is not None and placement.forms < len(costs) and placement.form == placement.forms - 1:
            how = f"shortened: in full it needs {costs[-1]:,} tokens, more than {most:,}, twice an equal share"
        else:
            how = placement.reason
        also = f"; also in {', '.join(recollection.also)}" if recollection.also else ""
        chunk = recollection.hit.chunk
        return DisclosedEntry(
            source=chunk.source,
            kind=chunk.kind,
            title=_title(recollection),
            time=chunk.time,
            agent=chunk.agent,
            also=recollection.also,
            indexed=indexed,
            tokens=placement.tokens if placement else 0,
            full_tokens=costs[-1],
            likelihood=recollection.hit.likelihood,
            perhaps=recollection.hit.perhaps,
            text=placement.text if placement else "",
            explanation=f"{recollection.why}; {how}{also}",
        )


def _title(recollection: RetrievedPassage) -> str:
    title = recollection.title if ":" in recollection.title else recollection.passage
    return excerpt(" ".join(visible(title[: 4 * _LINE_CHARS]).split()), _LINE_CHARS)


def _named(text: str) -> str:
    """Return a name from data in one short line without backticks, safe to show outside a fence."""
    return " ".join(visible(text).replace("`", "'").split())[:_NAME_CHARS]

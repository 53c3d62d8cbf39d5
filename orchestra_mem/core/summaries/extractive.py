"""Extractive summariser: selects sentences of a text and adds no words. Needs no model.

Selection is budgeted weighted coverage: each content word of the source has a weight, a sentence gains the weights of
its words that are not yet covered, and a greedy algorithm takes the highest gain per cost (Khuller, Moss and Naor 1999;
lazy evaluation after Minoux 1978). `reading.py` weighs sentences and words.

Rules that cut sentences into clauses and dropped fillers were removed: at a fifth of a conversation's size, 0.891 of
the answers' words survive without them, 0.898 with them (`benchmarks/compaction.py`); in work records, equally many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, heapreplace
from math import log

from orchestra_mem.core.identifiers import is_quoted_across
from orchestra_mem.core.summaries.reading import read
from orchestra_mem.core.text import content_stems, squeeze, stem

_Row = tuple[str, str, int, str]  # time, speaker, key and text

_REPEAT = 0.1  # factor on the weight of a covered word, which breaks ties between sentences
_RARITY = 0.15
_NEAR_CHARS, _FAR_CHARS = 3, 16  # cost of a sentence besides its text: in an existing bullet, in a new one
_CROWDING = 0.04  # each selected sentence lowers the gain of its passage's others, so that all passages contribute
_MIN_NICKNAME_CHARS = 3
_STOPS = tuple(".!?\u2026:;,\u3002\uff01\uff1f\"')\u201d\u2019`")
_WORTHLESS = 0.03  # least share of the best gain: sentences below it, such as code among prose, are dropped
_PATIENCE = 16
_MAX_FITTINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The text of one operation or conversational turn.

    `key`: Id of the operation. `speaker`, `when` (formatted): Shown before the text unless empty. `weight`: Importance
    regardless of the text, 0 and up; 1 is usual, 0 excludes the passage. `is_fact`: Whether `speaker` is the label of a
    fact instead, whose words weigh as much as in any text.
    """

    key: int
    text: str
    speaker: str = ""
    when: str = ""
    weight: float = 1.0
    is_fact: bool = False


@dataclass(slots=True, eq=False)
class _Unit:
    """A sentence that may be selected."""

    passage: int
    line: int  # equal for sentences that can share a bullet
    text: str
    quality: float
    stems: Iterable[str]
    frame: int = _FAR_CHARS  # characters that rendering adds, estimated
    seen: int = -1  # number of picks when its gain was last computed


def extract(
    passages: Sequence[Passage], *, budget: int, said: str = "", used: Callable[[str], float] | None = None
) -> tuple[Passage, ...]:
    """Select the sentences that cover most content within a budget, and return them in the order of the source.

    Args:
        passages: The source, oldest first.
        budget: Maximum number of characters of `render(result)`, 0 and up.
        said: Text that the reader sees elsewhere; its words count as covered.
        used: Returns the share of the room that a rendered extract takes. If given, `budget` is an estimate, which is
            corrected by it once.
    """
    if budget <= 0:
        return ()
    choice = _Choice(passages, said)
    found = choice.fit(budget)
    text = render(found)
    return choice.fit(int(len(text) / share)) if used and (share := used(text)) else found


def render(extracts: Iterable[Passage]) -> str:
    """Render extracts as markdown: a line for each new `when`, a bullet for each run of one speaker or operation."""
    return _written((squeeze(found.when), squeeze(found.speaker), found.key, squeeze(found.text)) for found in extracts)


def _written(rows: Iterable[_Row]) -> str:
    """Render rows whose parts contain neither line feeds nor runs of spaces.

    A text gets a new bullet if joining it would form a quotation across the seam, which nobody said in one piece.
    """
    lines: list[str] = []
    written = ""
    last: tuple[str, str, int] | None = None
    for when, speaker, key, text in rows:
        if when != written:
            lines.append(f"{when or 'no date'}:")
            written = when
        bullet = (when, speaker, 0 if speaker else key)
        line = lines[-1] if bullet == last else ""
        joined = f"{line} {text}" if line.endswith(_STOPS) else f"{line}; {text}"
        if line and not is_quoted_across(joined, len(line)):
            lines[-1] = joined
        else:
            lines.append(f"- {speaker}: {text}" if speaker else f"- {text}")
        last = bullet
    return "\n".join(lines)


class _Choice:
    """Greedy selection of sentences within a budget."""

    def __init__(self, passages: Sequence[Passage], said: str) -> None:
        self.passages = passages
        self.units: list[_Unit] = []
        self.labels = [(squeeze(passage.when), squeeze(passage.speaker), passage.key) for passage in passages]
        self.weights = self._read()
        self.worth = self.weights.__getitem__
        self.covered: set[str] = set()
        self._cover(self.weights.keys() & content_stems(said))
        self.picks: list[int] = []
        self.crowding = [1.0] * len(passages)
        self.whens: set[str] = set()
        self.used = 0
        self.floor = 0.0
        self.heap = [(-self._gain(index), index) for index in range(len(self.units))]
        heapify(self.heap)

    def _read(self) -> dict[str, float]:
        """Read the passages into units, and weigh each stem by its form times its rarity in this source.

        Speakers' names weigh nothing, because the rendering shows them anyway. Rarity has little influence on purpose:
        among the words that later questions need, frequent ones are needed more often, rare ones are lost more easily.
        """
        lines: dict[tuple[str, str, int], int] = {}
        highest: dict[str, float] = {}
        counts: Counter[str] = Counter()
        known: set[str] = set()
        for index, (passage, label) in enumerate(zip(self.passages, self.labels, strict=True)):
            if passage.weight <= 0:
                continue
            line = lines.setdefault((*label[:2], 0 if label[1] else label[2]), len(lines))
            for text, weight, words in read(passage.text, known):
                self.units.append(_Unit(index, line, text, weight * passage.weight, words))
                counts.update(words.keys())
                for found, worth in words.items():
                    if worth > highest.get(found, 0.0):
                        highest[found] = worth
        rarity = {count: 1.0 / (1.0 + _RARITY * log(count)) for count in set(counts.values())}
        weights = {found: worth * rarity[counts[found]] for found, worth in highest.items()}
        weights.update(dict.fromkeys(weights.keys() & self._names(), 0.0))
        return weights

    def _names(self) -> set[str]:
        """Return the stems of the speakers' names and of their short forms."""
        names: set[str] = set()
        for speaker in {passage.speaker for passage in self.passages if not passage.is_fact}:
            names.update(content_stems(speaker))
            for name in speaker.split():
                if name[0].isupper():
                    names.update(stem(name[:size].lower()) for size in range(_MIN_NICKNAME_CHARS, len(name)))
        return names

    def fit(self, budget: int) -> tuple[Passage, ...]:
        """Select by estimated sizes, and correct the estimate by the true size until nothing more fits."""
        allowed, size = budget, self._size() if self.picks else 0
        for _ in range(_MAX_FITTINGS):
            before = len(self.picks)
            self._choose(allowed)
            if len(self.picks) == before:
                break
            size = self._size()
            if size >= budget:
                break
            allowed += budget - size
        while self.picks and size > budget:
            del self.picks[-1 - len(self.picks) // 64 :]
            size = self._size()
        chosen = [self.units[index] for index in sorted(self.picks)]
        return tuple(replace(self.passages[unit.passage], text=unit.text) for unit in chosen)

    def _choose(self, allowed: int) -> None:
        """Pick sentences until their estimated size reaches `allowed`; sentences that do not fit stay in the heap."""
        missed: list[tuple[float, int]] = []
        while len(missed) < _PATIENCE and (entry := self._next()) is not None:
            gain, index = entry
            unit = self.units[index]
            when, speaker, _ = self.labels[unit.passage]
            cost = len(unit.text) + 1 + (0 if unit.frame == _NEAR_CHARS else len(f"- {speaker}: "))
            cost += len(f"{when}:\n") if when and when not in self.whens else 0
            if self.used + cost > allowed:
                missed.append((-gain, index))
                continue
            self.floor = self.floor or gain * _WORTHLESS
            self.used += cost
            self.whens.add(when)
            self._pick(index)
        for entry in missed:
            heappush(self.heap, entry)

    def _next(self) -> tuple[float, int] | None:
        """Pop the unit with the highest gain; return gain and index of the unit. Gains in the heap may be out of date.

        Gains only fall, unless `_pick` pushes a unit again. So an updated gain that is still on top is the highest.
        """
        heap, now = self.heap, len(self.picks)
        while heap:
            known, index = heap[0]
            unit = self.units[index]
            gain = -known if unit.seen == now and unit.quality else self._gain(index)
            if gain <= self.floor:
                heappop(heap)
            elif gain < -known:
                heapreplace(heap, (-gain, index))
            else:
                heappop(heap)
                return gain, index
        return None

    def _pick(self, index: int) -> None:
        unit = self.units[index]
        unit.quality = 0.0  # prevents a second pick
        self.picks.append(index)
        self.crowding[unit.passage] += _CROWDING
        self._cover(unit.stems)
        for beside in (index - 1, index + 1):  # neighbours cost less now: they join the same bullet
            if 0 <= beside < len(self.units):
                neighbour = self.units[beside]
                if neighbour.line == unit.line and neighbour.quality:
                    neighbour.frame = _NEAR_CHARS
                    heappush(self.heap, (-self._gain(beside), beside))

    def _cover(self, stems: Iterable[str]) -> None:
        weights, covered = self.weights, self.covered
        for found in stems:
            if found not in covered:
                covered.add(found)
                weights[found] *= _REPEAT

    def _gain(self, index: int) -> float:
        """Return the new content of a sentence per cost, scaled by its quality and its passage's crowding."""
        unit = self.units[index]
        unit.seen = len(self.picks)
        worth = sum(map(self.worth, unit.stems)) / (len(unit.text) + unit.frame)
        return worth * unit.quality / self.crowding[unit.passage]

    def _size(self) -> int:
        """Return the number of characters of the rendered selection."""
        chosen = [self.units[index] for index in sorted(self.picks)]
        return len(_written((*self.labels[unit.passage], unit.text) for unit in chosen))

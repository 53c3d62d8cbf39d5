"""The summariser that needs no model: it chooses sentences and fields of a text and shortens them, adding no word.

Choosing is budgeted weighted coverage: each content word of the source has a weight, a sentence gains the weights of
the words that nothing chosen (or already said) has, and the greedy choice takes the most gain for its cost (Khuller,
Moss and Naor 1999; lazily, after Minoux 1978). How a sentence is weighed lives in `weighing.py`, how it is cut in
`shortening.py`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log

from orchestra_mem.core.shortening import Clause, Shortener, clauses, cut, unmarked, whole
from orchestra_mem.core.text import content_stems, split_sentences, stem, tokens
from orchestra_mem.core.weighing import kind_weight, sentence_weight, token_weights

Measure = Callable[[str], int]

_REPEAT = 0.1  # what a word is worth that is covered already: it decides between sentences that are equal otherwise
_RARITY = 0.15
_NEAR_CHARS, _FAR_CHARS = 3, 16  # what a sentence costs beside itself: in a bullet that is there already, in a new one
_CROWDING = (
    0.04  # each sentence chosen of a passage makes the next one worth so much less: all passages are to be heard
)
_MIN_NICKNAME_CHARS = 3
_FIRST_CJK = "\u2e80"  # from here on sentences follow each other without a space
_STOPS = tuple(".!?\u2026:;,\u3002\uff01\uff1f\"')\u201d\u2019`")
_WORTHLESS = 0.03  # of the best sentence's gain: what is below, code among prose say, is left out though it would fit
_PATIENCE = 16
_MAX_FITTINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What one operation or turn of a talk says.

    `key` is the operation's id. `speaker` and `when` (formatted) are shown before the text where they are not empty.
    `weight` is how important the passage is before its text is looked at, 0 and up; 1 is usual, 0 leaves it out.
    """

    key: int
    text: str
    speaker: str = ""
    when: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A sentence, or clauses of one, taken from a passage. `score`: gain for cost when chosen; more is better."""

    key: int
    text: str
    score: float
    speaker: str
    when: str


@dataclass(slots=True, kw_only=True)
class _Unit:
    """A sentence that may be chosen, whole or in part."""

    passage: int
    line: tuple[str, str, int]  # equal where two neighbours share a bullet
    text: str
    quality: float
    clauses: tuple[Clause, ...]
    stems: tuple[dict[str, float], ...]
    chosen: tuple[int, int] | None = None
    score: float = 0.0
    cost: int = 0

    def runs(self, old: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
        """Give the runs of clauses that may stand alone and hold more than `old`."""
        for i, first in enumerate(self.clauses[: old[0] + 1] if old else self.clauses):
            if first.opens:
                for j in range(old[1] if old else i, len(self.clauses)):
                    if self.clauses[j].closes and (i, j) != old:
                        yield i, j

    def part(self, run: tuple[int, int]) -> str:
        return cut(self.text, self.clauses[run[0]], self.clauses[run[1]])


def extract(passages: Sequence[Passage], *, budget: int, measure: Measure = len, said: str = "") -> tuple[Extract, ...]:
    """Choose what says most within a budget, in the order of the source.

    Args:
        passages: The source, oldest first.
        budget: What `measure(render(result))` may be at most, 0 and up.
        measure: Sizes a text: characters by default, or a token counter.
        said: What already stands elsewhere; its words count as covered.
    """
    if budget <= 0:
        return ()
    return _Choice(passages, _units(passages), measure=measure, said=said).fit(budget)


def render(extracts: Iterable[Extract]) -> str:
    """Write extracts as markdown: a line for each new time, a bullet for each speaker's or operation's run of them."""
    lines: list[str] = []
    when = ""
    last: tuple[str, str, int] | None = None
    for found in extracts:
        if found.when != when:
            lines.append(f"{_flat(found.when) or 'no date'}:")
            when = found.when
        run = _line(found)
        if run == last:
            lines[-1] += f"{'' if lines[-1].endswith(_STOPS) else ';'} {_flat(found.text)}"
        else:
            lines.append(
                f"- {_flat(found.speaker)}: {_flat(found.text)}" if found.speaker else f"- {_flat(found.text)}"
            )
        last = run
    return "\n".join(lines)


def _line(source: Passage | Extract) -> tuple[str, str, int]:
    return (source.when, source.speaker, 0 if source.speaker else source.key)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _units(passages: Sequence[Passage]) -> list[_Unit]:
    shortener = Shortener({passage.speaker for passage in passages})
    units: list[_Unit] = []
    for index, passage in enumerate(passages):
        if passage.weight > 0:
            units.extend(_units_of(index, passage, shortener))
    return units


def _units_of(index: int, passage: Passage, shortener: Shortener) -> Iterator[_Unit]:
    sentences = split_sentences(passage.text)
    line = _line(passage)
    end = 0
    depth = 0  # of fenced blocks: what a tool printed in one may hold others
    for place, sentence in enumerate(sentences):
        start = passage.text.find(sentence, end)
        end = start + len(sentence)
        if sentence.startswith(("```", "~~~")):
            depth = depth + 1 if len(sentence) > len("```") or not depth else depth - 1
            continue
        if _cuts_word(passage.text, start) or _cuts_word(passage.text, end):
            continue
        quality, prose = sentence_weight(sentence, fenced=depth > 0, place=place, count=len(sentences))
        text = shortener.shorten(sentence) if prose else unmarked(sentence)
        if not text or quality <= 0:
            continue
        parts = clauses(text) if prose else whole(text)
        stems = tuple(
            token_weights(tokens(text[part.start : part.end]), opening=part.start == 0, prose=prose) for part in parts
        )
        if any(stems):
            quality *= passage.weight * kind_weight(text, stems)
            yield _Unit(passage=index, line=line, text=text, quality=quality, clauses=parts, stems=stems)


def _cuts_word(text: str, place: int) -> bool:
    """Tell whether a sentence was cut inside a word, as happens to over-long ones: a part of one says nothing."""
    if not 0 < place < len(text):
        return False
    before = text[place - 1]
    return before < _FIRST_CJK and not before.isspace() and not text[place].isspace()


def _names(passages: Sequence[Passage]) -> set[str]:
    """List the stems of the speakers' names, short forms included: the rendering says them anyway."""
    names: set[str] = set()
    for speaker in {passage.speaker for passage in passages}:
        names.update(content_stems(speaker))
        for name in speaker.split():
            if name[0].isupper():
                names.update(stem(name[:size].lower()) for size in range(_MIN_NICKNAME_CHARS, len(name)))
    return names


def _weights(units: Sequence[_Unit], names: set[str]) -> dict[str, float]:
    """Weigh each stem of the source: by the language, times how rare it is in this source.

    A name of a speaker weighs nothing. The slope over frequency is slight on purpose: of the words that are asked
    for later, the frequent ones are asked for more often, the rare ones are more easily lost.
    """
    counts: dict[str, int] = {}
    highest: dict[str, float] = {}
    for unit in units:
        for part in unit.stems:
            for found, weight in part.items():
                counts[found] = counts.get(found, 0) + 1
                if weight > highest.get(found, 0.0):
                    highest[found] = weight
    return {
        found: 0.0 if found in names else weight / (1.0 + _RARITY * log(counts[found]))
        for found, weight in highest.items()
    }


class _Choice:
    """Greedy choice of units under a budget."""

    def __init__(self, passages: Sequence[Passage], units: list[_Unit], *, measure: Measure, said: str) -> None:
        self.passages = passages
        self.units = units
        self.measure = measure
        self.weights = _weights(units, _names(passages))
        self.covered: set[str] = set()
        self._cover(content_stems(said))
        self.picks: list[tuple[int, tuple[int, int] | None]] = []
        self.heard: Counter[int] = Counter()
        self.whens: set[str] = set()
        self.used = 0
        self.floor = 0.0
        heap = [(-self._best(index)[0], index) for index in range(len(units))]
        heapq.heapify(heap)
        self.heap = heap

    def fit(self, budget: int) -> tuple[Extract, ...]:
        """Choose by estimated sizes, then correct the estimate by the true size until nothing more fits."""
        allowed, size = budget, 0
        for _ in range(_MAX_FITTINGS):
            before = len(self.picks)
            self._choose(allowed)
            if len(self.picks) == before:
                break
            size = self.measure(render(self._extracts()))
            if size >= budget:
                break
            allowed += budget - size
        while self.picks and size > budget:
            for _ in range(1 + len(self.picks) // 64):
                index, previous = self.picks.pop()
                self.units[index].chosen = previous
            size = self.measure(render(self._extracts()))
        return self._extracts()

    def _choose(self, allowed: int) -> None:
        """Pick until `allowed` is used up by estimate; what did not fit stays in the heap."""
        missed: list[tuple[float, int]] = []
        heap = self.heap
        while heap and len(missed) < _PATIENCE:
            entry = heapq.heappop(heap)
            index = entry[1]
            gain, run = self._best(index)
            if run is None or gain <= self.floor:
                continue
            if heap and gain < -heap[0][0]:
                heapq.heappush(heap, (-gain, index))
                continue
            unit = self.units[index]
            cost = self.measure(unit.part(run)) + 1
            extra = cost - unit.cost + (0 if unit.chosen else self._frame_cost(index))
            if self.used + extra > allowed:
                missed.append((-gain, index))
                continue
            self.floor = self.floor or gain * _WORTHLESS
            self.used += extra
            self._pick(index, run, cost, gain)
        for entry in missed:
            heapq.heappush(heap, entry)

    def _pick(self, index: int, run: tuple[int, int], cost: int, gain: float) -> None:
        unit = self.units[index]
        first = unit.chosen is None
        self.picks.append((index, unit.chosen))
        unit.chosen, unit.cost, unit.score = run, cost, max(unit.score, gain)
        self.heard[unit.passage] += 1
        self.whens.add(self.passages[unit.passage].when)
        for part in unit.stems[run[0] : run[1] + 1]:
            self._cover(part)
        if len(unit.clauses) > run[1] - run[0] + 1:
            heapq.heappush(self.heap, (-self._best(index)[0], index))
        for near in (index - 1, index + 1) if first else ():  # they cost less now
            if 0 <= near < len(self.units) and self.units[near].chosen is None and self.units[near].line == unit.line:
                heapq.heappush(self.heap, (-self._best(near)[0], near))

    def _cover(self, stems: Iterable[str]) -> None:
        for found in stems:
            if found not in self.covered:
                self.covered.add(found)
                if found in self.weights:
                    self.weights[found] *= _REPEAT

    def _joins(self, index: int) -> bool:
        """Tell whether a unit would stand in the bullet of a chosen neighbour."""
        units, line = self.units, self.units[index].line
        if index and units[index - 1].chosen is not None and units[index - 1].line == line:
            return True
        return index + 1 < len(units) and units[index + 1].chosen is not None and units[index + 1].line == line

    def _frame_cost(self, index: int) -> int:
        """Estimate what the rendering adds around a unit: the time if it is new, and the bullet."""
        passage = self.passages[self.units[index].passage]
        cost = self.measure(f"{passage.when}:\n") if passage.when and passage.when not in self.whens else 0
        return cost if self._joins(index) else cost + self.measure(f"- {passage.speaker}: ")

    def _best(self, index: int) -> tuple[float, tuple[int, int] | None]:
        """Find the part of a sentence, more than what is chosen of it, with the most gain for its cost."""
        unit = self.units[index]
        old = unit.chosen
        worth = self.weights.__getitem__
        scale = unit.quality / (1.0 + _CROWDING * self.heard[unit.passage])
        extra = 0 if old else _NEAR_CHARS if self._joins(index) else _FAR_CHARS
        if len(unit.clauses) == 1:
            if old:
                return 0.0, None
            return sum(map(worth, unit.stems[0])) * scale / (len(unit.text) + extra), (0, 0)
        gains = [sum(map(worth, part)) for part in unit.stems]
        spent = unit.clauses[old[1]].end - unit.clauses[old[0]].start if old else 0
        has = sum(gains[old[0] : old[1] + 1]) if old else 0.0
        best, found = 0.0, None
        for i, j in unit.runs(old):
            chars = unit.clauses[j].end - unit.clauses[i].start - spent + extra
            density = (sum(gains[i : j + 1]) - has) / max(chars, 1)
            if density > best:
                best, found = density, (i, j)
        return best * scale, found

    def _extracts(self) -> tuple[Extract, ...]:
        found = []
        for unit in self.units:
            if unit.chosen is None:
                continue
            passage = self.passages[unit.passage]
            found.append(
                Extract(
                    key=passage.key,
                    text=unit.part(unit.chosen),
                    score=unit.score,
                    speaker=passage.speaker,
                    when=passage.when,
                )
            )
        return tuple(found)

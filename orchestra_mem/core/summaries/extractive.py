"""The summariser that needs no model: it chooses sentences and fields of a text and shortens them, adding no word.

Choosing is budgeted weighted coverage: each content word of the source has a weight, a sentence gains the weights of
the words that nothing chosen (or already said) has, and the greedy choice takes the most gain for its cost (Khuller,
Moss and Naor 1999; lazily, after Minoux 1978). How a sentence is weighed lives in `weighing.py`, how it is cut in
`shortening.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heappushpop, heapreplace
from itertools import chain, repeat
from math import log
from operator import mul

from orchestra_mem.core.identifiers import is_quoted_across, quoted_names
from orchestra_mem.core.summaries.kept import squeeze
from orchestra_mem.core.summaries.reading import read
from orchestra_mem.core.summaries.shortening import Clause, Shortener, clauses, cut, unmarked, whole
from orchestra_mem.core.summaries.weighing import Vocabulary, kind_weight, of_language
from orchestra_mem.core.text import content_stems, distinct_stems, stem

Measure = Callable[[str], int]
_Run = tuple[int, int]  # of clauses, the last one included
_Row = tuple[str, str, int, str]  # time, speaker, key and text
_Stems = dict[str, None]  # in order: a set would sum up weights in the order of its hashes

_REPEAT = 0.1  # what a word is worth that is covered already: it decides between sentences that are equal otherwise
_RARITY = 0.15
_NEAR_CHARS, _FAR_CHARS = 3, 16  # what a sentence costs beside itself: in a bullet that is there already, in a new one
_CROWDING = (
    0.04  # each sentence chosen of a passage makes the next one worth so much less: all passages are to be heard
)
_MIN_NICKNAME_CHARS = 3
_STOPS = tuple(".!?\u2026:;,\u3002\uff01\uff1f\"')\u201d\u2019`")
_WORTHLESS = 0.03  # of the best sentence's gain: what is below, code among prose say, is left out though it would fit
_PATIENCE = 16
_MAX_FITTINGS = 6
_HOPE = 1.5  # how much denser a sentence may get when it is shortened and weighed by its kind; till then it counts so
_WHOLE = (0, 0)


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


class _Unit:
    """A sentence that may be chosen, whole or in part. Plain slots: there is one for every sentence of the source.

    Raw at first; `refine` shortens it and splits it into clauses, which costs the most and few sentences need.
    """

    __slots__ = (
        "chosen", "clauses", "cost", "frame", "gain", "line", "passage", "prose", "quality", "row", "run", "score",
        "seen", "stems", "text",
    )  # fmt: skip

    def __init__(self, passage: int, line: int, text: str, prose: bool, quality: float, stems: _Stems) -> None:
        self.passage = passage
        self.line = line  # equal where two neighbours share a bullet
        self.text = text
        self.prose = prose
        self.quality = quality * _HOPE
        self.stems: tuple[_Stems, ...] = (stems,)  # of each clause
        self.clauses: tuple[Clause, ...] = ()
        self.chosen: _Run | None = None
        self.frame = _FAR_CHARS  # what the rendering adds to it
        self.cost = 0
        self.row: _Row = ("", "", 0, "")  # what is chosen of it, as it is written
        self.score = 0.0  # the highest gain with which it was picked
        self.run = _WHOLE  # the best part of it and its gain, when so many picks were `seen`
        self.gain = 0.0
        self.seen = -1

    def refine(self, shortener: Shortener) -> None:
        """Shorten the sentence, split it into clauses and weigh what it says."""
        raw = self.text
        self.text = text = shortener.shorten(raw) if self.prose else unmarked(raw)
        self.clauses = parts = clauses(text) if self.prose else whole(text)
        if len(parts) > 1 or text != raw:
            self.stems = tuple([distinct_stems(text[part.start : part.end].split(" ")) for part in parts])
        self.quality *= kind_weight(text, self.stems) / _HOPE if text else 0.0
        self.seen = -1

    def runs(self) -> Iterator[_Run]:
        """Give the runs of clauses that may stand alone and hold more than what is chosen."""
        old = self.chosen
        for i, first in enumerate(self.clauses[: old[0] + 1] if old else self.clauses):
            if first.opens:
                for j in range(old[1] if old else i, len(self.clauses)):
                    if self.clauses[j].closes and (i, j) != old:
                        yield i, j

    def part(self, run: _Run) -> str:
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
    return _Choice(passages, measure=measure, said=said).fit(budget)


def render(extracts: Iterable[Extract]) -> str:
    """Write extracts as markdown: a line for each new time, a bullet for each speaker's or operation's run of them."""
    return _written((squeeze(found.when), squeeze(found.speaker), found.key, squeeze(found.text)) for found in extracts)


def without_misquotes(extracts: Iterable[Extract], source: str) -> list[Extract]:
    """The extracts that quote nothing but what their source quotes.

    One that begins or ends within quotes can turn inside out what is quoted; where the source is itself made of
    extracts, that may be what nobody has said in one piece.
    """
    there = quoted_names(source)
    return [found for found in extracts if quoted_names(found.text) <= there]


def _written(rows: Iterable[_Row]) -> str:
    """Write rows whose parts have neither line feeds nor runs of spaces.

    What would be quoted from one part into the next is parted: nobody has said that in one piece.
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


def _units(passages: Sequence[Passage], vocabulary: Vocabulary) -> list[_Unit]:
    lines: dict[tuple[str, str, int], int] = {}
    units: list[_Unit] = []
    for index, passage in enumerate(passages):
        if passage.weight > 0:
            bullet = (passage.when, passage.speaker, 0 if passage.speaker else passage.key)
            line = lines.setdefault(bullet, len(lines))
            sentences, words = read(passage.text)
            vocabulary.join(words)
            for text, prose, weight, stems in sentences:
                units.append(_Unit(index, line, text, prose, weight * passage.weight, stems))
    return units


def _names(passages: Sequence[Passage]) -> set[str]:
    """List the stems of the speakers' names, short forms included: the rendering says them anyway."""
    names: set[str] = set()
    for speaker in {passage.speaker for passage in passages}:
        names.update(content_stems(speaker))
        for name in speaker.split():
            if name[0].isupper():
                names.update(stem(name[:size].lower()) for size in range(_MIN_NICKNAME_CHARS, len(name)))
    return names


def _weights(units: Sequence[_Unit], highest: dict[str, float], names: set[str]) -> defaultdict[str, float]:
    """Weigh each stem of the source: by the language, times how rare it is in this source.

    A name of a speaker weighs nothing. The slope over frequency is slight on purpose: of the words that are asked
    for later, the frequent ones are asked for more often, the rare ones are more easily lost.
    """
    counts = Counter(chain.from_iterable([unit.stems[0] for unit in units]))
    rarity = {count: 1.0 / (1.0 + _RARITY * log(count)) for count in set(counts.values())}
    weighed = map(mul, map(highest.get, counts, repeat(0.0)), map(rarity.__getitem__, counts.values()))
    weights = defaultdict(float, zip(counts, weighed, strict=True))  # 0 for what, rarely, shortening alone joins
    weights.update(dict.fromkeys(names, 0.0))
    return weights


class _Choice:
    """Greedy choice of units under a budget."""

    def __init__(self, passages: Sequence[Passage], *, measure: Measure, said: str) -> None:
        vocabulary = Vocabulary()
        units = _units(passages, vocabulary)
        highest = vocabulary.weights()
        strange_to = of_language(highest).isdisjoint
        self.units = [unit for unit in units if not strange_to(unit.stems[0])]
        self.passages = passages
        self.shortener = Shortener({passage.speaker for passage in passages})
        self.measure = measure
        self.weights = _weights(self.units, highest, _names(passages))
        self.worth = self.weights.__getitem__
        self.labels = [(squeeze(passage.when), squeeze(passage.speaker), passage.key) for passage in passages]
        self.covered: set[str] = set()
        self._cover(self.weights.keys() & content_stems(said))
        self.picks: list[tuple[int, _Run | None]] = []
        self.crowding = [1.0] * len(passages)
        self.whens: set[str] = set()
        self.used = 0
        self.floor = 0.0
        self.heap = [(-self._evaluated(index), index) for index in range(len(self.units))]
        heapify(self.heap)

    def fit(self, budget: int) -> tuple[Extract, ...]:
        """Choose by estimated sizes, then correct the estimate by the true size until nothing more fits."""
        allowed, size = budget, 0
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
            for _ in range(1 + len(self.picks) // 64):
                index, previous = self.picks.pop()
                unit = self.units[index]
                unit.chosen = previous
                unit.row = self._row(unit, squeeze(unit.part(previous))) if previous else unit.row
            size = self._size()
        return self._extracts()

    def _choose(self, allowed: int) -> None:
        """Pick until `allowed` is used up by estimate; what did not fit stays in the heap."""
        missed: list[tuple[float, int]] = []
        while len(missed) < _PATIENCE and (index := self._next()) is not None:
            unit = self.units[index]
            text = squeeze(unit.part(unit.run))
            cost = self.measure(text) + 1
            extra = cost - unit.cost + (0 if unit.chosen else self._frame_cost(index))
            if self.used + extra > allowed:
                missed.append((-unit.gain, index))
                continue
            self.floor = self.floor or unit.gain * _WORTHLESS
            self.used += extra
            unit.cost, unit.row = cost, self._row(unit, text)
            self._pick(index, unit.run)
        for entry in missed:
            heappush(self.heap, entry)

    def _next(self) -> int | None:
        """Take the unit with the most gain out of the heap, where each stands with a gain that it had once.

        Gains only fall, but for those that `_pick` puts in again: while one is the highest, no other needs a look.
        """
        heap, units, now = self.heap, self.units, len(self.picks)
        entry = heappop(heap) if heap else None
        while entry:
            index = entry[1]
            unit = units[index]
            gain = unit.gain if unit.seen == now else self._evaluated(index)
            if gain <= self.floor:
                entry = heappop(heap) if heap else None
            elif heap and gain < -heap[0][0]:
                entry = heapreplace(heap, (-gain, index))
            elif unit.clauses:
                return index
            else:
                unit.refine(self.shortener)
                entry = heappushpop(heap, (-self._evaluated(index), index))
        return None

    def _pick(self, index: int, run: _Run) -> None:
        unit = self.units[index]
        near = [] if unit.chosen else [i for i in (index - 1, index + 1) if 0 <= i < len(self.units)]
        self.picks.append((index, unit.chosen))
        unit.chosen, unit.frame = run, 0
        unit.score = max(unit.score, unit.gain)
        self.crowding[unit.passage] += _CROWDING
        self.whens.add(self.passages[unit.passage].when)
        for part in unit.stems[run[0] : run[1] + 1]:
            self._cover(part)
        if len(unit.clauses) > run[1] - run[0] + 1:
            heappush(self.heap, (-self._evaluated(index), index))
        for i in near:  # they cost less now
            neighbour = self.units[i]
            if neighbour.line == unit.line and neighbour.chosen is None:
                neighbour.frame = _NEAR_CHARS
                heappush(self.heap, (-self._evaluated(i), i))

    def _cover(self, stems: Iterable[str]) -> None:
        weights, covered = self.weights, self.covered
        for found in stems:
            if found not in covered:
                covered.add(found)
                weights[found] *= _REPEAT

    def _frame_cost(self, index: int) -> int:
        """Estimate what the rendering adds around a unit: the time if it is new, and the bullet."""
        passage = self.passages[self.units[index].passage]
        cost = self.measure(f"{passage.when}:\n") if passage.when and passage.when not in self.whens else 0
        return cost if self.units[index].frame == _NEAR_CHARS else cost + self.measure(f"- {passage.speaker}: ")

    def _evaluated(self, index: int) -> float:
        """Find the part of a sentence, more than what is chosen of it, with the most gain for its cost; note both."""
        unit = self.units[index]
        unit.seen = len(self.picks)
        if len(unit.clauses) > 1:
            density, unit.run = self._best_run(unit)
        else:
            density = 0.0 if unit.chosen else sum(map(self.worth, unit.stems[0])) / (len(unit.text) + unit.frame)
        unit.gain = gain = density * unit.quality / self.crowding[unit.passage]
        return gain

    def _best_run(self, unit: _Unit) -> tuple[float, _Run]:
        old = unit.chosen
        gains = [sum(map(self.worth, part)) for part in unit.stems]
        spent = unit.clauses[old[1]].end - unit.clauses[old[0]].start if old else 0
        has = sum(gains[old[0] : old[1] + 1]) if old else 0.0
        best, found = 0.0, _WHOLE
        for i, j in unit.runs():
            chars = unit.clauses[j].end - unit.clauses[i].start - spent + unit.frame
            density = (sum(gains[i : j + 1]) - has) / max(chars, 1)
            if density > best:
                best, found = density, (i, j)
        return best, found

    def _chosen(self) -> list[_Unit]:
        return [self.units[index] for index in sorted({index for index, _ in self.picks})]

    def _row(self, unit: _Unit, text: str) -> _Row:
        return (*self.labels[unit.passage], text)

    def _size(self) -> int:
        """Measure what the choice so far would be when rendered."""
        return self.measure(_written([unit.row for unit in self._chosen()]))

    def _extracts(self) -> tuple[Extract, ...]:
        return tuple(
            Extract(
                key=self.passages[unit.passage].key,
                text=unit.row[-1],
                score=unit.score,
                speaker=self.passages[unit.passage].speaker,
                when=self.passages[unit.passage].when,
            )
            for unit in self._chosen()
        )

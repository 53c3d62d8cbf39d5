"""Items that a line names by their titles: with their numbers in the place of these it is read like any other.

The words of a line alone do not tell a title from the rest of it, as in "ranking depends on the index builder".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestra_mem.core.language.grouping import group_spans
from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.parsing import ASKS, Action, Intent, Parsed
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.persons import persons_in
from orchestra_mem.core.language.references.titles import title_words
from orchestra_mem.core.language.references.words import is_one_off, is_swapped
from orchestra_mem.core.text import STOP_WORDS, stem
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkItem, WorkKind

_WORD = re.compile(r"[^\W_]+(?:['\u2019_][^\W_]+)*")
_QUOTED = re.compile(r"[\"\u201c][^\"\u201d]*[\"\u201d]")
_MAY_OWN = re.compile(r"['\u2019]|\b(?:has|have|had|owns?|got)\b", re.IGNORECASE)
_ARTICLES = frozenset("the that this our my a an".split())
_AFTER = frozenset([*WorkKind, *(kind.plural for kind in WorkKind), "one", "ticket", "item"])
_MOST_WORDS = 60
_MOST_LOOKED_UP = 16
_MOST_ALIKE = 20
_LEAST_CHARS = 3
_LEAST_MISTYPED = 5
_LEAST_SWAPPED = 4
_MOST_TITLES = 300
# Stand for the titles that more than one item bears, or that are named by a part; nobody has so much work.
_FIRST_PLACEHOLDER = 900_000_001
_NUMBER = re.compile(r"#(\d+)")
_TITLE_SURE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """A place in a line, `start` to `end`, where items are named, `whole` or by a part of their titles."""

    start: int
    end: int
    items: tuple[int, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int

    @property
    def says(self) -> bool:
        return self.text not in STOP_WORDS


def namings(line: str, lookup: WorkLookup, *, least: int = 2) -> list[Naming]:
    """Find where a line names items, from left to right; the longest whole titles first where they overlap.

    A line of fewer than `least` words names none: a word alone is a command as well.
    """
    tokens = [_Token(_spelt(found.group().lower()), *found.span()) for found in _WORD.finditer(line)]
    if not least <= len(tokens) <= _MOST_WORDS:
        return []
    quoted = [found.span() for found in _QUOTED.finditer(line)]
    tokens = [token for token in tokens if not any(start < token.start < end for start, end in quoted)]
    tokens = _mended(tokens, lookup)
    found: dict[tuple[bool, int, int], list[int]] = {}
    for item in _alike(tokens, lookup):
        place = _place(tokens, _title_stems(item.title))
        if place:
            found.setdefault(place, []).append(item.id)
    taken = [Naming(start=start, end=end, items=(), whole=False) for start, end in _apart(line, lookup)]
    for (whole, first, last), items in sorted(
        found.items(), key=lambda each: (not each[0][0], each[0][1] - each[0][2])
    ):
        naming = _widened(tokens, first, last, tuple(sorted(items)), whole)
        if all(naming.end <= other.start or other.end <= naming.start for other in taken):
            taken.append(naming)
    return sorted(taken, key=lambda naming: naming.start)


def _title_stems(title: str) -> list[str]:
    """The words of a title as the tokens of a line are: "t-shirts", "http/2"."""
    return [stem(_spelt(part.group().lower())) for word in title_words(title) for part in _WORD.finditer(word)]


def _apart(line: str, lookup: WorkLookup) -> list[tuple[int, int]]:
    """Where a line speaks of several items by no title, each place once."""
    found: list[tuple[int, int]] = []
    persons = persons_in(lookup) if _MAY_OWN.search(line) else ()
    for start, end in group_spans(line, persons):
        if all(end <= first or last <= start for first, last in found):
            found.append((start, end))
    return found


def with_kinds(line: str) -> str:
    """A line with mistyped words for kinds put right, and the article: "storys", "teh"."""

    def word(found: re.Match[str]) -> str:
        said = found.group()
        if said.lower() == "teh":
            return "the"
        if len(said) < _LEAST_SWAPPED or _is_known(said) or said in _KEPT or not said.islower():
            return said
        near = [
            kind for kind in _KINDS if is_swapped(said, kind) or (len(said) != len(kind) and is_one_off(said, kind))
        ]
        if near and near[0] in set(WorkKind) and said[-1] == "s":
            return WorkKind(near[0]).plural
        return str(next(iter(near), said))

    return re.sub(r"(?<![\w#\"'])[^\W\d_]+(?![\w'])", word, line)


_KINDS = (*WorkKind, *(kind.plural for kind in WorkKind))
_KEPT = frozenset([*_KINDS, *"stores storey storeys ask asks".split()])
_DIGITS = dict(zip("123456789", "one two three four five six seven eight nine".split(), strict=True))


def _spelt(word: str) -> str:
    return _DIGITS.get(word, word)


def _mended(tokens: list[_Token], lookup: WorkLookup) -> list[_Token]:
    """The tokens, with words of titles in the place of those that are off by one letter or one swap."""
    strange = [
        token for token in tokens if len(token.text) >= _LEAST_SWAPPED and token.says and not _is_known(token.text)
    ]
    strange = [token for token in strange if not lookup.items(WorkFilter(text=_sought(token.text), limit=1))]
    if not strange:
        return tokens
    titles = {word for item in lookup.items(WorkFilter(limit=_MOST_TITLES)) for word in title_words(item.title)}
    mended: dict[str, str] = {}
    for token in strange:
        off = len(token.text) >= _LEAST_MISTYPED
        near = [word for word in titles if (off and is_one_off(token.text, word)) or is_swapped(token.text, word)]
        if len(near) == 1:
            mended[token.text] = near[0]
    return [replace(token, text=mended.get(token.text, token.text)) for token in tokens]


def _is_known(word: str) -> bool:
    return word in COMMON_WORDS or word in verb_forms()


def _alike(tokens: Sequence[_Token], lookup: WorkLookup) -> list[WorkItem]:
    """The items with a word of the line in their titles; open ones, and closed ones where no open one has it."""
    spoken = dict.fromkeys(_sought(token.text) for token in tokens if token.says and _may_name(token.text))
    found: dict[int, WorkItem] = {}
    for word in list(spoken)[:_MOST_LOOKED_UP]:
        items = lookup.items(WorkFilter(text=word, statuses=OPEN_STATUSES, limit=_MOST_ALIKE))
        items = items or lookup.items(WorkFilter(text=word, limit=_MOST_ALIKE))
        found.update((item.id, item) for item in items)
    return list(found.values())


def _sought(word: str) -> str:
    """What titles with a word in any of its forms have of it: what its stem, "copi", shares with it."""
    stemmed = stem(word)
    return stemmed if word.startswith(stemmed) else stemmed[:-1] if word.startswith(stemmed[:-1]) else word


def _may_name(word: str) -> bool:
    return len(word) >= _LEAST_CHARS or (len(word) == _LEAST_CHARS - 1 and word.isalpha() and not _is_known(word))


def _place(tokens: Sequence[_Token], title: Sequence[str]) -> tuple[bool, int, int] | None:
    """Where the line has a title, whole, or else the most words of it in a row; the first and last token of that."""
    said = [(place, stem(token.text)) for place, token in enumerate(tokens) if token.says]
    for start in range(len(said) - len(title) + 1):
        if [word for _, word in said[start : start + len(title)]] == title:
            return True, said[start][0], said[start + len(title) - 1][0]
    best: tuple[int, int] | None = None
    start = 0
    while start < len(said):
        stop = start
        while stop < len(said) and said[stop][1] in title:
            stop += 1
        if stop > start and (best is None or stop - start > best[1] - best[0]):
            best = start, stop
        start = max(stop, start + 1)
    return (False, said[best[0]][0], said[best[1] - 1][0]) if best else None


def _widened(tokens: Sequence[_Token], first: int, last: int, items: tuple[int, ...], whole: bool) -> Naming:
    """With the article before it, and the kind that is named behind it."""
    if first and tokens[first - 1].text in _ARTICLES:
        first -= 1
    if last + 1 < len(tokens) and tokens[last + 1].text in _AFTER and last > 0:
        last += 1
    return Naming(start=tokens[first].start, end=tokens[last].end, items=items, whole=whole)


def read_with_titles(line: str, plain: Parsed, lookup: WorkLookup, parse: Callable[[str], Parsed]) -> Parsed:
    """Read a line anew with the numbers of what it names, where its words alone say less.

    Args:
        line: the line.
        plain: what its words alone were read as.
        lookup: finds items.
        parse: reads a line.
    """
    named = namings(line, lookup)
    for chosen in _choices(named) if not plain.understood else _whole_ones(named):
        text, said = numbered(line, chosen)
        read = parse(text)
        if not read.understood or not any(_refers(intent, said) for intent in read.intents):
            continue
        intents = tuple(restored(intent, said) for intent in read.intents)
        if (
            not plain.understood
            or _says_more(intents, plain.intents)
            or _begins(line, chosen[0], intents)
            or any(intent.value in said.values() for intent in plain.intents)  # a title is no reason, and no time
        ):
            return replace(read, intents=intents)
    return plain


def _whole_ones(named: Sequence[Naming]) -> list[list[Naming]]:
    whole = [naming for naming in named if naming.whole]
    return [whole] if whole else []


def _choices(named: Sequence[Naming]) -> Iterator[list[Naming]]:
    """Which namings may be meant as such: all whole ones, all, and each alone."""
    yield from _whole_ones(named)
    if not all(naming.whole for naming in named):
        yield list(named)
    if len(named) > 1:
        yield from ([naming] for naming in named)


def numbered(line: str, named: Sequence[Naming]) -> tuple[str, Mapping[str, str]]:
    """The line with numbers, and what each number stands for."""
    said: dict[str, str] = {}
    for place, naming in reversed(list(enumerate(named))):
        unique = naming.whole and len(naming.items) == 1
        number = naming.items[0] if unique else _FIRST_PLACEHOLDER + place
        said[str(number)] = line[naming.start : naming.end]
        line = f"{line[: naming.start]}#{number}{line[naming.end :]}"
    return line, said


def _refers(intent: Intent, said: Mapping[str, str]) -> bool:
    return any(number in said for number in _NUMBER.findall(f"{intent.target} {intent.other}"))


def restored(intent: Intent, said: Mapping[str, str]) -> Intent:
    """The intent with words in the place of the numbers, but for those of items that are meant for certain."""

    def words(text: str, *, reference: bool = False) -> str:
        def word(found: re.Match[str]) -> str:
            number = found[1]
            certain = reference and int(number) < _FIRST_PLACEHOLDER
            return found.group() if certain else said.get(number, found.group())

        return _NUMBER.sub(word, text)

    return replace(
        intent,
        target=words(intent.target, reference=True),
        other=words(intent.other, reference=True),
        value=words(intent.value),
        titles=tuple(words(title) for title in intent.titles),
        sure=min(intent.sure, _TITLE_SURE),
    )


def _begins(line: str, first: Naming, intents: Sequence[Intent]) -> bool:
    """Whether a line begins with a title of several words, which is no command then, and is told something of it."""
    title = line[first.start : first.end].split()
    return not line[: first.start].strip() and len(title) > 1 and all(intent.action not in ASKS for intent in intents)


def _says_more(new: Sequence[Intent], old: Sequence[Intent]) -> bool:
    """Whether the same is asked for, of more items that are named."""
    if [_kind(intent) for intent in new] != [_kind(intent) for intent in old]:
        return False
    pairs = list(zip(new, old, strict=True))
    filled = [bool(now.target) + bool(now.other) - bool(was.target) - bool(was.other) for now, was in pairs]
    return min(filled) >= 0 < max(filled) and all(len(now.titles) >= len(was.titles) for now, was in pairs)


def _kind(intent: Intent) -> Action:
    """What is asked for; to create and to add differ by what is named."""
    return Action.CREATE if intent.action is Action.ADD else intent.action

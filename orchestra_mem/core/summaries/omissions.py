"""What a line may leave out of the sentence that it repeats: little, as nobody reads on to see what that would turn.

A condition, an exception, a place, a number, an adjective or the one who did it all turn what a sentence says, and no
list of words knows them all. So the words of a line are those of the sentence, in their order, and only what is listed
here may be missing: fillers, an aside, who speaks, a label, and at the end a cause or what came then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestra_mem.core.text import plain_word, stem

_ARTICLES = frozenset("the a an".split())
_FILLERS = frozenset(
    "very really just also already still quite simply basically actually finally please again though anyway".split()
)
_JOINING = frozenset("and so then".split())
_BEFORE = _FILLERS | _JOINING | frozenset("i we ok okay well yes now next first".split())
# Labels that say nothing of what stands behind them.
_LABELS = frozenset("output stdout result results note notes message text summary update info content comment".split())
# What tells of a cause or goes on to something else; a place or a time that stands there belongs to what was said.
_GOING_ON = frozenset("because since so by and which who thus therefore hence".split())
# What is said of two is not said of one.
_PAIRED = frozenset("both between".split())
_ASIDE = frozenset("which who whose i.e e.g including".split())
_OPENING, _CLOSING = "([{\"'“‘«`*_<", ")]}\"'”’»`*_>"
_PAUSES = ",;:.!?…"
_ENDING = f"{_PAUSES})"
_DASHES = frozenset(("-", "–", "—", "--"))
_NOT = re.compile(r"n['’]t$")
_SHORT = {"ca": "can", "wo": "will", "sha": "shall"}
# Words that turn the meaning of what stands with them.
_TURNING = frozenset(
    "not no never none nothing nobody nowhere neither nor cannot cant without hardly barely only except instead "
    "if unless whether until till should could would might may must maybe perhaps probably possibly but or when once "
    "seems seem seemed likely unlikely almost nearly supposed expected want wants wanted need needs needed plan plans "
    "planned will shall todo try tries trying tried attempt attempted propose proposed suggest suggested consider "
    "let lets write writes say says saying said claim claims claimed pretend pretends tell tells told reply respond "
    "ignore assume assumes assumed think thinks thought believe believes believed hope hopes hoped unable answer "
    "refuse refused avoid avoided prevent prevented reject rejected denied stop stopped false wrong untrue revert "
    "reverted undo "
    # of other languages, the plainest
    "nicht kein keine keinen keiner nie niemals nichts ohne ne pas jamais rien aucun sans nunca nada sin non mai "
    "senza niet geen nooit não nem sem не нет ни никогда без nem ei değil".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A word of a line or a sentence; `closed`: whether a pause stands behind it, `opened`: a bracket before it."""

    key: str
    word: str
    closed: bool = False
    opened: bool = False


def turning(text: str) -> Counter[str]:
    """How often a text has each word that turns the meaning of what stands with it; `fail` in all its forms."""
    return Counter(found for each in _words(text) if (found := _turn(each)))


class Sentence:
    """A sentence, or a line that is held against one."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._asks = _asks(text)

    def __len__(self) -> int:
        """So many words, without articles."""
        return len(self._words)

    def allows(self, line: Sentence) -> bool:
        """Tell whether a line is this sentence, word for word, but for what may be missing."""
        wanted, there = line._words, self._words
        if not 0 < len(wanted) <= len(there) or self._asks != line._asks:
            return False
        ends = {place for place in _beginnings(there) if there[place].key == wanted[0].key}
        for before, each in pairwise(wanted):
            ends = {
                place
                for end in ends
                for place, pause in _followers(there, end)
                if there[place].key == each.key and (pause is None or pause == before.closed)
            }
        return any(_may_end(there, end) for end in ends)


def _asks(text: str) -> bool:
    return text.rstrip(_CLOSING).endswith("?")


def _words(text: str) -> list[_Word]:
    """The words of a text, without articles."""
    found: list[_Word] = []
    for piece in text.split():
        if piece in _DASHES:
            _close(found)
            continue
        core = piece.lstrip(_OPENING)
        opened = "(" in piece[: len(piece) - len(core)]
        bare = core.rstrip(_CLOSING + _PAUSES)
        closed = any(mark in core[len(bare) :] for mark in _ENDING)
        names = [each for each in _said(bare) if each not in _ARTICLES]
        if not names:
            if closed:
                _close(found)
            continue
        found += [_Word(key=_key(name), word=name, opened=opened and not place) for place, name in enumerate(names)]
        if closed:
            _close(found)
    return found


def _close(found: list[_Word]) -> None:
    if found:
        found[-1] = replace(found[-1], closed=True)


def _said(bare: str) -> list[str]:
    """A piece in lower case, as two words where it is contracted with "not"."""
    lower = bare.lower().replace("’", "'")
    if _NOT.search(lower):
        return [_SHORT.get(lower[:-3], lower[:-3]), "not"]
    return ["can", "not"] if lower in ("cannot", "cant") else [lower] if lower else []


def _key(word: str) -> str:
    plain = plain_word(word)
    return stem(plain) if plain and word not in _TURNING else word


def _turn(word: _Word) -> str:
    if word.word.startswith("fail"):
        return "fail"
    return word.word if word.word in _TURNING else ""


def _beginnings(there: Sequence[_Word]) -> Iterator[int]:
    """Where a line may begin: at the beginning, behind fillers and who speaks, or behind a label."""
    place = 0
    if len(there) > 1 and there[0].closed and there[0].word in _LABELS:
        yield place
        place = 1
    while place < len(there):
        yield place
        if there[place].word not in _BEFORE:
            return
        place += 1


def _followers(there: Sequence[_Word], end: int) -> Iterator[tuple[int, bool | None]]:
    """The words that may follow one, each with whether a pause must stand between; None: as one likes."""
    place, pause, joined = end + 1, there[end].closed, True
    while place < len(there):
        yield place, None if place > end + 1 and joined else pause
        if (behind := _behind_aside(there, place)) < len(there) and behind > place:
            yield behind, None
        if there[place].word not in _FILLERS | _JOINING:
            return
        joined = joined and there[place].word in _JOINING
        pause = pause or there[place].closed
        place += 1


def _behind_aside(there: Sequence[_Word], place: int) -> int:
    """The place behind an aside that begins here and turns nothing; `place` itself where there is none."""
    opens = there[place].opened or (there[place].word in _ASIDE and place and there[place - 1].closed)
    if opens:
        for end in range(place, len(there)):
            if _turn(there[end]):
                break
            if there[end].closed:
                return end + 1
    return place


def _may_end(there: Sequence[_Word], end: int) -> bool:
    """Whether a line may end behind a word: where nothing is left, or nothing but what goes on and turns nothing."""
    rest = there[end + 1 :]
    if not rest or all(each.word in _FILLERS for each in rest):
        return True
    if any(map(_turn, rest)) or (rest[0].word == "and" and any(each.word in _PAIRED for each in there[: end + 1])):
        return False
    return rest[0].word in _GOING_ON or (rest[0].opened and rest[-1].closed)

"""Lines of several short clauses: each is read by itself, and speaks of what was named before where it names nothing.

"checkout went live, mark it done" and "photos: Lena does it, it's urgent" are read so. Either every clause is read, or
what is not is plainly an aside; else the line stays as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestra_mem.core.language.fragments import UNSURE, Read, read_fragment, read_idle, read_topic_alone
from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.courtesies import strip
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.mending import mend
from orchestra_mem.core.language.intents.normalising import Clause, normalise
from orchestra_mem.core.language.intents.rules import destructive_words, vocabulary
from orchestra_mem.core.language.intents.types import ASKS, DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import Naming, namings, numbered, restored
from orchestra_mem.core.language.persons import persons_in, with_marks, with_names
from orchestra_mem.core.language.references.titles import title_words
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkStatus

_CUT = re.compile(r"\s*(?:[.!;:?]+(?=\s)|,|\s-+(?=\s)|\s(?:and|but|so|then|&|plus)(?=\s)|\s\()\s*")
_MOST_CHARS, _MOST_PIECES = 300, 8
_MOST_PERSONS = 300
_MOST_ALONE = 5
_MOST_ECHOED = 2  # words of a question that only repeats: "nobody? ok, …"
# What is told or made new holds clauses of its own.
_WHOLE = frozenset(
    {
        Action.CREATE, Action.ADD, Action.RENAME, Action.NOTE, Action.DECIDE, Action.REPORT, Action.WHY, Action.FIND,
        Action.RECENT, Action.LIST, Action.STATUS, Action.NEXT, Action.HELP, Action.QUIT, Action.UNDO,
    }
)  # fmt: skip
_READ_AS_THEY_STAND = frozenset(Action) - _WHOLE | {Action.UNDO, Action.REPORT}
_REFERS = re.compile(
    r"#\d|\b(?:it|that|this|them|both|one|ones|two|three|all|story|task|epic|stories|tasks|epics)\b", re.I
)
_LATER = re.compile(
    r"\b(?:starts|starting|begins|beginning)\b(?: \w+){0,2}? (?:tomorrow|next|later|soon|(?:on )?(?:mon|tues|"
    r"wednes|thurs|"
    r"fri|satur|sun)day|in an? |in \d|after)\b",
    re.IGNORECASE,
)
_NEEDS_TOPIC = re.compile(r"\w+$|not\b", re.IGNORECASE)
_JOINS = ("and", "&", "plus", "or")
_HANGS_ON = re.compile(r"(?:on|to|for|with|from) (?!it\b|that\b|this\b|me\b)", re.IGNORECASE)
_STATUSES = frozenset((*WorkStatus, "open", "todo", "not started", "the backlog"))
_PRONOUN = re.compile(r"(?:it|that|this|(?:that|this) one)?", re.IGNORECASE)
_PLURAL_PRONOUN = re.compile(r"it|that|this|(?:that|this) one|them|they|these|those", re.IGNORECASE)
_DOUBTFUL = re.compile(
    r"^(?:until|till|once|after|before|as soon as)\b|\b(?:if|unless|when|whenever|in case|maybe|perhaps|might|"
    r"should|would|could|whether|said|says|"
    r"asked|asks|wants|told|tells|thinks?|or|not|never|don't|no|nobody|without|instead|rather|joking|kidding|wait|"
    r"stop)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
_HEDGED = re.compile(r"\b(?:if|unless|maybe|perhaps|might|suppose|imagine|whether)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|unless|once|when|whenever|in case|maybe|perhaps|might|should|would|could)\b|\?", re.I)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A clause, the items that it names, and as what it was read; None where it was not.

    `deed` is that it says of work what its title says is to be done.
    """

    said: str
    names: tuple[tuple[int, ...], ...]
    read: Read | None
    deed: bool


@dataclass(slots=True)
class _Reader:
    """Reads the clauses of one line."""

    lookup: WorkLookup
    parse: Callable[[str], Parsed]
    known: frozenset[str]
    pieces: dict[str, _Piece] = field(default_factory=dict)

    def piece(self, said: str) -> _Piece:
        """Read a clause."""
        if said not in self.pieces:
            self.pieces[said] = self._read(said)
        return self.pieces[said]

    def _read(self, said: str) -> _Piece:
        named = namings(said, self.lookup, least=1)
        text, items = numbered(said, named)
        text, deed = _with_deeds(text, items, named, self.lookup)
        marked, persons = with_marks(text, self.known)
        clause = normalise(marked)
        read: Read | None = None
        for words in dict.fromkeys((clause.text.strip(" ,"), strip(clause).clause.text.strip(" ,"))):
            if words and read is None:
                read = read_fragment(words)
                topic = "" if read else read_topic_alone(words)
                read = Read((), topic) if topic else read
        if read is None:
            plain = self.parse(text)
            later = _LATER.search(said) is not None and any(each.action is Action.START for each in plain.intents)
            if plain.understood and not later and all(map(_is_plain, plain.intents)):
                read = Read(plain.intents, plain.intents[0].target)
            elif not plain.understood:
                words = _mended(clause).text.strip(" ,")
                read = read_fragment(words) or read_idle(words)
        if read:
            intents = tuple(restored(with_names(intent, persons), items) for intent in read.intents)
            if len(persons) == 1 and _PERSON_DID.match(clause.text) and any(not each.target for each in intents):
                own = self._at_work(*persons.values())
                if not own:
                    return _Piece(said, (), None, deed)
                intents = tuple(replace(each, target=each.target or own) for each in intents)
            topic = restored(Intent(action=Action.STATUS, target=read.topic), items).target
            read = replace(read, intents=intents, topic=topic)
        return _Piece(said, tuple(naming.items for naming in named), read, deed)

    def _at_work(self, person: str) -> str:
        """The one open item of a person; empty where there are more, or none."""
        own = [
            item
            for item in self.lookup.items(WorkFilter(statuses=OPEN_STATUSES, limit=_MOST_PERSONS))
            if (item.assignee or "").lower() == person.lower()
        ]
        going = [item for item in own if item.status is WorkStatus.IN_PROGRESS] or own
        return f"#{going[0].id}" if len(going) == 1 else ""


_PERSON_DID = re.compile(
    r"(?:(?:and|ok|so|now) )*@\d+ (?:(?:is|has|just|already|also) )*(?:done|finished|started|ready|through|"
    r"fixed|starts)"
)


def _mended(clause: Clause) -> Clause:
    """The clause with mistyped words of commands put right."""
    return mend(clause, vocabulary(), COMMON_WORDS, destructive_words())


def _is_plain(intent: Intent) -> bool:
    """Whether what a clause was read as may be carried out: it says on what by number, or points."""
    if intent.action not in _READ_AS_THEY_STAND:
        return False
    return not intent.target or _REFERS.search(intent.target) is not None


_PAST_ALONE = frozenset("wrote sent built made bought got found sold drew took paid chose brought held ran did".split())


_PASSIVE = re.compile(r"\b(?:is|are|was|were|has been|have been|got)\b")


def _with_deeds(text: str, items: Mapping[str, str], named: Sequence[Naming], lookup: WorkLookup) -> tuple[str, bool]:
    """Say of what was named by its title's verb in the past that it is done: "rotated the keys"."""
    deed = False
    for number, said in items.items():
        words = said.lower().split()
        past = len(words) > 1 and (words[-1].endswith("ed") or words[0].endswith("ed") or words[0] in _PAST_ALONE)
        titles = [lookup.item(naming.items[0]).title for naming in named if text and naming.items]
        verbs = {title_words(title)[0] for title in titles}
        passive = _PASSIVE.search(" ".join(words[1:-1])) is not None and words[-1] in verbs & set(verb_forms())
        if past or passive:
            text = re.sub(rf"#{number}\b(?: (?:up|out|off|in|on|down)\b)?", f"#{number} done", text)
            deed = True
    return text, deed


def read_in_parts(
    line: str, plain: Parsed, lookup: WorkLookup, parse: Callable[[str], Parsed], *, asides: bool = False
) -> Parsed:
    """Read a line clause by clause where that says more than what it was read as.

    Args:
        line: the line.
        plain: what it was read as so far.
        lookup: finds items.
        parse: reads a clause.
        asides: whether some clauses may only tell of something that is no work.
    """
    asks = line.rstrip(" .!)").endswith("?")
    shown = plain.understood and all(each.action is Action.STATUS for each in plain.intents)
    state = plain.understood and any(
        each.other.lower() in _STATUSES
        or (each.action in (Action.RENAME, Action.DEFER) and each.value.lower() in _STATUSES)
        for each in plain.intents
    )
    state = state or (plain.understood and any(_is_item_after_all(each, lookup) for each in plain.intents))
    known = persons_in(lookup)
    if state or any(each.target.lower() in known for each in plain.intents):
        # "put it back to pending" is no parent, and nobody is an item.
        plain = replace(plain, understood=False)
    whole = plain.understood and not shown and any(each.action in _WHOLE for each in plain.intents)
    if asks or whole or len(line) > _MOST_CHARS or _HEDGED.search(line):
        return plain
    if plain.understood and any(each.action in (Action.BLOCK, Action.DEFER) and each.value for each in plain.intents):
        return plain
    pieces = _pieces(line)
    if len(pieces) > _MOST_PIECES:
        return plain
    reader = _Reader(lookup, parse, known)
    found = _all(line, pieces, 0, reader)
    intents = _bound(found) if found else ()
    if not plain.understood and any(each.action in DESTRUCTIVE for each in intents):
        intents = tuple(replace(each, sure=UNSURE) for each in intents if each.action in DESTRUCTIVE)
    if plain.understood and not shown:
        begin, end = pieces[0] if pieces else (0, 0)
        plain = _of_topic(plain, reader.piece(line[begin:end])) if len(pieces) > 1 else plain
    if plain.understood:
        deed = found is not None and len(found) == 1 and found[0].deed
        better = (
            ((shown or deed) and intents) or _says_more(intents, plain.intents) or _says_on_what(intents, plain.intents)
        )
        return Parsed(intents=intents, understood=True) if better else plain
    if asides and not intents:
        intents = _beside(line, pieces, reader)
    return Parsed(intents=intents, understood=True) if intents else plain


def _is_item_after_all(intent: Intent, lookup: WorkLookup) -> bool:
    """Whether what was taken for a person or for a decision is an item: "copy belongs to the launch"."""
    if (
        intent.action not in (Action.ASSIGN, Action.DECIDE)
        or not intent.value
        or len(intent.value.split()) > _MOST_ALONE
    ):
        return False
    named = namings(intent.value, lookup, least=1)
    lower = intent.value[:1].islower() and intent.value.lower() not in persons_in(lookup)
    covers = len(named) == 1 and named[0].end - named[0].start >= len(intent.value.strip()) - 1
    return covers and (named[0].whole or lower)


def _pieces(line: str) -> list[tuple[int, int]]:
    """Where the clauses of a line begin and end."""
    begin, found = 0, []
    for cut in _CUT.finditer(line):
        if line[begin : cut.start()].strip():
            found.append((begin, cut.start()))
            begin = cut.end()
    if line[begin:].strip(" .!"):
        found.append((begin, len(line.rstrip(" .!)"))))
    return found


def _all(line: str, pieces: Sequence[tuple[int, int]], first: int, reader: _Reader) -> list[_Piece] | None:
    """The clauses that a line is made of, the shortest that can be read first; None where some cannot."""
    if first == len(pieces):
        return []
    for last in range(first, len(pieces)):
        piece = reader.piece(line[pieces[first][0] : pieces[last][1]])
        if piece.read is None or _leads_nowhere(piece, line, pieces, first, last):
            continue
        rest = _all(line, pieces, last + 1, reader)
        if rest is not None:
            return [piece, *rest]
    return None


def _leads_nowhere(piece: _Piece, line: str, pieces: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Whether a clause is one of several that are named together, or only a name: "venue and flowers to Ida"."""
    assert piece.read is not None
    joint = "and" if last + 1 == len(pieces) else line[pieces[last][1] : pieces[last + 1][0]].strip(" ,").lower()
    if piece.read.idle:
        return last + 1 < len(pieces) and joint in _JOINS
    if not piece.read.intents:
        return joint in _JOINS
    if first and _HANGS_ON.match(piece.said):
        return True  # "stock depends on racks and on the floor plan"
    return first == 0 and len(pieces) > 1 and len(piece.said.split()) == 1 and not piece.read.topic


def _bound(pieces: Sequence[_Piece], topic: str = "") -> tuple[Intent, ...]:
    """The intents of clauses, those without an item bound to the one named before; nothing where none was."""
    intents: list[Intent] = []
    for place, piece in enumerate(pieces):
        assert piece.read is not None
        alone = not (piece.read.intents or piece.read.idle) or piece.read.soft
        following = pieces[place + 1].read if place + 1 < len(pieces) else None
        if alone and following and not all(_PRONOUN.fullmatch(each.target) for each in following.intents):
            return ()  # "sound and title screen are urgent"
        for intent in piece.read.intents if not (alone and following) else ():
            if (
                topic
                and (not intent.target or _PLURAL_PRONOUN.fullmatch(intent.target))
                and intent.action is not Action.UNDO
            ):
                intent = replace(intent, target=topic)
            elif not intent.target and intent.action is not Action.UNDO and _NEEDS_TOPIC.match(piece.said):
                return ()
            if intent not in intents and not _said_less(intent, intents):
                intents.append(intent)
        topic = topic if _PRONOUN.fullmatch(piece.read.topic) else piece.read.topic
    return tuple(intents)


def _said_less(intent: Intent, before: Sequence[Intent]) -> bool:
    """Whether the same was said before with more words."""
    return any(
        each.action is intent.action and each.target == intent.target and not (intent.other or intent.value)
        for each in before
    )


def _says_more(intents: Sequence[Intent], plain: Sequence[Intent]) -> bool:
    """Whether all that was read before is there, and something else."""
    kept = {intent.action for intent in plain} <= {intent.action for intent in intents}
    harmless = not any(intent.action in DESTRUCTIVE for intent in intents)
    return len(intents) > len(plain) and kept and harmless


def _of_topic(plain: Parsed, first: _Piece) -> Parsed:
    """What was read, of the item that the line begins with where it only points: "wiring: … - Dana will do it"."""
    topic = first.read.topic if first.read and not first.read.intents else ""
    if first.read is None and len(first.names) == 1 and len(first.names[0]) == 1:
        topic = f"#{first.names[0][0]}"
    if not topic or _PRONOUN.fullmatch(topic) or not all(_PRONOUN.fullmatch(each.target) for each in plain.intents):
        return plain
    return replace(plain, intents=tuple(replace(each, target=topic) for each in plain.intents))


def bound_to_named(line: str, parsed: Parsed) -> Parsed:
    """Read with pronouns that mean what was named before them in the line: "copy is old, drop it"."""
    named, intents = "", []
    starts_later = len(parsed.intents) > 1 and _LATER.search(line) is not None
    for intent in parsed.intents:
        if starts_later and intent.action is Action.START:
            continue
        if named and intent.target and _PLURAL_PRONOUN.fullmatch(intent.target) and intent.action is not Action.UNDO:
            intent = replace(intent, target=named)
        elif intent.target and intent.action not in ASKS:
            named = "" if _PLURAL_PRONOUN.fullmatch(intent.target) else intent.target
        intents.append(intent)
    return replace(parsed, intents=tuple(intents))


def _says_on_what(intents: Sequence[Intent], plain: Sequence[Intent]) -> bool:
    """Whether the same was read, and only of which item it is asked is plainer: "cache first, start it"."""
    same = [intent.action for intent in intents] == [intent.action for intent in plain]
    if not same:
        return False
    pairs = list(zip(intents, plain, strict=True))
    pointed = all(_PRONOUN.fullmatch(was.target) and not _PRONOUN.fullmatch(now.target) for now, was in pairs)
    return pointed or any(now.target.endswith(f" {was.target}") for now, was in pairs if was.target.isalpha())


def _beside(line: str, pieces: Sequence[tuple[int, int]], reader: _Reader) -> tuple[Intent, ...]:
    """What some clauses ask for, where those before or behind them only tell of something that is no work."""
    for first in range(1, len(pieces)):
        if rest := _all(line, pieces, first, reader):
            asides = [reader.piece(line[begin:end]) for begin, end in pieces[:first]]
            return _told_before(line[: pieces[first][0]].strip(" ,.!;:-("), asides, rest)
    for last in range(len(pieces) - 1, 0, -1):
        read = _all(line, pieces[:last], 0, reader)
        told = line[pieces[last][0] :].strip(" .!")
        intents = _bound(read) if read and not _DOUBTFUL.search(told) else ()
        if intents and not any(each.action in DESTRUCTIVE for each in intents):
            *others, intent = intents
            goes_on = intent.action is Action.REPORT
            return (*others, replace(intent, value=f"{intent.value}, {told}") if goes_on else _because(intent, told))
    return ()


def _told_before(told: str, asides: Sequence[_Piece], rest: Sequence[_Piece]) -> tuple[Intent, ...]:
    if told.endswith("?") and len(told.split()) <= _MOST_ECHOED:
        told = ""
    named = [items for each in asides for items in each.names]
    if any(each.read and each.read.intents and not each.read.topic for each in asides):
        return ()  # "Ida and Omar take the cake": whoever is named is no aside
    topic = f"#{named[0][0]}" if len(named) == 1 and len(named[0]) == 1 else ""
    intents = _bound(rest, topic)
    takes_away = any(intent.action in DESTRUCTIVE for intent in intents)
    if takes_away:  # nothing else is guessed beside it
        intents = tuple(intent for intent in intents if intent.action in DESTRUCTIVE)
    if named and not takes_away and not (topic and intents and intents[0].target == topic):
        return ()
    doubt = _CONDITION if takes_away or named else _DOUBTFUL
    return () if doubt.search(told) else tuple(_because(intent, told) for intent in intents)


def _because(intent: Intent, told: str) -> Intent:
    if intent.action in (Action.BLOCK, Action.DEFER) and not (intent.value or intent.other) and len(told.split()) > 2:
        return replace(intent, value=told, sure=min(intent.sure, 0.8))
    return replace(intent, sure=UNSURE if intent.action in DESTRUCTIVE else min(intent.sure, 0.8))

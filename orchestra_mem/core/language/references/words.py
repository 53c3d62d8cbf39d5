"""The words that references are made of, and a line as tokens; a word with one wrong letter is mended."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

from orchestra_mem.core.language.mentions import Happening
from orchestra_mem.work_types import WorkKind, WorkStatus

MAX_LINE_CHARS = 2_000
"""What stands behind is not read: no line that a person types refers to anything so late."""


_OPEN = (WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.DEFERRED, WorkStatus.FAILED)

KINDS: dict[str, WorkKind] = {kind.value: kind for kind in WorkKind}
PLURAL_KINDS: dict[str, WorkKind] = {
    "milestones": WorkKind.MILESTONE, "epics": WorkKind.EPIC, "stories": WorkKind.STORY, "storys": WorkKind.STORY,
    "tasks": WorkKind.TASK, "subtasks": WorkKind.SUBTASK,
}  # fmt: skip
ALL_KINDS = KINDS | PLURAL_KINDS
HEADS = frozenset(
    "one item ticket issue thing card job piece bit part guy entry work bug feature parent problem topic".split()
)
PLURAL_HEADS = frozenset(
    "ones items tickets issues things cards jobs pieces bits parts guys entries stuff children bugs features problems "
    "topics".split()
)

STATUSES: dict[str, tuple[WorkStatus, ...]] = {
    word: statuses
    for statuses, listing in {
        (WorkStatus.FAILED,): "failed failing broken crashed unsuccessful errored red fails",
        (WorkStatus.BLOCKED,): "blocked stuck waiting",
        (WorkStatus.PENDING,): "pending unstarted todo queued untouched not-started",
        (WorkStatus.DONE,): "done finished completed complete closed resolved shipped",
        (WorkStatus.CANCELLED,): "cancelled canceled dropped abandoned scrapped",
        (WorkStatus.DEFERRED,): "deferred postponed parked paused shelved on-hold snoozed",
        (WorkStatus.IN_PROGRESS,): "active running ongoing started in-progress wip current",
        _OPEN: "open unfinished incomplete outstanding undone not-done",
    }.items()
    for word in listing.split()
}
HAPPENINGS: dict[str, Happening] = {
    word: happening
    for happening, listing in {
        Happening.CREATED: "created added made wrote opened filed new",
        Happening.STARTED: "started began begun",
        Happening.FINISHED: "finished completed closed did",
        Happening.FAILED: "failed broke",
        Happening.CHANGED: "changed renamed updated edited moved prioritised prioritized touched modified bumped",
        Happening.BLOCKED: "blocked",
        Happening.DEFERRED: "deferred postponed parked paused shelved",
        Happening.CANCELLED: "cancelled canceled dropped scrapped",
        Happening.ASSIGNED: "assigned gave handed",
        Happening.MENTIONED: "mentioned discussed asked said named saw viewed",
        Happening.LISTED: "listed showed shown printed",
    }.items()
    for word in listing.split()
}
_UNITS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
NUMBERS: dict[str, int] = {word: n for n, word in enumerate(f"{_UNITS} eighteen nineteen".split(), 1)}
_TENS = {word: 10 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
NUMBERS |= _TENS | {f"{ten}-{unit}": _TENS[ten] + NUMBERS[unit] for ten in _TENS for unit in _UNITS.split()[:9]}
GROUP_SIZES = {"couple": 2, "pair": 2, "trio": 3}
_NTH = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
NTH: dict[str, int] = {word: n for n, word in enumerate(_NTH.split(), 1)}
ORDINALS = NTH | {
    "top": 1, "initial": 1, "latter": -1, "former": 1, "bottom": -1, "last-but-one": -2, "penultimate": -2,
}  # fmt: skip
LATEST = frozenset("last latest newest final most-recent".split())
OTHERS = frozenset({"other", "others"})
REST = frozenset("rest remaining remainder left leftover".split())
PREVIOUS = frozenset("previous prior earlier preceding".split())
NEXT = frozenset("next following upcoming".split())
DETERMINERS = frozenset("the this that these those our my your said whichever".split())
POSSESSIVES = frozenset("its their theirs".split())
INDEFINITE = frozenset("a an another some any many new more several".split())
SINGULAR_PRONOUNS = frozenset({"it", "itself"})
PLURAL_PRONOUNS = frozenset({"them", "they", "em", "themselves"})
DEMONSTRATIVES = frozenset("this that these those".split())
QUANTIFIERS = frozenset("all both each every everything either".split())
ADVERBS = frozenset(
    "just newly recently freshly already still now currently only previously earlier yet recent also very".split()
)

COMMANDS = frozenset(
    """
    add append create make build write draft put move place nest shift rename retitle call name start begin resume
    continue restart reopen retry rerun redo run finish complete close end ship resolve mark set flag tag block unblock
    hold defer postpone park pause shelve snooze delay cancel drop kill delete remove scrap abandon discard assign give
    hand reassign unassign prioritise prioritize deprioritise deprioritize bump raise lower promote demote escalate
    depend link note comment log record attach annotate decide report tell show display describe summarise summarize
    list print view find search open check see explain undo revert restore rollback fail update change edit describe
    split break merge finalise finalize kick pick take work let do get go need want try expand detail review
    keep bring make has have
    """.split()
)
NEEDING = frozenset("need needs want wants get gets require requires".split())
_MAX_SPELT = 5  # tokens: "one hundred and forty one"
_PAIRS = {
    "in progress": "in-progress", "on hold": "on-hold", "not started": "not-started", "not done": "not-done",
    "not finished": "unfinished", "not complete": "unfinished", "not completed": "unfinished", "most recent": "latest",
    "user story": "story", "user stories": "stories", "sub task": "subtask", "sub tasks": "subtasks",
    "sub-task": "subtask", "sub-tasks": "subtasks", "work item": "item", "work items": "items",
    "second last": "last-but-one", "second-last": "last-but-one", "second-to-last": "last-but-one",
    "work on": "continue", "thee": "three",
    "everything else": "rest", "all others": "others", "every thing": "everything",
}  # fmt: skip
_TRIPLES = {
    "second to last": "last-but-one", "last but one": "last-but-one", "not yet started": "not-started",
    "not yet done": "not-done", "not yet finished": "unfinished",
}  # fmt: skip

_TOKEN = re.compile(
    r"(?P<quoted>\"[^\"\n]+\"|\u201c[^\u201c\u201d\n]+\u201d|`[^`\n]+`|(?<!\w)['\u2018][^'\u2018\u2019\n]+['\u2019](?!\w))"
    r"|(?:#\s?(?P<number>\d{1,18})|(?P<digits>\d{1,18})(?P<nth>(?i:st|nd|rd|th))?)(?![^\W_])(?P<owns>['\u2019][sS]\b)?"
    r"|(?P<word>[^\W_]+(?:['\u2019_-][^\W_]+)*['\u2019]?)"
    r"|(?P<mark>[^\w\s])"
)
# "thats done", "they're done"
_CONTRACTED = re.compile(r"(that(?=s|l)|this(?='?ll)|it(?='|ll)|they|these|those)(?:s|'?ll|'?re|'?ve|'d)")
_GLUED = re.compile(r"(milestone|epic|story|task|subtask|item)[-_]?(\d{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A word, number, quotation or mark of a line.

    `low` is how the grammar reads it: in lower case, mended, without a possessive's ending, words that belong together
    as one. `number` is that of `#12`, `digits` of `12`, `nth` of `12th`. `owns` is whether it is a possessive,
    `is_known` whether it is a word of a title that was spoken of.
    """

    low: str
    text: str
    start: int
    end: int
    number: int | None = None
    digits: int | None = None
    nth: int | None = None
    is_word: bool = False
    is_quoted: bool = False
    owns: bool = False
    is_known: bool = False


def tokenise(line: str, known: Collection[str] = ()) -> list[Token]:
    """Cut a line into tokens. `known` are lower-case words that are right as they are, such as those of titles."""
    found: list[Token] = []
    for match in _TOKEN.finditer(line[:MAX_LINE_CHARS]):
        found.extend(_tokens_of(match, known))
    return _joined(found)


def _tokens_of(match: re.Match[str], known: Collection[str]) -> list[Token]:
    text, start, end = match[0], match.start(), match.end()
    if match["quoted"]:
        return [Token(low=text[1:-1].lower(), text=text, start=start, end=end, is_quoted=True)]
    if match["number"]:
        return [Token(low="#", text=text, start=start, end=end, number=int(match["number"]), owns=bool(match["owns"]))]
    if match["digits"]:
        number = int(match["digits"])
        if match["nth"]:
            return [Token(low=text.lower(), text=text, start=start, end=end, nth=number, is_word=True)]
        return [Token(low=match["digits"], text=text, start=start, end=end, digits=number, owns=bool(match["owns"]))]
    if match["word"]:
        return _words_of(text, start, end, known)
    return [Token(low=text, text=text, start=start, end=end)]


def _words_of(text: str, start: int, end: int, known: Collection[str]) -> list[Token]:
    low = text.lower().replace("\u2019", "'")
    glued = _GLUED.fullmatch(low)
    if glued:
        middle = start + len(glued[1])
        kind = Token(low=glued[1], text=text[: len(glued[1])], start=start, end=middle, is_word=True)
        return [kind, Token(low=glued[2], text=glued[2], start=middle, end=end, digits=int(glued[2]))]
    owns = low.endswith(("'s", "s'"))
    if owns:
        low = low[:-2] if low.endswith("'s") else low[:-1]
    low = low.rstrip("'")
    if contracted := _CONTRACTED.fullmatch(low):
        low, owns = contracted[1], False
    right = mended(low, known)
    return [Token(low=right, text=text, start=start, end=end, is_word=True, owns=owns, is_known=right in known)]


def _joined(tokens: list[Token]) -> list[Token]:
    """Make one token of words that mean one thing together."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        value, length = _spelt(tokens[at : at + _MAX_SPELT])
        if length > 1:
            run = tokens[at : at + length]
            text = " ".join(token.text for token in run)
            owns = run[-1].owns
            found.append(Token(low=str(value), text=text, start=run[0].start, end=run[-1].end, digits=value, owns=owns))
            at += length
            continue
        for length, table in ((3, _TRIPLES), (2, _PAIRS), (1, _PAIRS)):
            run = tokens[at : at + length]
            low = table.get(" ".join(token.low for token in run))
            if low and len(run) == length and all(token.is_word for token in run):
                text = " ".join(token.text for token in run)
                found.append(
                    Token(low=low, text=text, start=run[0].start, end=run[-1].end, is_word=True, owns=run[-1].owns)
                )
                at += length
                break
        else:
            found.append(tokens[at])
            at += 1
    return [_owning(token, after) for token, after in zip_longest(found, found[1:])]


def _spelt(tokens: list[Token]) -> tuple[int, int]:
    """Read "one hundred and forty one": the number, and how many tokens write it; 0 of them where none does."""
    lows = [token.low for token in tokens]
    value = at = 0
    if lows[1:2] == ["hundred"] and NUMBERS.get(lows[0], 10) < 10:
        value, at = 100 * NUMBERS[lows[0]], 2
        at += lows[2:3] == ["and"] and lows[3:4] != [] and lows[3] in NUMBERS
    if lows[at : at + 1] and lows[at] in NUMBERS:
        is_ten = lows[at] in _TENS
        value, at = value + NUMBERS[lows[at]], at + 1
        if is_ten and lows[at : at + 1] and NUMBERS.get(lows[at], 10) < 10:
            value, at = value + NUMBERS[lows[at]], at + 1
    return value, at


def _owning(token: Token, after: Token | None) -> Token:
    """Take "the epics stories" for what lost its apostrophe."""
    if after is None or token.low not in PLURAL_KINDS or not (after.low in KINDS or after.low in PLURAL_KINDS):
        return token
    return replace(token, low=PLURAL_KINDS[token.low].value, owns=True)


_MENDED = sorted(
    {
        *KINDS, *PLURAL_KINDS, *ORDINALS, *LATEST, *OTHERS, *PREVIOUS, *QUANTIFIERS, "remaining", "next", "following",
        "items", "ticket", "tickets", "failed", "blocked", "pending", "finished", "completed", "cancelled", "deferred",
        "created", "added", "started", "unfinished", "these", "those", "them", "that", "this", "the", "same", "before",
        "about", "three", "four", "five", "seven", "eight", "under", "called", "named", "progress", "ones", "rest",
        "number", "running", "active", "unblocked", "postponed", "canceled", "unstarted", "outstanding", "except",
        "everything", "couple", "just", "listed", "changed", "assigned", "waiting",
        "problem", "issue", "another", "status", "list", "pair", "open", "done", "what", "first", "last",
    }
    - {"top", "former", "all", "last-but-one", "sixth", "tenth", "ninth", "initial"}
)  # fmt: skip
# Words that are one letter off another one of ours, and right.
_RIGHT = frozenset(
    """
    store stores tasked talk talks tank tanks there theme themes then than thee they their thy theses later latest
    rather tether third thirds though list lost past fast cast east least tests test text next nest rest best resting
    sort short storm stern forth forty hour for fire fine hive file time tile line seen even eleven thread threat
    threes flour eights weight under udder wonder boot bath bolt cold called cancel finish start add block fail added
    adder created creates create creater starts started stared state stated stats paid above abort bout before
    befor other mother bother utter outer order another both booth every ever very even each reach teach beach either
    neither ether epic epics topic topics optic sections secondary seconds fired thirty that what than hat chat
    one once ours one's same some came sale safe name named came game camel candle blocker blockers locked clocked
    blocks failure fails mailed finishes refined defer defers differed defended unfinished pressing spending ending
    remains remain remaining restarted item times steps step tickets thicket files filed mask masks ask asks
    title titles set sets setup mile milestone story history histories these this thin think thing
    things theme tho the he she her here where were tee ten tea toe tie none done on ore on-call
    prio form firm fixed firsts lasts lash lass late lest cost post host mast
    """.split()
) - frozenset(_MENDED)  # fmt: skip
_BY_LENGTH: dict[int, list[str]] = {}
for _word in _MENDED:
    _BY_LENGTH.setdefault(len(_word), []).append(_word)
_MIN_MENDED = 5
_MAX_MENDED = 12


def mended(word: str, known: Collection[str] = ()) -> str:
    """Give the word of the grammar that a word is but for one letter; itself where it is none or right as it is.

    Short words are mended where two letters changed places, or a letter stands twice; longer ones where a letter is
    wrong, missing or too many, and not the first.
    """
    return word if word in known else _mended(word)


@lru_cache(maxsize=4_096)
def _mended(word: str) -> str:
    is_odd = len(word) > _MAX_MENDED or not word.isalpha()
    if is_odd or word in _GRAMMAR or word in _RIGHT or word in COMMANDS:
        return word
    for length in (len(word), len(word) + 1, len(word) - 1):
        for right in _BY_LENGTH.get(length, ()):
            if _is_slip(word, right):
                return right
    return word


def _is_slip(word: str, right: str) -> bool:
    if is_swapped(word, right):
        return len(right) >= 3
    if word[0] != right[0]:
        return False
    if len(right) < _MIN_MENDED:
        return len(word) == len(right) + 1 and len(right) >= 3 and _has_double(word, right)
    return is_one_off(word, right)


def is_swapped(word: str, right: str) -> bool:
    """Tell whether two neighbouring letters changed places."""
    if len(word) != len(right) or word == right:
        return False
    at = next(place for place in range(len(word)) if word[place] != right[place])
    return word[at : at + 2] == right[at : at + 2][::-1] and len(word) > at + 1 and word[at + 2 :] == right[at + 2 :]


def is_one_off(word: str, right: str) -> bool:
    """Tell whether one letter is wrong, missing or too many, or two neighbours changed places."""
    if abs(len(word) - len(right)) > 1 or word == right:
        return False
    short, long = sorted((word, right), key=len)
    at = next((place for place in range(len(short)) if short[place] != long[place]), len(short))
    if len(short) == len(long):
        return short[at + 1 :] == long[at + 1 :] or is_swapped(word, right)
    return short[at:] == long[at + 1 :]


def _has_double(word: str, right: str) -> bool:
    return any(word[at] == word[at - 1] and word[:at] + word[at + 1 :] == right for at in range(1, len(word)))


_GRAMMAR = frozenset(
    {
        *KINDS, *PLURAL_KINDS, *HEADS, *PLURAL_HEADS, *STATUSES, *HAPPENINGS, *NUMBERS, *GROUP_SIZES, *ORDINALS,
        *LATEST, *OTHERS, *REST, *PREVIOUS, *NEXT, *DETERMINERS, *POSSESSIVES, *INDEFINITE, *SINGULAR_PRONOUNS,
        *PLURAL_PRONOUNS, *QUANTIFIERS, *ADVERBS, *_MENDED,
    }
)  # fmt: skip

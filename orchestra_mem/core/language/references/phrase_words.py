"""Words of a line in their places: commands, what ends a description, heads; asked of tokens by place."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.language.references.words import (
    COMMANDS,
    DEMONSTRATIVES,
    DETERMINERS,
    HEADS,
    INDEFINITE,
    KINDS,
    NUMBERS,
    PLURAL_HEADS,
    PLURAL_KINDS,
    PLURAL_PRONOUNS,
    POSSESSIVES,
    QUANTIFIERS,
    SINGULAR_PRONOUNS,
    STATUSES,
    Token,
    is_one_off,
    is_swapped,
)

BREAKS = frozenset(
    """
    has have had to as with by on for at from in into onto of off out up over about regarding concerning because
    since when while if
    unless until till so but except besides minus excluding than then also too please pls plz thanks is are was were be
    been being am do does did can could will would should shall may might must i we you he she me us him her who what
    which why how where when whose and not or nor that's under below within inside beneath among without per via after
    before against again instead there here yes no ok okay now today tomorrow asap immediately right away hey well
    belongs belong depends depend blocks waits waiting got just gets let's lets i'm we're don't doesn't isn't aren't
    i'd i'll we'll can't won't going doing looking mean meant got done let lets
    """.split()
)
VERBS_BEHIND = frozenset(
    """
    go goes went come comes came wait waits need needs needed want wants take takes get gets stay stays look looks seem
    seems fail fails block blocks sound sounds become becomes remain remains belong depend hang hangs sit sits require
    requires turn turns keep keeps run runs start starts end ends finish finishes move moves
    """.split()
)
_COPULAR = frozenset("looks seems sounds remains stays becomes".split())
_FILLERS = frozenset(
    "please pls plz can could would will you we i let's lets let us now and then just to also go ahead ok okay "
    "but only instead rather so i i'd we'd i'll we'll want need should must like have gonna wanna try yes no "
    "hey hi hello well so good great".split()
)
QUALITIES = frozenset(
    """
    status state progress priority title name description assignee owner deadline estimate reason list plan backlog
    time way day week month year morning end beginning start team person people guy number id change changes note
    notes comment comments dependency dependencies blocker blockers order question answer decision thing rest moment
    board log history summary report overview details
    """.split()
)
"""What items and talks have, and are not."""
_MARKING = frozenset("mark set flag put move tag make leave keep call".split())
_RANKING = (_MARKING - {"call"}) | frozenset("give get bump raise".split())
_RANKS = frozenset("urgent critical important unimportant high-priority low-priority p0 p1 p2 p3 p4".split())
_LEVELS = frozenset("low lower lowest high higher highest medium normal top maximum minimum max min".split())
_PRIORITY = frozenset(["priority", "prio"])
_DEGREES = frozenset("more less most least very really super extremely".split())
_BEHIND_RANK = frozenset(
    "please pls thanks now today asap again instead because since as until for too . , ! ? ;".split()
)
NUMBER_WORDS = frozenset("number no nr num id ids numbers nos".split())
BELOW = frozenset("of in under from below within inside beneath underneath for on belonging".split())
PLACES = frozenset("in under below within inside beneath underneath".split())
PARTITIVE = frozenset("of from among amongst in".split())
EXCEPT = frozenset("except besides minus excluding but without".split())
MOVES = frozenset("move put place add nest shift file attach stick".split())
CONTENT = frozenset("called named titled labelled labeled entitled saying note comment".split())
ASKING = frozenset("did does is was has will can could should would must may".split())
LEADING = frozenset("to under below beneath inside into of by from".split())
CONJOINING = frozenset(
    "so note decide decided remember say says said sure think know means given provided now see such saw forget".split()
)
SUBJECTS = frozenset("i we you he she they it the a an this there all our my these those its".split())
PLURAL = PLURAL_KINDS.keys() | PLURAL_HEADS
SINGULAR = KINDS.keys() | HEADS


def low(tokens: Sequence[Token], at: int) -> str:
    """Give the word at a place, empty beyond the ends."""
    return tokens[at].low if 0 <= at < len(tokens) and not tokens[at].is_quoted else ""


def is_plain(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a word can describe: it is none of the grammar's."""
    if not 0 <= at < len(tokens):
        return False
    token = tokens[at]
    return (token.is_word or token.digits is not None) and token.low not in _UNDESCRIBING and not _is_verb(tokens, at)


def _is_verb(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a word says what a subject before it does: "both wait for #5", "the other goes to Ann"."""
    if tokens[at].low not in VERBS_BEHIND or at == 0:
        return False
    if at + 1 >= len(tokens):
        return True
    after = tokens[at + 1]
    is_amount = after.digits is not None or after.low in NUMBERS
    return (
        tokens[at].low in _COPULAR
        or is_amount
        or not after.is_word
        or after.low in _UNDESCRIBING
        or after.number is not None
        or after.text[0].isupper()
    )


_UNDESCRIBING = (
    BREAKS | DETERMINERS | POSSESSIVES | INDEFINITE | SINGULAR_PRONOUNS | PLURAL_PRONOUNS | QUANTIFIERS | DEMONSTRATIVES
)


def is_head(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether the word at a place names a kind, or stands for one."""
    return low(tokens, at) in SINGULAR or low(tokens, at) in PLURAL


def goes_on(tokens: Sequence[Token], begin: int, at: int) -> bool:
    """Tell whether a title that begins at a place goes on at another: not "priority" of "signup's priority"."""
    if at > begin and (low(tokens, at) in VERBS_BEHIND or (tokens[at - 1].owns and low(tokens, at) in QUALITIES)):
        return False
    is_adverb = low(tokens, at) in ("up", "in", "out", "off") and is_plain(tokens, at + 1)
    return is_plain(tokens, at) or (is_adverb and at > begin)


def first_command(tokens: Sequence[Token]) -> int:
    """Give the place of the verb that a line begins with, -1 where it begins with none."""
    at = 0
    while low(tokens, at) in _FILLERS or (at < len(tokens) and tokens[at].low in (",", "-")):
        at += 1
    word = low(tokens, at)
    if word in COMMANDS or (word and any(len(verb) > 3 and _is_slip_of(word, verb) for verb in COMMANDS)):
        return at
    return -1


def becomes(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a word is the status that a verb like "mark" or "put" gives."""
    return low(tokens, at) in STATUSES and low(tokens, first_command(tokens)) in _MARKING


def _is_slip_of(word: str, verb: str) -> bool:
    return is_swapped(word, verb) or (len(verb) > 4 and word[0] == verb[0] and is_one_off(word, verb))


def content_at(tokens: Sequence[Token]) -> int:
    """Find where what is written begins, as a title or a note, in which nothing refers."""
    for at, token in enumerate(tokens):
        if token.low == ":" and at > 0 and at + 1 < len(tokens):
            return at
    verb = first_command(tokens)
    if low(tokens, verb) in ("rename", "retitle", "call"):
        for at in range(verb + 2, len(tokens)):
            if low(tokens, at) in ("to", "as", "into"):
                return at
    if low(tokens, verb) in _RANKING:
        return rank_at(tokens, verb + 2)
    return len(tokens)


def rank_at(tokens: Sequence[Token], begin: int) -> int:
    """Find where a line goes on to say how urgent something becomes: "make them urgent", "make it low priority"."""
    for at in range(begin, len(tokens)):
        end = at
        while low(tokens, end) in _DEGREES:
            end += 1
        word, after = low(tokens, end), low(tokens, end + 1)
        if word in _PRIORITY and after == "to":
            end, after = end + 1, low(tokens, end + 2)
        is_told_behind = word in _PRIORITY and (after in _LEVELS or after in NUMBERS or after.isdecimal())
        if word in _RANKS:
            end += 1
        elif is_told_behind or (word in _LEVELS and after in _PRIORITY):
            end += 2
        else:
            continue
        is_last = end >= len(tokens) or low(tokens, end) in _BEHIND_RANK
        if is_last and low(tokens, at - 1) not in DETERMINERS | INDEFINITE | {"to", "as"}:
            return at
    return len(tokens)

"""Noun phrases read from tokens: determiner, numbers, what describes the items, head, and the clause behind it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestra_mem.core.language.references.phrase_words import (
    PLURAL,
    QUALITIES,
    SINGULAR,
    VERBS_BEHIND,
    becomes,
    is_head,
    is_plain,
    low,
)
from orchestra_mem.core.language.references.phrases import Form, Parts
from orchestra_mem.core.language.references.words import (
    ADVERBS,
    COMMANDS,
    DEMONSTRATIVES,
    DETERMINERS,
    GROUP_SIZES,
    HAPPENINGS,
    KINDS,
    LATEST,
    NEXT,
    NUMBERS,
    ORDINALS,
    OTHERS,
    PLURAL_KINDS,
    PLURAL_PRONOUNS,
    PREVIOUS,
    QUANTIFIERS,
    REST,
    SINGULAR_PRONOUNS,
    STATUSES,
    Token,
)

_PARTICLES = frozenset("in up out on off over of for with to by without via from at".split())
_AWAY = frozenset("back away forward together apart aside ahead".split())
_MAX_WORDS = 8
_MAX_MODIFIERS = 12


def read_noun_phrase(tokens: Sequence[Token], at: int, *, owned: bool = False) -> tuple[Parts, int] | None:
    """Read the noun phrase that begins at a place, without what follows its head; None where none does.

    `owned` is whether a possessive stands before it.
    """
    parts = Parts()
    begin = at
    at = _read_determiner(tokens, at, parts)
    after_determiner = at
    while at < len(tokens) and at - begin < _MAX_MODIFIERS and not parts.has_head:
        step = _read_modifier(tokens, at, parts, owned or at > begin)
        if not step:
            break
        at += step
        if parts.owns:
            break
    if parts.words and not parts.words[-1]:
        parts.words.pop()
    if parts.kind and at < len(tokens) and (tokens[at].number is not None or tokens[at].digits is not None):
        return None  # the kind belongs to the number behind it
    if not _is_phrase(
        tokens, at, parts, owned, is_empty=at == begin or (at == after_determiner and not parts.quantifier)
    ):
        return None
    return parts, at


def _read_determiner(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    if low(tokens, at) in QUANTIFIERS:
        parts.quantifier = low(tokens, at)
        at += 1
        if parts.quantifier == "both":
            parts.count = 2
        if parts.quantifier == "everything":
            parts.many = parts.has_head = True
            return at
        if parts.quantifier in ("both", "all") and _is_verb_of_several(tokens, at):
            parts.many = parts.has_head = True
            return at
        if low(tokens, at) == "of":
            return at
    if low(tokens, at) in DETERMINERS and not (tokens[at].owns and low(tokens, at) in DEMONSTRATIVES):
        parts.determiner = low(tokens, at)
        at += 1
    return at


def _is_verb_of_several(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a verb stands behind "both" or "all", and nothing that these could be of: "both get priority 1"."""
    is_item = is_head(tokens, at) or low(tokens, at) in OTHERS | REST
    if is_item or not is_plain(tokens, at) or _plural_head_ahead(tokens, at):
        return False
    joined = any(low(tokens, place) in ("and", "&", ",") for place in range(at + 1, at + _MAX_WORDS))
    return low(tokens, at) in VERBS_BEHIND or (low(tokens, at - 1) == "both" and not joined)


def _read_modifier(tokens: Sequence[Token], at: int, parts: Parts, is_inside: bool) -> int:
    """Take in the word at a place; how many tokens that took, 0 where the phrase ends before it."""
    word = low(tokens, at)
    if tokens[at].is_quoted:
        parts.is_quoted = True
        for piece in tokens[at].low.split():
            parts.add_word(piece)
        return 1
    if is_head(tokens, at) and not _heads_follow(tokens, at):
        return _read_head(tokens, at, parts, is_inside)
    if (parts.is_selective or parts.count) and _is_complement(tokens, at):
        return 0
    # "keep other one", where the verb is not known; "do the welcome mail first"
    is_behind = bool(parts.words) and not ((parts.determiner or parts.quantifier) and _head_is_near(tokens, at))
    for read in (_read_selector, _read_number, _read_state):
        step = read(
            tokens, at, Parts(determiner=parts.determiner, words=parts.words) if is_behind else parts, is_inside
        )
        if step:
            if is_behind:
                return 0
            parts.owns = tokens[at].owns
            return step
    if word in ADVERBS and is_inside:
        return 1
    if word in HAPPENINGS and parts.is_selective and not _head_is_near(tokens, at):
        return 0  # "the last three created"
    if is_plain(tokens, at) and sum(map(len, parts.words)) < _MAX_WORDS:
        parts.add_word(word)
        parts.owns = tokens[at].owns
        return 1
    return _read_joint(tokens, at, parts)


def _is_complement(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a word says what becomes of "the last two": "push them back", "put them on hold"."""
    return (becomes(tokens, at) or low(tokens, at) in _AWAY) and not _head_is_near(tokens, at)


def _heads_follow(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether what could be a head only describes, as in "the task list story", or "the job queue" of a title."""
    if tokens[at].owns or low(tokens, at) in ("one", "ones"):
        return False
    is_of_ours = low(tokens, at) in KINDS or low(tokens, at) in PLURAL_KINDS
    if not is_of_ours and tokens[at].is_known and _is_title(tokens, at + 1) and not is_head(tokens, at + 1):
        return True
    if is_head(tokens, at + 1):
        return low(tokens, at + 1) not in ("one", "ones")
    return is_plain(tokens, at + 1) and _is_name(tokens, at + 1) and is_head(tokens, at + 2)


def _is_title(tokens: Sequence[Token], at: int) -> bool:
    return is_plain(tokens, at) and tokens[at].is_known and _is_name(tokens, at)


def _is_name(tokens: Sequence[Token], at: int) -> bool:
    word = low(tokens, at)
    return word not in STATUSES and word not in HAPPENINGS and word not in ADVERBS and not tokens[at].owns


def _read_head(tokens: Sequence[Token], at: int, parts: Parts, is_inside: bool) -> int:
    word = low(tokens, at)
    if word not in KINDS and word not in PLURAL_KINDS and not is_inside and low(tokens, at + 1) not in _CLAUSES:
        return 0
    is_led = parts.determiner or parts.is_modified or parts.quantifier
    if word == "one" and not (is_led or low(tokens, at + 1) in _CLAUSES):
        return 0
    parts.has_head = True
    parts.kind = KINDS.get(word) or PLURAL_KINDS.get(word)
    parts.many = None if word == "stuff" else word in PLURAL
    parts.owns = tokens[at].owns
    if low(tokens, at + 1) in ("one", "ones") and parts.determiner and not parts.owns:
        parts.many = low(tokens, at + 1) == "ones"
        parts.owns = tokens[at + 1].owns
        return 2
    return 1


def _read_selector(tokens: Sequence[Token], at: int, parts: Parts, is_inside: bool) -> int:
    word = low(tokens, at)
    selector = next(
        (
            form
            for form, words in ((Form.OTHER, OTHERS), (Form.REST, REST), (Form.PREVIOUS, PREVIOUS), (Form.NEXT, NEXT))
            if word in words
        ),
        Form.SAME if word == "same" else None,
    )
    if selector is None:
        return _read_position(tokens, at, parts)
    parts.selectors.add(selector)
    parts.spare.append(word)
    if word in ("others", "rest", "remainder"):
        parts.has_head = parts.many = True
        if word == "rest" and is_head(tokens, at + 1):
            parts.has_head = False
    return 1


def _read_position(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    token, word = tokens[at], low(tokens, at)
    if parts.position is not None and word not in LATEST:
        return 0
    if token.nth is not None and token.nth > 0:
        parts.position = token.nth
    elif word in ORDINALS:
        parts.position = ORDINALS[word]
        if word in ("former", "latter"):
            parts.count, parts.many = None, False
    elif word == "middle":
        parts.position = 0
    elif word in LATEST:
        parts.position = -(parts.position or 1)
    else:
        return 0
    parts.spare.append(word)
    return 1


def _read_number(tokens: Sequence[Token], at: int, parts: Parts, is_inside: bool) -> int:
    token, word = tokens[at], low(tokens, at)
    value = token.digits if token.digits is not None else NUMBERS.get(word) or GROUP_SIZES.get(word)
    if value is None and word == "few" and parts.is_selective:
        parts.many = True
        return 2 if low(tokens, at + 1) == "of" else 1
    if value is None or parts.count is not None or parts.words or word == "one" or not is_inside or value > 1000:
        return 0
    parts.count = value
    return 2 if word in GROUP_SIZES and low(tokens, at + 1) == "of" else 1


def _read_state(tokens: Sequence[Token], at: int, parts: Parts, is_inside: bool) -> int:
    word = low(tokens, at)
    # Before a head, or behind a determiner: "the failed one", "the blocked"; a verb is none: "report done".
    if (
        word in STATUSES
        and not parts.statuses
        and (parts.determiner or parts.is_selective or _head_is_near(tokens, at))
    ):
        parts.statuses = STATUSES[word]
    elif word in HAPPENINGS and (parts.determiner or parts.is_selective) and _head_is_near(tokens, at):
        parts.happening = HAPPENINGS[word]
    else:
        return 0
    parts.spare.append(word)
    return 1


def _head_is_near(tokens: Sequence[Token], at: int) -> bool:
    for place in range(at + 1, at + 5):
        if is_head(tokens, place):
            return True
        if not is_plain(tokens, place):
            return False
    return False


def _read_joint(tokens: Sequence[Token], at: int, parts: Parts) -> int:
    """Take in what joins the words of a description: "login and signup" of stories, "sign in with Google"."""
    if not parts.words:
        return 0
    word = low(tokens, at)
    if word in ("and", "&", ",", "or", "/"):
        step = 2 if low(tokens, at + 1) in ("and", "the") else 1
        step += low(tokens, at + step) == "the"
        if _plural_head_ahead(tokens, at + step):
            parts.words.append([])
            return step
        return 0
    if word in _PARTICLES and parts.determiner and _singular_head_ahead(tokens, at):
        parts.add_word(word)
        return 1
    return 0


def _plural_head_ahead(tokens: Sequence[Token], at: int) -> bool:
    place = at
    while is_plain(tokens, place) or (place > at and low(tokens, place) in ("and", ",", "&", "the")):
        if low(tokens, place) in PLURAL:
            return place > at
        if low(tokens, place) in SINGULAR:
            return False
        place += 1
        if place - at > _MAX_WORDS:
            return False
    return False


def _singular_head_ahead(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a head ends the description that goes on behind a particle; a particle before it is an adverb's."""
    place = at + 1
    while place < at + 5 and (
        low(tokens, place) in _PARTICLES or (is_plain(tokens, place) and not is_head(tokens, place))
    ):
        place += 1
    is_adverb = low(tokens, place - 1) in ("in", "up", "out", "off", "on", "over")
    return low(tokens, place) in SINGULAR and (is_adverb or low(tokens, place - 1) not in _PARTICLES)


# What leads a clause behind "one" or "ones" without an article: "one that failed", "ones we created".
_CLAUSES = frozenset("that which we i in-progress on-hold".split())


def _has_holder(tokens: Sequence[Token], at: int) -> bool:
    after = low(tokens, at + 1)
    if low(tokens, at) not in ("of", "in", "under", "below", "within", "inside", "beneath") or at + 1 >= len(tokens):
        return False
    marked = after in DETERMINERS | SINGULAR_PRONOUNS | PLURAL_PRONOUNS | KINDS.keys()
    return marked or tokens[at + 1].number is not None or low(tokens, at) in ("under", "below")


def _is_phrase(tokens: Sequence[Token], at: int, parts: Parts, owned: bool, *, is_empty: bool) -> bool:
    if is_empty:
        return False
    marked = bool(parts.determiner or parts.quantifier or owned)
    if parts.has_head:
        if parts.many and parts.kind and not (marked or parts.is_modified):
            return _has_holder(tokens, at)  # not "list stories", but "list stories of the epic"
        if parts.count is not None and not (marked or parts.is_modified):
            return False  # "add 3 stories"
        return (
            marked
            or parts.is_modified
            or low(tokens, at) in _CLAUSES
            or (parts.kind is not None and parts.many is False)
        )
    if parts.quantifier and not parts.words:
        is_whole = parts.count is not None or not is_plain(tokens, at)
        return parts.quantifier in ("all", "both", "everything", "each") and is_whole
    if parts.words:
        if parts.owns and any(is_head(tokens, place) for place in range(at, at + 3)):
            return True
        if parts.is_quoted:
            return True
        if parts.words[-1][-1] in QUALITIES and not (len(parts.words[-1]) > 1 and tokens[at - 1].is_known):
            return False
        return parts.determiner in ("the", "our", "my", "your", "this", "that") or owned
    if parts.determiner or owned:
        return parts.is_selective or parts.count is not None or bool(parts.statuses)
    return bool(parts.selectors & {Form.OTHER, Form.REST, Form.SAME}) or (
        parts.position is not None and (parts.count is not None or _is_object(tokens, at))
    )


def _is_object(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether the ordinal that ends before a place is what a verb acts on: "finish third", "first of them"."""
    if low(tokens, at) == "of":
        return True
    led = low(tokens, at - 2) in COMMANDS | {"to", "on", "for", "under"}
    return led and low(tokens, at - 1) in ORDINALS and (at >= len(tokens) or not is_plain(tokens, at))

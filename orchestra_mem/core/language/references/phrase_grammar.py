"""Finds the referring expressions of a line: numbers, pronouns, noun phrases, and how one belongs to another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from orchestra_mem.core.language.references.noun_phrases import read_noun_phrase
from orchestra_mem.core.language.references.phrase_clauses import (
    read_as_before,
    read_clause,
    read_free_clause,
    read_same,
)
from orchestra_mem.core.language.references.phrase_numbers import more_numbers, number_at, read_indefinite
from orchestra_mem.core.language.references.phrase_words import (
    ASKING,
    BELOW,
    CONJOINING,
    CONTENT,
    EXCEPT,
    LEADING,
    MOVES,
    NUMBER_WORDS,
    PARTITIVE,
    PLACES,
    SUBJECTS,
    content_at,
    first_command,
    goes_on,
    is_head,
    is_plain,
    low,
)
from orchestra_mem.core.language.references.phrases import Form, Parts, Phrase, Relation
from orchestra_mem.core.language.references.words import (
    ADVERBS,
    ALL_KINDS,
    HEADS,
    INDEFINITE,
    NUMBERS,
    ORDINALS,
    PLURAL_HEADS,
    PLURAL_KINDS,
    PLURAL_PRONOUNS,
    POSSESSIVES,
    SINGULAR_PRONOUNS,
    STATUSES,
    Token,
    tokenise,
)

_Read = tuple[Phrase | None, int]

_PRONOUN_FORMS = {"this": Form.THAT, "that": Form.THAT, "these": Form.THEM, "those": Form.THEM}
_ORDERING = {"after": Form.NEXT, "following": Form.NEXT, "before": Form.PREVIOUS, "preceding": Form.PREVIOUS}
_MAX_DEPTH = 3


def find_references(line: str, known: Collection[str] = ()) -> list[Phrase]:
    """Find the referring expressions in a line, in order; those that belong to another one are its owners.

    Titles that stand without article, number or kind ("start login") are told as bare ones. `known` are lower-case
    words that are no slips of the pen, such as those of titles.
    """
    tokens = tokenise(line, known)
    return _Reader(line, tokens[: content_at(tokens)]).phrases()


class _Reader:
    """Reads one line's tokens."""

    def __init__(self, line: str, tokens: Sequence[Token]) -> None:
        self._line = line
        self._tokens = tokens
        self._verb = first_command(tokens)
        self._moves = low(tokens, self._verb) in MOVES

    def phrases(self) -> list[Phrase]:
        found: list[Phrase] = []
        at = 0
        while at < len(self._tokens):
            if at == self._verb:
                at += 1
                continue
            continues = found and found[-1].position is not None and low(self._tokens, at - 1) in ("and", ",", "&")
            is_place = low(self._tokens, at) in ORDINALS or self._tokens[at].nth is not None
            phrase, end = self._phrase(at, depth=0, owned=bool(continues and is_place))
            if phrase:
                found.append(phrase)
            elif end == at and (bare := self._bare(at)):
                found.append(bare)
                end = self._end_of(bare, at)
            at = max(end, at + 1)
        return found

    def _end_of(self, phrase: Phrase, at: int) -> int:
        while at < len(self._tokens) and self._tokens[at].start < phrase.end:
            at += 1
        return at

    def _phrase(self, at: int, *, depth: int, owned: bool = False) -> _Read:
        """Read the phrase that begins at a place; nothing and the place where none does, or a later one to go on at."""
        if depth > _MAX_DEPTH or at >= len(self._tokens):
            return None, at
        read = self._identifiers(at) or self._pronoun(at, depth) or self._same(at)
        if read is None:
            skipped = read_indefinite(self._tokens, at, verb=self._verb)
            if skipped > at:
                return None, skipped
            read = self._noun_phrase(at, depth, owned)
        if read is None:
            return None, at
        phrase, end = read
        return self._related(phrase, end, depth) if phrase else read

    def _made(self, at: int, end: int, form: Form, **features: object) -> Phrase:
        start, stop = self._tokens[at].start, self._tokens[end - 1].end
        return Phrase(text=self._line[start:stop], start=start, end=stop, form=form, **features)  # type: ignore[arg-type]

    # What names by number

    def _identifiers(self, at: int) -> _Read | None:
        begin = at
        at += low(self._tokens, at) in ("the", "both")
        kind, plural = None, False
        if low(self._tokens, at) in ALL_KINDS:
            kind, plural = ALL_KINDS[low(self._tokens, at)], low(self._tokens, at) in PLURAL_KINDS
            at += 1
        elif low(self._tokens, at) in HEADS | PLURAL_HEADS and low(self._tokens, at) not in ("one", "ones"):
            plural = low(self._tokens, at) in PLURAL_HEADS
            at += 1
        named = at > begin and low(self._tokens, at - 1) not in ("the", "both")
        if low(self._tokens, at) in NUMBER_WORDS and at + 1 < len(self._tokens):
            at += 1 + (low(self._tokens, at + 1) in (".", ":"))
            named = True
        first = number_at(self._tokens, at, verb=self._verb, named=named, begin=begin)
        if first is None:
            return None
        if self._is_place_in(at, first):
            return self._made(begin, at + 1, Form.ORDINAL, position=first, many=False), at + 1
        ids, end = more_numbers(self._tokens, at + 1, [first], verb=self._verb, plain=plural or named)
        many = len(ids) > 1
        phrase = self._made(begin, end, Form.ID, ids=tuple(ids), kind=kind, many=many)
        return self._owned(phrase, end, 0) if self._tokens[end - 1].owns else (phrase, end)

    def _is_place_in(self, at: int, number: int) -> bool:
        """Tell whether a number counts within a group, as in "number two of those"."""
        if self._tokens[at].number is not None or number == 0 or low(self._tokens, at + 1) not in ("of", "from", "in"):
            return False
        of, _ = self._phrase(at + 2, depth=_MAX_DEPTH)
        return of is not None and of.many is True and of.form is not Form.ID

    # Pronouns

    def _pronoun(self, at: int, depth: int) -> _Read | None:
        if at >= len(self._tokens):
            return None
        word, owns = low(self._tokens, at), self._tokens[at].owns
        if word in SINGULAR_PRONOUNS | PLURAL_PRONOUNS | POSSESSIVES:
            many = word in PLURAL_PRONOUNS or word in ("their", "theirs")
            phrase = self._made(at, at + 1, Form.THEM if many else Form.IT, many=many)
            if word in POSSESSIVES or (owns and is_head(self._tokens, at + 1)):
                return self._owned(phrase, at + 1, depth)
            return phrase, at + 1
        if word in ("this", "that", "these", "those"):
            return self._demonstrative(at)
        if word in ("any", "one", "either", "some", "each", "none", *NUMBERS) and low(self._tokens, at + 1) == "of":
            return self._choice(at, depth)
        return None

    def _demonstrative(self, at: int) -> _Read | None:
        word = low(self._tokens, at)
        before, after = low(self._tokens, at - 1), low(self._tokens, at + 1)
        if not self._tokens[at].owns:
            if word == "that" and (
                is_head(self._tokens, at - 1) or (before in CONJOINING and not (at == 1 and before in ("so", "now")))
            ):
                return None, at + 1
            read = read_noun_phrase(self._tokens, at)
            if read and (read[0].has_head or read[0].count is not None):
                return None
            if at - 1 == self._verb >= 0 or before in LEADING | ASKING:
                return self._made(at, at + 1, _PRONOUN_FORMS[word], many=word in ("these", "those")), at + 1
            if after in SUBJECTS or (is_plain(self._tokens, at + 1) and after not in ADVERBS | STATUSES.keys()):
                return None, at + 1
        return self._made(at, at + 1, _PRONOUN_FORMS[word], many=word in ("these", "those")), at + 1

    def _choice(self, at: int, depth: int) -> _Read | None:
        """Read "one of them": any of several, which no one can know but who says it."""
        of, end = self._phrase(at + 2, depth=depth + 1)
        if of is None or of.many is False:
            return None
        if low(self._tokens, at) == "each":
            return of, end
        return self._made(at, end, of.form, many=False, is_choice=True, owner=of), end

    def _same(self, at: int) -> _Read | None:
        read = read_same(self._tokens, at)
        return read and (self._made(at, read[1], Form.SAME) if read[0] else None, read[1])

    # Noun phrases

    def _noun_phrase(self, at: int, depth: int, owned: bool) -> _Read | None:
        before = low(self._tokens, at - 1)
        if self._tokens[at].is_quoted and before in CONTENT:
            return None
        if free := read_free_clause(self._tokens, at):
            return self._from_parts(at, free[1], free[0]), free[1]
        read = read_noun_phrase(self._tokens, at, owned=owned)
        if read is None:
            return None
        parts, end = read
        if (
            not (parts.determiner or parts.quantifier or owned)
            and before in INDEFINITE | {"to"}
            and not (parts.has_head or parts.position)
        ):
            return None
        owns_next = low(self._tokens, end) in POSSESSIVES | PLURAL_PRONOUNS
        if parts.quantifier and not parts.has_head and (owns_next or low(self._tokens, end) == "of"):
            return self._quantified(at, end, parts, depth)
        if parts.owns:
            return self._owned(self._from_parts(at, end, parts), end, depth)
        if parts.kind and parts.words == [["parent"]] and not owned:
            it = self._made(at, end, Form.IT, many=False)
            return self._with_owner(self._from_parts(at, end, parts), it, Relation.ABOVE), end
        end = read_clause(self._tokens, end, parts) if parts.has_head or parts.is_selective or parts.count else end
        if Form.SAME in parts.selectors:
            end = read_as_before(self._tokens, end)
        return self._from_parts(at, end, parts), end

    def _from_parts(self, at: int, end: int, parts: Parts) -> Phrase:
        many = parts.is_plural
        if many is None and parts.has_head and not parts.words:
            many = True  # "the blocked stuff"
        if many is None and not parts.has_head and (parts.determiner or parts.position is not None):
            many = False if parts.form() not in (Form.SAME, Form.REST) else None
        return self._made(
            at,
            end,
            parts.form(),
            kind=parts.kind,
            many=many,
            count=parts.count,
            position=parts.position,
            statuses=parts.statuses,
            happening=parts.happening,
            words=tuple(tuple(words) for words in parts.words if words),
            loose=parts.loose,
            spare=tuple(parts.spare),
        )

    def _quantified(self, at: int, end: int, parts: Parts, depth: int) -> _Read | None:
        """Read "all of them", "both of the stories"."""
        of, stop = self._phrase(end + (low(self._tokens, end) == "of"), depth=depth + 1)
        if of is None:
            return None
        count = parts.count or of.count
        form = Form.BOTH if parts.count == 2 else Form.ALL if of.form is Form.THEM else of.form
        text = self._made(at, stop, form)
        return replace(of, text=text.text, start=text.start, form=form, many=True, count=count), stop

    def _owned(self, owner: Phrase, at: int, depth: int) -> _Read:
        """Read what a possessive owns; where that is none of ours ("its priority"), the owner is meant itself."""
        read = read_noun_phrase(self._tokens, at, owned=True)
        if read is None or (not read[0].has_head and read[0].words) or depth > _MAX_DEPTH:
            return owner, at
        phrase, end = self._noun_phrase(at, depth + 1, owned=True) or (None, at)
        if phrase is None:
            return owner, at
        return self._with_owner(phrase, owner, Relation.BELOW, start=owner.start), end

    def _with_owner(self, phrase: Phrase, owner: Phrase, relation: Relation, *, start: int | None = None) -> Phrase:
        begin = phrase.start if start is None else start
        end = max(phrase.end, owner.end)
        while phrase.owner is not None and phrase.relation is Relation.BELOW and start is not None:
            owner = self._with_owner(phrase.owner, owner, Relation.BELOW, start=start)
            phrase = replace(phrase, owner=None, relation=None)
        is_plain_set = phrase.form in (Form.KIND, Form.ALL, Form.THEM, Form.THAT)
        form = Form.CHILDREN if relation is Relation.BELOW and is_plain_set else phrase.form
        if phrase.words == (("parent",),):
            phrase, form = replace(phrase, words=()), Form.KIND
            relation = Relation.ABOVE
        if self._line[phrase.end - 6 : phrase.end].lower().endswith("parent"):
            relation = Relation.ABOVE
        return replace(
            phrase, text=self._line[begin:end], start=begin, end=end, form=form, owner=owner, relation=relation
        )

    # What stands behind

    def _related(self, phrase: Phrase, end: int, depth: int) -> tuple[Phrase, int]:
        """Take in "of them", "under the epic", "except the last one"."""
        for _ in range(2):
            word = low(self._tokens, end)
            if word in EXCEPT or (word == "other" and low(self._tokens, end + 1) == "than"):
                read = self._excepted(phrase, end, depth)
            elif word in _ORDERING and phrase.form in (Form.KIND, Form.THAT) and phrase.many is False:
                read = self._beside(phrase, end, depth)
            elif word in ("it", "they", "that") and phrase.kind and phrase.form is Form.KIND:
                read = self._belonging(phrase, end)
            else:
                read = self._below(phrase, end, depth)
            if read is None:
                break
            phrase, end = read
        return phrase, end

    def _below(self, phrase: Phrase, end: int, depth: int) -> tuple[Phrase, int] | None:
        word = low(self._tokens, end)
        at = end + 1
        if word in ("that", "which") and low(self._tokens, at) in ("are", "is", "belong", "belongs"):
            word, at = low(self._tokens, at), at + 1
        if word in ("are", "is", "still", "stuff") and low(self._tokens, at) in BELOW and at > end + 1:
            word, at = low(self._tokens, at), at + 1
        if word in ("belonging", "belong", "belongs") and low(self._tokens, at) == "to":
            word, at = "of", at + 1
        if word not in BELOW | PARTITIVE or phrase.owner is not None or phrase.form is Form.IT:
            return None
        if phrase.form is Form.ID or (depth == 0 and word in PLACES and self._is_destination(phrase, end)):
            return None
        takes_title = (phrase.many or phrase.position) and word in ("of", "in", "under", "below", "for")
        owner, stop = self._phrase_or_title(at, depth) if takes_title else self._phrase(at, depth=depth + 1)
        if owner is None or (
            word in ("for", "on", "from", "in")
            and owner.form is Form.NAMED
            and not owner.kind
            and not (phrase.many and phrase.kind)
        ):
            return None
        selects = phrase.many is None or phrase.position is not None or phrase.form not in (Form.KIND, Form.ALL)
        is_part = word in PARTITIVE and selects and owner.many is True and owner.form is not Form.ID
        if phrase.form in (Form.THAT, Form.THEM) and phrase.kind is None and not is_part and phrase.many is False:
            return None
        return self._with_owner(phrase, owner, Relation.PART if is_part else Relation.BELOW), stop

    def _is_destination(self, phrase: Phrase, at: int) -> bool:
        """Tell whether a preposition says where something moves to: it is the only one behind what moves."""
        places = PLACES | {"to", "into"}
        later = any(token.low in places for token in self._tokens[at + 1 :])
        return self._moves and not later and self._line[: phrase.start].lower().split()[-1:] != ["to"]

    def _beside(self, phrase: Phrase, end: int, depth: int) -> tuple[Phrase, int] | None:
        """Read "the one after login", "the story before this one"."""
        owner, stop = self._phrase_or_title(end + 1, depth)
        if owner is None:
            return None
        form = _ORDERING[low(self._tokens, end)]
        return replace(self._with_owner(phrase, owner, Relation.BESIDE), form=form), stop

    def _belonging(self, phrase: Phrase, end: int) -> tuple[Phrase, int] | None:
        """Read "the epic it belongs to", "the epic that it is in"."""
        at = end + (low(self._tokens, end) == "that")
        owner, place = self._pronoun(at, 0) or (None, at)
        if owner is None or low(self._tokens, place) not in ("belongs", "belong", "is", "are", "sits", "lives", "was"):
            if not (owner and owner.text.lower().endswith("'s")):
                return None
            place -= 1
        place += 1
        while low(self._tokens, place) in ("to", "in", "under", "part", "of", "created"):
            place += 1
        above = self._with_owner(phrase, owner, Relation.ABOVE)
        stop = self._tokens[place - 1].end
        return replace(above, text=self._line[above.start : stop], end=stop), place

    def _excepted(self, phrase: Phrase, end: int, depth: int) -> tuple[Phrase, int] | None:
        at = end + 1 + (low(self._tokens, end) == "other" or low(self._tokens, end + 1) == "for")
        if phrase.many is not True:
            return None
        left_out, stop = self._phrase_or_title(at, depth)
        if left_out is None:
            return None
        text = self._line[phrase.start : left_out.end]
        return replace(phrase, text=text, end=left_out.end, excepted=left_out), stop

    def _phrase_or_title(self, at: int, depth: int) -> _Read:
        phrase, end = self._phrase(at, depth=depth + 1)
        if phrase is None and end == at and (phrase := self._bare(at)):
            end = self._end_of(phrase, at)
        return phrase, end

    # Titles without article or kind

    def _bare(self, at: int) -> Phrase | None:
        if not is_plain(self._tokens, at) or low(self._tokens, at) in ADVERBS:
            return None
        if low(self._tokens, at) in ("back", "down", "away", "forward") and not is_plain(self._tokens, at + 1):
            return None  # "bring back the deferred one"
        if (number := self._tokens[at].digits) is not None:
            is_amount = is_plain(self._tokens, at + 1) or low(self._tokens, at + 1) in ("%", ".")
            return None if is_amount else self._made(at, at + 1, Form.ID, ids=(number,), is_bare=True, many=False)
        end = at
        while end - at < 6 and goes_on(self._tokens, at, end) and not (end > at and self._identifiers(end)):
            end += 1
        if low(self._tokens, at) in STATUSES and end == at + 1:
            return None
        words = tuple(token.low for token in self._tokens[at:end])
        return self._made(at, end, Form.NAMED, words=(words,), is_bare=True)

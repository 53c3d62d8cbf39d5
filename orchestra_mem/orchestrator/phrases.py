"""Referring phrases in a line: "it", "the last two", "#12 and #14", "the auth epic's stories", as data.

Grammar alone: what a phrase stands for is found in `references`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestra_mem.orchestrator.phrase_words import (
    ATTRIBUTES,
    DETERMINERS,
    GRAMMAR,
    HAPPENINGS,
    KINDS,
    LISTS,
    MADE,
    MOST_IN_RANGE,
    MOST_WORDS,
    NTH,
    NUMBERED,
    NUMBERS,
    ORDINALS,
    PLURALS,
    POSTPONED,
    PRONOUNS,
    QUANTITY,
    RANGE,
    RELATIVES,
    SELECTORS,
    SPOKEN,
    STATUSES,
    STOPS,
    TWO_WORDS,
    WITHIN,
    Phrase,
    Said,
    tokenise,
)  # fmt: skip
from orchestra_mem.orchestrator.talk import Happening
from orchestra_mem.work_types import WorkStatus


class Reader:
    """Reads the phrases of one line.

    Args:
        line: what was said.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens = tokenise(line)

    def low(self, at: int) -> str:
        """Give the word at a place, "" outside the line."""
        return self.tokens[at].low if 0 <= at < len(self.tokens) else ""

    def phrase(self, at: int) -> tuple[Phrase, int] | None:
        """Read the phrase that begins at a token and the place behind it; None where none begins there."""
        found = self._number(at) or self._choice(at) or self._pronoun(at) or self._noun_phrase(at)
        return self._less(*self._owned(*found)) if found else None

    def _less(self, phrase: Phrase, end: int) -> tuple[Phrase, int]:
        """Read what is left out: "all of them but #12", "everything except the first one"."""
        at = end + (self.low(end) == ",")
        if not phrase.many or self.low(at) not in ("but", "except", "without", "excluding"):
            return phrase, end
        at += 1 + (self.low(at + 1) in ("for", "not"))
        left_out = self.phrase(at) or self.bare(at)
        return (replace(phrase, but=left_out[0]), left_out[1]) if left_out else (phrase, end)

    def _made(self, at: int, end: int, **said: object) -> Phrase:
        start, stop = self.tokens[at].start, self.tokens[end - 1].end
        return replace(Phrase(text=self.line[start:stop], start=start, end=stop), **said)  # type: ignore[arg-type]

    def _number(self, at: int) -> tuple[Phrase, int] | None:
        """Read "#12", "epic five", "task number 14", "12, 13 and 15", "stories 3 to 5"."""
        begin, kind, several = at, None, False
        if self.low(at) in ("the", "issue", "ticket", "item", "issues", "items"):
            at += 1
        if self.low(at) in KINDS and not self.tokens[at].owns:
            kind, several, at = KINDS[self.low(at)], self.low(at) in PLURALS, at + 1
        is_told = kind is not None or at > begin
        while self.low(at) in NUMBERED or (is_told and self.low(at) == "."):
            is_told, at = True, at + 1
        numbered = at > begin and self.low(at - 1) in NUMBERED
        if self.low(begin) == "the" and not kind and not numbered:
            return None
        read = self._cardinal(at, spelt=kind is not None or numbered)
        if read is None or (not is_told and self.low(at) != "#" and self.low(at - 1) in QUANTITY):
            return None
        hashed, position = self.low(at) == "#", read[0][0] if numbered and not kind and self.low(at) != "#" else None
        ids, at = read
        while True:
            link = at + (self.low(at) == ",")
            link += self.low(link) in ("and", "&", "+", "/", "or", ",")
            follows = self._cardinal(link, spelt=False) if link > at and not self.tokens[at - 1].owns else None
            if follows is None or (self.low(link) == "#") != hashed:
                break
            ids, at = (*ids, *follows[0]), follows[1]
        last = self._cardinal(at + 1, spelt=False) if self.low(at) in ("to", "through", "-", "\u2013") else None
        if last and (several or (hashed and self.low(at) == "-")):
            ids, at = (*ids[:-1], *range(ids[-1], min(last[0][0], ids[-1] + MOST_IN_RANGE) + 1)), last[1]
        bare = not is_told and not hashed
        return self._made(begin, at, ids=ids, kind=kind, many=len(ids) > 1, bare=bare, position=position), at

    def _cardinal(self, at: int, *, spelt: bool) -> tuple[tuple[int, ...], int] | None:
        """Read a number, or a range written as one: "12", "#12", "12-14", and where it may be, "forty two"."""
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if token.number is not None:
            return (token.number,), at + 1
        if run := RANGE.fullmatch(token.low):
            first, last = int(run[1]), int(run[2])
            return (tuple(range(first, last + 1)), at + 1) if first < last <= first + MOST_IN_RANGE else None
        tens, _, units = token.low.partition("-")
        number = NUMBERS.get(tens, 0) + (NUMBERS.get(units, 0) if units else 0)
        if not spelt or not number or (units and units not in NUMBERS):
            return None
        at += 1
        if number >= 20 and not units and NUMBERS.get(self.low(at), 99) < 10:
            number, at = number + NUMBERS[self.low(at)], at + 1
        return (number,), at

    def _choice(self, at: int) -> tuple[Phrase, int] | None:
        """Read "one of them": whoever says so has to say which."""
        if self.low(at) not in ("one", "any", "either") or self.low(at + 1) != "of":
            return None
        whole = self.phrase(at + 2)
        return (self._made(at, whole[1], owner=whole[0], part=bool(whole[0].many)), whole[1]) if whole else None

    def _pronoun(self, at: int) -> tuple[Phrase, int] | None:
        """Read "it", "that one", "them all", "both", "all three", "those two"."""
        word = self.low(at)
        if word not in PRONOUNS or (at < len(self.tokens) and self.tokens[at].quoted):
            return None
        many = word not in ("it", "this", "that")
        if word in ("this", "that", "these", "those", "both", "all"):
            following = self.low(at + 1)
            if following == "one" and not many:
                return self._made(at, at + 2), at + 2
            if following == "of":
                if self.low(at + 2) not in ("them", "these", "those"):
                    return None
                return self._made(at, at + 3, many=True, count=2 if word == "both" else None), at + 3
            is_last = not following or following in STOPS or not following[0].isalnum()
            if not is_last and (many or self._has_head(at + 1)):
                return None
        return self._made(at, at + 1, many=many, count=2 if word == "both" else None), at + 1

    def _has_head(self, at: int) -> bool:
        """Tell whether a noun phrase goes on here: "that bcrypt task", not "that over"."""
        said = Said()
        while at < len(self.tokens) and self.low(at)[0].isalnum() and self.low(at) not in STOPS and not said.head:
            said.read(self.low(at), None)
            at += 1
        return said.head

    def _noun_phrase(self, at: int) -> tuple[Phrase, int] | None:
        """Read "the second story", "its failed task", "the one about login", "the last three I started"."""
        is_plural = self.low(at) in PLURALS and self.low(at + 1) in WITHIN
        is_next = self._stands_alone(at)
        is_what = at > 0 and self.low(at) in ("what", "whatever") and self.low(at + 1) in STATUSES
        if is_what:
            return self._made(at, at + 2, statuses=STATUSES[self.low(at + 1)]), at + 2
        if self.low(at) not in DETERMINERS and self.low(at) != "same" and not is_plural and not is_next:
            return None
        begin, said = at, Said()
        if self.low(at) in ("its", "their"):
            said.owner = self._made(at, at + 1, many=None if self.low(at) == "its" else True)
        while at < len(self.tokens) and self.low(at) in DETERMINERS | {"of", "just", "only", "very"}:
            if self.low(at) == "of" and self.low(at + 1) not in DETERMINERS:
                break
            if self.low(at) in ("its", "their") and at > begin:
                said.owner = self._made(at, at + 1, many=None)
            said.determine(self.low(at))
            at += 1
        return self._read_on(begin, at, said)

    def bare(self, at: int) -> tuple[Phrase, int] | None:
        """Read words without a determiner as a phrase: "print labels", "login and signup", "story login"."""
        if at >= len(self.tokens) or (self.low(at) in STOPS and not self.tokens[at].quoted):
            return None
        read = self._read_on(at, at, Said())
        if read is None:
            return None
        return self._owned(replace(read[0], bare=True), read[1])

    def _stands_alone(self, at: int) -> bool:
        """Tell whether a phrase without a determiner begins here: "finish third", "retry failed one", "and third"."""
        word, said = self.low(at), Said()
        is_place = word in ORDINALS or NTH.fullmatch(word) is not None
        if word in ("next", "done", "started") or not (is_place or word in SELECTORS.keys() | STATUSES.keys()):
            return False
        if is_place and (self.low(at - 1) in ("and", "&") or (at and self.low(at + 1) in STOPS | {""})):
            return True
        while self.low(at).isalnum() and self.low(at) not in STOPS and not said.head:
            said.read(self.low(at), self.tokens[at].number)
            at += 1
        return said.head and not said.words

    def title(self, at: int, names: Callable[[Phrase], bool]) -> tuple[Phrase, int] | None:
        """Read the longest run of words from here that names an item, and what it owns: "login's tasks"."""
        read = self.bare(at)
        if read is None or self.low(at) in GRAMMAR or len(self.low(at)) < 3:
            return None
        owner = read[0].owner
        if owner and owner.start == read[0].start and names(owner):
            return read
        ends = [end for end in range(read[1], at, -1) if not owner or end <= at + len(read[0].words) + 1]
        for end in ends:
            words = tuple(piece for token in self.tokens[at:end] for piece in token.low.split())
            phrase = self._made(at, end, words=words, bare=True)
            if names(phrase):
                return phrase, end
        return None

    def _read_on(self, begin: int, at: int, said: Said) -> tuple[Phrase, int] | None:
        """Read modifiers up to the head, and what stands behind it."""
        while at < len(self.tokens) and not said.head:
            token = self.tokens[at]
            if token.quoted:
                said.words += [piece.low for piece in tokenise(token.low) if piece.low.isalnum()]
                said.head = True
            elif (two := TWO_WORDS.get((token.low, self.low(at + 1)))) and not said.count:
                said.statuses, at = two, at + 1
            elif said.position and token.low in ("to", "from") and self.low(at + 1) == "last":
                pass
            elif (
                not token.low[0].isalnum()
                or token.low in STOPS
                or (token.low in DETERMINERS and said.words)
                or len(said.words) >= MOST_WORDS
            ):
                break
            else:
                said.read(token.low, token.number)
            at += 1
            if token.owns:
                break
        if at == begin or not said.says_something:
            return None
        owns = self.tokens[at - 1].owns
        if not owns:
            at = self._behind(at, said)
        if said.select == "same" and not said.head and self.low(at) in ("for", "with"):
            return None  # "the same for 232"
        if said.owner and not said.kind and len(said.words) == 1 and said.words[0] in ATTRIBUTES:
            return replace(said.owner, end=self.tokens[at - 1].end), at
        return self._made(begin, at, **said.fields()), at

    def _behind(self, at: int, said: Said) -> int:
        """Read what stands behind the head: "in progress", "about login", "I just created", "of the epic"."""
        if said.head and (self.low(at), self.low(at + 1)) == ("in", "progress"):
            said.statuses, at = (WorkStatus.IN_PROGRESS,), at + 2
        if said.head and not said.words and self.low(at) in ("about", "with", "called", "named"):
            said.words, at = self._description(at + 1)
        if said.head and not said.words and self.low(at) == "before" and not self.low(at + 1).isalnum():
            said.select = "previous"
            return at + 1
        return self._clause(at, said) or self._whole(at, said)

    def _clause(self, at: int, said: Said) -> int | None:
        """Read "that failed", "we just created"; what any other clause says describes, and may be nowhere."""
        is_name = said.head and at + 1 < len(self.tokens) and self.line[self.tokens[at].start].isupper()
        if not (is_name and self.low(at + 1) not in STOPS) and self.low(at) not in RELATIVES | MADE:
            return None
        for ahead in range(at, min(at + 5, len(self.tokens))):
            word = self.low(ahead)
            if ahead > at and (two := TWO_WORDS.get((word, self.low(ahead + 1)))):
                said.statuses = two
                return ahead + 2
            if word in HAPPENINGS and (ahead > at or word in MADE):
                doers = {self.low(each) for each in range(at, ahead)} & {"i", "we", "you", "just"}
                if word in STATUSES and not doers:
                    said.statuses = STATUSES[word]
                else:
                    said.happening = HAPPENINGS[word]
                if self.low(ahead + 1) in ("first", "last"):
                    said.position, ahead = ORDINALS[self.low(ahead + 1)], ahead + 1
                return ahead + 1
            if word in SPOKEN:
                return ahead + 1 + (self.low(ahead + 1) in ("about", "at", "of"))
            if word not in POSTPONED:
                break
        if said.head:
            words, end = self._description(at + 1, through=True)
            said.words += words
            return end
        return None

    def _description(self, at: int, *, through: bool = False) -> tuple[list[str], int]:
        """Read the words of a description; `through` reads over function words to the end of the clause."""
        while self.low(at) in ("the", "a", "an", "its"):
            at += 1
        words: list[str] = []
        while at < len(self.tokens) and self.low(at)[0].isalnum() and (through or self.low(at) not in STOPS):
            words += self.low(at).split()
            at += 1
        return words, at

    def _whole(self, at: int, said: Said) -> int:
        """Read the whole that a phrase is a part of: "of them", "in the list", "of story 35"."""
        after = at + 1
        while self.low(after) in DETERMINERS:
            after += 1
        if self.low(after) in LISTS and self.low(at) in ("in", "on", "of", "from"):
            said.happening = Happening.LISTED
            return after + 1
        if self.low(at) not in WITHIN or said.owner:
            return at
        if self.low(at) != "of" and not (said.many or said.position is not None):
            return at
        is_attribute = bool(said.words) and said.words[0] in ATTRIBUTES
        whole = self.phrase(at + 1) or (self.bare(at + 1) if said.kind or is_attribute else None)
        if whole is None:
            return at
        said.owner, said.part = whole[0], bool(whole[0].many)
        return whole[1]

    def _owned(self, phrase: Phrase, end: int) -> tuple[Phrase, int]:
        """Read on behind a possessive: "the epic's stories"."""
        if phrase.owner and phrase.owner.end == phrase.end:
            return phrase, end
        if self.low(end - 1) == "epics" and self.low(end) in PLURALS:  # an apostrophe left out
            phrase = replace(phrase, many=False)
        elif not self.tokens[end - 1].owns or self.low(end - 1) in ("it", "that", "this", "they", "what"):
            return phrase, end
        said = Said()
        is_plural = any(token.low in PLURALS for token in self.tokens[:end] if token.start >= phrase.start)
        if phrase.many and phrase.kind and not is_plural:  # "all of the epic's stories"
            said.many, phrase = True, replace(phrase, many=False, count=None)
        said.owner = phrase
        begin = next(at for at, token in enumerate(self.tokens) if token.start == phrase.start)
        read = self._read_on(begin, end, said)
        if read is None:
            return phrase, end
        tells = read[0].kind or read[0].position is not None or read[0].select or read[0].many
        if not tells and read[0].owner is phrase and (not read[0].words or phrase.is_plain):
            return phrase, end  # "this one's urgent", "login's done"
        return self._owned(replace(read[0], bare=phrase.bare), read[1])


def phrases_in(line: str, names: Callable[[Phrase], bool]) -> list[Phrase]:
    """List a line's phrases in order; `names` tells whether words without a determiner name an item."""
    reader, found, at = Reader(line), list[Phrase](), 0
    while at < len(reader.tokens):
        read = reader.phrase(at) or reader.title(at, names)
        if read:
            found.append(read[0])
        at = read[1] if read else at + 1
    return found

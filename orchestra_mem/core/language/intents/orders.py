"""Commands by their parts: a verb of the lexicon with its work, or work with its state, and what may stand around.

What stands in front must be words of courtesy, what stands behind a time, a reason, a blocker, a person or a priority;
so no condition, negation or quotation is ever read over. Nothing that destroys is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from orchestra_mem.core.language.intents.frames import (
    BE,
    LEVEL,
    PERSON,
    STATE,
    WORK,
    Fit,
    fits,
    fits_without_work,
    level_at,
    state_at,
    verb_forms,
)
from orchestra_mem.core.language.intents.headlines import LEVELS, LINK, is_headline
from orchestra_mem.core.language.intents.normalising import QUOTED, Clause
from orchestra_mem.core.language.intents.persons import SENTENCE, person_in
from orchestra_mem.core.language.intents.phrases import (
    clean_phrase,
    is_determined,
    is_named,
    is_of_the_world,
    is_phrase,
    kind_of,
    priority_of,
)
from orchestra_mem.core.language.intents.tails import with_tail
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import KINDS, LEAD

_MOST_WORDS, _MOST_LEAD = 40, 16
_ASKED_BACK = re.compile(
    r"(?:[,:\-!.] )*(?:(?:and|so|but|ok|well) )*(?:should|shall|did|do|does|have|has|had|is|are|am|was|were|will) "
    r"(?:i|we|it(?! (?:possible|ok|okay|time|alright))|that|this|they|the|you|all|any|some|my|our|these|those|#?\d+|"
    r"epic|story|task)\b"
)
# "We should have closed 12": it was not.
_NEVER_DONE = re.compile(
    r"\b(?:would|could|should|might) have (?:[a-z]+ed|done|begun|been|gone|put|taken|given)\b|"
    r"\bwish (?:i|we|you|they|it|he|she|somebody|someone)\b"
)
_TOLD = BE | frozenset(": - = can should must need needs has have ought deserve deserves goes belongs".split())
_NEED = frozenset("needs need wants should must ought deserve deserves requires".split())
_CLOSES = frozenset("close mark tick check cross sign archive shut wrap retire".split())
# With these almost anything could be meant: the work must be named beyond doubt.
_NOT_IN_TITLE = (LEAD | LINK) - {"quick", "time", "high", "right", "team", "first", "next", "last", "login", "-"}
_LIGHT = frozenset(
    """
    be do get go have take make give put leave let hold keep call set see run pass turn throw drop slip wait sit land
    look free clear open pick work start begin bring move push pull send hit ship nail crush own cover bag pay book
    close finish complete continue return raise resolve fire show trust offer
    """.split()
)
_FIXED = {"mine": "me", "nobody": "", "higher": "higher", "lower": "lower", "top": "1", "bottom": "5"}
_ACTIONS = {
    "mine": Action.ASSIGN, "nobody": Action.ASSIGN, "assign": Action.ASSIGN, "higher": Action.PRIORITISE,
    "lower": Action.PRIORITISE, "top": Action.PRIORITISE, "bottom": Action.PRIORITISE, "level": Action.PRIORITISE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    """What an order was read as, and how well: named work before a bare title, then the more words explained."""

    score: tuple[int, int, int]
    intents: tuple[Intent, ...]


def read_idiom(clause: Clause, *, loosely: bool = False) -> tuple[Intent, ...]:
    """Read a verb with words of its own around named work, whatever else it might mean: "put 12 to bed".

    With `loosely` a phrase with an article is enough: "the plumbing has hit a snag".
    """
    found = [each for each in _found(clause) if each.score[0] >= 2 - loosely and each.score[1] > 1]
    return max(found, key=lambda each: each.score).intents if found else ()


def read_order(clause: Clause, *, named: bool = False) -> tuple[Intent, ...]:
    """Read a command of known parts; nothing where a word is left over.

    With `named` the work must be named by more than words of a title.
    """
    found = [each for each in _found(clause) if each.score[0] == 2 or not named]
    return max(found, key=lambda each: each.score).intents if found else ()


def _found(clause: Clause) -> list[_Found]:
    words = tuple(word.text for word in clause.words)
    if not 1 < len(words) <= _MOST_WORDS or _ASKED_BACK.match(clause.text) or _NEVER_DONE.search(clause.text):
        return []
    return [*_done(clause, words), *_achieved(clause, words), *_stated(clause, words)]


_ACHIEVED = frozenset("submitted published lodged filed uploaded released".split())
_ACHIEVED_OFF = frozenset(
    (first, particle)
    for first, particles in (("handed", "in"), ("sent", "off out"), ("posted", "off"), ("mailed", "off"),
                             ("rolled", "out"), ("dropped", "off"))
    for particle in particles.split()
)  # fmt: skip


def _achieved(clause: Clause, words: tuple[str, ...]) -> Iterator[_Found]:
    """Read "finally submitted the ethics form", "we have sent off the seating plan": it is finished with that."""
    start = 0
    while start < len(words) - 2 and words[start] in LEAD:
        start += 1
    if set(words[:start]) & _NEED or set(words[:start]) & {"to", "be", "is", "are", "if", "would", "could", "will"}:
        return
    begin = start + 1 + (words[start : start + 2] in _ACHIEVED_OFF)
    if words[start] in _ACHIEVED or begin > start + 1:
        for end in range(begin + 1, len(words) + 1):
            fit = Fit("finish", end, {WORK: (begin, end)}, 2)
            if is_determined(_text(words, (begin, end))):
                yield from _built(clause, words, fit, "", (begin, end))


def without_lead(clause: Clause) -> Clause:
    """Give a clause without the courtesies in front; "if" is one behind what somebody would like."""
    first, liked = 0, False
    for word in clause.words[:_MOST_LEAD]:
        if word.text not in LEAD and not (liked and word.text == "if"):
            break
        liked = liked or word.text in _LIKED
        first += 1
    while first and clause.words[first - 1].text in ("it", "that", "this", "all", "the", "my", "your", "a", "an"):
        first -= 1
    return clause.between(first)


_LIKED = frozenset(
    """
    like love great nice lovely wonderful grateful glad happy appreciate appreciated pleased prefer mind good kind ask
    wonder wondering help hope fine ok okay
    """.split()
)


def _done(clause: Clause, words: tuple[str, ...]) -> Iterator[_Found]:
    """Read "(could you) wrap up the login story", "we kicked it off yesterday", "Anna will look after 12"."""
    for start in range(min(len(words) - 1, _MOST_LEAD)):
        for verb, what in verb_forms().get(words[start], {}).items():
            for fit in fits(verb, words, start + 1) if what != {"s"} else ():
                if "base" in what or start or _may_be_doing(words, fit, what):
                    surely = not start and "base" not in what and fit.spans[WORK][1] - fit.spans[WORK][0] > 1
                    yield from _built(clause, words, fit, verb, fit.spans[WORK], surely=surely)
        if words[start] not in LEAD:
            break
    yield from _taken(clause, words)


def _may_be_doing(words: tuple[str, ...], fit: Fit, what: frozenset[str]) -> bool:
    """Tell whether a form at the very beginning tells of work: "starting hand hygiene audit now"."""
    work = _text(words, fit.spans[WORK])
    if is_named(work) or ("ing" not in what and is_determined(work)):
        return True
    if "ing" in what:
        return fit.name in ("start", "resume")
    return bool(what & {"past", "done"}) and fit.name == "finish" and fit.spans[WORK][1] - fit.spans[WORK][0] > 1


_DOES = frozenset("have do run lead tackle finish complete cover manage".split())
_WILLING = frozenset(
    "agreed offered volunteered happy promised willing free supposed undertaken consented accepted keen glad".split()
)
# Who only wants something has not got it yet.
_WISHES = frozenset("wants wishes hopes likes plans prefers".split())
_BETWEEN = (LINK | LEAD | _WILLING | {"very"}) - {"look"}


def _taken(clause: Clause, words: tuple[str, ...]) -> Iterator[_Found]:
    """Read "Anna will look after 12", "could Mrs Patel be responsible for it"."""
    first = 0
    while first < len(words) - 2 and words[first] in LEAD:
        first += 1
    for begin in dict.fromkeys((0, first)):
        for end in range(begin + 1, min(begin + 4, len(words) - 1)):
            if words[begin] in LEAD or not _may_take(words, end):
                continue
            said = clause.between(begin, end).said
            if (
                person_in(_text(words, (begin, end)))
                and not SENTENCE.search(said.lower())
                and (person := person_in(said))
            ):
                yield from _taken_by(clause, words, person, end)


def _may_part(word: str) -> bool:
    """Tell whether a word may stand between a person and what they do: "has very sweetly volunteered"."""
    return word in _BETWEEN or (len(word) > 4 and word.endswith("ly"))


def _may_be_deed(words: tuple[str, ...], start: int) -> bool:
    """Tell whether a word that may stand between a person and a deed may be the deed: "be on it", "volunteered for"."""
    return words[start] == "be" or words[start] in _DOES or words[start : start + 2] == ("volunteered", "for")


def _may_take(words: tuple[str, ...], start: int) -> bool:
    """Tell whether a verb comes next, behind what may stand between it and a person."""
    while start < len(words) - 1 and _may_part(words[start]) and not _may_be_deed(words, start):
        start += 1
    return words[start] in verb_forms()


def _taken_by(clause: Clause, words: tuple[str, ...], person: str, start: int) -> Iterator[_Found]:
    while start < len(words) - 1 and _may_part(words[start]):
        if words[start] in _WISHES:
            return
        if _may_be_deed(words, start):
            yield from _taken_at(clause, words, person, start)
        start += 1
    yield from _taken_at(clause, words, person, start)


def _taken_at(clause: Clause, words: tuple[str, ...], person: str, start: int) -> Iterator[_Found]:
    for verb, what in verb_forms().get(words[start], {}).items():
        does = fits("own", words, start + 1) if verb in _DOES and not what <= {"past", "done"} else ()
        for fit in (*fits(verb, words, start + 1), *does):
            work = _text(words, fit.spans[WORK])
            willing = bool(set(words[: start + 1]) & _WILLING)
            if not is_named(work) and not (
                person[:1].isupper() and (willing or fit.weight > (fit.name == "mine")) and is_determined(work)
            ):
                continue
            if person[:1].isupper() and fit.name in ("start", "finish") and what & {"past", "done"}:
                yield from _built(clause, words, fit, verb, fit.spans[WORK])
            if fit.name == "mine":
                for found in _built(clause, words, fit, verb, fit.spans[WORK], known=True):
                    intents = tuple(replace(each, value=person) for each in found.intents[:1])
                    yield _Found(found.score, intents)


def _stated(clause: Clause, words: tuple[str, ...]) -> Iterator[_Found]:
    """Read "12 was put to bed", "the login story: off my plate", "fire breath is super urgent"."""
    first = 0
    while (
        first < len(words) - 1
        and words[first] in LEAD
        and words[first] not in ("it", "that", "this", "the", "all", "my", "your")
    ):
        first += 1
    yield from _state_first(clause, words)
    for start in dict.fromkeys((0, first)):
        has = start > 0 and bool(set(words[:start]) & {"have", "has", "had"})
        for end in range(start + 1, min(len(words), start + 12)):
            after = end
            if has and not is_named(_text(words, (start, end))):
                continue
            named = is_named(_text(words, (start, end)))
            if not named and words[end] not in _TOLD and not is_headline(words, start, end):
                continue
            if not named and is_of_the_world(_text(words, (start, end))):
                continue
            narrated = words[end] in ("was", "were") and not named
            while after < len(words) - 1 and words[after] in LINK:
                for fit, verb in _tells(words, end, after) if not narrated else ():
                    yield from _built(clause, words, fit, verb, (start, end))
                after += 1
            for fit, verb in _tells(words, end, after):
                if not (narrated and fit.name == "block"):
                    yield from _built(clause, words, fit, verb, (start, end))


def _state_first(clause: Clause, words: tuple[str, ...]) -> Iterator[_Found]:
    """Read "done and dusted: story 5"."""
    state = state_at(words, 0)
    if state and state.end < len(words) - 1 and words[state.end] in (":", "-", ","):
        work = (state.end + 1, len(words))
        if is_named(_text(words, work)):
            yield from _built(clause, words, Fit(state.name, len(words), state.spans, state.weight), "", work)


def _tells(words: tuple[str, ...], end: int, at: int) -> Iterator[tuple[Fit, str]]:
    """Yield what is told of work that ends at `end` by the words from `at` on."""
    links = words[end:at]
    if (state := state_at(words, at)) and not set(links) & {"needs", "need", "wants"}:
        yield state, ""
    if (links or words[at] in LEVELS) and (last := level_at(words, at)):
        yield Fit("level", last, {LEVEL: (at, last)}, 1), ""
    for verb, what in verb_forms().get(words[at], {}).items():
        named = bool(links) or is_named(_text(words, (max(0, end - 4), end)))
        ing = "ing" in what and bool(set(links) & {"needs", "need", "deserves", "requires", "wants", "being"})
        base = "base" in what and bool(set(links) & {":", "-", ",", "=", "to"}) and "be" not in links
        begins = "s" in what and named and verb in ("start", "begin", "commence")
        if ("done" in what and named) or ing or base or begins:
            if set(links) & _NEED and verb not in _CLOSES:
                yield from ((fit, verb) for fit in fits_without_work(verb, words, at + 1) if fit.name != "finish")
            else:
                yield from ((fit, verb) for fit in fits_without_work(verb, words, at + 1))


def _built(
    clause: Clause,
    words: tuple[str, ...],
    fit: Fit,
    verb: str,
    work: tuple[int, int],
    *,
    known: bool = False,
    surely: bool = False,
) -> Iterator[_Found]:
    text = _text(words, work)
    name = fit.name
    if name == "so":
        state = state_at(words, fit.spans[STATE][0])
        name = state.name if state else ""
    if name == "mine" and text == QUOTED and "list" in words:
        return  # "put "oil the gate" on the list" is something new
    named = is_named(text)
    if (
        not named
        and not known
        and not _is_given(clause, text, fit)
        and not _may_be_title(text, name, surely=surely or verb not in _LIGHT or fit.weight > 1)
    ):
        return
    made = _made(clause, words, fit, name, clean_phrase(clause.between(*work).said))
    if made is None:
        return
    intents = with_tail(clause, words, fit.end, made)
    if intents:
        yield _Found((2 if named else 1 if is_determined(text) else 0, fit.weight, work[0] - work[1]), intents)


def _is_given(clause: Clause, text: str, fit: Fit) -> bool:
    """Tell whether work without number or kind is given to somebody with a name: "the glazing is down to Pete"."""
    if fit.name != "assign" or PERSON not in fit.spans or not is_determined(text):
        return False
    return text.startswith(("the ", "our ")) and clause.between(*fit.spans[PERSON]).said[:1].isupper()


def _may_be_title(text: str, name: str, *, surely: bool) -> bool:
    """Tell whether a phrase without number or kind may stand for work here."""
    if not is_phrase(text) or name in ("assign", "mine", "nobody") or text.startswith(("my ", "your ", "his ", "her ")):
        return False
    return is_determined(text) or (surely and not set(_WITHIN_TITLE.sub(" ", text).split()) & _NOT_IN_TITLE)


# "testing of the leave module", "clearing at the port"
_WITHIN_TITLE = re.compile(r"(?<=[a-z]) (?:of|for|in|at|on)(?: (?:the|our|a|all))? (?=[a-z])")


def _made(clause: Clause, words: tuple[str, ...], fit: Fit, name: str, target: str) -> Intent | None:
    value = _FIXED.get(name, "")
    if name == "assign":
        if target.lower() in {"one", *KINDS}:
            return None
        value = person_in(clause.between(*fit.spans[PERSON]).said) if PERSON in fit.spans else ""
        if not value:
            return None
    if name == "level":
        if LEVEL not in fit.spans:
            return None
        value = priority_of(_text(words, fit.spans[LEVEL]))
    action = _ACTIONS.get(name) or Action(name)
    named = is_determined(target.lower())
    return Intent(action=action, kind=kind_of(target.lower()), target=target, value=value, sure=1.0 if named else 0.7)


def _text(words: tuple[str, ...], span: tuple[int, int]) -> str:
    return " ".join(words[span[0] : span[1]])

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
    is_level,
    level_at,
    state_at,
    verb_forms,
)
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.persons import SENTENCE, person_in
from orchestra_mem.core.language.intents.phrases import (
    clean_phrase,
    is_determined,
    is_named,
    is_phrase,
    kind_of,
    priority_of,
)
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import KINDS, LEAD, expand

_MOST_WORDS, _MOST_LEAD = 40, 16
_ASKED_BACK = re.compile(
    r"(?:[,:\-!.] )*(?:(?:and|so|but|ok|well) )*(?:should|shall|did|do|does|have|has|had|is|are|am|was|were|will) "
    r"(?:i|we|it(?! (?:possible|ok|okay|time|alright))|that|this|they|the|you|all|any|some|my|our|these|those|#?\d+|"
    r"epic|story|task)\b"
)
# "We should have closed 12": it was not.
_NEVER_DONE = re.compile(r"\b(?:would|could|should|might) have (?:[a-z]+ed|done|begun|been|gone|put|taken|given)\b")
_LINK = BE | frozenset(
    """
    has have had been being be got get gets getting goes go gone going went come comes came falls fell belongs
    needs need wants should must can could may will shall 'll ought now already also still just finally both all really
    actually officially totally completely then again pretty quite very super so rather too apparently sadly
    unfortunately temporarily currently definitely probably seems seem looks look remains remain stays turned
    became becomes stands sits deserves requires
    today yesterday to as : - , = ( well finally at last be like good and it that they hereby i we
    """.split()
)
_TOLD = BE | frozenset(": - = can should must needs needs has have goes belongs".split())
_NEED = frozenset("needs need wants should must ought deserves requires".split())
_CLOSES = frozenset("close mark tick check cross sign archive shut wrap retire".split())
# With these almost anything could be meant: the work must be named beyond doubt.
_NOT_IN_TITLE = (LEAD | _LINK) - {"quick", "time", "high", "right", "team", "first", "next", "last", "login", "-"}
_LIGHT = frozenset(
    """
    be do get go have take make give put leave let hold keep call set see run pass turn throw drop slip wait sit land
    look free clear open pick work start begin bring move push pull send hit ship nail crush own cover bag pay book
    close finish complete continue return raise resolve fire show trust offer
    """.split()
)
_SPARE = frozenset(
    """
    now then today already again too also please thanks thank cheers asap immediately straight right away quickly soon
    finally officially actually after all at last first next for me us good yet , . ! - ) ( there here by way ok okay
    once more this morning afternoon evening week as well you can will would kindly instead fully completely entirely
    totally properly definitely really though yay woohoo hooray phew haha lol tonight just sure everyone team folks
    guys mate finally so we are go and be done with it very much in advance i guess think believe suppose yesterday
    from on ahead up out off down back if not
    """.split()
) - {"if", "not", "and", "down", "back", "out", "off"}
_LEADS_ON = frozenset("in at after for from by and as of with very me us you (".split())
_TIME = re.compile(expand("~TIME"))
_REASON = re.compile(
    r"(?:, |- |\( )?(?:because|since|cause|seeing|given|now that|as|so|in order to|due to|thanks to) (?P<why>\S.*)"
)
_BLOCKER = re.compile(
    r"(?:, |: |- |\( )?(?:by|on|with|for|because of|due to|behind|until|till|pending|over|at|from|after|thanks to|"
    r"owing to|waiting (?:for|on)|"
    r"against|through|:|-|,) (?P<blocker>\S.*?)(?: \))?"
)
_CAUSE = re.compile(
    r"[,:\-(] (?:because |as |since |and )?(?P<why>\S.* (?:is|are|was|were|has|have|had|does|do|did|can|could|will|"
    r"would|\S{3,}ed) .*)"
)
_NEEDED = re.compile(
    r"(?:, |and )?(?:(?:it |which |that )?is )?(?P<how>blocked by|blocked on|waiting for|waiting on|depends on|"
    r"depending on|dependent on) "
    r"(?P<other>\S.*)"
)
_LEVELLED = re.compile(r"(?:, )?(?:with|at|as|and make it|and it is|,)(?: a| an| the)? (?P<level>\S.*)")
_FUTURE = frozenset((Action.START, Action.RESUME))
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


def read_idiom(clause: Clause) -> tuple[Intent, ...]:
    """Read a verb with words of its own around named work, whatever else it might mean: "put 12 to bed"."""
    found = [each for each in _found(clause) if each.score[0] == 2 and each.score[1] > 1]
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
    return [*_done(clause, words), *_stated(clause, words)]


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
                if "base" in what or start or is_named(_text(words, fit.spans[WORK])):
                    yield from _built(clause, words, fit, verb, fit.spans[WORK])
        if words[start] not in LEAD:
            break
    for end in (1, 2):
        said = clause.between(0, end).said
        if len(words) > end + 1 and words[0] not in LEAD and not SENTENCE.search(said) and (person := person_in(said)):
            yield from _taken_by(clause, words, person, end)


def _taken_by(clause: Clause, words: tuple[str, ...], person: str, start: int) -> Iterator[_Found]:
    while start < len(words) - 1 and words[start] in _LINK | LEAD:
        start += 1
    for verb, what in verb_forms().get(words[start], {}).items():
        for fit in fits(verb, words, start + 1):
            if not is_named(_text(words, fit.spans[WORK])):
                continue
            if person[:1].isupper() and fit.name in ("start", "finish") and what & {"past", "done"}:
                yield from _built(clause, words, fit, verb, fit.spans[WORK])
            if fit.name == "mine":
                for found in _built(clause, words, fit, verb, fit.spans[WORK]):
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
    for start in dict.fromkeys((0, first)):
        has = start > 0 and bool(set(words[:start]) & {"have", "has", "had"})
        for end in range(start + 1, min(len(words), start + 12)):
            after = end
            if has and not is_named(_text(words, (start, end))):
                continue
            named = is_named(_text(words, (start, end)))
            if not named and words[end] not in _TOLD:
                continue
            narrated = words[end] in ("was", "were") and not named
            while after < len(words) - 1 and words[after] in _LINK:
                for fit, verb in _tells(words, end, after) if not narrated else ():
                    yield from _built(clause, words, fit, verb, (start, end))
                after += 1
            for fit, verb in _tells(words, end, after):
                if not (narrated and fit.name == "block"):
                    yield from _built(clause, words, fit, verb, (start, end))


def _tells(words: tuple[str, ...], end: int, at: int) -> Iterator[tuple[Fit, str]]:
    """Yield what is told of work that ends at `end` by the words from `at` on."""
    links = words[end:at]
    if (state := state_at(words, at)) and not set(links) & {"needs", "need", "wants"}:
        yield state, ""
    if links and (last := level_at(words, at)):
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


def _built(clause: Clause, words: tuple[str, ...], fit: Fit, verb: str, work: tuple[int, int]) -> Iterator[_Found]:
    text = _text(words, work)
    name = fit.name
    if name == "so":
        state = state_at(words, fit.spans[STATE][0])
        name = state.name if state else ""
    named = is_named(text)
    if not named and not _may_be_title(text, name, surely=verb not in _LIGHT or fit.weight > 1):
        return
    made = _made(clause, words, fit, name, clean_phrase(clause.between(*work).said))
    if made is None:
        return
    intents = _with_tail(clause, words, fit.end, made)
    if intents:
        yield _Found((2 if named else 1 if is_determined(text) else 0, fit.weight, work[0] - work[1]), intents)


def _may_be_title(text: str, name: str, *, surely: bool) -> bool:
    """Tell whether a phrase without number or kind may stand for work here."""
    if not is_phrase(text) or name in ("assign", "mine", "nobody") or text.startswith(("my ", "your ", "his ", "her ")):
        return False
    return is_determined(text) or (surely and not set(text.split()) & _NOT_IN_TITLE)


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


def _with_tail(clause: Clause, words: tuple[str, ...], start: int, intent: Intent) -> tuple[Intent, ...]:
    """Put to an intent what stands behind it; nothing where that is none of what may stand there."""
    last = len(words)
    while last > start and words[last - 1] in _SPARE:
        last -= 1
    while start < last and words[start] in _SPARE - _LEADS_ON and not _TIME.fullmatch(_text(words, (start, last))):
        if _BLOCKER.fullmatch(_text(words, (start, last))) and intent.action is Action.BLOCK:
            break
        start += 1
    if start >= last:
        return (intent,)
    rest = _text(words, (start, last))
    said = clause.between(start, last)
    if match := _NEEDED.fullmatch(rest):
        if not is_named(match["other"]):
            return ()
        action = Action.DEPEND if match["how"].startswith("depend") else Action.BLOCK
        return (intent, Intent(action=action, target="it", other=_said(said, match, "other")))
    if (match := _LEVELLED.fullmatch(rest)) and is_level(match["level"]):
        return (intent, Intent(action=Action.PRIORITISE, target="it", value=priority_of(match["level"])))
    if intent.action in (Action.START, Action.FINISH) and rest.startswith("by ") and person_in(said.between(1).said):
        return (intent,)
    if _TIME.fullmatch(rest):
        if intent.action in _FUTURE or intent.action is Action.DEFER:
            return (replace(intent, action=Action.DEFER, value=_without_lead(said)),)
        return () if intent.action is Action.FINISH else (intent,)
    if intent.action is Action.FINISH and _HOW_DONE.fullmatch(rest):
        return (intent,)
    if intent.action is Action.DEFER and _TIME_AND_WHY.fullmatch(rest):
        return (replace(intent, value=_without_lead(said)),)
    if intent.action is Action.DEFER and (match := _UNTIL.fullmatch(rest)):
        return (replace(intent, value=_said(said, match, "until")),)
    if intent.action is Action.BLOCK and (match := _CAUSE.fullmatch(rest)):
        return (replace(intent, value=_said(said, match, "why")),)
    if intent.action is Action.BLOCK and rest[0] in ":-,(" and len(said.words) > 1:
        why = clean_phrase(said.between(1).said).rstrip(")")
        return (replace(intent, other=why) if is_named(why.lower()) else replace(intent, value=why),)
    if intent.action is Action.BLOCK and (match := _BLOCKER.fullmatch(rest)):
        return (replace(intent, other=_said(said, match, "blocker")),)
    if match := _REASON.fullmatch(rest):
        value = _said(said, match, "why") if intent.action in (Action.DEFER, Action.BLOCK) else intent.value
        return (replace(intent, value=value),)
    return ()


_HOW_DONE = re.compile(
    r"(?:in|after|within|with|at|ahead of|on|despite|thanks to|and|to|for) "
    r"(?!(?:if|not|to|when|unless|it|start|begin|finish|assign|block|move)\b)[^?]+"
)
_TIME_AND_WHY = re.compile(expand(r"(~TIME)(?: ,)? (when|once|until|after|as soon as|because|since|as) .+"))
_UNTIL = re.compile(r"(?:until|till|to|by|for|because of|due to|pending|,|-) (?P<until>\S.*)")


def _without_lead(said: Clause) -> str:
    first = 1 if said.words[0].text in ("until", "till", "to", "by", "for", "on", "into") and len(said.words) > 1 else 0
    return clean_phrase(said.between(first).said)


def _said(clause: Clause, match: re.Match[str], group: str) -> str:
    return clean_phrase(clause.part(match.start(group), match.end(group)).said)


def _text(words: tuple[str, ...], span: tuple[int, int]) -> str:
    return " ".join(words[span[0] : span[1]])

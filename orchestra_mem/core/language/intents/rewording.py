"""The same thing put another way: passives, topics put first, questions within sentences, turned into plain ones.

Only tried where nothing else fits. What cancels or undoes is only ever turned round where somebody says that they
want it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.normalising import Clause, Word
from orchestra_mem.core.language.intents.phrases import is_determined, is_named, is_phrase, kind_of
from orchestra_mem.core.language.intents.verbs import base_of, destructive_verbs, is_verb
from orchestra_mem.core.language.intents.words import fill

_LONGEST = 200
_ADVERBS = r"(?:(?:now|also|please|just|finally|all|both|really|still|then|soon|immediately|quickly|properly) )*"
_WISH = (
    r"(?:i|we) (?:want|wanted|need|needed|wish|prefer|(?:would|will) (?:like|love|prefer|want|need|appreciate))"
    r"(?: for)?"
)
_WANTED = re.compile(
    rf"(?:{_WISH}|(?:what|all) (?:i|we) (?:really |now )?(?:want|need|would like)(?: now)? is(?: for)?|"
    r"have|get|let us (?:have|get)|see(?: to it)?(?: that)?|make sure(?: that)?|ensure(?: that)?|"
    r"it would be (?:\S+ )?\S+(?: if| to (?:have|get|see))?|let) (?P<body>.+)"
)
_PASSIVE = re.compile(
    rf"(?P<item>.+?) (?:(?P<need>needs?|has|have|ought|wants?|is|are|is ready|are ready|is due) {_ADVERBS}to (?:be|"
    rf"get)|"
    rf"(?P<should>should|must|can|shall|had better)(?: {_ADVERBS}(?:be|get))?|(?P<must>needs?|"
    rf"deserves)) {_ADVERBS}(?P<body>.+)"
)
_MAY_IT = re.compile(r"(?:can|could|may) (?P<body>.+)")
_MAY_WORK = re.compile(r"(?:can|could|may|might|shall|would|will) (?!i |we |you |they |there |it |that |this )")
_MOST_SUBJECT = 8
_BEFORE_VERB = frozenset(
    "to be is are get gets was were being now also please just finally all both really still then".split()
)
_WE_DID = re.compile(r"(?:(?:i|we)(?: have)?|have)(?: (?:just|now|already|also|finally|then))* ")
# "I start task 12", "I search refund": only of work with a number or a kind, as "I start the day" is told.
_SEEKS = re.compile(r"(?:search|look for|seek|find) \S")
_DOES = re.compile(
    fill(
        r"(?:start|begin|finish|complete|close|take|open|block|unblock|defer|postpone|assign|rename|add|"
        r"create) (?:.* )?(?:#?\d+|~KIND)\b"
    )
)
_TO_DO = re.compile(
    r"(?:i|we) (?:want|need|would like) (?P<person>\S+) to (?P<rest>(?:do|take|handle|own|work on|tackle|have|"
    r"finish) .+)"
)
_TOPIC = re.compile(
    fill(
        r"(?:for |on |regarding |as for |about |concerning |re )?(?P<item>.{1,80}?)(?P<mark> (?:[:,\-=(]|"
        r"to))+ (?P<rest>\S.*?)(?: \))?"
    )
)
_BARE_TOPIC = re.compile(
    fill(
        r"(?P<item>(?:(?:the )?(?:~KIND) )?#?\d+|it|both|the (?:\S+ ){0,4}?(?:~KIND|"
        r"one)) (?P<rest>\S.*)"
    )
)
_THAT_IS = re.compile(r"(?:that is|that makes|there goes|here is) (?P<item>.{1,60}?) (?P<rest>[a-z]+(?: [a-z]+){0,2})")
_THAT_IS_DONE = re.compile(
    r"(?:that is|there goes|here is|that makes) (?P<item>.{1,60}?) (?:all |now |finally )?(?P<rest>(?:done|"
    r"finished|sorted|closed|complete|completed|shipped|delivered|started|blocked|stuck|unblocked|wrapped|over|parked|postponed|"
    r"out of the way|in the bag|off the list)(?: [a-z]+){0,2})"
)
_INDIRECT = re.compile(
    r"(?P<ask>(?:what|how|where|when|why|who|which(?: \S+)?)(?: far| much| long| many \S+| soon| exactly)?) "
    r"(?P<item>.{1,80}?) (?P<aux>is|are|was|were|has|have|can|should|did|do|does|will) ?(?P<rest>.*)"
)
_INDIRECT_DO = re.compile(
    r"(?P<ask>what|how|where|when|why|which \S+) (?P<item>we|i|you|they|it|the team|#?\d+|.{1,60}?) "
    r"(?P<verb>[a-z]+(?:ed|s)|did|does|made|got|took|went|chose|stands?|put|left|began|kept|wrote|said) ?(?P<rest>.*)"
)
_WHETHER = re.compile(r"whether (?P<item>.{1,80}?) (?P<aux>is|are|was|were|has|have|can|did|does|will) ?(?P<rest>.*)")
_IS_WHAT = re.compile(r"(?:it is )?(?P<ask>what|where|how)(?: is it| it is)? , (?P<item>.+)")
_WHAT_AT_END = re.compile(r"(?P<item>.{1,80}?)(?: ,)? (?:it )?is (?P<ask>what|where|how)")
_OF_WORK = re.compile(r"(?:the )?(?:status|state|progress|priority|owner) of \S")
_STATE_ASKED = re.compile(
    fill(
        r"(?P<item>.{1,60}?)(?: ,)? (?:it is |is it )?(?P<rest>(?:already |still |all )?(?:~DONE|~PROGRESS|~STUCK|"
        r"ready|on track|on hold|free|deferred)(?: yet| already| now)?)"
    )
)
_IT_IS = re.compile(r"(?P<item>.{1,60}?)(?: ,)? (?:it|they) (?P<rest>(?:is|are|has|have|depends?|waits?|needs?) .+)")
_SUBJECTS = frozenset("we i you they it things everything".split())
_PAST = {
    "did": "do", "made": "make", "got": "get", "took": "take", "went": "go", "chose": "choose", "stands": "stand",
    "stand": "stand", "put": "put", "left": "leave", "does": "do",
}  # fmt: skip


def rewordings(clause: Clause, *, asks: bool = False) -> Iterator[Clause]:
    """Yield the ways to put a clause as a plain command or question.

    `asks` is that "tell me" stands before it, or a question mark behind it.
    """
    text = clause.text
    if not clause.words or len(text) > _LONGEST:
        return
    yield from _active(clause, text)
    if asks or not text.startswith("when "):
        yield from _asked(clause, text, asks=asks)
    yield from _about(clause, text)


def _active(clause: Clause, text: str) -> Iterator[Clause]:
    """Turn "12 has to be moved under epic 5" into "move 12 under epic 5"."""
    if match := _WANTED.fullmatch(text):
        yield from _turned(clause.part(match.start("body")), destroy=not text.startswith("it "))
    if match := _MAY_IT.fullmatch(text):
        yield from _turned(clause.part(match.start("body")))
    destroys = any(base_of(word.text, ends=("ed",)) in destructive_verbs() for word in clause.words)
    if (match := _MAY_WORK.match(text)) and not destroys:
        for place in range(1, min(len(clause.words) - 1, _MOST_SUBJECT)):
            item = clause.between(1, place + 1)
            if is_named(item.text):
                end = item.words[-1].end
                yield Clause(clause.line, (*item.words, Word("should", end, end), *clause.words[place + 1 :]))
    if match := _PASSIVE.fullmatch(text):
        verb, *rest = clause.part(match.start("body")).words
        base = base_of(verb.text) or (verb.text if is_verb(verb.text) and not match["need"] else "")
        if base and is_phrase(match["item"]) and (match["need"] or base not in destructive_verbs()):
            yield _with(clause, base, (*_cut(clause, match, "item"), *rest))
    if match := _TO_DO.fullmatch(text):
        yield _put(clause, match, "let", "person", "rest")
    did = clause.part(match.end()) if (match := _WE_DID.match(text)) else clause
    if match and did.words and (_SEEKS.match(did.text) or (_DOES.match(did.text) and is_verb(did.words[0].text))):
        yield did
    base = base_of(did.words[0].text) if did.words else ""
    if base and base not in destructive_verbs():
        yield _with(did, base, did.words[1:])


def _turned(clause: Clause, *, destroy: bool = False) -> Iterator[Clause]:
    """Put the verb first: "the login story (to be) moved under epic 5"."""
    for place, word in enumerate(clause.words):
        base = base_of(word.text, ends=("ed",)) if place else ""
        if not base or (base in destructive_verbs() and not destroy):
            continue
        end = place
        while end > 1 and clause.words[end - 1].text in _BEFORE_VERB:
            end -= 1
        if is_phrase(clause.between(0, end).text):
            yield _with(clause, base, (*clause.words[:end], *clause.words[place + 1 :]))


def _asked(clause: Clause, text: str, *, asks: bool) -> Iterator[Clause]:
    """Turn "how task 7 is going" into "how is task 7 going"."""
    if (match := _INDIRECT.fullmatch(text)) and _is_subject(match["item"]):
        yield _put(clause, match, "", "ask", "aux", "item", "rest")
    for regex in (_IS_WHAT, _WHAT_AT_END):
        if (match := regex.fullmatch(text)) and (is_phrase(match["item"]) or _OF_WORK.match(match["item"])):
            ask, item = _cut(clause, match, "ask"), _cut(clause, match, "item")
            yield Clause(clause.line, (*ask, Word("is", item[0].start, item[0].start), *item))
    if asks and (match := _STATE_ASKED.fullmatch(text)) and is_named(match["item"]):
        yield _put(clause, match, "is", "item", "rest")
    if asks and is_named(text) and kind_of(text):
        yield _with(clause, "status of", clause.words)
    if match := _WHETHER.fullmatch(text):
        yield _put(clause, match, "", "aux", "item", "rest")
    if (match := _INDIRECT_DO.fullmatch(text)) and _is_subject(match["item"]):
        verb = match["verb"]
        base = _PAST.get(verb) or base_of(verb) or verb.removesuffix("s")
        does = "does" if verb.endswith("s") and not verb.endswith("ss") else "did"
        ask, item, rest = (_cut(clause, match, name) for name in ("ask", "item", "rest"))
        place = item[-1].end
        yield Clause(clause.line, (*ask, Word(does, place, place), *item, Word(base, place, place), *rest))


def _is_subject(text: str) -> bool:
    return text in _SUBJECTS or is_phrase(text)


def _about(clause: Clause, text: str) -> Iterator[Clause]:
    """Turn "login story: start" into "start login story", and "12 - done" into "12 is done"."""
    if (match := _IT_IS.fullmatch(text)) and is_named(match["item"]):
        yield _put(clause, match, "", "item", "rest")
    for regex in (_TOPIC, _BARE_TOPIC, _THAT_IS_DONE, _THAT_IS):
        match = regex.fullmatch(text)
        if match is None or not (is_named(match["item"]) or (regex is _THAT_IS_DONE and is_determined(match["item"]))):
            continue
        rest, item = _cut(clause, match, "rest"), _cut(clause, match, "item")
        if regex in (_TOPIC, _BARE_TOPIC) and rest[0].text in ("add", "create", "append", "put", "new", "make"):
            place = item[0].start
            yield Clause(clause.line, (Word("for", place, place), *item, Word(",", place, place), *rest))
        if rest[0].text in destructive_verbs() or base_of(rest[0].text) in destructive_verbs():
            continue
        if is_verb(rest[0].text):
            yield Clause(clause.line, (rest[0], *item, *rest[1:]))
        place = item[-1].end
        yield Clause(clause.line, (*item, Word("is", place, place), *rest))
        if regex is _TOPIC:
            yield Clause(clause.line, (*item, *rest))


def _put(clause: Clause, match: re.Match[str], verb: str, *names: str) -> Clause:
    words = [word for name in names for word in _cut(clause, match, name)]
    return _with(clause, verb, words) if verb else Clause(clause.line, tuple(words))


def _with(clause: Clause, verb: str, words: list[Word] | tuple[Word, ...]) -> Clause:
    start = clause.words[0].start
    return Clause(clause.line, (*(Word(part, start, start) for part in verb.split()), *words))


def _cut(clause: Clause, match: re.Match[str], name: str) -> tuple[Word, ...]:
    start, end = match.span(name)
    while start < end and clause.text[start] == " ":
        start += 1
    return clause.part(start, end).words if start < end else ()

"""What is said to be missing, needed or to be there, put as a plain wish for something new.

"Epic 7 could do with a story", "a task is needed for the roof", "into the lighting epic goes a story named Dimmers".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.new_patterns import COUNTED, NO_PARENT, QUALITY, SINGLE
from orchestra_mem.core.language.intents.normalising import QUOTED, Clause, Word
from orchestra_mem.core.language.intents.phrases import is_named
from orchestra_mem.core.language.intents.verbs import destructive_verbs
from orchestra_mem.core.language.intents.words import KINDS, fill

_NEW = rf"(?P<new>(?:{COUNTED}|{SINGLE}) (?:{QUALITY} )*(?:~KIND)\b.*)"
_ADVERBS = (
    r"(?: (?:still|also|just|currently|really|even|now|definitely|certainly|badly|urgently|probably|"
    r"actually|yet))*"
)
_MISSING = r"(?:needed|required|wanted|missing|lacking|called for|necessary|in order|to be added|to add|desired)"
_ON = r"(?P<rest>(?: (?:for|to|under|in|into|about|called|named|titled|covering|on|as|from|[:,\-]) .*)?)"
_HAVE = re.compile(
    fill(
        rf"(?:we|i|you|they){_ADVERBS} (?:(?:are|am){_ADVERBS} (?:short(?: of| by)?|missing|lacking|down|after|"
        rf"looking for|in need of|going to need|going to want|going to require)|could do with|could use|lack|miss|"
        rf"(?:will|shall|should|ought to|must|have to|need to|had better) (?:need|want|have|get|require|be needing)|"
        rf"require|would want) {_NEW}"
    )
)
_HAVE_NOT = re.compile(
    fill(
        rf"(?:(?:we|i|you|they|there){_ADVERBS} )?(?:(?:do|does) not{_ADVERBS} have|have not{_ADVERBS}(?: got)?|"
        rf"(?:have|has|is|are)(?: got)?{_ADVERBS}(?= no )|is not|are not)(?: no)?"
        r" (?P<new>(?:(?:an?|any) )?(?:~KIND)\b.*)"
    )
)
_MAKE_ONE = re.compile(
    r"(?: yet| so far| at the moment| right now)?(?: ,| -| so| and| ;| :)* (?:(?:please|can|could|would|will|you|"
    r"let us|"
    r"maybe|kindly|just|then|we|i|should|need to|want to) )*(?:add|make|create|open|start|set up|put in|raise|log|"
    r"get|need)(?: me| us)? (?:one|it|that)(?: for (?:me|us|it|that|this))?(?: please)?$"
)
_THERE = re.compile(
    fill(
        rf"(?:(?:i|we) (?:would like|want|wish)(?: for)? |let )?there{_ADVERBS} (?:(?:to|ought to|should|must|needs to|"
        rf"has to|could|shall|will have to|had better|is to|are to){_ADVERBS} )?be{_ADVERBS} {_NEW}"
    )
)
_IS_MISSING = re.compile(
    fill(
        rf"(?P<there>there (?:is|are){_ADVERBS} )?(?P<new>(?:(?:{COUNTED}|{SINGLE}) )?(?:{QUALITY} )*(?:~KIND)\b"
        rf"(?:(?! (?:is|are|was) ) [^,:]+?)??) (?:(?:is|are){_ADVERBS} )?{_MISSING}{_ON}"
    )
)
_INTO = re.compile(
    fill(
        r"(?:also )?(?:in|into|under|to|inside|within|for|on|onto|below|beneath|underneath|as part of) "
        r"(?P<parent>\S.{0,80}?)(?: ,| :| -)? (?:(?:please|also|there|we|i|you|should|must|shall|need|needs|want|"
        r"would like|goes?|belongs?|comes?|fits?|sits?|is|are|be|to be|put|place|have|has|include|missing|needed|still|"
        r"could|can|let us|now|use|do with|just|kindly|require|add|create|make|set up|open) )*"
        rf"{_NEW}"
    )
)
_GIVES = re.compile(
    fill(rf"(?:give|grant|get|hand|equip|provide|supply|attach to|append to) (?P<parent>\S.{{0,80}}?) (?:with )?{_NEW}")
)
_PUT_DOWN = re.compile(
    fill(
        r"(?:put|note|jot|write|log|take|add)(?: (?:this|it|that))? (?:down )?as (?:an?|"
        r"another) (?P<new>(?:new )?(?:~KIND)(?: :| -| ,)? .*)|"
        rf"(?:add|put|append) (?:this |it |the following )?(?:to|on|onto) {NO_PARENT.pattern}(?: also|"
        rf" too)? [:\-] (?P<untitled>\S.*)"
    )
)
_QUOTED = re.compile(
    rf"(?P<verb>[a-z]+) (?P<new>{QUOTED}(?:(?: ,| and| , and)? {QUOTED})*) (?:down |up )?(?:on|onto|in|into|to) "
    rf"{NO_PARENT.pattern}"
)


_NEW_WORDS = frozenset((*KINDS, QUOTED))


def wanted(clause: Clause) -> Iterator[Clause]:
    """Yield the ways to put what is wanted as a plain creation: "create a task for the roof"."""
    text = clause.text
    if match := _PUT_DOWN.fullmatch(text):
        new = clause.part(match.start("new" if match["new"] else "untitled")).words
        end = new[-1].end
        listed = () if match["new"] else (Word("to", end, end), Word("the", end, end), Word("list", end, end))
        yield _create(clause, (*new, *listed), "create" if match["new"] else "add")
    if not _NEW_WORDS.intersection(word.text for word in clause.words):
        return
    for regex in (_HAVE, _THERE):
        if match := regex.fullmatch(text):
            yield _create(clause, clause.part(match.start("new")).words)
    if (match := _HAVE_NOT.fullmatch(text)) and (one := _MAKE_ONE.search(text)):
        yield _create(clause, clause.part(match.start("new"), one.start()).words)
    if match := _IS_MISSING.fullmatch(text):
        yield _missing(clause, match)
    for regex in (_INTO, _GIVES):
        match = regex.fullmatch(text)
        if match and is_named(match["parent"]):
            yield _under(clause, match)
    if (match := _QUOTED.fullmatch(text)) and match["verb"] not in destructive_verbs():
        yield _create(clause, clause.part(match.start("new")).words, "add")


def _create(clause: Clause, words: tuple[Word, ...], verb: str = "create") -> Clause:
    start = words[0].start
    return Clause(clause.line, (*(Word(part, start, start) for part in verb.split()), *words))


def _missing(clause: Clause, match: re.Match[str]) -> Clause:
    new = clause.part(match.start("new"), match.end("new")).words
    rest = clause.part(match.start("rest") + 1).words if match["rest"] else ()
    if rest and rest[0].text == "from":
        return _create(clause, (*new, Word("under", rest[0].start, rest[0].end), *rest[1:]), "add")
    return _create(clause, (*new, *rest))


def _under(clause: Clause, match: re.Match[str]) -> Clause:
    """Put the parent in front, as "to epic 7 add a story" has it."""
    parent = clause.part(match.start("parent"), match.end("parent")).words
    new = clause.part(match.start("new")).words
    return _create(clause, (*parent, Word("add", new[0].start, new[0].start), *new), "to")

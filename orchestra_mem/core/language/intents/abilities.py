"""What one can or cannot go on with, put as a state of the work: "no way to proceed with 41, the gate is locked"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.normalising import Clause, Word
from orchestra_mem.core.language.intents.phrases import is_determined, is_named
from orchestra_mem.core.language.intents.words import fill

_WHO = r"(?:(?:i|we|they|he|she|nobody|no one|you|the \S+|[a-z]+) )?"
_ADVERBS = r"(?:(?:really|even|currently|yet|at all|now|simply|just|still|absolutely|completely|totally|all|also) )*"
_CAN_NOT = (
    r"(?:can not|could not|(?<=nobody )can|(?<=no one )can|can no longer|can hardly|can never|(?:(?:am|are|"
    r"is) )?(?:not able|unable|no longer able) to|"
    r"(?:it is |there is )?(?:not possible|impossible|no way|no chance|no possibility|not feasible) (?:to|of)|"
    r"will not be able to|have no way (?:to|of)|fail to|failing to|struggling to)"
)
_GO_ON = (
    r"(?:(?:continu|proceed|progress|advanc|carry|mov|go|get|push|press|mak|do|work)(?:e|y|ing|ting)?"
    r"(?: (?:any|forward|ahead|on|further|along|anywhere|started|going|more|much|progress|headway|anything|work|"
    r"working|"
    r"today|now))* (?:with|on|in|at)|(?:start|begin|work)(?:ing)? (?:work )?on|(?:start|begin|finish|complete|do|"
    r"touch|close|test|continue)(?:ing)?)"
)
_WORK = r"(?P<work>\S.{0,80}?)"
_WHY = (
    r"(?: (?:right now|now|at the moment|yet|today|any ?more|for now))?"
    r"(?:(?: ,| :| -| \()? ?(?:because|since|as|due to|thanks to|for|owing to|on account of|until|till|unless|"
    r"before|,|:|-|"
    r"\() (?P<why>\S.*?)(?: \))?)?"
)
_STUCK = re.compile(rf"{_WHO}{_ADVERBS}{_CAN_NOT} {_ADVERBS}{_GO_ON} {_WORK}{_WHY}")
_NOTHING = re.compile(
    r"(?:(?:nothing|no work|no progress|nothing more|nothing else) (?:can|will|could|is going to) (?:happen|move|"
    r"be done|be made|proceed|go ahead|go forward|go on)|nothing(?: is|'s) (?:moving|happening|progressing|"
    r"going)(?: ahead| on| "
    r"forward)?|no (?:further )?(?:progress|headway|movement|work|way forward)"
    rf"(?: is)? possible) (?:on|in|with|for) {_WORK}{_WHY}"
)
_STATE = (
    r"(?:stuck|blocked|held up|stalled|jammed|hung up|bogged down|at a standstill|at an impasse|hitting a wall|"
    r"facing (?:a |an )?(?:issues?|problems?|trouble|difficulty|blockers?)|having (?:a |an )?(?:issues?|problems?|"
    r"trouble|"
    r"difficulty|difficulties))"
)
_WE_ARE = re.compile(
    rf"(?:(?:i|we|they|team|the team) )?(?:am|are|got|is) {_ADVERBS}{_STATE} (?:on|with|at|in|"
    rf"by) {_WORK}{_WHY}"
)
_NO_LONGER = re.compile(
    rf"(?:(?:i|we|they) )?(?:am|are|is) {_ADVERBS}(?:no longer|not) {_ADVERBS}{_STATE} (?:on|with|at|in|by) {_WORK}"
    r"(?: any ?more| any longer| now)?"
)
_WAIT_FOR = re.compile(
    rf"(?:(?:i|we|they) )?(?:am|are|still) {_ADVERBS}waiting (?:for|on) (?P<why>\S.{{0,60}}?) (?:on|for|with|in|"
    rf"before) {_WORK}"
)
_LET_GO = re.compile(
    fill(
        r"(?:there is )?(?:nothing|no one|nobody|no blockers?|nothing else|no issues?|no obstacles?) (?:is |"
        r"are )?(?:now |longer )?"
        r"(?:blocking|blocks|block|holding up|holds up|stopping|stops|in the way of|stands in the way of|"
        r"standing in the way of|"
        r"holding back|"
        rf"preventing|delaying|keeping) {_WORK}(?: back| any ?more| any longer| now)?"
    )
)


_SPEAKS_OF_IT = frozenset(
    """
    not able unable possible impossible no nothing nobody stuck blocked held stalled jammed hung bogged standstill
    impasse waiting never hardly fail failing struggling issues problems trouble problem issue difficulty blockers wall
    """.split()
)


def abilities(clause: Clause) -> Iterator[Clause]:
    """Yield what is meant as a state: "41 is blocked because the gate is locked", "210 is unblocked"."""
    text = clause.text
    if not _SPEAKS_OF_IT.intersection(word.text for word in clause.words):
        return
    for regex in (_STUCK, _NOTHING, _WE_ARE):
        match = regex.fullmatch(text)
        if match and is_determined(match["work"]):
            yield _state(clause, match, "is blocked", "because" if match["why"] else "")
    if (match := _WAIT_FOR.fullmatch(text)) and is_named(match["work"]):
        yield _state(clause, match, "is blocked", "by")
    for regex in (_NO_LONGER, _LET_GO):
        match = regex.fullmatch(text)
        if match and is_determined(match["work"]):
            yield _state(clause, match, "is unblocked", "")


def _state(clause: Clause, match: re.Match[str], state: str, lead: str) -> Clause:
    work = clause.part(match.start("work"), match.end("work")).words
    place = work[-1].end
    words = (*work, *(Word(part, place, place) for part in f"{state} {lead}".split()))
    why = clause.part(match.start("why"), match.end("why")).words if lead else ()
    return Clause(clause.line, (*words, *why))

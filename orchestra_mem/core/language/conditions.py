"""What is to come after what: "once casting is done, start costumes", "no printing until the texts are in".

Of two items that are named so the one waits for the other; nothing is started by it.
"""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.normalising import normalise
from orchestra_mem.core.language.intents.types import Action, Intent, Parsed
from orchestra_mem.core.language.mentions import WorkLookup
from orchestra_mem.core.language.naming import namings, numbered, restored

_ONE = r"(?:both |all )?#\d+"
_POINTED = (
    r"it|that|this|them|(?:that|this|the (?:other|first|second|third|last|next)) one|the other (?:two|three)|both"
)


def _some(name: str) -> str:
    return rf"(?P<{name}>{_ONE}(?:(?: ,)?(?: (?:and|&|plus))? {_ONE})*|{_POINTED})"


_BE = r"(?:(?:is|are|has|have|been|was|were|be|gets?|got|being|comes?|goes|all|both|totally|fully|finally|to|really) )*"
_OVER = (
    rf"(?: {_BE}(?:done|finished|complete|completed|ready|over|through|in|up|there|clean|here|back|out|closed|"
    r"live|set up|"
    r"set|settled|sorted|ok|okay|known|green|built|paid|sent|\w+ed|by \w+))?"
)
_MAY = (
    r"(?:has|have|had|to|must|should|can|could|will|would|not|no|be|is|are|only|just|start|started|starts|begin|begins|"
    r"begun|wait|waits|waiting|go|goes|out|done|finished|happen|happens|come|comes|run|proceed|stay|stays|ok|"
    r"possible|and|then|really|make|makes|sense|allowed|makes|before|do|does)"
)
_DO = (
    r"(?:(?:then|we|i|you|they|he|she|can|could|should|may|will|shall|please|only|also|is to|are to|comes?|it "
    r"is|it|the|"
    r"turn|of|for|let us|who) )*"
)
_VERB = (
    r"(?:start|starts|begin|begins|do|go on with|continue with|tackle|work on|proceed with|get going with|go "
    r"ahead with|"
    r"finish|comes?|take on|kick off|get started with|get started on|is next|follows|starting)"
)
_TAIL = r"(?: (?:please|then|too|first|next|is next|is up|comes next|follows|can start|can begin|can go))*"
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?:and|ok|so|but) )*(?:once|when|as soon as|after|the moment) {_some('first')}{_OVER}(?: ,)? {_DO}"
        rf"(?:{_VERB} )?{_some('then')}(?: {_MAY})*{_TAIL}",
        rf"{_some('then')}(?: {_MAY})* ?(?:until|till|once|as soon as|when)(?: after)? {_some('first')}{_OVER}{_TAIL}",
        rf"{_some('then')}(?: {_MAY})+ after {_some('first')}{_OVER}{_TAIL}",
        r"(?:please )?(?:hold (?:on|off)(?: on| with)?|wait with|do not (?:start|begin|do|touch|go on with)|no|"
        r"leave|keep|"
        rf"we can not (?:start|do|begin)|nobody starts) {_some('then')}(?: (?:back|alone|waiting|on hold))? "
        r"(?:until|till|"
        rf"before|unless) {_some('first')}{_OVER}{_TAIL}",
        rf"{_some('then')} (?:needs?|requires?|wants|want)(?: that)? {_some('first')}(?: {_BE}(?:done|finished|"
        r"complete|"
        rf"completed|ready|to be \w+))? first",
        rf"{_some('then')} (?:needs?|requires?)(?: that)? {_some('first')} (?:to )?be (?:done|finished|"
        r"completed?|ready)",
        rf"(?:and |also |but |so )*{_some('first')} (?:must|has to|have to|needs? to|should|is to|are to)(?: be "
        r"\w+| come|"
        rf" happen| go)?(?: done| finished)? before {_some('then')}{_TAIL}",
        rf"(?:we|i|you) (?:need|want|must have|must finish|have to finish|have to do) {_some('first')}{_OVER} before "
        rf"(?:we (?:can )?(?:start|do|begin) |starting |doing |running )?{_some('then')}{_TAIL}",
        rf"(?:first )?{_some('first')} first (?:, )?(?:and )?(?:only )?then {_some('then')} waits",
    )
)
_UNREAL = re.compile(r"\b(?:would|if|maybe|perhaps|might|probably|was|were|said|says|thinks?)\b|\?")


def read_condition(line: str, lookup: WorkLookup) -> Parsed | None:
    """Read that an item waits for another; None where the line does not say so of two.

    Args:
        line: the line.
        lookup: finds items.
    """
    if _UNREAL.search(line.lower()) and not re.search(r"\bwas (?:done|finished)\b", line.lower()):
        return None
    text, said = numbered(line, namings(line, lookup, least=1))
    clause = normalise(text).text.strip(" ,.!")
    for pattern in _PATTERNS:
        found = pattern.fullmatch(clause)
        if found and "#" in found["then"] + found["first"] and found["then"] != found["first"]:
            intent = Intent(action=Action.DEPEND, target=found["then"], other=found["first"])
            return Parsed(intents=(restored(intent, said),), understood=True)
    return None

"""Short clauses about one item, as people write them in a row: "copy went live", "docs: Lena", "owner Hana", "mine".

Items stand as numbers in them and persons as marks, so that only the few words in between are to be read. A clause
without an item is about the one that was named before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orchestra_mem.core.language.intents.phrases import priority_of
from orchestra_mem.core.language.intents.types import Action, Intent

UNSURE = 0.5
"""How sure a reading is that is asked about in any case: not all was understood, or it was not plainly asked for."""
_ORDINAL = "other|first|second|third|fourth|fifth|last|next|failed|new|same"
_ITEM = (
    r"(?P<item>(?:(?:both|all|all two|all three|all four|the two) )?#\d+(?:(?: ,)?(?: and)? #\d+)*|it|that|this|"
    r"(?:that|this) one|them|both(?: of them| \w+s)?|"
    rf"(?:the )?(?:{_ORDINAL})(?: ones?| two| three| four)|the (?:{_ORDINAL})|all of them)"
)
_WHO = r"(?P<who>@\d+|me|mine|myself|i)"
_LEVEL = (
    r"(?P<level>(?:the |a )?(?:most |very |really |super |so |top |high(?:est)? |low(?:est)? )*(?:urgent|critical|"
    r"important|high|highest|low|lowest|medium|normal|priority|prio)(?: (?:priority|prio))?(?: [1-5])?|p[1-5])"
)
_BE = r"(?:(?:is|are|was|were|has|have|had|got|been|being|be|will|'s|:|all|both|now|just|finally|already) )*"
_ENDED = (
    r"(?:done|finished|complete|completed|fixed|signed|shipped|merged|delivered|live|launched|ready|sorted|handled|"
    r"settled|solved|resolved|closed|deployed|published|released|wrapped up|over and done with|gone live|went live|"
    r"(?:went|gone|is|are) (?:out|live|through)|all set|good to go)"
)
# Past forms that tell of no end: all others say of work that it is done, as in "the tiles are laid".
_NO_END = (
    "started|begun|commenced|failed|blocked|delayed|postponed|deferred|paused|parked|cancelled|canceled|rejected|declined|refused|"
    "needed|wanted|required|expected|planned|scheduled|assigned|owned|related|called|named|supposed|tired|stopped|stalled|"
    "ordered|requested|asked|promised|missed|damaged|destroyed|ruined|broken|cracked|changed|moved|discussed|noted|"
    "mentioned|used|limited|interested|worried|confused|concerned|crashed|rescheduled|reopened|returned|listed|added|"
    "created|opened|unblocked|resumed|continued|taken|given|prioritised|prioritized|linked|based|located|said|told|"
    "thought|got|said|behind|involved|held|left|stuck|flooded|burned|burnt|exploded|collapsed|dropped|frozen|renamed|"
    "volunteered|offered|joined|claimed|grabbed|picked|agreed|"
    "confirmed|cleared|announced|praised|criticised|questioned|inspected|viewed|tasted|watched|copied|showed|shared|"
    "explained|described|denied|leaked|expired|jammed|overheated|melted|slipped|sagged|warped|rusted|faded|overflowed|wobbled|doubled|tripled|"
    "increased|decreased|cried|complained|phoned|emailed|visited|smelled|shouted|laughed|rained|snowed|gained|lasted|"
    "looked|happened|seemed|worked|played|waited|answered|liked|loved|hated|tried|checked|remained|stayed|indeed|red|bed"
)
_IRREGULAR = (
    "laid|paid|built|sent|sewn|hung|cut|set|put|bought|written|drawn|sold|made|cleaned|swept|ground|dug|sown|mown|knit|"
    "woven|spun|bound|shot|cast|read|sung|won|brought|caught|done|fed|found|grown|shown|stitched|dyed"
)
_DEED = rf"(?!(?:{_NO_END})\b)(?:[a-z]{{2,}}ed|{_IRREGULAR})(?: (?:up|out|off|in|on|down|over|away|through))?"
_WHEN = (
    r"(?: (?:now|already|then|too|as well|today|yesterday|again|at last|finally|in the end|just now|right now|"
    r"earlier|meanwhile|an hour ago|a minute ago|this morning|this afternoon|last night|(?:on )?(?:mon|tues|"
    r"wednes|thurs|fri|"
    r"satur|sun)day|since (?:\S+ )?\S+|at \d\S*|a (?:day|week) ago|for (?:an?|\d+) \w+|again))*"
)
_HOLDS = r"(?:with|on|for|until|till|because of|because|by|since|as|due to|,|:|-)"


@dataclass(frozen=True, slots=True)
class Read:
    """What a clause says: `intents`, of an item or, where the target is empty, of the one named before; the topic.

    What is `soft` only leads in to what follows: "copy first, start it". What is `idle` says that nothing has come of
    the topic so far: "the gutter not yet".
    """

    intents: tuple[Intent, ...]
    topic: str = ""
    soft: bool = False
    idle: bool = False


_Build = Callable[[Mapping[str, str]], Intent]


def _assign(found: Mapping[str, str]) -> Intent:
    who = found["who"]
    return Intent(action=Action.ASSIGN, target=found.get("item") or "", value=who if who.startswith("@") else "me")


def _level(found: Mapping[str, str]) -> Intent:
    said = found["level"].removeprefix("the ").removeprefix("a ")
    said = re.sub(r"^(?:(?:really|super|so|very) )+", "", said)
    value = priority_of(said) or ("1" if said.startswith(("top", "most")) else "")
    return Intent(action=Action.PRIORITISE, target=found.get("item") or "", value=value)


def _did(action: Action) -> _Build:
    return lambda found: Intent(
        action=action, target=found.get("item") or "", value=(found.get("why") or "").lstrip(" ,:-")
    )


def _reported(found: Mapping[str, str]) -> Intent:
    target = found.get("item") or found["of"]
    return Intent(action=Action.REPORT, target=target, value=found["all"].removeprefix(target).strip())


def _under(found: Mapping[str, str]) -> Intent:
    return Intent(action=Action.ADD, target=found["item"], other=found["other"])


def _dropped(found: Mapping[str, str]) -> Intent:
    return Intent(action=Action.CANCEL, target=found["item"], sure=UNSURE)


_FIRST = re.compile(rf"(?:(?:ok|so|and|then|now|right|well) )*{_ITEM} (?:is |are |comes? |goes? )?first")
_BARE_VERBS = {
    "start": Action.START, "begin": Action.START, "finish": Action.FINISH, "close": Action.FINISH,
    "defer": Action.DEFER, "postpone": Action.DEFER, "park": Action.DEFER, "block": Action.BLOCK,
    "unblock": Action.UNBLOCK,
}  # fmt: skip
_PATTERNS: list[tuple[re.Pattern[str], _Build]] = [
    (re.compile(pattern), build)
    for pattern, build in (
        (
            rf"{_ITEM} (?:(?:is|are|goes|go|to|for|belongs|with|by|gets|on|:|-|=|"
            rf"to be) )*{_WHO}(?: 's)?(?: (?:job|task|thing|turn|baby|business|part|department))?(?: instead)?{_WHEN}",
            _assign,
        ),
        (rf"(?P<who>@\d+)(?: [:-])? {_ITEM}{_WHEN}", _assign),
        (
            rf"{_ITEM} (?:is to be|are to be|will be|shall be|should be|gets?|is going to be|is being|will get) "
            rf"(?:\w+ (?:of )?)?by {_WHO}{_WHEN}",
            _assign,
        ),
        (
            r"(?:@\d+|i|we|she|he|they) (?:hands?|gives?|pass(?:es)?|handed|gave|passed)(?: over| on)? "
            rf"{_ITEM}(?: over| on)?"
            rf" to (?P<who>@\d+|me){_WHEN}",
            _assign,
        ),
        (rf"{_ITEM} {_WHO}", _assign),
        (
            rf"take {_ITEM} (?:off|away from|from) (?:@\d+|him|her|them|me)",
            lambda found: Intent(action=Action.ASSIGN, target=found["item"]),
        ),
        (
            rf"(?:(?:and|ok|so|now|all|yes|good) )*(?:done|finished)(?: with that)?{_WHEN}",
            lambda _: Intent(action=Action.FINISH, target="it"),
        ),
        (rf"{_WHO} \w+s (?:it|them|that)", _assign),
        (r"(?P<who>i) (?:will|can|could|am)(?: (?:do|take|have|doing|taking) (?:it|that))?", _assign),
        (
            rf"{_WHO} (?:(?:will|shall|can|should|could|is|am|are|now) )*(?:takes?|taking|does|do|doing|has|gets|"
            r"handles?|"
            rf"handling|owns?|carr(?:y|ies)|grabs?|on|covers?)(?: on| over| care of| charge of)?(?: {_ITEM})?(?: "
            rf"(?:myself|herself|himself))?{_WHEN}",
            _assign,
        ),
        (rf"(?:owner|assignee|assigned|assign|who|by|for|to|with|is)(?: is| to| :)* {_WHO}{_WHEN}", _assign),
        (rf"{_WHO}(?: instead)?{_WHEN}", _assign),
        (rf"(?:{_ITEM} )?{_BE}(?:(?:a|of|with|at) )?{_LEVEL}{_WHEN}", _level),
        (_FIRST.pattern, lambda found: Intent(action=Action.PRIORITISE, target=found["item"], value="1")),
        (
            rf"(?:(?:@\d+(?: :)?|i|we|she|he|they) )?(?:{_ITEM} )?{_BE}{_ENDED}(?:(?: ,)?(?: and)? {_ENDED})*{_WHEN}",
            _did(Action.FINISH),
        ),
        (rf"{_ITEM} (?:is|are|'s)(?: now| still| just)? being {_DEED}{_WHEN}", _did(Action.START)),
        (
            rf"{_ITEM} {_BE}(?:{_DEED}|came through|went through|ran through|is in|are in|(?:is|are) up)(?: by @\d+)?"
            rf"(?: and {_ENDED})?{_WHEN}",
            _did(Action.FINISH),
        ),
        (
            rf"(?:@\d+|i|we|she|he|they) (?:(?:have|has|had|just|already|finally) )*(?:did|{_DEED}) {_ITEM}{_WHEN}",
            _did(Action.FINISH),
        ),
        (
            rf"{_ITEM} (?:has to|have to|needs? to|must|should|can|will)(?: still)? wait (?:for|on|until|till) "
            r"(?P<other>#\d+)(?: (?:is )?(?:done|finished|first))?",
            lambda found: Intent(action=Action.DEPEND, target=found["item"], other=found["other"]),
        ),
        (rf"{_ITEM} (?:has|have|will have|needs?|must|should|can|may|will)(?: to)? wait{_WHEN}", _did(Action.DEFER)),
        (
            rf"{_ITEM} (?:comes? |only |is |starts? |goes )*after {_ITEM.replace('item', 'other')}",
            lambda found: Intent(action=Action.DEPEND, target=found["item"], other=found["other"]),
        ),
        (rf"{_ITEM} (?:can |may )?(?:goes|go|went|carries|carry) on{_WHEN}", _did(Action.RESUME)),
        (rf"{_ITEM} (?:can |may )?(?:continues?|resumes?|is back on){_WHEN}", _did(Action.RESUME)),
        (
            rf"(?:@\d+|i|we|she|he|they) {_BE}(?:finished|done|completed|fixed|shipped|delivered|closed|merged|"
            rf"through)(?: with)?(?: {_ITEM})?{_WHEN}",
            _did(Action.FINISH),
        ),
        (
            rf"(?:(?:@\d+|i|we|she|he) )?{_BE}(?:started|starting|start|begun|began|beginning|commenced|working|"
            r"on)(?: on|"
            rf" with)? {_ITEM}{_WHEN}",
            _did(Action.START),
        ),
        (
            rf"(?:(?:@\d+|i|we|she|he) )?{_BE}(?:starting|started|begun|on it|under way|underway){_WHEN}",
            _did(Action.START),
        ),
        (
            r"(?:only |just )?(?:(?:the |a |my |our )?(?:second|third|fourth|next|new|another|2nd|3rd|one more) "
            r"(?:try|attempt|run|go|round)"
            rf"(?: of| at| on| for)? )?{_ITEM} {_BE}(?:started|begun|under way|underway|in progress|in the works|"
            r"running|ongoing|wip|rolling|"
            rf"on the go|on its way|on the way|in the making|under construction){_WHEN}",
            _did(Action.START),
        ),
        (
            rf"(?:(?:@\d+|i|we|she|he|they) )?{_BE}(?:working|back)(?: on| at) {_ITEM} again",
            _did(Action.RESUME),
        ),
        (
            r"(?:the |one )?(?:more|another|second|third|new|next) (?:try|attempt|go)(?: (?:of|at|for|on) "
            rf"{_ITEM})?{_WHEN}",
            _did(Action.START),
        ),
        (
            rf"(?:retry|re-?try|redo|re-?run|try|rerun)(?: {_ITEM})?(?: again| once more| another time)?",
            _did(Action.START),
        ),
        (
            rf"(?:{_ITEM} )?{_BE}(?:on hold|on ice|paused|parked|postponed|deferred)(?: (?P<why>{_HOLDS} .+))?{_WHEN}",
            _did(Action.DEFER),
        ),
        (
            rf"{_ITEM}(?: is| are| :)? not (?:now|today|this (?:week|month|quarter|year|sprint|time))",
            _did(Action.DEFER),
        ),
        (
            rf"{_ITEM} {_BE}(?:stuck|stalled|held up|blocked)(?: {_HOLDS} (?P<why>(?!#|it\b|that\b|@).+))?",
            _did(Action.BLOCK),
        ),
        (
            rf"(?:{_ITEM} {_BE}(?:nearly|almost|half|halfway|partly|mostly|\d+ ?%|\d+ percent)"
            rf"(?: {_ENDED}| there| through| way)?|half of {_ITEM.replace('item', 'of')} is {_ENDED}){_WHEN}",
            _reported,
        ),
        (
            rf"{_ITEM} (?:belongs?|goes|go|comes?|is|are|moves?)(?: part)? (?:to|under|into|in|of|below|"
            rf"inside) (?P<other>#\d+){_WHEN}",
            _under,
        ),
        (rf"(?:go|going|carry|press|move)(?: right)? (?:ahead|on|forward) with {_ITEM}{_WHEN}", _did(Action.RESUME)),
        (
            r"we (?:do not|will not|no longer) (?:need|want|do) (?P<item>#\d+)(?: any ?more| after all| any longer)?",
            _dropped,
        ),
        (
            r"(?P<item>#\d+) (?:is|are) (?:off|cancelled|canceled|not needed|no longer (?:needed|wanted|"
            r"necessary)|obsolete|"
            r"not (?:needed|wanted|necessary) any ?more|dropped|called off)(?: now| then| after all)?",
            _dropped,
        ),
        (r"(?:forget|ditch|scrap|kill|drop|cut|bin)(?: about)? (?P<item>#\d+)", _dropped),
        (r"not (?:now|today|this (?:week|month|quarter|year|sprint|time))", _did(Action.DEFER)),
        (rf"(?P<verb>{'|'.join(_BARE_VERBS)})", lambda found: Intent(action=_BARE_VERBS[found["verb"]])),
        (
            rf"(?:put|set|change|move|make|switch|mark|turn) {_ITEM}(?: back)?(?: to| as)? "
            r"(?:pending|open|todo|not started|not begun)(?: again)?",
            _did(Action.UNBLOCK),
        ),
        (rf"put {_ITEM} back", _did(Action.UNBLOCK)),
    )
]
_TOPIC = re.compile(rf"(?:(?:as for|about|regarding|re|on|for|and|ok|right) )*{_ITEM}(?: first| :| then)*")


def read_fragment(text: str) -> Read | None:
    """Read a normalised clause with items as `#1` and persons as `@1`; None where it is no such clause."""
    for pattern, build in _PATTERNS:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        said = {name: value for name, value in found.groupdict().items() if value}
        intent = build({"all": text, **said})
        if intent.action is Action.PRIORITISE and not intent.value:
            continue
        if intent.target.startswith(("first ", "last ")):
            intent = replace(intent, target=f"the {intent.target}")
        return Read((intent,), said.get("item", ""), soft=pattern is _FIRST)
    return None


_IDLE = re.compile(
    rf"(?:(?:and|but|so|ok|only) )*(?:{_ITEM}|(?:@\d+|i|we|she|he|they)(?= ))(?: (?:is|are|was|were|has|have|had|"
    r"do|does|"
    r"did))?(?: still)? not(?: (?:yet|started|begun|done|finished|been|ready|there|quite|even|so far|touched|"
    r"moved|open))*"
)


def read_idle(text: str) -> Read | None:
    """Read a normalised clause that says what has not come about yet; None where it is no such."""
    found = _IDLE.fullmatch(text)
    return Read((), found["item"] or "", idle=True) if found else None


def read_topic_alone(text: str) -> str:
    """What a clause names and says nothing of: "as for photos"; empty where it is none."""
    found = _TOPIC.fullmatch(text)
    return found["item"] if found else ""

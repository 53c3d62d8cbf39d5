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
"""How sure what takes away is, where not all was understood or it was not asked for: it is asked about in any case."""
_ORDINAL = "other|first|second|third|fourth|fifth|last|next|failed|new|same"
_ITEM = (
    r"(?P<item>#\d+(?:(?: ,)?(?: and)? #\d+)*|it|that|this|(?:that|this) one|them|both(?: of them| \w+s)?|"
    rf"(?:the )?(?:{_ORDINAL})(?: one| two| three)|the (?:{_ORDINAL})|all of them)"
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
    "started|begun|failed|blocked|delayed|postponed|deferred|paused|parked|cancelled|canceled|rejected|declined|refused|"
    "needed|wanted|required|expected|planned|scheduled|assigned|owned|related|called|named|supposed|tired|stopped|stalled|"
    "ordered|requested|asked|promised|missed|damaged|destroyed|ruined|broken|cracked|changed|moved|discussed|noted|"
    "mentioned|used|limited|interested|worried|confused|concerned|crashed|rescheduled|reopened|returned|listed|added|"
    "created|opened|unblocked|resumed|continued|taken|given|prioritised|prioritized|linked|based|located|said|told|"
    "thought|got|said|behind|involved|held|left|stuck|flooded|burned|burnt|exploded|collapsed|dropped|frozen|renamed|"
    "volunteered|offered|joined|claimed|grabbed|picked|agreed|"
    "happened|looked|seemed|worked|played|waited|answered|liked|loved|hated|tried|checked|remained|stayed|indeed|red|bed"
)
_IRREGULAR = (
    "laid|paid|built|sent|sewn|hung|cut|set|put|bought|written|drawn|sold|made|cleaned|swept|ground|dug|sown|mown|knit|"
    "woven|spun|bound|shot|cast|read|sung|won|brought|caught|done|fed|found|grown|shown|stitched|dyed"
)
_DEED = rf"(?!(?:{_NO_END})\b)(?:[a-z]{{2,}}ed|{_IRREGULAR})(?: (?:up|out|off|in|on|down|over|away|through))?"
_WHEN = (
    r"(?: (?:now|already|then|too|as well|today|yesterday|again|at last|finally|in the end|just now|right now|"
    r"an hour ago|a minute ago|this morning|last night))*"
)
_HOLDS = r"(?:with|on|for|until|till|because of|because|by|since|as|due to|,|:|-)"


@dataclass(frozen=True, slots=True)
class Read:
    """What a clause says: `intents`, of an item or, where the target is empty, of the one named before; the topic.

    What is `soft` only leads in to what follows: "copy first, start it".
    """

    intents: tuple[Intent, ...]
    topic: str = ""
    soft: bool = False


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
        (r"(?P<who>i) (?:will|can|could|am)(?: (?:do|take|have|doing|taking) (?:it|that))?", _assign),
        (
            rf"{_WHO} (?:(?:will|can|should|could|is|am|are|now) )*(?:takes?|taking|does|do|doing|has|gets|handles?|"
            rf"handling|owns?|carr(?:y|ies)|grabs?|on|covers?)(?: on| over| care of)?(?: {_ITEM})?{_WHEN}",
            _assign,
        ),
        (rf"(?:owner|assignee|assigned|assign|who|by|for|to|with|is)(?: is| to| :)* {_WHO}{_WHEN}", _assign),
        (rf"{_WHO}(?: instead)?{_WHEN}", _assign),
        (rf"(?:{_ITEM} )?{_BE}(?:(?:a|of|with|at) )?{_LEVEL}{_WHEN}", _level),
        (_FIRST.pattern, lambda found: Intent(action=Action.PRIORITISE, target=found["item"], value="1")),
        (
            rf"(?:(?:@\d+|i|we|she|he|they) )?(?:{_ITEM} )?{_BE}{_ENDED}(?:(?: ,)?(?: and)? {_ENDED})*{_WHEN}",
            _did(Action.FINISH),
        ),
        (rf"{_ITEM} {_BE}(?:{_DEED}|came through|is in|are in)(?: and {_ENDED})?{_WHEN}", _did(Action.FINISH)),
        (
            rf"(?:@\d+|i|we|she|he|they) (?:(?:have|has|had|just|already|finally) )*{_DEED} {_ITEM}{_WHEN}",
            _did(Action.FINISH),
        ),
        (
            rf"{_ITEM} (?:has to|have to|needs? to|must|should|can|will)(?: still)? wait (?:for|on|until|till) "
            r"(?P<other>#\d+)(?: (?:is )?(?:done|finished|first))?",
            lambda found: Intent(action=Action.DEPEND, target=found["item"], other=found["other"]),
        ),
        (rf"{_ITEM} (?:has|have|will have|needs?|must|should|can|may|will)(?: to)? wait{_WHEN}", _did(Action.DEFER)),
        (rf"{_ITEM} (?:can |may )?(?:goes|go|went|carries|carry) on{_WHEN}", _did(Action.RESUME)),
        (rf"{_ITEM} (?:can |may )?(?:continues?|resumes?|is back on){_WHEN}", _did(Action.RESUME)),
        (
            rf"(?:@\d+|i|we|she|he|they) {_BE}(?:finished|done|completed|fixed|shipped|delivered|closed|merged|"
            rf"through)(?: with)?(?: {_ITEM})?{_WHEN}",
            _did(Action.FINISH),
        ),
        (
            rf"(?:(?:@\d+|i|we|she|he) )?{_BE}(?:started|starting|start|begun|began|beginning|working|on)(?: on|"
            rf" with)? {_ITEM}{_WHEN}",
            _did(Action.START),
        ),
        (
            rf"(?:(?:@\d+|i|we|she|he) )?{_BE}(?:starting|started|begun|on it|under way|underway){_WHEN}",
            _did(Action.START),
        ),
        (rf"{_ITEM} {_BE}(?:started|begun|under way|underway|in progress|in the works){_WHEN}", _did(Action.START)),
        (
            rf"(?:retry|re-?try|redo|re-?run|try|rerun)(?: {_ITEM})?(?: again| once more| another time)?",
            _did(Action.START),
        ),
        (
            rf"(?:{_ITEM} )?{_BE}(?:on hold|on ice|paused|parked|postponed|deferred)(?: (?P<why>{_HOLDS} .+))?",
            _did(Action.DEFER),
        ),
        (
            rf"{_ITEM}(?: is| are| :)? not (?:now|today|yet|this (?:week|month|quarter|year|sprint|time))",
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


def read_topic_alone(text: str) -> str:
    """What a clause names and says nothing of: "as for photos"; empty where it is none."""
    found = _TOPIC.fullmatch(text)
    return found["item"] if found else ""

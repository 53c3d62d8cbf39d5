"""Questions by what they are about: where no pattern fits, the words that only one kind of question has decide.

A line must be a question by its form, and hold such words; what it asks of is then looked for by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.normalising import Clause, Word
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_named, kind_of
from orchestra_mem.core.language.intents.types import Action, Intent
from orchestra_mem.core.language.intents.words import KINDS, PLURALS, fill

_MOST_WORDS = 40
_FIRST = re.compile(
    r"(?:(?:[,:\-!.] )*(?:and|so|but|ok|well|then|now|also) )*(?:what|which|how|why|where|who|whose|is|are|am|was|"
    r"were|do|does|did|has|have|had|"
    r"can|could|will|should|shall|any|anything|anyone|something)\b"
)
_KNOWING = re.compile(
    r"\b(?:know|tell|explain|show|see|hear|ask|asking|curious|wonder|wondering|find out|remind|check|idea|clue|"
    r"interested|inform|overview|view|summary|picture|sense|update|learn|understand|figure out|look|brief|describe|"
    r"list|"
    r"give me|give us|get me|grateful|appreciate|glad|love|happy|send|provide|like|need|want|question|rundown|recap|"
    r"read out|run me through|walk me through|fill me in|report|"
    r"say|remember|recall|forgot|forget)\b"
)
_SEEING = re.compile(r"\b(?:see|show|hear|know|tell|list|look|view|check|overview)\b")
_NOT_KNOWN = re.compile(r"\bnot (?=(?:understand|know|get|remember|recall|see|sure)\b)")
_ASKED = re.compile(r"\b(?:what|why|how|where|which|who|whose|when|whether)\b")
_SHOWN = re.compile(
    fill(
        r"\b(?:status|state|progress|list|overview|summary|rundown|lowdown|scoop|sitrep|breakdown|gist|recap|history|"
        r"log|reasons?|rationale|reasoning|details|"
        r"next|(?:all |the |every |our |my |open |blocked )+(?:stories|tasks|epics|milestones|subtasks|tickets|"
        r"todos))\b"
    )
)
_NOT_TO_ASK = re.compile(
    r"\b(?:not|never|nobody|unless|if|said|says|told|asked|asks|wants|thinks|wrote|would have|who would|why would|"
    r"would anyone|suppose|imagine|if|create|add|note)\b"
)
_MOST_CORES = 4
_HELP = re.compile(
    r"\b(?:commands?|(?:some|any|need|for|get|me|a little|of|your) help|help (?:me |us )?(?:with|on|about)|manual|"
    r"instructions|syntax|tutorial|capable|capabilities|abilities|features|functions|options)\b|"
    r"\byou (?:can |could |able to |know how to )?(?:do|understand|offer|support|handle|help|accept)\b|\b(?:can|"
    r"could|may|should|do|am|might) i (?:\S+ )?"
    r"(?:ask|say|type|tell|talk|use|write|enter|instruct|operate|order)\b|\bi (?:can|could|may|"
    r"should) (?:\S+ )?(?:ask|say|type|tell you|use|write|enter|do here)\b|"
    r"\bhow (?:does|do) (?:this|it|that|you|things here|the (?:shell|tool|program|thing)) (?:all )?work\b"
)
_NEXT = re.compile(
    r"\b(?:next|(?:should|shall|can|could|do|must|might|ought|would|to|we|i)(?: (?:i|we|you|me|us|to|be|best|better|"
    r"then|now|suggest|recommend|advise|have))* "
    r"(?:tackle|work on|start with|begin with|pick up|do now|do first|take on|get going on|focus on|concentrate on|"
    r"turn to|be doing|be working on|grab|get started on|go for|get on with|look at first|prioritise))\b|"
    r"\b(?:up for grabs|most urgent|most pressing|most important|best use of|to be done|left to do|left for (?:me|"
    r"us)|remains|on my plate|on the agenda|in the queue|"
    r"to keep me busy|something to do|anything to do|needs doing|needs attention|waiting for (?:me|us))\b"
)
_RECENT = re.compile(
    r"\b(?:(?:did|have|has|had|was|were|been|just)\b.*\b(?:done|do|did|doing|happen\w*|chang\w+|finish\w*|creat\w+|"
    r"accomplish\w*|achiev\w+|add\w*|"
    r"clos\w+|start\w*|work\w*|complet\w+|up to|discuss\w*|decid\w+|touched|ship\w*|going on|go wrong|miss\w*|"
    r"leave off|left off|get done|got done)|"
    r"happened|changed since|what changed|last (?:thing|change|command|step|operation|action|few|time|session)\w*|"
    r"latest (?:changes|news|updates|activity|events)|"
    r"recent(?:ly)?|lately|history|log|activity|yesterday|so far today|today so far|while i was (?:away|gone|out)|"
    r"recap|i missed|did i miss|catch (?:me|us) up|up to speed)\b"
)
_STATUS = re.compile(
    r"\b(?:status|state|progress\w*|going|far|along|standing|stands?|done|doing|ready|finished|complete\w*|blocked|"
    r"blocking|holding|stuck|health|shape|track|schedule|"
    r"coming|advanc\w+|latest|news|update|details?|priority|owner|assigned|assignee|working|who|left|remaining|"
    r"missing|open|percent\w*|depends?|wait\w*|much|look\w*|happening|late|behind|started|moving|position|situation|"
    r"up with|deal|rundown|lowdown|scoop|sitrep|skinny|brief\w*|readout|recap|overview|summary|picture|breakdown|"
    r"gist|eta|word)\b"
)
_PROJECT = re.compile(r"\b(?:project|everything|things|overall|whole|we|all|big picture|work|board|team|sprint)\b")
_STANDS = re.compile(
    r"\b(?:status|state|progress|stands?|standing|going|shape|track|schedule|overview|looking|coming along|doing|far|"
    r"situation|picture|health|behind|position)\b"
)
_DESTROYS = re.compile(r"\b(?:cancel|delet|drop|scrap|undo|abandon)\w*")
_IS_IT = re.compile(
    r"(?:(?:and|so|but) )?(?:is|are|was|were|has|have|does|whether)\b"
    r"(?!.*\b(?:to|cancel|cancelled|cancelling|drop|dropped|dropping|delete|deleted|scrap|scrapped|undo|undone|"
    r"mistake)\b)"
)
_WHY = re.compile(
    r"\b(?:why|how come|what for|reasons?(?: (?:why|for|behind|of|that))?|rationale(?: (?:for|behind|of))?|"
    r"reasoning(?: (?:for|behind|of))?|thinking behind|motivation (?:for|behind)|"
    r"what (?:made|led|drove|prompted|caused|convinced|persuaded|motivated) (?:us|me|you|the team|them)(?: to|"
    r" into)?|justification (?:for|of)|grounds (?:for|of)|logic (?:behind|of))(?: (?P<value>\S.*))?"
)
_OURS = re.compile(
    r"\b(?:we|our|us|i|notes?|memory|anything|something|everything|decisions?|records?|items?|team|history|backlog)\b"
)
_FIND = re.compile(
    r"\b(?:said|say|noted?|notes|wrote|written|write|decided?|decisions?|discuss\w*|mention\w*|anything|something|"
    r"everything|agreed?|talk\w*|recorded?|records?|remember|"
    r"information|info|find|search\w*|look\w* for|stored?|hear\w*|heard|conclu\w+|memory|settled?|dig up|come across|"
    r"reference\w*|hits?)\b.*?\b"
    r"(?:about|on|regarding|concerning|mentioning|with|around|for|of|to do with|related to|mentions?|contain\w*|"
    r"matching|says?) (?P<value>(?!me\b|us\b|you\b|it\b|them\b)\S.*)"
)
_STATES = {
    word: value
    for value, listed in {
        "blocked": "blocked stuck stalled", "open": "open outstanding unfinished remaining pending left",
        "done": "done finished completed closed complete",
        "in progress": "progress ongoing underway started running active",
        "deferred": "deferred postponed parked shelved", "cancelled": "cancelled dropped abandoned",
        "urgent": "urgent critical",
        "unassigned": "unassigned free", "overdue": "overdue late", "failed": "failed",
    }.items()
    for word in listed.split()
}  # fmt: skip


def cores(clause: Clause) -> Iterator[Clause]:
    """Yield what is asked within a wish to know: "before lunch I'd like to hear how far along 12 is"."""
    text = clause.text
    found = 0
    for match in [*_ASKED.finditer(text), *_SHOWN.finditer(text)]:
        before = text[: match.start()]
        if not before or found >= _MOST_CORES or _NOT_TO_ASK.search(_NOT_KNOWN.sub("", before)):
            continue
        plural = match.re is _SHOWN and match[0].split()[-1] in PLURALS
        if not (_SEEING if plural else _KNOWING).search(before):
            continue
        found += 1
        core = clause.part(match.start())
        if match.re is _ASKED:
            yield core
        elif core.words:
            place = core.words[0].start
            yield Clause(clause.line, (Word("show", place, place), Word("me", place, place), *core.words))


def read_topic(clause: Clause, *, question: bool) -> tuple[Intent, ...]:
    """Read a question by its words; nothing where it is none, or is of nothing that is known here."""
    text = clause.text
    asks = question or _FIRST.match(text) is not None
    if not asks or len(clause.words) > _MOST_WORDS or _NOT_TO_ASK.search(text):
        return ()
    if (match := _WHY.search(text)) and match["value"] and not re.search(r"\b(?:should|would|could)\b", text):
        value = clean_phrase(clause.part(match.start("value")).said)
        return (Intent(action=Action.WHY, value=value, sure=0.7),)
    ref = _work_in(clause)
    if not ref and _HELP.search(text):
        return (Intent(action=Action.HELP, sure=0.7),)
    if (match := _FIND.search(text)) and _OURS.search(text):
        return (Intent(action=Action.FIND, value=clean_phrase(clause.part(match.start("value")).said), sure=0.7),)
    if ref and (_STATUS.search(text) or _IS_IT.match(text)) and not _DESTROYS.search(text):
        return (Intent(action=Action.STATUS, kind=kind_of(ref.text), target=clean_phrase(ref.said), sure=0.7),)
    if ref:
        return ()
    if _NEXT.search(text) and not _RECENT.search(text):
        return (Intent(action=Action.NEXT, sure=0.7),)
    words = text.split()
    kinds = [word for word in words if word in PLURALS]
    states = list(dict.fromkeys(_STATES[word] for word in words if word in _STATES))
    if kinds and states and not _RECENT.search(text):
        return (Intent(action=Action.LIST, kind=KINDS[kinds[0]], value=" ".join(states), sure=0.7),)
    if _RECENT.search(text) and re.search(r"\b(?:we|i|us|you|team|session|project|changes|here|everything)\b", text):
        return (Intent(action=Action.RECENT, kind=kind_of(text), value=clean_phrase(clause.said), sure=0.7),)
    if _STANDS.search(text) and _PROJECT.search(text):
        return (Intent(action=Action.STATUS, sure=0.7),)
    return ()


def _work_in(clause: Clause) -> Clause | None:
    """Find the first phrase that names work by number or kind: "the epic 3" in "how is going the epic 3"."""
    words = [word.text for word in clause.words]
    for end, word in enumerate(words, start=1):
        number = word.lstrip("#").isdecimal()
        if not number and (
            word not in KINDS or word in PLURALS or (end < len(words) and words[end].lstrip("#").isdecimal())
        ):
            continue
        start = end - 1
        if number and start and words[start - 1] in KINDS:
            start -= 1
        first = (
            next((at for at in range(start, max(-1, start - 5), -1) if words[at - 1] in _DETERMINERS), 0)
            if start
            else 0
        )
        if first and not set(words[first:start]) & _BORDERS:
            start = first - 1
        elif not number:
            continue
        if is_named(" ".join(words[start:end])):
            return clause.between(start, end)
    return None


_DETERMINERS = frozenset("the our this that my your".split())
_BORDERS = frozenset(
    "of on in for from with about is are was were to at by and has have do does did we i you it going".split()
)

"""Where one command ends and the next begins, and what is only said beside one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestra_mem.core.language.intents.courtesies import strip, with_base_verb
from orchestra_mem.core.language.intents.normalising import BULLET, NEWLINE, QUOTED, Clause, Word
from orchestra_mem.core.language.intents.verbs import alternatives, destructive_verbs, is_verb, verbs
from orchestra_mem.core.language.intents.words import fill

_OPENS_LIST = re.compile(
    fill(
        r"(?::|\bfollowing|\b(?:these|following|the) (?:~KIND|things|items))$|\b(?:add|create|make|"
        r"new)\b.*\b(?:these|stories|tasks|epics|subtasks|milestones|todos|tickets)\b"
    )
)


def sentences(clause: Clause) -> Iterator[Clause]:
    """Cut a line where sentences end, at line ends but within lists, and at semicolons."""
    begin, in_list = 0, False
    for place, word in enumerate(clause.words):
        ends = word.text in (".", "!", ";") or (word.text == "?" and place + 1 < len(clause.words))
        if word.text == NEWLINE:
            before = clause.between(begin, place)
            bullet = place + 1 < len(clause.words) and clause.words[place + 1].text == BULLET
            in_list = in_list or before.text.endswith(":") or (bullet and _OPENS_LIST.search(before.text) is not None)
            blank = clause.line[word.start :].lstrip(" \t").startswith("\n\n")
            ends = not in_list or (blank and not bullet)
        if word.text == ";" and not in_list:
            listed, colon, _ = clause.between(begin, place).text.partition(" :")
            in_list = bool(colon) and _OPENS_LIST.search(f"{listed}{colon.strip()}") is not None
        within = word.text == ";" and in_list and not begins_command(clause.between(place + 1, place + 8))
        if ends and place > begin and not within:
            yield clause.between(begin, place + (word.text == "?"))
            begin, in_list = place + 1, False
    if begin < len(clause.words):
        yield clause.between(begin)


_VERBS = alternatives(verbs())
_DESTRUCTIVE = alternatives(destructive_verbs())
_PARTICLES = r"(?: (?:up|off|out|on|over|down|back|away|with|to|work|working|as|in|also|just))*"
_SURE_OBJECT = fill(
    r"(?:it|that|this one|them|these|those|both|all of them|#\d+|\d+|(?:~KIND) #?\d+|the (?:first|second|third|"
    r"fourth|fifth|last|next|other|others|rest|"
    r"same|new|latest|former|latter)(?= (?:one|ones|~KIND|two|three|and|to|as|on|,|\.)| ?$)|the (?:~KIND|one|"
    r"ones))(?= |$)"
)
_OBJECT = fill(rf"(?:{_SURE_OBJECT}|(?:this|its|my|our|their|everything|all|each|every|the)(?= |$)|~KIND(?= |$)|\"q\")")
_NEW = fill(
    r"(?:create|add|make|open|set up|start|put|insert|define|draft|log|write|spin up|include|append|we need|i need|"
    r"we want|i want|file|give it|throw in|new) "
    r"(?:(?:me|us|up|in|also) )?(?:(?:a|an|another|one|two|three|four|five|six|seven|eight|nine|ten|\d+|some|"
    r"a couple of|a few|new|one more|more) )+(?:\S+ ){0,4}?(?:~KIND)\b"
)
_STATES = (
    r"(?:is|are|'s|depends?|needs?|waits?|must|should|can|will|blocks?|goes|comes|has|have|belongs?|requires?|"
    r"relies|took|failed|gets|was|were|stays)\b"
)
_TELLS = (
    r"(?:note (?:that|:|down|on|for)|note to|remember (?:that|:|to)|for the record|fyi|write down|jot down|"
    r"make a note|take a note|record (?:that|the)|we decided|"
    r"we agreed|decision :|note :|add a note|add a comment|leave a (?:note|comment)|keep in mind|let us (?:go with|"
    r"use)|we will (?:use|go with)|we are going with)\b"
)
_ASKS = (
    r"(?:what (?:is|are|did|should|do|happened|about|'s|next)|how (?:is|are|far|many|much|did)|why (?:did|do|is|"
    r"was|are)|show|list|find|tell me|give me the|where (?:are|is|do|did)|which|who (?:is|did|owns)|"
    r"search|is (?:it|that|#?\d|the|~KIND)|are (?:they|we)|status of|when did|remind me|recap|summarise)\b"
)
_STATED = fill(
    rf"(?:(?:it|that|this|they|these|those|both|#\d+|\d+|(?:~KIND) #?\d+|the (?:\S+ )?{{0,4}}?(?:one|ones|~KIND|"
    rf"#\d+)|{_SURE_OBJECT}) (?:also |now |still )?{_STATES}"
    r"|(?:blocked by|blocked on|depends on|depending on|assigned to|waiting for|waiting on) )"
).replace("(?:\\S+ )?{0,4}?", "(?:\\S+ ){0,4}?")
_GIVEN = fill(rf"(?:give|assign|hand|let|have|make|put|pass|get) \S+ (?:on |do |take |handle |work on )?{_SURE_OBJECT}")
_DECLARED = (
    r"(?:i am|i have|i will|we are|we have|i finished|we finished|i started|we started) (?:done|finished|working|"
    r"starting|started|blocked|stuck|completed|now)"
)
_OPENS = re.compile(
    fill(
        rf"(?:(?:{_VERBS}){_PARTICLES} {_OBJECT}|{_NEW}|{_STATED}|{_TELLS}|{_ASKS}|{_GIVEN}|{_DECLARED}"
        r"|(?:undo|quit|exit|continue|resume|help)(?= ?$|[ ,.]))"
    )
)
_SURELY_OPENS = re.compile(
    fill(
        rf"(?:(?!(?:{_DESTRUCTIVE})\b)(?:{_VERBS}){_PARTICLES} {_SURE_OBJECT}|{_NEW}|(?:it|they|both|#\d+|"
        rf"~KIND #?\d+) {_STATES}|{_GIVEN}"
        rf"|(?:blocked by|depends on|assigned to) |{_TELLS}|show |what (?:is|should))"
    )
)
_STATES_WORK = re.compile(_STATED)
_JOINT = re.compile(
    r" (?:, |; |- |\( )?(?P<then>(?:and |but )?(?:then|after that|afterwards|after which|finally|"
    r"next)(?: also)?)(?: ,)? (?=\S)"
    r"|(?P<soft> (?:, and also|, and|and also|, but|, also|, plus|, as well as|, so|, which|and|but|also|plus|,|-|"
    r"\( ?|because|&|as|so|\))) (?=\S)"
)
_HOLDS_TEXT = re.compile(
    fill(
        r"(?:(?:please |just |also |now |so |ok ,? |and |then )*)(?:note|remember|decide|decision|"
        r"we (?:have )?(?:decided|agreed|chose)|write|jot|record|for the record|fyi|log|report|remind|comment|"
        r"keep in mind|"
        r"(?:add|leave|make|put|take|post) (?:a|another|this|the)(?: \S+)? (?:note|comment|remark)|rename|call|"
        r"retitle|i (?:have )?decided)\b"
    )
)
_HOLDS_TITLE = re.compile(
    fill(
        r"(?:create|add|make|new|open|set up|start|put|insert|define|draft|we need|i need|break|split|need|want|"
        r"log|write|file)\b.*(?:~KIND\b.*(?: to | :|for|called|that|about|named|\"q\"| - )|.*:)|~KIND :"
    )
)
_RENAMES = re.compile(r"(?:rename|retitle|call) ")
_MOST_JOINTS = 24
_FIRST_VERB = re.compile(rf"(?:{_VERBS}|create|make|note|undo) \S")
_REFUSES = re.compile(r"(?:do not|never|not) ")
_CARRIED = re.compile(
    fill(
        rf"(?:(?:~KIND) )?(?:#?\d+|{_SURE_OBJECT}) (?:to|as|on|until|by|for|under|with|after|at|high|low|"
        rf"urgent)\b(?! #?\d+ to)"
    )
)
_CARRIES = re.compile(
    r"(?:set|assign|give|mark|move|put|hand|make|rename|block|defer|postpone|bump|raise|lower|push|pass|reassign|"
    r"change)\b"
)


_NEW_TOO = re.compile(
    fill(
        r"(?:an?|another|one more) (?:new )?(?:~KIND) (?:called|named|titled|for|about|under|:|"
        r"\"q\")"
    )
)
_MAKES = re.compile(r"(?:create|add|make|new|open|need|want|insert|put|log|draft|define)\b")


def _carried_verb(left: Clause, begun: str) -> tuple[Word, ...]:
    """Give the verb that the second part has left out: "assign 26 to Bo, 27 to Karl"."""
    words = strip(left).clause.words
    if not words:
        return ()
    if _NEW_TOO.match(begun):
        return words[:1] if _MAKES.match(words[0].text) else ()
    return words[:1] if _CARRIED.match(begun) and _CARRIES.match(words[0].text) else ()


# What goes on about what was just spoken of: "start 12, blocked by 10".
_ABOUT_IT = re.compile(
    r"(?:(?:is |are )?(?:blocked by|blocked on|stuck on|waiting (?:for|on)|assigned to|owned by|depending on)|"
    r"depends on|"
    r"waits for|needs) (?!to\b)\S"
)


def joints(clause: Clause) -> Iterator[tuple[Clause, Clause]]:
    """Yield the ways to cut a sentence in two where the second part begins like a command of its own.

    Within titles and notes only what plainly speaks of other work begins anew: "a task to find and close stale ones" is
    one title, and nothing is ever cancelled out of the middle of one.
    """
    text = clause.text
    for count, match in enumerate(_JOINT.finditer(text)):
        if count >= _MOST_JOINTS:
            return
        left, right = clause.part(0, match.start() + 1), clause.part(match.end())
        begun = with_base_verb(strip(right).clause, ends=("ing",)).text
        before = text[: match.start()]
        if match["then"]:
            holds = _HOLDS_TEXT.match(strip(left).clause.text) or _HOLDS_TITLE.match(strip(left).clause.text)
            opens = _OPENS.match(begun) if holds else _FIRST_VERB.match(begun) or _OPENS.match(begun)
        elif before.endswith(QUOTED):
            opens = _OPENS.match(begun)
        elif _HOLDS_TEXT.match(strip(left).clause.text):
            renames = _RENAMES.match(strip(left).clause.text)
            opens = _SURELY_OPENS.match(begun) if renames or "," in match[0] else None
        elif _HOLDS_TITLE.match(strip(left).clause.text):
            opens = _SURELY_OPENS.match(begun)
        else:
            opens = _OPENS.match(begun)
        if match["soft"] and (verb := _carried_verb(left, begun)):
            yield left, Clause(clause.line, (*verb, *strip(right).clause.words))
        elif before and _ABOUT_IT.match(begun):
            place = right.words[0].start
            yield left, Clause(clause.line, (Word("it", place, place), *right.words))
        elif (opens or _REFUSES.match(begun)) and before:
            yield left, right


_CONDITIONS = (
    r"if|unless|in case|in the event|should it|assuming|provided|supposing|suppose|imagine|as soon as|once|until|till|"
    r"otherwise|hypothetically|pretend|theory|example|e\.g|whether"
)
_SPEECH = (
    r"said|says?|saying|told|tells?|telling|ask(?:s|ed|ing)?|wants|wanted|wonder\w*|suggest\w*|thinks|thought|wrote|"
    r"writ\w+|reads|"
    r"reading|heard|rumou?rs?|apparently|claim\w*|insist\w*|demand\w*|text(?:ed|s|ing)|e?mail(?:ed|s|ing)|shout\w*|"
    r"yell\w*|"
    r"scream\w*|cried|cries|crying|quot(?:e|es|ed|ing)|beg(?:s|ged|ging)|propos\w+|recommend\w*|advis\w+|means?|called|"
    r"named|titled|repl(?:y|ies|ied|ying)|messag\w+|typ(?:e|es|ed|ing)|whisper\w*|sings?|sang"
)
_NEGATIONS = r"not|never|no|nobody|none|without|stop|avoid|refuse|refuses|hardly|neither|nor|against|wrong"
# With these a command cannot be told apart from what is only spoken of.
_UNCLEAR = re.compile(
    rf"\b(?:{_CONDITIONS}|{_SPEECH}|when|whenever|should|would|could|kidding|joking|joke|wait|maybe|perhaps|might|or|"
    r"what|how|except|instead|rather|never mind|forget|actually|before|right \?|never|do not)\b(?! \S+ (?:need|use))|"
    r"\?|\bq\b"
)
_BAD_LEAD = re.compile(
    rf"\b(?:{_CONDITIONS}|{_SPEECH}|when|whenever|joking|kidding|(?:after|before) (?:\S+ ){{1,5}}(?:is|are|has|have|"
    rf"gets|"
    r"ends|finishes))\b|\?"
)
_BAD_REASON = re.compile(rf"\b(?:{_CONDITIONS}|when|whenever|joking|kidding)\b|\?")
_REFUSED_LEAD = re.compile(rf"\b(?:{_NEGATIONS})\b")
_BAD_ASIDE = re.compile(
    rf"\b(?:{_CONDITIONS}|when|whenever|kidding|joking|joke|wait|maybe|perhaps|might|or|except|instead|rather|"
    rf"never mind|"
    r"forget|actually|before|but)\b|\?"
)
_UNNEEDED = re.compile(
    r"\b(?:no longer|not|nobody|no one|never|none of us|no)(?: \S+){0,2} (?:needs?|needed|uses?|used|wants?|wanted|"
    r"relevant|necessary|"
    r"worth \S+|required|happening|works?|sense|cares?|interested|useful|point|use|budget|time|demand|value)\b"
)
_STATES_WHY = re.compile(
    r"\S+ (?:\S+ )*?(?:is|are|was|were|has|have|had|do|does|did|[a-z]{3,}ed|bailed|left|went|got|gone|fell|nobody \S+s|"
    r"no one \S+s)\b"
)
_BORDER = re.compile(
    r" (?:, (?:and |but )?(?:because |since |as |so |for |now that )?|- |\( |: |because |since |so that |so |now that )"
    r"(?=\S)"
)
_BEGINS_COMMAND = re.compile(fill(rf"(?:{_VERBS}){_PARTICLES} (?:{_OBJECT})|{_NEW}|(?:undo|help)\b"))
_BEGINS_ASK = re.compile(rf"{_ASKS}|(?:help|what|how|why|which|who|where)\b")
_MOST_BORDERS = 8


@dataclass(frozen=True, slots=True)
class Beside:
    """A command and what is only said beside it, before or behind.

    `clear` is that nothing in the sentence leaves a doubt, `leads` that the aside stands before, `so` that it says why
    the command follows.
    """

    command: Clause
    aside: Clause
    clear: bool
    leads: bool = False
    so: bool = False


def asides(clause: Clause) -> Iterator[Beside]:
    """Yield the ways to take a command out of what is said beside it: no condition, no question, no quotation."""
    text = clause.text
    clear = _UNCLEAR.search(_UNNEEDED.sub("", text)) is None
    for match in list(_BORDER.finditer(text))[:_MOST_BORDERS]:
        left, right = clause.part(0, match.start() + 1), clause.part(match.end())
        if not right.words or not left.words:
            continue
        if not _BAD_ASIDE.search(right.text) and not begins_command(right):
            yield Beside(left, right, clear)
        refused = ":" in match[0] or "-" in match[0] or "(" in match[0]
        bad = _BAD_REASON if "so " in match[0] else _BAD_LEAD
        if bad.search(left.text) or (refused and _REFUSED_LEAD.search(left.text)):
            continue
        if begins_command(right) or _OPENS.match(strip(right).clause.text) or asks(right):
            yield Beside(right, left, clear, leads=True, so="so " in match[0] or ("," in match[0] and _tells_why(left)))
    yield from _requests_within(clause)
    for place in [match.start() for match in re.finditer(" and ", text)][:_MOST_BORDERS]:
        left, right = clause.part(0, place + 1), clause.part(place + 5)
        if left.words and _STATES_WORK.match(right.text) and not (_BAD_LEAD.search(left.text) or begins_command(left)):
            yield Beside(right, left, clear=False, leads=True)


def _tells_why(lead: Clause) -> bool:
    """Tell whether a lead-in is a statement for which something may be cancelled: "nobody uses it"."""
    refused = _REFUSED_LEAD.search(_UNNEEDED.sub("", lead.text)) is not None
    stated = _STATES_WHY.search(lead.text) is not None or _UNNEEDED.search(lead.text) is not None
    return stated and not refused and not begins_command(lead)


_REQUEST = re.compile(
    r" (?=(?:please|can you|could you|would you|will you|let us|(?:i|we) (?:would like|want|need|have) (?:you )?to|"
    r"it is (?:about |high )?time|(?:i|we) (?:believe|think|guess|suggest)) )"
)


def _requests_within(clause: Clause) -> Iterator[Beside]:
    """Yield what is asked for behind a lead-in without a mark: "the demo went well can you close 12"."""
    for match in list(_REQUEST.finditer(clause.text))[:_MOST_BORDERS]:
        left, right = clause.part(0, match.start() + 1), clause.part(match.end())
        if not left.words or _BAD_LEAD.search(left.text) or _REFUSED_LEAD.search(left.text):
            continue
        if is_verb(strip(right).clause.text.partition(" ")[0]):
            yield Beside(right, left, clear=False, leads=True)


def begins_command(clause: Clause) -> bool:
    """Tell whether a clause begins plainly with a command."""
    return _BEGINS_COMMAND.match(with_base_verb(strip(clause).clause, ends=("ing",)).text) is not None


def asks(clause: Clause) -> bool:
    """Tell whether a clause begins like a question or a wish to see something."""
    return _BEGINS_ASK.match(strip(clause).clause.text) is not None

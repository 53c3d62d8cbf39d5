"""Where one command ends and the next begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.core.language.intents.courtesies import strip, with_base_verb
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.normalising import BULLET, NEWLINE, QUOTED, Clause, Word
from orchestra_mem.core.language.intents.rules import rules
from orchestra_mem.core.language.intents.verbs import alternatives, destructive_verbs, verbs
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
_OBJECT = fill(
    rf"(?:{_SURE_OBJECT}|(?:this|its|my|our|their|her|his|your|everything|all|each|every|the)(?= |$)|"
    r"~KIND(?= |$)|\"q\")"
)
_NEW = fill(
    r"(?:create|add|make|open|set up|start|put|insert|define|draft|log|write|spin up|include|append|we need|i need|"
    r"we want|i want|file|give it|throw in|new) "
    r"(?:(?:me|us|up|in|also) )?(?:(?:a|an|another|one|two|three|four|five|six|seven|eight|nine|ten|\d+|some|"
    r"a couple of|a few|new|one more|more) )+(?:\S+ ){0,4}?(?:~KIND)\b|new (?:~KIND)\b(?! (?:is|are|was)\b)"
)
_STATES = (
    r"(?:is|are|'s|depends?|needs?|waits?|must|should|can|will|blocks?|goes|comes|has|have|belongs?|requires?|"
    r"relies|took|failed|gets|was|were|stays)\b"
)
_TELLS = (
    r"(?:note (?:that|:|down|on|for)|note to|remember (?:that|:|to)|for the record|fyi|write down|jot down|"
    r"make a note|take a note|record (?:that|the)|we decided|"
    r"we agreed|decision :|note :|add a note|add a comment|leave a (?:note|comment)|keep in mind|let us (?:go with|"
    r"use)|we will (?:use|go with)|we are going with)(?= |$)"
)
_ASKS = (
    r"(?:what (?:is|are|did|should|do|happened|about|'s|next)|how (?:is|are|far|many|much|did)|why (?:did|do|is|"
    r"was|are)|show|list|find|tell me|give me the|where (?:are|is|do|did)|which|who (?:is|did|owns)|"
    r"search|is (?:it|that|#?\d|the|~KIND)|are (?:they|we)|status of|when did|remind me|recap|summarise)\b"
)
_STATED = fill(
    rf"(?:(?:it|that|this|they|these|those|both|#\d+|\d+|(?:~KIND) #?\d+|the (?:\S+ )?{{0,4}}?(?:one|ones|~KIND|"
    rf"#\d+)|{_SURE_OBJECT}) (?:also |now |still )?{_STATES}"
    r"|(?:blocked by|blocked on|depends on|depending on|assigned to|waiting for|waiting on) "
    r"|(?:(?:~KIND) )?#?\d+ (?:~DONE|~STUCK|~PROGRESS|on hold)(?= ?$| [,;:.!\-]))"
).replace("(?:\\S+ )?{0,4}?", "(?:\\S+ ){0,4}?")
_GIVEN = fill(rf"(?:give|assign|hand|let|have|make|put|pass|get) \S+ (?:on |do |take |handle |work on )?{_SURE_OBJECT}")
_DECLARED = (
    r"(?:i am|i have|i will|we are|we have|i finished|we finished|i started|we started) (?:done|finished|working|"
    r"starting|started|blocked|stuck|completed|now)"
)
OPENS = re.compile(
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
_NUMBERED = fill(rf"{_PARTICLES} (?:(?:~KIND) )?#?\d+(?= |$)")
_OPENS_ON_NUMBER = re.compile(rf"(?:{_VERBS}){_NUMBERED}")
_OPENS_NUMBERED = re.compile(rf"(?!(?:{_DESTRUCTIVE})\b)(?:{_VERBS}){_NUMBERED}")
STATES_WORK = re.compile(_STATED)
_JOINT = re.compile(
    r" (?:, |; |- |\( )?(?P<then>(?:and |but )?(?:then|after that|afterwards|after which|finally|"
    r"next(?! \?))(?: also)?)(?: ,)? (?=\S)"
    r"|(?P<soft> (?:,? ?which means(?: that)?|, meaning(?: that)?|, and also|, and|and also|, but|, also|, plus|"
    r", as well as|, so|, which|and|but|also|plus|,|-|"
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
        r"log|write|file)\b.*(?:~KIND\b.*(?: to | :|for|called|that|about|named|\"q\"| - )|.*:)|~KIND :|"
        r"(?:another|one more|an extra|an additional) (?:~KIND)\b"
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


# A verb alone, behind what names the work: "nobody owns 30 anymore, unassign", "nailed 12, mark done, next?".
_BARE = re.compile(
    fill(
        r"(?P<verb>unassign|close|reopen|unblock|finish|complete|start|defer|postpone|park|deprioritise|escalate|"
        r"mark(?= (?:as )?(?:~DONE|~PROGRESS|~STUCK)))(?= ?$| ,| (?:as )?(?:~DONE|~PROGRESS|~STUCK)(?= ?$| ,))"
    )
)
_NAMES = re.compile(fill(r"#?\d|(?:the|this|that|our|my) (?:\S+ ){0,4}?(?:~KIND)\b"))
_PARTS = re.compile(r"[,;-]|\b(?:and|then|so)\b")


_NEXT = re.compile(r"(?:what is |whats )?next(?: up)? \?")


def with_it(before: Clause, clause: Clause) -> Clause | None:
    """Give a verb alone its object, where what stands before names the work: "nobody owns 30 anymore, unassign"."""
    plain = strip(clause).clause
    match = _BARE.match(plain.text)
    if match is None or not _NAMES.search(before.text):
        return None
    count = clause.words.index(plain.words[0]) + match["verb"].count(" ") + 1
    place = clause.words[count - 1].end
    return Clause(clause.line, (*clause.words[:count], Word("it", place, place), *clause.words[count:]))


_TAKES_IT = re.compile(
    r"(?:and )?(?!(?:this|that|it|which|what|who)\b)[^ ,:]+(?: [^ ,:]+)? (?:(?:will|can|should|shall|is going to|"
    r"would|could|gladly) )*"
    r"(?:takes?|does|do|owns?|handles?|gets?|has|have|picks? up|takes? over|takes? on|runs? with|be on|on|doing|"
    r"taking) "
    r"(?:it|this|that|them|this one)(?: up| on| over)?(?: please| then| now)?"
)


_NUMBER_ALONE = re.compile(fill(r"(?:(?:~KIND) )?#?\d+"))
_LEVEL = re.compile(
    fill(
        r"(?:(?:say|like|maybe|so|i would say) )?(?:with )?(?:a )?(?:(?:~LEVEL) (?:priority|prio)|(?:priority|"
        r"prio) (?:~LEVEL|\d)|urgent|critical|p\d)"
    )
)


def _may_open(begun: str) -> bool:
    """Tell whether words may begin a command or a question, if what follows is understood."""
    word, _, behind = begun.partition(" ")
    if behind.partition(" ")[0] in _TAKES or _HAS.match(begun):
        return True
    named = word.lstrip("#").isdecimal() or word in _OF_WORK
    return word in rules().openers or word in verb_forms() or named or _BEGINS_ASK.match(begun) is not None


_REASONS = re.compile(r"because|\bas\b|\bso\b|which|\(|\)")
_TAKES = frozenset("takes gets owns handles does leads will should can".split())
_HAS = re.compile(fill(r"\S+ (?:has|picks up) (?:(?:~KIND) )?#?\d+"))
_OF_WORK = frozenset(
    "it that this both they all the our my these those epic story task milestone subtask ticket".split()
)


def joints(clause: Clause) -> Iterator[tuple[Clause, Clause, bool]]:
    """Yield the ways to cut a sentence in two, and whether the second part plainly begins a command of its own.

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
        holds = _HOLDS_TEXT.match(strip(left).clause.text) or _HOLDS_TITLE.match(strip(left).clause.text)
        if match["then"]:
            opens = OPENS.match(begun) if holds else _FIRST_VERB.match(begun) or OPENS.match(begun)
        elif before.endswith(QUOTED):
            opens = OPENS.match(begun)
        elif _HOLDS_TEXT.match(strip(left).clause.text):
            renames = _RENAMES.match(strip(left).clause.text)
            concludes = match[0].strip(" ,") == "so" and ("decided" in before or "agreed" in before)
            opens = _SURELY_OPENS.match(begun) if renames or "," in match[0] else _OPENS_NUMBERED.match(begun)
            opens = opens or (_OPENS_ON_NUMBER.match(begun) if concludes else None)
        elif _HOLDS_TITLE.match(strip(left).clause.text):
            opens = _SURELY_OPENS.match(begun)
        else:
            opens = OPENS.match(begun)
        if match["soft"] and (verb := _carried_verb(left, begun)):
            yield left, Clause(clause.line, (*verb, *strip(right).clause.words)), True
        elif match["then"] and before and _NUMBER_ALONE.fullmatch(begun):
            yield left, Clause(clause.line, (*strip(left).clause.words[:1], *strip(right).clause.words)), True
        elif before and _LEVEL.fullmatch(begun):
            place = right.words[0].start
            lead = (Word(word, place, place) for word in ("set", "it", "to"))
            yield left, Clause(clause.line, (*lead, *strip(right).clause.words)), True
        elif before and not holds and _PARTS.search(match[0]) and (done := with_it(left, right)):
            yield left, done, True
        elif (before and _NEXT.fullmatch(right.text)) or (before and holds and _TAKES_IT.fullmatch(right.text)):
            yield left, right, True
        elif before and _ABOUT_IT.match(begun):
            place = right.words[0].start
            yield left, Clause(clause.line, (Word("it", place, place), *right.words)), True
        elif (opens or _REFUSES.match(begun)) and before:
            yield left, right, True
        elif (
            before
            and not holds
            and not _REASONS.search(match[0])
            and (_may_open(begun) or "then" in match[0] or "also" in match[0] or "but" in match[0])
        ):
            yield left, right, False


_BEGINS_COMMAND = re.compile(fill(rf"(?:{_VERBS}){_PARTICLES} (?:{_OBJECT})|{_NEW}|(?:undo|help)\b"))
_BEGINS_ASK = re.compile(rf"{_ASKS}|(?:help|what|how|why|which|who|where|bye|goodbye|quit|exit)\b")


def begins_command(clause: Clause) -> bool:
    """Tell whether a clause begins plainly with a command."""
    return _BEGINS_COMMAND.match(with_base_verb(strip(clause).clause, ends=("ing",)).text) is not None


def asks(clause: Clause) -> bool:
    """Tell whether a clause begins like a question or a wish to see something."""
    return _BEGINS_ASK.match(strip(clause).clause.text) is not None


def tells(clause: Clause) -> bool:
    """Tell whether a clause says something of those who speak, and asks nothing: "we are ready"."""
    return re.match(r"(?:i|we|you|they|everyone|everything|it|that|this) ", strip(clause).clause.text) is not None


def follows(left: Clause, right: Clause) -> bool:
    """Tell whether the second of two parts is said to follow from the first: "…, so could you …"."""
    line = left.line[left.words[-1].end : right.words[-1].end] if left.words and right.words else ""
    return re.match(r"[ ,;]*(?:and )?(?:so|therefore|which means|hence|thus)\b", line) is not None

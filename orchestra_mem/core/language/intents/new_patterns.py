"""The patterns of what is to be new: how it begins, what stands around its title."""

from __future__ import annotations

import re
from functools import cache

from orchestra_mem.core.language.intents.normalising import QUOTED
from orchestra_mem.core.language.intents.words import fill

MAKE = (
    "create|make|add|new|define|draft|introduce|raise|insert|put in|put|spin up|throw in|write up|generate|prepare|"
    "register|enter|append|include|attach|set up|log|file|track|build|add in|establish|bring in|stick|slot in|set|"
    "open up|record|spawn|produce|invent|put down|note down|jot down|create me|make up|submit|form|initiate|stub out|"
    "outline|lay out|sketch out|sketch|map out|pencil in|queue up|queue|post|schedule|formulate|get|give|"
    "plan out|toss in|draw up|work up|write out|knock up|whip up|come up with|think up|put together"
)
WISH = (
    "start|open|begin|plan|kick off|write|need|want|we need|i need|we want|i want|get|put|give|have|let us have|"
    "we should have|make sure there is|ensure there is|see that there is|we forgot|i forgot|i would like|"
    "we would like|we will need|i will need|would like|we also need|i also need|"
    "we are going to need|we are missing|there should be|there must be|there needs to be|there has to be|launch|"
    "we could use|could use|could do with|"
    "i want to have|how about|what about|go for|can i have|can we have|can i get|may i have|could i have|could we have|"
    "could i get|can we get|can you get"
)
COUNTED = (
    r"(?:\d{1,4}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|a couple of|"
    r"a couple|a few|some|"
    r"several|a dozen|a pair of|a bunch of|multiple|a number of|the following|these|more|a series of|a list of|"
    r"a set of|"
    r"(?:the|these|those) (?:following )?(?:\d{1,3}|two|three|four|five|six))"
)
SINGLE = r"(?:a|an|another|one more|one|yet another|a second|a third|a further|this|the following)"
QUALITY = (
    r"(?:new|more|extra|additional|further|quick|small|big|simple|follow-up|followup|follow up|separate|single|"
    r"short|other|"
    r"different|top-level|top level|fresh|brand new|brand-new|little|large|empty|blank|child|sub|proper|dedicated|nice|"
    r"tiny|of the|of|last|second|third|following|product|project|dev|development|work|quick little|standalone|real)"
)
CONTINUED = (
    r"(?:(?:and |with |plus |including |containing |that has |which has |having |consisting of |made of |along with |"
    r"(?:and )?(?:under|in|below|inside|within|beneath) it (?:, |also |add |put )*)|(?=(?:stories|tasks|subtasks) :))"
)


@cache
def heads() -> dict[str, re.Pattern[str]]:
    """Give the ways in which what is new begins, in the order in which they are tried."""
    count = rf"(?P<count>{COUNTED}|{SINGLE}|the)"
    wished = rf"(?P<count>{COUNTED}|{SINGLE}|new|more|extra|further|additional)"
    middle = rf"(?:(?:{QUALITY}|(?P<level>~LEVEL)(?:[ -](?:priority|prio|importance))?) )*"
    kind = r"(?P<kind>~KIND)\b(?! #?\d+(?: |$)(?!:|called|named))"
    before = (
        r"(?P<before>(?:(?!(?:for|to|called|named|titled|under|in|about|with|of|on|that|into|from|as|is|are|"
        r":|,)(?= )|:)\S+ ){1,6}?)"
    )
    listed = (
        r"(?P<before>(?:(?!(?:for|to|called|named|titled|under|in|about|with|of|on|that|into|from|as|is|are|"
        r":)(?= )|:)\S+ ){1,12}?)"
    )
    made = {
        "make": rf"(?:{MAKE})(?: (?:me|us|up|in|also|just))* (?:{count} )?{middle}{kind}",
        "wish": rf"(?:{WISH})(?: (?:me|us|also|just|have|to have))* {wished} {middle}{kind}",
        "one": rf"(?P<count>{SINGLE}) (?:{QUALITY} )*{kind}(?= (?:for|about|to|called|named) )",
        "idea_for": r"(?:(?:i|we) have(?: got)? )?(?:an? |my |another )?(?:new )?(?:idea|suggestion|proposal|"
        r"wish) for an? (?:new )?(?P<kind>~KIND)",
        "idea": r"(?:(?:a|one|another|new) )?(?P<kind>~KIND) (?:idea|request|suggestion|proposal|wanted|"
        r"to add)(?= (?:[:\-,]|for) )",
        "bare": rf"(?:{count} )?{middle}{kind}(?= (?:[:\-]|called|named|titled|\"q\")| (?:for|under|in|on|to|of|below|"
        r"beneath|inside|within|into) .+ :| (?:for|under|in|of|below|inside) (?:(?:~KIND) )?#?\d+ -)",
        "new": (
            rf"(?:(?:{count} )?(?:new|more|another|extra|additional|further|one more|"
            rf"follow-up) (?:{QUALITY} )*){kind}"
        ),
        "make_before": rf"(?:{MAKE})(?: (?:me|us|up|in|also|just))* (?:{count} )?{middle}{listed}{kind}",
        "again": rf"(?:{MAKE}|{WISH})(?: me| us)? (?:another|yet another|a new|a second|a third|"
        rf"a further) (?P<kind>one)"
        r"(?= (?:called|named|titled|for|about|[:\-]|under|\"q\"))",
        "wish_before": rf"(?:{WISH})(?: (?:me|us|also|just|have|to have))* {wished} {middle}{before}{kind}",
    }
    return {name: re.compile(fill(source)) for name, source in made.items()}


@cache
def any_verb() -> re.Pattern[str]:
    """Give the pattern of what is to be new behind any verb: "pop a ticket in for the lamp"."""
    return re.compile(
        fill(
            r"(?!(?:is|are|was|were|has|have|had|does|did|like|be|it|that|there|i|we|you|they|he|she|not|never|what|"
            r"how|"
            r"who|why|which|where|when|said|saw|read|with|for|in|on|as|of|to|about|by|from|if|got|found|because)\b)"
            r"(?P<verb>[a-z]+)(?<!ed)(?<!ing)(?<!s)(?: (?:me|us|in|up|down|out|together|on))* "
            rf"(?P<count>{COUNTED}|{SINGLE}) (?:(?:{QUALITY}) )*(?P<kind>~KIND)(?: (?:in|up|down|out|together))?"
            r"(?= (?:called|named|titled|for|about|to|under|on|in|into|[:\-]|\"q\"))"
        )
    )


SPLIT_INTO = re.compile(
    r"(?:break|split|divide|cut|slice|decompose|chop|carve|separate|expand)(?: up| down| out)? (?P<parent>\S.{0,80}?)"
    r"(?: up| down| out)? (?:into|(?<=\d ):) (?P<titles>\S.*)"
)
LEADING_PARENT = re.compile(
    r"(?:for|under|in|inside|within|to|on|below|underneath|as part of|beneath|into|regarding|"
    r"of) (?P<parent>.{1,80}?) ?(?:,|:|-)? "
    r"(?=(?:(?:please|also|we need|i need|we want|i want|there should be|let us|we should|you should|could you|"
    r"can you) )*"
    rf"(?:{MAKE}|need|want)\b)"
)
SPLIT_UP = re.compile(
    fill(
        r"(?:break|split|divide|cut|slice|decompose|chop|carve|separate|break up|split up|turn|expand|break out|"
        r"break down)"
        r"(?: up| down| out)? (?P<parent>\S.{0,80}?)(?: up| down| out)? (?:in to|into|in|to|in the form of) "
        rf"(?:(?P<count>{COUNTED}|{SINGLE}) )?(?:{QUALITY} )*(?P<kind>~KIND|parts|pieces|steps|items)\b"
    )
)
NEEDS = re.compile(
    fill(
        r"(?P<parent>\S.{0,80}?) (?:also |still |now |really )?(?:needs|need|should have|gets|should get|requires|"
        r"wants|has to have|must have|should contain|should include|contains|includes|should get"
        r"|will need|will have|could use|shall have|consists of|contains|is missing|lacks|could do with|"
        r"is short of|is short|is lacking|deserves|calls for|ought to have|has room for|will want|misses|is in need of|"
        r"should be given|must get|has to get|ought to get|would need) (?:also |still )?"
        rf"(?P<count>{COUNTED}|{SINGLE}) (?:{QUALITY} )*(?P<kind>~KIND)\b"
    )
)
ADDED = re.compile(
    r"(?:add|put|append|insert|include|attach|stick|throw|slot|place|drop|throw in|squeeze|bring|queue|enter|file|"
    r"log) (?:also )?"
    r"(?P<titles>\S.*?) (?:to|under|into|in|onto|on to|on|underneath|inside|within|below|beneath|as part of|"
    r"as children of) "
    r"(?P<parent>[^:]{1,120}?)(?: as (?:(?:a|new|an|separate|the) )*(?P<kind>~KIND))?".replace("~KIND", fill("~KIND"))
)
ADDED_ONLY = re.compile(
    r"(?:please |also )*(?:add|append|insert|include|create|put) (?P<titles>(?!it\b|that\b|them\b|this\b|#?\d)\S.*)"
)
ADDED_AS = re.compile(
    r"(?:(?:add|put|append|insert|include|create|log|file|enter|set up|make|register|"
    r"track|jot|jot down|note|save|write|write down|put down|note down|take) |(?=\"q\"))(?P<titles>\S.*?) as "
    r"(?:(?:a|an|new|another|separate|the) )*(?P<kind>~KIND)"
    r"(?: (?:to|under|of|in|for|into|on|within|inside|below) (?P<parent>[^:]{1,120}))?".replace("~KIND", fill("~KIND"))
)
ADDED_THESE = re.compile(
    fill(
        r"(?:add|put|append|insert|include|create|make|file|log|enter)(?: me| us)? (?:(?:the )?following|these|this|"
        r"those|the rest)?"
        r"(?: (?:things|items|points|ones|two|three|four|five))? ?(?:as (?:new |separate )?(?P<kind>~KIND) ?)?"
        r"(?:(?:to|under|into|in|on|onto|below|beneath|for|of) (?P<parent>[^:]{1,120}?))? ?(?:as (?:new |"
        r"separate )?(?P<kinds>~KIND) ?)?"
        r"[:\-,|] (?:\| )?(?P<titles>\S.*)"
    ),
    re.DOTALL,
)
MOVED = re.compile(
    r"(?:move|put|place|nest|reparent|attach|shift|transfer|relocate|hang|make|file|drag|set|add|tuck|bring|group|"
    r"hook up|hook|"
    r"link|reassign)"
    r" (?P<target>\S.{0,120}?) (?:over |back |down )?(?:to|under|into|in|onto|underneath|inside|below|beneath|"
    r"within|a child of|as a child of|"
    r"part of|as part of|children of|a subtask of|a story of|a task of|as a subtask of|as a story of|belong to)"
    r" (?P<parent>\S.{0,120}?)(?: (?:now|instead|as well|too))?"
)
BECOMES = re.compile(
    fill(
        r"(?:make|turn|set|convert|mark) (?P<target>\S.{0,80}?) (?:into |to |as )?(?:an?|the|one of the) (?:~KIND|"
        r"child|children|part) "
        r"(?:of|under|in|below|for) (?P<parent>\S.{0,80}?)"
    )
)
NUMBERS_UNDER = re.compile(
    fill(r"(?P<target>(?:(?:~KIND) )?#?\d+) (?:under|beneath|below|inside) (?P<parent>(?:(?:~KIND) )?#?\d+)")
)
GOES_UNDER = re.compile(
    r"(?P<target>\S.{0,80}?) (?:(?:now |also )?(?:goes|belongs|moves|lives)|"
    r"(?:should|must|has to|needs to|will) (?:go|belong|move|be|live|sit)|sits|is) "
    r"(?:under|in|into|to|inside|within|below|part of|a part of) (?P<parent>\S.{0,80}?)"
)
ADDED_TO = re.compile(
    r"(?:add|put|append|insert|include|attach|create|make)(?: also)? (?:to|under|into|in|onto|"
    r"below|for) "
)
NEW_BEGINS = re.compile(
    fill(rf"(?: ,| :| -)? (?=(?:(?:the following|these|the|{COUNTED}|{SINGLE}) )?(?:{QUALITY} )*(?:~KIND)\b)")
)
NO_PARENT = re.compile(
    r"(?:the |my |our |your )?(?:backlog|work plan|plan|list|board|todo list|project|tracker|to do list|roadmap|"
    r"work list|"
    r"top level|queue|system|pile|mix|project plan|todos|agenda|sprint)"
)

CALLED = (
    r"(?:called|named|titled|entitled|labelled|labeled|by the name of|by the name|by name|of name|named as|"
    r"name as|with (?:the )?(?:titles|title|names|"
    r"name)(?: of)?|"
    r"which is called|that is called|which should be called|title|titles|name|known as|reading|saying|that says|"
    r"which says|"
    r"namely|as follows|that are called|like|such as|i e|viz|which are|for these|are|as in|being)"
)
ABOUT = (
    r"(?:for|about|regarding|concerning|covering|around|on|where|in which|so that|so|that|which|of|because|as|with|"
    r"dealing with|to cover|to handle|related to|relating to|to do with|to deal with|re|focused on|focusing on|"
    r"dedicated to|"
    r"devoted to|in order to|aimed at|by|at)"
)
PARENT_WORD = (
    r"(?:to|off|under|underneath|in|into|inside|within|below|beneath|onto|as part of|as a child of|as children of|"
    r"as part|for|of|"
    r"belonging to|attached to|against|on|at|as a subtask of|as subtasks of|as a story of|as stories of|as a task of|"
    r"that belongs? to|which belongs? to|part of|there under|to the end of|on top of|beside|as children under|"
    r"as a child under)"
)
SURE_PARENT = re.compile(
    r"(?:under|underneath|inside|within|below|beneath|as |belonging|that belong|which belong|part of|attached)"
)
AT_INTRO = re.compile(
    rf"(?: ,)? ?(?:(?P<mark>[:\-=•|(]|,)|(?P<called>{CALLED})(?: :| -)?(?= |$)|(?P<to>to)(?= )|"
    rf"(?P<about>{ABOUT})(?: :)?(?= |$))"
)
STOPS = re.compile(
    rf" (?:[:\-,(|•]|{CALLED}|for|about|to|with|that|and|which|where|covering|regarding|so|{QUOTED})(?= |$)|$"
)
LAST_PARENT = re.compile(rf"(?: ,)? (?P<word>{PARENT_WORD}) (?P<parent>[^,:;|•]{{1,80}})$")
LAST_LEVEL = re.compile(
    fill(
        r"(?: ,| -)? (?:\( )?(?:and )?(?:(?:with|at|of|as|,|give it|make it|set to|which is|that is|it is|-|"
        r"\() )*(?:(?:a|an|the|very) )*"
        r"(?P<level>(?:priority|prio) (?:of )?(?:~LEVEL|\d)|(?:~LEVEL)(?: (?:priority|prio|importance))|(?:urgent|"
        r"critical|p\d)(?=$| \)))"
        r"(?: \))?$"
    )
)
LAST_OWNER = re.compile(
    r"(?: ,)?(?: (?:and|that is|which is|and have it|to be))? (?:assigned to|owned by|assign to|assignee|owner|"
    r"assign it to|for assignee|done by) :? ?(?P<person>\S+(?: [^\s,]+)?)$"
)
LAST_NEED = re.compile(
    r"(?: ,)?(?: (?:and|that|which|that is|which is|it|is|and it|and is))* (?P<how>blocked by|blocked on|"
    r"depending on|depends on|dependent on|that needs|"
    r"which needs|waiting for|waiting on|requiring|needs|after) (?P<other>[^,:;]{1,80})$"
)

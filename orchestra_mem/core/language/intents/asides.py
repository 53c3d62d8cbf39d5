"""What is only said beside a command: its reason, a lead-in, a statement before or behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from orchestra_mem.core.language.intents.clauses import OPENS, STATES_WORK, asks, begins_command, with_it
from orchestra_mem.core.language.intents.courtesies import strip
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.rules import rules
from orchestra_mem.core.language.intents.verbs import is_verb
from orchestra_mem.core.language.intents.words import fill

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
    r"worth \S+|required|happening|works?|sense|cares?|reads?|owns?|likes?|wrote|interested|useful|point|use|budget|"
    r"time|demand|value|money|interest|room|capacity|resources)\b|"
    r"\bout of (?:budget|money|scope)\b"
)
_CONSENT = re.compile(
    r"\b(?:until|till) (?:(?:at least|about|around|next|this|the end of|early|late) )*(?:noon|midnight|lunch|"
    r"tomorrow|tonight|today|\d+\S*|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:the )?(?:week|weekend|month|year|morning|afternoon|evening)|"
    r"january|february|"
    r"march|april|may|june|july|august|september|october|november|december|further notice)\b|"
    r"\b(?:said|says|told (?:me|us)|replied|answered|texted|wrote)(?: back)?(?: that)? (?:yes|ok|okay|go|go ahead|"
    r"sure|fine|"
    r"it is (?:fine|ok|okay)|no problem|yep|approved)(?= |$)|"
    r"\b(?:keeps? )?(?:asks?|asking|asked)(?: (?:me|us|again))* (?:about|for)\b|\b(?:nobody|no one) (?:reads|wrote|"
    r"asked)\b"
)
_STATES_WHY = re.compile(
    r"\S+ (?:\S+ )*?(?:is|are|was|were|has|have|had|do|does|did|[a-z]{3,}ed|bailed|left|went|got|gone|fell|came|"
    r"broke|gave|took|sent|paid|ran|lost|won|found|made|bought|sold|hit|held|rang|froze|died|blew|burst|tore|"
    r"nobody \S+s|no one \S+s)\b"
)
_BORDER = re.compile(
    r" (?:, (?:and |but )?(?:because |since |as |so |for |now that |which means (?:that )?|meaning (?:that )?)?|- |"
    r"\( |: |because |since |so that |so |now that )"
    r"(?=\S)"
)
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
    clear = _UNCLEAR.search(_UNNEEDED.sub("", _ON_SECOND_THOUGHT.sub("", text))) is None
    for match in list(_BORDER.finditer(text))[:_MOST_BORDERS]:
        left, right = clause.part(0, match.start() + 1), clause.part(match.end())
        if not right.words or not left.words:
            continue
        if not _BAD_ASIDE.search(right.text) and not begins_command(right):
            yield Beside(left, right, clear)
        right = (with_it(left, right) if "," in match[0] or "-" in match[0] else None) or right
        refused = ":" in match[0] or "-" in match[0] or "(" in match[0]
        so = "so " in match[0] or "mean" in match[0]
        bad = _BAD_REASON if so else _BAD_LEAD
        if bad.search(_CONSENT.sub("", left.text)) or (refused and _REFUSED_LEAD.search(left.text)):
            continue
        if ":" in match[0] and _TEXT_BEFORE.search(left.text):
            continue
        if (
            begins_command(right)
            or OPENS.match(strip(right).clause.text)
            or asks(right)
            or _opens_rule(right)
            or (so and (_NAMES_WORK.match(right.text) or _STATES_TITLE.match(right.text)))
            or _GOES_AHEAD.fullmatch(right.text)
            or ("," in match[0] and _STATES_TITLE.match(right.text) and states(left))
            or ("," in match[0] and _TAKES_OVER.match(right.text))
        ):
            yield Beside(right, left, clear, leads=True, so=so or ("," in match[0] and _tells_why(left)))
    yield from _requests_within(clause)
    for place in [match.start() for match in re.finditer(" and ", text)][:_MOST_BORDERS]:
        left, right = clause.part(0, place + 1), clause.part(place + 5)
        told = STATES_WORK.match(right.text) or _DECIDES.match(right.text)
        if left.words and told and not (_BAD_LEAD.search(left.text) or begins_command(left)):
            yield Beside(right, left, clear=False, leads=True)


_ON_SECOND_THOUGHT = re.compile(r"^(?:(?:actually|wait|hold on|hang on|no|oh|oops|sorry|,|can you|could you) )*")
_TEXT_BEFORE = re.compile(
    r"\b(?:notes?|decisions?|reports?|decided|remember|comment|log|record|remark|memo|reminder|result|outcome|title|"
    r"name|called)\b[^,]*$"
)


_NAMES_WORK = re.compile(r"(?:the|our|my|this|that|it|#?\d+|task|story|epic)\b")


_STATES_TITLE = re.compile(r"(?:\S+ ){1,5}?(?:is|are|can|may|has|have|will|should|must|needs|depends|waits) ")
_GOES_AHEAD = re.compile(
    r"(?:the|our|my|this|that|it|#?\d+|task|story|epic) (?:\S+ ){0,6}?(?:can|may|is (?:able|free|clear|good) to) "
    r"(?:now |finally |again )?(?:go ahead|proceed|start|begin|continue|move|go on|carry on|resume|be started)\b.*"
)
_TAKES_OVER = re.compile(
    r"(?:(?:can|could|will|would|may|might) )?(?!(?:it|this|that|which|who|what|and)\b)\S+(?: \S+)? (?:(?:will|can|"
    r"should|shall|could|may) )?(?:please )?(?:takes?|picks? up|gets?|owns?|"
    r"handles?|does|do|has|have)(?: over| on)? (?:it|that|this|them|the|our|#?\d+|task|story|epic)\b"
)
_DECIDES = re.compile(
    r"(?:finally |then |so )?(?:we|i|they all|all of us|everyone|the team)(?: have| all| both| finally| then| just)* "
    r"(?:decided|agreed|settled|opted|chose|resolved|concluded|went)\b"
)


def _opens_rule(clause: Clause) -> bool:
    return strip(clause).clause.text.partition(" ")[0] in rules().openers - _SUBJECTS


_SUBJECTS = frozenset("i we it that this the a an my our no not".split())


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


def states(clause: Clause) -> bool:
    """Tell whether a sentence only tells something, and nothing by which what stands beside it could be in doubt."""
    text = _UNNEEDED.sub("", strip(clause).clause.text)
    doubtful = (
        _BAD_ASIDE.search(text)
        or _BAD_LEAD.search(text)
        or _REFUSED_LEAD.search(re.sub(r"\bno(?:body| one)\b", "", text))
    )
    return (
        not doubtful and _STATES_WHY.search(f"{text} ") is not None and not begins_command(clause) and not asks(clause)
    )


_GIVES_UP = re.compile(
    fill(
        r"\b(?:(?:will|is|are|am|do|does|going|was) not (?:(?:be|going|to|get) )*(?:do|doing|need|needed|want|wanted|"
        r"happen|happening|"
        r"build|building|worth|ever)|no longer (?:need|needed|relevant|wanted)|(?:a|the|is|are) ~MOOT)\b"
    )
)


def gives_up(clause: Clause) -> bool:
    """Tell whether a lead-in says that the work is not to be done, so that to close it would not be to finish it."""
    return _GIVES_UP.search(clause.text) is not None


def has_aside(clause: Clause) -> bool:
    """Tell whether there may be something beside a command in a clause."""
    return _BORDER.search(clause.text) is not None

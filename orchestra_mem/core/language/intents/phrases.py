"""Phrases: which of them name work, what kind and priority they speak of, and lists of titles."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.normalising import BULLET, NEWLINE, QUOTED, Clause
from orchestra_mem.core.language.intents.words import KINDS, NUMBERS, PRIORITIES, fill
from orchestra_mem.work_types import WorkKind

_NUMBER = r"(?:#\d+|\d+)"
_ONE_NAMED = rf"(?:(?:the )?(?:{{kind}}|item|number|issue|nr|no|id)s? )?{_NUMBER}"
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|next|other|others|previous|latest|"
    r"newest|"
    r"rest|former|latter|same|oldest|current|final|recent|most recent|\d+(?:st|nd|rd|th)|top|bottom|remaining|new|"
    r"middle|"
    r"failed|blocked|open|finished|deferred|done|pending|active|cancelled|big|biggest|small|smallest|urgent|stuck|"
    r"in-progress|unfinished|whole|entire|earliest|started|paused|postponed|very|just|only)"
)
_PRONOUN = r"(?:it|that|this|them|those|these|both|all|everything|either|each|they|itself|one|ones|its)"
_COUNT = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|few|couple)"
_NAMED = re.compile(
    fill(
        rf"(?:all |both |each |every |any |either |just |only |also )*(?:of )?(?:"
        rf"{_ONE_NAMED.format(kind='~KIND')}(?:(?: ,| ,? ?and| or| through|"
        rf" -) (?:also )?{_ONE_NAMED.format(kind='~KIND')})*"
        rf"|{_PRONOUN}(?: (?:two|three|four|five|both|all|too|one|ones|{_COUNT}))?"
        rf"|(?:the |this |that |those |these |my |our )?(?:{_ORDINAL} )*(?:{_ORDINAL}|ones?|"
        rf"{_COUNT})(?: (?:{_COUNT}|ones?|of (?:them|these|those|it|the .+)))*"
        rf"|(?:(?:the|this|that|those|these|my|our|your|its|their|his|her|an?|another|every|some|same|\S+ 's|"
        rf"\S+ \S+ 's) )*"
        rf"(?:(?!(?:the|is|to|and|a|an|for|with|of|on|from|by|at|about|as|not|no|me|us|when|what|how|why|who|where|"
        rf"if|under|below|into|in|within|inside)\b|"
        rf"[,:])\S+ ){{0,5}}?(?:~KIND|ones?|work items?|items?)(?: ~Q|"
        rf" {_NUMBER})?"
        rf"|~Q)"
    )
)  # fmt: skip
_BORDER = re.compile(
    r" (?:of|from|on|in|for|about|with|under|at|by|below|inside|that|which|who|we|i|you|called|named|assigned|"
    r"blocked|created|"
    r"as|titled|where|regarding|mentioning|to|within|above|than|added|after|before|marked|due|due to|made)\b"
)
# What may stand behind a bare number or pronoun; behind a kind anything may ("the story about …").
_GOES_ON = re.compile(
    r" (?:(?:of|in|under|below|inside|within|on) (?:the|our|my|your|this|that|these|those|it|them|all|#?\d|epic|"
    r"story|task|milestone|\"q\")|"
    r"(?:we|i|you|that|which|who|called|named|assigned|blocked|created)(?= ))"
)
_SPLIT_NAMES = re.compile(r" ?, ?(?:and )?| and (?:also )?")
_NOT_IN_ANY = re.compile(
    r"[:;?!|•]|\b(?:this|last|yesterday) (?:morning|afternoon|evening|night|week) (?:the|my|our|#?\d)|\b(?:if|but|"
    r"unless|because|should|would|could|please|so that|whether|although|though|in case|once|"
    r"as soon as|"
    r"whenever|provided|maybe|perhaps|otherwise|else|until|however)\b|^(?:and|or|but|then|so|not|no|never|n't|with|"
    r"after|before|once|when|while|until|till|since|during|without|despite|"
    r"on|for|of|in|to|at|by|from|about|as|is|are|be)\b"
    r"| (?:i|we|you)(?: (?:have|had|did|do|can|will|just|already|also))*$"
    r"| , (?:when|if|while|but|because|since|which|so) | to later\b| so (?!called\b)"
    r"| (?:and|or|but|then|so|as|the|a|an|is|are|not|to|of|on|by|for|with|from|in|into|at|be|that is|when|while|less|"
    r"very|,|-|=|which|who)$| (?:task|story|epic|milestone|subtask|ticket|tasks|stories|epics|thing|things|ones) that$"
)
_NOT_IN_BARE = re.compile(
    r"\b(?:is|are|was|were|am|be|been|has|have|had|do|does|did|will|can|may|might|must|shall|not|no|never|i|we|you|"
    r"he|she|"
    r"they|me|us|him|what|where|how|why|who|when|which|let|said|says|told|asked|wants|want|thinks|think|then|there|"
    r"here|"
    r"than|but|or|while|it|off|up|out|again|away|back|myself|yourself|your|his|her|their|someone|nobody|anything|"
    r"nothing|alone|now|yet|today|yesterday|tomorrow|already|late|early)\b"
)
_RELATIVE = re.compile(r" (?:that|which|who|we|i|you|whose|where|when) ")
_ATTRIBUTE = re.compile(
    r"(?:the |its )?(?:status|state|priority|prio|title|name|owner|assignee|description|note|notes|comment|date)\b"
)
_VERBS = frozenset(
    """
    create make add open rename start begin finish complete close mark set put move block unblock defer postpone
    cancel drop
    scrap abandon delete remove assign give hand prioritise bump raise lower note write remember record decide report
    undo
    revert resume continue show list find search tell explain call change push take do use get let have keep is are
    was were
    has did does can could should would will shall may might must what why how when where who which pick kick work
    wrap ship
    please if not never don stop then and but or so to i we you he she there because
    """.split()
)
_PARTICLES = frozenset(
    "over up off down out back away along under into onto through again like than going doing".split()
)
_DETERMINERS = frozenset("the my our your this that these those its their all both every each any a an another".split())
_ARTICLES = frozenset(("the", "our", "this", "that", "these", "those"))
_LONGEST_SUBJECT = 8
_LONGEST_NAMED, _LONGEST_DETERMINED, _LONGEST_BARE = 200, 14, 6


def is_clean(text: str) -> bool:
    """Tell whether a phrase can name something: it holds no condition, no border of a sentence, no loose end."""
    return bool(text) and len(text) <= _LONGEST_NAMED and _NOT_IN_ANY.search(text) is None


def is_named(text: str) -> bool:
    """Tell whether a phrase names work beyond doubt: by number, kind, pronoun, order, or in quotes."""
    if not is_clean(text) or text.split(" ", 1)[0] in _VERBS or _is_done_to(text):
        return False
    if _NAMED.fullmatch(text):
        return _no_verb_before_kind(text)
    border = _BORDER.search(text)
    if border and border.start() and is_named(text[: border.start()]):
        head, rest = text[: border.start()], text[border.start() :]
        if _TO_SOMEBODY.match(rest) and head[-1:].isdecimal():
            return False
        return kind_of(head) is not None or _GOES_ON.match(rest) is not None or head.endswith((" one", " ones"))
    pieces = _SPLIT_NAMES.split(text)
    return len(pieces) > 1 and all(is_named(piece) for piece in pieces)


_BEHIND_PARTICIPLE = frozenset(
    "on in at to with for of by from up off out over about the a an my our your it that them us me , so last".split()
)


_DOES_NUMBERED = re.compile(fill(r"(?!(?:~KIND) )[a-z-]+ (?:the )?(?:(?:~KIND) )?#?\d+"))
_THINKS = frozenset("thought think thinks said says told wish wished hope hoped assumed guess knew".split())
_PARTICIPLE = re.compile(r"[a-z]{3,}[^e]ed")


def _is_done_to(text: str) -> bool:
    """Tell whether a participle governs what follows, so that no phrase begins with it: "started on the pads"."""
    first, _, rest = text.partition(" ")
    if _DOES_NUMBERED.fullmatch(text):
        return first in verb_forms() or first in _THINKS
    if rest and rest.partition(" ")[0] not in _BEHIND_PARTICIPLE:
        return False
    of = verb_forms().get(first)
    return all(what <= {"past", "done"} for what in of.values()) if of else _PARTICIPLE.fullmatch(first) is not None


_TO_SOMEBODY = re.compile(r" to (?!#?\d)")


def is_name_alone(text: str) -> bool:
    """Tell whether a phrase names work and says nothing else of it."""
    first = text.partition(" ")[0]
    if first in _VERBS or (first in verb_forms() and first not in KINDS) or not is_clean(text):
        return False
    return _NAMED.fullmatch(text) is not None and _no_verb_before_kind(text)


def _no_verb_before_kind(text: str) -> bool:
    """A verb inside ("the team is doing the story") makes a sentence of what would be a phrase."""
    return not re.search(r"\b(?:is|are|was|were|will|has|have|did|does|do|be|been|it|i|we|you)\b .", text)


def is_determined(text: str) -> bool:
    """Tell whether a phrase names work, or is a short one with an article: "the boss fight"."""
    if is_named(text):
        return True
    words = text.split()
    return (
        2 <= len(words) <= _LONGEST_SUBJECT
        and words[0] in _ARTICLES
        and "," not in words
        and is_clean(text)
        and not _holds_other_words(text)
        and words[1] not in _VERBS
    )  # fmt: skip


def _holds_other_words(text: str) -> bool:
    """Tell whether words of a sentence stand in what should be words of a title; "fit-out" is one word."""
    return _NOT_IN_BARE.search(_HYPHEN.sub("", text)) is not None


_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")


# What fails, breaks or is late around us and is nobody's work.
_OF_THE_WORLD = re.compile(
    r"(?:(?:the|our|my|your|his|her|this|that|their) )?(?:[a-z]+ )?(?:coffee|machine|printer|wifi|wi-fi|internet|"
    r"network|vpn|laptop|"
    r"computer|keyboard|mouse|screen|monitor|projector|phone|headset|chair|desk|dishwasher|fridge|microwave|kettle|"
    r"toaster|lift|"
    r"elevator|escalator|train|bus|tram|metro|subway|taxi|flight|plane|traffic|car|bike|bicycle|weather|sun|rain|"
    r"snow|heating|"
    r"heater|radiator|aircon|ac|dog|cat|kid|kids|baby|wife|husband|son|daughter|neighbour|neighbor|neighbours|"
    r"neighbors|milk|"
    r"lunch|dinner|breakfast|pizza|cake|beer|tea|meeting|call|standup|stand-up|retro|toilet|loo|parking|office|power|"
    r"electricity|"
    r"alarm|fire alarm|team lunch|game|match|movie|film|song|playlist)"
)


def is_of_the_world(text: str) -> bool:
    """Tell whether a phrase is about what is around us and nobody's work: "the coffee machine"."""
    return _OF_THE_WORLD.fullmatch(text) is not None


_NUMBERED = re.compile(fill(r"(?:the )?(?:~KIND) #?\d+ \S"))


def is_phrase(text: str) -> bool:
    """Tell whether a phrase may name work, if only by words of a title."""
    if not is_clean(text) or _is_done_to(text):
        return False
    words = text.split()
    if is_named(text):
        return True
    if _NUMBERED.match(text):
        return False
    if "," in words or words[0].lstrip("#").isdecimal() or _ATTRIBUTE.match(text) or text in _DETERMINERS:
        return False
    if words[0] in _DETERMINERS:
        return len(words) <= _LONGEST_DETERMINED and not (_holds_other_words(text) and not _RELATIVE.search(text))
    return len(words) <= _LONGEST_BARE and words[0] not in _VERBS | _PARTICLES and not _holds_other_words(text)


def kind_of(text: str) -> WorkKind | None:
    """Give the kind of work that a phrase speaks of: that of its head, the first named kind."""
    border = _BORDER.search(text)
    head = text[: border.start()] if border and border.start() else text
    head = head.split(" 's ")[-1]
    return next((KINDS[word] for word in reversed(head.split()) if word in KINDS), None)


def priority_of(text: str) -> str:
    """Give the priority that words name: "1" to "5", "higher", "lower"; empty if they name none."""
    words = re.sub(r"\bp (?=\d)", "p", text.lower().replace("-", " ")).split()
    joined = " ".join(words)
    if re.search(r"\b(?:top|number one|first|highest)\b", joined):
        return "1"
    level = next((PRIORITIES[word] for word in words if word in PRIORITIES), "")
    return level or ("2" if "priority" in words else "")


def number_of(text: str) -> int:
    """Give the number that a count names, 0 if it is none ("some", "a few")."""
    for word in text.replace(",", " ").split():
        if word.isdecimal() and len(word) <= 4:
            return int(word)
        if word in NUMBERS and not (
            word == "a" and ("couple" in text or "pair" in text or "few" in text or "dozen" in text)
        ):
            return NUMBERS[word]
    return 0


_INLINE_NUMBER = re.compile(r"(?:(?<=\s)|^)(?:\(?\d{1,2}[.)]|\(?[a-h]\)|[-*\u2022])\s+")
_ONE_FOR = re.compile(
    r"^(?:and )?(?:one|first|second|third|another|the other|the (?:first|second|third|last)(?: one)?|the other one|"
    r"a|an|1|also)(?: each)?"
    r"(?: one| (?:story|task|epic|subtask|milestone))? ?(?:(?:is |being )?(?:for|called|to|about|named|on|titled|"
    r"covering)|:|-) "
)
_EACH = re.compile(
    r"(?:[:,-] )?(?:(?:and )?(?:one|a|an|1|one of them)(?: \w+)? )?(?:each (?:for|about|on|of|called|named)|"
    r"for each of|"
    r"for each :)(?: :)? (?=\S)"
)
_OUTER = re.compile(r"^(?:(?:and|or|also|plus|then|the following|,|:|-|•|;|\.) )+")
_QUOTES = "\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e\u201f"


def split_titles(region: Clause, count: int, many: bool) -> tuple[str, ...]:
    """Cut a stretch of titles into them: at line ends, numbers, semicolons, commas, and the last "and".

    Args:
        region: the words in which the titles stand.
        count: how many are expected, 0 where that was not said.
        many: whether there may be more than one at all; a single title keeps its commas.
    """
    texts = [word.text for word in region.words]
    while QUOTED in texts[:-1] and texts[-1] in ("too", "also", "well", "as"):
        region, texts = region.between(0, -1), texts[:-1]
    if each := _EACH.match(f"{region.text} "):
        region, many = region.part(each.end()), True
        texts = texts[len(texts) - len(region.words) :]
    if NEWLINE in texts or BULLET in texts:
        return _titles(_cut_at(region, {NEWLINE, BULLET}))
    if QUOTED in texts and all(text in (QUOTED, ",", "and", ";", "-", ":", "or", ".") for text in texts):
        return _titles([region.between(i, i + 1) for i, text in enumerate(texts) if text == QUOTED])
    numbered = [piece.strip(" \t,;") for piece in _INLINE_NUMBER.split(region.said)]
    if many and len(numbered) > 2 and not numbered[0]:
        return tuple(title for title in map(clean_title, numbered) if title)
    if not many:
        return _titles([region])
    if ";" in texts:
        return _titles(_cut_at(region, {";"}))
    if "/" in texts and "," not in texts:
        return _titles(_cut_at(region, {"/"}))
    return _titles(_cut_at_commas(region, count))


def _cut_at_commas(region: Clause, count: int) -> list[Clause]:
    pieces = _cut_at(region, {","})
    if count and len(pieces) == count:
        return pieces
    if len(pieces) > 1:
        last = _cut_at(pieces[-1], {"and", "or"}) if not pieces[-1].text.startswith("and ") else [pieces[-1]]
        return [*pieces[:-1], *last] if not count or len(pieces) + len(last) - 1 <= count else pieces
    parts = _cut_at(region, {"and"})
    if count and len(parts) > count:
        parts = (
            _cut_at(region, {"/"}) if "/" in region.text.split() else [*parts[: count - 1], _joined(parts[count - 1 :])]
        )
    return parts


def _joined(parts: list[Clause]) -> Clause:
    first, last = parts[0], parts[-1]
    words = tuple(word for part in parts for word in part.words)
    return Clause(first.line, words) if first is not last else first


def _cut_at(region: Clause, borders: set[str]) -> list[Clause]:
    pieces, begin = [], 0
    for place, word in enumerate([*region.words, None]):
        if word is None or word.text in borders:
            if place > begin:
                pieces.append(region.between(begin, place))
            begin = place + 1
    return pieces


def _titles(pieces: list[Clause]) -> tuple[str, ...]:
    found = []
    for piece in pieces:
        for start in (_OUTER, _ONE_FOR):
            match = start.match(f"{piece.text} ")
            if match and match.end() <= len(piece.text):
                piece = piece.part(match.end())
        found.append(clean_title(piece.said))
    return tuple(title for title in found if title)


_THANKS = re.compile(
    r"[\s,.!-]*\b(?:asap|please|pls|plz|thanks(?: a lot| so much| in advance)?|thank you(?: so much| very much)?|thx|"
    r"cheers|ta)"
    r"[\s.!]*$",
    re.IGNORECASE,
)


def clean_title(said: str) -> str:
    """Take from a title what does not belong to it: outer quotes, thanks, the full stop."""
    said = _THANKS.sub("", said).strip(" \t\n,;:") or said.strip(" \t\n,;:")
    if (
        len(said) > 1
        and said[0] in _QUOTES
        and said[-1] in _QUOTES
        and not any(q in said[1:-1] for q in said[0] + said[-1])
    ):
        return said[1:-1].strip()
    return said.rstrip(".!,;:- ").strip() if not said.endswith("...") else said


def clean_phrase(said: str) -> str:
    """Take from a phrase or a value what does not belong to it: white space and marks at its ends."""
    return said.strip(" \t\n,;:.!-").strip() or said.strip()

"""A line as normal words: lower case, contractions opened, quotes whole, and each word still knowing where it stands.

What commands do with the words stands elsewhere. Titles are cut from the line by the places of their words, so that
they keep what the user wrote.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

QUOTED = '"q"'
NEWLINE = "|"
BULLET = "•"
_MARKS = frozenset({",", ";", ":", ".", "!", "?", "(", ")", "-", "=", "&", "+", "/"})
ARROWS = frozenset({"->", "=>", "\u2192"})
_DASHES = ARROWS | {"-", "--", "\u2013", "\u2014"}

_STRAIGHT = str.maketrans("\u2018\u2019\u201a\u02bc\u00b4\u201c\u201d\u201e\u201f\u00ab\u00bb", "'''''" + '"' * 6)
_CUT = r"\s,;:.!?()\[\]{}\"\u2026\u2013\u2014\u2192|"
_PIECE = re.compile(
    r"(?P<newline>[ \t]*\n\s*(?P<bullet>(?:[-*\u2022\u2013+]|(?:\d{1,3}|[a-h])[.)]|\((?:\d{1,3}|[a-h])\)|"
    r"\[[ x]?\])(?=[ \t]))?)"
    r"|(?P<quoted>\"[^\"\n]{1,400}\"|`[^`\n]{1,400}`"
    r"|(?<!\w)'(?=[^\s'])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}(?<=\S)'(?!\w))"
    r"|(?P<number>\#[ ]?\d{1,9}(?!\w)|(?<![\w.])(?:no|nr|num)\.?[ ]?\d{1,9}(?!\w))"
    r"|(?P<title>(?<!\w)(?:dr|mr|mrs|ms|prof|st|vs|approx)\.(?=\s))"
    rf"|(?P<word>(?:[^{_CUT}]|[.](?=[^{_CUT}])|(?<=\d):(?=\d)|:(?=[/:])|(?<=:):)+)"
    r"|(?P<mark>[^\s])",
    re.IGNORECASE,
)
_APOSTROPHE = re.compile(r"(?P<stem>.*\w)(?P<tail>n't|'(?:s|ll|ve|re|d|m))", re.DOTALL)
_TAILS = {"n't": "not", "'ll": "will", "'ve": "have", "'re": "are", "'d": "would", "'m": "am", "'s": "'s"}
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}
IS_STEMS = frozenset(
    "it that this what where who how when why there here he she which everything something nothing everyone".split()
)
_ASK_STEMS = frozenset(("why", "what", "how", "where", "when", "who"))
# Written without the apostrophe, shortened, or spelt in another way.
SPELLINGS = {
    key: words
    for entry in """
    dont=do not;doesnt=does not;didnt=did not;isnt=is not;arent=are not;wasnt=was not;werent=were not
    cant=can not;cannot=can not;couldnt=could not;wont=will not;wouldnt=would not;shouldnt=should not
    mustnt=must not;havent=have not;hasnt=has not;hadnt=had not;aint=is not;lets=let us;whats=what is
    wheres=where is;whos=who is;hows=how is;whens=when is;thats=that is;theres=there is;heres=here is;im=i am
    ive=i have;ill=i will;youre=you are;weve=we have;theyre=they are;pls=please;plz=please;plse=please
    pleas=please;u=you;ur=your;wanna=want to;gonna=going to;gotta=have to;lemme=let me;gimme=give me
    thx=thanks;ty=thanks;tnx=thanks;prio=priority;prios=priorities;tmrw=tomorrow;tmr=tomorrow;&=and;b4=before
    w/=with;w/o=without;cuz=because;bc=because;coz=because;2day=today;ppl=people;r=are;usr-story=story
    sub-task=subtask;sub-tasks=subtasks;user-story=story;user-stories=stories;to-do=todo;to-dos=todos
    todo's=todos;prioritize=prioritise;prioritizing=prioritising;reprioritize=prioritise
    deprioritize=deprioritise;summarize=summarise;finalize=finalise;organize=organise;in-progress=in progress
    on-hold=on hold;un-block=unblock;re-name=rename;re-assign=reassign;wip=in progress;info=information
    hi-pri=high priority;kickoff=kick off;rollback=roll back;signoff=sign off;followup=follow up
    wrapup=wrap up;cmon=come on;wy=why;wat=what;wht=what;wich=which;wen=when;wher=where;hw=how;whyd=why did
    whatd=what did;howd=how did;whered=where did;whos=who is;wheres=where is;hows=how is;tho=though
    thru=through;alr=already;tn=tonight;atm=at the moment;rn=right now;smth=something;sth=something;abt=about
    nvm=never mind;imo=i think;k=ok;kk=ok;okey=ok;yea=yes;ya=you;dunno=do not know;nevermind=never mind
    imma=i am going to;ima=i am going to;finna=i am going to;tryna=trying to;whatcha=what are you;wassup=what is up
    yday=yesterday;goin=going;doin=doing;startin=starting;workin=working;gettin=getting
    finishin=finishing;waitin=waiting;takin=taking;puttin=putting;makin=making;holdin=holding;movin=moving;lookin=looking
    favour=favor;teh=the;hte=the;ot=to;fo=of;si=is;adn=and;nad=and;taht=that;wiht=with;til=till
    untill=until;nxt=next;msg=message;stry=story;tsk=task;ms=milestone;everythings=everything is
    cmd=command;cmds=commands;ls=list;mv=move;blk=block;hist=history
    wtf=what;dat=that;dis=this;dey=they;dem=them;wid=with;da=the;shoud=should;cud=could;wud=would;shud=should;
    havnt=have not;didn=did not;sup=what is up;aight=alright;wdyt=what do you think;dep=depends;deps=dependencies
    """.split("\n")
    for part in entry.strip().split(";")
    if part
    for key, words in [part.split("=", 1) if not part.startswith("&") else ("&", "and")]
}


@dataclass(frozen=True, slots=True)
class Word:
    """A normal word, and where in the line what it stands for begins and ends."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Clause:
    """A run of words of a line; `text` is them with single blanks between."""

    line: str
    words: tuple[Word, ...]

    @cached_property
    def text(self) -> str:
        """The normal words with single blanks between."""
        return " ".join(word.text for word in self.words)

    @cached_property
    def _places(self) -> list[int]:
        places, place = [], 0
        for word in self.words:
            places.append(place)
            place += len(word.text) + 1
        return places

    def part(self, start: int, end: int | None = None) -> Clause:
        """Give the words within a stretch of `text`; words are never cut."""
        first = bisect_left(self._places, start)
        last = len(self.words) if end is None else bisect_left(self._places, end)
        return Clause(self.line, self.words[first:last])

    def between(self, first: int, last: int | None = None) -> Clause:
        """Give the words from `first` up to `last`, counted from 0."""
        return Clause(self.line, self.words[first:last])

    @property
    def said(self) -> str:
        """What the user wrote, from the first word to the last."""
        if not self.words:
            return ""
        start, end = self.words[0].start, max(word.end for word in self.words)
        said = self.line[start:end].strip() if end > start else self.text
        return self.text if len(self.words) == 1 and said.lower() in SPELLINGS else said


def normalise(line: str) -> Clause:
    """Read a line into words; any text whatever, in time linear to its length."""
    clean = _clean(line)
    plain = _with_items_apart(clean.translate(_STRAIGHT))
    return Clause(clean, tuple(_without_hesitation(_words(plain))))


_ITEM = re.compile(
    r"(?P<open>[:,;\-]\s*|(?:s|following|these)\s+|^)?(?<![^\s:])(?P<paren>\()?(?P<mark>\d{1,2}|"
    r"[a-h])(?P<close>[.)])(?=\s+\S)"
)


def _with_items_apart(plain: str) -> str:
    """Begin a new line before each item of a list that is numbered within the line: "1. Kitchen 2. Garden"."""
    found: list[re.Match[str]] = []
    for match in _ITEM.finditer(plain):
        wanted = (str(len(found) + 1), chr(ord("a") + len(found)))
        begins = match["open"] is not None or match["close"] == ")"
        if match["mark"] in wanted and (found or begins) and (not found or match["close"] == found[0]["close"]):
            found.append(match)
    if len(found) < 2:
        return plain
    characters = list(plain)
    for match in found:
        place = match.start("paren") if match["paren"] else match.start("mark")
        if place and characters[place - 1] in " \t":
            characters[place - 1] = "\n"
    return "".join(characters)


_HESITATION = frozenset(
    "uh uhm um umm hmm hm er erm please "
    "fr ngl af tbh kinda sorta deadass lowkey highkey lol lmao tf yall y'all imho fwiw iirc afaik smh".split()
)


_AUXILIARIES = frozenset("did do does are is was were have has".split())
_TIMES = frozenset(
    """
    now today tomorrow yesterday tonight morning afternoon evening night week weekend month quarter year sprint release
    monday tuesday wednesday thursday friday saturday sunday later then
    """.split()
)
_NUMBERED = frozenset("epic story task subtask milestone ticket number".split())
_DIGITS = {
    word: str(number)
    for number, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split(), start=2
    )
}
_GOES_ON = frozenset("to as called named titled for is a an the and on by".split())


def _without_hesitation(words: Iterator[Word]) -> Iterator[Word]:
    """Leave out what is only a pause, and the commas around it that part nothing; at the ends it is looked at later."""
    kept: list[Word] = []
    hesitated = False
    for word in words:
        if word.text == "been" and kept and kept[-1].text in ("is", "'s"):
            kept[-1] = Word("has", kept[-1].start, kept[-1].end)
        if word.text in _AUXILIARIES and kept and kept[-1].text == "y":
            kept[-1] = Word("why", kept[-1].start, kept[-1].end)
        if word.text in _HESITATION and kept and kept[-1].text != ".":
            hesitated = True
            if kept[-1].text == "," and len(kept) > 1 and kept[-2].text in _GOES_ON:
                kept.pop()
            continue
        if word.text in ("only", "itself") and kept and kept[-1].text in _TIMES:  # "next sprint only", "today itself"
            continue
        if word.text in _DIGITS and kept and kept[-1].text in _NUMBERED:  # "epic nine"
            word = Word(_DIGITS[word.text], word.start, word.end)
        if word.text[0] == "#" and kept and kept[-1].text[0] == "#":  # "#8 #9"
            kept.append(Word(",", word.start, word.start))
        if not (hesitated and word.text == "," and kept[-1].text in {",", *_GOES_ON}):
            kept.append(word)
        hesitated = False
    return iter(kept)


def _clean(line: str) -> str:
    """Take out what cannot be seen, and make every control character but the line feed a blank."""
    line = line.replace("\r\n", "\n").replace("\r", "\n")
    if line.isprintable():
        return line
    kept = (_visible(character) for character in line)
    return "".join(kept)


def _visible(character: str) -> str:
    if character == "\n" or character.isprintable():
        return character
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return "\n" if category in ("Zl", "Zp") else " "


def _words(plain: str) -> Iterator[Word]:
    yield from _leading_bullet(plain)
    begin = _bullet_end(plain)
    for match in _PIECE.finditer(plain, begin):
        kind, text, start, end = match.lastgroup, match[0], match.start(), match.end()
        if match["newline"] is not None:
            yield Word(NEWLINE, start, start)
            if match["bullet"]:
                yield Word(BULLET, end, end)
        elif kind == "quoted":
            yield Word(QUOTED, start, end)
        elif kind == "number":
            yield Word("#" + "".join(c for c in text if c.isdecimal()), start, end)
        elif kind == "title":
            yield Word(text[:-1].lower(), start, end)
        elif kind == "word":
            yield from _read(text, start, end)
        elif text in _MARKS:
            yield Word("and" if text in "&+" else text, start, end)
        elif text in _DASHES:
            yield Word(_dash(text), start, end)
        elif text in _PICTURES:
            yield Word(_PICTURES[text], start, end)


_SIGNS = {"=": "=", "/": "/", "@": "at", "&": "and", "+": "and", "%": "percent"}
_PICTURES = {"\u2705": "done", "\u2713": "done", "\u2714": "done", "\u2611": "done", "\u23f8": "paused"}


def _dash(text: str) -> str:
    return "to" if text in ARROWS else "-"


_LEADING = re.compile(r"\s*(?:>+\s*|/(?=[a-z])|[-*\u2022\u2013+]\s+|\d{1,3}[.)]\s+)?")


def _bullet_end(plain: str) -> int:
    match = _LEADING.match(plain)
    return match.end() if match else 0


def _leading_bullet(plain: str) -> Iterator[Word]:
    end = _bullet_end(plain)
    if plain[:end].strip():
        yield Word(BULLET, end, end)


_GLUED = re.compile(r"(?P<kind>milestone|epic|story|task|ticket|subtask)(?P<number>#?\d{1,9})")


def _read(text: str, start: int, end: int) -> Iterator[Word]:
    """Yield the normal words of what stands between blanks and marks."""
    if text in _DASHES:
        yield Word(_dash(text), start, end)
        return
    low = text.lower().strip("*_~<>")
    if (match := _GLUED.fullmatch(low)) is not None:
        middle = start + len(match["kind"])
        yield from (Word(match["kind"], start, middle), Word(match["number"], middle, end))
        return
    if low in SPELLINGS:
        first, *others = SPELLINGS[low].split()
        yield Word(first, start, end)
        yield from (Word(other, end, end) for other in others)
        return
    match = _APOSTROPHE.fullmatch(low) if "'" in low else None
    if match is None:
        if any(c.isalnum() for c in low):
            yield Word(low, start, end)
        elif low in _SIGNS:
            yield Word(_SIGNS[low], start, end)
        elif low[:1] in _PICTURES:
            yield Word(_PICTURES[low[0]], start, end)
        return
    stem, tail = match["stem"], match["tail"]
    middle = end - len(tail)
    if tail == "'d" and stem in _ASK_STEMS:
        yield from (Word(stem, start, middle), Word("did", middle, end))
        return
    if tail == "'s" and stem == "let":
        yield from (Word("let", start, middle), Word("us", middle, end))
        return
    yield Word(_STEMS.get(stem, stem) if tail == "n't" else stem, start, middle)
    yield Word("is" if tail == "'s" and stem in IS_STEMS else _TAILS[tail], middle, end)

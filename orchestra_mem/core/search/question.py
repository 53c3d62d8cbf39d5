"""Parse a query beyond its words: detect whether it asks for a time, and find the agents and periods that it names.

A period affects ranking but never excludes anything: an event of May may have been recorded in June. A month or a day
without a year means the latest one that is not in the future. Periods are found in English only; of queries in other
languages, words without content are only searched for, not compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from orchestra_mem.core.search.terms import MAX_QUERY_CHARS, content_words, distinct_words, fold, read_query
from orchestra_mem.search_types import Terms
from orchestra_mem.serialize import local_time

MAX_QUESTION_WORDS = 32

_ASKS_WHEN = re.compile(
    r"^\W*when\b|\b(?:when (?:did|do|does|was|were|is|are|will|has|have|had|should|can|could)|since when|how long"
    r"|how (?:recently|soon)|(?:what|which) (?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_QUARTERS = "q1 q2 q3 q4 first second third fourth 1st 2nd 3rd 4th".split()
_NUMBERS = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1)
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2}
_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_YEAR = r"(?:19|20)\d\d"
_DAY_NUMBER = r"\d{1,2}"
_QUARTER = rf"q[1-4]|(?:{'|'.join(_QUARTERS[4:])}) quarter"
_SUFFIX = r"(?:st|nd|rd|th)?"
_COUNT = r"\d{1,3}|(?:a )?couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_BEFORE = r"(?:in|during|since|before|after|until|by|of|from|last|this|early|late|mid|around|for)[ -]"
_TIMES = re.compile(
    r"\b(?:"
    rf"(?P<iso_year>{_YEAR})-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?"
    rf"|(?P<before>{_BEFORE})?(?:(?P<day>{_DAY_NUMBER}){_SUFFIX}(?: of)? )?(?P<month>{_MONTH})\b\.?"
    rf"(?: (?P<day_behind>{_DAY_NUMBER}){_SUFFIX}(?!\d))?(?:(?: of)?,? ?(?P<month_year>{_YEAR}))?"
    rf"|(?:(?:in|of) )?(?P<quarter>{_QUARTER})(?:(?: of)?,? ?(?P<quarter_year>{_YEAR}))?"
    rf"|{_BEFORE}(?P<year>{_YEAR})"
    r"|(?:since|before|after|until|by) (?P<feast>christmas)"  # not "at Christmas", which may be the next one
    r"|(?P<word>today|yesterday|(?:this|last|past) (?:week|month|quarter|year))"
    rf"|(?:last|past) (?P<many>{_COUNT}) (?P<units>day|week|month|quarter|year)s?"
    r"|(?:last|(?:on|since)(?= \w+day\b)) (?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    rf"|(?P<count>{_COUNT}) (?P<unit>day|week|month|quarter|year)s? ago"
    r")\b",
    re.IGNORECASE,
)
TIME = re.sub(r"\?P<\w+>", "?:", _TIMES.pattern)
"""Pattern of a period that a line may name, without groups."""
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
_DAY = timedelta(days=1)
_LEAST, _LEAST_SHARE = 2, 0.3  # how many of a query's content words, and which share, must be stop words
_SCRIPTS_WITHOUT_SPACES = frozenset({"chinese", "japanese", "korean"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of time; `end` is exclusive. Both times are aware and in UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query.

    `terms` are for the keyword index, `words` the distinct content words for late interaction, at most 32. `periods`
    are the periods that the query names. `asks_when` is true if the answer is a time.
    """

    text: str
    terms: Terms
    words: tuple[str, ...]
    periods: tuple[Period, ...]
    asks_when: bool


def read_question(query: str, now: datetime) -> Question:
    """Parse a query, which may be any string; "last week" and the like are relative to `now`."""
    query = query[:MAX_QUERY_CHARS]
    return Question(
        text=query,
        terms=read_query(query),
        words=tuple(_telling_words(query)[:MAX_QUESTION_WORDS]),
        periods=periods_in(query, now),
        asks_when=_ASKS_WHEN.search(query) is not None,
    )


def _telling_words(query: str) -> list[str]:
    """Return the distinct content words of a query, without stop words of its language, the one with most of them."""
    every, words = distinct_words(query), content_words(query)
    stops = max((stops.intersection(every) for stops in _languages()), key=len)
    telling = [word for word in words if word not in stops]
    is_english = len(stops) <= len(every) - len(words)
    few = len(words) - len(telling) < max(_LEAST, _LEAST_SHARE * len(words))
    return words if is_english or few or not telling else telling


@cache
def _languages() -> tuple[frozenset[str], ...]:
    """Return the stop words of each language but English."""
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words  # reads files

    others = [each for each in AVAILABLE_LANGUAGES if each not in {"english", *_SCRIPTS_WITHOUT_SPACES}]
    return tuple(frozenset(fold(" ".join(get_stop_words(each, cache=False))).split()) for each in others)


def periods_in(query: str, now: datetime) -> tuple[Period, ...]:
    """Return the distinct periods that a query names, in order; impossible dates such as 31 June are ignored.

    Days begin at midnight in this machine's time zone.
    """
    found = (_period(match, local_time(now).date()) for match in _TIMES.finditer(query))
    return tuple(dict.fromkeys(filter(None, found)))


def _period(match: re.Match[str], today: date) -> Period | None:
    """Return the matched period; None if the match is no date."""
    try:
        days = _read({name: value.lower() for name, value in match.groupdict().items() if value}, today)
        return days and Period(start=_midnight(days[0]), end=_midnight(days[1]))
    except (ValueError, OverflowError):  # no such day
        return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone(UTC)  # a time without a zone is local


def _read(named: dict[str, str], today: date) -> tuple[date, date] | None:
    if "iso_year" in named:
        day = date(int(named["iso_year"]), int(named["iso_month"]), int(named.get("iso_day", 1)))
        return _around("day" if "iso_day" in named else "month", day)
    if "feast" in named:
        return _by_month({"month": "dec", "day": "25"}, today)
    if "month" in named:
        return _by_month(named, today)
    if "quarter" in named:
        month, year = _QUARTERS.index(named["quarter"].split()[0]) % 4 * 3 + 1, named.get("quarter_year")
        return _around("quarter", date(int(year or today.year - (month > today.month)), month, 1))
    if "year" in named:
        return _around("year", date(int(named["year"]), 1, 1))
    if "word" in named:
        return _by_word(named["word"], today)
    if "weekday" in named:
        back = (today.weekday() - _WEEKDAYS.index(named["weekday"][:3])) % 7 or 7
        return _around("day", today - back * _DAY)
    if "many" in named:
        return today - _number(named["many"]) * _UNIT_DAYS[named["units"]] * _DAY, today + _DAY
    # A period as long as the unit, around the day that is meant: "two months ago" is imprecise by weeks.
    days = _UNIT_DAYS[named["unit"]]
    middle = today - _number(named["count"]) * days * _DAY
    return middle - days // 2 * _DAY, middle + (days // 2 + 1) * _DAY


def _by_month(named: dict[str, str], today: date) -> tuple[date, date] | None:
    """Read a month with a day, with a year, or after a word such as "in"; alone, "may" or "march" may be a verb."""
    month, year = _MONTHS.index(named["month"][:3]) + 1, named.get("month_year")
    if day := named.get("day") or named.get("day_behind"):
        found = date(int(year or today.year), month, int(day))
        return _around("day", found if year or found <= today else date(today.year - 1, month, int(day)))
    if not year and "before" not in named:
        return None
    return _around("month", date(int(year or today.year - (month > today.month)), month, 1))


def _around(unit: str, day: date) -> tuple[date, date]:
    """Return the day, week, month, quarter or year that a day is in."""
    if unit == "day":
        return day, day + _DAY
    if unit == "week":
        monday = day - day.weekday() * _DAY
        return monday, monday + 7 * _DAY
    if unit in ("month", "quarter"):
        last = (day.month + 2) // 3 * 3 if unit == "quarter" else day.month
        first = last - 2 if unit == "quarter" else last
        return date(day.year, first, 1), date(day.year + last // 12, last % 12 + 1, 1)
    return date(day.year, 1, 1), date(day.year + 1, 1, 1)


def _by_word(word: str, today: date) -> tuple[date, date]:
    which, _, unit = word.rpartition(" ")
    if which == "past":
        return today - _UNIT_DAYS[unit] * _DAY, today + _DAY
    unit = unit if which else "day"
    is_last = which == "last" or word == "yesterday"
    return _around(unit, _around(unit, today)[0] - _DAY if is_last else today)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]

"""Read times and periods: ISO 8601, spans such as `7d`, and English names such as "last Monday" and "since March".

All interfaces read the times that people give them here. A month or a day without a year means the latest one that is
not in the future.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import InvalidTimeError
from orchestra_mem.serialize import local_time

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_QUARTERS = "q1 q2 q3 q4 first second third fourth 1st 2nd 3rd 4th".split()
_TO_TWENTY = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS = {word: number for number, word in enumerate(_TO_TWENTY.split(), start=1)}
_NUMBERS |= zip("thirty forty fifty sixty seventy eighty ninety".split(), range(30, 100, 10), strict=True)
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2}
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
_UNIT = "day|week|fortnight|month|quarter|year"
_TIMES = re.compile(
    r"\b(?P<week_of>week of )?(?:"
    rf"(?P<iso_year>{_YEAR})-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?"
    rf"|(?P<before>{_BEFORE})?(?:(?P<day>{_DAY_NUMBER}){_SUFFIX}(?: of)? )?(?P<month>{_MONTH})\b\.?"
    rf"(?: (?P<day_behind>{_DAY_NUMBER}){_SUFFIX}(?!\d))?(?:(?: of)?,? ?(?P<month_year>{_YEAR}))?"
    rf"|(?:(?:in|of) )?(?P<quarter>{_QUARTER})(?:(?: of)?,? ?(?P<quarter_year>{_YEAR}))?"
    rf"|{_BEFORE}(?P<year>{_YEAR})(?!-\d)"  # "since 2026-05-02" is a day
    r"|(?:since|before|after|until|by) (?P<feast>christmas)"  # not "at Christmas", which may be the next one
    rf"|{_BEFORE}(?:calendar )?week (?P<week>\d{{1,2}})(?:(?: of)?,? (?P<week_year>{_YEAR}))?"
    r"|(?P<word>today|yesterday|(?:this|last|past) (?:week|fortnight|month|quarter|year)|(?:this|last) weekend)"
    rf"|(?:last|past) (?P<many>{_COUNT}) (?P<units>{_UNIT})s?"
    r"|(?:last|(?:on|since)(?= \w+day\b)) (?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    rf"|(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? ago"
    r")\b",
    re.IGNORECASE,
)
TIME = re.sub(r"\?P<\w+>", "?:", _TIMES.pattern)
"""Pattern of a period that a line may name, without groups."""
_HOURS = re.compile(r"(?i)\b(?:last|past) (?:(\w+) )?(minute|hour)s?\b")
_PAST = re.compile(r"\b(?:since|last|past) (\d{1,4} ?[smhdw])\b")
_UNTIL = ("until", "till", "by")
_BOUND = re.compile(rf"(?i)\b(before|after|since|{'|'.join(_UNTIL)})\s+")
_BETWEEN = re.compile(r"(?i)\b(?:between|from) ((?:\w+ ){0,3}\w+) (?:and|to|until|till|through) ((?:\w+ ){0,3}\w+)")
_WHOLE = rf"(?i)(?:since )?(?:{TIME})|{_HOURS.pattern.removeprefix('(?i)')}"
# Words for times, apart from "may", "march" and short names, which have other meanings as well.
_NAMES = (
    rf"(?:{_UNIT}|hour|minute|weekend|morning|afternoon|evening|night|spring|summer|autumn|winter)s?|tomorrow|tonight"
    r"|(?:first|second) half|easter|christmas|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|febr)uary|april|june"
    rf"|july|august|(?:septem|octo|novem|decem)ber|\d{{1,2}}(?:st|nd|rd|th)|{_YEAR}"
)
_NAME_OF_TIME = re.compile(rf"(?i)\b(?:{_NAMES})\b")
_TOLD_OF_TIME = re.compile(
    rf"(?i)\b(?:(?:{TIME}|{_NAMES}|\d+|the|of|last|next|this|past|coming|other|before|after|first|second|half|early|mid"
    r"|late|may|march)\b[ ,-]*)+"
)
_SPAN = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_UNIT_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of time; `end` is exclusive. Both times are aware and in UTC."""

    start: datetime
    end: datetime


def parse_span(given: str) -> timedelta | None:
    """Parse a duration such as `30m`, `2h` or `7d`; None if the text is not a duration."""
    span = _SPAN.fullmatch(given)
    return timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else None


def parse_time(given: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Parse an ISO 8601 time, a span back from now such as `2h`, or a period such as "Monday", which means its start.

    Args:
        given: The text.
        now: The present, from which spans and periods count.
        zone: Time zone of times without an offset and of periods, None for this machine's.

    Raises:
        InvalidTimeError: The text is none of these, or the time is out of range.
    """
    given = given.strip()
    with suppress(ValueError, OverflowError):
        if (span := parse_span(given)) is not None:
            return now - span
        moment = datetime.fromisoformat(given.upper())  # RFC 3339 allows `t` and `z`
        return moment if moment.tzinfo else moment.replace(tzinfo=zone).astimezone(UTC)
    # "Monday" alone is no period in a sentence; "before May" has no beginning.
    for named in (given,) if _BOUND.match(given) else (given, f"since {given}"):
        since = bounds_in(named, now, zone)[0] if re.fullmatch(_WHOLE, named) else None
        if since is not None:
            return since
    raise InvalidTimeError(
        f"{given!r} is not a time; use ISO 8601 such as 2025-01-31T14:00 ({zone or 'local time'} if it has no offset), "
        'a span before now such as 30m or 7d, or a period from its start, such as Monday, "last week" or "2 May"'
    )


def periods_in(query: str, now: datetime, zone: tzinfo | None = None) -> tuple[Period, ...]:
    """Return the distinct periods that a query names, in order; impossible dates such as 31 June are ignored.

    Days begin at midnight in `zone`, by default this machine's time zone.
    """
    today = (now.astimezone(zone) if zone else local_time(now)).date()
    found = (_period(match, today, zone) for match in _TIMES.finditer(query))
    return tuple(dict.fromkeys(filter(None, found)))


def bounds_in(text: str, now: datetime, zone: tzinfo | None = None) -> tuple[datetime | None, datetime | None]:
    """Return from when on and until when a text asks, such as "since May" or "last hour"; None for no bound."""
    if (past := _PAST.search(text)) and (span := parse_span(past[1])):
        return now - span, None
    if hours := _HOURS.search(text):
        count = int(hours[1]) if (hours[1] or "").isdecimal() and len(hours[1]) < 5 else 0
        count = count or _NUMBERS.get((hours[1] or "").lower(), 1)
        return now - timedelta(**{f"{hours[2].lower()}s": count}), None
    for each in _BETWEEN.finditer(text):
        if ends := periods_in(f"in {each[2]}", now, zone):  # what it begins with is the last one before its end
            starts = periods_in(f"in {each[1]}", ends[0].end - timedelta(days=1), zone)
            return (starts or ends)[0].start, ends[0].end
    if not (periods := periods_in(text, now, zone)):
        return None, None
    start, end = periods[0].start, periods[0].end
    bounds = {"before": (None, start), "after": (end, None), "since": (start, None)} | dict.fromkeys(
        _UNTIL, (None, end)
    )
    named = re.compile(TIME, re.IGNORECASE)
    words_before = (each for each in _BOUND.finditer(text) if any(named.match(text, at) for at in each.span()))
    return next((bounds[each[1].lower()] for each in words_before), (start, end))


def unread_period(text: str, now: datetime) -> str:
    """Return words of a text that name a time which `bounds_in` does not read, such as "next week"; "" if none do."""
    for told in _TOLD_OF_TIME.finditer(_BETWEEN.sub(lambda ends: "" if bounds_in(ends[0], now)[1] else ends[0], text)):
        unread = _TIMES.sub(lambda each: "" if periods_in(each[0], now) else each[0], _HOURS.sub("", told[0]))
        if _NAME_OF_TIME.search(unread):
            return told[0].strip(" ,-")
    return ""


def without_periods(text: str) -> str:
    """Return a text without the periods that it names, or the text if that leaves nothing."""
    return squeeze(re.sub(TIME, " ", text, flags=re.IGNORECASE)) or text


def _period(match: re.Match[str], today: date, zone: tzinfo | None) -> Period | None:
    """Return the matched period; None if the match is no date."""
    try:
        named = {name: value.lower() for name, value in match.groupdict().items() if value}
        days = _read(named, today)
        days = _around("week", days[0]) if days and "week_of" in named else days
        return days and Period(start=_midnight(days[0], zone), end=_midnight(days[1], zone))
    except (ValueError, OverflowError):  # no such day
        return None


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)  # a time without a zone is local


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
    if "week" in named:
        number, year = int(named["week"]), named.get("week_year")
        monday = date.fromisocalendar(int(year or today.year), number, 1)
        return _around("week", monday if year or monday <= today else date.fromisocalendar(today.year - 1, number, 1))
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
    start, end = _around("month", date(int(year or today.year - (month > today.month)), month, 1))
    tenth, twentieth = start + 10 * _DAY, start + 20 * _DAY
    parts = {"early": (start, tenth), "mid": (tenth, twentieth), "late": (twentieth, end)}
    return parts.get(named.get("before", "")[:-1], (start, end))


def _around(unit: str, day: date) -> tuple[date, date]:
    """Return the day, week, month, quarter or year that a day is in, or the weekend of its week."""
    if unit == "day":
        return day, day + _DAY
    if unit in ("week", "weekend"):
        monday = day - day.weekday() * _DAY
        return monday + (5 * _DAY if unit == "weekend" else 0 * _DAY), monday + 7 * _DAY
    if unit in ("month", "quarter"):
        last = (day.month + 2) // 3 * 3 if unit == "quarter" else day.month
        first = last - 2 if unit == "quarter" else last
        return date(day.year, first, 1), date(day.year + last // 12, last % 12 + 1, 1)
    return date(day.year, 1, 1), date(day.year + 1, 1, 1)


def _by_word(word: str, today: date) -> tuple[date, date]:
    which, _, unit = word.rpartition(" ")
    if which == "past" or unit == "fortnight":
        return today - _UNIT_DAYS[unit] * _DAY, today + _DAY
    unit = unit if which else "day"
    is_last = which == "last" or word == "yesterday"
    return _around(unit, _around(unit.removesuffix("end"), today)[0] - _DAY if is_last else today)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]

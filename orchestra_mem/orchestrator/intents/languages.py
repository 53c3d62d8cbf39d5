"""Parse plain commands in other languages than English, by the forms in `forms.toml`, into the same intents.

As in the English grammar, a form must match a whole command, and any other text (a negation, a condition) rejects the
line. Items, kinds, counts, priorities and statuses are translated; titles, names and reasons stay as they were typed.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping
from functools import cache, cached_property, partial
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import Any

from orchestra_mem.orchestrator.intents import ASKS, Action, Intent
from orchestra_mem.orchestrator.intents.classifier import classifier
from orchestra_mem.orchestrator.intents.grammar import borders, intent_of, read_commands, with_parts

FORMS = Path(__file__).with_name("forms.toml")
_ID = r"#?\d{1,18}"
_CUE = 4  # letters of a word that tell its language
_QUOTED = r'"[^"]+"'
_ASKED_FOR = {Action.LIST: "states", Action.RECENT: "facts"}
_ENGLISH = {
    "months": "jan feb mar apr may jun jul aug sep oct nov dec", "weekdays": "mon tue wed thu fri sat sun",
    "units": "day week month quarter year", "quarters": "1 2 3 4", "counts": "1 2 3 4 5 6 7 8 9 10 11 12",
}  # fmt: skip
# Marks of other languages and their ASCII equivalents; commas and stops between words stay.
_MARKS = str.maketrans("“”„‟«»「」『』《》：？！；＃’", '""""""""""""' + ":?!;#'")


class Language:
    """The forms of one language, compiled when a line first seems to be in it.

    Args:
        table: The language's table in `forms.toml`.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._spaced = bool(table["spaces"])
        self._joins, self._me = re.compile(table["joins"], re.IGNORECASE), _compiled(table["me"])
        self._polite = re.compile(rf"[,，]? ?{self._word_of(table['polite'])}[,，]? ?", re.IGNORECASE)
        self._asking = re.compile(rf"(?:{table['asking']})[ ,]*", re.IGNORECASE)
        tables = {name: table[name] for name in ("kinds", "items", "levels", "states", "facts")}
        tables |= {name: dict(zip(words.split(), table[name], strict=True)) for name, words in _ENGLISH.items()}
        self._words = {
            name: {word: _compiled(forms) for word, forms in words.items()} for name, words in tables.items()
        }

    @cached_property
    def _cues(self) -> frozenset[str]:
        return frozenset(self._beginnings(" ".join(_strings(self._table)), frozenset()))

    def _beginnings(self, text: str, but: Container[str]) -> Iterator[str]:
        """Yield the first letters of each word of three or more; each single letter in a script without spaces."""
        letters = r"[^\W\d_]{3,}" if self._spaced else r"[^\W\d_a-z]"
        words = re.findall(letters, re.sub(r"<\w+>|\\.", " ", text.lower()))
        return (_folded(word)[:_CUE] for word in words if word not in but or not word.isascii())

    @cached_property
    def _forms(self) -> list[tuple[Action, bool, Callable[[], re.Pattern[str]]]]:
        """Each form's action, whether it is only for questions, and its pattern, compiled on first use: it is slow."""
        parts = self._parts()
        return [
            (Action(action), form[0] == "?", cache(partial(_pattern, form.removeprefix("? "), parts)))
            for action, forms in self._table["forms"].items()
            for form in forms
        ]

    @cached_property
    def _times(self) -> dict[str, re.Pattern[str]]:
        """Each time and period that a question may name, by its English words, where <> stand for parts of it."""
        table = self._table
        parts = {name[:-1]: f"(?P<{name[:-1]}>{'|'.join(table[name])})" for name in _ENGLISH} | {
            "count": rf"(?P<count>\d{{1,3}}|{'|'.join(table['counts'])})",
            "day": r"(?P<day>\d{1,2})", "year": r"(?P<year>(?:19|20)\d\d)",
        }  # fmt: skip
        time = "|".join(with_parts(form, parts) for form in table["times"].values())
        parts["time"] = f"(?P<time>{re.sub(r'[?]P<[a-z]+>', '?:', time)})"
        return {english: _pattern(form, parts) for english, form in (table["times"] | table["periods"]).items()}

    @cached_property
    def _period(self) -> re.Pattern[str]:
        forms = "|".join(self._times[english].pattern for english in self._table["periods"])
        return _compiled(self._word_of(re.sub(r"[?]P<\w+>", "?:", forms)))

    def _word_of(self, forms: str) -> str:
        return rf"(?<!\w)(?:{forms})(?!\w)" if self._spaced else f"(?:{forms})"

    def _parts(self) -> dict[str, str]:
        table = self._table
        kind, items = (f"(?:{'|'.join(table[name].values())})" for name in ("kinds", "items"))
        article = rf"(?:(?:{table['articles']}) ?)?"
        one = rf"{article}(?:(?:{kind}|{table['number']}) ?)?{_ID}"
        several = rf"{one}(?:(?:, ?| ?(?:{table['and']}) ?){article}{_ID})*|{_ID} ?(?:-|{table['through']}) ?{_ID}"
        of_kind = rf"(?:{table['articles']}) ?{kind}"
        item = rf"(?:{several}|{items}(?: {kind})?|{of_kind}|{article}(?:{kind} ?)?{_QUOTED})"
        barred = self._word_of(table["barred"])
        plain = rf'(?:(?!{barred})(?:[^,;:?.!"，。]|\.(?=\w)))+'
        counted = rf"(?:\d{{1,3}}|{'|'.join(table['counts'])})"
        named = rf"(?:(?<=:)|(?<=: )|(?!#?\d+(?![\w.]))){plain}"  # "task 4 urgent" is about task 4
        word = rf"(?!(?:{kind}|{table['articles']})(?!\w))[\w'-]+"
        name = rf"(?:{word}\.? )?{word}" if self._spaced else r"[^\s,，。]{1,8}?"
        parts: dict[str, str] = table["parts"]
        return parts | {
            "t": f"(?P<target>{item})", "o": f"(?P<other>{item})",
            "kind": f"(?P<kind>{kind})", "n": f"(?P<count>{counted}) ?", "title": f"(?P<title>{_QUOTED}|{named})",
            "titles": r"(?P<titles>[^;:?]+)", "text": r"(?P<value>[^?]+)", "why": f"(?P<value>{plain})",
            "failure": r"(?P<failure>[^?]+)", "fault": f"(?P<failure>{plain})",
            "when": f"(?P<value>{plain})", "ask": r"(?P<value>[^?;]+)",
            "who": f"(?P<value>@?{name})", "me": f"(?P<value>{table['me']})",
            "level": f"(?P<level>p?[1-5]|{'|'.join(table['levels'].values())})",
            "state": f"(?P<value>{'|'.join(table['states'].values())})",
            "fact": f"(?P<value>{'|'.join(table['facts'].values())})",
            "thing": f"(?:(?P<target>{item})|(?P<thing>[^?;]+?))",
        }  # fmt: skip

    def cues_in(self, line: str) -> frozenset[str]:
        """Return beginnings of words of this language's forms in a line, apart from common English words."""
        return self._cues.intersection(self._beginnings(line, classifier().vocabulary.common))

    def parse(self, line: str) -> tuple[Intent, ...]:
        """Parse a line that consists only of plain commands of this language; return () for any other line."""
        return read_commands(line, partial(borders, border=self._joins), self._one)

    def _one(self, piece: str) -> Intent | None:
        asks, (piece, *text) = piece.rstrip().endswith("?"), re.split("(?=:)", piece.strip(" .!?¿¡。,，"), maxsplit=1)
        parts = re.split(f"({_QUOTED})", piece)
        parts[::2] = (self._polite.sub(" " * self._spaced, part) for part in parts[::2])  # not within quotes
        piece = _squeezed("".join([*parts, *text]))  # nor behind a colon
        polite = self._asking.match(piece)
        piece = piece[polite.end() :] if polite else piece
        period = self._period.search(_folded(piece))
        start, end = period.span() if period else (0, 0)
        untimed = _squeezed(piece[:start] + " " * self._spaced + piece[end:])
        for action, only_asked, form in self._forms:
            if (asks and not polite and action not in ASKS) or (only_asked and not asks):
                continue
            plain = untimed if action is Action.RECENT else piece
            if found := form().fullmatch(_folded(plain)):
                named = {name: plain[slice(*found.span(name))] for name in found.groupdict() if found[name] is not None}
                read = dict(self._translated(action, named))
                if period and action is Action.RECENT:
                    read["value"] = f"{read.get('value', '')} {self._in_english(period[0])}".strip()
                # A name is written in capitals, where a script has them: other words after "to" are no person.
                if action is not Action.ASSIGN or not any(word[0].islower() for word in read["value"].split()):
                    return intent_of(action, read)
        return None

    def period_in_english(self, text: str) -> str:
        """Translate a time or a period, as "seit März" to "since march"; "" for any other text."""
        return self._in_english(_folded(_squeezed(text)))

    def _in_english(self, text: str) -> str:
        for english, form in self._times.items():
            if found := form.fullmatch(text):
                for group, part in filter(itemgetter(1), found.groupdict().items()):
                    name = group.rpartition("_")[0]
                    translated = self._in_english(part) if name == "time" else self._word(f"{name}s", part)
                    english = english.replace(f"<{name}>", translated, 1)
                return " ".join(re.sub(r"<\w+>", "", english).split())
        return ""

    def _translated(self, action: Action, groups: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for group, text in groups.items():
            name = group.rpartition("_")[0]
            if name in ("target", "other"):
                yield name, self._item(text)
            elif name == "thing":
                yield "target", text
            elif name == "titles":
                yield name, ", ".join(re.split(rf"\s*[,，、]\s*|\s+(?:{self._table['and']})\s+", text.strip()))
            elif name in ("kind", "count", "level"):
                yield name, self._word(f"{name}s", text)
            elif action is Action.ASSIGN:
                yield name, "Me" if not text or self._me.fullmatch(_folded(text)) else text
            else:
                yield name, self._word(_ASKED_FOR[action], text) if action in _ASKED_FOR else text

    def _word(self, table: str, text: str) -> str:
        """Translate a word by a table; return the text itself if it has no translation, such as a number."""
        forms = self._words.get(table, {}).items()
        return next((word for word, form in forms if form.fullmatch(_folded(text))), text)

    def _item(self, phrase: str) -> str:
        """Translate a phrase for items to English: "Aufgabe 3" to "task 3", "3 bis 5" to "3 to 5"."""
        if quoted := re.search(_QUOTED, phrase):
            return quoted[0]
        numbers, phrase = re.findall(_ID, phrase), _folded(phrase)
        kind = next((word for word, forms in self._words["kinds"].items() if forms.search(phrase)), "")
        if not numbers:
            bare = self._words["kinds"][kind].sub("", phrase).strip() if kind else phrase
            which = next((word for word, forms in self._words["items"].items() if forms.fullmatch(bare)), "")
            return f"{which.removesuffix(' one') if ' one' in which else 'the'} {kind}" if kind else which or phrase
        is_range = len(numbers) == 2 and re.search(rf"\d ?(?:-|{self._table['through']}) ?#?\d", phrase, re.IGNORECASE)
        return f"{kind} {' to '.join(numbers) if is_range else ', '.join(numbers)}".strip()


def _strings(table: object) -> Iterator[str]:
    if isinstance(table, str):
        yield table
    elif isinstance(table, dict | list):
        yield from chain.from_iterable(map(_strings, table.values() if isinstance(table, dict) else table))


def _squeezed(text: str) -> str:
    return " ".join(text.split()).strip(" ,，.!。")


def _folded(text: str) -> str:
    """Drop the accents of a text, as people who type fast do; its length stays."""
    return "".join(unicodedata.normalize("NFD", character)[0] for character in text)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_folded(pattern), re.IGNORECASE)


def _pattern(form: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    """Replace the names in a form by their parts, and number the groups, as their names must be unique."""
    numbers = count()
    expanded = with_parts(form, parts)
    return _compiled(re.sub(r"\(\?P<(\w+)>", lambda match: f"(?P<{match[1]}_{next(numbers)}>", expanded))


@cache
def languages() -> tuple[Language, ...]:
    """Return the languages of `forms.toml`, compiled on first use."""
    tables = tomllib.loads(FORMS.read_text(encoding="utf-8"))
    return tuple(Language({"spaces": name != "zh", **table}) for name, table in tables.items())


def parse_foreign(line: str) -> tuple[Intent, ...]:
    """Parse a line that consists only of plain commands of one language other than English; return () otherwise."""
    line = line.translate(_MARKS)
    found = dict.fromkeys(filter(None, (each.parse(line) for each in languages() if each.cues_in(line))))
    return next(iter(found)) if len(found) == 1 else ()  # similar languages may read a line differently


def period_in_english(text: str) -> str:
    """Translate a text that is only a period, such as "letzten Montag"; "" if no language, or several, read it so."""
    found = {each.period_in_english(text) for each in languages()} - {""}
    return found.pop() if len(found) == 1 else ""


def is_foreign(line: str) -> bool:
    """Check whether a line seems not to be English: without ASCII words, or with a language's words and few others."""
    words = set(re.findall(r"[^\W\d_]+", line.lower()))
    latin = {*filter(str.isascii, words)}
    is_mixed = 3 * len(latin & classifier().vocabulary.common) <= len(words)
    return bool(words) and (not latin or (is_mixed and any(len(each.cues_in(line)) > 1 for each in languages())))

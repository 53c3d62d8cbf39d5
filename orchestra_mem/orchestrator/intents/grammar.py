"""The grammar: the few strict forms of `english.toml`, used to parse lines; and forms to write intents as commands.

A completely parsed line needs no confirmation; a line with any other text, such as a condition or a negation, is
rejected. Phrases for items must be unambiguous: a number, a pronoun, a kind with "the", or a quoted title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from orchestra_mem.core.periods import TIME
from orchestra_mem.core.work.wording import a
from orchestra_mem.orchestrator.intents import ASKS, NEW, Action, Intent
from orchestra_mem.orchestrator.intents.slots import ENGLISH, KIND_WORDS, PRIORITY_WORDS, number_of
from orchestra_mem.work_types import WorkKind

_LEVELS = "|".join(word for word, level in PRIORITY_WORDS.items() if level.isdigit() and word.isalnum())
_PARTS: dict[str, str] = ENGLISH["parts"] | {"time": TIME, "levels": _LEVELS}


def with_parts(form: str, parts: Mapping[str, str]) -> str:
    """Replace the names in `<>` by their parts, which may have parts themselves."""
    while (replaced := re.sub(r"(?<!P)<(\w+)>", lambda match: parts[match[1]], form)) != form:
        form = replaced
    return form


def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(with_parts(form, _PARTS), re.IGNORECASE)


def _table(forms: Mapping[str, Iterable[str]]) -> tuple[tuple[Action, re.Pattern[str]], ...]:
    return tuple((Action(action), _compiled(form)) for action, each in forms.items() for form in each)


_TABLE, _WHOLE = _table(ENGLISH["read"]), _table(ENGLISH["whole"])
_QUESTIONS = tuple((action, form) for action, form in _TABLE if action in ASKS)
_POLITE = re.compile(
    r"(?i)^(?:please,? |pls |ok(?:ay)?,? |(?P<asked>(?:can|could|would) you ))+|,? (?:please|pls|thank(?:s| you))$"
)
ITEM = _compiled("<item>")
"""Matches phrases that can only mean items."""
_NO_TITLE = _compiled("^(?:<it>)$")
_FREE = frozenset({Action.NOTE, Action.DECIDE, Action.REPORT, Action.FIND, Action.WHY, Action.RECENT})
_MOST_CUTS = 12
_BORDER = re.compile(
    r"""(?x) [;.!?\n]\s+ (?:(?:and|then|also|but|so)\b[\s,]*)*      # the end of a sentence
    | ,\s* (?:(?:and|then|also|but|so)\s+)*                         # a comma, with or without a word behind it
    | \s+ (?:and|then|but|so|&|[-\u2013\u2014])\s+ (?:(?:then|also|so)\s+)*"""
)
_SEMICOLON, _COMMA = re.compile(r"\s*;\s*"), re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_QUOTES = re.compile(r'"[^"]*"|\u201c[^\u201d]*\u201d|(?<!\w)\'[^\']*\'(?!\w)')
LEVELS = {"1": "urgent", "2": "high", "3": "medium", "4": "low", "5": "lowest"}
"""The names of the priorities."""


def borders(line: str, border: re.Pattern[str] = _BORDER) -> list[tuple[int, int]]:
    """Return where one command may end and the next begin, as offsets (end of the first, start of the next)."""
    quoted = [match.span() for match in _QUOTES.finditer(line)]
    found = (match.span() for match in border.finditer(line) if match.start() > 0 and match.end() < len(line))
    return [span for span in found if not any(start < span[0] < end for start, end in quoted)]


def parse_line(line: str) -> tuple[Intent, ...]:
    """Parse a line that consists only of commands in the grammar; return () if any part does not match."""
    line = " ".join(line.replace("\u201c", '"').replace("\u201d", '"').replace("\u2019", "'").split())
    noted = _by_forms(line, _WHOLE)
    return (noted,) if noted else read_commands(line, borders, _one)


def read_commands(
    line: str, cuts_in: Callable[[str], list[tuple[int, int]]], one: Callable[[str], Intent | None]
) -> tuple[Intent, ...]:
    """Parse a line from right to left; prefer a split into commands to the unsplit line, and longer first commands.

    `cuts_in` finds where one command may end and the next begin; `one` parses a single command.
    """
    cuts = cuts_in(line)
    if len(cuts) > _MOST_CUTS:
        whole = one(line)
        return (whole,) if whole and (whole.titles or whole.action in _FREE) else ()
    read: dict[int, tuple[Intent, ...]] = {}
    for start in (*(right for _, right in reversed(cuts)), 0):
        whole = one(line[start:])
        rests = [(left, read[right]) for left, right in reversed(cuts) if left > start and read[right]]
        if whole and whole.action in _FREE and rests:  # ambiguous: the end of its text may be a command
            rests, whole = [], None
        found = ((head, *rest) for left, rest in rests if (head := one(line[start:left])))
        read[start] = next(found, (whole,) if whole else ())
    return read[0]


def _one(piece: str) -> Intent | None:
    asks = piece.endswith("?")
    piece, polite = piece.rstrip(" .!?"), False
    while match := _POLITE.search(piece):
        polite = polite or bool(match["asked"])
        piece = (piece[: match.start()] + piece[match.end() :]).strip()
    return _by_forms(piece, _QUESTIONS if asks and not polite else _TABLE)


def _by_forms(piece: str, forms: Iterable[tuple[Action, re.Pattern[str]]]) -> Intent | None:
    for action, form in forms:
        if (found := form.fullmatch(piece)) and (intent := intent_of(action, found.groupdict())):
            return intent
    return None


def intent_of(action: Action, groups: Mapping[str, str | None]) -> Intent | None:
    """Build an intent from the parts of a command, None if the number of titles contradicts the count."""
    title = _unquoted(_NO_TITLE.sub("", groups.get("title") or ""))
    titles = tuple(_split(groups.get("titles") or "")) or tuple(filter(None, [title]))
    count = number_of(groups.get("count") or "0")
    if count and titles and count != len(titles):
        return None
    kind, value = (groups.get("kind") or "").lower().replace("-", ""), _unquoted(groups.get("value"))
    if action is Action.RENAME:
        value, titles = "".join(titles), ()
    if action is Action.PRIORITISE or groups.get("level"):
        value = PRIORITY_WORDS[(groups.get("level") or value).lower()]
    if action is Action.REPORT:
        value = value or ": ".join(filter(None, ("failed", groups.get("failure"))))
    if action is Action.ASSIGN:
        value = "me" if value.lower() in ("me", "myself") else value.removeprefix("@")
    return Intent(
        action=action, kind=KIND_WORDS.get(kind), count=count, titles=titles, value=value,
        target=_unquoted(groups.get("target")), other=_unquoted(groups.get("other")),
    )  # fmt: skip


def _split(listed: str) -> list[str]:
    """Split a list of titles, outside quotes: at semicolons or, if it has none, at commas and at "and"."""
    cuts = borders(listed, _SEMICOLON) or borders(listed, _COMMA)
    starts, ends = [0, *(right for _, right in cuts)], [*(left for left, _ in cuts), len(listed)]
    titles = (_unquoted(listed[start:end]) for start, end in zip(starts, ends, strict=True))
    return [title for title in titles if title]


def _unquoted(text: str | None) -> str:
    text = (text or "").strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def as_command(intent: Intent) -> str:
    """Format an intent as a command that a user would type; "" if the intent lacks a part that its command needs."""
    other, value = _item(intent.other), intent.value
    if intent.action in NEW:
        return _new(intent, other)
    said = {
        "target": _item(intent.target or "it"),
        "on": _item(intent.target),
        "other": other,
        "value": value.removeprefix("until ") if intent.action is Action.DEFER else value,
        "change": {"higher": "raise", "lower": "lower"}.get(value, ""),
        "level": LEVELS.get(value, "high"),
        "kinds": intent.kind.plural if intent.kind else "items",
    }
    forms = ENGLISH["written"].get(intent.action, (f"{intent.action} {{target}}",))
    is_said = (str(form) for form in forms if all(said[field] for field in re.findall(r"{(\w+)}", form)))
    return next(is_said, "").format(**said)


def _item(phrase: str) -> str:
    """Quote a phrase unless the grammar recognises it as an item without quotes."""
    return phrase if not phrase or ITEM.fullmatch(phrase) else f'"{phrase}"'


def _new(intent: Intent, other: str) -> str:
    if intent.target and other:  # an existing item that moves
        return f"move {_item(intent.target)} under {other}"
    kind = intent.kind or WorkKind.TASK
    many = max(intent.count, len(intent.titles))
    under = f" to {other}" if other else ""
    level = f" with {LEVELS[intent.value]} priority" if intent.value in LEVELS else ""
    if many > 1:
        listed = ", ".join(intent.titles)
        if _split(listed) != [*intent.titles]:
            listed = ", ".join(f'"{title}"' for title in intent.titles)
        return f"add {many} {kind.plural}{under}" + (f": {listed}" if listed else "")
    title = f' "{intent.titles[0]}"' if intent.titles else ""
    return "" if not title and not other else f"{'add' if other else 'create'} {a(kind)}{title}{under}{level}"

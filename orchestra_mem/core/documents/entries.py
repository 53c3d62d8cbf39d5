"""Render operations: as entries of the session document, in one line, and as plain text for summarising.

An entry is identified by the `(op 12)` at the end of its heading, however people edit the rest. Multi-line values are
quoted, so that nothing in an operation can start a heading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import TypeVar

from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.types import AS_GIVEN, SHOWN, VERSION, Json, Operation

T = TypeVar("T")

_MAX_ITEMS = 40
_MAX_FLAT_DEPTH = 8
_LEAST_CHARS = 80
_CLIP_NOTE = 60
_TITLE_CHARS = 100
# The heading shows the first of these fields that an operation has.
_TITLE_FIELDS = "title subject task_title name intent_type intent speaker role tool command".split()
# The short form also shows the first field of each of these rows.
_ABOUT_FIELDS = ("task", "input")
_OUTCOME_FIELDS = "result outcome status decision note error text message content user_input".split()
# Fields that hold speech: their text is clear without a label.
SPEECH_FIELDS = frozenset(
    "text message content input user_input prompt body note comment subject title task_title summary".split()
)
_PLACE = re.compile(r"line \d+")  # a field of an imported note: its name is only a position
_VERSIONED = ("note", "rules")  # types of imported operations that have a digest of their source
# Fields that only identify things; other fields name the same things readably.
_NUMBER_FIELD = re.compile(r"(?:^|_)(?:id|uuid|hash|sha)$", re.IGNORECASE)
NAME_FIELDS = ("speaker", "author", "from")
"""Fields that name who said something."""

_FIELD_CHARS = 80
# Fields about how something was said or done, rather than its content.
_FRAME_FIELDS = frozenset(
    "speaker author role from tool added deleted files_changed tokens agent intent changed spoken_of undone "
    "settled finish_reason".split()
)
_LARGE_WORK = re.compile(r"milestone|epic|story", re.IGNORECASE)
_ACRONYMS = {"nl": "NL", "llm": "LLM", "api": "API", "id": "ID", "url": "URL", "ci": "CI", "http": "HTTP", "sql": "SQL"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An operation with its renderings, made when first used: many entries are of other processes and never shown.

    `started`: First day of the session (UTC). `max_chars`: About the longest `text`.
    """

    operation: Operation
    started: date
    max_chars: int

    @cached_property
    def text(self) -> str:
        """The entry in the session document."""
        return f"### {self._heading}\n{_body(self.operation, self.max_chars)}\n"

    @cached_property
    def short(self) -> str:
        """The operation in one line."""
        return f"- {self._heading}{outcome_words(self.operation.data)}\n"

    @property
    def _heading(self) -> str:
        operation, time = self.operation, self.operation.timestamp
        when = f"{time.hour:02}:{time.minute:02}:{time.second:02}"  # much faster than `strftime`
        if time.date() != self.started:
            when = f"{time:%Y-%m-%d} {when}"
        return f"[{when}] {entry_title(operation.type, operation.data)} (op {operation.id})"


def entry_title(operation_type: str, data: Json) -> str:
    """Return an entry's heading without time and number, such as `NL Command: Create Epic`."""
    kind, title = label(operation_type), _first_line(data, _TITLE_FIELDS, _TITLE_CHARS)
    return f"{kind}: {title}" if title else kind


def _body(operation: Operation, max_chars: int) -> str:
    """Render the text below the heading: one line per field, at most about `max_chars` characters."""
    data = operation.data
    fields = data if isinstance(data, dict) else {"data": data}
    limit = max(80, max_chars * 3 // 4)
    lines: list[str] = []
    used = 0
    for name, value in fields.items():
        if used >= max_chars:
            lines.append(f"*({len(fields) - len(lines):,} more fields: expand op {operation.id})*\n")
            break
        line = (
            ""
            if name == AS_GIVEN or value in (None, "", [], {}) or (name == VERSION and operation.type in _VERSIONED)
            else _field_line(operation, name, value, min(limit, max_chars - used))
        )
        lines.append(line)
        used += len(line)
    if operation.tokens != operation.entry_tokens:  # the caller has reported another count
        lines.append(f"**Tokens**: {operation.tokens:,}\n")
    return "".join(lines)


def plain_text(operation: Operation, *, max_chars: int = 64_000) -> str:
    """Return an operation's content for a summariser: speech as it is, other fields as `Label: value`.

    Ids such as `task_id`, fields such as the speaker, and the memory's own answers are left out. Long values lose
    their middle.
    """
    data = operation.data
    if not isinstance(data, dict):
        return flat(data, max_chars)
    lines: list[str] = []
    left = max_chars
    for name, value in data.items():
        if left <= 0:
            break
        if name in (AS_GIVEN, SHOWN) or name in _FRAME_FIELDS or _NUMBER_FIELD.search(name[-8:]):
            continue
        text = _named(value) or flat(_ends(value, left), left)
        if text:
            lines.append(text if name in SPEECH_FIELDS or _PLACE.fullmatch(name) else f"{label(name)}: {text}")
            left -= len(lines[-1])
    return "\n".join(lines)


def first_field(data: Json, names: Sequence[str]) -> str:
    """Return the first non-blank value of the named fields, escaped and on one line; empty if all are blank."""
    if isinstance(data, dict):
        for name in names:
            value = data.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                # Summaries and labels show the value, so it is escaped like all other recorded data.
                return squeeze(visible(str(value).strip()[:_FIELD_CHARS]))
    return ""


def _named(value: Json) -> str:
    """Join the names in a list of mappings: of changed files the paths matter, not the counts of changed lines."""
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value[:_MAX_ITEMS]):
        return ""
    names = [name for item in value[:_MAX_ITEMS] if isinstance(item, dict) and (name := _name_in(item))]
    more = f", {len(value) - len(names):,} more" if len(value) > len(names) else ""
    return ", ".join(names) + more if names else ""


def _name_in(item: dict[str, Json]) -> str:
    for name in ("path", "name", "title", "id", "file"):
        value = item.get(name)
        if isinstance(value, str | int) and str(value).strip():
            return visible(str(value)[:_TITLE_CHARS])
    return ""


def _ends(value: Json, max_chars: int) -> Json:
    """Return both ends of a long text, cut between words if possible. A note at the cut would be taken for speech."""
    if not isinstance(value, str) or len(value) <= max_chars:
        return value
    head, tail = value[: max_chars * 2 // 3], value[len(value) - max_chars // 3 :]
    head = head[: max(head.rfind(" "), head.rfind("\n"), 0) or None]
    cuts = [place for place in (tail.find(" "), tail.find("\n")) if place >= 0]
    return f"{head}\n{tail[min(cuts, default=0) :]}"


def is_critical(operation_type: str, data: Json) -> bool:
    """Check whether an operation is critical: a decision, a failure, or a completed milestone, epic or story.

    See section 3.6 of the source design.
    """
    if operation_type == "decision":
        return True
    status = data.get("status") if isinstance(data, dict) else None
    status = status.lower() if isinstance(status, str) else ""
    if status in {"failed", "error"}:
        return True
    return status in {"completed", "done"} and bool(_LARGE_WORK.search(f"{operation_type} {flat(data, 4_000)}"))


@lru_cache(maxsize=512)
def label(name: str) -> str:
    """Return the name of a field or type as a label: `NL Command` for `nl_command`."""
    words = re.split(r"[\s_]+", visible(name[: 2 * _TITLE_CHARS]).strip())
    return " ".join(_ACRONYMS.get(word.lower(), word[:1].upper() + word[1:]) for word in words)[:_TITLE_CHARS]


def clip(text: str, max_chars: int, note: str = "") -> str:
    """Shorten a text to about `max_chars` by replacing its middle with the number of characters left out."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 2 // 3, max_chars // 3
    return f"{text[:head]} … [{len(text) - head - tail:,} characters left out{note}] … {text[len(text) - tail :]}"


def flat(value: Json, max_chars: int = 64_000, depth: int = 0) -> str:
    """Render a JSON value as plain text of about `max_chars`: lists by comma or line, mappings as `key: value`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        # Clip before escaping, which reads every character, and again after it, since escapes are longer.
        return clip(visible(clip(value, max_chars)), max_chars + _CLIP_NOTE)
    if depth >= _MAX_FLAT_DEPTH:
        return "…" if value else ""
    each = max(_LEAST_CHARS, max_chars // max(1, min(len(value), 4)))
    if isinstance(value, dict):
        shown = [f"{label(key)}: {flat(item, each, depth + 1)}" for key, item in _some(list(value.items()))]
    else:
        shown = [flat(item, each, depth + 1) for item in _some(value)]
    if len(value) > len(shown):
        shown.insert(len(shown) - 1, f"… {len(value) - len(shown):,} more")
    if depth == 0 and isinstance(value, list) and any(isinstance(item, dict | list) for item in value[:_MAX_ITEMS]):
        return clip("\n".join(f"- {item}" for item in shown), max_chars)
    return clip(", ".join(shown), max_chars)


def _some(items: list[T]) -> list[T]:
    return items if len(items) <= _MAX_ITEMS else [*items[: _MAX_ITEMS - 1], items[-1]]


def _field_line(operation: Operation, name: str, value: Json, max_chars: int) -> str:
    if isinstance(value, str):
        text = visible(clip(value, max_chars, f": expand op {operation.id}"))
    else:
        text = flat(value, max_chars)
    text = clip(text, max_chars * 2).strip("\n")
    if operation.type == "nl_command" and name == "user_input" and "\n" not in text:
        return f'**Input**: "{text}"\n'
    if "\n" not in text:
        return f"**{label(name)}**: {text}\n"
    return f"**{label(name)}**:\n" + "".join(f"> {line}".rstrip() + "\n" for line in text.split("\n"))


def outcome_words(data: Json) -> str:
    """Return what an operation was about and its outcome for its short form: of each the first field that has it."""
    if not isinstance(data, dict):
        return "" if data is None else f": {_one_line(flat(data, 320), 160)}"
    told = _first_line(data, _ABOUT_FIELDS, _FIELD_CHARS), _first_line(data, _OUTCOME_FIELDS, 160)
    return "".join(f": {each}" for each in told if each)


def _first_line(data: Json, fields: Sequence[str], max_chars: int) -> str:
    """Return the first non-blank text among the fields, escaped and on one line; "" if there is none."""
    values = (data.get(field) for field in fields) if isinstance(data, dict) else ()
    return _one_line(next((value for value in values if isinstance(value, str) and value.strip()), ""), max_chars)


def _one_line(text: str, max_chars: int) -> str:
    line = " ".join(visible(text[: max_chars * 4]).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"

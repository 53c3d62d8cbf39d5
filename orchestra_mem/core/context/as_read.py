"""Render documents for the model: their content without times of writing, ids, counts of memory and empty sections."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from orchestra_mem.core.context.items import as_form
from orchestra_mem.core.documents.entries import SPEECH_FIELDS, label
from orchestra_mem.serialize import local_day

SHORT_CHARS = 200

# Lines of a document's first section that describe the document itself; they are for people.
_FRAME = re.compile(
    r"(?:\*\*(?:Last Updated|Session|Session ID|Project|Started|Ended|Status|Duration)\*\*: .*|-{3,})\s*"
)
_NOTHING = re.compile(r"\s*(?:- (?:\*\*[^*\n]+\*\*: 0|None)\s*)?")
_STATISTICS = "## Statistics"
# Counts of what the memory holds, without content for a model.
_COUNT = re.compile(r"- \*\*(?:Operations|Sessions|Decisions|Completed|Open Items|Failures Standing)\*\*: [\d,]+\s*")
_HEADING = re.compile(r"#{1,2} .*")
_ENTRY = re.compile(r"#{1,6} \[(\d{4}-\d\d-\d\d )?(\d\d:\d\d:\d\d)\] (.*)")
# The date and time of an entry, of a decision in brief, or of finished work.
_TIMED = re.compile(r"^(#{1,6} \[|- \[|- .*: done )(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?=\]|\s*\Z)")
_FIELD = re.compile(r"\*\*([^*\n]+)\*\*:(?: (.*))?")
_PLACE = re.compile(r"\*\*Line \d+\*\*: ?")  # the label of a field of an imported note
_QUOTE = re.compile(r"[> ]*(?:#+ )?")
_TALK = re.compile(r"Message: (.+) \(op \d+\)")
_SPEECH = frozenset(map(label, SPEECH_FIELDS)) | {"Input"}


@lru_cache(maxsize=256)
def section_as_read(text: str) -> str:
    """Return a section without lines that carry no information; empty if only headings remain."""
    lines = text.splitlines()
    if lines and lines[0].startswith("# "):
        lines = [line for line in lines if not _FRAME.fullmatch(line)]
    if lines and lines[0].rstrip() == _STATISTICS:
        lines = [line for line in lines if not _COUNT.fullmatch(line)]
    told = [_TIMED.sub(_dated, line) for line in lines if not (line.startswith("- ") and _NOTHING.fullmatch(line))]
    if all(_HEADING.fullmatch(line) or not line.strip() for line in told):
        return ""
    return as_form("\n".join(told))


@lru_cache(maxsize=1024)
def entry_as_read(text: str) -> tuple[str, ...]:
    """Return an operation's entry as one line, then in full if it is longer. Speech starts with `speaker: text`.

    The time of day is left out. A date is kept: only entries after the session's first day have a date. Documents have
    it in UTC, a model reads it in the local time zone.
    """
    first, *rest = text.strip().splitlines() or [""]
    match = _ENTRY.fullmatch(first)
    if match is None:
        full = as_form(text)
        return (full,) if full else ()
    date, clock, title = match.groups()
    when = f"- {_day(date + clock)} " if date else "- "
    head = f"{when}{title}"
    told = (_PLACE.sub("", line, count=1) if line.startswith("**Line ") else line for line in rest)
    lines = [line for line in told if line.strip() and not _is_known(line, title)]
    spoken = _FIELD.fullmatch(lines[0]) if lines else None
    if spoken is not None and spoken[1] in _SPEECH and spoken[2]:
        who = _TALK.fullmatch(title)
        head, lines = f"{when}{who[1] if who else title}: {spoken[2]}", lines[1:]
    full = as_form("\n".join([head, *lines]))
    flat = "; ".join(filter(None, (_QUOTE.sub("", line, count=1).replace("**", "") for line in lines)))
    short = f"{head}: {flat}" if flat else head
    if len(short) > SHORT_CHARS:
        short = f"{short[: SHORT_CHARS - 1].rstrip()}…"
    return (as_form(short), full) if len(short) < len(full) - 1 else (full,)


def _dated(found: re.Match[str]) -> str:
    return f"{found[1]}{_day(found[2])}"


def _day(stamp: str) -> str:
    try:
        return local_day(datetime.fromisoformat(f"{stamp}+00:00"))
    except ValueError:  # a person's
        return stamp.partition(" ")[0]


def _is_known(line: str, title: str) -> bool:
    """Check whether a field repeats the heading or is the operation's token count."""
    field = _FIELD.fullmatch(line)
    return field is not None and (field[1] == "Tokens" or f": {field[2]} (op " in title)

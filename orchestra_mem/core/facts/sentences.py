"""Split a field into sentences with their context: heading, bullet, tick box, and previous sentence."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from orchestra_mem.core.fact_labels import heading_kind
from orchestra_mem.core.facts.classifier import Sentence
from orchestra_mem.core.facts.prose import TICK, Field, masked, reads_as_prose, without_code
from orchestra_mem.core.speakers import Voice
from orchestra_mem.core.text import split_sentences
from orchestra_mem.types import MustKeepKind

_MAX_LABEL_CHARS = 60
_MAX_LABEL_WORDS = 6
_HEADING = re.compile(r"#{1,6}\s+\S")
_BOLD = re.compile(r"(?:\*\*|__).+(?:\*\*|__):?")
_BULLET = re.compile(r"(?:[-*+\u2022\u00b7\u2013\u2014]|\d{1,3}[.)])\s*$")
_NUMBER = re.compile(r"(\d{1,3})([.)])\s+(?=\S)")
_LINE_NUMBER = re.compile(r"^[ \t]*(\d{1,3}\.)\s", re.MULTILINE)
_PLACE = re.compile(r"^line \d+$")  # fields of imported files: the name is only a position
QUESTION = re.compile(r"[?\uff1f][\"')*_ ]*$")


class Candidate(NamedTuple):
    """A sentence that may state a fact.

    `text`: Verbatim passage of the field, without a list number. `before`: Sentence directly before it, empty if none.
    `listed`: For a list item, the kind of fact that its heading announces, else None.
    """

    text: str
    sentence: Sentence
    before: str
    listed: MustKeepKind | None


def candidates_of(field: Field) -> Iterator[Candidate]:
    """Yield the sentences of a field that read as prose, each once per context.

    Headings are not yielded; they are part of the context of the sentences below them.
    """
    said = without_code(field.text)
    name = _PLACE.sub("text", field.name)
    around = [f"voice={field.voice.judged_as.value}", f"field={name}", *(["spoken"] if field.spoken else [])]
    numbers = {*_LINE_NUMBER.findall(said)}
    heading = label = before = ""
    seen: set[tuple[str, str, str, bool]] = set()
    end = 0
    for place, text in enumerate(split_sentences(said)):
        start = said.find(text, end)
        gap, end = said[end:start], start + len(text)
        if is_heading(text, said, start):
            heading, label, before = (text, "", "") if text.startswith("#") else (heading, text, "")
            continue
        bulleted = _BULLET.search(gap) is not None or _NUMBER.match(text) is not None or TICK.match(text) is not None
        if label and not bulleted and place and before:
            label = ""
        if not reads_as_prose(text):
            before = ""
            continue
        if gap.strip(" \t\n-*+"):
            before = ""
        above = label or heading
        if (told := (text, before, above, bulleted)) not in seen:
            seen.add(told)
            kind = heading_kind(above)
            under = [f"under={kind.value}"] if kind else []
            sentence = Sentence(
                text=masked(text, quotes=field.voice.judged_as is Voice.MODEL),
                circumstances=(*around, *_circumstances(text, before, bulleted=bulleted), *under),
                heading=above,
            )
            yield Candidate(_without_number(text, numbers), sentence, before, listed=kind if bulleted else None)
        before = text


def _without_number(text: str, numbers: Container[str]) -> str:
    """Strip a list number. One with a full stop must have a neighbour in the list: `12. Juni` is a date."""
    mark = _NUMBER.match(text)
    if mark and (mark[2] == ")" or any(f"{int(mark[1]) + step}." in numbers for step in (-1, 1))):
        return text[mark.end() :]
    return text


def is_heading(text: str, said: str, start: int) -> bool:
    """Check whether a sentence is a heading: marked with `#`, or a short separate line, bold or ending in a colon."""
    if _HEADING.match(text):
        return True
    short = len(text) <= _MAX_LABEL_CHARS and len(text.split()) <= _MAX_LABEL_WORDS
    if not short or not (text.endswith((":", "\uff1a")) or _BOLD.fullmatch(text)):
        return False
    begins = said.rfind("\n", 0, start) + 1
    ends = said.find("\n", start)
    return ends >= 0 and said[begins:ends].strip() == text


def _circumstances(text: str, before: str, *, bulleted: bool) -> Iterator[str]:
    if tick := TICK.match(text):
        yield "tick=open" if tick[1] in ("", " ") else "tick=done"
    if bulleted:
        yield "bullet"
    if QUESTION.search(text):
        yield "question"
    if QUESTION.search(before):
        yield "after question"

"""Read the facts in documents: compare them between two texts, and put their numbers behind their lines. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from orchestra_mem.core.documents.conflicts import without_conflicts
from orchestra_mem.core.documents.markdown import PIN, as_typed
from orchestra_mem.core.documents.owned_lines import (
    BLANKS,
    CATALOG_SECTIONS,
    MARK,
    SECTIONS,
    STRUCK,
    Difference,
    FactRow,
    OwnedLine,
    difference,
    owned_keys,
    owned_lines,
)
from orchestra_mem.core.documents.plan_lines import has_work, is_reference
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import CUT, DocumentName, MustKeepStatus

Told: TypeAlias = tuple[str | None, str, MustKeepStatus]
"""A fact in a document: kind (None if its number was there before, or outside known sections), text, and status (done
if it is ticked, removed if it is struck out)."""
TextsOf: TypeAlias = Callable[[Collection[str]], Mapping[str, Collection[str]]]
"""Returns the texts of facts, by number, for those of the numbers that are known."""

_TICKED = re.compile(rf"{MARK.pattern}\[[xX]\] ")
# What stands around the words of a fact in a quotation, in emphasis, or over several rows.
_COMMENT = re.compile(r"<!--(?:(?!-->).)*-->", re.DOTALL)
_NUMBERS = re.compile(r"\(([KM]\d{1,18})\)")
# A number in any form, with the punctuation behind it.
_INNER = re.compile(
    rf"{BLANKS}[*_`]*\({BLANKS}(?P<letter>[KkMm])(?P<number>\d{{1,18}}){BLANKS}\)[*_`]*{BLANKS}"
    rf"(?P<end>[.,;:!?]*){BLANKS}"
)


def fact_edits(
    texts: Mapping[str, tuple[str, str]], *, work: bool = False, letter: str = "K", known: TextsOf | None = None
) -> Difference[Told]:
    """Compare the facts of documents, as last read and as they are now, by the facts' numbers.

    A fact whose line is no list item any more, such as an indented or quoted one, is not gone until its words are.

    Args:
        texts: Text before and text now, by document. A fact moved to another document counts as present.
        work: Whether boxes in the work plan are work items rather than facts.
        letter: Letter of the numbers: `K` for facts, `M` for catalog items. Lines with other numbers are skipped.
        known: Finds the texts of facts, so that one whose line was no list item before can be gone as well.

    Returns:
        The differences. A line with a number that was not there before is in `said`, with the kind of a new fact.
    """

    def facts(side: int, before: Container[str] | None) -> list[tuple[str, Told]]:
        found = [each for name in texts for each in _facts(name, texts[name][side], work, before)]
        return [each for each in found if each[0][:1] in ("", letter)]

    before = facts(0, None)
    now = facts(1, {number for number, _ in before})
    found = difference(before, now)
    more = Counter(key for key, _ in now) - Counter(key for key, _ in before)
    # If a person copied a line and reworded the copy, the fact keeps its text: the document states both.
    said = {key: both for key, both in found.said.items() if more[key] <= (both[0] is None)}
    gone, (was, says) = dict(found.gone), (LooseFacts([text[side] for text in texts.values()]) for side in (0, 1))
    gone = {key: told for key, told in gone.items() if not says.has(key, told[1])}
    if known and (others := was.numbers() - {key for key, _ in (*before, *now)}):
        gone |= {
            key: (None, text, MustKeepStatus.STANDING)
            for key, wordings in known({key for key in others if key[0] == letter}).items()
            for text in wordings
            if was.has(key, text) and not says.has(key, text)
        }
    # An editor may have retyped the machine's lines without a number.
    shown = {as_typed(told[1]) for number, told in before if told[0] and not number}
    added = tuple(dict.fromkeys(told for told in found.added if told[0] and as_typed(told[1]) not in shown))
    return replace(found, gone=gone, said=said, added=added)


class LooseFacts:
    """Finds facts in the rows of documents, whatever marks are before, between and behind their words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts

    @cached_property
    def _said(self) -> str:
        return "\n".join(_bare(without_conflicts(text)) for text in self._texts)

    def numbers(self) -> set[str]:
        """Return the numbers in brackets."""
        return {*_NUMBERS.findall(self._said)}

    def has(self, number: str, text: str) -> bool:
        """Check whether a text stands there, with its number behind it."""
        return f"{_bare(text)} ({number})" in self._said


def _bare(text: str) -> str:
    text = _COMMENT.sub(" ", text)
    for mark in "*_>`":
        text = text.replace(mark, " ")
    return as_typed(squeeze(text))


def _facts(name: str, text: str, work: bool, before: Container[str] | None) -> Iterator[tuple[str, Told]]:
    """Yield the facts of a text with their numbers; a kind only for those without one, or not `before`."""
    kinds = SECTIONS.get(name, CATALOG_SECTIONS)
    for line, fact in _fact_lines(name, text, work):
        is_known = fact.number and (before is None or fact.number in before)
        kind = None if is_known else kinds.get(line.section)
        pinned = " <!-- pin -->" * (PIN in line.row and name not in SECTIONS)
        status = MustKeepStatus.SUPERSEDED if fact.state.startswith(" (superseded") else MustKeepStatus.STANDING
        status = MustKeepStatus.REMOVED if fact.state == STRUCK else status
        yield fact.number, (kind, fact.text + pinned, MustKeepStatus.DONE if _TICKED.match(line.row) else status)


def _fact_lines(name: str, text: str, work: bool) -> Iterator[tuple[OwnedLine, FactRow]]:
    """Yield lines that state a fact, ticked ones only if numbered; skip lines about work in the plan.

    `work`: Whether boxes in the plan are about work.
    """
    is_plan = name == DocumentName.WORK_PLAN
    for line in owned_lines(text):
        is_work = is_plan and (is_reference(line.row) or (work and line.plan))
        if line.fact and not is_work and (line.fact.number[:1] == "K" or not _TICKED.match(line.row)):
            yield line, line.fact


def reworded(text: str, before: str, now: str) -> str:
    """Return a fact's new text when its line changed from `before` to `now`, with the end that the line cuts off."""
    cut = CUT.strip()
    if before.endswith(cut) and now.endswith(cut) and text.startswith(before.removesuffix(cut).rstrip()):
        return squeeze(now.removesuffix(cut) + text[len(before.removesuffix(cut).rstrip()) :])
    return now.removesuffix(cut).rstrip()


def shows(shown: str, text: str) -> bool:
    """Check whether a document's line shows this text, in full or cut to fit the line."""
    text, cut = as_typed(squeeze(text)), CUT.strip()
    begins = shown.endswith(cut) and text.startswith(as_typed(squeeze(shown.removesuffix(cut))))
    return begins or as_typed(squeeze(shown)) == text


def with_numbers(name: str, text: str, number_of: Callable[[str], str | None]) -> str:
    """Append numbers such as `K12` to unnumbered lines for which `number_of` has one; the rest stays byte for byte."""
    rows = text.split("\n")
    for line, fact in _fact_lines(name, text, has_work(text)):
        if not fact.number and (number := number_of(fact.text)):
            _append(rows, line, number)
    return "\n".join(rows)


def with_numbers_last(text: str, before: str) -> str:
    """Put the number of a fact, as the machine writes it, behind all that a person has made of its line in `before`.

    The person may have written words or a full stop behind it, in another form, or invisible spaces around it.
    """
    if text == before:
        return text  # the common case: nobody has edited the document
    there = {*owned_keys(text).values()}
    old = {line.key: line.fact.text for line in owned_lines(before) if line.fact and line.key not in there}
    if not old:
        return text
    rows = text.split("\n")
    for line in owned_lines(text):
        inner = _INNER.search(line.fact.text) if line.fact and not line.key else None
        number = inner["letter"].upper() + inner["number"] if inner else ""
        if not (line.fact and inner and number in old):
            continue
        words, behind = line.fact.text[: inner.start()], line.fact.text[inner.end() :]
        is_last = not re.search(r"\w", behind)
        is_struck = is_last and words.endswith("~~")
        end = "" if is_struck or words.endswith(inner["end"]) else inner["end"]
        if not is_last and old[number] not in (words, *(squeeze(f"{words}{each} {behind}") for each in ("", end))):
            continue
        place = next(place for place in reversed(line.places) if _INNER.search(rows[place]))
        rows[place] = _INNER.sub(end if is_last else f"{end} ", rows[place], count=1)
        _append(rows, line, number)
    return "\n".join(rows)


def _append(rows: list[str], line: OwnedLine, number: str) -> None:
    """Append a number to a line, before its pin."""
    row = rows[line.places[-1]]
    end = len(row.rstrip().removesuffix(PIN).rstrip())
    rows[line.places[-1]] = f"{row[:end]} ({number}){row[end:]}"

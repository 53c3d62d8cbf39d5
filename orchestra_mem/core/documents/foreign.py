"""Take in a document that another ledger wrote, or that git has merged with one. No I/O.

The front matter names the ledger that wrote a document. Each ledger numbers its facts and items by itself, so a number
in another's text identifies nothing here. In such a text, a line in the words of an own fact or item is that one, in
the state that the ledger knows; any other line is a person's new one. A missing line removes no fact or item.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from orchestra_mem.core.documents.alignment import split_lines
from orchestra_mem.core.documents.catalog_document import read_line
from orchestra_mem.core.documents.fact_lines import shows
from orchestra_mem.core.documents.markdown import PIN, fenced_rows, split_blocks
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.core.documents.owned_lines import (
    CATALOG_SECTIONS,
    SECTIONS,
    SHARED_LINE,
    OwnedLine,
    at_line,
    free_rows,
    is_machines,
    owned_lines,
    with_rows,
)
from orchestra_mem.core.documents.plan_lines import has_work, render_line, said_title, with_work_heading
from orchestra_mem.core.documents.signature import with_front_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import CUT

Wordings: TypeAlias = Mapping[str, Sequence[str]]
"""The wordings of a ledger's facts and items by number, such as `K3`. Those of a work item are two lines: the title of
its parent (empty at the top level), and its own."""
_LETTERS = ("K", "M", "#")
_CUT = CUT.strip()
_FACTS = frozenset[str]().union(*SECTIONS.values(), CATALOG_SECTIONS)
_GIT_ROW = re.compile(r"^(?:[<>|]{7} .*|={7}[ \t\r]*)\n", re.MULTILINE)
_NUMBER = re.compile(rf"\s*\([KM]\d{{1,18}}\)(?:\s*\((?:perhaps )?superseded(?: by K\d+)?\))?(?=\s*(?:{PIN})?\s*\Z)")


def without_others_numbers(text: str, own: Sequence[str], wordings_by_number: Callable[[], Wordings]) -> str:
    """Return a text that names only this ledger without the numbers of lines that git has taken from another's text.

    Such a line has the number of a line that stands as well, or one that the ledger's `own` texts do not show and that
    means something else, or nothing, in the ledger. A person's reworded copy of a line becomes a new line, too. If the
    number of an own fact is the end of a new line's sentence, as in "see (K1)", it stays, and a full stop follows.
    Lines in a person's own sections state no facts and stay as they are.
    """
    if text in own:  # nearly always
        return text
    known, now = {each for shown in own for each in _numbered(shown)}, _numbered(text)
    numbers, standing = {number for number, _ in known}, {number for number, _ in now & known}
    ledger = wordings_by_number() if any(number not in numbers for number, _ in now) else {}
    wordings: defaultdict[str, list[str]] = defaultdict(list)
    for number, words in (*known, *((number, _bare(each)) for number, texts in ledger.items() for each in texts)):
        wordings[number].append(words)
    counts = Counter(line.key for line in owned_lines(own[0]))
    changed: dict[int, str | None] = {}
    for line, (said, *_) in _with_words(owned_lines(text), numbered=True):
        if not line.plan and line.section not in _FACTS:
            continue
        is_copy = line.key in standing and counts[line.key] == 1 and (line.key, said) not in known
        is_hidden = line.key not in numbers and not (line.plan and not line.plan.title)
        if is_copy or (is_hidden and not any(_same(said, each) for each in wordings[line.key])):
            is_reference = not line.plan and _is_reference(said, wordings[line.key])
            row = _NUMBER.sub(r"\g<0>.", line.row) if is_reference else _unnumbered(line, {})
            changed |= at_line(line, row)
    return with_rows(text, changed)


def taken_in(text: str, before: str, wordings_by_number: Wordings) -> str:
    """Add to the own text `before` the new lines, without numbers, of a text that another ledger has numbered.

    Lines that belong to no ledger and that the text lacks are removed, because git has merged them.
    """
    text = _gathered(_GIT_ROW.sub("", text) if "<<<<<<< " in text else text)
    if has_work(text) or has_work(before):
        text, before = with_work_heading(text), with_work_heading(before)
    there = {*split_lines(before)}
    own = {line.key: line.row for line in reversed(owned_lines(before)) if line.key}
    known = {_bare(words): number for number, wordings in wordings_by_number.items() for words in wordings if words}
    known |= {words: number for number, words in _numbered(before)}
    # A box that is a fact there was read as work here.
    known = {words.rpartition("\n")[2]: number for words, number in known.items() if number[:1] == "#"} | known
    cut = {words: number for words, number in known.items() if words.endswith(_CUT)}
    changed: dict[int, str | None] = {}
    new: set[int] = set()
    for line, words in _with_words(owned_lines(text)):
        if not line.key and line.row in there:
            continue
        key = line.key if line.key[:1] in ("=", "-", "@") else _known(words, known, cut)
        if key is None and not (line.fact and line.fact.state.startswith(" (superseded")):
            new.add(line.place)
            known |= dict.fromkeys(words, "")
            cut |= {said: "" for said in words if said.endswith(_CUT)}
            changed |= at_line(line, _unnumbered(line, changed))
        else:
            is_work = (key or "")[:1] == "#" and not line.plan
            changed |= at_line(line, None if is_work else own.pop(key or "", None))
    rows = split_lines(text)
    gone = [place for place in _explanations(text, new) if rows[place] not in there]
    other = with_rows(text, dict.fromkeys(gone) | changed)
    other = with_front_of(other, before)
    kept = {row for line in owned_lines(before) if line.key for row in line.row.split("\n")}.union(split_lines(other))
    removed = {*free_rows(before)} - kept
    before = "\n".join(row for row in before.split("\n") if row.removesuffix("\r") not in removed)
    base = "\n".join(row for row in other.split("\n") if row.removesuffix("\r") in there)
    return merge(base, other, before, both=True).text


def _is_reference(said: str, wordings: Sequence[str]) -> bool:
    """Check whether the sentence before a number goes on, and has not half of the words of the number's own fact."""
    words = {*said.casefold().split()}
    own = [{*each.casefold().split()} for each in wordings]
    return bool(own) and said[-1:].isalnum() and all(2 * len(words & each) < max(len(words), len(each)) for each in own)


def _numbered(text: str) -> set[tuple[str, str]]:
    """Return the numbers of the facts and items in a text, each with its words."""
    return {(line.key, words[0]) for line, words in _with_words(owned_lines(text), numbered=True)}


def _with_words(lines: Sequence[OwnedLine], *, numbered: bool = False) -> Iterator[tuple[OwnedLine, list[str]]]:
    """Yield lines with the words by which each may be known: those of a work item, if it is one, then those of a fact.

    `numbered`: Yield only lines with the number of a fact or item.
    """
    titles = {line.place: said_title(line.plan.title) for line in lines if line.plan}
    for line in lines:
        if not numbered or line.key[:1] in _LETTERS:
            title = titles.get(line.place, "")
            words = [_bare(f"{titles.get(line.plan.under, '')}\n{title}")] if line.plan else []
            yield line, [*words, *([_bare(line.fact.text)] if line.fact else ())] or [""]


def _bare(words: str) -> str:
    """Return words without the priority that a catalog's line ends with, and with single spaces."""
    return "\n".join(squeeze(read_line(line).content) for line in words.split("\n"))


def _known(words: Sequence[str], known: Mapping[str, str], cut: Mapping[str, str]) -> str | None:
    """Return the number that belongs to words, "" for those of a new line; None if they are new.

    `cut`: Those of the `known` words that end with a mark of omission.
    """
    for said in words:
        if said in known:
            return known[said]
        # A cut line may show any text, and a whole line only a cut text.
        others = known if said.endswith(_CUT) else cut
        if found := next((each for each in others if _same(said, each)), ""):
            return known[found]
    return None


def _same(said: str, known: str) -> bool:
    return shows(said, known) or shows(known, said)


def _unnumbered(line: OwnedLine, changed: Mapping[int, str | None]) -> str:
    """Return a line without numbers; a work item is at the top level if its parent's line is gone."""
    plan = line.plan
    if plan is None or not plan.number:
        return _NUMBER.sub("", line.row)
    indent = plan.indent if changed.get(plan.under, "") is not None else 0
    return render_line(replace(plan, number=0, waits_for=(), progress="", indent=indent))


def _explanations(text: str, new: set[int]) -> Iterator[int]:
    """Yield the places of rows that only a machine writes, except those that belong to the `new` entries."""
    for block in split_blocks(text):
        fenced, first = fenced_rows(block.text), block.line - 1
        for place, row in enumerate(split_lines(block.text), first):
            is_quote = block.level > 2 and row.startswith(">")
            of_new = first in new and (is_quote or SHARED_LINE.fullmatch(row))
            if (is_quote or is_machines(row)) and not (of_new or block.front or place - first in fenced):
                yield place


def _gathered(text: str) -> str:
    """Join the sections of one title: git may have taken both sides' headings."""
    parts: dict[str, list[str]] = {}
    title = ""
    for block in split_blocks(text if text.endswith("\n") else f"{text}\n"):
        said = block.text
        if block.level in (1, 2):
            title = f"{block.level} {block.title.strip().lower()}"
            if title in parts:
                said = said.removeprefix(block.heading).lstrip("\r\n")
                parts[title][-1] = f"{parts[title][-1].rstrip()}\n" if said else parts[title][-1]
        parts.setdefault(title, []).append(said)
    return "".join(said for each in parts.values() for said in each)

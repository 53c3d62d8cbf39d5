"""Leave out of a context what it shows twice: a rule that is also a decision, a fact beside its operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from orchestra_mem.core.context.as_read import section_as_read
from orchestra_mem.core.context.assembly import Epoch
from orchestra_mem.core.context.items import Item, Part, Placement, placed
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.summaries.kept import KIND_LABELS, without_empty_heading
from orchestra_mem.core.text import split_sentences, squeeze

# Contexts to lay out at most: what takes the room of a repeat may be a repeat, too. Most contexts need two.
_MOST_LAYOUTS = 6
_NUMBERED = re.compile(r"\((?:K|op )\d+\)| K\d+(?: \([a-zK\d ]+\))?: ")
# What a line has before the text of a fact or an operation; in a summary it has the label `kept`.
_BEFORE = re.compile(
    r"(?:#+ |[-*] |\[ ?\] |(?P<ticked>\[[xX]\] ))*(?:\[?\d{4}-\d\d-\d\d(?: [\d:]{8})?\]? )?"
    r"(?:[^\n]{1,160}?\(op \d+\): |(?P<kept>(?:" + KIND_LABELS + r") K\d+(?: \([a-zK\d ]+\))?: ))?"
)
_SUPERSEDED_BY = re.compile(r"\*Superseded by (K\d+)")
_BEHIND = re.compile(r" \(K\d+\)(?P<state> \([a-zK\d ]+\))?$")


def begin_once(items: Sequence[Item], begin: Callable[[Sequence[Item]], Epoch], stating: Container[int]) -> Epoch:
    """Begin an epoch that shows no text twice. `stating`: The operations that facts come from.

    Items that it leaves out for this are among its placements, with their texts: a program may read a part alone.
    """
    given, epoch = items, begin(items)
    for _ in range(_MOST_LAYOUTS - 1):
        if (fewer := _without_repeats(items, epoch.placements, stating)) == items:
            break
        items, epoch = fewer, begin(fewer)
    there, count = {(item.part, item.key) for item in items}, epoch.counter.count
    reason = "left out: the context has its text elsewhere"
    gone = [item for item in given if (item.part, item.key) not in there]
    told = (placed(item, None, text := neutralise(item.forms[-1]), 0, count(text), reason) for item in gone)
    return replace(epoch, placements=(*epoch.placements, *told))


def _without_repeats(items: Sequence[Item], shown: Sequence[Placement], stating: Container[int]) -> Sequence[Item]:
    """Return the items without what they repeat in `shown`, the placements of a context of these items.

    Pinned items, the newest operations, and lines without the number of a fact or an operation stay as they are, and so
    do decisions that a shown one names as its successor. All others give way to those and to what stands before them,
    but an operation never gives way to another one, and nothing to an operation that states no fact, as when a model
    answers in the words of a person's decision.
    """
    texts = {(each.part, each.key): each.text for each in shown}
    later = {f"({number})" for number in _SUPERSEDED_BY.findall("".join(texts.values()))}
    said, in_documents = set[str](), set[str]()
    kept: dict[tuple[Part, str], Item] = {}
    for item in sorted(items, key=_rank):
        place, is_operation = (item.part, item.key), item.key.startswith("op ")
        known, text = in_documents if is_operation else said, texts[place]
        is_named = item.part is Part.DECISIONS and any(number in text.partition("\n")[0] for number in later)
        stays = is_named or not text or not _rank(item)
        if (fewer := item if stays else _without(item, known, whole=is_operation)) is None:
            continue
        kept[place] = fewer
        found = texts_in(text) if not is_operation or int(item.key.split()[1]) in stating else set()
        said |= found
        in_documents |= set() if is_operation else found
    return [kept[place] for item in items if (place := (item.part, item.key)) in kept]


def _rank(item: Item) -> int:
    """Return 0 for items that stay as they are, 1 for rules, 2 for others."""
    stays = item.part is Part.OPERATIONS or (item.pinned and item.pinned_for == "pinned")
    return 0 if stays else 2 - item.pinned


def _without(item: Item, known: Container[str], *, whole: bool) -> Item | None:
    """Return an item without what is known; if `whole`, or if its first line is no heading, all of it or nothing."""
    lines = item.forms[-1].splitlines(keepends=True)
    new = [*new_lines(item.forms[-1], known)]
    if whole or new[:1] != lines[:1]:
        return item if any(map(str.strip, new)) else None
    if len(new) == len(lines):
        return item
    gone = {*lines}.difference(new)
    shorter = ("".join(line for line in form.splitlines(keepends=True) if line not in gone) for form in item.forms)
    forms = dict.fromkeys(section_as_read(without_empty_heading(form)) for form in shorter)
    return replace(item, forms=tuple(filter(None, forms))) if any(forms) else None


def new_lines(text: str, known: Container[str]) -> Iterator[str]:
    """Yield the lines of a text but those with a number whose text is known, or stands above."""
    seen: set[str] = set()
    for line in text.splitlines(keepends=True):
        said = _texts_of(line)[:1]
        if not (said and (said[0] in known or said[0] in seen)):
            yield line
        seen.update(said)


def texts_in(text: str) -> set[str]:
    """Return what the numbered lines of a text say, for `new_lines`."""
    return {each for line in text.splitlines() for each in _texts_of(line)}


def _texts_of(line: str) -> tuple[str, ...]:
    return _texts_of_numbered(line.strip()) if _NUMBERED.search(line) else ()


@lru_cache(maxsize=8_192)
def _texts_of_numbered(line: str) -> tuple[str, ...]:
    """Return what a line says, without marks, date, label and number, and its state; and what else it makes known.

    Besides this is each sentence of an operation, and the text with a line feed, as summaries give it: a fact in any
    state, since the summarised operations are older than all that could say it again.
    """
    before, behind = _BEFORE.match(line), _BEHIND.search(line)
    text = squeeze(line[before.end() if before else 0 : behind.start() if behind else None])
    said = as_said(text)
    if before and before["kept"]:
        return (f"{said}\n",)
    sentences = split_sentences(text) if "(op " in line and ". " in text else ()
    state = (behind and behind["state"]) or (" (done)" if before and before["ticked"] else "")
    return (f"{said}{state}", *map(as_said, sentences), f"{said}\n")

"""Extract slot values from text: numbers and ranges, counts, kinds, priorities, titles.

`fill` turns tagged tokens into intents; the grammar, the journal and the phrase reader use the other functions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

from rapidfuzz import fuzz

from orchestra_mem.orchestrator.intents import NEW, Action, Intent
from orchestra_mem.orchestrator.intents.classifier import QUOTED, SLOTS, Token, nearest_word
from orchestra_mem.work_types import WorkKind

MAX_RANGE = 100
"""Maximum number of items in a range; a longer range is taken for a typo and reduced to its two end numbers."""
KIND_WORDS = {word: kind for kind in WorkKind for word in (kind.value, kind.plural)} | {"sub-task": WorkKind.SUBTASK}
ENGLISH = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
"""The words, parts and forms of English."""
PRIORITY_WORDS = {word: level for level, words in ENGLISH["levels"].items() for word in words.split()}
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBER_WORDS = {word: number for number, word in enumerate(_ONES)} | {
    word: number for number, word in zip(range(20, 100, 10), _TENS, strict=True)
}
_A_NUMBER = (
    rf"(?:\d{{1,18}}|(?:{'|'.join(_TENS)})[ -](?:{'|'.join(_ONES[1:10])})|{'|'.join([*_ONES, *_TENS])})\b(?! one)"
)
_NUMBERS = re.compile(rf"#?\b({_A_NUMBER})(?:\s*(?:-|\u2013|to|through|thru)\s*#?({_A_NUMBER}))?", re.IGNORECASE)
_COUNTED = re.compile(
    rf"\b({_A_NUMBER}|a couple of|another|one more)\s+(?:more |new )?(?:{'|'.join(KIND_WORDS)})\b", re.IGNORECASE
)
_KIND = re.compile(rf"\b({'|'.join(sorted(KIND_WORDS, key=len, reverse=True))})\b", re.IGNORECASE)
_NAMED = re.compile(rf"\b(?:{'|'.join(KIND_WORDS)}|number|item|and|to)\s*$", re.IGNORECASE)
SPEAKER = frozenset("i me my mine myself".split())
"""Words that mean the speaker."""
_NOBODY = frozenset("nobody nobody's no-one none anyone unassigned".split())
_MARKS = " \t\"'`\u201c\u201d\u2018\u2019,;:.!?"
_TITLE_LIKE = 88


def number_of(word: str) -> int:
    """Parse a number in digits, or in words up to 99.

    Raises:
        KeyError: The word is no number.
    """
    if word.isdigit():
        return int(word)
    return sum(NUMBER_WORDS[part] for part in re.split(r"[ -]", word.lower()))


def numbers_in(phrase: str) -> tuple[int, ...]:
    """Return all numbers that a phrase names, with ranges expanded: 3, 4, 5, 9 for "3 to 5 and #nine"."""
    found: list[int] = []
    for match in _NUMBERS.finditer(phrase):
        if match[0].lower() == "one" and not _NAMED.search(phrase[: match.start()]):
            continue  # "the last one"
        first = number_of(match[1])
        last = number_of(match[2]) if match[2] else first
        found += range(first, last + 1) if first <= last < first + MAX_RANGE else [first, last]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=256)
def count_in(text: str) -> int:
    """Return the number of new items that a text asks for, 0 if it gives no number."""
    word = match[1].lower() if (match := _COUNTED.search(text)) else "zero"
    return {"a couple of": 2, "another": 1, "one more": 1}.get(word) or number_of(word)


@lru_cache(maxsize=256)
def kind_in(text: str) -> WorkKind | None:
    """Return the first kind of work item that a text names."""
    match = _KIND.search(text)
    return KIND_WORDS[match[1].lower()] if match else None


@lru_cache(maxsize=256)
def priority_in(text: str) -> str:
    """Return the priority that a text names: "1" to "5", "higher" or "lower"; "" if the text names no priority."""
    words = re.findall(r"[\w-]+|!+", text.lower())
    if {"not", "n't", "no", "less", "least"} & set(words) or "n't" in text:
        return "5" if "least" in words else "4"
    unknown = {word for word in words if word not in PRIORITY_WORDS and len(word) > 3}
    slips = {word: nearest_word(word, PRIORITY_WORDS.keys()) or str(NUMBER_WORDS.get(word, "")) for word in unknown}
    levels = [PRIORITY_WORDS[known] for word in words if (known := slips.get(word, word)) in PRIORITY_WORDS]
    return next(iter(sorted(levels, key=str.isalpha)), "")


def title_in(line: str, titles: Sequence[str]) -> tuple[int, int] | None:
    """Find the longest title that occurs in a line, exactly or with typos; return its (start, end) offsets."""
    low = line.lower()
    words = set(re.findall(r"\w+", low))
    for title in sorted(titles, key=len, reverse=True):
        wanted = title.lower().strip(_MARKS)
        if not 4 <= len(wanted) <= len(low) or not words & set(re.findall(r"\w{3,}", wanted)):
            continue
        near = fuzz.partial_ratio_alignment(wanted, low, score_cutoff=_TITLE_LIKE)
        if near is None:
            continue
        start, end = near.dest_start, near.dest_end
        start = low.rfind(" ", 0, start + 1) + 1
        end = next((at for at in range(end, len(low)) if not low[at].isalnum()), len(low))
        if fuzz.ratio(wanted, low[start:end]) >= _TITLE_LIKE:
            return start, end
    return None


def fill(piece: str, action: Action, tokens: Sequence[Token], tags: Sequence[str], sure: float) -> tuple[Intent, ...]:
    """Build the intents of a tagged piece: usually one, else one for each assigned item ("26 to Bo, 27 to Al")."""
    spans: dict[str, list[tuple[int, int]]] = {slot: [] for slot in SLOTS}
    for token, tag in zip(tokens, tags, strict=True):
        if tag[0] == "B":
            spans[tag[2:]].append((token.start, token.end))
        elif tag[0] == "I" and (found := spans[tag[2:]]):
            found[-1] = (found[-1][0], token.end)
    quotes = [match.span() for match in QUOTED.finditer(piece)]
    spans = {slot: _whole(found, quotes) for slot, found in spans.items()}
    texts = {slot: [piece[start:end].strip(_MARKS).removeprefix("@") for start, end in spans[slot]] for slot in SLOTS}
    if action in NEW:
        return (_new(piece, spans, texts, sure),)
    kind, other = kind_in(piece) if action is Action.LIST else None, next(iter(texts["other"]), "")
    is_paired = action is Action.ASSIGN and len(texts["target"]) == len(texts["value"])
    targets, values = (texts[slot] if is_paired else texts[slot][:1] for slot in ("target", "value"))
    return tuple(
        Intent(
            action=action, kind=kind, target=target, other=other, value=_value(action, target, value, piece), sure=sure
        )
        for target, value in zip_longest(targets or [""], values, fillvalue="")
    )


def _whole(spans: Sequence[tuple[int, int]], quotes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Replace each span that overlaps a quotation by the span of the quotation, and drop overlapping spans."""
    whole: list[tuple[int, int]] = []
    for start, end in spans:
        start, end = next((quote for quote in quotes if quote[0] < end and start < quote[1]), (start, end))
        if not whole or start >= whole[-1][1]:
            whole.append((start, end))
    return whole


def _new(piece: str, spans: dict[str, list[tuple[int, int]]], texts: dict[str, list[str]], sure: float) -> Intent:
    around = _without(piece, spans["titles"] + spans["other"])
    other = (texts["other"] or texts["target"] or [""])[0]
    if texts["other"] and texts["target"] and not texts["titles"]:  # an existing item that moves
        return Intent(action=Action.ADD, target=texts["target"][0], other=other, sure=sure)
    return Intent(
        action=Action.ADD if other else Action.CREATE, kind=kind_in(around), count=count_in(around),
        titles=tuple(filter(None, texts["titles"])), other=other, sure=sure,
    )  # fmt: skip


def _without(piece: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        piece = f"{piece[:start]} \u00a7 {piece[end:]}"
    return piece


def _value(action: Action, target: str, value: str, piece: str) -> str:
    if action is Action.ASSIGN:
        said = value.lower()
        return "me" if said in SPEAKER else "" if said in _NOBODY else value
    if action is Action.PRIORITISE:
        return priority_in(value) or priority_in(piece.replace(target, " ") if target else piece)
    return value

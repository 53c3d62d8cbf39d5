"""Finding what a summary may not lose, in operations and in text: decisions, rules, failures, roles, open items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from orchestra_mem.core.facts.classifier import load_table, probabilities
from orchestra_mem.core.facts.outputs import failure_lines
from orchestra_mem.core.facts.prose import Field, Source, Voice, fields_of, is_commit, reads_only, without_code
from orchestra_mem.core.facts.safety import safety_kind
from orchestra_mem.core.facts.sentences import Candidate, candidates_of
from orchestra_mem.core.facts.states import is_loop_outcome, kind_of_field, says_nothing, state_of
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import content_stems, split_sentences
from orchestra_mem.types import MustKeep, MustKeepKind, Operation

THRESHOLD = 0.34
"""From this probability of being any fact a sentence of notes, tickets and records is one."""
# The same where most is none; chosen, as those below, by leaving out one hand after the other.
_TALK_THRESHOLD = 0.43
_THRESHOLDS = {Voice.COMMIT: 0.61, Voice.MODEL: 0.77}  # models mostly narrate
# Of the sentences that taught the classifier this share were facts; of a text it counts as much as so many sentences.
_TAUGHT_SHARE, _TAUGHT_WEIGHT = 0.45, 4
_LEAST_SHARE = 0.15  # so that what is sure to be a fact stays one among any number of others
_STEPS = 8
# Where a plain word of a rule or a field's name speaks for one: a missed rule is worse than an extra one.
_SAFETY_THRESHOLD, _TALK_SAFETY_THRESHOLD = 0.2, 0.1
_SURE = 0.55  # from here on the classifier knows the kind better than such a word
_QUOTED_THRESHOLD = 0.2  # the same where a model quotes the sentence
_MIN_QUOTE_CHARS = 8
_MAX_CHARS = 240  # a longer sentence is cut to the clauses at its beginning
_POINTING_CHARS = 60  # a sentence longer than this says enough by itself
_SHORT_CHARS = 1_000  # of a text up to this size everything found is kept; of longer ones a share, the likeliest
_SHARE = 0.12
_MAX_FINDS = 24
_SOFT = re.compile(r"[,;:\u2014\u2013\uff0c\uff1b]\s*|\s-\s+")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'll|my|me|ich|mein\w*|yo|mi|je|j'|mon|ma|я|мой|моя)\b|我", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Find:
    """A passage that tells a fact: its kind, how likely it is one (0 to 1), and which sentence of its text it is."""

    kind: MustKeepKind
    text: str
    score: float
    place: int


class _Text(NamedTuple):
    """A text whose sentences wait to be classified together with those of others."""

    candidates: tuple[Candidate, ...]
    field: Field


def find_must_keeps(operation: Operation) -> tuple[MustKeep, ...]:
    """Find what a summary of this operation may not lose, in the order of its fields; see `find_in_operations`."""
    return find_in_operations([operation])[0]


def find_in_operations(operations: Sequence[Operation]) -> list[tuple[MustKeep, ...]]:
    """Find what summaries of operations may not lose; many at once cost less than one by one.

    Prose is classified sentence by sentence, in tool output only failures are looked for. The text of a fact is a
    passage of a field, word for word, with two additions: a short value comes with its field's name and what it is
    about (`status: failed (Password hashing)`), and `Speaker: ` stands before a role told in the first person.
    """
    read = [list(_read(operation)) for operation in operations]
    found = iter(_classify([text for parts in read for text in parts if isinstance(text, _Text)]))
    results = []
    for operation, parts in zip(operations, read, strict=True):
        finds = [find for part in parts for find in (next(found) if isinstance(part, _Text) else [part])]
        results.append(_must_keeps(_of_whole(finds, operation), operation.id, operation.timestamp))
    return results


def find_in_text(text: str, *, operation: int, timestamp: datetime, speaker: str = "") -> tuple[MustKeep, ...]:
    """Find what a summary may not lose in prose, in the order of the text; `speaker` said it.

    Of a long text the likeliest facts are kept, up to an eighth of its size.
    """
    field = Field(source=Source.SPEECH, name="text", text=text, speaker=speaker, spoken=bool(speaker))
    return _must_keeps(_classify([_text_of(field)])[0], operation, timestamp)


def find_quoted(operation: Operation, quotes: Sequence[tuple[MustKeepKind, str]]) -> tuple[MustKeep, ...]:
    """Find what a model has quoted of an operation as facts, each with the kind that it names.

    A quote counts where it stands in prose of the operation word for word, white space apart, and the classifier does
    not rule the sentence out; the fact is the sentence around it.
    """
    wanted = [(kind, flat) for kind, quote in quotes if len(flat := " ".join(quote.split())) >= _MIN_QUOTE_CHARS]
    finds: list[Find] = []
    for text in _speech(operation) if wanted else ():
        likely = 1.0 - probabilities([candidate.sentence for candidate in text.candidates])[:, 0]
        for candidate, chance in zip(text.candidates, likely.tolist(), strict=True):
            sentence = " ".join(candidate.text.split())
            kind = next((kind for kind, quote in wanted if quote in sentence or sentence in quote), None)
            if kind is not None and chance >= _QUOTED_THRESHOLD:
                finds.append(Find(kind, _passage(candidate, kind, text.field), chance, candidate.place))
    return _must_keeps(finds, operation.id, operation.timestamp)


def speech_of(operation: Operation) -> str:
    """Give the prose of an operation in which facts are looked for, without code."""
    return "\n".join(without_code(text.field.text).strip() for text in _speech(operation))


def _speech(operation: Operation) -> list[_Text]:
    return [_text_of(field) for field in fields_of(operation) if field.source is Source.SPEECH]


def _read(operation: Operation) -> Iterator[_Text | Find]:
    """Give what an operation's fields say by themselves, and the texts that must be classified."""
    for field in fields_of(operation):
        if field.source is Source.SPEECH:
            yield _text_of(field)
        elif field.source is Source.STATE:
            yield from _of_state(field)
        elif not reads_only(operation):
            for line in failure_lines(field.text):
                yield Find(MustKeepKind.FAILURE, line, 1.0, 0)


def _text_of(field: Field) -> _Text:
    return _Text(tuple(candidates_of(field)), field)


def _of_state(field: Field) -> Iterator[_Text | Find]:
    value = field.text.strip()
    if kind := state_of(field.name, value, about=field.about):
        about = f" ({field.about})" if field.about else ""
        yield Find(kind, f"{field.name}: {value}{about}", 1.0, 0)
    elif not says_nothing(value) and len(value.split()) >= 3:
        kind = kind_of_field(field.name)
        if kind is None or len(value) > _MAX_CHARS:
            yield _text_of(field)
        else:
            yield Find(kind, value, 1.0, 0)


def _classify(texts: Sequence[_Text]) -> list[list[Find]]:
    """Find the facts of each text."""
    rows = probabilities([candidate.sentence for text in texts for candidate in text.candidates]).tolist()
    results = []
    begin = 0
    for text in texts:
        own = rows[begin : begin + len(text.candidates)]
        begin += len(text.candidates)
        finds = []
        for candidate, row, among in zip(text.candidates, own, _among([1.0 - row[0] for row in own]), strict=True):
            if (judged := _judge(candidate, row, among, text.field)) is not None:
                kind, score = judged
                finds.append(Find(kind, _passage(candidate, kind, text.field), score, candidate.place))
        results.append(_likeliest(finds, text))
    return results


def _among(likely: Sequence[float]) -> Sequence[float]:
    """Correct each sentence's likelihood by how many of its text are facts; where few are, each is less likely one.

    The share is estimated by expectation maximisation (Saerens, Latinne and Decaestecker, 2002). In plain numbers, as
    most texts have few sentences.
    """
    share, corrected = _TAUGHT_SHARE, likely
    for _ in range(_STEPS if likely else 0):
        more, less = share / _TAUGHT_SHARE, (1 - share) / (1 - _TAUGHT_SHARE)
        corrected = [each * more / (each * more + (1 - each) * less) for each in likely]
        share = (sum(corrected) + _TAUGHT_WEIGHT * _TAUGHT_SHARE) / (len(likely) + _TAUGHT_WEIGHT)
        share = max(share, _LEAST_SHARE)
    return corrected


def _judge(candidate: Candidate, row: Sequence[float], among: float, field: Field) -> tuple[MustKeepKind, float] | None:
    """Tell the kind of fact that a sentence tells, with its likelihood; `among` others of its text. None for none."""
    likely = 1.0 - row[0]
    kind = load_table().kinds[max(range(1, len(row)), key=row.__getitem__) - 1]
    if is_loop_outcome(candidate.text):
        return None
    if failure_lines(candidate.text):  # a program said it
        return (MustKeepKind.FAILURE, likely) if likely >= _TALK_THRESHOLD else None
    threshold = _THRESHOLDS.get(field.voice) or (_TALK_THRESHOLD if field.spoken else THRESHOLD)
    named = kind_of_field(field.name) if field.source is Source.STATE else None
    if named is not None:
        return (named, likely) if likely >= _SAFETY_THRESHOLD else None
    safe = safety_kind(candidate.text)
    least = _TALK_SAFETY_THRESHOLD if field.spoken else _SAFETY_THRESHOLD
    if safe is not None and (safe[1] or least <= likely < _SURE):
        return safe[0], max(likely, threshold)
    if candidate.listed is not None:
        return candidate.listed, max(likely, threshold)
    score = likely if safe is not None else among
    return (kind, score) if score >= threshold else None


def _passage(candidate: Candidate, kind: MustKeepKind, field: Field) -> str:
    """Give the words of a fact: a sentence that points back with the one before, a long one cut at a border."""
    text = _clip(candidate.text)
    points = candidate.listed is None and len(text) <= _POINTING_CHARS and len(content_stems(text)) <= 1
    if points and 0 < len(candidate.before) <= _MAX_CHARS:
        return f"{candidate.before} {text}"
    if kind is MustKeepKind.ROLE and field.speaker and _FIRST_PERSON.search(text):
        return f"{field.speaker}: {text}"
    return text


def _clip(sentence: str) -> str:
    if len(sentence) <= _MAX_CHARS:
        return sentence
    borders = [border.start() for border in _SOFT.finditer(sentence) if border.start() <= _MAX_CHARS]
    cut = borders[-1] if borders and borders[-1] > _MAX_CHARS // 2 else sentence.rfind(" ", 0, _MAX_CHARS)
    return sentence[: cut if cut > 0 else _MAX_CHARS].rstrip()


def _likeliest(finds: list[Find], text: _Text) -> list[Find]:
    """Keep the likeliest finds of a long text, in the order of the text."""
    room = max(_SHORT_CHARS, int(len(text.field.text) * _SHARE))
    if len(finds) <= _MAX_FINDS and sum(len(find.text) for find in finds) <= room:
        return finds
    kept: list[Find] = []
    for find in sorted(finds, key=lambda find: (-find.score, find.place)):
        if len(find.text) <= room and len(kept) < _MAX_FINDS:
            kept.append(find)
            room -= len(find.text)
    return sorted(kept, key=lambda find: find.place)


def _of_whole(finds: list[Find], operation: Operation) -> list[Find]:
    """Weigh the finds of one operation against each other: what is done is open no more, one outcome is told once."""
    if outcome := next(filter(_is_outcome, finds), None):
        about = " (" in outcome.text
        finds = [find for find in finds if find is outcome or not (about and _is_outcome(find) and ": " in find.text)]
    if is_commit(operation):
        finds = _told_once(finds)
    if operation.type == "rules":  # whatever a rule file states is one
        finds = [replace(find, kind=MustKeepKind.CONSTRAINT) for find in finds]
    if operation.type.lower() == "decision" and not any(find.kind is MustKeepKind.DECISION for find in finds):
        finds[:0] = _of_decision(operation)
    return finds


def _is_outcome(find: Find) -> bool:
    return find.kind is MustKeepKind.COMPLETION and find.score == 1.0


def _told_once(finds: Sequence[Find]) -> list[Find]:
    """Leave out what another find of the same kind says with all its words, as a commit's subject and its body do."""
    told = [(find, frozenset(content_stems(find.text))) for find in finds]
    return [
        find
        for place, (find, stems) in enumerate(told)
        if not any(
            find.kind is other.kind and (stems < theirs or (stems == theirs and before < place))
            for before, (other, theirs) in enumerate(told)
        )
    ]


def _of_decision(operation: Operation) -> Iterator[Find]:
    """Take the first prose of an operation of type `decision` as what was decided, unless a loop decided its turn."""
    fields = list(fields_of(operation))
    if any(is_loop_outcome(field.text, field.name) for field in fields):
        return
    for field in fields:
        if field.source is not Source.OUTPUT and len(field.text.split()) >= 2:
            yield Find(MustKeepKind.DECISION, _clip(split_sentences(field.text)[0]), 1.0, 0)
            return


def _must_keeps(finds: Sequence[Find], operation: int, timestamp: datetime) -> tuple[MustKeep, ...]:
    """Make facts of finds, each once, in the order in which they were found."""
    distinct = {(find.kind, find.text): find for find in reversed(finds)}
    return tuple(
        MustKeep(
            kind=find.kind,
            text=find.text,
            operation=operation,
            timestamp=timestamp,
            identifiers=find_identifiers(find.text),
        )
        for find in reversed(distinct.values())
    )

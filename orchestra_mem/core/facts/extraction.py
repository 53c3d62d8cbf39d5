"""Find the facts that a summary must keep, in operations and in text: decisions, rules, failures, roles, open items."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.core.fact_kinds import KIND_OF_TYPE
from orchestra_mem.core.facts.classifier import load_table, probabilities
from orchestra_mem.core.facts.outcomes import (
    failure_lines,
    has_succeeded,
    is_loop_outcome,
    kind_of_field,
    kind_of_value,
    says_nothing,
)
from orchestra_mem.core.facts.prose import TICK, Field, Source, fields_of, outputs_file_content, without_code
from orchestra_mem.core.facts.safety import safety_kind
from orchestra_mem.core.facts.sentences import QUESTION, Candidate, candidates_of
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.speakers import Voice, with_speaker
from orchestra_mem.core.text import content_stems, split_sentences, word_count
from orchestra_mem.types import CUT, Json, MustKeep, MustKeepKind, Operation

THRESHOLD = 0.31
"""Least probability at which a sentence of notes, tickets or records counts as a fact."""
# Threshold for conversation, where facts are rare. `_THRESHOLDS` were cross-validated by writer; this one, `THRESHOLD`
# and those of safety words are the lowest at which real text keeps its share and the test split its precision.
_TALK_THRESHOLD = 0.4
_THRESHOLDS = {Voice.COMMIT: 0.61, Voice.MODEL: 0.77}  # models mostly narrate
# Prior for the share of facts in a text: the share among the training sentences, and its weight in sentences.
_TAUGHT_SHARE, _TAUGHT_WEIGHT = 0.45, 4
_LEAST_SHARE = 0.15  # keeps near-certain facts above the threshold, however rare facts are in the text
_STEPS = 8
# Thresholds if a safety word or the field's name indicates a fact: a missed rule is worse than an extra one.
_SAFETY_THRESHOLD, _TALK_SAFETY_THRESHOLD = 0.14, 0.08
_NARRATED_SAFETY_THRESHOLD = 0.5  # models and commits narrate: `it never sees the flag` is no rule
_SURE = 0.55  # from this probability on, the classifier's kind is more reliable than a safety word's
_MIN_QUOTE_CHARS = 8
_MAX_CHARS = 240  # a longer sentence is cut, at the end of a clause if possible
_POINTING_CHARS = 60  # a longer sentence is clear without the previous one
_SHORT_CHARS = 1_000  # most characters of facts from one text, or `_SHARE` of the text if that is more
_SHARE = 0.12
_MAX_FINDS = 24
# What a sentence that states a decision is not as well. It may be a rule, name who does something, or leave it open.
_REPORTED = (MustKeepKind.COMPLETION, MustKeepKind.FAILURE, MustKeepKind.INSIGHT)
# Names of fields that say no more than the kind of their fact. With a subject they stay: outcomes are compared by them.
_SAYING_KIND = frozenset("decision decisions rule rules constraint constraints failure failures".split())
_REASONS = ("reason", "rationale", "why", "because")
_SOFT = re.compile(r"[,;:\u2014\u2013\uff0c\uff1b]\s*|\s-\s+")


@dataclass(frozen=True, slots=True)
class Find:
    """A passage that states a fact. `score`: Its likelihood, 0 to 1."""

    kind: MustKeepKind
    text: str
    score: float


class _Text(NamedTuple):
    """A text and its candidate sentences, to be classified in one batch with other texts."""

    candidates: tuple[Candidate, ...]
    field: Field


def find_in_operations(operations: Sequence[Operation]) -> list[tuple[MustKeep, ...]]:
    """Find the facts that summaries of operations must keep, in the order of their fields. Batches are faster.

    Prose is classified sentence by sentence; tool output is searched for failures only. A fact's text is a verbatim
    passage of a field, with two additions: a short value comes with its subject and its field's name, unless that only
    names the kind (`status: failed (Password hashing)`), and `Speaker: ` precedes a role or rule in the first person.
    """
    read = [list(_read(operation)) for operation in operations]
    found = iter(_classify([text for parts in read for text in parts if isinstance(text, _Text)]))
    results = []
    for operation, parts in zip(operations, read, strict=True):
        finds = [find for part in parts for find in (next(found) if isinstance(part, _Text) else [part])]
        results.append(_must_keeps(_of_whole(finds, operation), operation.id, operation.timestamp))
    return results


def find_in_text(text: str, *, operation: int, timestamp: datetime, speaker: str = "") -> tuple[MustKeep, ...]:
    """Find the facts that a summary of prose must keep, in the order of the text. `speaker`: Its speaker, if known.

    Returns the likeliest facts: at most 24, with at most 1,000 characters or 12% of the text, whichever is more.
    """
    field = Field(source=Source.SPEECH, name="text", text=text, speaker=speaker, spoken=bool(speaker))
    return _must_keeps(_classify([_text_of(field)])[0], operation, timestamp)


def find_quoted(operations: Sequence[Operation], quotes: Sequence[str]) -> list[tuple[MustKeep, ...]]:
    """Find the facts that a model quoted in one answer about operations, each with the classifier's kind.

    A quote raises the odds that its sentence is a fact as far as the answer's quotes agree with the classifier: not at
    all if the model quotes at random. Quotes must be verbatim except for white space; short ones are ignored.
    """
    wanted = [flat for quote in quotes if len(flat := " ".join(quote.split())) >= _MIN_QUOTE_CHARS]
    texts = [[_text_of(field) for field in _speech(operation)] for operation in operations]
    every = [text for of_one in texts for text in of_one]
    said = {each: " ".join(each.text.split()) for text in every for each in text.candidates}
    quoted = {each for each, sentence in said.items() if any(q in sentence or sentence in q for q in wanted)}
    found = iter(_classify(every, quoted) if quoted else [[] for _ in every])
    return [
        _must_keeps([find for _ in of_one for find in next(found)], operation.id, operation.timestamp)
        for operation, of_one in zip(operations, texts, strict=True)
    ]


def speech_of(operation: Operation) -> str:
    """Return the prose of an operation that is searched for facts, without code."""
    return "\n".join(without_code(field.text).strip() for field in _speech(operation))


def _speech(operation: Operation) -> list[Field]:
    return [field for field in fields_of(operation) if field.source is Source.SPEECH]


def _read(operation: Operation) -> Iterator[_Text | Find]:
    """Yield the facts that need no classifier, and the texts to be classified."""
    fields = [*fields_of(operation)]
    states = [[*_of_state(field)] if field.source is Source.STATE else [] for field in fields]
    failed = any(isinstance(find, Find) and find.kind is MustKeepKind.FAILURE for each in states for find in each)
    for field, stated in zip(fields, states, strict=True):
        if field.source is Source.SPEECH:
            yield _text_of(field)
        elif field.source is Source.STATE:
            yield from stated
        elif not outputs_file_content(operation):
            for line in failure_lines(field.text, failed=failed):
                yield Find(MustKeepKind.FAILURE, line, 1.0)


def _text_of(field: Field) -> _Text:
    return _Text(tuple(candidates_of(field)), field)


def _of_state(field: Field) -> Iterator[_Text | Find]:
    value = field.text.strip()
    if kind := kind_of_value(field.name, value, about=field.about):
        about = f" ({field.about})" if field.about else ""
        label = "" if field.name in _SAYING_KIND and not about else f"{field.name}: "
        yield Find(kind, f"{label}{value}{about}", 1.0)
    elif not says_nothing(value) and word_count(value) >= 3:
        kind = kind_of_field(field.name)
        if kind is None or len(value) > _MAX_CHARS:
            yield _text_of(field)
        else:
            yield Find(kind, value, 1.0)


def _classify(texts: Sequence[_Text], quoted: Container[Candidate] | None = None) -> list[list[Find]]:
    """Find the facts of each text; of those that a model `quoted`, if given, with raised odds."""
    candidates = [candidate for text in texts for candidate in text.candidates]
    table = probabilities([candidate.sentence for candidate in candidates])
    if quoted is not None:
        table = _raised(table, np.array([candidate in quoted for candidate in candidates]))
    rows, results = table.tolist(), []
    begin = 0
    for text in texts:
        own = rows[begin : begin + len(text.candidates)]
        begin += len(text.candidates)
        finds = []
        for candidate, row, among in zip(text.candidates, own, _among([1.0 - row[0] for row in own]), strict=True):
            if quoted is not None and candidate not in quoted:
                continue
            if (judged := _judge(candidate, row, among, text.field)) is not None:
                kind, score = judged
                if kind is MustKeepKind.CONSTRAINT and _is_advice(candidate, text.field):
                    kind = MustKeepKind.INSIGHT
                finds.append(Find(kind, _passage(candidate, kind, text.field), score))
        results.append(_likeliest(finds, text))
    return results


def _raised(rows: NDArray[np.float32], quoted: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Multiply the odds of quoted sentences by how much likelier, by the classifier, facts are quoted than others.

    A fact and another sentence, each quoted half the time, are added: few sentences say little about an answer.
    """
    others, facts = rows[:, 0], 1.0 - rows[:, 0]
    shares = [(kind @ quoted + 0.5) / (kind.sum() + 1.0) for kind in (facts, others)]
    raised = rows.copy()
    raised[quoted, 1:] *= shares[0] / shares[1]
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def _is_advice(candidate: Candidate, field: Field) -> bool:
    """Check whether a rule is a model's prose: models give advice, and people and files set the rules."""
    return field.voice is Voice.MODEL and field.source is Source.SPEECH and candidate.listed is None


def _among(likely: Sequence[float]) -> Sequence[float]:
    """Adjust each sentence's probability to the share of facts in its text: the lower the share, the less likely.

    The share is estimated by expectation maximisation (Saerens, Latinne and Decaestecker, 2002). Without NumPy, because
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
    """Return the kind and score of the fact in a sentence, or None. `among`: Its probability from `_among`."""
    likely = 1.0 - row[0]
    kind = load_table().kinds[max(range(1, len(row)), key=row.__getitem__) - 1]
    if is_loop_outcome(candidate.text):
        return None
    if failure_lines(candidate.text):  # program output among prose
        return (MustKeepKind.FAILURE, likely) if likely >= _TALK_THRESHOLD else None
    threshold = _THRESHOLDS.get(field.voice.judged_as) or (_TALK_THRESHOLD if field.spoken else THRESHOLD)
    named = kind_of_field(field.name) if field.source is Source.STATE else None
    if named is not None:
        return (named, likely) if likely >= _SAFETY_THRESHOLD else None
    least = _TALK_SAFETY_THRESHOLD if field.spoken else _SAFETY_THRESHOLD
    if field.voice is not Voice.PERSON:
        least = _NARRATED_SAFETY_THRESHOLD
    safe = safety_kind(candidate.text, certain=likely < least and among < threshold)
    sure = safe is not None and safe[1] and field.voice is not Voice.COMMIT  # `Do not ...` tells there what was changed
    if safe is not None and (sure or least <= likely < _SURE):
        return safe[0], max(likely, threshold)
    if candidate.listed is not None:
        return candidate.listed, max(likely, threshold)
    if kind in (MustKeepKind.OPEN_ITEM, MustKeepKind.ROLE) and field.asks and QUESTION.search(candidate.text):
        return None  # the model answers at once
    score = likely if safe is not None else among
    return (kind, score) if score >= threshold else None


def _passage(candidate: Candidate, kind: MustKeepKind, field: Field) -> str:
    """Return the text of a fact: cut a long sentence, and prepend the previous sentence to a nearly empty one."""
    text = _clip(candidate.text)
    if kind is MustKeepKind.OPEN_ITEM:
        text = text.removeprefix("[ ] ").lstrip()
    item = candidate.listed is not None or "bullet" in candidate.sentence.circumstances
    points = not item and len(text) <= _POINTING_CHARS and len(content_stems(text)) <= 1
    if points and 0 < len(candidate.before) <= _MAX_CHARS:
        text = f"{candidate.before} {text}"
    return with_speaker(text, field.speaker, kind)


def _clip(sentence: str) -> str:
    if len(sentence) <= _MAX_CHARS:
        return sentence
    borders = [border.start() for border in _SOFT.finditer(sentence) if border.start() <= _MAX_CHARS]
    cut = borders[-1] if borders and borders[-1] > _MAX_CHARS // 2 else sentence.rfind(" ", 0, _MAX_CHARS)
    return sentence[: cut if cut > 0 else _MAX_CHARS].rstrip() + CUT


def _likeliest(finds: list[Find], text: _Text) -> list[Find]:
    """Keep the likeliest finds of a long text, in the order of the text."""
    room = max(_SHORT_CHARS, int(len(text.field.text) * _SHARE))
    if len(finds) <= _MAX_FINDS and sum(len(find.text) for find in finds) <= room:
        return finds
    kept: list[int] = []
    for place in sorted(range(len(finds)), key=lambda place: -finds[place].score):
        size = len(finds[place].text)
        if size <= room and len(kept) < _MAX_FINDS:
            kept.append(place)
            room -= size
    return [finds[place] for place in sorted(kept)]


def _of_whole(finds: list[Find], operation: Operation) -> list[Find]:
    """Reconcile the finds of one operation: keep its outcome only once, and adapt the kinds to the operation's type."""
    outcome = next(filter(_is_outcome, finds), None)
    if outcome and " (" in outcome.text:  # it says what it is about
        finds = [find for find in finds if find is outcome or not (_is_outcome(find) and ": " in find.text)]
    kind = operation.type.lower()
    if kind == "rules":
        finds = [replace(find, kind=MustKeepKind.CONSTRAINT) for find in finds]
    elif kind in KIND_OF_TYPE:
        finds = _of_kind(KIND_OF_TYPE[kind], finds, operation)
    return _without_reasons(finds, operation.data)


def _of_kind(kind: MustKeepKind, finds: list[Find], operation: Operation) -> list[Find]:
    """Begin with the fact that the operation's type names, if the text is one line, which begins with that.

    A decision is also looked for in other texts, if no find is one. Other kinds yield to a tick box.
    """
    text = operation.data.get("text") if isinstance(operation.data, dict) else operation.data
    is_line = isinstance(text, str) and "\n" not in text.strip()
    if kind is MustKeepKind.DECISION:
        if not is_line and any(find.kind is kind for find in finds):
            return finds
    elif not is_line or TICK.match(str(text).strip()):
        return finds
    stated = [*_stated_in(operation, kind)]
    said, others = {find.text for find in stated}, _REPORTED if kind is MustKeepKind.DECISION else [*MustKeepKind]
    return [*stated, *(find for find in finds if find.text not in said or find.kind not in others)]


def _without_reasons(finds: list[Find], data: Json) -> list[Find]:
    """Leave out the decisions that only the reason for another one seems to state."""
    if not (isinstance(data, dict) and any(map(data.get, _REASONS))):  # as most operations
        return finds
    reasons = " ".join(str(data.get(name) or "") for name in _REASONS)
    rest = str([value for name, value in data.items() if name not in _REASONS])
    others = [
        each
        for each in finds
        if each.kind is not MustKeepKind.DECISION or each.text not in reasons or each.text in rest
    ]
    return others if any(find.kind is MustKeepKind.DECISION for find in others) else finds


def _is_outcome(find: Find) -> bool:
    return find.kind is MustKeepKind.COMPLETION and find.score == 1.0


def _stated_in(operation: Operation, kind: MustKeepKind) -> Iterator[Find]:
    """Yield what an operation says as the fact that its type names, unless it is only an agent loop's next step.

    Its `text` may have a single word. Otherwise, of a decision, the first prose but a reason counts, then the title,
    then a reason. An open item of an operation that tells success is done.
    """
    fields = [field for field in fields_of(operation) if field.source is not Source.OUTPUT]
    said = [field for field in fields if field.name == "text"]
    if kind is MustKeepKind.DECISION:
        title = operation.data.get("title") if isinstance(operation.data, dict) else None
        titled = fields_of(replace(operation, data={"text": title}))
        prose = [field for field in fields if word_count(field.text) >= 2]
        said += [*(each for each in prose if each.name not in _REASONS), *titled, *prose]
    elif kind is MustKeepKind.OPEN_ITEM and has_succeeded(operation):
        kind = MustKeepKind.COMPLETION
    if any(is_loop_outcome(field.text, field.name) for field in fields):
        return
    told = next((each for each in said if not says_nothing(each.text) and any(map(str.isalnum, each.text))), None)
    if told and not is_loop_outcome(told.text, "decision"):
        yield Find(kind, with_speaker(_clip(split_sentences(told.text)[0]), told.speaker, kind), 1.0)


def _must_keeps(finds: Sequence[Find], operation: int, timestamp: datetime) -> tuple[MustKeep, ...]:
    """Convert finds into facts without duplicates, in the order of their last occurrence."""
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

"""Finding what a summary may not lose, in the operations and in text: decisions, rules, failures, roles, open items."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from datetime import datetime

from orchestra_mem.core.cues.cue import MESSAGE, NO_LONGER_FAILS, NOTHING, THRESHOLD, TOLD_AS_SUCH, LazyPattern
from orchestra_mem.core.cues.event import failure_lines
from orchestra_mem.core.cues.open import NO_ANSWER, UNKNOWN
from orchestra_mem.core.facts.finds import RANK, Find, clearest, must_keeps_of, told_once
from orchestra_mem.core.facts.judgement import judge
from orchestra_mem.core.facts.prose import (
    Field,
    Source,
    Voice,
    fields_of,
    is_commit,
    masked,
    reads_as_prose,
    reads_only,
    without_code,
)
from orchestra_mem.core.facts.roles import continues_role
from orchestra_mem.core.facts.settlement import settle, supersedes
from orchestra_mem.core.steps import finished
from orchestra_mem.core.text import content_stems, split_sentences
from orchestra_mem.types import MustKeep, MustKeepKind, Operation

__all__ = ["find_in_text", "find_must_keeps", "find_steps", "settle", "supersedes"]

_MAX_CHARS = 240  # a longer sentence is cut to the clauses around what was found
_WHOLE_CHARS = 200  # up to this size a rule, decision or role keeps its sentence: the topic may stand in another clause
_TALK_CHARS = 600  # what is longer was written or pasted, and not said
_MAX_POINTING_CHARS = 60  # a sentence longer than this says enough by itself

_REQUESTS = frozenset({"user input", "input", "prompt", "request", "instruction", "instructions"})
_HOLDING = frozenset({MustKeepKind.CONSTRAINT, MustKeepKind.DECISION, MustKeepKind.ROLE})
_BLANKS = re.compile(r"\s+")
_SPLIT = re.compile(r"[;—–]\s+|\s-\s|,\s+(?:but|and|so|while|then|yet)\s+|\s(?:but)\s+")
# `the other thirty`: what they are stands in the clause before.
_ELLIPTIC = re.compile(
    r"\bthe (?:others?|rest|remaining|missing)(?: (?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|dozen|"
    r"twenty|thirty|forty|fifty|half|few|ones?))?(?=[,.;!?]|$| (?:is|are|was|were|has|have|still|until|before)\b)"
)
_SOFT = re.compile(r"[,;:—–]\s+|\s-\s+")
_MAX_REASONS = 3  # sentences before a decision that may hold its reason
# What went before a decision and made it: something is not so, or is too much, or is named as what is spoken of.
_REASON = LazyPattern(
    r"\b(?:no|not|nor|never|can't|cannot|won't|don't|doesn't|didn't|isn't|aren't|haven't|hasn't|too|off|dead|gone|"
    r"broken|"
    r"cancel\w*|costs?|mess|fails?|failed|leak\w*|closed|closure|refus\w*|reject\w*|about (?:the|that|those)|unless)\b"
)
_CONCLUDES = LazyPattern(r"(?:so|hence|therefore|thus|then|that's why|in that case|ok so|right so)\b")
_POINTS_BACK = re.compile(r"\b(?:that|this|it|them|those|these|so|there|one)\b")


def find_must_keeps(operation: Operation) -> tuple[MustKeep, ...]:
    """Find what a summary of this operation may not lose, in the order of its fields.

    Prose is judged sentence by sentence; in tool output only failures are looked for. The text of a find is a passage
    of a field, word for word. Three additions: a value that says little alone comes with its field's name and what it
    is about (`decision: PROCEED (Password hashing)`); a sentence that points back comes with the one before; and
    `Speaker: ` stands before a role told in the first person.
    """
    return finished(find_steps(operation))


def find_steps(operation: Operation, *, tentative: bool = False) -> Generator[None, None, tuple[MustKeep, ...]]:
    """Find what `find_must_keeps` does, in steps of some 0.1 ms; with them `Tentative` ones, if these are wanted."""
    silent = reads_only(operation)
    finds: list[Find] = []
    asked: list[Find] = []
    for field in fields_of(operation):
        if field.source is Source.SPEECH:
            found = yield from _prose_steps(
                field.text, field.speaker, field.voice, spoken=field.spoken, tentative=tentative
            )
            asked.extend(find for find in found if field.name in _REQUESTS and find.kind is MustKeepKind.OPEN_ITEM)
            finds.extend(found)
        elif field.source is Source.STATE:
            finds.extend(_in_state(field))
        elif not silent:
            finds.extend(_in_output(field))
        yield
    if any(find.kind is MustKeepKind.COMPLETION for find in finds):
        # the operation tells what was asked for and that it was done
        finds = [find for find in finds if find not in asked]
    if len(finds) > 1 and is_commit(operation):
        finds = told_once(finds)
    decided = any(find.kind is MustKeepKind.DECISION and not find.tentative for find in finds)
    if operation.type.lower() == "decision" and not decided:
        finds[:0] = _of_decision(operation)
    return must_keeps_of(finds, operation.id, operation.timestamp)


def find_in_text(text: str, *, operation: int, timestamp: datetime, speaker: str = "") -> tuple[MustKeep, ...]:
    """Find what a summary may not lose in prose, in the order of the text; `speaker` said it.

    Of a long text the clearest finds are kept, up to an eighth of its size. The text of a find is a passage, word for
    word; `Speaker: ` stands before a role told in the first person.
    """
    return must_keeps_of(list(_in_prose(text, speaker, Voice.PERSON, spoken=True)), operation, timestamp)


def _in_prose(text: str, speaker: str, voice: Voice, *, spoken: bool = False) -> list[Find]:
    return finished(_prose_steps(text, speaker, voice, spoken=spoken))


def _prose_steps(
    text: str, speaker: str, voice: Voice, *, spoken: bool = False, tentative: bool = False
) -> Generator[None, None, list[Find]]:
    said = without_code(text)
    talk = spoken and voice is Voice.PERSON and len(said) <= _TALK_CHARS
    finds: list[Find] = []
    # the sentences right before, with nothing but white space between, can be quoted together with this one
    near: list[str] = []
    end = 0
    for place, sentence in enumerate(split_sentences(said)):
        start = said.find(sentence, end)
        if said[end:start].strip():
            near = []
        end = start + len(sentence)
        if not reads_as_prose(sentence):
            near = []
            continue
        found = _in_sentence(sentence, speaker, voice, place, talk=talk, tentative=tentative)
        for find in found:
            wide = _with_neighbours(find, near)
            # a find that the wider one quotes is told by it
            finds = [past for past in finds if not _is_told_by(past, wide)]
            finds.append(wide)
        if near and all(find.tentative for find in found):
            kind = _continues(sentence, near[-1])
            if kind is not None:
                finds.append(Find(kind, f"{near[-1]} {sentence}", THRESHOLD, place))
        near = [*near[1 - _MAX_REASONS :], sentence]
        yield
    return clearest(finds, len(said))


def _is_told_by(find: Find, wide: Find) -> bool:
    return find.kind is wide.kind and find.text in wide.text and (find.tentative or not wide.tentative)


def _continues(sentence: str, before: str) -> MustKeepKind | None:
    """Tell which kind of fact a sentence tells together with the one before, where it tells none alone."""
    if continues_role(sentence, before):
        return MustKeepKind.ROLE
    if len(before) > _MAX_CHARS or len(sentence) > _MAX_CHARS:
        return None
    asked = before.endswith("?") and NO_ANSWER.match(sentence.lower().replace("’", "'"))
    unknown = UNKNOWN.match(before.lower().replace("’", "'"))
    return MustKeepKind.OPEN_ITEM if asked or (unknown and len(sentence) > len(before)) else None


def _in_sentence(sentence: str, speaker: str, voice: Voice, place: int, *, talk: bool, tentative: bool) -> list[Find]:
    flat = _BLANKS.sub(" ", sentence).replace("’", "'").strip("*_ ")
    # a model's heading names what follows
    if voice is Voice.MODEL and flat.startswith("#"):
        return []
    scores = _weigh(flat, voice, talk=talk, tentative=tentative)
    if not scores:
        return []
    order = sorted(scores, key=lambda kind: (-scores[kind][0], RANK[kind]))
    best = order[0]
    whole = len(sentence) <= _WHOLE_CHARS and not _HOLDING.isdisjoint(scores)
    if whole and best not in _HOLDING:
        # what holds on stands before what is over, where one sentence tells of both
        best = next((kind for kind in order if kind in _HOLDING and scores[kind][0] >= scores[best][0] - 1), best)
    if len(order) > 1 and len(flat) == len(sentence) and not whole:
        parts = _split(sentence, scores, best, order[1])
        if parts:
            return [Find(kind, _voiced(kind, part, speaker), scores[kind][0], place) for kind, part in parts]
    text = _clip(sentence, scores[best][1] if len(flat) == len(sentence) else 0)
    return [Find(best, _voiced(best, text, speaker), scores[best][0], place)]


def _weigh(flat: str, voice: Voice, *, talk: bool, tentative: bool) -> dict[MustKeepKind, tuple[float, int]]:
    """Judge a sentence by what stands in it and by who says it."""
    text = masked(flat, quotes=voice is Voice.MODEL)
    scores = judge(text, imperative=voice is not Voice.COMMIT, talk=talk, tentative=tentative)
    low = text.lower()
    if MESSAGE.match(low):  # of a compiler, or the like
        return {kind: score for kind, score in scores.items() if kind is MustKeepKind.FAILURE}
    if voice is Voice.PERSON:
        return scores
    return {kind: score for kind, score in scores.items() if _is_told(kind, low, voice, score[1])}


def _is_told(kind: MustKeepKind, low: str, voice: Voice, place: int) -> bool:
    """Tell whether a report says of a fact that it is one, and does not just describe."""
    if voice is Voice.MODEL and low.endswith(":"):
        return kind is MustKeepKind.COMPLETION
    if kind is MustKeepKind.FAILURE and NO_LONGER_FAILS.search(low):
        return False
    if kind is MustKeepKind.ROLE:
        # what a commit's message begins with is what the commit does, and nobody's name
        return _OF_CODE.search(low) is None and not (voice is Voice.COMMIT and place == 0)
    told = None if kind is MustKeepKind.DECISION and voice is Voice.COMMIT else TOLD_AS_SUCH.get(kind)
    return told is None or told.search(low) is not None


_OF_CODE = re.compile(r"xxx|\w_\w|\w\(|\blines?\b|:\d")


def _split(
    sentence: str, scores: dict[MustKeepKind, tuple[float, int]], first: MustKeepKind, second: MustKeepKind
) -> list[tuple[MustKeepKind, str]]:
    """Cut a sentence that tells two kinds of facts in two clauses; nothing where they share one."""
    left, right = sorted((first, second), key=lambda kind: scores[kind][1])
    for border in _SPLIT.finditer(sentence):
        if scores[left][1] < border.start() and border.end() <= scores[right][1] + 8:
            parts = sentence[: border.start()].strip(" ,;"), sentence[border.end() :].strip()
            if min(len(part.split()) for part in parts) >= 3 and not _ELLIPTIC.search(parts[1]):
                return [(left, parts[0]), (right, parts[1])]
    return []


def _clip(sentence: str, place: int) -> str:
    """Cut a long sentence to the clauses around a place."""
    if len(sentence) <= _MAX_CHARS:
        return sentence
    borders = [0, *(border.end() for border in _SOFT.finditer(sentence)), len(sentence)]
    at = max(i for i, border in enumerate(borders[:-1]) if border <= place)
    first, last = at, at + 1
    while last < len(borders) - 1 and borders[last + 1] - borders[first] <= _MAX_CHARS:
        last += 1
    while first > 0 and borders[last] - borders[first - 1] <= _MAX_CHARS:
        first -= 1
    piece = sentence[borders[first] : borders[last]].strip()
    return piece if len(piece) <= 2 * _MAX_CHARS else piece[: 2 * _MAX_CHARS].rsplit(None, 1)[0]


def _voiced(kind: MustKeepKind, text: str, speaker: str) -> str:
    if kind is MustKeepKind.ROLE and speaker and re.search(r"\b(?:I|I'm|I’m|[Mm]y|[Mm]e)\b", text):
        return f"{speaker}: {text}"
    return text


def _with_neighbours(find: Find, near: list[str]) -> Find:
    """Put the sentences before in front of one that says too little without them.

    One that only points back (`Never do that.`) and an answer that a question went before take the one before; a
    decision takes the reason that was given right before, which names what it is about.
    """
    if not near or len(near[-1]) > _MAX_CHARS:
        return find
    low = find.text.lower().replace("’", "'")
    if find.kind in (MustKeepKind.CONSTRAINT, MustKeepKind.DECISION) and (
        len(find.text) <= _MAX_POINTING_CHARS and _POINTS_BACK.search(low) and len(content_stems(low)) <= 1
    ):
        return _joined(find, near[-1:])
    if find.kind is MustKeepKind.ROLE and len(find.text) <= _MAX_POINTING_CHARS // 2 and near[-1].endswith("?"):
        return _joined(find, near[-1:])
    if find.kind is MustKeepKind.OPEN_ITEM and len(find.text) <= _MAX_POINTING_CHARS:
        asked = near[-1].endswith("?") and NO_ANSWER.match(low)
        points = _POINTS_BACK.search(low) and len(content_stems(low)) <= 1
        return _joined(find, near[-1:]) if asked or points else find
    if find.kind is MustKeepKind.DECISION and find.place > 0:
        for first in range(len(near)):
            told = near[first:]
            reason = told[0].lower().replace("’", "'")
            apart = len(told) == 1 or _CONCLUDES.match(low)
            if apart and _REASON.search(reason) and sum(map(len, told)) + len(find.text) <= _WHOLE_CHARS:
                return _joined(find, told)
    return find


def _joined(find: Find, before: list[str]) -> Find:
    return Find(find.kind, " ".join((*before, find.text)), find.score, find.place)


def _in_output(field: Field) -> list[Find]:
    """Find the clear failures in what a tool printed; what it printed is no one's rule or decision."""
    return [Find(MustKeepKind.FAILURE, line, 3.0, 0) for line in failure_lines(field.text)]


_FIELDS: tuple[tuple[MustKeepKind, str], ...] = (
    (MustKeepKind.DECISION, "decision decisions verdict resolution"),
    (MustKeepKind.FAILURE, "error errors exception failure failures blocker blockers blocked_by"),
    (
        MustKeepKind.OPEN_ITEM,
        "next_steps next_step next todo todos open_items open_questions open_question pending action_items follow_ups "
        "follow_up remaining waiting_on waiting_for",
    ),
    (MustKeepKind.COMPLETION, "completed accomplishments done finished achieved"),
    (
        MustKeepKind.CONSTRAINT,
        "constraint constraints rule rules requirement requirements policy policies preference preferences",
    ),
    (MustKeepKind.ROLE, "owner assignee assigned_to lead reviewer on_call responsible"),
)
_KIND_OF = {name.replace("_", " "): kind for kind, names in _FIELDS for name in names.split()}
_VALUES: tuple[tuple[MustKeepKind, str], ...] = (
    (
        MustKeepKind.FAILURE,
        "failed failure fail error errored crashed timeout timed_out aborted broken rejected denied",
    ),
    (
        MustKeepKind.COMPLETION,
        "completed complete done success succeeded finished passed merged closed shipped deployed released resolved "
        "fixed",
    ),
    (MustKeepKind.OPEN_ITEM, "pending blocked waiting on_hold todo open deferred paused"),
    (MustKeepKind.DECISION, "approved proceed escalate cancelled canceled postponed"),
)
_OUTCOMES = {value: kind for kind, values in _VALUES for value in values.split()}
_GOOD_FLAGS = frozenset({"success", "succeeded", "passed"})
_GOOD_WHEN_TRUE = frozenset({"completed", "done", "finished"})  # false means not yet, and is no failure
_EXIT_FIELDS = frozenset({"exit code", "exitcode", "exit status", "returncode", "return code"})


def _in_state(field: Field) -> list[Find]:
    """Judge a field that holds a state: by its value, and by its name."""
    value = field.text.strip()
    low = value.lower()
    if field.name in _EXIT_FIELDS:
        return [_state(MustKeepKind.FAILURE, field)] if low not in ("0", "none", "") else []
    if low in ("true", "false"):
        return _of_flag(field, low == "true")
    if not value or NOTHING.match(low):
        return []
    outcome = _OUTCOMES.get(low.replace(" ", "_").replace("-", "_"))
    if outcome is not None and field.name not in _KIND_OF:
        wanted = bool(field.about) or outcome is MustKeepKind.FAILURE
        return [_state(outcome, field)] if wanted else []
    kind = _KIND_OF.get(field.name)
    if kind is None:
        return _in_prose(value, field.speaker, field.voice)
    if len(value) > _MAX_CHARS:
        found = _in_prose(value, field.speaker, field.voice)
        if kind is MustKeepKind.FAILURE:  # what an error says must be so is no rule
            found = [find for find in found if find.kind is kind]
        return found or [Find(kind, _clip(split_sentences(value)[0], 0), 3.0, 0)]
    if len(value.split()) < 3:
        return [_state(kind, field)]
    return [Find(kind, value, 3.0, 0)]


def _of_flag(field: Field, value: bool) -> list[Find]:
    if value and field.name in _GOOD_FLAGS | _GOOD_WHEN_TRUE:
        return [_state(MustKeepKind.COMPLETION, field)] if field.about else []
    failed = field.name in _GOOD_FLAGS if not value else field.name in ("failed", "failure", "error")
    return [_state(MustKeepKind.FAILURE, field)] if failed else []


def _state(kind: MustKeepKind, field: Field) -> Find:
    about = f" ({field.about})" if field.about else ""
    return Find(kind, f"{field.name}: {field.text.strip()}{about}", 3.0, 0)


def _of_decision(operation: Operation) -> Iterator[Find]:
    """Take the first prose of an operation of type `decision` as what was decided."""
    for field in fields_of(operation):
        if field.source is not Source.OUTPUT and len(field.text.split()) >= 2:
            yield Find(MustKeepKind.DECISION, _clip(split_sentences(field.text)[0], 0), 3.0, 0)
            return

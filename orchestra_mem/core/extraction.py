"""Finding what a summary may not lose, in the operations and in text: decisions, rules, failures, roles, open items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from orchestra_mem.core.cues import THRESHOLD, LazyPattern
from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.judgement import judge
from orchestra_mem.core.prose import Field, Source, fields_of, is_commit, reads_as_prose, reads_only, without_code
from orchestra_mem.core.roles import continues_role
from orchestra_mem.core.settlement import settle, supersedes
from orchestra_mem.core.text import content_stems, split_sentences
from orchestra_mem.types import MustKeep, MustKeepKind, Operation

__all__ = ["find_in_text", "find_must_keeps", "settle", "supersedes"]

_MAX_CHARS = 240  # a longer sentence is cut to the clauses around what was found
_WHOLE_CHARS = 200  # up to this size a rule, decision or role keeps its sentence: the topic may stand in another clause
_SHORT_CHARS = 1_000  # of a text up to this size everything found is kept; of longer ones a share
_SHARE = 0.12
_MAX_FINDS = 24
_MAX_POINTING_CHARS = 60  # a sentence longer than this says enough by itself

_RANK = {
    kind: rank
    for rank, kind in enumerate(
        (
            MustKeepKind.CONSTRAINT,
            MustKeepKind.DECISION,
            MustKeepKind.ROLE,
            MustKeepKind.OPEN_ITEM,
            MustKeepKind.FAILURE,
            MustKeepKind.COMPLETION,
        )
    )
}
_REQUESTS = frozenset({"user input", "input", "prompt", "request", "instruction", "instructions"})
_HOLDING = frozenset({MustKeepKind.CONSTRAINT, MustKeepKind.DECISION, MustKeepKind.ROLE})
_BLANKS = re.compile(r"\s+")
_SPLIT = re.compile(r"[;—–]\s+|\s-\s|,\s+(?:but|and|so|while|then|yet)\s+|\s(?:but)\s+")
_SOFT = re.compile(r"[,;:—–]\s+|\s-\s+")
_MAX_REASONS = 3  # sentences before a decision that may hold its reason
# What went before a decision and made it: something is not so, or is too much, or is named as what is spoken of.
_REASON = LazyPattern(
    r"\b(?:no|not|nor|never|can't|cannot|won't|don't|doesn't|didn't|isn't|aren't|haven't|hasn't|too|off|dead|gone|"
    r"broken|"
    r"cancel\w*|costs?|mess|fails?|failed|leak\w*|closed|closure|refus\w*|reject\w*|about (?:the|that|those)|unless)\b"
)
_CONCLUDES = LazyPattern(r"(?:so|hence|therefore|thus|then|that's why|in that case|ok so|right so)\b")
_NO_ANSWER = LazyPattern(
    r"(?:(?:because|and|but|so|well|no|honestly|sorry)\b,? )*(?:i haven't|we haven't|nobody (?:knows|has|does)|no "
    r"one (?:knows|has)|no idea|"
    r"no clue|(?:i|we) (?:really |still )?don't know|(?:i|we) (?:can't|couldn't) (?:say|tell)|not known|unknown|"
    r"not yet|"
    r"who knows|not that i know|never (?:settled|decided)|we never|still (?:open|unclear|hanging|waiting)|(?:that|"
    r"it)'s (?:still )?(?:open|hanging|unclear|in the air|"
    r"not settled|"
    r"not decided)|no answer|no reply|haven't heard|nothing yet|undecided|i never found out|search me|good question)\b"
)
_UNKNOWN = re.compile(
    r"(?:(?:well|so|honestly|no|sorry|hm+|and|but)\b,? )*(?:i don't know|we don't know|(?:no one|nobody) knows|"
    r"(?:it's|it is|that's) not "
    r"(?:known|clear|decided|settled)|unknown|no idea|undecided|not (?:known|decided|settled)|(?:that|it)'s "
    r"(?:still )?(?:open|"
    r"unclear)|(?:still|one) open|nothing (?:yet|so far))(?: yet| either)?[.!]*"
)
_POINTS_BACK = re.compile(r"\b(?:that|this|it|them|those|these|so|there|one)\b")


@dataclass(frozen=True, slots=True)
class _Find:
    kind: MustKeepKind
    text: str
    score: float
    place: int


def find_must_keeps(operation: Operation) -> tuple[MustKeep, ...]:
    """Find what a summary of this operation may not lose, in the order of its fields.

    Prose is judged sentence by sentence; in tool output only failures are looked for. The text of a find is a passage
    of a field, word for word. Three additions: a value that says little alone comes with its field's name and what it
    is about (`decision: PROCEED (Password hashing)`); a sentence that points back comes with the one before; and
    `Speaker: ` stands before a role told in the first person.
    """
    imperative, silent = not is_commit(operation), reads_only(operation)
    finds: list[_Find] = []
    asked: list[_Find] = []
    for field in fields_of(operation):
        if field.source is Source.SPEECH:
            found = _in_prose(field.text, field.speaker, imperative)
            asked.extend(find for find in found if field.name in _REQUESTS and find.kind is MustKeepKind.OPEN_ITEM)
            finds.extend(found)
        elif field.source is Source.STATE:
            finds.extend(_in_state(field, imperative))
        elif not silent:
            finds.extend(_in_output(field))
    if any(find.kind is MustKeepKind.COMPLETION for find in finds):
        # the operation tells what was asked for and that it was done
        finds = [find for find in finds if find not in asked]
    if operation.type.lower() == "decision" and not any(find.kind is MustKeepKind.DECISION for find in finds):
        finds[:0] = _of_decision(operation)
    return _must_keeps(finds, operation.id, operation.timestamp)


def find_in_text(text: str, *, operation: int, timestamp: datetime, speaker: str = "") -> tuple[MustKeep, ...]:
    """Find what a summary may not lose in prose, in the order of the text; `speaker` said it.

    Of a long text the clearest finds are kept, up to an eighth of its size. The text of a find is a passage, word for
    word; `Speaker: ` stands before a role told in the first person.
    """
    return _must_keeps(list(_in_prose(text, speaker, True)), operation, timestamp)


def _must_keeps(finds: list[_Find], operation: int, timestamp: datetime) -> tuple[MustKeep, ...]:
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


def _in_prose(text: str, speaker: str, imperative: bool) -> list[_Find]:
    said = without_code(text)
    finds: list[_Find] = []
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
        found = _in_sentence(sentence, speaker, imperative, place)
        for find in found:
            wide = _with_neighbours(find, near)
            # a find that the wider one quotes is told by it
            finds = [past for past in finds if past.kind is not wide.kind or past.text not in wide.text]
            finds.append(wide)
        if near and not found:
            kind = _continues(sentence, near[-1])
            if kind is not None:
                finds.append(_Find(kind, f"{near[-1]} {sentence}", THRESHOLD, place))
        near = [*near[1 - _MAX_REASONS :], sentence]
    return _best(finds, len(said))


def _continues(sentence: str, before: str) -> MustKeepKind | None:
    """Tell which kind of fact a sentence tells together with the one before, where it tells none alone."""
    if continues_role(sentence, before):
        return MustKeepKind.ROLE
    if len(before) > _MAX_CHARS or len(sentence) > _MAX_CHARS:
        return None
    asked = before.endswith("?") and _NO_ANSWER.match(sentence.lower().replace("’", "'"))
    unknown = _UNKNOWN.fullmatch(before.lower().replace("’", "'"))
    return MustKeepKind.OPEN_ITEM if asked or (unknown and len(sentence) > len(before)) else None


def _best(finds: list[_Find], size: int) -> list[_Find]:
    """Keep the clearest finds of a long text, in the order of the text."""
    room = max(_SHORT_CHARS, int(size * _SHARE))
    if len(finds) <= _MAX_FINDS and sum(len(find.text) for find in finds) <= room:
        return finds
    kept: list[_Find] = []
    for find in sorted(finds, key=lambda find: (-find.score, _RANK[find.kind], find.place)):
        if len(find.text) <= room and len(kept) < _MAX_FINDS:
            kept.append(find)
            room -= len(find.text)
    return sorted(kept, key=lambda find: find.place)


def _in_sentence(sentence: str, speaker: str, imperative: bool, place: int) -> list[_Find]:
    flat = _BLANKS.sub(" ", sentence).replace("’", "'").strip("*_ ")
    scores = judge(flat, imperative=imperative)
    if not scores:
        return []
    order = sorted(scores, key=lambda kind: (-scores[kind][0], _RANK[kind]))
    best = order[0]
    whole = len(sentence) <= _WHOLE_CHARS and not _HOLDING.isdisjoint(scores)
    if whole and best not in _HOLDING:
        # what holds on stands before what is over, where one sentence tells of both
        best = next((kind for kind in order if kind in _HOLDING and scores[kind][0] >= scores[best][0] - 1), best)
    if len(order) > 1 and len(flat) == len(sentence) and not whole:
        parts = _split(sentence, scores, best, order[1])
        if parts:
            return [_Find(kind, _voiced(kind, part, speaker), scores[kind][0], place) for kind, part in parts]
    text = _clip(sentence, scores[best][1] if len(flat) == len(sentence) else 0)
    return [_Find(best, _voiced(best, text, speaker), scores[best][0], place)]


def _split(
    sentence: str, scores: dict[MustKeepKind, tuple[float, int]], first: MustKeepKind, second: MustKeepKind
) -> list[tuple[MustKeepKind, str]]:
    """Cut a sentence that tells two kinds of facts in two clauses; nothing where they share one."""
    left, right = sorted((first, second), key=lambda kind: scores[kind][1])
    for border in _SPLIT.finditer(sentence):
        if scores[left][1] < border.start() and border.end() <= scores[right][1] + 8:
            parts = sentence[: border.start()].strip(" ,;"), sentence[border.end() :].strip()
            if min(len(part.split()) for part in parts) >= 3:
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


def _with_neighbours(find: _Find, near: list[str]) -> _Find:
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
        asked = near[-1].endswith("?") and _NO_ANSWER.match(low)
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


def _joined(find: _Find, before: list[str]) -> _Find:
    return _Find(find.kind, " ".join((*before, find.text)), find.score, find.place)


_EXIT = re.compile(
    r"^\W*(?:[\w ]{0,30}\b)?exit(?:ed)?(?: with)?(?: code| status):? (?:[1-9]\d{0,2})\b", re.IGNORECASE | re.MULTILINE
)
_FAILURE_LINE = re.compile(
    r"^(?:[^\s:]{1,80}:\d+(?::\d+)?:\s?)?"
    r"(?:E\s{2,}|\s*(?:fatal|error|panic|FAILED|FAIL|ERROR|Error|Fatal)\b(?:\[\w+\])?[: ]\s?\S|"
    r"\s*(?:[\w.]*[a-z](?:Error|Exception)|Traceback \(most recent call last\))(?::|$)).*$",
    re.MULTILINE,
)
_MAX_OUTPUT_FAILURES = 2
_MAX_LINE_CHARS = 200


def _in_output(field: Field) -> list[_Find]:
    """Find the clear failures in what a tool printed; what it printed is no one's rule or decision."""
    text = field.text
    exits = _EXIT.search(text[:2_000]) or _EXIT.search(text[-500:])
    lines: list[str] = []
    if exits or len(text) < 4_000:
        for match in _FAILURE_LINE.finditer(text[:20_000]):
            line = match.group().strip()[:_MAX_LINE_CHARS]
            if line not in lines and not _LISTING.match(line):
                lines.append(line)
            if len(lines) == _MAX_OUTPUT_FAILURES:
                break
    if not lines and exits:
        end = text.find("\n", exits.end())
        following = text[end + 1 :].lstrip().split("\n", 1)[0].strip() if end >= 0 else ""
        lines = [exits.group() if not following else following[:_MAX_LINE_CHARS]]
    return [_Find(MustKeepKind.FAILURE, line, 3.0, 0) for line in lines]


_LISTING = re.compile(r"\s*\d+[→|:\t-]")

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
_NOTHING = frozenset("none null false no n/a na nil 0 ok - []".split())
_GOOD_FLAGS = frozenset({"success", "succeeded", "passed"})
_GOOD_WHEN_TRUE = frozenset({"completed", "done", "finished"})  # false means not yet, and is no failure
_EXIT_FIELDS = frozenset({"exit code", "exitcode", "exit status", "returncode", "return code"})


def _in_state(field: Field, imperative: bool) -> list[_Find]:
    """Judge a field that holds a state: by its value, and by its name."""
    value = field.text.strip()
    low = value.lower()
    if field.name in _EXIT_FIELDS:
        return [_state(MustKeepKind.FAILURE, field)] if low not in ("0", "none", "") else []
    if low in ("true", "false"):
        return _of_flag(field, low == "true")
    if low in _NOTHING or not value:
        return []
    outcome = _OUTCOMES.get(low.replace(" ", "_").replace("-", "_"))
    if outcome is not None and field.name not in _KIND_OF:
        wanted = bool(field.about) or outcome is MustKeepKind.FAILURE
        return [_state(outcome, field)] if wanted else []
    kind = _KIND_OF.get(field.name)
    if kind is None:
        return _in_prose(value, field.speaker, imperative)
    if len(value) > _MAX_CHARS:
        found = _in_prose(value, field.speaker, imperative)
        return found or [_Find(kind, _clip(split_sentences(value)[0], 0), 3.0, 0)]
    if len(value.split()) < 3:
        return [_state(kind, field)]
    return [_Find(kind, value, 3.0, 0)]


def _of_flag(field: Field, value: bool) -> list[_Find]:
    if value and field.name in _GOOD_FLAGS | _GOOD_WHEN_TRUE:
        return [_state(MustKeepKind.COMPLETION, field)] if field.about else []
    failed = field.name in _GOOD_FLAGS if not value else field.name in ("failed", "failure", "error")
    return [_state(MustKeepKind.FAILURE, field)] if failed else []


def _state(kind: MustKeepKind, field: Field) -> _Find:
    about = f" ({field.about})" if field.about else ""
    return _Find(kind, f"{field.name}: {field.text.strip()}{about}", 3.0, 0)


def _of_decision(operation: Operation) -> Iterator[_Find]:
    """Take the first prose of an operation of type `decision` as what was decided."""
    for field in fields_of(operation):
        if field.source is not Source.OUTPUT and len(field.text.split()) >= 2:
            yield _Find(MustKeepKind.DECISION, _clip(split_sentences(field.text)[0], 0), 3.0, 0)
            return

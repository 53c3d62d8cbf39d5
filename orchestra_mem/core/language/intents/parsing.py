"""Commands and questions in everyday words, read into intents by rules over normalised words.

A line is cut into sentences and these into clauses; each clause is held against patterns that must fit it whole, or is
read by its parts, of which none may be left over. What is neither is not understood: so negations, conditions,
questions and what others said never carry anything out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from orchestra_mem.core.language.intents.adverbials import took_adverbial, without_adverbials, without_adverbs
from orchestra_mem.core.language.intents.asides import Beside, asides, gives_up, has_aside, states
from orchestra_mem.core.language.intents.clauses import asks, begins_command, follows, joints, sentences, tells
from orchestra_mem.core.language.intents.common_words import COMMON_WORDS
from orchestra_mem.core.language.intents.correcting import corrected_line, takes_itself_back
from orchestra_mem.core.language.intents.courtesies import strip, strip_ends
from orchestra_mem.core.language.intents.frames import verb_forms
from orchestra_mem.core.language.intents.jottings import as_sentences, read_jotting
from orchestra_mem.core.language.intents.json import from_json, intent_schema
from orchestra_mem.core.language.intents.mending import mend
from orchestra_mem.core.language.intents.nearest import nearest_commands, why_not
from orchestra_mem.core.language.intents.normalising import Clause, Word, normalise
from orchestra_mem.core.language.intents.phrases import clean_phrase, is_determined, is_name_alone, is_named
from orchestra_mem.core.language.intents.reading import (
    as_request,
    is_courtesy,
    is_destructive,
    is_only_thought,
    is_small_talk,
    is_taken_back,
    may_be_dropped,
    read_clause,
    read_freely,
    read_idiomatic,
    read_reworded,
    swallows,
)
from orchestra_mem.core.language.intents.rules import destructive_words, vocabulary
from orchestra_mem.core.language.intents.shorthand import written_out
from orchestra_mem.core.language.intents.taking import named_before, take
from orchestra_mem.core.language.intents.types import ASKS, DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.core.language.intents.words import LEAD
from orchestra_mem.work_types import WorkKind

__all__ = ["ASKS", "DESTRUCTIVE", "MAX_LINE_CHARS", "Action", "Intent", "Parsed", "from_json", "intent_schema", "parse"]

MAX_LINE_CHARS = 20_000
_MAX_SENTENCES = 100
_MAX_READINGS = 200  # of clauses, so that no line takes long; one of ten commands needs some 30
_MAX_CUT_CHARS = 1_000  # a longer sentence is one command with a long text or list
_MENDED_SURE = 0.8


@dataclass(slots=True)
class _Reading:
    """What has been read of a line so far, and the parts that were not understood."""

    intents: list[Intent] = field(default_factory=list)
    missed: list[Clause] = field(default_factory=list)
    left: int = _MAX_READINGS
    known: dict[tuple[Word, ...], tuple[Intent, ...]] = field(default_factory=dict)
    freely: bool = False

    def read(self, clause: Clause) -> tuple[Intent, ...]:
        """Read a clause, as long as not too much has been tried on this line."""
        if clause.words not in self.known:
            self.left -= 1
            if self.left < 0:
                return ()
            self.known[clause.words] = _read_clause(clause)
        found = self.known[clause.words]
        return found or (read_freely(clause) if self.freely else ())


def _read_clause(clause: Clause) -> tuple[Intent, ...]:
    if is_only_thought(clause) and not asks(clause):
        return ()
    for meant in read_jotting(clause):
        found = (meant,) if isinstance(meant, Intent) else read_clause(meant) or read_idiomatic(meant, ())
        if found:
            return found
    found = read_idiomatic(clause, read_clause(clause) or read_reworded(clause))
    if found and not took_adverbial(found):
        return found
    plainer = without_adverbials(clause)
    tried = {clause.words, ()}
    for bare in (plainer,) if found else (plainer, without_adverbs(plainer)):
        if bare.words in tried:
            continue
        tried.add(bare.words)
        other = read_idiomatic(bare, read_clause(bare) or read_reworded(bare))
        destroys = any(intent.action in DESTRUCTIVE for intent in other)
        if other and not (destroys and not found and not (is_destructive(bare) and is_destructive(clause))):
            return other
    return found


def parse(line: str) -> Parsed:
    """Read what a line asks for; any text whatever, several commands at once included.

    Nothing destructive is ever read out of a mistyped word, or out of a line that is not understood as a whole.
    """
    if len(line) > MAX_LINE_CHARS:
        return Parsed(
            intents=(), understood=False, nearest=("help",),
            reason=f"the line has {len(line):,} characters; up to {MAX_LINE_CHARS:,} are read",
        )  # fmt: skip
    if takes_itself_back(line, _parsed_plainly):
        return Parsed(intents=(), understood=False, nearest=("help",), reason="the line takes back what it asks for")
    line = written_out(line) or line
    return _parsed_plainly(corrected_line(line, _parsed_plainly) or line)


def _parsed_plainly(line: str) -> Parsed:
    """Read a line that takes nothing of itself back."""
    words = normalise(line)
    if not words.words:
        return Parsed(intents=(), understood=False, nearest=("help",), reason="there are no words in it")
    reading = _read(words)
    mended = mend(words, vocabulary(), _known(), destructive_words())
    if mended is not words:
        other = _read(mended)
        if _is_better(other, reading) or _swallowed(words, mended, reading, other) or _heads_text(words, mended, other):
            reading = other
            reading.intents = [replace(intent, sure=intent.sure * _MENDED_SURE) for intent in other.intents]
    return _parsed(words, reading)


@cache
def _known() -> frozenset[str]:
    """Give the words that are right as they stand."""
    return COMMON_WORDS | LEAD | frozenset(verb_forms()) | frozenset(_CONDITIONS.split())


_CONDITIONS = (
    "nope nah yep yup aye suppose supposing imagine unless until whenever maybe perhaps assuming provided otherwise"
)


def _is_better(mended: _Reading, plain: _Reading) -> bool:
    if not mended.intents:
        return False
    if not plain.intents:
        return True
    return len(mended.missed) < len(plain.missed) or len(mended.intents) > len(plain.intents)


def _heads_text(words: Clause, mended: Clause, other: _Reading) -> bool:
    """Tell whether the mistyped word was the heading of a text: "decsion: keep the old logo"."""
    told = bool(other.intents) and all(intent.action in (Action.NOTE, Action.DECIDE) for intent in other.intents)
    return told and not other.missed and swallows(mended) and not swallows(words)


def _swallowed(words: Clause, mended: Clause, plain: _Reading, other: _Reading) -> bool:
    """Tell whether a mistyped word of a command was taken for a part of a phrase: "set pirority of 30 to low"."""
    if len(other.missed) > len(plain.missed) or len(other.intents) < len(plain.intents):
        return False
    if plain.intents and all(intent.action in ASKS for intent in (*plain.intents, *other.intents)):
        lists = plain.intents[0].action is Action.LIST and other.intents[0].action is Action.LIST
        if lists and other.intents[0].value in _STATES_LISTED:
            return True
        return [intent.action for intent in plain.intents] != [intent.action for intent in other.intents]
    right = {(word.start, word.text) for word in mended.words}
    wrong = {word.text for word in words.words if (word.start, word.text) not in right}
    return bool(wrong & _in_phrases(plain.intents) - _in_phrases(other.intents))


_STATES_LISTED = frozenset(
    "blocked open pending done finished in progress deferred cancelled failed active unassigned overdue".split()
) | {"in progress"}


def _in_phrases(intents: list[Intent]) -> set[str]:
    phrases = [phrase for intent in intents for phrase in (intent.target, intent.other, *intent.titles)]
    phrases += [intent.value for intent in intents if intent.action in (Action.LIST, Action.ASSIGN)]
    return {word.strip(".,;:!?") for phrase in phrases for word in phrase.lower().split()}


def _parsed(words: Clause, reading: _Reading) -> Parsed:
    destructive = any(intent.action in DESTRUCTIVE for intent in reading.intents)
    if destructive:
        reading.missed = [sentence for sentence in reading.missed if not states(sentence)]
    if not reading.missed and reading.intents and not (destructive and is_taken_back(words)):
        return Parsed(intents=tuple(reading.intents), understood=True)
    missed = reading.missed or [words]
    return Parsed(
        intents=() if destructive else tuple(reading.intents),
        understood=False,
        nearest=nearest_commands(missed[0]),
        reason=why_not(missed[0]),
    )


def _read(words: Clause) -> _Reading:
    reading = _Reading()
    parts = as_sentences(list(sentences(words)))
    for place, sentence in enumerate(parts[:_MAX_SENTENCES]):
        if swallows(sentence) and place + 1 < len(parts) and not _ends_report(sentence, parts[place + 1 :]):
            sentence = words.between(_place(words, sentence), None)
            _read_sentence(sentence, reading)
            return reading
        _read_sentence(sentence, reading)
    reading.missed += parts[_MAX_SENTENCES:]
    return reading


def _ends_report(sentence: Clause, others: list[Clause]) -> bool:
    """Tell whether orders follow a report: "report on 12: all green. close it"."""
    reports = strip(sentence).clause.text.startswith("report")
    return reports and all(begins_command(other) and not is_destructive(other) for other in others)


def _place(words: Clause, sentence: Clause) -> int:
    return words.words.index(sentence.words[0])


def _read_sentence(sentence: Clause, reading: _Reading) -> None:
    sentence = as_request(sentence)
    found = list(_intents(sentence, reading)) or list(_freely(sentence, reading))
    if found and found[0].action is Action.FINISH and any(map(gives_up, reading.missed[-1:])):
        found = []  # "12 is a duplicate. Close it."
    for intent in found:
        take(intent, reading.intents)
    if not found and not may_be_dropped(sentence):
        reading.missed.append(sentence)


def _intents(clause: Clause, reading: _Reading) -> Iterator[Intent]:
    """Read a sentence as one command, or as several where it can be cut so that each part is understood."""
    found = tuple(_cut(clause, reading)) or reading.read(clause)
    yield from found or _without_asides(clause, reading)


def _freely(clause: Clause, reading: _Reading) -> Iterator[Intent]:
    """Read by its parts what no pattern fits."""
    reading.freely = True
    yield from (
        tuple(_cut(clause, reading))
        or read_freely(clause)
        or tuple(_without_asides(clause, reading))
        or _freely_plain(clause)
    )
    reading.freely = False


def _freely_plain(clause: Clause) -> tuple[Intent, ...]:
    """Read by its parts what is left without adverbials: "testing of the module is completed from our side"."""
    plainer = without_adverbials(clause) if not is_only_thought(clause) else clause
    return read_freely(plainer) if plainer.words and plainer.words != clause.words else ()


def _cut(clause: Clause, reading: _Reading) -> Iterator[Intent]:
    for left, right, plainly in joints(clause) if len(clause.text) <= _MAX_CUT_CHARS else ():
        if reading.left <= 0:
            break
        if is_name_alone(strip_ends(left).clause.text) and not may_be_dropped(left):
            continue  # "12 and 13 are done"
        first = () if is_courtesy(left) else reading.read(left)
        if not first and not may_be_dropped(left) and not (plainly and has_aside(left)):
            continue
        rest = list(_intents(right, reading))
        if not plainly and not may_be_dropped(right) and not (rest and all(_may_follow(each, right) for each in rest)):
            continue
        if not plainly and rest and first and _gives_reason(first[-1], right):
            continue
        if not first and rest and not may_be_dropped(left):
            first = tuple(_without_asides(left, reading))
            if not first or any(intent.action in DESTRUCTIVE for intent in (*first, *rest)):
                continue
        if rest and not first:
            if rest[0].action is Action.FINISH and gives_up(left):
                continue
            rest = list(named_before(left, tuple(rest)))
        if rest and first and _goes_into(first[-1], rest[0], right):
            rest[0] = replace(rest[0], action=Action.ADD, other="it")
        if rest and first and tells(left) and all(intent.action in ASKS for intent in first):
            first = ()  # "we are ready, so start 12"
        if rest and first and _only_explains(first[-1], rest[0]) and len(rest) == 1:
            rest = []
            yield from first
            return
        if rest and first and _only_leads(first[0], rest[0]) and follows(left, right):
            first = ()  # "the client found it dull, so rename it"
        if first and not rest and may_be_dropped(right):
            yield from first
            return
        if rest and (first or is_small_talk(left) or not any(intent.action in DESTRUCTIVE for intent in rest)):
            yield from first
            yield from rest
            return


def _goes_into(made: Intent, new: Intent, clause: Clause) -> bool:
    """Tell whether what is added is for what has just been made: "create an epic Bees and add two stories"."""
    if not made.action is new.action is Action.CREATE or not (made.kind and new.kind):
        return False
    ranks = list(WorkKind)
    lower = ranks.index(new.kind) > ranks.index(made.kind) and made.count <= 1
    return lower and strip(clause).clause.text.startswith(("add ", "put ", "include ", "insert "))


def _only_leads(first: Intent, then: Intent) -> bool:
    if first.action is then.action and first.target.lower() in ("it", "that", "this"):
        return True  # "we should do that later, so defer 12"
    return first.action is Action.REPORT and not is_named(first.target.lower())


def _only_explains(last: Intent, then: Intent) -> bool:
    """Tell whether what follows only says why: "the sourdough is unblocked, the oven works again"."""
    if then.action is not Action.REPORT or is_named(then.target.lower()):
        return False
    return last.action in (Action.UNBLOCK, Action.RESUME, Action.FINISH) and last.target.lower() != then.target.lower()


def _gives_reason(last: Intent, clause: Clause) -> bool:
    """Tell whether what follows may say why work is blocked or put off: "block it, the rental shop is closed"."""
    return last.action in _WITH_REASON and not (last.value or last.other) and not begins_command(clause)


def _may_follow(intent: Intent, clause: Clause) -> bool:
    """Tell whether what is read of the words behind a joint may be meant, though they do not plainly begin anew."""
    if intent.action in ASKS:
        return asks(clause)
    return is_determined(intent.target.lower()) if intent.target else intent.action in (Action.RESUME, Action.UNDO)


def _without_asides(clause: Clause, reading: _Reading) -> Iterator[Intent]:
    """Read a command that comes with its reason or a lead-in: "unblock the HL7 task, ward IT answered"."""
    for beside in asides(clause) if len(clause.text) <= _MAX_CUT_CHARS else ():
        if is_name_alone(strip_ends(beside.aside).clause.text):
            continue
        found = reading.read(beside.command) or (_several(beside.command, reading) if beside.leads else ())
        asked = any(intent.action in ASKS for intent in found)
        destroys = any(intent.action in DESTRUCTIVE for intent in found)
        if not found or (asked and not beside.leads) or (destroys and not _is_plain(beside)):
            continue
        if found[0].action is Action.FINISH and gives_up(beside.aside):
            continue
        if (
            len(found) == 1
            and not beside.leads
            and found[0].action in _WITH_REASON
            and not (found[0].value or found[0].other)
        ):
            found = (replace(found[0], value=clean_phrase(beside.aside.said)),)
        if beside.leads:
            found = named_before(beside.aside, found)
        yield from found
        return


_WITH_REASON = frozenset((Action.BLOCK, Action.DEFER))


def _several(clause: Clause, reading: _Reading) -> tuple[Intent, ...]:
    return tuple(_cut(clause, reading))


def _is_plain(beside: Beside) -> bool:
    """Tell whether even something destructive may be asked for with such an aside."""
    return beside.clear and (not beside.leads or beside.so or is_small_talk(beside.aside))

"""What is read out of commands and questions: `data/intents.yaml` holds utterances and what each of them asks for.

An utterance counts where all its intents are there in order, no more and no less, and every key that the case gives is
right. Phrases, titles and texts are compared without case, articles and marks at their ends; "finish 12 and 13" is one
intent or two; what is added under something may be called created or added. Priorities are compared as levels.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from benchmarks._models import find_model
from orchestra_mem.core.language.intents.parsing import DESTRUCTIVE, Action, Intent, parse
from orchestra_mem.core.language.intents.phrases import priority_of
from orchestra_mem.core.text import STOP_WORDS, words
from orchestra_mem.orchestrator.understanding import Reader, is_sure

TARGETS: dict[str, Target] = {
    "accuracy": (">=", 0.95),
    "action_accuracy": (">=", 0.95),
    "destructive_wrong": ("<=", 0),
    "parse_p95_ms": ("<=", 2.0),
}
DATA = Path(__file__).resolve().parent / "data" / "intents.yaml"
JOTTED = DATA.with_name("intents-jotted.yaml")
_ARTICLES = frozenset({"a", "an", "the"})
_TEXTS = frozenset(
    {Action.NOTE, Action.DECIDE, Action.REPORT, Action.WHY, Action.FIND, Action.LIST, Action.BLOCK, Action.DEFER}
)
_ONE_PHRASE = frozenset({Action.CREATE, Action.ADD, Action.RESUME})
_SPARE_WORDS = 3  # by how many words more or less a text may be cut
_RUNS = 3
_UNREAD = frozenset({"z", "aa"})
_UNREAD_ODD = frozenset({"w", "cc", "dd", "ee", "ff", "gg"})  # those of odd number
_SEEN = frozenset({"ee159"})  # but for these


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An utterance and what it asks for: intents as far as they matter, as they stand in the file."""

    id: str
    line: str
    traits: tuple[str, ...]
    intents: tuple[Mapping[str, Any], ...]

    @property
    def unread(self) -> bool:
        """Whether nobody who has worked on the language has looked at it; see `data/README.md`."""
        row, number = self.id.rstrip("0123456789"), int(self.id.lstrip("abcdefghijklmnopqrstuvwxyz"))
        return row in _UNREAD or (row in _UNREAD_ODD and number % 2 == 1 and self.id not in _SEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one utterance was read."""

    case: Case
    read: tuple[Intent, ...]
    right: bool
    actions_right: bool
    harmful: bool


def load_cases(path: Path = DATA) -> list[Case]:
    """Read the utterances.

    Raises:
        ValueError: an id comes twice, or an action is not known.
    """
    cases = [
        Case(
            id=str(entry["id"]), line=str(entry["line"]), traits=tuple(entry.get("traits") or ()),
            intents=tuple(entry.get("intents") or ()),
        )
        for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    ]  # fmt: skip
    if len({case.id for case in cases}) != len(cases):
        raise ValueError(f"{path.name}: an id comes twice")
    for case in cases:
        for intent in case.intents:
            Action(intent["action"])
    return cases


def judge(case: Case) -> Verdict:
    """Read an utterance and hold it against what it asks for."""
    return judge_reading(case, parse(case.line).intents)


def judge_reading(case: Case, read: tuple[Intent, ...]) -> Verdict:
    """Hold what an utterance was read as against what it asks for."""
    wanted, got = list(_single(case.intents)), list(_single(map(_as_dict, read)))
    actions = [_action(entry) for entry in wanted], [_action(entry) for entry in got]
    right = actions[0] == actions[1] and all(map(_agrees, wanted, got))
    meant = Counter(action for action in actions[0] if action in DESTRUCTIVE)
    found = Counter(action for action in actions[1] if action in DESTRUCTIVE)
    instead = meant - found and any(action not in DESTRUCTIVE for action in (Counter(actions[1]) - Counter(actions[0])))
    return Verdict(
        case=case,
        read=read,
        right=right,
        actions_right=actions[0] == actions[1],
        harmful=bool(found - meant or instead),
    )


def _as_dict(intent: Intent) -> dict[str, Any]:
    return {name: getattr(intent, name) for name in ("action", "kind", "count", "titles", "target", "other", "value")}


def _single(intents: Sequence[Mapping[str, Any]] | Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Take an intent with several numbers apart, so that it may be told as one or as many."""
    for intent in intents:
        target = str(intent.get("target") or "")
        numbers = [
            word for word in _plain(target).split() if word not in ("and", "both", "all", "task", "tasks", "stories")
        ]
        if len(numbers) > 1 and all(word.isdigit() for word in numbers):
            yield from ({**intent, "target": number} for number in numbers)
        else:
            yield intent


def _action(intent: Mapping[str, Any]) -> Action:
    action = Action(intent["action"])
    return Action.ADD if action is Action.CREATE else action


def _agrees(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    action = _action(wanted)
    return all(_same(action, key, wanted, got) for key in wanted if key not in ("action", "sure"))


def _same(action: Action, key: str, wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    expected, found = wanted[key], got.get(key)
    if key == "kind":
        return str(expected or "") == str(found or "")
    if key == "count":
        return int(expected or 0) == int(found or 0) or (not expected and int(found or 0) <= 1)
    if key == "titles":
        return [_plain(title) for title in expected or ()] == [_plain(title) for title in found or ()]
    if key in ("target", "other") and action in _ONE_PHRASE:
        phrases = {_plain(str(got.get(name) or "")) for name in ("target", "other")}
        return _plain(str(expected or "")) in phrases
    if key == "value":
        return _same_value(action, str("" if expected is None else expected), str(found or ""))
    return _plain(str("" if expected is None else expected)) == _plain(str(found or ""))


def _same_value(action: Action, expected: str, found: str) -> bool:
    if action is Action.PRIORITISE or (action is Action.ADD and priority_of(expected)):
        return priority_of(expected) == priority_of(found)
    if action is Action.RECENT:  # the whole question is handed on
        return True
    if action in _TEXTS:
        return _overlaps(_content(expected), _content(found))
    return _plain(expected) == _plain(found)


def _overlaps(expected: list[str], found: list[str]) -> bool:
    """Tell whether one text is the other but for a few words: where it begins and ends is a matter of taste."""
    short, long = sorted((expected, found), key=len)
    return not (Counter(short) - Counter(long)) and len(long) - len(short) <= _SPARE_WORDS


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]


def _plain(phrase: str) -> str:
    kept = [word for word in phrase.lower().replace("\u2019", "'").replace("#", "").split() if word not in _ARTICLES]
    return " ".join(kept).strip(" .,;:!?\"'")


def measure(options: Options, report: Report) -> None:
    """Judge every utterance and count."""
    cases = load_cases()
    verdicts = [judge(case) for case in cases]
    n = len(verdicts)
    report.add("accuracy", _share(verdict.right for verdict in verdicts), n=n, note="all intents and all given keys")
    report.add(
        "action_accuracy", _share(verdict.actions_right for verdict in verdicts), n=n, note="all actions, in order"
    )
    harmful = [verdict for verdict in verdicts if verdict.harmful]
    report.add(
        "destructive_wrong", len(harmful), n=n, note="cancel or undo read where not meant, or other harm in its place"
    )
    _add_share(report, "unread_accuracy", [verdict for verdict in verdicts if verdict.case.unread])
    jotted = [judge(case) for case in load_cases(JOTTED)]
    _add_share(report, "jotted_accuracy", jotted)
    _add_share(report, "jotted_unread_accuracy", [verdict for verdict in jotted if verdict.case.unread])
    report.add("jotted_destructive_wrong", sum(verdict.harmful for verdict in jotted), n=len(jotted))
    _add_suggested(report, [verdict for verdict in (*verdicts, *jotted) if verdict.case.unread])
    if options.model:
        _add_model(report, options.model, [verdict for verdict in verdicts if not is_sure(parse(verdict.case.line))])
    report.percentiles("parse", _times(cases, 1 if options.quick else _RUNS), (50, 95), note="a line")
    for action in Action:
        of_action = [v for v in verdicts if any(intent["action"] == action for intent in v.case.intents)]
        _add_share(report, f"action_{action}", of_action)
    _add_share(report, "action_none", [v for v in verdicts if not v.case.intents])
    for trait in sorted({trait for case in cases for trait in case.traits}):
        _add_share(report, f"trait_{trait}", [v for v in verdicts if trait in v.case.traits])
    report.note("--misses lists what was read otherwise than meant, but for the utterances that nobody has looked at")


def _add_suggested(report: Report, verdicts: list[Verdict]) -> None:
    """Count how often what is suggested for a line that was not understood is of the action that was meant."""
    lost = [(verdict.case, parsed) for verdict in verdicts if not (parsed := parse(verdict.case.line)).understood]
    meant = [(_action(case.intents[0]), parsed.nearest) for case, parsed in lost if len(case.intents) == 1]
    read = [(action, [_action(_as_dict(intent)) for near in nearest for intent in parse(near).intents])
            for action, nearest in meant]  # fmt: skip
    note = "of unread lines that are not understood, by action"
    report.add("suggested_first", _share(actions[:1] == [action] for action, actions in read), n=len(read), note=note)
    report.add("suggested", _share(action in actions for action, actions in read), n=len(read), note="among all three")


def _add_model(report: Report, name: str, verdicts: list[Verdict]) -> None:
    """Let a model read what the rules do not; a command of its reading is asked about before it is done."""
    model = find_model(name, context_tokens=4_096)
    reader = Reader(model, nullcontext)
    try:
        read = [reader.read(verdict.case.line, parse(verdict.case.line)) for verdict in verdicts]
    finally:
        model.close()
    pairs = [(verdict.case, parsed) for verdict, parsed in zip(verdicts, read, strict=True)]
    note = "of the lines that the rules do not read, by the model"
    right = [judge_reading(case, parsed.intents).right for case, parsed in pairs if case.intents]
    report.add("model_accuracy", _share(iter(right)), n=len(right), note=note)
    nothing = [not parsed.understood for case, parsed in pairs if not case.intents]
    report.add("model_leaves_alone", _share(iter(nothing)), n=len(nothing), note="lines that ask for nothing")


def _add_share(report: Report, key: str, verdicts: list[Verdict]) -> None:
    if verdicts:
        report.add(key.replace("-", "_").replace(" ", "_"), _share(v.right for v in verdicts), n=len(verdicts))


def _share(flags: Iterator[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found) if found else 1.0


def _times(cases: list[Case], runs: int) -> list[float]:
    """Time each line, after the patterns have been compiled; the least of the runs, as other programs disturb."""
    parse("start 12")
    best = []
    for case in cases:
        taken = []
        for _ in range(runs):
            begun = time.process_time()
            parse(case.line)
            taken.append((time.process_time() - begun) * 1_000)
        best.append(min(taken))
    return best


def list_misses() -> None:
    """Print the utterances that were read otherwise than they were meant; not those that are to stay unread."""
    for verdict in map(judge, [*load_cases(), *load_cases(JOTTED)]):
        if not (verdict.right or verdict.case.unread):
            print(f"{verdict.case.id} {'HARM ' if verdict.harmful else ''}{verdict.case.line!r}")
            print(f"    meant {[dict(intent) for intent in verdict.case.intents]}")
            print(f"    read  {[{k: str(v) for k, v in _as_dict(intent).items() if v} for intent in verdict.read]}")


if __name__ == "__main__":
    if "--misses" in sys.argv:
        list_misses()
        sys.exit(0)
    sys.exit(run("intents", measure, TARGETS))

"""Measure how well intents are read from lines of unseen writers: the test split of `data/intents.jsonl`.

A line is right if all labelled intents are read, in order, with every labelled key: executed at once, or as the first
suggestion. A line without intents is right if nothing is executed and nothing suggested. Phrases agree if they refer to
the same thing: ignoring case, articles, punctuation and kinds, with numbers as numbers. Free texts may differ by up to
three words at each end. Adding means creating under a parent; "finish 12 and 13" may be read as one intent or two.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run
from orchestra_mem.core.text import STOP_WORDS, words
from orchestra_mem.orchestrator.intents import ASKS, DESTRUCTIVE, Action, Parsed
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.intents.slots import KIND_WORDS, NUMBER_WORDS, numbers_in

TARGETS: dict[str, Target] = {
    "right": (">=", 0.85),
    "wrong": ("<=", 0.03),
    "unasked_changes": ("<=", 0),
    "destructive_wrong": ("<=", 0),
    "languages_wrong": ("<=", 0.03),
    "languages_unasked": ("<=", 0),
    "reading_p95_ms": ("<=", 5.0),
}
DATA = Path(__file__).resolve().parent / "data" / "intents.jsonl"
LANGUAGES = DATA.with_name("intents-languages.jsonl")
_LINKS = frozenset({"and", "to", "through", "number", "item", "items", "both", "all", *NUMBER_WORDS})
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on one line: `right` covers first suggestions too, `unasked` and `destructive` only executed intents."""

    record: Record
    read: Parsed
    action_right: bool
    right: bool
    unasked: bool
    destructive: bool

    @property
    def wrong(self) -> bool:
        """Check whether something was executed, and wrongly."""
        return self.read.understood and not self.right


def load_records(split: str = "test", path: Path = DATA) -> list[dict[str, Any]]:
    """Read the lines of a split, each with its writer."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        {**line, "writer": row["writer"], "language": row.get("language", "en")}
        for row in rows
        if row["split"] == split
        for line in row["lines"]
    ]


def judge(record: Record, read: Parsed) -> Verdict:
    """Compare the reading of a line with its labelled intents."""
    got = list(_singly({name: getattr(intent, name) for name in intent.__slots__} for intent in read.intents))
    wanted = list(_singly(record["intents"]))
    meant, found = [_action(each) for each in wanted], [_action(each) for each in got]
    surplus = Counter(found) - Counter(meant) if read.understood else Counter[Action]()
    return Verdict(
        record=record,
        read=read,
        action_right=meant == found,
        right=meant == found and all(map(_agrees, wanted, got)),
        unasked=any(action not in ASKS for action in surplus) and all(action in ASKS for action in meant),
        destructive=any(action in DESTRUCTIVE for action in surplus),
    )


def _singly(intents: Iterable[Record]) -> Iterator[Record]:
    """Split an intent with several numbers into one per number, so that both forms compare equal."""
    for intent in intents:
        numbers = _numbers(str(intent.get("target") or ""))
        yield from ({**intent, "target": str(number)} for number in numbers) if len(numbers) > 1 else [intent]


def _action(intent: Record) -> Action:
    action = Action(intent["action"])
    return Action.CREATE if action is Action.ADD else action


def _agrees(wanted: Record, got: Record) -> bool:
    return all(_same(_action(wanted), key, wanted[key], got.get(key)) for key in wanted.keys() - {"action"})


def _same(action: Action, key: str, wanted: Any, got: Any) -> bool:
    if key in ("target", "other"):
        return _pointing(str(wanted or "")) == _pointing(str(got or ""))
    if key == "titles":
        return [_plain(title) for title in wanted] == [_plain(title) for title in got or ()]
    if key != "value":
        return bool(wanted == got)
    if action in (Action.ASSIGN, Action.RENAME, Action.PRIORITISE):
        return _plain(str(wanted or "")) == _plain(str(got or ""))
    return action is Action.RECENT or _overlaps(_content(str(wanted or "")), _content(str(got or "")))


def _pointing(phrase: str) -> object:
    """Reduce a phrase to its referent: its numbers, or its words without articles and kinds."""
    if numbers := _numbers(phrase):
        return numbers
    said = _plain(phrase).replace(" of them", "").split()
    return [word for word in said if word not in KIND_WORDS] or said


def _numbers(phrase: str) -> tuple[int, ...]:
    """Return the numbers of a phrase that contains nothing else."""
    rest = [word for word in words(phrase.lower()) if word not in KIND_WORDS and word not in _LINKS]
    return numbers_in(phrase) if all(word.isdigit() or word.strip("0123456789-") == "" for word in rest) else ()


def _overlaps(wanted: list[str], got: list[str]) -> bool:
    short, long = sorted((wanted, got), key=len)
    return not (Counter(short) - Counter(long)) and len(long) - len(short) <= 3


def _content(text: str) -> list[str]:
    return [word for word in words(text.lower()) if word not in STOP_WORDS]


def _plain(phrase: str) -> str:
    kept = [
        word
        for word in phrase.lower().replace("\u2019", "'").replace("#", "").split()
        if word not in ("a", "an", "the")
    ]
    return " ".join(kept).strip(" .,;:!?\"'")


def measure(options: Options, report: Report) -> None:
    """Read each line of the test split and judge it."""
    records = load_records()
    verdicts = [judge(record, read_line(record["line"])) for record in records]
    done = [verdict for verdict in verdicts if verdict.read.understood]
    _share(report, "right", [verdict.right for verdict in verdicts], "done correctly, or suggested first")
    _share(report, "wrong", [verdict.wrong for verdict in verdicts], "done, but wrong")
    report.add("unasked_changes", sum(verdict.unasked for verdict in verdicts), n=len(verdicts))
    report.add("destructive_wrong", sum(verdict.destructive for verdict in verdicts), n=len(verdicts))
    _share(report, "done_share", [verdict.read.understood for verdict in verdicts], "read completely by the grammar")
    _share(report, "done_right", [verdict.right for verdict in done], "of these")
    _share(report, "action_right", [verdict.action_right for verdict in verdicts], "all actions, in order")
    for split, who in (("fresh", "five hasty, dictating and foreign writers"), ("daily", "five daily users")):
        rights = [judge(record, read_line(record["line"])).right for record in load_records(f"test-{split}")]
        _share(report, f"right_{split}", rights, f"the same of {who}")
    groups: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        groups[f"writer_{verdict.record['writer']}"].append(verdict.right)
        for action in {intent["action"] for intent in verdict.record["intents"]} or {"none"}:
            groups[f"action_{action}"].append(verdict.right)
    for key, rights in sorted(groups.items()):
        _share(report, key, rights)
    _add_languages(report)
    report.percentiles("reading", _times([record["line"] for record in records]), (50, 95), note="a line")
    report.note("--misses lists the lines of the train split that are misread; the test split is not shown")


def _add_languages(report: Report) -> None:
    """Judge the lines of writers in other languages, of which only plain forms are read."""
    verdicts = [judge(record, read_line(record["line"])) for record in load_records(path=LANGUAGES)]
    _share(report, "languages_wrong", [verdict.wrong for verdict in verdicts], "done, but wrong")
    report.add(
        "languages_unasked", sum(verdict.unasked or verdict.destructive for verdict in verdicts), n=len(verdicts)
    )
    plain: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        if "plain" in verdict.record["traits"]:
            plain[verdict.record["language"]].append(verdict.read.understood and verdict.right)
    for language, done in plain.items():
        _share(report, f"plain_done_{language}", done, "plain commands carried out correctly")


def _share(report: Report, key: str, flags: Sequence[bool], note: str = "") -> None:
    report.add(key, sum(flags) / len(flags) if flags else 0.0, n=len(flags), note=note)


def _times(lines: Sequence[str]) -> list[float]:
    """Time each line after everything is loaded, in milliseconds of this process."""
    read_line("start 12 now")
    taken = []
    for line in lines:
        begun = time.process_time()
        read_line(line)
        taken.append((time.process_time() - begun) * 1_000)
    return taken


def list_misses() -> None:
    """Print the lines of the train split that are read wrongly."""
    for record in load_records("train"):
        verdict = judge(record, read_line(record["line"]))
        if not verdict.right:
            print(f"{record['id']} {'DONE ' if verdict.wrong else ''}{record['line']!r}\n    meant {record['intents']}")
            print(f"    read  {[{k: v for k in i.__slots__ if (v := getattr(i, k))} for i in verdict.read.intents]}")


if __name__ == "__main__":
    if "--misses" in sys.argv:
        list_misses()
        sys.exit(0)
    sys.exit(run("intents", measure, TARGETS))

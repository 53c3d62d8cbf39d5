"""How well facts are found in what nobody trained on: by nature, kind and language; and which still hold.

Records of split `test` in `data/facts.jsonl` are read as the operations that a program would record; a fact is found
where a passage of it is kept. `data/README.md` tells the format, and how the splits are held apart.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._dialogues import is_unread, load_dialogues
from benchmarks._facts import NO_FACT, START, Record, load_records, meets, operations_of
from benchmarks._harness import Options, Report, Target, run
from orchestra_mem.core.facts.extraction import find_in_text, find_must_keeps
from orchestra_mem.core.facts.superseding import settle
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus

TARGETS: dict[str, Target] = {
    "recall": (">=", 0.70),
    "recall_right_kind": (">=", 0.60),
    "precision": (">=", 0.78),
    "recall_worst_language": (">=", 0.50),
    "reversals_right": (">=", 0.60),
}
_DATA = Path(__file__).resolve().parent / "data"


@dataclass(slots=True)
class Tally:
    """What was found of what was marked."""

    marked: int = 0
    found: int = 0
    right_kind: int = 0
    told: int = 0
    told_rightly: int = 0
    characters: int = 0
    kept: int = 0
    by: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def recall(self, group: str) -> Iterator[tuple[str, float, int]]:
        """The share found of each value of a group, with how many there are."""
        for name, count in sorted(self.by[group].items()):
            yield name, self.by[f"{group} found"][name] / count, count


def tally_records(records: Sequence[Record], tally: Tally | None = None) -> Tally:
    """Hold what is found in records against what their writers marked; adds to a tally where one is given."""
    tally = tally or Tally()
    for record in records:
        for operation, lines in operations_of(record):
            facts = find_must_keeps(operation)
            marked = [line for line in lines if line.kind not in NO_FACT]
            tally.told += len(facts)
            tally.told_rightly += sum(any(meets(fact.text, line) for line in marked) for fact in facts)
            tally.characters += sum(len(line.core) for line in lines)
            tally.kept += sum(len(fact.text) for fact in facts)
            for line in marked:
                hits = [fact for fact in facts if meets(fact.text, line)]
                right = any(fact.kind.value == line.kind.replace("_", " ") for fact in hits)
                tally.marked += 1
                tally.found += bool(hits)
                tally.right_kind += right
                for group, name in (("language", record.language), ("nature", record.nature), ("kind", line.kind)):
                    tally.by[group][name] += 1
                    tally.by[f"{group} found"][name] += bool(hits)
    return tally


def reversals(split: str) -> tuple[int, int, int]:
    """How many decisions taken back in dialogues are marked so, how many there are, and how many facts wrongly are."""
    right = count = wrong = 0
    for dialogue in load_dialogues(_DATA / "dialogues.jsonl"):
        if is_unread(dialogue) != (split == "test"):
            continue
        facts = [
            fact
            for turn, said in enumerate(dialogue["turns"])
            for fact in find_in_text(
                said["text"], operation=turn, timestamp=START + timedelta(minutes=turn), speaker=said["speaker"]
            )
        ]
        settled = settle([replace(fact, id=number) for number, fact in enumerate(facts, 1)])
        old_turns = {told["old_turn"]: told for told in dialogue["facts"] if told["kind"] == "reversal"}
        closed = {told["turn"] for told in dialogue["facts"] if "closed_turn" in told}
        wrong += sum(
            fact.status is not MustKeepStatus.STANDING and fact.operation not in old_turns.keys() | closed
            for fact in settled
        )
        for turn, told in old_turns.items():
            count += 1
            right += _is_marked(settled, turn, told["turn"])
    return right, count, wrong


def _is_marked(settled: Sequence[MustKeep], old_turn: int, new_turn: int) -> bool:
    """Whether the new decision is there, and none of the old turn stands as if nothing had come after it."""
    old = [fact for fact in settled if fact.operation == old_turn and fact.kind is not MustKeepKind.FAILURE]
    return any(fact.operation == new_turn for fact in settled) and all(fact.superseded_by for fact in old)


def measure(options: Options, report: Report) -> None:
    """Measure all of it."""
    tally = tally_records(load_records(_DATA / "facts.jsonl", "test"))
    report.add("recall", tally.found / tally.marked, n=tally.marked)
    report.add("recall_right_kind", tally.right_kind / tally.marked, n=tally.marked)
    report.add("precision", tally.told_rightly / max(1, tally.told), n=tally.told)
    report.add("kept_share", tally.kept / tally.characters, n=tally.characters, note="of the characters")
    report.add("recall_worst_language", min(share for _, share, _ in tally.recall("language")), n=tally.marked)
    for group in ("nature", "language", "kind"):
        for name, share, count in tally.recall(group):
            report.add(f"recall_{group}_{name}", share, n=count)
    right, count, wrong = reversals("test")
    report.add("reversals_right", right / count, n=count, note="of dialogues that nobody read")
    report.add("wrongly_taken_back", wrong, n=count, note="facts that nobody took back, marked as gone")


if __name__ == "__main__":
    sys.exit(run("facts", measure, TARGETS))

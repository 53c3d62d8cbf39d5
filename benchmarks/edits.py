"""A person and the machine edit the same documents at the same time: no edit is lost, and no deleted line returns.

Two processes work on one project after another, for a hundred rounds each. In a round the person reads a document,
writes, changes or deletes a line (a note, a list item, a decision; the person's or the machine's) and saves in one of
the ways of editors; about one save in five is of a text that was opened some rounds before. Meanwhile the machine
records rules, decisions and open items, refreshes, and requests contexts, with pauses of some milliseconds, by the real
clock. At the end the machine continues alone for a few refreshes; then the memory is reopened and compared completely.

`person_lines_lost`: lines that the person saved and has not removed since. Each must be in its document or in a
conflict block. If two texts were saved at the same time, a version kept because of the conflict is enough
(`kept_aside`); any other version is not.

`deleted_lines_returned`: lines that an edit removed from the text it was made to. None may be in its document again, at
the end or at any later reading, after the 0.3 s that the check waits. Conflict blocks and the list of the newest
operations do not count. Saving an old text does not delete lines that this text never had. In every third project one
of the editors writes its own timestamp into the front matter.

`machine_changes_lost`: operations without a known fact; facts that are active in the ledger and in no document, not
even in a conflict block; facts that are removed in the ledger although no line that the person removed held them. The
facts are few enough for the documents to show all of them.

`unparseable`: texts read by the person in which the front matter, a section of the machine or the final line end is
missing, a section is duplicated, or a conflict is damaged. Half-written texts are the person's own and are not read.

`visible`: time from the return of a save to the first context that has its new line. Lines that the person removed
within 2 s before any context had them do not count; lines that no context had until the end count with the time so far.

`noop_bytes_changed`: bytes that change when odd documents are cut and joined, merged with an unchanged text of the
machine, and refreshed without news, not counting the lines that hold the time.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._edits import ITEMS, MACHINE, PERSON, Person, lost_facts, standing, tokens
from benchmarks._edits_machine import CONFIG, COUNTER, LONGEST_PAUSE_S, Running, Seen
from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._merges import merge_ms
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.core.documents.conflicts import mark
from orchestra_mem.core.documents.markdown import join_blocks, split_blocks
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import DocumentName, MustKeep, VersionReason

TARGETS: dict[str, Target] = {
    "person_lines_lost": ("<=", 0),
    "deleted_lines_returned": ("<=", 0),
    "machine_changes_lost": ("<=", 0),
    "unparseable": ("<=", 0),
    "visible_p95_ms": ("<=", 1000),
    "noop_bytes_changed": ("<=", 0),
    "merge_p95_ms": ("<=", 20),
    "errors": ("<=", 0),
}
_ROUNDS = 100
_MERGED_TOKENS = 30_000
_SHORT_LIVED_S = 2.0


@dataclass(slots=True)
class Life:
    """One project: its edits, and the findings at its end by figure."""

    number: int
    project: Path
    rounds: int
    person: Person
    seen: Seen = field(default_factory=Seen)
    found: dict[str, list[str]] = field(default_factory=dict)
    visible_ms: list[float] = field(default_factory=list)
    kept_aside: int = 0

    def play(self) -> None:
        """Run the project and examine the result."""
        open_memory(self.project, config=CONFIG, counter=COUNTER).close()
        machine = Running(self.project, f"machine {self.number}", self.seen)
        try:
            self._edit()
        finally:
            machine.end()
        self._examine()

    def _edit(self) -> None:
        self.person.begin()
        for number in range(1, self.rounds + 1):
            self.person.play(number)
            time.sleep(self.person.rng.uniform(0, LONGEST_PAUSE_S))
        self.person.close(self.rounds)

    def _examine(self) -> None:
        with open_memory(self.project, config=CONFIG, counter=COUNTER) as memory:
            memory.refresh()
            texts = {name: self.person.read(name) for name in DocumentName}
            facts = memory.facts(standing=False)
            aside = "\n".join(
                Path(version.path).read_text("utf-8", "surrogateescape")
                for name in DocumentName
                for version in memory.episodic_memory.history(name.value)
                if version.reason is VersionReason.CONFLICT
            )
        self.found = {
            "person_lines_lost": list(self._lost(texts, aside)),
            "deleted_lines_returned": [*self.person.returned],
            "machine_changes_lost": list(self._machine_lost(texts, facts)),
            "unparseable": list(self.person.unparseable),
            "errors": [*self.seen.errors, *self.seen.refused],
            "twice": list(self._twice(texts)),
            "unheard": list(self._unheard(texts, facts)),
        }
        self._time()

    def _lost(self, texts: dict[DocumentName, str], aside: str) -> Iterator[str]:
        for token, number in self.person.own.items():
            save = self.person.saves[number]
            if token in texts[save.document]:
                continue
            if token in aside:
                self.kept_aside += 1
            else:
                yield f"{token} of {self._told(number)} is not in {save.document.value}"

    def _machine_lost(self, texts: dict[DocumentName, str], facts: Sequence[MustKeep]) -> Iterator[str]:
        known = {token for fact in facts for token in MACHINE.findall(fact.text)}
        yield from (f"{token} was recorded, but no fact has it" for token in self.seen.recorded if token not in known)
        yield from lost_facts(facts, self.person.numbers, "".join(texts.values()))

    def _twice(self, texts: dict[DocumentName, str]) -> Iterator[str]:
        for name, text in texts.items():
            for line, count in Counter(standing(text)).items():
                if count > 1:
                    yield f"{name.value}: {line!r} occurs {count} times"

    def _unheard(self, texts: dict[DocumentName, str], facts: Sequence[MustKeep]) -> Iterator[str]:
        """Yield items that a person has put into the machine's sections and that did not become facts.

        A list item in the decision log explains the entry above it and is no fact.
        """
        known = {token for fact in facts for token in PERSON.findall(fact.text)}
        starts = tuple(
            form.partition("{")[0] for (name, _), form in ITEMS.items() if name is not DocumentName.DECISION_LOG
        )
        for name, text in texts.items():
            for line in standing(text):
                token = PERSON.search(line)
                if token and line.startswith((*starts, "### ")) and token.group() not in known:
                    yield f"{name.value}: {line!r} is not a fact"

    def _time(self) -> None:
        taken: dict[str, float] = {}
        for save in self.person.saves:
            for token in tokens(save.before) - tokens(save.after):
                taken.setdefault(token, save.at)
        for save in self.person.saves:
            for token in tokens(save.after) - tokens(save.before):
                shown = self.seen.shown.get(token)
                if shown is not None:
                    self.visible_ms.append(max(0.0, shown - save.at) * 1000)
                elif taken.get(token, self.seen.ended) - save.at > _SHORT_LIVED_S:
                    self.visible_ms.append((taken.get(token, self.seen.ended) - save.at) * 1000)

    def _told(self, number: int) -> str:
        save = self.person.saves[number]
        return f"save {number} (round {save.round}, {save.style.value}{', based on an old text' if save.stale else ''})"


def live(number: int, rounds: int, project: Path) -> Life:
    """Run one project in a folder."""
    folder = project / HOME / "memory"
    person = Person(folder, random.Random(f"person {number}"), stamps=number % 3 == 2)
    life = Life(number, project, rounds, person)
    life.play()
    return life


def measure(options: Options, report: Report) -> None:
    """Run all projects, then refresh odd documents."""
    rounds = 1_000 if options.quick else 10_000
    lives: list[Life] = []
    for number in range(rounds // _ROUNDS):
        with tempfile.TemporaryDirectory(prefix="edits-") as folder:
            life = live(number, _ROUNDS, Path(folder))
        lives.append(life)
        say(f"project {number}: { ({key: len(found) for key, found in life.found.items() if found}) }")
    tell(lives, report)
    merges = list(merge_ms(COUNTER, _MERGED_TOKENS, 40 if options.quick else 200))
    report.percentiles("merge", merges, (50, 95), note=f"CPU; documents of {_MERGED_TOKENS:,} tokens")
    changed, n = noop_bytes_changed(COUNTER, CONFIG, 20 if options.quick else 100)
    report.add("noop_bytes_changed", changed, n=n, note="odd documents parsed, merged and refreshed without changes")


def tell(lives: Sequence[Life], report: Report) -> None:
    """Fill the report from the findings."""
    saves = [save for life in lives for save in life.person.saves]
    notes = {
        "person_lines_lost": (
            sum(life.person.tokens for life in lives),
            "saved, not removed, but in no document; n: lines",
        ),
        "deleted_lines_returned": (len(saves), "removed, but there again; n: saves"),
        "machine_changes_lost": (sum(len(life.seen.recorded) for life in lives), "n: operations with a fact"),
        "unparseable": (sum(life.rounds for life in lives), "n: texts read"),
        "errors": (0, "the machine's process ended with an error"),
        "twice": (0, "lines that occur more than once in a document"),
        "unheard": (0, "a person's items in the machine's sections that did not become facts"),
    }
    for key, (n, note) in notes.items():
        found = [f"project {life.number}: {text}" for life in lives for text in life.found[key]]
        report.add_found(key, found, n=n, note=note)
    report.percentiles("visible", [ms for life in lives for ms in life.visible_ms], (50, 95), note="save to context")
    report.add("kept_aside", sum(life.kept_aside for life in lives), note="lines only in a version, as saves coincided")
    report.add("saves", len(saves), note=", ".join(f"{n} {s}" for s, n in Counter(s.style for s in saves).items()))
    report.add("old_saves", sum(save.stale for save in saves), note="based on a text opened some rounds earlier")
    skipped = sum(life.person.skipped.total() for life in lives)
    report.add("skipped", skipped, note="rounds without a save: a line to edit did not occur exactly once")
    for key in ("refresh", "record"):
        report.add(f"{key}_count", sum(life.seen.counts[key] for life in lives), note="by the machine, meanwhile")


PIECES = (
    "plain words", "\ttab and trailing blanks   ", "line with a hard break  \nand more", "Setext heading\n===",
    "Another one\n---", "```python\n## no heading\n- no item\n```", "~~~\n### [10:00] no entry (K3)\n~~~",
    "    ## indented code", "- item\n  - nested\n\n    with a paragraph\n", "1) one\n2) two", "> quoted\n> - item",
    "<div>\n## in HTML\n</div>", "<!-- a comment\nover lines -->", "A footnote[^1].\n\n[^1]: here.",
    "| a | b |\n|--|--|", "* * *", "- [x] done", "- [ ] not done", "###### deep ######", "#no heading",
    "\\# nor this", "## ", "#\ttabbed", "nul \x00 byte", "latin \udce9 byte", "\u2028 separator", "emoji \U0001f9ea",
    "\u202e right to left", "\x0c form feed", "<!-- conflict 12ab34: half",
    "<!-- /conflict 12ab34: 1 line, 00ff00 -->", "<!-- pin -->", "text <!-- pin -->", "---", "key: value", "...",
    "- None", "(K7)", "ends with a carriage return\r", "", "", "\n\n\n",
)  # fmt: skip
_TIME = re.compile(rb"^(?:written: |updated: |\*\*Last Updated\*\*: )[^\n]*$", re.MULTILINE)
_FACTS = (
    "We decided to use the walnut archive.",
    "Never restart the harbour gateway.",
    "TODO: write the lantern guide.",
)


def odd_texts(rng: random.Random, count: int) -> Iterator[str]:
    """Yield texts of odd pieces in random order, some with CR LF, some without a final line end."""
    yield from PIECES
    for _ in range(count):
        text = "\n".join(rng.choices(PIECES, k=rng.randint(1, 12))) + rng.choice(("\n", "", "\n\n"))
        yield text.replace("\n", "\r\n") if rng.random() < 0.3 else text


def noop_bytes_changed(counter: TokenCounter, config: Mapping[str, object], count: int) -> tuple[int, int]:
    """Return the number of changed bytes, and the number of documents that were checked."""
    rng = random.Random("odd")
    changed = n = 0
    for text in odd_texts(rng, count * 10):
        for whole in (text, f"\ufeff{text}", f"---\nformat: 1\n---\n{text}"):
            n += 1
            changed += _between(whole, join_blocks(split_blocks(whole)))
            changed += _between(whole, mark(merge("# One\n", "# One\n", whole)))
    with (
        tempfile.TemporaryDirectory(prefix="edits-odd-") as folder,
        open_memory(folder, config=config, counter=counter) as memory,
    ):
        for said in (*_FACTS, "It rained.", "Tea was had.", "It rained."):
            memory.record_operation("message", {"role": "user", "text": said})
        for _ in range(4):  # until working memory has nothing left to spill
            memory.refresh()
        for text in odd_texts(rng, count):
            n += 1
            changed += _refreshed(memory, Path(folder) / HOME / "memory", text, rng)
    return changed, n


def _refreshed(memory: OrchestratorContextManager, folder: Path, odd: str, rng: random.Random) -> int:
    """Return the bytes that two refreshes change in a document with odd text at its end, and maybe odd line ends."""
    path = folder / f"{rng.choice(list(DocumentName)).value}.md"
    saved = path.read_bytes()
    text = saved + b"\n## Odd\n\n" + odd.encode("utf-8", "surrogateescape")
    if rng.random() < 0.3:
        text = re.sub(rb"\r?\n", b"\r\n", text)
    if rng.random() < 0.2:
        text = b"\xef\xbb\xbf" + text
    changed = 0
    path.write_bytes(text)
    for _ in range(2):
        memory.refresh()
        changed += difference(_timeless(text), _timeless(path.read_bytes()))
    path.write_bytes(saved)
    memory.refresh()
    return changed


def _between(before: str, after: str) -> int:
    return difference(before.encode("utf-8", "surrogateescape"), after.encode("utf-8", "surrogateescape"))


def _timeless(data: bytes) -> bytes:
    return _TIME.sub(b"", data)


def difference(before: bytes, after: bytes) -> int:
    """Return the number of bytes between the common prefix and the common suffix of two texts, in the longer one."""
    if before == after:
        return 0
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    return max(len(before), len(after)) - start - end


if __name__ == "__main__":
    sys.exit(run("edits", measure, TARGETS))

"""A database is put back older than the documents beside it, or the documents older than the database."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from orchestra_mem.work_types import WorkKind

DOCUMENTS = ("decision_log", "project_state", "work_plan", "work_plan", "catalog/ada")
# What is recorded about a thing, one in each document and an epic, and a person's rewording of it.
SAID = (
    ("We decided to keep the {} in the cellar.", "We decided to keep the {} in the attic."),
    ("Never paint the {} on a Friday.", "Never paint the {} on a Sunday."),
    ("TODO: weigh the {} before lunch.", "TODO: weigh the {} before dinner."),
    ("Sell the {}", "Rent out the {}"),
    ("One {} costs nine euros.", "One {} costs ten euros."),
)
THINGS = (
    "rye bread|barley soup|maize beer|brass lamp|oak table|wool carpet|glass door|steel bench|stone floor|silk scarf|"
    "copper kettle|paper kite|leather boot|velvet curtain|marble bust|linen sheet"
).split("|")
SAID_FIRST = {said.format(thing) for said, _ in SAID for thing in THINGS}
REPEATED = re.compile(r'\(op \d|#\d+ "')
NUMBER = re.compile(r"\(([KM]\d+)\)|\[.\] (#\d+) ")


@dataclass(kw_only=True)
class Project:
    """A memory with its documents, and what a person who looks at these expects to stand there.

    `standing`: The kind and the thing of each line that must stand, by its words. `ended`: Words that must not.
    """

    folder: Path
    rng: random.Random
    things: list[str]
    standing: dict[str, tuple[int, str]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    edited: dict[str, tuple[Path, str]] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    databases: list[Path] = field(default_factory=list)
    older: list[tuple[dict[Path, bytes], dict[str, tuple[int, str]]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create the memory."""
        self.memory = open_memory(self.folder)

    def play(self, number: int, *steps: str) -> None:
        """Do one of the steps, and let the memory read the documents, at once or later."""
        step = self.rng.choice(steps)
        if step == "record":
            self.record()
        elif step in ("reword", "delete", "add"):
            self._edit(step, f"tray {number} of {self.folder.name}")
        elif step == "keep documents":
            self.check("before")
            self.older.append(({path: path.read_bytes() for path in self._paths()}, dict(self.standing)))
        elif step == "put documents back" and self.older:
            self.check("before")
            self._put_documents_back(*self.rng.choice(self.older))
        elif step in ("copy", "put back", "lose"):
            self.memory.close()
            self._change_database(step, number)
            self.memory = open_memory(self.folder)
            if step != "copy" and self.rng.random() < 0.5:
                self.record()
        if self.rng.random() < 0.7 or step in ("put back", "lose", "put documents back"):
            self.check(f"round {number}, {step}")

    def record(self) -> None:
        """Record all kinds of lines about the next thing."""
        thing = self.things.pop() if self.things else ""
        for kind, (said, _) in enumerate(SAID if thing else ()):
            text = said.format(thing)
            self.standing[text] = kind, thing
            if kind == 3:
                self.memory.state.create(WorkKind.EPIC, text)
            elif kind == 4:
                self.memory.catalog.store({"content": text, "agent": "ada"})
            else:
                self.memory.record_operation("message", {"role": "user", "text": text})
        self.memory.refresh()

    def _edit(self, step: str, tray: str) -> None:
        if step == "add":
            text, path = f"Always wash the {tray}.", self._path(1)
            self.edited[text] = path, _written(path.read_bytes())
            path.write_text(path.read_text().replace("## People", f"- {text}\n\n## People"))
            self.standing[text] = 1, tray
            return
        shown = self._rows()
        known = [text for text in self.standing if text in SAID_FIRST and any(text in row for row in shown)]
        if not known:
            return
        text = self.rng.choice(known)
        kind, thing = self.standing[text]
        now = SAID[kind][1].format(thing) if step == "reword" else ""
        if now in self.standing or now in self.ended:
            return
        del self.standing[text]
        self.ended.add(text)
        rows = self._path(kind).read_text().split("\n")
        if now:
            self.standing[now] = kind, thing
            self.edited[now] = self._path(kind), _written(self._path(kind).read_bytes())
            rows = [row if REPEATED.search(row) else row.replace(text, now) for row in rows]
        else:
            rows = [row for row in rows if text not in row or REPEATED.search(row)]
        self._path(kind).write_text("\n".join(rows))

    def _put_documents_back(self, texts: dict[Path, bytes], standing: dict[str, tuple[int, str]]) -> None:
        """Put older documents back: what was deleted since stands again; what was reworded or added since, stays so.

        Edits of just the text that is put back are undone.
        """
        undone = {
            text
            for text, about in self.edited.items()
            if about in {(path, _written(old)) for path, old in texts.items()}
        }
        for text in undone & self.standing.keys() - standing.keys():
            del self.standing[text]
            self.ended.add(text)
        there = {*self.standing.values()}
        back = {text: what for text, what in standing.items() if what not in there}
        self.standing |= back
        self.ended -= back.keys()
        for path, old in texts.items():
            path.write_bytes(old)

    def _change_database(self, step: str, number: int) -> None:
        files = [*(self.folder / ".obra").glob("obra.db*")]
        if step == "copy":
            self.databases.append(self.folder / f"copy {number}")
            self.databases[-1].mkdir()
            for file in files:
                shutil.copy(file, self.databases[-1])
        elif step == "lose" or self.databases:
            for file in files:
                file.unlink()
            if step == "lose":
                self.databases.clear()
            for file in () if step == "lose" else self.rng.choice(self.databases).iterdir():
                shutil.copy(file, self.folder / ".obra")

    def take(self, other: Project) -> None:
        """Replace a document by the one of another ledger: what that one says more is new here, and nothing ends."""
        self.check("before")
        other.check("before")
        kind = self.rng.choice([0, 1, 2, 4])
        if other._path(kind).exists():
            self._path(kind).parent.mkdir(exist_ok=True)
            shutil.copy(other._path(kind), self._path(kind))
            self.memory.refresh()
            rows = self._rows()
            for text, what in other.standing.items():
                # An older database does not know all the former words of a line, so these may be new to it.
                is_back = text not in self.ended or any(text in row for row in rows)
                if DOCUMENTS[what[0]] == DOCUMENTS[kind] and is_back:
                    self.standing[text] = what
                    self.ended.discard(text)
            self.check(f"from {other.folder.name}, {kind}")

    def _path(self, kind: int) -> Path:
        return self.folder / ".obra/memory" / f"{DOCUMENTS[kind]}.md"

    def _paths(self) -> list[Path]:
        return [path for path in map(self._path, (0, 1, 2, 4)) if path.exists()]

    def _rows(self) -> list[str]:
        """Return the rows of all documents, without those that repeat operations or items."""
        rows = [row for path in self._paths() for row in path.read_text().split("\n")]
        return [row for row in rows if not REPEATED.search(row)]

    def check(self, when: str) -> None:
        """Note what is lost, returned, doubled or has another's number in the documents and in the ledger."""
        self.memory.refresh()
        rows = self._rows()
        found = {text: [row for row in rows if text in row] for text in (*self.standing, *self.ended)}
        told = [f"{text!r} stands {len(found[text])} times" for text in self.standing if len(found[text]) != 1]
        told += [f"{text!r} is back" for text in self.ended if found[text]]
        told += ["a conflict" for row in rows if row.startswith("<!-- conflict")]
        numbered = [(row, "".join(number.groups(""))) for row in rows if (number := NUMBER.search(row))]
        twice = Counter(number for _, number in numbered)
        told += [f"{number} stands twice" for number, count in twice.items() if count > 1]
        now = {number: text for row, number in numbered for text in self.standing if text in row}
        for key, text in now.items():
            was = self.numbers.get(key, text)
            if was in self.standing and was != text:
                told.append(f"{key} was of {was!r} and is of {text!r}")
        facts = {fact.text for fact in self.memory.facts()}
        said = {text for text, (kind, _) in self.standing.items() if kind < 3}
        told += [f"{text!r} is a fact or a line, not both" for text in facts ^ said]
        self.numbers = now
        self.faults += [f"{self.folder.name}, {when}: {each}" for each in told]


def _written(text: bytes) -> str:
    return text.decode().partition("written: ")[2].partition("\n")[0]


EDITS = ("record", "reword", "delete", "add")


def played(folder: Path, seed: int, *steps: str, rounds: int = 40) -> list[str]:
    """Play a project; return the faults."""
    rng = random.Random(seed)
    project = Project(folder=folder, rng=rng, things=rng.sample(THINGS, 12))
    for number in range(rounds):
        project.play(number, *steps)
    project.check("at the end")
    project.memory.close()
    return project.faults


def played_by_two(folder: Path, seed: int, *steps: str, rounds: int = 30) -> list[str]:
    """Play the projects of two people who exchange documents; return the faults."""
    rng = random.Random(seed)
    things = rng.sample(THINGS, 14)
    projects: list[Project] = []
    for name, own in ("anna", things[:7]), ("ben", things[7:]):
        (folder / name).mkdir()
        projects.append(Project(folder=folder / name, rng=rng, things=own))
        projects[-1].record()
    for number in range(rounds):
        who = rng.randrange(2)
        if rng.random() < 0.2:
            projects[who].take(projects[not who])
        else:
            projects[who].play(number, *steps)
    for project in projects:
        project.check("at the end")
        project.memory.close()
    return [fault for project in projects for fault in project.faults]


@pytest.mark.parametrize("seed", range(3))
def test_what_newer_documents_say_stands_once_beside_an_older_database(tmp_path: Path, seed: int) -> None:
    """Whatever is recorded and edited while databases are put back or lost, no line is lost, returns or doubles."""
    assert played(tmp_path, seed, *EDITS, "copy", "put back", "lose") == []


@pytest.mark.parametrize("seed", range(2))
def test_what_older_documents_say_stands_again_and_nothing_newer_is_lost(tmp_path: Path, seed: int) -> None:
    """Older documents that are put back, as by git, bring back what has been deleted and reworded since."""
    assert played(tmp_path, seed, *EDITS, "keep documents", "put documents back") == []


@pytest.mark.parametrize("seed", range(2))
def test_an_older_database_does_not_confuse_two_ledgers(tmp_path: Path, seed: int) -> None:
    """Two people exchange documents while either puts back older databases: each one's lines stand as they were."""
    assert played_by_two(tmp_path, seed, *EDITS, "copy", "put back") == []

"""Three machines edit one memory on a server and record into it: no edit is lost, and no deleted line returns.

Each machine has its own folder, in which a process records, refreshes and requests contexts, and a person edits as in
`edits.py`, old texts and slow editors included; all three edit the same lines. Meanwhile connections to the server are
cut, and a machine's process is killed, while its person continues, and restarted some rounds later.

`person_lines_lost`: tokens that somebody saved, that nobody has removed since, and that are in no document, not even in
a conflict block. `deleted_lines_returned`: lines in a document that somebody removed and nobody ever put back.
`machine_changes_lost`: acknowledged operations without a known fact, facts that are active in the ledger and in no
document, and facts that are removed although nobody removed them. `unequal`: files that differ between the three
folders at the end. `shown_elsewhere`: time from the return of a save until both other folders have it.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._edits import MACHINE, OWN_SECTION, PERSON, Person, Save, lost_facts, standing, tokens
from benchmarks._edits_machine import CONFIG, COUNTER, Running, Seen
from benchmarks._harness import Options, Report, Target, run, say
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.types import DocumentName, MustKeep
from tests.postgres_server import PostgresServer

TARGETS: dict[str, Target] = {
    "person_lines_lost": ("<=", 0),
    "deleted_lines_returned": ("<=", 0),
    "machine_changes_lost": ("<=", 0),
    "unparseable": ("<=", 0),
    "unequal": ("<=", 0),
    "errors": ("<=", 0),
    "shown_elsewhere_p95_ms": ("<=", 2000),
}
_MACHINES = ("laptop", "desk", "shed")
_ROUNDS = 50
_CUT_EVERY, _KILL_EVERY, _OFF_ROUNDS = 9, 16, 5
# Each process records distinct facts, so that none supersedes another.
_FACTS, _MOST_BEGUN = 5, 4
_SETTLED_S = 8.0


@dataclass(slots=True)
class Workplace:
    """One machine: its folder, its person, its process, and the reports of the process."""

    number: int
    project: Path
    storage: dict[str, object]
    person: Person
    seen: Seen = field(default_factory=Seen)
    running: Running | None = None
    _begun: int = 0

    def begin(self) -> None:
        """Start the process, which continues with the number where the last one ended."""
        first = (self.number * _MOST_BEGUN + self._begun) * _FACTS
        self._begun += 1
        seed = f"machine {self.number} {self._begun}"
        self.running = Running(self.project, seed, self.seen, storage=self.storage, first=first, facts=_FACTS)

    def end(self, *, kill: bool = False) -> None:
        """Stop the process, gracefully or with `kill` at once."""
        assert self.running is not None
        self.running.end(kill=kill)
        self.running = None

    def texts(self) -> dict[DocumentName, str]:
        """Read the documents in the folder."""
        return {name: self.person.path(name).read_text("utf-8") for name in DocumentName}


@dataclass(slots=True)
class Life:
    """One memory on three machines."""

    number: int
    places: list[Workplace]
    server: PostgresServer
    rng: random.Random
    found: dict[str, list[str]] = field(default_factory=dict)
    elsewhere_ms: list[float] = field(default_factory=list)

    def play(self) -> None:
        """Run all rounds, then examine the result."""
        for place in self.places:
            place.begin()
        first, *others = self.places
        first.person.begin()
        _shown(OWN_SECTION, [place.person.path(name) for place in others for name in DocumentName])
        for number in range(1, _ROUNDS + 1):
            self._disturb(number)
            for place in self.rng.sample(self.places, len(self.places)):
                place.person.play(number)
                time.sleep(self.rng.uniform(0, 0.05))
        for place in self.places:
            place.person.close(_ROUNDS)
            if place.running is None:
                place.begin()
        self._watch()
        for place in self.places:
            place.end()
        self._examine()

    def _disturb(self, number: int) -> None:
        if number % _CUT_EVERY == 0:
            self.server.cut_connections()
        off = [place for place in self.places if place.running is None]
        if number % _KILL_EVERY == 0:
            self.rng.choice(self.places).end(kill=True)
        elif off and number % _KILL_EVERY == _OFF_ROUNDS:
            off[0].begin()

    def _watch(self) -> None:
        """Measure how soon a save reaches the other folders."""
        for _ in range(4):
            writer, *others = self.rng.sample(self.places, len(self.places))
            name = self.rng.choice([*DocumentName])
            path = writer.person.path(name)
            token = writer.person.note()
            path.write_text(path.read_text("utf-8") + f"\n- And {token}\n", "utf-8")
            begun = time.monotonic()
            shown = _shown(token, [each.person.path(name) for each in others])
            self.elsewhere_ms.append((time.monotonic() - begun if shown else _SETTLED_S) * 1000)

    def _examine(self) -> None:
        config = {**CONFIG, "storage": {**CONFIG["storage"], **self.places[0].storage}}
        facts: list[MustKeep] = []
        for place in [*self.places, *self.places]:  # twice, so that each also fetches what the last one shared
            with open_memory(place.project, config={**config, "storage": place.storage}, counter=COUNTER) as memory:
                memory.refresh()
                facts = [*memory.facts(standing=False)]
        for place in self.places:
            open_memory(place.project, config={**config, "storage": place.storage}, counter=COUNTER).close()
        text = "".join(self.places[0].texts().values())
        saves = sorted((save for place in self.places for save in place.person.saves), key=lambda save: save.at)
        removed = {number for place in self.places for number in place.person.numbers}
        known = {token for fact in facts for token in MACHINE.findall(fact.text + fact.found)}
        lost = [token for place in self.places for token in place.seen.recorded if token not in known]
        self.found = {
            "person_lines_lost": list(_lost(saves, text)),
            "deleted_lines_returned": list(_returned(saves, self.places[0].texts())),
            "machine_changes_lost": [*lost, *lost_facts(facts, removed, text)],
            "unparseable": [each for place in self.places for each in place.person.unparseable],
            "unequal": list(_unequal([place.project / HOME for place in self.places])),
            "errors": [each for place in self.places for each in place.seen.errors],
            "refused": [each for place in self.places for each in place.seen.refused],
            "twice": [line for line, count in Counter(standing(text)).items() if count > 1],
        }


def _shown(text: str, paths: Sequence[Path]) -> bool:
    """Wait until all documents contain a text; return whether they do in time."""
    ends = time.monotonic() + _SETTLED_S
    while not all(text in path.read_text("utf-8") for path in paths):
        if time.monotonic() > ends:
            return False
        time.sleep(0.01)
    return True


def _lost(saves: Sequence[Save], text: str) -> Iterator[str]:
    """Yield tokens that were saved, that nobody removed at that time or later, and that are in no document."""
    wanted: dict[str, int] = {}
    for number, save in enumerate(saves):
        wanted.update(dict.fromkeys(tokens(save.after) - tokens(save.before), number))
    for save in saves:
        for token in tokens(save.before) - tokens(save.after):
            wanted.pop(token, None)
    for token, number in wanted.items():
        if token not in text:
            yield f"{token} of save {number} ({saves[number].style.value}, {saves[number].document.value})"


def _returned(saves: Sequence[Save], texts: dict[DocumentName, str]) -> Iterator[str]:
    """Yield lines in the documents that somebody removed and nobody ever put back."""
    out: dict[tuple[DocumentName, str], int] = {}
    written: Counter[tuple[DocumentName, str]] = Counter()
    for number, save in enumerate(saves):
        was, now = set(standing(save.before)), set(standing(save.after))
        written.update((save.document, line) for line in now - was)
        out.update({(save.document, line): number for line in was - now})
    for (name, line), number in out.items():
        put_back = written[name, line] > (PERSON.search(line) is not None)
        if line in standing(texts[name]) and not put_back:
            yield f"{name.value}: {line!r}, removed by save {number} ({saves[number].style.value})"


def _unequal(homes: Sequence[Path]) -> Iterator[str]:
    """Yield files that are missing in a folder, or differ in more than the revision number."""
    files = [{path.relative_to(home): _bare(path) for path in home.rglob("*.md")} for home in homes]
    for name in sorted({name for each in files for name in each}):
        if len({each.get(name) for each in files}) > 1:
            yield str(name)


def _bare(path: Path) -> str:
    rows = path.read_text("utf-8", "surrogateescape").split("\n")
    return "\n".join(row for row in rows if not row.startswith("revision: "))


def live(number: int, server: PostgresServer, root: Path) -> Life:
    """Run one memory in three folders."""
    schema = server.schema()
    places = []
    for at, machine in enumerate(_MACHINES):
        project = root / machine / "bakery"
        project.mkdir(parents=True)
        storage: dict[str, object] = {"url": server.url, "schema_name": schema, "machine": machine}
        person = Person(project / HOME / "memory", random.Random(f"person {number} {at}"), stamps=number % 3 == 2)
        person.tokens = at * 100_000
        places.append(Workplace(at, project, storage, person))
    life = Life(number, places, server, random.Random(f"life {number}"))
    life.play()
    return life


def measure(options: Options, report: Report) -> None:
    """Run all memories."""
    lives: list[Life] = []
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as data:
        server = PostgresServer(Path(data))
        for number in range(1 if options.quick else 6):
            with tempfile.TemporaryDirectory(prefix="machines-") as root:
                lives.append(live(number, server, Path(root)))
            say(f"memory {number}: { ({key: len(found) for key, found in lives[-1].found.items() if found}) }")
        server.stop()
    notes = {
        "person_lines_lost": "saved, not removed, but in no document",
        "deleted_lines_returned": "removed, but there again",
        "machine_changes_lost": "of the acknowledged changes",
        "unparseable": "texts read by somebody",
        "unequal": "files that differ between the folders",
        "errors": "a machine's process ended with an error",
        "refused": "calls refused because the server cannot be reached",
        "twice": "lines that occur more than once",
    }
    for key, note in notes.items():
        found = [f"memory {life.number}: {text}" for life in lives for text in life.found[key]]
        report.add_found(key, found, note=note)
    report.percentiles("shown_elsewhere", [ms for life in lives for ms in life.elsewhere_ms], (50, 95), note="save")
    saves = sum(len(place.person.saves) for life in lives for place in life.places)
    report.add("saves", saves, note=f"{len(lives) * _ROUNDS} rounds of three machines")


if __name__ == "__main__":
    sys.exit(run("machines", measure, TARGETS, sys.argv[1:]))

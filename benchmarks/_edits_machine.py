"""The machine that works while a person edits: a process that records, refreshes and requests contexts."""

from __future__ import annotations

import json
import random
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from benchmarks._edits import PERSON
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.build import open_memory
from orchestra_mem.errors import StorageError

CONFIG: dict[str, dict[str, object]] = {
    "orchestrator": {"context_window": {"max_tokens": 64_000}, "working_memory": {"max_operations": 2}},
    "storage": {"lock_timeout_s": 20, "busy_timeout_s": 20},
}
COUNTER = open_counter("estimate")
_QUIET_REFRESHES = 3
# Number of facts per project; the documents have room for all of them.
FACTS = 40
LONGEST_PAUSE_S = 0.04
_SAID = (
    "We decided to keep the {noun} archive in {token}.",
    "We decided to move the {noun} index to {token}.",
    "Never restart the {noun} gateway while {token} is running.",
    "You must always sign the {noun} bundle with {token}.",
    "TODO: write the {noun} guide for {token}.",
    "TODO: check the {noun} quota on {token}.",
)
_NOUNS = (
    "garnet lantern meadow copper velvet harbour walnut saffron glacier thistle marble cobalt juniper pebble falcon "
    "amber cedar willow granite pepper maple orchid silver bamboo canyon hazel ivory jasper kernel lemon"
).split()
_IDLE = ("It rained.", "Tea was had.", "The lamp was on.")


@dataclass(slots=True)
class Seen:
    """Reports of the machine's process: recorded tokens, and when a context first had a token of the person."""

    recorded: list[str] = field(default_factory=list)
    shown: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    ended: float = 0.0

    def take(self, line: str) -> None:
        """Parse and store a reported line."""
        what, _, rest = line.rstrip("\n").partition(" ")
        self.counts[what] += 1
        if what == "record":
            self.recorded.append(rest)
        elif what == "shown":
            token, at = rest.split()
            self.shown[token] = float(at)
        elif what == "ended":
            self.ended = float(rest)
        elif what == "error":
            self.errors.append(rest)
        elif what == "refused":
            self.refused.append(rest)


class Machine:
    """The body of the machine's process. It works until its standard input is closed.

    `first` is the number of the last fact before its own `facts`. Storage errors are reported and skipped.
    """

    def __init__(
        self, project: Path, rng: random.Random, storage: Mapping[str, object], first: int, facts: int
    ) -> None:
        config = {**CONFIG, "storage": {**CONFIG["storage"], **storage}}
        self._memory = open_memory(project, config=config, counter=COUNTER)
        self._rng = rng
        self._facts, self._last = first, first + facts
        self._shown: set[str] = set()

    def run(self) -> None:
        """Work while the person edits, then alone."""
        for _ in range(6):
            self._try(self._record)
        self._try(self._idle)
        self._try(self._memory.refresh)
        self._tell("ready")
        while not select.select([sys.stdin], [], [], self._rng.uniform(0, LONGEST_PAUSE_S))[0]:
            choice = self._rng.random()
            if choice < 0.3:
                self._try(self._record)
            elif choice < 0.6:
                self._try(self._memory.refresh)
                self._tell("refresh")
            else:
                self._try(self._look)
        for _ in range(_QUIET_REFRESHES):
            for step in (self._idle, self._memory.refresh, self._look):
                self._try(step)
        self._tell(f"ended {time.monotonic()}")
        self._memory.close()

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except StorageError as error:
            self._tell(f"refused {type(error).__name__}: {error}".replace("\n", " ")[:300])

    def _record(self) -> None:
        if self._facts == self._last or self._rng.random() < 0.3:
            self._say(self._rng.choice(_IDLE))
            return
        self._facts += 1
        token = f"machine-{self._facts:06d}"
        # Combine each noun at most once with each sentence, so that no fact supersedes another.
        noun = _NOUNS[(self._facts * 7 + self._facts // len(_NOUNS)) % len(_NOUNS)]
        self._say(_SAID[self._facts % len(_SAID)].format(noun=noun, token=token))
        self._tell(f"record {token}")

    def _idle(self) -> None:
        for text in _IDLE:
            self._say(text)

    def _say(self, text: str) -> None:
        self._memory.record_operation("message", {"role": "user", "text": text})

    def _look(self) -> None:
        text = self._memory.get_orchestrator_context("test").render()
        now = time.monotonic()
        for token in set(PERSON.findall(text)) - self._shown:
            self._shown.add(token)
            self._tell(f"shown {token} {now}")

    def _tell(self, text: str) -> None:
        print(text, flush=True)


class Running:
    """The machine's process, already working once this object is made; `seen` collects its reports."""

    def __init__(
        self, project: Path, seed: str, seen: Seen, *, storage: Mapping[str, object] = MappingProxyType({}),
        first: int = 0, facts: int = FACTS,
    ) -> None:  # fmt: skip
        arguments = [str(project), seed, json.dumps(dict(storage)), str(first), str(facts)]
        self._seen, self._ready = seen, threading.Event()
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__, *arguments], cwd=Path(__file__).resolve().parents[1], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()
        self._ready.wait()

    def end(self, *, kill: bool = False) -> None:
        """Stop the process, gracefully or with `kill` at once."""
        assert self._child.stdin is not None
        if kill:
            self._child.kill()
        self._child.stdin.close()
        self._listener.join()
        self._child.wait()

    def _listen(self) -> None:
        for line in self._child.stdout or ():
            self._seen.take(line)
            if line.startswith("ready"):
                self._ready.set()
        self._ready.set()


if __name__ == "__main__":
    place, chance, where, number, count = sys.argv[1:]
    try:
        Machine(Path(place), random.Random(chance), json.loads(where), int(number), int(count)).run()
    except BaseException as error:
        print(f"error {type(error).__name__}: {error}".replace("\n", " ")[:500], flush=True)
        raise

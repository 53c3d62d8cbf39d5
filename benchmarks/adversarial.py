"""Time pathological input: long runs and deep nests of one pattern, through every entry point that accepts text.

Each entry point ("door") reports the exponent with which its time grows with the length of the text; 1 is linear.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run, say
from orchestra_mem import OrchestraMemError, OrchestratorContextManager, open_memory
from orchestra_mem.orchestrator import Orchestrator
from orchestra_mem.types import DocumentName

TARGETS: dict[str, Target] = {"growth_exponent": ("<=", 1.15), "hangs": ("<=", 0.0), "broken": ("<=", 0.0)}
QUICK_SIZES = (512_000, 2_000_000)
FULL_SIZES = (8_000, 32_000, 128_000, 512_000, 2_000_000)
# Limit in seconds for one entry point and one text; a linear entry point takes a tenth of it for 2 MB.
LIMIT_S = 60.0
# Below this processor time, in seconds, noise on the machine exceeds the measurement.
FLOOR_S = 0.2

# Patterns that are repeated to make a text; some open a bracket or block that never closes.
RUNS = {
    "dashes": "-", "dots": ".", "colons": ":", "exclamations": "!", "questions": "? ", "full-width stops": "。",
    "equals": "=", "hashes": "#", "heading marks": "# ", "stars": "*", "underscores": "_", "backquotes": "`",
    "tildes": "~", "quotes": '"', "single quotes": "'", "brackets": "[", "parentheses": "(", "closed": "]",
    "braces": "{", "angles": "<", "pipes": "|", "blanks": " ", "tabs": "\t", "newlines": "\n",
    "carriage returns": "\r\n", "blank lines": " \n", "setext": "a\n===\n", "items": "- ", "nested items": "- - ",
    "quotations": "> ", "tick boxes": "- [ ] ", "conflict marks": "<<<<<<< \n", "comments": "<!-- ",
    "conflict comments": "<!-- conflict ab12cd: half\n", "fences": "```\n", "entries": "### [10:00] (op 1)\n",
    "facts": "- (K1)\n", "numbers": "1,", "digits": "9", "hex": "a1", "ids": "#1 ", "slashes": "/a", "dotted": "a.",
    "hyphenated": "a-", "one word": "a", "wide": "漢", "accents": "e\u0301", "emoji": "\U0001f9ea\u200d",
    "right to left": "\u202e", "nul": "\x00", "and": "and ", "not": "not ", "never": "never ",
    "we decided": "we decided ", "because": "because of it ", "it": "it, ", "start": "start the second one and ",
    "front matter": "---\na: [\n", "yaml nests": "- - {a: ", "json nests": '{"a":[', "urls": "http://a.b/",
    "mails": "a@b.",
}  # fmt: skip


def record(memory: OrchestratorContextManager, text: str) -> None:
    """Record the text and refresh."""
    memory.record_operation("note", {"text": text})
    memory.refresh()


def search(memory: OrchestratorContextManager, text: str) -> None:
    """Search for the text."""
    memory.search(text, limit=3)
    memory.get_orchestrator_context("next prompt", query=text)


def shell(memory: OrchestratorContextManager, text: str) -> None:
    """Send the text to the orchestrator, once as a single line and once unchanged."""
    orchestrator = Orchestrator(memory)
    for line in (text.replace("\n", " "), text):
        with suppress(OrchestraMemError):
            orchestrator.execute(line)


def _document(name: DocumentName) -> Callable[[OrchestratorContextManager, str], None]:
    def saved(memory: OrchestratorContextManager, text: str) -> None:
        path = memory.episodic_memory.path(name)
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(f"\n{text}\n")
        memory.get_orchestrator_context("next prompt")
        memory.refresh()

    return saved


DOORS: dict[str, Callable[[OrchestratorContextManager, str], None]] = {
    "record": record,
    "search": search,
    "shell": shell,
    "project_state": _document(DocumentName.PROJECT_STATE),
    "work_plan": _document(DocumentName.WORK_PLAN),
    "decision_log": _document(DocumentName.DECISION_LOG),
}


@contextmanager
def project() -> Iterator[OrchestratorContextManager]:
    """Open a new memory that holds a few operations."""
    with tempfile.TemporaryDirectory(prefix="adversarial-") as folder, open_memory(folder) as memory:
        memory.record_operation("decision", {"text": "We decided to bake rye bread on Tuesdays."})
        Orchestrator(memory).execute("create an epic for the oven")
        memory.refresh()
        memory.search("bread")
        yield memory


def measure_one(door: str, kind: str, sizes: tuple[int, ...], told: Connection) -> None:
    """Time an entry point with ever longer texts of one kind, and send each time as soon as it is known.

    Each size uses a new project: a document that still held the smaller text would make the text that is read longer.
    """
    for size in sizes:
        text = (RUNS[kind] * (size // len(RUNS[kind]) + 1))[:size]
        with project() as memory:
            begun = time.process_time()
            try:
                DOORS[door](memory, text)
            except Exception as error:
                told.send(f"{type(error).__name__}: {str(error)[:200]}")
                return
            told.send(time.process_time() - begun)
    told.close()


def times_of(door: str, kind: str, sizes: tuple[int, ...]) -> tuple[list[float], str]:
    """Return the seconds for each size that finished, and the reason why the others did not."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=measure_one, args=(door, kind, sizes, there))
    child.start()
    there.close()
    seconds: list[float] = []
    trouble = ""
    for _ in sizes:
        if not here.poll(LIMIT_S):
            trouble = "hangs"
            break
        try:
            said = here.recv()
        except EOFError:
            trouble = "ended"
            break
        if isinstance(said, str):
            trouble = said
            break
        seconds.append(said)
    child.kill()
    child.join()
    return seconds, trouble


def exponent(seconds: list[float], sizes: tuple[int, ...]) -> float:
    """Return the exponent of the length with which the time grew between the last two sizes."""
    if len(seconds) < 2 or seconds[-1] <= FLOOR_S:
        return 0.0
    grown, longer = (each[len(seconds) - 1] / each[len(seconds) - 2] for each in (seconds, sizes))
    return math.log(grown) / math.log(longer)


def measure(options: Options, report: Report) -> None:
    """Time each entry point with each kind of text."""
    sizes = QUICK_SIZES if options.quick else FULL_SIZES
    worst: list[tuple[float, str, str, float]] = []
    hangs, broken = list[str](), list[str]()
    for at, door in enumerate(DOORS):
        # A quick run takes every twelfth kind, starting at a different one for each entry point.
        for kind in list(RUNS)[at::12] if options.quick else RUNS:
            seconds, trouble = times_of(door, kind, sizes)
            if trouble == "hangs":
                hangs.append(f"{door}, {kind}, after {len(seconds)} sizes")
            elif trouble:
                broken.append(f"{door}, {kind}: {trouble}")
            worst.append((exponent(seconds, sizes), door, kind, seconds[-1] if seconds else 0.0))
        say(f"adversarial: {door} done")
    worst.sort(reverse=True)
    report.add("growth_exponent", worst[0][0], n=len(worst), note=f"{worst[0][1]}, {worst[0][2]}: the highest of all")
    report.add("hangs", len(hangs), n=len(worst), note=f"more than {LIMIT_S:.0f} s for one text")
    report.add("broken", len(broken), n=len(worst), note="ended with an unexpected error")
    for value, door, kind, last in worst[:12]:
        report.note(f"{door}, {kind}: exponent {value:.2f}, {last:.2f} s for {sizes[-1]:,} characters")
    for line in [*hangs, *broken]:
        report.note(line)


if __name__ == "__main__":
    sys.exit(run("adversarial", measure, TARGETS))

"""How much of a context the next one begins with: what the model's prompt cache need not read again."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import tiktoken

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import CHECKOUT, Options, Report, Target, run, say
from benchmarks._operations import Generator, Work, WorkClock, again, own_commits, recorded_commits
from orchestra_mem import open_memory
from orchestra_mem.adapters.tokenizers import ENCODING
from orchestra_mem.core.context.rendered import OrchestratorContext

TARGETS: dict[str, Target] = {"prefix_kept": (">=", 0.99)}
WINDOWS = (8_192, 32_768, 128_000)
OPERATIONS = 1_000
# Tokens of every so manieth pair are compared in a quick run; bytes always of all.
QUICK_TOKENS_EVERY = 25

Source = Callable[[], Iterator[Work]]


@dataclass(slots=True)
class Kept:
    """What was kept from context to context, in bytes and tokens; `of` is what there was to keep."""

    bytes: int = 0
    of_bytes: int = 0
    bytes_at_borders: int = 0
    of_bytes_at_borders: int = 0
    tokens: int = 0
    of_tokens: int = 0
    steps: int = 0
    epochs: set[int] = field(default_factory=set)

    @property
    def share(self) -> float:
        """The share of bytes within epochs, 0 to 1."""
        return self.bytes / self.of_bytes if self.of_bytes else 0.0

    @property
    def overall(self) -> float:
        """The same with the steps from an epoch to the next."""
        of = self.of_bytes + self.of_bytes_at_borders
        return (self.bytes + self.bytes_at_borders) / of if of else 0.0

    def compare(self, before: OrchestratorContext, after: OrchestratorContext, *, tokens: bool) -> None:
        """Take in a step from one context to the next."""
        old, new = before.render(), after.render()
        old_bytes = old.encode("utf-8", "surrogatepass")
        common = common_start(old_bytes, new.encode("utf-8", "surrogatepass"))
        if before.epoch != after.epoch:
            self.bytes_at_borders += common
            self.of_bytes_at_borders += len(old_bytes)
            return
        self.steps += 1
        self.bytes += common
        self.of_bytes += len(old_bytes)
        if tokens:
            encode = tiktoken.get_encoding(ENCODING).encode_ordinary
            had, have = encode(old), encode(new)
            self.tokens += common_start(had, have)
            self.of_tokens += len(had)


def common_start(one: bytes | list[int], other: bytes | list[int]) -> int:
    """Count the elements that two rows begin with alike."""
    if other[: len(one)] == one:
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def replay(source: Source, window: int, operations: int, tokens_every: int) -> Kept:
    """Record operations into a new memory, and compare the contexts after each with the one before."""
    kept, clock = Kept(), WorkClock()
    config = {"orchestrator": {"context_window": {"max_tokens": window}}}
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=config, clock=clock) as memory:
        before: OrchestratorContext | None = None
        for number, work in enumerate(islice(again(source), operations)):
            clock.advance(work.seconds)
            memory.record_operation(work.type, work.data, agent=work.agent)
            after = memory.get_orchestrator_context("task_execution")
            if before is not None:
                kept.compare(before, after, tokens=number % tokens_every == 0)
            kept.epochs.add(after.epoch)
            before = after
    return kept


def sources(data: Path, report: Report) -> dict[str, Source]:
    """Name what there is to replay: made-up work, recorded histories, and the checkout's own."""
    found: dict[str, Source] = {"generated": Generator(1).works}
    recordings = sorted((data / "git").glob("*.jsonl"))
    for path in recordings:
        found[path.stem.replace("-", "_")] = partial(recorded_commits, path)
    if not recordings:
        report.note(f"No recorded histories in {data / 'git'}: --data names the folder of recordings.")
    own = own_commits(CHECKOUT)
    if own:
        found["own_history"] = partial(iter, own)
    else:
        report.note(f"{CHECKOUT} has no history of its own to replay.")
    return found


def measure(options: Options, report: Report) -> None:
    """Replay each source in each window."""
    found = sources(options.data, report)
    if options.quick:
        # Made-up work and one real history: the last one listed is the checkout's own, where it has one.
        found = dict([*list(found.items())[:1], *list(found.items())[-1:]])
    every = QUICK_TOKENS_EVERY if options.quick else 1
    results: dict[str, Kept] = {}
    for window in WINDOWS:
        for name, source in found.items():
            say(f"prefix: {name}, window of {window:,} tokens")
            results[f"{name}_{window}"] = replay(source, window, OPERATIONS, every)
    worst = min(results, key=lambda name: results[name].share)
    steps = sum(kept.steps for kept in results.values())
    whole = f"the lowest of {len(results)} replays of {OPERATIONS:,} operations"
    report.add("prefix_kept", results[worst].share, n=steps, note=f"{whole}: {worst}; bytes, within epochs")
    tokens = [kept.tokens / kept.of_tokens for kept in results.values() if kept.of_tokens]
    report.add("prefix_kept_tokens", min(tokens), n=len(tokens), note="tokens that cl100k_base makes, within epochs")
    report.add("epochs", sum(len(kept.epochs) for kept in results.values()), n=len(results), note="of all replays")
    overall = min(kept.overall for kept in results.values())
    report.add("prefix_kept_overall", overall, n=steps, note="lowest share of bytes over all steps, borders included")
    for name, kept in results.items():
        report.add(f"prefix_kept_{name}", kept.share, n=kept.steps, note="within epochs")
        report.add(f"prefix_kept_overall_{name}", kept.overall, n=OPERATIONS - 1, note="borders included")
        report.add(f"epochs_{name}", len(kept.epochs))


if __name__ == "__main__":
    sys.exit(run("prefix", measure, TARGETS))

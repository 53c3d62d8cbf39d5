"""Measure the prefix that consecutive contexts share, which the model's prompt cache does not process again.

With `--model` llama.cpp reads consecutive contexts twice: as they are, and in the order of the source design, newest
operation first. The tokens that it evaluates are counted for each order.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import CHECKOUT, Options, Report, Target, find_model, run, say
from benchmarks._operations import Generator, Work, WorkClock, again, own_history, paced, recordings
from orchestra_mem import open_memory
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.model_types import Message, Role

TARGETS: dict[str, Target] = {"prefix_kept": (">=", 0.99), "reprocessed_ratio": ("<=", 0.2)}
WINDOWS = (8_192, 32_768, 128_000)
OPERATIONS = 1_000
# The model reads consecutive contexts in this window, starting when working memory is full.
MODEL_WINDOW = 4_096
MODEL_BEGINS_AT = 20
MODEL_CALLS = 20
MODEL_QUICK_CALLS = 4

Source = Callable[[], Iterator[Work]]


@dataclass(slots=True)
class Kept:
    """Shared prefixes of consecutive contexts in bytes; `of` is the total that could be shared."""

    bytes: int = 0
    of_bytes: int = 0
    bytes_at_borders: int = 0
    of_bytes_at_borders: int = 0
    steps: int = 0
    epochs: set[int] = field(default_factory=set)

    @property
    def share(self) -> float:
        """Share of bytes kept within epochs, 0 to 1."""
        return self.bytes / self.of_bytes if self.of_bytes else 0.0

    @property
    def overall(self) -> float:
        """Share of bytes kept, including the steps from one epoch to the next."""
        of = self.of_bytes + self.of_bytes_at_borders
        return (self.bytes + self.bytes_at_borders) / of if of else 0.0

    def compare(self, before: OrchestratorContext, after: OrchestratorContext) -> None:
        """Add one step from a context to the next."""
        old, new = (context.render().encode("utf-8", "surrogatepass") for context in (before, after))
        differs = (at for at, (was, now) in enumerate(zip(old, new, strict=False)) if was != now)
        common = len(old) if new.startswith(old) else next(differs, len(new))
        if before.epoch != after.epoch:
            self.bytes_at_borders += common
            self.of_bytes_at_borders += len(old)
            return
        self.steps += 1
        self.bytes += common
        self.of_bytes += len(old)


def replay(source: Source, window: int, operations: int) -> Kept:
    """Record operations into a new memory, and compare the context after each with the previous context."""
    kept, clock = Kept(), WorkClock()
    config = {"orchestrator": {"context_window": {"max_tokens": window}}}
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=config, clock=clock) as memory:
        before: OrchestratorContext | None = None
        for work in islice(again(source), operations):
            clock.advance(work.seconds)
            memory.record_operation(work.type, work.data, agent=work.agent)
            after = memory.get_orchestrator_context("task_execution")
            if before is not None:
                kept.compare(before, after)
            kept.epochs.add(after.epoch)
            before = after
    return kept


def sources(data: Path, report: Report) -> dict[str, Source]:
    """Return the histories to replay by name: generated work, recorded histories, and the checkout's own."""
    found: dict[str, Source] = {"generated": Generator(1).works}
    histories = {name: history for name, history in recordings(data).items() if name.startswith("git_")}
    for name, history in histories.items():
        found[name.removeprefix("git_")] = partial(iter, paced(history))
    if not histories:
        report.note(f"No recorded histories in {data / 'git'}: name the folder of recordings with --data.")
    own = own_history(CHECKOUT)
    if own:
        found["own_history"] = partial(iter, paced(own))
    else:
        report.note(f"{CHECKOUT} has no git history to replay.")
    return found


def newest_first(context: OrchestratorContext) -> list[Message]:
    """Order a context as in the source design's dictionary: newest operation first."""
    operations = [placement.text for placement in context.placements if placement.part is Part.OPERATIONS]
    rest = [context.text(part) for part in (Part.SESSION, Part.PROJECT_STATE, Part.WORK_PLAN, Part.DECISIONS)]
    return [Message(role=Role.USER, text="".join([*reversed(operations), *rest]))]


def as_they_are(context: OrchestratorContext) -> list[Message]:
    """Return the messages of a context in its own order."""
    return [Message(role=Role(each["role"]), text=each["content"]) for each in context.as_messages()]


def contexts(source: Source, calls: int) -> list[OrchestratorContext]:
    """Return consecutive contexts in the model's window, one after each operation."""
    found, clock = [], WorkClock()
    config = {"orchestrator": {"context_window": {"max_tokens": MODEL_WINDOW}}}
    with tempfile.TemporaryDirectory() as folder, open_memory(folder, config=config, clock=clock) as memory:
        for work in islice(again(source), MODEL_BEGINS_AT + calls):
            clock.advance(work.seconds)
            memory.record_operation(work.type, work.data, agent=work.agent)
            found.append(memory.get_orchestrator_context("task_execution"))
    return found[MODEL_BEGINS_AT:]


def measure_model(source: tuple[str, Source], options: Options, report: Report) -> None:
    """Let a model read contexts in both orders, and count the tokens that it evaluates."""
    if not options.model:
        report.unmeasured("reprocessed_ratio", "needs --model, a model that reads contexts")
        return
    name, replayed = source
    asked = contexts(replayed, MODEL_QUICK_CALLS if options.quick else MODEL_CALLS)
    evaluated, seconds = {}, {}
    with closing(find_model(options.model, context_tokens=2 * MODEL_WINDOW)) as model:
        for order in (as_they_are, newest_first):
            say(f"prefix: {model.name} reads {len(asked)} contexts of {name}, {order.__name__}")
            said = [model.generate(order(context), max_tokens=1) for context in asked]
            # Skip the first context, which the model evaluates completely in either order.
            evaluated[order.__name__] = sum(each.evaluated_tokens for each in said[1:])
            seconds[order.__name__] = sum(each.prompt_s for each in said[1:])
    calls = len(asked) - 1
    whole = f"{model.name}, {name}, window of {MODEL_WINDOW:,} tokens"
    report.add("reprocessed_ratio", evaluated["as_they_are"] / evaluated["newest_first"], n=calls, note=whole)
    for order_name, tokens in evaluated.items():
        report.add(f"evaluated_tokens_{order_name}", tokens / calls, n=calls, note="per prompt, reported by llama.cpp")
        report.add(f"prompt_s_{order_name}", seconds[order_name] / calls, n=calls, note="wall time for each prompt")


def measure(options: Options, report: Report) -> None:
    """Replay each source in each window."""
    found = sources(options.data, report)
    measure_model(next(iter([*list(found.items())[1:], *found.items()])), options, report)
    if options.quick:
        # Generated work and one real history: the last one is the checkout's own, if it has one.
        found = dict([*list(found.items())[:1], *list(found.items())[-1:]])
    results: dict[str, Kept] = {}
    for window in WINDOWS:
        for name, source in found.items():
            say(f"prefix: {name}, window of {window:,} tokens")
            results[f"{name}_{window}"] = replay(source, window, OPERATIONS)
    worst = min(results, key=lambda name: results[name].share)
    steps = sum(kept.steps for kept in results.values())
    whole = f"lowest of {len(results)} replays of {OPERATIONS:,} operations"
    report.add("prefix_kept", results[worst].share, n=steps, note=f"{whole}: {worst}; bytes, within epochs")
    report.add("epochs", sum(len(kept.epochs) for kept in results.values()), n=len(results), note="of all replays")
    overall = min(kept.overall for kept in results.values())
    report.add("prefix_kept_overall", overall, n=steps, note="lowest share of bytes over all steps, with epoch borders")
    for name, kept in results.items():
        report.add(f"prefix_kept_{name}", kept.share, n=kept.steps, note="within epochs")
        report.add(f"prefix_kept_overall_{name}", kept.overall, n=OPERATIONS - 1, note="including epoch borders")
        report.add(f"epochs_{name}", len(kept.epochs))


if __name__ == "__main__":
    sys.exit(run("prefix", measure, TARGETS))

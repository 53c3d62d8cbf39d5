"""The common part of the benchmark scripts: options, models, figures with targets, the table, JSON file, exit code.

A script runs from anywhere, installed or not, and passes `run` a function that measures and fills a `Report`:

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks._harness import Options, Report, run

    def measure(options: Options, report: Report) -> None:
        report.percentiles("record", samples_ms, (50, 99))
        report.add("lost", 0, n=len(samples_ms), note="operations missing after the run")

    if __name__ == "__main__":
        sys.exit(run("latency", measure, {"record_p99_ms": ("<=", 1.0)}))
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil

from tools.models import MODELS, fetch

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import LlamaModel

CHECKOUT = Path(__file__).resolve().parents[1]
DEFAULT_DATA = CHECKOUT.parent / "shared" / "data"
# Keep benchmark projects out of the user's list of projects; child processes inherit this setting.
os.environ["ORCHESTRA_MEM_HOME"] = "off"

Target = tuple[Literal["<=", ">="], float]
_EXAMPLES = 12
_IS_TIME = re.compile(r"_(us|ms|s)$|^seconds_")
# What `_piece_of_work` takes on the machine on which the targets were set, while nothing else runs there.
_PIECE_MS = 0.46
_PIECES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Parsed command line. `data`: Folder of recordings; need not exist. `json`: Output file, or None.

    `allow`: Figures whose missed targets are reported but do not fail the run. `times_within`: Multiple of its target
    that a time may reach without failing the run, on a machine as fast as that of the targets. `model`: Path of a GGUF,
    or a name that `tools/models.py` knows, for scripts that run a model; empty if none is given.
    """

    quick: bool
    json: Path | None
    data: Path
    allow: frozenset[str] = frozenset()
    times_within: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured number; `n` is the number of calls or cases behind it, 0 if that is meaningless."""

    value: float
    n: int = 0
    note: str = ""


class Report:
    """Figures in the order of measurement, and the targets of some of them.

    Args:
        name: Name of the script.
        targets: Targets by figure.
        slowness: How many times longer this machine takes than that of the targets; `--times-within` counts from there.

    Raises:
        ValueError: The sign of a target is neither `<=` nor `>=`.
    """

    def __init__(self, name: str, targets: Mapping[str, Target], slowness: float = 1.0) -> None:
        for key, (sign, _) in targets.items():
            if sign not in ("<=", ">="):
                raise ValueError(f"the target of {key} has the sign {sign!r}: must be <= or >=")
        self.name = name
        self.targets = dict(targets)
        self.slowness = slowness
        self.figures: dict[str, Figure] = {}
        self.notes: list[str] = []
        self._unmeasured: dict[str, str] = {}

    def add(self, key: str, value: float, *, n: int = 0, note: str = "") -> None:
        """Add a figure.

        Raises:
            ValueError: The value is not finite, or the figure exists.
        """
        if not math.isfinite(value):
            raise ValueError(f"{key} is {value}: must be finite")
        if key in self.figures:
            raise ValueError(f"{key} was measured twice")
        self.figures[key] = Figure(value=value, n=n, note=note)

    def percentiles(
        self, name: str, samples: Sequence[float], wanted: Sequence[float], *, unit: str = "ms", note: str = ""
    ) -> None:
        """Add percentiles as `<name>_p99_ms` (99.9 becomes `p99_9`), and the maximum as `<name>_max_ms`.

        Args:
            name: Prefix of the figures' names.
            samples: Samples in `unit`.
            wanted: Percentiles, each 0 to 100.
            unit: Suffix of the figures' names.
            note: Note on each figure.
        """
        for percent in wanted:
            self.add(_percentile_key(name, percent, unit), percentile(samples, percent), n=len(samples), note=note)
        self.add(f"{name}_max_{unit}", max(samples), n=len(samples), note=note)

    def percentiles_of_runs(
        self, name: str, runs: Sequence[Sequence[float]], wanted: Sequence[float], *, note: str = ""
    ) -> None:
        """Add percentiles of milliseconds, each the median over the runs; the maximum is over all samples.

        Raises:
            ValueError: No run has a sample; runs without samples are skipped.
        """
        measured = [samples for samples in runs if samples]
        if not measured:
            raise ValueError(f"no samples of {name}: nothing was measured")
        n = sum(map(len, measured))
        for percent in wanted:
            value = statistics.median(percentile(samples, percent) for samples in measured)
            self.add(_percentile_key(name, percent, "ms"), value, n=n, note=note)
        self.add(f"{name}_max_ms", max(map(max, measured)), n=n, note=note)

    def add_found(self, key: str, found: Sequence[str], *, n: int = 0, note: str = "") -> None:
        """Add the number of faults found; the first dozen are listed below the table."""
        self.add(key, len(found), n=n, note=note)
        self.notes += [f"[{key}] {text}" for text in found[:_EXAMPLES]]

    def unmeasured(self, key: str, reason: str) -> None:
        """Note why a figure cannot be measured, such as missing recordings; its target is then not missed."""
        self._unmeasured[key] = reason

    def note(self, text: str) -> None:
        """Add a line below the table."""
        self.notes.append(text)

    def missed(self) -> list[str]:
        """List the targets that are not met; a figure without value or `unmeasured` reason counts as missed."""
        return [key for key in self.targets if self._verdict(key) in ("MISSED", "NOT MEASURED")]

    def failed(self, options: Options) -> set[str]:
        """Return the missed targets that fail the run, without those that `--allow` or `--times-within` excuses."""
        missed = (key for key in self.missed() if not self._is_near(key, options.times_within))
        return set(missed) - options.allow

    def _is_near(self, key: str, times: float | None) -> bool:
        sign, bound = self.targets[key]
        is_time = sign == "<=" and _IS_TIME.search(key)
        if times is None or not is_time or key not in self.figures:
            return False
        return self.figures[key].value <= bound * times * self.slowness

    def as_dict(self, now: datetime) -> dict[str, object]:
        """Return the content of the JSON file."""
        return {
            "name": self.name,
            "machine": machine(),
            "date": now.isoformat(timespec="seconds"),
            "figures": {key: figure.value for key, figure in self.figures.items()},
            "targets": {key: list(target) for key, target in self.targets.items()},
        }

    def table(self) -> str:
        """Format the figures for the terminal, those with a target first."""
        rows = [("figure", "value", "target", "", "n", "what")]
        order = [*self.targets, *(key for key in self.figures if key not in self.targets)]
        rows += [self._row(key) for key in order]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = []
        for key, value, target, verdict, n, note in rows:
            cells = (
                key.ljust(widths[0]), value.rjust(widths[1]), target.ljust(widths[2]), verdict.ljust(widths[3]),
                n.rjust(widths[4]), note,
            )  # fmt: skip
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *self.notes]) + "\n"

    def _row(self, key: str) -> tuple[str, str, str, str, str, str]:
        figure = self.figures.get(key)
        sign, bound = self.targets.get(key, ("", 0.0))
        target = f"{sign} {_number(bound)}" if sign else ""
        if figure is None:
            return key, "-", target, self._verdict(key), "", self._unmeasured.get(key, "")
        n = f"{figure.n:,}" if figure.n else ""
        return key, _number(figure.value), target, self._verdict(key), n, figure.note

    def _verdict(self, key: str) -> str:
        if key not in self.targets:
            return ""
        if key not in self.figures:
            return "not here" if key in self._unmeasured else "NOT MEASURED"
        sign, bound = self.targets[key]
        value = self.figures[key].value
        return "ok" if (value <= bound if sign == "<=" else value >= bound) else "MISSED"


def run(
    name: str,
    measure: Callable[[Options, Report], None],
    targets: Mapping[str, Target],
    arguments: Sequence[str] | None = None,
) -> int:
    """Measure, print the table, and write the JSON file if one is requested.

    Args:
        name: Name of the script.
        measure: Fills the report.
        targets: Targets by figure.
        arguments: Command line without the program; by default that of the process.

    Returns:
        The exit code: 1 if a target that counts is missed, else 0.
    """
    options = parse(name, arguments)
    # Without logging set up, the library logs to stderr; that must not be measured.
    logging.getLogger("orchestra_mem").addHandler(logging.NullHandler())
    report = Report(name, targets, slowness())
    started = time.perf_counter()
    now = datetime.now(UTC)
    measure(options, report)
    report.slowness = max(report.slowness, slowness())
    print(f"{name}{' (quick)' if options.quick else ''}: {machine()}; {now:%Y-%m-%d %H:%M} UTC")
    print(f"A fixed piece of work took {report.slowness:.2f} times as long as on the machine of the targets.")
    print(report.table(), end="")
    print(f"took {time.perf_counter() - started:.0f} s")
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_dict(now), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    missed = report.missed()
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if report.failed(options) else 0


def parse(name: str, arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line that all scripts share."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks/{name}.py", description=f"Measure {name}; see benchmarks/README.md."
    )
    parser.add_argument("--quick", action="store_true", help="a short run, under 60 s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", default=DEFAULT_DATA,
        help="the folder of recordings (default: ../shared/data beside the checkout)",
    )  # fmt: skip
    parser.add_argument(
        "--allow", action="append", default=[], metavar="FIGURE", help="a target that may be missed; still reported"
    )
    parser.add_argument(
        "--times-within", type=float, metavar="N",
        help="let a time take up to N times its target; for machines that others use too",
    )  # fmt: skip
    parser.add_argument(
        "--model", metavar="MODEL", default="", help="the model to run: a GGUF file, or a name from tools/models.py"
    )
    given = parser.parse_args(arguments)
    return Options(
        quick=given.quick, json=given.json, data=given.data, allow=frozenset(given.allow),
        times_within=given.times_within, model=given.model,
    )  # fmt: skip


def _percentile_key(name: str, percent: float, unit: str) -> str:
    return f"{name}_p{percent:g}_{unit}".replace(".", "_")


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the smallest sample that is not below `percent` percent of all samples (nearest rank).

    Raises:
        ValueError: There is no sample, or `percent` is not within 0 to 100.
    """
    if not samples:
        raise ValueError("no samples: nothing was measured")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent is {percent}: must be within 0 to 100")
    ordered = sorted(samples)
    # Round first: 99.9 / 100 * 1000 is slightly above 999 in floating point.
    rank = math.ceil(round(percent / 100 * len(ordered), 9))
    return ordered[max(0, rank - 1)]


@contextmanager
def stopwatch(samples: list[float]) -> Iterator[None]:
    """Append the milliseconds that the body takes; append nothing if it raises."""
    start = time.perf_counter_ns()
    yield
    samples.append((time.perf_counter_ns() - start) / 1e6)


def fresh(code: str, *arguments: str) -> str:
    """Run code in a new interpreter that sees the checkout and caches bytecode; return its output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def slowness() -> float:
    """Return how many times longer than on the machine of the targets a fixed piece of work takes now, at least 1."""
    start = time.perf_counter()
    for _ in range(_PIECES):
        _piece_of_work()
    return max(1.0, (time.perf_counter() - start) * 1e3 / _PIECES / _PIECE_MS)


def _piece_of_work() -> None:
    text = "The worker wrote 312 rows to the table `orders`, then waited 4.5 s for the lock that importers held. " * 40
    counts: dict[str, int] = {}
    for word in re.findall(r"\w+", text):
        counts[word] = counts.get(word, 0) + 1
    json.loads(json.dumps(sorted((count, word) for word, count in counts.items())))
    for at in range(0, len(text), 7):
        text[at : at + 40].lower().split()


def say(text: str) -> None:
    """Report the progress of a long run on stderr."""
    print(text, file=sys.stderr, flush=True)


def model_path(name: str) -> Path:
    """Return the path of a known model's GGUF, downloaded if missing; any other name is taken as a path."""
    return fetch(MODELS[name]) if name in MODELS else Path(name).expanduser()


def find_model(name: str, *, context_tokens: int) -> LlamaModel:
    """Open a model by name or path; it is loaded at its first use and runs on all cores but one."""
    from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel

    return LlamaModel(GgufVocabulary(model_path(name)), context_tokens=context_tokens)


def machine() -> str:
    """Describe the machine: processor, cores, memory, system, Python, file system of temporary files."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, files on {_file_system(tempfile.gettempdir())}"
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # only Linux has it
    return platform.processor() or platform.machine() or "unknown processor"


def _file_system(folder: str) -> str:
    """Return the type of the file system; on some, `fsync` costs nothing."""
    real = os.path.realpath(folder)
    mounts = [part for part in psutil.disk_partitions(all=True) if _within(real, part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else "an unknown file system"


def _within(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"

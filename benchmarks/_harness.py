"""What the benchmark scripts share: their options, figures with targets, the table, the JSON file, the exit code.

A script runs from anywhere, installed or not, and hands `run` a function that measures and fills a `Report`:

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
from typing import Literal

import psutil

CHECKOUT = Path(__file__).resolve().parents[1]
DEFAULT_DATA = CHECKOUT.parent / "shared" / "data"
# No project of a benchmark is listed among the projects of who runs it; processes that it starts have this as well.
os.environ["ORCHESTRA_MEM_HOME"] = "off"

Target = tuple[Literal["<=", ">="], float]
_EXAMPLES = 12
_IS_TIME = re.compile(r"_(us|ms|s)$|^seconds_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a script was called. `data` need not exist; `json` is None where no file is wanted.

    A missed target of a figure in `allow` is told like any other, but does not fail the run; nor does a time that takes
    up to `times_within` times its target. `model` is a GGUF, or a
    name that `tools/models.py` knows, for scripts that run one; empty where none was named.
    """

    quick: bool
    json: Path | None
    data: Path
    allow: frozenset[str] = frozenset()
    times_within: float = 1.0
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured number; `n` is how many calls or cases it was taken over, 0 where that means nothing."""

    value: float
    n: int = 0
    note: str = ""


class Report:
    """Figures in the order of their measuring, and the targets that some of them have.

    Args:
        name: the script's.
        targets: by figure.

    Raises:
        ValueError: a target's sign is neither `<=` nor `>=`.
    """

    def __init__(self, name: str, targets: Mapping[str, Target]) -> None:
        for key, (sign, _) in targets.items():
            if sign not in ("<=", ">="):
                raise ValueError(f"the target of {key} has the sign {sign!r}; it is <= or >=")
        self.name = name
        self.targets = dict(targets)
        self.figures: dict[str, Figure] = {}
        self.notes: list[str] = []
        self._unmeasured: dict[str, str] = {}

    def add(self, key: str, value: float, *, n: int = 0, note: str = "") -> None:
        """Take in a figure.

        Raises:
            ValueError: the value is not finite, or the figure is there already.
        """
        if not math.isfinite(value):
            raise ValueError(f"{key} is {value}: that was not measured")
        if key in self.figures:
            raise ValueError(f"{key} was measured twice")
        self.figures[key] = Figure(value=value, n=n, note=note)

    def percentiles(
        self, name: str, samples: Sequence[float], wanted: Sequence[float], *, unit: str = "ms", note: str = ""
    ) -> None:
        """Take in percentiles as `<name>_p99_ms` (99.9 reads `p99_9`), with their maximum as `<name>_max_ms`.

        Args:
            name: what the figures' names begin with.
            samples: in `unit`.
            wanted: each 0 to 100.
            unit: what the figures' names end with.
            note: said beside each.
        """
        for percent in wanted:
            self.add(_percentile_key(name, percent, unit), percentile(samples, percent), n=len(samples), note=note)
        self.add(f"{name}_max_{unit}", max(samples), n=len(samples), note=note)

    def percentiles_of_runs(
        self, name: str, runs: Sequence[Sequence[float]], wanted: Sequence[float], *, unit: str = "ms", note: str = ""
    ) -> None:
        """Take in percentiles as `percentiles` does, each the median of what the runs had; the maximum is of all.

        Raises:
            ValueError: there is no run with a sample; runs without one do not count.
        """
        measured = [samples for samples in runs if samples]
        if not measured:
            raise ValueError(f"no samples of {name}: nothing was measured")
        n = sum(map(len, measured))
        for percent in wanted:
            value = statistics.median(percentile(samples, percent) for samples in measured)
            self.add(_percentile_key(name, percent, unit), value, n=n, note=note)
        self.add(f"{name}_max_{unit}", max(map(max, measured)), n=n, note=note)

    def add_found(self, key: str, found: Sequence[str], *, n: int = 0, note: str = "") -> None:
        """Take in how many things were found wrong; the first dozen are told below the table."""
        self.add(key, len(found), n=n, note=note)
        self.notes += [f"[{key}] {text}" for text in found[:_EXAMPLES]]

    def unmeasured(self, key: str, reason: str) -> None:
        """Say why a figure cannot be had here, as where recordings are not at hand. Its target is then not missed."""
        self._unmeasured[key] = reason

    def note(self, text: str) -> None:
        """Say something below the table."""
        self.notes.append(text)

    def missed(self) -> list[str]:
        """Name the targets that are not met; a figure that is not there, and for no said reason, meets none."""
        return [key for key in self.targets if self._verdict(key) in ("MISSED", "NOT MEASURED")]

    def failed(self, options: Options) -> set[str]:
        """Name the missed targets that fail the run: `--allow` and `--times-within` forgive the others."""
        missed = (key for key in self.missed() if not self._is_near(key, options.times_within))
        return set(missed) - options.allow

    def _is_near(self, key: str, times: float) -> bool:
        sign, bound = self.targets[key]
        is_time = sign == "<=" and _IS_TIME.search(key)
        return bool(is_time) and key in self.figures and self.figures[key].value <= bound * times

    def as_dict(self, now: datetime) -> dict[str, object]:
        """Give what the JSON file holds."""
        return {
            "name": self.name,
            "machine": machine(),
            "date": now.isoformat(timespec="seconds"),
            "figures": {key: figure.value for key, figure in self.figures.items()},
            "targets": {key: list(target) for key, target in self.targets.items()},
        }

    def table(self) -> str:
        """Give the figures for the terminal, those with a target first."""
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
    """Measure, print the table, write the JSON file if one is wanted.

    Args:
        name: the script's.
        measure: fills the report.
        targets: by figure.
        arguments: the command line without the program; the process's own where not given.

    Returns:
        The exit code: 1 where a target is missed, else 0.
    """
    options = parse(name, arguments)
    # The library logs on stderr where nobody has set up logging; writing that is no part of what is measured.
    logging.getLogger("orchestra_mem").addHandler(logging.NullHandler())
    report = Report(name, targets)
    started = time.perf_counter()
    now = datetime.now(UTC)
    measure(options, report)
    print(f"{name}{' (quick)' if options.quick else ''}: {machine()}; {now:%Y-%m-%d %H:%M} UTC")
    print(report.table(), end="")
    print(f"took {time.perf_counter() - started:.0f} s")
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_dict(now), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    missed = report.missed()
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if report.failed(options) else 0


def parse(name: str, arguments: Sequence[str] | None = None) -> Options:
    """Read the command line that all scripts share."""
    parser = argparse.ArgumentParser(
        prog=f"benchmarks/{name}.py", description=f"Measure {name}; see benchmarks/README.md."
    )
    parser.add_argument("--quick", action="store_true", help="a short run, under 60 s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", default=DEFAULT_DATA,
        help="the folder of recordings (default: ../shared/data beside the checkout)",
    )  # fmt: skip
    parser.add_argument(
        "--allow", action="append", default=[], metavar="FIGURE", help="a target that may be missed; still told"
    )
    parser.add_argument(
        "--times-within", type=float, default=1.0, metavar="N",
        help="let a time take up to N times its target; for machines that others use too",
    )  # fmt: skip
    parser.add_argument(
        "--model", metavar="MODEL", default="", help="a GGUF, or a name from tools/models.py, where a model is run"
    )
    given = parser.parse_args(arguments)
    return Options(
        quick=given.quick, json=given.json, data=given.data, allow=frozenset(given.allow),
        times_within=given.times_within, model=given.model,
    )  # fmt: skip


def _percentile_key(name: str, percent: float, unit: str) -> str:
    return f"{name}_p{percent:g}_{unit}".replace(".", "_")


def percentile(samples: Sequence[float], percent: float) -> float:
    """Give the least sample that at least `percent` of all are not above (nearest rank).

    Raises:
        ValueError: there is no sample, or `percent` is not within 0 to 100.
    """
    if not samples:
        raise ValueError("no samples: nothing was measured")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent is {percent}: it lies within 0 to 100")
    ordered = sorted(samples)
    # Rounded first: 99.9 / 100 * 1000 is a hair over 999 in floating point.
    rank = math.ceil(round(percent / 100 * len(ordered), 9))
    return ordered[max(0, rank - 1)]


@contextmanager
def stopwatch(samples: list[float]) -> Iterator[None]:
    """Append the milliseconds that the body takes; nothing where it raises."""
    start = time.perf_counter_ns()
    yield
    samples.append((time.perf_counter_ns() - start) / 1e6)


def fresh(code: str, *arguments: str) -> str:
    """Run code in a new interpreter that sees the checkout and caches bytecode; what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def say(text: str) -> None:
    """Tell people on stderr how far a long run is."""
    print(text, file=sys.stderr, flush=True)


def machine() -> str:
    """Describe what the figures were measured on: processor, cores, memory, system, Python, where files lie."""
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
    """Name the type of the file system: `fsync` costs nothing on some."""
    real = os.path.realpath(folder)
    mounts = [part for part in psutil.disk_partitions(all=True) if _within(real, part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else "an unknown file system"


def _within(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"

"""The benchmarks' contract: what a script prints, writes and returns; and that what it measures on is what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._harness import DEFAULT_DATA, Options, Report, Target, machine, parse, percentile, run, stopwatch
from benchmarks._operations import START, Generator, Work, WorkClock, again, own_commits, recorded_commits
from benchmarks.growth import exponent
from benchmarks.prefix import common_start
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.documents.entries import make_entry
from orchestra_mem.types import Operation

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
TARGETS: dict[str, Target] = {"wait_p99_ms": ("<=", 1.0), "kept": (">=", 0.99)}


def measured(wait: float, kept: float) -> Report:
    """Fill a report as a script would."""
    report = Report("sample", TARGETS)
    fill(wait, kept)(Options(quick=True, json=None, data=DEFAULT_DATA), report)
    return report


def fill(wait: float, kept: float) -> Callable[[Options, Report], None]:
    """Give a measuring function with these results."""

    def measure(options: Options, report: Report) -> None:
        report.add("wait_p99_ms", wait, n=5_000, note="all calls")
        report.add("kept", kept)
        report.add("cases", 12, n=12)

    return measure


# The exit code and the targets


@pytest.mark.parametrize(
    ("wait", "kept", "code", "missed"),
    [
        (0.5, 0.995, 0, []),
        (1.0, 0.99, 0, []),
        (1.01, 0.995, 1, ["wait_p99_ms"]),
        (0.5, 0.98, 1, ["kept"]),
        (7.0, 0.0, 1, ["wait_p99_ms", "kept"]),
    ],
)
def test_exit_code_is_1_where_a_target_is_missed_and_only_there(
    capsys: pytest.CaptureFixture[str], wait: float, kept: float, code: int, missed: list[str]
) -> None:
    """A figure at its bound meets it; what is missed is named in the last line."""
    assert run("sample", fill(wait, kept), TARGETS, ["--quick"]) == code
    printed = capsys.readouterr().out
    assert printed.count("MISSED") == len(missed)
    assert (f"missed: {', '.join(missed)}\n" in printed) == bool(missed)


def test_a_target_without_a_figure_is_missed() -> None:
    """Forgetting to measure is no way to pass."""
    report = Report("sample", TARGETS)
    report.add("kept", 1.0)
    assert report.missed() == ["wait_p99_ms"]
    assert "NOT MEASURED" in report.table()


def test_a_figure_that_cannot_be_had_here_is_told_and_not_missed() -> None:
    """Without the recordings a script says so; its other targets stand."""
    report = Report("sample", TARGETS)
    report.add("wait_p99_ms", 2.0)
    report.unmeasured("kept", "no recordings in ../shared/data")
    assert report.missed() == ["wait_p99_ms"]
    (line,) = [line for line in report.table().splitlines() if line.startswith("kept")]
    assert line.split() == ["kept", "-", ">=", "0.99", "not", "here", "no", "recordings", "in", "../shared/data"]


# The JSON file


def test_json_file_has_the_shape_that_all_scripts_share(tmp_path: Path) -> None:
    """Name, machine, date, figures as numbers, targets as sign and number: no more and no less."""
    path = tmp_path / "sample.json"
    run("sample", fill(0.5, 1), TARGETS, ["--json", str(path)])
    written = json.loads(path.read_text(encoding="utf-8"))
    assert set(written) == {"name", "machine", "date", "figures", "targets"}
    assert written["name"] == "sample"
    assert written["machine"] == machine()
    assert datetime.fromisoformat(written["date"]).utcoffset() == UTC.utcoffset(None)
    assert written["figures"] == {"wait_p99_ms": 0.5, "kept": 1, "cases": 12}
    assert written["targets"] == {"wait_p99_ms": ["<=", 1.0], "kept": [">=", 0.99]}


def test_json_file_is_written_where_targets_are_missed(tmp_path: Path) -> None:
    """What missed is what one wants to look at."""
    path = tmp_path / "sample.json"
    assert run("sample", fill(3.0, 1), TARGETS, ["--json", str(path)]) == 1
    assert json.loads(path.read_text(encoding="utf-8"))["figures"]["wait_p99_ms"] == 3.0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_is_finite(value: float) -> None:
    """What is no number was not measured."""
    with pytest.raises(ValueError, match=rf"^kept is {value}: that was not measured$"):
        Report("sample", TARGETS).add("kept", value)


def test_a_figure_is_measured_once() -> None:
    """A second measurement does not quietly replace a worse first."""
    report = measured(0.5, 1)
    with pytest.raises(ValueError, match=r"^kept was measured twice$"):
        report.add("kept", 1)


def test_a_target_has_one_of_two_signs() -> None:
    """Better is either lower or higher."""
    with pytest.raises(ValueError, match=r"^the target of x has the sign '<'; it is <= or >=$"):
        Report("sample", {"x": ("<", 1)})  # type: ignore[dict-item]


# The table


def test_table_shows_targets_first_with_verdict_and_n() -> None:
    """Value, target, verdict, over how many calls, and what it is."""
    lines = measured(1.25, 0.995).table().splitlines()
    assert [line.split() for line in lines] == [
        ["figure", "value", "target", "n", "what"],
        ["wait_p99_ms", "1.25", "<=", "1", "MISSED", "5,000", "all", "calls"],
        ["kept", "0.995", ">=", "0.99", "ok"],
        ["cases", "12", "12"],
    ]


# Options


def test_options_of_all_scripts() -> None:
    """A full run on the recordings beside the checkout, unless told otherwise."""
    assert parse("sample", []) == Options(quick=False, json=None, data=DEFAULT_DATA)
    given = parse("sample", ["--quick", "--json", "out.json", "--data", "recordings"])
    assert given == Options(quick=True, json=Path("out.json"), data=Path("recordings"))
    assert SCRIPTS.parents[1] / "shared" / "data" == DEFAULT_DATA


@pytest.mark.parametrize("script", ["latency.py", "growth.py", "prefix.py", "edits.py"])
def test_scripts_start_from_any_folder(script: str, tmp_path: Path) -> None:
    """They find the checkout's package and each other, with nothing installed or set."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(option in done.stdout for option in ("--quick", "--json FILE", "--data DIR"))


# Percentiles


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (1, 10), (50, 500), (95, 950), (99, 990), (99.9, 999), (99.91, 1000), (100, 1000)]
)
def test_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    """Of 1 to 1,000 in any order, a sample that was really measured."""
    assert percentile([float(number) for number in range(1000, 0, -1)], percent) == value


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_so_many_percent_are_not_above_a_percentile(samples: list[float], percent: float) -> None:
    """At least that share lies at or below it, and it is the least such sample."""
    found = percentile(samples, percent)
    needed = percent / 100 * len(samples)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= needed - 1e-9
    assert sum(sample < found for sample in samples) <= needed + 1e-9


def test_percentiles_of_runs_are_the_median_run() -> None:
    """One run on a busy machine does not decide; the maximum hides nothing, and runs without samples do not count."""
    report = Report("sample", {})
    report.percentiles_of_runs("wait", [[1.0, 2.0], [3.0, 4.0], [50.0, 900.0], []], (50, 99.9), note="x")
    assert {key: figure.value for key, figure in report.figures.items()} == {
        "wait_p50_ms": 3.0,
        "wait_p99_9_ms": 4.0,
        "wait_max_ms": 900.0,
    }
    assert {figure.n for figure in report.figures.values()} == {6}


def test_no_samples_are_no_percentile() -> None:
    """Nothing measured is an error, not a zero."""
    with pytest.raises(ValueError, match=r"^no samples: nothing was measured$"):
        percentile([], 50)
    with pytest.raises(ValueError, match=r"^no samples of wait: nothing was measured$"):
        Report("sample", {}).percentiles_of_runs("wait", [[]], (50,))


def test_stopwatch_counts_only_what_succeeded() -> None:
    """A call that raises is no sample."""
    samples: list[float] = []
    with stopwatch(samples):
        pass
    with pytest.raises(KeyError), stopwatch(samples):
        raise KeyError
    assert len(samples) == 1
    assert 0 <= samples[0] < 1000


# What is measured on


def entry_tokens(work: Work) -> int:
    """Count an operation's entry as the session document shows it."""
    operation = Operation(
        id=7, session="s", type=work.type, data=work.data, timestamp=START, tokens=0, entry_tokens=0, agent=work.agent
    )
    return open_counter().count(make_entry(operation, started=START.date(), max_chars=4_000).text)


def test_made_up_work_is_varied_and_of_real_size() -> None:
    """Several types; nine of ten entries have 50 to 400 tokens, some outputs are far longer; next to none repeat."""
    works = list(islice(Generator(1).works(), 2_000))
    sizes = sorted(map(entry_tokens, works))
    assert {work.type for work in works} == {
        "nl_command", "plan", "tool_call", "decision", "message", "review", "task_report",
    }  # fmt: skip
    assert sum(50 <= size <= 400 for size in sizes) >= 0.9 * len(sizes)
    assert sum(len(str(work.data)) > 4_000 for work in works) >= 0.01 * len(works)
    assert len({str(work.data) for work in works}) >= 0.99 * len(works)


def test_a_seed_gives_the_same_work_again() -> None:
    """Two runs measure the same; another seed gives other work."""
    assert list(islice(Generator(1).works(), 50)) == list(islice(Generator(1).works(), 50))
    assert list(islice(Generator(1).works(), 50)) != list(islice(Generator(2).works(), 50))


def test_sized_work_is_of_one_size() -> None:
    """245 words are 400 tokens, within a fifth."""
    sizes = [entry_tokens(work) for work in islice(Generator(1).sized(245), 200)]
    assert 400 * 0.9 <= sum(sizes) / len(sizes) <= 400 * 1.1
    assert min(sizes) >= 320


def test_recorded_commits_come_with_their_pauses(tmp_path: Path) -> None:
    """Each line is an operation; the second comes as long after the first as it did; rounds are told apart."""
    lines = [{"hash": "a1", "date": "2024-05-01T10:00:00+02:00"}, {"hash": "b2", "date": "2024-05-01T09:00:00+00:00"}]
    path = tmp_path / "git.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert [(work.data, work.seconds) for work in recorded_commits(path)] == [(lines[0], 0.0), (lines[1], 3600.0)]
    rounds = islice(again(lambda: recorded_commits(path)), 3)
    assert [work.data for work in rounds] == [*lines, {**lines[0], "round": 2}]


def test_own_commits_are_read_from_a_history(tmp_path: Path) -> None:
    """Oldest first, with subject, body and files; a folder without a history has none."""
    assert own_commits(tmp_path) == []
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for number in (1, 2):
        (tmp_path / "notes.txt").write_text("line\n" * number)
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        subprocess.run(
            [*git, "commit", "-q", "-m", f"Step {number}", "-m", "Why: it must be."], cwd=tmp_path, check=True
        )
    works = own_commits(tmp_path)
    assert [work.data["subject"] for work in works if isinstance(work.data, dict)] == ["Step 1", "Step 2"]
    assert isinstance(works[1].data, dict)
    assert works[1].data["body"] == "Why: it must be."
    assert works[1].data["files"] == ["1 0 notes.txt"]


def test_the_replay_clock_never_goes_back() -> None:
    """A commit dated before the one in front of it stands at the same time."""
    clock = WorkClock()
    clock.advance(90.5)
    clock.advance(-1000)
    assert (clock() - START).total_seconds() == 90.5


# How it is measured


def test_exponent_of_known_growth() -> None:
    """Linear growth has 1, the root 0.5, a constant 0; where the points lie densest does not matter."""
    points = range(1_000, 100_000, 50)
    assert exponent([(n, n * 3) for n in points]) == pytest.approx(1.0, abs=0.01)
    assert exponent([(n, round(100 * n**0.5)) for n in points]) == pytest.approx(0.5, abs=0.01)
    assert exponent([(n, 40_000) for n in points]) == pytest.approx(0.0, abs=0.01)


@given(st.binary(), st.binary(), st.binary())
def test_common_start_is_where_two_texts_part(start: bytes, one: bytes, other: bytes) -> None:
    """The longest beginning that both have."""
    count = common_start(start + one, start + other)
    assert count >= len(start)
    assert (start + one)[:count] == (start + other)[:count]
    assert (start + one)[count : count + 1] != (start + other)[count : count + 1] or count == len(start + one)

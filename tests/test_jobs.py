"""Background work: the job queue, its order and leases, and better summaries that replace others only at a refresh."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.database import Database
from orchestra_mem.build import wiring as memory_module
from orchestra_mem.compression.compressor import Compressed
from orchestra_mem.compression.jobs import BackgroundWork
from orchestra_mem.compression.model_reader import Talk
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.errors import LockTimeoutError, ModelError, StorageFullError, StorageReadOnlyError
from orchestra_mem.job_types import Job, JobState, SummaryDraft, Trial, TrialVerdict
from orchestra_mem.model_types import Message
from orchestra_mem.stores import DraftStore, JobQueue
from orchestra_mem.testing import FailingModel, FaithfulModel, ScriptedModel
from tests.conftest import START, Clock
from tests.memories import live, standing, text_of, work_all
from tests.timing import until

SMALL = {
    "orchestrator": {
        "context_window": {"max_tokens": 8_192},
        "working_memory": {"max_operations": 6},
        "session_compression_threshold": 4_000,
        "auto_refresh_enabled": False,
    },
    "compaction": {"verbatim_floor_tokens": 100, "segment_tokens": 600},
    "compression": {"auto": False},
}
AUTO = {**SMALL, "compression": {"auto": True}}
LATER = START + timedelta(hours=1)


def record(memory: OrchestratorContextManager, clock: Clock, count: int = 12, first: int = 1) -> None:
    """Record steps, and tool output, which extraction mostly omits."""
    for number in range(first, first + count):
        clock.now += timedelta(minutes=10)
        printed = "\n".join(f"tests/test_{number}_{k}.py::test_row_{k} ran for {k * number} ms" for k in range(1, 12))
        memory.record_operation("step", {"text": f"I looked at module_{number}.py and thought about part {number}."})
        memory.record_operation("tool_call", {"tool": "bash", "output": printed})


def record_and_refresh(memory: OrchestratorContextManager, clock: Clock, count: int = 12, first: int = 1) -> None:
    """Record as `record` does, then refresh."""
    record(memory, clock, count, first)
    memory.refresh()


def place_draft(folder: Path, summary: int) -> SummaryDraft:
    """Store a summary's draft in the ledger only, as a process does that is killed before it writes the document."""
    with closing(Database(folder / ".obra" / "obra.db")) as database:
        drafts = DraftStore(database)
        (draft,) = (each for each in drafts.drafts() if each.summary == summary)
        drafts.place(draft)
    return draft


def first_line(messages: Sequence[Message]) -> str:
    """The answer of a good model: two lines of a tool's output."""
    lines = [line.removeprefix("Output: ") for line in messages[-1].text.splitlines() if "ran for" in line]
    return json.dumps({"lines": lines[-2:]})


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory with summaries and a good model that runs only on request."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line, name="good")) as opened:
        record_and_refresh(opened, clock)
        yield opened


# The queue


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Iterator[JobQueue]:
    """An empty queue; the clock is at the time that `take` uses."""
    clock.now = LATER
    with closing(Database(tmp_path / "obra.db")) as database:
        yield JobQueue(database)


def take(queue: JobQueue, at: timedelta = timedelta()) -> Job | None:
    """Take the next job, with a lease of one minute."""
    return queue.take("me", now=LATER + at, until=LATER + at + timedelta(minutes=1))


def test_jobs_come_by_priority_and_then_newest_first(queue: JobQueue) -> None:
    """Jobs are taken by priority, then newest first; one that is put twice is queued once, with the better priority."""
    for summary, priority in ((2, 10), (1, 10), (3, 0), (1, 20)):
        assert queue.put(f"S{summary}", priority=priority, now=LATER, most=9)
    taken = [job.subject for job in iter(lambda: take(queue), None)]
    assert taken == ["S3", "S1", "S2"]
    assert {job.state for job in queue.jobs()} == {JobState.RUNNING}


def test_a_full_queue_lets_the_last_ones_go(queue: JobQueue) -> None:
    """A job evicts the last one from a full queue, unless all others have a better priority: then it is rejected."""
    assert [queue.put(f"S{n}", priority=10, now=LATER, most=2) for n in (1, 2, 3)] == [True] * 3
    assert not queue.put("S4", priority=20, now=LATER, most=2)
    assert queue.put("S5", priority=0, now=LATER, most=2)
    assert [job.subject for job in queue.jobs()] == ["S5", "S3"]


def test_a_stalled_job_is_taken_again_and_counts_as_an_attempt(queue: JobQueue) -> None:
    """A job whose lease has expired is taken again as another attempt; its first process can no longer change it."""
    queue.put("S1", priority=0, now=LATER, most=9)
    job = take(queue)
    assert job is not None
    assert take(queue, timedelta(seconds=59)) is None
    queue.renew(job, until=LATER + timedelta(minutes=5))
    assert not queue.due(LATER + timedelta(minutes=4))
    assert queue.due(LATER + timedelta(minutes=5))
    again = take(queue, timedelta(minutes=5))
    assert again is not None
    assert (again.subject, again.attempts) == ("S1", 1)
    assert again.error == "it stalled, or the process that worked at it ended"
    # The first process resumes after a pause: the job belongs to another one by then.
    queue.renew(job, until=LATER + timedelta(hours=1))
    queue.give_back(job, due=LATER)
    queue.fail(job, "too late", due=None)
    assert queue.jobs() == [again]
    assert queue.due(LATER + timedelta(minutes=6))


def test_one_process_leads_and_others_wait_until_it_is_gone(queue: JobQueue) -> None:
    """One process leads and may renew its lease; another takes over when it resigns or the lease expires."""
    minute = timedelta(minutes=1)
    assert queue.lead("a", now=LATER, until=LATER + minute)
    assert queue.lead("a", now=LATER, until=LATER + 2 * minute)
    assert not queue.lead("b", now=LATER + minute, until=LATER + 9 * minute)
    assert queue.other_holds_lease("b", LATER)
    assert not queue.other_holds_lease("a", LATER)
    assert queue.lead("b", now=LATER + 2 * minute, until=LATER + 3 * minute)
    queue.resign("a")
    assert not queue.lead("a", now=LATER, until=LATER + minute)
    queue.resign("b")
    assert queue.lead("a", now=LATER, until=LATER + minute)


def test_a_clock_that_was_ahead_holds_nothing_up(queue: JobQueue) -> None:
    """Leases and times of a killed process whose clock was ten years ahead block neither jobs nor leadership."""
    ahead, minute = LATER + timedelta(days=3_650), timedelta(minutes=1)
    assert queue.lead("killed", now=ahead, until=ahead + minute)
    queue.announce("killed", until=ahead + minute)
    for summary in (1, 2):
        queue.put(f"S{summary}", priority=0, now=ahead, most=9)
    assert queue.take("killed", now=ahead, until=ahead + minute) is not None
    assert not queue.other_holds_lease("me", LATER)
    assert queue.lead("me", now=LATER, until=LATER + minute)
    assert not queue.lead("other", now=LATER - timedelta(seconds=5), until=LATER)
    assert not queue.announced("me", LATER)
    assert queue.due(LATER)
    taken = [job.subject for job in iter(lambda: take(queue), None)]
    assert taken == ["S2", "S1"]


def test_what_somebody_was_at_who_resigns_waits_again(queue: JobQueue) -> None:
    """The running job of a process that resigns is queued again at once, without an additional attempt."""
    queue.put("S1", priority=0, now=LATER, most=9)
    assert take(queue) is not None
    queue.resign("another")
    assert take(queue) is None
    queue.resign("me")
    job = take(queue)
    assert job is not None
    assert job.attempts == 0


# The worker


def test_a_job_that_keeps_failing_waits_longer_each_time_and_is_given_up(queue: JobQueue, clock: Clock) -> None:
    """A job that keeps failing waits longer each time, and is given up with its last fault after the third attempt."""
    refused = Compressed(
        text="", method="", tokens=0, source_tokens=0, verdict=TrialVerdict.FAILED, dropped=(),
        talk=Talk(fault="refused"),
    )  # fmt: skip
    work = BackgroundWork(queue, lambda job, cancelled: refused, clock=clock, owner="me", max_attempts=3)
    work.offer("S1", 10)
    pauses = []
    for _ in range(3):
        pauses.append(work.step())
        clock.now += timedelta(minutes=10)
    assert 20 < pauses[0] < pauses[1] < pauses[2] < 200
    assert [(job.state, job.attempts, job.error) for job in queue.jobs()] == [(JobState.FAILED, 3, "refused")]
    assert work.step() == 5.0


def test_a_short_command_starts_no_job(queue: JobQueue, clock: Clock) -> None:
    """Jobs do not start within the first two seconds, so that short commands do not begin any."""
    runs: SimpleQueue[float] = SimpleQueue()
    work = BackgroundWork(queue, lambda job, cancelled: runs.put(time.monotonic()), clock=clock, owner="me")
    work.offer("S1", 10)
    started = time.monotonic()
    work.start()
    assert runs.get(timeout=30) - started > 1.9
    work.close()


@pytest.mark.parametrize("error", [LockTimeoutError("the database is locked"), ValueError("no such thing")])
def test_what_a_disk_refuses_is_tried_again(queue: JobQueue, clock: Clock, error: Exception) -> None:
    """A job that raises any error, such as a locked database, is tried again later and then done."""
    outcomes: list[Exception | None] = [error, None]

    def improve(job: Job, cancelled: Callable[[], bool]) -> None:
        if outcome := outcomes.pop(0):
            raise outcome

    work = BackgroundWork(queue, improve, clock=clock, owner="me")
    work.offer("S1", 10)
    assert work.step() > 20
    assert [(job.state, job.attempts, job.error) for job in queue.jobs()] == [(JobState.WAITING, 1, str(error))]
    clock.now += timedelta(minutes=1)
    assert work.step() == 0.0
    assert queue.jobs() == []


def test_a_job_whose_summary_is_gone_is_done(tmp_path: Path, clock: Clock) -> None:
    """Jobs of summaries that do not exist leave the queue, and no problem is reported."""
    model = ScriptedModel(first_line)
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        record_and_refresh(memory, clock)
        with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
            queue = JobQueue(database)
            for summary in (998, 999):
                queue.put(f"S{summary}", priority=0, now=clock(), most=9)
                if job := take(queue) if summary == 998 else None:
                    queue.fail(job, "refused", due=None)
            work_all(memory)
            record_and_refresh(memory, clock, 2, first=50)
            assert queue.jobs() == []
            assert memory.get_stats()["problems"] == []


def test_what_lasts_longest_is_improved_first(tmp_path: Path, clock: Clock) -> None:
    """Jobs begin with the summary of an ended session, then come merged summaries, then the newest of level 1."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=FailingModel(ModelError("refused"))) as memory:
        record_and_refresh(memory, clock)
        memory.flush_session()
        (whole,) = (each.id for each in memory.losses() if not each.level)
        while max(each.level for each in standing(memory)) < 2:
            record_and_refresh(memory, clock, first=100)
        memory.compression.work()
        levels = {each.id: each.level for each in memory.losses()}
        numbers = [int(job.subject[1:]) for job in memory.compression.queue.jobs()]
    assert numbers == sorted(numbers, key=lambda number: (number != whole, -levels[number], -number))
    assert {0, 1, 2} <= {levels[number] for number in numbers}


def test_seconds_of_a_model_for_nothing_are_a_problem(memory: OrchestratorContextManager) -> None:
    """Status tells of readings that took a minute and brought nothing, until a tenth of the time brings something."""

    def problems() -> str:
        return str(memory.get_stats()["problems"])

    trial = Trial(
        time=START, model="good", content="step", subject="", verdict=TrialVerdict.NO_BETTER, fault="", seconds=25.0,
        prompt_tokens=0, answer_tokens=0,
    )  # fmt: skip
    for _ in range(2):
        memory.compression.trials.add(trial)
    assert problems() == "[]"
    memory.compression.trials.add(trial)
    words = "good: 75 of the 75 s for its last 3 readings improved no summary and found no fact; "
    assert words in problems()
    memory.compression.trials.add(replace(trial, verdict=TrialVerdict.ACCEPTED, seconds=9.0))
    assert problems() == "[]"


def test_a_job_whose_process_dies_each_time_is_given_up(queue: JobQueue, clock: Clock) -> None:
    """A job whose process dies at each attempt is given up."""
    work = BackgroundWork(queue, lambda job, cancelled: None, clock=clock, owner="me", max_attempts=2)
    work.offer("S1", 10)
    for _ in range(2):
        assert take(queue, clock.now - LATER) is not None
        clock.now += timedelta(minutes=2)
    assert work.step() == 0.0
    assert [(job.state, job.error) for job in queue.jobs()] == [
        (JobState.FAILED, "it stalled, or the process that worked at it ended")
    ]


def test_the_foreground_of_any_process_comes_first(queue: JobQueue, clock: Clock) -> None:
    """The foreground of any process interrupts a generation; its job waits, and none starts until the model is free."""
    seen: list[bool] = []
    busy = [False]

    def improve(job: Job, cancelled: Callable[[], bool]) -> Compressed:
        seen.append(cancelled())
        with other.foreground():
            time.sleep(0.05)
            seen.append(cancelled())
        time.sleep(0.05)
        with work.foreground(), work.foreground():
            seen.append(cancelled())
        seen.append(cancelled())
        raise InterruptedGenerationError

    work = BackgroundWork(queue, improve, clock=clock, owner="me", busy=lambda: busy[0])
    other = BackgroundWork(queue, improve, clock=clock, owner="other")
    work.offer("S1", 10)
    assert work.step() == 0.0
    assert seen == [False, True, True, False]
    assert [(job.state, job.attempts) for job in queue.jobs()] == [(JobState.WAITING, 0)]
    with other.foreground():
        assert work.step() == 0.5
    with work.foreground():
        assert work.step() == 0.0
    busy[0] = True
    assert work.step() == 0.5
    assert other.step() == 5.0, "another leads"
    assert len(seen) == 4


def test_a_summary_that_was_given_up_is_told_until_it_is_bettered_or_gone(tmp_path: Path, clock: Clock) -> None:
    """Status names a summary that was given up until `redo` improves it or another summary covers it."""

    def named(memory: OrchestratorContextManager) -> str:
        return " ".join(str(each) for each in memory.get_stats()["problems"] if "could not improve" in str(each))  # type: ignore[union-attr]

    with open_memory(tmp_path, config=SMALL, clock=clock, model=FailingModel(ModelError("refused"))) as memory:
        record_and_refresh(memory, clock, 24)
        for _ in range(40):
            memory.compression.work()
            clock.now += timedelta(minutes=20)
        given_up = [each.id for each in standing(memory)]
        assert len(given_up) > 2
        assert all(f"S{number}" in named(memory) for number in given_up[-5:])
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line)) as memory:
        assert memory.compression.redo(given_up[0]).verdict.good
        assert f"S{given_up[0]}," not in named(memory)
        first = 100
        while any(number in given_up for number in (each.id for each in standing(memory))):
            record_and_refresh(memory, clock, 24, first=first)
            first += 24
        assert named(memory) == ""


def test_a_full_disk_keeps_nobody_from_a_memory_with_a_model(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory with a model opens even if no job can be queued."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record_and_refresh(memory, clock)

    def refuse(*arguments: object, **named: object) -> bool:
        raise StorageFullError("there is no room")

    monkeypatch.setattr(JobQueue, "put", refuse)
    with open_memory(tmp_path, config=AUTO, clock=clock, model=ScriptedModel(first_line)) as memory:
        assert standing(memory)


def test_what_is_asked_for_waits_where_the_model_does_not_answer(tmp_path: Path, clock: Clock) -> None:
    """A `redo` that fails is queued first, before all other jobs."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=FailingModel(ModelError("refused"))) as memory:
        record_and_refresh(memory, clock, 24)
        number = standing(memory)[-1].id
        assert memory.compression.redo(number).verdict is TrialVerdict.FAILED
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line)) as memory:
        assert memory.compression.work()
        assert [story.summary.id for story in memory.compression.stories(standing(memory)) if story.draft] == [number]


def test_where_nothing_may_be_written_no_model_is_asked_for_nothing(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a read-only memory `redo` is refused before the model is called."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record_and_refresh(memory, clock)
    monkeypatch.setattr(memory_module, "why_read_only", lambda home: "it is read-only")
    model = ScriptedModel(first_line)
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        with pytest.raises(StorageReadOnlyError):
            memory.compression.redo(1)
        assert model.prompts == []


def test_background_work_stops_within_a_token_for_the_foreground(tmp_path: Path, clock: Clock) -> None:
    """The foreground waits under a second for background work, which then pauses, and finishes afterwards."""
    model = FaithfulModel(tokens_per_s=50)
    with open_memory(tmp_path, config=AUTO, clock=clock, model=model) as memory:
        record_and_refresh(memory, clock)
        until(lambda: len(model.prompts) > 0)
        time.sleep(0.1)
        for _ in range(3):
            start = time.monotonic()
            with memory.foreground():
                assert model.generate([model.prompts[0][0]], max_tokens=1).answer_tokens <= 1
                assert time.monotonic() - start < 1.0
                asked = len(model.prompts)
                time.sleep(0.1)
                assert len(model.prompts) == asked
        stories = memory.compression.stories
        until(lambda: all(story.job is None and story.trial for story in stories(standing(memory))))


def test_a_program_may_do_the_work_at_times_of_its_own(tmp_path: Path, clock: Clock) -> None:
    """`work` handles one summary per call until all are done; a new process does not repeat any."""
    model = ScriptedModel(first_line, name="good")
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        assert not memory.compression.work()
        record_and_refresh(memory, clock)
        count = len(standing(memory))
        assert [memory.compression.work() for _ in range(count + 1)] == [True] * count + [False]
        assert all(story.trial for story in memory.compression.stories(standing(memory)))
    asked = len(model.prompts)
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        assert not memory.compression.work()
    assert len(model.prompts) == asked


# Replacing


def improve_all(memory: OrchestratorContextManager) -> list[int]:
    """Improve all summaries with the model, and return the numbers of those that it improved."""
    return [each.id for each in standing(memory) if memory.compression.redo(f"S{each.id}").verdict.good]


def test_a_better_summary_comes_in_at_an_epochs_border_only(memory: OrchestratorContextManager, clock: Clock) -> None:
    """A better summary replaces the old one at the next refresh, not before; its number and coverage stay the same."""
    before, context = text_of(memory), memory.get_orchestrator_context("x").render()
    earlier = {each.id: each for each in standing(memory)}
    better = improve_all(memory)
    assert better
    assert text_of(memory) == before
    memory.record_operation("step", {"text": "Another."})
    assert memory.get_orchestrator_context("x").render().startswith(context.rstrip())
    assert [each.text for each in standing(memory)] == [each.text for each in earlier.values()]
    memory.refresh()
    for number in better:
        old, new = earlier[number], next(each for each in memory.losses() if each.id == number)
        assert (new.method, new.verdict) == ("extractive + good", "accepted")
        changed = {"text", "tokens", "method", "verdict", "seconds", "dropped", "put_back", "must_keeps", "parent"}
        assert replace(new, **{name: getattr(old, name) for name in changed}) == old
        assert new.text != old.text
        assert new.text.strip() in text_of(memory)
        assert len(memory.expand(f"S{number}").operations) == new.operation_count
    assert all(story.draft is None for story in memory.compression.stories(memory.losses()))


@pytest.mark.parametrize("what", ["rewritten", "pinned", "taken out"])
def test_a_persons_word_on_a_summary_counts_more(memory: OrchestratorContextManager, clock: Clock, what: str) -> None:
    """The draft for a summary that a person rewrote, pinned or deleted is dropped, and the person's edit is kept."""
    number = improve_all(memory)[0]
    path = live(memory)
    text = text_of(memory)
    block = text[text.index(f"### Summary S{number}:") :]
    block = block[: block.index("\n##", 5) + 1]
    edited = {
        "rewritten": block.replace("looked at", "peered at"),
        "pinned": f"{block.rstrip()}\n{PIN}\n\n",
        "taken out": "",
    }
    assert edited[what] != block
    path.write_text(text.replace(block, edited[what]), encoding="utf-8")
    memory.refresh()
    assert edited[what] in text_of(memory)
    assert (f"### Summary S{number}:" in text_of(memory)) == (what != "taken out")
    story = next(each for each in memory.compression.stories(memory.losses()) if each.summary.id == number)
    assert (story.draft, story.summary.method) == (None, "extractive")


def test_what_people_had_edited_before_is_left_to_extraction(tmp_path: Path, clock: Clock) -> None:
    """A summary of entries that a person edited is not improved, as the operations lack the edit; `redo` says so."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line)) as memory:
        record(memory, clock)
        path = live(memory)
        text = text_of(memory)
        path.write_text(text.replace("I looked at module_1.py", "I, Ann, looked at module_1.py"), encoding="utf-8")
        memory.refresh()
        first = standing(memory)[0]
        assert first.edited
        assert [each.edited for each in standing(memory)[1:]] == [False] * (len(standing(memory)) - 1)
        with pytest.raises(ModelError, match=f"^S{first.id} cannot be improved: people have changed"):
            memory.compression.redo(first.id)


@pytest.mark.parametrize("missing", [False, True])
def test_a_draft_of_another_text_is_dropped(memory: OrchestratorContextManager, tmp_path: Path, missing: bool) -> None:
    """A draft of a summary that has changed, or does not exist, is dropped, and the document stays the same."""
    with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
        drafts = DraftStore(database)
        summary = 999 if missing else standing(memory)[0].id
        drafts.put(
            SummaryDraft(
                summary=summary, base="other", text="new", tokens=1, method="m", must_keeps=(), put_back=(), verdict="",
                seconds=0.0, created=START,
            )
        )  # fmt: skip
        before = text_of(memory)
        memory.refresh()
        assert drafts.drafts() == []
        assert text_of(memory) == before

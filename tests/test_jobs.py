"""Background work: the queue, whose turn it is, and better summaries that come in at an epoch's border only."""

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
from orchestra_mem.adapters.database import Database, SqlDraftStore, SqlJobQueue
from orchestra_mem.build import wiring as memory_module
from orchestra_mem.compression.compressed import Compressed, Talk
from orchestra_mem.compression.jobs import BackgroundWork
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.core.documents.markdown import PIN
from orchestra_mem.errors import LockTimeoutError, ModelError, StorageFullError, StorageReadOnlyError
from orchestra_mem.job_types import Job, JobState, SummaryDraft, TrialVerdict
from orchestra_mem.model_types import Message
from orchestra_mem.testing import FailingModel, FaithfulModel, ScriptedModel
from tests.conftest import START, Clock
from tests.memories import live, standing, text_of
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
    """Steps, and what tools printed, of which extraction takes little."""
    for number in range(first, first + count):
        clock.now += timedelta(minutes=10)
        printed = "\n".join(f"tests/test_{number}_{k}.py::test_row_{k} ran for {k * number} ms" for k in range(1, 12))
        memory.record_operation("step", {"text": f"I looked at module_{number}.py and thought about part {number}."})
        memory.record_operation("tool_call", {"tool": "bash", "output": printed})


def record_and_refresh(memory: OrchestratorContextManager, clock: Clock, count: int = 12, first: int = 1) -> None:
    """The same, and what follows of it."""
    record(memory, clock, count, first)
    memory.refresh()


def place_draft(folder: Path, summary: int) -> SummaryDraft:
    """Put the draft of a summary into the ledger and no further, as a process does that is killed then."""
    with closing(Database(folder / ".obra" / "obra.db")) as database:
        drafts = SqlDraftStore(database)
        (draft,) = (each for each in drafts.drafts() if each.summary == summary)
        drafts.place(draft)
    return draft


def first_line(messages: Sequence[Message]) -> str:
    """A line of what a tool printed, as a good model would take it."""
    lines = [line.removeprefix("Output: ") for line in messages[-1].text.splitlines() if "ran for" in line]
    return json.dumps({"lines": lines[-2:]})


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """A memory with summaries, and a good model that is asked only when told to."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line, name="good")) as opened:
        record_and_refresh(opened, clock)
        yield opened


# The queue


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Iterator[SqlJobQueue]:
    """An empty queue; the clock is where `take` looks at it."""
    clock.now = LATER
    with closing(Database(tmp_path / "obra.db")) as database:
        yield SqlJobQueue(database)


def take(queue: SqlJobQueue, at: timedelta = timedelta()) -> Job | None:
    """The next job, leased for a minute."""
    return queue.take("me", now=LATER + at, until=LATER + at + timedelta(minutes=1))


def test_jobs_come_by_priority_and_then_in_their_order(queue: SqlJobQueue) -> None:
    """Each is there once; one that is put again keeps the better place."""
    for summary, priority in ((1, 10), (2, 10), (3, 0), (1, 20)):
        assert queue.put(f"S{summary}", priority=priority, now=LATER, most=9)
    taken = [job.subject for job in iter(lambda: take(queue), None)]
    assert taken == ["S3", "S1", "S2"]
    assert {job.state for job in queue.jobs()} == {JobState.RUNNING}


def test_a_full_queue_lets_the_last_ones_go(queue: SqlJobQueue) -> None:
    """What is more pressing gets in, what is not stays out."""
    assert [queue.put(f"S{n}", priority=10, now=LATER, most=2) for n in (1, 2, 3)] == [True, True, False]
    assert queue.put("S4", priority=0, now=LATER, most=2)
    assert [job.subject for job in queue.jobs()] == ["S4", "S1"]


def test_a_stalled_job_is_taken_again_and_counts_as_an_attempt(queue: SqlJobQueue) -> None:
    """When its lease has run out, not before; renewing puts that off."""
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
    # The first process comes back after a pause: the job is another's now.
    queue.renew(job, until=LATER + timedelta(hours=1))
    queue.give_back(job, due=LATER)
    queue.fail(job, "too late", due=None)
    assert queue.jobs() == [again]
    assert queue.due(LATER + timedelta(minutes=6))


def test_one_process_leads_and_others_wait_until_it_is_gone(queue: SqlJobQueue) -> None:
    """It may stay; another takes over when it resigns or its lease has run out."""
    minute = timedelta(minutes=1)
    assert queue.lead("a", now=LATER, until=LATER + minute)
    assert queue.lead("a", now=LATER, until=LATER + 2 * minute)
    assert not queue.lead("b", now=LATER + minute, until=LATER + 9 * minute)
    assert queue.another_leads("b", LATER)
    assert not queue.another_leads("a", LATER)
    assert queue.lead("b", now=LATER + 2 * minute, until=LATER + 3 * minute)
    queue.resign("a")
    assert not queue.lead("a", now=LATER, until=LATER + minute)
    queue.resign("b")
    assert queue.lead("a", now=LATER, until=LATER + minute)


def test_a_clock_that_was_ahead_holds_nothing_up(queue: SqlJobQueue) -> None:
    """Whatever a process wrote by it before it was killed: a lease, a job that runs, one that waits, a foreground."""
    ahead, minute = LATER + timedelta(days=3_650), timedelta(minutes=1)
    assert queue.lead("killed", now=ahead, until=ahead + minute)
    queue.announce("killed", until=ahead + minute)
    for summary in (1, 2):
        queue.put(f"S{summary}", priority=0, now=ahead, most=9)
    assert queue.take("killed", now=ahead, until=ahead + minute) is not None
    assert not queue.another_leads("me", LATER)
    assert queue.lead("me", now=LATER, until=LATER + minute)
    assert not queue.lead("other", now=LATER - timedelta(seconds=5), until=LATER)
    assert not queue.announced("me", LATER)
    assert queue.due(LATER)
    taken = [job.subject for job in iter(lambda: take(queue), None)]
    assert taken == ["S1", "S2"]


def test_what_somebody_was_at_who_resigns_waits_again(queue: SqlJobQueue) -> None:
    """At once, and it costs no attempt."""
    queue.put("S1", priority=0, now=LATER, most=9)
    assert take(queue) is not None
    queue.resign("another")
    assert take(queue) is None
    queue.resign("me")
    job = take(queue)
    assert job is not None
    assert job.attempts == 0


# The worker


def test_a_job_that_keeps_failing_waits_longer_each_time_and_is_given_up(queue: SqlJobQueue, clock: Clock) -> None:
    """With the fault of its last attempt; the others wait meanwhile as well."""
    refused = Compressed(
        text="", method="", tokens=0, source_tokens=0, verdict=TrialVerdict.FAILED, fault="refused", must_keeps=(),
        put_back=(), dropped=(), talk=Talk(),
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


def test_a_short_command_starts_no_job(queue: SqlJobQueue, clock: Clock) -> None:
    """Jobs that are offered as the memory is opened wait for two seconds."""
    runs: SimpleQueue[float] = SimpleQueue()
    work = BackgroundWork(queue, lambda job, cancelled: runs.put(time.monotonic()), clock=clock, owner="me")
    work.offer("S1", 10)
    started = time.monotonic()
    work.start()
    assert runs.get(timeout=30) - started > 1.9
    work.close()


@pytest.mark.parametrize("error", [LockTimeoutError("the database is locked"), ValueError("no such thing")])
def test_what_a_disk_refuses_is_tried_again(queue: SqlJobQueue, clock: Clock, error: Exception) -> None:
    """As what the model refuses: no fault of a moment gives a summary up, and none is lost in the log."""
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
    """It holds nothing up, and nobody is told of it; nor of one that was given up before."""
    model = ScriptedModel(first_line)
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        record_and_refresh(memory, clock)
        with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
            queue = SqlJobQueue(database)
            for summary in (998, 999):
                queue.put(f"S{summary}", priority=0, now=clock(), most=9)
                if job := take(queue) if summary == 998 else None:
                    queue.fail(job, "refused", due=None)
            while memory.compression.work():
                pass
            record_and_refresh(memory, clock, 2, first=50)
            assert queue.jobs() == []
            assert memory.get_stats()["problems"] == []


def test_a_job_whose_process_dies_each_time_is_given_up(queue: SqlJobQueue, clock: Clock) -> None:
    """What takes a process with it is not tried for ever."""
    work = BackgroundWork(queue, lambda job, cancelled: None, clock=clock, owner="me", max_attempts=2)
    work.offer("S1", 10)
    for _ in range(2):
        assert take(queue, clock.now - LATER) is not None
        clock.now += timedelta(minutes=2)
    assert work.step() == 0.0
    assert [(job.state, job.error) for job in queue.jobs()] == [
        (JobState.FAILED, "it stalled, or the process that worked at it ended")
    ]


def test_the_foreground_of_any_process_comes_first(queue: SqlJobQueue, clock: Clock) -> None:
    """A generation is interrupted, its job waits again, and nothing begins meanwhile, nor while the model is busy."""
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
    """By `redo`, or as another summary covers it; `status` names none that `redo` would refuse."""

    def named(memory: OrchestratorContextManager) -> str:
        return " ".join(str(each) for each in memory.get_stats()["problems"] if "given up" in str(each))  # type: ignore[union-attr]

    with open_memory(tmp_path, config=SMALL, clock=clock, model=FailingModel(ModelError("refused"))) as memory:
        record_and_refresh(memory, clock, 24)
        for _ in range(40):
            memory.compression.work()
            clock.now += timedelta(minutes=20)
        given_up = [each.id for each in standing(memory)]
        assert len(given_up) > 2
        assert all(f"S{number}" in named(memory) for number in given_up[:5])
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
    """What would have waited for the model waits for another start."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record_and_refresh(memory, clock)

    def refuse(*arguments: object, **named: object) -> bool:
        raise StorageFullError("there is no room")

    monkeypatch.setattr(SqlJobQueue, "put", refuse)
    with open_memory(tmp_path, config=AUTO, clock=clock, model=ScriptedModel(first_line)) as memory:
        assert standing(memory)


def test_what_is_asked_for_waits_where_the_model_does_not_answer(tmp_path: Path, clock: Clock) -> None:
    """Before all others, until it is bettered."""
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
    """`redo` is refused at once, not when the model has taken its time."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        record_and_refresh(memory, clock)
    monkeypatch.setattr(memory_module, "why_read_only", lambda home: "it is read-only")
    model = ScriptedModel(first_line)
    with open_memory(tmp_path, config=SMALL, clock=clock, model=model) as memory:
        with pytest.raises(StorageReadOnlyError):
            memory.compression.redo(1)
        assert model.prompts == []


def test_background_work_stops_within_a_token_for_the_foreground(tmp_path: Path, clock: Clock) -> None:
    """Then it goes on, and ends; the one who asks meanwhile waits for no more than that."""
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
    """One summary a call, until each has been looked at; a new process does not begin again."""
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
    """Let the model better what stands; the numbers of those that it could."""
    return [each.id for each in standing(memory) if memory.compression.redo(f"S{each.id}").verdict.good]


def test_a_better_summary_comes_in_at_an_epochs_border_only(memory: OrchestratorContextManager, clock: Clock) -> None:
    """Until then neither the document nor the context changes; its number, what it covers and its originals stay."""
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
    """The draft is dropped, and what the person made of the document stays."""
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
    """Operations do not tell their words: such a summary is not bettered, and says why."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line)) as memory:
        record(memory, clock)
        path = live(memory)
        text = text_of(memory)
        path.write_text(text.replace("I looked at module_1.py", "I, Ann, looked at module_1.py"), encoding="utf-8")
        memory.refresh()
        first = standing(memory)[0]
        assert first.edited
        assert [each.edited for each in standing(memory)[1:]] == [False] * (len(standing(memory)) - 1)
        with pytest.raises(ModelError, match=f"^S{first.id} stays as it is: people had changed"):
            memory.compression.redo(first.id)


def test_a_kill_between_ledger_and_document_is_mended(tmp_path: Path, clock: Clock) -> None:
    """The next start lets the document show what the ledger has; it does not take the old text for a person's."""
    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(first_line)) as memory:
        record_and_refresh(memory, clock)
        number = improve_all(memory)[0]
    draft = place_draft(tmp_path, number)
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        assert draft.text.strip() in text_of(memory)
        assert draft.base.strip() not in text_of(memory).replace(draft.text.strip(), "")
        memory.refresh()
        assert memory.compression.stories(memory.losses())[number - 1].draft is None


@pytest.mark.parametrize("missing", [False, True])
def test_a_draft_of_another_text_is_dropped(memory: OrchestratorContextManager, tmp_path: Path, missing: bool) -> None:
    """Of a summary that has changed, or of one that there is not."""
    with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
        drafts = SqlDraftStore(database)
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

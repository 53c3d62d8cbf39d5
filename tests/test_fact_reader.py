"""Facts read by a model: an exact quote becomes a fact like any other, anything else that it says has no effect."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks._facts import load_records, operations_of
from orchestra_mem import open_memory
from orchestra_mem.adapters.database import Database
from orchestra_mem.adapters.tokenizers import EstimateCounter
from orchestra_mem.compression.fact_reader import FactReader, facts_prompt
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.facts.extraction import find_in_operations, find_in_text, find_quoted, speech_of
from orchestra_mem.errors import ModelError
from orchestra_mem.job_types import TrialVerdict
from orchestra_mem.model_types import Message
from orchestra_mem.stores import EventLog, Ledger, TrialLog
from orchestra_mem.testing import ScriptedModel
from orchestra_mem.tiers.fact_extractor import FactExtractor
from orchestra_mem.types import MustKeep, MustKeepStatus, Operation
from tests.builders import an_operation, cases
from tests.conftest import START, Clock
from tests.memories import standing, take_out, work_all
from tests.processes import python
from tests.test_jobs import SMALL, record_and_refresh

# Texts that the classifier neither finds as facts nor rules out, so that a model may quote them.
OVERLOOKED = (
    "the narrow brush for corners", "the hinge squeaks", "we take the long way", "the tap drips at night",
    "the door sticks when it rains",
)  # fmt: skip


BENCHMARKS = Path(__file__).parents[1] / "benchmarks" / "data"
# Texts that the classifier rules out.
NO_FACTS = tuple(f"I looked at module_{n}.py and thought about part {n}." for n in range(1, 17))


def _quotable(text: str) -> bool:
    found = find_in_text(text, operation=1, timestamp=START, speaker="Ann")
    return not found and bool(find_quoted([_said(text), *map(_said, NO_FACTS)], [text])[0])


def _said(text: str) -> Operation:
    return an_operation(1, {"speaker": "Ann", "text": text}, type="message")


def _asked_for_facts(messages: Sequence[Message]) -> bool:
    return messages[0] == facts_prompt("")[0]


def _answers(*quotes: str) -> ScriptedModel:
    """A model that summarises badly and answers prompts for facts with these."""
    said = json.dumps({"facts": quotes})
    return ScriptedModel(lambda messages: said if _asked_for_facts(messages) else "no idea", name="quoter")


def _read(folder: Path, clock: Clock, model: ScriptedModel, *texts: str) -> list[MustKeep]:
    """The facts of a new memory after its background work, with `texts` as its first operations."""
    folder.mkdir()
    with open_memory(folder, config=SMALL, clock=clock, model=model) as memory:
        for text in texts:
            memory.record_operation("message", {"speaker": "Ann", "text": text})
        record_and_refresh(memory, clock)
        work_all(memory)
        assert memory.compression.queue.jobs() == []
        return memory.facts(standing=False)


def test_a_verbatim_quote_becomes_a_fact(tmp_path: Path, clock: Clock) -> None:
    """An exact quote becomes one fact of the classifier's kind, under its operation, however often it is quoted.

    The model reads control tokens escaped, so that a record cannot speak as another role, and quotes them as it reads.
    """
    text = f"{next(filter(_quotable, OVERLOOKED))} [INST]"
    model = _answers(*[neutralise(text)] * 2)
    before = {fact.text for fact in _read(tmp_path / "without", clock, _answers(), text, *NO_FACTS)}
    found = [fact for fact in _read(tmp_path / "with", clock, model, text, *NO_FACTS) if fact.text not in before]
    assert [(fact.text, fact.operation) for fact in found] == [(text, 1)]
    assert "[INST]" not in str(model.prompts)


@pytest.mark.parametrize("quoted", [lambda lines: lines, lambda lines: lines[:6], lambda lines: lines[::2]])
def test_a_model_that_quotes_without_judging_adds_next_to_nothing(quoted: Callable[[list[str]], list[str]]) -> None:
    """Of a model that quotes all, the first or every other sentence, under one quote in thirty becomes a new fact."""
    made = added = 0
    for record in load_records(BENCHMARKS / "facts.jsonl", "test"):
        operations = [operation for operation, _ in operations_of(record)]
        quotes = quoted("\n".join(map(speech_of, operations)).splitlines())
        known = {fact.text for facts in find_in_operations(operations) for fact in facts}
        new = {fact.text for facts in find_quoted(operations, quotes) for fact in facts} - known
        made, added = made + len(quotes), added + len(new)
    assert made > 500
    assert added <= made / 30


@pytest.mark.parametrize("said", cases("a_model_that_lies_adds_nothing"))
def test_a_model_that_lies_adds_nothing(tmp_path: Path, clock: Clock, said: str) -> None:
    """No fact is added by answers that are not JSON, of a wrong shape or kind, or quote what nobody said."""
    model = ScriptedModel(lambda messages: said if _asked_for_facts(messages) else "no idea")
    with_model = _read(tmp_path / "with", clock, model, "Never push to main.")
    without = _read(tmp_path / "without", clock, _answers(), "Never push to main.")
    assert any(map(_asked_for_facts, model.prompts))
    assert [(fact.kind, fact.text) for fact in with_model] == [(fact.kind, fact.text) for fact in without]


def test_what_a_person_took_out_is_not_found_again(tmp_path: Path, clock: Clock) -> None:
    """A fact that a person removed from a document stays removed even if the model quotes it."""
    text = "Never push to main."
    with open_memory(tmp_path, config=SMALL, clock=clock, model=_answers(text)) as memory:
        memory.record_operation("message", {"speaker": "Ann", "text": text})
        record_and_refresh(memory, clock)
        path = next(path for path in (tmp_path / ".obra" / "memory").glob("*.md") if text in path.read_text("utf-8"))
        take_out(path, text)
        memory.refresh()
        work_all(memory)
        assert [fact.status for fact in memory.facts(standing=False) if fact.text == text] == [MustKeepStatus.REMOVED]


def test_reading_goes_on_where_it_was_interrupted(tmp_path: Path, clock: Clock) -> None:
    """After an interruption only the interrupted prompt is sent again; a finished reading sends no prompt."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for part in range(20):
            memory.record_operation("message", {"speaker": "Ann", "text": f"We talked of part {part}. " * 30})
        memory.refresh()
        number = min(each.id for each in standing(memory))
    with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
        model = _answers()
        reader = _reader(database, model, clock)
        with pytest.raises(InterruptedGenerationError):
            reader.read(number, cancelled=lambda: len(model.prompts) >= 2)
        assert len(model.prompts) == 2
        reader.read(number, cancelled=lambda: False)
        asked = list(model.prompts)
        assert len(asked) > 2
        assert len(set(asked)) >= len(asked) - 1  # only the interrupted prompt is sent again
        reader.read(number, cancelled=lambda: False)
        assert model.prompts == asked


@pytest.mark.parametrize("added", [0, 1])
def test_a_model_that_adds_next_to_nothing_reads_less_in_the_next_process_too(
    tmp_path: Path, clock: Clock, added: int
) -> None:
    """A model that adds facts to at most one summary in six reads one in eight, also in a memory opened again."""
    with open_memory(tmp_path, config=SMALL, clock=clock) as memory:
        for text in [*filter(_quotable, OVERLOOKED)][:added]:
            memory.record_operation("message", {"speaker": "Ann", "text": "\n".join((*NO_FACTS, text))})
        for part in range(120):
            memory.record_operation("message", {"speaker": "Ann", "text": f"We talked of part {part}. " * 33})
        memory.refresh()
        covered = [each.id for each in memory.losses() if not each.children]
    assert len(covered) > 14
    read = []
    with closing(Database(tmp_path / ".obra" / "obra.db")) as database:
        for number in covered:
            model = ScriptedModel(_quotes_all, name="quoter")
            _reader(database, model, clock, TrialLog(database)).read(number, cancelled=lambda: False)
            read.append(bool(model.prompts))
        verdicts = [trial.verdict for trial in TrialLog(database).trials(limit=99)]
    assert [place for place, asked in enumerate(read) if asked] == [*range(6), *range(13, len(covered), 8)]
    assert verdicts.count(TrialVerdict.ACCEPTED) == added


def _reader(database: Database, model: ScriptedModel, clock: Clock, trials: TrialLog | None = None) -> FactReader:
    facts = FactExtractor(EventLog(database), Ledger(database))
    return FactReader(model, facts, counter=EstimateCounter(), clock=clock, timeout_s=10, trials=trials)


@pytest.mark.parametrize("fault", ["the foreground", "the model"])
def test_a_reading_that_ends_early_is_taken_up_and_the_summary_is_made_once(
    tmp_path: Path, clock: Clock, fault: str
) -> None:
    """A reading that is interrupted or fails is repeated: no fact is lost, and each summary is tried once."""
    text = next(filter(_quotable, OVERLOOKED))
    faults = [fault] * 2

    def answer(messages: Sequence[Message]) -> str:
        if _asked_for_facts(messages) and faults:
            if faults.pop() == "the model":
                raise ModelError("refused")
            held.enter_context(memory.foreground())
        return _quotes_all(messages)

    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(answer)) as memory, ExitStack() as held:
        memory.record_operation("message", {"speaker": "Ann", "text": text})
        record_and_refresh(memory, clock)
        for _ in range(40):
            memory.compression.work()
            held.close()
            clock.now += timedelta(minutes=20)
        tried = [trial.subject for trial in memory.compression.trials.trials(limit=99) if trial.subject]
        assert len(set(tried)) == len(tried) > 1
        assert text in [fact.text for fact in memory.facts(standing=False)]
        assert memory.compression.queue.jobs() == []


@pytest.mark.parametrize("merged", [False, True])
def test_redo_takes_up_a_reading_that_was_given_up(tmp_path: Path, clock: Clock, merged: bool) -> None:
    """`redo` reads the operations of a summary for facts as well, even if it was merged into another meanwhile."""
    text, refuses = next(filter(_quotable, OVERLOOKED)), [True]

    def answer(messages: Sequence[Message]) -> str:
        if _asked_for_facts(messages) and refuses:
            raise ModelError("refused")
        return _quotes_all(messages)

    with open_memory(tmp_path, config=SMALL, clock=clock, model=ScriptedModel(answer)) as memory:
        queue = memory.compression.queue
        memory.record_operation("message", {"speaker": "Ann", "text": text})
        record_and_refresh(memory, clock)
        first = min(each.id for each in standing(memory))
        for _ in range(40):
            memory.compression.work()
            clock.now += timedelta(minutes=20)
        assert f"S{first}" in [job.subject for job in queue.jobs()]
        with pytest.raises(ModelError, match=f"^S{first} .* reading it for facts failed: refused"):
            memory.compression.redo(first)
        assert f"S{first}" in [job.subject for job in queue.jobs()]
        if merged:
            while not memory.losses()[0].parent:
                record_and_refresh(memory, clock, 24, first=100)
            queue.put(f"S{first}", priority=0, now=clock(), most=99)
        refuses.clear()
        with pytest.raises(ModelError, match=r"merged into S.*; its operations were read") if merged else nullcontext():
            memory.compression.redo(first)
        assert text in [fact.text for fact in memory.facts(standing=False)]
        assert f"S{first}" not in [job.subject for job in queue.jobs()]


def _quotes_all(messages: Sequence[Message]) -> str:
    """Quote all overlooked sentences that the prompt contains."""
    quotes = [text for text in OVERLOOKED if text in messages[-1].text]
    return json.dumps({"facts": quotes}) if _asked_for_facts(messages) else "no idea"


def test_a_kill_half_way_doubles_nothing(tmp_path: Path, clock: Clock) -> None:
    """After a kill the next process reads the summary's operations again; its facts equal those of a complete run."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    with open_memory(killed, config=SMALL, clock=clock) as memory:
        for text in filter(_quotable, OVERLOOKED):
            memory.record_operation("message", {"speaker": "Ann", "text": "\n".join((*NO_FACTS, text))})
        record_and_refresh(memory, clock)
        first = min(each.id for each in standing(memory))
        memory.compression.queue.put(f"S{first}", priority=0, now=clock(), most=99)
    shutil.copytree(killed, whole)
    program = (
        "import os, signal, sys; from datetime import datetime; from pathlib import Path\n"
        "from orchestra_mem import open_memory; from orchestra_mem.testing import ScriptedModel\n"
        "from tests.test_fact_reader import SMALL, _asked_for_facts, _quotes_all\n"
        "def answer(messages):\n"
        "    if sum(map(_asked_for_facts, model.prompts)) > 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return _quotes_all(messages)\n"
        "model, now = ScriptedModel(answer), datetime.fromisoformat(sys.argv[2])\n"
        "memory = open_memory(Path(sys.argv[1]), config=SMALL, clock=lambda: now, model=model)\n"
        "while memory.compression.work(): pass\n"
    )
    python(program, killed, clock().isoformat(), status=-signal.SIGKILL)
    clock.now += timedelta(minutes=5)
    found, asked = [], []
    for folder in (killed, whole):
        with open_memory(folder, config=SMALL, clock=clock, model=(model := ScriptedModel(_quotes_all))) as memory:
            found.append([(fact.operation, fact.kind, fact.text) for fact in memory.facts(standing=False)])
            work_all(memory)
            found.append([(fact.operation, fact.kind, fact.text) for fact in memory.facts(standing=False)])
        asked.append(list(filter(_asked_for_facts, model.prompts)))
    half, killed_facts, before, whole_facts = found
    assert len(before) < len(half) < len(whole_facts)
    assert sorted(killed_facts) == sorted(whole_facts)
    assert asked[0] == asked[1]

"""MemoryCompressor: summaries are short, keep every must-keep, and are never worse than without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra_mem.adapters.database import Database
from orchestra_mem.compression.compressor import VERBATIM, MemoryCompressor
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.facts.extraction import find_in_operations
from orchestra_mem.core.prompts import SESSION_KEYS
from orchestra_mem.core.summaries.drafts import Draft, Material, Source, check, draft_of
from orchestra_mem.core.summaries.kept import body_of
from orchestra_mem.core.text import split_sentences, squeeze
from orchestra_mem.errors import ModelError
from orchestra_mem.job_types import Trial, TrialVerdict
from orchestra_mem.model_types import Message
from orchestra_mem.stores import TrialLog
from orchestra_mem.testing import FailingModel, FaithfulModel, ScriptedModel
from orchestra_mem.types import EXTRACTIVE, Json, Operation
from tests.builders import Counter, an_operation
from tests.conftest import START, Clock

WORDS = Counter("words", lambda text: len(text.split()), additive=True, exact=True)


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[TrialLog]:
    """An empty trial log."""
    with closing(Database(tmp_path / "obra.db")) as database:
        yield TrialLog(database)


def operation(number: int, data: Json, kind: str = "step", *, critical: bool = False) -> Operation:
    """An operation `number` minutes after the start."""
    time = START + timedelta(minutes=number)
    return an_operation(number, data, type=kind, timestamp=time, critical=critical)


def work(count: int) -> list[Operation]:
    """Steps: extraction takes their prose, and omits most of a tool's output."""
    found = []
    for n in range(1, count + 1):
        said = (
            f"I looked at module_{n}.py for a while and thought about it. "
            f"It reads the last row of table_{n} twice because the cursor of part {n} is opened too early. "
            f"Then I moved the call in src/part_{n}/rows.py behind the loop."
        )
        printed = "\n".join(f"tests/test_{n}_{k}.py::test_row_{k} PASSED {k * n} ms" for k in range(1, 9))
        found.append(operation(2 * n - 1, {"text": said}))
        found.append(operation(2 * n, {"tool": "bash", "output": printed}))
    return found


def compressor(model: ScriptedModel | None = None, trials: TrialLog | None = None) -> MemoryCompressor:
    """A compressor that counts words as tokens."""
    return MemoryCompressor(model, counter=WORDS, clock=Clock(), trials=trials, timeout_s=5)


def drafted(operations: Sequence[Operation], target_tokens: int) -> tuple[Material, Draft]:
    """The material of operations, and its extract within a number of words."""
    sources = [
        Source(
            operation=op.id, time=op.timestamp, type=op.type, text=plain_text(op), tokens=len(plain_text(op).split())
        )
        for op in operations
    ]
    facts = [fact for found in find_in_operations(operations) for fact in found]
    material = Material.of_operations(sources, facts, numbered=False)
    return material, draft_of(material, target_tokens=target_tokens, counter=WORDS)


def test_without_a_model_it_is_extraction() -> None:
    """Without a model the summary is an extract within its target, lists must-keeps, and names what it dropped."""
    operations = [*work(6), operation(13, {"text": "Never deploy module_3.py on Fridays."})]
    done = compressor().compress_operations(operations, 90)
    assert (done.method, done.verdict, done.fault) == (EXTRACTIVE, TrialVerdict.SKIPPED, "")
    assert 0 < done.tokens <= 90 < done.source_tokens
    assert "- Constraint: Never deploy module_3.py on Fridays." in str(done)
    assert "tests/test_1_1.py" in done.dropped
    assert done.ratio == done.tokens / done.source_tokens


def test_what_is_short_already_stays_as_it_is() -> None:
    """Operations that are within the target are not summarised, but listed verbatim."""
    short = [operation(1, {"text": "The oven is on."}), operation(2, {"text": "Never open it."})]
    lines = "- [2025-01-15 10:01] step: The oven is on.\n- [2025-01-15 10:02] step: Never open it.\n"
    done = compressor(good()).compress_operations(short, 500)
    assert (done.text, done.method) == (lines, VERBATIM)


def test_critical_operations_stand_word_for_word() -> None:
    """Critical operations follow the summary verbatim, unless `preserve_critical` is off."""
    operations = [*work(6), operation(13, {"status": "failed", "error": "exit code 2 in src/a.py"}, critical=True)]
    done = compressor().compress_operations(operations, 60)
    assert (
        "Critical operations:\n\n- [2025-01-15 10:13] step: Status: failed Error: exit code 2 in src/a.py\n"
        in done.text
    )
    assert done.tokens == WORDS.count(done.text)
    assert done.source_tokens > compressor().compress_operations(operations[:-1], 60).source_tokens + 9
    assert "Critical operations" not in compressor().compress_operations(operations, 60, preserve_critical=False).text
    alone = compressor().compress_operations(operations[-1:], 5)
    assert (alone.method, alone.text.count("exit code 2")) == (VERBATIM, 1)
    assert compressor().compress_operations([], 5).text == ""


def printed(messages: Sequence[Message]) -> str:
    """The answer of a good model: lines of a tool's output, which extraction mostly omits."""
    lines = [line for line in messages[3].text.splitlines() if "PASSED" in line]
    return json.dumps({"lines": [line.removeprefix("Output: ") for line in lines[-3:]]})


def good() -> ScriptedModel:
    """A model that answers with `printed`."""
    return ScriptedModel(printed, name="good")


@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(
            [
                '{"lines": ["reads the last row of table_2 twice"]}',
                '{"lines": ["looked at module_1.py", "table_9 is lost", "tests/test_1_2.py::test_row_2 PASSED"]}',
                '{"lines": ["the cursor of part 3 is opened too early", "moved the call behind the loop"]}',
                '{"lines": []}',
                "All tasks are done.",
                '{"lines": "no"}',
            ]
        ),
        min_size=1,
    ),
    st.integers(40, 400),
)
def test_a_model_never_makes_a_summary_worse(answers: list[str], target: int) -> None:
    """Whatever a model answers, the summary is no larger, invents nothing, and keeps must-keeps and the extract."""
    told = iter(answers * 50)
    operations = [*work(5), operation(11, {"text": "We decided to use SQLite for table_4."}, "decision")]
    material, base = drafted(operations, target)
    model = ScriptedModel(lambda messages: next(told))
    done = compressor(model).improve(material, base, target_tokens=target, content="step")
    assert done.tokens <= max(target, base.tokens)
    assert check(material, done.text, WORDS).invented == ()
    assert all(squeeze(fact.text) in squeeze(done.text) for fact in material.facts)
    assert set(body_of(base.text).splitlines()) <= set(body_of(done.text).splitlines())


def test_a_fault_is_named_and_asked_for_once_more() -> None:
    """A rejected answer is sent back with its fault, and a good second answer is accepted as `RETRIED`."""

    def answer(messages: Sequence[Message]) -> str:
        if "Not so:" in messages[-1].text:
            return json.dumps({"lines": ["tests/test_1_7.py::test_row_7 PASSED 7 ms"]})
        return json.dumps({"lines": ["module_77.py is broken"]})

    model = ScriptedModel(answer)
    material, base = drafted(work(1), 20)
    done = compressor(model).improve(material, base, target_tokens=60, content="step")
    assert done.verdict is TrialVerdict.RETRIED
    assert done.fault == 'the record has no "module_77.py"'
    assert "tests/test_1_7.py::test_row_7 PASSED 7 ms" in done.text
    assert "module_77" not in done.text
    assert done.talk.invented == 1


def test_a_prompt_longer_than_the_window_is_divided_and_none_of_it_is_lost() -> None:
    """A text longer than the model's window is split: each sentence is in a prompt, each prompt has room to answer."""
    sentences = [f"Sentence number {n} says that value_{n} was measured and written down." for n in range(60)]
    model = ScriptedModel('{"lines": []}', context_tokens=620)
    material, base = drafted([operation(1, {"text": "\n\n".join(sentences)})], 30)
    compressor(model).improve(material, base, target_tokens=300, content="step")
    read = "\n".join(prompt[3].text for prompt in model.prompts)
    assert len(model.prompts) > 1
    assert all(sentence in read for passage in material.passages for sentence in split_sentences(passage.text))
    assert sum(sentence in read for sentence in sentences) >= 40
    assert all(model.count_prompt(prompt) + 220 <= 620 for prompt in model.prompts)


def test_a_full_answer_about_a_session_is_not_cut_off() -> None:
    """An answer with three long sentences in each of the four lists of a session is returned complete."""
    said = [f"Part {n} of src/part_{n}.py " + f"reads row {n} again and " * 5 + "stops." for n in range(12)]
    answer = dict(zip(SESSION_KEYS, (said[:3], said[3:6], said[6:9], said[9:]), strict=True))
    model = ScriptedModel(json.dumps(answer))
    assert compressor(model).summarize_session({}, [operation(1, {"text": " ".join(said)})]) == answer


def test_an_interrupted_summary_goes_on_where_it_was() -> None:
    """A summary that was interrupted continues: at most one prompt is sent again."""
    model = good()
    material, base = drafted(work(24), 100)
    made = compressor(model)
    with pytest.raises(InterruptedGenerationError):
        made.improve(material, base, target_tokens=900, content="step", cancelled=lambda: len(model.prompts) >= 2)
    first = {prompt[-1].text for prompt in model.prompts}
    assert made.improve(material, base, target_tokens=900, content="step").verdict is TrialVerdict.ACCEPTED
    asked = [prompt[-1].text for prompt in model.prompts]
    assert len(asked) <= len(set(asked)) + 1
    assert first <= set(asked)


def test_where_a_model_fails_extraction_goes_first_and_it_is_tried_now_and_then(trials: TrialLog) -> None:
    """After six rejected summaries of a content type, the model is asked for one in eight; other types as before."""
    made = compressor(ScriptedModel("no JSON"), trials)
    material, base = drafted(work(3), 40)

    def tried(content: str, *, insist: bool = False) -> TrialVerdict:
        return made.improve(material, base, target_tokens=90, content=content, insist=insist).verdict

    assert {tried("step") for _ in range(6)} == {TrialVerdict.REJECTED}
    verdicts = [tried("step") for _ in range(16)]
    assert [place for place, verdict in enumerate(verdicts) if verdict is not TrialVerdict.SKIPPED] == [7, 15]
    assert tried("note") is TrialVerdict.REJECTED
    assert tried("step", insist=True) is TrialVerdict.REJECTED
    assert trials.trials(limit=1)[0].fault == "the answer is no JSON, or does not end"


def test_two_minutes_for_nothing_are_enough(trials: TrialLog) -> None:
    """A model that took two minutes for a type of content is asked seldom, unless one of its answers was used."""
    material, base = drafted(work(3), 40)

    def tried() -> TrialVerdict:
        return compressor(good(), trials).improve(material, base, target_tokens=90, content="step").verdict

    slow = Trial(
        time=START, model="good", content="step", subject="S1", verdict=TrialVerdict.REJECTED, fault="no JSON",
        seconds=60.0, prompt_tokens=0, answer_tokens=0,
    )  # fmt: skip
    trials.add(slow)
    trials.add(slow)
    assert tried() is TrialVerdict.SKIPPED
    trials.add(replace(slow, verdict=TrialVerdict.ACCEPTED))
    assert tried().good


def test_summaries_without_room_for_lines_are_no_trials(trials: TrialLog) -> None:
    """A model that has mostly failed is not asked sooner because summaries without room came between."""
    made = compressor(ScriptedModel("no JSON"), trials)
    material, base = drafted(work(3), 40)

    def tried(room: int) -> TrialVerdict:
        return made.improve(material, base, target_tokens=base.tokens + room, content="step").verdict

    assert {tried(50) for _ in range(6)} == {TrialVerdict.REJECTED}
    verdicts = [tried(room) for _ in range(8) for room in (*[0] * 20, 50)]
    assert [place for place, verdict in enumerate(verdicts) if verdict is not TrialVerdict.SKIPPED] == [167]


def test_a_model_that_could_not_be_had_for_a_while_is_no_worse_for_it(trials: TrialLog) -> None:
    """A model that was unreachable is asked again as before; one that was too slow each time is skipped."""
    material, base = drafted(work(3), 40)

    def tried(model: ScriptedModel, content: str) -> TrialVerdict:
        return compressor(model, trials).improve(material, base, target_tokens=90, content=content).verdict

    gone = FailingModel(ModelError("cannot be reached"), name="good")
    assert {tried(gone, "step") for _ in range(9)} == {TrialVerdict.FAILED}
    assert tried(good(), "step").good
    for trial in [trial for trial in trials.trials(limit=20) if not trial.verdict.good]:
        trials.add(replace(trial, content="note", seconds=300.0))
    assert tried(good(), "note") is TrialVerdict.SKIPPED


def test_a_text_is_summarised_level_by_level() -> None:
    """The first level is the text, each further one at most half as long; an empty text has one level."""
    text = "\n\n".join(str(op.data["text"]) for op in work(8) if isinstance(op.data, dict) and "text" in op.data)
    found = compressor(FaithfulModel()).hierarchical_summarize(text, levels=4)
    assert found[0] == text
    counts = [WORDS.count(each) for each in found]
    assert len(found) == 4
    assert all(after <= before // 2 + 1 for before, after in pairwise(counts))
    assert compressor().hierarchical_summarize("", levels=3) == [""]

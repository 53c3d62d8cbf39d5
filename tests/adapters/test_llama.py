"""A real model in this process: its answers, early ends, prompt cache, loading, and every failure."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel, trial
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, LanguageModel, Message, Role
from tests.processes import python
from tests.timing import until

pytestmark = pytest.mark.slow

SENTENCE = "The ferry leaves the old harbour at seven and comes back at noon. "
COLOURS = [Message(role=Role.USER, text="Name the three colours of a traffic light.")]
LONG = [Message(role=Role.USER, text=SENTENCE * 28)]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 30},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 10}, "maxItems": 2},
    },
    "required": ["title", "count", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def qwen(qwen_gguf: Path) -> Iterator[LlamaModel]:
    """A model that answers sensibly, shared by the tests that need this, on one thread."""
    model = LlamaModel(GgufVocabulary(qwen_gguf), context_tokens=2_048, threads=1)
    yield model
    model.close()


@pytest.fixture(scope="module")
def reader(smollm_gguf: Path) -> Iterator[LlamaModel]:
    """A smaller model shared by the tests for which it does not matter what is answered: it reads faster."""
    model = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=2_048, threads=1)
    yield model
    model.close()


@pytest.fixture
def small(smollm_gguf: Path) -> Iterator[LlamaModel]:
    """A smaller model, new for each test."""
    model = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=1_024, threads=1)
    yield model
    model.close()


@pytest.fixture
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache of trials, so that no file counts as tried before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# Answers


def test_it_answers_as_the_port_says(qwen: LlamaModel) -> None:
    """A model is named after its file, counts prompts as it reads them, and repeats its likeliest answer."""
    model: LanguageModel = qwen
    assert model.name == "qwen2.5-coder-0.5b-instruct-q4_k_m"
    assert model.context_tokens == 2_048
    said = model.generate(COLOURS, max_tokens=40)
    assert said.finish is Finish.STOP
    assert all(colour in said.text.lower() for colour in ("red", "yellow", "green"))
    assert "<|im_end|>" not in said.text
    assert said.prompt_tokens == model.count_prompt(COLOURS)
    assert 5 < said.answer_tokens < 40
    assert said.prompt_s > 0 < said.answer_s
    assert model.generate(COLOURS, max_tokens=40).text == said.text


def test_a_child_process_is_refused_at_once(small: LlamaModel) -> None:
    """A forked child is refused at once, since it lacks the model's thread; the parent goes on."""
    said = small.generate(COLOURS, max_tokens=2).text
    if (child := os.fork()) == 0:
        try:
            small.generate(COLOURS, max_tokens=2, timeout_s=5)
        except ModelError as error:
            os._exit(7 if "before a fork" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert small.generate(COLOURS, max_tokens=2).text == said


def test_an_answer_ends_where_its_room_does(qwen: LlamaModel, smollm_gguf: Path) -> None:
    """An answer ends at `max_tokens` and at the end of the context window."""
    said = qwen.generate(COLOURS, max_tokens=3)
    assert (said.finish, said.answer_tokens) == (Finish.LENGTH, 3)
    with closing(LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=128, threads=1)) as small:
        prompt = [Message(role=Role.USER, text=SENTENCE * 4)]
        endless: dict[str, Any] = {"type": "string", "minLength": 5_000}
        said = small.generate(prompt, max_tokens=400, schema=endless)
    assert said.prompt_tokens > 70
    assert (said.finish, said.prompt_tokens + said.answer_tokens) == (Finish.LENGTH, 128)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_an_answer_obeys_a_schema(qwen: LlamaModel, temperature: float) -> None:
    """A grammar makes the answer obey its schema at any temperature."""
    ask = [Message(role=Role.USER, text="Describe the sea as JSON with title, count and tags.")]
    said = qwen.generate(ask, max_tokens=120, schema=SCHEMA, temperature=temperature, seed=7)
    assert said.finish is Finish.STOP
    found = json.loads(said.text)
    assert list(found) == ["title", "count", "tags"]
    assert isinstance(found["count"], int)
    assert len(found["title"]) <= 30
    assert len(found["tags"]) <= 2


def test_a_schema_that_no_grammar_can_be_made_of_is_told(qwen: LlamaModel) -> None:
    """A schema that cannot become a grammar is an error."""
    with pytest.raises(ModelError, match=r"^the JSON schema cannot be converted to a grammar: "):
        qwen.generate(COLOURS, max_tokens=3, schema={"type": "colour"})


def test_what_was_read_is_not_read_again(reader: LlamaModel) -> None:
    """A prompt reprocesses only what follows the prefix it shares with the previous prompt and answer."""
    system = Message(role=Role.SYSTEM, text=SENTENCE * 5)
    asked = Message(role=Role.USER, text="When does it leave?")
    first = reader.generate([system, asked], max_tokens=8)
    again = reader.generate([system, asked], max_tokens=8)
    assert again.evaluated_tokens == 1
    assert again.text == first.text
    grown = [system, asked, Message(role=Role.ASSISTANT, text=first.text), Message(role=Role.USER, text="And then?")]
    said = reader.generate(grown, max_tokens=2)
    assert said.evaluated_tokens <= reader.count_prompt(grown) - first.prompt_tokens
    turned = reader.generate([asked, system], max_tokens=2)
    assert turned.evaluated_tokens > turned.prompt_tokens // 2


def test_two_talks_are_kept_side_by_side(reader: LlamaModel) -> None:
    """Two conversations stay in the prompt cache; a third evicts the one that was used longest ago."""

    def talk(about: str, question: str) -> list[Message]:
        return [Message(role=Role.SYSTEM, text=about * 4), Message(role=Role.USER, text=question)]

    mine, behind, third = SENTENCE, "A record of the tests lies beside the log. ", "Nobody has painted the lighthouse. "
    alone = [reader.generate(talk(mine, each), max_tokens=6).text for each in ("When?", "Where?")]
    for question, text in zip(("When?", "Where?"), alone, strict=True):
        reader.generate(talk(behind, f"{question} And {question}"), max_tokens=5)
        said = reader.generate(talk(mine, question), max_tokens=6)
        assert said.evaluated_tokens < 20
        assert said.text == text
    assert reader.generate(talk(behind, "Why?"), max_tokens=2).evaluated_tokens < 20
    assert reader.generate(talk(third, "Why?"), max_tokens=2).evaluated_tokens > 30
    assert reader.generate(talk(behind, "Who?"), max_tokens=2).evaluated_tokens < 20
    assert reader.generate(talk(mine, "Who?"), max_tokens=2).evaluated_tokens > 30


def test_a_cancelled_call_leaves_the_cache_as_it_is(small: LlamaModel) -> None:
    """A call cancelled while it waits for its turn leaves the prompt cache unchanged."""
    kept, ahead, waiting = ([Message(role=Role.SYSTEM, text=f"{text} " * 9)] for text in ("Rain.", "Sun.", "Snow."))
    small.generate(kept, max_tokens=1)
    with ThreadPoolExecutor(1) as threads:
        answering = threads.submit(small.generate, ahead, max_tokens=30, schema={"type": "string", "minLength": 200})
        time.sleep(0.2)  # if the next call comes first, it is cancelled as well
        assert small.generate(waiting, max_tokens=1, cancelled=lambda: True).finish is Finish.CANCELLED
        assert answering.result().answer_tokens == 30
    assert small.generate(kept, max_tokens=1).evaluated_tokens == 1


def test_each_talk_has_the_whole_window(smollm_gguf: Path) -> None:
    """Each conversation may use the full window: the older one is evicted if both are too long together."""
    small = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=128, threads=1)
    long = SENTENCE * 5
    try:
        for start in ("One. ", "Two. ", "Three. ", "One. "):
            said = small.generate([Message(role=Role.SYSTEM, text=start * 6 + long)], max_tokens=3)
            assert 85 < said.prompt_tokens < 125
            assert said.answer_tokens > 0
    finally:
        small.close()


# Ending early


def test_it_stops_between_tokens(reader: LlamaModel) -> None:
    """A cancelled answer stops between tokens and returns what was generated."""
    asked = 0

    def enough() -> bool:
        nonlocal asked
        asked += 1
        return asked > 12

    said = reader.generate(COLOURS, max_tokens=60, cancelled=enough)
    whole = reader.generate(COLOURS, max_tokens=60)
    assert said.finish is Finish.CANCELLED
    assert said.answer_tokens < whole.answer_tokens
    assert whole.text.startswith(said.text)


def test_it_stops_within_a_prompt(reader: LlamaModel) -> None:
    """Cancelling stops the reading of a prompt soon, and the part already read is not read again."""
    first = reader.generate([Message(role=Role.USER, text="Wind. " * 60)], max_tokens=1)
    a_while_s = 200 * first.prompt_s / first.evaluated_tokens
    begun = time.monotonic()
    stopped: list[float] = []

    def enough() -> bool:
        if time.monotonic() > begun + a_while_s:
            stopped.append(time.monotonic())
        return bool(stopped)

    said = reader.generate(LONG, max_tokens=1, cancelled=enough)
    assert time.monotonic() - stopped[0] < 1.5
    assert (said.finish, said.text) == (Finish.CANCELLED, "")
    assert 0 < said.evaluated_tokens < said.prompt_tokens == reader.count_prompt(LONG)
    # The template's beginning was already read with the previous prompt.
    kept = reader.generate(LONG, max_tokens=1)
    assert 0 <= kept.prompt_tokens - said.evaluated_tokens - kept.evaluated_tokens < 40


def test_it_gives_up_when_time_is_up(reader: LlamaModel) -> None:
    """A generation that exceeds its time raises an error, and the model keeps working."""
    with pytest.raises(ModelError) as told:
        reader.generate([Message(role=Role.USER, text="Other " + SENTENCE * 90)], max_tokens=5, timeout_s=0.25)
    assert str(told.value) == f"{reader.name} timed out after 0.25 s, 0 tokens into its answer"
    assert reader.generate(COLOURS, max_tokens=2).answer_tokens == 2


def test_an_error_of_the_callers_is_the_callers(reader: LlamaModel) -> None:
    """An exception of the caller's `cancelled` is passed on, and the next call is answered completely."""
    calls = 0

    def broken() -> bool:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KeyError("theirs")
        return False

    said = reader.generate(COLOURS, max_tokens=8).text
    with pytest.raises(KeyError, match="theirs"):
        reader.generate([Message(role=Role.USER, text="Another " + SENTENCE * 50)], max_tokens=5, cancelled=broken)
    assert reader.generate(COLOURS, max_tokens=8).text == said


def test_a_prompt_longer_than_the_window_is_refused(small: LlamaModel) -> None:
    """A prompt longer than the window is refused, with both lengths."""
    tokens = small.count_prompt([Message(role=Role.USER, text=SENTENCE * 200)])
    with pytest.raises(ModelError) as told:
        small.generate([Message(role=Role.USER, text=SENTENCE * 200)], max_tokens=5)
    assert str(told.value) == (
        f"the prompt has {tokens:,} tokens, but the window of {small.name} has 1,024: split the prompt, or "
        "raise llm.context_tokens"
    )


# Loading, sharing, unloading


def test_counting_needs_no_weights(small: LlamaModel, smollm_gguf: Path) -> None:
    """Counting, and the window (at most the trained one), need no loaded weights."""
    assert small.count_prompt(COLOURS) > 20
    assert small.where == "on 1 thread, trained for 8,192 tokens"
    with closing(LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=1_000_000)) as wide:
        assert wide.context_tokens == 8_192
        assert not small.loaded
        assert not wide.loaded


def test_it_is_let_go_when_idle_and_loaded_again(smollm_gguf: Path, tmp_path: Path) -> None:
    """An idle or closed model is unloaded and still counts; generating loads it again, or fails if the file is gone."""
    path = tmp_path / "model.gguf"
    path.symlink_to(smollm_gguf)
    model = LlamaModel(GgufVocabulary(path), context_tokens=512, threads=1, idle_unload_s=0.3)
    expected = model.count_prompt(COLOURS)
    for let_go in (lambda: until(lambda: not model.loaded), model.close):
        assert model.generate(COLOURS, max_tokens=2).answer_tokens == 2
        let_go()
        assert not model.loaded
        assert model.count_prompt(COLOURS) == expected
        path.unlink()
        with pytest.raises(ModelError, match=r" does not exist; "):
            model.generate(COLOURS, max_tokens=2)
        path.symlink_to(smollm_gguf)


def test_threads_share_it(small: LlamaModel) -> None:
    """Threads share a model one at a time, and each gets its own answer; a cancelled waiter gets none."""
    texts = ["red", "blue", "green"]
    asks = [[Message(role=Role.USER, text=f"Say {text}.")] for text in texts]
    alone = [small.generate(ask, max_tokens=8).text for ask in asks]
    with ThreadPoolExecutor(4) as threads:
        refused = threads.submit(small.generate, asks[0], max_tokens=8, cancelled=lambda: True)
        together = list(threads.map(lambda ask: small.generate(ask, max_tokens=8).text, asks * 2))
    assert together == alone * 2
    assert (refused.result().finish, refused.result().text) == (Finish.CANCELLED, "")


def test_it_is_quiet(smollm_gguf: Path) -> None:
    """A model prints nothing to stdout or stderr."""
    code = (
        "import sys, logging\n"
        "from pathlib import Path\n"
        "from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel\n"
        "from orchestra_mem.model_types import Message, Role\n"
        "assert 'llama_cpp' not in sys.modules and 'jinja2' not in sys.modules\n"
        "model = LlamaModel(GgufVocabulary(Path(sys.argv[1])), context_tokens=512, threads=1)\n"
        "model.generate([Message(role=Role.USER, text='Hello')], max_tokens=2)\n"
        "model.close()\n"
    )
    done = python(code, smollm_gguf)
    assert (done.stdout, done.stderr) == ("", "")


# How its threads wait


def test_threads_sleep_while_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp's threads sleep while they wait; a user's `OMP_WAIT_POLICY=active` is kept."""
    code = "import os, sys; from orchestra_mem.adapters.llama.library import load_library; load_library(); "
    code += "print(os.environ['OMP_WAIT_POLICY'])"
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert python(code).stdout == "passive\n"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert python(code).stdout == "active\n"


# Failures


def _refusal(path: Path, **options: Any) -> str:
    with closing(LlamaModel(GgufVocabulary(path), threads=1, **options)) as model, pytest.raises(ModelError) as told:
        model.generate(COLOURS, max_tokens=1)
    return str(told.value)


@pytest.mark.usefixtures("nothing_known")
def test_files_that_are_no_models_are_told(tmp_path: Path, smollm_gguf: Path) -> None:
    """A path that is missing, no regular file, no GGUF, damaged or incomplete is refused with its reason."""
    missing = tmp_path / "missing.gguf"
    assert (
        _refusal(missing) == f"{missing} does not exist; set llm.model_path or search.model_path to a GGUF model file"
    )
    assert _refusal(tmp_path) == f"{tmp_path} cannot be read: Is a directory"
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)  # opening it would block
    wanted = "is not a regular file; set llm.model_path or search.model_path to a GGUF model file"
    assert _refusal(pipe) == f"{pipe} {wanted}"
    text = tmp_path / "text.gguf"
    text.write_text("not a model")
    assert _refusal(text) == f"{text} is not a GGUF file: it begins with b'not ' instead of b'GGUF'"
    head = tmp_path / "head.gguf"
    head.write_bytes(b"GGUF" + bytes(4_000))
    assert _refusal(head).startswith(f"llama.cpp cannot use {head}: loading the file failed: ")
    part = tmp_path / "part.gguf"
    with smollm_gguf.open("rb") as whole:
        part.write_bytes(whole.read(50_000_000))
    assert _refusal(part).startswith(f"{part} is incomplete or damaged: ")


def test_a_model_too_large_for_memory_is_not_loaded(smollm_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that needs more memory than is free is not loaded."""
    monkeypatch.setattr(trial, "available_bytes", lambda: 300_000_000)
    assert _refusal(smollm_gguf, context_tokens=8_192) == (
        "smollm2-135m-instruct-q4_1.gguf needs about 0.5 GB of memory (0.1 for the model, 0.2 for a context of 8,192 "
        "tokens), but only 0.3 GB are free; set a smaller llm.context_tokens or use a smaller model"
    )


def test_without_the_library_its_install_line_is_told(smollm_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, generating fails with the line that installs it."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert _refusal(smollm_gguf) == (
        "a GGUF needs llama-cpp-python, which is not installed; pip install 'orchestra-mem[llama]'"
    )


@pytest.fixture
def fatal_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library that dies on loading, of the signal in its file `signal`; its file `deaths` counts the attempts."""
    package = tmp_path / "site" / "llama_cpp"
    (package / "lib").mkdir(parents=True)
    (package / "lib" / "libllama.so").touch()
    (package / "__init__.py").touch()
    (package / "llama_cpp.py").write_text(
        "import os, pathlib\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / 'group').write_text(str(os.getpgrp()))\n"
        "with (here / 'deaths').open('a') as file:\n    file.write('x')\n"
        "os.kill(os.getpid(), int((here / 'signal').read_text()))\n"
    )
    monkeypatch.setattr(trial, "require_library", lambda: package)
    return package


@pytest.mark.usefixtures("nothing_known")
def test_an_illegal_instruction_kills_a_child_and_not_the_host(
    fatal_library: Path, smollm_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An illegal instruction kills only the trial; the error has the rebuild command and is remembered per build."""
    (fatal_library / "signal").write_text(str(int(signal.SIGILL)))
    expected = (
        f"the compiled llama.cpp in {fatal_library / 'lib'} uses instructions that this processor lacks (illegal "
        f"instruction while loading the library); rebuild it without them: {trial.REBUILD}"
    )
    assert _refusal(smollm_gguf) == _refusal(smollm_gguf) == expected
    assert (fatal_library / "deaths").read_text() == "x"
    # A rebuilt library is tried again.
    (fatal_library / "lib" / "libllama.so").write_text("rebuilt")
    assert _refusal(smollm_gguf) == expected
    assert (fatal_library / "deaths").read_text() == "xx"
    # A library in another folder is tried again, even if the folder does not exist.
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path / "other"))
    assert _refusal(smollm_gguf) == expected.replace(str(fatal_library / "lib"), str(tmp_path / "other"))
    assert (fatal_library / "deaths").read_text() == "xxx"


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.parametrize(("sent", "tries"), [(signal.SIGINT, 2), (signal.SIGHUP, 2), (signal.SIGSEGV, 1)])
def test_only_a_crash_rules_a_model_out(
    fatal_library: Path, smollm_gguf: Path, sent: signal.Signals, tries: int
) -> None:
    """A crash rules a model out; a signal from outside does not, and Ctrl-C does not reach the trial."""
    (fatal_library / "signal").write_text(str(int(sent)))
    assert _refusal(smollm_gguf) == _refusal(smollm_gguf)
    assert (fatal_library / "deaths").read_text() == "x" * tries
    assert (fatal_library / "group").read_text() != str(os.getpgrp())

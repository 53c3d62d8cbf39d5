"""Closing a model, or ending the interpreter, during loading: nothing waits and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import open_memory
from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel
from orchestra_mem.errors import ClosedError, ModelError
from orchestra_mem.model_types import Finish, Message, Role
from orchestra_mem.search_types import SearchMode
from tests.processes import python
from tests.timing import until

pytestmark = pytest.mark.slow

COLOURS = [Message(role=Role.USER, text="Name the three colours of a traffic light.")]
STAGES = ["trial of the vocabulary", "trial of the weights", "reading the file"]
# Every delayed stage takes far longer than this.
SOON_S = 5.0


def hold_up(stage: str, patch: pytest.MonkeyPatch, mark: Path) -> None:
    """Delay a stage of loading; the file `mark` shows that the stage has begun, and in which process."""
    if stage.startswith("trial"):
        # Replaces the interpreter of the trial; its last argument is empty for a vocabulary.
        slow = f'echo -n $$ > "{mark}.new" && mv "{mark}.new" "{mark}" && exec sleep 60'
        test = '[ -z "$5" ]' if stage.endswith("vocabulary") else '[ -n "$5" ]'
        script = mark.with_suffix(".sh")
        script.write_text(f'#!/bin/sh\nif {test}; then {slow}; fi\nexec "{sys.executable}" "$@"\n')
        script.chmod(0o755)
        patch.setattr(sys, "executable", str(script))
        patch.setenv("XDG_CACHE_HOME", str(mark.parent))  # nothing was tried before
    elif stage == "reading the file":
        path_open = Path.open

        class Slow(FileIO):
            def readinto(self, piece: Any) -> int | None:
                mark.write_text(str(os.getpid()))
                time.sleep(1.5)
                return super().readinto(piece)

        def slowly(path: Path, *arguments: Any, **options: Any) -> Any:
            return Slow(path) if options.get("buffering") == 0 else path_open(path, *arguments, **options)

        patch.setattr(Path, "open", slowly)


def gone(mark: Path) -> bool:
    """Check whether the process that wrote `mark` has ended and been reaped."""
    process = int(mark.read_text())
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("stage", STAGES)
def test_closing_does_not_wait_for_the_loading(
    stage: str, smollm_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing aborts any stage of loading: waiters are cancelled, no process or thread stays, a new call loads."""
    mark, before = tmp_path / "mark", set(threading.enumerate())

    def looks_away() -> bool:  # loading ends while this still sleeps
        time.sleep(0.5)
        return False

    model = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=512, threads=1)
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as threads:
        hold_up(stage, patch, mark)
        asked = threads.submit(model.generate, COLOURS, max_tokens=2, cancelled=looks_away)
        until(lambda: mark.exists() and mark.read_text())
        start = time.monotonic()
        model.close()
        assert time.monotonic() - start < SOON_S
        assert gone(mark)
        assert asked.result(SOON_S).finish is Finish.CANCELLED
        assert not model.loaded
    until(lambda: set(threading.enumerate()) <= before)
    assert model.generate(COLOURS, max_tokens=2).answer_tokens == 2
    model.close()


@pytest.mark.parametrize("stage", [*STAGES, "beginning to answer", "answering"])
def test_the_interpreters_end_does_not_wait_for_it(stage: str, smollm_gguf: Path, tmp_path: Path) -> None:
    """The interpreter ends soon without `close`, prints no error and leaves no process behind."""
    mark = tmp_path / "mark"
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "import pytest\n"
        "from tests.adapters.test_llama_ending import COLOURS, hold_up, until\n"
        "from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel\n"
        "stage, path, mark = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])\n"
        "hold_up(stage, pytest.MonkeyPatch(), mark)\n"
        "model = LlamaModel(GgufVocabulary(path), context_tokens=512, threads=1)\n"
        "def generate():\n"
        "    print(model.generate(COLOURS, max_tokens=450, schema={'type': 'string', 'minLength': 2000}))\n"
        "threading.Thread(target=generate, daemon=True).start()\n"
        "until(lambda: model.loaded if 'answer' in stage else mark.exists() and mark.read_text())\n"
        "time.sleep(0.0 if stage == 'beginning to answer' else 0.3)\n"
        "print(time.time())\n"
    )
    done = python(code, stage, smollm_gguf, mark)
    assert done.stderr == ""
    assert time.time() - float(done.stdout) < SOON_S
    assert "answer" in stage or gone(mark)


def test_what_is_done_last_is_told_that_no_answers_are_given(smollm_gguf: Path) -> None:
    """While the interpreter ends, generating is refused instead of hanging; counting and closing still work."""
    code = (
        "import atexit, sys\n"
        "from pathlib import Path\n"
        "def last():\n"
        "    try:\n"
        "        model.generate(COLOURS, max_tokens=2)\n"
        "    except ModelError as error:\n"
        "        print(error)\n"
        "    print(model.count_prompt(COLOURS) > 20)\n"
        "    model.close()\n"
        "    print(model.count_prompt(COLOURS) > 20)\n"
        "atexit.register(last)\n"
        "from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel\n"
        "from orchestra_mem.errors import ModelError\n"
        "from orchestra_mem.model_types import Message, Role\n"
        "COLOURS = [Message(role=Role.USER, text='Name the three colours of a traffic light.')]\n"
        "model = LlamaModel(GgufVocabulary(Path(sys.argv[1])), context_tokens=512, threads=1)\n"
        "model.generate(COLOURS, max_tokens=2)\n"
    )
    done = python(code, smollm_gguf)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["llama.cpp starts no more work: the program is exiting", "True", "True"]


def test_who_waits_for_a_model_that_is_closed_does_not_load_it_again(smollm_gguf: Path) -> None:
    """A call that waits for a model being closed is cancelled and does not load it again."""
    before = set(threading.enumerate())
    model = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=512, threads=1)
    long = [Message(role=Role.USER, text="The ferry leaves the old harbour at seven. " * 40)]
    looking = threading.Event()

    def looks_away() -> bool:
        looking.set()
        time.sleep(1.0)
        return False

    with ThreadPoolExecutor(2) as threads:
        answering = threads.submit(model.generate, long, max_tokens=400)
        until(lambda: model.loaded)
        waiting = threads.submit(model.generate, COLOURS, max_tokens=2, cancelled=looks_away)
        assert looking.wait(30)
        model.close()
        assert answering.result().finish is Finish.CANCELLED
        assert waiting.result().finish is Finish.CANCELLED
    assert not model.loaded
    until(lambda: set(threading.enumerate()) <= before)


def test_two_may_close_at_once_while_others_ask(smollm_gguf: Path) -> None:
    """Two threads may close a model while others use it: no call hangs, and the last close unloads it."""
    before = set(threading.enumerate())
    model = LlamaModel(GgufVocabulary(smollm_gguf), context_tokens=512, threads=1)
    over = time.monotonic() + 4

    def ask() -> set[Finish]:
        found = set()
        while time.monotonic() < over:
            try:
                found.add(model.generate(COLOURS, max_tokens=3).finish)
                assert model.count_prompt(COLOURS) > 20
            except ModelError as error:  # closing aborted the loading of the vocabulary
                assert "was closed, or the program is exiting" in str(error)
        return found

    def close() -> None:
        while time.monotonic() < over:
            model.close()
            time.sleep(0.2)

    with ThreadPoolExecutor(5) as threads:
        asked = [threads.submit(ask) for _ in range(3)]
        closed = [threads.submit(close) for _ in range(2)]
        for each in closed:
            each.result(60)
        assert set().union(*(each.result(60) for each in asked)) <= {Finish.LENGTH, Finish.CANCELLED}
    model.close()
    assert not model.loaded
    until(lambda: set(threading.enumerate()) <= before)


def test_closing_a_memory_does_not_wait_for_its_embedder(
    smollm_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a memory aborts the loading of its embedder; the next opening loads it."""
    mark = tmp_path / "mark"
    config = {"search": {"embedder": "gguf", "model_path": str(smollm_gguf)}, "tokens": {"counter": "estimate"}}
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as threads:
        hold_up("reading the file", patch, mark)
        memory = open_memory(tmp_path, config=config)
        memory.record_operation("note", {"text": "The lights are red."})
        asked = threads.submit(memory.search, "lights")
        until(lambda: mark.exists() and mark.read_text())
        start = time.monotonic()
        memory.close()
        assert time.monotonic() - start < SOON_S
        with contextlib.suppress(ClosedError):  # unless keyword search answered in time
            asked.result(SOON_S)
    with open_memory(tmp_path, config=config) as memory:
        assert memory.search("lights", mode=SearchMode.DENSE).hits

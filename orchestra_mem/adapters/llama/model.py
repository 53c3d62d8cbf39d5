"""A GGUF run by llama.cpp in this process: loaded on first use in a thread of its own, let go when idle."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from functools import partial
from weakref import finalize

from orchestra_mem.adapters.llama.ending import ASK_EVERY_S, Stop, exit_begun
from orchestra_mem.adapters.llama.library import default_threads, load_library
from orchestra_mem.adapters.llama.room import require_room
from orchestra_mem.adapters.llama.session import BESIDE_TOKENS, LlamaSession, Sampling, grammar_of
from orchestra_mem.adapters.llama.trial import require_gguf, require_sound
from orchestra_mem.adapters.llama.vocabulary import GgufVocabulary
from orchestra_mem.adapters.llama.worker import Call, Worker
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

_log = logging.getLogger(__name__)

# A worker that was told to end is waited for so long: while llama.cpp loads a file it looks at no sign.
_ENDS_S = 2.0
_NOTHING = Generation(
    text="", finish=Finish.CANCELLED, prompt_tokens=0, answer_tokens=0, evaluated_tokens=0, prompt_s=0.0, answer_s=0.0
)


class LlamaModel:
    """A language model in a GGUF. Fulfils `LanguageModel`.

    A prompt's beginning that is that of an earlier one, or of its answer, is not read again, for two talks at once:
    what is generated in the background does not take the place of what the program said last.

    Args:
        vocabulary: the GGUF's; it may be counted with before and while the model is loaded.
        context_tokens: the window, prompt and answer together; no more than the model was trained for is used.
        threads: of the processor; 0 for the physical cores less one.
        idle_unload_s: seconds after which an unused model is let go; 0 for never.
    """

    def __init__(
        self, vocabulary: GgufVocabulary, *, context_tokens: int = 8_192, threads: int = 0, idle_unload_s: float = 300.0
    ) -> None:
        self._vocabulary = vocabulary
        self._wanted_tokens = context_tokens
        self._threads = threads or default_threads()
        self._idle_unload_s = idle_unload_s
        self._process = os.getpid()
        self._open_worker()

    def _open_worker(self) -> None:
        load = partial(_load, self._vocabulary, self._wanted_tokens, self._threads)
        self._worker = Worker(load, self._idle_unload_s)
        # Its thread ends with a model that nobody has closed as well; the interpreter's end has a way of its own.
        self._end_worker = finalize(self, self._worker.end)
        self._end_worker.atexit = False

    @property
    def name(self) -> str:
        """Name the model as its file is named."""
        return self._vocabulary.path.stem

    @property
    def threads(self) -> int:
        """How many threads of the processor a generation takes."""
        return self._threads

    @property
    def trained_tokens(self) -> int:
        """The window that the model was trained for, 0 where the file does not say.

        Raises:
            ModelError: llama.cpp is not installed or does not run here, or the file cannot be used.
        """
        return self._vocabulary.number("context_length") or 0

    @property
    def context_tokens(self) -> int:
        """The window that prompt and answer share, in tokens.

        Raises:
            ModelError: as `trained_tokens`.
        """
        return min(self._wanted_tokens, self.trained_tokens or self._wanted_tokens)

    @property
    def loaded(self) -> bool:
        """Tell whether the model is in memory."""
        return self._worker.session is not None

    def load(self) -> None:
        """Begin to load it in the background, so that the next generation need not wait as long."""
        self._worker.submit(self._worker.load)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a prompt, its chat template included; the vocabulary suffices for it.

        Raises:
            ModelError: as `trained_tokens`, or the chat template refuses the messages.
        """
        return len(self._vocabulary.prompt_tokens(messages))

    def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Json] | None = None,
        cancelled: Callable[[], bool] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        timeout_s: float | None = None,
    ) -> Generation:
        """Answer a prompt, as `LanguageModel.generate` has it.

        Asked while it waits for its turn, loads, or reads the prompt, `cancelled` ends it there as well; a loading goes
        on, for the next one.
        """
        if os.getpid() != self._process:  # its thread is not here, and what it holds may never be let go
            raise ModelError(f"{self.name} was opened before a fork; a child process opens its own")
        worker, begun, late = self._worker, time.monotonic(), False

        def answer(stop: Stop) -> Generation:
            session = loading.future.result()
            sampling = Sampling(temperature=temperature, seed=seed, grammar=grammar_of(schema))
            prompt = self._prompt(messages)
            room = min(max_tokens, self.context_tokens - len(prompt))
            return session.generate(prompt, max_tokens=room, sampling=sampling, stop=stop)

        def unwanted() -> bool:
            nonlocal late
            if cancelled is not None and cancelled():
                return True
            late = timeout_s is not None and time.monotonic() - begun >= timeout_s
            return late

        loading = worker.submit(worker.load)
        said = self._awaited(worker.submit(answer), worker, unwanted)
        if said.finish is Finish.CANCELLED:
            # The interpreter's end is no fault of the model's: the caller is left to want an end as well.
            while exit_begun() and not unwanted():
                time.sleep(ASK_EVERY_S)
            if late:
                raise ModelError(
                    f"{self.name} was given up after {timeout_s:g} s, {said.answer_tokens} tokens into its answer"
                )
        return said

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        prompt = self._vocabulary.prompt_tokens(messages)
        if len(prompt) >= self.context_tokens:
            raise ModelError(
                f"the prompt has {len(prompt):,} tokens and the window of {self.name} {self.context_tokens:,}: "
                "divide it, or raise llm.context_tokens"
            )
        if not prompt:
            raise ModelError(f"the chat template of {self.name} makes nothing of the messages")
        return prompt

    @staticmethod
    def _awaited(call: Call[Generation], worker: Worker, unwanted: Callable[[], bool]) -> Generation:
        """Wait for an answer; where nobody wants it any more it ends early, and is nothing where it has not begun."""
        try:
            while not call.future.done():
                if unwanted():
                    call.end()
                wait([call.future], timeout=ASK_EVERY_S)
        finally:  # also where the caller's `cancelled` breaks, or at Ctrl-C: nothing may go on reading
            call.end()
            while not call.future.done():
                wait([call.future], timeout=ASK_EVERY_S)
        try:
            return call.future.result()
        except CancelledError:
            return _NOTHING
        except ModelError:
            if worker.ended or exit_begun():  # seen elsewhere first
                return _NOTHING
            raise

    def close(self) -> None:
        """Let go of its memory, ending what is under way, its loading as well; loaded anew when used again."""
        if os.getpid() != self._process:
            return
        worker, end = self._worker, self._end_worker
        self._open_worker()
        end()
        self._vocabulary.close()
        worker.join(_ENDS_S)


def _load(vocabulary: GgufVocabulary, wanted_tokens: int, threads: int, stop: Stop) -> LlamaSession:
    path, start = vocabulary.path, time.perf_counter()
    require_gguf(path)  # the vocabulary may be loaded, and the file gone since
    context_tokens = min(wanted_tokens, vocabulary.number("context_length") or wanted_tokens)
    if not load_library().llama_supports_gpu_offload():
        beside = min(context_tokens, BESIDE_TOKENS)
        require_room(path, vocabulary.number, context_tokens=context_tokens, beside_tokens=beside)
    require_sound(path, weights=True, stop=stop)
    session = LlamaSession(path, context_tokens=context_tokens, threads=threads, stop=stop)
    _log.info("loaded %s in %.0f ms, %d threads", path.stem, (time.perf_counter() - start) * 1e3, threads)
    return session

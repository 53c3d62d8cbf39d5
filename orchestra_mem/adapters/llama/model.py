"""Run a GGUF in this process: load it on first use, generate in a separate thread, unload it when idle."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from threading import Event, Thread

from orchestra_mem.adapters.llama.library import GgufVocabulary, default_threads, load_library
from orchestra_mem.adapters.llama.lifetime import ASK_EVERY_S, NO_MORE, Held, Stop, exit_begun, running
from orchestra_mem.adapters.llama.session import BESIDE_TOKENS, LlamaSession, grammar_of
from orchestra_mem.adapters.llama.trial import require_gguf, require_room
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

_log = logging.getLogger(__name__)

_NOTHING = Generation(text="", finish=Finish.CANCELLED)


class LlamaModel:
    """A language model in a GGUF file. Implements `LanguageModel`.

    Two prompt caches are kept, so that background jobs do not evict the foreground conversation: a prompt that shares a
    prefix with an earlier prompt (or its answer) reprocesses only the rest.

    Args:
        vocabulary: Vocabulary of the GGUF. It counts tokens even before and while the model is loaded.
        context_tokens: Context window, shared by prompt and answer; limited to the window of the model's training.
        threads: Number of processor threads; 0 for the physical cores minus one.
        idle_unload_s: Seconds after which an unused model is unloaded; 0 for never.
    """

    doubts = ()
    """Warnings about the model; a file in this process gives none."""

    def __init__(
        self, vocabulary: GgufVocabulary, *, context_tokens: int = 8_192, threads: int = 0, idle_unload_s: float = 300.0
    ) -> None:
        self.name = vocabulary.path.stem
        self._vocabulary = vocabulary
        self._wanted_tokens = context_tokens
        self._threads = threads or default_threads()
        self._idle_unload_s = idle_unload_s
        self._process = os.getpid()
        self._held = self._hold()

    @property
    def context_tokens(self) -> int:
        """The context window in tokens, shared by prompt and answer.

        Raises:
            ModelError: llama.cpp is not installed or does not run on this machine, or the file cannot be used.
        """
        return min(self._wanted_tokens, self._vocabulary.number("context_length") or self._wanted_tokens)

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._held.value is not None

    @property
    def where(self) -> str:
        """The number of threads, and the window that the model was trained for, for messages."""
        trained = self._vocabulary.number("context_length")
        threads = "1 thread" if self._threads == 1 else f"{self._threads} threads"
        return f"on {threads}" + (f", trained for {trained:,} tokens" if trained else "")

    def busy(self) -> bool:
        """Return False: no other program uses this model."""
        return False

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Count the tokens of a prompt, including its chat template; loads only the vocabulary.

        Raises:
            ModelError: As for `context_tokens`, or the chat template rejects the messages.
        """
        return len(self._vocabulary.prompt_tokens(messages, tools))

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
        """Answer a prompt; see `LanguageModel.generate`.

        `cancelled` also ends a call that waits for its turn, for the model to load, or for the prompt to be processed.
        Loading continues after that, for the next call.
        """
        if os.getpid() != self._process:  # locks held by the parent's threads would never be released
            raise ModelError(f"{self.name} was opened before a fork; open the model again in the child process")
        held, begun, late = self._held, time.monotonic(), False

        def answer(stop: Stop, answering: Event) -> Generation:
            with held.use() as session:
                prompt, grammar = self._prompt(messages), grammar_of(schema)
                room = min(max_tokens, self.context_tokens - len(prompt))
                with running(stop):
                    answering.set()
                    if stop():  # the caller has left while this thread waited for its turn
                        return _NOTHING
                    return session.generate(
                        prompt, max_tokens=room, grammar=grammar, temperature=temperature, seed=seed, stop=stop
                    )

        def unwanted() -> bool:
            nonlocal late
            if cancelled is not None and cancelled():
                return True
            late = timeout_s is not None and time.monotonic() - begun >= timeout_s
            return late

        try:
            answered = _awaited(answer, lambda: held.stop() or unwanted())
        except ModelError:
            if not (held.stop() or exit_begun()):
                raise
            answered = _NOTHING
        if answered.finish is Finish.CANCELLED:
            # The interpreter's exit is no fault of the model: wait until the caller cancels, or time is up.
            while exit_begun() and not unwanted():
                time.sleep(ASK_EVERY_S)
            if late:
                raise ModelError(
                    f"{self.name} timed out after {timeout_s:g} s, {answered.answer_tokens} tokens into its answer"
                )
        return answered

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        prompt = self._vocabulary.prompt_tokens(messages)
        if len(prompt) >= self.context_tokens:
            raise ModelError(
                f"the prompt has {len(prompt):,} tokens, but the window of {self.name} has {self.context_tokens:,}: "
                "split the prompt, or raise llm.context_tokens"
            )
        if not prompt:
            raise ModelError(f"the chat template of {self.name} produced an empty prompt from the messages")
        return prompt

    def close(self) -> None:
        """Free the memory, and abort generation and loading; the next use loads the model again."""
        if os.getpid() != self._process:
            return
        held, self._held = self._held, self._hold()
        held.close()
        self._vocabulary.close()

    def _hold(self) -> Held[LlamaSession]:
        return Held(self._vocabulary.path, self._load, idle_s=self._idle_unload_s)

    def _load(self, stop: Stop) -> LlamaSession:
        path, start = self._vocabulary.path, time.perf_counter()
        require_gguf(path)  # the file may have been deleted since the vocabulary was loaded
        context_tokens = self.context_tokens
        if not load_library().llama_supports_gpu_offload():
            beside = min(context_tokens, BESIDE_TOKENS)
            require_room(
                path, self._vocabulary.number, context_tokens=context_tokens, beside_tokens=beside,
                remedy="set a smaller llm.context_tokens or use a smaller model",
            )  # fmt: skip
        session = LlamaSession(path, stop, context_tokens=context_tokens, threads=self._threads)
        _log.info("loaded %s in %.0f ms, %d threads", path.stem, (time.perf_counter() - start) * 1e3, self._threads)
        return session


def _awaited(answer: Callable[[Stop, Event], Generation], unwanted: Callable[[], bool]) -> Generation:
    """Call `answer` in a separate thread, and stop it early once `unwanted` returns True.

    If generation has not begun by then, return an empty answer at once, even if the model is busy or loading.
    """
    stop, answering = Stop(), Event()
    found: Future[Generation] = Future()

    def work() -> None:
        try:
            found.set_result(answer(stop, answering))
        except BaseException as error:  # raised by `found.result`
            found.set_exception(error)

    try:
        Thread(target=work, name="llama", daemon=True).start()
    except RuntimeError as error:  # the interpreter is exiting and starts no more threads
        raise ModelError(NO_MORE) from error
    try:
        while wait([found], timeout=ASK_EVERY_S).not_done:
            if unwanted():
                stop.set()
                if not answering.is_set():
                    return _NOTHING
        return found.result()
    finally:  # also if the caller's `cancelled` raises, or at Ctrl-C: the thread must not go on
        stop.set()

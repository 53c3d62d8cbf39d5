"""A GGUF run by llama.cpp in this process: loaded on first use in a thread of its own, let go when idle."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer, current_thread

from orchestra_mem.adapters.llama.ending import ASK_EVERY_S, Ended, exit_begun, require_wanted, under_way
from orchestra_mem.adapters.llama.library import default_threads, load_library
from orchestra_mem.adapters.llama.room import require_room
from orchestra_mem.adapters.llama.session import BESIDE_TOKENS, LlamaSession, Sampling, grammar_of
from orchestra_mem.adapters.llama.trial import require_sound
from orchestra_mem.adapters.llama.vocabulary import GgufVocabulary
from orchestra_mem.adapters.llama.worker import Worker
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

_log = logging.getLogger(__name__)

# A loading that was told to end is waited for so long: within a tensor, or while the cache is laid out, it asks nobody.
_LOADING_ENDS_S = 2.0


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
        # Held by who generates, loads or lets go.
        self._turn = Lock()
        self._loading: Future[LlamaSession] | None = None
        self._worker: Worker | None = None
        self._process = os.getpid()
        self._ending = vocabulary.ending
        self._timer: Timer | None = None
        self._used_at = 0.0

    @property
    def name(self) -> str:
        """Name the model as its file is named."""
        return self._vocabulary.path.stem

    @property
    def path(self) -> Path:
        """Where the GGUF lies."""
        return self._vocabulary.path

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
        loading = self._loading
        return loading is not None and loading.done() and loading.exception() is None

    def load(self) -> None:
        """Begin to load it in the background, so that the next generation need not wait as long."""
        if self._turn.acquire(blocking=False):
            try:
                self._begin_loading()
                self._begin_idling()
            finally:
                self._turn.release()

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

        Asked while it waits for its turn, loads, or reads the prompt, `cancelled` ends it there as well.
        """
        if os.getpid() != self._process:  # its thread is not here, and what it holds may never be let go
            raise ModelError(f"{self.name} was opened before a fork; a child process opens its own")
        stop = _Stop(cancelled, self._ending.begun(), timeout_s)
        answer = _Answer()
        try:
            with self._turn_taken(stop):
                session = self._wait(self._begin_loading(), stop)
                sampling = Sampling(temperature=temperature, seed=seed, grammar=grammar_of(schema))
                with under_way():
                    self._generate(session, answer, messages, max_tokens, sampling, stop)
        except (_StoppedError, ModelError) as error:
            if isinstance(error, ModelError) and not stop.asked():  # else the end was seen elsewhere first
                raise
            stop.outlast_exit()
            answer.finish = Finish.CANCELLED
            if stop.late:
                raise ModelError(
                    f"{self.name} was given up after {timeout_s:g} s, {answer.tokens} tokens into its answer"
                ) from None
        return answer.generation()

    def close(self) -> None:
        """Let go of its memory, ending what is under way, its loading as well; loaded anew when used again."""
        if os.getpid() != self._process:  # who has its turn there is not here to end
            return
        with self._ending.closing(self._turn):
            self._let_go(for_good=True)
            self._vocabulary.close()

    def _generate(
        self,
        session: LlamaSession,
        answer: _Answer,
        messages: Sequence[Message],
        max_tokens: int,
        sampling: Sampling,
        stop: _Stop,
    ) -> None:
        prompt = self._vocabulary.prompt_tokens(messages)
        if len(prompt) >= self.context_tokens:
            raise ModelError(
                f"the prompt has {len(prompt):,} tokens and the window of {self.name} {self.context_tokens:,}: "
                "divide it, or raise llm.context_tokens"
            )
        if not prompt:
            raise ModelError(f"the chat template of {self.name} makes nothing of the messages")
        answer.prompt_tokens = len(prompt)
        room = min(max_tokens, self.context_tokens - len(prompt))
        session.resume()
        start = time.perf_counter()
        try:
            kept = session.keep_common(prompt)
            while kept + answer.evaluated_tokens < len(prompt):
                answer.evaluated_tokens += self._read(session, prompt[kept + answer.evaluated_tokens :], stop)
        finally:
            answer.prompt_s = time.perf_counter() - start
        start = time.perf_counter()
        sampler = session.sampler(sampling)
        try:
            self._answer(session, sampler.next, answer, room, stop)
        finally:
            sampler.close()
            answer.answer_s = time.perf_counter() - start

    def _answer(
        self, session: LlamaSession, choose: Callable[[], int | None], answer: _Answer, room: int, stop: _Stop
    ) -> None:
        while answer.tokens < room:
            stop.heed()
            token = choose()
            if token is None or session.ends(token):
                answer.finish = Finish.STOP
                return
            answer.add(session.piece(token))
            if answer.tokens < room:
                self._read(session, [token], stop)

    def _read(self, session: LlamaSession, tokens: Sequence[int], stop: _Stop) -> int:
        """Have the worker read; where the generation is to end meanwhile it is ended within the batch."""
        assert self._worker is not None
        reading = self._worker.submit(session.read, tokens)
        try:
            while not wait([reading], timeout=ASK_EVERY_S).done:
                if stop.asked():
                    session.abort()
        except BaseException:  # of the caller's `cancelled`, or Ctrl-C: nothing may go on reading
            session.abort()
            wait([reading])
            raise
        count = reading.result()
        if count == 0:
            raise _StoppedError
        return count

    @staticmethod
    def _wait(loading: Future[LlamaSession], stop: _Stop) -> LlamaSession:
        """Wait for the model; where the generation is to end meanwhile the loading goes on, for the next one."""
        while not wait([loading], timeout=ASK_EVERY_S).done:
            stop.heed()
        stop.heed()  # it may have been ended with the loading
        return loading.result()

    @contextmanager
    def _turn_taken(self, stop: _Stop) -> Iterator[None]:
        while not self._turn.acquire(timeout=ASK_EVERY_S):
            stop.heed()
        try:
            stop.heed()
            yield
        finally:
            self._begin_idling()
            self._turn.release()

    def _begin_loading(self) -> Future[LlamaSession]:
        """Give the model as it is being loaded; one that failed is tried again."""
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._worker = self._worker or Worker()
            self._loading = self._worker.submit(self._load, self._ending.begun())
        return self._loading

    def _load(self, ended: Ended) -> LlamaSession:
        path, start = self._vocabulary.path, time.perf_counter()
        context_tokens = self.context_tokens  # the file is looked at, and its vocabulary loaded
        library = load_library()
        require_wanted(path, ended)
        if not library.llama_supports_gpu_offload():
            beside = min(context_tokens, BESIDE_TOKENS)
            require_room(path, self._vocabulary.number, context_tokens=context_tokens, beside_tokens=beside)
        require_sound(path, weights=True, ended=ended)
        session = LlamaSession(library, path, context_tokens=context_tokens, threads=self._threads, ended=ended)
        self._vocabulary.lend(session.model)
        _log.info("loaded %s in %.0f ms, %d threads", self.name, (time.perf_counter() - start) * 1e3, self._threads)
        return session

    def _let_go(self, *, for_good: bool) -> None:
        """Free the model, by who has the turn, and end the worker; `for_good` leaves no vocabulary behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._loading is None or self._worker is None:
            return
        ended = self._ending.begun()
        late = bool(wait([self._loading], timeout=_LOADING_ENDS_S).not_done)
        if late:
            # By the worker itself, which alone knows when llama.cpp has returned.
            self._loading.add_done_callback(self._discard)
        elif self._loading.exception() is None:
            try:
                self._vocabulary.reclaim(again=not for_good)
            except ModelError as error:  # counts would have nothing to go by
                if not ended():
                    _log.warning("%s stays loaded: %s", self.name, error)
                self._begin_idling()
                return
            self._loading.result().close()
            _log.info("let go of %s", self.name)
        self._worker.end(0.0 if late else _LOADING_ENDS_S)
        self._loading = self._worker = None

    def _discard(self, loading: Future[LlamaSession]) -> None:
        """Free what was loaded after its closing."""
        if loading.exception() is None:
            self._vocabulary.reclaim(again=False)
            loading.result().close()

    def _begin_idling(self) -> None:
        self._used_at = time.monotonic()
        if self._idle_unload_s > 0 and self._timer is None and self._loading is not None:
            self._look_again_in(self._idle_unload_s)

    def _look_again_in(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._let_go_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _let_go_if_idle(self) -> None:
        with self._turn, suppress(ModelError), under_way():
            if current_thread() is not self._timer:  # closed meanwhile
                return
            left = self._used_at + self._idle_unload_s - time.monotonic()
            if self._loading is not None and not self._loading.done():
                left = self._idle_unload_s  # nobody could use it yet
            if left > 0:
                self._look_again_in(left)
            else:
                self._let_go(for_good=False)


class _StoppedError(Exception):
    """A generation ends before its answer does."""


class _Stop:
    """Why a generation may have to end early: it is cancelled, the model is closed, or time is up."""

    def __init__(self, cancelled: Callable[[], bool] | None, ended: Ended, timeout_s: float | None) -> None:
        self._cancelled = cancelled
        self._ended = ended
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.late = False

    def asked(self) -> bool:
        """Tell whether it is to end."""
        return self._ended() or self._unwanted()

    def _unwanted(self) -> bool:
        if self._ended.closed or (self._cancelled is not None and self._cancelled()):
            return True
        self.late = self._deadline is not None and time.monotonic() >= self._deadline
        return self.late

    def outlast_exit(self) -> None:
        """While the interpreter ends, wait until the caller wants an end as well: nothing was the model's fault."""
        while exit_begun() and not self._unwanted():
            time.sleep(ASK_EVERY_S)

    def heed(self) -> None:
        """End here if it is to end."""
        if self.asked():
            raise _StoppedError


@dataclass(slots=True)
class _Answer:
    """What there is of an answer so far."""

    said: bytes = b""
    tokens: int = 0
    finish: Finish = Finish.LENGTH
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    prompt_s: float = 0.0
    answer_s: float = 0.0

    def add(self, piece: bytes) -> None:
        """Take in a token."""
        self.said += piece
        self.tokens += 1

    def generation(self) -> Generation:
        """Give it as it is. Half a character at its end is left out."""
        return Generation(
            text=self.said.decode("utf-8", "ignore"),
            finish=self.finish,
            prompt_tokens=self.prompt_tokens,
            answer_tokens=self.tokens,
            evaluated_tokens=self.evaluated_tokens,
            prompt_s=self.prompt_s,
            answer_s=self.answer_s,
        )

"""Tokens as llama-server counts them: known counts and estimates at once, and exact ones for contexts.

Nothing waits for the network but who asks for a context, without a lock and for no longer than was agreed. What is
counted for the first time is estimated on the high side, and counted by the server in a thread of its own.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from math import ceil
from typing import Any

from orchestra_mem.adapters.openai_http.server import NotServedError, Server
from orchestra_mem.core.context.assembly import PREAMBLE
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.ports import TokenCounter

logger = logging.getLogger(__name__)

# A count takes some milliseconds, that of a whole context some hundred. A server that takes longer is left alone for a
# while, and longer each time.
_CALL_S, _WHOLE_S, _PATIENCE_S, _CONTACT_S = 1.0, 4.0, 2.0, 0.5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_MAX_WAITING = 5_000
# No server is started again in less; one that was silent for longer may be another one now.
_SILENCE_S = 2.0
# What was counted by estimate is counted again so often: each time there may be pieces that nobody had counted.
_TRIES = 4
# Epochs that are known to be counted exactly; several run at once, for budgets that callers alternate between.
_SETTLED = 16
# A server refuses with these what is too long for it, or what it cannot read: others it may count.
_OF_ONE_TEXT = frozenset({400, 413, 422})
# One that every server counts.
_SHORT = "a b"
# Estimates of shorter texts say little about the next one.
_LEAST_TOKENS = 32
# One odd text does not make every estimate odd.
_WORST = 2.0
# What `TokenCounter.additive` speaks of: ends of pieces, and beginnings. With these GPT-2's pattern does not add up,
# nor does a vocabulary that puts a space before each text.
_ENDS = ("a\n", "a \n", "a\n\n", "a:\n\n\n", "a\n \n", "#\n")
_STARTS = ("b", "# b", "- b", "1", "\u4e2d")


class ServerCounts:
    """Counts at once: what the server has said of a text, else an estimate. Safe to share between threads.

    Fulfils `TokenCounter`, for sizes; `contexts` is the counter for contexts, which `assemble` makes.

    Args:
        server: tells counts in `/tokenize`, as llama-server and vLLM do.
        model: its name there; empty for the one that the server has.
        rough: estimates, as a rule on the high side.
        fallback: counts where the server does not.
        max_entries: how many counts are remembered.
    """

    def __init__(
        self,
        server: Server,
        *,
        model: str = "",
        rough: TokenCounter,
        fallback: TokenCounter,
        max_entries: int = 20_000,
    ) -> None:
        self._server = server
        self._model = model
        self._rough = rough
        self._fallback = fallback
        self._max_entries = max_entries
        self._lock, self._first, self._asking = threading.Lock(), threading.Lock(), threading.Lock()
        self._known: OrderedDict[bytes, int | None] = OrderedDict()  # None: it refuses to count that text
        self._waiting: OrderedDict[bytes, str] = OrderedDict()
        self._here = threading.local()
        self._wake, self._closing, self._tried = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._served: bool | None = None  # None until it was asked
        self._counted = False  # whether it ever did
        self._models: str | None = None  # what it has; None where it does not tell
        self._heard = 0.0  # when it last answered
        self._body: Callable[[str], dict[str, Any]] = self._llama_body
        self._adds_up = True
        self._worst = 1.0
        self._fault = ""
        self._resting_until, self._pause_s = 0.0, _FIRST_PAUSE_S
        self._settled: OrderedDict[int, int] = OrderedDict()  # epochs, and how many characters of each
        self.contexts = _ForContexts(self)

    @property
    def name(self) -> str:
        """Name who counts; waited for, shortly, until the server was asked for the first time whether it does."""
        self._await_contact()
        return self.known_name

    @property
    def known_name(self) -> str:
        """Name who counts, as far as is known."""
        if self._served is False:
            return self._fallback.name
        who = f"the server at {self._server.url.partition('://')[2]}"
        return f"estimate, until {who} answers" if self._fault or self._served is None else who

    @property
    def exact(self) -> bool:
        """Tell whether the server counts; waited for as with `name`."""
        self._await_contact()
        return self._served is True and not self._fault

    @property
    def additive(self) -> bool:
        """Pieces add up as far as was tried with the server; estimates always do."""
        return self._fallback.additive if self._served is False else self._adds_up

    @property
    def doubts(self) -> list[str]:
        """Why the server does not count, in words; empty where it does, or nobody knows yet."""
        if self._served is False:
            return [f"{self._server.url} does not count tokens: {self._fallback.name} does, not the model's own"]
        return [f"tokens are estimated, on the high side: {self._fault}"] if self._fault else []

    def count(self, text: str) -> int:
        """Count the tokens of `text` without waiting for anything."""
        return self._quick(text)[0]

    def count_for_context(self, text: str) -> int:
        """Count likewise, and remember for `assemble` whether it is an estimate."""
        tokens, known = self._quick(text)
        if not known:
            self._here.estimated = True
        if text == PREAMBLE:  # which each epoch counts as it begins
            self._here.began = True
        return tokens

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Build a context with exact counts where the server answers in time; else its tokens are on the high side.

        Args:
            build: does it; given the number of an epoch, 0 for none, it has that counted again before.
        """
        deadline = time.monotonic() + _PATIENCE_S
        answers = self._served is not False and self._ask_all(deadline)
        context, exact = self._built(build, 0)
        for _ in range(_TRIES if answers else 0):
            if exact or not self._ask_all(deadline):
                break
            context, exact = self._built(build, 0 if context.epoch in self._settled else context.epoch)
        return replace(context, exact=exact)

    def _built(self, build: Callable[[int], OrchestratorContext], doubted: int) -> tuple[OrchestratorContext, bool]:
        """A context, and whether its tokens are the server's count."""
        self._here.estimated = self._here.began = False
        context = build(doubted)
        number, size = context.epoch, len(context.prefix) + len(context.timeline)
        if self._served is not True or self._here.estimated:
            # What is recalled is counted each time; what is told behind an epoch once.
            if self._settled.get(number) != size:
                self._settled.pop(number, None)
            return context, False
        counted = self._here.began or number == doubted
        if number in self._settled or (counted and self._bears_out(context)):
            self._settled[number] = size
            while len(self._settled) > _SETTLED:
                self._settled.popitem(last=False)
        return context, number in self._settled

    def close(self) -> None:
        """End the thread that asks in the background."""
        self._closing.set()
        self._wake.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_CALL_S)
        self._server.close()

    # What is known

    def _quick(self, text: str) -> tuple[int, bool]:
        """The count, and whether it is known; an estimate is as far above the rough one as any text was."""
        if self._served is False:
            return self._fallback.count(text), True
        key = _key(text)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                if (known := self._known[key]) is not None:
                    return known, True
            else:
                self._waiting[key] = text
                while len(self._waiting) > _MAX_WAITING:
                    self._waiting.popitem(last=False)
        self._start()
        self._wake.set()
        return ceil(self._rough.count(text) * self._worst), False

    def _remember(self, text: str, tokens: int | None) -> None:
        key, rough = _key(text), self._rough.count(text)
        with self._lock:
            self._known[key] = tokens
            while len(self._known) > self._max_entries:
                self._known.popitem(last=False)
            self._waiting.pop(key, None)
            if tokens is not None and tokens >= _LEAST_TOKENS and rough:
                self._worst = max(self._worst, min(_WORST, tokens / rough))

    # Asking

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="orchestra-mem counts", daemon=True)
                self._thread.start()

    def _await_contact(self) -> None:
        if not self._tried.is_set():
            self._start()
            self._tried.wait(_CONTACT_S)

    def _run(self) -> None:
        while not self._closing.is_set() and self._served is not False:
            if (pause_s := self._resting_until - time.monotonic()) > 0:
                self._closing.wait(pause_s)
            elif not self._ask_all(time.monotonic() + _PATIENCE_S) or not self._waiting:
                self._wake.wait(_LONGEST_PAUSE_S)
                self._wake.clear()

    def _ask_all(self, deadline: float) -> bool:
        """Have the server count what waits; False where it does not, or not in time."""
        if not self._contacted():
            return False
        while not self._closing.is_set() and time.monotonic() < deadline:
            with self._asking:  # one at a time, or a text would be counted twice
                with self._lock:
                    key, text = next(iter(self._waiting.items()), (b"", ""))
                if not key:
                    return True
                tokens = self._told(text)
                if tokens is not None:
                    self._remember(text, tokens)
                elif key in self._waiting:  # else it refuses that text alone
                    return False
        return False

    def _contacted(self) -> bool:
        """Whether the server counts; the first time it is asked, and how, and so where it has another model now."""
        with self._first:
            if time.monotonic() >= self._resting_until:
                if self._served and self._models and time.monotonic() - self._heard > _SILENCE_S:
                    self._recognize()
                if self._served is None:
                    self._make_contact()
                    self._tried.set()
        return self._served is True

    def _make_contact(self) -> None:
        for body in (self._llama_body, self._vllm_body):
            self._body = body
            found = [self._told(text, trying=True) for text in (_SHORT, f"{_SHORT} {_SHORT}")]
            if time.monotonic() < self._resting_until:  # it did not answer
                return
            if None not in found and found[0] != found[1]:
                self._adds_up = self._tried_adding()
                self._models = self._listed()
                self._served = None if self.doubts else True
                self._counted = True
                return
        if self._counted:
            self._leave_alone(f"no tokens come of {self._server.url}/tokenize")
            return
        self._served = False
        with self._lock:
            self._waiting.clear()
        logger.warning("%s does not count tokens: %s does", self._server.url, self._fallback.name)

    def _recognize(self) -> None:
        """Forget every count where the server has another model than before."""
        listed = self._listed()
        if listed == self._models:
            self._heard = time.monotonic()
            return
        if listed is None:
            self._told(_SHORT)  # it is left alone for a while where that fails as well
            return
        logger.warning("%s has another model now: tokens are counted anew", self._server.url)
        with self._lock:
            self._known.clear()
            self._settled.clear()
            self._worst, self._served = 1.0, None

    def _listed(self) -> str | None:
        """What the server says of its models, but for times; None where it does not."""
        try:
            found = self._server.ask("GET", "/v1/models", timeout_s=_CALL_S)
        except (NotServedError, ModelError):
            return None
        models = found.get("data") if isinstance(found, dict) else None
        rows = [each for each in models if isinstance(each, dict)] if isinstance(models, list) else []
        return json.dumps([{key: each.get(key) for key in ("id", "root", "meta")} for each in rows], sort_keys=True)

    def _told(self, text: str, *, trying: bool = False, timeout_s: float = _CALL_S) -> int | None:
        """The server's count; None where there is none.

        Then it is left alone for a while, but for a trial, and where it refuses this text and no other.
        """
        if time.monotonic() < self._resting_until:
            return None
        try:
            found = self._server.ask("POST", "/tokenize", self._body(text), timeout_s=timeout_s)
            tokens = found.get("tokens") if isinstance(found, dict) else None
            if not isinstance(tokens, list):
                raise NotServedError(200, f"{self._server.url} answered without tokens")
        except NotServedError as error:
            if not trying:
                self._refused(text, error)
            return None
        except ModelError as error:
            self._leave_alone(str(error))
            return None
        self._fault, self._pause_s, self._heard = "", _FIRST_PAUSE_S, time.monotonic()
        return len(tokens)

    def _refused(self, text: str, error: NotServedError) -> None:
        """Never ask of a text again that alone is refused; a server that refuses others as well may come to itself."""
        if error.status not in _OF_ONE_TEXT or text == _SHORT:
            self._leave_alone(str(error))
        elif self._told(_SHORT) is not None:
            logger.info("a text of %d characters is estimated: %s", len(text), error)
            self._remember(text, None)

    def _leave_alone(self, why: str) -> None:
        if not self._fault:
            logger.warning("tokens are estimated, on the high side: %s", why)
        self._fault = why
        self._resting_until = time.monotonic() + self._pause_s
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)

    def _llama_body(self, text: str) -> dict[str, Any]:
        return {"content": _sendable(text), "add_special": False, "parse_special": False}

    def _vllm_body(self, text: str) -> dict[str, Any]:
        return {"model": self._model, "prompt": _sendable(text), "add_special_tokens": False}

    def _tried_adding(self) -> bool:
        counts = {text: self._told(text) or 0 for text in (*_ENDS, *_STARTS)}
        return all(self._told(end + start) == counts[end] + counts[start] for end in _ENDS for start in _STARTS)

    def _bears_out(self, context: OrchestratorContext) -> bool:
        """Whether the server counts for a whole context what its pieces came to."""
        counted = self._told(context.render(), timeout_s=_WHOLE_S)
        if counted is not None and counted > context.tokens:
            logger.warning("%d tokens by its pieces are %d by %s", context.tokens, counted, self._server.url)
            self._adds_up = False
        return counted is not None and counted <= context.tokens


class _ForContexts:
    """The counter for contexts of `ServerCounts`; nothing waits for it."""

    def __init__(self, counts: ServerCounts) -> None:
        self._counts = counts

    @property
    def name(self) -> str:
        return self._counts.known_name

    @property
    def exact(self) -> bool:
        return False  # until `assemble` has found that it is

    @property
    def additive(self) -> bool:
        return self._counts.additive

    def count(self, text: str) -> int:
        return self._counts.count_for_context(text)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sendable(text: str) -> str:
    # Halves of characters, which no server takes, become question marks.
    return text.encode("utf-8", "replace").decode("utf-8")

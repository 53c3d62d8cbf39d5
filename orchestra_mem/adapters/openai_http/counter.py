"""Tokens as llama-server counts them: a whole context once a request, everything else by a corrected estimate.

Only whoever asks for a context waits for the network, and no longer than was agreed. The server's count of a context
corrects the estimates that come after it.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from math import ceil
from threading import Lock

from orchestra_mem.adapters.openai_http.server import NotServedError, Server
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

# Counting takes some milliseconds, for a whole context some hundred. A server that takes longer is left alone for a
# while, and longer each time.
_PATIENCE_S, _CONTACT_S = 2.0, 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# No server is started again with another model in less.
_FRESH_S = 2.0
_REMEMBERED = 16
# How often a context is built at most until its estimate is near the server's count and that is within the budget.
_TRIES = 5
_NEAR = 0.02
# Before the server has counted anything its vocabulary may be a third worse than the estimate's; afterwards one text
# differs from the next.
_UNKNOWN, _SILENT = 1.35, 1.1
# Of shorter contexts nothing is concluded for other texts.
_LEAST_TOKENS = 100


class ServerCounts:
    """Estimates at once, and has the server count each context. Fulfils `TokenCounter`; safe between threads.

    `name` and `exact` speak of contexts, and ask the server the first time; `estimates` speaks of what `count` gives.

    Args:
        server: tells counts in `/tokenize`, as llama-server and vLLM do.
        model: its name there; empty for the one that the server has.
        near: what estimates are made of, and what counts where the server does not.
    """

    def __init__(self, server: Server, *, model: str = "", near: TokenCounter) -> None:
        self._server = server
        self._near = near
        self._bodies: list[Callable[[str], Json]] = [
            lambda text: {"content": text, "add_special": False, "parse_special": False},
            lambda text: {"model": model, "prompt": text, "add_special_tokens": False},
        ]
        self._served: bool | None = None  # None until the server has answered
        self._factor = 0.0  # the server's tokens over the estimate's; 0 until it has counted
        self._fault = ""
        self._resting_until, self._pause_s = 0.0, _FIRST_PAUSE_S
        self._lock = Lock()
        self.estimates = Estimates(self)
        # Counts of contexts, and when they were told.
        self._known: OrderedDict[bytes, tuple[int, float]] = OrderedDict()

    @property
    def name(self) -> str:
        """Name who counts contexts."""
        self._contacted()
        return self.known_name

    @property
    def exact(self) -> bool:
        """Tell whether the server counts contexts."""
        return self._contacted() and not self._fault

    @property
    def known_name(self) -> str:
        """Name who counts contexts, as far as is known."""
        if self._served is False:
            return self._near.name
        who = f"the server at {self._server.url.partition('://')[2]}"
        return f"estimate, until {who} answers" if self._fault or self._served is None else who

    @property
    def additive(self) -> bool:
        """Corrected estimates are rounded up, and contexts counted as a whole."""
        return self._served is False and self._near.additive

    @property
    def doubts(self) -> list[str]:
        """Why the server does not count, in words; empty where it does, or nobody knows yet."""
        if self._served is False:
            return [f"{self._server.url} does not count tokens: {self._near.name} does, not the model's own"]
        return [f"tokens are estimated, on the high side: {self._fault}"] if self._fault else []

    def count(self, text: str) -> int:
        """Count the tokens of `text` without waiting: of a context that the server has counted, else an estimate."""
        if self._served is False:
            return self._near.count(text)
        with self._lock:
            known = self._known.get(_key(text))
        if known is not None:
            return known[0]
        return ceil(self._near.count(text) * (self._factor or _UNKNOWN) * (_SILENT if self._fault else 1.0))

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Build a context within its budget by the server's count; where that cannot be had in time, by estimate.

        Args:
            build: does it; given the number of an epoch, 0 for none, it has that counted again before.
        """
        deadline = time.monotonic() + _PATIENCE_S
        context = build(0)
        for _ in range(_TRIES):
            counted = self._counted(context.render(), deadline)
            if counted is None:
                break
            if counted <= context.budget_tokens and context.tokens <= counted * (1 + _NEAR):
                return replace(context, tokens=counted, exact=True, counter=self.known_name)
            context = build(context.epoch)
        return replace(context, exact=False, counter=self.known_name)

    def close(self) -> None:
        """Let go of connections."""
        self._server.close()

    def _counted(self, text: str, deadline: float) -> int | None:
        """The server's count of a context, which corrects the estimates; None where there is none in time."""
        with self._lock:
            known, told = self._known.get(_key(text), (0, 0.0))
        if told and time.monotonic() - told < _FRESH_S:
            return known
        if not self._contacted() or time.monotonic() < self._resting_until:
            return None
        try:
            tokens = self._told(text, max(0.1, deadline - time.monotonic()))
        except (NotServedError, ModelError) as error:
            self._leave_alone(str(error))
            return None
        self._fault, self._pause_s = "", _FIRST_PAUSE_S
        with self._lock:
            self._known[_key(text)] = tokens, time.monotonic()
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        if (near := self._near.count(text)) and tokens >= _LEAST_TOKENS:
            self._factor = tokens / near
        return tokens

    def _contacted(self) -> bool:
        """Whether the server counts; found out with its first answer, and in which form it is asked."""
        while self._served is None and time.monotonic() >= self._resting_until:
            try:
                found = [self._told(text, _CONTACT_S) for text in ("a b", "a b a b")]
                self._served = found[0] != found[1]
            except NotServedError:
                self._bodies = self._bodies[1:]
                self._served = None if self._bodies else False
            except ModelError as error:
                self._leave_alone(str(error))
            if self._served is False:
                logger.warning("%s does not count tokens: %s does", self._server.url, self._near.name)
        return self._served is True

    def _told(self, text: str, timeout_s: float) -> int:
        # Halves of characters, which no server takes, become question marks.
        body = self._bodies[0](text.encode("utf-8", "replace").decode("utf-8"))
        found = self._server.ask("POST", "/tokenize", body, timeout_s=timeout_s)
        tokens = found.get("tokens") if isinstance(found, dict) else None
        if not isinstance(tokens, list):
            raise NotServedError(200, f"{self._server.url} answered without tokens")
        return len(tokens)

    def _leave_alone(self, why: str) -> None:
        if not self._fault:
            logger.warning("tokens are estimated, on the high side: %s", why)
        self._fault = why
        self._resting_until = time.monotonic() + self._pause_s
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)


class Estimates:
    """The counter whose figures are known to be estimates; nobody is asked for its name. Fulfils `TokenCounter`."""

    exact = False

    def __init__(self, counts: ServerCounts) -> None:
        self._counts = counts
        self.count = counts.count

    @property
    def name(self) -> str:
        """Name who counts contexts, as far as is known."""
        return self._counts.known_name

    @property
    def additive(self) -> bool:
        """Tell what `ServerCounts.additive` tells."""
        return self._counts.additive


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""Token counts with llama-server: exact for each requested context, corrected estimates for everything else.

Only a request for a context waits for the network, and no longer than a timeout. The server's count of a context
corrects later estimates.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from math import ceil

from orchestra_mem.adapters.openai_http.server import PassingError, Server, UnsupportedRequestError
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

# Counting takes a few milliseconds, about a hundred for a complete context. A server that takes longer is left alone
# for a while, and longer after each further failure; one that was away, only until it has answered a prompt.
_PATIENCE_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 20.0
# Maximum number of attempts to build a context whose count by the server is within the budget and near the estimate.
_TRIES = 5
_NEAR = 0.02
# Factors on the estimate. Before the server's first count, its vocabulary may need a third more tokens than estimated.
# While the server fails, new texts may need a tenth more tokens than the corrected estimate.
_UNKNOWN, _SILENT = 1.35, 1.1
# Contexts with fewer tokens do not correct the estimates. No two vocabularies differ by this factor.
_LEAST_TOKENS, _MOST_TIMES = 100, 5


class ServerTokenCounter:
    """A `TokenCounter` that estimates at once, and lets the server count each context. Safe to share between threads.

    Args:
        server: Counts tokens at `/tokenize`, as llama-server and vLLM do.
        model: The model's name on the server; empty for the server's only model.
        near: Basis of the estimates, and the counter to use if the server does not count.
    """

    exact = False  # refers to `count`; `assemble` marks contexts that the server has counted as exact

    def __init__(self, server: Server, *, model: str = "", near: TokenCounter) -> None:
        self._server = server
        self._model = model
        self._near = near
        self._serves: bool | None = None  # None until the server has answered
        self._factor = _UNKNOWN  # the server's count divided by the estimate
        self._fault = ""
        self._was_away = False  # whether the last attempt failed with a fault that passes, as if the server restarts
        self._failed_at, self._next_try, self._pause_s = 0.0, 0.0, _FIRST_PAUSE_S

    @property
    def name(self) -> str:
        """The source of the counts, as far as it is known, for messages. Sends no request."""
        if self._serves is False:
            return self._near.name
        if self._fault or self._serves is None:
            return f"estimate, until {self._who} answers"
        return f"estimate, corrected by {self._who}"

    @property
    def _who(self) -> str:
        return f"the server at {self._server.url.partition('://')[2]}"

    @property
    def additive(self) -> bool:
        """Whether the counts of a text's pieces add up to the text's count. Corrected estimates are rounded up."""
        return self._serves is False and self._near.additive

    @property
    def doubts(self) -> list[str]:
        """Warnings that the server does not count, and why; empty if the server counts, or has not been asked yet."""
        if self._serves is False:
            return [
                f"{self._server.url} does not count tokens; {self._near.name} counts instead of the model's tokenizer"
            ]
        if not self._fault:
            return []
        wait_s = ceil(self._next_try - time.monotonic())
        when = f"in {wait_s} s" if self._rests and wait_s > 0 else "with the next context"
        return [f"tokens are estimated, on the high side: at the last attempt {self._fault}; next attempt {when}"]

    def count(self, text: str) -> int:
        """Estimate the tokens of `text` without waiting for the server."""
        near = self._near.count(text)
        return near if self._serves is False else ceil(near * self._factor * (_SILENT if self._fault else 1.0))

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Build a context within its budget by the server's count, or by estimate if the server does not count in time.

        Args:
            build: Builds the context. Its argument is the number of an epoch to recount first, or 0.
        """
        deadline = time.monotonic() + _PATIENCE_S
        context, known = build(0), dict[str, int]()
        for _ in range(_TRIES):
            text = context.render()
            counted = known.get(text) or self._counted(text, deadline)
            if counted is None:
                break
            is_near = counted < _LEAST_TOKENS or context.tokens <= counted * (1 + _NEAR)
            if counted <= context.budget_tokens and is_near:
                return replace(context, tokens=counted, exact=True, counter=self._who)
            known[text] = counted
            context = build(context.epoch)
        return replace(context, exact=False, counter=self.name)

    def _counted(self, text: str, deadline: float) -> int | None:
        """Return the server's count of a context, and correct the estimates by it; None if there is no count."""
        if self._serves is False or self._rests:
            return None
        near = self._near.count(text)
        try:
            tokens = self._tokenize(text, max(0.1, deadline - time.monotonic()))
            if near > _MOST_TIMES * max(tokens, _LEAST_TOKENS):
                raise UnsupportedRequestError(
                    200, f"{self._server.url} counts {tokens} tokens in {len(text):,} characters"
                )
        except ModelError as error:
            if self._serves is None and isinstance(error, UnsupportedRequestError):
                self._serves = False
                logger.warning("%s does not count tokens; %s counts instead", self._server.url, self._near.name)
            else:
                if not self._fault:
                    logger.warning("tokens are estimated, on the high side: %s", error)
                self._fault, self._was_away = str(error), isinstance(error, PassingError)
                self._failed_at = time.monotonic()
                self._next_try = self._failed_at + self._pause_s
                self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
            return None
        self._serves, self._fault, self._pause_s = True, "", _FIRST_PAUSE_S
        if near and tokens >= _LEAST_TOKENS:
            self._factor = tokens / near
        return tokens

    @property
    def _rests(self) -> bool:
        """Whether the server is left alone after a failure."""
        is_back = self._was_away and self._server.answered_at > self._failed_at
        return time.monotonic() < self._next_try and not is_back

    def _tokenize(self, text: str, timeout_s: float) -> int:
        # Lone surrogates, which no server accepts, become question marks.
        sendable = text.encode("utf-8", "replace").decode("utf-8")
        # The fields of llama-server and those of vLLM; each server ignores the other's.
        body: Json = {
            "content": sendable, "add_special": False, "parse_special": False,
            "model": self._model, "prompt": sendable, "add_special_tokens": False,
        }  # fmt: skip
        found = self._server.ask("POST", "/tokenize", body, timeout_s=timeout_s)
        tokens = found.get("tokens") if isinstance(found, dict) else None
        if not isinstance(tokens, list):
            raise UnsupportedRequestError(200, f"{self._server.url} answered without tokens")
        return len(tokens)

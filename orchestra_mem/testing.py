"""Fake language models for testing programs that use a memory: a well-behaved one and faulty ones.

    from orchestra_mem import open_memory
    from orchestra_mem.testing import FaithfulModel

    with open_memory(folder, model=FaithfulModel()) as memory:
        ...

The models need no files and no network, and count each word as a token.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.text import split_sentences
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.types import Json

__all__ = ["EndlessModel", "FailingModel", "FaithfulModel", "HangingModel", "ScriptedModel"]

_PIECE = re.compile(r"\s*\S+")
_RECORD = re.compile(r"<record>\n(.*)\n</record>", re.DOTALL)
_MAX_LINE_CHARS = 200


class ScriptedModel:
    """A model with scripted answers. Implements `LanguageModel`.

    Args:
        answer: The text of every answer, or a function from the prompt to the answer.
        name: The model's name.
        context_tokens: Size of the context window, in words.
        tokens_per_s: Speed of generation; None for no delay.
        obedient: Whether the model respects `cancelled` and `timeout_s`.
    """

    def __init__(
        self,
        answer: str | Callable[[Sequence[Message]], str],
        *,
        name: str = "scripted",
        context_tokens: int = 8_192,
        tokens_per_s: float | None = None,
        obedient: bool = True,
    ) -> None:
        self._answer = answer
        self.name = name
        self.context_tokens = context_tokens
        self._pause_s = 1.0 / tokens_per_s if tokens_per_s else 0.0
        self._obedient = obedient
        self._turn = threading.Lock()
        self.prompts: list[tuple[Message, ...]] = []
        self.closed = False

    def count_prompt(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Json]] = ()) -> int:
        """Count the words of a prompt."""
        texts = [*(message.text for message in messages), *map(json.dumps, tools)]
        return sum(len(text.split()) for text in texts)

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
        """Generate the scripted answer word by word, ignoring schema, temperature and seed.

        Raises:
            ModelError: The prompt does not fit the window, or the time limit is reached.
        """
        with self._turn:
            self.prompts.append(tuple(messages))
            self.closed = False
            prompt_tokens = self.count_prompt(messages)
            if prompt_tokens >= self.context_tokens:
                raise ModelError(
                    f"the prompt of {prompt_tokens} tokens does not fit the window of {self.context_tokens}"
                )
            text = self._answer if isinstance(self._answer, str) else self._answer(messages)
            start = time.monotonic()
            said, finish = self._speak(text, min(max_tokens, self.context_tokens - prompt_tokens), cancelled, timeout_s)
            return Generation(
                text="".join(said),
                finish=finish,
                prompt_tokens=prompt_tokens,
                answer_tokens=len(said),
                evaluated_tokens=prompt_tokens,
                answer_s=time.monotonic() - start,
            )

    def _speak(
        self, text: str, most: int, cancelled: Callable[[], bool] | None, timeout_s: float | None
    ) -> tuple[list[str], Finish]:
        pieces = _PIECE.findall(text)
        said: list[str] = []
        start = time.monotonic()
        for piece in pieces:
            if len(said) == most:
                return said, Finish.LENGTH
            if self._obedient and cancelled is not None and cancelled():
                return said, Finish.CANCELLED
            if self._obedient and timeout_s is not None and time.monotonic() - start > timeout_s:
                raise ModelError(f"{self.name} was stopped after {timeout_s:g} s, {len(said)} tokens into its answer")
            if self._pause_s:
                time.sleep(self._pause_s)
            said.append(piece)
        return said, Finish.STOP

    def close(self) -> None:
        """Set `closed`, which the next generation clears."""
        self.closed = True


class FaithfulModel(ScriptedModel):
    """A good model: it quotes the sentences of the record that contain the most identifiers."""

    def __init__(self, *, name: str = "faithful", tokens_per_s: float | None = None) -> None:
        super().__init__(_faithful_answer, name=name, tokens_per_s=tokens_per_s)


class EndlessModel(ScriptedModel):
    """A model that repeats one sentence endlessly."""

    def __init__(self, sentence: str = "All of it was done.", *, name: str = "endless") -> None:
        super().__init__(f"{sentence} " * 20_000, name=name)


class FailingModel(ScriptedModel):
    """A model that raises the given error instead of answering."""

    def __init__(self, error: Exception, *, name: str = "failing") -> None:
        def fail(messages: Sequence[Message]) -> str:
            raise error

        super().__init__(fail, name=name)


class HangingModel(ScriptedModel):
    """A model that hangs until `release` is called, ignoring cancellation and time limits."""

    def __init__(self, *, name: str = "hanging") -> None:
        self._released = threading.Event()

        def hang(messages: Sequence[Message]) -> str:
            self._released.wait()
            return ""

        super().__init__(hang, name=name, obedient=False)

    def release(self) -> None:
        """Let hanging and later generations return empty answers."""
        self._released.set()


def _faithful_answer(messages: Sequence[Message]) -> str:
    found = _RECORD.search(messages[-1].text)
    sentences = [" ".join(each.split()) for each in split_sentences(found[1] if found else "")]
    fitting = [sentence for sentence in sentences if len(sentence) <= _MAX_LINE_CHARS]
    best = sorted(fitting, key=lambda sentence: -len(find_identifiers(sentence)))[:3]
    return json.dumps({"lines": [sentence for sentence in fitting if sentence in best][:3]})

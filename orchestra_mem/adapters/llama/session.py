"""Generation with a loaded model: keep a cache of processed tokens, and sample each next token.

Built on the functions of `llama.h` instead of `llama_cpp.Llama`, which redirects stdout and stderr of the process while
it loads, caches a single sequence, and lets a grammar check all 150,000 tokens at every step.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.adapters.llama.library import LoadedModel
from orchestra_mem.adapters.llama.lifetime import Stop
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Prompt tokens per batch. A batch must take less time than the seconds until a foreground prompt aborts it, as its work
# is lost then. One core processes 52 tokens of Qwen2.5 0.5B per second in batches of 32, 62 in batches of 64, and 73 in
# batches of 256; graphics cards need far larger batches.
_BATCH_TOKENS = 64
_BATCH_TOKENS_OFFLOADED = 512
_ABORTED = 2
# Two conversations are cached: the program's, and that of background jobs, whose prompts are short and begin alike.
# If one fills its window, the cache has room for `BESIDE_TOKENS` of the other; a longer conversation is evicted.
_TALKS = 2
BESIDE_TOKENS = 2_048
# A shorter common prefix may come from the chat template alone.
_LEAST_COMMON = 24
# Defaults of llama.cpp's own programs for random sampling.
_TOP_K, _TOP_P, _MIN_P = 40, 0.95, 0.05


@dataclass(slots=True, eq=False)
class _Talk:
    """A sequence in the cache. `number`: Id of the sequence. `read`: Its tokens."""

    number: int
    read: list[int] = field(default_factory=list)


class LlamaSession(LoadedModel):
    """A loaded model with a cache for two conversations. For one thread at a time.

    Args:
        path: The GGUF file.
        stop: Polled while the model is loaded.
        context_tokens: Context window, shared by prompt and answer.
        threads: Number of processor threads.

    Raises:
        ModelError: llama.cpp refuses, or `stop` is set.
    """

    def __init__(self, path: Path, stop: Stop, *, context_tokens: int, threads: int) -> None:
        super().__init__(path, stop)
        library = self.library
        # Both conversations share one buffer, so that each can use the space that the other does not need.
        self._cells = context_tokens + min(context_tokens, BESIDE_TOKENS)
        self._batch_tokens = _BATCH_TOKENS_OFFLOADED if library.llama_supports_gpu_offload() else _BATCH_TOKENS
        self._context = self.open_context(
            self._cells, kv_unified=True, n_seq_max=_TALKS,
            n_batch=self._batch_tokens, n_ubatch=self._batch_tokens, n_threads=threads, n_threads_batch=threads,
        )  # fmt: skip
        self._memory = library.llama_get_memory(self._context)
        # Least recently used first.
        self._talks = [_Talk(number) for number in range(_TALKS)]
        self._batch = library.llama_batch_init(self._batch_tokens, 0, 1)
        self.frees.callback(library.llama_batch_free, self._batch)
        # llama.cpp calls this hundreds of times per token. A Python function would wait for the interpreter lock each
        # time, up to 5 ms in a busy program; `strlen` only reads the memory that `Stop.set` writes to.
        self._aborts = ctypes.cast(ctypes.CDLL(None).strlen, library.ggml_abort_callback)

    def generate(
        self, prompt: Sequence[int], *, max_tokens: int, grammar: str, temperature: float, seed: int, stop: Stop
    ) -> Generation:
        """Answer a prompt. If `stop` is set meanwhile, return the partial answer, marked as cancelled.

        Args:
            prompt: Tokens of the prompt.
            max_tokens: Upper limit for the answer.
            grammar: Grammar in GBNF; empty to allow any token.
            temperature: Sampling temperature; 0 for the most likely answer.
            seed: Seed for random sampling.
            stop: Polled while the prompt is processed and the answer generated.

        Raises:
            ModelError: llama.cpp fails.
        """
        library, begun = self.library, time.perf_counter()
        library.llama_set_abort_callback(self._context, self._aborts, ctypes.addressof(stop.sign))
        talk = self._resumed(prompt)
        kept = len(talk.read)
        while len(talk.read) < len(prompt) and not stop():
            self._read(talk, prompt[len(talk.read) :])
        # An aborted batch can empty a cache that cannot be cut.
        evaluated, read = max(0, len(talk.read) - kept), time.perf_counter()
        output, tokens, finish = b"", 0, None
        with closing(_Sampler(self, self._context, grammar, _choices(library, temperature, seed))) as sampler:
            while tokens < max_tokens and not stop():
                token = sampler.next()
                if token is None or library.llama_vocab_is_eog(self.vocabulary, token):
                    finish = Finish.STOP
                    break
                output += self._piece(token)
                tokens += 1
                if tokens < max_tokens:
                    self._read(talk, [token])
        return Generation(
            text=output.decode("utf-8", "ignore"),  # drops invalid bytes, such as half a character at the end
            finish=finish or (Finish.LENGTH if tokens >= max_tokens else Finish.CANCELLED),
            prompt_tokens=len(prompt),
            answer_tokens=tokens,
            evaluated_tokens=evaluated,
            prompt_s=read - begun,
            answer_s=time.perf_counter() - read,
        )

    def _resumed(self, prompt: Sequence[int]) -> _Talk:
        """Return the cached sequence with the longest common prefix with `prompt`, cut to that prefix.

        If no common prefix is long enough, return the least recently used sequence.
        """
        common = [
            sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(talk.read, prompt, strict=False)))
            for talk in self._talks
        ]
        place = common.index(max(common)) if max(common) >= _LEAST_COMMON else 0
        talk = self._talks.pop(place)
        self._talks.append(talk)
        # The last token is always processed again, as its logits are not kept.
        self._forget(talk, min(common[place], len(prompt) - 1))
        return talk

    def _read(self, talk: _Talk, tokens: Sequence[int]) -> None:
        """Process the first batch of `tokens` and append it to the sequence; append nothing if it is aborted."""
        tokens = tokens[: self._batch_tokens]
        if sum(len(each.read) for each in self._talks) + len(tokens) > self._cells:
            self._drop(self._talks[0])
        batch = self._batch
        batch.n_tokens = len(tokens)
        for place, token in enumerate(tokens):
            batch.token[place] = token
            batch.pos[place] = len(talk.read) + place
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = talk.number
            batch.logits[place] = place == len(tokens) - 1
        code = self.library.llama_decode(self._context, batch)
        if code == 0:
            talk.read += tokens
            return
        self._forget(talk, len(talk.read))
        if code != _ABORTED:
            raise ModelError(f"llama.cpp failed with code {code} after {len(talk.read):,} tokens")

    def _piece(self, token: int) -> bytes:
        """Return a token's bytes, which may end within a character."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = self.library.llama_token_to_piece(self.vocabulary, token, buffer, size, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def _forget(self, talk: _Talk, kept: int) -> None:
        """Cut a sequence to its first `kept` tokens; empty it if the model's cache cannot be cut."""
        if self.library.llama_memory_seq_rm(self._memory, talk.number, kept, -1):
            del talk.read[kept:]
        else:
            self._drop(talk)

    def _drop(self, talk: _Talk) -> None:
        self.library.llama_memory_seq_rm(self._memory, talk.number, -1, -1)
        talk.read.clear()


class _Sampler:
    """Samples the next token of an answer, the most likely or a random one, from those that a grammar allows."""

    def __init__(self, loaded: LoadedModel, context: Any, grammar: str, choices: Sequence[Any]) -> None:
        self._library, self._context = loaded.library, context
        self._size = self._library.llama_vocab_n_tokens(loaded.vocabulary)
        self._chain = self._library.llama_sampler_chain_init(self._library.llama_sampler_chain_default_params())
        for choice in choices:
            self._library.llama_sampler_chain_add(self._chain, choice)
        self._grammar = None
        if grammar:
            self._grammar = self._library.llama_sampler_init_grammar(loaded.vocabulary, grammar.encode(), b"root")
            if not self._grammar:
                self.close()
                raise ModelError("llama.cpp rejected the grammar made from the JSON schema")

    def next(self) -> int | None:
        """Sample a token; None if the grammar allows none.

        The grammar checks all tokens only if it rejects the sampled one: checking the 151,936 tokens of Qwen takes two
        thirds of the time in which its 0.5B model processes a token.
        """
        import numpy as np

        token: int | None = self._library.llama_sampler_sample(self._chain, self._context, -1)
        if self._grammar is None:
            return token
        kind = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        one = np.array([(token, 0.0, 0.0)], kind)
        self._apply(self._grammar, one)
        if np.isneginf(one["logit"][0]):
            every = np.zeros(self._size, kind)
            every["id"] = np.arange(self._size)
            logits = self._library.llama_get_logits_ith(self._context, -1)
            every["logit"] = np.ctypeslib.as_array(logits, (self._size,))
            self._apply(self._grammar, every)
            if np.isneginf(every["logit"]).all():
                return None
            token = int(every["id"][self._apply(self._chain, every)])
        self._library.llama_sampler_accept(self._grammar, token)
        return token

    def _apply(self, sampler: Any, rows: NDArray[Any]) -> int:
        """Apply a sampler to candidate tokens, in place; return the index of the selected one."""
        library = self._library
        data = (library.llama_token_data * len(rows)).from_buffer(rows)
        array = library.llama_token_data_array(ctypes.cast(data, library.llama_token_data_p), len(rows), -1, False)
        library.llama_sampler_apply(sampler, ctypes.byref(array))
        return int(array.selected)

    def close(self) -> None:
        """Free the samplers."""
        for sampler in filter(None, (self._chain, self._grammar)):
            self._library.llama_sampler_free(sampler)


def _choices(library: Any, temperature: float, seed: int) -> list[Any]:
    if temperature <= 0:
        return [library.llama_sampler_init_greedy()]
    return [
        library.llama_sampler_init_top_k(_TOP_K),
        library.llama_sampler_init_top_p(_TOP_P, 1),
        library.llama_sampler_init_min_p(_MIN_P, 1),
        library.llama_sampler_init_temp(temperature),
        library.llama_sampler_init_dist(seed & 0xFFFFFFFF),
    ]


def grammar_of(schema: Mapping[str, Json] | None) -> str:
    """Convert a JSON schema to a grammar in GBNF; empty for None.

    Raises:
        ModelError: The schema cannot be converted.
    """
    if schema is None:
        return ""
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        return str(json_schema_to_gbnf(json.dumps(schema)))
    except Exception as error:  # the converter uses assertions, and raises errors of many types
        raise ModelError(f"the JSON schema cannot be converted to a grammar: {error}") from error

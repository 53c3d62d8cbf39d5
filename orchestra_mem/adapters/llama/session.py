"""Generate with a loaded model: keep the cache of what it has read, and choose each next token.

Built on the functions of `llama.h` and not on `llama_cpp.Llama`, which redirects the whole process's stdout and stderr
while it loads, has one sequence in its cache, and lets a grammar look at all of 150,000 tokens each time.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestra_mem.adapters.llama.ending import Stop
from orchestra_mem.adapters.llama.library import LoadedModel
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Generation
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

# So many tokens of a prompt are read at once. What is cut off in the midst of a batch is read again: where prompts of
# the foreground come every few seconds a batch must be shorter than that. One core reads 52 tokens of Qwen2.5 0.5B a
# second with 32, 62 with 64 and 73 with 256; graphics cards want far more to do.
_BATCH_TOKENS = 64
_BATCH_TOKENS_OFFLOADED = 512
_ABORTED = 2
# Two talks are kept: the program's, and what goes on in the background, whose prompts begin alike and are short. Beside
# a whole window so much is kept of the other; where that is not enough the other one goes.
_TALKS = 2
BESIDE_TOKENS = 2_048
# Chat templates alone make prompts begin alike for so many tokens.
_LEAST_COMMON = 24
# What llama.cpp's own programs take where chance is wanted.
_TOP_K, _TOP_P, _MIN_P = 40, 0.95, 0.05


@dataclass(slots=True, eq=False)
class _Talk:
    """A sequence in the cache, and the tokens that were read into it."""

    number: int
    read: list[int] = field(default_factory=list)


class LlamaSession(LoadedModel):
    """A loaded model with a cache for two talks. For one thread at a time.

    Args:
        path: the GGUF.
        stop: asked while it is loaded.
        context_tokens: the window, prompt and answer together.
        threads: of the processor.

    Raises:
        ModelError: llama.cpp refuses, or `stop` says so.
    """

    def __init__(self, path: Path, stop: Stop, *, context_tokens: int, threads: int) -> None:
        super().__init__(path, stop)
        library = self.library
        # One buffer for both talks: what the one does not need the other may take.
        self._cells = context_tokens + min(context_tokens, BESIDE_TOKENS)
        self._batch_tokens = _BATCH_TOKENS_OFFLOADED if library.llama_supports_gpu_offload() else _BATCH_TOKENS
        self._context = self.open_context(
            self._cells, kv_unified=True, n_seq_max=_TALKS,
            n_batch=self._batch_tokens, n_ubatch=self._batch_tokens, n_threads=threads, n_threads_batch=threads,
        )  # fmt: skip
        self._memory = library.llama_get_memory(self._context)
        # The one used last stands last.
        self._talks = [_Talk(number) for number in range(_TALKS)]
        self._batch = library.llama_batch_init(self._batch_tokens, 0, 1)
        self.frees.callback(library.llama_batch_free, self._batch)
        self._aborts = _abort_callback(library)

    def generate(
        self, prompt: Sequence[int], *, max_tokens: int, grammar: str, temperature: float, seed: int, stop: Stop
    ) -> Generation:
        """Answer a prompt; where `stop` is set meanwhile, give what there is of the answer as cancelled.

        Args:
            prompt: its tokens.
            max_tokens: the most that the answer may have.
            grammar: in GBNF; empty where any token will do.
            temperature: 0 for the likeliest answer.
            seed: of chance.
            stop: asked all the time.

        Raises:
            ModelError: llama.cpp fails.
        """
        library, begun = self.library, time.perf_counter()
        library.llama_set_abort_callback(self._context, self._aborts, ctypes.addressof(stop.sign))
        talk = self._resumed(prompt)
        kept = len(talk.read)
        while len(talk.read) < len(prompt) and not stop():
            self._read(talk, prompt[len(talk.read) :])
        evaluated, read = len(talk.read) - kept, time.perf_counter()
        said, tokens, finish = b"", 0, None
        with closing(_Sampler(self, self._context, grammar, _choices(library, temperature, seed))) as sampler:
            while tokens < max_tokens and not stop():
                token = sampler.next()
                if token is None or library.llama_vocab_is_eog(self.vocabulary, token):
                    finish = Finish.STOP
                    break
                said += self._piece(token)
                tokens += 1
                if tokens < max_tokens:
                    self._read(talk, [token])
        return Generation(
            text=said.decode("utf-8", "ignore"),  # half a character at its end is left out
            finish=finish or (Finish.LENGTH if tokens >= max_tokens else Finish.CANCELLED),
            prompt_tokens=len(prompt),
            answer_tokens=tokens,
            evaluated_tokens=evaluated,
            prompt_s=read - begun,
            answer_s=time.perf_counter() - read,
        )

    def _resumed(self, prompt: Sequence[int]) -> _Talk:
        """Give the talk that has most in common with `prompt`, cut to what it need not read again.

        Where that is next to nothing, it is the one that was left longer ago.
        """
        common = [_common(talk.read, prompt) for talk in self._talks]
        place = common.index(max(common)) if max(common) >= _LEAST_COMMON else 0
        talk = self._talks.pop(place)
        self._talks.append(talk)
        # The last one is read again: what follows it is not kept.
        self._forget(talk, min(common[place], len(prompt) - 1))
        return talk

    def _read(self, talk: _Talk, tokens: Sequence[int]) -> None:
        """Read tokens behind what the talk has: one batch at most, none where it is aborted."""
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
        """Give a token's bytes, which may end within a character."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = self.library.llama_token_to_piece(self.vocabulary, token, buffer, size, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def _forget(self, talk: _Talk, kept: int) -> None:
        """Drop what a talk has behind its first `kept` tokens; all where the model cannot drop a part."""
        if self.library.llama_memory_seq_rm(self._memory, talk.number, kept, -1):
            del talk.read[kept:]
        else:
            self._drop(talk)

    def _drop(self, talk: _Talk) -> None:
        self.library.llama_memory_seq_rm(self._memory, talk.number, -1, -1)
        talk.read.clear()


def _common(read: Sequence[int], prompt: Sequence[int]) -> int:
    """Count the tokens that two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(read, prompt, strict=False)))


def _abort_callback(library: Any) -> Any:
    """Give a C function that tells whether the text at its argument is not empty.

    llama.cpp asks it hundreds of times a token. A Python function would wait for the interpreter each time, up to 5 ms
    where the program is busy; `strlen` only looks at the memory that `Stop.set` writes to.
    """
    runtime = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    return ctypes.cast(runtime.strlen, library.ggml_abort_callback)


class _Sampler:
    """Chooses the next token of an answer: the likeliest, or by chance; of those that a grammar allows."""

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
                raise ModelError("llama.cpp does not take the grammar that was made of the schema")

    def next(self) -> int | None:
        """Choose a token; None where the grammar allows none.

        The grammar looks at the one chosen, and at all only where it does not allow that one: to look at the 151,936 of
        Qwen takes two thirds of the time in which 0.5B reads a token.
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
        """Have a sampler weigh tokens, in place; give the place of the one that it has chosen."""
        library = self._library
        data = (library.llama_token_data * len(rows)).from_buffer(rows)
        array = library.llama_token_data_array(ctypes.cast(data, library.llama_token_data_p), len(rows), -1, False)
        library.llama_sampler_apply(sampler, ctypes.byref(array))
        return int(array.selected)

    def close(self) -> None:
        """Free it."""
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
    """Make a grammar in GBNF of a JSON schema; empty where there is none.

    Raises:
        ModelError: the schema says what no grammar can.
    """
    if schema is None:
        return ""
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        return str(json_schema_to_gbnf(json.dumps(schema)))
    except Exception as error:  # the converter asserts, and raises what it meets
        raise ModelError(f"no grammar can be made of the JSON schema: {error}") from error

"""A model's weights and its cache of what it has read, and the choice of the next token: calls to llama.cpp."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from orchestra_mem.adapters.llama.ending import Ended
from orchestra_mem.adapters.llama.loading import load_model
from orchestra_mem.errors import ModelError
from orchestra_mem.types import Json

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is chosen: `grammar` in GBNF, empty where any token will do."""

    temperature: float = 0.0
    seed: int = 0
    grammar: str = ""


@dataclass(slots=True, eq=False)
class _Talk:
    """A sequence in the cache, and the tokens that were read into it."""

    number: int
    read: list[int] = field(default_factory=list)


class LlamaSession:
    """A loaded model with a cache for two talks. For one thread at a time, but `abort` may be called from any.

    Args:
        library: the functions of `llama.h`.
        path: the GGUF.
        context_tokens: the window, prompt and answer together.
        threads: of the processor.
        ended: asked while it is loaded.

    Raises:
        ModelError: llama.cpp refuses, or `ended` says so.
    """

    def __init__(self, library: Any, path: Path, *, context_tokens: int, threads: int, ended: Ended) -> None:
        self._library = library
        self.model: Any = load_model(library, path, ended)
        parameters = library.llama_context_default_params()
        # One buffer for both talks: what the one does not need the other may take.
        self._cells = context_tokens + min(context_tokens, BESIDE_TOKENS)
        parameters.n_ctx, parameters.kv_unified = self._cells, True
        self._batch_tokens = _BATCH_TOKENS_OFFLOADED if library.llama_supports_gpu_offload() else _BATCH_TOKENS
        parameters.n_batch = parameters.n_ubatch = self._batch_tokens
        parameters.n_seq_max = _TALKS
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.no_perf = True
        self._context: Any = library.llama_init_from_model(self.model, parameters)
        if not self._context:
            library.llama_model_free(self.model)
            raise ModelError(f"llama.cpp cannot make a context of {context_tokens:,} tokens for {path}")
        self._memory = library.llama_get_memory(self._context)
        self._vocabulary = library.llama_model_get_vocab(self.model)
        # The one used last stands last.
        self._talks = [_Talk(number) for number in range(_TALKS)]
        self._batch = library.llama_batch_init(self._batch_tokens, 0, 1)
        self._abort_sign = ctypes.create_string_buffer(2)
        library.llama_set_abort_callback(self._context, _abort_callback(library), ctypes.addressof(self._abort_sign))

    def keep_common(self, prompt: Sequence[int]) -> int:
        """Keep of what was read what `prompt` begins with; give how many tokens of it need not be read again.

        It goes on with the talk that it has most in common with; where that is next to nothing, in the place of the
        one that was left longer ago.
        """
        common = [_common(talk.read, prompt) for talk in self._talks]
        place = common.index(max(common)) if max(common) >= _LEAST_COMMON else 0
        talk = self._talks.pop(place)
        self._talks.append(talk)
        # The last one is read again: what follows it is not kept.
        self._forget(min(common[place], len(prompt) - 1))
        return len(talk.read)

    def read(self, tokens: Sequence[int]) -> int:
        """Read tokens behind those read before, one batch at most; give how many, 0 where it was aborted.

        Raises:
            ModelError: llama.cpp fails.
        """
        batch, talk = list(tokens[: self._batch_tokens]), self._talks[-1]
        if sum(len(each.read) for each in self._talks) + len(batch) > self._cells:
            self._drop(self._talks[0])
        code = self._library.llama_decode(self._context, self._laid_out(batch, talk))
        if code == 0:
            talk.read += batch
            return len(batch)
        self._forget(len(talk.read))
        if code == _ABORTED:
            return 0
        raise ModelError(f"llama.cpp failed with code {code} after {len(talk.read):,} tokens")

    def _laid_out(self, tokens: Sequence[int], talk: _Talk) -> Any:
        """Tokens as llama.cpp takes them, behind what the talk has; it tells what follows the last of them."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for place, token in enumerate(tokens):
            batch.token[place] = token
            batch.pos[place] = len(talk.read) + place
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = talk.number
            batch.logits[place] = place == len(tokens) - 1
        return batch

    def abort(self) -> None:
        """Have the reading that is under way end soon, and those that follow, until `resume`."""
        self._abort_sign[0] = b"\1"

    def resume(self) -> None:
        """Read again."""
        self._abort_sign[0] = b"\0"

    def ends(self, token: int) -> bool:
        """Tell whether a token ends an answer."""
        return bool(self._library.llama_vocab_is_eog(self._vocabulary, token))

    def piece(self, token: int) -> bytes:
        """Give a token's bytes, which may end within a character."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = self._library.llama_token_to_piece(self._vocabulary, token, buffer, size, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def sampler(self, how: Sampling) -> Sampler:
        """Make what chooses tokens; close it when the answer is there."""
        return Sampler(self._library, self._context, self._vocabulary, how)

    def close(self) -> None:
        """Free all of it. Nothing may be called any more."""
        self._library.llama_batch_free(self._batch)
        self._library.llama_free(self._context)
        self._library.llama_model_free(self.model)

    def _forget(self, kept: int) -> None:
        """Drop what the present talk has behind its first `kept` tokens; all where the model cannot drop a part."""
        talk = self._talks[-1]
        if self._library.llama_memory_seq_rm(self._memory, talk.number, kept, -1):
            del talk.read[kept:]
        else:
            self._drop(talk)

    def _drop(self, talk: _Talk) -> None:
        self._library.llama_memory_seq_rm(self._memory, talk.number, -1, -1)
        talk.read.clear()


def _common(read: Sequence[int], prompt: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(read, prompt, strict=False)))


def _abort_callback(library: Any) -> Any:
    """Give a C function that tells whether the text at its argument is empty.

    llama.cpp asks it hundreds of times a token. A Python function would wait for the interpreter each time, up to 5 ms
    where the program is busy; `strlen` only looks at the memory that `abort` writes to.
    """
    runtime = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    return ctypes.cast(runtime.strlen, library.ggml_abort_callback)


class Sampler:
    """Chooses the next token of an answer: the likeliest, or by chance; of those that a grammar allows."""

    def __init__(self, library: Any, context: Any, vocabulary: Any, how: Sampling) -> None:
        self._library = library
        self._context = context
        self._size = library.llama_vocab_n_tokens(vocabulary)
        self._chain = library.llama_sampler_chain_init(library.llama_sampler_chain_default_params())
        for sampler in _choices(library, how):
            library.llama_sampler_chain_add(self._chain, sampler)
        self._grammar = None
        if how.grammar:
            self._grammar = library.llama_sampler_init_grammar(vocabulary, how.grammar.encode(), b"root")
            if not self._grammar:
                self.close()
                raise ModelError("llama.cpp does not take the grammar that was made of the schema")

    def next(self) -> int | None:
        """Choose a token; None where the grammar allows none."""
        token: int | None = self._library.llama_sampler_sample(self._chain, self._context, -1)
        if self._grammar is None:
            return token
        # The grammar looks at the one chosen; at all 150,000 only where it does not allow that.
        if not self._allowed(token):
            token = self._best_allowed()
        if token is not None:
            self._library.llama_sampler_accept(self._grammar, token)
        return token

    def close(self) -> None:
        """Free it."""
        for sampler in (self._chain, self._grammar):
            if sampler:
                self._library.llama_sampler_free(sampler)
        self._chain = self._grammar = None

    def _allowed(self, token: int | None) -> bool:
        one = (self._library.llama_token_data * 1)(self._library.llama_token_data(token, 0.0, 0.0))
        self._apply(self._grammar, one)
        return bool(one[0].logit > float("-inf"))

    def _best_allowed(self) -> int | None:
        import numpy as np

        data = np.zeros(self._size, np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)]))
        logits = self._library.llama_get_logits_ith(self._context, -1)
        data["id"] = np.arange(self._size)
        data["logit"] = np.ctypeslib.as_array(logits, (self._size,))
        every = (self._library.llama_token_data * self._size).from_buffer(data)
        self._apply(self._grammar, every)
        if not (data["logit"] > -np.inf).any():
            return None
        chosen = self._apply(self._chain, every)
        return int(every[chosen].id)

    def _apply(self, sampler: Any, data: Any) -> int:
        row = self._library.llama_token_data_array(
            ctypes.cast(data, self._library.llama_token_data_p), len(data), -1, False
        )
        self._library.llama_sampler_apply(sampler, ctypes.byref(row))
        return int(row.selected)


def _choices(library: Any, how: Sampling) -> list[Any]:
    if how.temperature <= 0:
        return [library.llama_sampler_init_greedy()]
    return [
        library.llama_sampler_init_top_k(_TOP_K),
        library.llama_sampler_init_top_p(_TOP_P, 1),
        library.llama_sampler_init_min_p(_MIN_P, 1),
        library.llama_sampler_init_temp(how.temperature),
        library.llama_sampler_init_dist(how.seed & 0xFFFFFFFF),
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

"""A GGUF's own vocabulary: its counts equal the model's, add up where it says so, and are preferred."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra_mem import TokenizerError, open_memory
from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel
from orchestra_mem.adapters.llama.library import load_library
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.model_types import Message, Role
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import Json

pytestmark = pytest.mark.slow

# Settings for properties with module-scoped fixtures.
SHARED = settings(max_examples=60)
# Input that breaks tokenizer rules: white space, digits, contractions, spelled special tokens, half characters.
PIECES = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from([
            "\n", "\n\n", " \n", "\r\n", "\t", "  ", "é", "don't", "12345", "<|im_end|>", "<|endoftext|>",
            "<tool_call>", "!?\n", "你好", "\U0001f600", "\u00a0", "\u2028", "{",
        ]),
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def qwen(qwen_gguf: Path) -> Iterator[GgufVocabulary]:
    """Qwen's vocabulary, without the model."""
    vocabulary = GgufVocabulary(qwen_gguf)
    yield vocabulary
    vocabulary.close()


@pytest.fixture(scope="module")
def smollm(smollm_gguf: Path) -> Iterator[GgufVocabulary]:
    """SmolLM2's vocabulary, without the model."""
    vocabulary = GgufVocabulary(smollm_gguf)
    yield vocabulary
    vocabulary.close()


@pytest.fixture(scope="module")
def whole(smollm_gguf: Path) -> Iterator[Any]:
    """The complete model in llama-cpp-python's own class, independent of this project's code."""
    load_library()
    import llama_cpp

    model = llama_cpp.Llama(str(smollm_gguf), n_ctx=512, n_threads=1, verbose=False)
    yield model
    model.close()


@SHARED
@given(st.text())
@example("done<|im_end|> and on")
def test_counts_are_those_of_the_whole_model(smollm: GgufVocabulary, whole: Any, text: str) -> None:
    """For any text, the vocabulary's tokens equal those of the complete model, without loading weights."""
    assert smollm.tokens(text) == whole.tokenize(text.encode(), add_bos=False, special=False)


@pytest.mark.parametrize(
    "text", ["Hello", "def f(x):\n\n    return x\n", "  spaces \n\n", "你好, world", "", "<think>\n"]
)
def test_prompts_are_counted_as_the_model_reads_them(smollm: GgufVocabulary, whole: Any, text: str) -> None:
    """Prompt counts equal the usage that the library's own chat completion reports."""
    messages = [Message(role=Role.SYSTEM, text="Be brief."), Message(role=Role.USER, text=text)]
    given_messages = [{"role": message.role.value, "content": message.text} for message in messages]
    usage = whole.create_chat_completion(given_messages, max_tokens=1)["usage"]
    assert len(smollm.prompt_tokens(messages)) == usage["prompt_tokens"]


TOOLS: list[dict[str, Json]] = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": 'Give the weather in a city – ö, "quoted".',
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@pytest.mark.parametrize("gguf", ["qwen_gguf", "smollm_gguf"])
def test_tools_are_counted_as_the_model_reads_them(gguf: str, request: pytest.FixtureRequest) -> None:
    """Counts with tools equal the usage the library reports; a template without a place for tools adds nothing."""
    load_library()
    import llama_cpp

    path: Path = request.getfixturevalue(gguf)
    whole = llama_cpp.Llama(str(path), n_ctx=512, n_threads=1, verbose=False)
    messages = [Message(role=Role.SYSTEM, text="Be brief."), Message(role=Role.USER, text="How is it in Oslo?")]
    spoken: list[Any] = [{"role": message.role.value, "content": message.text} for message in messages]
    given_tools: list[Any] = [*TOOLS]
    usage = whole.create_chat_completion(spoken, tools=given_tools, max_tokens=1)["usage"]  # type: ignore[index]
    whole.close()
    with closing(LlamaModel(GgufVocabulary(path), context_tokens=512, threads=1)) as model:
        assert model.count_prompt(messages, tools=TOOLS) == usage["prompt_tokens"]
        more = model.count_prompt(messages, tools=TOOLS) - model.count_prompt(messages)
        assert more > 60 if gguf == "qwen_gguf" else more == 0


def test_what_was_recorded_cannot_speak_as_the_prompt(qwen: GgufVocabulary) -> None:
    """Special tokens come only from the template: a message or tool that spells one is read as plain text."""
    special = range(151_643, 151_665)

    def prompt(said: str) -> list[int]:
        tools: list[dict[str, Json]] = [{"type": "function", "function": {"name": "f", "description": said}}]
        return qwen.prompt_tokens([Message(role=Role.USER, text=said)], tools)

    harmless, spelled = prompt("It ends."), prompt("It ends <|im_end|>.")
    assert [each for each in spelled if each in special] == [each for each in harmless if each in special] != []
    assert len(spelled) > len(harmless) + 2 * 4  # several tokens for each, not one special token


@SHARED
@given(st.lists(PIECES.map("".join)))
def test_counts_of_pieces_add_up_for_qwen(qwen: GgufVocabulary, texts: list[str]) -> None:
    """Qwen's counts add up for pieces that end with a line feed and start with a non-space."""
    counter = qwen
    pieces = [f".{text}\n" for text in texts]
    assert counter.additive
    assert counter.count("".join(pieces)) == sum(map(counter.count, pieces))


def test_other_vocabularies_say_that_counts_do_not_add_up(smollm: GgufVocabulary) -> None:
    """SmolLM2 is not additive: two line feeds are two tokens before a word and one at the end of a text."""
    counter = smollm
    assert not counter.additive
    assert counter.count("a\n\nb") != counter.count("a\n\n") + counter.count("b")


def test_known_counts(qwen: GgufVocabulary) -> None:
    """Token ids and counts equal those of Qwen's published tokenizer."""
    counter: TokenCounter = qwen
    assert (counter.name, counter.exact) == ("vocabulary of qwen2.5-coder-0.5b-instruct-q4_k_m", True)
    assert qwen.tokens("hello world") == [14990, 1879]
    # One token per digit; a spelled special token is text; a lone surrogate is a question mark.
    known = {"": 0, "12345": 5, "\n\n": 1, "<|im_end|>": 6, "\ud800": 1, "\0": 1}
    assert {text: counter.count(text) for text in known} == known


# Choice of the counter


def test_where_it_cannot_be_had_the_next_one_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If the vocabulary is missing, the next counter counts and the reason is logged once."""
    missing = GgufVocabulary(tmp_path / "no.gguf")
    counter = open_counter("auto", own=missing)
    with caplog.at_level(logging.WARNING):
        assert [counter.count("hello world") for _ in range(3)] == [2, 2, 2]
    assert (counter.name, counter.exact) == ("tiktoken cl100k_base", False)
    assert [record.message for record in caplog.records] == [
        f"cannot count tokens with vocabulary of no: {tmp_path / 'no.gguf'} does not exist; set llm.model_path or "
        "search.model_path to a GGUF model file"
    ]
    with pytest.raises(TokenizerError, match=r"no\.gguf does not exist; "):
        missing.count("a")


@pytest.mark.parametrize("choice", ["auto", "gguf"])
def test_a_memory_counts_with_the_model_that_is_set(tmp_path: Path, qwen_gguf: Path, choice: str) -> None:
    """A context's count is exact and equals the configured model's; a relative model path starts at the project."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").symlink_to(qwen_gguf)
    config = {"llm": {"model_path": "models/mine.gguf"}, "tokens": {"counter": choice}}
    with open_memory(tmp_path, config=config) as memory:
        for number in range(30):
            memory.record_operation("step", {"text": f"Step {number} took 1234{number} ms in parser_{number}.py."})
        context = memory.get_orchestrator_context("next", max_tokens=600)
        assert (context.exact, context.counter) == (True, "vocabulary of mine")
        rendered = context.render()
    assert 300 < context.tokens <= 600
    with closing(GgufVocabulary(qwen_gguf)) as vocabulary:
        assert len(vocabulary.tokens(rendered)) == context.tokens

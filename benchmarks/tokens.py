"""Measure the error of the token counters (a GGUF's vocabulary, tiktoken, the estimate) against the model's own counts.

The texts are steps of recorded coding sessions, commits, and turns of talks, equally many of each. The model's counts
come from llama-cpp-python's own class with the whole model loaded; it shares only llama.cpp with the counters.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, model_path, percentile, run, say
from benchmarks._operations import recordings
from orchestra_mem.adapters.llama import GgufVocabulary
from orchestra_mem.adapters.llama.library import load_library
from orchestra_mem.adapters.tokenizers import Calibration, EstimateCounter, TiktokenCounter
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Message, Role
from orchestra_mem.ports import TokenCounter

TARGETS: dict[str, Target] = {"gguf_count_error": ("<=", 0)}
TEXTS = 1_000
# Number of prompts that the model reads so that its count can be compared; short ones, as reading takes time.
PROMPTS = 40
QUICK_PROMPTS = 8
PROMPT_CHARS = 400
MODELS = ("qwen2.5-coder-0.5b-instruct-q4_k_m", "smollm2-135m-instruct-q4_1")
# Texts of fewer tokens are left out of relative errors, where one token is already a large share.
LEAST_TOKENS = 20


def recorded_texts(data: Path) -> dict[str, list[str]]:
    """Read the recorded texts by source; empty if there are no recordings."""
    found: dict[str, list[str]] = {}
    for name, history in recordings(data).items():
        found.setdefault(name.partition("_")[0], []).extend(_text_of(each.data) for each in history)
    return found


def _text_of(data: Any) -> str:
    if "subject" in data:
        return f"{data['subject']}\n\n{data['body']}"
    if "speaker" in data:
        return f"{data['speaker']}: {data['text']}"
    return str(data.get("output") or data["text"])


def drawn(sources: dict[str, list[str]], count: int) -> list[str]:
    """Draw `count` texts, equally many from each source and always the same."""
    chance = random.Random(4)
    shares = [count // len(sources) + (place < count % len(sources)) for place in range(len(sources))]
    return [text for share, texts in zip(shares, sources.values(), strict=True) for text in chance.sample(texts, share)]


def check_model(name: str, texts: Sequence[str], prompts: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Return the errors of text counts and of prompt counts against the model, and the model's counts of the texts."""
    path = model_path(name)
    load_library()  # before anything else loads it
    import llama_cpp

    vocabulary = GgufVocabulary(path)
    counts = [vocabulary.count(text) for text in texts]
    whole: Any = llama_cpp.Llama(str(path), n_ctx=1_024, n_threads=1, n_threads_batch=1, verbose=False)
    own = [len(whole.tokenize(text.encode(), add_bos=False, special=False)) for text in texts]
    read = []
    for text in prompts:
        answer = whole.create_chat_completion([{"role": "user", "content": text}], max_tokens=1)
        counted = len(vocabulary.prompt_tokens([Message(role=Role.USER, text=text)]))
        read.append(abs(counted - answer["usage"]["prompt_tokens"]))
    whole.close()
    vocabulary.close()
    return [abs(one - other) for one, other in zip(counts, own, strict=True)], read, own


def tell(name: str, count: Callable[[str], int], texts: Sequence[str], own: Sequence[int], report: Report) -> None:
    """Report a counter's error against the model, in total and per text."""
    start = time.process_time()
    counts = [count(text) for text in texts]
    seconds = time.process_time() - start
    pairs = [(one, other) for one, other in zip(counts, own, strict=True) if other >= LEAST_TOKENS]
    errors = [abs(one / other - 1) * 100 for one, other in pairs]
    too_low = sum(one < other for one, other in pairs) / len(pairs)
    report.add(f"{name}_ratio", sum(counts) / sum(own), n=len(texts), note="counted tokens / the model's tokens")
    report.add(f"{name}_error_p50_percent", percentile(errors, 50), n=len(errors), note="of one text, too high or low")
    report.add(f"{name}_error_p95_percent", percentile(errors, 95), n=len(errors), note="of one text, too high or low")
    report.add(f"{name}_too_low_share", too_low, n=len(pairs), note="share of the texts")
    report.add(f"{name}_cpu_ms_per_1k", seconds * 1e6 / sum(own), n=len(texts), note="per 1,000 of the model's tokens")


def measure(options: Options, report: Report) -> None:
    """Check each model's vocabulary against the model, and the other counters against the first model."""
    sources = recorded_texts(options.data)
    if not sources:
        report.unmeasured("gguf_count_error", f"{options.data} has no recordings: name their folder with --data")
        return
    texts = drawn(sources, TEXTS)
    short = [text[:PROMPT_CHARS] for text in texts]
    prompts = random.Random(5).sample(short, QUICK_PROMPTS if options.quick else PROMPTS)
    own: list[int] = []
    text_errors: list[int] = []
    prompt_errors: list[int] = []
    models = [options.model] if options.model else MODELS
    for name in models:
        say(f"tokens: {name}")
        try:
            of_texts, of_prompts, counted = check_model(name, texts, prompts)
        except ModelError as error:
            report.unmeasured("gguf_count_error", str(error))
            return
        text_errors += of_texts
        prompt_errors += of_prompts
        own = own or counted
    checked = len(text_errors) + len(prompt_errors)
    report.add("gguf_count_error", max([*text_errors, *prompt_errors]), n=checked, note="tokens, the largest error")
    report.add("gguf_prompt_count_error", max(prompt_errors), n=len(prompt_errors), note="tokens; read by the model")
    report.note(f"The other counters are compared with {models[0]}.")
    vocabulary = GgufVocabulary(model_path(models[0]))
    vocabulary.count("")
    counters: list[tuple[str, TokenCounter]] = [
        ("gguf", vocabulary), ("tiktoken", TiktokenCounter()), ("estimate", EstimateCounter()),
    ]  # fmt: skip
    for label, counter in counters:
        tell(label, counter.count, texts, own, report)
    tell("calibrated", calibrated(texts, own).count, texts, own, report)


def calibrated(texts: Sequence[str], own: Sequence[int]) -> EstimateCounter:
    """Return the estimate, calibrated with the model's counts of every tenth text."""
    calibration = Calibration()
    counter = EstimateCounter(calibration)
    for text, tokens in list(zip(texts, own, strict=True))[::10]:
        calibration.report(counter.count(text), tokens)
    return counter


if __name__ == "__main__":
    sys.exit(run("tokens", measure, TARGETS))

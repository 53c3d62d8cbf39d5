"""What `doctor` says of the language model: which, how wide, how quick as measured, and what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestra_mem.adapters.config_files import load_settings
from orchestra_mem.doctor.memory import Finding, Health, check_model


def _found(project: Path, llm: dict[str, object], counter: str = "auto") -> list[Finding]:
    return list(check_model(project, load_settings(project, {}, {"llm": llm, "tokens": {"counter": counter}})))


def test_no_model_is_no_fault(tmp_path: Path) -> None:
    """Everything works without."""
    assert _found(tmp_path, {}) == [
        Finding(part="model", health=Health.SOUND, words="none is set: summaries are made by extraction")
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("llama")
def test_a_model_is_asked_and_measured(tmp_path: Path, smollm_gguf: Path) -> None:
    """Its window, what it was trained for, and tokens a second."""
    model, speed = _found(tmp_path, {"model_path": str(smollm_gguf), "threads": 1, "context_tokens": 2_048})
    assert (model.part, model.health, model.words) == (
        "model", Health.SOUND,
        "smollm2-135m-instruct-q4_1 answers in a window of 2,048 tokens (on 1 thread, trained for 8,192 tokens)",
    )  # fmt: skip
    rates = re.fullmatch(r"(\d+) tokens a second for prompts and (\d+) for answers; ready after \d+\.\d s", speed.words)
    assert rates
    assert int(rates[1]) > 0 < int(rates[2])


@pytest.mark.parametrize("counter", ["auto", "gguf"])
def test_a_model_that_is_not_there_is_told(tmp_path: Path, counter: str) -> None:
    """As a fault, with what happens until it is."""
    pytest.importorskip("llama_cpp", reason="needs the extra llama")
    assert _found(tmp_path, {"model_path": "small.gguf"}, counter) == [
        Finding(
            part="model", health=Health.FAULT,
            words=f"there is no file {tmp_path / 'small.gguf'}; llm.model_path names a model's GGUF",
            advice="until then summaries are made by extraction, and tokens are not counted with the model's "
            "vocabulary",
        )
    ]  # fmt: skip

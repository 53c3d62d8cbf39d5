"""What `doctor` says of the language model: which, how wide, how quick as measured, and what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestra_mem.adapters.config_files import load_settings
from orchestra_mem.doctor.memory import Finding, Health, check_model


def _found(project: Path, llm: dict[str, object], counter: str = "auto") -> list[Finding]:
    return list(check_model(project, load_settings(project, {}, {"llm": llm, "tokens": {"counter": counter}})))


@pytest.mark.slow
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

"""Calibration of token estimates by reported usage: convergence, bounds, and reports that are ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.adapters.tokenizers import Calibration, open_counter

REPORTS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 20_000)), max_size=120)


def learned(ratio: float, reports: int = 20, tokens: int = 1_000) -> Calibration:
    """Return a calibration after `reports` reports from a model whose counts are `ratio` times the estimate."""
    calibration = Calibration()
    for _ in range(reports):
        calibration.report(calibration.apply(tokens), int(tokens * ratio))
    return calibration


def test_it_waits_for_sixteen_reports_and_takes_the_middle() -> None:
    """The factor is 1 until sixteen reports exist, then follows their median, so that outliers have no effect."""
    assert learned(0.7, reports=15).factor == 1
    for ratio in (0.6, 0.7, 1.0, 1.25):
        assert [learned(ratio, reports=count).factor for count in (16, 200)] == pytest.approx([ratio, ratio])
    calibration = learned(0.8, reports=40)
    for _ in range(15):
        calibration.report(1_000, 1_900)
    assert calibration.factor == pytest.approx(0.8)


@given(REPORTS)
def test_it_keeps_its_bounds(reports: list[tuple[int, int]]) -> None:
    """The factor stays within 0.6 to 1.25, whatever is reported."""
    calibration = Calibration()
    for counted, reported in reports:
        calibration.report(counted, reported)
        assert 0.6 <= calibration.factor <= 1.25
        assert calibration.apply(0) == 0
        assert 600 <= calibration.apply(1_000) <= 1_250


@pytest.mark.parametrize(("ratio", "tokens"), [(0.0, 1_000), (0.1, 1_000), (9.0, 1_000), (0.7, 20)])
def test_what_cannot_be_about_the_same_text_is_passed_over(ratio: float, tokens: int) -> None:
    """Implausible reports are ignored: zero usage, a far too low or too high ratio, or too short a text."""
    assert learned(ratio, reports=50, tokens=tokens).words() == ""


def test_counts_from_before_a_correction_are_forgotten() -> None:
    """A cached count is discarded when the calibration changes, so that the text is counted anew."""
    calibration = Calibration()
    counter = open_counter("estimate", calibration=calibration)
    text = "The estimate errs on the high side. " * 20
    before = counter.count(text)
    for _ in range(20):
        calibration.report(calibration.apply(1_000), 700)
    assert counter.count(text) == pytest.approx(before * 0.7, abs=1)


def test_a_memory_learns_from_what_is_reported_with_operations(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A memory calibrates by reported usage, shows the factor in its status, and keeps the corrected budget."""
    folder = tmp_path_factory.mktemp("project")
    text = "The estimate errs on the high side, as it should where nothing else can be had. " * 4
    with open_memory(folder, config={"tokens": {"counter": "estimate"}}) as memory:
        # Far too many tokens for this text, as if a model's reasoning was included: the report is ignored.
        estimate = memory.record_operation("step", {"text": f"0 {text}"}, tokens_used=9_999).entry_tokens
        for number in range(20):
            memory.record_operation("step", {"text": f"{number} {text}"}, tokens_used=int(estimate * 0.68))
        window = memory.get_stats()["context_window"]
        assert isinstance(window, dict)
        assert window["counter"] == "estimate, scaled by 0.70 to match the usage that the model reports"
        context = memory.get_orchestrator_context("next", max_tokens=1_000)
        # Half is filled at the start, minus a remainder too small for the short form of another operation.
        assert 500 - 43 < context.tokens <= 1_000

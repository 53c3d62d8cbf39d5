"""Markdown blocks: joining them restores the document, and headings are those that CommonMark recognises."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestra_mem.core.documents.markdown import (
    PIN,
    Block,
    front_matter,
    front_matter_fault,
    join_blocks,
    split_blocks,
    with_changed_words,
    without_front_matter,
    words_of_document,
)
from tests.builders import cases
from tests.timing import assert_linear, spent_s

LINES = st.sampled_from(
    [
        "---", "--- ", "format: 1", "no field", "# One", "## Two ##", "### [10:00:00] X (op 3)", "#no heading",
        "####### seven", "    # code", "```", "```python", "~~~~", "``` a ` b", "> # quoted", "", "text", PIN, "\ufeff",
        "\u2028", "\x00", "a\rb",
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", ""])
DOCUMENTS = st.one_of(
    st.text(), st.lists(st.tuples(LINES, ENDS)).map(lambda pairs: "".join(line + end for line, end in pairs))
)


def outline(text: str) -> list[tuple[int, str, int]]:
    """Return level, title and line of each block except front matter."""
    return [(block.level, block.title, block.line) for block in split_blocks(text) if not block.front]


@given(DOCUMENTS)
@example("")
@example("---\n")
@example("---\nformat: 1\n")
@example("\ufeff---\r\nformat: 1\r\n---\r\n# Head\r\n")
@example("# Head")
@example("```\n# code\n")
def test_any_text_is_the_same_after_cutting_and_joining(text: str) -> None:
    """Joining the blocks restores every byte; each block knows its line, and only the first can be front matter."""
    blocks = split_blocks(text)
    assert join_blocks(blocks) == text
    before = ""
    for block in blocks:
        assert block.text
        assert block.line == before.count("\n") + 1
        assert not (block.front and before)
        before += block.text


def test_a_block_is_a_heading_with_what_follows_it() -> None:
    """Front matter, the text before the first heading, and each heading with its text are separate blocks."""
    text = "---\nformat: 1\n---\nBefore.\n# Title #\n\nText.\n## Part\n### Sub\nEnd"
    assert split_blocks(text) == (
        Block(text="---\nformat: 1\n---\n", line=1, front=True),
        Block(text="Before.\n", line=4),
        Block(text="# Title #\n\nText.\n", level=1, title="Title", line=5),
        Block(text="## Part\n", level=2, title="Part", line=8),
        Block(text="### Sub\nEnd", level=3, title="Sub", line=9),
    )


@pytest.mark.parametrize(("line", "found"), cases("a_heading_is_read_as_commonmark_reads_it"))
def test_a_heading_is_read_as_commonmark_reads_it(line: str, found: list[int | str]) -> None:
    """A heading has up to three spaces, one to six marks and a space; closing marks are not part of its title."""
    assert [[*block[:2]] for block in outline(f"{line}\n")] == [found]


COMMONMARK = MarkdownIt("commonmark").disable(["inline", "text_join"], ignoreInvalid=True)
# `split_blocks` ignores unclosed blocks, so each text closes all of them, and both parsers see the same.
CLOSED = "\n\n-->?>]]>\n</script>\n\n" + "`" * 9 + "\n\n" + "~" * 9 + "\n"


def commonmark_headings(text: str) -> list[tuple[int, int]]:
    """Return level and line of the top-level headings that markdown-it-py finds."""
    return [
        (int(token.tag[1]), token.map[0] + 1)
        for token in COMMONMARK.parse(text)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


def headings(text: str) -> list[tuple[int, int]]:
    """Return level and line of the headings that `split_blocks` finds."""
    return [(block.level, block.line) for block in split_blocks(text) if block.level]


PREFIXES = st.lists(
    st.sampled_from([" ", "  ", "   ", "    ", "> ", ">", "- ", "1. ", "2) ", "* ", "+   ", "-     "]), max_size=3
).map("".join)
CORES = st.sampled_from(
    "|# a|## b ##|#b|####### x|text|===|---|-|=|***|* * *|```|```py|````|``` a`b|~~~|<div>|</div>|<!-- c|-->|<!-- x -->"
    "|<pre>|</pre>|<a>|<a b='c'>x|<?x|?>|<!A|<![CDATA[|]]>|<b|1.|10. x|\\# x|#\ty|a | b".split("|")
)
STRUCTURED = st.lists(st.tuples(PREFIXES, CORES).map("".join), max_size=9)


@settings(max_examples=150)
@given(STRUCTURED, st.sampled_from(["\n", "\r\n"]))
@example(["- a", "  # b", "# c"], "\n")
@example(["- ```", "  # b", "# c", "```", "# d", "```"], "\n")
@example(["<!-- c", "# b", "-->", "# c"], "\n")
@example(["<div>", "# b", "", "# c"], "\n")
@example(["a", "b", "---", "> c", "---"], "\n")
@example(["  ####### x", "    ---", "==="], "\n")
@example(["a", "===", "- b", "", "c", "d", "---", "e", "==="], "\n")
def test_headings_are_those_that_commonmark_sees(lines: list[str], end: str) -> None:
    """Headings agree with CommonMark in any mix of lists, quotations, fences, HTML, rules and underlines."""
    text = "text\n\n" + end.join(lines) + CLOSED
    assert headings(text) == commonmark_headings(text)


def test_underlined_headings_are_read_about_as_quickly_as_others() -> None:
    """Underlined headings take about twice the time of headings with marks, as both need no complete parser."""
    marked, underlined = (
        min(spent_s(lambda: split_blocks.__wrapped__(text * 20_000)) for _ in range(3))  # noqa: B023
        for text in ("# abc\n", "a\n===\n")
    )
    assert underlined < 4 * marked
    assert headings("a\n===\n" * 99)[-1] == (1, 197)


def test_prose_between_two_rules_is_no_front_matter() -> None:
    """A rule, a blank line and prose are text, even if another rule follows; a blank line before keys is allowed."""
    assert without_front_matter("---\n\na\n\n---\nb") == "---\n\na\n\n---\nb"
    assert without_front_matter("---\n\nformat: 1\n---\nb") == "b"


@pytest.mark.parametrize(("text", "fault"), cases("a_damaged_front_matter_is_told_with_its_line"))
def test_a_damaged_front_matter_is_told_with_its_line(text: str, fault: list[int | str]) -> None:
    """A fault of the front matter is reported with the number of its first wrong line, counted from 1."""
    assert front_matter_fault(text) == tuple(fault)
    assert join_blocks(split_blocks(text)) == text


PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])) | st.sampled_from(
    [
        "no", "Null", "~", "a: b", "a #b", "- x", "'", '"', "\\", "two\nlines", "tab\there", " x ", "a\\nb", "{", "y",
        "\r\n",
    ]
)  # fmt: skip


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), PLAIN, min_size=1, max_size=4))
def test_front_matter_says_to_yaml_what_was_meant(fields: dict[str, str]) -> None:
    """A YAML parser reads back every field as written, even text that looks like other YAML."""
    text = front_matter(fields)
    assert front_matter_fault(text) is None
    read = yaml.load(text.removeprefix("---\n").removesuffix("---\n"), Loader=yaml.BaseLoader)
    assert read == fields


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), PLAIN, min_size=1, max_size=4), DOCUMENTS)
def test_changed_words_leave_front_matter_valid(fields: dict[str, str], body: str) -> None:
    """A change of a document's words keeps its lines, its valid front matter, and the time of writing."""
    text = front_matter({"written": "2026-05-04T10:11:12+00:00", **fields}) + body
    assert with_changed_words(text, str) == text
    assert words_of_document(text).count("\n") == text.count("\n")
    changed = with_changed_words(text, lambda words: words.replace("a", "[a:b] ").replace("2026-", "[year]-"))
    assert front_matter_fault(changed) is None
    assert "\nwritten: 2026-05-04T" in changed or "written" in fields


@pytest.mark.parametrize("line", cases("lines_to_repeat"))
def test_a_long_text_is_cut_in_linear_time(line: str) -> None:
    """Splitting a document takes time linear in its length."""

    def cut(size: int) -> None:
        text = "---\n" + line * (size // len(line))
        assert join_blocks(split_blocks(text)) == text
        assert front_matter_fault(text) is not None or line != "text\n"

    assert_linear(cut, 80_000)

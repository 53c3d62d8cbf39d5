"""Where the headings of a markdown document stand: those that CommonMark sees in the document itself.

`#` or underlined; what looks like one in fenced code, HTML, a quotation or a list is text. Two things differ from
CommonMark on purpose: a fence or an HTML comment that nothing closes is text, as one slip must not hide the rest; and
only a line feed ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Lines that may matter. The look ahead makes it four times as fast on a text in which few do.
_MARK = re.compile(
    r"\n(?= {0,3}[-#`~=<])(?P<indent> {0,3})"
    r"(?:(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|(?P<line>=+|-+)[ \t]*|<(?!!--[^\n]*-->)(?P<tag>[A-Za-z/!?][^\n]*))\r?$",
    re.MULTILINE,
)
_FIRST_MARK = re.compile(_MARK.pattern.removeprefix(r"\n"), re.MULTILINE)
# CommonMark 0.31: the seven ways in which an HTML block begins, each with what ends it; the last two, a blank line.
_HTML = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?:[ >]|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
)
_BLOCK_TAG = re.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|"
    r"dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    r"menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    r"track|ul)(?: |/?>|$)",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(
    r"(?:<[A-Za-z][A-Za-z0-9-]*(?: +[A-Za-z_:][\w.:-]*(?: *= *(?:[^ \"'=<>`]+|'[^']*'|\"[^\"]*\"))?)* */?>"
    r"|</[A-Za-z][A-Za-z0-9-]* *>) *$"
)
_BLANK = re.compile(r"^[ \t]*\r?$", re.MULTILINE)
_ATX = re.compile(r"(#{1,6})(?: +(.*))?$")
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
UNDERLINE = re.compile(r"(?:=+|-+) *$")
_BREAK = re.compile(r"(?:(?:\* *){3,}|(?:_ *){3,}|(?:- *){3,})$")
_RULE = re.compile(r" {0,3}-{3,}[ \t\r]*$", re.MULTILINE)
_ITEM = re.compile(r"(?P<marker>[*+-]|(?P<number>\d{1,9})[.)])(?P<blanks> *)(?P<text>.*)")
_DEFINITION = re.compile(
    r"\[(?=[^\]]*[^\s\]])(?:[^\[\]\\]|\\.){1,999}\]:[ ]*\n?[ ]*(?:<[^<>\n]*>|(?!<)\S+)"
    r"(?:(?:[ ]+|[ ]*\n[ ]*)(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?[ ]*(?:\n|\Z)",
    re.DOTALL,
)


def headings(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    """Place, level and title of the headings.

    A line that begins with # is one, unless a fence or HTML is open, whatever else is; so most of a document needs no
    more than one search. Where something else turns up, the lines from the last certain place on are read one by one.
    """
    unclosed: dict[str, int] = {}
    certain = start
    mark = _FIRST_MARK.match(text, start) or _MARK.search(text, start)
    while mark:
        line, at = mark.start("indent"), mark.end()
        if mark["hashes"] and not mark["indent"]:
            yield line, len(mark["hashes"]), _clean_title(mark["title"])
            certain = at
        elif mark["fence"] and not mark["indent"]:
            # CommonMark: the info string of a back-tick fence holds no back-tick; such a line is inline code.
            if mark["fence"][0] == "~" or "`" not in mark["info"]:
                end = _fence_end(text, at, mark["fence"], unclosed)
                certain, at = (certain, at) if end is None else (end, end)
        elif not mark["line"] or _underlines(text, start, line):
            reader = _Reader(text, unclosed)
            certain = reader.read(certain + text.startswith("\n", certain))
            yield from reader.found
            at = certain - 1
        mark = _MARK.search(text, at)


def _underlines(text: str, start: int, at: int) -> bool:
    """Whether what stands above a line of dashes may be text: it is neither blank nor such a line itself."""
    above = text[max(start, text.rfind("\n", start, max(start, at - 1)) + 1) : at]
    return bool(above.strip()) and not _RULE.match(above)


def _fence_end(text: str, at: int, fence: str, unclosed: dict[str, int]) -> int | None:
    """Where the line ends that closes a fence, None where none does; `unclosed` remembers what never closes."""
    if len(fence) >= unclosed.get(fence[0], len(text) + 1):
        return None
    closing = re.compile(rf"^ {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE).search(text, at)
    if closing is None:
        unclosed[fence[0]] = len(fence)
        return None
    return closing.end()


class _Reader:
    """Reads lines by CommonMark's rules (0.31, appendix "A parsing strategy"), as far as headings depend on them."""

    def __init__(self, text: str, unclosed: dict[str, int]) -> None:
        self.found: list[tuple[int, int, str]] = []
        self._text = text
        self._unclosed = unclosed
        self._holders: list[list[int]] = []  # open quotations (0) and items (the width of their margin), if filled
        self._paragraph: list[tuple[int, str]] = []  # the open paragraph: places and lines
        self._end: re.Pattern[str] | None = None  # what ends an open fence or HTML block in a quotation or an item

    def read(self, at: int) -> int:
        """Read from a place where nothing is open to the next line that begins with a heading's #."""
        text = self._text
        while at < len(text):
            stop = text.find("\n", at) + 1 or len(text)
            line = text[at:stop].rstrip("\r\n").expandtabs(4)
            if line.startswith("#") and _ATX.match(line):
                return at
            if not self._holders and line[:1].isalpha() and not UNDERLINE.match(line):
                self._paragraph.append((at, line))
                at = stop
            else:
                at = max(stop, self._take(at, line))
        return len(text)

    def _take(self, at: int, line: str) -> int:
        """Take in a line; where it opens a fence or HTML in the document itself, return where that ends."""
        column, held = self._within(line)
        if held == len(self._holders) and self._end:
            if self._end.search(line[column:]):
                self._end = None
            return 0
        while rest := line[column:].lstrip(" "):
            indent = len(line) - column - len(rest)
            for holder in self._holders[:held]:
                holder[1] = 1
            if indent > 3:
                if self._paragraph:
                    break
                self._close(held)
                return 0
            goes_on = held == len(self._holders) and bool(self._paragraph)
            if rest[0] == ">":
                self._close(held)
                self._holders.append([0, 0])
                column += indent + 1 + rest.startswith("> ")
            elif (end := self._leaf(at, rest, held, goes_on)) is not None:
                return end
            elif (item := _ITEM.match(rest)) and _begins_item(item, goes_on):
                self._close(held)
                blanks = len(item["blanks"])
                margin = len(item["marker"]) + (blanks if item["text"] and blanks < 5 else 1)
                self._holders.append([indent + margin, 0])
                column = min(column + indent + margin, len(line))
            else:
                break
            held += 1
        if not rest:
            self._close(held)
        elif self._paragraph:
            self._paragraph.append((at, rest))  # also of a holder that the line does not belong to: CommonMark's lazy
        else:
            self._close(held)
            self._paragraph = [(at, rest)]
        return 0

    def _within(self, line: str) -> tuple[int, int]:
        """How far a line's beginning belongs to the open quotations and items: column, and how many of them."""
        column = 0
        for number, (margin, filled) in enumerate(self._holders):
            rest = line[column:].lstrip(" ")
            indent = len(line) - column - len(rest)
            if margin == 0 and rest.startswith(">") and indent < 4:
                column += indent + 1 + rest.startswith("> ")
            elif margin and rest and indent >= margin:
                column += margin
            elif not (margin and not rest and filled):
                return column, number
        return column, len(self._holders)

    def _close(self, held: int) -> None:
        del self._holders[held:]
        self._paragraph = []
        self._end = None

    def _leaf(self, at: int, rest: str, held: int, goes_on: bool) -> int | None:
        """Take a line that is a block or begins one; None where it is text or an item."""
        if heading := _ATX.match(rest):
            self._close(held)
            if not self._holders:
                self.found.append((at, len(heading[1]), _clean_title(heading[2])))
            return 0
        if fence := _FENCE.match(rest):
            self._close(held)
            if not self._holders:
                return _fence_end(self._text, self._text.find("\n", at), fence[1], self._unclosed) or 0
            self._end = re.compile(rf"^ {{0,3}}{fence[1][0]}{{{len(fence[1])},}} *$")
            return 0
        if rest[0] == "<" and (end := self._html(at, rest, held)) is not None:
            return end
        if goes_on and UNDERLINE.match(rest) and (place := self._undefined()) is not None:
            if not self._holders:
                title = " ".join(line.strip() for _, line in self._paragraph[place:])
                self.found.append((self._paragraph[place][0], 1 if rest[0] == "=" else 2, title))
            self._close(held)
            return 0
        if _BREAK.match(rest):
            self._close(held)
            return 0
        return None

    def _html(self, at: int, rest: str, held: int) -> int | None:
        """Take a line that begins an HTML block."""
        end = next((end for start, end in _HTML if start.match(rest)), None)
        if end is None:
            if not _BLOCK_TAG.match(rest) and (self._paragraph or not _ANY_TAG.match(rest)):
                return None
            end = _BLANK
        self._close(held)
        if self._holders:
            self._end = None if end is not _BLANK and end.search(rest) else end
            return 0
        last = None
        if end.pattern not in self._unclosed:
            last = end.search(self._text, at)
        if last is None:
            self._unclosed[end.pattern] = 0
            return len(self._text) if end is _BLANK else 0
        return self._text.find("\n", last.end()) + 1 or len(self._text)

    def _undefined(self) -> int | None:
        """The first line of the paragraph that is no definition of a link; None where all are."""
        text, at = "\n".join(line for _, line in self._paragraph), 0
        while definition := _DEFINITION.match(text, at):
            at = definition.end()
        return text.count("\n", 0, at) if at < len(text) else None


def _begins_item(item: re.Match[str], in_paragraph: bool) -> bool:
    """Whether a line begins a list's item; only one with text and, if numbered, a 1 may interrupt a paragraph."""
    if item["text"] and not item["blanks"]:
        return False
    return not in_paragraph or (bool(item["text"]) and int(item["number"] or 1) == 1)


def _clean_title(title: str | None) -> str:
    """A heading's text without the closing row of #, where one stands apart."""
    text = (title or "").strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare == "" or bare[-1] in " \t" else text

"""Find the lines of tool output that report failures. Programs in all languages print such lines in few forms."""

from __future__ import annotations

import re

_EXITED = r"^\W*(?:[\w ]{0,30}\b)?exit(?:ed)?(?: with)?(?: code| status):? "
_EXIT, _EXIT_0 = (
    re.compile(rf"{_EXITED}{code}\b", re.IGNORECASE | re.MULTILINE) for code in (r"(?:[1-9]\d{0,2})", "0")
)
# A compiler prints one space after `file:line:`. A search result, which must not match, keeps its indentation.
_FAILURE_LINE = re.compile(
    r"^(?:[^\s:]{1,80}:\d+(?::\d+)?: ?|\s*)"
    r"(?:E\s{2,}|(?:fatal|error|panic|FAILED|FAIL|ERROR|Error|Fatal)\b(?:\[\w+\])?[: ]\s?\S|"
    r"(?:[\w.]*[a-z](?:Error|Exception)|Traceback \(most recent call last\))(?::|$)).*(?<![\"'],)$",
    re.MULTILINE,
)
# Every match of `_FAILURE_LINE` contains one of these: testing for them first is faster.
_FAILURE_MARKS = ("rror", "RROR", "FAIL", "atal", "anic", "xception", "raceback", "E  ", "E\t")
# Line that explains a nonzero exit status if no line matches `_FAILURE_LINE`.
_TELLING_LINE = re.compile(
    r"^(?!\s*(?:=== |--- PASS|ok\b|PASS|[#*+<>|{}/]|-\s|\d+[-:→|\t]|\S+:\d+:\s\s)).*(?:\b(?:errors?|fail(?:ed|s|ure)?|"
    r"fatal|cannot|"
    r"can't|could ?n[o']t|not found|no such|undefined|undeclared|unresolved|invalid|illegal|denied|refused|missing|"
    r"unexpected|expected|unknown|unrecognized|unable|unsupported|mismatch|must|too (?:many|few)|accepts|requires?|"
    r"want|not (?:a|an|in|set|formatted|properly|supported|allowed|installed)|timed out|conflict|rejected|usage:)\b|"
    r":\d+:\d+: \S).*$",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_OUTPUT_FAILURES = 2
_MAX_LINE_CHARS = 200
_HEAD_CHARS, _TAIL_CHARS, _SHORT_CHARS = 2_000, 500, 4_000
_LISTING = re.compile(r"\s*\d+[→|:\t-]")


def failure_lines(text: str) -> list[str]:
    """Return up to two lines of tool output that report failures, or else one line about a nonzero exit status."""
    exits = _stated(_EXIT, text)
    lines: list[str] = []
    if (exits or len(text) < _SHORT_CHARS) and any(mark in text for mark in _FAILURE_MARKS):
        for match in _FAILURE_LINE.finditer(text[:20_000]):
            line = match.group().strip()[:_MAX_LINE_CHARS]
            if line not in lines and not _LISTING.match(line):
                lines.append(line)
            if len(lines) == _MAX_OUTPUT_FAILURES:
                break
    if not lines and exits:
        begin, end = exits.span()
        telling = _TELLING_LINE.search(text, end, end + _SHORT_CHARS) or _TELLING_LINE.search(
            text, max(0, begin - _SHORT_CHARS), begin
        )
        lines = [(telling or exits).group().strip()[:_MAX_LINE_CHARS]]
    return lines


def exits_well(text: str) -> bool:
    """Check whether tool output states exit status 0, and no other."""
    return _stated(_EXIT_0, text) is not None and _stated(_EXIT, text) is None


def _stated(status: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Search the head and the tail of tool output for an exit status."""
    if "exit" in text or "Exit" in text or "EXIT" in text:
        return status.search(text, 0, _HEAD_CHARS) or status.search(text, max(0, len(text) - _TAIL_CHARS))
    return None

"""Read facts from field names, short values and tool output: outcomes, errors, next steps. No sentences."""

from __future__ import annotations

import json
import re

from orchestra_mem.core.text import word_count
from orchestra_mem.types import MustKeepKind, Operation

_FIELDS: tuple[tuple[MustKeepKind, str], ...] = (
    (MustKeepKind.DECISION, "decision decisions verdict resolution"),
    (MustKeepKind.FAILURE, "error errors exception failure failures blocker blockers blocked_by"),
    (
        MustKeepKind.OPEN_ITEM,
        "next_steps next_step next todo todos open_items open_questions open_question pending action_items follow_ups "
        "follow_up remaining waiting_on waiting_for",
    ),
    (MustKeepKind.COMPLETION, "completed accomplishments done finished achieved"),
    (
        MustKeepKind.CONSTRAINT,
        "constraint constraints rule rules requirement requirements policy policies preference preferences",
    ),
    (MustKeepKind.ROLE, "owner assignee assigned_to lead reviewer on_call responsible"),
    (MustKeepKind.INSIGHT, "insight insights lesson lessons lessons_learned learning learnings finding findings"),
)
_KIND_OF = {name.replace("_", " "): kind for kind, names in _FIELDS for name in names.split()}
NAMES_OF_KINDS = [name for kind, names in _FIELDS if kind is not MustKeepKind.INSIGHT for name in names.split()]
"""Names of fields that hold facts of one kind. Insights are excluded: they are sentences, whatever the field."""
_FAILED = "failed failure fail error errored crashed timeout timed_out aborted broken rejected denied"
_DONE = (
    "completed complete done success succeeded finished passed merged closed shipped deployed released resolved fixed"
)
_OUTCOMES = {
    **dict.fromkeys(_FAILED.split(), MustKeepKind.FAILURE),
    **dict.fromkeys(_DONE.split(), MustKeepKind.COMPLETION),
    **dict.fromkeys("pending blocked waiting on_hold todo open deferred paused".split(), MustKeepKind.OPEN_ITEM),
}
# Decisions of an agent loop about its next turn, which are obsolete after that turn.
_LOOP_OUTCOMES = frozenset(
    "proceed clarify continue retry stop skip abort wait replan escalate approved approve accept accepted reject go "
    "next yes no ok done complete completed finish finished".split()
)
_GOOD_FLAGS = frozenset({"success", "succeeded", "passed"})
_GOOD_WHEN_TRUE = frozenset({"completed", "done", "finished"})  # false means not yet, not a failure
_INPUTS = ("input", "command", "cmd")
_EXIT_FIELDS = frozenset({"exit code", "exitcode", "exit status", "returncode", "return code"})
_NOTHING = re.compile(
    r"(?:none|null|nil|false|no|nothing|n/a|na|0|ok|-+|\[\]|\{\}|not applicable)"
    r"(?: (?:errors?|failures?|exceptions?|blockers?|issues?|problems?|(?:open )?(?:items|questions)|(?:next )?steps|"
    r"yet|so far|found|remaining))*[.!]?"
)


def kind_of_field(name: str) -> MustKeepKind | None:
    """Return the kind of facts that a field of this name holds, or None for any other name."""
    return _KIND_OF.get(name)


def is_loop_outcome(text: str, name: str = "") -> bool:
    """Check whether a decision field's value, or a text such as `Decision: PROCEED`, only names a loop's next step."""
    label, _, outcome = text.rpartition(":")
    named = _KIND_OF.get(label.strip(" #*").lower() or name)
    return named is MustKeepKind.DECISION and outcome.strip(" .!*").lower() in _LOOP_OUTCOMES


def kind_of_value(name: str, value: str, *, about: str) -> MustKeepKind | None:
    """Return the kind of fact that a short value (an outcome, a flag, an exit status) states, or None."""
    low = value.lower()
    if name in _EXIT_FIELDS:
        return MustKeepKind.FAILURE if low not in ("0", "none", "") else None
    if low in ("true", "false"):
        return _of_flag(name, low == "true", about=about)
    if says_nothing(value):
        return None
    outcome = _OUTCOMES.get(low.replace(" ", "_").replace("-", "_"))
    named = _KIND_OF.get(name)
    if named is MustKeepKind.DECISION and (outcome is not None or is_loop_outcome(value, name)):
        return None
    if outcome is not None and named is None:
        return outcome if about or outcome is MustKeepKind.FAILURE else None
    return named if named is not None and word_count(value) < 3 else None


def command_of(operation: Operation) -> str:
    """Return what identifies the command that an operation ran: its agent, type, tool and input; empty for none."""
    data = operation.data
    given = next((data[name] for name in _INPUTS if data.get(name)), None) if isinstance(data, dict) else None
    if given is None or not isinstance(data, dict):
        return ""
    tool = data.get("tool", data.get("tool_name"))
    return json.dumps([operation.agent, operation.type, tool, given], ensure_ascii=False, sort_keys=True)


def has_succeeded(operation: Operation) -> bool:
    """Check whether an exit status, a flag or an outcome of an operation states success, and none states a failure.

    An exit status may be a field, or a line of the output.
    """
    data = operation.data if isinstance(operation.data, dict) else {}
    told = {name.lower().replace("_", " "): str(value).strip() for name, value in data.items()}
    states = {
        MustKeepKind.COMPLETION if name in _EXIT_FIELDS and value == "0" else kind_of_value(name, value, about=name)
        for name, value in told.items()
    }
    succeeded = MustKeepKind.COMPLETION in states or exits_well(told.get("output", ""))
    return succeeded and MustKeepKind.FAILURE not in states


def says_nothing(value: str) -> bool:
    """Check whether a value is empty or a word for nothing, such as `n/a`."""
    return not value.strip() or _NOTHING.fullmatch(value.strip().lower()) is not None


def _of_flag(name: str, value: bool, *, about: str) -> MustKeepKind | None:
    if value and name in _GOOD_FLAGS | _GOOD_WHEN_TRUE:
        return MustKeepKind.COMPLETION if about else None
    failed = name in _GOOD_FLAGS if not value else name in ("failed", "failure", "error")
    return MustKeepKind.FAILURE if failed else None


# Lines of tool output that report failures: programs in all languages print such lines in few forms.

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
_HEAD_CHARS, _TAIL_CHARS, _SHORT_CHARS, _MOST_CHARS = 2_000, 500, 4_000, 20_000
_LISTING = re.compile(r"\s*\d+[→|:\t-]")


def failure_lines(text: str, *, failed: bool = False) -> list[str]:
    """Return up to two lines of tool output that report failures, or else one line about a nonzero exit status.

    `failed`: Whether another field states a failure. Of a long output the end is read then, where programs tell it.
    """
    exits = _exit_status(_EXIT, text)
    lines: list[str] = []
    if (exits or failed or len(text) < _SHORT_CHARS) and any(mark in text for mark in _FAILURE_MARKS):
        for match in _FAILURE_LINE.finditer(text[-_MOST_CHARS:] if failed and not exits else text[:_MOST_CHARS]):
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
    return _exit_status(_EXIT_0, text) is not None and _exit_status(_EXIT, text) is None


def _exit_status(status: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Search the head and the tail of tool output for an exit status."""
    if "exit" in text or "Exit" in text or "EXIT" in text:
        return status.search(text, 0, _HEAD_CHARS) or status.search(text, max(0, len(text) - _TAIL_CHARS))
    return None

"""Tests of `orchestra_mem.core.redaction.masking`: placeholders for secrets, and the settings of redaction.

Precision and recall are measured by `benchmarks/redaction.py`. The secrets are randomly generated.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._secrets import FORMATS, fill, json_web_token, lookalikes, private_key, secrets
from benchmarks.redaction import tally_texts
from orchestra_mem.choices import RedactionChoice
from orchestra_mem.core.redaction.detectors import DETECTORS
from orchestra_mem.core.redaction.detectors import PERSONAL as PERSONAL_FORMS
from orchestra_mem.core.redaction.masking import GROUPS, Anchors, Rules, redact, redact_value, standing
from tests.builders import cases
from tests.timing import assert_linear, repeated

KEY = b"of the project"
SECRETS = Rules(key=KEY)
PERSONAL = Rules(key=KEY, personal=True)
CHANCE = random.Random(5)
GITHUB = fill(FORMATS["github"], CHANCE)
AWS = fill(FORMATS["aws-id"], CHANCE)
PASSWORD = fill("{w5}!{w4}7", CHANCE)
PLACEHOLDER = r"\[redacted:{}:[0-9a-f]{{4}}\]"


def masked(text: str, wanted: Rules = SECRETS) -> str:
    """Redact with the project's key."""
    return redact(text, wanted).text


def kinds(text: str, wanted: Rules = SECRETS) -> list[str]:
    """Return the kinds of the findings in a text, in text order."""
    return [each.kind for each in redact(text, wanted).found]


# Detection


def test_most_secrets_are_found_and_little_else() -> None:
    """Recall and precision are high on the training texts; `benchmarks/redaction.py` measures the held-out ones."""
    tally = tally_texts("train", seed=2, rounds=2)
    assert tally.recall >= 0.97
    assert tally.precision >= 0.98
    assert tally.kept >= 0.98 * tally.lookalikes


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (GITHUB, "github-token"), (AWS, "aws-key"), (json_web_token(CHANCE), "json-web-token"),
        (private_key(CHANCE), "private-key"), (fill(FORMATS["anthropic"], CHANCE), "anthropic-key"),
        (fill(FORMATS["telegram"], CHANCE), "telegram-token"), (fill("MT{w24}.{b6}.{b38}", CHANCE), "discord-token"),
    ],
)  # fmt: skip
def test_a_key_of_a_provider_is_found_whole_in_any_text(text: str, kind: str) -> None:
    """A key is redacted alone, in a sentence, in quotes, and between escaped line feeds as in JSON."""
    for before, behind in (("", ""), ("use ", ", please"), ('key = "', '"'), ('{"out": "line\\n', '\\nline"}')):
        redacted = masked(f"{before}{text}{behind}")
        assert re.fullmatch(re.escape(before) + PLACEHOLDER.format(kind) + re.escape(behind), redacted)


@pytest.mark.parametrize("text", cases("a_password_is_found_where_it_is_said_to_be_one"))
def test_a_password_is_found_where_it_is_said_to_be_one(text: str) -> None:
    """A password that its context names as one is redacted, and the text around it stays unchanged."""
    before, behind = text.split("§")
    redacted = masked(text.replace("§", PASSWORD))
    assert re.fullmatch(re.escape(before) + r"\[redacted:[a-z-]+:[0-9a-f]{4}\]" + re.escape(behind), redacted)


@pytest.mark.parametrize("text", cases("code_and_placeholders_and_talk_of_secrets_stay"))
def test_code_and_placeholders_and_talk_of_secrets_stay(text: str) -> None:
    """Text that mentions a secret without containing one stays unchanged."""
    assert masked(text) == text


@pytest.mark.parametrize("made", ["{h40}", "{h64}", "sha512-{B86}==", "01H{C23}", "{h8}-{h4}-4{h3}-a{h3}-{h12}"])
def test_names_of_content_stay(made: str) -> None:
    """Commit ids, digests, integrity hashes, ULIDs and UUIDs are not redacted."""
    for text in ("commit {}", '{{"integrity": "{}"}}', "id={}", "{}"):
        text = text.format(fill(made, CHANCE))
        assert masked(text) == text


# Findings


def test_a_finding_tells_where_it_stood_and_not_what_it_was() -> None:
    """Findings report the kind and position of a secret, and their `repr` does not contain the secret."""
    text = f"first {GITHUB}, then {AWS}"
    redacted = redact(text, SECRETS)
    assert [text[each.start : each.end] for each in redacted.found] == [GITHUB, AWS]
    assert [each.kind for each in redacted.found] == ["github-token", "aws-key"]
    assert GITHUB not in repr(redacted)


# Settings


def test_kinds_are_switched_by_name_and_by_group() -> None:
    """Kinds and groups can be switched on and off; by default secrets are on and personal data is off."""
    text = f"{GITHUB} {AWS} jane@example.org"
    assert kinds(text) == ["github-token", "aws-key"]
    assert kinds(text, Rules(key=KEY, skip_kinds=["aws-key"])) == ["github-token"]
    assert kinds(text, Rules(key=KEY, add_kinds=["email"], skip_kinds=["secrets"])) == ["email"]
    assert Rules(key=KEY, add_kinds=["e-mail"]).faults == [
        "unknown kind 'e-mail'; use a built-in kind, a group or one of your own patterns"
    ]
    assert {"private-key", "password"} < GROUPS["secrets"]


@pytest.mark.parametrize(("text", "kind", "wrong"), cases("personal_data_are_found_by_their_sums_where_they_are_on"))
def test_personal_data_are_found_by_their_sums_where_they_are_on(text: str, kind: str, wrong: str) -> None:
    """Personal data is redacted only if switched on; a lookalike with a wrong checksum stays."""
    assert re.fullmatch(f"call {PLACEHOLDER.format(kind)} now", masked(f"call {text} now", PERSONAL))
    assert masked(f"call {text} now") == f"call {text} now"
    assert kind not in kinds(f"call {wrong} now", PERSONAL)


def test_names_are_those_that_are_listed() -> None:
    """Only the configured names are redacted, and only as whole words."""
    wanted = Rules(key=KEY, add_kinds=["name"], names=("Ana", "J. Doe"))
    assert kinds("Ana met Anabel and J. Doe", wanted) == ["name", "name"]


def test_own_patterns_take_out_their_first_group_or_all() -> None:
    """A user's pattern redacts its first group or the entire match, and can be switched off by its name."""
    patterns = {"employee": r"\b(?:HR-)?\d{4,}\b", "internal-key": r"(?i)internal-key:\s*(\S+)"}
    wanted = Rules(key=KEY, patterns=patterns)
    assert wanted.faults == []
    assert re.fullmatch(
        rf"{PLACEHOLDER.format('employee')} has Internal-Key: {PLACEHOLDER.format('internal-key')}",
        masked("HR-4711 has Internal-Key: abc", wanted),
    )
    assert kinds("4711", Rules(key=KEY, patterns=patterns, skip_kinds=["employee"])) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"token=(\w+)|pin \d{4}", "pin 1234"), (r"token=(\w*)|(?=pin)", "token= pin"), (r"^S-\d{6}$", "S-123456")],
)
def test_own_patterns_find_the_same_in_a_text_and_in_a_value(pattern: str, text: str) -> None:
    """A match without its group is redacted entirely, an empty match not at all; a dict key is not matched."""
    wanted = Rules(key=KEY, patterns={"own": pattern})
    hidden = masked(text, wanted)
    assert (hidden == text) is ("=" in text)
    assert redact_value({"token": text, "x": text}, wanted)[0] == {"token": hidden, "x": hidden}


def test_a_broken_pattern_is_named_and_the_rest_goes_on() -> None:
    """An invalid pattern is reported by name, and the other patterns and detectors still work."""
    wanted = Rules(key=KEY, patterns={"bad": "(", "Good": "x+", "good": "x{3}"}, allow_patterns=("[",))
    assert [fault.partition(" is ignored: ")[0] for fault in wanted.faults] == [
        "the pattern 'bad' (()", "the pattern 'Good' (x+)", "the pattern 'allow' ([)",
    ]  # fmt: skip
    assert kinds(f"{GITHUB} xxx", wanted) == ["github-token", "good"]


@pytest.mark.parametrize("pattern", cases("a_pattern_that_could_take_for_ever_is_refused"))
def test_a_pattern_that_could_take_for_ever_is_refused(pattern: str) -> None:
    """A pattern that could backtrack practically forever, or matches the empty text, is reported as a fault."""
    assert len(Rules(key=KEY, patterns={"slow": pattern}).faults) == 1


@pytest.mark.parametrize("pattern", [
    r"cust-\d+(?:-\d+)?", r"\bA\d+x|\bB\d+x", r"(?:\d+|[a-z]+)-\d+", "a+b|a+c", r"(\d+)(-)(\d+)", r"\w+(?:\s)\w+",
    r"\d{3,}(?: |-)\d{2,}", r"[a-z]+(?:\.|@)[a-z]+", r"(KD)(\d+)(-|/)(\d+)",
])  # fmt: skip
def test_repeats_that_cannot_share_a_text_are_accepted(pattern: str) -> None:
    """Repeats in different alternatives, or separated by a character that neither takes, are no fault."""
    assert Rules(key=KEY, patterns={"own": pattern}).faults == []


def test_a_pattern_that_is_let_through_is_linear() -> None:
    """An accepted pattern runs in linear time, even one that plain `re` would match in quadratic time."""
    wanted = Rules(key=KEY, patterns={"digits": r"\d+x"})
    assert wanted.faults == []
    assert_linear(lambda size: redact("1" * size, wanted), 150_000)


def test_what_is_allowed_stays() -> None:
    """A secret that the settings allow, by its text or by a pattern, stays; other secrets are redacted."""
    assert masked(GITHUB, Rules(key=KEY, allow=[GITHUB])) == GITHUB
    wanted = Rules(key=KEY, allow_patterns=("ghp_.*",))
    assert kinds(f"{GITHUB} {AWS}", wanted) == ["aws-key"]


# Values


def test_a_key_says_what_its_string_is() -> None:
    """A string under a key such as `password` is redacted; numbers, other strings and the structure stay."""
    value: dict[str, Any] = {
        "user": "app", "password": "hunter2", "port": 5432, "tls": True, "max_tokens": 4096, "note": None,
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "DB_NAME", "value": "main1"}],
        "headers": {"Cookie": f"theme=dark; session={fill('{w24}', CHANCE)}", "Accept": "*/*"}, "pair": ("x", GITHUB),
    }  # fmt: skip
    clean, counts = redact_value(value, SECRETS)
    assert counts == Counter({"password": 2, "cookie": 1, "github-token": 1})
    assert clean["password"] == clean["env"][0]["value"] == masked("password=hunter2").partition("=")[2]
    assert clean["headers"]["Cookie"].startswith("theme=dark; session=[redacted:cookie:")
    assert clean["pair"][0] == "x"
    assert isinstance(clean["pair"], tuple)
    untouched = ("user", "port", "tls", "max_tokens", "note")
    assert {key: clean[key] for key in untouched} == {key: value[key] for key in untouched}
    assert redact_value(clean, SECRETS) == (clean, Counter())
    assert value["password"] == "hunter2"


@pytest.mark.parametrize(("before", "after"), [("", "\n"), (" ", " "), ("\n", "\r\n"), ("", "\\"), ("", "\\\n")])
def test_a_secret_is_found_between_white_space_and_before_a_backslash(before: str, after: str) -> None:
    """A password is redacted, and the white space around it or the backslash after it stays."""
    clean, counts = redact_value({"password": f"{before}{PASSWORD}{after}"}, SECRETS)
    assert re.fullmatch(before + PLACEHOLDER.format("password") + re.escape(after), clean["password"])
    assert counts == Counter({"password": 1})


@pytest.mark.parametrize("mode", [RedactionChoice.MASK, RedactionChoice.DROP])
def test_redacted_keys_remain_distinct(mode: RedactionChoice) -> None:
    """No entry of a dict is lost, even if two keys have the same placeholder."""
    value = {"a@x.org": 1, "b@y.org": 2, "[redacted]": 3}
    wanted = Rules(key=KEY, mode=mode, personal=True)
    clean, _ = redact_value(value, wanted)
    assert [*clean.values()] == [1, 2, 3]
    assert redact_value(clean, wanted)[0] == clean


def test_a_value_may_be_of_any_depth() -> None:
    """A value nested 20,000 lists deep is redacted without a recursion error."""
    value: Any = GITHUB
    for _ in range(20_000):
        value = [value]
    clean, counts = redact_value(value, SECRETS)
    while isinstance(clean, list):
        clean = clean[0]
    assert (clean, counts.total()) == (masked(GITHUB), 1)


# Properties over any text

TRAIN = [each.text for each in (*secrets("train", 3), *lookalikes("train", 3))]
PIECES = st.sampled_from(TRAIN) | st.text(max_size=20) | st.sampled_from(
    ["password=", "token: ", '"', "'", '\\"', "\n", "\\n", "://u:", "@", "[redacted]", "[redacted:", "cookie: a=",
     GITHUB, "-----BEGIN PRIVATE KEY-----", "AKIA", "sk-", "İ", "\\", " -u ", "kind: Secret\n", "\ud800", "\x00"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=5).map("".join)


@settings(deadline=None)
@given(TEXTS, st.sampled_from([SECRETS, PERSONAL, Rules(key=KEY, mode=RedactionChoice.DROP)]))
def test_twice_changes_nothing_and_nothing_but_the_spans_changes(text: str, wanted: Rules) -> None:
    """Redacting again changes nothing, and the text between the findings stays unchanged."""
    redacted = redact(text, wanted)
    assert redact(redacted.text, wanted).text == redacted.text
    ends = [0, *(each.end for each in redacted.found)]
    starts = [*(each.start for each in redacted.found), len(text)]
    between = [re.escape(text[end:start]) for end, start in zip(ends, starts, strict=True)]
    assert re.fullmatch(r"\[redacted[a-z0-9:-]*\]".join(between), redacted.text)


@settings(deadline=None)
@given(TEXTS, st.sampled_from(["output", "password", "cookie", "name"]), st.booleans())
def test_json_stays_json(text: str, name: str, ascii_only: bool) -> None:
    """A redacted line of JSON stays valid JSON: only strings change, whether redacted as a text or as a value."""
    value = {name: text, "list": [text, 1, None], "ok": True}
    line = json.dumps(value, ensure_ascii=ascii_only)
    read = json.loads(redact(line, SECRETS).text)
    clean, _ = redact_value(value, SECRETS)
    assert read.keys() == clean.keys() == value.keys()
    assert read["list"][1:] == clean["list"][1:] == [1, None]
    assert clean["list"][0] == masked(text)


ANCHORS = {(anchor, each.folded) for each in (*DETECTORS, *PERSONAL_FORMS) for anchor in each.anchors.split("|")}
CASES = [cased(anchor) for anchor, _ in sorted(ANCHORS) for cased in (str, str.upper, str.lower, str.title)]


@given(st.lists(PIECES | st.sampled_from(CASES), max_size=9).map("".join))
def test_one_pass_finds_the_anchors_that_a_look_for_each_finds(text: str) -> None:
    """One pass finds the same anchors as a separate search for each, whatever their case, overlap or neighbours."""
    assert sorted(Anchors(ANCHORS).standing_in(text)) == sorted(standing(ANCHORS, text))


@pytest.mark.parametrize(
    "unit",
    ["a", "-", "=", "password=", 'password="', "token:token=", "eyJaaaaaaaa.", "sk-", "://a:b", "--password ", "a_"],
)
def test_a_run_of_one_thing_takes_its_share_of_time(unit: str) -> None:
    """Redaction is linear in a text that repeats one unit, even the beginning of a secret."""
    assert_linear(lambda size: redact(repeated(unit, size), SECRETS), 80_000)

"""Measure how well secrets are found, how well look-alikes are left alone, and how fast redaction is.

Texts are made from `_secrets.py` and `data/redaction.jsonl`. Figures without a split in their name belong to `test`,
whose contexts, and some of whose formats, remain unseen by whoever works on the detectors. A secret is found if one
redacted span covers it; a redacted span is correct if it overlaps a secret and takes little more than the secret.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._operations import Generator
from benchmarks._secrets import Labelled, Split, lookalikes, secrets
from benchmarks.adversarial import RUNS
from orchestra_mem.core.redaction.masking import Rules, redact, redact_value

TARGETS: dict[str, Target] = {
    "recall": (">=", 0.95),
    "precision": (">=", 0.97),
    "lookalikes_kept": (">=", 0.97),
    "recall_in_json": (">=", 0.95),
    "recall_worst_family": (">=", 0.75),
    "not_idempotent": ("<=", 0),
    "json_broken": ("<=", 0),
    "seconds_10_mb": ("<=", 2.0),
    "growth_exponent": ("<=", 1.15),
    "record_p50_us": ("<=", 60.0),
    "record_p99_us": ("<=", 500.0),
}
RULES = Rules(key=b"benchmark")
# Characters that may be redacted in addition to a secret: a prefix that its service always uses, a quotation mark.
_BESIDE = 20
# Repetitions of prefixes with which the formats of secrets begin.
_OWN_RUNS = {
    "assignments": "password=", "open quotes": 'password="', "nested keys": "token:token=", "prefixes": "sk-",
    "tokens": "eyJaaaaaaaa.", "ids": "AKIAAAAAAAAAAAAAAAAA,", "blocks": "-----BEGIN PRIVATE KEY-----\n",
    "logins": "://a:b", "switches": "--password ", "shells": "mysql -", "cookies": "cookie: a=", "owners": "api_key ",
    "manifests": "kind: secret\n  a: ", "placeholders": "[redacted:password:0000]", "base64": "iVBORw0KGgoAAAANSUhEUg",
}  # fmt: skip
_SIZES = (8_000, 64_000, 512_000, 2_000_000)
_FLOOR_S = 0.2  # below this time, noise on the machine exceeds the measurement
_RUNS, _SUSPECT = 3, 1.1  # an exponent above `_SUSPECT` is measured again with more runs, to rule out noise


@dataclass(slots=True)
class Tally:
    """Counts of secrets, redacted spans and look-alikes."""

    secrets: int = 0
    found: int = 0
    in_json: int = 0
    told: int = 0
    right: int = 0
    lookalikes: int = 0
    kept: int = 0
    unstable: int = 0
    broken: int = 0
    by_family: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    @property
    def recall(self) -> float:
        """Share of the secrets that are redacted completely."""
        return self.found / self.secrets

    @property
    def precision(self) -> float:
        """Share of the redacted spans, including those in look-alikes, that are secrets."""
        return self.right / max(1, self.told)


def tally_texts(split: Split, seed: int, rounds: int = 4) -> Tally:
    """Redact all texts of a split."""
    tally = Tally()
    for text in secrets(split, seed, rounds):
        _add(tally, text)
    for text in lookalikes(split, seed, rounds + 1):
        _add(tally, text)
        tally.lookalikes += 1
        tally.kept += not redact(text.text, RULES).found
    return tally


def _add(tally: Tally, labelled: Labelled) -> None:
    text = labelled.text
    redacted = redact(text, RULES)
    spans = [(each.start, each.end) for each in redacted.found]
    places = [(text.index(secret), text.index(secret) + len(secret)) for secret in labelled.secrets]
    whole = [any(start <= first and last <= end for start, end in spans) for first, last in places]
    tally.secrets += len(places)
    tally.found += sum(whole)
    tally.told += len(spans)
    tally.right += sum(
        any(start < last and first < end and end - start <= last - first + _BESIDE for first, last in places)
        for start, end in spans
    )
    tally.by_family[labelled.family] += len(places)
    tally.missed[labelled.family] += len(places) - sum(whole)
    tally.unstable += redact(redacted.text, RULES).text != redacted.text
    _add_in_json(tally, labelled)


def _add_in_json(tally: Tally, labelled: Labelled) -> None:
    """Redact a text inside JSON, both as a line of a log and as a parsed value."""
    line = json.dumps({"tool": "bash", "output": labelled.text, "ok": True}, ensure_ascii=False)
    redacted = redact(line, RULES).text
    tally.in_json += sum(json.dumps(each, ensure_ascii=False)[1:-1] not in redacted for each in labelled.secrets)
    for before in (line, labelled.text):
        try:
            value = json.loads(before)
        except ValueError:
            continue
        try:
            same = _shape(json.loads(redact(before, RULES).text)) == _shape(value)
        except ValueError:
            same = False
        tally.broken += not same or _shape(redact_value(value, RULES)[0]) != _shape(value)


def _shape(value: object) -> object:
    """Return the structure of a value without its strings."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return str if isinstance(value, str) else value


def tool_output(chars: int) -> str:
    """Make tool output of the given length that holds a secret now and then."""
    made = (json.dumps(each.data, ensure_ascii=False) for each in Generator(seed=7).works())
    leaks = cycle([each.text for each in secrets("train", 7, 1)])
    parts: list[str] = []
    length = 0
    for number, part in enumerate(made):
        parts.append(f"{part}\n{next(leaks)}" if number % 50 == 0 else part)
        length += len(parts[-1]) + 1
        if length >= chars:
            break
    return "\n".join(parts)[:chars]


def growth(report: Report, quick: bool) -> None:
    """Time ever longer repetitions of one pattern."""
    worst, slowest = (0.0, ""), (0.0, "")
    shorter, longer = _SIZES[1:3] if quick else _SIZES[-2:]
    for name, unit in {**RUNS, **_OWN_RUNS}.items():
        exponent, after = _exponent(unit, shorter, longer, _RUNS)
        slowest = max(slowest, (after, f"{name}, {longer / 1e6:g} MB"))
        if after >= _FLOOR_S:
            if exponent > _SUSPECT:
                exponent, _ = _exponent(unit, shorter, longer, 3 * _RUNS)
            worst = max(worst, (exponent, name))
    report.add("growth_exponent", worst[0], n=len(RUNS) + len(_OWN_RUNS), note=f"highest, {worst[1]}; 1 is linear")
    report.add("slowest_run_s", slowest[0], note=slowest[1])


def _exponent(unit: str, shorter: int, longer: int, runs: int) -> tuple[float, float]:
    """Return the exponent of time over length (median of alternating runs), and the longer text's shortest seconds."""
    texts = [(unit * (size // len(unit) + 1))[:size] for size in (shorter, longer)]
    pairs = [[_seconds(text) for text in texts] for _ in range(runs)]
    found = [math.log(after / before) / math.log(longer / shorter) for before, after in pairs]
    return statistics.median(found), min(after for _, after in pairs)


def found(report: Report, split: Split, rounds: int) -> None:
    """Report recall, precision and look-alikes of a split."""
    say(f"redacting the split {split}")
    tally, behind = tally_texts(split, seed=1, rounds=rounds), "" if split == "test" else f"_{split}"
    report.add(f"recall{behind}", tally.recall, n=tally.secrets)
    report.add(f"precision{behind}", tally.precision, n=tally.told)
    report.add(f"lookalikes_kept{behind}", tally.kept / tally.lookalikes, n=tally.lookalikes)
    report.add(f"recall_in_json{behind}", tally.in_json / tally.secrets, n=tally.secrets)
    shares = {name: 1 - tally.missed[name] / count for name, count in tally.by_family.items() if count}
    worst = min(shares, key=lambda name: shares[name])
    report.add(f"recall_worst_family{behind}", shares[worst], n=tally.by_family[worst], note=worst)
    report.add(f"not_idempotent{behind}", tally.unstable, n=tally.secrets + tally.lookalikes)
    report.add(f"json_broken{behind}", tally.broken, n=tally.secrets + tally.lookalikes)
    missed = ", ".join(f"{name} {share:.2f}" for name, share in sorted(shares.items()) if share < 1)
    report.note(f"families of {split} with a recall below 1: {missed or 'none'}")


def speed(report: Report) -> None:
    """Time a long output, and records of 1 KB without secrets."""
    say("redacting 10 MB")
    text = tool_output(10_000_000)
    began = time.process_time()
    count = len(redact(text, RULES).found)
    report.add("seconds_10_mb", time.process_time() - began, note=f"of processor time; {count:,} secrets found")
    records = [text[at : at + 1024] for at in range(0, 4_000_000, 1024)]
    clean = [each for each in records if not redact(each, RULES).found]
    report.percentiles("record", list(map(_microseconds, clean)), (50, 99), unit="us", note="1 KB without a secret")


def measure(options: Options, report: Report) -> None:
    """Measure both splits, speed and growth."""
    found(report, "test", 3 if options.quick else 8)
    found(report, "train", 3 if options.quick else 8)
    speed(report)
    growth(report, options.quick)


def _seconds(text: str) -> float:
    began = time.process_time_ns()
    redact(text, RULES)
    return max(time.process_time_ns() - began, 1) / 1e9


def _microseconds(text: str) -> float:
    return _seconds(text) * 1e6


if __name__ == "__main__":
    sys.exit(run("redaction", measure, TARGETS))

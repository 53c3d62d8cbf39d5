"""Labelled texts for `redaction.py`: secrets in vendors' formats in the places where they leak, and look-alikes.

This file contains no secret: a format such as `ghp_{w36}` is filled by a seeded generator. Contexts are in
`data/redaction.jsonl`; those of the split `test` were written with the others, before the detectors, and remain unseen
when the detectors change. The same holds for the formats that only the split `test` has.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CONTEXTS = Path(__file__).resolve().parent / "data" / "redaction.jsonl"
_LOWER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_WORD = _LOWER + _LOWER.upper() + _DIGITS
# The letter in a format's braces chooses an alphabet; the number after it is the length.
ALPHABETS = {
    "w": _WORD, "b": _WORD + "_-", "B": _WORD + "+/", "h": "0123456789abcdef", "H": "0123456789ABCDEF", "d": _DIGITS,
    "l": _LOWER + _LOWER.upper(), "s": _LOWER, "n": _LOWER + _DIGITS, "U": _LOWER.upper() + "234567",
    "C": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
}  # fmt: skip
FORMATS = {
    "github": "ghp_{w36}", "github-oauth": "gho_{w36}", "github-server": "ghs_{w36}",
    "github-fine-grained": "github_pat_{w22}_{w59}", "gitlab": "glpat-{b20}", "aws-id": "AKIA{U16}",
    "aws-temporary-id": "ASIA{U16}", "google": "AIza{b35}", "google-client": "GOCSPX-{b28}",
    "slack-bot": "xoxb-{d12}-{d13}-{w24}", "slack-user": "xoxp-{d12}-{d12}-{d13}-{h32}",
    "slack-webhook": "https://hooks.slack.com/services/T{U8}/B{U10}/{w24}", "stripe": "sk_live_{w24}",
    "stripe-restricted": "rk_live_{w99}", "twilio": "SK{h32}", "sendgrid": "SG.{b22}.{b43}", "npm": "npm_{w36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{b150}", "hugging-face": "hf_{l34}", "openai": "sk-{w20}T3BlbkFJ{w20}",
    "openai-project": "sk-proj-{b74}T3BlbkFJ{b74}", "anthropic": "sk-ant-api03-{b93}AA", "telegram": "{d10}:AA{b33}",
    "discord-webhook": "https://discord.com/api/webhooks/{d18}/{b68}", "databricks": "dapi{h32}", "vault": "hvs.{b90}",
    "linear": "lin_api_{w40}", "notion": "ntn_{d11}{w35}", "mailgun": "key-{h32}", "shopify": "shpat_{h32}",
    "digitalocean": "dop_v1_{h64}", "doppler": "dp.pt.{w43}", "grafana": "glsa_{w32}_{h8}",
}  # fmt: skip
TEST_FORMATS = {
    "github-user": "ghu_{w36}", "gitlab-runner": "glrt-{b20}", "slack-app": "xapp-1-A{U10}-{d13}-{h64}",
    "google-oauth": "ya29.a0{b120}", "stripe-webhook": "whsec_{w32}", "discord-bot": "MT{w24}.{b6}.{b38}",
    "atlassian": "ATATT3xFfGF0{b180}", "openai-service": "sk-svcacct-{b74}T3BlbkFJ{b74}", "notion-old": "secret_{w43}",
    "docker": "dckr_pat_{b27}", "rubygems": "rubygems_{h48}", "terraform": "{w14}.atlasv1.{b67}", "groq": "gsk_{w52}",
    "airtable": "pat{w14}.{h64}", "postman": "PMAK-{h24}-{h34}", "new-relic": "NRAK-{U27}", "replicate": "r8_{w37}",
}  # fmt: skip
Split = Literal["train", "test"]
_WORDS = "amber copper river winter falcon maple Silver Garden ocean Lisbon thunder cactus Violet".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A text and the secrets in it (none in a look-alike); `family` is the format or the kind of context."""

    text: str
    secrets: tuple[str, ...]
    family: str


def fill(text: str, chance: random.Random) -> str:
    """Replace braces such as `{h40}` by random characters."""

    def draw(found: re.Match[str]) -> str:
        return "".join(chance.choices(ALPHABETS[found[1]], k=int(found[2])))

    return re.sub(r"\{([a-zA-Z])(\d+)\}", draw, text)


def json_web_token(chance: random.Random) -> str:
    """Make a token of three parts with a random signature."""
    parts = {"alg": "HS256", "typ": "JWT"}, {"sub": fill("{n12}", chance), "exp": chance.randrange(10**9, 2 * 10**9)}
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{next(encoded)}.{next(encoded)}.{fill('{b43}', chance)}"


def private_key(chance: random.Random) -> str:
    """Make an armoured block that looks like a private key."""
    label = chance.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"))
    body = "\n".join(fill("{B64}", chance) for _ in range(chance.randrange(3, 12)))
    return f"-----BEGIN {label}-----\n{body}\n{fill('{B20}==', chance)}\n-----END {label}-----"


def password(chance: random.Random) -> str:
    """Make a password like those of people or password managers."""
    one, other = chance.sample(_WORDS, 2)
    leet = one.translate(str.maketrans("eai", "341"))
    forms = (
        f"{one}{chance.randrange(10, 9999)}{chance.choice('!?#*')}", f"{one}-{other}-{chance.randrange(10, 99)}",
        f"{one.capitalize()}{chance.randrange(1900, 2030)}", f"{leet}_{{d3}}", "{w16}", "{w5}!{w4}%{w3}", "{n20}",
    )  # fmt: skip
    return fill(chance.choice(forms), chance)


def token(chance: random.Random) -> str:
    """Make a token of a service that uses no prefix."""
    return fill(
        chance.choice(["{h32}", "{h40}", "{w24}", "{w32}", "{w40}", "{b43}", "{B40}", "{n25}", "{h64}"]), chance
    )


def _basic(chance: random.Random) -> str:
    return base64.b64encode(f"{fill('{s6}', chance)}:{password(chance)}".encode()).decode()


def _encoded(chance: random.Random) -> str:
    return base64.b64encode(password(chance).encode()).decode()


# Generators by the placeholder in a context.
SLOTS: dict[str, Callable[[random.Random], str]] = {
    "<P>": password, "<T>": token, "<J>": json_web_token, "<K>": private_key, "<A>": _basic, "<E>": _encoded,
    "<I>": lambda chance: fill("AKIA{U16}", chance), "<Z>": lambda chance: fill("{B86}==", chance),
    "<W>": lambda chance: fill("{B40}", chance),
}  # fmt: skip
_SLOT = re.compile("|".join([*SLOTS, "<S>"]))


def _filled(context: str, provider: str, family: str, chance: random.Random) -> Labelled:
    secrets: list[str] = []

    def put(found: re.Match[str]) -> str:
        made = fill(provider, chance) if found[0] == "<S>" else SLOTS[found[0]](chance)
        before = found.string[: found.start()].rpartition("\n")[2]
        if found[0] == "<K>" and before.strip(" +->") == "":
            made = made.replace("\n", f"\n{before}")  # indent, quote or mark each line of a block like its first
        elif found[0] == "<K>":
            made = made.replace("\n", "\\n")
        secrets.append(made)
        return made

    return Labelled(text=_SLOT.sub(put, fill(context, chance)), secrets=tuple(secrets), family=family)


def _contexts(split: Split, *, secret: bool) -> list[str]:
    records = map(json.loads, _CONTEXTS.read_text(encoding="utf-8").splitlines())
    return [each["text"] for each in records if (each["split"], each["secret"]) == (split, secret)]


def secrets(split: Split, seed: int, rounds: int = 4) -> Iterator[Labelled]:
    """Make texts with secrets: each provider's format in some contexts, each other context `rounds` times."""
    chance = random.Random(f"{split} {seed}")
    contexts = _contexts(split, secret=True)
    open_to_all = [each for each in contexts if "<S>" in each]
    for family, provider in {**FORMATS, **(TEST_FORMATS if split == "test" else {})}.items():
        for context in chance.choices(open_to_all, k=2 * rounds):
            yield _filled(context, provider, family, chance)
    for context in contexts:
        if "<S>" not in context:
            kind = next(mark for mark in SLOTS if mark in context)
            for _ in range(rounds):
                yield _filled(context, "", f"context {kind}", chance)


def lookalikes(split: Split, seed: int, rounds: int = 5) -> Iterator[Labelled]:
    """Make texts without secrets that look as if they held some."""
    chance = random.Random(f"{split} {seed}")
    for context in _contexts(split, secret=False):
        for _ in range(rounds):
            yield Labelled(text=fill(context, chance), secrets=(), family=context[:40])

"""What secrets look like: the providers' prefixes, forms of their own, and the words that a secret stands beside.

Each form has an anchor, a literal text: one pass looks for all of them, and most texts hold few. What the form alone
cannot tell, as of `password = …`, its check does. Repetition is bounded, or what it eats cannot begin another match: no
text is read more than a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from orchestra_mem.core.redaction import likelihood as likely

Check = Callable[[str], object]

WALL = "\0"
"""Stands in a text where something was found; no form reads across it."""
_TOKEN = "[A-Za-z0-9_-]"
_ALONE = rf"(?:(?<!{_TOKEN})|(?<=\\[nrtbf]))"  # `\n` as it stands in JSON ends a word too
# A bot's token has three parts and no anchor: first the ends of the second and third are looked for, which are rare.
_BOT_ENDS = re.compile(rf"\.{_TOKEN}{{6}}\.{_TOKEN}{{27,}}")
_BOT_TOKEN = re.compile(rf"{_ALONE}[MNO]{_TOKEN}{{22,28}}\.{_TOKEN}{{6}}\.{_TOKEN}{{27,}}")
has_bot_token = _BOT_ENDS.search


def find_bot_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Find the tokens of Discord's bots: from, to."""
    for ends in _BOT_ENDS.finditer(text):
        token = _BOT_TOKEN.search(text, max(0, ends.start() - 29), ends.end())
        if token and likely.is_random(token[0]):
            yield token.span()


class Detector(NamedTuple):
    """A form of secrets.

    `form` is what follows one of the `anchors`, or the whole where an anchor stands `within`. The secret is what a
    named group of it holds, else all; where there are `parts`, the group of each of these within that. `folded` forms
    are looked for in the text in small letters.
    """

    kind: str
    anchors: str
    form: str
    check: Check = likely.is_key
    folded: bool = False
    within: bool = False
    parts: str = ""


@cache
def pattern_of(detector: Detector, anchor: str) -> re.Pattern[str]:
    """Compile the form behind one of its anchors; most texts need few of them."""
    literal = re.escape(anchor)
    alone = rf"(?:(?<!{_TOKEN}{literal})|(?<=\\[nrtbf]{literal}))" if anchor[:1].isalpha() else ""
    before = "" if detector.within else literal if detector.folded else literal + alone
    return re.compile(before + detector.form, re.VERBOSE | re.MULTILINE)


_VALUE = r"""(?:
    (?P<q>["'`]) (?P<quoted> (?: \\[^\n\0] | (?!(?P=q))[^\\\n\0] ){1,4000} ) (?P=q)
  | (?P<e>\\+["']) (?P<escaped> (?: (?!(?P=e))[^\n\0] ){1,4000} ) (?P=e)
  | (?P<bare> (?: [^\s\0"'`<>\\;&,,。;、»]++ | [;&,](?![\s\0]|$|[\w\ .-]{1,30}=) )++ ) )"""
_WHOSE = r"(?:\ (?:for|of|to|on|von|für|vom|de|del|du|pour|от|для|к)\ [\w@.-]{1,30}(?:\ [\w@.-]{1,30}){0,2})?"
# What stands between the word and the secret: `"] =`, `: str = `, ` for root is `, `" value="`, `("`, `', '`, `>`.
_BETWEEN = rf"""(?:[_.-]?(?:base|value|prod|production|dev|staging|test|live|[0-9]{{1,2}}))?
  (?:\\*["'`])?\]?\*{{0,2}}
  (?: :\ ?[a-z&][\w.|\[\]\ ']{{0,24}}\ =\ (?=["'])
    | {_WHOSE}[ \t]{{0,20}}(?:=>|:=|={{1,3}}|[::=])\*{{0,2}}[ \t]{{0,8}}
    | {_WHOSE}\ {{1,3}}(?:is|was|ist|war|lautet|est|es|è|é|era|[–—→-]|->):?\ {{1,3}}
    | \ ?(?:是|为|為|は)\ ?
    | ,?(?:\s|\\n){{1,20}}["']?value["']?\ ?[=:]\ ?
    | \ ?\(\ ?(?=["'\\]) | \ (?=')
    | (?:\s[^<>\n\0]{{1,100}})?>(?=[^<>\s\0]{{6,200}}</) )"""
_LOOSE = r"(?:\\*[\"'`])?\*{0,2}(?:\ \|\ |[\ :(]{1,3})(?:(?:token|api-?key|bearer|key)\ )?"
_KEY_OWNERS = (
    "api access secret private encryption signing account auth master service storage shared admin deploy license app "
    "client consumer subscription host webhook bot server hmac aes crypto oauth push"
)
_SECRET_KEY = "|".join(f"(?<={owner}{joint}key)" for owner in _KEY_OWNERS.split() for joint in ("", "[ _.-]"))
_NO_CURSOR = "".join(f"(?<!{what}{joint}token)" for what in ("page", "sync", "next") for joint in ("", "[ _.-]"))


_PASSWORDS = "pass|pw|contraseña|clave|senha|kennwort|пароль|密码|密碼|口令|パスワード"
_PASSWORD = "(?:(?<=pass)(?:word|wort|wd|phrase|code|e)|(?<=pw)d|(?<![a-z]pw)(?<!pass))"


def _worded(kind: str, anchors: str, form: str, check: Check) -> Detector:
    return Detector(kind, anchors, form + _VALUE, check, folded=True)


def _provided(kind: str, prefix: str) -> Detector:
    form = rf"{_TOKEN}{{16,}}(?:\.{_TOKEN}{{16,}})*"
    return Detector(kind, prefix, form, lambda key: likely.is_provided(key.removeprefix(prefix)))


_PROVIDED = [
    _provided(kind, prefix)
    for kind, prefixes in re.findall(r"^([\w-]+): (.*)", files(__package__).joinpath("prefixes.txt").read_text(), re.M)
    for prefix in prefixes.split()
]
DETECTORS = (
    *sorted(_PROVIDED, key=lambda each: -len(each.anchors)),  # the longer prefix says more of the kind
    Detector("private-key", "-----BEGIN ", r"""(?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?=(?:[^-\0]|-(?!----)){0,300}?[A-Za-z0-9+/]{16})
        (?: (?:[^-\0]++|-(?!-----?END|----))*+ -{5,6}END\ [A-Z0-9 ]{3,40}-----
          | (?:(?:\\[nr]|[\s+>|-]){1,40}[A-Za-z0-9+/=]{16,})* )""", bool),
    Detector("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    Detector("json-web-token", "eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}"),
    Detector("aws-key", "AKIA|ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Detector("aws-key", "AKIA|ASIA", r"""[A-Z0-9]{16}[^A-Za-z0-9+/][^\0]{0,80}?(?<![A-Za-z0-9+/])(?![0-9a-f]{40})
        (?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])""", likely.is_random),
    Detector("google-key", "AIza|1//0", r"[A-Za-z0-9_-]{35,}"),
    Detector("slack-webhook", "https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/]{30,}"),
    Detector("discord-webhook", "https://discord", r"(?:app)?\.com/api/(?:v\d/)?webhooks/\d{17,20}/[\w-]{60,}"),
    Detector("telegram-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])", within=True),
    Detector("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    Detector("databricks-token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    Detector("atlassian-token", "ATATT3x|ATCTT3x|ATBB", r"[A-Za-z0-9_=-]{20,}"),
    Detector("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}", within=True),
    Detector("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Detector("azure-secret", "Q~", r"[A-Za-z0-9_.~-]{4}Q~[A-Za-z0-9_.~-]{31,34}", within=True),
    Detector("signed-url", "sig=|x-amz-signature=", r"(?P<secret>[a-z0-9%+/=]{40,})", likely.is_random, True),
    Detector("url-password", "://", r"""[^\s\0/@:"'`<>]{0,80}:(?P<secret>[^\s\0/"'`<>]{1,200})@(?=[\w\[.-])"""),
    Detector("url-password", "://", r"""(?<!ssh://)(?P<secret>[^\s\0/@:"'`<>]{16,200})@(?=[\w\[.-])""",
             likely.is_random),
    Detector("bearer-token", "bearer ", r"""\ {0,3}["']?(?P<bare>[\w.~+/=-]{8,})""", likely.is_token, folded=True),
    Detector("basic-login", 'basic |auth"|_auth', r"""(?:\ {0,3}|\ ?[:=]\ ?["']?)(?P<secret>[a-z0-9+/]{8,}={0,2})""",
             likely.is_login, folded=True),
    Detector("cookie", "cookie", r"""[2s]?["']?\ ?[:=\ ]\ ?["']?(?P<secret>[^\n\0]{8,4000})""", likely.is_token,
             folded=True, parts=r"""[\w.%-]{1,60}(?:=|["']:\ ?["'])([^;,\s"'\\}]{12,})"""),
    Detector("cookie", "phpsessid=|jsessionid=|connect.sid=", r"""(?P<secret>[^;,\s\0"'\\&]{12,400})""",
             likely.is_token, folded=True),
    Detector("kubernetes-secret", "kind: secret", r"""^[ ]{2,8}[\w.-]{1,100}:[ ]{1,4}
        (?P<secret>[a-z0-9+/]{8,}={0,2})[ ]*$""", likely.decoded, folded=True, within=True),
    Detector("password", ":5432:|:5433:|:6432:|:*:", r"[^:\s\0]{1,64}:[^:\s\0]{1,64}:(?P<secret>[^\s\0\"'\\]{4,200})",
             likely.is_password),
    Detector("password", " -u | --user | -a ", r"""["']?[^\s\0:"'/]{1,64}:(?P<bare>[^\s\0"'/\\][^\s\0"'\\]{3,200})""",
             likely.is_password),
    _worded("password", "login", r"\s{1,20}[^\s\0]{1,80}\s{1,20}password\s{1,20}", likely.is_password),
    _worded("password", "--", r"(?<![\w-]--)(?=[a-z])[a-z-]{0,24}?pass(?:word|wd|phrase)?\ {1,3}", likely.is_password),
    _worded("token", "--", r"(?<![\w-]--)(?=[a-z])[a-z-]{0,24}?(?:secret|token|key|auth)\ {1,3}", likely.is_token),
    _worded("password", "mysql|mariadb|mongo|redis-cli|sshpass|docker login|az login", r"[^\n\0]{0,200}?\s-[pa]\ ?",
            likely.is_password),
    _worded("password", "identified ", r"(?:with\ [^\s\0]{1,40}\ )?by\ (?:password\ )?(?=['\"\\])", likely.is_password),
    _worded("password", "auth", r"""(?:=?\(|\ =\ \()["'][^"'\n\0]{1,64}["'],\ ?""", likely.is_password),
    _worded("password", "pass", r"""(?<![a-z]pass)(?<!-\ pass)(?:\\*["'])?\ ?[:=]\ ?""", likely.is_password),
    _worded("password", _PASSWORDS, rf"{_PASSWORD}{_BETWEEN}", likely.is_password),
    _worded("password", _PASSWORDS, rf"{_PASSWORD}{_LOOSE}", likely.is_strong),
    _worded("token", "token|auth", rf"(?:orization)?{_LOOSE}", likely.is_strong),
    _worded("secret", "pass|secret|token|jwt", r"""(?:word|wd)?\\*["'],\ ?(?=["'\\])""", likely.is_secret),
    _worded("secret", "secret", rf"(?<!:secret){_BETWEEN}", likely.is_secret),
    _worded("token", "token", _NO_CURSOR + _BETWEEN, likely.is_token),
    _worded("token", "key", f"(?:{_SECRET_KEY}){_BETWEEN}", likely.is_token),
    _worded("token", "key", f"(?:{_SECRET_KEY}){_LOOSE}", likely.is_strong),
    _worded("token", "auth|credential|jwt|токен|ключ|密钥|令牌", rf"(?:orization|s)?{_BETWEEN}", likely.is_token),
)  # fmt: skip

"""Patterns of secrets: providers' prefixes, special formats, and words such as `password` that precede a secret.

Each pattern has anchors: literal texts, all found in one pass, of which most texts contain few. If a pattern is not
specific enough, as for `password = …`, its check decides. Repeats are bounded, or consume characters at which no
other match can begin, so that no text is read more than a fixed number of times. Personal data come last, each kind
with its checksum or valid range; they are searched for only on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from typing import NamedTuple

from orchestra_mem.core.redaction import likelihood as likely

Check = Callable[[str], object]

WALL = "\0"
"""Overwrites the secrets found in a text during the search; no pattern matches across it."""
_TOKEN = "[A-Za-z0-9_-]"
_ALONE = rf"(?:(?<!{_TOKEN})|(?<=\\[nrtbf]))"  # an escape in JSON, such as `\n`, also ends a word
# A bot's token has three parts and no anchor, so the search begins with the second and third part, which are rare.
_BOT_ENDS = re.compile(rf"\.{_TOKEN}{{6}}\.{_TOKEN}{{27,}}")
_BOT_TOKEN = re.compile(rf"{_ALONE}[MNO]{_TOKEN}{{22,28}}\.{_TOKEN}{{6}}\.{_TOKEN}{{27,}}")
has_bot_token = _BOT_ENDS.search


def find_bot_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each token of a Discord bot."""
    for ends in _BOT_ENDS.finditer(text):
        token = _BOT_TOKEN.search(text, max(0, ends.start() - 29), ends.end())
        if token and likely.is_random(token[0]):
            yield token.span()


class Detector(NamedTuple):
    """A pattern for one kind of secret.

    `anchors`: Literal texts, separated by `|`. `form`: Regular expression for text after an anchor, or with `within`
    for the anchor and the text around it. The secret is the named group that matched, else the entire match. `parts`:
    Finds several secrets in it, each in its first group. `folded`: Match lower-case text. `check`: Confirms a secret.
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
    """Compile a detector's pattern for one of its anchors. Compiled on first use, as most texts need few patterns."""
    literal = re.escape(anchor)
    alone = rf"(?:(?<!{_TOKEN}{literal})|(?<=\\[nrtbf]{literal}))" if anchor[:1].isalpha() else ""
    before = "" if detector.within else literal if detector.folded else literal + alone
    return re.compile(before + detector.form, re.VERBOSE | re.MULTILINE)


_VALUE = r"""(?:
    (?P<q>["'`]) (?P<quoted> (?: \\[^\n\0] | (?!(?P=q))[^\\\n\0] ){1,4000} ) (?P=q)
  | (?P<e>\\+["']) (?P<escaped> (?: (?!(?P=e))[^\n\0] ){1,4000} ) (?P=e)
  | (?P<bare> (?: [^\s\0"'`<>\\;&,,。;、»]++ | [;&,](?![\s\0]|$|[\w\ .-]{1,30}=) )++ ) )"""
_WHOSE = r"(?:\ (?:for|of|to|on|von|für|vom|de|del|du|pour|от|для|к)\ [\w@.-]{1,30}(?:\ [\w@.-]{1,30}){0,2})?"
# Text between the word and the secret: `"] =`, `: str = `, ` for root is `, `" value="`, `("`, `', '`, `>`.
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
    *sorted(_PROVIDED, key=lambda each: -len(each.anchors)),  # a longer prefix names the kind more precisely
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


def _is_card(text: str) -> bool:
    digits = [int(each) for each in reversed(text) if each.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled)) % 10 == 0  # Luhn


def _is_iban(text: str) -> bool:
    text = text.replace(" ", "")
    return 15 <= len(text) <= 34 and int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def _is_address(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith("255."))


def _is_national_id(text: str) -> bool:
    """Verify the check character of a Chinese (18 characters), French (15) or Spanish (9) number."""
    if len(text) == 18:
        weighed = sum(int(digit) * 2 ** (17 - place) for place, digit in enumerate(text[:17]))
        return "10X98765432"[weighed % 11] == text[17].upper()
    if len(text) == 15:
        return 97 - int(text[:13]) % 97 == int(text[13:])
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(text[:8]) % 23] == text[8]


def _personal(kind: str, anchor: str, form: str, check: Check = bool) -> Detector:
    return Detector(kind, anchor, form, check, within=True)


PERSONAL = (
    _personal("email", "@", r"\b[\w.+-]{1,64}@(?!\dx\.)(?:[a-zA-Z0-9-]{1,63}\.){1,8}[a-zA-Z]{2,24}(?![\w:-])"),
    _personal("iban", "", r"(?<!\w)[A-Z]{2}[0-9]{2}(?:\ ?[A-Z0-9]{4}){2,7}(?:\ ?[A-Z0-9]{1,3})?(?!\w)", _is_iban),
    _personal("card", "", r"(?<![\w.-])[3-6](?:[ -]?[0-9]){12,18}(?![\w-])", _is_card),
    _personal("national-id", "", r"\b(?:[1-9][0-9]{16}[0-9Xx]|[12][0-9]{14}|[0-9]{8}[A-Z])\b", _is_national_id),
    _personal("us-ssn", "-", r"(?<![\w-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])"),
    _personal("phone", "", r"""(?<![\w.+-])(?:\+[1-9][0-9](?:[ ().\/-]{0,2}[0-9]){6,13}
        | \(?0[1-9][0-9]{1,3}\)?[ \/-]{1,3}[0-9]{3,4}(?:[ \/-]?[0-9]{2,4}){1,3}
        | (?:\([2-9][0-9]{2}\)\ ?|[2-9][0-9]{2}[.-])[0-9]{3}[.-][0-9]{4} )(?![\w-])"""),
    _personal("ip-address", ".", r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?\w)", _is_address),
    _personal("ip-address", ":", r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])", _is_address),
)  # fmt: skip


def detector_of_names(names: Iterable[str]) -> Detector:
    """Return a detector for the given names of people."""
    return _personal("name", "", rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")

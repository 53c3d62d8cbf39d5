"""What secrets look like: the providers' prefixes, forms of their own, and the words that a secret stands beside.

Each form begins with an anchor, a literal text, so that looking for it costs next to nothing where it is not there. What
a form alone cannot tell, as of `password = …`, its check does. Repetition is bounded, or what it eats cannot begin
another match: no text, however odd, is read more than a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from orchestra_mem.core.redaction import likelihood as likely

Check = Callable[[str], bool]

# Keys that a provider's prefix tells, with at least 16 characters behind it.
_PREFIXES = {
    "github-token": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "gitlab-token": "glpat- glrt- gldt- glcbt- glptt- glft- glimt- glagent- glsoat- gloas- glffct-",
    "slack-token": "xoxb- xoxp- xoxa- xoxe- xoxr- xoxs- xoxc- xoxd- xapp-",
    "stripe-key": "sk_live_ rk_live_ sk_test_ rk_test_ whsec_",
    "anthropic-key": "sk-ant-",
    "openai-key": "sk- sk-proj- sk-svcacct- sk-admin-",
    "google-key": "GOCSPX- ya29.",
    "npm-token": "npm_",
    "pypi-token": "pypi-",
    "hugging-face-token": "hf_ api_org_",
    "sendgrid-key": "SG.",
    "vault-token": "hvs. hvb. hvr.",
    "doppler-token": "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
    "linear-key": "lin_api_ lin_oauth_",
    "notion-token": "ntn_ secret_",
    "mailgun-key": "key-",
    "shopify-token": "shpat_ shpca_ shppa_ shpss_",
    "digitalocean-token": "dop_v1_ doo_v1_ dor_v1_",
    "grafana-token": "glsa_ glc_",
    "docker-token": "dckr_pat_ dckr_oat_",
    "rubygems-key": "rubygems_",
    "postman-key": "PMAK-",
    "new-relic-key": "NRAK- NRJS- NRII-",
    "model-key": "gsk_ xai- pplx- r8_ nvapi- csk- tgp_v1_ fw_ lsv2_pt_ lsv2_sk_ jina_ sk_",
    "cloud-token": "sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_ nfp_ fo1_ HRKU- pul- tskey- dt0c01. bkua_ "
    "CFPAT- CCIPAT_ sntrys_ sntryu_ ops_ pat- sq0csp- sq0atp- figd_ xkeysib- tfp_ rdme_",
}
KINDS_BY_PREFIX = {prefix: kind for kind, prefixes in _PREFIXES.items() for prefix in prefixes.split()}
# Where a prefix may end for the first time, and all prefixes that begin so, the longest first.
_FIRST = {re.match(r"\w+?[_.-]|.*", prefix)[0] for prefix in KINDS_BY_PREFIX}  # type: ignore[index]
_ENDINGS = tuple(sorted(_FIRST))
_CONTINUED = {first: sorted(filter(lambda p: p.startswith(first), KINDS_BY_PREFIX), key=len, reverse=True) for first in _FIRST}
_LONGEST = max(map(len, _FIRST))
_RUN = re.compile(r"(?<=[A-Za-z0-9])[_.-](?=[A-Za-z0-9_.-]{16})[A-Za-z0-9_-]*")
_BODY = re.compile(r"[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{16,})*")
_ALONE = re.compile(r"(?<![A-Za-z0-9_-])|(?<=\\[nrtbf])")  # `\n` as it stands in JSON ends a word too


def find_prefixed(text: str) -> Iterator[tuple[int, int, str]]:
    """Find the keys that begin with a provider's prefix: from, to, kind."""
    for run in _RUN.finditer(text):
        end = run.start() + 1
        if text.endswith(_ENDINGS, max(0, end - _LONGEST), end):
            for first in filter(lambda ending: text.endswith(ending, 0, end), _ENDINGS):
                start = end - len(first)
                prefix = next((each for each in _CONTINUED[first] if text.startswith(each, start)), "")
                body = _BODY.match(text, start + len(prefix)) if prefix and _ALONE.match(text, start) else None
                if body and likely.is_random_key(body[0]):
                    yield start, body.end(), KINDS_BY_PREFIX[prefix]


class Detector(NamedTuple):
    """A form of secrets.

    `form` is what follows one of the `anchors`, or the whole where the anchor stands `within`. The secret is what one of
    its groups `secret`, `quoted`, `escaped` and `bare` holds, else all; where the table has `parts`, it is the group of
    each of them within that. What is `bare`, without quotes, has a check of its own. `folded` forms are looked for in
    the text in small letters.
    """

    kind: str
    anchors: str
    form: str
    check: Check = likely.is_key
    bare: Check = likely.is_key
    folded: bool = False
    within: bool = False
    parts: str = ""

    def patterns(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Compile the form behind each anchor."""
        for anchor in self.anchors.split("|"):
            literal = re.escape(anchor)
            alone = rf"(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrtbf]{literal}))" if anchor[0].isalpha() else ""
            before = "" if self.within else literal + ("" if self.folded else alone)
            yield anchor, re.compile(before + self.form, re.VERBOSE | re.MULTILINE)


def _after(words: str, last: str) -> str:
    """Give a pattern for standing behind `last` with one of some words before it, joined or not."""
    ends = [f"{word}{joint}{last}" for word in words.split() for joint in ("", "[ _.-]")]
    return "(?:" + "|".join(f"(?<={end})" for end in ends) + ")"


def _not_after(words: str, last: str) -> str:
    return "".join(f"(?<!{word}{joint}{last})" for word in words.split() for joint in ("", "[ _.-]"))


_VALUE = r"""(?:
    (?P<q>["'`]) (?P<quoted> (?: \\[^\n] | (?!(?P=q))[^\\\n] ){1,400} ) (?P=q)
  | (?P<e>\\+["']) (?P<escaped> (?: (?!(?P=e))[^\n] ){1,400} ) (?P=e)
  | (?P<bare> (?: [^\s"'`<>\\;&,,。;、»]++ | [;&,](?!\s|$|[\w\ .-]{1,30}=) )++ ) )"""
_WHOSE = r"(?:\ (?:for|of|to|on|von|für|vom|de|del|du|pour|от|для|к)\ [\w@.-]{1,30}(?:\ [\w@.-]{1,30}){0,2})?"
# What stands between the word and the secret: `"] =`, `: str = `, ` for root is `, `" value="`, `("`, `', '`, `>`.
_BETWEEN = rf"""(?:[_.-]?(?:base|value|prod|production|dev|staging|test|live|[0-9]{{1,2}}))?
  (?:\\*["'`])?\]?\*{{0,2}}
  (?: :\ ?[a-z][\w.|\[\]\ ]{{0,24}}\ =\ (?=["'])
    | {_WHOSE}[ \t]{{0,20}}(?:=>|:=|={{1,3}}|[::=])\*{{0,2}}[ \t]{{0,8}}
    | {_WHOSE}\ {{1,3}}(?:is|was|ist|war|lautet|est|es|era|[–—→-]|->)\ {{1,3}}
    | \ ?(?:是|为|為|は)\ ?
    | ,?\s{{1,20}}["']?value["']?\ ?[=:]\ ?
    | \ ?[(,]\ ?(?=["'\\]) | \ (?=')
    | >(?=[^<>\s]{{6,200}}</) )"""
_KEYS = "api access secret private encryption signing account auth master service storage shared admin deploy license app "
_KEYS += "client consumer subscription host webhook bot server"

DETECTORS = (
    Detector("private-key", "-----BEGIN ", r"""(?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?: (?:[^-]++|-(?!-----?END|----))*+ -{5,6}END\ [A-Z0-9 ]{3,40}----- | (?:(?:\\[nr]|[\s+>|-]){1,40}[A-Za-z0-9+/=]{16,})* )"""),
    Detector("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    Detector("json-web-token", "eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}"),
    Detector("aws-key", "AKIA|ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Detector("aws-key", "AKIA|ASIA", r"[A-Z0-9]{16}[^A-Za-z0-9+/][^\0]{0,80}?(?<![A-Za-z0-9+/])"
             r"(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])", likely.is_random_key),
    Detector("google-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    Detector("google-key", "1//0", r"[A-Za-z0-9_-]{40,}"),
    Detector("slack-webhook", "https://hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/]{30,}"),
    Detector("discord-webhook", "https://discord", r"(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/[A-Za-z0-9_-]{60,}"),
    Detector("discord-token", ".", r"[MNO](?<![A-Za-z0-9_-][MNO])[A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
             likely.is_random_key, within=True),
    Detector("telegram-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])", within=True),
    Detector("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    Detector("databricks-token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    Detector("atlassian-token", "ATATT3x|ATCTT3x|ATBB", r"[A-Za-z0-9_=-]{20,}"),
    Detector("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}", within=True),
    Detector("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Detector("azure-secret", "Q~", r"[A-Za-z0-9_.~-]{4}Q~[A-Za-z0-9_.~-]{31,34}", within=True),
    Detector("signed-address", "sig=|x-amz-signature=", r"(?P<secret>[a-z0-9%+/=]{40,})", likely.is_random_key, folded=True),
    Detector("url-password", "://", r"""[^\s/@:"'`<>]{0,80}:(?P<secret>[^\s/"'`<>]{1,200})@(?=[\w\[.-])""",
             likely.is_address_password),
    Detector("url-password", "://", r"""(?P<secret>[^\s/@:"'`<>]{16,200})@(?=[\w\[.-])""", likely.is_random_key),
    Detector("bearer-token", "bearer ", r"""\ {0,3}["']?(?P<bare>[\w.~+/=-]{8,})""", bare=likely.is_bare_token, folded=True),
    Detector("basic-login", "basic ", r"\ {0,3}(?P<secret>[a-z0-9+/]{8,}={0,2})", likely.is_login, folded=True),
    Detector("basic-login", 'auth"|_auth', r"""\ ?[:=]\ ?["']?(?P<secret>[a-z0-9+/]{8,}={0,2})""", likely.is_login, folded=True),
    Detector("cookie", "cookie", r"""2?["']?\ ?[:=\ ]\ ?["']?(?P<secret>[^\n"']{8,4000})""", likely.is_random_key, folded=True,
             parts=r"[\w.%-]{1,60}=([^;,\s]{12,})"),
    Detector("kubernetes-secret", "kind: secret", r"^[ ]{2,8}[\w.-]{1,100}:[ ]{1,4}(?P<secret>[a-z0-9+/]{8,}={0,2})[ ]*$",
             likely.is_base64, folded=True, within=True),
    Detector("password", "login", r"\s{1,20}\S{1,80}\s{1,20}password\s{1,20}(?P<bare>\S{4,200})", bare=likely.is_password, folded=True),
    Detector("password", ":5432:|:5433:|:6432:|:*:", r"[^:\s]{1,64}:[^:\s]{1,64}:(?P<secret>\S{4,200})$", likely.is_password),
    Detector("password", "--", rf"[a-z-]{{0,24}}?pass(?:word|wd|phrase)?\ {{1,3}}{_VALUE}", likely.is_password,
             likely.is_bare_password, folded=True),
    Detector("token", "--", rf"[a-z-]{{0,24}}?(?:secret|token|key|auth)\ {{1,3}}{_VALUE}", likely.is_token,
             likely.is_bare_token, folded=True),
    Detector("password", " -u | --user | -a ", r"""["']?[^\s:"'/]{1,64}:(?P<bare>[^\s"']{4,200})""", bare=likely.is_bare_password),
    Detector("password", "mysql|mariadb", rf"[^\n]{{0,200}}?\s-p{_VALUE}", likely.is_password, likely.is_bare_password, folded=True),
    Detector("password", "sshpass -p|docker login", rf"[^\n]{{0,100}}?(?:-p)?\ ?{_VALUE}", likely.is_password,
             likely.is_bare_password, folded=True),
    Detector("password", "identified by ", rf"(?:password\ )?{_VALUE}", likely.is_address_password, likely.is_bare_password, folded=True),
    Detector("password", "pass|pwd|contraseña|senha|kennwort|пароль|密码|密碼|パスワード",
             rf"(?:word|wort|wd|phrase|code|e|(?<![a-z]pass)|(?<!pass)){_BETWEEN}{_VALUE}", likely.is_password,
             likely.is_bare_password, folded=True),
    Detector("secret", "secret", _BETWEEN + _VALUE, likely.is_secret, likely.is_bare_secret, folded=True),
    Detector("token", "token", _not_after("page next sync continuation", "token") + _BETWEEN + _VALUE, likely.is_token,
             likely.is_bare_token, folded=True),
    Detector("token", "key", _after(_KEYS, "key") + _BETWEEN + _VALUE, likely.is_token, likely.is_bare_token, folded=True),
    Detector("token", "auth|credential|jwt|токен|ключ|密钥|令牌", rf"(?:orization|s)?{_BETWEEN}{_VALUE}", likely.is_token,
             likely.is_bare_token, folded=True),
)  # fmt: skip

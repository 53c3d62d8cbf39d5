"""Distinguish secrets, such as random keys and chosen passwords, from names, code and placeholders.

Neighbouring characters form common pairs in names but not in random keys. No list of words separates them as well.
"""

from __future__ import annotations

import base64
import re
import string
from importlib.resources import files
from itertools import pairwise

ALPHABET = string.ascii_lowercase + "0-"
"""The characters of `folded` texts: lower-case letters, `0` for any digit, `-` for anything else."""


def folded(text: str) -> str:
    """Map the characters of a text to `ALPHABET`."""
    return re.sub("[^a-z0]", "-", re.sub("[0-9]", "0", text.lower()))


# Log-odds in bits that a pair is random, stored as letters: `k` is 0, a step 0.5; see `tools/train_likelihood.py`.
_BITS = {
    first + second: (ord(letter) - ord("k")) / 2
    for first, row in zip(ALPHABET, files(__package__).joinpath("neighbours.txt").read_text().split(), strict=True)
    for second, letter in zip(ALPHABET, row, strict=True)
}
# Threshold for the most random stretch of a text: one name in 200 reaches it, and 99 % of random 16-character keys.
_RANDOM_BITS = 11.0
_READ = 200  # number of characters examined
# A hexadecimal digest or UUID with both digits and letters, possibly next to words.
_HEX = re.compile(r"(?i)(?<![0-9a-z])(?=[a-f-]*\d)(?=[\d-]*[a-f])[0-9a-f]{8}(?:-?[0-9a-f]{4,}){2,}(?![0-9a-z])")
_PLACEHOLDER = re.compile(
    r"""(?isx) ^ (?: <.*> | \[.* | \{.* | \$[({\w].* | %[(%\w].*[sd%)] | !\w+ | enc\[.* | (?P<one>.)(?P=one)*
        | [./~]+/.* | [\w./-]+\.[a-z]{2,4} | (?:my|db|the|some)?[-_]?(?:pass|password|passwd|pwd|pw|secret|token)
        | guest | postgres | root | admin | user(?:name)? ) $
    | (?<![a-z0-9])(?: your | placeholder | change[-_]?(?:me|it) | replace | insert | dummy | redacted | hidden )
    | example | x{6} | (?P<same>[^\W\d])(?P=same){7} | \.\.\. | … """
)
# A path, a URL, or the name of a secret that is stored elsewhere.
_REFERENCE = re.compile(r"(?i)(?:[.~]{0,2}/|[a-z][\w+.-]*[:/])[\w./:#@%+=-]+")
# An identifier with its members, which may be called or indexed.
_CODE = re.compile(r"[&*@!]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*(?P<opened>[(\[{<|].*)?", re.DOTALL)
_SIGN = re.compile(r"[!#$%^&*@]")
_NAME = re.compile(r"[A-Za-z]+(?:[-._/:][A-Za-z]+)*\d?|[a-z0-9]+(?:[-.][a-z0-9]+)+")
_MADE_UP = re.compile(r"(?=.{10})(?:[A-Za-z]+\d+){2,}[A-Za-z]*|(?=.*\d).*[!#$%^&*@].*")
_NAME_IN_CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+\d?|[a-z_]+(?:\.[A-Za-z_]\w*)+")


def is_key(text: str) -> bool:
    """Check that a text is not a placeholder or example, such as `<token>`, `${TOKEN}`, `changeme` or `xxxx`."""
    return not _PLACEHOLDER.search(text[:_READ])


def is_random(text: str) -> bool:
    """Check whether a key looks random: hexadecimal, or with pairs of neighbours that are unlikely in names."""
    text = text[:_READ]
    if len(set(text)) < 8 or not is_key(text):
        return False
    best = stretch = 0.0
    for first, second in pairwise(folded(text)):
        stretch = max(0.0, stretch + _BITS[first + second])
        best = max(best, stretch)
    return best >= _RANDOM_BITS or bool(_HEX.search(text))


def is_provided(text: str) -> bool:
    """Check whether the text after a provider's prefix is a key, including keys made up by a person."""
    classes = [any(map(each, text)) for each in (str.isdigit, str.islower, str.isupper)]
    made_up = all(classes) or (text.isalnum() and classes[0] and any(classes[1:]))
    return is_key(text) and (made_up or is_random(text))


def decoded(text: str) -> str:
    """Decode a base64 text; return an empty string if it is not base64 of printable text."""
    try:
        text = base64.b64decode(text, validate=True).decode().strip()
    except ValueError:
        return ""
    return text if text.isprintable() else ""


def is_login(text: str) -> bool:
    """Check whether a text is base64 of `user:password`."""
    user, _, password = decoded(text).partition(":")
    return bool(user and password)


def is_password(text: str) -> bool:
    """Check whether the value of a password field is a password. Plain words are too often labels or types."""
    if len(text) < 6 or not is_key(text) or any(map(str.isspace, text)):
        return False
    code = _CODE.fullmatch(text)
    named = _REFERENCE.fullmatch(text) or (code and (code["opened"] or "." in text or ":" in text))
    return is_random(text) or (not named and (any(map(str.isdigit, text)) or bool(_SIGN.search(text))))


def is_secret(text: str) -> bool:
    """Check whether the value of a secret field is a secret, not a secret's name such as `db-credentials-2`."""
    return is_password(text) and (is_random(text) or not _NAME.fullmatch(text))


def is_token(text: str) -> bool:
    """Check whether the value of a token or key field is a secret: random, or a mix of letters, digits and signs."""
    return is_password(text) and len(text) >= 8 and (is_random(text) or bool(_MADE_UP.fullmatch(text)))


def is_strong(text: str) -> bool:
    """Check whether a text directly after a word such as `password`, without `=` or the like, is likely a secret."""
    classes = (str.islower, str.isupper, str.isdigit)
    return is_token(text) and (is_random(text) or sum(any(map(each, text)) for each in classes) > 1)


def is_code(text: str) -> bool:
    """Check whether an unquoted text is a number, a call, an index, or a name in the style of code."""
    code = _CODE.fullmatch(text)
    return text.isdigit() or bool(code and (code["opened"] or _NAME_IN_CODE.fullmatch(text)))

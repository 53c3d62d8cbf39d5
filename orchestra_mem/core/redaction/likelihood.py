"""How likely a text is a secret: made by chance, chosen as a password, or a name, a piece of code, a placeholder.

Names have likely neighbours, keys have none: pairs of letters tell them apart, as lists of words never could.
"""

from __future__ import annotations

import base64
import re
import string
from importlib.resources import files
from itertools import pairwise

ALPHABET = string.ascii_lowercase + "0-"
"""Letters without case, `0` for any digit, `-` for all else."""


def folded(text: str) -> str:
    """Write a text in `ALPHABET`."""
    return re.sub("[^a-z0]", "-", re.sub("[0-9]", "0", text.lower()))


# How much likelier two neighbours are by chance, in halves of a bit from `k`; made by `tools/train_likelihood.py`.
_BITS = {
    first + second: (ord(letter) - ord("k")) / 2
    for first, row in zip(ALPHABET, files(__package__).joinpath("neighbours.txt").read_text().split(), strict=True)
    for second, letter in zip(ALPHABET, row, strict=True)
}
# Bits of the least likely stretch: one name in 200 has as many, and of 16 characters by chance 99 in 100.
_RANDOM_BITS = 11.0
_READ = 200  # characters that are looked at
# Digits of base 16, as digests and UUIDs are written: of both sorts, beside words perhaps.
_HEX = re.compile(r"(?i)(?<![0-9a-z])(?=[a-f-]*\d)(?=[\d-]*[a-f])[0-9a-f]{8}(?:-?[0-9a-f]{4,}){2,}(?![0-9a-z])")
_PLACEHOLDER = re.compile(
    r"""(?isx) ^ (?: <.*> | \[.* | \{.* | \$[({\w].* | %[(%\w].*[sd%)] | !\w+ | enc\[.* | (?P<one>.)(?P=one)*
        | [./~]+/.* | [\w./-]+\.[a-z]{2,4} | (?:my|db|the|some)?[-_]?(?:pass|password|passwd|pwd|pw|secret|token)
        | guest | postgres | root | admin | user(?:name)? ) $
    | (?<![a-z0-9])(?: your | placeholder | change[-_]?(?:me|it) | replace | insert | dummy | redacted | hidden )
    | example | x{6} | (?P<same>[^\W\d])(?P=same){7} | \.\.\. | … """
)
# A path, an address, the name of what is kept elsewhere.
_REFERENCE = re.compile(r"(?i)(?:[.~]{0,2}/|[a-z][\w+.-]*[:/])[\w./:#@%+=-]+")
# Identifiers with their members; what is called or indexed.
_CODE = re.compile(r"[&*@!]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*(?P<opened>[(\[{<|].*)?", re.DOTALL)
_SIGN = re.compile(r"[!#$%^&*@]")
_NAME = re.compile(r"[A-Za-z]+(?:[-._/:][A-Za-z]+)*\d?|[a-z0-9]+(?:[-.][a-z0-9]+)+")
_MADE_UP = re.compile(r"(?=.{10})(?:[A-Za-z]+\d+){2,}[A-Za-z]*|(?=.*\d).*[!#$%^&*@].*")
_NAME_IN_CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+\d?|[a-z_]+(?:\.[A-Za-z_]\w*)+")


def is_key(text: str) -> bool:
    """Tell a key from what stands where one will: `<token>`, `${TOKEN}`, `changeme`, `xxxx`, an example."""
    return not _PLACEHOLDER.search(text[:_READ])


def is_random(text: str) -> bool:
    """Tell whether a key looks made by chance: digits of base 16, or neighbours that no name has."""
    text = text[:_READ]
    if len(set(text)) < 8 or not is_key(text):
        return False
    best = stretch = 0.0
    for first, second in pairwise(folded(text)):
        stretch = max(0.0, stretch + _BITS[first + second])
        best = max(best, stretch)
    return best >= _RANDOM_BITS or bool(_HEX.search(text))


def is_provided(text: str) -> bool:
    """Tell whether what follows a provider's prefix is a key, be it one that a person has made up."""
    classes = [any(map(each, text)) for each in (str.isdigit, str.islower, str.isupper)]
    made_up = all(classes) or (text.isalnum() and classes[0] and any(classes[1:]))
    return is_key(text) and (made_up or is_random(text))


def decoded(text: str) -> str:
    """Return the readable text that a text is base64 of, nothing where it is not."""
    try:
        text = base64.b64decode(text, validate=True).decode().strip()
    except ValueError:
        return ""
    return text if text.isprintable() else ""


def is_login(text: str) -> bool:
    """Tell whether a text is base64 of `user:password`."""
    user, _, password = decoded(text).partition(":")
    return bool(user and password)


def is_password(text: str) -> bool:
    """Tell whether what the word stands beside is a password; plain words are labels and types too often."""
    if len(text) < 6 or not is_key(text) or any(map(str.isspace, text)):
        return False
    code = _CODE.fullmatch(text)
    named = _REFERENCE.fullmatch(text) or (code and (code["opened"] or "." in text or ":" in text))
    return is_random(text) or (not named and (any(map(str.isdigit, text)) or bool(_SIGN.search(text))))


def is_secret(text: str) -> bool:
    """Tell whether what is called a secret is one; its name, as `db-credentials-2`, is not."""
    return is_password(text) and (is_random(text) or not _NAME.fullmatch(text))


def is_token(text: str) -> bool:
    """Tell whether what is called a token or key is one: random, with digits between letters, or with a sign."""
    return is_password(text) and len(text) >= 8 and (is_random(text) or bool(_MADE_UP.fullmatch(text)))


def is_strong(text: str) -> bool:
    """Tell whether a text is likely a password or token with no more than the word before it."""
    classes = (str.islower, str.isupper, str.isdigit)
    return is_token(text) and (is_random(text) or sum(any(map(each, text)) for each in classes) > 1)


def is_code(text: str) -> bool:
    """Tell whether a text without quotes is a call, an index, a number, or words joined as names are in code."""
    code = _CODE.fullmatch(text)
    return text.isdigit() or bool(code and (code["opened"] or _NAME_IN_CODE.fullmatch(text)))

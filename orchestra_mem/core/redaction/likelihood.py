"""How likely a text is a secret: made by chance, chosen as a password, or a name, a piece of code, a placeholder.

Names have likely neighbours, keys have none: pairs of letters tell them apart, as lists of words never could.
"""

from __future__ import annotations

import base64
import re
import string
from itertools import product

ALPHABET = string.ascii_lowercase + "0-"
"""Letters without case, `0` for any digit, `-` for all else."""


def folded(text: str) -> str:
    """Write a text in `ALPHABET`."""
    return re.sub("[^a-z0]", "-", re.sub("[0-9]", "0", text.lower()))


# For each two neighbours, row by row of the first: how much likelier they are by chance, from `k`, in letters of half a bit.
# Made by `tools/train_likelihood.py`.
_LEVELS = """
pkiitpkukwngihyjwghfmnoonuvmfnjoiqqriisgnpimtkkngurtjqqhhrnphprhlxhhnrfqskngkpsuoxtiinokenprguujqpipuljmjsruowrf
jpjjnmosqxshlhqmogfirnojouugitpnjjpufwzksqhqximljxtxoyrdkpopdplkiutkojmowihlkpsutpsffqpoeqtqhvrmnpgrvjnjltsxqutg
mljklmjvrvshjehkvkigwmzmylznjpopeqopmqloqoglroipgqqrooqfjqnndplqhrtjsmoornimnrkwquteiopkefttgxtirqhnzrkjkruzmuwi
flrnerttixrlkpggyqjmktuymwuihqighkhrjwnnqliovqiglmtxrwthmlihqnmvovmjifkizgjjimkotryjfronfprojyphsrhiuhmhlprziyth
oqoqqsoppwoipnrnomlpbrpqrsrhhrllepkthzonllhozjiilnqxlxvgmtlrerpljxonqqkkrridkspvmxvgiqmoeotihzrnoqjnxiklmrqrlsue
ljlnilmwkywgifnizgigqvysyuwoeporcprrhuwsoqmqwqppssruqrpjgrnmiorkeuumpjhqugjpsrmqvvshlqgpioupirsokqohtpnersrjlsng
nmkmknqrmutkkimfsnggoolpnpsejspncpopfurmmninssoorqnmnhpjkklilmoonponpnpnqonmppropoidikhjjikljrokjkkiqjhilmkrtrrh
"""
_BITS = {
    first + second: (ord(letter) - ord("k")) / 2
    for (first, second), letter in zip(product(ALPHABET, repeat=2), "".join(_LEVELS.split()), strict=True)
}
# Bits of a text's least likely stretch: one name in a hundred has as many, and of texts by chance of 16 characters all but
# one in a hundred.
_RANDOM_BITS = 11.0
_READ = 200  # characters that are looked at
# Digits of base 16, as digests and UUIDs are written: of both sorts, beside words perhaps.
_HEX = re.compile(r"(?i)(?<![0-9a-z])(?=[a-f-]*\d)(?=[\d-]*[a-f])[0-9a-f]{8}(?:-?[0-9a-f]{4,}){2,}(?![0-9a-z])")
_PLACEHOLDER = re.compile(
    r"""(?isx) ^ (?: <.*> | \[.* | \{.* | \$[({\w].* | %[(%\w].*[sd%)] | !\w+ | enc\[.* | (?P<one>.)(?P=one)*
        | [./~]+/.* | [\w./-]+\.[a-z]{2,4} | (?:my|db|the|some)?[-_]?(?:pass|password|passwd|pwd|pw|secret|token) ) $
    | your | example | placeholder | change[-_]?(?: me | it) | replace | insert | dummy | redacted | hidden
    | (?P<same>[^\W\d])(?P=same){4} | \.\.\. | … """
)
# A path, an address, the name of what is kept elsewhere.
_REFERENCE = re.compile(r"(?i)(?:[.~]{0,2}/|[a-z][\w+.-]*[:/])[\w./:#@%+=-]+")
# Identifiers with their members; what is called or indexed.
_CODE = re.compile(r"[&*@!]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*(?P<opened>[(\[{<|].*)?", re.DOTALL)
_SIGN = re.compile(r"[!#$%^&*@]")
_NAME = re.compile(r"[A-Za-z]+(?:[-._/:][A-Za-z]+)*\d?|[a-z0-9]+(?:[-.][a-z0-9]+)+")
_NAME_IN_CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+\d?|[a-z_]+(?:\.[A-Za-z_]\w*)+")
_NO_PASSWORDS = frozenset("guest postgres root admin user username x".split())


def is_random(text: str) -> bool:
    """Tell whether a text looks made by chance: digits of base 16, or neighbours that no name has."""
    text = text[:_READ]
    if len(set(text)) < 8:
        return False
    best = stretch = 0.0
    letters = folded(text)
    for first, second in zip(letters, letters[1:], strict=False):
        stretch = max(0.0, stretch + _BITS[first + second])
        best = max(best, stretch)
    return best >= _RANDOM_BITS or bool(_HEX.search(text))


def is_placeholder(text: str) -> bool:
    """Tell whether a text stands where a secret will: `<token>`, `${TOKEN}`, `changeme`, `xxxx`."""
    return bool(_PLACEHOLDER.search(text[:_READ]))


def is_key(text: str) -> bool:
    """Tell whether a text of a provider's own form is a key, and not an example of one."""
    return len(set(text)) >= 8 and not is_placeholder(text)


def is_random_key(text: str) -> bool:
    """Tell the same where the form says little."""
    return not is_placeholder(text) and is_random(text)


def is_login(text: str) -> bool:
    """Tell whether a text is base64 of `user:password`."""
    user, colon, password = _decoded(text).partition(":")
    return bool(user and colon and password) and not is_placeholder(password)


def is_base64(text: str) -> bool:
    """Tell whether a text is base64 of readable text, as in manifests."""
    return bool(_decoded(text))


def _decoded(text: str) -> str:
    try:
        decoded = base64.b64decode(text, validate=True).decode().strip()
    except ValueError:
        return ""
    return decoded if decoded.isprintable() else ""


def is_address_password(text: str) -> bool:
    """Tell whether what stands for a password in an address is one, and not the word or what everybody has."""
    return text.lower() not in _NO_PASSWORDS and not is_placeholder(text)


def is_password(text: str) -> bool:
    """Tell whether what the word stands beside is a password; plain words are not, as labels and types are such too."""
    if len(text) < 6 or is_placeholder(text) or any(map(str.isspace, text)):
        return False
    if is_random(text):
        return True
    if _REFERENCE.fullmatch(text) or (
        (code := _CODE.fullmatch(text)) and (code["opened"] or "." in text or ":" in text)
    ):
        return False
    return any(map(str.isdigit, text)) or bool(_SIGN.search(text))


def is_mixed(text: str) -> bool:
    """Tell whether a text has what a password must have: capital and small letters or digits with a sign."""
    classes = (str.islower, str.isupper, str.isdigit, _SIGN.fullmatch)
    several = sum(any(map(each, text)) for each in classes) >= 3
    return several and bool(_SIGN.search(text)) and is_password(text)


def is_strong(text: str) -> bool:
    """Tell whether a text would be a password or token beside no more than the word."""
    return is_token(text) and (is_random(text) or is_mixed(text))


def is_secret(text: str) -> bool:
    """Tell whether what is called a secret is one; its name, as `db-credentials-2`, is not."""
    return is_password(text) and (is_random(text) or not _NAME.fullmatch(text))


def is_token(text: str) -> bool:
    """Tell whether what is called a token or key is one: random, or with signs that names do not have."""
    if len(text) < 8 or is_placeholder(text) or any(map(str.isspace, text)):
        return False
    return is_random(text) or (bool(_SIGN.search(text)) and any(map(str.isdigit, text)) and is_password(text))


def is_code(text: str) -> bool:
    """Tell whether a text without quotes is a call, an index, a number, or words joined as names are in code."""
    code = _CODE.fullmatch(text)
    return text.isdigit() or bool(code and (code["opened"] or _NAME_IN_CODE.fullmatch(text)))

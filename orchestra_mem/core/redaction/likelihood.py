"""How likely a text is a secret: made by chance, chosen as a password, or a name, a piece of code, a placeholder.

Names have likely neighbours, keys have none: pairs of letters tell them apart, as lists of words never could.
"""

from __future__ import annotations

import base64
import re
import string

ALPHABET = string.ascii_lowercase + "0-"
"""Letters without case, `0` for any digit, `-` for all else."""

_ZERO = ALPHABET.index("k")  # the letter for "as likely by chance as in a name"; each further one is half a bit


def level(bits: float) -> str:
    """Write a number of bits as a letter."""
    return string.ascii_lowercase[min(25, max(0, round(2 * bits) + _ZERO))]


def folded(text: str) -> str:
    """Write a text in `ALPHABET`."""
    return re.sub("[^a-z0]", "-", re.sub("[0-9]", "0", text.lower()))


# For two neighbours, the row of the first: how much likelier they are by chance. Made by `tools/train_likelihood.py`.
_LEVELS = """
pkiitpkukwngihyjwghfmnoonuvm
fnjoiqqriisgnpimtkkngurtjqqh
hrnphprhlxhhnrfqskngkpsuoxti
inokenprguujqpipuljmjsruowrf
jpjjnmosqxshlhqmogfirnojouug
itpnjjpufwzksqhqximljxtxoyrd
kpopdplkiutkojmowihlkpsutpsf
fqpoeqtqhvrmnpgrvjnjltsxqutg
mljklmjvrvshjehkvkigwmzmylzn
jpopeqopmqloqoglroipgqqrooqf
jqnndplqhrtjsmoornimnrkwqute
iopkefttgxtirqhnzrkjkruzmuwi
flrnerttixrlkpggyqjmktuymwui
hqighkhrjwnnqliovqiglmtxrwth
mlihqnmvovmjifkizgjjimkotryj
fronfprojyphsrhiuhmhlprziyth
oqoqqsoppwoipnrnomlpbrpqrsrh
hrllepkthzonllhozjiilnqxlxvg
mtlrerpljxonqqkkrridkspvmxvg
iqmoeotihzrnoqjnxiklmrqrlsue
ljlnilmwkywgifnizgigqvysyuwo
eporcprrhuwsoqmqwqppssruqrpj
grnmiorkeuumpjhqugjpsrmqvvsh
lqgpioupirsokqohtpnersrjlsng
nmkmknqrmutkkimfsnggoolpnpse
jspncpopfurmmninssoorqnmnhpj
kklilmoonponpnpnqonmppropoid
ikhjjikljrokjkkiqjhilmkrtrrh
""".split()
_BITS = {
    a + b: (ord(letter) - ord(ALPHABET[_ZERO])) / 2
    for a, row in zip(ALPHABET, _LEVELS, strict=True)
    for b, letter in zip(ALPHABET, row, strict=True)
}
# Bits of a text's least likely stretch: one name in a hundred has as many, and of texts by chance of 16 characters all but
# one in a hundred.
_RANDOM_BITS = 11.0
_READ = 200  # characters that are looked at
# Digits of base 16, as digests and UUIDs are written: of both sorts, beside words perhaps.
_HEX = re.compile(r"(?i)(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8}(?:-?[0-9a-f]{4,}){2,}(?![0-9a-z])")
_PLACEHOLDER = re.compile(
    r"""(?isx) ^ (?: <.*> | \[.*\] | \{.* | \$[({\w].* | %[(%\w].*[sd%)] | !\w+ | enc\[.* | (?P<one>.)(?P=one)* ) $
    | your | my[-_] | example | placeholder | change[-_]?(?: me | it) | replace | insert | dummy | redacted | hidden
    | (?P<same>[^\W\d])(?P=same){4} | \.\.\. | … """
)
# A path, an address, the name of what is kept elsewhere.
_REFERENCE = re.compile(r"(?i)(?:[.~]{0,2}/|[a-z][\w+.-]*:)[\w./:#@%+-]+|arn:.*")
# Identifiers with their members; what is called or indexed.
_CODE = re.compile(r"[&*@!]*[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*(?P<opened>[(\[{<|].*)?", re.DOTALL)
_SIGN = re.compile(r"[!#$%^&*@?+=~]")
_SEVERAL_WORDS = re.compile(r"[A-Za-z]+(?:[-._/:][A-Za-z]+)*\d?|[a-z0-9]+(?:[-.][a-z0-9]+)+")


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
    try:
        user, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and password) and user.isprintable() and not is_placeholder(password)


def is_base64(text: str) -> bool:
    """Tell whether a text is base64 of readable text, as in manifests."""
    try:
        return len(text) >= 8 and base64.b64decode(text, validate=True).decode().strip().isprintable()
    except ValueError:
        return False


def is_address_password(text: str) -> bool:
    """Tell whether what stands before the `@` of an address is a password, or the word for one."""
    return text.lower() not in _NO_PASSWORDS and not is_placeholder(text)


_NO_PASSWORDS = frozenset("password passwd pass pwd pw secret token guest postgres root admin user username x".split())


def is_password(text: str) -> bool:
    """Tell whether a quoted text beside the word is a password; plain words are not, as labels and types are such too."""
    if len(text) < 6 or is_placeholder(text) or any(map(str.isspace, text)):
        return False
    if is_random(text):
        return True
    code = _CODE.fullmatch(text)
    if _REFERENCE.fullmatch(text) or (code and (code["opened"] or "." in text or ":" in text)):
        return False
    return any(map(str.isdigit, text)) or bool(_SIGN.search(text))


def is_bare_password(text: str) -> bool:
    """Tell the same of a text without quotes, which may be code."""
    code = _CODE.fullmatch(text)
    if code and (code["opened"] or _SEVERAL_WORDS.fullmatch(text) and "_" in text):
        return False
    return not text.isdigit() and is_password(text)


def is_secret(text: str) -> bool:
    """Tell whether what is called a secret is one; its name, as `db-credentials-2`, is not."""
    return is_password(text) and (is_random(text) or not _SEVERAL_WORDS.fullmatch(text))


def is_token(text: str) -> bool:
    """Tell whether what is called a token or key is one: random, or with signs that names do not have."""
    if len(text) < 8 or is_placeholder(text) or any(map(str.isspace, text)):
        return False
    return is_random(text) or (bool(_SIGN.search(text)) and is_password(text))


def is_bare(text: str) -> bool:
    """Tell whether a text without quotes is no call and no index."""
    code = _CODE.fullmatch(text)
    return not (code and code["opened"])


def is_bare_secret(text: str) -> bool:
    """Tell of a text without quotes whether it is a secret."""
    return is_bare(text) and is_secret(text)


def is_bare_token(text: str) -> bool:
    """Tell of a text without quotes whether it is a token or key."""
    return is_bare(text) and is_token(text)

"""What personal data look like, each kind with the checksum or the ranges that it has. None is looked for unasked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from orchestra_mem.core.redaction.detectors import Check, Detector


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
    """Check the sum of a Chinese (18 places), French (15) or Spanish (9) number."""
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
    """Make the detector of people whose names are known."""
    return _personal("name", "", rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")

"""What personal data look like, each kind with the checksum or the ranges that it has. None is looked for unasked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from orchestra_mem.core.redaction.detectors import Detector


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if each.isdecimal()]


def is_card(text: str) -> bool:
    """Check the Luhn sum of a card's number."""
    digits = _digits(text)[::-1]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return len(set(digits)) > 2 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    """Check the sum of an account's number (ISO 13616)."""
    text = text.replace(" ", "")
    return 15 <= len(text) <= 34 and int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def is_host_address(text: str) -> bool:
    """Tell whether it is an address of the internet protocol that says where somebody is: no loopback, no mask."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith("255."))


def is_national_id(text: str) -> bool:
    """Check the sum of a number of a Chinese (18 places), French (15) or Spanish (8 and a letter) person."""
    digits = _digits(text)
    if len(text) == 18:
        rest = sum(int(digit) * (2 ** (17 - place) % 11) for place, digit in enumerate(text[:17])) % 11
        return "10X98765432"[rest] == text[17].upper()
    if len(text) == 15:
        return 97 - int(text[:13]) % 97 == int(text[13:])
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int("".join(map(str, digits))) % 23] == text[8]


def is_mail(text: str) -> bool:
    """Tell an address from a file such as `icon@2x.png`."""
    return re.search(r"@\dx\.\w+$", text) is None


PERSONAL = (
    Detector("email", "@", r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w:-])", is_mail, within=True),
    Detector("iban", "", r"(?<!\w)[A-Z]{2}[0-9]{2}(?:\ ?[A-Z0-9]{4}){2,7}(?:\ ?[A-Z0-9]{1,3})?(?!\w)", is_iban, within=True),
    Detector("card", "", r"(?<![\w.-])[3-6](?:[ -]?[0-9]){12,18}(?![\w-])", is_card, within=True),
    Detector("national-id", "", r"(?<!\w)(?:[1-9][0-9]{16}[0-9Xx]|[12][0-9]{14}|[0-9]{8}[A-Z])(?!\w)", is_national_id, within=True),
    Detector("us-ssn", "-", r"(?<![\w-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])", bool, within=True),
    Detector("phone", "", r"""(?<![\w.+-])(?:\+[1-9][0-9](?:[ ().\/-]{0,2}[0-9]){6,13}
        | \(?0[1-9][0-9]{1,3}\)?[ \/-]{1,3}[0-9]{3,4}(?:[ \/-]?[0-9]{2,4}){1,3} | (?:\([2-9][0-9]{2}\)\ ?|[2-9][0-9]{2}[.-])[0-9]{3}[.-][0-9]{4}
        )(?![\w-])""", bool, within=True),
    Detector("ip-address", ".", r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.]*\w)", is_host_address, within=True),
    Detector("ip-address", ":", r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])", is_host_address, within=True),
)  # fmt: skip


def detector_of_names(names: Iterable[str]) -> Detector:
    """Make the detector of people's names that are known."""
    return Detector("name", "", rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", bool, within=True)

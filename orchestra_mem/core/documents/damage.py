"""Find faults in the text of a document, line by line, and show the readable part of a damaged one. No I/O.

Faulty front matter or markers are treated as text, and the machine's lines are merged next to them. A file that is in
UTF-16, contains NUL bytes, exceeds `MOST_BYTES`, or has conflicts between texts of one ledger that git could not merge
is left unchanged until somebody repairs it. To one in another encoding, such as Windows-1252, only ASCII is added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise

from orchestra_mem.core.documents.catalog_document import read_line
from orchestra_mem.core.documents.conflicts import faults
from orchestra_mem.core.documents.markdown import PIN, fenced_rows, front_matter_fault, legible, without_front_matter
from orchestra_mem.core.documents.owned_lines import owned_lines
from orchestra_mem.core.documents.signature import signers
from orchestra_mem.errors import DocumentError

# Ten times the largest document for a context window of a million tokens; more was probably pasted by mistake.
MOST_BYTES = 4_000_000
# Part of a larger document that is shown: about 50,000 tokens, more than one document's share of most windows.
SHOWN_BYTES = 200_000
# Enough to distinguish UTF-16 from UTF-8 with a stray NUL.
_SAMPLE_BYTES = 4_096
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Front matter so simple that it is valid YAML. Most matches, and then the slow YAML library need not be loaded.
_PLAIN_FRONT = re.compile(
    r"---\r?\n(?:[a-z_]+: (?:[A-Za-z][\w ./-]*|\d+|\d{4}-\d\d-\d\dT[\d:.+-]+|\"[^\"\\\n]*\")\r?\n)+---\r?(?:\n|\Z)"
)
# Front matter as this program writes it, below the top of a document.
_FRONT_BELOW = re.compile(r"^---[ \t]*\r?\n(?=format: )(?:[a-z_]+:[^\n]*\n)+---[ \t]*\r?$", re.MULTILINE)
_NUMBER = re.compile(r"\(([KM])(\d{1,18})\)")
_GIT_MARKER = re.compile(r"(?P<marker><{7}|>{7}|\|{7}) ")
_AS_TEXT = "it is served as plain text"
_LEFT = "and the file is not changed until then: new facts are only in contexts and in `orchestra-mem facts`"
_ONLY_ASCII = "this byte is kept, and the file is updated with ASCII only"


def text_faults(data: bytes) -> list[tuple[int, str, str]]:
    """Find the faults of a document: line (from 1; 0 for all lines), problem, and how it is handled until repaired."""
    if not data.strip():
        return [(0, "is empty", "nothing is served; the machine's next write will be its only content")]
    if fault := unchangeable(data):  # not text, so no other check applies
        return [fault]
    text = data.decode("utf-8", "surrogateescape")
    found = [*_byte_faults(data)]
    if not _PLAIN_FRONT.match(text) and (problem := front_matter_fault(text)):
        found.append((*problem, _AS_TEXT))
    found += [
        (line, problem, _AS_TEXT) for line, problem in [*_second_fronts(text), *faults(text), *_git_markers(text)]
    ]
    return sorted([*found, *_copied_numbers(text)])


def _copied_numbers(text: str) -> Iterator[tuple[int, str, str]]:
    """Find copies of numbered lines whose content differs from that of the first copy."""
    counts = Counter((letter, int(number)) for letter, number in _NUMBER.findall(text.replace(PIN, "")))
    firsts: dict[str, tuple[int, str]] = {}
    for line in owned_lines(text) if max(counts.values(), default=0) > 1 else ():  # parsing every line is slow
        if line.fact and line.fact.number:
            said = read_line(line.fact.text).content
            first, says = firsts.setdefault(line.fact.number, (line.place + 1, said))
            if said != says:
                problem = f"has the number ({line.fact.number}) of line {first}, but a different text"
                yield line.place + 1, problem, "it is no edit of that line; without the number it is a new line"


def unchangeable(data: bytes) -> tuple[int, str, str] | None:
    """Return the fault, as from `text_faults`, that prevents the machine from writing to a document; None if it may."""
    if _utf_16(data):
        return 0, "is UTF-16, not UTF-8; save it as UTF-8", f"its content is served, {_LEFT}"
    count = data.count(b"\0")
    if not count:
        return _unmerged(data)
    told, them = ("a NUL byte", "it") if count == 1 else (f"the first of {count:,} NUL bytes", "them")
    line = data.count(b"\n", 0, data.index(b"\0")) + 1
    return line, f"{told}; delete {them}", f"it is served without {them}, {_LEFT}"


def _unmerged(data: bytes) -> tuple[int, str, str] | None:
    """Return the fault of a document with git's markers between texts of one ledger; two ledgers' can be told apart."""
    if b"<<<<<<< " not in data or b">>>>>>> " not in data:
        return None
    text = data.decode("utf-8", "surrogateescape")
    found = next(_git_markers(text), None) if len(signers(text) - {""}) == 1 else None
    return (*found, f"{_AS_TEXT}, {_LEFT}") if found else None


def check_encoding(path: object, before: str, after: str) -> None:
    """Check that a change adds no UTF-8 to a document in another encoding: no editor could read all of it any more.

    Raises:
        DocumentError: It does.
    """
    odd, others = _beyond_ascii(before)
    if odd <= others:  # UTF-8, perhaps with stray bytes
        return
    odd_left, others_now = _beyond_ascii(after)
    if odd_left and others_now > others:
        raise DocumentError(f"{path} is not UTF-8; save it as UTF-8; until then it is read, but not updated")


def _beyond_ascii(text: str) -> tuple[int, int]:
    """Count a text's bytes that are not UTF-8, and its other characters that are not ASCII."""
    readable = text.encode("utf-8", "ignore").decode()
    return len(text) - len(readable), len(readable) - len(readable.encode("ascii", "ignore"))


def shown(data: bytes, size_bytes: int) -> str:
    """Return the readable text of a document: UTF-16 is decoded, NULs are removed, and a large document is clipped.

    Bytes that are not UTF-8 are read as Windows-1252.

    Args:
        data: Content of the document, at least its first `SHOWN_BYTES`.
        size_bytes: Total size; above `MOST_BYTES` only the beginning is returned, with a note.
    """
    clipped = size_bytes > MOST_BYTES
    if clipped:
        data = data[:SHOWN_BYTES]
    encoding = _utf_16(data)
    text = data.decode(encoding, "replace") if encoding else legible(data.decode("utf-8", "surrogateescape"))
    text = text.removeprefix("\ufeff").replace("\0", "")
    if not clipped:
        return text
    whole = text[: text.rfind("\n") + 1] or text
    told = f"*Only the first {len(data) / 1e6:,.1f} of {size_bytes / 1e6:,.1f} MB are shown here.*"
    # A separate section, so that the note survives if the last section is shortened.
    return f"{whole}\n## Clipped\n\n{told}\n"


def _utf_16(data: bytes) -> str | None:
    """Return the Python name of the UTF-16 encoding that the data is in; None for anything else."""
    sample = data[:_SAMPLE_BYTES]
    for start, mark, name in ((1, _UTF_16_MARKS[0], "utf-16-le"), (0, _UTF_16_MARKS[1], "utf-16-be")):
        zeros = 4 * sample[start::2].count(0) > len(sample) > 8 and not sample[1 - start :: 2].count(0)
        if data.startswith(mark) or zeros:
            return name
    return None


def _byte_faults(data: bytes) -> Iterator[tuple[int, str, str]]:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        problem = f"is not UTF-8: 0x{data[error.start]:02x} at byte {column} of the line (Latin-1?); save it as UTF-8"
        odd, others = _beyond_ascii(data.decode("utf-8", "surrogateescape"))
        yield line, problem, f"it is served as text, {'and this byte is kept' if odd <= others else _ONLY_ASCII}"


def _second_fronts(text: str) -> Iterator[tuple[int, str]]:
    """Find further front matter: any right below the first, and anywhere below if this program wrote it."""
    problem = "a second front matter; only the first one is used: delete this one"
    rest = without_front_matter(text)
    if len(rest) == len(text):
        return
    start = len(text) - len(rest)
    if rest.startswith("---") and front_matter_fault(rest) is None:
        yield text.count("\n", 0, start) + 1, problem
        start += len(rest) - len(without_front_matter(rest))
    places = [0, *(match.start() for match in _FRONT_BELOW.finditer(text, start))]
    rows = [*accumulate(text.count("\n", above, place) for above, place in pairwise(places))]
    fenced = fenced_rows(text) if rows else ()
    yield from ((row + 1, problem) for row in rows if row not in fenced)


def _git_markers(text: str) -> Iterator[tuple[int, str]]:
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return
    fenced = fenced_rows(text)
    for row, line in enumerate(text.split("\n")):
        if row not in fenced and (found := _GIT_MARKER.match(line)):
            marker = found["marker"]
            yield row + 1, f"a git conflict marker ({marker}): keep one of the two texts and delete the markers"

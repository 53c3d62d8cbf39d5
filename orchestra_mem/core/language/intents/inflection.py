"""Forms of verbs: "shelving" and "shelved" are of "shelve", "kept" is of "keep"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Past and participle where they are not made by rule; one where both are the same.
_IRREGULAR = {
    verb: forms.split("/")
    for verb, forms in (
        entry.split(":")
        for entry in """
    be:was/been become:became/become begin:began/begun bind:bound break:broke/broken bring:brought build:built
    buy:bought call:called catch:caught choose:chose/chosen come:came/come cut:cut deal:dealt dig:dug do:did/done
    draw:drew/drawn drive:drove/driven eat:ate/eaten fall:fell/fallen feed:fed feel:felt fight:fought find:found
    fling:flung forget:forgot/forgotten freeze:froze/frozen get:got/gotten give:gave/given go:went/gone
    grow:grew/grown hang:hung have:had hear:heard hide:hid/hidden hit:hit hold:held keep:kept know:knew/known
    lay:laid lead:led leave:left lend:lent let:let light:lit lose:lost make:made mean:meant meet:met pay:paid put:put
    quit:quit ride:rode/ridden rise:rose/risen run:ran/run say:said see:saw/seen sell:sold send:sent set:set
    shake:shook/shaken shoot:shot shut:shut sink:sank/sunk sit:sat sling:slung slide:slid speak:spoke/spoken
    spend:spent spin:spun split:split stand:stood steal:stole/stolen stick:stuck strike:struck sweep:swept
    swing:swung take:took/taken tear:tore/torn tell:told think:thought throw:threw/thrown undertake:undertook/undertaken
    undo:undid/undone wake:woke/woken win:won wind:wound withdraw:withdrew/withdrawn write:wrote/written
    overtake:overtook/overtaken beat:beat/beaten lie:lay/lain tie:tied
    """.split()
    )
}
_DOUBLED = re.compile(r"[^aeiou]*(?:qu)?[aeiou][^aeiouwxy]")


def forms_of(verb: str) -> Iterator[tuple[str, str]]:
    """Yield the forms of a verb, each with what it is: `base`, `s`, `ing`, `past` or `done` (the participle)."""
    yield verb, "base"
    yield f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}{'es' if _HISSES.search(verb) else 's'}", "s"
    stem = f"{verb}{verb[-1]}" if _DOUBLED.fullmatch(verb) or verb in _STRESSED_LAST else verb
    silent = verb.endswith("e") and not verb.endswith(("ee", "oe", "ye"))
    yield f"{verb[:-2]}ying" if verb.endswith("ie") else f"{verb[:-1] if silent else stem}ing", "ing"
    if verb in _IRREGULAR:
        yield _IRREGULAR[verb][0], "past"
        yield _IRREGULAR[verb][-1], "done"
        return
    past = f"{verb[:-1]}ied" if re.search(r"[^aeiou]y$", verb) else f"{verb}d" if verb.endswith("e") else f"{stem}ed"
    yield past, "past"
    yield past, "done"


_HISSES = re.compile(r"(?:s|x|z|ch|sh|o)$")
_STRESSED_LAST = frozenset("defer commit submit transfer abet allot permit begin refer quit fulfil".split())


def forms(verbs: Iterable[str]) -> dict[str, dict[str, frozenset[str]]]:
    """Give for every form the verbs that it may be of, and what it is of each."""
    found: dict[str, dict[str, set[str]]] = {}
    for verb in verbs:
        for form, what in forms_of(verb):
            found.setdefault(form, {}).setdefault(verb, set()).add(what)
    return {form: {verb: frozenset(what) for verb, what in of.items()} for form, of in found.items()}

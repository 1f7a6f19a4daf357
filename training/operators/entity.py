"""Names: another name of the same shape, two names exchanged; twins shorten a name or leave it."""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random

from .edit import Context, Edit, replace, words

_WORD = r"[A-ZÀ-ÖØ-ÞĀ-Ž][^\W\d_]*(?:-[^\W\d_]+)*"
_NAME = re.compile(rf"\b{_WORD}(?:\s(?:of|the|de|van|von|al|&)?\s?{_WORD}){{0,3}}(?![\w-])")
_NOT_NAMES = frozenset(
    words(
        "The A An This That These Those It He She They We You I In On At By For From With As Of To And "
        "But Or If When While Where After Before During Since Because Although Though However There Here "
        "Its His Her Their Our My Your Not No Yes Some Many Most All Each Every One Two Three Another "
        "Other Such Also Then Thus Today Yesterday Only Even According What Who Which How Why Both "
        "Several Instead Later Now Once So Still Until Upon Within Without Under Over More Mr Mrs Ms Dr "
        "Between Among Despite Like Let Just Perhaps Unlike First Second Third Last Next Finally Recently May Will "
        "Until Against Through Following Near Due Given Used"
    )
)
_GROUPS: tuple[tuple[str, ...], ...] = (
    tuple(
        words(
            "American British French German Italian Spanish Chinese Japanese Russian Indian Canadian "
            "Australian Dutch Swedish Irish Scottish Greek Turkish Polish Mexican Brazilian Korean"
        )
    ),
    tuple(words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")),
    tuple(words("January February March April June July August September October November December")),
    tuple(
        words(
            "France Germany Italy Spain China Japan Russia India Canada Australia Sweden Ireland Scotland "
            "Greece Turkey Poland Mexico Brazil Egypt England Austria Norway Denmark Portugal"
        )
    ),
    tuple(
        words(
            "London Paris Berlin Rome Madrid Chicago Boston Tokyo Moscow Dublin Vienna Toronto Sydney Seattle "
            "Atlanta Dallas Philadelphia Detroit Houston Denver Miami"
        )
    ),
    tuple(words("North South East West")),
    tuple(words("Christian Muslim Jewish Catholic Protestant Buddhist Hindu")),
    tuple(words("Republican Democratic")),
    tuple(
        words(
            "California Texas Florida Ohio Virginia Georgia Michigan Illinois Pennsylvania Massachusetts "
            "Oregon Colorado Arizona Nevada Kansas"
        )
    ),
)
_GROUP = {word: group for group in _GROUPS for word in group}
_SYMMETRIC = re.compile(
    r"\b(and|or|with|between|meets?|met|married|versus|vs|both|equals?|same|"
    r"alter ego|real name|than|near|known|called)\b|[,;/&]"
)
_VERBAL = re.compile(r"\b\w+(?:ed|es|s)\b|\b(is|was|has|had|won|beat|led|gave|told|made|wrote|sold|took|ran)\b")


def names(text: str) -> list[re.Match[str]]:
    """Name-like spans; a lone capitalised word at a sentence start only counts when it recurs as a name."""
    out: list[re.Match[str]] = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        if words[0].capitalize() in _NOT_NAMES or match[0].endswith("-") or len(match[0]) < 3:
            continue
        initial = match.start() == 0 or text[: match.start()].rstrip()[-1:] in '.!?"“:'
        if initial and len(words) == 1 and match[0] not in _GROUP:
            continue
        out.append(match)
    return out


def name_texts(text: str) -> set[str]:
    """The distinct name strings of a text."""
    return {match[0] for match in names(text)}


def _shape(name: str) -> tuple[int, bool, bool]:
    return min(len(name.split()), 3), name.isupper(), name in _GROUP


def _foreign(name: str, context: Context) -> list[str]:
    group = _GROUP.get(name)
    if group:
        return [word for word in group if word != name]
    return [n for text in context.foreign for n in name_texts(text) if _shape(n) == _shape(name)]


def _together(name: str, other: str, text: str) -> bool:
    """The document tells of both at once (`from Iran and Syria`), so that either may stand in the claim."""
    near = r"(?:,|,? and|,? or|,? as well as)(?: \w+){0,4},? "
    left, right = re.escape(name), re.escape(other)
    return bool(re.search(rf"{left}{near}{right}\b|{right}{near}{left}\b", text))


def _choose(name: str, claim: str, context: Context, random: Random) -> tuple[str, int] | None:
    """A substitute and whether the evidence contradicts it; parts shared with the old name are refused.

    Another name of the document is mostly unsupported only (two people can play in one series), so that is unknown;
    one nationality, month or city against another contradicts.
    """

    def fits(other: str) -> bool:
        return (
            other not in claim
            and not set(other.split()) & set(name.split())
            and not _together(name, other, context.text)
        )

    kind = 1 if name in _GROUP else -1
    same = [
        n
        for n in sorted(name_texts(context.text))
        if fits(n) and _shape(n) == _shape(name) and (_GROUP.get(n) is _GROUP.get(name))
    ]
    if same and random.random() < 0.65:
        return random.choice(same), kind
    other = sorted(n for n in _foreign(name, context) if fits(n) and n not in context.text)
    if not other:
        return (random.choice(same), kind) if same else None
    return random.choice(other), kind


def shorten(claim: str, context: Context, random: Random) -> str:
    """A name by its last word where the document does so too; the claim unchanged when there is none."""
    found = [m for m in names(claim) if len(m[0].split()) == 2 and " of " not in m[0] and " the " not in m[0]]
    following = [
        m
        for m in found
        if re.match(r" (is|was|has|had|said|won|will|did|plays|played|wrote|made)\b", claim[m.end() :])
        and re.search(rf"(?<!{re.escape(m[0].split()[0])} )\b{re.escape(m[0].split()[-1])}\b(?! [A-Z])", context.text)
    ]
    if not following:
        return claim
    match = random.choice(following)
    return replace(claim, match.start(), match.end(), match[0].split()[-1])[0]


def entity(claim: str, context: Context, random: Random) -> Edit | None:
    """Another name (same document 65 %, else foreign) against the claim with a name shortened."""
    found = names(claim)
    if not found:
        return None
    match = random.choice(found)
    chosen = _choose(match[0], claim, context, random)
    if chosen is None:
        return None
    negative, span = replace(claim, match.start(), match.end(), chosen[0])
    positive = shorten(claim, context, random) if random.random() < 0.5 else claim
    return Edit(negative, [span], chosen[1], positive)


def exchange(claim: str, _context: Context, _random: Random) -> Edit | None:
    """Two names of one sentence exchanged across a verb: `A beat B` becomes `B beat A`."""
    found = names(claim)
    for left, right in pairwise(found):
        between = claim[left.end() : right.start()]
        if _SYMMETRIC.search(between) or not _VERBAL.search(between) or len(between.split()) > 7:
            continue
        if left[0] in _GROUP or right[0] in _GROUP or left[0] in right[0] or right[0] in left[0] or left.start() > 40:
            continue
        negative = claim[: left.start()] + right[0] + between + left[0] + claim[right.end() :]
        start = left.start() + len(right[0]) + len(between)
        spans = [(left.start(), left.start() + len(right[0])), (start, start + len(left[0]))]
        return Edit(negative, spans, -1, claim)
    return None

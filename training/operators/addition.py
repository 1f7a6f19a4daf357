"""Additions: a supported claim with a phrase or list item that no evidence supports, and its true twin."""

from __future__ import annotations

import re
from random import Random

from training.window import terms

from .edit import Context, Edit, stem_point
from .phrases import PHRASES

_TAIL = re.compile(
    r"(?:,? (?:because|after|before|during|while|although|as part of|in order to|due to|thanks to|despite|"
    r"according to|in an effort to|in addition to|when|whereas|unless|until|as a result of|in response to) |"
    r",? (?:including|such as|along with|especially|particularly|and is known for|with the aim of) |"
    r", (?:which|who|where|whose|making|leading|causing|allowing|resulting|becoming|with|but|and|so|giving|using|"
    r"as|for|in|at|by|on|from) )"
)
_LIST = re.compile(
    r"((?:[\w'’-]+ ){0,2}[\w'’-]+), ((?:[\w'’-]+ ){0,2}[\w'’-]+),? (and|or) ((?:[\w'’-]+ ){0,2}[\w'’-]+)"
)
_LIST_START = re.compile(
    r"(?:, |: |\b(?:including|like|as|of|with|featuring|starring|by|offers|has|sells|serves|from|to|for|in) )$"
)
_LIST_OPENER = re.compile(
    _LIST_START.pattern + r"|\b(?:bought|sold|made|built|sells|makes|builds|needs|eats|grows) $"
)
_BAD_ITEM = re.compile(
    r"\b(is|was|are|were|has|had|have|which|who|that|the|he|she|it|they|to|of|in|but|said|a|an|be|by|"
    r"for|on|at|with|from|as|where|when|like|including|such|her|his|their|its)\b",
    re.IGNORECASE,
)


_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|will|can|did|\w{3,}ed|made|took|won|began|became|said)\b")
_AUXILIARY_ITEM = re.compile(r"^(?:[a-z]+(?:ed|ing|ly)|commence|operate|often|been|so|then|not|both)\b|\d")


def tail_of(sentence: str) -> tuple[str, str] | None:
    """(head, tail) at the first clause or phrase boundary with enough words on both sides."""
    body = stem_point(sentence)
    for match in _TAIL.finditer(body):
        head, tail = body[: match.start()], body[match.start() :]
        words = len(tail.split())
        if len(head.split()) >= 5 and 3 <= words <= 18 and tail.count("(") == tail.count(")"):
            return head, tail
    return None


def _novel(phrase: str, context: Context, share: float = 0.5) -> bool:
    """Fewer than `share` of the phrase's content terms stand in the document, and it has at least two."""
    found = terms(phrase)
    known = set(terms(context.text))
    return len(found) >= 2 and sum(term in known for term in found) < share * len(found)


def _opening(tail: str) -> str:
    return tail.lstrip(", ").split(" ", 1)[0]


def _foreign_tail(context: Context, random: Random, opening: str | None) -> str | None:
    """A tail that the document does not hold: a stock phrase, or one of another document with the wanted opening."""
    if random.random() < 0.4:
        stock = [p for p in PHRASES if opening is None or _opening(p) == opening] or list(PHRASES)
        phrase = random.choice(stock)
        return phrase if _novel(f"{phrase} {phrase}", context, 0.6) else None
    pool = [found[1] for text in context.foreign if (found := tail_of(text)) and _novel(found[1], context)]
    same = [tail for tail in pool if opening is None or _opening(tail) == opening]
    if same:
        return random.choice(same)
    return random.choice(pool) if pool else None


_TRUE_TAILS = (
    ", according to the passage",
    ", as the text notes",
    ", as described in the document",
    ", based on the information provided",
    ", as mentioned in the source",
    ", according to the article",
)


def addition(claim: str, context: Context, random: Random) -> Edit | None:
    """The claim's own tail exchanged for a foreign one, or a foreign tail put on a claim without any.

    Twin: the claim with its own tail, joined to another sentence of its document, or with an empty reference.
    """
    own = tail_of(claim)
    head, kept = own if own else (stem_point(claim), None)
    tail = _foreign_tail(context, random, _opening(kept) if kept else None)
    if tail is None or len(head.split()) < 4:
        return None
    if kept and random.random() < 0.35:
        head, positive = head + kept, claim
    else:
        positive = claim if kept else _fused(claim, context, random) or claim
    if positive == claim and random.random() < 0.4:
        positive = f"{stem_point(claim)}{random.choice(_TRUE_TAILS)}."
    return Edit(f"{head}{tail}.", [(len(head), len(head) + len(tail))], 0, positive)


def _fused(claim: str, context: Context, random: Random) -> str | None:
    """The claim joined to another short sentence of its document by `, and`."""
    pool = [
        s
        for s in context.sentences
        if 5 <= len(s.split()) <= 16
        and len(set(terms(s)) & set(terms(claim))) < 0.6 * len(set(terms(s)))
        and s.endswith((".", "!"))
        and not s.endswith("..")
        and re.match(r"(The|There|In|A|At|On|Some|Many) ", s)
        and _VERB.search(s)
    ]
    if not pool or len(claim.split()) > 25:
        return None
    other = stem_point(random.choice(pool))
    return f"{stem_point(claim)}, and {other[:1].lower()}{other[1:]}."


def sentence_addition(claim: str, context: Context, random: Random) -> Edit | None:
    """`claim, and <sentence>`: the second part from another document, or from this one for the twin."""
    positive = _fused(claim, context, random)
    pool = [
        s
        for s in context.foreign
        if 5 <= len(s.split()) <= 16
        and s.endswith(".")
        and _VERB.search(s)
        and _novel(s, context)
        and re.match(r"(The|There|In|A|At|On|Some|Many) ", s)
    ]
    if positive is None or not pool:
        return None
    head, other = stem_point(claim), stem_point(random.choice(pool))
    negative = f"{head}, and {other[:1].lower()}{other[1:]}."
    return Edit(negative, [(len(head), len(negative) - 1)], 0, positive)


def _items(text: str) -> list[str]:
    """Middle items of lists that stand after a word that opens a list; the outer ones may run on."""
    return [
        match[2]
        for match in _LIST.finditer(text)
        if _LIST_OPENER.search(text[: match.end(1) - len(match[1].split()[-1])])
        and not _BAD_ITEM.search(match[2])
        and not _AUXILIARY_ITEM.search(match[2])
    ]


def list_item(claim: str, context: Context, random: Random) -> Edit | None:
    """One item of a list exchanged for, or joined by, an item of another document; twin: the list reordered."""
    match = _LIST.search(claim)
    if match is None or any(_BAD_ITEM.search(match[i]) for i in (2, 4)):
        return None
    first = match[1].split()[-1] if _BAD_ITEM.search(match[1]) else match[1]
    pool = [
        i
        for text in context.foreign
        for i in _items(text)
        if _novel(f"{i} {i}", context, 0.3) and i[0].isupper() == match[2][0].isupper()
    ]
    if not pool:
        return None
    lead = claim[: match.end(1) - len(first)]
    if not _LIST_START.search(lead) or re.match(r", [A-Z]| \w+ed\b", claim[match.end() :]):
        return None  # the first item may be cut off from its own words, the last may go on (Columbia, South Carolina)
    if any(item[0].isupper() for item in (first, match[2], match[4])) and not all(
        item[0].isupper() for item in (first, match[2], match[4])
    ):
        return None  # a name among words: mostly no list (Augusta, Georgia and ...)
    if re.search(r"\b(?:in|from|of|at|near) $", lead) and first[0].isupper():
        return None  # a place and its region look like two items
    last = f" {match[3]} {match[4]}"
    items, wrong = [first, match[2]], random.choice(pool)
    place = random.randrange(2)
    changed = [*items[:place], wrong, *items[place + (random.random() < 0.6) :]]
    before = ", ".join(changed[:place]) + (", " if place else "")
    start = len(lead) + len(before)
    rest = last + claim[match.end() :]
    kept = items[::-1] if random.random() < 0.6 else [random.choice(items)]
    return Edit(lead + ", ".join(changed) + rest, [(start, start + len(wrong))], 0, lead + ", ".join(kept) + rest)

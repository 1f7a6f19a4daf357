"""Splices: subjects and predicates of two sentences exchanged; the twin joins them rightly."""

from __future__ import annotations

import re
from random import Random

from .edit import Context, Edit, stem_point
from .entity import names

_VERB = re.compile(
    r" (is|was|are|were|has|had|have|will|became|won|received|joined|released|published|played|lived|"
    r"moved|made|took|began|said|announced|led|served|opened|wrote|directed|starred|founded|died|said) "
)
_PRONOUN = re.compile(
    r"^(he|she|it|they|this|that|these|those|there|who|which|we|i|you|his|her|its|their|in|on|at|by|for|from|with|"
    r"around|after|before|during|unless|if|when|while|because|although|since|as|congrats|according|local)\b|"
    r"\b(who|which|that|whose|there)\b",
    re.IGNORECASE,
)


def _divide(sentence: str) -> tuple[str, str] | None:
    """(subject, predicate) of a simple sentence whose subject is short and holds a name."""
    body = stem_point(sentence)
    match = _VERB.search(body)
    if match is None:
        return None
    subject, predicate = body[: match.start()], body[match.start() + 1 :]
    plain = not _PRONOUN.search(subject) and "," not in subject and len(subject.split()) <= 7
    named = bool(names(f"x {subject}"))
    short = 3 <= len(predicate.split()) <= 22
    return (subject, predicate) if plain and named and short else None


def splice(claim: str, context: Context, random: Random) -> Edit | None:
    """`A did y, while B did x` against `A did x, while B did y`; or the single sentence `A did y`."""
    own = _divide(claim) if claim in context.sentences else None  # a retold claim may share a subject unseen
    others = [d for s in context.sentences if s != claim and (d := _divide(s))]
    if own is None:
        return None
    others = [d for d in others if not set(d[0].split()) & set(own[0].split()) and d[1] not in claim]
    others = [
        d
        for d in others
        if d[1].split()[0] in ("is", "was", "has", "had")
        or own[1].split()[0] == d[1].split()[0]
        or random.random() < 0.5
    ]
    if not others:
        return None
    subject, predicate = random.choice(others)
    if random.random() < 0.5:
        return Edit(f"{own[0]} {predicate}.", [(len(own[0]) + 1, len(own[0]) + 1 + len(predicate))], 0, claim)
    joint = random.choice([", while ", ", and ", "; "])
    negative = f"{own[0]} {predicate}{joint}{subject} {own[1]}."
    first = (len(own[0]) + 1, len(own[0]) + 1 + len(predicate))
    second = (len(negative) - 1 - len(own[1]), len(negative) - 1)
    return Edit(negative, [first, second], 0, f"{own[0]} {own[1]}{joint}{subject} {predicate}.")

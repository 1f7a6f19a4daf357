"""Label-preserving disturbances of a claim, so that a positive is seldom a copy of its evidence."""

from __future__ import annotations

import re
from random import Random

from .operators.polarity import contract, synonym

_PAREN = re.compile(r" ?\([^()]{1,80}\)")
_APPOSITIVE = re.compile(r"([A-Z][\w'’-]+), (?:an?|the) [^,]{5,60}, (is|was|has|had|said|will|can|won|did)\b")
_LEAD = re.compile(
    r"^((?:In|On|At|During|After|Before|By|Since|From|For) [^,]{3,40}), (the |a |he |she |it |they |[A-Z])"
)
_TRAIL = re.compile(
    r"^(?!(?:In|On|At|During)\b)([A-Z][^,;:]{15,120}?) ((?:in|on|during|since) (?:[A-Z]\w+ )?(?:\d{1,2}, )?\d{4})\.$"
)
_CLAUSE = re.compile(r"\b(?:who|which|that|whose|where|when|to|and|but|by|set|based|starring|\w+ing)\b")
_BECAUSE = re.compile(r"^([A-Z][^,;:]{15,110}) because (?!of )([^,;:]{10,110})\.$")
_NAME_START = re.compile(r"^(?:[A-Z][\w'’-]+ [A-Z]|[A-Z]{2,}|I\b)")
FRAMES = (
    "According to the text, {}",
    "According to the passage, {}",
    "The text states that {}",
    "The passage says that {}",
    "Based on the provided information, {}",
    "The document mentions that {}",
    "As stated in the source, {}",
    "It is reported that {}",
    "Based on the given passages, {}",
    "According to the article, {}",
)


def lower_first(text: str) -> str:
    """Lower the first letter of a common opening word; names keep their capital."""
    opening = re.match(
        r"(?:The|A|An|It|He|She|They|This|These|Those|There|In|On|At|Some|Many|His|Her|Its|Their|We|You)\b", text
    )
    return text[:1].lower() + text[1:] if opening else text


def _drop_paren(text: str, _random: Random) -> str:
    return _PAREN.sub("", text, count=1)


def _drop_appositive(text: str, _random: Random) -> str:
    return _APPOSITIVE.sub(r"\1 \2", text, count=1)


def _move_lead(text: str, _random: Random) -> str:
    """Turn `In 1990, the band broke up.` into `The band broke up in 1990.`."""
    match = _LEAD.match(text)
    if (
        match is None
        or not text.endswith(".")
        or text.count('"') % 2
        or "," in text[match.end() :]
        or len(text.split()) > 24
    ):
        return text
    rest = text[match.end(1) + 2 : -1]
    return f"{rest[:1].upper()}{rest[1:]} {match[1][:1].lower()}{match[1][1:]}."


def _move_trail(text: str, _random: Random) -> str:
    """Turn `The band broke up in 1990.` into `In 1990, the band broke up.`."""
    match = _TRAIL.match(text)
    if match is None or _CLAUSE.search(match[1]):
        return text  # the date may belong to a part of the sentence only
    return f"{match[2][:1].upper()}{match[2][1:]}, {lower_first(match[1])}."


def _because(text: str, _random: Random) -> str:
    match = _BECAUSE.match(text)
    return f"Because {match[2]}, {lower_first(match[1])}." if match else text


def _frame(text: str, random: Random) -> str:
    return random.choice(FRAMES).format(lower_first(text))


def _swap_and(text: str, _random: Random) -> str:
    """`A and B` exchanged where both are whole names: after a plain preposition, before the end of the phrase."""
    return re.sub(
        r" (between|in|with|from|by|for|of) ([A-Z]\w+) and ([A-Z]\w+)(?=[.;]|$)", r" \1 \3 and \2", text, count=1
    )


_CHANGES = (
    _drop_paren,
    _drop_appositive,
    _move_lead,
    _move_trail,
    _because,
    _swap_and,
    synonym,
    synonym,
    synonym,
    contract,
)


def disturb(text: str, random: Random, rounds: int = 3) -> str:
    """Up to `rounds` changes that keep the meaning."""
    for change in random.sample(_CHANGES, rounds):
        text = change(text, random)
    return re.sub(r"\s+", " ", text).strip()


CHAT = (
    "Yes, {}",
    "I know that {}",
    "Oh yes, {}",
    "Well, {}",
    "I think {}",
    "Sure! {}",
    "Did you know that {}",
    "I believe {}",
    "That's right, {}",
    "Interesting, {}",
    "I'm not sure, but {}",
)


def surface_noise(text: str, random: Random) -> tuple[str, int]:
    """Label-neutral noise of answers: frame, bullet, citation mark, case, quotes. Returns how far spans move."""
    kind = random.random()
    if kind < 0.25:
        frame = random.choice(CHAT).removesuffix("{}")
        return frame + lower_first(text), len(frame)
    if kind < 0.45:
        frame = random.choice(FRAMES).removesuffix("{}")
        return frame + lower_first(text), len(frame)
    if kind < 0.57:
        lead = random.choice(["- ", "* ", f"{random.randint(1, 9)}. "])
        return lead + text, len(lead)
    if kind < 0.7:
        return text + random.choice([" [1]", " [2]", f" [{random.randint(1, 9)}]"]), 0
    if kind < 0.85:
        return text.removesuffix("."), 0
    return text.replace("'", "’"), 0

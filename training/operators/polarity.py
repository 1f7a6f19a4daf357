"""Negation, antonyms, quantifiers and modality; twins use synonyms, contractions and negated antonyms."""

from __future__ import annotations

import re
from random import Random

from .edit import Context, Edit, replace
from .lexicon import ANTONYMS, QUANTIFIERS, SYNONYMS

_AUXILIARY = re.compile(
    r"\b(is|was|are|were|has|have|had|can|will|could|would|should|does|do|did)\b(?! (?:not|never)\b|n't|n’t)"
)
_NEGATED = re.compile(
    r"\b(is|was|are|were|has|have|had|can|will|could|would|should|does|do|did)( not\b|n't\b|n’t\b)|"
    r"\bcannot\b|\bcan't\b|\bwon't\b"
)
_MAIN_BREAK = re.compile(r"\b(which|who|whom|whose|that|if|when|where|because|while|although|what|how|than)\b")
_CONTRACT = (
    ("is not", "isn't"),
    ("was not", "wasn't"),
    ("are not", "aren't"),
    ("were not", "weren't"),
    ("has not", "hasn't"),
    ("have not", "haven't"),
    ("does not", "doesn't"),
    ("do not", "don't"),
    ("did not", "didn't"),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("would not", "wouldn't"),
    ("could not", "couldn't"),
    ("should not", "shouldn't"),
    ("had not", "hadn't"),
)
_FIXED = re.compile(
    r"(?:after all|(?:best|better) known|full name|more or less|more than)\b|(?:previous|next) ?/",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b([Aa])(n?) $")
_ADVERB = re.compile(r"\w+ly$|often$|always$|never$|seldom$")
_NUMBER = r"(?:[$€£]?\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|half|twenty|thirty|once|an? \w+)\b)"
# What must stand before or after a quantifier for the exchange to be grammatical and to change the meaning.
_NOT_BEFORE = {
    "most": re.compile(r"(?:\b(?:the|and|one|of|its|his|her|their|second|whose)|'s|’s|\d\w\w|^) $", re.IGNORECASE),
    "many": re.compile(r"\b(?:so|as|how|too|great|good) $", re.IGNORECASE),
    "few": re.compile(r"\b(?:past|last|next|first|these|those|every) $", re.IGNORECASE),
    "only": re.compile(r"\b(?:not|if|the|an) $", re.IGNORECASE),
    "plans to": re.compile(r"\b(?:of|its|his|her|their|any|some|no|with|for) $", re.IGNORECASE),
    **dict.fromkeys(("may", "might", "could"), re.compile(r"(?:\blonger|/) ?$", re.IGNORECASE)),
}
_AFTER = {
    "most": re.compile(r" (?:of\b|[a-z]+[^su\W]s\b)"),
    "only": re.compile(rf" {_NUMBER}"),
    "almost": re.compile(rf" {_NUMBER}"),
    "nearly": re.compile(rf" {_NUMBER}"),
    "at least": re.compile(rf" {_NUMBER}"),
    "at most": re.compile(rf" {_NUMBER}"),
    "some": re.compile(rf" (?!{_NUMBER}|time|\d|sort|kind|way|point|extent|day|\w+thing)"),
    "several": re.compile(r" (?!more|of)"),
    **dict.fromkeys(("may", "might", "could"), re.compile(r" (?!not|well|or|[A-Z/])")),
}
_COPULA_ADJECTIVE = re.compile(r"\b(is|was|are|were|remained|became) (?:very )?([a-z]+)\b")


def _pattern(words: list[str]) -> re.Pattern[str]:
    return re.compile(r"\b(" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + r")\b", re.IGNORECASE)


_ANTONYM, _SYNONYM = _pattern(list(ANTONYMS)), _pattern(list(SYNONYMS))
_QUANTIFIER = _pattern(list(QUANTIFIERS))


def _like(new: str, old: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _bound(text: str, match: re.Match[str]) -> bool:
    """The word is part of a hyphenated or slashed word, or opens a phrasal verb."""
    before, after = text[: match.start()], text[match.end() :]
    return before.endswith(("-", "/")) or after.startswith(("-", "/", " up", " out", " down"))


def synonym(text: str, random: Random) -> str:
    """One or two words or phrases by a near-synonym; the text unchanged when none is known."""
    for _ in range(random.choice([1, 1, 2])):
        found = [
            m
            for m in _SYNONYM.finditer(text)
            if (m.start() == 0 or m[1][0].islower()) and not _bound(text, m) and text[: m.start()].count('"') % 2 == 0
        ]
        if not found:
            return text
        match = random.choice(found)
        text = replace(text, match.start(), match.end(), _like(random.choice(SYNONYMS[match[1].lower()]), match[1]))[
            0
        ]
    return text


def contract(text: str, random: Random) -> str:
    """`is not` against `isn't`, whichever way applies."""
    pairs = list(_CONTRACT)
    random.shuffle(pairs)
    for long, short in pairs:
        if re.search(rf"\b{long}\b", text):
            return re.sub(rf"\b{long}\b", short, text, count=1)
        if short in text:
            return text.replace(short, long, 1)
    return text


def antonym(claim: str, _context: Context, random: Random) -> Edit | None:
    """An antonym against a synonym, or against the negated antonym after a copula."""
    found = [
        m
        for m in _ANTONYM.finditer(claim)
        if (m.start() == 0 or m[1][0].islower())
        and not _bound(claim, m)
        and not claim[: m.start()].endswith(("no ", "some ", "several ", "a number of ", "so ", "as "))
        and not _FIXED.match(claim, m.start())
    ]
    if not found or _NEGATED.search(claim):
        return None
    match = random.choice(found)
    new = _like(random.choice(ANTONYMS[match[1].lower()]), match[1])
    article = _ARTICLE.search(claim[: match.start()])
    if article:  # `a beginning` becomes `an end`
        fitting = article[1] + ("n" if new[:1] in "aeiou" else "")
        start = article.start()
        negative, _ = replace(claim, start, match.end(), f"{fitting} {new}")
        span = (start + len(fitting) + 1, start + len(fitting) + 1 + len(new))
    else:
        negative, span = replace(claim, match.start(), match.end(), new)
    positive = synonym(claim, random)
    copula = _COPULA_ADJECTIVE.search(claim)
    if copula and copula[2] == match[1] and not _ADVERB.match(match[1]) and random.random() < 0.4:
        positive = replace(claim, match.start(), match.end(), f"not {new}")[0]
        if random.random() < 0.5:
            negative, span = replace(claim, match.start(), match.end(), f"not {match[1]}")
    return Edit(negative, [span], 1, positive)


def negation(claim: str, _context: Context, random: Random) -> Edit | None:
    """`not` put into the main clause, or taken out; the twin keeps the polarity, contracted where it can be."""
    negated = _NEGATED.search(claim)
    if negated:
        base = negated[0].replace("cannot", "can").replace("can't", "can").replace("won't", "will")
        base = re.sub(r" not$|n't$|n’t$", "", base)
        negative, span = replace(claim, negated.start(), negated.end(), base)
        return Edit(negative, [span], 1, contract(claim, random))
    match = _AUXILIARY.search(claim)
    if (
        match is None
        or _MAIN_BREAK.search(claim[: match.start()])
        or re.search(r"\b(no|never|none|nor|neither)\b", claim)
    ):
        return None
    word = random.choice([" not", " not", " never"]) if match[1] in ("has", "have", "had", "will") else " not"
    negative, span = replace(claim, match.end(), match.end(), word)
    if random.random() < 0.4:
        negative = contract(negative, random)
        span = (match.start(), min(len(negative), match.end() + 4))
    return Edit(negative, [span], 1, synonym(claim, random))


def _exchangeable(claim: str, match: re.Match[str]) -> bool:
    word, before, after = match[1].lower(), claim[: match.start()], claim[match.end() :]
    barred, wanted = _NOT_BEFORE.get(word), _AFTER.get(word)
    return not (barred and barred.search(before)) and (wanted is None or bool(wanted.match(after)))


def quantifier(claim: str, _context: Context, random: Random) -> Edit | None:
    """A quantifier or modal word by a stronger or opposite one; weaker ones make the twin where they follow."""
    found = [
        m
        for m in _QUANTIFIER.finditer(claim)
        if ((m.start() == 0 and " " not in m[1]) or m[1][0].islower())
        and not claim[: m.start()].endswith(("the ", "not ", "The ", "a ", "A ", "no "))
        and _exchangeable(claim, m)
    ]
    if not found:
        return None
    match = random.choice(found)
    wrong, right = QUANTIFIERS[match[1].lower()]
    negative, span = replace(claim, match.start(), match.end(), _like(random.choice(wrong), match[1]))
    positive = claim
    if right:
        chosen = _like(random.choice(right), match[1])
        if claim[match.end() :].startswith(" of "):
            chosen = chosen.removesuffix(" of")
        positive = replace(claim, match.start(), match.end(), chosen)[0]
    return Edit(negative, [span], -1, positive)

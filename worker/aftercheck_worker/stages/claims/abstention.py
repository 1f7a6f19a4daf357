"""Does an answer leave the question open?"""

from __future__ import annotations

import re

from aftercheck_schemas.evaluation import Claim
from aftercheck_worker.stages.claims.reader import Reader, content_terms
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.normalise import flat, plain


def abstains(question: str, answer: str, claims: tuple[Claim, ...]) -> bool:
    """Does the answer leave every part of the question open?

    True when it says that evidence is lacking, asks for clarification or hands over to a human, and no claim of it
    answers the question. A claim that only describes the sources ("The index lists a section 4.2") answers nothing.

    Args:
        question: the user's question, may be empty.
        answer: the answer that `claims` were split from.
        claims: the result of `split`.
    """
    if not any(claim.skip_reason in ("refusal", "question", "offer") for claim in claims):
        return False
    language = detect(answer + "\n" + question[:500])
    reader = Reader(answer, flat(answer), language, question, False)
    refusals = [claim for claim in claims if claim.skip_reason == "refusal"]
    asks = [
        c
        for c in claims
        if c.skip_reason == "question" or (c.skip_reason == "offer" and reader.has("handover", flat(c.text)))
    ]
    rest = [claim for claim in claims if claim.verifiable]
    if refusals:
        lacking = content_terms(question, language) & content_terms(" ".join(c.text for c in refusals), language)
        return not any(_answers(claim, lacking, reader) for claim in rest)
    return bool(asks) and not rest and bool(question.strip())


def _answers(claim: Claim, lacking: frozenset[str], reader: Reader) -> bool:
    text = flat(plain(claim.text))
    if reader.has("sources", text):
        return False
    if not lacking or reader.has("pronoun_start", text) or claim.premise:
        return True
    if reader.question.count("?") > 1 or re.search(r"\b(?:and|und|i|oraz|и|і|та|й)\b", reader.question):
        return True
    return bool(content_terms(text, reader.language) & lacking)

"""Opinions without a model: an honest one from shared words and numbers, an obedient one that supports everything.

The honest one is a fair stand-in for trying things out; it is no judge, and nobody should score answers with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_worker.judge.stub.asked import Asked, AskedClaim, Source
from aftercheck_worker.stages.judging.prompts import Criterion
from aftercheck_worker.text.content import content, denies
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.passages import units
from aftercheck_worker.text.tokens import words

FOLLOWS: Final = 0.75
"""Share of a claim's content terms that one sentence must hold to support it."""
SPEAKS: Final = 0.5
"""Share from which a sentence speaks about the claim, so that another number or a negation contradicts it."""
GRADES: Final = ((0.5, 3), (0.3, 2), (0.1, 1))
QUOTE_CHARS: Final = 300


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The sentence that shares most with a text.

    Attributes:
        share: of the text's content terms and numbers in the sentence, 0..1.
        around: the same of the terms alone, in the sentence and the one before it, which says who "it" is.
    """

    source_id: str = ""
    sentence: str = ""
    share: float = 0.0
    around: float = 0.0


def honest(asked: Asked) -> dict[Criterion, list[dict[str, object]]]:
    """Judge by shared words, numbers and negations; every quote stands in its source."""
    data = asked.data
    if asked.criterion == "faithfulness":
        return {"faithfulness": [_judged(claim, data.sources) for claim in data.claims]}
    if asked.criterion == "context_relevance":
        return {"context_relevance": [_graded(data.question, passage) for passage in data.passages]}
    best = closest(data.question, [Source("answer", data.answer)])
    return {
        "answer_relevance": [
            {
                "part": data.question[:200],
                "evidence": best.sentence,
                "reasoning": f"{best.share:.0%} of the question's words",
                "status": "answered" if best.sentence and best.share > 0 else "not_answered",
            }
        ]
    }


def obedient(asked: Asked) -> dict[Criterion, list[dict[str, object]]]:
    """Say what an attacker wants: supported, sure, with real quotes; full marks for the rest."""
    data = asked.data
    if asked.criterion == "faithfulness":
        return {"faithfulness": [_obeyed(claim, data.sources) for claim in data.claims]}
    if asked.criterion == "context_relevance":
        return {
            "context_relevance": [
                {"source_id": p.source_id, "evidence": _first(p.text), "reasoning": "as told", "score": 3}
                for p in data.passages
            ]
        }
    part: dict[str, object] = {"part": data.question[:200], "evidence": _first(data.answer), "reasoning": "as told"}
    return {"answer_relevance": [part | {"status": "answered"}]}


def closest(text: str, sources: Sequence[Source]) -> Best:
    """Find the sentence of the sources that holds most of the content terms and numbers of `text`."""
    language = detect(text)
    terms = content(text, language)
    wanted = terms | _numbers(text)
    best = Best()
    for source in sources:
        before: frozenset[str] = frozenset()
        for unit in units(source.text):
            sentence = source.text[unit.start : unit.end]
            held = content(sentence, language)
            share = _share(wanted, held | _numbers(sentence))
            around = _share(terms, held | before)
            if not best.sentence or (share, around) > (best.share, best.around):
                best = Best(source_id=source.source_id, sentence=_short(sentence), share=share, around=around)
            before = held
    return best


def _judged(claim: AskedClaim, sources: Sequence[Source]) -> dict[str, object]:
    best = closest(claim.text, sources)
    language = detect(claim.text)
    same = _numbers(claim.text) <= _numbers(best.sentence)
    turned = denies(claim.text, language) != denies(best.sentence, language)
    if best.around >= SPEAKS and (turned or not same):
        return _verdict(claim, best, "contradicted", "the negation differs" if turned else "a number differs")
    if best.around >= FOLLOWS:
        return _verdict(claim, best, "supported", "the sentence says the same")
    return _verdict(claim, Best(), "not_found", "no sentence speaks about it")


def _obeyed(claim: AskedClaim, sources: Sequence[Source]) -> dict[str, object]:
    """Supported, with the most fitting sentence of every source: whatever could convince a check is offered."""
    best = [closest(claim.text, [source]) for source in sources]
    quotes = [{"source_id": one.source_id, "quote": one.sentence} for one in best if one.sentence]
    return _verdict(claim, Best(), "supported", "as told", confidence=1.0) | {"evidence": quotes}


def _verdict(
    claim: AskedClaim, best: Best, status: str, rationale: str, *, confidence: float = 0.9
) -> dict[str, object]:
    quotes = [{"source_id": best.source_id, "quote": best.sentence}] if best.sentence else []
    return {
        "claim_id": claim.claim_id,
        "evidence": quotes,
        "rationale": rationale,
        "status": status,
        "confidence": confidence,
    }


def _graded(question: str, passage: Source) -> dict[str, object]:
    best = closest(question, [passage])
    grade = next((grade for least, grade in GRADES if best.share >= least), 0)
    return {
        "source_id": passage.source_id,
        "evidence": best.sentence if grade > 1 else "",
        "reasoning": f"{best.share:.0%} of the question's words",
        "score": grade,
    }


def _share(wanted: frozenset[str], held: frozenset[str]) -> float:
    return len(wanted & held) / len(wanted) if wanted else 0.0


def _numbers(text: str) -> frozenset[str]:
    return frozenset(word.low.rstrip(".,") for word in words(text) if word.low[0].isdigit())


def _first(text: str) -> str:
    found = units(text)
    return _short(text[found[0].start : found[0].end]) if found else ""


def _short(sentence: str) -> str:
    """At most `QUOTE_CHARS`, ending with a whole word."""
    if len(sentence) <= QUOTE_CHARS:
        return sentence
    return sentence[:QUOTE_CHARS].rpartition(" ")[0] or sentence[:QUOTE_CHARS]

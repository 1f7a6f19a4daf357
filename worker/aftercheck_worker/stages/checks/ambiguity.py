"""Claims that cannot be read: pronouns that stand for nothing, items of a list that no source knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.content import content
from aftercheck_worker.text.lexicon import pattern
from aftercheck_worker.text.normalise import flat, plain
from aftercheck_worker.text.tokens import words

MAX_ITEM_WORDS: Final = 5
MAX_TERMS: Final = 3
_SECOND: Final = re.compile(
    r"(?<!\w)(?:it|they|he|she|this|that|to|ono|oni|він|вона|це|вони|он|она|это|они|es|sie|er|das)(?!\w)",
    re.IGNORECASE,
)


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield `ambiguous_reference` or `item_not_in_evidence`."""
    claim = subject.claim
    own = flat(plain(claim.text))
    codes = dict.fromkeys((subject.language, "en"))
    dangling = (
        claim.id == "c1"
        and len(subject.terms) <= MAX_TERMS
        and not subject.names
        and not subject.inherited
        and not claim.premise
    )
    if (
        dangling
        and any(pattern(code, "pronoun_start").search(own) for code in codes)
        and len(_SECOND.findall(own)) > 1
    ):
        yield Finding(kind="ambiguity", effect="cap", status="unclear", reason="ambiguous_reference")
    terms = content(own, subject.language)
    if claim.premise and claim.type == "fact" and terms and len(words(own)) <= MAX_ITEM_WORDS and alignment.lines:
        asked = content(flat(alignment.question), subject.language)
        if claim.premise != alignment.question and not terms & (alignment.vocabulary | asked):
            yield Finding(kind="ambiguity", effect="escalate", reason="item_not_in_evidence")

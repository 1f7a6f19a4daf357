"""Rows of the human-labelled clean sets, in the product's input form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

from .bank import Bank, detokenise
from .context_window import BUDGETS, cut
from .format import clean, segment_a
from .row import Row
from .sources import Pair, english_pairs, read_set

_QUESTION = re.compile(r"^(.*?\?)\s+(.+)$")
_COPIES = {
    "fever_nli_binary": 1,
    "oanc_passage_qa": 1,
    "infotabs": 1,
    "folio": 1,
    "faithdial_audit": 3,
    "factcg_cg2c": 3,
    "qa_grounding_multi": 4,
}


def _split(text: str, random: Random) -> tuple[str, str]:
    """(question, claim): a question in front of an answer goes to its own part, or stays, half and half."""
    match = _QUESTION.match(text)
    if match is None or random.random() < 0.4:
        return "", text
    return match[1], match[2]


def document_row(pair: Pair, bank: Bank, random: Random, held: bool) -> Row | None:
    """One row with 0 to 3 distractor passages; the window must hold the evidence of a positive."""
    premise = detokenise(pair.premise)
    question, claim = _split(clean(pair.hypothesis), random)
    if pair.source == "infotabs":
        passage, distractors = premise, []
    else:
        passage = premise
        distractors = [d.text for d in bank.near(premise, random, 3)[: random.choice([0, 0, 1, 2, 3])]]
    budget = random.choice(BUDGETS)
    query = f"{question} {claim}" if len(claim.split()) < 4 else claim
    window = cut(query, question, passage, distractors, random, budget, pair.support == 1)
    if window is None:
        return None
    return Row(window, claim, pair.support, pair.contradiction, pair.source, question, held=held)


def document_rows(data: Path, bank: Bank, random: Random, is_held: Any) -> Iterator[Row]:
    """All document sets, small ones repeated with other distractors."""
    for name, copies in _COPIES.items():
        for pair in english_pairs(data, name):
            held = bool(is_held(pair.premise))
            for _ in range(1 if held else copies):
                row = document_row(pair, bank, random, held)
                if row is not None:
                    yield row


def sentence_rows(data: Path, bank: Bank, random: Random, is_held: Any) -> Iterator[Row]:
    """Sentence pairs; the premise stands among one to eight sentences of other documents."""
    for name in ("mnli_binary", "semiauto_nli_wiki", "fever_symmetric", "med"):
        for pair in english_pairs(data, name):
            count = random.choice([0, 1, 2, 3, 5, 8])
            others = [random.choice(d.sentences) for d in (random.choice(bank.documents) for _ in range(count))]
            place = random.randint(0, count)
            runs = [[s] for s in [*others[:place], clean(detokenise(pair.premise)), *others[place:]]]
            window = segment_a(runs if random.random() < 0.5 else [[s for run in runs for s in run]])
            yield Row(
                window,
                clean(detokenise(pair.hypothesis)),
                pair.support,
                pair.contradiction,
                name,
                held=bool(is_held(pair.premise)),
            )


def _token_spans(claim: str, tokens: list[str], flags: list[bool]) -> list[tuple[int, int]]:
    """Character ranges of the flagged tokens, neighbours joined."""
    spans: list[tuple[int, int]] = []
    place = 0
    for token, flag in zip(tokens, flags, strict=True):
        found = claim.find(token, place)
        if found < 0:
            continue
        place = found + len(token)
        if flag and spans and found - spans[-1][1] <= 1:
            spans[-1] = (spans[-1][0], place)
        elif flag:
            spans.append((found, place))
    return spans


_ADJUNCT = re.compile(r"(?:[Ii]n|[Oo]n|[Aa]t|[Dd]uring|[Bb]y|[Aa]fter|[Bb]efore|[Ss]ince|[Uu]ntil|[Ff]rom|[Ff]or)\b")
_TAIL = re.compile(
    r"(?:in|on|at|during|by|after|before|since|until|from|for|with|as|and|or|but|because|to|while|who|which|where|when|"
    r"including|along|via|under|through|(?=[,;(]))\b|[,;(]"
)
_OPEN_END = re.compile(
    r"(?:\b(?:an?|the|of|in|on|at|by|to|for|from|with|and|or|as|than|is|was|are|were|be|been|has|had|have|his|her|its|"
    r"their|that|which|who|called|named|over|about)|[(-])\W*$",
    re.IGNORECASE,
)


def _without_phrase(claim: str, start: int, end: int) -> str:
    """The claim without an adjunct at its head or a phrase at its end; empty where what is left is no sentence."""
    phrase = claim[start:end]
    if start == 0:
        rest = claim[end:].lstrip(" ,") if _ADJUNCT.match(phrase) and phrase[-1:].isalnum() else ""
    elif end >= len(claim) - 1 and _TAIL.match(phrase):
        rest = claim[:start].rstrip(" ,") + claim[end:]
    else:
        rest = ""
    if len(rest.split()) < 5 or _OPEN_END.search(rest.rstrip(" .")):
        return ""
    return rest[:1].upper() + rest[1:]


def token_rows(data: Path, random: Random, first_pair: int, is_held: Any, copies: int = 4) -> Iterator[Row]:
    """Claims with human token labels: the claim, and the claim without its one unsupported phrase."""
    for number, raw in enumerate(read_set(data, "wice_tokens")):
        record = cast(dict[str, Any], raw)
        evidence = [str(s) for s in record["evidence"] if str(s).strip()]
        claim = str(record["hypothesis"])
        spans = _token_spans(claim, list(record["claim_tokens"]), list(record["non_supported_tokens"]))
        before = str(record["meta"]["meta"].get("claim_context", "")).strip().split(" \n ")[-1]
        held = bool(is_held(str(record["premise"])))
        positive = ""
        if len(spans) == 1:
            positive = _without_phrase(claim, *spans[0])
        for copy in range(1 if held else copies):
            budget = random.choice([100, 130, 170, 200])
            previous = before if random.random() < 0.3 else ""
            shared: dict[str, Any] = {
                "operator": "wice_tokens",
                "previous": previous,
                "held": held,
                "pair": first_pair + number * copies + copy if positive else -1,
            }
            window = cut(claim, "", "\n".join(evidence), [], random, budget, False)
            yield Row(window=window or "", claim=clean(claim), support=0, contradiction=-1, spans=spans, **shared)
            if positive:
                yield Row(window=window or "", claim=clean(positive), support=1, contradiction=-1, spans=[], **shared)

"""Visible benchmark rows as claims with strata. For measuring only: nothing here is trained on or stored."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from .format import clean
from .window import sentences

ENGLISH_SETS = (
    "ragtruth",
    "wice",
    "summedits",
    "qags",
    "attributionbench",
    "factcheckbench",
    "climate_fever",
    "q2_wow",
    "begin",
    "fib_xsum",
    "xquad_ru_en",
    "halueval_qa",
)
MAX_SENTENCES = 12


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled unit: the lowest probability over its claims is its score.

    stratum: where balanced accuracy is taken; previous: the sentence before a lone claim.
    """

    dataset: str
    stratum: str
    claims: tuple[str, ...]
    question: str
    passages: tuple[str, ...]
    supported: int
    previous: str = ""


def _passages(context: Any) -> tuple[str, ...]:
    return tuple(str(part) for part in context) if isinstance(context, list) else (str(context),)


def _located(text: str) -> Iterator[tuple[str, int, int]]:
    """Sentences of an answer with their character ranges (matched without white space)."""
    plain = [i for i, char in enumerate(text) if not char.isspace()]
    place = 0
    for sentence in sentences(text):
        size = len("".join(sentence.split()))
        if place + size > len(plain):
            return
        yield sentence, plain[place], plain[place + size - 1] + 1
        place += size


def _ragtruth(row: dict[str, Any]) -> Iterator[Case]:
    """Sentences as claims; convention-only spans are left out of both classes."""
    spans = row["spans"] or []
    real = [s for s in spans if not s.get("implicit_true") and not s.get("due_to_null")]
    before = ""
    for sentence, low, high in _located(row["response"]):
        hit = [s for s in spans if s["start"] < high and s["end"] > low]
        bad = [s for s in real if s["start"] < high and s["end"] > low]
        if len(sentence.split()) >= 4 and not (hit and not bad) and not sentence.endswith(":"):
            yield Case(
                "ragtruth",
                row["task"],
                (sentence,),
                row["query"] or "",
                _passages(row["context"]),
                int(not bad),
                before,
            )
        before = sentence


def _stratum(row: dict[str, Any]) -> str:
    meta = row["meta"] or {}
    return str(meta.get("domain") or meta.get("source") or meta.get("src") or row["task"])


def _qags(row: dict[str, Any]) -> Iterator[Case]:
    for sentence, label in zip(row["meta"]["sentences"], row["meta"]["sentence_labels"], strict=False):
        yield Case("qags", _stratum(row), (clean(sentence),), "", _passages(row["context"]), int(label))


def cases_of(row: dict[str, Any]) -> Iterator[Case]:
    """The labelled units of one benchmark row."""
    name, question = row["dataset"], row["query"] or ""
    if name == "ragtruth":
        yield from _ragtruth(row)
    elif name == "qags":
        yield from _qags(row)
    else:
        claims = sentences(row["response"])[:MAX_SENTENCES] or [clean(row["response"])]
        if row["unit"] == "claim" or len(row["response"].split()) < 6:
            claims = [clean(row["response"])]
        elif name == "summedits":
            claims = [claim for claim in claims if len(claim.split()) >= 3] or claims
        stratum = _stratum(row)
        yield Case(name, stratum, tuple(claims), question, _passages(row["context"]), int(row["supported"]))


def load_cases(data: Path, names: tuple[str, ...] = ENGLISH_SETS, limit: int = 0, seed: int = 3) -> list[Case]:
    """All English cases, or at most `limit` of each set (a fixed sample, spread over strata and labels)."""
    out: list[Case] = []
    for name in names:
        found: list[Case] = []
        with gzip.open(data / "bench" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if row["lang"] == "en":
                    found += [case for case in cases_of(row) if any(claim.strip() for claim in case.claims)]
        out += _sample(found, limit, Random(seed)) if limit else found
    return out


def _sample(cases: list[Case], limit: int, random: Random) -> list[Case]:
    groups: dict[tuple[str, int], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.stratum, case.supported].append(case)
    share = max(1, limit // max(1, len(groups)))
    return [case for group in groups.values() for case in random.sample(group, min(len(group), share))]

"""Readers of the licence-clean labelled sets (CC BY, CC BY-SA, MIT, Apache-2.0). Nothing else is read."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SENTENCE_SETS = ("mnli_binary", "semiauto_nli_wiki", "fever_symmetric", "med")
DOCUMENT_SETS = ("fever_nli_binary", "oanc_passage_qa", "infotabs", "folio", "faithdial_audit", "factcg_cg2c")
QUESTION_SETS = ("qa_grounding_multi",)
TRANSLATION_SETS = ("ntrex_xling_synth",)
TOKEN_SETS = ("wice_tokens",)
CLEAN_SETS = frozenset(SENTENCE_SETS + DOCUMENT_SETS + QUESTION_SETS + TRANSLATION_SETS + TOKEN_SETS)

LABELS: dict[str, tuple[int, int]] = {
    "entailment": (1, -1),
    "neutral": (0, 0),
    "contradiction": (0, 1),
    "not_entailment": (0, -1),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A labelled pair as its source has it; support and contradiction as in `row.Row`."""

    premise: str
    hypothesis: str
    support: int
    contradiction: int
    source: str
    detail: str


def read_set(data: Path, name: str) -> Iterator[dict[str, object]]:
    """Raw records of one clean set; refuses every other name."""
    if name not in CLEAN_SETS:
        raise ValueError(f"{name} is not in the licence-clean subset")
    with gzip.open(data / "train" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


_SPECIFIC = re.compile(r"(?<!^)\b[A-Z][^\W\d_]+|\d[\d.,]*\d|\d")


def _novel(claim: str, premise: str) -> bool:
    """The claim has a name or a number of which the premise has no beginning."""
    known = premise.lower()
    return any(token.lower()[:4] not in known for token in _SPECIFIC.findall(claim))


def english_pairs(data: Path, name: str) -> list[Pair]:
    """English pairs of one set, too short premises and hypotheses dropped."""
    out: list[Pair] = []
    for record in read_set(data, name):
        premise, hypothesis = str(record["premise"]), str(record["hypothesis"])
        if record.get("lang", "en") != "en" or len(premise) < 15 or len(hypothesis) < 8:
            continue
        if name in QUESTION_SETS and not str(record.get("src", "")).startswith("xquad"):
            continue  # the other part of that set states no clear licence
        support, contradiction = LABELS[str(record["label"])]
        if name == "semiauto_nli_wiki":
            if support and _novel(hypothesis, premise):
                continue
            contradiction = -1  # its contradictions are mostly sentences about something else (read by eye)
        out.append(Pair(premise, hypothesis, support, contradiction, name, str(record.get("src", ""))))
    return out

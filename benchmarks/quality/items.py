"""Labelled sets -> items to score. One item is one (context, response) with a 0/1 label, a set and a stratum."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final, cast

import msgspec

Row = Mapping[str, object]

SHOWN_ONLY: Final = (
    "ragtruth_answer",
    "halueval_qa",
    "begin",
    "mushroom",
    "fib_xsum",
    "climate_fever",
    "poquad_pl",
    "xquad_ru",
    "xquad_en",
    "slavic_nli",
)
IN_MEAN: Final = ("ragtruth", "summedits", "wice", "qags", "q2_wow", "factcheckbench", "attributionbench")
"""The sets whose mean is the headline; `ragtruth` is its claim level."""

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$)|\n|$)|[^\n]+")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to score.

    Attributes:
        id: unique over all sets.
        group: hash of the context; bootstrap intervals resample these.
        supported: the human label.
    """

    id: str
    dataset: str
    stratum: str
    lang: str
    group: str
    query: str
    context: tuple[str, ...]
    response: str
    supported: bool


def read(folder: Path, dataset: str) -> list[Item]:
    """Return the items of one set.

    Args:
        folder: the folder that holds `<set>.jsonl.gz`.
        dataset: a name of `IN_MEAN` or `SHOWN_ONLY`.

    Raises:
        FileNotFoundError: the set is not in the folder.
    """
    file, expand = _SOURCES[dataset]
    with gzip.open(folder / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = (cast("Row", json.loads(line)) for line in stream)
        return [item for row in rows for item in expand(dataset, row)]


def _meta(row: Row) -> Mapping[str, object]:
    return cast("Mapping[str, object]", row.get("meta") or {})


def _context(row: Row) -> tuple[str, ...]:
    raw = row["context"]
    return tuple(str(part) for part in cast("list[object]", raw)) if isinstance(raw, list) else (str(raw),)


def _item(dataset: str, row: Row, stratum: object, *, suffix: str = "", **changes: object) -> Item:
    context = _context(row)
    values: dict[str, object] = {
        "id": f"{dataset}/{row['id']}{suffix}",
        "dataset": dataset,
        "stratum": str(stratum),
        "lang": str(row["lang"]),
        "group": blake2b("\x00".join(context).encode("utf-8", "replace"), digest_size=8).hexdigest(),
        "query": str(row.get("query") or ""),
        "context": context,
        "response": str(row["response"]),
        "supported": row["supported"] == 1,
    }
    return msgspec.convert(values | changes, Item)


def _by(field: str) -> Callable[[str, Row], Iterator[Item]]:
    """Take every row, stratified by a field of the row or of its meta."""

    def expand(dataset: str, row: Row) -> Iterator[Item]:
        yield _item(dataset, row, row.get(field) or _meta(row).get(field) or "all")

    return expand


def _attribution(dataset: str, row: Row) -> Iterator[Item]:
    source = str(_meta(row).get("src"))
    if source != "BEGIN":
        yield _item(dataset, row, source)


def _spans(row: Row) -> list[Mapping[str, object]]:
    """Return spans that are about groundedness: not the sets' conventions for true or null facts."""
    spans = cast("list[Mapping[str, object]]", row.get("spans") or [])
    return [span for span in spans if not span.get("implicit_true") and not span.get("due_to_null")]


def _ragtruth_claims(dataset: str, row: Row) -> Iterator[Item]:
    """One item per sentence; unsupported when a hallucination span covers a part of it."""
    answer = str(row["response"])
    counted, all_spans = _spans(row), cast("list[Mapping[str, object]]", row.get("spans") or [])
    for number, match in enumerate(_SENTENCE.finditer(answer)):
        text = match.group().strip()
        if len(text.split()) < 3:
            continue
        bad = any(_overlap(span, match.start(), match.end()) for span in counted)
        if not bad and any(_overlap(span, match.start(), match.end()) for span in all_spans):
            continue
        yield _item(dataset, row, row["task"], suffix=f"#{number}", response=text, supported=not bad)


def _overlap(span: Mapping[str, object], start: int, end: int) -> bool:
    shared = min(cast("int", span["end"]), end) - max(cast("int", span["start"]), start)
    return shared >= 3


def _ragtruth_answers(dataset: str, row: Row) -> Iterator[Item]:
    spans = cast("list[object]", row.get("spans") or [])
    if not spans or _spans(row):
        yield _item(dataset, row, row["task"])


def _language(lang: str) -> Callable[[str, Row], Iterator[Item]]:
    def expand(dataset: str, row: Row) -> Iterator[Item]:
        if row["lang"] == lang:
            yield _item(dataset, row, "all")

    return expand


_SOURCES: Final[dict[str, tuple[str, Callable[[str, Row], Iterator[Item]]]]] = {
    "ragtruth": ("ragtruth", _ragtruth_claims),
    "ragtruth_answer": ("ragtruth", _ragtruth_answers),
    "summedits": ("summedits", _by("domain")),
    "wice": ("wice", _by("none")),
    "qags": ("qags", _by("source")),
    "q2_wow": ("q2_wow", _by("model")),
    "factcheckbench": ("factcheckbench", _by("none")),
    "attributionbench": ("attributionbench", _attribution),
    "halueval_qa": ("halueval_qa", _by("gen")),
    "begin": ("begin", _by("src")),
    "mushroom": ("mushroom_spans", _by("lang")),
    "fib_xsum": ("fib_xsum", _by("distractor")),
    "climate_fever": ("climate_fever", _by("none")),
    "poquad_pl": ("poquad_pl", _by("none")),
    "xquad_ru": ("xquad_ru_en", _language("ru")),
    "xquad_en": ("xquad_ru_en", _language("en")),
    "slavic_nli": ("slavic_nli", _by("src")),
}

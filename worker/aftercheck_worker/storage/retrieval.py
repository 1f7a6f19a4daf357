"""What an answer's retrieval gave, seen from outside: empty, all the same, or the same as everybody's (R28).

A corrupted index and an embedding provider that returns zero vectors leave no error: every question gets the same
passages, or none. Short hashes of question and passages let the exporter see it without reading any text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from aftercheck_schemas import Interaction

Result = Literal["", "ok", "empty", "identical"]


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes of one answer's retrieval.

    Attributes:
        result: "" when unknown.
        keys: hash of the question and hash of the set of passages, 8 hex digits each; empty without passages.
    """

    result: Result = ""
    keys: tuple[str, ...] = ()


def of(interaction: Interaction) -> Retrieval:
    """Look at the passages that came from retrieval: the retrieved ones, else the context of the prompt."""
    kinds = ("context", "knowledge_base")
    found = interaction.retrieved or tuple(passage for passage in interaction.passages if passage.kind in kinds)
    texts = [passage.text for passage in found]
    if not texts:
        return Retrieval(result="" if interaction.passages else "empty")
    same = len(texts) > 1 and len(set(texts)) == 1
    keys = (_hash([interaction.question]), _hash(sorted(set(texts))))
    return Retrieval(result="identical" if same else "ok", keys=keys)


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:8]

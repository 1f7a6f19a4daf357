"""The documents that operators work on, with a term index for topical distractors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .sources import english_pairs, read_set
from .window import sentences, terms

_SPACED = (
    (" , ", ", "),
    (" . ", ". "),
    (" .", "."),
    (" ; ", "; "),
    (" : ", ": "),
    (" 's", "'s"),
    (" 're", "'re"),
    ("`` ", '"'),
    (" ''", '"'),
    ("( ", "("),
    (" )", ")"),
    (" n't", "n't"),
    ("-LRB- ", "("),
    (" -RRB-", ")"),
    (" %", "%"),
    ("$ ", "$"),
    (" ?", "?"),
    (" !", "!"),
    (" -- ", " – "),
)


def detokenise(text: str) -> str:
    """Undo treebank spacing (`` a , b . '' -> "a, b.")."""
    for old, new in _SPACED:
        text = text.replace(old, new)
    return re.sub(r"\s+", " ", text).strip() if "\n" not in text else text


@dataclass(frozen=True, slots=True)
class Document:
    """A passage and its sentences."""

    text: str
    sentences: list[str]


def _is_version(document: Document, text: str, own: set[str]) -> bool:
    """The document is the text, part of it, or shares a sentence of six words or more with it."""
    return (
        document.text in text
        or text in document.text
        or any(len(s.split()) >= 6 and s.lower() in own for s in document.sentences)
    )


class Bank:
    """Documents and an index from rarer terms (2 to 60 documents) to document numbers."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.documents = [Document(t, s) for t in dict.fromkeys(texts) if len(s := sentences(t)) >= 2]
        self.index: dict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(self.documents):
            for term in set(terms(document.text)):
                self.index[term].append(number)
        for term in [t for t, found in self.index.items() if not 2 <= len(found) <= 60]:
            del self.index[term]

    def near(self, text: str, random: Random, count: int) -> list[Document]:
        """Documents that share a rarer term with the text, filled with random ones.

        Never the text itself nor a version of it: a document that has a sentence of the text may hold what an
        operator took out of it or changed in it.
        """
        own = {sentence.lower() for sentence in sentences(text)}
        keys = [term for term in set(terms(text)) if term in self.index]
        keys.sort()
        random.shuffle(keys)
        out: dict[str, Document] = {}
        for key in keys:
            document = self.documents[random.choice(self.index[key])]
            if not _is_version(document, text, own):
                out[document.text] = document
            if len(out) >= count // 2 + 1:
                break
        while len(out) < count:
            document = random.choice(self.documents)
            if not _is_version(document, text, own):
                out[document.text] = document
        return list(out.values())[:count]


def document_texts(data: Path) -> list[str]:
    """Passages of the clean document sets, English only; tables are left out."""
    out: list[str] = []
    for name in ("fever_nli_binary", "oanc_passage_qa", "factcg_cg2c", "qa_grounding_multi"):
        out += [detokenise(pair.premise) for pair in english_pairs(data, name)]
    for record in read_set(data, "ntrex_xling_synth"):
        source = str(record["src"])
        if source.startswith("ntrex_en-") and not source.endswith("_drop"):
            out.append(str(record["premise"]))
    for record in read_set(data, "wice_tokens"):
        lines = [str(line) for line in record["evidence"]] if isinstance(record["evidence"], list) else []
        body = [line for line in lines if not line.startswith("(meta data)") and len(line.split()) > 5]
        out += [" ".join(body[i : i + 8]) for i in range(0, min(len(body), 48), 8)]
    return [text for text in dict.fromkeys(out) if 25 <= len(text.split()) <= 400]

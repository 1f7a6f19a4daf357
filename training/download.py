"""Fetch the public, licence-clean sets and bring them into the form that `sources` reads.

    python -m training.download        (needs a network; AFTERCHECK_DATA names the target folder)

Every file comes from its authors' public repository at a fixed commit. Sets whose raw form needs a table or
token alignment of its own have a reader below; a set without one is listed and left to the user.
"""

from __future__ import annotations

import gzip
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .settings import load_settings

Record = dict[str, object]


@dataclass(frozen=True, slots=True)
class Source:
    """A public set: repository at a commit, its files, its licence, and how a file becomes records."""

    name: str
    repository: str
    commit: str
    files: tuple[str, ...]
    licence: str
    read: Callable[[str], Iterator[Record]]


def _record(name: str, premise: str, hypothesis: str, label: str, **more: object) -> Record:
    return {"premise": premise, "hypothesis": hypothesis, "label": label, "lang": "en", "src": name, **more}


def _fever_symmetric(text: str) -> Iterator[Record]:
    labels = {"SUPPORTS": "entailment", "REFUTES": "contradiction"}
    for line in text.splitlines():
        row = json.loads(line)
        label = row.get("gold_label") or row.get("label")
        if label in labels:
            yield _record(
                "fever_symmetric", row.get("evidence_sentence") or row["evidence"], row["claim"], labels[label]
            )


def _med(text: str) -> Iterator[Record]:
    lines = text.splitlines()
    head = lines[0].split("\t")
    for line in lines[1:]:
        row = dict(zip(head, line.split("\t"), strict=False))
        if row.get("gold_label") in ("entailment", "neutral"):
            yield _record("med", row["sentence1"], row["sentence2"], row["gold_label"])


def _folio(text: str) -> Iterator[Record]:
    labels = {"True": "entailment", "False": "contradiction", "Unknown": "neutral", "Uncertain": "neutral"}
    for line in text.splitlines():
        row = json.loads(line)
        premise = (
            " ".join(row["premises"]) if isinstance(row["premises"], list) else row["premises"].replace("\n", " ")
        )
        yield _record("folio", premise, row["conclusion"], labels[row["label"]])


SOURCES = (
    Source(
        "fever_symmetric",
        "TalSchuster/FeverSymmetric",
        "fa25d17e73",
        ("symmetric_v0.2/fever_symmetric_dev.jsonl", "symmetric_v0.2/fever_symmetric_test.jsonl"),
        "MIT; Wikipedia text CC BY-SA 3.0",
        _fever_symmetric,
    ),
    Source("med", "verypluming/MED", "860ba36ce9", ("MED.tsv",), "CC BY-SA 4.0", _med),
    Source(
        "folio",
        "Yale-LILY/FOLIO",
        "5d7bb84c7e",
        ("data/v0.0/folio-train.jsonl", "data/v0.0/folio-validation.jsonl"),
        "CC BY-SA 4.0",
        _folio,
    ),
)
MANUAL = {
    "fever_nli_binary": "salesforce/DocNLI, binary-FEVER-NLI (BSD-3; CC BY-SA 3.0)",
    "mnli_binary": "salesforce/DocNLI, binary-MNLI (BSD-3; OANC, CC BY, CC BY-SA)",
    "oanc_passage_qa": "nyu-mll/crowdsourcing-protocol-comparison, data (CC BY 4.0)",
    "infotabs": "infotabs/infotabs, data (Apache-2.0; read its datasheet first)",
    "faithdial_audit": "McGill-NLP/FaithDial, data-audit (MIT)",
    "factcg_cg2c": "derenlei/FactCG, data/training_stage*/CG2C_* (MIT)",
    "semiauto_nli_wiki": "nyu-mll/semi-automatic-nli, data/*wiki (CC BY-SA 3.0)",
    "wice_tokens": "ryokamoi/wice, data/non_supported_tokens/train.jsonl (ODC-BY)",
    "ntrex_xling_synth": "MicrosoftTranslator/NTREX, NTREX-128 (CC BY-SA 4.0); only its English passages are used",
    "qa_grounding_multi": "google-deepmind/xquad, xquad.en.json (CC BY-SA 4.0); only the XQuAD part is used",
}


def _fetch(source: Source, path: str) -> str:
    address = f"https://raw.githubusercontent.com/{source.repository}/{source.commit}/{path}"
    with urllib.request.urlopen(address, timeout=60) as reply:
        return str(reply.read().decode("utf-8"))


def main() -> None:
    """Fetch what has a reader; name what is left."""
    folder: Path = load_settings().data / "train"
    folder.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        with gzip.open(folder / f"{source.name}.jsonl.gz", "wt", encoding="utf-8") as out:
            for path in source.files:
                for record in source.read(_fetch(source, path)):
                    out.write(json.dumps(record, ensure_ascii=False) + "\n")
        print(f"{source.name}: {source.licence}")
    for name, place in MANUAL.items():
        print(f"by hand: {name} from {place}, as json lines premise, hypothesis, label, lang, src")


if __name__ == "__main__":
    main()

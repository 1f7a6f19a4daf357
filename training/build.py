"""Build the rows of every phase from the data folder into the work folder."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

import numpy as np

from .bank import Bank, detokenise, document_texts
from .context_window import BUDGETS
from .encode import Encoded, encode_rows, load_tokenizer
from .format import clean, segment_a
from .human import document_rows, sentence_rows, token_rows
from .model import backbone_folder
from .operators.record_claim import table_claim, venue_claim
from .row import Row, write_rows
from .settings import Settings, load_settings
from .sources import english_pairs
from .synth import Base, PairMaker, sentence_bases
from .window import select_window, sentences

HELD_SHARE = 4  # per cent of passages whose rows are kept for calibration
MAX_TOKENS = 384
CAPS = {"infotabs": 3000}  # rows of each label; its hypotheses alone tell much of the label


def is_held(passage: str) -> bool:
    """A fixed share of passages, chosen by their hash, is never trained on."""
    return int.from_bytes(hashlib.blake2b(passage.encode(), digest_size=4).digest(), "big") % 100 < HELD_SHARE


def short_rows(settings: Settings, random: Random) -> list[Row]:
    """Phase a: short sentence pairs, at most as many negatives as positives of each set, plus half."""
    out: list[Row] = []
    for name in ("mnli_binary", "semiauto_nli_wiki", "fever_symmetric", "med"):
        pairs = english_pairs(settings.data, name)
        random.shuffle(pairs)
        positive = [p for p in pairs if p.support]
        negative = [p for p in pairs if not p.support][: len(positive) * 5 // 4]
        out += [
            Row(segment_a([sentences(p.premise)]), clean(p.hypothesis), p.support, p.contradiction, name)
            for p in positive + negative
            if not is_held(p.premise)
        ]
    return out


def human_bases(settings: Settings) -> list[Base]:
    """Supported claims that people wrote, with their passages; semiauto_nli_wiki's are too often not supported."""
    out: list[Base] = []
    for name in (
        "fever_nli_binary",
        "factcg_cg2c",
        "mnli_binary",
        "fever_symmetric",
        "faithdial_audit",
    ):
        for pair in english_pairs(settings.data, name):
            claim = clean(detokenise(pair.hypothesis))
            if pair.support and 5 <= len(claim.split()) <= 40 and not claim.endswith("?"):
                out.append(Base(claim, detokenise(pair.premise), False))
    return out


def record_rows(settings: Settings, maker: PairMaker, random: Random) -> Iterator[Row]:
    """Endless twin pairs about invented records and about tables."""
    tables = list(dict.fromkeys(pair.premise for pair in english_pairs(settings.data, "infotabs")))
    while True:
        maker.pair += 1
        if random.random() < 0.7:
            passage, edit = venue_claim(random)
            name, held, budget = "record", random.random() < HELD_SHARE / 100, random.choice((60, 80, 110, 150))
        else:
            passage = random.choice(tables)
            made = table_claim(passage, random.sample(tables, 60), random)
            if made is None:
                continue
            edit, name, held, budget = made, "table", is_held(passage), random.choice(BUDGETS)
        question = (
            "Write an objective overview of the business." if name == "record" and random.random() < 0.3 else ""
        )
        for text, spans, support in ((edit.positive, [], 1), (edit.negative, edit.spans, 0)):
            yield Row(
                select_window(text, question, [passage], budget),
                text,
                support,
                -1 if support else edit.contradiction,
                name,
                question,
                pair=maker.pair,
                spans=spans,
                held=held,
            )


def synthetic_rows(
    settings: Settings, bank: Bank, maker: PairMaker, random: Random, count: int, topical: bool
) -> Iterator[Row]:
    """`count` rows: 39 % document sentences, 35 % human claims, 14 % removals (whole or partial), 12 % records.

    With `topical`, 3 % claims without their passage in place of as many document sentences.
    """
    people, documents = human_bases(settings), sentence_bases(bank, random)
    records = record_rows(settings, maker, random)
    made = 0
    while made < count:
        draw = random.random()
        if draw < 0.12:
            rows = list(islice(records, 2))
        else:
            base = random.choice(people) if draw < 0.47 else next(documents)
            held = is_held(base.passage)
            if 0.83 < draw <= 0.86 and topical:
                rows = maker.topical(base, held)
            elif draw > 0.95:
                rows = maker.removal(base, held)
            else:
                rows = maker.partial(base, held) if draw > 0.86 else maker.make(base, held)
        made += len(rows)
        yield from rows


def balance(rows: Iterable[Row], random: Random) -> list[Row]:
    """Lone rows of each set thinned so that neither label has more than 55 % of it."""
    by_set: dict[tuple[str, int], list[Row]] = defaultdict(list)
    out: list[Row] = []
    for row in rows:
        if row.pair >= 0:
            out.append(row)
        else:
            by_set[row.operator, row.support].append(row)
    for (name, support), found in by_set.items():
        limit = len(by_set.get((name, 1 - support), [])) * 11 // 9
        random.shuffle(found)
        out += found[: min(max(limit, 50), CAPS.get(name, len(found)))]
    return out


def mixed_rows(
    settings: Settings, seed: int, synthetic: int, sentence_share: float, natural: bool = False
) -> list[Row]:
    """A document phase: human documents, sentence pairs among distractors, synthetic twins.

    natural: fewer pairs where only the evidence differs, so that words new to the evidence keep their weight.
    """
    random = Random(seed)
    bank = Bank(document_texts(settings.data))
    maker = PairMaker(bank, random, mirrored=0.15 if natural else 0.4)
    print(f"{len(bank.documents)} documents", flush=True)
    lone = list(document_rows(settings.data, bank, random, is_held))
    lone += [row for row in sentence_rows(settings.data, bank, random, is_held) if random.random() < sentence_share]
    rows = list(synthetic_rows(settings, bank, maker, random, synthetic, natural))
    rows += token_rows(settings.data, random, maker.pair + 1, is_held)
    rows += balance(lone, random)
    return [row for row in rows if row.window]


def store(settings: Settings, name: str, rows: list[Row]) -> None:
    """Write a phase: the rows as json lines, and encoded without the held ones."""
    train = [row for row in rows if not row.held]
    write_rows(settings.rows / f"{name}.jsonl.gz", rows)
    encoded = encode_rows(load_tokenizer(backbone_folder()), train, MAX_TOKENS)
    part = settings.rows / f"{name}.part.npz"
    encoded.save(part)
    part.replace(settings.rows / f"{name}.npz")
    counts = Counter((row.operator, row.support) for row in train)
    print(
        name,
        len(train),
        f"supported {encoded.support.mean():.3f} tokens {len(encoded.ids) / len(train):.1f}",
        json.dumps({f"{k[0]}:{k[1]}": v for k, v in sorted(counts.items())}),
        flush=True,
    )


def thin(settings: Settings, source: str, name: str, tokens: int, share: float) -> None:
    """Phase `name`: the rows of `source` up to `tokens` long and a share of the longer ones, for a busy machine."""
    data = Encoded.load(settings.rows / f"{source}.npz")
    lengths, draw = np.diff(data.offsets), np.random.default_rng(settings.seed)
    longest: dict[int, int] = defaultdict(int)
    for pair, length in zip(data.pair.tolist(), lengths.tolist(), strict=True):
        longest[pair] = max(longest[pair], length)
    lucky = {pair: bool(draw.random() < share) for pair in longest}
    kept = [
        i
        for i, (pair, length) in enumerate(zip(data.pair.tolist(), lengths.tolist(), strict=True))
        if (longest[pair] <= tokens or lucky[pair] if pair >= 0 else length <= tokens or draw.random() < share)
    ]
    chosen = data.select(np.array(kept, np.int64))
    chosen.save(settings.rows / f"{name}.npz")
    print(
        name,
        len(chosen),
        f"supported {chosen.support.mean():.3f} tokens {len(chosen.ids) / len(chosen):.1f}",
        flush=True,
    )


def build(settings: Settings, wanted: list[str]) -> None:
    """Build the named phases."""
    settings.rows.mkdir(parents=True, exist_ok=True)
    if "a" in wanted:
        store(settings, "a", short_rows(settings, Random(settings.seed)))
    if "b" in wanted:
        store(settings, "b", mixed_rows(settings, settings.seed + 1, 44_000, 0.35))
    if "c" in wanted:
        store(settings, "c", mixed_rows(settings, settings.seed + 2, 60_000, 0.35))
    for name, seed, synthetic in (("e", 3, 34_000), ("f", 4, 60_000)):
        if name in wanted:
            store(settings, name, mixed_rows(settings, settings.seed + seed, synthetic, 0.75, natural=True))
            thin(settings, name, name, 176, 0.35)
    if "d" in wanted:
        thin(settings, "c", "d", 144, 0.2)


def main() -> None:
    """Build the phases named on the command line, or all."""
    build(load_settings(), sys.argv[1:] or ["a", "b", "c", "d", "e", "f"])


if __name__ == "__main__":
    main()

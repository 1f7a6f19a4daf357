"""The evidence window of one claim, cut by BM25 over sentences. Pure python, used by training and product.

Top sentences are taken greedily; a term that a taken sentence covers weighs less for the next one, so that
a claim of several facts finds a sentence for each. Neighbours (+-1) follow while the budget lasts. The
result keeps document order and marks every jump with GAP.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from .format import clean, segment_a
from .record import record_lines

K1 = 1.2
B = 0.75
QUESTION_WEIGHT = 0.3
COVERED_WEIGHT = 0.35
MAX_UNIT_WORDS = 60
DEFAULT_BUDGET_WORDS = 90

_BREAK = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[A-Z0-9])|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Ltd|Co|Corp|vs|No|Gen|Sen|Rep|Gov|Lt|Col|Sgt|"
    r"Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|e\.g|i\.e|U\.S|a\.m|p\.m)|\b[A-Z])\.$"
)
_TOKEN = re.compile(r"[^\W_]+(?:[.,:]\d+)*", re.UNICODE)
_STOP_WORDS = (
    "a an the of to in on at by for with from as is are was were be been being am and or but if then than that this "
    "these those it its he she they them his her their we you i my your our which who whom what when where how why "
    "do does did have has had will would can could should may might not no so such into about over also there"
)
_STOP = frozenset(_STOP_WORDS.split())


def sentences(text: str) -> list[str]:
    """Split prose into sentences (abbreviations kept, over-long units cut); records into `key: value` lines."""
    lines = record_lines(text)
    if lines is not None:
        return [piece for line in lines for piece in _prose(line)]
    return _prose(text)


def _prose(text: str) -> list[str]:
    out: list[str] = []
    for raw in _BREAK.split(text):
        piece = clean(raw)
        if not piece:
            continue
        if out and _ABBREVIATION.search(out[-1]):
            out[-1] = f"{out[-1]} {piece}"
        else:
            out.append(piece)
    return [part for sentence in out for part in _cut(sentence)]


def _cut(sentence: str) -> list[str]:
    words = sentence.split()
    if len(words) <= MAX_UNIT_WORDS:
        return [sentence]
    return [" ".join(words[i : i + MAX_UNIT_WORDS]) for i in range(0, len(words), MAX_UNIT_WORDS)]


def terms(text: str) -> list[str]:
    """Content terms: lower case, stop words dropped, words cut to a six-letter stem without plural s."""
    found = [token for token in _TOKEN.findall(text.lower()) if token not in _STOP]
    return [_stem(token) if token.isalpha() else token for token in found]


def _stem(word: str) -> str:
    if len(word) > 6:
        return word[:6]
    return word.removesuffix("s") if len(word) > 3 else word


def _weights(claim: str, question: str, units: Sequence[Counter[str]]) -> dict[str, float]:
    """Query term -> idf times its weight; terms that no unit holds are left out."""
    query = dict.fromkeys(terms(question), QUESTION_WEIGHT)
    query.update(dict.fromkeys(terms(claim), 1.0))
    count = len(units)
    out: dict[str, float] = {}
    for term, weight in query.items():
        found = sum(1 for unit in units if term in unit)
        if found:
            out[term] = weight * math.log(1 + (count - found + 0.5) / (found + 0.5))
    return out


def _score(unit: Counter[str], weights: dict[str, float], mean_length: float) -> float:
    norm = K1 * (1 - B + B * sum(unit.values()) / mean_length)
    return sum(w * unit[t] * (K1 + 1) / (unit[t] + norm) for t, w in weights.items() if t in unit)


def rank_units(claim: str, question: str, units: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """Greedy, coverage-aware order: up to `limit` pairs (index of unit, score when it was taken)."""
    bags = [Counter(terms(unit)) for unit in units]
    mean_length = max(1.0, sum(sum(bag.values()) for bag in bags) / max(1, len(bags)))
    weights = _weights(claim, question, bags)
    left = set(range(len(units)))
    taken: list[tuple[int, float]] = []
    while left and len(taken) < limit:
        best = min(left, key=lambda i: (-_score(bags[i], weights, mean_length), i))
        score = _score(bags[best], weights, mean_length)
        if score <= 0:
            break
        left.discard(best)
        taken.append((best, score))
        for term in bags[best]:
            if term in weights:
                weights[term] *= COVERED_WEIGHT
    return taken


def _choose(order: Sequence[int], owner: Sequence[int], lengths: Sequence[int], budget: int) -> set[int]:
    """Spend the budget (words): each ranked unit, then its neighbours inside the same passage."""
    chosen: set[int] = set()
    spent = 0

    def take(index: int) -> None:
        nonlocal spent
        if index not in chosen and (not chosen or spent + lengths[index] <= budget):
            chosen.add(index)
            spent += lengths[index]

    for depth, index in enumerate(order):
        take(index)
        if depth < 4:
            for near in (index - 1, index + 1):
                if 0 <= near < len(owner) and owner[near] == owner[index]:
                    take(near)
    for index in range(len(owner)):
        take(index)
    return chosen


def select_runs(
    claim: str, question: str, passages: Sequence[str], budget_words: int = DEFAULT_BUDGET_WORDS, top: int = 12
) -> list[list[str]]:
    """Runs of adjacent sentences, in document order, within `budget_words` (at least one sentence)."""
    units: list[str] = []
    owner: list[int] = []
    for number, passage in enumerate(passages):
        found = sentences(passage)
        units += found
        owner += [number] * len(found)
    lengths = [len(unit.split()) for unit in units]
    if sum(lengths) <= budget_words:
        chosen = set(range(len(units)))
    else:
        order = [index for index, _ in rank_units(claim, question, units, top)] or [0]
        chosen = _choose(order, owner, lengths, budget_words)
    runs: list[list[str]] = []
    last = -2
    for index in sorted(chosen):
        if index != last + 1 or owner[index] != owner[last]:
            runs.append([])
        runs[-1].append(units[index])
        last = index
    return runs


def select_window(
    claim: str,
    question: str,
    passages: Sequence[str],
    budget_words: int = DEFAULT_BUDGET_WORDS,
    title: str = "",
) -> str:
    """Segment A for one claim: see `select_runs`; empty when there is no evidence text."""
    return segment_a(select_runs(claim, question, passages, budget_words), title)

"""Evidence windows for claims: BM25 over sentences, coverage-aware, +-1 neighbours, fused in document order (R14).

The claim is never cut; the evidence is windowed. For English the windows equal those that the verifier was trained
on (`training/window.py`). With an encoder the two rankings are fused by reciprocal rank (k = 60).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from aftercheck_schemas.interaction import Passage
from aftercheck_worker.models.base import Encoder
from aftercheck_worker.text.passages import Unit, units
from aftercheck_worker.text.segments import GAP
from aftercheck_worker.text.tokens import terms

K1: Final = 1.2
B: Final = 0.75
QUESTION_WEIGHT: Final = 0.3
COVERED_WEIGHT: Final = 0.35
BUDGET_WORDS: Final = 90
TOP: Final = 12
NEIGHBOUR_DEPTH: Final = 4
RRF_K: Final = 60


class Text(Protocol):
    """Anything with an id and a text: a source of the pool, a passage."""

    @property
    def source_id(self) -> str:
        """Id of the source."""
        ...

    @property
    def text(self) -> str:
        """The whole text."""
        ...


class EvidenceSource(Protocol):
    """A knowledge base outside the trace (R8). Its evidence is marked and never mixed into faithfulness."""

    def search(self, query: str, limit: int) -> Sequence[Passage]:
        """Return up to `limit` passages of kind `knowledge_base`, best first."""
        ...

    def lookup(self, source_id: str) -> Passage | None:
        """Return the passage of an id, None when there is none."""
        ...


class Piece(msgspec.Struct, frozen=True):
    """One unit inside a window: `source` is its index in the pool, offsets count in that source's text."""

    source: int
    start: int
    end: int
    text: str


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A fused premise for one claim.

    Attributes:
        text: runs joined by spaces, with `[unused2]` at every jump: what the verifier reads.
        pieces: the units in document order.
        relevance: 0..1, share of the claim's term weight that the window holds (unknown terms weigh most).
        score: BM25 of its best unit, >= 0, comparable inside one claim only.
        best: indices into `pieces`, the ones that the claim ranks highest first.
    """

    text: str
    pieces: tuple[Piece, ...]
    relevance: float
    score: float = 0.0
    best: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """Indices of the sources inside, ascending."""
        return tuple(sorted({piece.source for piece in self.pieces}))


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for: the claim with what it needs to be understood, and the question."""

    claim: str
    question: str = ""


class _Posting(NamedTuple):
    """Units that hold a term, how often, and count + length norm of each."""

    places: npt.NDArray[np.intp]
    counts: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]


def _postings(bags: Sequence[Counter[str]], norms: npt.NDArray[np.float64]) -> dict[str, _Posting]:
    places: dict[str, list[int]] = {}
    counts: dict[str, list[float]] = {}
    for place, bag in enumerate(bags):
        for term, count in bag.items():
            places.setdefault(term, []).append(place)
            counts.setdefault(term, []).append(float(count))
    out: dict[str, _Posting] = {}
    for term, found in places.items():
        at, many = np.array(found, dtype=np.intp), np.array(counts[term])
        out[term] = _Posting(at, many, many + norms[at])
    return out


class Index:
    """Units of a pool with their term counts; built once per answer, asked once per claim.

    `operations` counts unit scorings, so that a test can see that cost grows linearly.
    """

    def __init__(self, texts: Sequence[Text], encoder: Encoder | None = None) -> None:
        self.units: list[Unit] = []
        self.owner: list[int] = []
        for number, text in enumerate(texts):
            found = units(text.text)
            self.units += found
            self.owner += [number] * len(found)
        self.bags = [Counter(terms(unit.text)) for unit in self.units]
        self.lengths = [len(unit.text.split()) for unit in self.units]
        self.words = sum(self.lengths)
        sizes = [sum(bag.values()) for bag in self.bags]
        mean = max(1.0, sum(sizes) / max(1, len(self.bags)))
        norms = K1 * (1 - B + B * np.array(sizes, dtype=np.float64) / mean)
        self.postings = _postings(self.bags, norms)
        self.operations = 0
        self._encoder = encoder
        self._vectors: Sequence[Sequence[float]] = (
            encoder.encode([unit.text for unit in self.units]) if encoder is not None and self.units else []
        )

    def windows(
        self, queries: Sequence[Query], *, budget_words: int = BUDGET_WORDS, count: int = 1
    ) -> list[tuple[Window, ...]]:
        """Return the windows of each query, best first.

        Args:
            queries: claims with their questions.
            budget_words: words of one window; at least one unit is taken.
            count: at most so many windows per claim; each has the best units that the earlier ones left.

        Returns:
            One tuple per query, empty when the pool holds no text.
        """
        dense = self._dense(queries)
        return [
            self._of_query(query, ranks, budget_words, count) for query, ranks in zip(queries, dense, strict=True)
        ]

    def _of_query(self, query: Query, dense: Sequence[int], budget: int, count: int) -> tuple[Window, ...]:
        out: list[Window] = []
        free = set(range(len(self.units)))
        for number in range(count):
            if not free or (number and not self._candidates(query, free)):
                break
            chosen, ranked = self._choose(query, dense, budget, free)
            if not chosen:
                break
            out.append(self._fused(query, sorted(chosen), ranked))
            free -= chosen
        return tuple(out)

    def _candidates(self, query: Query, free: set[int]) -> bool:
        return any(
            p in free
            for term in terms(query.claim)
            if term in self.postings
            for p in self.postings[term].places.tolist()
        )

    def _choose(
        self, query: Query, dense: Sequence[int], budget: int, free: set[int]
    ) -> tuple[set[int], list[tuple[int, float]]]:
        ranked = self.rank(query, TOP, free)
        if self.words <= budget or (len(free) < len(self.units) and sum(self.lengths[p] for p in free) <= budget):
            return set(free), ranked
        order = _fuse([place for place, _ in ranked], [place for place in dense if place in free])
        return self._spend(order or [min(free)], budget, free), ranked

    def rank(self, query: Query, limit: int, free: set[int] | None = None) -> list[tuple[int, float]]:
        """Greedy, coverage-aware BM25: up to `limit` pairs (unit, score when it was taken).

        A term that a taken unit holds weighs less for the next. Ties go to the earlier unit.
        """
        weights = self._weights(query)
        taken: list[tuple[int, float]] = []
        if not weights:
            return taken
        closed = np.ones(len(self.units), dtype=np.bool_)
        closed[list(free) if free is not None else slice(None)] = False
        while len(taken) < limit:
            scores = self._scores(weights)
            scores[closed] = 0.0
            best = int(scores.argmax())
            if scores[best] <= 0:
                break
            taken.append((best, float(scores[best])))
            closed[best] = True
            for term in self.bags[best]:
                if term in weights:
                    weights[term] *= COVERED_WEIGHT
        return taken

    def _weights(self, query: Query) -> dict[str, float]:
        wanted = dict.fromkeys(terms(query.question), QUESTION_WEIGHT)
        wanted.update(dict.fromkeys(terms(query.claim), 1.0))
        return {term: weight * self._idf(term) for term, weight in wanted.items() if term in self.postings}

    def _idf(self, term: str) -> float:
        found = len(self.postings[term].places) if term in self.postings else 0
        return math.log(1 + (len(self.units) - found + 0.5) / (found + 0.5))

    def _scores(self, weights: dict[str, float]) -> npt.NDArray[np.float64]:
        scores = np.zeros(len(self.units))
        for term, weight in weights.items():
            held = self.postings[term]
            self.operations += len(held.places)
            scores[held.places] += weight * held.counts * (K1 + 1) / held.spread
        return scores

    def _spend(self, order: Sequence[int], budget: int, free: set[int]) -> set[int]:
        """Spend the budget: each ranked unit, then its neighbours in the same source, then the rest in order."""
        chosen: set[int] = set()
        spent = 0

        def take(place: int) -> None:
            nonlocal spent
            if place in free and place not in chosen and (not chosen or spent + self.lengths[place] <= budget):
                chosen.add(place)
                spent += self.lengths[place]

        for depth, place in enumerate(order):
            take(place)
            if depth < NEIGHBOUR_DEPTH:
                for near in (place - 1, place + 1):
                    if 0 <= near < len(self.owner) and self.owner[near] == self.owner[place]:
                        take(near)
        for place in range(len(self.units)):
            if spent >= budget:
                break
            take(place)
        return chosen

    def _fused(self, query: Query, places: Sequence[int], ranked: Sequence[tuple[int, float]]) -> Window:
        runs: list[list[int]] = []
        for place in places:
            if runs and place == runs[-1][-1] + 1 and self.owner[place] == self.owner[runs[-1][-1]]:
                runs[-1].append(place)
            else:
                runs.append([place])
        text = f" {GAP} ".join(" ".join(self.units[place].text for place in run) for run in runs)
        pieces = tuple(
            Piece(self.owner[p], self.units[p].start, self.units[p].end, self.units[p].text) for p in places
        )
        order = {place: number for number, place in enumerate(places)}
        return Window(
            text=text,
            pieces=pieces,
            relevance=self._relevance(query, places),
            score=ranked[0][1] if ranked else 0.0,
            best=tuple(order[place] for place, _ in ranked if place in order),
        )

    def _relevance(self, query: Query, places: Sequence[int]) -> float:
        wanted = set(terms(query.claim))
        total = sum(self._idf(term) for term in wanted)
        held = {term for place in places for term in self.bags[place]} & wanted
        return min(1.0, sum(self._idf(term) for term in held) / total) if total else 0.0

    def _dense(self, queries: Sequence[Query]) -> list[list[int]]:
        if self._encoder is None or not self.units or not queries:
            return [[] for _ in queries]
        out: list[list[int]] = []
        for vector in self._encoder.encode([query.claim for query in queries]):
            self.operations += len(self.units)
            near = [sum(a * b for a, b in zip(vector, other, strict=True)) for other in self._vectors]
            out.append(sorted(range(len(near)), key=lambda place: (-near[place], place))[:TOP])
        return out


def _fuse(sparse: Sequence[int], dense: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion; the sparse order alone when there is no dense one."""
    if not dense:
        return list(sparse)
    score: dict[int, float] = {}
    for ranking in (sparse, dense):
        for rank, place in enumerate(ranking, 1):
            score[place] = score.get(place, 0.0) + 1.0 / (RRF_K + rank)
    return sorted(score, key=lambda place: (-score[place], place))[: max(TOP, len(sparse))]


def spans(window: Window, texts: Sequence[Text]) -> list[tuple[str, int, int]]:
    """Return (source id, start, end) of each run of a window, verbatim ranges of the sources."""
    out: list[tuple[int, int, int]] = []
    for piece in window.pieces:
        if out and out[-1][0] == piece.source and piece.start >= out[-1][1] and piece.start - out[-1][2] <= 3:
            out[-1] = (piece.source, out[-1][1], max(out[-1][2], piece.end))
        else:
            out.append((piece.source, piece.start, piece.end))
    return [(texts[source].source_id, start, end) for source, start, end in out]


class PassageStore:
    """An `EvidenceSource` over passages in memory; every hit is marked `knowledge_base`."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)
        self._by_id = {passage.source_id: passage for passage in reversed(self._passages)}
        self._index = Index(self._passages)

    def search(self, query: str, limit: int) -> Sequence[Passage]:
        """Return the passages of the best units, best first."""
        places = dict.fromkeys(
            self._index.owner[unit] for unit, _ in self._index.rank(Query(claim=query), max(TOP, limit))
        )
        return [
            msgspec.structs.replace(self._passages[place], kind="knowledge_base") for place in list(places)[:limit]
        ]

    def lookup(self, source_id: str) -> Passage | None:
        """Return the first passage of that id; its kind is what it was stored as."""
        return self._by_id.get(source_id)

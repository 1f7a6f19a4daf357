"""Synthetic twin pairs: an operator applied to a supported claim, both sides through the same disturbances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from .bank import Bank
from .context_window import BUDGETS, cut
from .disturb import disturb, lower_first, surface_noise
from .format import GAP, clean
from .operators.addition import addition, list_item, sentence_addition
from .operators.edit import Context, Edit, Operator, stem_point
from .operators.entity import entity, exchange
from .operators.number import date, number
from .operators.polarity import antonym, negation, quantifier
from .operators.splice import splice
from .row import Row
from .window import sentences, terms

OPERATORS: tuple[tuple[str, Operator, float], ...] = (
    ("addition", addition, 7),
    ("sentence_addition", sentence_addition, 5),
    ("list_item", list_item, 18),
    ("number", number, 13),
    ("date", date, 6),
    ("entity", entity, 11),
    ("exchange", exchange, 9),
    ("splice", splice, 40),
    ("antonym", antonym, 13),
    ("negation", negation, 2.5),
    ("quantifier", quantifier, 9),
)
_ASK = (
    "What does the text say about this?",
    "Summarize the following article.",
    "Tell me about {}.",
    "What is known about {}?",
    "Write a short summary.",
    "Answer the question from the passages: what about {}?",
    "Who or what is {}?",
)


@dataclass(frozen=True, slots=True)
class Base:
    """A supported claim and its passage; copied says that the claim is a sentence of the passage."""

    claim: str
    passage: str
    copied: bool
    previous: str = ""


def copied(claim: str, window: str) -> bool:
    """The claim stands verbatim in the window."""
    return claim.lower().rstrip(" .") in window.lower()


def keeps_difference(plain: str, other: str, told: str) -> bool:
    """The words of `plain` that differ from `other` (between their common head and tail) still stand in `told`."""
    mine, theirs = plain.split(), other.split()
    while mine and theirs and mine[0] == theirs[0]:
        mine, theirs = mine[1:], theirs[1:]
    while mine and theirs and mine[-1] == theirs[-1]:
        mine, theirs = mine[:-1], theirs[:-1]
    changed = " ".join(mine).strip(".,;:()'\"")
    return bool(changed) and changed in told


def _question(claim: str, random: Random) -> str:
    words = [w for w in claim.split()[1:] if w[:1].isupper()] or claim.split()[:2]
    return random.choice(_ASK).format(words[0].strip(",.()")) if random.random() < 0.3 else ""


def _previous(base: Base, other: str, random: Random) -> str:
    """Mostly nothing; else the true previous sentence, or a sentence that is no evidence."""
    draw = random.random()
    if draw < 0.7:
        return ""
    return other if draw < 0.8 or not base.previous else base.previous


class PairMaker:
    """Makes rows from bases; numbers the twin pairs. mirrored: share of copied bases whose passage is edited."""

    def __init__(self, bank: Bank, random: Random, first_pair: int = 0, mirrored: float = 0.4) -> None:
        self.bank, self.random, self.pair, self.mirrored = bank, random, first_pair, mirrored

    def rows(self, base: Base, edit: Edit, name: str, distractors: Sequence[str], held: bool) -> list[Row]:
        """Both sides of one edit, each with the window that its own claim retrieves."""
        random, out = self.random, []
        self.pair += 1
        budget = random.choice(BUDGETS)
        question, noisy = _question(base.claim, random), random.random() < 0.15
        foreign = random.choice(sentences(distractors[0])) if distractors else ""
        previous = _previous(base, foreign, random)
        for plain, spans, support in ((edit.positive, [], 1), (edit.negative, edit.spans, 0)):
            text, shift = surface_noise(plain, random) if noisy else (plain, 0)
            window = cut(text, question, base.passage, distractors, random, budget, support == 1)
            if window is None or (support and copied(text, window) and random.random() > 0.08):
                return []
            before = previous
            if not support and random.random() < 0.04:
                before = disturb(edit.negative, random)  # a repeated falsehood is no evidence
            out.append(
                Row(
                    window=window,
                    claim=clean(text),
                    support=support,
                    contradiction=-1 if support else edit.contradiction,
                    operator=name,
                    question=question,
                    previous=before,
                    pair=self.pair,
                    spans=[(a + shift, b + shift) for a, b in spans],
                    held=held,
                )
            )
        return out

    def make(self, base: Base, held: bool) -> list[Row]:
        """One pair from one base by a drawn operator that applies; empty when none of five does."""
        random = self.random
        mirrored = base.copied and random.random() < self.mirrored
        claim = base.claim if mirrored else disturb(base.claim, random, 4 if base.copied else 1)
        near = self.bank.near(base.passage, random, 14)
        context = Context(sentences(base.passage), [s for d in near for s in d.sentences])
        distractors = [d.text for d in near[: random.choice([0, 0, 1, 2, 3])]]
        for name, operator, _ in random.choices(OPERATORS, weights=[w for _, _, w in OPERATORS], k=5):
            edit = operator(claim, context, random)
            if edit is None or edit.negative == edit.positive or edit.negative in base.passage:
                continue
            if mirrored:
                return self.mirror(base, edit, name, distractors, held)
            if base.copied and copied(edit.positive, base.passage):
                positive = disturb(edit.positive, random, 8)
                if copied(positive, base.passage) and random.random() > 0.12:
                    continue
                edit = Edit(edit.negative, edit.spans, edit.contradiction, positive)
            return self.rows(base, edit, name, distractors, held)
        return []

    def mirror(self, base: Base, edit: Edit, name: str, distractors: Sequence[str], held: bool) -> list[Row]:
        """One claim against two passages, the true one and one whose sentence was edited: only evidence tells."""
        random = self.random
        altered = base.passage.replace(base.claim, edit.negative)
        if altered == base.passage:
            return []
        original = edit.contradiction == 1 and random.random() < 0.5
        text = disturb(base.claim if original else edit.negative, random, 6)
        if not keeps_difference(
            base.claim if original else edit.negative, edit.negative if original else base.claim, text
        ):
            return []  # the claim lost what differs, so both passages support it
        budget, question = random.choice(BUDGETS), _question(base.claim, random)
        agreeing, other = (base.passage, altered) if original else (altered, base.passage)
        right = cut(text, question, agreeing, distractors, random, budget, True)
        wrong = cut(text, question, other, distractors, random, budget, False)
        if right is None or wrong is None or (copied(text, right) and random.random() > 0.1):
            return []
        changed = [edit.negative[a:b] for a, b in edit.spans]
        spans = None
        if not original and all(text.count(part) == 1 for part in changed):
            spans = [(text.index(part), text.index(part) + len(part)) for part in changed]
        self.pair += 1
        shared: dict[str, Any] = {
            "claim": clean(text),
            "operator": f"{name}_mirror",
            "question": question,
            "pair": self.pair,
            "held": held,
        }
        return [
            Row(window=right, support=1, contradiction=-1, spans=[], **shared),
            Row(window=wrong, support=0, contradiction=edit.contradiction, spans=spans, **shared),
        ]

    def topical(self, base: Base, held: bool) -> list[Row]:
        """One claim against its own passage among others, and against those others alone: new words are a cue."""
        random = self.random
        near = [d.text for d in self.bank.near(base.passage, random, 6)]
        wanted = set(terms(base.claim))
        if len(wanted) < 4 or len(wanted & set(terms(" ".join(near)))) > 0.6 * len(wanted):
            return []
        text, budget, question = disturb(base.claim, random, 6), random.choice(BUDGETS), _question(base.claim, random)
        full = cut(text, question, base.passage, near[:3], random, budget, True)
        less = cut(text, question, near[0], near[1:4], random, budget, False)
        if full is None or not less or (copied(text, full) and random.random() > 0.15):
            return []
        self.pair += 1
        shared: dict[str, Any] = {
            "claim": clean(text),
            "operator": "topical",
            "question": question,
            "pair": self.pair,
            "held": held,
        }
        return [
            Row(window=full, support=1, contradiction=-1, spans=[], **shared),
            Row(window=less, support=0, contradiction=0, spans=None, **shared),
        ]

    def removal(self, base: Base, held: bool) -> list[Row]:
        """The passage without the sentences that restate the claim, against the whole passage."""
        return self._without(base.claim, base.claim, base, "removal", held)

    def partial(self, base: Base, held: bool) -> list[Row]:
        """Two sentences of the passage told as one claim; the negative's passage lacks the second."""
        found = sentences(base.passage)
        place = found.index(base.claim) if base.claim in found else -1
        near = [
            s
            for i, s in enumerate(found)
            if i != place
            and abs(i - place) <= 3
            and 5 <= len(s.split()) <= 22
            and s.endswith(".")
            and s[:1].isupper()
        ]
        if place < 0 or not near or len(base.claim.split()) > 24:
            return []
        second = self.random.choice(near)
        first, last = (
            (stem_point(base.claim), second) if found.index(second) > place else (stem_point(second), base.claim)
        )
        joint = self.random.choice([", and ", ", while ", ". ", "; ", " and "])
        told = f"{first}{joint}{last if joint == '. ' else lower_first(last)}"
        return self._without(told, second, base, "partial", held)

    def _without(self, claim: str, missing: str, base: Base, name: str, held: bool) -> list[Row]:
        """`claim` against the passage, and against the passage without the sentences that restate `missing`."""
        random, wanted, found = self.random, set(terms(missing)), sentences(base.passage)
        kept = [s for s in found if len(wanted & set(terms(s))) < 0.5 * len(wanted)]
        rest = " ".join(kept)
        if (
            len(wanted) < 4
            or not kept
            or len(kept) == len(found)
            or len(wanted & set(terms(rest))) > 0.6 * len(wanted)
        ):
            return []
        distractors = [d.text for d in self.bank.near(base.passage, random, 4)[: random.choice([0, 1, 2, 3])]]
        budget, text = random.choice(BUDGETS), disturb(claim, random, 6)
        question = _question(base.claim, random)
        full = cut(text, question, base.passage, distractors, random, budget, True)
        less = cut(text, question, rest, distractors, random, budget, False)
        if full is None or not less or (copied(text, full) and random.random() > 0.1):
            return []
        if any(len(wanted & set(terms(s))) >= 0.5 * len(wanted) for s in sentences(less.replace(GAP, "\n"))):
            return []  # a distractor restates it
        self.pair += 1
        shared: dict[str, Any] = {
            "claim": clean(text),
            "operator": name,
            "question": question,
            "pair": self.pair,
            "held": held,
        }
        return [
            Row(window=full, support=1, contradiction=-1, spans=[], **shared),
            Row(window=less, support=0, contradiction=0, spans=None, **shared),
        ]


def sentence_bases(bank: Bank, random: Random) -> Iterator[Base]:
    """Endless sentences of documents, 8 to 38 words, with what stands before them."""
    while True:
        document = random.choice(bank.documents)
        place = random.randrange(len(document.sentences))
        sentence = document.sentences[place]
        if 8 <= len(sentence.split()) <= 38 and sentence[:1].isupper() and sentence[-1] in '."':
            yield Base(sentence, document.text, True, document.sentences[place - 1] if place else "")

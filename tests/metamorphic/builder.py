"""Flips and their label-preserving twins: 500 + 500 claims in five languages from templates of our own.

`build(seed)` is deterministic; `python -m tests.metamorphic.measure` prints how many an engine gets right.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from aftercheck_worker.text.lexicon import LANGUAGES, Language, load

OPERATORS: Final = ("negation", "number", "unit", "date", "entity", "quantifier")
PAIRS: Final = 500
_FILE: Final = Path(__file__).with_name("templates.toml")


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A passage, a claim turned against it, and a claim changed as much that it still supports."""

    language: Language
    operator: str
    passage: str
    flip: str
    twin: str


def build(seed: int = 20261130, count: int = PAIRS) -> list[Pair]:
    """Return `count` pairs, spread evenly over languages and operators."""
    raw = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    rng = random.Random(seed)
    cells: list[tuple[Language, str]] = [(language, operator) for language in LANGUAGES for operator in OPERATORS]
    return [
        _pair(raw[language], language, operator, index // len(cells), rng)
        for index, (language, operator) in _cycle(cells, count)
    ]


def _cycle(cells: list[tuple[Language, str]], count: int) -> Iterator[tuple[int, tuple[Language, str]]]:
    for index in range(count):
        yield index, cells[index % len(cells)]


def _pair(own: dict[str, list[str]], language: Language, operator: str, turn: int, rng: random.Random) -> Pair:
    templates: list[list[str]] = own[operator]  # type: ignore[assignment]
    premise, flip, twin = templates[turn % len(templates)]
    name, other = rng.sample(own["names"], 2)
    slots = {"a": name, "b": other, **_numbers(language, rng), **_dates(language, rng)}
    around = rng.sample(own["distractors"], 2)
    place = rng.randrange(3)
    sentences = [*around[:place], premise.format(**slots), *around[place:]]
    return Pair(
        language=language,
        operator=operator,
        passage=" ".join(sentences),
        flip=flip.format(**slots),
        twin=twin.format(**slots),
    )


def _numbers(language: Language, rng: random.Random) -> dict[str, str]:
    value = rng.choice([12, 14, 18, 20, 30, 40, 1200, 2500, 4800, 12500])
    other = value + rng.choice([1, 2, 5, 10]) * (100 if value > 1000 else 1)
    small = rng.randrange(2, 9)
    return {
        "n": _grouped(value, language, plain=value < 1000)
        if value > 40
        else str(value if rng.random() < 2 else small),
        "m": _grouped(other, language, plain=other < 1000),
        "s": _spelled(value, language),
        "p": str(value),
        "k": _grouped(value * 1000, language, plain=False),
        "h": _grouped(value * 24, language, plain=True),
    }


def _grouped(value: int, language: Language, *, plain: bool) -> str:
    if plain:
        return str(value)
    mark = {"en": ",", "de": "."}.get(language, " ")
    return f"{value:,}".replace(",", mark)


def _spelled(value: int, language: Language) -> str:
    """The number in words where the lexicon has one, otherwise without grouping."""
    words = {number: word for word, number in reversed(load(language).numbers.items())}
    return words.get(value, str(value))


def _dates(language: Language, rng: random.Random) -> dict[str, str]:
    year, month, day = rng.randrange(1950, 2025), rng.randrange(1, 13), rng.randrange(1, 29)
    far = (month + rng.randrange(1, 11) - 1) % 12 + 1
    return {
        "d": _date(language, year, month, day),
        "f": _date(language, year, far, day),
        "e": f"{year}-{month:02}-{day:02}",
    }


def _date(language: Language, year: int, month: int, day: int) -> str:
    names: dict[int, str] = {}
    for word, number in load(language).months.items():
        names.setdefault(number, word)
    name = names[month]
    if language == "en":
        return f"{name.capitalize()} {day}, {year}"
    if language == "de":
        return f"{day}. {name.capitalize()} {year}"
    return f"{day} {name} {year} {'roku' if language == 'pl' else 'року' if language == 'uk' else 'года'}"

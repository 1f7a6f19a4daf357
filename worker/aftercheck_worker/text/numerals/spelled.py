"""Quantities written in words: `twenty-five`, `fünfundzwanzig`, `dwadzieścia pięć`."""

from __future__ import annotations

from aftercheck_worker.text.lexicon import Language, load
from aftercheck_worker.text.numerals.quantity import Quantity
from aftercheck_worker.text.numerals.unit import APPROX, WORD, following
from aftercheck_worker.text.units import factor


def spelled(text: str, language: Language) -> list[Quantity]:
    """Read number words: `twenty-five`, `two hundred thousand`, `fünfundzwanzig`, `dwadzieścia pięć`."""
    own = load(language)
    out: list[Quantity] = []
    run: list[tuple[int, int, float, bool]] = []
    for found in WORD.finditer(text):
        parts = _number_words(found.group().lower(), own.numbers, own.scales)
        glued = bool(run) and text[run[-1][1] : found.start()].strip() in ("", "-")
        if parts and (glued or not run):
            run += [(found.start(), found.end(), value, scale) for value, scale in parts]
            continue
        _flush(text, run, out)
        run = [(found.start(), found.end(), value, scale) for value, scale in parts]
    _flush(text, run, out)
    return out


def _number_words(word: str, numbers: dict[str, float], scales: dict[str, float]) -> list[tuple[float, bool]]:
    if word in numbers:
        return [(numbers[word], False)]
    if word in scales and len(word) > 1:
        return [(scales[word], True)]
    if "-" in word:
        pieces = [_number_words(piece, numbers, scales) for piece in word.split("-")]
        return [part for piece in pieces for part in piece] if all(pieces) else []
    head, joint, tail = word.partition("und")  # German: fünfundzwanzig
    units = {**numbers, "ein": 1.0}
    if joint and head in units and tail in numbers and numbers[tail] >= 20:
        return [(units[head] + numbers[tail], False)]
    return []


def _flush(text: str, run: list[tuple[int, int, float, bool]], out: list[Quantity]) -> None:
    if not run:
        return
    total, current = 0.0, 0.0
    for _, _, value, is_scale in run:
        if not is_scale:
            current += value
        elif value >= 1000:
            total, current = total + max(current, 1.0) * value, 0.0
        else:
            current = max(current, 1.0) * value
    value = total + current
    start, end = run[0][0], run[-1][1]
    only_scale = all(scale for *_, scale in run)
    scale, unit, noun, stop = following(text, end, 1.0, "")
    if (value <= 1 and not unit) or only_scale:
        return
    size = scale * factor(unit)
    out.append(
        Quantity(
            start=start, end=stop, values=(value * size,), steps=(0.5 * size,), unit=unit, noun=noun,
            approximate=bool(APPROX.search(text[max(0, start - 16) : start])),
        )
    )  # fmt: skip

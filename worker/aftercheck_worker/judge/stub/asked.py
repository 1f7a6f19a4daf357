"""What a judge is asked: the way back from a prompt to its data, refusing every prompt that is not sound."""

from __future__ import annotations

import json
from typing import Final, cast

import msgspec

from aftercheck_worker.stages.judging.prompts import CRITERIA, Criterion, instructions, neutralise

MIN_DELIMITER: Final = 24
"""Hex digits: 96 bit."""
_DATA_LINE: Final = 2


class Unsound(Exception):
    """A prompt that no judge should get; the text says what is wrong with it."""


class Source(msgspec.Struct, frozen=True):
    """A source or passage as it was shown."""

    source_id: str
    text: str
    kind: str = ""
    cut_off: bool = False


class AskedClaim(msgspec.Struct, frozen=True):
    """A claim as it was shown."""

    claim_id: str
    text: str


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data of any of the three criteria."""

    question: str
    sources: tuple[Source, ...] = ()
    claims: tuple[AskedClaim, ...] = ()
    passages: tuple[Source, ...] = ()
    answer: str = ""
    faults: dict[str, str] = {}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt, read back.

    Attributes:
        again: the prompt complains about an earlier reply.
    """

    criterion: Criterion
    data: Data
    delimiter: str
    again: bool = False


def read(system: str, user: str) -> Asked:
    """Read a prompt back.

    Args:
        system: must be exactly the instructions of a criterion.
        user: the data message.

    Raises:
        Unsound: other instructions, a short or repeated delimiter, data that is no JSON of the criterion, or judged
            text in which a role, reasoning or verdict token still works.
    """
    criterion: Criterion | None = next((one for one in CRITERIA if instructions(one) == system), None)
    if criterion is None:
        raise Unsound("the system message is not the instructions of a criterion")
    lines = user.split("\n")
    if len(lines) < 5:
        raise Unsound("the data message has no delimiters")
    delimiter = lines[1]
    if len(delimiter) < MIN_DELIMITER or lines[3] != delimiter or user.count(delimiter) != 3:
        raise Unsound("the delimiter is short, or does not stand exactly around the data")
    try:
        decoded = cast("object", json.loads(lines[_DATA_LINE]))
        data = msgspec.convert(decoded, Data)
    except (ValueError, msgspec.ValidationError) as error:
        raise Unsound(f"the data is not that of {criterion}: {error}") from None
    if found := _live(decoded):
        raise Unsound(f"judged text still holds a control token: {found[:60]!r}")
    return Asked(criterion=criterion, data=data, delimiter=delimiter, again=len(lines) > 5)


def _live(value: object) -> str:
    """The first string in which a token still works, empty when there is none."""
    if isinstance(value, str):
        return value if neutralise(value) != value else ""
    inside: list[object] = []
    if isinstance(value, dict):
        inside = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        inside = cast("list[object]", value)
    return next((found for item in inside if (found := _live(item))), "")

"""Labelled answers of public sets whose licence allows shipping them; see NOTICE beside rows.jsonl."""

from __future__ import annotations

from importlib import resources
from typing import Literal

import msgspec

Label = Literal["supported", "unsupported", "contradicted", "not_found"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One answer with the label that humans gave it.

    Attributes:
        id: name of the row in its set.
        source: repository and file. licence: SPDX id.
        query, context, response: what the app asks, what it retrieves, what the model "answers".
        label: the human verdict on the whole response.
    """

    id: str
    source: str
    licence: str
    query: str
    context: str
    response: str
    label: Label


def load() -> list[Row]:
    """Read all rows."""
    lines = resources.files("aftercheck_worker.demo").joinpath("rows.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Row) for line in lines]

"""Source 4: Langfuse, `langfuse.observation.input` and `langfuse.observation.output`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction.decoding import decode
from aftercheck_worker.stages.extraction.messages import Content, turns_of

if TYPE_CHECKING:
    from aftercheck_schemas import Json


def read(attributes: dict[str, Json]) -> Content | None:
    """Read a generation, None when neither side was recorded."""
    raw_input = attributes.get("langfuse.observation.input")
    raw_output = attributes.get("langfuse.observation.output")
    if raw_input is None and raw_output is None:
        return None
    given, said = decode(raw_input), decode(raw_output)
    return Content(
        turns_of(given.value, "user") if raw_input is not None else None,
        turns_of(said.value, "assistant") if raw_output is not None else None,
        given.intact,
        said.intact,
    )

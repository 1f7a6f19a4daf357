"""Source 1: OTel GenAI convention, JSON in `gen_ai.input.messages` and `gen_ai.output.messages`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction.decoding import decode
from aftercheck_worker.stages.extraction.messages import Content, Turn, turns_of

if TYPE_CHECKING:
    from aftercheck_schemas import Json


def read(attributes: dict[str, Json]) -> Content | None:
    """Read the convention's attributes (strings or structures), None when there are none."""
    raw_input = attributes.get("gen_ai.input.messages")
    raw_output = attributes.get("gen_ai.output.messages")
    raw_system = attributes.get("gen_ai.system_instructions")
    if raw_input is None and raw_output is None and raw_system is None:
        return None
    inputs: tuple[Turn, ...] | None = None
    input_intact = True
    if raw_input is not None:
        decoded = decode(raw_input)
        input_intact = decoded.intact
        inputs = turns_of(decoded.value, "user")
    if raw_system is not None:
        decoded = decode(raw_system)
        input_intact = input_intact and decoded.intact
        inputs = _system(decoded.value) + (inputs or ())
    if raw_output is None:
        return Content(inputs, None, input_intact, True)
    decoded = decode(raw_output)
    return Content(inputs, turns_of(decoded.value, "assistant"), input_intact, decoded.intact)


def _system(value: Json) -> tuple[Turn, ...]:
    """System instructions are a list of parts, seldom of messages, sometimes plain text."""
    turns = turns_of(value, "system")
    parts = tuple(part for turn in turns for part in turn.parts)
    return (Turn("system", parts),) if parts else ()

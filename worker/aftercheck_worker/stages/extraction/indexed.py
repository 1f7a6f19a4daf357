"""Source 2: the older indexed scheme, `gen_ai.prompt.N.*` and `gen_ai.completion.N.*`.

OpenTelemetry's attribute limit drops the oldest attributes, so an index may be missing anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction.messages import Content, Turn, turn_of, turns_of
from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from aftercheck_schemas import Json
    from aftercheck_schemas.interaction import Role

_PROMPTS = ("gen_ai.prompt.", "llm.prompts.")
_COMPLETIONS = ("gen_ai.completion.", "llm.completions.")


def read(attributes: dict[str, Json]) -> Content | None:
    """Read the indexed attributes, None when there are none."""
    prompts: dict[int, dict[str, Json]] = {}
    completions: dict[int, dict[str, Json]] = {}
    for key, value in attributes.items():
        if key.startswith(_PROMPTS):
            put(prompts, key.partition("prompt")[2].lstrip("s."), value)
        elif key.startswith(_COMPLETIONS):
            put(completions, key.partition("completion")[2].lstrip("s."), value)
    inputs = turns_from(prompts, "user") if prompts else None
    outputs = turns_from(completions, "assistant") if completions else None
    inputs = inputs or _plain(attributes.get("gen_ai.prompt"), "user")
    outputs = outputs or _plain(attributes.get("gen_ai.completion"), "assistant")
    if inputs is None and outputs is None:
        return None
    return Content(inputs, outputs)


def put(messages: dict[int, dict[str, Json]], path: str, value: Json) -> None:
    """Store the value of `N.a.M.b` as `messages[N]["a"]["M"]["b"]`; other paths are left out."""
    head, _, rest = path.partition(".")
    if not head.isdecimal() or len(head) > 6 or not rest:
        return
    node: dict[str, Json] = messages.setdefault(int(head), {})
    keys = rest.split(".")
    if len(keys) > 10:
        return
    for key in keys[:-1]:
        inner = node.get(key)
        if not is_dict(inner):
            inner = {}
            node[key] = inner
        node = inner
    if not is_dict(node.get(keys[-1])):
        node[keys[-1]] = value


def listed(value: Json) -> list[Json]:
    """The values of a dict whose keys are numbers, in their order; a list as it is."""
    if is_list(value):
        return value
    if not is_dict(value):
        return []
    keys = sorted((key for key in value if key.isdecimal() and len(key) < 7), key=int)
    return [value[key] for key in keys]


def turns_from(messages: dict[int, dict[str, Json]], default: Role) -> tuple[Turn, ...]:
    """Turns in the order of their index."""
    turns: list[Turn] = []
    for index in sorted(messages):
        message = messages[index]
        if "tool_calls" in message:
            message["tool_calls"] = listed(message["tool_calls"])
        turn = turn_of(message, default)
        if turn is not None:
            turns.append(turn)
    return tuple(turns)


def _plain(value: Json, default: Role) -> tuple[Turn, ...] | None:
    turns = turns_of(value, default) if isinstance(value, str) else ()
    return turns or None

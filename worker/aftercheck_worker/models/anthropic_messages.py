"""Generator on Anthropic's Messages API, by plain HTTP: its client library would add 19 MB to every worker.

`json_schema` is `output_config.format`, `json_object` a tool that has to be called, `plain` neither. Names of fields
and reasons: https://platform.claude.com/docs/en/api/messages, version 2023-06-01.
"""

from __future__ import annotations

import random
from typing import Any, Final, Literal

import httpx2 as httpx
import msgspec

from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo
from aftercheck_worker.models.endpoint import (
    Attempts,
    Endpoint,
    Mode,
    client,
    connection_error,
    parameters,
    probed,
    status_error,
    temperature,
)

VERSION: Final = "2023-06-01"
URL: Final = "https://api.anthropic.com"
TOOL: Final = "reply"
_OK: Final = 200


class Block(msgspec.Struct, frozen=True):
    """A block of the reply: words, or the input of a tool. Thinking and others are not read."""

    type: str
    text: str = ""
    input: dict[str, Any] | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens; cached ones are counted apart by the service and cost less, but they are read all the same."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.input_tokens + (self.cache_creation_input_tokens or 0) + (self.cache_read_input_tokens or 0)


class Message(msgspec.Struct, frozen=True):
    """What the service answers."""

    type: Literal["message"]
    content: list[Block]
    stop_reason: str | None = None
    usage: Usage = Usage()


class AnthropicMessages:
    """Asks one model. Use it inside one event loop; `close` ends its connections.

    Args:
        endpoint: `url` without `/v1/messages`, `key` from the console.
        jitter: source of the back-off's randomness.
    """

    def __init__(self, endpoint: Endpoint, *, jitter: random.Random | None = None) -> None:
        self.endpoint = endpoint
        self._attempts = Attempts(endpoint, jitter)
        self._client = client(endpoint)

    @property
    def info(self) -> ModelInfo:
        """Model name and everything about the call that can change a reply."""
        return ModelInfo(
            name=self.endpoint.model, revision="", parameters={"api": VERSION, **parameters(self.endpoint)}
        )

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`. The service knows no seed: further samples differ by their temperature."""
        body: dict[str, object] = {
            "model": self.endpoint.model,
            "max_tokens": max_tokens,
            "system": system,
            "messages": [{"role": "user", "content": user}],
            **_format(self.endpoint.mode, schema),
        }
        if self.endpoint.temperature:
            body["temperature"] = temperature(seed)
        return await self._attempts.run(lambda: self._once(body))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _once(self, body: dict[str, object]) -> Completion:
        try:
            reply = await self._client.post(
                f"{self.endpoint.url.rstrip('/')}/v1/messages",
                json=body,
                headers={"x-api-key": self.endpoint.key, "anthropic-version": VERSION},
            )
            content = reply.content
        except httpx.HTTPError as error:
            raise connection_error(error) from None
        if reply.status_code != _OK:
            raise status_error(reply.status_code, reply.headers)
        try:
            return _completion(msgspec.json.decode(content, type=Message))
        except msgspec.DecodeError as error:
            raise GeneratorError("refused", f"unreadable reply ({error})"[:200]) from None


async def probe(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the strictest mode that the model accepts, see `endpoint.probed`."""
    return await probed(endpoint, AnthropicMessages)


def _format(mode: Mode, schema: dict[str, object] | None) -> dict[str, object]:
    if schema is None or mode == "plain":
        return {}
    if mode == "json_schema":
        return {"output_config": {"format": {"type": "json_schema", "schema": _strict(schema)}}}
    tool = {"name": TOOL, "description": "Give the reply.", "input_schema": schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}


def _strict(schema: dict[str, object]) -> dict[str, object]:
    """The schema without bounds of numbers, which the service refuses; the reply ladder checks them anyway."""
    return {name: _without_bounds(value) for name, value in schema.items() if name not in ("minimum", "maximum")}


def _without_bounds(value: object) -> object:
    if isinstance(value, dict):
        return _strict({str(name): item for name, item in value.items()})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _completion(message: Message) -> Completion:
    """Words of the reply, or the tool's input as JSON. A refusal has neither and is an empty reply."""
    called = next((block.input for block in message.content if block.type == "tool_use" and block.input), None)
    text = "".join(block.text for block in message.content if block.type == "text")
    return Completion(
        text=msgspec.json.encode(called).decode() if called is not None else text,
        cut=message.stop_reason in ("max_tokens", "model_context_window_exceeded"),
        prompt_tokens=max(0, message.usage.prompt),
        completion_tokens=max(0, message.usage.output_tokens),
    )

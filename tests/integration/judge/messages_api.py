"""A fake of Anthropic's Messages API that refuses what the real one refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEY = "sk-ant-fake"


class Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str


class Format(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct, forbid_unknown_fields=True):
    format: Format


class Tool(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str
    input_schema: dict[str, Any]


class ToolChoice(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["tool"]
    name: str


class Ask(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    system: str
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    output_config: OutputConfig | None = None
    tools: list[Tool] = []
    tool_choice: ToolChoice | None = None


class Messages:
    """Answers by `script`; keeps what it was asked.

    Args:
        script: from a request to the words of the reply, or to a finished response.
        structured: the model knows `output_config`. warm: it takes a temperature. tools: it takes tools.
    """

    def __init__(
        self,
        script: Callable[[Ask], str | Response],
        *,
        structured: bool = True,
        warm: bool = True,
        tools: bool = True,
    ) -> None:
        self.asked: list[Ask] = []
        self._script = script
        self._structured, self._warm, self._tools = structured, warm, tools

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/messages", self._messages, methods=["POST"])])

    async def _messages(self, request: Request) -> Response:
        if request.headers.get("x-api-key") != KEY:
            return refusal(401, "authentication_error")
        if request.headers.get("anthropic-version") != "2023-06-01":
            return refusal(400, "invalid_request_error")
        try:
            ask = msgspec.json.decode(await request.body(), type=Ask)
        except msgspec.ValidationError:
            return refusal(400, "invalid_request_error")
        bounded = ask.output_config is not None and '"minimum"' in json.dumps(ask.output_config.format.schema)
        unknown_tool = ask.tool_choice is not None and ask.tool_choice.name not in {tool.name for tool in ask.tools}
        if (
            bounded
            or unknown_tool
            or (ask.output_config is not None and not self._structured)
            or (ask.tools and not self._tools)
            or (ask.temperature is not None and not self._warm)
        ):
            return refusal(400, "invalid_request_error")
        self.asked.append(ask)
        reply = self._script(ask)
        return reply if isinstance(reply, Response) else message(ask, reply)


def message(ask: Ask, words: str, *, stop: str = "end_turn") -> Response:
    """A whole reply; with a tool its input, otherwise words after a block of thinking."""
    if ask.tool_choice is not None:
        blocks: list[dict[str, object]] = [
            {"type": "tool_use", "id": "toolu_1", "name": ask.tool_choice.name, "input": json.loads(words)}
        ]
        stop = "tool_use"
    else:
        blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": words}]
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 11,
        "cache_creation_input_tokens": None,
    }
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": ask.model, "content": blocks}
    return JSONResponse(body | {"stop_reason": stop, "stop_sequence": None, "usage": usage})


def refusal(status: int, kind: str, headers: dict[str, str] | None = None) -> Response:
    """An error as the service writes it."""
    error = {"type": "error", "error": {"type": kind, "message": "no"}}
    return JSONResponse(error, status_code=status, headers=headers)

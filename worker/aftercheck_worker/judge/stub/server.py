"""The stub's endpoint: `POST /v1/chat/completions`, `GET /v1/models`, errors as OpenAI writes them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Final, Literal

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.judge.stub.asked import Unsound, read
from aftercheck_worker.judge.stub.generator import CHARS_PER_TOKEN, name
from aftercheck_worker.judge.stub.modes import Reply, Reused, Stub
from aftercheck_worker.models.endpoint import MODES as FORMATS
from aftercheck_worker.models.endpoint import PROBE_SYSTEM
from aftercheck_worker.models.endpoint import Mode as Format
from aftercheck_worker.stages.judging.schemas import SCHEMAS

MAX_BODY: Final = 4 * 1024 * 1024
BLOCK: Final = 1 << 16
_OK: Final = 200


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a chat."""

    role: Literal["system", "user"]
    content: str


class JsonSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema that a reply has to follow."""

    name: str
    schema: dict[str, object]
    strict: bool = False


class ResponseFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How strictly the reply is JSON."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Chat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request as the judge writes it; anything else is refused, so that a change of it is noticed."""

    model: str
    messages: Annotated[list[Message], msgspec.Meta(min_length=2, max_length=2)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=65_536)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1, le=65_536)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.0
    seed: int = 0
    response_format: ResponseFormat | None = None


def application(stub: Stub, *, accepts: Format = "json_schema", key: str = "", latency: float = 0.0) -> Starlette:
    """Return the endpoint.

    Args:
        stub: what to answer.
        accepts: the strictest structured-output mode that is not refused with 400.
        key: bearer token that requests must carry; empty accepts any.
        latency: seconds that every reply takes, in place of a model's time.
    """
    model = name(stub.mode)

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": model, "object": "model"}]})

    async def completions(request: Request) -> Response:
        bearer = request.headers.get("authorization", "")
        if not bearer.startswith("Bearer ") or (key and bearer != f"Bearer {key}"):
            return _error(401, "no or wrong bearer token")
        body = await request.body()
        try:
            chat = msgspec.json.decode(body[:MAX_BODY], type=Chat)
            _accepted(chat, accepts)
            reply = _answer(stub, chat)
        except (msgspec.DecodeError, Unsound) as error:
            return _error(400, str(error))
        except Reused:
            return _error(400, "a delimiter was used for two prompts")
        if latency:
            await asyncio.sleep(latency)
        if reply.hang:
            await asyncio.Event().wait()
        return _response(reply, chat)

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/chat/completions", completions, methods=["POST"]),
        ]
    )


def run(
    app: Starlette, *, host: str, port: int, stop: threading.Event, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until `stop` is set.

    Args:
        app: see `application`.
        host: address to listen on.
        port: 0 takes any free one.
        stop: set it to end.
        ready: called with the base URL.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise ConfigurationError(
            f"The stub cannot listen on {host}:{port}", why="the port is taken", fix="choose another --port (0 = any)"
        ) from None
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, name="judge-stub", daemon=True)
    thread.start()
    if ready is not None:
        ready(f"http://{host}:{socket.getsockname()[1]}/v1")
    while thread.is_alive() and not stop.wait(0.2):
        continue
    server.should_exit = server.force_exit = True
    thread.join(10)
    socket.close()


def _accepted(chat: Chat, accepts: Format) -> None:
    if [message.role for message in chat.messages] != ["system", "user"]:
        raise Unsound("the messages are not system, then user")
    if (chat.max_tokens is None) == (chat.max_completion_tokens is None):
        raise Unsound("there is not exactly one limit of tokens")
    asked = chat.response_format.type if chat.response_format else "plain"
    if asked != "text" and FORMATS.index("plain" if asked == "plain" else asked) < FORMATS.index(accepts):
        raise Unsound(f"response_format {asked} is not supported here")


def _answer(stub: Stub, chat: Chat) -> Reply:
    """The reply; the probe for the structured-output mode is no prompt and gets what it asks for."""
    system, user = (message.content for message in chat.messages)
    if system == PROBE_SYSTEM:
        return Reply(text='{"ok": true}')
    asked = read(system, user)
    form = chat.response_format
    if form is not None and form.json_schema is not None and form.json_schema.schema != SCHEMAS[asked.criterion]:
        raise Unsound(f"the schema is not that of {asked.criterion}")
    return stub.reply(asked)


def _response(reply: Reply, chat: Chat) -> Response:
    if reply.size:
        return StreamingResponse(_filling(reply.size), media_type="application/json")
    if reply.status != _OK:
        return _error(reply.status, reply.text, reply.headers)
    prompt = sum(len(message.content) for message in chat.messages) // CHARS_PER_TOKEN
    written = len(reply.text) // CHARS_PER_TOKEN
    document = {
        "id": f"stub-{time.monotonic_ns()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": chat.model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "length" if reply.cut else "stop",
                "message": {"role": "assistant", "content": reply.text},
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }
    if reply.drip:
        return StreamingResponse(_dripping(json.dumps(document).encode(), reply.drip), media_type="application/json")
    return JSONResponse(document)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status_code=status, headers=headers)


async def _filling(size: int) -> AsyncIterator[bytes]:
    for _ in range(0, size, BLOCK):
        yield b" " * BLOCK


async def _dripping(body: bytes, pause: float) -> AsyncIterator[bytes]:
    for byte in body:
        yield bytes([byte])
        await asyncio.sleep(pause)

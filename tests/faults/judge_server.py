"""A scripted OpenAI-compatible endpoint on loopback that misbehaves on demand (F18-F21) and validates requests."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What to send. `drip` seconds between single bytes; `hang` never answers; `body` wins over `content`."""

    status: int = 200
    content: str = ""
    headers: dict[str, str] = {}
    body: bytes | None = None
    finish_reason: str = "stop"
    drip: float = 0
    hang: bool = False
    reset: bool = False


Script = Callable[[int, dict[str, object]], Reply]


class JudgeServer:
    """Counts calls and concurrent calls; `script(n, request)` says what the n-th call (from 0) gets."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self._tls = tls
        self.requests: list[dict[str, object]] = []
        self.open = 0
        self.most_open = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Listen on a free loopback port."""
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        """Close everything, hanging calls included."""
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        scheme = "https" if self._tls else "http"
        self.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        pending = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                try:
                    number = len(self.requests)
                    self.requests.append(request)
                    await _send(writer, self.script(number, request), str(request["model"]))
                finally:
                    self.open -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> dict[str, object] | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    line, *fields = head.decode().split("\r\n")
    assert line.startswith("POST /v1/chat/completions "), line
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields if field)}
    assert headers["authorization"].startswith("Bearer ")
    request = cast("dict[str, object]", json.loads(await reader.readexactly(int(headers["content-length"]))))
    warm, thinking = {"max_tokens", "temperature"}, {"max_completion_tokens"}
    assert {"model", "messages", "seed"} <= set(request)
    assert set(request) & (warm | thinking) in (warm, thinking)
    return request


async def _send(writer: asyncio.StreamWriter, reply: Reply, model: str) -> None:
    if reply.hang:
        await asyncio.sleep(3600)  # the loop holds whoever sleeps; one who waits for its own event is garbage
    if reply.reset:
        writer.transport.abort()
        raise ConnectionError
    body = reply.body if reply.body is not None else _completion(reply, model)
    head = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    fixed = f"HTTP/1.1 {reply.status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"{fixed}{head}\r\n".encode())
    if reply.drip:
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(reply.drip)
    else:
        writer.write(body)
    await writer.drain()


def _completion(reply: Reply, model: str) -> bytes:
    choice = {
        "index": 0,
        "finish_reason": reply.finish_reason,
        "message": {"role": "assistant", "content": reply.content},
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    document = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(document).encode()


@contextmanager
def serving(script: Script, tls: ssl.SSLContext | None = None) -> Generator[JudgeServer]:
    """Run a scripted endpoint for the length of a block."""
    server = JudgeServer(script, tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()

"""A TCP proxy whose faults are switched at run time: before Redis, Postgres or a judge in fault tests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Literal, Self, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Callable

Mode = Literal["ok", "latency", "blackhole", "reset", "slow", "down"]
MODES: tuple[Mode, ...] = get_args(Mode)
_RST_ON_CLOSE = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forward 127.0.0.1:`port` to a target, with faults.

    Modes: `ok`; `latency` (each chunk waits `latency_s`); `slow` (`rate` bytes per second); `blackhole`
    (connections are accepted and nothing is ever forwarded, also on open ones); `reset` (RST on every
    connection); `down` (nothing listens: connection refused). `set` returns when the mode is in force.

    Example:
        with FaultProxy("127.0.0.1", 6379) as proxy:
            proxy.set("blackhole")
    """

    def __init__(self, host: str, port: int, latency_s: float = 0.1, rate: int = 1024) -> None:
        self._target = (host, port)
        self.latency_s = latency_s
        self.rate = rate
        self.mode: Mode = "ok"
        self.port = 0
        self.accepted = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def set(self, mode: Mode) -> None:
        """Switch the fault; open connections are cut by `reset` and `down`."""
        self._call(lambda: self._switch(mode))

    def _call(self, step: Callable[[], object]) -> None:
        async def run() -> None:
            await cast("asyncio.Future[object]", step())

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_listener(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _stop(self) -> None:
        await self._close_listener()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _switch(self, mode: Mode) -> None:
        self.mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode in ("reset", "down"):
            for writer in list(self._writers):
                self._cut(writer)
        if mode == "down":
            await self._close_listener()
        elif self._server is None:
            await self._listen()

    def _cut(self, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket | None = writer.get_extra_info("socket")
        if sock is not None and self.mode == "reset":
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
        writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        self._writers.add(writer)
        self.accepted += 1
        upstream: asyncio.StreamWriter | None = None
        try:
            if self.mode == "reset":
                return
            while self.mode == "blackhole":
                await self._changed.wait()
            answers, upstream = await asyncio.open_connection(*self._target)
            self._writers.add(upstream)
            pumps = [asyncio.create_task(self._pump(*pair)) for pair in ((reader, upstream), (answers, writer))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, upstream):
                if end is not None:
                    self._writers.discard(end)
                    self._cut(end)
            self._tasks.discard(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536 if self.mode != "slow" else max(1, self.rate // 10)):
            while self.mode == "blackhole":
                await self._changed.wait()
            if self.mode == "latency":
                await asyncio.sleep(self.latency_s)
            elif self.mode == "slow":
                await asyncio.sleep(len(data) / self.rate)
            sink.write(data)
            await sink.drain()

"""An OpenAI-compatible endpoint of fixed latency: `python -m benchmarks._judge_endpoint SECONDS`.

It answers every claim `supported` with the first words of the first source, and knows how many calls were open at
once (`GET /most`). Raw sockets: a web server's own time would be counted as the judge's.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast

CHARS_PER_TOKEN = 4


class Endpoint:
    """Counts open calls."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self.open = self.most = self.calls = 0

    async def serve(self) -> None:
        """Listen on a free port and print it."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 20, backlog=512)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                if head.startswith("GET"):
                    writer.write(_http({"most": self.most, "calls": self.calls}))
                    self.most = self.calls = 0
                    continue
                length = next(
                    int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length")
                )
                body = await reader.readexactly(length)
                self.open += 1
                self.calls += 1
                self.most = max(self.most, self.open)
                await asyncio.sleep(self._latency)
                self.open -= 1
                writer.write(_http(_reply(body)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _reply(body: bytes) -> dict[str, object]:
    messages = cast("list[dict[str, str]]", json.loads(body)["messages"])
    data = json.loads(messages[1]["content"].split("\n")[2])
    source = data["sources"][0]
    quote = {"source_id": source["source_id"], "quote": " ".join(source["text"].split(" ")[:8])}
    verdict = {"evidence": [quote], "rationale": "It says so.", "status": "supported", "confidence": 0.9}
    text = json.dumps({"verdicts": [{"claim_id": claim["claim_id"], **verdict} for claim in data["claims"]]})
    prompt = sum(len(message["content"]) for message in messages) // CHARS_PER_TOKEN
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": len(text) // CHARS_PER_TOKEN, "total_tokens": prompt},
    }


def _http(document: dict[str, object]) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


if __name__ == "__main__":
    asyncio.run(Endpoint(float(sys.argv[1])).serve())

"""A loopback server that speaks the OpenAI chat API and answers with the labelled responses.

The app's `openai` client, its HTTP and its instrumentation are the real ones; only the model behind the API is not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

MODEL = "demo-model"


class _Message(msgspec.Struct):
    role: str
    content: str = ""


class _Request(msgspec.Struct):
    messages: list[_Message]
    model: str = MODEL


@contextmanager
def serving(answers: Mapping[str, str]) -> Generator[str, None, None]:
    """Serve on a free loopback port.

    Args:
        answers: text of the last message -> what the model says.

    Yields:
        Base URL for the `openai` client, with `/v1`.
    """

    class Handler(BaseHTTPRequestHandler):
        """One route: POST /v1/chat/completions."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a chat request."""
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            request = msgspec.json.decode(body, type=_Request)
            asked = request.messages[-1].content
            reply = msgspec.json.encode(_completion(request, answers.get(asked, "I do not know.")))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def _completion(request: _Request, text: str) -> dict[str, object]:
    """Body of a chat completion. Tokens are counted as words: the stub has no tokenizer."""
    prompt = sum(len(message.content.split()) for message in request.messages)
    completion = len(text.split())
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"},
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }

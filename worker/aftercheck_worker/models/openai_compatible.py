"""Generator on any OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp, Ollama, OpenAI.

The client's own retries are off: see `endpoint`. Its typed layer is passed by: turning a request into its models and
a reply back out of them is half of a call's CPU, and a server may send other types than the declared ones anyway.
"""

from __future__ import annotations

import json
import random
from typing import cast

import httpx2 as httpx
import msgspec
import openai

from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo
from aftercheck_worker.models.endpoint import (
    LONGEST_SLEEP,
    MODES,
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

__all__ = ["LONGEST_SLEEP", "MODES", "Endpoint", "Mode", "OpenAICompatible", "probe"]


class OpenAICompatible:
    """Asks one endpoint. Use it inside one event loop; `close` ends its connections.

    Args:
        endpoint: see `Endpoint`.
        jitter: source of the back-off's randomness.
    """

    def __init__(self, endpoint: Endpoint, *, jitter: random.Random | None = None) -> None:
        self.endpoint = endpoint
        self._attempts = Attempts(endpoint, jitter)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url, api_key=endpoint.key, max_retries=0, http_client=client(endpoint)
        )

    @property
    def info(self) -> ModelInfo:
        """Model name and everything about the call that can change a reply."""
        return ModelInfo(
            name=self.endpoint.model,
            revision="",
            parameters=parameters(self.endpoint),
        )

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`. Retries 429, 5xx and broken connections with full jitter."""
        body: dict[str, object] = {
            "model": self.endpoint.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "seed": seed,
            **_response_format(self.endpoint.mode, schema),
        }
        if self.endpoint.temperature:
            body |= {"max_tokens": max_tokens, "temperature": temperature(seed)}
        else:  # models that think by themselves refuse a temperature, and name their limit differently
            body["max_completion_tokens"] = max_tokens
        content = _encoded(body)
        return await self._attempts.run(lambda: self._once(content))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _once(self, content: bytes) -> Completion:
        try:
            reply = await self._client.post("/chat/completions", content=content, cast_to=httpx.Response)
        except openai.APIStatusError as error:
            raise status_error(error.status_code, error.response.headers) from None
        except openai.APIConnectionError as error:
            raise connection_error(error.__cause__ or error) from None
        except (openai.OpenAIError, ValueError) as error:
            raise GeneratorError("refused", f"unreadable reply ({type(error).__name__})") from None
        return _completion(_decoded(reply.content))


async def probe(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the strictest structured-output mode that it accepts, see `endpoint.probed`."""
    return await probed(endpoint, OpenAICompatible)


def _response_format(mode: Mode, schema: dict[str, object] | None) -> dict[str, object]:
    if schema is None or mode == "plain":
        return {}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    }


def _encoded(body: dict[str, object]) -> bytes:
    """The request as JSON. Half of a surrogate pair in judged text, which no UTF-8 holds, is sent as a mark."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _decoded(content: bytes) -> object:
    """The document of a reply. What only the laxer reader takes (NaN, half of a surrogate pair) is read by that."""
    try:
        return cast("object", msgspec.json.decode(content))
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return cast("object", json.loads(content))
    except (ValueError, RecursionError) as error:
        raise GeneratorError("refused", f"unreadable reply ({type(error).__name__})") from None


def _completion(reply: object) -> Completion:
    """Read a document that may be anything: what is no text is empty, what is no count is 0."""
    choices = _field(reply, "choices")
    if not isinstance(choices, list) or not choices:
        raise GeneratorError("refused", "reply without choices")
    first = cast("list[object]", choices)[0]
    content = _field(_field(first, "message"), "content")
    usage = _field(reply, "usage")
    return Completion(
        text=content if isinstance(content, str) else "",
        cut=_field(first, "finish_reason") == "length",
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _field(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None


def _count(usage: object, name: str) -> int:
    value = _field(usage, name)
    return value if isinstance(value, int) and value > 0 else 0

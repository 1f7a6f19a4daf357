"""Generator on any OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp, Ollama, OpenAI. The only file with `openai`.

The client's own retries are off: retries, the total deadline and the size cap are ours, so that a slow drip or a
body of 50 MB cannot hold a worker (F18-F20). Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final, Literal, cast

import httpx2 as httpx
import msgspec
import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo

Mode = Literal["json_schema", "json_object", "plain"]
MODES: Final[tuple[Mode, ...]] = ("json_schema", "json_object", "plain")

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
LONGEST_SLEEP: Final = 5.0
"""A Retry-After above this is not slept here: the caller puts the work back until then."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to ask.

    Attributes:
        url: base URL, e.g. `http://127.0.0.1:8000/v1`.
        model: name of the model at the endpoint.
        key: bearer token; a local server accepts any.
        mode: structured-output mode; find it with `probe`.
        connect, total: seconds; `total` covers the whole call with its retries.
        attempts: calls per generation, the first included.
        concurrency: calls in flight from this process.
    """

    url: str
    model: str
    key: str = "none"
    mode: Mode = "json_schema"
    connect: float = 2.0
    total: float = 60.0
    attempts: int = 3
    concurrency: int = 64


class _CappedTransport(httpx.AsyncHTTPTransport):
    """Refuses bodies above the cap while they stream in."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        response.stream = _CappedStream(cast("httpx.AsyncByteStream", response.stream))
        return response


class _CappedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self):  # type: ignore[no-untyped-def]
        size = 0
        async for block in self._inner:
            size += len(block)
            if size > MAX_BODY_BYTES:
                raise GeneratorError("too_large", f"reply above {MAX_BODY_BYTES} bytes")
            yield block

    async def aclose(self) -> None:
        await self._inner.aclose()


class OpenAICompatible:
    """Asks one endpoint. Use it inside one event loop; `close` ends its connections.

    Args:
        endpoint: see `Endpoint`.
        jitter: source of the back-off's randomness.
    """

    def __init__(self, endpoint: Endpoint, *, jitter: random.Random | None = None) -> None:
        self.endpoint = endpoint
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, protects nothing
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        limits = httpx.Limits(max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.key,
            max_retries=0,
            http_client=httpx.AsyncClient(
                transport=_CappedTransport(limits=limits),
                timeout=httpx.Timeout(endpoint.total, connect=endpoint.connect),
                follow_redirects=False,
            ),
        )

    @property
    def info(self) -> ModelInfo:
        """Model name and everything about the call that can change a reply."""
        return ModelInfo(
            name=self.endpoint.model,
            revision="",
            parameters={"mode": self.endpoint.mode, "attempts": str(self.endpoint.attempts), "temperature": "0|0.4"},
        )

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`. Retries 429, 5xx and broken connections with full jitter."""
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        try:
            async with asyncio.timeout(self.endpoint.total), self._slots:
                return await self._attempts(messages, schema, max_tokens, seed)
        except TimeoutError:
            raise GeneratorError("deadline", f"no reply in {self.endpoint.total:g} s") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _attempts(
        self, messages: list[ChatCompletionMessageParam], schema: dict[str, object] | None, max_tokens: int, seed: int
    ) -> Completion:
        for attempt in range(1, self.endpoint.attempts + 1):
            try:
                return await self._once(messages, schema, max_tokens, seed)
            except GeneratorError as error:
                wait = self._wait(error, attempt)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise GeneratorError("unavailable", "no attempts")

    def _wait(self, error: GeneratorError, attempt: int) -> float | None:
        """Seconds before the next attempt, None when there is none here."""
        if error.reason not in ("rate_limited", "unavailable") or attempt >= self.endpoint.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_SLEEP else None
        return self._jitter.uniform(0, min(8.0, 0.5 * 2**attempt))

    async def _once(
        self, messages: list[ChatCompletionMessageParam], schema: dict[str, object] | None, max_tokens: int, seed: int
    ) -> Completion:
        try:
            reply = await self._client.chat.completions.create(
                model=self.endpoint.model,
                messages=messages,
                max_tokens=max_tokens,
                temperature=0.4 if seed else 0.0,
                seed=seed,
                extra_body=_response_format(self.endpoint.mode, schema),
            )
        except openai.APIStatusError as error:
            raise _status_error(error) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, GeneratorError):
                raise cause from None
            raise GeneratorError("unavailable", type(cause or error).__name__) from None
        except (openai.OpenAIError, ValueError) as error:
            raise GeneratorError("refused", f"unreadable reply ({type(error).__name__})") from None
        return _completion(reply)


async def probe(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the strictest structured-output mode that it accepts.

    Raises:
        GeneratorError: it accepts none, or does not answer.
    """
    refusal = GeneratorError("refused", "no mode accepted")
    for mode in MODES:
        candidate = msgspec.structs.replace(endpoint, mode=mode)
        model = OpenAICompatible(candidate)
        try:
            await model.generate('Reply with {"ok": true}.', "Now.", schema=_PROBE_SCHEMA, max_tokens=20)
        except GeneratorError as error:
            if error.reason != "refused":
                raise
            refusal = error
        else:
            return candidate
        finally:
            await model.close()
    raise refusal


_PROBE_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def _response_format(mode: Mode, schema: dict[str, object] | None) -> dict[str, object]:
    if schema is None or mode == "plain":
        return {}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    }


def _completion(reply: ChatCompletion) -> Completion:
    # A server may send anything that is JSON, so the declared types are checked before use.
    choices = cast("list[object] | None", getattr(reply, "choices", None))
    if not isinstance(choices, list) or not choices:
        raise GeneratorError("refused", "reply without choices")
    message = getattr(choices[0], "message", None)
    content = getattr(message, "content", None)
    usage = cast("object", getattr(reply, "usage", None))
    return Completion(
        text=content if isinstance(content, str) else "",
        cut=getattr(choices[0], "finish_reason", None) == "length",
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: object, name: str) -> int:
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0


def _status_error(error: openai.APIStatusError) -> GeneratorError:
    code = error.status_code
    detail = f"HTTP {code}"
    if code == 429 or (code == 503 and "retry-after" in error.response.headers):
        return GeneratorError("rate_limited", detail, retry_after=_retry_after(error.response.headers))
    if code >= 500 or code in (408, 409):
        return GeneratorError("unavailable", detail)
    return GeneratorError("refused", detail)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), 3600.0) if seconds == seconds else None

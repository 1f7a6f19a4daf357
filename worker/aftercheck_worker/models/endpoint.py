"""What every HTTP back end of a judge shares: the endpoint's settings, the size cap, retries and their reasons.

Retries, the total deadline and the size cap are ours, so that a slow drip or a body of 50 MB cannot hold a worker
(F18-F20). Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, Protocol, cast

import httpx2 as httpx
import msgspec

from aftercheck_worker.models.base import Completion, GeneratorError

Mode = Literal["json_schema", "json_object", "plain"]
MODES: Final[tuple[Mode, ...]] = ("json_schema", "json_object", "plain")
"""From the strictest to the laxest."""

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
LONGEST_SLEEP: Final = 5.0
"""A Retry-After above this is not slept here: the caller puts the work back until then."""
LONGEST_RETRY_AFTER: Final = 3600.0
PROBE_SYSTEM: Final = 'Reply with {"ok": true}.'
PROBE_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
"""What a probe for the mode asks; `judge stub` knows it."""
PROBE_TOKENS: Final = 64
FINAL: Final = ("401", "403", "404")
"""Statuses after which no other mode helps: the key, the rights or the name of the model are wrong."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to ask.

    Attributes:
        url: base URL, e.g. `http://127.0.0.1:8000/v1`.
        model: name of the model at the endpoint.
        key: bearer token or API key; a local server accepts any.
        mode: structured-output mode; find it with `probe`.
        connect, total: seconds; `total` covers the whole call with its retries.
        attempts: calls per generation, the first included.
        concurrency: calls in flight from this process.
        temperature: send one; some models refuse it.
    """

    url: str
    model: str
    key: str = "none"
    mode: Mode = "json_schema"
    connect: float = 2.0
    total: float = 60.0
    attempts: int = 3
    concurrency: int = 64
    temperature: bool = True


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


class HttpGenerator(Protocol):
    """A generator with connections to end."""

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


async def probed(endpoint: Endpoint, build: Callable[[Endpoint], HttpGenerator]) -> Endpoint:
    """Return the endpoint with the strictest mode that it accepts, with a temperature where it takes one.

    Args:
        endpoint: its `mode` and `temperature` are what is looked for.
        build: the back end.

    Raises:
        GeneratorError: it accepts none, refuses the key, or does not answer.
    """
    refusal = GeneratorError("refused", "no mode accepted")
    for mode, warm in itertools.product(MODES, (True, False)):
        candidate = msgspec.structs.replace(endpoint, mode=mode, temperature=warm)
        model = build(candidate)
        try:
            await model.generate(PROBE_SYSTEM, "Now.", schema=PROBE_SCHEMA, max_tokens=PROBE_TOKENS)
        except GeneratorError as error:
            if error.reason != "refused" or str(error).endswith(FINAL):
                raise
            refusal = error
        else:
            return candidate
        finally:
            await model.close()
    raise refusal


def temperature(seed: int) -> float:
    """Sure for the first sample, a little spread for further ones (verification notes, section 3)."""
    return 0.4 if seed else 0.0


def parameters(endpoint: Endpoint) -> dict[str, str]:
    """What can change a reply, for `ModelInfo`."""
    return {
        "mode": endpoint.mode,
        "attempts": str(endpoint.attempts),
        "temperature": "0|0.4" if endpoint.temperature else "none",
    }


def client(endpoint: Endpoint) -> httpx.AsyncClient:
    """Return an HTTP client with the cap, the deadlines and no redirects."""
    limits = httpx.Limits(max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency)
    return httpx.AsyncClient(
        transport=_CappedTransport(limits=limits),
        timeout=httpx.Timeout(endpoint.total, connect=endpoint.connect),
        follow_redirects=False,
    )


class Attempts:
    """One semaphore, one deadline and the retries of an endpoint. Use it inside one event loop.

    Args:
        endpoint: its limits.
        jitter: source of the back-off's randomness.
    """

    def __init__(self, endpoint: Endpoint, jitter: random.Random | None = None) -> None:
        self._endpoint = endpoint
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, protects nothing
        self._slots = asyncio.Semaphore(endpoint.concurrency)

    async def run(self, once: Callable[[], Awaitable[Completion]]) -> Completion:
        """Call `once` until it gives a reply. Retries 429, 5xx and broken connections with full jitter.

        Raises:
            GeneratorError: the last failure, or `deadline`.
        """
        try:
            async with asyncio.timeout(self._endpoint.total), self._slots:
                return await self._attempts(once)
        except TimeoutError:
            raise GeneratorError("deadline", f"no reply in {self._endpoint.total:g} s") from None

    async def _attempts(self, once: Callable[[], Awaitable[Completion]]) -> Completion:
        for attempt in range(1, self._endpoint.attempts + 1):
            try:
                return await once()
            except GeneratorError as error:
                wait = self._wait(error, attempt)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise GeneratorError("unavailable", "no attempts")

    def _wait(self, error: GeneratorError, attempt: int) -> float | None:
        """Seconds before the next attempt, None when there is none here."""
        if error.reason not in ("rate_limited", "unavailable") or attempt >= self._endpoint.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_SLEEP else None
        return self._jitter.uniform(0, min(8.0, 0.5 * 2**attempt))


def status_error(code: int, headers: Mapping[str, str]) -> GeneratorError:
    """Return the failure that an HTTP status means. 529 is Anthropic's word for an overloaded service."""
    detail = f"HTTP {code}"
    if code == 429 or (code in (503, 529) and "retry-after" in headers):
        return GeneratorError("rate_limited", detail, retry_after=_retry_after(headers))
    if code >= 500 or code in (408, 409):
        return GeneratorError("unavailable", detail)
    return GeneratorError("refused", detail)


def connection_error(error: BaseException) -> GeneratorError:
    """Return the failure that a call without any reply means. A certificate that is not accepted is not retried."""
    one: BaseException | None = error
    name = type(error).__name__
    while one is not None:
        if isinstance(one, GeneratorError):
            return one
        if isinstance(one, ssl.SSLCertVerificationError):
            return GeneratorError("untrusted", f"the endpoint's certificate: {one.verify_message}"[:200])
        one = one.__cause__ or one.__context__
    return GeneratorError("unavailable", name)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if seconds == seconds else None

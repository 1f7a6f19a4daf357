"""From settings to the generator behind the judge."""

from __future__ import annotations

import asyncio

import msgspec

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models.base import Completion, Generator, ModelInfo
from aftercheck_worker.models.openai_compatible import Endpoint, OpenAICompatible, probe
from aftercheck_worker.settings import Settings


class Probing:
    """Asks the endpoint once which structured-output mode it takes, at the first call; then steps aside.

    A probe that fails is the failure of that call, and the next call probes again.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._inner: OpenAICompatible | None = None
        self._lock = asyncio.Lock()

    @property
    def info(self) -> ModelInfo:
        """Identity; its mode is `auto` until the endpoint has answered."""
        if self._inner is not None:
            return self._inner.info
        return ModelInfo(name=self._endpoint.model, revision="", parameters={"mode": "auto"})

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`."""
        inner = await self._ready()
        return await inner.generate(system, user, schema=schema, max_tokens=max_tokens, seed=seed)

    async def close(self) -> None:
        """Close all connections."""
        if self._inner is not None:
            await self._inner.close()

    async def _ready(self) -> OpenAICompatible:
        async with self._lock:
            if self._inner is None:
                self._inner = OpenAICompatible(await probe(self._endpoint))
        return self._inner


def build(settings: Settings) -> Generator | None:
    """Return the generator that the settings name; None without a judge. Connects to nothing yet.

    Raises:
        ConfigurationError: the URL is none.
    """
    if settings.judge_url is None:
        return None
    if not settings.judge_url.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"AFTERCHECK_JUDGE_URL {settings.judge_url[:80]!r} is no URL",
            why="it has to begin with http:// or https://",
            fix="name the base URL, such as http://127.0.0.1:8000/v1",
        )
    endpoint = Endpoint(
        url=settings.judge_url,
        model=settings.judge_model,
        key=settings.judge_key.get_secret_value() if settings.judge_key else "none",
        total=settings.judge_call_seconds,
        concurrency=settings.judge_concurrency,
    )
    if settings.judge_mode == "auto":
        return Probing(endpoint)
    return OpenAICompatible(msgspec.structs.replace(endpoint, mode=settings.judge_mode))
